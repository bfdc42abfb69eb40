//! The shim itself, what is preloaded already, and the settings.

use super::image::{HERE, Image, machine_name, release};
use super::loader;
use super::report::{DoctorReport, list};
use crate::recording::dropin::find_shim;
use aclshim_collect::findings::mute::Mute;
use aclshim_facts::policy::Policy;
use aclshim_facts::product::{Product, Version};
use aclshim_facts::rules::RULES;
use aclshim_facts::settings::{self, SETTINGS, Setting, Value};
use std::ffi::CStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Looks at the shim that this command would use.
pub fn shim(report: &mut DoctorReport) -> Option<Image> {
    report.group = "the shim";
    let again = "install the command and libaclshim.so of one release together";
    let path = match find_shim() {
        Ok(path) => path,
        Err(why) => {
            report.problem("shim", format!("{why:#}"), again);
            return None;
        }
    };
    let image = match Image::read(&path) {
        Ok(image) => image,
        Err(why) => {
            report.problem("shim", format!("{}: {why:#}", path.display()), again);
            return None;
        }
    };
    let shown = path.display();
    let own = env!("CARGO_PKG_VERSION");
    match image.version.as_deref() {
        Some(version) if version == own => report.ok("shim", format!("{shown}, version {version}, as this command")),
        Some(version) => report.warning("shim", format!("{shown} is version {version}, this command is {own}"), again),
        None => report.warning("shim", format!("{shown} does not say its version; this command is {own}"), again),
    }
    if image.machine != HERE {
        let seen = format!("it is for {}, and this is {}", machine_name(image.machine), machine_name(HERE));
        report.problem("shim-loads", seen, again);
        return None;
    }
    loads(report, &image).then_some(image)
}

/// Whether the loader takes it: it is tried on a program that does nothing, this command.
fn loads(report: &mut DoctorReport, shim: &Image) -> bool {
    // SAFETY: a constant text of the library's.
    let here = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy();
    if let (Some(needed), Some(there)) = (shim.glibc, release(&here))
        && needed > there
    {
        let seen = format!("it needs glibc {}.{}, and here is {here}", needed.0, needed.1);
        report.problem("shim-loads", seen, "build it on a system as old as this one, or use a released build");
        return false;
    }
    let trial = Command::new("/proc/self/exe")
        .arg("--version")
        .env("LD_PRELOAD", &shim.path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output();
    match trial {
        Ok(output) if output.status.success() && output.stderr.is_empty() => {
            report.ok("shim-loads", format!("the loader takes it (glibc {here}, {})", machine_name(HERE)));
            true
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let remedy = "it must lie where files can be read and executed (no noexec mount), and its path must have no blank or colon";
            report.problem("shim-loads", format!("the loader does not take it: {}", said.trim()), remedy);
            false
        }
        Err(why) => {
            report.warning("shim-loads", format!("it could not be tried: {why}"), "see whether /proc is mounted");
            true
        }
    }
}

/// Looks at what is preloaded already.
pub fn preload(report: &mut DoctorReport, shim: Option<&Image>) {
    let entries: Vec<_> = loader::entries().collect();
    let mut shims = 0;
    for entry in &entries {
        let path =
            if entry.components().count() > 1 { Some(entry.clone()) } else { loader::find(&entry.to_string_lossy()) };
        let image = path.filter(|path| path.exists()).map(|path| Image::read(&path));
        let shown = entry.display();
        match image {
            None => report.warning("preload", format!("LD_PRELOAD names {shown}, which is not there"), "take it out"),
            Some(Err(why)) => report.warning("preload", format!("LD_PRELOAD names {shown}: {why:#}"), "take it out"),
            Some(Ok(image)) if image.exports.contains("aclshim_harness") => {
                shims += 1;
                let is_other = shim.is_some_and(|shim| shim.path.canonicalize().ok() != image.path.canonicalize().ok());
                match (shims, is_other) {
                    (1, false) => report.ok("preload", format!("LD_PRELOAD holds the shim: {shown}")),
                    (1, true) => report.warning(
                        "preload",
                        format!("LD_PRELOAD holds another shim than this command's: {shown}"),
                        "take it out, or use the command that belongs to it",
                    ),
                    _ => {
                        report.warning("preload", format!("{shown} is a second shim, and forwards only"), "take it out")
                    }
                }
            }
            Some(Ok(image)) if !image.defines().is_empty() => report.ok(
                "preload",
                format!("LD_PRELOAD holds {shown}, which stands in front of {} functions too", image.defines().len()),
            ),
            Some(Ok(_)) => report.ok("preload", format!("LD_PRELOAD holds {shown}")),
        }
    }
    if entries.is_empty() {
        report.ok("preload", "LD_PRELOAD is not set here; `aclshim run` sets it for the program");
    }
}

/// Looks at the settings in the environment.
pub fn settings(report: &mut DoctorReport) {
    report.group = "settings";
    let mut set = Vec::new();
    let mut is_sensible = true;
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        if !name.starts_with("ACLSHIM_") || value.is_empty() {
            continue;
        }
        let Some(setting) = SETTINGS.iter().find(|setting| setting.variable == name) else {
            if name != "ACLSHIM_CONFIG" {
                is_sensible = false;
                let nearest = SETTINGS.iter().min_by_key(|setting| strsim::osa_distance(setting.variable, &name));
                let nearest = nearest.map_or("", |setting| setting.variable);
                let remedy = format!("is {nearest} meant? All settings: aclshim config");
                report.warning("settings", format!("{name} is no setting"), remedy);
            }
            continue;
        };
        for nonsense in nonsense(setting, &value) {
            is_sensible = false;
            report.warning("settings", nonsense, format!("the default holds: {}", setting.sentence));
        }
        set.push(format!("{name}={value}"));
    }
    set.sort();
    if is_sensible {
        let seen = if set.is_empty() { "all settings have their defaults".into() } else { list(&set, usize::MAX) };
        report.ok("settings", seen);
    }
    for (setting, what) in
        [(&settings::MODE, "nothing is recorded or checked"), (&settings::RECORD, "nothing is recorded")]
    {
        if is(setting, "off") {
            report.warning(
                "settings-off",
                format!("{}=off: {what}", setting.variable),
                format!("unset {}", setting.variable),
            );
        }
    }
}

