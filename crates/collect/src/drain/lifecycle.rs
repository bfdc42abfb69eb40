//! What a drain says of the process itself: its beginning and its end, its product, its losses, and the pace of its clock.

use crate::drain::{Drain, Losses, bytes_of, losses, rings};
use crate::interpreter::Interpreter;
use aclshim_facts::settings::Calls;
use aclshim_trace::origin::{Origin, moment_in};
use aclshim_trace::reader::Ring;
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::kind;
use aclshim_trace::system::clock::monotonic_ns;
use std::sync::atomic::Ordering;

/// How often the pace of the ticks and the sums are written down.
const MINUTE_NS: u64 = 60_000_000_000;

impl Drain {
    /// Says that the process is here, before anything else.
    pub fn begin(&mut self, header: &Header) {
        if self.has_begun {
            return;
        }
        // The pace of the ticks follows from two moments, which must not be too close.
        let born_ns = header.born.monotonic_ns.load(Ordering::Relaxed);
        let age = self.moment(header)[2].saturating_sub(born_ns);
        if let Some(missing) = 2_000_000u64.checked_sub(age) {
            std::thread::sleep(std::time::Duration::from_nanos(missing));
        }
        self.renew(header);
        self.trace.set_header(bytes_of(header));
        let origin = &self.interpreter.origin;
        self.has_begun = self.log.started(origin, self.location.word());
        self.is_introduced = !origin.product.is_empty();
        self.learn();
    }

    /// Notes one more moment in the header, and looks what else it says by now.
    fn renew(&mut self, header: &Header) {
        if self.is_of_this_boot {
            header.later.store(self.moment(header));
        }
        self.interpreter.origin.renew(header);
    }

    /// The present moment by the clocks of the process.
    fn moment(&self, header: &Header) -> [u64; 3] {
        moment_in(header, self.is_other_time)
    }

    /// Takes over what the process has found out of its product by now.
    fn learn(&mut self) {
        let Interpreter { judge, origin, .. } = &mut self.interpreter;
        judge.learn(origin);
        self.log.settings(judge, origin);
    }

    /// What is done now and then.
    pub(super) fn housekeeping<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>) {
        let now = monotonic_ns();
        if now.saturating_sub(self.second) < 1_000_000_000 {
            return;
        }
        self.second = now;
        self.renew(header);
        self.log.troubles(header, &self.trace.take_report());
        let losses = losses(header, ring);
        self.write_losses(header, losses);
        if now.saturating_sub(self.minute) >= MINUTE_NS && self.has_begun {
            self.minute = now;
            self.calibrate(header);
            let Interpreter { totals, origin, .. } = &self.interpreter;
            self.log.statistics(totals, &origin.functions, losses);
        }
    }

    /// Writes down what was lost, so that it is known when the ring is gone.
    fn write_losses(&mut self, header: &Header, losses: Losses) {
        if losses == self.told || self.calls == Calls::Off {
            return;
        }
        let totals = [losses.not_recorded, losses.overwritten, losses.notes].map(u64::to_le_bytes);
        if self.trace.append(&self.head(kind::TOTALS, header), totals.as_flattened()).is_ok() {
            self.told = losses;
        }
    }

    fn calibrate(&mut self, header: &Header) {
        if self.calls != Calls::Off && self.is_of_this_boot {
            let _ = self.trace.append(&self.head(kind::CALIBRATION, header), &self.moment(header)[2].to_le_bytes());
        }
    }

    /// Writes the header down once more: it tells more than at the beginning.
    pub(super) fn introduce(&mut self, header: &Header) {
        // A copy: what the host changes between the sum and the writing would spoil the trace from here on.
        let bytes = bytes_of(header).to_vec();
        self.trace.set_header(&bytes);
        self.interpreter.origin = Origin::new(header);
        self.learn();
        let head = self.head(kind::HEADER, header);
        self.is_introduced = self.calls == Calls::Off || self.trace.append(&head, &bytes).is_ok();
    }

    /// Says that this was the last of a process, and why.
    pub fn stop<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>, reason: &str) {
        self.log.troubles(header, &self.trace.take_report());
        let losses = losses(header, &ring);
        self.write_losses(header, losses);
        if !self.has_begun {
            return;
        }
        self.calibrate(header);
        if self.calls != Calls::Off {
            let _ = self.trace.end(&self.head(kind::END, header));
        }
        for ring in self.interpreter.rings() {
            self.finish(ring);
        }
        let Interpreter { totals, judge, .. } = &self.interpreter;
        self.log.stopped(reason, totals, judge.totals(), losses);
        if self.is_well() {
            for control in (0..rings(header)).filter_map(ring).map(|ring| ring.control) {
                control.ended.store(control.drained.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }
}
