//! A job: ranks as processes, their communication through the parent, and the results.

use crate::{
    plan::CollectiveKind,
    rank::{Element, Job, Order, RankPlace, Report, Row},
};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Time without any report after which a job is aborted.
const REPORT_TIMEOUT: Duration = Duration::from_secs(330);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFailure {
    pub rank: usize,
    /// Time after the start of the first measured round.
    pub after: Duration,
    /// Duration of a suspension; `None`: the rank is killed.
    pub pause: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub command: Vec<String>,
    /// Command prefix of each rank, for ranks at different hosts; it must forward input and output.
    pub places: Vec<Vec<OsString>>,
    /// Additional environment variables.
    pub variables: Vec<(String, String)>,
    /// Environment variables to remove.
    pub without: Vec<String>,
    pub plugin: PathBuf,
    /// Version of the interface; `None`: the newest.
    pub abi: Option<u32>,
    pub kind: CollectiveKind,
    /// Number of ranks, two at least.
    pub ranks: usize,
    /// Bytes of each rank's buffer, in words of four.
    pub bytes: usize,
    pub channels: usize,
    /// Measured rounds, after one warm-up round.
    pub rounds: usize,
    pub element: Element,
    /// `true` to record rows.
    pub rows: bool,
    /// Injected failure, if any.
    pub injected_failure: Option<InjectedFailure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Time of the slowest rank.
    pub nanoseconds: u64,
    /// Start of each rank, by the machine's monotonic clock.
    #[serde(skip)]
    pub began_ns: Vec<u64>,
    /// Messages, if requested.
    #[serde(skip)]
    pub rows: Vec<Row>,
}

/// Result of a job.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Version of the interface that was used.
    pub abi: u32,
    /// Name and speed in Mbit/s of rank 0's first device.
    pub device: (String, i32),
    pub rounds: Vec<Round>,
    /// Failed ranks: number, reason, time since the last order.
    pub failures: Vec<(usize, String, u64)>,
    /// Number of ranks that have closed all communicators.
    pub closed: usize,
}

impl Outcome {
    /// Returns the median round, in seconds.
    pub fn seconds(&self) -> f64 {
        let mut all: Vec<u64> = self.rounds.iter().map(|round| round.nanoseconds).collect();
        all.sort_unstable();
        all.get(all.len() / 2).map_or(f64::NAN, |nanoseconds| *nanoseconds as f64 / 1e9)
    }

    /// Returns the bits per second over each rank's link, by NCCL's factor.
    pub fn bus_bandwidth(&self, settings: &Settings) -> f64 {
        settings.kind.bus_factor(settings.ranks) * settings.bytes as f64 * 8.0 / self.seconds()
    }
}

/// Reason for which a job failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A rank cannot be started or reached.
    #[error("rank {rank}: {source}")]
    Rank { rank: usize, source: std::io::Error },
    /// A rank failed without an injected failure.
    #[error("rank {rank}: {reason}")]
    Failed { rank: usize, reason: String },
    /// Some elements are incorrect.
    #[error("rank {rank}: {wrong} elements are wrong")]
    Wrong {
        rank: usize,
        /// Number of incorrect elements.
        wrong: usize,
    },
    /// No rank reported within the timeout.
    #[error("no rank has reported for {} s", REPORT_TIMEOUT.as_secs())]
    Timeout,
    /// The caller requested the stop.
    #[error("interrupted")]
    Stopped,
}

struct Running<'a> {
    stop: &'a AtomicBool,
    ranks: Vec<(Child, ChildStdin)>,
    /// As ranks report them: the command may be a program that has started them.
    processes: Vec<Option<Pid>>,
    readers: Vec<JoinHandle<()>>,
    reports: Receiver<(usize, Option<Report>)>,
    failures: Vec<(usize, String, u64)>,
    closed: Vec<bool>,
    ended: Vec<bool>,
    injected_failure: Option<(Instant, InjectedFailure)>,
    resume: Option<(Instant, usize)>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        (0..self.ranks.len()).filter(|rank| !self.ended[*rank]).for_each(|rank| self.signal(rank, Signal::KILL));
        for (child, _) in &mut self.ranks {
            // An error means that it has exited.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
    }
}

