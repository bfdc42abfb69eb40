//! One configuration, in a process of its own: plays the cases, compares each with its prediction, and writes down what
//! happened.

use crate::case::Case;
use crate::configuration::Configuration;
use crate::coverage::refusal;
use crate::disagreements;
use crate::generator::cases;
use crate::resolve::{Resolved, UNTOUCHED, resolve};
use crate::scene::Scene;
use crate::shelf::Shelf;
use crate::shown::Shown;
use crate::tally::Tally;
use crate::vendor::Vendor;
use aclshim_facts::code;
use aclshim_facts::rule::{Prediction, Subject};
use aclshim_facts::rules::{RULES, predict};
use aclshim_facts::world::{Memory, Stream, Untracked, World};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One call in this many is made before a device is opened.
const CLOSED: usize = 16;

/// What a child is asked to do.
pub struct Order {
    pub configuration: Configuration,
    pub seed: u64,
    pub calls: usize,
    /// Says each case before it is played: for one that ends the process.
    pub is_tracing: bool,
    /// Prints the case of this number.
    pub show: Option<usize>,
}

/// What a call did.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answer {
    code: i32,
    /// What stands in `failIndex` after it, if there is one.
    fail_index: Option<u64>,
    /// How often the call reached the simulated library.
    reached: u64,
    /// What the stream said when it was waited for.
    after: i32,
}

/// One call, what was expected of it and what came.
struct Played {
    resolved: Resolved,
    prediction: Prediction,
    /// What can be said without knowing memory, contexts and streams.
    by_arguments: Prediction,
    answer: Answer,
}

/// A disagreement: of all that look alike, the smallest that was found.
pub struct Disagreement {
    pub text: String,
}

/// What a child has seen.
pub struct Report {
    pub tally: Tally,
    pub transcript: String,
    pub disagreements: Vec<Disagreement>,
}

struct Child {
    order: Order,
    scene: Scene,
    shelf: Shelf,
}

/// Plays all cases of an order.
pub fn play(order: Order) -> Report {
    let vendor = Vendor::load();
    let (seed, calls) = (order.seed, order.calls);
    let strategy = cases(&vendor.functions());
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..].copy_from_slice(&(order.configuration.number() + 1).to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    // Not proptest's own choice: without optimisation that one takes more time than all the rest.
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::XorShift, &bytes));
    let mut report = Report { tally: Tally::default(), transcript: String::new(), disagreements: Vec::new() };
    let mut child = Child { order, scene: Scene::closed(vendor), shelf: Shelf::new() };
    let mut seen = BTreeMap::new();
    for number in 0..calls {
        if number == calls / CLOSED {
            child.scene.open();
        }
        let mut tree = strategy.new_tree(&mut runner).expect("a case");
        let played = child.play(&tree.current(), Some(number));
        child.note(&played, number, &mut report);
        let Some(signature) = child.disagreement(&played) else { continue };
        if let Some(known) = child.known(&played) {
            report.tally.known(known);
        } else if *seen.entry(signature.clone()).and_modify(|times| *times += 1).or_insert(1) == 1 {
            let text = child.smallest(&mut tree, &signature);
            report.disagreements.push(Disagreement { text });
        }
    }
    report.tally.own_calls(child.scene.own_calls.get());
    report
}

impl Child {
    fn play(&self, case: &Case, number: Option<usize>) -> Played {
        let resolved = resolve(case, &self.scene, &self.shelf);
        let scene = &self.scene;
        if self.order.is_tracing {
            eprintln!("case {number:?}\n{}", Shown(&resolved, scene));
        }
        let (function, words) = (resolved.function, resolved.words.clone());
        let prediction = predict(&self.subject(&resolved, self.world(&resolved)));
        let by_arguments = predict(&self.as_the_shim_sees_it(&resolved));
        let answer_at = scene.address(crate::case::Spot::Answer) as *mut u64;
        // SAFETY: a page of ours.
        unsafe { answer_at.write(UNTOUCHED) };
        let (vendor, before) = (scene.vendor, scene.vendor.reached(function));
        if number.is_none() {
            scene.own_calls.set(scene.own_calls.get() + 1);
        }
        let (code, after) = scene.play(&resolved.situation, resolved.stream(), move || {
            // SAFETY: `resolve` gives no call from which the vendor would not return.
            unsafe { vendor.call(function, &words) }
        });
        // SAFETY: as above.
        let fail_index = resolved.fail_index().map(|place| unsafe { place.read() });
        let answer = Answer { code, fail_index, reached: vendor.reached(function) - before, after };
        if number.is_some() && number == self.order.show {
            println!("{}", self.told(&resolved, prediction, answer));
        }
        Played { resolved, prediction, by_arguments, answer }
    }

    fn subject<'a>(&self, resolved: &'a Resolved, world: World<'a>) -> Subject<'a> {
        let call = resolved.function.call(&resolved.words);
        Subject { function: resolved.function, call, arrays: resolved.arrays(), world }
    }

