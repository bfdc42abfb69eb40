use super::*;
use crate::call::{batch, linear};
use crate::vendor::abi::aclrtMemcpyKind;
use core::ptr::null_mut;

/// One stream, one buffer and one module that have a name.
struct OfEach;

impl Names for OfEach {
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        stream == 7 && is(b"s1")
    }
    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        (0x1000..0x2000).contains(&address) && (is(b"weights") || is(b"all"))
    }
    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        address >= 0x4000 && is(b"libfoo++.so", address - 0x4000)
    }
}

/// A copy of 64 bytes to "weights" on "s1" by "libfoo++.so+0x10", which returned 107000.
fn is_meant(text: &str) -> bool {
    let call = linear(0x1010 as *mut _, 64, 0x9000 as *const _, 64, aclrtMemcpyKind(1)).on(7 as *mut _);
    let ends = call.ends();
    let known =
        Known { code: Some(107_000), ends: ends.as_slice(), ..Known::new(Function::aclrtMemcpyAsync, &call, 0x4010) };
    Selector::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{text}: {why:?}")).matches(&known, &OfEach)
}

#[test]
fn every_word_must_hold() {
    for (text, is) in [
        ("", true),
        ("  ", true),
        ("*", true),
        ("aclrtMemcpyAsync", true),
        ("aclrtMemcpy", false),
        ("aclrtMemcpy*", true),
        ("aclrtMemcpy,*Async", true),
        ("aclrtMemset*", false),
        ("kind=HOST_TO_DEVICE", true),
        ("kind=h2d", true),
        ("kind=1", true),
        ("kind=D2H,4", false),
        ("kind=D2H,1", true),
        ("direction=h2d", true),
        ("direction=d2h,H2D", true),
        ("direction=unknown", false),
        ("size=64", true),
        ("size=65", false),
        ("size=64..64", true),
        ("size=..63", false),
        ("size=..64", true),
        ("size=65..", false),
        ("size=1..1K", true),
        ("size=1,64", true),
        ("code=107000", true),
        ("code=ACL_ERROR_RT_PARAM_INVALID", true),
        ("code=failed", true),
        ("code=0", false),
        ("code=0,failed", true),
        ("stream=s1", true),
        ("stream=s*", true),
        ("stream=s2", false),
        ("stream=0x7", true),
        ("stream=0x8", false),
        ("stream=default", false),
        ("stream=none", false),
        ("dst=weights", true),
        ("dst=all", true),
        ("dst=w*", true),
        ("dst=other", false),
        ("src=weights", false),
        ("site=libfoo++.so", true),
        ("site=libfoo*", true),
        ("site=libfoo++.so+0x10", true),
        ("site=libfoo++.so+0x11", false),
        ("site=main", false),
        ("aclrtMemcpy* kind=H2D size=64 stream=s1 dst=weights code=failed site=libfoo++.so", true),
        ("aclrtMemcpy* kind=H2D size=65", false),
        ("kind=H2D aclrtMemcpyAsync", true),
    ] {
        assert_eq!(is_meant(text), is, "{text:?}");
    }
}

#[test]
fn every_key_is_known() {
    for key in Selector::KEYS {
        let text = [key, b"=1"].concat();
        let nonsense = Selector::parse(&text).err().map(|nonsense| nonsense.in_text(&text).to_string());
        assert!(nonsense.is_none_or(|told| !told.contains("is none of")));
    }
}

