//! Gives the library the vendor's soname, and keeps it loaded once it is: its stream workers may outlive a `dlclose`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libascendcl.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
