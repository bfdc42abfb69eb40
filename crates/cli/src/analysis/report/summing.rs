//! From what was gathered to what the page shows.

use super::aggregate::{Aggregate, ProgramNote, SiteSums, duration_span};
use super::event::TransferKind;
use super::findings::{codes, failures, rules};
use super::model::*;
use super::sample::SampledCall;
use super::timeline::{Track, TrackKey};
use aclshim_collect::findings::rule_bits::rule_ids;
use aclshim_collect::interpreter::totals::Sums;
use aclshim_collect::trace_set::{FileError, Process, TraceSet};
use aclshim_facts::rule::Severity;
use aclshim_facts::world::RunMode;
use aclshim_facts::{FUNCTIONS, Function};
use std::collections::BTreeMap;

/// Maximum number of processes that are listed.
const PROCESSES: usize = 200;
/// Maximum number of slowest calls that are listed.
const SLOWEST: usize = 25;

/// Names a call site: its process by number, and the address.
pub type SiteNamer<'a> = dyn FnMut(usize, u64) -> String + 'a;

/// Everything, in the page's words.
pub fn model(mut aggregate: Aggregate, set: &TraceSet, sources: Vec<String>, name: &mut SiteNamer) -> PageModel {
    let processes: Vec<&Process> = set.processes().collect();
    let (begin, end) = aggregate.timeline.span.unwrap_or_default();
    let is_complete = aggregate.sampler.is_complete();
    let sampled = std::mem::take(&mut aggregate.sampler).finish();
    let functions = functions(&processes, &aggregate);
    let position: BTreeMap<&str, usize> =
        functions.iter().enumerate().map(|(at, row)| (row.name.as_str(), at)).collect();
    let function = |function: Function| position.get(function.row().name).copied().unwrap_or(0);
    let mut names = BTreeMap::new();
    let mut site_name =
        |process: usize, site: u64| names.entry((process, site)).or_insert_with(|| name(process, site)).clone();
    let scope = |process: usize, id: u32| {
        let labels = processes.get(process).map(|process| &process.labels);
        labels.and_then(|labels| labels.scope_name(id)).unwrap_or_default().into_owned()
    };
    let calls = calls(&sampled, begin, &function, &mut site_name, &scope);
    let rules = rules(&processes, &aggregate, &sampled, begin, &mut site_name);
    let failures = failures(&aggregate, &sampled);
    let mut totals = PageTotals { untimed: aggregate.untimed, ..PageTotals::default() };
    let rows: Vec<ProcessRow> =
        processes.iter().enumerate().map(|(at, process)| process_row(process, aggregate.spans.get(&at))).collect();
    rows.iter().for_each(|row| totals.add(&row.totals));
    for rule in &rules {
        totals.findings[rank(rule.severity)] += rule.count;
    }
    let (sites, more_sites) = sites(&aggregate, &mut site_name);
    let width_ns = aggregate.timeline.width_ns();
    let mut gaps = std::mem::take(&mut aggregate.gaps);
    for gap in &mut gaps {
        (gap.from, gap.to) = (gap.from.wrapping_sub(begin as i64), gap.to.wrapping_sub(begin as i64));
    }
    let more_said = aggregate.more_notes;
    let said = aggregate.notes.iter().map(|note| note_row(note, begin, &processes)).collect();
    PageModel {
        version: env!("CARGO_PKG_VERSION"),
        sources,
        begin_ns: aggregate.timeline.span.map(|_| begin.to_string()),
        span_ns: end - begin,
        losses: losses(&processes, set),
        notes: notes(&processes),
        more_processes: rows.len().saturating_sub(PROCESSES),
        processes: rows.into_iter().take(PROCESSES).collect(),
        directions: TransferKind::ALL.map(TransferKind::name).to_vec(),
        timeline: TimelineRows {
            width_ns,
            origin_ns: -((begin % width_ns) as i64),
            tracks: aggregate
                .timeline
                .finish()
                .iter()
                .map(|track| track_row(track, begin / width_ns, &function, &processes))
                .collect(),
            gaps,
            said,
            more_said,
        },
        slowest: slowest(&sampled),
        codes: codes(&sampled, &rules, &failures),
        totals,
        functions,
        calls,
        is_complete,
        sites,
        more_sites,
        rules,
        failures,
    }
}