#[test]
fn what_is_not_known_is_not_meant() {
    let call = batch(null_mut(), null_mut(), null_mut(), null_mut(), 3, null_mut(), null_mut(), 1);
    let known = Known::new(Function::aclrtMemcpyBatch, &call, 0);
    let is = |text: &str, known: &Known<'_>| Selector::parse(text.as_bytes()).unwrap().matches(known, &OfEach);
    for text in ["size=0..", "kind=0", "code=0", "code=failed", "dst=*", "site=*"] {
        assert!(!is(text, &known), "{text}");
    }
    assert!(is("stream=none direction=unknown", &known));
    let ends =
        [Ends { dst: 0x1000 as *const _, src: 0x9000 as *const _ }, Ends { dst: null_mut(), src: 0x1000 as *const _ }];
    let known = Known { bytes: Some(5), direction: Direction::HostToDevice, ends: &ends, ..known };
    assert!(is("size=5 direction=h2d dst=weights", &known) && is("src=weights", &known));
    // One item must do both.
    assert!(!is("dst=weights src=weights", &known));
    assert!(Selector::EVERY.matches(&known, &Nameless) && !is("code=0", &known));
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let told = |text: &str| match Selector::parse(text.as_bytes()) {
        Err(nonsense) => nonsense.in_text(text.as_bytes()).to_string(),
        Ok(_) => panic!("{text} makes sense"),
    };
    for (text, begin) in [
        ("aclrtMemcpyy", "\"aclrtMemcpyy\" at 1 is no function"),
        ("aclrtMemcpy kind=H2D,sideways", "\"sideways\" at 22 must be a kind"),
        ("aclrtMemcpy,aclrtX", "\"aclrtX\" at 13 is no function"),
        (" aclrtMemcpy aclrtMemset", "\"aclrtMemset\" at 14 comes after other functions"),
        ("size=", "\"size=\" at 1 must be bytes"),
        ("size=9..5", "\"9..5\" at 6 must be bytes"),
        ("size=..", "\"..\" at 6 must be bytes"),
        ("size=1,,2", "\"size=1,,2\" at 1 must be bytes"),
        ("code=nice", "\"nice\" at 6 must be a code"),
        ("kind=1 kind=2", "\"kind=2\" at 8 stands there twice"),
        ("direction=h2d direction=d2h", "\"direction=d2h\" at 15 stands there twice"),
        ("direction=up", "\"up\" at 11 must be one of h2d"),
        ("dst=", "\"dst=\" at 1 names nothing"),
        ("stream=0xg", "\"stream=0xg\" at 1 must be an address"),
        ("site=main+0xg", "\"site=main+0xg\" at 1 must be MODULE"),
        ("knd=1", "\"knd=1\" at 1 is none of kind=, "),
        ("kind=1,2,3,4,5,6,7,8,9", "\"9\" at 22 is one too many"),
        ("=", "\"=\" at 1 is none of kind=, "),
    ] {
        assert!(told(text).starts_with(begin), "{text}: {}", told(text));
    }
    let long = format!("stream={}", "x".repeat(128));
    assert!(told(&long).contains("...\" at 1 is longer than a name may be"), "{}", told(&long));
}

#[test]
fn a_selector_is_shown_as_it_could_be_written() {
    for (text, shown) in [
        ("", "*"),
        ("aclrtMemcpy*", "aclrtMemcpy*"),
        ("aclrtMemcpy,aclrtMemset", "aclrtMemcpy,aclrtMemset"),
        ("kind=h2d,9 aclrtMemcpy", "aclrtMemcpy kind=HOST_TO_DEVICE,9"),
        ("direction=d2h,h2d size=..4K,1M..,7", "* direction=h2d,d2h size=0..4096,1048576..,7"),
        ("code=failed,ACL_ERROR_RT_PARAM_INVALID stream=0x0", "* code=failed,107000 stream=default"),
        ("stream=none dst=a* src=b site=m+0x1F", "* stream=none dst=a* src=b site=m+0x1f"),
        ("stream=0xff site=m", "* stream=0xff site=m"),
    ] {
        let selector = Selector::parse(text.as_bytes()).unwrap();
        assert_eq!(selector.to_string(), shown);
        assert_eq!(Selector::parse(shown.as_bytes()).unwrap().to_string(), shown);
    }
}

/// A small generator of text that is nearly a selector: nothing of it may panic, and what is accepted is shown as
/// something that means the same.
#[test]
fn any_text_is_read_or_told() {
    let pieces = [
        "aclrtMemcpy",
        "*",
        ",",
        "kind=",
        "H2D",
        "size=",
        "..",
        "4K",
        " ",
        "=",
        "code=",
        "failed",
        "-1",
        "stream=",
        "0x",
        "f",
        "dst=",
        "src=",
        "site=",
        "+0x1",
        "direction=",
        "d2h",
        "\u{e9}",
        "99999999999999999999",
    ];
    let mut state = 42u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut accepted = 0;
    for _ in 0..50_000 {
        let text: String = (0..1 + next() % 6).map(|_| pieces[next() % pieces.len()]).collect();
        // Cut amid a letter, too.
        let text = &text.as_bytes()[..text.len() - usize::from(next() % 9 == 0)];
        match Selector::parse(text) {
            Ok(selector) => {
                accepted += 1;
                let shown = selector.to_string();
                let again = Selector::parse(shown.as_bytes()).unwrap_or_else(|why| panic!("{shown}: {why:?}"));
                assert_eq!(again.to_string(), shown, "{:?}", String::from_utf8_lossy(text));
            }
            Err(nonsense) => assert!(!nonsense.in_text(text).to_string().is_empty()),
        }
    }
    assert!(accepted > 1000, "{accepted}");
}
