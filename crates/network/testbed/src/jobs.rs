//! Collectives over NCCL's network plugin in a run: ranks run at the testbed's hosts, and their messages become flow rows.

use crate::{Fabric, TestbedError, host::Report, programs};
use anabranch_backend::FlowOutcome;
use anabranch_backend::RunError;
use anabranch_collective::{
    rank::{Row, clock_ns},
    run::{self, JobError, Outcome, Round, Settings},
};
use anabranch_endpoint::Counters;
use anabranch_outcome::Collective;
use anabranch_units::Time;
use anabranch_workload::{FlowSet, NcclJob};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    sync::{
        atomic::AtomicBool,
        mpsc::{Receiver, Sender},
    },
};

/// Function that returns the settings of a collective's ranks, to which the testbed adds the prefix that enters the namespace.
pub type Launch<'a> = dyn Fn(&NcclJob) -> Result<Settings, String> + 'a;

/// Name of a message at one rank: round, channel, rank, position in its program.
type Name = (u32, usize, usize, usize);

#[derive(Debug)]
struct Job<'a> {
    of: &'a NcclJob,
    /// Flow numbers by the sender's and by the receiver's name.
    sent: BTreeMap<Name, usize>,
    received: BTreeMap<Name, usize>,
    begin: Option<Sender<()>>,
    rounds: Vec<u64>,
    abi: Option<u32>,
    is_over: bool,
}

#[derive(Debug)]
pub(crate) struct Jobs<'a> {
    set: &'a FlowSet,
    jobs: Vec<Job<'a>>,
    /// Monotonic clock of the machine at time zero of the run, in nanoseconds.
    zero_ns: u64,
}

/// Returns the flows that ranks send, which hosts do not handle.
pub(crate) fn own_flows(set: &FlowSet) -> BTreeSet<usize> {
    let workloads: BTreeSet<u16> = set.jobs.iter().map(|job| job.workload).collect();
    (0..set.flows.len()).filter(|flow| workloads.contains(&set.flows[*flow].workload)).collect()
}

pub(crate) fn settings(set: &FlowSet, fabric: &Fabric, launch: &Launch<'_>) -> Result<Vec<Settings>, RunError> {
    let wrong = |error: TestbedError| RunError::Setup(error.to_string());
    let mut all = Vec::new();
    for job in &set.jobs {
        let ip = programs::command("ip").map_err(wrong)?.get_program().to_os_string();
        let place = |host: &u32| -> Vec<OsString> {
            let words = ["netns".into(), "exec".into(), OsString::from(fabric.namespace(*host as usize))];
            std::iter::once(ip.clone()).chain(words).collect()
        };
        let places = job.hosts.iter().map(place).collect();
        let settings = launch(job).map_err(RunError::Setup)?;
        all.push(Settings { places, rows: true, ..settings });
    }
    Ok(all)
}

pub(crate) fn live(
    number: usize,
    settings: &Settings,
    begin: &Receiver<()>,
    reports: &Sender<(usize, Report)>,
    stop: &AtomicBool,
) {
    // The channel is closed if the run has ended early.
    if begin.recv().is_err() {
        return;
    }
    let mut each = |round: &Round| drop(reports.send((number, Report::Round(Box::new(round.clone())))));
    let result = run::run(settings, stop, &mut each);
    let _ = reports.send((number, Report::Over(Box::new(result))));
}

impl<'a> Jobs<'a> {
    pub(crate) fn new(set: &'a FlowSet, begins: Vec<Sender<()>>) -> Self {
        let first: BTreeMap<u32, usize> =
            set.flows.iter().enumerate().map(|(number, flow)| (flow.listed, number)).collect();
        let job = |(of, begin): (&'a NcclJob, Sender<()>)| {
            let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
            for (listed, message) in (of.first..).zip(of.messages()) {
                let Some(flow) = first.get(&listed) else { continue };
                sent.insert((message.round, message.channel, message.from.0, message.from.1), *flow);
                received.insert((message.round, message.channel, message.to.0, message.to.1), *flow);
            }
            Job { of, sent, received, begin: Some(begin), rounds: Vec::new(), abi: None, is_over: false }
        };
        Jobs { set, jobs: set.jobs.iter().zip(begins).map(job).collect(), zero_ns: clock_ns() }
    }

