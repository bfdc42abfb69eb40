//! How a call is made in its situation, and what can be seen after it.

use super::{SIZE, Scene, made, ok};
use crate::case::{Capture, Context, Situation, Spot, Stream, Who};
use aclshim_facts::Function;
use aclshim_facts::world;

impl Scene {
    /// Plays `call` in a situation, and gives what the synchronisation of the stream said after it.
    pub fn play(
        &self,
        situation: &Situation,
        stream: Option<usize>,
        call: impl FnOnce() -> i32 + Send + 'static,
    ) -> (i32, i32) {
        if !self.is_open() {
            return (call(), 0);
        }
        let captured: Vec<(Capture, usize)> = situation
            .captures
            .iter()
            .map(|capture| (*capture, self.stream(capture.stream, situation.context)))
            .collect();
        for (capture, stream) in &captured {
            self.capturing(capture, situation.context, Step::Begin(*stream, capture.mode));
        }
        let base = if situation.context == Context::None { Context::Zero } else { situation.context };
        self.enter(base);
        self.exchange(situation.exchanged);
        let code = if situation.context == Context::None { self.bare.run(call) } else { call() };
        self.exchange(0);
        for (capture, stream) in &captured {
            self.capturing(capture, situation.context, Step::End(*stream));
        }
        self.enter(base);
        let own = stream.filter(|stream| {
            matches!(self.stream_is(*stream, situation), world::Stream::Own { .. } | world::Stream::Default)
        });
        // SAFETY: NULL or a stream of this context.
        let after = own.map_or(0, |stream| unsafe { (self.vendor.manage.aclrtSynchronizeStream)(stream) });
        self.enter(Context::Zero);
        (code, after)
    }

    fn exchange(&self, mode: i32) {
        let mut mode = mode;
        // SAFETY: a place of ours.
        ok(unsafe { (self.vendor.manage.aclmdlRICaptureThreadExchangeMode)(&mut mode) });
    }

    fn capturing(&self, capture: &Capture, from: Context, step: Step) {
        let context = if capture.stream == Stream::Foreign { from.next() } else { from };
        let (vendor, context) = (self.vendor, self.contexts[context.number()]);
        let work = move || {
            let manage = &vendor.manage;
            // SAFETY: a context and a stream that were made, and places of ours.
            unsafe {
                ok((manage.aclrtSetCurrentContext)(context));
                match step {
                    Step::Begin(stream, mode) => ok((manage.aclmdlRICaptureBegin)(stream, mode)),
                    Step::End(stream) => {
                        let model = made(|model| (manage.aclmdlRICaptureEnd)(stream, model));
                        ok((manage.aclmdlRIDestroy)(model));
                    }
                }
            }
        };
        match capture.by {
            Who::ThisThread => work(),
            Who::AnotherThread => self.other.run(work),
        }
    }

    /// A number that changes when a byte of the data changes.
    pub fn digest(&self) -> u64 {
        if !self.is_open() {
            return 0;
        }
        let mut digest = 0;
        let mut bytes = [0u64; SIZE / 8];
        for spot in [Spot::Device0, Spot::Device1, Spot::Sheet] {
            let (to, from) = (bytes.as_mut_ptr() as u64, self.address(spot) as u64);
            let size = self.reach(self.address(spot)) as u64;
            self.own_call(Function::aclrtMemcpy, &[to, SIZE as u64, from, size, 2]);
            digest = mix(digest, &bytes);
        }
        for spot in [Spot::Pageable, Spot::Edge, Spot::Pinned, Spot::Registered, Spot::Managed] {
            // SAFETY: memory of the scene, aligned, on which nothing is under way.
            digest = mix(digest, unsafe { std::slice::from_raw_parts(self.address(spot) as *const u64, SIZE / 8) });
        }
        digest
    }
}

#[derive(Clone, Copy)]
enum Step {
    Begin(usize, i32),
    End(usize),
}

fn mix(start: u64, words: &[u64]) -> u64 {
    words.iter().fold(start, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}