/// Whether a setting has this value.
pub fn is(setting: &Setting, value: &str) -> bool {
    std::env::var(setting.variable).is_ok_and(|given| given == value)
}

/// What makes no sense about a value.
fn nonsense(setting: &Setting, value: &str) -> Vec<String> {
    let variable = setting.variable;
    let mut found = Vec::new();
    match setting.value {
        Value::Choice(words) if !words.contains(&value) => {
            found.push(format!("{variable}={value}: not one of {}", words.join(", ")));
        }
        Value::Bytes(..) | Value::Count(..) if setting.number(value.as_bytes()).is_none() => {
            found.push(format!("{variable}={value}: not a number that is taken"));
        }
        _ => {}
    }
    let same = |other: &Setting| std::ptr::eq(setting, other);
    if same(&settings::RULES) {
        let number = |id: &[u8]| RULES.iter().position(|rule| rule.id.as_bytes() == id);
        Policy::new(false).read(value.as_bytes(), number, |part| {
            found.push(format!("{variable}: {} is not RULE=ACTION", String::from_utf8_lossy(part)));
        });
    } else if same(&settings::MUTE) {
        Mute::new(value, "", &mut found);
    } else if same(&settings::BASELINE) {
        Mute::new("", value, &mut found);
    } else if same(&settings::SOC) || same(&settings::AS) {
        let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
        found.extend(
            names
                .filter(|name| Product::of(name).is_none())
                .map(|name| format!("{variable}: {name} is no product that is known")),
        );
    } else if same(&settings::CANN) && Version::parse(value).is_none() {
        found.push(format!("{variable}={value}: not a release such as 9.1.0"));
    } else if same(&settings::REAL) && !Path::new(value).exists() {
        found.push(format!("{variable}={value}: there is no such file"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_setting_knows_its_nonsense() {
        let bad = [
            (&settings::MODE, "loud"),
            (&settings::RING_SIZE, "1"),
            (&settings::RULES, "ALIGN-64=off,X=off"),
            (&settings::MUTE, "X"),
            (&settings::BASELINE, "/does/not/exist"),
            (&settings::SOC, "Kirin"),
            (&settings::CANN, "nine"),
            (&settings::REAL, "/does/not/exist"),
        ];
        for (setting, value) in bad {
            assert_eq!(nonsense(setting, value).len(), 1, "{}={value}", setting.variable);
        }
        let good = [
            (&settings::MODE, "off"),
            (&settings::RING_SIZE, "1M"),
            (&settings::RULES, "ALIGN-64=off"),
            (&settings::MUTE, "ALIGN-64@host"),
            (&settings::AS, "Ascend310P3, Ascend950"),
            (&settings::CANN, "9.1.0"),
            (&settings::FILE, "x-%p"),
        ];
        for (setting, value) in good {
            assert_eq!(nonsense(setting, value), Vec::<String>::new(), "{}={value}", setting.variable);
        }
    }
}
