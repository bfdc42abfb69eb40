//! `aclshim dropin`: a `libascendcl.so` without code that brings the shim along.
//!
//! Its two dependencies are the shim and then the real library by its absolute path, so that the
//! loader finds the table's functions in the shim and everything else in the real one. (The shim
//! under the vendor's name alone cannot work: the host needs `aclInit` and hundreds more.)

use crate::files;
use anyhow::{Context, Result, bail, ensure};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSymbol};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const NAMES: [&str; 2] = ["libascendcl.so", "libacl_rt.so"];
const SHIM: &str = "libaclshim.so";

/// Arguments of `aclshim dropin`.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  aclshim dropin /opt/aclshim/dropin\n  LD_LIBRARY_PATH=/opt/aclshim/dropin:$LD_LIBRARY_PATH program"
)]
pub struct Arguments {
    /// The folder to write to; it goes first on LD_LIBRARY_PATH
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The real libascendcl.so; by default the one under $ASCEND_HOME_PATH/lib64 or on LD_LIBRARY_PATH
    #[arg(long, value_name = "PATH")]
    real: Option<PathBuf>,
}

/// Writes the drop-in folder.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let dir = &arguments.dir;
    let real = match &arguments.real {
        Some(path) => path.canonicalize().with_context(|| format!("the real library {}", path.display()))?,
        None => find_real()?,
    };
    let machine = machine_of(&real)?;
    let shim = find_shim()?;
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    ensure!(
        real.parent() != dir.canonicalize().ok().as_deref(),
        "{}: the real library is in this folder; choose another",
        dir.display()
    );
    // A program that has the old files mapped must not see them change.
    let install = |name: &str, make: &dyn Fn(&Path) -> io::Result<()>| {
        let path = dir.join(name);
        files::replace(&path, make).with_context(|| path.display().to_string())
    };
    install(SHIM, &|new| symlink(&shim, new))?;
    for name in NAMES {
        // The newer name may be a file of its own beside the older one.
        let beside = real.with_file_name(name).canonicalize().unwrap_or_else(|_| real.clone());
        let needed = beside.to_str().with_context(|| format!("{}: not UTF-8", beside.display()))?;
        let library = forwarding_library(machine, name, &[SHIM, needed]);
        install(name, &|new| files::write_new(new, &library))?;
    }
    outln!("{}: {} and {} for {}", dir.display(), NAMES[0], NAMES[1], real.display());
    outln!("start the program with LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", std::path::absolute(dir)?.display());
    Ok(ExitCode::SUCCESS)
}

pub fn find_real() -> Result<PathBuf> {
    let home = std::env::var_os("ASCEND_HOME_PATH").map(|home| PathBuf::from(home).join("lib64"));
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = home.into_iter().chain(std::env::split_paths(&path));
    let mut candidates =
        folders.flat_map(|folder| NAMES.map(|name| folder.join(name))).filter_map(|p| p.canonicalize().ok());
    match candidates.find(|candidate| machine_of(candidate).is_ok()) {
        Some(real) => Ok(real),
        None => bail!(
            "no real libascendcl.so under $ASCEND_HOME_PATH/lib64 or on LD_LIBRARY_PATH; name it with --real PATH"
        ),
    }
}

/// The processor that a library is for; an error if it is not a real one.
fn machine_of(library: &Path) -> Result<u16> {
    let shown = || library.display().to_string();
    let bytes = fs::read(library).with_context(shown)?;
    let file = ElfFile64::<LittleEndian>::parse(&*bytes).with_context(shown)?;
    let has = |name: &str| file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(name));
    ensure!(has("aclInit"), "{}: not the vendor's library (it does not define aclInit)", library.display());
    Ok(file.elf_header().e_machine(LittleEndian))
}

pub fn find_shim() -> Result<PathBuf> {
    let program = std::env::current_exe().context("where this command is")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let candidates = [folder.join(SHIM), folder.join("../lib").join(SHIM), folder.join("../lib64").join(SHIM)];
    match candidates.iter().find_map(|candidate| candidate.canonicalize().ok()) {
        Some(shim) => Ok(shim),
        None => bail!("{SHIM} was not found beside this command ({}) nor in ../lib", folder.display()),
    }
}

