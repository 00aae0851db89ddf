//! Scenarios whose packets a testbed carries: `run` and `compare` with the results of their simulated namesakes.

use crate::{
    arguments::{Compare, Run, ScenarioArguments},
    commands::{compare::compare_scenario, load, nccl, run::run_scenario},
    failure::Failure,
};
use anabranch_backend::{Progress, RunError, RunResult, Setup};
use anabranch_collective::{rank::Element, run::Settings};
use anabranch_settings::Auto;
use anabranch_study::scenario::Scenario;
use anabranch_testbed::{Plan, space};
use anabranch_workload::{self as workload, NcclJob};
use nccl_net_anabranch::VARIABLES;
use std::{fs, path::Path};

/// What carries the packets.
fn carry(
    scenario: &Scenario,
    setup: &Setup,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, RunError> {
    let launch = |job: &NcclJob| launch(scenario, job);
    anabranch_testbed::run(setup, &scenario.wire, &launch, progress)
}

/// What ranks of a collective are started with.
fn launch(scenario: &Scenario, job: &NcclJob) -> Result<Settings, String> {
    let parameters = &job.parameters;
    let plugin = nccl::plugin(scenario.plugin.as_deref()).map_err(|failure| failure.message())?;
    // Seen in these namespaces alone, and gone with them.
    let configuration = Path::new(space::PRIVATE).join("anabranch.toml");
    fs::write(&configuration, scenario.to_toml()).map_err(|error| format!("{}: {error}", configuration.display()))?;
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let set = |name: &str, value: String| (name.to_string(), value);
    Ok(Settings {
        command: vec![exe.display().to_string(), "collective-rank".into()],
        places: Vec::new(),
        variables: vec![set("ANABRANCH_CONFIG", configuration.display().to_string())],
        // The scenario says everything.
        without: VARIABLES
            .iter()
            .map(|variable| variable.name)
            .chain(["NCCL_SOCKET_IFNAME"])
            .map(String::from)
            .collect(),
        plugin,
        abi: match parameters.abi {
            Auto::Auto => None,
            Auto::Value(abi) => Some(abi.number()),
        },
        kind: parameters.collective,
        ranks: job.hosts.len(),
        bytes: parameters.size.0 as usize,
        channels: parameters.channels as usize,
        rounds: parameters.rounds as usize,
        element: match parameters.element {
            workload::Element::Float => Element::Float,
            workload::Element::Int => Element::Int,
        },
        rows: true,
        mishap: None,
    })
}

/// The scenario, in a process that lives in namespaces of its own: the first time it comes here it goes there and begins anew.
fn inside(arguments: &ScenarioArguments, plugin: Option<&Path>) -> Result<Scenario, Failure> {
    if space::is_inside() {
        space::settle()?;
        return read(arguments, plugin);
    }
    let scenario = read(arguments, plugin)?;
    // What cannot be built is told here.
    Plan::of_setup(&scenario.setup(scenario.seed)?, &scenario.wire)?;
    match space::go_inside()? {}
}

fn read(arguments: &ScenarioArguments, plugin: Option<&Path>) -> Result<Scenario, Failure> {
    let plugin = plugin.map(|path| nccl::plugin(Some(path))).transpose()?;
    Ok(load(arguments)?.carried_by(carry).with_plugin(plugin))
}

/// `anabranch testbed run`.
pub(super) fn run(arguments: &Run, plugin: Option<&Path>) -> Result<(), Failure> {
    if !arguments.pcap.is_empty() {
        let message =
            "--pcap is for simulations: `anabranch testbed up` and `capture` write what passes a port of a testbed";
        return Err(Failure::input(message));
    }
    let scenario = inside(&arguments.scenario, plugin)?;
    run_scenario(arguments, &scenario, &format!("{}-testbed", scenario.stem))
}

/// `anabranch testbed compare`.
pub(super) fn compare(arguments: &Compare, plugin: Option<&Path>) -> Result<(), Failure> {
    let scenario = inside(&arguments.scenario, plugin)?;
    // One run at a time: they share the machine.
    compare_scenario(arguments, &scenario, &format!("{}-testbed-compare", scenario.stem), 1)
}
