//! The `tracing` subscriber: makes a JSON line of each event.
//!
//! It is one value without state, set as the default of our own copy of `tracing`; a host that uses `tracing` has another copy.
//! Not under a scoped dispatcher: that has a destructor for each thread, which libc registers with memory of the host's heap and
//! under the loader's lock. The drain would wait there for a host that copies while it opens a library.
//! Which line an event goes to is a pointer of the thread, set only while an event is emitted: no other thread can reach it,
//! and a child made by `fork` has none.

use crate::json::{Line, Value};
use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tracing::dispatcher::{self, Dispatch};
use tracing::field::{Field, FieldSet, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    /// The line that the event of this thread goes to. Without a destructor, as above.
    static LINE: Cell<*mut Line> = const { Cell::new(ptr::null_mut()) };
}

/// Whether the subscriber is set: 0 no, [`READY`] yes, else the process that is about to set it.
static STATE: AtomicU32 = AtomicU32::new(0);
const READY: u32 = u32::MAX;

/// Makes lines of events, where a line is wanted.
struct JsonSubscriber;

/// Sets the subscriber for this process and the children it will fork. Whether it is set.
///
/// Setting it takes a lock inside `tracing`, and this is the only place that does. A child that
/// was forked while another thread was here can never take it, so it does not try: it has no log,
/// and says so. Called once before there are threads, as from a library's constructor, this
/// cannot happen.
pub fn install() -> bool {
    let me = std::process::id();
    // Another thread of this process needs microseconds; the bound is for a copy of it that was
    // given the same number in another namespace.
    for _ in 0..1000 {
        match STATE.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // Refused if another one is set; then our events make no lines, and the log says so.
                let _ = dispatcher::set_global_default(Dispatch::new(JsonSubscriber));
                STATE.store(READY, Ordering::Release);
                return true;
            }
            Err(READY) => return true,
            Err(busy) if busy == me => std::thread::sleep(Duration::from_micros(100)),
            Err(_) => return false,
        }
    }
    false
}

/// Makes `line` of the event that `emit` emits, and gives it back; `None` if there is no subscriber.
pub(crate) fn capture(mut line: Box<Line>, emit: &dyn Fn()) -> Option<Box<Line>> {
    /// Resets the pointer, also when a panic passes.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            LINE.set(ptr::null_mut());
        }
    }
    if !install() {
        return None;
    }
    let reset = Reset;
    LINE.set(&raw mut *line);
    emit();
    drop(reset);
    Some(line)
}

impl Subscriber for JsonSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn event(&self, event: &Event<'_>) {
        // Taken while in use: a value that emits an event while it is shown finds none.
        let line = LINE.replace(ptr::null_mut());
        // SAFETY: NULL, or set by `capture` on this thread to a line that it owns until the pointer is reset and does not use
        // meanwhile.
        let Some(line) = (unsafe { line.as_mut() }) else { return };
        let metadata = event.metadata();
        line.level(match *metadata.level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            _ => "info",
        });
        let mut fields = Fields { line, all: metadata.fields(), next: 0 };
        event.record(&mut fields);
        fields.skip_to(usize::MAX);
        fields.line.finish();
    }

    // Spans are not used.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Writes the fields of an event. One without a value is not visited, and is null.
struct Fields<'a> {
    line: &'a mut Line,
    all: &'a FieldSet,
    next: usize,
}

impl Fields<'_> {
    fn skip_to(&mut self, index: usize) {
        let skipped = self.all.iter().skip(self.next).take(index.saturating_sub(self.next));
        skipped.for_each(|field| self.line.field(field.name(), Value::Null));
    }

    fn put(&mut self, field: &Field, value: Value<'_>) {
        self.skip_to(field.index());
        self.line.field(field.name(), value);
        self.next = field.index() + 1;
    }
}

impl Visit for Fields<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::Number(format_args!("{value}")));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::Number(format_args!("{value}")));
    }
    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field, Value::Number(format_args!("{value}")));
    }
    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put(field, Value::Number(format_args!("{value}")));
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::Float(value));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::Bool(value));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::Text(format_args!("{value}")));
    }
    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.put(field, Value::Bytes(value));
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::Text(format_args!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(emit: &dyn Fn()) -> Option<String> {
        let mut line = Box::new(Line::default());
        line.begin(1, 2);
        capture(line, emit)?.text().map(String::from)
    }

    #[test]
    fn values_of_all_types_stand_in_the_order_of_the_fields() {
        let text = text(&|| {
            tracing::event!(
                Level::WARN,
                event = "sample",
                a = -1i64,
                none = None::<u64>,
                b = u128::MAX,
                bytes = &b"\xffx"[..],
                float = 0.5,
                shown = %format_args!("{}\n", "<>"),
                debug = ?Some("q"),
                last = tracing::field::Empty,
                "said {}",
                1
            );
        });
        let expected = r#"{"time_ns":1,"pid":2,"level":"warn","event":"sample","a":-1,"none":null,"b":MAX,"bytes":"?x","float":0.5,"shown":"<>\n","debug":"Some(\"q\")","last":null,"message":"said 1"}"#;
        let expected = expected.replace("MAX", &u128::MAX.to_string()).replace('?', "\u{fffd}") + "\n";
        assert_eq!(text, Some(expected));
    }

    #[test]
    fn an_event_that_nobody_waits_for_goes_nowhere() {
        assert!(install());
        tracing::event!(Level::ERROR, event = "stray");
        assert_eq!(text(&|| ()), None);
    }

    #[test]
    fn a_value_that_logs_while_it_is_shown_does_no_harm() {
        struct Chatty;
        impl fmt::Display for Chatty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                tracing::event!(Level::INFO, event = "inner");
                f.write_str("shown")
            }
        }
        let text = text(&|| tracing::event!(Level::INFO, event = "outer", value = %Chatty));
        assert_eq!(
            text.unwrap(),
            "{\"time_ns\":1,\"pid\":2,\"level\":\"info\",\"event\":\"outer\",\"value\":\"shown\"}\n"
        );
    }
}
