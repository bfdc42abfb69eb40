use super::*;
use std::ffi::CString;

/// An object as the loader would lay it out, at the address of its own bytes.
struct Fixture {
    bytes: Box<[u64]>,
    /// Tags and values of the dynamic section; values are offsets.
    dynamic: Vec<(i64, usize)>,
    headers: Vec<libc::Elf64_Phdr>,
    len: usize,
}

const SYMBOLS: [(&str, u16, u8); 4] =
    [("malloc", 1, 0x12), ("aclrtMemcpy", 1, 0x12), ("weak_import", 0, 0x22), ("section", 1, 0x03)];

impl Fixture {
    fn new() -> Self {
        Self { bytes: vec![0u64; 4096].into_boxed_slice(), dynamic: Vec::new(), headers: Vec::new(), len: 64 }
    }

    fn base(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    /// Puts bytes into the object; their offset.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let at = self.len.next_multiple_of(8);
        self.len = at + bytes.len();
        // SAFETY: words are bytes, and the object has room for all that the tests put there.
        let all =
            unsafe { core::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast::<u8>(), 8 * self.bytes.len()) };
        all[at..self.len].copy_from_slice(bytes);
        at
    }

    fn words(&mut self, words: &[u32]) -> usize {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    /// An object with the [`SYMBOLS`], a hash table over those that are defined, and strings.
    fn with_symbols() -> Self {
        let mut fixture = Self::new();
        let mut strings = vec![0u8];
        let mut symbols = vec![0u8; 24];
        // The table holds the hashed symbols last, ordered by their bucket; here there is one bucket.
        let ordered = [SYMBOLS[2], SYMBOLS[0], SYMBOLS[1], SYMBOLS[3]];
        for (nth, (name, section, info)) in ordered.into_iter().enumerate() {
            symbols.extend((strings.len() as u32).to_le_bytes());
            symbols.extend([info, 0]);
            symbols.extend(section.to_le_bytes());
            symbols.extend((0x1000 * (nth + 1)).to_le_bytes());
            symbols.extend(0usize.to_le_bytes());
            strings.extend(name.bytes().chain([0]));
        }
        let soname = strings.len();
        strings.extend(b"libfixture.so\0");
        let need = strings.len();
        strings.extend(b"libneeded.so.1\0");
        let hashes: Vec<u32> = ordered[1..].iter().map(|(name, ..)| gnu_hash(&CString::new(*name).unwrap())).collect();
        let filter = hashes.iter().fold(0u64, |filter, hash| filter | 1 << (hash % 64) | 1 << (hash >> 6 & 63));
        let mut table = vec![1, 2, 1, 6, filter as u32, (filter >> 32) as u32, 2];
        let last = hashes.len() - 1;
        table.extend(hashes.iter().enumerate().map(|(nth, hash)| if nth == last { hash | 1 } else { hash & !1 }));
        let (strings, symbols, table) = (fixture.put(&strings), fixture.put(&symbols), fixture.words(&table));
        fixture.dynamic = vec![
            (DT_STRTAB, strings),
            (DT_SYMTAB, symbols),
            (DT_GNU_HASH, table),
            (DT_SONAME, soname),
            (DT_NEEDED, need),
        ];
        fixture
    }

    fn header(&mut self, kind: u32, flags: u32, at: usize, size: usize) {
        // SAFETY: all zero is a valid header.
        let mut header: libc::Elf64_Phdr = unsafe { core::mem::zeroed() };
        (header.p_type, header.p_flags, header.p_vaddr, header.p_memsz) = (kind, flags, at as u64, size as u64);
        self.headers.push(header);
    }

    /// The object as it is read by its dynamic section.
    fn object(&mut self) -> Option<Object> {
        let at = self.put_dynamic();
        // SAFETY: the section and what it names lie in the fixture, which outlives the object.
        unsafe { Object::new(self.base(), (self.base() + at) as _, c"/lib/libfixture.so".as_ptr()) }
    }

    fn put_dynamic(&mut self) -> usize {
        let entries = self.dynamic.iter().chain([&(0, 0)]);
        let bytes: Vec<u8> =
            entries.flat_map(|(tag, value)| [tag.to_le_bytes(), (*value as u64).to_le_bytes()]).flatten().collect();
        self.put(&bytes)
    }

    /// The object as it is read by its program headers.
    fn object_by_headers(&mut self) -> Option<Object> {
        let at = self.put_dynamic();
        self.header(libc::PT_DYNAMIC, libc::PF_R | libc::PF_W, at, 16);
        // SAFETY: as above.
        unsafe { from_headers(self.base(), self.headers.as_ptr(), self.headers.len(), c"".as_ptr()) }
    }
}