impl PageTotals {
    fn add(&mut self, other: &PageTotals) {
        self.calls += other.calls;
        self.nested += other.nested;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.errors += other.errors;
        self.in_flight += other.in_flight;
    }
}

fn process_row(process: &Process, span: Option<&(u64, u64)>) -> ProcessRow {
    let origin = &process.origin;
    let mut totals = PageTotals::default();
    for (_, sums) in process.functions() {
        totals.calls += sums.calls;
        totals.nested += sums.nested;
        totals.bytes = totals.bytes.saturating_add(sums.bytes);
        totals.errors += sums.errors;
        totals.in_flight += sums.in_flight;
    }
    for total in process.judge.totals().values() {
        let worst = total.worst.unwrap_or(Severity::Portability);
        totals.findings[rank(worst.name())] += total.found;
    }
    ProcessRow {
        executable: lossy(&origin.executable),
        name: file_name(&origin.executable),
        host: origin.host.clone(),
        pid: origin.pid,
        rank: origin.rank.clone(),
        product: origin.product.clone(),
        cann: origin.cann.clone(),
        form: match origin.form {
            Some(RunMode::EndPoint) => "host (EP)",
            Some(RunMode::RootComplex) => "device (RC)",
            None => "not known",
        },
        library: lossy(&origin.library),
        build_id: origin.build_id.clone(),
        settings: origin.settings.lines().map(str::to_owned).collect(),
        span_ns: span.map(|(begin, end)| [begin.to_string(), end.to_string()]),
        totals,
    }
}

/// What is missing, process by process and file by file.
fn losses(processes: &[&Process], set: &TraceSet) -> Vec<Loss> {
    let mut losses = Vec::new();
    for process in processes {
        let of = format!("{}, process {}", file_name(&process.origin.executable), process.origin.pid);
        let has = |setting: &str| process.origin.settings.lines().any(|line| line == setting);
        let mut add = |count: u64, [one, more]: [&str; 2], remedy: &str| {
            if count > 0 {
                let what = if count == 1 { one } else { more }.into();
                losses.push(Loss { count, what, remedy: remedy.into(), of: of.clone() });
            }
        };
        add(
            process.not_recorded,
            ["call was made and not recorded.", "calls were made and not recorded."],
            if has("ACLSHIM_RECORD=lossless") {
                "There was no room for them, and waiting did not help. A larger ACLSHIM_RING_SIZE keeps more of them."
            } else {
                "There was no room for them. A larger ACLSHIM_RING_SIZE, or ACLSHIM_RECORD=lossless, keeps them."
            },
        );
        add(
            process.notes_lost,
            [
                "mark, scope or name of the program was not recorded.",
                "marks, scopes or names of the program were not recorded.",
            ],
            "There was no room for them. A larger ACLSHIM_RING_SIZE, or ACLSHIM_RECORD=lossless, keeps them.",
        );
        add(
            process.overwritten(),
            ["slot of records was overwritten by newer ones.", "slots of records were overwritten by newer ones."],
            if has("ACLSHIM_RECORD=flight") {
                "Only the newest calls are here, as ACLSHIM_RECORD=flight asks for. A larger ACLSHIM_RING_SIZE keeps more \
                 of them."
            } else {
                "They could not be written in time. A larger ACLSHIM_RING_SIZE keeps them."
            },
        );
        add(
            process.evicted,
            ["call was removed with old files.", "calls were removed with old files."],
            "The directory had reached ACLSHIM_BUDGET. A larger one keeps them.",
        );
        add(
            process.write_failures,
            ["write to the directory failed.", "writes to the directory failed."],
            "Look for write_failed in the log (*.jsonl): it says why.",
        );
    }
    for FileError { path, cause } in &set.troubles {
        losses.push(Loss {
            count: 0,
            what: format!("{} could not be read in full.", file_name(path)),
            remedy: format!("{cause}."),
            of: lossy(path),
        });
    }
    losses
}

