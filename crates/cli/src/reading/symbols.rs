//! Names for call sites: which function an address is in, and which line of which file.
//!
//! Best effort, and never a failure: what cannot be named is `module+0x1234`. Each module is read once, when it is
//! first asked for. The trace names the files, so any user may have made them: debug information is unpacked only as
//! far as memory for it is bounded.

use crate::output::escape;
use aclshim_collect::findings::modules::Modules;
use aclshim_trace::origin::Origin;
use addr2line::{Loader, demangle_auto};
use object::read::{ReadCache, ReadRef};
use object::{CompressionFormat, Object, ObjectSection, ObjectSegment};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The bytes that the debug information of all modules may take unpacked.
const MOST_UNPACKED: u64 = 512 << 20;
/// How much larger than packed a section may be, beside a mebibyte. Real ones become three to five times as large.
const MOST_RATIO: u64 = 16;
/// How much longer than the room that is allocated for it a file may be.
const MOST_SPARSE: u64 = 16;

/// What is known of the modules that were asked for.
#[derive(Default)]
pub struct Symbols {
    modules: BTreeMap<PathBuf, Option<Module>>,
    /// Bytes of debug information that were unpacked.
    unpacked: u64,
}

/// A module that call sites lie in, read from its file.
struct Module {
    /// What its first mapping begins with.
    first: u64,
    /// When it was last changed, in nanoseconds since 1970.
    changed_ns: u64,
    loader: Option<Loader>,
}

/// Where a call came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    pub symbol: String,
    /// The source file, as the debug information has it.
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl std::fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.symbol)?;
        let name = self.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
        match (name, self.line) {
            (Some(name), Some(line)) => write!(f, " ({name}:{line})"),
            (Some(name), None) => write!(f, " ({name})"),
            _ => Ok(()),
        }
    }
}

impl Symbols {
    /// The source location of a call site: a return address, as its distance from where the module begins in memory.
    pub fn find(&mut self, module: &Path, offset: u64) -> Option<SourceLocation> {
        self.module(module)?.find(offset)
    }

    /// A call site in words: `offload (kv_offload.c:123) host+0x1a2b`, or `host+0x1a2b`.
    pub fn name(&mut self, module: &Path, offset: u64) -> String {
        let name = module.file_name().unwrap_or(module.as_os_str()).to_string_lossy();
        match self.find(module, offset) {
            Some(location) => format!("{location} {name}+{offset:#x}"),
            None => format!("{name}+{offset:#x}"),
        }
    }

    /// The source location of an address of a process.
    pub fn location(&mut self, origin: &Origin, modules: &Modules, address: u64) -> Option<SourceLocation> {
        let (site, path) = (modules.site(address)?, modules.path(address)?);
        self.is_as_it_was(origin, path).then(|| self.find(path, site.offset))?
    }

    /// An address of a process in words, as [`Symbols::name`]; `0x1234` if it is in no module that is known.
    pub fn site(&mut self, origin: &Origin, modules: &Modules, address: u64) -> String {
        match (modules.site(address), modules.path(address)) {
            (Some(site), Some(path)) if self.is_as_it_was(origin, path) => self.name(path, site.offset),
            (Some(site), _) => site.to_string(),
            (None, _) => format!("{address:#x}"),
        }
    }

    /// A file that is younger than the process is not the one that it had.
    fn is_as_it_was(&mut self, origin: &Origin, path: &Path) -> bool {
        self.module(path).is_some_and(|module| module.changed_ns <= origin.born_ns)
    }

    fn module(&mut self, path: &Path) -> Option<&Module> {
        if !self.modules.contains_key(path) {
            let module = Module::open(path, &mut self.unpacked);
            self.modules.insert(path.to_owned(), module);
        }
        self.modules.get(path)?.as_ref()
    }
}

impl Module {
    fn open(path: &Path, unpacked: &mut u64) -> Option<Self> {
        let (file, about) = plain_file(path)?;
        let cache = ReadCache::new(file);
        let object = object::File::parse(&cache).ok()?;
        let debug = debug_file(&object, path);
        let debug = debug.as_deref().unwrap_or(path);
        Some(Self {
            first: object.segments().map(|segment| segment.address()).min()? & !0xfff,
            changed_ns: (about.mtime().max(0) as u64).saturating_mul(1_000_000_000) + about.mtime_nsec().max(0) as u64,
            loader: is_bounded(debug, unpacked).then(|| Loader::new(debug).ok()).flatten(),
        })
    }

