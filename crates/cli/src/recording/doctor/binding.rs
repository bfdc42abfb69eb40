//! Which functions each object of a program binds, by which way, and what goes past the shim.

use super::ask::LibraryAnswer;
use super::image::{Image, implements, is_below};
use super::program::DoctoredProgram;
use super::report::{DoctorReport, Sight, list};
use super::setup::is;
use aclshim_facts::settings::DEEPBIND;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of names that are shown.
const SHOWN: usize = 6;

/// Looks at all objects of a program.
pub fn look(
    report: &mut DoctorReport,
    program: &DoctoredProgram,
    shim: Option<&Image>,
    vendor: Option<&LibraryAnswer>,
) {
    let Some(main) = program.image.as_ref().filter(|_| !program.listed.found.is_empty()) else { return };
    report.group = "its calls";
    let others: Vec<Image> = program.listed.found.iter().filter_map(|(_, path)| Image::read(path).ok()).collect();
    let objects: Vec<&Image> = [main].into_iter().chain(&others).collect();
    let is_shim = |object: &Image| object.exports.contains("aclshim_harness");
    // What belongs to the vendor may do below its own interface as it likes.
    let holders = objects.iter().filter(|object| object.exports.contains("aclInit"));
    let vendors: BTreeSet<&Path> = holders.filter_map(|object| object.path.parent()).collect();
    let is_vendor = |object: &Image| {
        !std::ptr::eq(object, main)
            && object.path.parent().is_some_and(|folder| vendors.contains(folder))
            && !is_shim(object)
            && (object.exports.contains("aclInit") || object.linked().is_empty())
    };
    let hosts: Vec<&Image> = objects.iter().copied().filter(|object| !is_shim(object) && !is_vendor(object)).collect();
    for object in &objects {
        describe(report, object, is_vendor(object));
    }

    let mut sight = Sight::Unknown;
    for object in &hosts {
        let linked = object.linked();
        if !linked.is_empty() {
            sight = Sight::Yes;
            bound(report, object, &linked, &objects, shim);
        }
        let looked_up: Vec<_> = object.looked_up().into_iter().filter(|name| !linked.contains(name)).collect();
        if !looked_up.is_empty() {
            sight = Sight::Yes;
            let seen = format!("{} looks up {}: dlsym is answered by the shim", object.name(), functions(&looked_up));
            report.ok("looked-up", seen);
        }
        past(report, object, std::ptr::eq(*object, main));
    }
    if let Some(vendor) = vendor {
        lacking(report, &hosts, vendor);
    }
    let opens = opening(report, program, &hosts);
    if sight == Sight::Unknown && !opens {
        report.warning(
            "nothing",
            "nothing in it links, looks up or opens the vendor's library: there is nothing to see",
            "name the program that copies; a program that it starts inherits the preload",
        );
    }
    report.sight = Some(sight);
}

fn functions(names: &[&str]) -> String {
    let word = if names.len() == 1 { "function" } else { "functions" };
    format!("{} {word} ({})", names.len(), list(names, SHOWN))
}

fn describe(report: &mut DoctorReport, object: &Image, is_vendor: bool) {
    let below: Vec<_> = object.imports.iter().filter(|name| is_below(name)).collect();
    let has = |name: &str| object.imports.contains(name);
    let described = json!({
        "path": object.path.to_string_lossy(),
        "vendor": is_vendor,
        "links": object.linked(),
        "looks_up": object.looked_up(),
        "defines": object.defines(),
        "inside": object.inner,
        "below": below,
        "dlopen": has("dlopen"),
        "dlmopen": has("dlmopen"),
    });
    report.objects.push(described);
}

/// Reports which library gets the calls that an object links.
fn bound(report: &mut DoctorReport, object: &Image, linked: &[&str], objects: &[&Image], shim: Option<&Image>) {
    let first = |name: &&&str| objects.iter().find(|other| other.exports.contains(**name));
    let to_shim = |name: &&&str| first(name).is_some_and(|other| other.exports.contains("aclshim_harness"));
    let (ours, others): (Vec<&str>, Vec<&str>) = linked.iter().partition(|name| to_shim(name));
    if !ours.is_empty() {
        report.ok("linked", format!("{} links {}: bound to the shim", object.name(), functions(&ours)));
    }
    let holders: BTreeSet<String> =
        others.iter().filter_map(|name| first(&name)).map(|other| other.path.display().to_string()).collect();
    if shim.is_some() && !holders.is_empty() {
        let seen = format!("{} links {}: bound to {}", object.name(), functions(&others), list(holders, 3));
        let remedy = "that one comes before the shim in the loader's order: take it out, or see that it forwards to the next in line";
        report.warning("linked-elsewhere", seen, remedy);
    }
}

