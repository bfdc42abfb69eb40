//! Calls of the common kind, once they have been [looked at](crate::findings::quick_check): added up and shown.

use crate::findings::quick_check::{self, QuickCheck, has_failed};
use crate::interpreter::totals::Totals;
use crate::interpreter::visitor::{CallView, CallVisitor, CommonCallView, ProcessView};
use aclshim_facts::Function;
use aclshim_trace::record::slot::{Head, Words};
use aclshim_trace::record::{Call, one_slot};

/// What is known of them all.
pub struct CommonCalls<'a> {
    /// The look that they were found by.
    pub quick_check: &'a QuickCheck,
    /// Where they were made.
    pub whose: ProcessView<'a>,
}

impl CommonCalls<'_> {
    /// Adds up and shows a [run](crate::findings::quick_check::Run); `first` is the number of its first slot.
    #[inline]
    pub fn show<W: CallVisitor + ?Sized>(&self, first: u64, slots: &[Words], totals: &mut Totals, watch: &mut W) {
        let (whose, clock) = (self.whose, self.whose.clock().copied());
        let functions = self.quick_check.functions();
        let mut wants_plain = watch.wants_plain(&whose);
        for (at, slot) in slots.iter().enumerate() {
            if !wants_plain && !has_failed(slot) {
                totals.common(slot, clock.map(|clock| clock.short_span_ns(slot[2] as u32)));
                continue;
            }
            let Some(function) = quick_check::function(functions, slot) else { continue };
            let number = first.saturating_add(at as u64);
            if has_failed(slot) {
                self.show_failed(function, numbered(slot, number), totals, watch);
            } else {
                let duration_ns = clock.map(|clock| clock.short_span_ns(slot[2] as u32));
                totals.common(slot, duration_ns);
                let rules = self.quick_check.misaligned(slot);
                watch.plain(&CommonCallView { whose, function, number, slot, rules, duration_ns });
            }
            wants_plain = watch.wants_plain(&whose);
        }
    }

    /// Looks at calls and adds them up in one go, as far as they are of the simplest kind and not the first of their class;
    /// returns how many that were. For a visitor that does not want to see them.
    #[inline]
    pub fn add_simplest(&self, slots: &[Words], totals: &mut Totals) -> usize {
        let clock = self.whose.clock().copied();
        let (classes, sums) = totals.by_class();
        let known = sums.len();
        let class = |head| Some(classes.of(head)).filter(|class| *class < known);
        let add = |class: usize, slot: &Words| {
            if let Some(sums) = sums.get_mut(class) {
                sums.add_common(slot, clock.map(|clock| clock.short_span_ns(slot[2] as u32)));
            }
        };
        self.quick_check.simplest(slots, class, add)
    }

    #[inline(never)]
    fn show_failed<W: CallVisitor + ?Sized>(&self, function: Function, call: Call, totals: &mut Totals, watch: &mut W) {
        totals.begun(Some(function), &call);
        totals.ended(Some(function), &call, self.whose.clock());
        let view = CallView { whose: self.whose, function, call: &call, rules: 0, is_left: false };
        watch.begun(&view);
        watch.returned(&view);
        watch.call(&view);
    }
}

/// The call in a slot of its own, whose number is near that one.
pub fn numbered(slot: &Words, near: u64) -> Call {
    one_slot(slot, Head(slot[0]).number(near))
}