    fn find(&self, offset: u64) -> Option<SourceLocation> {
        // A return address is behind its call, which may be the last of its function.
        let address = self.first.checked_add(offset)?.checked_sub(1)?;
        self.in_debug_information(address).or_else(|| self.in_symbols(address))
    }

    fn in_debug_information(&self, address: u64) -> Option<SourceLocation> {
        // The innermost of functions that were made one by the compiler: that is where the call stands written.
        let frame = self.loader.as_ref()?.find_frames(address).ok()?.next().ok()??;
        let location = frame.location.as_ref();
        Some(SourceLocation {
            symbol: frame.function.as_ref()?.demangle().ok()?.into_owned(),
            file: location.and_then(|it| it.file).map(str::to_owned),
            line: location.and_then(|it| it.line),
        })
    }

    fn in_symbols(&self, address: u64) -> Option<SourceLocation> {
        // Of a stripped library these are the functions that it exports.
        let symbol = self.loader.as_ref()?.find_symbol(address)?;
        Some(SourceLocation { symbol: demangle_auto(symbol.into(), None).into_owned(), file: None, line: None })
    }
}

/// A regular file, opened, that is not mostly holes: what is read of those takes memory that the file itself does not.
fn plain_file(path: &Path) -> Option<(File, fs::Metadata)> {
    // To open a device may do something; and its name may stand for a pipe by the time it is opened.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let about = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let room = about.blocks().saturating_mul(512).saturating_add(1 << 20);
    (about.len() <= room.saturating_mul(MOST_SPARSE)).then_some((file, about))
}

/// Whether the debug information of a file may be unpacked. If not, that is said; the loader would allocate what the file says
/// before it has read any of it.
fn is_bounded(path: &Path, unpacked: &mut u64) -> bool {
    // The loader also reads what stands beside the file under this name.
    let mut package = path.as_os_str().to_owned();
    package.push(".dwp");
    let package = PathBuf::from(package);
    let packages = package.symlink_metadata().is_ok().then_some(package.as_path());
    let sizes = [path].into_iter().chain(packages).map(unpacked_size).collect::<Result<Vec<u64>, _>>();
    let why = match sizes.map(|sizes| sizes.iter().fold(*unpacked, |sum, size| sum.saturating_add(*size))) {
        Ok(sum) if sum <= MOST_UNPACKED => {
            *unpacked = sum;
            return true;
        }
        Ok(_) => format!("{} MiB are read of all files together, and no more", MOST_UNPACKED >> 20),
        Err(why) => why.into(),
    };
    errln!(
        "aclshim: {}: its debug information is not unpacked, and its addresses have no names: {why}",
        escape::path(path)
    );
    false
}

/// How many bytes the packed sections of a file say that they unpack to; an error says why they must not be.
fn unpacked_size(path: &Path) -> Result<u64, &'static str> {
    let (file, _) = plain_file(path).ok_or("it cannot be read, or is mostly holes")?;
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).map_err(|_| "it cannot be read")?;
    let mut sum = 0u64;
    for section in object.sections() {
        let Ok(packed) = section.compressed_file_range() else { continue };
        if packed.format == CompressionFormat::None {
            continue;
        }
        if packed.uncompressed_size > packed.compressed_size.saturating_mul(MOST_RATIO).saturating_add(1 << 20) {
            return Err("it would become far larger than it is packed");
        }
        sum = sum.saturating_add(packed.uncompressed_size);
    }
    Ok(sum)
}

/// The file that holds a module's debug information, where that is another one: by its build id, or by the link in it.
fn debug_file<'data>(object: &object::File<'data, impl ReadRef<'data>>, path: &Path) -> Option<PathBuf> {
    if object.section_by_name(".debug_info").is_some() || object.section_by_name(".zdebug_info").is_some() {
        return None;
    }
    let by_id = object.build_id().ok().flatten().and_then(|id| {
        let (first, rest) = id.split_first()?;
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(PathBuf::from(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug")))
    });
    let folder = path.parent()?;
    let by_link = object.gnu_debuglink().ok().flatten().into_iter().flat_map(|(name, _)| {
        let name = std::ffi::OsStr::from_bytes(name);
        [folder.join(name), folder.join(".debug").join(name)]
    });
    by_id.into_iter().chain(by_link).find(|file| file.is_file() && file != path)
}
