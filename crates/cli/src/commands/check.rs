use super::request::load;
use crate::{BackendArguments, Failure, Format, ScenarioArguments, note, print, print_json, select_backends};
use anabranch_scenario::BackendEntry;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// `anabranch check`: refuses what `run` would refuse, without running.
pub(crate) fn check(arguments: &Check, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let chosen = select_backends(&arguments.on, backends)?;
    let scenario = load(&arguments.scenario)?;
    let setup = scenario.setup(scenario.seed)?;
    let text = scenario.to_toml();
    chosen.iter().try_for_each(|backend| scenario.check(&setup, backend))?;
    let mut foresight: Vec<String> = chosen.iter().flat_map(|backend| scenario.foresight(&setup, backend)).collect();
    foresight.dedup();
    foresight.iter().for_each(|warning| note(&format!("warning: {warning}")));
    let readings = anabranch_scenario::scenario::readings::readings(&scenario);
    let hash = format!("{:016x}", scenario.hash());
    match arguments.format {
        Format::Json => print_json(&json!({
            "scenario": scenario.name,
            "hash": hash,
            "text": text,
            "hosts": setup.topology.hosts,
            "gpus": setup.flows.servers.as_ref().map(|servers| servers.endpoints(setup.topology.hosts)),
            "flows": setup.flows.number_of_flows(),
            "readings": readings,
            "warnings": scenario.warnings().into_iter().chain(foresight).collect::<Vec<_>>(),
        })),
        Format::Table => {
            let (hosts, flows) = (setup.topology.hosts, setup.flows.number_of_flows());
            let gpus = setup.flows.servers.as_ref().map_or_else(String::new, |servers| {
                let (gpus, count) = (servers.endpoints(hosts), hosts / servers.nics);
                format!(" as NICs of {count} servers with {gpus} GPUs")
            });
            let mut head = format!(
                "# Every default filled in. Hash {hash}.\n# {hosts} hosts{gpus}, {flows} flows with this seed.\n"
            );
            if !readings.is_empty() {
                head += &format!("# Readings set: {}.\n", readings.join(", "));
            }
            print(&(head + &text));
        }
    }
    Ok(())
}