    pub(crate) fn begin_clock(&mut self) {
        self.zero_ns = clock_ns();
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.jobs.iter().filter(|job| job.begin.is_some()).map(|job| job.of.parameters.start).min()
    }

    pub(crate) fn begin(&mut self, now: Time) {
        for job in self.jobs.iter_mut().filter(|job| job.of.parameters.start <= now) {
            if let Some(begin) = job.begin.take() {
                let _ = begin.send(());
            }
        }
    }

    pub(crate) fn are_over(&self) -> bool {
        self.jobs.iter().all(|job| job.is_over)
    }

    /// Stores a finished round as outcomes of flows. Returns the number of finished flows.
    pub(crate) fn take_round(
        &mut self,
        number: usize,
        round: &Round,
        outcomes: &mut [FlowOutcome],
        counted: &mut Counters,
    ) -> u64 {
        let job = &mut self.jobs[number];
        let place = job.rounds.len() as u32;
        job.rounds.push(round.nanoseconds);
        let mut finished = 0;
        for row in &round.rows {
            let Row { rank, channel, step, sent, start_ns, end_ns, counters, .. } = row;
            let began = round.began_ns.get(*rank).copied().unwrap_or(self.zero_ns);
            let at = |ns: &u64| Some(Time::from_ns((began + ns).saturating_sub(self.zero_ns)));
            let names = if *sent { &job.sent } else { &job.received };
            let Some(flow) = names.get(&(place, *channel, *rank, *step)) else { continue };
            let outcome = &mut outcomes[*flow];
            if !sent {
                // `test` may report completion to the sender before the receiver.
                outcome.received = outcome.acknowledged.into_iter().chain(at(end_ns)).min();
                continue;
            }
            (outcome.started, outcome.first_sent, outcome.acknowledged) = (at(start_ns), at(start_ns), at(end_ns));
            outcome.received = outcome.received.map(|received| received.min(outcome.acknowledged.unwrap_or(received)));
            finished += 1;
            if let Some(counters) = counters {
                outcome.metrics.retransmitted_packets = Some(counters.retransmitted);
                outcome.metrics.path_switches = Some(counters.moves);
                counted.packets += counters.packets;
                counted.retransmitted += counters.retransmitted;
                counted.timeouts += counters.timeouts;
                counted.path_switches += counters.moves;
            }
        }
        finished
    }

    pub(crate) fn take_end(&mut self, number: usize, result: Result<Outcome, JobError>) -> Result<(), RunError> {
        let job = &mut self.jobs[number];
        job.is_over = true;
        let name = &self.set.workloads[usize::from(job.of.workload)].name;
        match result {
            Ok(outcome) => {
                job.abi = Some(outcome.abi);
                Ok(())
            }
            Err(JobError::Stopped) => Ok(()),
            Err(error @ (JobError::Failed { .. } | JobError::Rank { .. })) => {
                Err(RunError::Setup(format!("workload `{name}`: {error}")))
            }
            Err(error) => Err(RunError::Failed(format!("workload `{name}`: {error}"))),
        }
    }

    pub(crate) fn results(&self) -> Vec<Collective> {
        let row = |job: &Job<'_>| {
            let (parameters, ranks) = (&job.of.parameters, job.of.hosts.len());
            let mut rounds = job.rounds.clone();
            rounds.sort_unstable();
            let median = rounds.get(rounds.len() / 2).map(|nanoseconds| *nanoseconds as f64 / 1e9);
            let bus = parameters.collective.bus_factor(ranks) * parameters.size.0 as f64 * 8.0;
            Collective {
                workload: self.set.workloads[usize::from(job.of.workload)].name.clone(),
                collective: parameters.collective.name().into(),
                ranks,
                bytes: Some(parameters.size.0),
                abi: job.abi,
                rounds: rounds.len(),
                completion_s: None,
                median_round_s: median,
                bus_bandwidth_bps: median.map(|seconds| bus / seconds),
            }
        };
        self.jobs.iter().map(row).collect()
    }
}
