//! Which of the vendor's libraries calls will be passed on to, and what it has.

use super::ask::{self, LibraryAnswer};
use super::image::{HERE, Image, VENDOR, machine_name};
use super::loader;
use super::program::DoctoredProgram;
use super::report::{DoctorReport, list};
use aclshim_facts::product::{Product, Version};
use aclshim_facts::settings::REAL;
use std::path::{Path, PathBuf};

/// Where a library was found.
struct LibraryCandidate {
    path: PathBuf,
    how: &'static str,
}

/// Finds the library and asks it who it is; `None` if there is none that can be asked.
pub fn look(report: &mut DoctorReport, program: Option<&DoctoredProgram>) -> Option<LibraryAnswer> {
    report.group = "the vendor's library";
    let candidates = candidates(program);
    let Some(first) = candidates.first() else {
        report.warning(
            "vendor",
            "neither libascendcl.so nor libacl_rt.so was found: not by ACLSHIM_REAL, not in $ASCEND_HOME_PATH/lib64, not by the loader",
            "source CANN's set_env.sh first; on a machine without an NPU use the simulated device: aclshim run --sim",
        );
        return None;
    };
    let image = match Image::read(&first.path) {
        Ok(image) => image,
        Err(why) => {
            let seen = format!("{} ({}): {why:#}", first.path.display(), first.how);
            report.problem("vendor", seen, "name the real library with ACLSHIM_REAL=PATH");
            return None;
        }
    };
    if image.machine != HERE {
        let seen = format!("{} is for {}", first.path.display(), machine_name(image.machine));
        report.problem("vendor", seen, format!("install the CANN package for {}", machine_name(HERE)));
        return None;
    }
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(other) =
        candidates.iter().find(|other| canonical(&other.path).parent() != canonical(&first.path).parent())
    {
        report.warning(
            "vendor-two",
            format!("another one is {} ({})", other.path.display(), other.how),
            "a program that opens both has two runtimes: let LD_LIBRARY_PATH and ASCEND_HOME_PATH name one CANN",
        );
    }
    match ask::ask(&first.path) {
        Ok(LibraryAnswer { error: Some(error), .. }) => {
            let remedy = format!("source {}, so that the loader finds what it needs", set_env(&first.path));
            let missing = program.map_or(&[][..], |program| &program.listed.missing);
            // The loader's message begins with the name of the file that it did not find.
            if missing.iter().any(|name| error.split(':').next() == Some(name)) {
                let seen = format!("{} needs a library that was not found: see above", first.path.display());
                report.warning("vendor", seen, remedy);
            } else {
                report.problem("vendor", format!("{} cannot be loaded: {error}", first.path.display()), remedy);
            }
            None
        }
        Ok(answer) => {
            describe(report, first, &image, &answer);
            Some(answer)
        }
        Err(why) => {
            let seen = format!("{} ({}), but {why:#}", first.path.display(), first.how);
            report.warning("vendor", seen, "see whether the program itself runs without the shim");
            None
        }
    }
}

/// All that might be meant, the one that would be taken first.
fn candidates(program: Option<&DoctoredProgram>) -> Vec<LibraryCandidate> {
    let mut all = Vec::new();
    let mut add = |path: PathBuf, how| all.push(LibraryCandidate { path, how });
    if let Some(path) = std::env::var_os(REAL.variable).filter(|path| !path.is_empty()) {
        add(path.into(), "ACLSHIM_REAL");
    }
    for (name, path) in program.iter().flat_map(|program| &program.listed.found) {
        if VENDOR.contains(&name.as_str()) {
            add(path.clone(), "the program needs it");
        }
    }
    if let Some(home) = std::env::var_os("ASCEND_HOME_PATH").filter(|home| !home.is_empty()) {
        let installed = VENDOR.map(|name| Path::new(&home).join("lib64").join(name));
        installed
            .into_iter()
            .find(|path| path.exists())
            .into_iter()
            .for_each(|path| add(path, "$ASCEND_HOME_PATH/lib64"));
    }
    if let Some(path) = VENDOR.iter().find_map(|name| loader::find(name)) {
        add(path, "the loader finds it");
    }
    all
}

