//! Annotations that programs make (marks, scopes, names), as lines between their calls.

use crate::output::escape;
use crate::output::time::moment;
use aclshim_collect::interpreter::visitor::AnnotationView;
use aclshim_trace::record::annotation::{Annotation, NamedKind};
use serde::Serialize;
use std::borrow::Cow;

/// The JSON object of an annotation. Unlike a call it has an `event`.
#[derive(Serialize)]
struct AnnotationLine<'a> {
    time_ns: Option<u64>,
    pid: u32,
    thread: u32,
    #[serde(flatten)]
    event: AnnotationEvent<'a>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AnnotationEvent<'a> {
    Mark {
        text: &'a str,
    },
    Scope {
        scope: &'a str,
        scope_id: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<u32>,
    },
    ScopeEnd {
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<Cow<'a, str>>,
        scope_id: u32,
        failures: u64,
    },
    Name {
        kind: &'static str,
        address: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        name: &'a str,
    },
}

/// An annotation as a line of text.
pub fn as_text(remark: &AnnotationView<'_>) -> String {
    let time = remark.time_ns().map_or_else(|| "-".into(), moment);
    let (pid, thread) = (remark.whose.origin.pid, remark.whose.thread);
    let what = match remark.what {
        Annotation::Mark { text } => format!("mark: {}", escape::line(text)),
        Annotation::Scope { name, .. } => format!("scope \"{}\" begins", escape::line(name)),
        Annotation::ScopeEnd { id, failures } => {
            let name = remark.whose.labels.scope_name(*id).unwrap_or_default();
            match failures {
                0 => format!("scope \"{}\" ends", escape::line(&name)),
                1 => format!("scope \"{}\" ends, 1 expectation has failed", escape::line(&name)),
                failures => format!("scope \"{}\" ends, {failures} expectations have failed", escape::line(&name)),
            }
        }
        Annotation::Name { kind, begin, size, name } => {
            let what = match kind {
                NamedKind::Stream => format!("stream {begin:#x}"),
                NamedKind::Buffer => format!("buffer {begin:#x} of {size} bytes"),
            };
            match name.as_str() {
                "" => format!("{what} has no name any more"),
                name => format!("{what} is called \"{}\"", escape::line(name)),
            }
        }
    };
    format!("{time} {pid}/{thread} -- {what}")
}

/// An annotation as a line of JSON.
pub fn as_json(remark: &AnnotationView<'_>) -> String {
    let event = match remark.what {
        Annotation::Mark { text } => AnnotationEvent::Mark { text },
        Annotation::Scope { id, parent, name } => {
            AnnotationEvent::Scope { scope: name, scope_id: *id, parent: Some(*parent).filter(|parent| *parent != 0) }
        }
        Annotation::ScopeEnd { id, failures } => {
            let scope = remark.whose.labels.scope_name(*id);
            AnnotationEvent::ScopeEnd { scope, scope_id: *id, failures: *failures }
        }
        Annotation::Name { kind, begin, size, name } => {
            let (kind, bytes) = match kind {
                NamedKind::Stream => ("stream", None),
                NamedKind::Buffer => ("buffer", Some(*size)),
            };
            AnnotationEvent::Name { kind, address: format!("{begin:#x}"), bytes, name }
        }
    };
    let (pid, thread) = (remark.whose.origin.pid, remark.whose.thread);
    serde_json::to_string(&AnnotationLine { time_ns: remark.time_ns(), pid, thread, event }).unwrap_or_default()
}
