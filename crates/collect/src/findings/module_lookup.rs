//! Looking up the modules of a living process, when calls come from code that was not seen before.

use crate::findings::judge::MOST_SITES;
use crate::findings::modules::Modules;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::system::clock::monotonic_ns;
use std::collections::BTreeSet;

/// How often the modules of a process are looked up again.
const LOOK_NS: u64 = 1_000_000_000;

/// The call sites of one process that were looked up.
pub(crate) struct ModuleLookup {
    /// The process as `/proc` names it, as long as it can be looked at.
    process: Option<String>,
    looked: u64,
    has_new: bool,
    sites: BTreeSet<u64>,
}

impl ModuleLookup {
    /// For a process; `process` is how `/proc` names it, if it can be looked at.
    pub fn new(process: Option<String>) -> Self {
        Self { process, looked: 0, has_new: false, sites: BTreeSet::new() }
    }

    /// Looks up where calls come from that are about to be written, and adds it to `modules`. Returns these as a block's
    /// payload, if there are new ones that were not [written](Self::written).
    pub fn look_up(&mut self, slots: &[Words], modules: &mut Modules) -> Option<Vec<u8>> {
        let is_call = |slot: &&Words| matches!(Head(slot[0]).layout(), Layout::Linear | Layout::Fill | Layout::Long);
        let mut last = 0;
        for slot in slots.iter().filter(is_call) {
            if slot[3] != last && !self.sites.contains(&slot[3]) && self.is_known(slot[3], modules) {
                // To look one up again is better than to remember them all.
                if self.sites.len() >= MOST_SITES {
                    self.sites.clear();
                }
                self.sites.insert(slot[3]);
            }
            last = slot[3];
        }
        self.has_new.then(|| modules.to_bytes())
    }

    /// The new modules are written.
    pub fn written(&mut self) {
        self.has_new = false;
    }

    /// Whether the module is known that a call site lies in, or cannot be known; looks for it if it was not there yet.
    fn is_known(&mut self, site: u64, modules: &mut Modules) -> bool {
        let Some(process) = self.process.as_deref() else { return true };
        if modules.site(site).is_some() {
            return true;
        }
        let now = monotonic_ns();
        if self.looked != 0 && now - self.looked < LOOK_NS {
            return false;
        }
        self.looked = now;
        self.has_new |= modules.learn(Modules::of(process));
        // If it is not there now it lies in no file: code that was made at run time.
        true
    }
}
