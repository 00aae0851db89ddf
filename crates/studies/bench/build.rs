//! Records the optimisation level of the reference loops.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=ANABRANCH_OPT_LEVEL={}", std::env::var("OPT_LEVEL").unwrap_or_default());
}
