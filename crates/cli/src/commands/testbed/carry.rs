//! Scenarios whose packets a testbed carries: `run` and `compare` with the results of their simulated namesakes.

use crate::{
    arguments::{Compare, Run, ScenarioArguments},
    commands::{compare::compare_scenario, load, run::run_scenario},
    failure::Failure,
};
use anabranch_sim::{Progress, Setup, SimError, outcome::RunResult};
use anabranch_study::scenario::Scenario;
use anabranch_testbed::{Plan, space};

/// What carries the packets.
fn carry(
    scenario: &Scenario,
    setup: &Setup,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, SimError> {
    anabranch_testbed::run(setup, &scenario.wire, progress)
}

/// The scenario, in a process that lives in namespaces of its own: the first time it comes here it goes there and begins anew.
fn inside(arguments: &ScenarioArguments) -> Result<Scenario, Failure> {
    if space::is_inside() {
        space::settle()?;
        return Ok(load(arguments)?.carried_by(carry));
    }
    let scenario = load(arguments)?.carried_by(carry);
    // What cannot be built is told here.
    Plan::of_setup(&scenario.setup(scenario.seed)?, &scenario.wire)?;
    match space::go_inside()? {}
}

/// `anabranch testbed run`.
pub(super) fn run(arguments: &Run) -> Result<(), Failure> {
    if !arguments.pcap.is_empty() {
        let message =
            "--pcap is for simulations: `anabranch testbed up` and `capture` write what passes a port of a testbed";
        return Err(Failure::input(message));
    }
    let scenario = inside(&arguments.scenario)?;
    run_scenario(arguments, &scenario, &format!("{}-testbed", scenario.stem))
}

/// `anabranch testbed compare`.
pub(super) fn compare(arguments: &Compare) -> Result<(), Failure> {
    let scenario = inside(&arguments.scenario)?;
    // One run at a time: they share the machine.
    compare_scenario(arguments, &scenario, &format!("{}-testbed-compare", scenario.stem), 1)
}