    /// All that is true of the world, as it was made here.
    fn world<'a>(&'a self, resolved: &Resolved) -> World<'a> {
        let (scene, situation) = (&self.scene, &resolved.situation);
        let stream = resolved.stream().map_or(Stream::Default, |stream| scene.stream_is(stream, situation));
        World {
            tells_pageable: Some(self.order.configuration.tells_pageable),
            is_open: Some(scene.is_open()),
            has_context: Some(situation.context != crate::case::Context::None),
            // It is not asked for there, and nothing checks it.
            has_peer_access: None,
            is_capture_in_the_way: Some(scene.is_capture_in_the_way(situation)),
            stream,
            memory: scene as &dyn Memory,
            product: Some(self.order.configuration.product()),
            run_mode: Some(self.order.configuration.form),
            cann: Some(self.order.configuration.version()),
        }
    }

    /// What the shim knows of a call before it forwards it: the configuration, and the arguments; it takes handles for
    /// good, and reads arrays no further than the vendor would if they were not.
    fn as_the_shim_sees_it<'a>(&'a self, resolved: &'a Resolved) -> Subject<'a> {
        let configuration = &self.order.configuration;
        let world = World {
            product: Some(configuration.product()),
            run_mode: Some(configuration.form),
            cann: Some(configuration.version()),
            tells_pageable: Some(true),
            is_open: Some(true),
            has_context: Some(true),
            has_peer_access: None,
            is_capture_in_the_way: Some(false),
            stream: Stream::Unknown,
            memory: &Untracked,
        };
        let mut subject = self.subject(resolved, world);
        let is_on_stream = subject.call.stream.is_some_and(|stream| !stream.is_null());
        subject.world.stream = if is_on_stream { Stream::Own { is_captured: false } } else { Stream::Default };
        (subject.arrays.dsts, subject.arrays.srcs) = (None, None);
        if is_on_stream {
            subject.arrays.attr_indexes = None;
        }
        subject
    }

    fn note(&self, played: &Played, number: usize, report: &mut Report) {
        let Played { resolved, prediction, by_arguments, answer } = played;
        let name = resolved.function.row().name;
        report.tally.call(name, answer.code == 0);
        report.tally.situation(&resolved.situation);
        if let Prediction::Refused { rule, code, .. } = prediction {
            report.tally.rule(&refusal(RULES[*rule].id, *code));
        }
        let Answer { code, fail_index, reached, after } = *answer;
        let fail_index = match fail_index {
            None => "-".into(),
            Some(UNTOUCHED) => "untouched".into(),
            Some(index) => index.to_string(),
        };
        let refused = if matches!(by_arguments, Prediction::Refused { .. }) { "refused" } else { "-" };
        let digest = self.scene.digest();
        writeln!(report.transcript, "{number} {name} {code} {fail_index} {refused} {reached} {after} {digest:016x}")
            .expect("a string");
    }

    /// What a disagreement looks like, or `None` if prediction and answer agree.
    fn disagreement(&self, played: &Played) -> Option<String> {
        let Answer { code, fail_index, .. } = played.answer;
        let touched = |expected: Option<usize>| match fail_index {
            None => true,
            Some(found) => found == expected.map_or(UNTOUCHED, |index| index as u64),
        };
        let (agrees, expected) = match played.prediction {
            Prediction::Accepted => (code == 0 && touched(Some(usize::MAX)), "accepted".to_owned()),
            Prediction::Unknown => (false, "unknown".to_owned()),
            Prediction::Refused { rule, code: expected, fail_index } => {
                (code == expected && touched(fail_index), format!("{} {expected}", RULES[rule].id))
            }
        };
        let name = played.resolved.function.row().name;
        let index = if agrees || fail_index.is_none() { "" } else { " with failIndex" };
        (!agrees).then(|| format!("{name}: predicted {expected}, came {code}{index}"))
    }

    fn known(&self, played: &Played) -> Option<&'static str> {
        disagreements::known(&played.resolved, &self.scene, played.prediction, played.answer.code)
    }

    /// The smallest case that disagrees in the same way.
    fn smallest(&self, tree: &mut impl ValueTree<Value = Case>, signature: &str) -> String {
        let mut text = String::new();
        let mut steps = 0;
        loop {
            let played = self.play(&tree.current(), None);
            let still = self.disagreement(&played).as_deref() == Some(signature) && self.known(&played).is_none();
            if still {
                text = self.told(&played.resolved, played.prediction, played.answer);
            }
            steps += 1;
            if steps > 2000 || !(if still { tree.simplify() } else { tree.complicate() }) {
                return format!("{signature}\n{text}");
            }
        }
    }

    fn told(&self, resolved: &Resolved, prediction: Prediction, answer: Answer) -> String {
        let predicted = match prediction {
            Prediction::Refused { rule, code, fail_index } => {
                let fail_index = fail_index.map_or("untouched".into(), |index| format!("{index:#x}"));
                format!("refused for {} with {code}, failIndex {fail_index}", RULES[rule].id)
            }
            Prediction::Accepted => "accepted".into(),
            Prediction::Unknown => "unknown".into(),
        };
        let fail_index = match answer.fail_index {
            None => "none".into(),
            Some(UNTOUCHED) => "untouched".into(),
            Some(index) => format!("{index:#x}"),
        };
        format!(
            "{}  on {}\n  predicted: {predicted}\n  came: {} {}, failIndex {fail_index}\n",
            Shown(resolved, &self.scene),
            self.order.configuration.name(),
            answer.code,
            code::name(answer.code).unwrap_or_default(),
        )
    }
}
