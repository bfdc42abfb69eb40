//! Annotations that programs make (marks, scopes, names), as lines between their calls.

use crate::output::escape;
use crate::output::time::moment;
use aclshim_collect::interpreter::visitor::AnnotationView;
use aclshim_trace::record::annotation::{Annotation, NamedKind};
use serde::Serialize;

/// The JSON object of an annotation. Unlike a call it has an `event`.
#[derive(Default, Serialize)]
struct AnnotationLine<'a> {
    time_ns: Option<u64>,
    pid: u32,
    thread: u32,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
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
    let line = AnnotationLine {
        time_ns: remark.time_ns(),
        pid: remark.whose.origin.pid,
        thread: remark.whose.thread,
        ..AnnotationLine::default()
    };
    let ended;
    let line = match remark.what {
        Annotation::Mark { text } => AnnotationLine { event: "mark", text: Some(text), ..line },
        Annotation::Scope { id, parent, name } => {
            let parent = Some(*parent).filter(|parent| *parent != 0);
            AnnotationLine { event: "scope", scope: Some(name), scope_id: Some(*id), parent, ..line }
        }
        Annotation::ScopeEnd { id, failures } => {
            ended = remark.whose.labels.scope_name(*id);
            let (scope_id, failures) = (Some(*id), Some(*failures));
            AnnotationLine { event: "scope_end", scope: ended.as_deref(), scope_id, failures, ..line }
        }
        Annotation::Name { kind, begin, size, name } => {
            let (kind, bytes) = match kind {
                NamedKind::Stream => ("stream", None),
                NamedKind::Buffer => ("buffer", Some(*size)),
            };
            let (kind, address) = (Some(kind), Some(format!("{begin:#x}")));
            AnnotationLine { event: "name", kind, address, bytes, name: Some(name), ..line }
        }
    };
    serde_json::to_string(&line).unwrap_or_default()
}