/// What goes past the shim in one object.
fn past(report: &mut DoctorReport, object: &Image, is_main: bool) {
    let name = object.name();
    let inner: Vec<&str> = object.inner.iter().map(String::as_str).collect();
    if !inner.is_empty() {
        let seen = format!("{name} has {} inside: its calls of these are not seen", functions(&inner));
        report.problem("inside", seen, "link it to libascendcl.so instead of a static copy (-lascendcl, no .a)");
    }
    let defines = object.defines();
    if is_main && !defines.is_empty() {
        let seen = format!("{name} itself has {}: the loader takes these before any preload", functions(&defines));
        report.problem("own", seen, "do not define the vendor's functions in the program");
    } else if object.is_symbolic && !defines.is_empty() {
        let seen = format!(
            "{name} has {} and was linked with -Bsymbolic: its own calls of these are not seen",
            functions(&defines)
        );
        report.warning("symbolic", seen, "link it without -Bsymbolic");
    }
    let below = object.imports.iter().map(String::as_str).filter(|import| is_below(import));
    let (internal, below): (Vec<&str>, Vec<&str>) = below.partition(|import| implements(import).is_some());
    if !below.is_empty() {
        let seen = format!("{name} copies below this interface ({}): these copies are not seen", list(below, SHOWN));
        report.warning("below", seen, "nothing can be done; the vendor's profiler (msprof) shows them");
    }
    if !internal.is_empty() {
        let public = list(internal.iter().filter_map(|import| implements(import)), SHOWN);
        let seen = format!(
            "{name} calls internal functions of the vendor's library ({}): these copies are not seen",
            list(&internal, SHOWN)
        );
        report.warning("below", seen, format!("call {public} instead"));
    }
    if object.imports.contains("dlmopen") {
        let seen = format!("{name} uses dlmopen: objects in another namespace bind past the shim");
        report.warning("namespace", seen, "open the libraries that copy with dlopen");
    }
}

/// Functions that a program needs and the library does not have.
fn lacking(report: &mut DoctorReport, hosts: &[&Image], vendor: &LibraryAnswer) {
    for object in hosts {
        let linked = object.linked();
        let lacking: Vec<_> = linked.into_iter().filter(|name| vendor.lacks.iter().any(|it| it == name)).collect();
        if !lacking.is_empty() {
            let seen =
                format!("{} links {}, which this CANN lacks: they answer 207000", object.name(), functions(&lacking));
            report.warning("lacking", seen, "without the shim the program may not start at all here: update CANN");
        }
    }
}

/// Objects that open others while they run; whether there are any.
fn opening(report: &mut DoctorReport, program: &DoctoredProgram, hosts: &[&Image]) -> bool {
    if program.is_shell {
        let remedy = "children inherit the preload; ask about the program that copies, or use --run";
        report.warning("shell", "a script of a shell: what it starts is not known", remedy);
        return true;
    }
    let opening: Vec<_> = hosts.iter().filter(|object| object.imports.contains("dlopen")).collect();
    if opening.is_empty() {
        return false;
    }
    let names = list(opening.iter().map(|object| object.name()), 3);
    if is(&DEEPBIND, "off") {
        let seen = format!(
            "libraries are opened at run time (by {names}), and ACLSHIM_DEEPBIND=off: what is opened with RTLD_DEEPBIND binds past the shim"
        );
        report.warning("opens", seen, "unset ACLSHIM_DEEPBIND");
    } else {
        let seen = format!(
            "libraries are opened at run time (by {names}): what they copy is seen too, RTLD_DEEPBIND or not; which they are, only --run tells"
        );
        report.ok("opens", seen);
    }
    true
}
