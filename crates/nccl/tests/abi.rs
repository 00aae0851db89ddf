//! The shared object as NCCL sees it, through a C program that knows the binary interface and nothing of us.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The shared object, which cargo builds beside the tests.
fn plugin() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().unwrap().join("libnccl_net_anabranch.so");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// The C program, built anew.
fn program(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/every_entry.c");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(cc)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-ldl")
        .status()
        .expect("a C compiler");
    assert!(built.success());
    program
}

fn load_run_unload(program: &Path, version: u32, times: u32) {
    let output = Command::new(program)
        .arg(plugin())
        .args([version.to_string(), times.to_string()])
        .env("ANABRANCH_IFNAME", "=lo")
        .env("ANABRANCH_PATHS", "4")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "version {version}: {said}");
    assert!(output.stdout.is_empty(), "a line on standard output");
}

#[test]
fn every_entry_of_every_version() {
    let program = program("every_entry");
    (8..=12).for_each(|version| load_run_unload(&program, version, 1));
}

/// No thread, descriptor or mapping is left, though nobody says when version 10 ends.
#[test]
fn a_hundred_times_loaded_and_nothing_is_left() {
    let program = program("a_hundred_times");
    [10, 12].into_iter().for_each(|version| load_run_unload(&program, version, 100));
}

/// Needs nothing that is not on every machine with a C library.
#[test]
fn it_loads_with_libc_alone() {
    let output = Command::new("ldd").arg(plugin()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let usual = ["linux-vdso", "libc.so", "libgcc_s.so", "ld-linux", "libm.so", "libpthread", "libdl"];
    for line in said.lines() {
        assert!(usual.iter().any(|name| line.contains(name)), "{line}");
    }
}