/// Runs a job until it is complete or `stop` is set; calls `each` for every measured round.
///
/// Fails if a rank fails without an injected failure, an element is incorrect, or the job was stopped. No process remains.
pub fn run(settings: &Settings, stop: &AtomicBool, each: &mut dyn FnMut(&Round)) -> Result<Outcome, JobError> {
    let mut job = Running::start(settings, stop)?;
    let all = settings.ranks;
    for rank in 0..all {
        let begin = Order::Begin(Job {
            plugin: settings.plugin.clone(),
            abi: settings.abi,
            kind: settings.kind.name().into(),
            rank,
            ranks: all,
            bytes: settings.bytes,
            channels: settings.channels,
            element: settings.element,
            rows: settings.rows,
        });
        job.send_order(rank, &begin);
    }
    let (mut listening, mut net) = (vec![Vec::new(); all], (0, String::new(), 0));
    for (rank, report) in job.collect(settings)? {
        if let Report::Listening { places, process, net: of } = report {
            listening[rank] = places;
            job.processes[rank] = Pid::from_raw(process);
            net = if rank == 0 { of } else { net };
        }
    }
    for rank in 0..all {
        let listeners = listening.iter().enumerate().flat_map(|(of, places)| places.iter().map(move |at| (of, at)));
        let ours = listeners.filter(|(_, place)| place.peer == rank);
        let places = ours.map(|(of, place)| RankPlace { peer: of, ..place.clone() }).collect();
        job.send_order(rank, &Order::Connect(places));
    }
    job.collect(settings)?;
    let mut rounds = Vec::new();
    for round in 0..=settings.rounds {
        if let Some(injected_failure) = settings.injected_failure.filter(|_| round == 1) {
            job.injected_failure = Some((Instant::now() + injected_failure.after, injected_failure));
        }
        (0..all).for_each(|rank| job.send_order(rank, &Order::Go));
        let reports = job.collect(settings)?;
        if !job.failures.is_empty() {
            break;
        }
        let mut of = Round { nanoseconds: 0, began_ns: Vec::new(), rows: Vec::new() };
        for (rank, report) in reports {
            if let Report::Done { began_ns, nanoseconds, wrong, rows } = report {
                if wrong > 0 {
                    return Err(JobError::Wrong { rank, wrong });
                }
                of.nanoseconds = of.nanoseconds.max(nanoseconds);
                of.began_ns.push(began_ns);
                of.rows.extend(rows);
            }
        }
        if round > 0 {
            each(&of);
            rounds.push(of);
        }
    }
    (0..all).for_each(|rank| job.send_order(rank, &Order::End));
    job.collect(settings)?;
    let closed = job.closed.iter().filter(|closed| **closed).count();
    let failures = std::mem::take(&mut job.failures);
    Ok(Outcome { abi: net.0, device: (net.1, net.2), rounds, failures, closed })
}