/// Further notes for the top of the page.
fn notes(processes: &[&Process]) -> Vec<String> {
    let open = |process: &&&Process| process.functions().any(|(_, sums)| sums.in_flight > 0);
    let unfinished = processes.iter().filter(open).map(|process| {
        let of = process.functions().filter(|(_, sums)| sums.in_flight > 0);
        let calls: Vec<String> = of.map(|(name, sums)| format!("{} x {name}", sums.in_flight)).collect();
        let origin = &process.origin;
        format!(
            "{}, process {}, had not returned from {} when the recording ends: it was killed or crashed there, or still runs.",
            file_name(&origin.executable),
            origin.pid,
            calls.join(", ")
        )
    });
    unfinished.take(PROCESSES).collect()
}

fn functions(processes: &[&Process], aggregate: &Aggregate) -> Vec<FunctionRow> {
    let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
    for (name, of) in processes.iter().flat_map(|process| process.functions()) {
        sums.entry(name).or_default().merge(of);
    }
    let called = sums.into_iter().filter(|(_, sums)| sums.calls + sums.nested > 0);
    called
        .map(|(name, sums)| {
            let function = Function::by_name(name);
            let distribution =
                function.and_then(|function| aggregate.distributions.get(&function)).cloned().unwrap_or_default();
            let filled = |counts: &[u64]| -> Vec<(usize, u64)> {
                counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
            };
            FunctionRow {
                name: name.to_owned(),
                summary: function.map_or("", |function| function.row().summary),
                calls: sums.calls,
                bytes: sums.bytes,
                errors: sums.errors,
                p50_ns: sums.durations.percentile(50),
                p99_ns: sums.durations.percentile(99),
                max_ns: distribution.longest_ns,
                sizes: filled(&distribution.sizes).into_iter().map(|(bucket, count)| (bucket as u64, count)).collect(),
                durations: filled(&distribution.durations)
                    .into_iter()
                    .map(|(bucket, count)| {
                        let (from, to) = duration_span(bucket);
                        (from, to, count)
                    })
                    .collect(),
            }
        })
        .collect()
}

fn track_row(track: &Track, first: u64, function: &dyn Fn(Function) -> usize, processes: &[&Process]) -> TrackRow {
    let named = |process: usize, stream: u64| processes.get(process)?.labels.latest_stream(stream);
    let (kind, process, name) = match track.key {
        TrackKey::Thread(process, 0) => ("thread", Some(process), "a thread whose id is not known".into()),
        TrackKey::Thread(process, thread) => ("thread", Some(process), format!("thread {thread}")),
        TrackKey::OtherThreads => ("thread", None, "all other threads".into()),
        TrackKey::Stream(process, 0) => ("stream", Some(process), "default stream".into()),
        TrackKey::Stream(process, stream) => match named(process, stream) {
            Some(name) => ("stream", Some(process), format!("{name} (stream {stream:#x})")),
            None => ("stream", Some(process), format!("stream {stream:#x}")),
        },
        TrackKey::OtherStreams => ("stream", None, "all other streams".into()),
        TrackKey::TransferKind(direction) => ("direction", None, direction.name().into()),
    };
    let mut bins = BinColumns::default();
    let mut last = first;
    for (at, bin) in track.bins() {
        bins.step.push(at - last);
        last = at;
        bins.calls.push(bin.calls);
        bins.busy.push(bin.busy_ns);
        bins.bytes.push(bin.bytes);
        bins.errors.push(bin.errors);
        bins.findings.push(bin.findings);
        bins.longest.push(bin.longest_ns);
        bins.direction.push(bin.of.0);
        bins.function.push(Function::ALL.get(usize::from(bin.of.1)).map_or(0, |of| function(*of)));
    }
    TrackRow {
        kind,
        name,
        process,
        direction: match track.key {
            TrackKey::TransferKind(direction) => Some(direction as u8),
            _ => None,
        },
        total: track.total,
        bins,
    }
}

