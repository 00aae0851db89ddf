//! A job: ranks as processes, what they say to each other by their parent, and how it went.

use crate::{
    plan::Kind,
    rank::{Element, Job, Order, Place, Report, Row},
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

/// How long all ranks may say nothing before the job is ended.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often somebody looks whether the job is to be stopped.
const LOOK: Duration = Duration::from_millis(50);

/// What happens to a rank while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// The rank.
    pub rank: usize,
    /// How long after the beginning of the first round that counts.
    pub after: Duration,
    /// It stands still for so long; `None`: it is killed.
    pub pause: Option<Duration>,
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command of a rank.
    pub command: Vec<String>,
    /// What stands before it for each rank, where ranks stand at different places; they must pass on its input and output.
    pub places: Vec<Vec<OsString>>,
    /// Variables that it has besides ours.
    pub variables: Vec<(String, String)>,
    /// Variables of ours that it does not have.
    pub without: Vec<String>,
    /// The plugin.
    pub plugin: PathBuf,
    /// Version of the interface; `None`: the newest.
    pub abi: Option<u32>,
    /// The collective.
    pub kind: Kind,
    /// Ranks, two at least.
    pub ranks: usize,
    /// Bytes of each rank's buffer, in words of four.
    pub bytes: usize,
    /// Channels.
    pub channels: usize,
    /// Rounds that count, after one that does not.
    pub rounds: usize,
    /// What buffers hold.
    pub element: Element,
    /// Whether rows are wanted.
    pub rows: bool,
    /// What happens.
    pub mishap: Option<Mishap>,
}

/// A round: its number, the time of the slowest rank, its messages.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Time of the slowest rank.
    pub nanoseconds: u64,
    /// When each rank began, by the machine's monotonic clock.
    #[serde(skip)]
    pub began_ns: Vec<u64>,
    /// Messages, where they were wanted.
    #[serde(skip)]
    pub rows: Vec<Row>,
}

/// How a job went.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Version of the interface that was used.
    pub abi: u32,
    /// Name and speed in Mbit/s of rank 0's first device.
    pub device: (String, i32),
    /// Rounds that count.
    pub rounds: Vec<Round>,
    /// Ranks that failed: which, why, how long after its last order.
    pub failures: Vec<(usize, String, u64)>,
    /// Ranks that have closed everything.
    pub closed: usize,
}

impl Outcome {
    /// The median round, in seconds.
    pub fn seconds(&self) -> f64 {
        let mut all: Vec<u64> = self.rounds.iter().map(|round| round.nanoseconds).collect();
        all.sort_unstable();
        all.get(all.len() / 2).map_or(f64::NAN, |nanoseconds| *nanoseconds as f64 / 1e9)
    }

    /// Bits per second over each rank's link, by NCCL's factor.
    pub fn bus_bandwidth(&self, settings: &Settings) -> f64 {
        settings.kind.bus_factor(settings.ranks) * settings.bytes as f64 * 8.0 / self.seconds()
    }
}

/// Why a job could not be run, or gave something wrong.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A rank cannot be started or spoken to.
    #[error("rank {rank}: {source}")]
    Rank {
        /// Which.
        rank: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A rank failed, though nothing was done to anybody.
    #[error("rank {rank}: {why}")]
    Failed {
        /// Which.
        rank: usize,
        /// Why.
        why: String,
    },
    /// Elements are not what they must be.
    #[error("rank {rank}: {wrong} elements are wrong")]
    Wrong {
        /// Which.
        rank: usize,
        /// How many.
        wrong: usize,
    },
    /// Nobody says anything.
    #[error("no rank has said anything for {} s", PATIENCE.as_secs())]
    Silent,
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Stopped,
}

/// A job under way.
struct Running<'a> {
    stop: &'a AtomicBool,
    ranks: Vec<(Child, ChildStdin)>,
    /// What ranks say that they are: what was started may be a program that has started them.
    processes: Vec<Option<Pid>>,
    readers: Vec<JoinHandle<()>>,
    reports: Receiver<(usize, Option<Report>)>,
    failures: Vec<(usize, String, u64)>,
    closed: Vec<bool>,
    gone: Vec<bool>,
    mishap: Option<(Instant, Mishap)>,
    resume: Option<(Instant, usize)>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        (0..self.ranks.len()).filter(|rank| !self.gone[*rank]).for_each(|rank| self.signal(rank, Signal::KILL));
        for (child, _) in &mut self.ranks {
            // One that has ended already is none the worse for it.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
    }
}

