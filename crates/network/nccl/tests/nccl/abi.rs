//! The shared object from NCCL's side, through a C program.

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

fn program(name: &str) -> PathBuf {
    program_with(name, &[])
}

fn program_with(name: &str, flags: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/every_entry.c");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(cc)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-o"])
        .arg(&program)
        .arg(&source)
        .args(flags)
        .arg("-ldl")
        .status()
        .expect("a C compiler");
    assert!(built.success());
    program
}

fn load_run_unload(program: &Path, version: u32, times: u32) {
    let said = run(program, version, times, &[]);
    assert!(!said.contains("no statistics page"), "{said}");
}

fn run(program: &Path, version: u32, times: u32, variables: &[(&str, &str)]) -> String {
    let output = Command::new(program)
        .arg(plugin())
        .args([version.to_string(), times.to_string()])
        .env("ANABRANCH_IFNAME", "=lo")
        .env("ANABRANCH_PATHS", "4")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "version {version}: {said}");
    assert!(output.stdout.is_empty(), "a line on standard output");
    said.into_owned()
}

#[test]
fn every_entry_of_every_version() {
    let program = program("every_entry");
    (8..=12).for_each(|version| load_run_unload(&program, version, 1));
}

/// Version 10 has no `finalize`.
#[test]
fn a_hundred_loads_release_everything() {
    let program = program("a_hundred_times");
    [10, 12].into_iter().for_each(|version| load_run_unload(&program, version, 100));
}

/// Only version 10 sets a class per connection; the program's is 3. NCCL's variable wins over it.
#[test]
#[ignore = "needs libibverbs-dev"]
fn every_entry_over_verbs() {
    let (machine, program) = (crate::fake::Machine::with_library("entries"), program("over_verbs"));
    let variables = machine.variables();
    let mut variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    variables.extend([("ANABRANCH_TEST_RDMA", "1"), ("ANABRANCH_TEST_LOUD", "1")]);
    for (version, times) in [(8, 1), (9, 1), (10, 40), (11, 1), (12, 40)] {
        let class = if version == 10 { "3" } else { "0" };
        let said = run(&program, version, times, &[&variables[..], &[("FAKE_CLASS", class)]].concat());
        assert!(said.contains("packets of 960 B, queue pairs of fake0"), "{said}");
        let set = [("FAKE_CLASS", "5"), ("NCCL_IB_TC", "5"), ("FAKE_LEVEL", "3"), ("NCCL_IB_SL", "3")];
        run(&program, version, 1, &[&variables[..], &set].concat());
    }
}

#[test]
fn missing_space_for_the_page() {
    let program = program("no_room");
    let loud = ("ANABRANCH_TEST_LOUD", "1");
    let said = run(&program, 12, 1, &[loud, ("ANABRANCH_STATS", "/no/such/folder")]);
    assert_eq!(said.matches("no statistics page in /no/such/folder").count(), 1, "{said}");
    let said = run(&program, 12, 1, &[loud, ("ANABRANCH_STATS", "off")]);
    assert!(said.contains("statistics in nowhere") && !said.contains("no statistics page"), "{said}");
    // Shared memory of 64 kB, in a mount namespace where users may have one.
    let full = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full");
    std::fs::create_dir_all(&full).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none {full} || exit 77; ANABRANCH_STATS={full} exec {} {} 10 1",
        program.display(),
        plugin().display(),
        full = full.display()
    );
    let inside = Command::new("unshare")
        .args(["-Urm", "sh", "-c", &script])
        .envs([("ANABRANCH_IFNAME", "=lo"), ("ANABRANCH_PATHS", "4"), loud])
        .output();
    match inside {
        Ok(output) if output.status.code() != Some(77) && !output.stderr.starts_with(b"unshare") => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            assert_eq!(said.matches("no statistics page").count(), 1, "{said}");
            assert!(said.contains("No space left"), "{said}");
        }
        _ => anabranch_testkit::skip("shared memory that is full needs a mount namespace", "allow user namespaces"),
    }
}

