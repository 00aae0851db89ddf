//! The contract of `ncclNet`, case by case, against any plugin. Each case is a process of its own, so that a crash or a
//! hang is a verdict too (docs/reference/nccl.md).

#![allow(unsafe_code)]

mod bench;
mod calls;
mod messages;
mod process;

use crate::plugin::{self, PluginError};
use bench::Bench;
use serde::{Deserialize, Serialize};
use std::{
    ffi::c_int,
    io::{BufRead, BufReader, Read},
    mem::ManuallyDrop,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    Fail,
    /// An error or a wait that the contract allows.
    Refused,
    /// It cannot be tried here.
    Skipped,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Refused => "refused",
            Verdict::Skipped => "skipped",
        }
    }
}

/// Verdict on a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseResult {
    pub case: String,
    pub verdict: Verdict,
    /// Entry of the table that decided it.
    pub call: String,
    pub why: String,
}

/// Result of a case that does not pass.
pub(crate) type End = CaseResult;

pub(crate) fn end(verdict: Verdict, call: &str, why: impl Into<String>) -> End {
    bench::KEEPS.store(true, Ordering::Relaxed);
    CaseResult { case: String::new(), verdict, call: call.into(), why: why.into() }
}

pub(crate) fn fail(call: &str, why: impl Into<String>) -> End {
    end(Verdict::Fail, call, why)
}

pub(crate) fn refused(call: &str, why: impl Into<String>) -> End {
    end(Verdict::Refused, call, why)
}

/// An error that the contract allows.
pub(crate) fn refusal(error: PluginError, why: &str) -> End {
    let End { call, why: code, .. } = error.into();
    refused(&call, format!("{code}, {why}"))
}

pub(crate) fn skipped(why: impl Into<String>) -> End {
    end(Verdict::Skipped, "", why)
}

impl From<PluginError> for End {
    fn from(error: PluginError) -> Self {
        match error {
            PluginError::Call { entry, code } => fail(entry, code),
            other => fail("dlopen", other.to_string()),
        }
    }
}

/// The process of a case.
enum Run {
    /// Loads the plugin by itself.
    Bare(fn(&Order) -> Result<(), End>),
    Loaded(fn(&Bench) -> Result<(), End>),
    /// With a connection, which is closed afterwards.
    Paired(fn(&Bench, bench::Pair) -> Result<(), End>),
    /// The same for a message of this many bytes.
    Large(usize),
}

pub struct Case {
    pub name: &'static str,
    /// What it requires, as the reason of a pass.
    pub about: &'static str,
    run: Run,
}

const fn case(name: &'static str, about: &'static str, run: Run) -> Case {
    Case { name, about, run }
}

/// Returns all cases, in the order in which they run.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [process::CASES, messages::CASES, calls::CASES].into_iter().flatten()
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Program that calls [`serve`] with the argument that is appended.
    pub command: Vec<String>,
    pub plugin: PathBuf,
    /// Version of the interface; `None`: the newest.
    pub abi: Option<u32>,
    /// Names of the cases to run; none: all.
    pub only: Vec<String>,
    /// Bytes of the largest message.
    pub largest: usize,
    /// Time after which a case hangs; messages of more than 64 MiB have fifteen times as much.
    pub limit: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    plugin: PathBuf,
    abi: Option<u32>,
    /// Name of the case; empty: describe the plugin.
    case: String,
    largest: usize,
    limit: Duration,
}

/// Runs the cases and returns a result each. Fails with the reason where the plugin cannot be used at all; `None`:
/// stopped.
pub fn run(
    settings: &Settings,
    stop: &AtomicBool,
    mut each: impl FnMut(&CaseResult),
) -> Result<Option<(String, Vec<CaseResult>)>, String> {
    let description = run_case(settings, "", settings.limit);
    if description.verdict != Verdict::Pass {
        return Err(format!("{}: {}", description.call, description.why));
    }
    let mut results = Vec::new();
    for case in cases().filter(|case| settings.only.is_empty() || settings.only.iter().any(|name| name == case.name)) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let factor = if matches!(case.run, Run::Large(bytes) if bytes > 64 << 20) { 15 } else { 1 };
        results.push(run_case(settings, case.name, settings.limit * factor));
        each(&results[results.len() - 1]);
    }
    Ok(Some((description.why, results)))
}

fn run_case(settings: &Settings, case: &str, limit: Duration) -> CaseResult {
    let order = Order {
        plugin: settings.plugin.clone(),
        abi: settings.abi,
        case: case.into(),
        largest: settings.largest,
        limit,
    };
    let result = start(settings, &order).unwrap_or_else(|error| fail("", format!("no process: {error}")));
    CaseResult { case: case.into(), ..result }
}

