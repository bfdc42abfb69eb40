//! Looking up the modules of a living process, when calls come from code that was not seen before.

use crate::findings::judge::MOST_SITES;
use crate::findings::modules::Modules;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::system::clock::monotonic_ns;
use std::collections::BTreeSet;

/// How often the modules of a process are looked up again.
const LOOK_NS: u64 = 1_000_000_000;

/// Number of call sites that are found with one look.
const QUICK: usize = 64;

/// The call sites of one process that were looked up.
pub(crate) struct ModuleLookup {
    /// The process as `/proc` names it, as long as it can be looked at.
    process: Option<String>,
    looked: u64,
    has_new: bool,
    sites: BTreeSet<u64>,
    /// Some of them, each at its place; 0 where there is none. A loop that copies has a few call sites, which take turns.
    quick: [u64; QUICK],
}

/// The place of a call site among the quick ones.
#[inline(always)]
fn place(site: u64) -> usize {
    (site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - QUICK.ilog2())) as usize
}

impl ModuleLookup {
    /// For a process; `process` is how `/proc` names it, if it can be looked at.
    pub fn new(process: Option<String>) -> Self {
        Self { process, looked: 0, has_new: false, sites: BTreeSet::new(), quick: [0; QUICK] }
    }

    /// Looks up where calls come from that are about to be written, and adds it to `modules`. Returns these as a block's
    /// payload, if there are new ones that were not [written](Self::written).
    pub fn look_up(&mut self, slots: &[Words], modules: &mut Modules) -> Option<Vec<u8>> {
        let mut last = 0;
        let is_call = |head: Head| matches!(head.layout(), Layout::Linear | Layout::Fill | Layout::Long);
        for slot in slots {
            let site = slot[3];
            if site == last || !is_call(Head(slot[0])) {
                continue;
            }
            last = site;
            if self.quick[place(site)] != site {
                self.look_up_site(site, modules);
            }
        }
        self.has_new.then(|| modules.to_bytes())
    }

    /// Looks a call site up that is not among the quick ones.
    #[inline(never)]
    fn look_up_site(&mut self, site: u64, modules: &mut Modules) {
        if !self.sites.contains(&site) {
            if !self.is_known(site, modules) {
                return;
            }
            // To look one up again is better than to remember them all.
            if self.sites.len() >= MOST_SITES {
                self.sites.clear();
                self.quick = [0; QUICK];
            }
            self.sites.insert(site);
        }
        self.quick[place(site)] = site;
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