/// Runs a job until it is over or `stop` is set; `each` hears of every round that counts.
///
/// # Errors
/// Where a rank fails though nothing happens to any, an element is wrong, or it was stopped. No rank is left.
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
        job.tell(rank, &begin);
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
        let places = ours.map(|(of, place)| Place { peer: of, ..place.clone() }).collect();
        job.tell(rank, &Order::Connect(places));
    }
    job.collect(settings)?;
    let mut rounds = Vec::new();
    for round in 0..=settings.rounds {
        if let Some(mishap) = settings.mishap.filter(|_| round == 1) {
            job.mishap = Some((Instant::now() + mishap.after, mishap));
        }
        (0..all).for_each(|rank| job.tell(rank, &Order::Go));
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
        // The first one finds the way.
        if round > 0 {
            each(&of);
            rounds.push(of);
        }
    }
    (0..all).for_each(|rank| job.tell(rank, &Order::End));
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
                // What ends us from a terminal is ours to pass on.
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
                        .unwrap_or_else(|_| Report::Failed { why: format!("it printed `{line}`"), nanoseconds: 0 });
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
            gone: none,
            mishap: None,
            resume: None,
        })
    }

    /// Whoever is gone does not hear it, which its silence tells.
    fn tell(&mut self, rank: usize, order: &Order) {
        if let Ok(line) = serde_json::to_string(order) {
            let input = &mut self.ranks[rank].1;
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    fn signal(&self, rank: usize, signal: Signal) {
        let started = Pid::from_raw(self.ranks[rank].0.id() as i32);
        if let Some(pid) = self.processes[rank].or(started) {
            // One that is gone needs no signal.
            let _ = kill_process(pid, signal);
        }
    }

    /// Lets happen what is to happen by now; when the next of it is.
    fn happen(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if let Some((at, mishap)) = self.mishap.filter(|(at, _)| *at <= now) {
            self.mishap = None;
            match mishap.pause {
                None => self.signal(mishap.rank, Signal::KILL),
                Some(pause) => {
                    self.signal(mishap.rank, Signal::STOP);
                    self.resume = Some((at + pause, mishap.rank));
                }
            }
        }
        if let Some((_, rank)) = self.resume.filter(|(at, _)| *at <= now) {
            self.resume = None;
            self.signal(rank, Signal::CONT);
        }
        [self.mishap.map(|(at, _)| at), self.resume.map(|(at, _)| at)].into_iter().flatten().min()
    }

    /// A report of every rank that is still there.
    fn collect(&mut self, settings: &Settings) -> Result<Vec<(usize, Report)>, JobError> {
        let mut reports = Vec::new();
        let mut wanted: Vec<bool> = self.gone.iter().map(|gone| !gone).collect();
        let mut last = Instant::now();
        while wanted.iter().any(|wanted| *wanted) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(JobError::Stopped);
            }
            let next = self.happen().map_or(PATIENCE, |at| at.saturating_duration_since(Instant::now()));
            let (rank, report) = match self.reports.recv_timeout(next.min(LOOK)) {
                Ok(report) => report,
                Err(RecvTimeoutError::Timeout) if last.elapsed() < PATIENCE => continue,
                Err(_) => return Err(JobError::Silent),
            };
            last = Instant::now();
            match report {
                Some(Report::Failed { why, nanoseconds }) => {
                    if settings.mishap.is_none() {
                        return Err(JobError::Failed { rank, why });
                    }
                    // It closes everything by itself.
                    self.failures.push((rank, why, nanoseconds));
                }
                Some(report) => {
                    wanted[rank] = false;
                    if matches!(report, Report::Closed) {
                        (self.closed[rank], self.gone[rank]) = (true, true);
                    }
                    reports.push((rank, report));
                }
                None => {
                    if settings.mishap.is_none() && !self.gone[rank] {
                        return Err(JobError::Failed { rank, why: "it ended".into() });
                    }
                    (wanted[rank], self.gone[rank]) = (false, true);
                }
            }
        }
        reports.sort_by_key(|(rank, _)| *rank);
        Ok(reports)
    }
}