fn note_row(note: &ProgramNote, begin: u64, processes: &[&Process]) -> ProgramNoteRow {
    let at = |time: u64| time.wrapping_sub(begin) as i64;
    let row = ProgramNoteRow {
        track: note.track,
        at: at(note.time_ns),
        to: None,
        kind: "mark",
        text: String::new(),
        failures: 0,
    };
    match &note.what {
        Ok(text) => ProgramNoteRow { text: text.clone(), ..row },
        Err(id) => {
            let process = processes.get(note.process);
            let scope = process.and_then(|process| process.labels.scope(*id));
            let end = scope.and_then(|scope| scope.end);
            let clock = process.and_then(|process| process.origin.calibration.as_ref());
            ProgramNoteRow {
                kind: "scope",
                text: scope.map_or_else(|| format!("#{id}"), |scope| scope.name.to_string()),
                to: end.and_then(|(ticks, _)| Some(at(clock?.at_ns(ticks)))),
                failures: end.map_or(0, |(_, failures)| failures),
                ..row
            }
        }
    }
}

fn calls(
    sampled: &[SampledCall],
    begin: u64,
    function: &dyn Fn(Function) -> usize,
    site_name: &mut dyn FnMut(usize, u64) -> String,
    scope: &dyn Fn(usize, u32) -> String,
) -> CallColumns {
    let mut calls = CallColumns { rule_sets: vec![Vec::new()], scopes: vec![String::new()], ..CallColumns::default() };
    let mut scopes = BTreeMap::new();
    let mut sets = BTreeMap::from([(0, 0)]);
    let mut places = BTreeMap::new();
    for SampledCall { call, thread, stream } in sampled {
        calls.time.push(call.time_ns.map(|time| time.wrapping_sub(begin) as i64));
        calls.duration.push(call.duration_ns);
        calls.function.push(function(call.function));
        calls.direction.push(call.direction as u8);
        calls.bytes.push(call.bytes);
        calls.code.push(call.code);
        calls.rules.push(*sets.entry(call.rules).or_insert_with(|| {
            calls.rule_sets.push(rule_ids(call.rules).collect());
            calls.rule_sets.len() - 1
        }));
        calls.site.push(*places.entry((call.process, call.site)).or_insert_with(|| {
            calls.places.push(site_name(call.process, call.site));
            calls.places.len() - 1
        }));
        calls.thread.push(*thread);
        calls.stream.push(*stream);
        calls.number.push(call.number);
        calls.scope.push(match call.scope {
            0 => 0,
            id => *scopes.entry((call.process, id)).or_insert_with(|| {
                calls.scopes.push(scope(call.process, id));
                calls.scopes.len() - 1
            }),
        });
        let flags = [call.is_nested, call.is_refused, call.is_injected];
        calls.flags.push(flags.iter().enumerate().map(|(bit, is)| u8::from(*is) << bit).sum());
    }
    calls
}

fn slowest(sampled: &[SampledCall]) -> Vec<usize> {
    let mut slowest: Vec<usize> = (0..sampled.len())
        .filter(|at| sampled[*at].call.duration_ns.is_some() && !sampled[*at].call.is_nested)
        .collect();
    slowest.sort_by_key(|at| std::cmp::Reverse(sampled[*at].call.duration_ns));
    slowest.truncate(SLOWEST);
    slowest
}

/// The call sites with the most time in calls. Those of several processes that have one name are added up.
fn sites(aggregate: &Aggregate, site_name: &mut dyn FnMut(usize, u64) -> String) -> (Vec<SiteRow>, usize) {
    let mut busiest: Vec<_> = aggregate.sites.map.iter().collect();
    busiest.sort_by_key(|(_, sums)| std::cmp::Reverse((sums.busy_ns, sums.calls)));
    // Names cost time: only those are asked for that may be shown.
    let rest = busiest.split_off(busiest.len().min(SITES * 10));
    let mut named: BTreeMap<String, SiteSums> = BTreeMap::new();
    for ((process, site), sums) in busiest {
        named.entry(site_name(*process, *site)).or_default().add(sums);
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by_key(|(_, sums)| std::cmp::Reverse((sums.busy_ns, sums.calls)));
    let more = rest.len() + named.len().saturating_sub(SITES);
    let row = |(place, sums): (String, SiteSums)| SiteRow {
        place,
        functions: FUNCTIONS
            .iter()
            .enumerate()
            .filter(|(number, _)| sums.functions >> number & 1 == 1)
            .map(|(_, row)| row.name)
            .collect(),
        sums,
    };
    (named.into_iter().take(SITES).map(row).collect(), more)
}