/// A waiting request that is polled again within a microsecond of the last work makes no system call.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn frequent_polls_make_no_system_call() {
    let output = Command::new(program("quiet_looks"))
        .arg(plugin())
        .args(["12", "1"])
        .envs([("ANABRANCH_TEST_QUIET", "1"), ("ANABRANCH_STATS", "off"), ("ANABRANCH_IFNAME", "=lo")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(77) => {
            anabranch_testkit::skip("the kernel has no filters of system calls", "install a kernel with seccomp")
        }
        code => assert_eq!(code, Some(0), "{said}"),
    }
    eprintln!("{said}");
}

/// No invalid access and no leak: every entry of the oldest and the newest version.
#[test]
#[ignore = "valgrind: a minute"]
fn no_wrong_byte_and_no_leak() {
    valgrind("under_valgrind", &[]);
}

#[test]
#[ignore = "valgrind: a minute; needs libibverbs-dev"]
fn no_wrong_byte_and_no_leak_over_verbs() {
    let machine = crate::fake::Machine::with_library("valgrind");
    let mut variables = machine.variables();
    variables.push(("ANABRANCH_TEST_RDMA".into(), "1".into()));
    valgrind("verbs_under_valgrind", &variables);
}

fn valgrind(name: &str, variables: &[(String, String)]) {
    let program = program(name);
    for version in ["8", "12"] {
        let flags = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite,indirect"];
        let output = Command::new("valgrind")
            .args(flags)
            .args([
                "--errors-for-leak-kinds=definite,indirect",
                "--keep-debuginfo=yes",
                "--child-silent-after-fork=yes",
            ])
            .arg(&program)
            .arg(plugin())
            .args([version, "2"])
            .envs([("ANABRANCH_IFNAME", "=lo"), ("ANABRANCH_PATHS", "4"), ("ANABRANCH_TEST_SLOW", "1")])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("valgrind");
        assert!(output.status.success(), "version {version}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// All versions; needs Rust's sanitiser run time.
#[test]
#[ignore = "builds the library anew with the address sanitiser: a minute or more"]
fn address_sanitiser_reports_no_errors() {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitised");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--profile", "fast", "--package", env!("CARGO_PKG_NAME"), "--target", TARGET, "--target-dir"])
        .arg(&folder)
        // With this variable a stable compiler accepts the flag.
        .envs([("RUSTC_BOOTSTRAP", "1"), ("RUSTFLAGS", "-Zsanitizer=address")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success());
    let library = folder.join(TARGET).join("fast/libnccl_net_anabranch.so");
    let load = |program: &Path, version: u32| {
        let variables = [("ANABRANCH_IFNAME", "=lo"), ("ANABRANCH_PATHS", "4"), ("ANABRANCH_TEST_SLOW", "1")];
        let output =
            Command::new(program).arg(&library).args([version.to_string(), "2".into()]).envs(variables).output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (loads, said) = load(&program("not_sanitised"), 12);
    assert!(!loads && said.contains("__asan"), "the library has no sanitiser: {said}");
    let program = program_with("sanitised_program", &["-fsanitize=address"]);
    for version in 8..=12 {
        let (passes, said) = load(&program, version);
        assert!(passes && !said.contains("ERROR"), "version {version}: {said}");
    }
}

#[test]
#[ignore = "a gibibyte over the loopback interface, twice: a minute"]
fn a_gibibyte_is_a_message() {
    let program = program("a_gibibyte");
    [8, 12].into_iter().for_each(|version| drop(run(&program, version, 1, &[("ANABRANCH_TEST_LARGE", "1")])));
}

#[test]
fn it_loads_with_libc_alone() {
    let output = Command::new("ldd").arg(plugin()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let usual = ["linux-vdso", "libc.so", "libgcc_s.so", "ld-linux", "libm.so", "libpthread", "libdl"];
    for line in said.lines() {
        assert!(usual.iter().any(|name| line.contains(name)), "{line}");
    }
}
