//! Impairments of links: loss, corruption, duplication, delay.

use crate::{
    TestbedError, counters,
    delay::{self, Delay, Times},
    link_program,
    net::Net,
};
use anabranch_units::Time;
use serde::{Deserialize, Serialize};
use std::{
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

/// Impairment of a directed link. Shares are out of 10^9; zero ends the impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// Loses a share of the packets.
    Lose(u64),
    /// Flips a bit in a share of the packets.
    Corrupt(u64),
    /// Delivers a share of the packets twice.
    Duplicate(u64),
    /// Delays all packets by a delay, plus or minus up to a jitter, both in picoseconds.
    Delay(u64, u64),
}

/// Link with a delay, and the thread that delays its packets.
type DelayThread = ((usize, usize), JoinHandle<()>);

#[derive(Debug, Default)]
pub(crate) struct Harms {
    /// Delays of a network that this process has built; `None` if separate processes delay packets.
    delays: Option<Mutex<Vec<DelayThread>>>,
}

pub(crate) fn prepare(net: &Net, from: usize, to: usize) -> Result<link_program::Settings, TestbedError> {
    link_program::Settings::open(&net.namespace(to), net.name(from)).map_err(only_root)
}

impl Harms {
    /// Returns the impairments of a network that ends with this process, which delays packets itself.
    pub(crate) fn of_this_process() -> Self {
        Harms { delays: Some(Mutex::default()) }
    }

    pub(crate) fn harm(&self, net: &Net, from: usize, to: usize, harm: Harm) -> Result<(), TestbedError> {
        let (namespace, port) = (net.namespace(to), net.name(from));
        let change = |change: &dyn Fn(&mut link_program::Chances)| {
            link_program::change(&namespace, port, change).map(drop).map_err(only_root)
        };
        match harm {
            Harm::Lose(share) => change(&|chances| chances.loses = share),
            Harm::Corrupt(share) => change(&|chances| chances.damages = share),
            Harm::Duplicate(share) => change(&|chances| chances.repeats = share),
            Harm::Delay(delay, jitter) => self.delay(net, from, to, Time::from_ps(delay), Time::from_ps(jitter)),
        }
    }

    pub(crate) fn heal(&self, net: &Net, cable: usize) -> Result<(), TestbedError> {
        let cable = &net.plan.cables[cable];
        for (from, to) in [(cable.lower.node, cable.upper.node), (cable.upper.node, cable.lower.node)] {
            // A port without `clsact` has no BPF program.
            if !counters::has_programs(net, to, from)? {
                continue;
            }
            if link_program::is_there(&net.namespace(to), net.name(from))? {
                self.end_delay(net, from, to)?;
                let none = link_program::Chances::default();
                link_program::change(&net.namespace(to), net.name(from), |chances| *chances = none)?;
            }
        }
        Ok(())
    }

    fn delay(&self, net: &Net, from: usize, to: usize, delay: Time, jitter: Time) -> Result<(), TestbedError> {
        self.end_delay(net, from, to).map_err(only_root)?;
        if delay == Time::ZERO {
            return Ok(());
        }
        if self.delays.is_some() {
            let index = self.prepare_delay(net, from, to, Arc::new(Times::new([delay, jitter])))?;
            let changed = link_program::change(&net.namespace(to), net.name(from), |chances| chances.detour = index);
            return changed.map(drop);
        }
        let (namespace, port, name) = (net.namespace(to), net.name(from).to_string(), delay::interface(from));
        forward_apart(&ForwardOrder { namespace, port, name, times: [delay, jitter].map(Time::ps) })
    }

