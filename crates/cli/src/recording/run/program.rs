//! What is known of a program before it runs: whether a preload would reach it.

use crate::files::has_capabilities;
use crate::recording::executable::{find, interpreter};
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, LittleEndian};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is in the way of a preload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no loader that would look at LD_PRELOAD.
    Static,
    /// The loader does not take such preloads where privileges are raised.
    Privileged,
    /// It is for another processor, or for 32 bits.
    Foreign,
}

impl Obstacle {
    /// A sentence for the user.
    pub fn sentence(self) -> &'static str {
        match self {
            Obstacle::Static => {
                "is linked statically: nothing can be preloaded into it, and its calls will not be seen"
            }
            Obstacle::Privileged => {
                "is setuid, setgid or has capabilities: the system ignores LD_PRELOAD, and its calls will not be seen"
            }
            Obstacle::Foreign => "is for another kind of processor than the shim: its calls will not be seen",
        }
    }
}

/// What is known of a program.
#[derive(Debug, Default)]
pub struct ProgramFacts {
    /// What is in the way, if anything is.
    pub obstacle: Option<Obstacle>,
    /// The runtime of a sanitizer that it brings.
    pub sanitizer: Option<String>,
}

/// Looks at a program, and at the interpreter of a script. What cannot be read is not judged.
pub fn look(path: &Path) -> ProgramFacts {
    match interpreter(path) {
        // A script's own rights count for nothing.
        Some(name) => find(name.as_os_str()).as_deref().map(look_at).unwrap_or_default(),
        None => look_at(path),
    }
}

fn look_at(path: &Path) -> ProgramFacts {
    // Not a pipe or a device: reading one could wait for ever.
    let Some(about) = path.metadata().ok().filter(Metadata::is_file) else { return ProgramFacts::default() };
    let Ok(bytes) = std::fs::read(path) else { return ProgramFacts::default() };
    let mut program = of_elf(&bytes, path);
    if program.obstacle.is_none() && is_privileged(path, &about) {
        program.obstacle = Some(Obstacle::Privileged);
    }
    program
}

fn is_privileged(path: &Path, about: &Metadata) -> bool {
    // SAFETY: these only ask.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mode = about.mode();
    let is_set = mode & libc::S_ISUID != 0 && about.uid() != uid || mode & libc::S_ISGID != 0 && about.gid() != gid;
    is_set || uid != 0 && has_capabilities(path)
}

fn of_elf(bytes: &[u8], path: &Path) -> ProgramFacts {
    if !bytes.starts_with(&elf::ELFMAG) {
        return ProgramFacts::default();
    }
    let foreign = ProgramFacts { obstacle: Some(Obstacle::Foreign), sanitizer: None };
    let here = if cfg!(target_arch = "x86_64") { elf::EM_X86_64 } else { elf::EM_AARCH64 };
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(bytes) else { return foreign };
    if !header.endian().is_ok_and(|endian| endian == Endianness::Little && header.e_machine(endian) == here) {
        return foreign;
    }
    let Ok(header) = elf::FileHeader64::<LittleEndian>::parse(bytes) else { return foreign };
    let Ok(segments) = header.program_headers(LittleEndian, bytes) else { return ProgramFacts::default() };
    // The loader itself, started as a program, has no interpreter either.
    let is_loader = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld"));
    let has_interpreter = segments.iter().any(|segment| segment.p_type(LittleEndian) == elf::PT_INTERP);
    if !has_interpreter && !is_loader {
        return ProgramFacts { obstacle: Some(Obstacle::Static), sanitizer: None };
    }
    ProgramFacts { obstacle: None, sanitizer: sanitizer(header, bytes) }
}

/// The first sanitizer among the libraries that a program needs.
fn sanitizer(header: &elf::FileHeader64<LittleEndian>, bytes: &[u8]) -> Option<String> {
    let sections = header.sections(LittleEndian, bytes).ok()?;
    let (dynamic, link) = sections.dynamic(LittleEndian, bytes).ok()??;
    let strings = sections.strings(LittleEndian, bytes, link).ok()?;
    let needed = dynamic.iter().filter(|entry| entry.tag32(LittleEndian) == Some(elf::DT_NEEDED));
    let mut names = needed.filter_map(|entry| entry.string(LittleEndian, strings).ok());
    let found = names.find(|name| super::environment::is_sanitizer(name))?;
    String::from_utf8(found.to_vec()).ok()
}
