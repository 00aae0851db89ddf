//! Tests over a libibverbs of our own, which is built against the real header.
#![allow(dead_code, unreachable_pub)]

use std::{env, ffi::OsStr, path::Path, process::Command};

/// Runs a test of this file again in a process that finds our library first, and whose label goes wrong as `fault` says.
pub fn with_library(name: &str, fault: &str, body: impl FnOnce()) {
    with_libraries(name, fault, "", body);
}

/// The same with a libmlx5 that can do what `mlx5` says; empty: none.
pub fn with_libraries(name: &str, fault: &str, mlx5: &str, body: impl FnOnce()) {
    if env::var_os("FAKE_FAULT").is_some() {
        return body();
    }
    let folder = env::temp_dir().join(format!("fake-verbs-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let library = folder.join("libibverbs.so.1");
    let compile = |to: &Path, source: &str, with: &[&OsStr]| {
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(to).arg(tests.join(source)).args(with);
        assert!(cc.status().unwrap().success(), "cc and libibverbs-dev are needed");
    };
    compile(&library, "fake_verbs.c", &["-Wl,-soname,libibverbs.so.1", "-lpthread"].map(OsStr::new));
    let mut again = Command::new(env::current_exe().unwrap());
    again.args([name, "--exact", "--ignored", "--nocapture"]).env("LD_LIBRARY_PATH", &folder).env("FAKE_FAULT", fault);
    if !mlx5.is_empty() {
        compile(&folder.join("libmlx5.so.1"), "fake_mlx5.c", &[library.as_os_str()]);
        again.env("FAKE_MLX5", mlx5);
    }
    let again = again.status();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(again.unwrap().success());
}
