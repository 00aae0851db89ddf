//! The contract of `ncclNet`, case by case, against any plugin. Each case is a process of its own, so that a crash or a
//! hang is a verdict too (docs/reference/nccl.md).

#![allow(unsafe_code)]

mod bench;
mod calls;
mod messages;
mod process;
mod verdict;

use crate::plugin;
use std::{
    ffi::c_int,
    io::{BufRead, BufReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
pub use verdict::{Case, CaseResult, Verdict};
use verdict::{Order, Run, end, fail, loaded};

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

fn print(result: &CaseResult) {
    if let Ok(line) = serde_json::to_string(result) {
        println!("{line}");
    }
}