/// An ELF shared library with a name and dependencies, and nothing else.
fn forwarding_library(machine: u16, soname: &str, needed: &[&str]) -> Vec<u8> {
    const HEADER: usize = 64;
    const PROGRAM_HEADER: usize = 56;
    const PAGE: u64 = 0x1_0000; // the largest that either platform uses

    let mut strings = vec![0u8];
    let mut string = |text: &str| {
        let at = strings.len() as u64;
        strings.extend(text.bytes().chain([0]));
        at
    };
    let mut dynamic: Vec<(u32, u64)> = needed.iter().map(|name| (elf::DT_NEEDED, string(name))).collect();
    dynamic.push((elf::DT_SONAME, string(soname)));
    // The shim lies beside it, also where the library is opened by its path.
    dynamic.push((elf::DT_RUNPATH, string("$ORIGIN")));

    // Behind the headers: a hash table of no symbols, the null symbol, the strings, the dynamic section.
    let hash_at = (HEADER + 3 * PROGRAM_HEADER) as u64;
    let hash: [u32; 4] = [1, 1, 0, 0];
    let symbols_at = hash_at + size_of_val(&hash) as u64;
    let symbol = [0u8; 24];
    let strings_at = symbols_at + symbol.len() as u64;
    let dynamic_at = (strings_at + strings.len() as u64).next_multiple_of(8);
    dynamic.extend([
        (elf::DT_HASH, hash_at),
        (elf::DT_SYMTAB, symbols_at),
        (elf::DT_SYMENT, symbol.len() as u64),
        (elf::DT_STRTAB, strings_at),
        (elf::DT_STRSZ, strings.len() as u64),
        (elf::DT_NULL, 0),
    ]);
    let dynamic_size = 16 * dynamic.len() as u64;
    let end = dynamic_at + dynamic_size;

    let mut file = Vec::with_capacity(end as usize);
    file.extend(elf::ELFMAG);
    file.extend([elf::ELFCLASS64, elf::ELFDATA2LSB, elf::EV_CURRENT, elf::ELFOSABI_NONE]);
    file.extend([0; 8]);
    file.extend(elf::ET_DYN.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(u32::from(elf::EV_CURRENT).to_le_bytes());
    for word in [0, HEADER as u64, 0] {
        file.extend(word.to_le_bytes()); // entry, program headers, sections
    }
    file.extend(0u32.to_le_bytes());
    for half in [HEADER as u16, PROGRAM_HEADER as u16, 3, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // The loader writes addresses into the dynamic section: the one segment is writable.
    let flags = elf::PF_R | elf::PF_W;
    let segments =
        [(elf::PT_LOAD, 0, end, PAGE), (elf::PT_DYNAMIC, dynamic_at, dynamic_size, 8), (elf::PT_GNU_STACK, 0, 0, 16)];
    for (kind, at, size, align) in segments {
        file.extend(kind.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for word in [at, at, at, size, size, align] {
            file.extend(word.to_le_bytes());
        }
    }
    hash.iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(symbol);
    file.extend(&strings);
    file.resize(dynamic_at as usize, 0);
    for (tag, value) in dynamic {
        file.extend(u64::from(tag).to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::Dyn;

    #[test]
    fn the_written_library_names_itself_and_what_it_needs_in_order() {
        let bytes = forwarding_library(elf::EM_AARCH64, "libascendcl.so", &["libaclshim.so", "/real/libascendcl.so"]);
        let header = elf::FileHeader64::<LittleEndian>::parse(&*bytes).unwrap();
        assert_eq!(header.e_machine(LittleEndian), elf::EM_AARCH64);
        let segments = header.program_headers(LittleEndian, &*bytes).unwrap();
        use object::read::elf::ProgramHeader;
        let dynamic = segments.iter().find_map(|s| s.dynamic(LittleEndian, &*bytes).unwrap()).unwrap();
        let value = |tag: u32| {
            dynamic.iter().filter(move |d| d.tag32(LittleEndian) == Some(tag)).map(|d| d.d_val(LittleEndian) as usize)
        };
        let strings = value(elf::DT_STRTAB).next().unwrap();
        let text = |at: usize| bytes[strings + at..].split(|&b| b == 0).next().unwrap().to_vec();
        let needed: Vec<_> = value(elf::DT_NEEDED).map(text).collect();
        assert_eq!(needed, [b"libaclshim.so".to_vec(), b"/real/libascendcl.so".to_vec()]);
        assert_eq!(value(elf::DT_SONAME).map(text).collect::<Vec<_>>(), [b"libascendcl.so".to_vec()]);
    }
}
