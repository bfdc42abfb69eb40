//! An ELF file as the loader sees it: for which processor, what it needs, which of our functions it asks for or has.

use aclshim_facts::FUNCTIONS;
use anyhow::{Context, Result, ensure};
use object::elf;
use object::read::ReadCache;
use object::read::elf::{Dyn, ElfFile64};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The names of the vendor's library.
pub const VENDOR: [&str; 2] = ["libascendcl.so", "libacl_rt.so"];

/// Owner of the ELF note in which a library of ours describes itself.
const OWNER: &[u8] = b"aclshim";

const ENDIAN: LittleEndian = LittleEndian;

/// What the doctor reads from an ELF file.
#[derive(Default)]
pub struct Image {
    pub path: PathBuf,
    /// The processor, an `EM_` number.
    pub machine: u16,
    /// The loader that it asks for.
    pub interpreter: Option<PathBuf>,
    /// Whether it has anything for a loader to do.
    pub is_dynamic: bool,
    /// Whether it prefers its own functions to others'.
    pub is_symbolic: bool,
    /// What it asks others for, of what matters here.
    pub imports: BTreeSet<String>,
    /// What it has for others, of what matters here.
    pub exports: BTreeSet<String>,
    /// Functions of the table that are in it for itself alone.
    pub inner: BTreeSet<String>,
    /// Names of functions of the table, and of the vendor's library, that stand in it as text.
    pub words: BTreeSet<String>,
    /// The newest release of glibc that it needs.
    pub glibc: Option<(u32, u32)>,
    /// The version of aclshim, if it is ours.
    pub version: Option<String>,
}

/// Whether a name is one of the table's.
pub fn is_ours(name: &str) -> bool {
    FUNCTIONS.iter().any(|row| row.name == name)
}

/// The function of the table that an internal function of the vendor carries out: `aclrtMemcpy` for `aclrtMemcpyImpl`.
pub fn implements(name: &str) -> Option<&str> {
    name.strip_suffix("Impl").filter(|public| is_ours(public))
}

/// Whether a name is of the vendor's layers below the functions of the table.
pub fn is_below(name: &str) -> bool {
    name.starts_with("rtMemcpy") || implements(name).is_some()
}

/// What else is of interest among the names.
fn matters(name: &str) -> bool {
    let known = ["dlopen", "dlmopen", "dlsym", "dlvsym", "aclInit", "ascendclSimCalls", "aclshim_harness"];
    is_ours(name) || known.contains(&name) || is_below(name)
}

impl Image {
    /// Reads an ELF file; of one for another class of processor only its path.
    pub fn read(path: &Path) -> Result<Self> {
        let mut ident = [0; 20];
        let mut file = File::open(path)?;
        ensure!(file.read(&mut ident)? == ident.len() && ident.starts_with(&elf::ELFMAG), "not an ELF file");
        let is_64_le = ident[4] == elf::ELFCLASS64 && ident[5] == elf::ELFDATA2LSB;
        let machine = u16::from_le_bytes([ident[18], ident[19]]);
        if !is_64_le {
            // Of a program for another kind of processor no more is to be known.
            return Ok(Self { path: path.into(), ..Self::default() });
        }
        let cache = ReadCache::new(file);
        let elf = ElfFile64::<LittleEndian, _>::parse(&cache).context("damaged")?;
        let mut image = Self { path: path.into(), machine, ..Self::default() };
        image.read_symbols(&elf);
        image.read_tables(&elf, &cache)?;
        for section in elf.sections() {
            let is_text = matches!(section.kind(), SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
            if let Some(bytes) = is_text.then(|| section.data().ok()).flatten() {
                image.words.extend(words(bytes));
            }
        }
        Ok(image)
    }

    fn read_symbols<'data>(&mut self, elf: &ElfFile64<'data, LittleEndian, &'data ReadCache<File>>) {
        for symbol in elf.dynamic_symbols() {
            let Some(name) = symbol.name().ok().filter(|name| matters(name)) else { continue };
            if symbol.is_undefined() { &mut self.imports } else { &mut self.exports }.insert(name.to_owned());
        }
        let inner = elf.symbols().filter(|symbol| symbol.is_definition()).filter_map(|symbol| symbol.name().ok());
        self.inner = inner.filter(|name| is_ours(name) && !self.exports.contains(*name)).map(str::to_owned).collect();
    }