    pub(crate) fn prepare_delay(
        &self,
        net: &Net,
        from: usize,
        to: usize,
        times: Arc<Times>,
    ) -> Result<u32, TestbedError> {
        let (namespace, port, name) = (net.namespace(to), net.name(from).to_string(), delay::interface(from));
        let (ready, opened) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || match Delay::open(&namespace, &port, &name, times) {
            Ok(delay) => {
                let _ = ready.send(Ok(delay.index));
                // Scheduling latency would add to the delay.
                let _ = crate::host::be_real_time();
                delay.run();
            }
            Err(error) => drop(ready.send(Err(error))),
        });
        let ended = || TestbedError::Input("the thread that delays packets has ended".into());
        let index = opened.recv().map_err(|_| ended())?.map_err(only_root)?;
        if let Some(delays) = &self.delays {
            delays.lock().unwrap_or_else(PoisonError::into_inner).push(((from, to), thread));
        }
        Ok(index)
    }

    fn end_delay(&self, net: &Net, from: usize, to: usize) -> Result<(), TestbedError> {
        let (namespace, name) = (net.namespace(to), delay::interface(from));
        let Some(delays) = &self.delays else { return delay::end(&namespace, net.name(from), &name) };
        let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = delays.extract_if(.., |(at, _)| *at == (from, to)).collect::<Vec<_>>();
        for (_, thread) in ended {
            link_program::change(&namespace, net.name(from), |chances| chances.detour = 0)?;
            delay::remove(&namespace, &name)?;
            let _ = thread.join();
        }
        Ok(())
    }

    pub(crate) fn end_delays(&self, net: &Net) {
        let places: Vec<(usize, usize)> = self.delays.as_ref().map_or_else(Vec::new, |delays| {
            delays.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(at, _)| *at).collect()
        });
        places.into_iter().for_each(|(from, to)| drop(self.end_delay(net, from, to)));
    }
}

pub(crate) const ONLY_ROOT: &str =
    "links lose, corrupt, duplicate and delay packets by a BPF program, and only root may load those";

/// Names the missing privilege if the system denies the request.
fn only_root(error: TestbedError) -> TestbedError {
    match &error {
        // The loader first creates a folder for maps.
        TestbedError::Program { message, .. }
            if message.contains("not permitted") || message.contains("/sys/fs/bpf") =>
        {
            TestbedError::Input(ONLY_ROOT.into())
        }
        // Each delay creates an interface, which needs the privilege.
        TestbedError::System { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            TestbedError::Input(ONLY_ROOT.into())
        }
        _ => error,
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct ForwardOrder {
    namespace: String,
    port: String,
    name: String,
    times: [u64; 2],
}

/// Starts a process that delays packets until its interface is removed. The process outlives this one.
fn forward_apart(order: &ForwardOrder) -> Result<(), TestbedError> {
    let failed = |error| TestbedError::system("starting the process that delays packets", error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.args(["testbed", "forward"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(stdin) = child.stdin.take() {
        serde_json::to_writer(stdin, order).map_err(|error| failed(error.into()))?;
    }
    let mut output = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // The process closes its output when it is ready.
        std::io::Read::read_to_string(&mut stdout, &mut output).map_err(failed)?;
    }
    if output.is_empty() { Ok(()) } else { Err(only_root(TestbedError::Input(output))) }
}

/// Delays packets as standard input specifies. Prints nothing on success, or the error.
pub fn forward() {
    let order = serde_json::from_reader(std::io::stdin()).map_err(|error| error.to_string());
    let opened = order.and_then(|ForwardOrder { namespace, port, name, times }| {
        let times = Arc::new(Times::new(times.map(Time::from_ps)));
        let opened = Delay::open(&namespace, &port, &name, times).and_then(|delay| {
            link_program::change(&namespace, &port, |chances| chances.detour = delay.index)?;
            Ok(delay)
        });
        opened.map_err(|error| only_root(error).to_string())
    });
    match opened {
        Ok(delay) => {
            // Closing standard output releases the parent, which waits for its end.
            let null = std::fs::OpenOptions::new().write(true).open("/dev/null");
            if null.is_ok_and(|null| rustix::stdio::dup2_stdout(null).is_ok()) {
                delay.run();
            }
        }
        Err(reason) => print!("{reason}"),
    }
}
