//! Calls of the common kind, once they have been [looked at](crate::glance): added up and shown.

use crate::account::Account;
use crate::glance::{self, Glance, has_failed};
use crate::seen::{Plain, Seen, Watch, Whose};
use aclshim_facts::Function;
use aclshim_trace::record::slot::{Head, Words};
use aclshim_trace::record::{Call, one_slot};

/// What is known of them all.
pub struct Common<'a> {
    /// The functions by the header's numbers.
    pub functions: &'a [Option<Function>],
    /// The look that they were found by.
    pub glance: &'a Glance,
    /// Where they were made.
    pub whose: Whose<'a>,
}

impl Common<'_> {
    /// Adds up and shows a [run](crate::glance::Run); `first` is the number of its first slot.
    #[inline]
    pub fn show<W: Watch + ?Sized>(&self, first: u64, slots: &[Words], account: &mut Account, watch: &mut W) {
        let (whose, clock) = (self.whose, self.whose.clock().copied());
        for (at, slot) in slots.iter().enumerate() {
            let Some(function) = glance::function(self.functions, slot) else { continue };
            let number = first.saturating_add(at as u64);
            if has_failed(slot) {
                self.show_failed(function, numbered(slot, number), account, watch);
                continue;
            }
            let duration_ns = clock.map(|clock| clock.short_span_ns(slot[2] as u32));
            account.common(slot, duration_ns);
            let rules = self.glance.askew(function, slot);
            watch.plain(&Plain { whose, function, number, slot, rules, duration_ns });
        }
    }

    #[inline(never)]
    fn show_failed<W: Watch + ?Sized>(&self, function: Function, call: Call, account: &mut Account, watch: &mut W) {
        account.begun(Some(function), &call);
        account.ended(Some(function), &call, self.whose.clock());
        let view = Seen { whose: self.whose, function, call: &call, rules: 0, is_left: false };
        watch.begun(&view);
        watch.returned(&view);
        watch.call(&view);
    }
}

/// The call in a slot of its own, whose number is near that one.
pub fn numbered(slot: &Words, near: u64) -> Call {
    one_slot(slot, Head(slot[0]).number(near))
}