    fn read_tables<'data>(
        &mut self,
        elf: &ElfFile64<'data, LittleEndian, &'data ReadCache<File>>,
        data: &'data ReadCache<File>,
    ) -> Result<()> {
        use object::read::elf::ProgramHeader;
        for segment in elf.elf_program_headers() {
            if let Some(path) = segment.interpreter(ENDIAN, data)? {
                self.interpreter = Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()));
            }
            for entry in segment.dynamic(ENDIAN, data)?.unwrap_or_default() {
                self.is_dynamic = true;
                let (tag, value) = (entry.tag32(ENDIAN), entry.d_val(ENDIAN));
                self.is_symbolic |= tag == Some(elf::DT_SYMBOLIC)
                    || tag == Some(elf::DT_FLAGS) && value & u64::from(elf::DF_SYMBOLIC) != 0;
            }
            let Ok(Some(mut notes)) = segment.notes(ENDIAN, data) else { continue };
            while let Ok(Some(note)) = notes.next() {
                if note.name() == OWNER {
                    self.version = Some(String::from_utf8_lossy(note.desc()).trim_end_matches('\0').to_owned());
                }
            }
        }
        let sections = elf.elf_section_table();
        if let Some((mut needs, link)) = sections.gnu_verneed(ENDIAN, data)? {
            let strings = sections.strings(ENDIAN, data, link)?;
            while let Some((_, mut versions)) = needs.next()? {
                while let Some(version) = versions.next()? {
                    let name = String::from_utf8_lossy(version.name(ENDIAN, strings)?).into_owned();
                    self.glibc = self.glibc.max(name.strip_prefix("GLIBC_").and_then(release));
                }
            }
        }
        Ok(())
    }

    /// Its name without the folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Functions of the table among what it asks for.
    pub fn linked(&self) -> Vec<&str> {
        self.imports.iter().map(String::as_str).filter(|name| is_ours(name)).collect()
    }

    /// Functions of the table that it looks up: it has their names, and asks for `dlsym`.
    pub fn looked_up(&self) -> Vec<&str> {
        let asks = self.imports.contains("dlsym") || self.imports.contains("dlvsym");
        self.words.iter().map(String::as_str).filter(|name| asks && is_ours(name)).collect()
    }

    /// Functions of the table that it has for others.
    pub fn defines(&self) -> Vec<&str> {
        self.exports.iter().map(String::as_str).filter(|name| is_ours(name)).collect()
    }
}

/// A release such as 2.34 or 2.2.5: its first two numbers.
pub fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The texts among some bytes that are names of the table or of the vendor's library.
fn words(bytes: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for begin in [&b"aclrt"[..], b"libacl", b"libasc"] {
        for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(begin)) {
            let word = bytes[at..].split(|&byte| byte == 0).next().unwrap_or_default();
            let is_whole = at == 0 || matches!(bytes[at - 1], 0 | b'/');
            if let Some(word) = std::str::from_utf8(word).ok().filter(|_| is_whole)
                && (is_ours(word) || VENDOR.contains(&word))
            {
                found.insert(word.to_owned());
            }
        }
    }
    found
}

/// The processor of this machine.
pub const HERE: u16 = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };

/// What people call a processor.
pub fn machine_name(machine: u16) -> String {
    match machine {
        elf::EM_X86_64 => "x86-64".into(),
        elf::EM_AARCH64 => "aarch64".into(),
        0 => "a 32-bit or big-endian processor".into(),
        other => format!("processor number {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_stand_alone() {
        let text = b"aclrtMemcpy\0xaclrtMemset\0aclrtMemcpyAsync failed\0/opt/libascendcl.so\0aclrtMemsetAsync";
        let found: Vec<String> = words(text).into_iter().collect();
        assert_eq!(found, ["aclrtMemcpy", "aclrtMemsetAsync", "libascendcl.so"]);
    }

    #[test]
    fn a_release_is_its_first_two_numbers() {
        assert_eq!((release("2.34"), release("2.2.5"), release("PRIVATE")), (Some((2, 34)), Some((2, 2)), None));
    }
}
