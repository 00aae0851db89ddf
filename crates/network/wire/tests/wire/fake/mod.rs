//! Tests with a fake libibverbs (`../fake_verbs.c`), which is built against the real header.
#![allow(dead_code, unreachable_pub)]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

fn compile(to: &Path, source: &str, with: &[&OsStr]) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("wire/tests");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(to).arg(tests.join(source)).args(with);
    assert!(cc.status().unwrap().success(), "cc and libibverbs-dev are needed");
}

fn build(folder: &Path) -> PathBuf {
    let library = folder.join("libibverbs.so.1");
    compile(&library, "fake_verbs.c", &["-Wl,-soname,libibverbs.so.1", "-lpthread"].map(OsStr::new));
    library
}

/// Re-runs a test in a process that loads the fake library first; `fault` names the fault of a label.
pub fn with_library(name: &str, fault: &str, body: impl FnOnce()) {
    with_variables(name, fault, &[], body);
}

/// Does the same with further variables.
pub fn with_variables(name: &str, fault: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    run_with(name, fault, "", variables, body);
}

/// Does the same with a fake libmlx5 with the behaviour `mlx5`; empty: none.
pub fn with_libraries(name: &str, fault: &str, mlx5: &str, body: impl FnOnce()) {
    run_with(name, fault, mlx5, &[], body);
}

fn run_with(name: &str, fault: &str, mlx5: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if env::var_os("FAKE_FAULT").is_some() {
        return body();
    }
    let own = tempfile::tempdir().unwrap();
    let folder = own.path();
    let library = build(folder);
    let mut again = Command::new(env::current_exe().unwrap());
    again.args([name, "--exact", "--ignored", "--nocapture"]).env("LD_LIBRARY_PATH", folder).env("FAKE_FAULT", fault);
    again.envs(variables.iter().copied());
    if !mlx5.is_empty() {
        compile(&folder.join("libmlx5.so.1"), "fake_mlx5.c", &[library.as_os_str()]);
        again.env("FAKE_MLX5", mlx5);
    }
    anabranch_testkit::run_test(&mut again, name);
}

/// Its loopback interface has an RDMA device in fake sysfs and libibverbs; its files are removed on drop.
pub struct Machine(TempDir);

impl Machine {
    /// With only the system's libibverbs.
    pub fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("fake-machine-{name}-")).tempdir().unwrap();
        let device = folder.path().join("sys/class/infiniband/fake0");
        for (file, text) in [
            ("node_guid", "0011:2233:4455:6677"),
            ("ports/1/rate", "25 Gb/sec (1X EDR)"),
            ("ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:7f00:0001"),
            ("ports/1/gid_attrs/types/0", "RoCE v2"),
            ("ports/1/gid_attrs/ndevs/0", "lo"),
        ] {
            let file = device.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        Machine(folder)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// With the fake library, over which its processes exchange packets.
    pub fn with_library(name: &str) -> Self {
        let machine = Self::new(name);
        build(machine.folder());
        machine
    }

    pub fn variables(&self) -> Vec<(String, String)> {
        let folder = self.folder().display();
        [
            ("LD_LIBRARY_PATH", format!("{folder}")),
            ("SYSFS_PATH", format!("{folder}/sys")),
            ("FAKE_NETWORK", self.folder().file_name().unwrap().to_string_lossy().into_owned()),
            ("ANABRANCH_IFNAME", "=lo".into()),
            ("ANABRANCH_PATHS", "4".into()),
            ("ANABRANCH_DATAPATH", "uc".into()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .to_vec()
    }
}
