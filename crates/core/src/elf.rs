//! A loaded ELF object, read from its tables in memory: symbols, relocations, dependencies, build id.
//!
//! Strings are compared by hand: under a sanitizer libc's string functions are not ready when the
//! first lookups come.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

const DT_NEEDED: i64 = 1;
const DT_SONAME: i64 = 14;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_PLTRELSZ: i64 = 2;
const DT_JMPREL: i64 = 23;
const DT_FINI_ARRAY: i64 = 26;
const DT_FINI_ARRAYSZ: i64 = 28;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// An entry of a dynamic section (`Elf64_Dyn`).
#[repr(C)]
struct Dyn {
    tag: i64,
    value: usize,
}

/// An entry of a symbol table (`Elf64_Sym`).
#[repr(C)]
pub struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

impl Symbol {
    /// Whether the object that holds this symbol also holds what it names.
    pub fn is_defined(&self) -> bool {
        self.section != 0
    }

    /// Whether the symbol is weak: nothing has to define it.
    pub fn is_weak(&self) -> bool {
        self.info >> 4 == 2
    }
}

/// An entry of a relocation table (`Elf64_Rela`).
#[repr(C)]
pub struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// The kind of a pointer that a relocation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerKind {
    /// In the GOT, for calls through the PLT (JUMP_SLOT): possibly not yet bound.
    Call,
    /// In the GOT (GLOB_DAT): bound when the object was loaded.
    Table,
    /// In data (an absolute address): bound then too; the program may have changed it since.
    Data,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first address.
    pub start: usize,
    /// The address behind the last.
    pub end: usize,
}

impl Span {
    /// No address.
    pub const EMPTY: Span = Span { start: 0, end: 0 };

