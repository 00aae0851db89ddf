//! A backend in one file: it sends nothing, sleeps for the ideal time of each flow, and reports when it woke. A fault from the start
//! on wakes it: the run fails. Flows of 13 B end at a time that no table can hold. Its line in the list of `main` is all that `anabranch compare tiny --schemes ecmp --backend sim,sleep`
//! needs.

use anabranch_backend::{
    Backend, FlowOutcome, Measures, Progress, Refusal, RunError, RunOptions, RunRows, Setup, flow_rows,
};
use anabranch_scenario::{BackendEntry, SIMULATOR};
use anabranch_units::Time;
use anabranch_workload::Start;
use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

struct Sleep;

static SLEEP: BackendEntry =
    BackendEntry { name: "sleep", about: "sleeps, and sends nothing", make: |_| Box::new(Sleep), enter: None };

impl Backend for Sleep {
    fn measures(&self) -> Measures {
        Measures::TIMES
    }

    fn runs_switch_schemes(&self) -> bool {
        false
    }

    fn check(&self, setup: &Setup) -> Result<(), RunError> {
        let waits = setup.flows.all_flows().find(|flow| matches!(flow.start, Start::On(_)));
        waits.map_or(Ok(()), |flow| {
            let key = format!("workload[{}].kind", flow.workload);
            Err(RunError::Refused(Refusal::new(key, "its flows wait for others", "use `permutation` or `incast`")))
        })
    }

    fn run(
        &self,
        setup: &Setup,
        _: RunOptions,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError> {
        if !progress(&Progress::default()) {
            return Err(RunError::Interrupted);
        }
        if setup.faults.iter().any(|fault| fault.at == Time::ZERO) {
            return Err(RunError::Failed("a fault woke it".into()));
        }
        let flows = &setup.flows.flows;
        let ideal = flow_rows(setup, &vec![FlowOutcome::default(); flows.len()]);
        let zero = Instant::now();
        let nap = |time: Time| thread::sleep(Duration::from_nanos(time.ps() / 1000));
        let now = || Some(Time::from_ns(zero.elapsed().as_nanos() as u64));
        let sleeper = |number: usize| {
            nap(if let Start::At(at) = flows[number].start { at } else { Time::ZERO });
            let started = now();
            nap(ideal[number].ideal_ack);
            let ended = if flows[number].size == 13 { Some(Time::MAX) } else { now() };
            FlowOutcome { started, first_sent: started, received: ended, acknowledged: ended, ..FlowOutcome::default() }
        };
        let outcomes: Vec<FlowOutcome> = thread::scope(|scope| {
            let sleepers: Vec<_> = (0..flows.len()).map(|number| scope.spawn(move || sleeper(number))).collect();
            sleepers.into_iter().map(|sleeper| sleeper.join().unwrap_or_default()).collect()
        });
        let simulated = now().unwrap_or_default();
        Ok(RunRows { simulated, flows: flow_rows(setup, &outcomes), ..RunRows::default() })
    }
}

fn main() -> ExitCode {
    ExitCode::from(anabranch::command(std::env::args_os(), &[&SIMULATOR, &SLEEP]))
}
