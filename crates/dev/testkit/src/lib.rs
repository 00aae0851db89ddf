//! Shared by tests of several crates: reports of tests that cannot run on this machine, CSV tables, command lines.

use anabranch_settings::{Parameters, Raw, SetError};
use std::{
    collections::BTreeMap,
    env,
    fmt::Display,
    fs::OpenOptions,
    io::{self, Write},
    ops::{Deref, Range},
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tempfile::TempDir;

/// Environment variable with the file for the lines of skipped tests; `./test` sets it.
pub const LIST: &str = "ANABRANCH_TEST_SKIPPED";
/// Environment variable that turns every skip into a failure; continuous integration sets it.
pub const TEST_ALL: &str = "ANABRANCH_TEST_ALL";

/// Reports a skipped test: `SKIPPED: TEST: REASON; REMEDY`. The remedy is `install` and a Debian package, or another action.
///
/// The line goes to the file of [`LIST`], else to standard error past the capture of the test harness.
///
/// # Panics
/// If [`TEST_ALL`] is set.
pub fn skip(reason: impl Display, remedy: impl Display) {
    let line = line(&running_test(), &reason.to_string(), &remedy.to_string());
    assert!(env::var_os(TEST_ALL).is_none(), "{TEST_ALL} is set, and a test cannot run here. {line}");
    report(&line);
}

/// Reports a test skipped since the hypervisor took its processors; [`TEST_ALL`] does not make it a failure.
pub fn skip_stolen(share: f64) {
    let reason = format!("the hypervisor took {:.0} % of the processor time", 100.0 * share);
    report(&line(&running_test(), &reason, "run on a machine without other guests"));
}

fn report(line: &str) {
    match env::var_os(LIST) {
        // One write per line, since several processes append concurrently.
        Some(list) => {
            let file = OpenOptions::new().append(true).create(true).open(&list);
            let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
            written.unwrap_or_else(|error| panic!("{}: {error}", Path::new(&list).display()));
        }
        None => drop(io::stderr().write_all(line.as_bytes())),
    }
}

/// Reports a skip and returns `true` if the message states that a program or privilege for a testbed of namespaces is missing.
///
/// # Panics
/// As [`skip`].
pub fn has_no_testbed(message: &str) -> bool {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let between = |from: &str, to: &str| {
        let rest = &message[message.find(from)?..];
        Some(&rest[..rest[from.len()..].find(to)? + from.len() + to.len()])
    };
    if let (Some(reason), Some((_, remedy))) =
        (between("the program `", "` is missing"), message.split_once("apt-get "))
    {
        skip(reason, remedy.split('`').next().unwrap_or(remedy));
    } else if let Some(reason) = between("this user may not make namespaces here (", ")") {
        skip(reason, "run as root, or allow user namespaces");
    } else {
        return false;
    }
    true
}

/// Directory of one test, removed on drop.
pub struct Folder(TempDir);

/// Creates the directory of a test.
///
/// # Panics
/// If the system's temporary directory is not writable.
pub fn folder() -> Folder {
    Folder(tempfile::Builder::new().prefix("anabranch-test-").tempdir().expect("a temporary directory"))
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

/// Returns the rows of a CSV table, by column.
///
/// # Panics
/// If `text` is not such a table.
pub fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("a row of CSV")).collect()
}

/// Returns the columns of a CSV table in their order.
///
/// # Panics
/// If `text` is not such a table.
pub fn columns(text: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.headers().expect("a header of CSV").iter().map(str::to_string).collect()
}

/// Asserts that a text has every one of these parts.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

/// Returns the words of a command line without quotes.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Parses a value as a scenario has it: true or false, a number, a list in brackets, else text without quotes.
pub fn raw(text: &str) -> Raw {
    if let Some(items) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Raw::List(items.split(',').filter(|item| !item.is_empty()).map(raw).collect());
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if let Some(number) = text.parse().ok().filter(|_| is_number) {
        return Raw::Int(number);
    }
    if let Some(number) = text.parse().ok().filter(|_| is_number || text == "nan") {
        return Raw::Float(number);
    }
    text.parse().map_or_else(|_| Raw::Text(text.to_string()), Raw::Bool)
}

/// Sets parameters from `KEY=VALUE` pairs with spaces between.
///
/// # Errors
/// The error of the first pair that cannot be set.
///
/// # Panics
/// If a word has no `=`.
pub fn try_set_keys(parameters: &mut dyn Parameters, pairs: &str) -> Result<(), SetError> {
    let pairs = words(pairs).into_iter().map(|pair| pair.split_once('=').expect("KEY=VALUE"));
    pairs.into_iter().try_for_each(|(key, value)| parameters.set(key, &raw(value)))
}

/// Sets parameters, as [`try_set_keys`].
///
/// # Panics
/// If one cannot be set.
pub fn set_keys(parameters: &mut dyn Parameters, pairs: &str) {
    try_set_keys(parameters, pairs).unwrap_or_else(|error| panic!("{pairs}: {error}"));
}

/// Sends a signal, for example `INT`, with the shell's built-in `kill`; the program `kill` is in an optional package.
///
/// # Panics
/// If the signal cannot be sent.
pub fn send_signal(process: u32, signal: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "SIG{signal} to process {process}");
}

