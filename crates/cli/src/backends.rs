//! Backends of the program, and their selection on the command line.

use crate::{
    BackendArguments, Failure, ScenarioArguments,
    commands::{nccl, request::load},
};
use anabranch_scenario::{BackendEntry, SIMULATOR, Scenario, ScenarioError, library};
use anabranch_settings::nearest;

/// Backends of the program `anabranch`, the default first.
pub static BACKENDS: &[&BackendEntry] = &[
    &SIMULATOR,
    #[cfg(target_os = "linux")]
    &testbed::TESTBED,
];

/// Returns the backends of `--backend`; without it, the first of `known`.
pub(crate) fn select_backends(
    arguments: &BackendArguments,
    known: &[&'static BackendEntry],
) -> Result<Vec<&'static BackendEntry>, ScenarioError> {
    let names: Vec<&str> = known.iter().map(|backend| backend.name).collect();
    let mut chosen: Vec<&'static BackendEntry> = Vec::new();
    for name in &arguments.backend {
        let Some(backend) = known.iter().find(|backend| backend.name == name) else {
            let all: Vec<String> =
                known.iter().map(|backend| format!("{} ({})", backend.name, backend.about)).collect();
            let error =
                ScenarioError::new(format!("--backend: unknown backend `{name}`; allowed are {}", all.join(", ")));
            // Pages call it the simulator.
            let named = (name == "simulator" && names.contains(&"sim")).then(|| "sim".to_string());
            let near = named.or_else(|| nearest(name, names.iter().copied()));
            return Err(near.map_or(error.clone(), |near| error.help(format!("did you mean `{near}`?"))));
        };
        if chosen.contains(backend) {
            return Err(ScenarioError::new(format!("--backend: found `{name}` twice")).help("name each backend once"));
        }
        chosen.push(backend);
    }
    if chosen.is_empty() {
        chosen.extend(known.first());
    }
    Ok(chosen)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schemes {
    /// The load balancer of the scenario.
    Own,
    /// Load balancers of options, checked later.
    Named,
}

pub(crate) fn scenario_on(
    arguments: &ScenarioArguments,
    of: &BackendArguments,
    backends: &[&'static BackendEntry],
    schemes: Schemes,
) -> Result<Scenario, Failure> {
    let plugin = of.plugin.as_deref().map(|path| nccl::plugin(Some(path))).transpose()?;
    let entering: Vec<_> = backends.iter().filter_map(|backend| backend.enter).collect();
    if !entering.is_empty() {
        // Check before `enter` restarts the process in new namespaces.
        let scenario = library::load(&arguments.scenario, &arguments.set, arguments.seed)?;
        let mut setup = scenario.setup(scenario.seed)?;
        if schemes == Schemes::Named {
            setup.load_balancers.clear();
        }
        let mut entered = backends.iter().filter(|backend| backend.enter.is_some());
        entered.try_for_each(|backend| scenario.check(&setup, backend))?;
        entering.iter().try_for_each(|enter| enter())?;
    }
    Ok(load(arguments)?.with_plugin(plugin))
}

#[cfg(target_os = "linux")]
pub(crate) mod testbed {
    use crate::commands::nccl;
    use anabranch_collective::{rank::Element, run::Settings};
    use anabranch_scenario::{ScenarioError, backend::BackendEntry, scenario::Scenario};
    use anabranch_settings::Auto;
    use anabranch_testbed::{Testbed, TestbedError, space};
    use anabranch_workload::{self as workload, NcclJob};
    use nccl_net_anabranch::VARIABLES;
    use std::{fs, path::Path};

    pub(crate) static TESTBED: BackendEntry = BackendEntry {
        name: "testbed",
        about: "a leaf-spine of network namespaces on this machine: real packets, the kernel's own ECMP",
        make: |scenario| {
            let own = scenario.clone();
            Box::new(Testbed::new(scenario.wire.clone(), Box::new(move |job| launch(&own, job))))
        },
        enter: Some(enter),
    };

    fn enter() -> Result<(), ScenarioError> {
        let error_of = |error: TestbedError| ScenarioError::new(error.to_string());
        if space::is_inside() {
            return space::settle().map_err(error_of);
        }
        std::process::exit(space::go_inside().map_err(error_of)?)
    }

    fn launch(scenario: &Scenario, job: &NcclJob) -> Result<Settings, String> {
        let parameters = &job.parameters;
        let plugin = nccl::plugin(scenario.plugin.as_deref()).map_err(|failure| failure.message())?;
        // A file in the private namespace, removed with it.
        let configuration = Path::new(space::PRIVATE).join("anabranch.toml");
        fs::write(&configuration, scenario.to_toml())
            .map_err(|error| format!("{}: {error}", configuration.display()))?;
        let exe = std::env::current_exe().map_err(|error| error.to_string())?;
        let set = |name: &str, value: String| (name.to_string(), value);
        Ok(Settings {
            command: vec![exe.display().to_string(), "collective-rank".into()],
            places: Vec::new(),
            variables: vec![
                set("ANABRANCH_CONFIG", configuration.display().to_string()),
                set("ANABRANCH_PLANES", scenario.topology().map_err(|error| error.to_string())?.planes.to_string()),
            ],
            // The scenario alone configures the plugin.
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
            injected_failure: None,
        })
    }
}
