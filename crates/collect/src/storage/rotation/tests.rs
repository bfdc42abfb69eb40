use super::*;
use crate::scratch::Scratch;
use std::fs;
use std::os::unix::fs::symlink;

fn files(scratch: &Scratch, segment: u64) -> RotatedFiles {
    let sizes = Sizes { segment, budget: 1 << 30 };
    RotatedFiles::new(OutputLocation { dir: scratch.path().join("out"), stem: "a".into(), sizes }, Kind::Trace)
}

/// Appends `text`; each file begins with its number.
fn put(files: &mut RotatedFiles, text: &str) -> Result<(), Failure> {
    let (head, tail) = text.split_at(text.len() / 2);
    files.append([head.as_bytes(), tail.as_bytes()], &mut |number, _| format!("<{number}>").into_bytes())
}

fn read(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.path().join("out").join(name)).unwrap()
}

fn names(scratch: &Scratch) -> Vec<String> {
    crate::scratch::names(&scratch.path().join("out"))
}

#[test]
fn files_follow_each_other_by_size_and_number() {
    let scratch = Scratch::new("files-rotation");
    let mut files = files(&scratch, 10);
    assert!(!scratch.path().join("out").exists(), "nothing before there is something to write");
    for text in ["abcd", "ef", "g", "hij", "klmnopqrstuvwxyz", "0"] {
        put(&mut files, text).unwrap();
    }
    assert_eq!(names(&scratch), ["a.1.acltrace", "a.2.acltrace", "a.3.acltrace", "a.acltrace"]);
    let contents = ["a.acltrace", "a.1.acltrace", "a.2.acltrace", "a.3.acltrace"].map(|name| read(&scratch, name));
    assert_eq!(contents, ["<0>abcdefg", "<1>hij", "<2>klmnopqrstuvwxyz", "<3>0"]);
    assert!(files.take_report().is_empty());
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let scratch = Scratch::new("files-taken");
    let victim = scratch.path().join("victim");
    fs::create_dir(scratch.path().join("out")).unwrap();
    fs::write(scratch.path().join("out/a.acltrace"), "somebody's").unwrap();
    symlink(&victim, scratch.path().join("out/a+2.acltrace")).unwrap();
    put(&mut files(&scratch, 99), "mine").unwrap();
    assert_eq!(read(&scratch, "a.acltrace"), "somebody's");
    assert!(!victim.exists());
    assert_eq!(read(&scratch, "a+3.acltrace"), "<0>mine");
}

#[test]
fn any_number_of_drains_one_after_another_find_a_name() {
    let scratch = Scratch::new("files-turns");
    fs::create_dir(scratch.path().join("out")).unwrap();
    for turn in 1..=1000 {
        fs::write(scratch.path().join("out").join(file_names::file("a", 0, turn, Kind::Trace)), "").unwrap();
    }
    for _ in 0..3 {
        put(&mut files(&scratch, 99), "mine").unwrap();
    }
    assert_eq!(names(&scratch).len(), 1003);
}

#[test]
fn a_half_written_block_is_taken_back_before_the_next_try() {
    let scratch = Scratch::new("files-heal");
    let mut files = files(&scratch, 99);
    put(&mut files, "first").unwrap();
    files.fill_disk(3);
    let failure = put(&mut files, "second").unwrap_err();
    assert_eq!((failure.step, failure.errno), (Step::Write, libc::ENOSPC));
    assert_eq!(read(&scratch, "a.acltrace"), "<0>first");
    put(&mut files, "second").unwrap_err();
    assert_eq!(files.trouble().unwrap().count, 2);
    files.fill_disk(6);
    put(&mut files, "second").unwrap();
    assert_eq!(read(&scratch, "a.acltrace"), "<0>firstsecond");
    assert_eq!(files.take_report().mended, Some(Trouble { first: failure, count: 2 }));
    assert!(files.trouble().is_none() && files.take_report().is_empty());
}

