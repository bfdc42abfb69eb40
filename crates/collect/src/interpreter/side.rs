//! Adding up common calls beside the interpreter of their process, in another thread.

use super::Interpreter;
use crate::findings::modules::Modules;
use crate::findings::platform::Platform;
use crate::findings::quick_check::{QuickCheck, Run};
use crate::interpreter::common_calls::CommonCalls;
use crate::interpreter::labels::Labels;
use crate::interpreter::totals::Totals;
use crate::interpreter::visitor::{CallVisitor, ProcessView};
use aclshim_trace::origin::Origin;
use aclshim_trace::record::slot::Words;

/// What must be known of the process, and what its calls add up to here.
pub(crate) struct Side {
    origin: Origin,
    number: usize,
    quick_check: QuickCheck,
    renewals: u64,
    /// Of these nothing is known here.
    modules: Modules,
    labels: Labels,
    platform: Platform,
    totals: Totals,
}

impl Side {
    /// Beside the interpreter `of` a process.
    pub(crate) fn new(of: &Interpreter) -> Self {
        Self {
            origin: of.origin.clone(),
            number: of.number,
            quick_check: of.judge.quick_check().clone(),
            renewals: of.renewals,
            modules: Modules::default(),
            labels: Labels::default(),
            platform: *of.judge.platform(),
            totals: Totals::default(),
        }
    }

    /// Whether what it goes by still holds.
    pub(crate) fn is_current(&self, of: &Interpreter) -> bool {
        self.renewals == of.renewals
    }

    /// Takes over what is known by now.
    pub(crate) fn renew(&mut self, of: &Interpreter) {
        let quick_check = of.judge.quick_check();
        if !self.is_current(of) || self.quick_check.sites() != quick_check.sites() {
            self.quick_check = quick_check.clone();
        }
        if !self.is_current(of) {
            (self.origin, self.renewals) = (of.origin.clone(), of.renewals);
            self.platform = *of.judge.platform();
        }
    }

    /// The calls of the common kind that slots begin with; every slot is handed to `each`.
    pub(crate) fn look(&self, slots: &[Words], each: impl FnMut(&Words)) -> Run {
        self.quick_check.run(slots, each)
    }

    /// Adds up and shows calls that a process has [ceded](Interpreter::cede).
    pub(crate) fn show<W: CallVisitor>(&mut self, ring: u32, thread: u32, first: u64, slots: &[Words], watch: &mut W) {
        let Self { origin, number, quick_check, modules, labels, platform, totals, .. } = self;
        let whose = ProcessView { origin, process: *number, ring, thread, modules, labels, platform };
        CommonCalls { quick_check, whose }.show(first, slots, totals, watch);
    }

    /// Adds what was added up here to the totals of the interpreter.
    pub(crate) fn join(self, of: &mut Interpreter) {
        of.totals.merge(&self.totals);
    }
}