    /// Whether `address` lies in the range.
    pub fn holds(self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

impl Relocation {
    /// What is written, if it is the plain address of a symbol.
    fn kind(&self) -> Option<PointerKind> {
        #[cfg(target_arch = "x86_64")]
        const TYPES: [u32; 3] = [7, 6, 1]; // JUMP_SLOT, GLOB_DAT, 64
        #[cfg(target_arch = "aarch64")]
        const TYPES: [u32; 3] = [1026, 1025, 257]; // JUMP_SLOT, GLOB_DAT, ABS64
        let number = self.info as u32;
        match self.addend {
            0 if number == TYPES[0] => Some(PointerKind::Call),
            0 if number == TYPES[1] => Some(PointerKind::Table),
            0 if number == TYPES[2] => Some(PointerKind::Data),
            _ => None,
        }
    }
}

/// A loaded object. Valid while it stays loaded.
#[derive(Clone, Copy)]
pub struct Object {
    base: usize,
    dynamic: *const Dyn,
    /// Its name as the loader knows it; empty for the program.
    pub path: *const c_char,
    strings: *const c_char,
    symbols: *const Symbol,
    gnu_hash: *const u32,
    relocations: [(*const Relocation, usize); 2],
    /// From its first to its last mapped byte; empty where that is not known.
    pub span: Span,
    /// What the loader made read-only after relocation.
    pub relro: Span,
    headers: (*const libc::Elf64_Phdr, usize),
}

impl Object {
    /// The object at `base` with its dynamic section.
    ///
    /// # Safety
    /// Both belong to one object that stays loaded while the result is used.
    #[inline]
    pub unsafe fn new(base: usize, dynamic: *const c_void, path: *const c_char) -> Option<Self> {
        let mut object = Self {
            base,
            dynamic: dynamic.cast(),
            path,
            strings: ptr::null(),
            symbols: ptr::null(),
            gnu_hash: ptr::null(),
            relocations: [(ptr::null(), 0); 2],
            span: Span::EMPTY,
            relro: Span::EMPTY,
            headers: (ptr::null(), 0),
        };
        for &Dyn { tag, value } in object.entries() {
            // The loader replaces offsets by addresses, except in objects that it cannot write to.
            let address = if value < base { base + value } else { value };
            match tag {
                DT_STRTAB => object.strings = address as _,
                DT_SYMTAB => object.symbols = address as _,
                DT_GNU_HASH => object.gnu_hash = address as _,
                DT_RELA => object.relocations[0].0 = address as _,
                DT_RELASZ => object.relocations[0].1 = value / size_of::<Relocation>(),
                DT_JMPREL => object.relocations[1].0 = address as _,
                DT_PLTRELSZ => object.relocations[1].1 = value / size_of::<Relocation>(),
                _ => {}
            }
        }
        (!object.strings.is_null() && !object.symbols.is_null()).then_some(object)
    }

    /// The entries of the dynamic section, which ends with a zero tag.
    fn entries<'a>(&self) -> impl Iterator<Item = &'a Dyn> + use<'a> {
        let first = self.dynamic;
        // SAFETY: within the section of a loaded object, because nothing behind its end is asked for.
        (0..).map(move |n| unsafe { &*first.add(n) }).take_while(|entry| entry.tag != 0)
    }

    fn strings_of(&self, tag: i64) -> impl Iterator<Item = *const c_char> {
        let strings = self.strings;
        self.entries().filter(move |entry| entry.tag == tag).map(move |entry| strings.wrapping_add(entry.value))
    }

    /// The names of the objects that this one needs.
    pub fn needs(&self) -> impl Iterator<Item = *const c_char> {
        self.strings_of(DT_NEEDED)
    }

    /// The name that others need this object by, if it has one.
    pub fn soname(&self) -> Option<*const c_char> {
        self.strings_of(DT_SONAME).next()
    }

    /// The last entry of its DT_FINI_ARRAY, if it has one.
    pub fn last_finalizer(&self) -> Option<*mut usize> {
        let value = |tag: i64| self.entries().find(|entry| entry.tag == tag).map(|entry| entry.value);
        let (array, size) = (value(DT_FINI_ARRAY)?, value(DT_FINI_ARRAYSZ)?);
        let last = (size / size_of::<usize>()).checked_sub(1)?;
        // The loader leaves this one an offset.
        Some((self.base + array + last * size_of::<usize>()) as *mut usize)
    }

    /// The address of what this object defines as `name`.
    #[inline]
    pub fn defined(&self, name: &CStr) -> Option<usize> {
        self.defined_by(name, gnu_hash(name))
    }

    /// The address of what this object defines as `name`, whose hash by [`gnu_hash`] is `hash`.
    #[inline]
    #[unsafe(link_section = ".text.startup")]
    pub fn defined_by(&self, name: &CStr, hash: u32) -> Option<usize> {
        if self.gnu_hash.is_null() {
            return None;
        }
        // SAFETY: the hash table, the symbols and the strings are those of a loaded object, laid
        // out as the format says: four words of header, the filter, the buckets, the chains.
        unsafe {
            let [buckets, first, filter_words, shift] = self.gnu_hash.cast::<[u32; 4]>().read();
            if buckets == 0 || filter_words == 0 {
                return None;
            }
            // The Bloom filter: two bits in one word for each name, which rule out nearly every name that is not there.
            let filter = self.gnu_hash.add(4).cast::<u64>().add((hash / 64 % filter_words) as usize).read_unaligned();
            if filter >> (hash % 64) & filter >> (hash.wrapping_shr(shift) % 64) & 1 == 0 {
                return None;
            }
            let bucket_at = self.gnu_hash.add(4 + 2 * filter_words as usize);
            let chain_at = bucket_at.add(buckets as usize);
            let mut index = bucket_at.add((hash % buckets) as usize).read();
            if index < first {
                return None;
            }
            loop {
                let chained = chain_at.add((index - first) as usize).read();
                let symbol = &*self.symbols.add(index as usize);
                let has_address = matches!(symbol.info & 0xf, 1 | 2 | 10); // object, function, indirect function
                if chained | 1 == hash | 1
                    && symbol.is_defined()
                    && has_address
                    && equals(self.strings.add(symbol.name as usize), name)
                {
                    return Some(self.base + symbol.value);
                }
                if chained & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// Whether `address` is in a part of the object that is mapped writable, at least while it is
    /// being loaded.
    pub fn is_data(&self, address: usize) -> bool {
        let (first, count) = self.headers;
        (0..count).any(|n| {
            // SAFETY: the program headers of a loaded object.
            let header = unsafe { &*first.add(n) };
            let is_writable = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0;
            is_writable && span_of(self.base, header).holds(address)
        })
    }

    /// Every relocation that writes the plain address of a symbol: where, how, the symbol and its name.
    pub fn references(&self) -> impl Iterator<Item = (*mut usize, PointerKind, &Symbol, *const c_char)> {
        let tables = self.relocations.iter().filter(|(first, _)| !first.is_null());
        tables.flat_map(|&(first, count)| (0..count).map(move |n| first.wrapping_add(n))).filter_map(|relocation| {
            // SAFETY: within a relocation table of a loaded object, which names its own symbols.
            unsafe {
                let relocation = &*relocation;
                let kind = relocation.kind()?;
                let symbol = &*self.symbols.add((relocation.info >> 32) as usize);
                let at = (self.base + relocation.offset) as *mut usize;
                Some((at, kind, symbol, self.strings.add(symbol.name as usize)))
            }
        })
    }

    /// The build id that the linker has put into the file (NT_GNU_BUILD_ID); empty where there is none.
    pub fn build_id(&self) -> &'static [u8] {
        const BUILD_ID: u32 = 3;
        let (headers, count) = self.headers;
        for header in (0..count).map(|n| {
            // SAFETY: that many headers belong to this object.
            unsafe { &*headers.add(n) }
        }) {
            if header.p_type != libc::PT_NOTE {
                continue;
            }
            let (mut at, end) =
                (self.base + header.p_vaddr as usize, self.base + (header.p_vaddr + header.p_memsz) as usize);
            // A note: lengths of name and contents, its kind, then both, each padded to four bytes.
            while at + 12 <= end {
                // SAFETY: within a loaded segment.
                let [name, contents, kind] = unsafe { (at as *const [u32; 3]).read_unaligned() };
                let begin = at + 12 + (name as usize).next_multiple_of(4);
                let next = begin + (contents as usize).next_multiple_of(4);
                if next > end {
                    break;
                }
                if kind == BUILD_ID && name == 4 && contents <= 32 {
                    // SAFETY: as above; who asks keeps the object loaded.
                    return unsafe { core::slice::from_raw_parts(begin as *const u8, contents as usize) };
                }
                at = next;
            }
        }
        &[]
    }

    /// A number that no other object has that is loaded now.
    pub fn identity(&self) -> usize {
        self.symbols as usize
    }
}

/// The hash of a name in a table of the kind DT_GNU_HASH.
pub const fn gnu_hash(name: &CStr) -> u32 {
    let mut hash = 5381u32;
    let mut bytes = name.to_bytes();
    while let [byte, rest @ ..] = bytes {
        hash = hash.wrapping_mul(33).wrapping_add(*byte as u32);
        bytes = rest;
    }
    hash
}

/// The last component of a path.
///
/// # Safety
/// `path` is a C string.
pub unsafe fn file_name(path: *const c_char) -> *const c_char {
    let mut last = path;
    let mut at = path;
    // SAFETY: read up to the NUL.
    unsafe {
        while at.read_volatile() != 0 {
            at = at.add(1);
            if at.sub(1).read_volatile() == b'/' as c_char {
                last = at;
            }
        }
    }
    last
}

/// Whether the C string at `text` equals `name`. Volatile, so that the compiler makes no libc function of it.
///
/// # Safety
/// `text` is a C string.
pub unsafe fn equals(text: *const c_char, name: &CStr) -> bool {
    name.to_bytes_with_nul().iter().enumerate().all(|(at, &byte)| {
        // SAFETY: all bytes before `at` were equal and none was the NUL, so the string goes on.
        unsafe { text.add(at).read_volatile() as u8 == byte }
    })
}

fn span_of(base: usize, header: &libc::Elf64_Phdr) -> Span {
    let start = base + header.p_vaddr as usize;
    Span { start, end: start + header.p_memsz as usize }
}

/// The object at `base` with these program headers; `None` where it has no dynamic section, or no symbols.
///
/// # Safety
/// They belong to one object that stays loaded while the result is used.
#[inline]
#[unsafe(link_section = ".text.startup")]
pub unsafe fn from_headers(
    base: usize,
    first: *const libc::Elf64_Phdr,
    count: usize,
    path: *const c_char,
) -> Option<Object> {
    // SAFETY: the caller's promise.
    let headers = unsafe { core::slice::from_raw_parts(first, count) };
    let range = |header: &libc::Elf64_Phdr| span_of(base, header);
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
    // SAFETY: the caller's promise.
    let mut object = unsafe { Object::new(base, range(dynamic).start as _, path)? };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(range);
    object.span = Span { start: loaded().map(|r| r.start).min()?, end: loaded().map(|r| r.end).max()? };
    object.relro = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO).map_or(Span::EMPTY, range);
    object.headers = (first, count);
    Some(object)
}

#[cfg(test)]
mod tests;
