use super::*;
use crate::scratch::Scratch;
use std::fs;
use std::os::unix::fs::symlink;

fn chain(scratch: &Scratch, segment: u64) -> Chain {
    let sizes = Sizes { segment, budget: 1 << 30 };
    Chain::new(Place { dir: scratch.path().join("out"), stem: "a".into(), sizes }, Kind::Trace)
}

/// Appends `text`; each file begins with its number.
fn put(chain: &mut Chain, text: &str) -> Result<(), Failure> {
    let (head, tail) = text.split_at(text.len() / 2);
    chain.append([head.as_bytes(), tail.as_bytes()], &mut |number, _| format!("<{number}>").into_bytes())
}

fn read(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.path().join("out").join(name)).unwrap()
}

fn names(scratch: &Scratch) -> Vec<String> {
    crate::scratch::names(&scratch.path().join("out"))
}

#[test]
fn files_follow_each_other_by_size_and_number() {
    let scratch = Scratch::new("chain-rotation");
    let mut chain = chain(&scratch, 10);
    assert!(!scratch.path().join("out").exists(), "nothing before there is something to write");
    for text in ["abcd", "ef", "g", "hij", "klmnopqrstuvwxyz", "0"] {
        put(&mut chain, text).unwrap();
    }
    assert_eq!(names(&scratch), ["a.1.acltrace", "a.2.acltrace", "a.3.acltrace", "a.acltrace"]);
    let files = ["a.acltrace", "a.1.acltrace", "a.2.acltrace", "a.3.acltrace"].map(|name| read(&scratch, name));
    assert_eq!(files, ["<0>abcdefg", "<1>hij", "<2>klmnopqrstuvwxyz", "<3>0"]);
    assert!(chain.take_report().is_empty());
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let scratch = Scratch::new("chain-taken");
    let victim = scratch.path().join("victim");
    fs::create_dir(scratch.path().join("out")).unwrap();
    fs::write(scratch.path().join("out/a.acltrace"), "somebody's").unwrap();
    symlink(&victim, scratch.path().join("out/a+2.acltrace")).unwrap();
    put(&mut chain(&scratch, 99), "mine").unwrap();
    assert_eq!(read(&scratch, "a.acltrace"), "somebody's");
    assert!(!victim.exists());
    assert_eq!(read(&scratch, "a+3.acltrace"), "<0>mine");
}

#[test]
fn any_number_of_drains_one_after_another_find_a_name() {
    let scratch = Scratch::new("chain-turns");
    fs::create_dir(scratch.path().join("out")).unwrap();
    for turn in 1..=1000 {
        fs::write(scratch.path().join("out").join(names::file("a", 0, turn, Kind::Trace)), "").unwrap();
    }
    for _ in 0..3 {
        put(&mut chain(&scratch, 99), "mine").unwrap();
    }
    assert_eq!(names(&scratch).len(), 1003);
}

#[test]
fn a_half_written_block_is_taken_back_before_the_next_try() {
    let scratch = Scratch::new("chain-heal");
    let mut chain = chain(&scratch, 99);
    put(&mut chain, "first").unwrap();
    chain.fill_disk(3);
    let failure = put(&mut chain, "second").unwrap_err();
    assert_eq!((failure.step, failure.errno), (Step::Write, libc::ENOSPC));
    assert_eq!(read(&scratch, "a.acltrace"), "<0>first");
    put(&mut chain, "second").unwrap_err();
    assert_eq!(chain.trouble().unwrap().count, 2);
    chain.fill_disk(6);
    put(&mut chain, "second").unwrap();
    assert_eq!(read(&scratch, "a.acltrace"), "<0>firstsecond");
    assert_eq!(chain.take_report().mended, Some(Trouble { first: failure, count: 2 }));
    assert!(chain.trouble().is_none() && chain.take_report().is_empty());
}

