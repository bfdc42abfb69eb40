use super::*;

const MAPS: &str = "\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon
00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/dbus-daemon
00652000-00655000 rw-p 00052000 08:02 173521      /usr/bin/dbus-daemon
00e03000-00e24000 rw-p 00000000 00:00 0           [heap]
7f0000000000-7f0000021000 r--p 00000000 08:02 9   /opt/data only.bin
7f0000100000-7f0000101000 r--p 00000000 08:02 10  /lib/libone.so
7f0000101000-7f0000102000 r-xp 00001000 08:02 10  /lib/libone.so
7f0000102000-7f0000103000 ---p 00000000 00:00 0
7f0000200000-7f0000201000 r-xp 00000000 08:02 11  /lib/libtwo.so (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
";

fn is_writable(maps: &str, address: usize) -> Option<bool> {
    let mut protection = Protection::of(address);
    maps.bytes().all(|byte| protection.take(byte));
    protection.is_writable()
}

fn module(maps: &str, address: u64) -> Option<(String, u64)> {
    let mut finder = ModuleFinder::new(address);
    maps.bytes().all(|byte| finder.take(byte));
    finder.module().map(|(name, offset)| (String::from_utf8_lossy(name).into_owned(), offset))
}

fn code_lines(maps: &str, room: usize) -> String {
    let room: Vec<_> = (0..room).map(|_| AtomicU8::new(0xee)).collect();
    if let Some(first) = room.first() {
        first.store(0, Ordering::Relaxed);
    }
    let mut lines = CodeLines::new(&room);
    maps.bytes().all(|byte| lines.take(byte));
    lines.publish();
    let bytes: Vec<_> = room.iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    assert!(bytes[end..].iter().all(|byte| *byte == 0), "the rest is zero");
    String::from_utf8(bytes[..end].to_vec()).unwrap()
}

#[test]
fn a_page_is_writable_as_its_line_says() {
    assert_eq!(is_writable(MAPS, 0x400000), Some(false));
    assert_eq!(is_writable(MAPS, 0x652fff), Some(true));
    assert_eq!(is_writable(MAPS, 0x654fff), Some(true));
    assert_eq!(is_writable(MAPS, 0x7f0000102000), Some(false));
}

#[test]
fn a_page_that_no_line_is_about_is_not_known() {
    assert_eq!(is_writable(MAPS, 0x655000), None, "the end of a range is not in it");
    assert_eq!(is_writable(MAPS, 0), None);
    assert_eq!(is_writable("", 0x400000), None);
}

#[test]
fn lines_that_make_no_sense_are_passed_over() {
    let odd =
        "\n\nzzz-yyy rw-p\n400000 rw-p\n400000-\n-401000 rw-p\n400000-401000\n400000-401000 r\n400000-401000 rw-p 0";
    assert_eq!(
        is_writable(odd, 0x400000),
        Some(false),
        "one character of permissions has no w; the last line has no end"
    );
    assert_eq!(is_writable("400000-401000 rw-p 0", 0x400000), None, "a line without an end is not a line yet");
    assert_eq!(is_writable("g00000-401000 rw-p\n", 0x400000), None);
}

#[test]
fn a_long_line_is_read_by_its_beginning() {
    let long = format!("400000-401000 rw-p {}\n", "/x".repeat(5000));
    assert_eq!(is_writable(&long, 0x400800), Some(true));
}

#[test]
fn the_widest_addresses_fit_into_the_beginning_of_a_line() {
    assert_eq!(is_writable(MAPS, 0xffff_ffff_ff60_0000), Some(false));
    assert_eq!(is_writable("fffffffffffff000-ffffffffffffffff rw-p 0\n", 0xffff_ffff_ffff_f800), Some(true));
}

#[test]
fn a_module_begins_with_the_first_line_of_its_file() {
    assert_eq!(module(MAPS, 0x7f0000101234), Some(("libone.so".into(), 0x1234)));
    assert_eq!(module(MAPS, 0x652010), Some(("dbus-daemon".into(), 0x252010)));
    assert_eq!(module(MAPS, 0x7f0000000001), Some(("data only.bin".into(), 1)));
}

#[test]
fn a_deleted_file_keeps_its_name() {
    assert_eq!(module(MAPS, 0x7f0000200010), Some(("libtwo.so".into(), 0x10)));
}

#[test]
fn memory_of_no_file_is_no_module() {
    assert_eq!(module(MAPS, 0xe03000), None);
    assert_eq!(module(MAPS, 0x7f0000102000), None);
    assert_eq!(module(MAPS, 0x1000), None);
    assert_eq!(module("nonsense\n/\n- /x\n", 0), None);
}

#[test]
fn two_files_of_one_name_are_two_modules() {
    let maps = "1000-2000 r-xp 0 0 1 /a/lib.so\n2000-3000 r-xp 0 0 2 /b/lib.so\n";
    assert_eq!(module(maps, 0x1800), Some(("lib.so".into(), 0x800)));
    assert_eq!(module(maps, 0x2800), Some(("lib.so".into(), 0x800)));
}

#[test]
fn lines_of_files_with_code_are_kept_with_the_first_of_each_file() {
    let kept = code_lines(MAPS, 4096);
    let starts: Vec<_> = kept.lines().map(|line| line.split('-').next().unwrap()).collect();
    assert_eq!(starts, ["00400000", "7f0000100000", "7f0000101000", "7f0000200000"]);
    assert!(MAPS.lines().filter(|line| kept.contains(line)).count() == 4, "as they were");
}

#[test]
fn nothing_is_shown_where_no_file_holds_code() {
    assert_eq!(code_lines("1000-2000 rw-p 0 0 1 /data\n3000-4000 r-xp 0 0 0\n", 128), "");
    assert_eq!(code_lines("", 128), "");
}

#[test]
fn whole_lines_are_kept_as_far_as_there_is_room() {
    let all = code_lines(MAPS, 4096);
    for room in 0..all.len() + 200 {
        let kept = code_lines(MAPS, room);
        assert!(all.starts_with(&kept) && kept.len() < room.max(1), "{room}: {kept}");
        assert!(kept.is_empty() || kept.ends_with('\n'), "{room}: {kept}");
    }
}

#[test]
fn this_process_finds_its_own_program() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let program = std::env::current_exe().unwrap();
    let here = this_process_finds_its_own_program as fn() as usize as u64;
    let (name, offset) = module(&maps, here).unwrap();
    assert_eq!(Some(name.as_str()), program.file_name().and_then(|name| name.to_str()));
    assert!(offset < here);
    assert_eq!(is_writable(&maps, here as usize), Some(false), "code");
    let local = 0u8;
    assert_eq!(is_writable(&maps, &raw const local as usize), Some(true), "a stack");
}