fn text(at: *const c_char) -> String {
    // SAFETY: a string of a fixture or of a loaded object.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

#[test]
fn the_hash_is_that_of_the_format() {
    assert_eq!(gnu_hash(c""), 5381);
    assert_eq!(gnu_hash(c"printf"), 0x156b_2bb8);
    assert_eq!(gnu_hash(c"exit"), 0x7c96_7e3f);
    assert_eq!(gnu_hash(c"flapenguin.me"), 0x8ae9_f18e);
}

#[test]
fn a_defined_function_is_found_at_its_address() {
    let mut fixture = Fixture::with_symbols();
    let object = fixture.object().unwrap();
    assert_eq!(object.defined(c"malloc"), Some(fixture.base() + 0x2000));
    assert_eq!(object.defined(c"aclrtMemcpy"), Some(fixture.base() + 0x3000));
}

#[test]
fn what_is_not_a_definition_is_not_found() {
    let mut fixture = Fixture::with_symbols();
    let object = fixture.object().unwrap();
    for name in [c"weak_import", c"section", c"malloc_", c"mallo", c"", c"aclrtMemcpyAsync"] {
        assert_eq!(object.defined(name), None, "{name:?}");
    }
    // With the filter out of the way, the chain alone decides.
    for name in [c"weak_import", c"section", c"aclrtMemcpyAsync"] {
        assert_eq!(object.defined_by(name, gnu_hash(c"malloc")), None, "{name:?}");
    }
}

#[test]
fn names_and_needs_are_those_of_the_dynamic_section() {
    let mut fixture = Fixture::with_symbols();
    let object = fixture.object().unwrap();
    assert_eq!(object.soname().map(text).as_deref(), Some("libfixture.so"));
    assert_eq!(object.needs().map(text).collect::<Vec<_>>(), ["libneeded.so.1"]);
    assert_eq!(object.last_finalizer(), None);
}

#[test]
fn an_object_without_strings_or_symbols_is_none() {
    for missing in [DT_STRTAB, DT_SYMTAB] {
        let mut fixture = Fixture::with_symbols();
        fixture.dynamic.retain(|(tag, _)| *tag != missing);
        assert!(fixture.object().is_none(), "{missing}");
    }
    let mut empty = Fixture::new();
    assert!(empty.object().is_none());
}

#[test]
fn an_object_without_a_hash_table_defines_nothing() {
    let mut fixture = Fixture::with_symbols();
    fixture.dynamic.retain(|(tag, _)| *tag != DT_GNU_HASH);
    assert_eq!(fixture.object().unwrap().defined(c"malloc"), None);
}

#[test]
fn an_empty_hash_table_defines_nothing() {
    for header in [[0, 1, 1, 6], [1, 1, 0, 6]] {
        let mut fixture = Fixture::with_symbols();
        let table = fixture.words(&header);
        fixture.dynamic.retain(|(tag, _)| *tag != DT_GNU_HASH);
        fixture.dynamic.push((DT_GNU_HASH, table));
        assert_eq!(fixture.object().unwrap().defined(c"malloc"), None, "{header:?}");
    }
}

#[test]
fn an_empty_bucket_ends_the_search() {
    let mut fixture = Fixture::with_symbols();
    let table = fixture.words(&[1, 2, 1, 6, u32::MAX, u32::MAX, 0]);
    fixture.dynamic.retain(|(tag, _)| *tag != DT_GNU_HASH);
    fixture.dynamic.push((DT_GNU_HASH, table));
    assert_eq!(fixture.object().unwrap().defined(c"malloc"), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn references_are_the_plain_addresses_of_symbols() {
    let mut fixture = Fixture::with_symbols();
    let relocation = |offset: usize, symbol: u64, kind: u64, addend: i64| {
        [(offset as u64).to_le_bytes(), (symbol << 32 | kind).to_le_bytes(), addend.to_le_bytes()].concat()
    };
    // GLOB_DAT, RELATIVE, 64, 64 with an addend; and in the other table JUMP_SLOT.
    let plain =
        [relocation(0x10, 1, 6, 0), relocation(0x18, 0, 8, 0), relocation(0x20, 2, 1, 0), relocation(0x28, 2, 1, 4)];
    let (plain, calls) = (fixture.put(&plain.concat()), fixture.put(&relocation(0x30, 3, 7, 0)));
    fixture.dynamic.extend([(DT_RELA, plain), (DT_RELASZ, 4 * 24), (DT_JMPREL, calls), (DT_PLTRELSZ, 24)]);
    let object = fixture.object().unwrap();
    let found: Vec<_> = object
        .references()
        .map(|(at, kind, symbol, name)| {
            (at as usize - fixture.base(), kind, symbol.is_defined(), symbol.is_weak(), text(name))
        })
        .collect();
    let expected = [
        (0x10, PointerKind::Table, false, true, "weak_import".to_owned()),
        (0x20, PointerKind::Data, true, false, "malloc".to_owned()),
        (0x30, PointerKind::Call, true, false, "aclrtMemcpy".to_owned()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_last_finalizer_is_the_last_entry_of_the_array() {
    let mut fixture = Fixture::with_symbols();
    fixture.dynamic.extend([(DT_FINI_ARRAY, 0x200), (DT_FINI_ARRAYSZ, 24)]);
    let object = fixture.object().unwrap();
    assert_eq!(object.last_finalizer().map(|at| at as usize), Some(fixture.base() + 0x210));
    let mut empty = Fixture::with_symbols();
    empty.dynamic.extend([(DT_FINI_ARRAY, 0x200), (DT_FINI_ARRAYSZ, 0)]);
    assert_eq!(empty.object().unwrap().last_finalizer(), None);
}

#[test]
fn program_headers_say_where_an_object_lies() {
    let mut fixture = Fixture::with_symbols();
    fixture.header(libc::PT_LOAD, libc::PF_R | libc::PF_X, 0x1000, 0x800);
    fixture.header(libc::PT_LOAD, libc::PF_R | libc::PF_W, 0x2000, 0x100);
    fixture.header(libc::PT_GNU_RELRO, libc::PF_R, 0x2000, 0x40);
    let object = fixture.object_by_headers().unwrap();
    let base = fixture.base();
    assert_eq!(object.span, Span { start: base + 0x1000, end: base + 0x2100 });
    assert_eq!(object.relro, Span { start: base + 0x2000, end: base + 0x2040 });
    assert!(object.is_data(base + 0x2000) && object.is_data(base + 0x20ff));
    assert!(!object.is_data(base + 0x1000) && !object.is_data(base + 0x2100));
}

#[test]
fn headers_without_a_dynamic_section_or_a_segment_are_no_object() {
    let mut fixture = Fixture::with_symbols();
    assert!(fixture.object_by_headers().is_none(), "nothing is loaded");
    fixture.headers.clear();
    fixture.header(libc::PT_LOAD, libc::PF_R, 0, 0x1000);
    // SAFETY: the headers of the fixture.
    let object = unsafe { from_headers(fixture.base(), fixture.headers.as_ptr(), 1, c"".as_ptr()) };
    assert!(object.is_none());
}

#[test]
fn a_build_id_is_read_from_the_notes_and_a_truncated_one_is_not() {
    let id = [1u8, 2, 3, 4, 5];
    let note = |name: &[u8], kind: u32, contents: &[u8]| {
        let mut note = [(name.len() as u32), contents.len() as u32, kind].map(u32::to_le_bytes).concat();
        for part in [name, contents] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    };
    let read = |notes: &[u8], size: usize| {
        let mut fixture = Fixture::with_symbols();
        let at = fixture.put(notes);
        fixture.header(libc::PT_LOAD, libc::PF_R, 0, 0x1000);
        fixture.header(libc::PT_NOTE, libc::PF_R, at, size);
        fixture.object_by_headers().unwrap().build_id().to_vec()
    };
    let notes = [note(b"GNU\0", 1, &[0; 16]), note(b"GNU\0", 3, &id)].concat();
    assert_eq!(read(&notes, notes.len()), id);
    for size in 0..notes.len() {
        assert_eq!(read(&notes, size), [0u8; 0], "{size}");
    }
    let endless = note(b"GNU\0", 3, &id).into_iter().enumerate().map(|(at, byte)| if at == 4 { 0xff } else { byte });
    let endless: Vec<u8> = endless.collect();
    assert_eq!(read(&endless, endless.len()), [0u8; 0], "longer than its segment");
}

#[test]
fn strings_are_compared_to_their_end() {
    // SAFETY: C strings.
    unsafe {
        assert!(equals(c"dlsym".as_ptr(), c"dlsym"));
        assert!(!equals(c"dlsy".as_ptr(), c"dlsym"));
        assert!(!equals(c"dlsym_".as_ptr(), c"dlsym"));
        assert_eq!(text(file_name(c"/lib/x86/libc.so.6".as_ptr())), "libc.so.6");
        assert_eq!(text(file_name(c"libc.so.6".as_ptr())), "libc.so.6");
        assert_eq!(text(file_name(c"/lib/".as_ptr())), "");
        assert_eq!(text(file_name(c"".as_ptr())), "");
    }
}

/// The objects of this process, and what libdl says of them.
#[test]
fn what_libc_defines_is_found_where_libdl_finds_it() {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> i32 {
        // SAFETY: the loader's description, and the list that was passed.
        unsafe {
            let (info, found) = (&*info, &mut *found.cast::<Vec<usize>>());
            let object = from_headers(info.dlpi_addr as usize, info.dlpi_phdr, info.dlpi_phnum.into(), info.dlpi_name);
            found.extend(object.and_then(|object| object.defined(c"qsort")));
        }
        0
    }
    let mut found: Vec<usize> = Vec::new();
    // SAFETY: a callback that does not unwind, and a list that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    // SAFETY: a pseudo handle and a C string.
    let expected = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"qsort".as_ptr()) } as usize;
    assert!(expected != 0 && found.contains(&expected), "{expected:x} {found:x?}");
}
