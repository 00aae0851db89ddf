//! `[measure] trace_flows`: which flows are traced.

use crate::{error::ScenarioError, tree::Tree};
use anabranch_settings::{Raw, Setting, Wrong, nearest};
use anabranch_topology::Topology;
use anabranch_workload::FlowSet;

/// Flows that are traced, as a scenario names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracedFlows {
    /// The flow of this number.
    Number(u32),
    /// Those of a workload, or the first so many of it; [`FIRST`] stands for all workloads.
    Of(String, Option<u64>),
    /// Those between two hosts.
    Between(String, String),
}

/// The word before a number that counts flows of all workloads.
const FIRST: &str = "first";

impl Setting for TracedFlows {
    fn expected() -> String {
        "the number of a flow, \"first:10\", the name of a workload, \"NAME:10\", or \"host3->host9\"".into()
    }
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let wrong = || Wrong::of::<Self>(raw);
        let text = match raw {
            Raw::Int(number) => return u32::try_from(*number).map(TracedFlows::Number).map_err(|_| wrong()),
            Raw::Text(text) => text.trim(),
            _ => return Err(wrong()),
        };
        if let Some((from, to)) = text.split_once("->") {
            return Ok(TracedFlows::Between(from.trim().into(), to.trim().into()));
        }
        if let Some((name, count)) = text.rsplit_once(':') {
            let count = count.trim().parse().map_err(|_| wrong().because("behind the colon stands how many"))?;
            return Ok(TracedFlows::Of(name.trim().into(), Some(count)));
        }
        match text.parse() {
            Ok(number) => Ok(TracedFlows::Number(number)),
            Err(_) if text.is_empty() => Err(wrong()),
            Err(_) => Ok(TracedFlows::Of(text.into(), None)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Text(match self {
            TracedFlows::Number(number) => number.to_string(),
            TracedFlows::Of(name, None) => name.clone(),
            TracedFlows::Of(name, Some(count)) => format!("{name}:{count}"),
            TracedFlows::Between(from, to) => format!("{from}->{to}"),
        })
    }
}

/// The numbers of the flows meant, ascending.
///
/// # Errors
/// [`ScenarioError`] where there is no such flow, workload or host.
pub(crate) fn resolve(
    chosen: &[TracedFlows],
    flows: &FlowSet,
    topology: &Topology,
    tree: &Tree,
) -> Result<Vec<u32>, ScenarioError> {
    let mut numbers: Vec<u32> = Vec::new();
    for (index, choice) in chosen.iter().enumerate() {
        let found = numbers_of(choice, flows, topology).map_err(|message| {
            let place = tree.find(&format!("measure.trace_flows[{index}]")).map(|node| node.place.clone());
            ScenarioError::new(format!("[measure]: `trace_flows`: {message}")).maybe_at(place)
        })?;
        numbers.extend(found);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn numbers_of(choice: &TracedFlows, flows: &FlowSet, topology: &Topology) -> Result<Vec<u32>, String> {
    let number = flows.flows.len();
    let all = || (0..).zip(&flows.flows);
    match choice {
        TracedFlows::Number(flow) if (*flow as usize) < number => Ok(vec![*flow]),
        TracedFlows::Number(flow) => {
            Err(format!("there is no flow {flow}; this scenario has {number}, numbered from 0"))
        }
        TracedFlows::Of(name, most) => {
            let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
            let workload = flows.workloads.iter().position(|workload| workload.name == *name);
            match workload {
                Some(index) => {
                    let own = all().filter(|(_, flow)| usize::from(flow.workload) == index);
                    Ok(own.map(|(number, _)| number).take(most).collect())
                }
                None if name == FIRST && most < usize::MAX => Ok(all().map(|(number, _)| number).take(most).collect()),
                None => {
                    let names: Vec<&str> = flows.workloads.iter().map(|workload| workload.name.as_str()).collect();
                    let hint = nearest(name, names.iter().copied().chain([FIRST]));
                    let hint = hint.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                    Err(format!("there is no workload `{name}`; there are {}{hint}", names.join(", ")))
                }
            }
        }
        TracedFlows::Between(from, to) => {
            let (from, to) = (host(from, topology)?, host(to, topology)?);
            let found: Vec<u32> =
                all().filter(|(_, flow)| flow.src == from && flow.dst == to).map(|(number, _)| number).collect();
            match found.is_empty() {
                true => Err(format!("no flow goes from host{from} to host{to}")),
                false => Ok(found),
            }
        }
    }
}

/// A host by its name or number.
fn host(name: &str, topology: &Topology) -> Result<u32, String> {
    let named = topology.node_named(name).ok().map(|node| node.0).or_else(|| name.parse().ok());
    let hosts = topology.hosts;
    named
        .filter(|host| *host < hosts)
        .ok_or_else(|| format!("there is no host `{name}`; hosts are host0 to host{}", hosts.max(1) - 1))
}
