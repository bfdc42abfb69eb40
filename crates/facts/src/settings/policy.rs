//! What is done about what a rule finds (`ACLSHIM_MODE`, `ACLSHIM_RULES`).

use crate::rules::rule::Severity;

/// What is done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The rule is not checked.
    Off,
    /// It is reported in the log.
    Log,
    /// It is reported on standard error as well, where that is asked for.
    Warn,
    /// The call returns the vendor's code and is not forwarded.
    Refuse,
    /// The program is aborted.
    Abort,
}

/// The words of `ACLSHIM_RULES`.
const WORDS: [(&str, Action); 5] = [
    ("off", Action::Off),
    ("log", Action::Log),
    ("warn", Action::Warn),
    ("refuse", Action::Refuse),
    ("abort", Action::Abort),
];

impl Action {
    /// The action of a word.
    pub fn of(word: &[u8]) -> Option<Self> {
        WORDS.iter().find(|(known, _)| known.as_bytes() == word).map(|(_, action)| *action)
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        WORDS.iter().find(|(_, action)| *action == self).map_or("", |(word, _)| word)
    }
}

/// Maximum number of rules.
pub const MOST: usize = 128;

/// What is done about each rule.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The action that the settings name for each rule.
    said: [Option<Action>; MOST],
    /// Whether calls that the vendor would refuse are refused.
    is_enforced: bool,
}

impl Policy {
    /// Reports all findings and refuses no call, except for errors if `is_enforced`.
    pub const fn new(is_enforced: bool) -> Self {
        Self { said: [None; MOST], is_enforced }
    }

    /// Reads a list such as `ALIGN-64=off,BATCH-DIRECTION=refuse`; `number` knows the rules. What makes no sense is
    /// handed to `refused`, and the rest holds.
    pub fn read<'a>(
        &mut self,
        list: &'a [u8],
        number: impl Fn(&[u8]) -> Option<usize>,
        mut refused: impl FnMut(&'a [u8]),
    ) {
        for part in list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|part| !part.is_empty()) {
            let mut halves = part.splitn(2, |&byte| byte == b'=').map(<[u8]>::trim_ascii);
            let rule = halves.next().and_then(&number);
            let action = halves.next().and_then(Action::of);
            match (rule.and_then(|rule| self.said.get_mut(rule)), action) {
                (Some(slot), Some(action)) => *slot = Some(action),
                _ => refused(part),
            }
        }
    }

    /// What is done about a finding of a rule.
    pub fn action(&self, rule: usize, severity: Severity) -> Action {
        match self.said.get(rule).copied().flatten() {
            Some(said) => said,
            None if self.is_enforced && severity == Severity::Error => Action::Refuse,
            None if severity >= Severity::Violation => Action::Warn,
            None => Action::Log,
        }
    }

    /// Whether the settings name an action for this rule.
    pub fn is_said(&self, rule: usize) -> bool {
        self.said.get(rule).is_some_and(Option::is_some)
    }

    /// Whether a call may have to be refused, so that it must be judged before it is forwarded.
    pub fn may_refuse(&self) -> bool {
        self.is_enforced || self.said.iter().flatten().any(|action| matches!(action, Action::Refuse | Action::Abort))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> (Policy, Vec<String>) {
        let mut policy = Policy::new(false);
        let mut refused = Vec::new();
        let number = |id: &[u8]| ["ONE", "TWO"].iter().position(|known| known.as_bytes() == id);
        policy.read(list.as_bytes(), number, |part| refused.push(String::from_utf8_lossy(part).into_owned()));
        (policy, refused)
    }

    #[test]
    fn what_is_said_of_a_rule_holds_and_nonsense_is_named() {
        let (policy, refused) = read("ONE=off, TWO = refuse ,THREE=warn,ONE=loud,,TWO");
        assert_eq!(policy.action(0, Severity::Error), Action::Off);
        assert_eq!(policy.action(1, Severity::Perf), Action::Refuse);
        assert_eq!(refused, ["THREE=warn", "ONE=loud", "TWO"]);
        assert!(policy.may_refuse());
    }

    #[test]
    fn nothing_is_refused_unless_it_is_asked_for() {
        let (policy, _) = read("ONE=log");
        assert!(!policy.may_refuse());
        assert_eq!(policy.action(1, Severity::Error), Action::Warn);
        assert_eq!(policy.action(1, Severity::Portability), Action::Log);
    }

    #[test]
    fn enforce_refuses_errors_and_only_these() {
        let mut policy = Policy::new(true);
        policy.read(b"ONE=log", |id| (id == b"ONE").then_some(0), |_| ());
        assert_eq!(policy.action(0, Severity::Error), Action::Log, "what was said of a rule comes first");
        assert_eq!(policy.action(1, Severity::Error), Action::Refuse);
        assert_eq!(policy.action(1, Severity::Violation), Action::Warn);
    }
}
