//! System programs that build and control a testbed.

use crate::TestbedError;
use std::{
    ffi::OsStr,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const PACKAGES: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("chrt", "util-linux"),
    ("mount", "mount"),
    ("dumpcap", "tshark"),
];

pub(crate) fn package(program: &str) -> &'static str {
    PACKAGES.iter().find(|(name, _)| *name == program).map_or("coreutils", |(_, package)| package)
}

/// Environment variable with the folders of programs; it replaces `PATH` and the system's folders.
const FOLDERS: &str = "ANABRANCH_PROGRAMS";

/// Returns the path of a program in `PATH` or the system's folders, which `PATH` of ordinary users often lacks.
pub fn find(program: &str) -> Option<PathBuf> {
    let given = std::env::var_os(FOLDERS);
    let path = given.clone().or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let usual = if given.is_some() { &[][..] } else { &["/usr/sbin", "/sbin", "/usr/bin", "/bin"] };
    let folders = std::env::split_paths(&path).chain(usual.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns a command that runs a program.
/// Errors: [`TestbedError::MissingProgram`].
pub fn command(program: &str) -> Result<Command, TestbedError> {
    let missing = || TestbedError::MissingProgram { program: program.into(), package: package(program) };
    find(program).map(Command::new).ok_or_else(missing)
}

/// Runs a program to completion with `input` on standard input. Returns its standard output.
pub(crate) fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A], input: &str) -> Result<String, TestbedError> {
    let words: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let shown = || {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        format!("{program} {}", words.join(" "))
    };
    let system = |source| TestbedError::system(format!("running `{}`", shown()), source);
    let mut command = command(program)?;
    command.args(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(system)?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(system)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(TestbedError::Program { command: shown(), message });
    }
    match written {
        // A program may close its standard input early.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(system(error)),
        _ => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
    }
}

/// Runs a program that prints an array of JSON; without one the array is empty.
pub(crate) fn json(program: &str, arguments: &[&str]) -> Result<Vec<serde_json::Value>, TestbedError> {
    Ok(serde_json::from_str(&run(program, arguments, "")?).unwrap_or_default())
}

/// Writes a kernel setting; does nothing if the kernel lacks it.
pub(crate) fn set(file: &Path, value: &str) -> std::io::Result<()> {
    match std::fs::write(file, value) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        written => written,
    }
}