#[test]
fn a_file_that_others_removed_cut_or_wrote_to_is_given_up() {
    let scratch = Scratch::new("files-replaced");
    let mut files = files(&scratch, 99);
    let out = scratch.path().join("out");
    put(&mut files, "one").unwrap();
    fs::remove_dir_all(&out).unwrap();
    put(&mut files, "two").unwrap();
    fs::write(out.join("a.1.acltrace"), "cut").unwrap();
    put(&mut files, "three").unwrap();
    fs::write(out.join("a.2.acltrace"), "<2>threefour").unwrap();
    put(&mut files, "five").unwrap();
    assert_eq!(read(&scratch, "a.3.acltrace"), "<3>five");
    let why: Vec<Why> = files.take_report().replaced.iter().map(|replaced| replaced.why).collect();
    assert_eq!(why, [Why::Gone, Why::Changed, Why::Changed]);
}

#[test]
fn a_parked_file_is_found_again_and_a_link_in_its_place_is_not_followed() {
    let scratch = Scratch::new("files-parked");
    let mut files = files(&scratch, 99);
    let (file, victim) = (scratch.path().join("out/a.acltrace"), scratch.path().join("victim"));
    put(&mut files, "one").unwrap();
    files.park();
    assert!(hold(&File::open(&file).unwrap()), "nobody holds it now");
    put(&mut files, "two").unwrap();
    assert!(!hold(&File::open(&file).unwrap()), "held again");
    assert_eq!(read(&scratch, "a.acltrace"), "<0>onetwo");

    files.park();
    fs::rename(&file, &victim).unwrap();
    symlink(&victim, &file).unwrap();
    put(&mut files, "three").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "<0>onetwo");
    assert_eq!(read(&scratch, "a.1.acltrace"), "<1>three");
    files.park();
    fs::write(scratch.path().join("other"), "<1>other").unwrap();
    fs::rename(scratch.path().join("other"), scratch.path().join("out/a.1.acltrace")).unwrap();
    put(&mut files, "three").unwrap();
    assert_eq!([read(&scratch, "a.1.acltrace"), read(&scratch, "a.2.acltrace")], ["<1>other", "<2>three"]);
    files.park();
    fs::remove_file(scratch.path().join("out/a.2.acltrace")).unwrap();
    put(&mut files, "four").unwrap();
    assert_eq!(read(&scratch, "a.3.acltrace"), "<3>four");
    let why: Vec<Why> = files.take_report().replaced.iter().map(|replaced| replaced.why).collect();
    assert_eq!(why, [Why::Gone; 3]);
}

#[test]
fn a_file_that_holds_nothing_yet_is_not_followed_by_another() {
    let scratch = Scratch::new("files-empty");
    let mut files = files(&scratch, 10);
    put(&mut files, "").unwrap();
    for _ in 0..3 {
        files.fill_disk(3);
        put(&mut files, "longer than a segment").unwrap_err();
    }
    files.fill_disk(99);
    put(&mut files, "longer than a segment").unwrap();
    assert_eq!(names(&scratch), ["a.acltrace"]);
}

#[test]
fn a_descriptor_that_leads_elsewhere_is_given_up_at_once() {
    let scratch = Scratch::new("files-elsewhere");
    let mut files = files(&scratch, 99);
    put(&mut files, "one").unwrap();
    let other = File::create(scratch.path().join("other")).unwrap();
    std::io::Write::write_all(&mut &other, b"<0>one").unwrap();
    // As long as ours, but not written to at its end.
    std::io::Seek::rewind(&mut &other).unwrap();
    files.current.as_mut().unwrap().file = Some(other);
    assert_eq!(put(&mut files, "two").unwrap_err().errno, libc::ESTALE);
    put(&mut files, "two").unwrap();
    assert_eq!([read(&scratch, "a.acltrace"), read(&scratch, "a.1.acltrace")], ["<0>one", "<1>two"]);
}

#[test]
fn a_directory_that_cannot_be_had_is_a_failure_and_works_again_later() {
    let scratch = Scratch::new("files-no-directory");
    let mut files = files(&scratch, 99);
    fs::write(scratch.path().join("out"), "in the way").unwrap();
    let failure = put(&mut files, "one").unwrap_err();
    assert_eq!((failure.step, failure.errno), (Step::Directory, libc::ENOTDIR));
    fs::remove_file(scratch.path().join("out")).unwrap();
    put(&mut files, "one").unwrap();
    assert_eq!(files.take_report().mended.unwrap().count, 1);
}