impl<'a> Running<'a> {
    fn start(settings: &Settings, stop: &'a AtomicBool) -> Result<Self, JobError> {
        let (sender, reports) = channel();
        let (mut ranks, mut readers) = (Vec::new(), Vec::new());
        for rank in 0..settings.ranks {
            let failed = |source| JobError::Rank { rank, source };
            let place = settings.places.get(rank).map_or(&[][..], Vec::as_slice);
            let words: Vec<OsString> =
                place.iter().cloned().chain(settings.command.iter().map(OsString::from)).collect();
            let (program, arguments) = words
                .split_first()
                .ok_or_else(|| failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, "no command")))?;
            let mut command = Command::new(program);
            for name in &settings.without {
                command.env_remove(name);
            }
            let mut child = command
                .args(arguments)
                .envs(settings.variables.iter().cloned())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // The parent forwards signals of the terminal.
                .process_group(0)
                .spawn()
                .map_err(failed)?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(failed(std::io::Error::other("no pipes")));
            };
            ranks.push((child, input));
            let sender = sender.clone();
            readers.push(std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let report = serde_json::from_str(&line)
                        .unwrap_or_else(|_| Report::Failed { reason: format!("it printed `{line}`"), nanoseconds: 0 });
                    if sender.send((rank, Some(report))).is_err() {
                        return;
                    }
                }
                let _ = sender.send((rank, None));
            }));
        }
        let none = vec![false; settings.ranks];
        let processes = vec![None; settings.ranks];
        Ok(Running {
            stop,
            ranks,
            processes,
            readers,
            reports,
            failures: Vec::new(),
            closed: none.clone(),
            ended: none,
            injected_failure: None,
            resume: None,
        })
    }

    /// A rank that has exited is detected by its missing report.
    fn send_order(&mut self, rank: usize, order: &Order) {
        if let Ok(line) = serde_json::to_string(order) {
            let input = &mut self.ranks[rank].1;
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    fn signal(&self, rank: usize, signal: Signal) {
        let started = Pid::from_raw(self.ranks[rank].0.id() as i32);
        if let Some(pid) = self.processes[rank].or(started) {
            // An error means that it has exited.
            let _ = kill_process(pid, signal);
        }
    }

    /// Returns the time of the next failure.
    fn inject(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if let Some((at, injected_failure)) = self.injected_failure.filter(|(at, _)| *at <= now) {
            self.injected_failure = None;
            match injected_failure.pause {
                None => self.signal(injected_failure.rank, Signal::KILL),
                Some(pause) => {
                    self.signal(injected_failure.rank, Signal::STOP);
                    self.resume = Some((at + pause, injected_failure.rank));
                }
            }
        }
        if let Some((_, rank)) = self.resume.filter(|(at, _)| *at <= now) {
            self.resume = None;
            self.signal(rank, Signal::CONT);
        }
        [self.injected_failure.map(|(at, _)| at), self.resume.map(|(at, _)| at)].into_iter().flatten().min()
    }

    fn collect(&mut self, settings: &Settings) -> Result<Vec<(usize, Report)>, JobError> {
        let mut reports = Vec::new();
        let mut requested: Vec<bool> = self.ended.iter().map(|ended| !ended).collect();
        let mut last = Instant::now();
        while requested.iter().any(|requested| *requested) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(JobError::Stopped);
            }
            let next = self.inject().map_or(REPORT_TIMEOUT, |at| at.saturating_duration_since(Instant::now()));
            let (rank, report) = match self.reports.recv_timeout(next.min(STOP_POLL_INTERVAL)) {
                Ok(report) => report,
                Err(RecvTimeoutError::Timeout) if last.elapsed() < REPORT_TIMEOUT => continue,
                Err(_) => return Err(JobError::Timeout),
            };
            last = Instant::now();
            match report {
                Some(Report::Failed { reason, nanoseconds }) => {
                    if settings.injected_failure.is_none() {
                        return Err(JobError::Failed { rank, reason });
                    }
                    // It closes its communicators by itself.
                    self.failures.push((rank, reason, nanoseconds));
                }
                Some(report) => {
                    requested[rank] = false;
                    if matches!(report, Report::Closed) {
                        (self.closed[rank], self.ended[rank]) = (true, true);
                    }
                    reports.push((rank, report));
                }
                None => {
                    if settings.injected_failure.is_none() && !self.ended[rank] {
                        return Err(JobError::Failed { rank, reason: "it ended".into() });
                    }
                    (requested[rank], self.ended[rank]) = (false, true);
                }
            }
        }
        reports.sort_by_key(|(rank, _)| *rank);
        Ok(reports)
    }
}
