use super::*;

fn one(text: &str) -> Injection {
    let mut all = each(text.as_bytes());
    let first = all.next().unwrap().unwrap_or_else(|why| panic!("{}", why.in_text(text.as_bytes())));
    assert!(all.next().is_none(), "{text}");
    first
}

/// The numbers up to 100 that it strikes.
fn struck(text: &str) -> Vec<u64> {
    let injection = one(text);
    (1..=100).filter(|number| injection.strikes(*number)).collect()
}

#[test]
fn numbers_say_when() {
    assert_eq!(struck("return=1"), (1..=100).collect::<Vec<_>>());
    assert_eq!(struck("return=1 times=3"), [1, 2, 3]);
    assert_eq!(struck("nth=3 return=1"), [3]);
    assert_eq!(struck("nth=3 times=1 return=1"), [3]);
    assert_eq!(struck("every=30 return=1"), [30, 60, 90]);
    assert_eq!(struck("every=30 times=2 return=1"), [30, 60]);
    assert_eq!(struck("every=1 times=2 return=1"), [1, 2]);
    assert_eq!(struck("probability=0 return=1"), []);
    assert_eq!(struck("probability=1 return=1").len(), 100);
}

#[test]
fn chance_is_the_same_for_the_same_seed_and_about_as_likely_as_asked_for() {
    let text = "probability=0.1 return=1 seed=";
    let [one, again, other] = ["42", "42", "43"].map(|seed| struck(&format!("{text}{seed}")));
    assert_eq!(one, again);
    assert_ne!(one, other);
    assert_eq!(struck("probability=0.1 return=1"), struck(&format!("{text}0")));
    let injection = super::tests::one("probability=0.01 seed=7 return=1");
    let hits = (1..=1_000_000).filter(|number| injection.strikes(*number)).count();
    assert!((9_500..10_500).contains(&hits), "{hits}");
    assert!(!injection.is_numbered() && super::tests::one("every=3 return=1").is_numbered());
}

#[test]
fn words_say_what() {
    let what =
        one("aclrtMemcpyBatch* return=ACL_ERROR_RT_FEATURE_NOT_SUPPORT fail_index=2 delay=5ms delay_after=20us").what;
    let expected =
        What { instead: Some(207_000), then: None, delay_ns: 5_000_000, delay_after_ns: 20_000, fail_index: Some(2) };
    assert_eq!(what, expected);
    assert_eq!(one("then_return=-7").what, What { then: Some(-7), ..What::default() });
    assert_eq!(one("fail_index=0").what, What { fail_index: Some(0), ..What::default() });
    let text = b" ; aclrtMemcpy nth=1 return=1;; kind=H2D delay=1s ; ";
    let shown: Vec<_> = each(text).map(|injection| injection.unwrap().to_string()).collect();
    assert_eq!(shown, ["aclrtMemcpy nth=1 return=1", "* kind=HOST_TO_DEVICE delay=1000000000ns"]);
    assert_eq!(each(b"").count() + each(b" ; ;\n").count(), 0);
}

#[test]
fn an_injection_is_shown_as_it_could_be_written() {
    for text in [
        "aclrtMemcpy* size=64..128 nth=3 return=107000",
        "* every=10 times=2 then_return=-1 fail_index=0",
        "aclrtMemset probability=0.25 seed=42 delay=5ns delay_after=7ns",
    ] {
        assert_eq!(one(text).to_string(), text);
    }
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    for (text, begin) in [
        ("aclrtMemcpy", "\"aclrtMemcpy\" at 1 does nothing"),
        ("aclrtMemcpy nth=3", "\"aclrtMemcpy nth=3\" at 1 does nothing"),
        ("return=1;  delay=0ns ", "\"delay=0ns\" at 12 does nothing"),
        ("return=1; retrun=2", "\"retrun=2\" at 11 is a word of neither"),
        ("aclrtX return=1", "\"aclrtX\" at 1 is no function"),
        ("nth=0 return=1", "\"nth=0\" at 1 must be a number from 1 on"),
        ("nth=-1 return=1", "\"nth=-1\" at 1 must be a number from 1 on"),
        ("every= return=1", "\"every=\" at 1 must be"),
        ("return=x", "\"return=x\" at 1 must be a code"),
        ("return=99999999999", "\"return=99999999999\" at 1 must be a code"),
        ("delay=5", "\"delay=5\" at 1 must be a time"),
        ("probability=1.5 return=1", "\"probability=1.5\" at 1 must be a number from 0 to 1"),
        ("probability=nan return=1", "\"probability=nan\" at 1 must be"),
        ("probability=-0.1 return=1", "\"probability=-0.1\" at 1 must be"),
        ("seed=1 return=1", "\"seed=1 return=1\" at 1 has a seed= without"),
        ("nth=1 every=2 return=1", "\"nth=1 every=2 return=1\" at 1 has more than one of nth="),
        ("return=1 then_return=2", "\"return=1 then_return=2\" at 1 has both"),
        ("return=1 return=2", "\"return=2\" at 10 stands there twice"),
        ("code=failed delay=1s", "\"code=failed delay=1s\" at 1 asks for a code"),
    ] {
        let nonsense = each(text.as_bytes()).find_map(Result::err).unwrap_or_else(|| panic!("{text} makes sense"));
        let told = nonsense.in_text(text.as_bytes()).to_string();
        assert!(told.starts_with(begin), "{text}: {told}");
    }
}