fn start(settings: &Settings, order: &Order) -> std::io::Result<CaseResult> {
    let (program, arguments) =
        settings.command.split_first().ok_or_else(|| std::io::Error::other("no command of a case"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg(serde_json::to_string(order)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let (output, log) = (child.stdout.take(), child.stderr.take());
    let log = std::thread::spawn(move || {
        let lines = log.into_iter().flat_map(|log| BufReader::new(log).split(b'\n').map_while(Result::ok));
        lines.filter(|line| !line.is_empty()).last().map(|line| String::from_utf8_lossy(&line).into_owned())
    });
    let output = std::thread::spawn(move || {
        let mut text = String::new();
        // A process that a plugin leaves behind may keep it open.
        let _ = output.map(|mut output| output.read_to_string(&mut text));
        text
    });
    // The process ends itself first and names the call, unless it is stopped.
    let until = Instant::now() + order.limit + Duration::from_secs(5);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() >= until => break None,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        // What it has left behind; an error means that there is nothing.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    child.wait()?;
    let (text, log) = (output.join().unwrap_or_default(), log.join().unwrap_or_default());
    let last = text.lines().last().unwrap_or_default();
    let mut result = match (status, serde_json::from_str::<CaseResult>(last)) {
        (None, _) => fail("", format!("hung for {} s", order.limit.as_secs() + 5)),
        (Some(status), _) if status.signal().is_some() => {
            fail(last, format!("crashed ({})", signal_name(status.signal().unwrap_or(0))))
        }
        (Some(_), Ok(result)) => result,
        (Some(status), Err(_)) => fail(last, format!("the process ended without a verdict ({status})")),
    };
    if let Some(log) = log.filter(|_| matches!(result.verdict, Verdict::Fail | Verdict::Refused)) {
        result.why = format!("{}; log: {log}", result.why);
    }
    Ok(result)
}

const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
];

fn signal_name(signal: c_int) -> String {
    let known = SIGNALS.iter().find(|(of, _)| *of == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_string())
}

/// Names the last call, as the process crashes.
extern "C" fn on_crash(_: c_int) {
    let name = plugin::last_call().as_bytes();
    // SAFETY: `write` may be called here, and the signal comes again with its default action.
    unsafe { libc::write(1, name.as_ptr().cast(), name.len()) };
}

/// Runs the case of an order, the argument of this process, and prints its verdict. The process ends with it.
pub fn serve(order: &str) -> ! {
    let order: Order = serde_json::from_str(order).unwrap_or_else(|error| {
        eprintln!("no order of a case: {error}");
        std::process::exit(2);
    });
    for (signal, _) in SIGNALS {
        // SAFETY: a handler that is reset before it runs, so that the signal ends the process when it returns.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_crash as *const () as usize;
            action.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    let limit = order.limit;
    bench::PATIENCE.store(limit.as_secs().div_ceil(2), Ordering::Relaxed);
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        print(&fail(plugin::last_call(), format!("hung for {} s", limit.as_secs())));
        // SAFETY: no destructors, which could hang too.
        unsafe { libc::_exit(1) }
    });
    let case = cases().find(|case| case.name == order.case);
    let result = match case {
        None => loaded(&order, |bench| Err(end(Verdict::Pass, "", bench.describe()?))),
        Some(case) => match case.run {
            Run::Bare(run) => run(&order),
            Run::Loaded(run) => loaded(&order, run),
            Run::Paired(run) => loaded(&order, |bench| bench.with_pair(run)),
            Run::Large(bytes) => messages::large(&order, bytes),
        },
    };
    let about = case.map_or("", |case| case.about);
    print(&result.err().unwrap_or_else(|| end(Verdict::Pass, "", about)));
    std::process::exit(0)
}

/// Unloads the plugin after a case that passes; another one leaves connections open.
fn loaded(order: &Order, run: impl FnOnce(&Bench) -> Result<(), End>) -> Result<(), End> {
    let bench = ManuallyDrop::new(Bench::open(order)?);
    run(&bench)?;
    drop(ManuallyDrop::into_inner(bench));
    Ok(())
}

/// Returns the result of a thread of a case.
fn joined<T>(result: std::thread::Result<Result<T, End>>) -> Result<T, End> {
    result.unwrap_or_else(|_| Err(fail(plugin::last_call(), "a thread of the case panicked")))
}

fn print(result: &CaseResult) {
    if let Ok(line) = serde_json::to_string(result) {
        println!("{line}");
    }
}