/// Whether `ASCEND_HOME_PATH` names a folder. The vendor's library looks there for its release, among other things.
fn home(report: &mut DoctorReport, library: &Path) -> bool {
    let named = std::env::var_os("ASCEND_HOME_PATH").filter(|home| !home.is_empty()).map(PathBuf::from);
    let seen = match named {
        Some(home) if home.is_dir() => return true,
        Some(home) => format!("ASCEND_HOME_PATH={}: there is no such folder", home.display()),
        None => "ASCEND_HOME_PATH is not set: the vendor's library looks there for its release and its packages".into(),
    };
    report.warning("home", seen, format!("source {}", set_env(library)));
    false
}

/// The script that sets CANN's variables: the one of the installation that a library belongs to, if it is there.
fn set_env(library: &Path) -> String {
    let real = library.canonicalize().unwrap_or_else(|_| library.to_owned());
    // PREFIX/lib64/libascendcl.so, or PREFIX/ARCH-linux/lib64/libascendcl.so behind links.
    let found = [library, &real].iter().flat_map(|path| path.ancestors().skip(2).take(2)).find_map(|folder| {
        let script = folder.join("set_env.sh");
        script.is_file().then_some(script)
    });
    found.map_or_else(|| "CANN's set_env.sh".into(), |script| script.display().to_string())
}

fn describe(report: &mut DoctorReport, found: &LibraryCandidate, image: &Image, answer: &LibraryAnswer) {
    let shown = found.path.display();
    let cann = answer.cann.as_deref();
    let kind = if answer.is_simulated { "the simulated device" } else { "the vendor's" };
    // It has nothing of its own, and the shim lies beside it.
    let is_dropin = !image.exports.contains("aclInit") && found.path.with_file_name("libaclshim.so").exists();
    let is_stub = found.path.components().any(|part| matches!(part.as_os_str().to_str(), Some("stub" | "devlib")));
    if is_stub && !answer.is_simulated {
        let remedy = "take the stub folder (lib64/stub, devlib) off LD_LIBRARY_PATH: it is for linking only";
        report.problem("vendor", format!("{shown} is the stub for linking ({})", found.how), remedy);
        return;
    }
    let release = cann.map_or("of an unknown release".into(), |cann| format!("CANN {cann}"));
    report.ok("vendor", format!("{shown} ({}): {kind}, {release}", found.how));
    if is_dropin {
        report.ok("dropin", "it is a drop-in of `aclshim dropin`, which brings the shim along without a preload");
    }
    let has_home = answer.is_simulated || home(report, &found.path);
    if cann.is_none_or(|cann| Version::parse(cann).is_none()) {
        let remedy = "set ACLSHIM_CANN=9.1.0, or whichever it is: rules that depend on it say nothing else";
        let first = if has_home { String::new() } else { format!("source {}, or ", set_env(&found.path)) };
        report.warning("vendor-release", "its release is not known", format!("{first}{remedy}"));
    }
    match answer.product.as_deref().map(|product| (product, Product::of(product))) {
        Some((soc, Some(product))) => {
            let form = match answer.is_root_complex {
                Some(true) => ", on the device's own processor (RC)",
                Some(false) => ", on a host (EP)",
                None => "",
            };
            report.ok("product", format!("{soc}: {}{form}", product.name));
        }
        Some((soc, None)) => {
            let remedy = "set ACLSHIM_SOC to a product that is like it: rules that depend on it say nothing else";
            report.warning("product", format!("{soc} is a product that this version does not know"), remedy);
        }
        None => report.ok("product", "it does not say which product before a device is open; the shim asks then"),
    }
    match answer.lacks.len() {
        0 => report.ok("vendor-functions", format!("it has all {} functions", answer.has.len())),
        _ if answer.has.is_empty() => {
            let remedy = "name the real library with ACLSHIM_REAL=PATH";
            report.problem("vendor-functions", "it has none of the functions", remedy);
        }
        lacking => {
            let seen = format!("it has {} functions, and lacks {lacking}: ", answer.has.len());
            report.ok("vendor-functions", format!("{seen}{}", list(&answer.lacks, usize::MAX)));
        }
    }
}
