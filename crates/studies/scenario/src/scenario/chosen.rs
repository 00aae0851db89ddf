//! Flows named in `[measure]`: those that are traced, and those that give a time series.

use crate::{ScenarioError, Tree};
use anabranch_settings::{InvalidValue, Raw, Setting, nearest};
use anabranch_topology::{Topology, is_like};
use anabranch_workload::FlowSet;

/// Flows as named in a scenario. In names of workloads and hosts `*` matches any text and `?` one character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChosenFlows {
    Number(u32),
    /// Those of a workload, or its first ones up to a number; `first` means all workloads together.
    Of(String, Option<u64>),
    /// Those between two hosts.
    Between(String, String),
}

const FIRST: &str = "first";

impl Setting for ChosenFlows {
    fn expected() -> String {
        "the number of a flow, \"first:10\", the name of a workload, \"NAME:10\", or \"host3->host9\" (names may be patterns)".into()
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        let wrong = || InvalidValue::of::<Self>(raw);
        let text = match raw {
            Raw::Int(number) => return u32::try_from(*number).map(ChosenFlows::Number).map_err(|_| wrong()),
            Raw::Text(text) => text.trim(),
            _ => return Err(wrong()),
        };
        if let Some((from, to)) = text.split_once("->") {
            return Ok(ChosenFlows::Between(from.trim().into(), to.trim().into()));
        }
        if let Some((name, count)) = text.rsplit_once(':') {
            let count = count.trim().parse().map_err(|_| wrong().because("expected a number after the colon"))?;
            return Ok(ChosenFlows::Of(name.trim().into(), Some(count)));
        }
        match text.parse() {
            Ok(number) => Ok(ChosenFlows::Number(number)),
            Err(_) if text.is_empty() => Err(wrong()),
            Err(_) => Ok(ChosenFlows::Of(text.into(), None)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Text(match self {
            ChosenFlows::Number(number) => number.to_string(),
            ChosenFlows::Of(name, None) => name.clone(),
            ChosenFlows::Of(name, Some(count)) => format!("{name}:{count}"),
            ChosenFlows::Between(from, to) => format!("{from}->{to}"),
        })
    }
}

/// Returns the numbers of the flows in the list `key`, ascending.
pub(crate) fn resolve(
    key: &str,
    chosen: &[ChosenFlows],
    flows: &FlowSet,
    topology: &Topology,
    tree: &Tree,
) -> Result<Vec<u32>, ScenarioError> {
    let mut numbers: Vec<u32> = Vec::new();
    for (index, choice) in chosen.iter().enumerate() {
        let found = numbers_of(choice, flows, topology).map_err(|message| {
            let place = tree.place(&format!("measure.{key}[{index}]"));
            ScenarioError::new(format!("[measure]: `{key}`: {message}")).maybe_at(place)
        })?;
        numbers.extend(found);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn numbers_of(choice: &ChosenFlows, flows: &FlowSet, topology: &Topology) -> Result<Vec<u32>, String> {
    let number = flows.flows.len();
    let all = || (0..).zip(&flows.flows);
    match choice {
        ChosenFlows::Number(flow) if (*flow as usize) < number => Ok(vec![*flow]),
        ChosenFlows::Number(flow) => {
            Err(format!("there is no flow {flow}; this scenario has {number}, numbered from 0"))
        }
        ChosenFlows::Of(name, most) => {
            let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
            let named = (0..).zip(&flows.workloads).filter(|(_, workload)| is_like(&workload.name, name));
            let workloads: Vec<u16> = named.map(|(index, _)| index).collect();
            if workloads.is_empty() && name == FIRST && most < usize::MAX {
                return Ok(all().map(|(number, _)| number).take(most).collect());
            }
            if workloads.is_empty() {
                let names: Vec<&str> = flows.workloads.iter().map(|workload| workload.name.as_str()).collect();
                let hint = nearest(name, names.iter().copied().chain([FIRST]));
                let hint = hint.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                return Err(format!("there is no workload `{name}`; there are {}{hint}", names.join(", ")));
            }
            let of = |index: u16| all().filter(move |(_, flow)| flow.workload == index).map(|(number, _)| number);
            Ok(workloads.into_iter().flat_map(|index| of(index).take(most)).collect())
        }
        ChosenFlows::Between(from, to) => {
            let (sources, targets) = (hosts(from, topology)?, hosts(to, topology)?);
            let has = |hosts: &[u32], host: u32| hosts.binary_search(&host).is_ok();
            let between = all().filter(|(_, flow)| has(&sources, flow.src) && has(&targets, flow.dst));
            let found: Vec<u32> = between.map(|(number, _)| number).collect();
            if found.is_empty() { Err(format!("no flow goes from {from} to {to}")) } else { Ok(found) }
        }
    }
}

/// Resolves hosts by a number, a name or a pattern, ascending.
fn hosts(name: &str, topology: &Topology) -> Result<Vec<u32>, String> {
    match name.parse() {
        Ok(number) if number < topology.hosts => Ok(vec![number]),
        _ => topology.hosts_like(name).map_err(|error| error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_topology::TopologyParameters;
    use anabranch_units::Time;
    use anabranch_workload::{Flow, Start, WorkloadInfo};

    /// 4 leaves of 2 hosts.
    fn topology() -> Topology {
        let mut parameters = TopologyParameters::named("fat-tree").expect("a topology");
        for (key, value) in [("tiers", Raw::Int(2)), ("radix", Raw::Int(4))] {
            parameters.parameters_mut().set(key, &value).expect("a parameter");
        }
        parameters.build(&|path| Err(std::io::Error::other(path.to_string()))).expect("a topology")
    }

    /// Flows 0, 2, 4 of `web` (host0 to host1, host1 to host2, host2 to host3), 1 and 3 of `ring`.
    fn set() -> FlowSet {
        let flow = |number: u32| Flow {
            src: number / 2,
            dst: number / 2 + 1,
            gpus: None,
            medium: anabranch_workload::Medium::Network,
            size: 1,
            start: Start::At(Time::from_ns(number.into())),
            workload: (number % 2) as u16,
            class: 0,
            key: 0,
            connection: 0,
            listed: number,
            on_sent: None,
            on_received: None,
        };
        let named = |name: &str| WorkloadInfo {
            name: name.into(),
            measured: true,
            load_balancer: 0,
            is_job: false,
            collective: None,
        };
        FlowSet {
            flows: (0..5).map(flow).collect(),
            workloads: vec![named("web"), named("ring")],
            ..FlowSet::default()
        }
    }

    fn chosen(what: &str) -> Result<Vec<u32>, String> {
        let choice = ChosenFlows::read(&Raw::Text(what.into())).expect("a choice");
        numbers_of(&choice, &set(), &topology())
    }

    #[test]
    fn flows_by_number_workload_count_and_hosts() {
        let cases: [(&str, &[u32]); 9] = [
            ("3", &[3]),
            ("first:3", &[0, 1, 2]),
            ("ring", &[1, 3]),
            ("web:2", &[0, 2]),
            ("*:1", &[0, 1]),
            ("w?b", &[0, 2, 4]),
            ("host1->host2", &[2, 3]),
            ("*->host1", &[0, 1]),
            ("1->*", &[2, 3]),
        ];
        for (what, expected) in cases {
            assert_eq!(chosen(what).expect("flows"), expected, "{what}");
        }
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        for (what, words) in [
            ("5", "has 5, numbered from 0"),
            ("wbe", "did you mean `web`?"),
            ("hots1->*", "did you mean `host1`?"),
            ("host7->*", "no flow goes from host7 to *"),
        ] {
            let wrong = chosen(what).unwrap_err();
            assert!(wrong.contains(words), "{what}: {wrong}");
        }
    }
}