/// Waits until no other test of the program holds its turn: of those that need the whole machine, one runs at a time.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tests every seed, on all processors.
///
/// # Panics
/// If some fail, with the reasons of the first.
pub fn try_seeds(seeds: Range<u64>, attempt: impl Fn(u64) -> Result<(), String> + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let failures: Vec<String> = std::thread::scope(|scope| {
        let part = |part| {
            let (mine, attempt) = (seeds.clone().filter(move |seed| seed % threads == part), &attempt);
            let failed = move |seed| attempt(seed).err().map(|why| format!("seed {seed}: {why}"));
            scope.spawn(move || mine.filter_map(failed).collect::<Vec<String>>())
        };
        let parts: Vec<_> = (0..threads).map(part).collect();
        parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
    });
    let some: Vec<_> = failures.iter().take(20).collect();
    assert!(failures.is_empty(), "{} failed: {some:#?}", failures.len());
}

fn line(test: &str, reason: &str, remedy: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    format!("SKIPPED: {test}: {}; {remedy}\n", words.join(" "))
}

/// Runs a command that repeats the test `name` of this program in another process.
///
/// # Panics
/// If the test fails, or if the program has no test of this name, for which the harness has no error.
pub fn run_test(command: &mut Command, name: &str) {
    let output = command.stderr(Stdio::inherit()).output().expect("this program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(output.status.success(), "{name} failed in its own process: {}", output.status);
    assert!(said.contains("test result: ok. 1 passed"), "no test is named {name}");
}

/// Returns the name of the running test, after that of its program.
fn running_test() -> String {
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a hash.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let thread = std::thread::current();
    // The harness names a test's thread after it, except for a single test on the main thread.
    let test = thread.name().filter(|name| *name != "main").map(str::to_string);
    let test = test.or_else(|| env::args().skip(1).find(|argument| !argument.starts_with('-')));
    test.map_or_else(|| program.to_string(), |test| format!("{program}::{test}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::AssertUnwindSafe;

    /// Returns `true` if the test passes in a new process, and its output.
    fn run(test: &str, threads: &str, variables: &[(&str, &str)]) -> (bool, String) {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([test, "--exact", "--ignored", threads]).env_remove(LIST).env_remove(TEST_ALL);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said)
    }

    #[test]
    fn a_repeated_test_exists() {
        let repeat = |name: &str| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args([name, "--exact", "--ignored"]).env_remove(LIST).env_remove(TEST_ALL);
            std::panic::catch_unwind(AssertUnwindSafe(|| run_test(&mut command, name))).is_ok()
        };
        assert!(repeat("tests::has_testbeds_or_not") && !repeat("tests::has_testbed_or_not"));
    }

    #[test]
    #[ignore = "the other tests run it in a process of its own"]
    fn has_testbeds_or_not() {
        for message in [
            "Error: the program\n`tc` is missing: on Debian it comes with `apt-get install iproute2`",
            "this user may not make namespaces here (EPERM): run it as root",
        ] {
            assert!(has_no_testbed(message), "{message}");
        }
        for message in ["the flow file flows.csv is missing", "namespaces: `apt-get install x` failed", ""] {
            assert!(!has_no_testbed(message), "{message}");
        }
    }

    #[test]
    fn a_machine_without_testbeds_is_told_from_other_failures() {
        let (passed, said) = run("tests::has_testbeds_or_not", "--test-threads=1", &[]);
        assert!(passed && said.matches("SKIPPED").count() == 2, "{said}");
        let test = "SKIPPED: anabranch_testkit::tests::has_testbeds_or_not:";
        assert!(said.contains(&format!("{test} the program `tc` is missing; install iproute2\n")), "{said}");
        let reason = "this user may not make namespaces here (EPERM)";
        assert!(said.contains(&format!("{test} {reason}; run as root, or allow user namespaces\n")), "{said}");
    }

    const LINE: &str = "SKIPPED: anabranch_testkit::tests::skips: the program `x` is missing; install x-utils\n";

    #[test]
    #[ignore = "the other tests run it in a process of its own"]
    fn skips() {
        skip("the program `x`\n  is missing", "install x-utils");
    }

    #[test]
    fn a_skip_is_seen_though_its_test_passes() {
        for threads in ["--test-threads=1", "--test-threads=2"] {
            let (passed, said) = run("tests::skips", threads, &[]);
            assert!(passed && said.contains(LINE), "{said}");
        }
    }

    #[test]
    fn skips_are_collected_in_a_file() {
        let folder = folder();
        let list = folder.join("skipped");
        for _ in 0..2 {
            let (passed, said) = run("tests::skips", "--test-threads=2", &[(LIST, list.to_str().unwrap())]);
            assert!(passed && !said.contains("SKIPPED"), "{said}");
        }
        let lines = std::fs::read_to_string(&list).unwrap();
        assert_eq!(lines, LINE.repeat(2));
    }

    #[test]
    fn a_skip_fails_where_all_must_be_tested() {
        let (passed, said) = run("tests::skips", "--test-threads=2", &[(TEST_ALL, "1")]);
        assert!(!passed && said.contains("the program `x` is missing; install x-utils"), "{said}");
    }
}
