//! Link arguments of the shim that cargo has no setting for.

fn main() {
    for argument in [
        // `-laclshim` and the drop-in library must record this name, not the path of the build.
        "-Wl,-soname,libaclshim.so",
        // Pointers into us are in the host's tables: a dlclose must never unmap us.
        "-Wl,-z,nodelete",
        // Our own calls are bound at load: no lazy binding inside a host's signal handler.
        "-Wl,-z,now",
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