#[test]
fn a_file_that_others_removed_cut_or_wrote_to_is_given_up() {
    let scratch = Scratch::new("chain-replaced");
    let mut chain = chain(&scratch, 99);
    let out = scratch.path().join("out");
    put(&mut chain, "one").unwrap();
    fs::remove_dir_all(&out).unwrap();
    put(&mut chain, "two").unwrap();
    fs::write(out.join("a.1.acltrace"), "cut").unwrap();
    put(&mut chain, "three").unwrap();
    fs::write(out.join("a.2.acltrace"), "<2>threefour").unwrap();
    put(&mut chain, "five").unwrap();
    assert_eq!(read(&scratch, "a.3.acltrace"), "<3>five");
    let why: Vec<Why> = chain.take_report().replaced.iter().map(|replaced| replaced.why).collect();
    assert_eq!(why, [Why::Gone, Why::Changed, Why::Changed]);
}

#[test]
fn a_parked_file_is_found_again_and_a_link_in_its_place_is_not_followed() {
    let scratch = Scratch::new("chain-parked");
    let mut chain = chain(&scratch, 99);
    let (file, victim) = (scratch.path().join("out/a.acltrace"), scratch.path().join("victim"));
    put(&mut chain, "one").unwrap();
    chain.park();
    assert!(hold(&File::open(&file).unwrap()), "nobody holds it now");
    put(&mut chain, "two").unwrap();
    assert!(!hold(&File::open(&file).unwrap()), "held again");
    assert_eq!(read(&scratch, "a.acltrace"), "<0>onetwo");

    chain.park();
    fs::rename(&file, &victim).unwrap();
    symlink(&victim, &file).unwrap();
    put(&mut chain, "three").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "<0>onetwo");
    assert_eq!(read(&scratch, "a.1.acltrace"), "<1>three");
    chain.park();
    fs::write(scratch.path().join("other"), "<1>other").unwrap();
    fs::rename(scratch.path().join("other"), scratch.path().join("out/a.1.acltrace")).unwrap();
    put(&mut chain, "three").unwrap();
    assert_eq!([read(&scratch, "a.1.acltrace"), read(&scratch, "a.2.acltrace")], ["<1>other", "<2>three"]);
    chain.park();
    fs::remove_file(scratch.path().join("out/a.2.acltrace")).unwrap();
    put(&mut chain, "four").unwrap();
    assert_eq!(read(&scratch, "a.3.acltrace"), "<3>four");
    let why: Vec<Why> = chain.take_report().replaced.iter().map(|replaced| replaced.why).collect();
    assert_eq!(why, [Why::Gone; 3]);
}

#[test]
fn a_file_that_holds_nothing_yet_is_not_followed_by_another() {
    let scratch = Scratch::new("chain-empty");
    let mut chain = chain(&scratch, 10);
    put(&mut chain, "").unwrap();
    for _ in 0..3 {
        chain.fill_disk(3);
        put(&mut chain, "longer than a segment").unwrap_err();
    }
    chain.fill_disk(99);
    put(&mut chain, "longer than a segment").unwrap();
    assert_eq!(names(&scratch), ["a.acltrace"]);
}

#[test]
fn a_descriptor_that_leads_elsewhere_is_given_up_at_once() {
    let scratch = Scratch::new("chain-elsewhere");
    let mut chain = chain(&scratch, 99);
    put(&mut chain, "one").unwrap();
    let other = File::create(scratch.path().join("other")).unwrap();
    std::io::Write::write_all(&mut &other, b"<0>one").unwrap();
    // As long as ours, but not written to at its end.
    std::io::Seek::rewind(&mut &other).unwrap();
    chain.current.as_mut().unwrap().file = Some(other);
    assert_eq!(put(&mut chain, "two").unwrap_err().errno, libc::ESTALE);
    put(&mut chain, "two").unwrap();
    assert_eq!([read(&scratch, "a.acltrace"), read(&scratch, "a.1.acltrace")], ["<0>one", "<1>two"]);
}

#[test]
fn a_directory_that_cannot_be_had_is_a_failure_and_works_again_later() {
    let scratch = Scratch::new("chain-no-directory");
    let mut chain = chain(&scratch, 99);
    fs::write(scratch.path().join("out"), "in the way").unwrap();
    let failure = put(&mut chain, "one").unwrap_err();
    assert_eq!((failure.step, failure.errno), (Step::Directory, libc::ENOTDIR));
    fs::remove_file(scratch.path().join("out")).unwrap();
    put(&mut chain, "one").unwrap();
    assert_eq!(chain.take_report().mended.unwrap().count, 1);
}
