//! Adding up calls of the common kind beside their process, in another thread.

use super::Process;
use crate::account::Account;
use crate::common::Common;
use crate::glance::{Glance, Run};
use crate::labels::Labels;
use crate::modules::Modules;
use crate::seen::{Watch, Whose};
use aclshim_facts::Function;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::slot::Words;

/// What must be known of the process, and what its calls add up to here.
pub(crate) struct Aside {
    origin: Origin,
    number: usize,
    functions: Vec<Option<Function>>,
    glance: Glance,
    renewals: u64,
    /// Of these nothing is known here.
    modules: Modules,
    labels: Labels,
    account: Account,
}

impl Aside {
    /// Beside a process.
    pub(crate) fn new(process: &Process) -> Self {
        Self {
            origin: process.origin.clone(),
            number: process.number,
            functions: process.functions.clone(),
            glance: process.judge.glance().clone(),
            renewals: process.renewals,
            modules: Modules::default(),
            labels: Labels::default(),
            account: Account::default(),
        }
    }

    /// Whether what it goes by still holds.
    pub(crate) fn is_current(&self, process: &Process) -> bool {
        self.renewals == process.renewals
    }

    /// Takes over what is known by now.
    pub(crate) fn renew(&mut self, process: &Process) {
        let glance = process.judge.glance();
        if !self.is_current(process) || self.glance.sites() != glance.sites() {
            self.glance = glance.clone();
        }
        if !self.is_current(process) {
            (self.origin, self.renewals) = (process.origin.clone(), process.renewals);
        }
    }

    /// The calls of the common kind that slots begin with; every slot is handed to `each`.
    pub(crate) fn look(&self, slots: &[Words], each: impl FnMut(&Words)) -> Run {
        self.glance.run(&self.functions, slots, each)
    }

    /// Adds up and shows calls that a process has [ceded](Process::cede).
    pub(crate) fn show<W: Watch>(&mut self, ring: u32, thread: u32, first: u64, slots: &[Words], watch: &mut W) {
        let Self { origin, number, functions, glance, modules, labels, account, .. } = self;
        let whose = Whose { origin, process: *number, ring, thread, modules, labels };
        Common { functions, glance, whose }.show(first, slots, account, watch);
    }

    /// Hands what was added up to the process.
    pub(crate) fn join(self, process: &mut Process) {
        process.account.merge(&self.account);
    }
}
