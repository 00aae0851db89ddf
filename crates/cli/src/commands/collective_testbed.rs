//! `collective` on a testbed: each rank at a host of its own, and what the switches saw of it.

use super::collective::Uplink;
use crate::{arguments::ScenarioArguments, commands::request::load, failure::Failure};
use anabranch_testbed::{
    Plan, PortCount, Role, dropped,
    standing::{self, Action, Standing, Tied},
};
use std::ffi::OsString;

/// A testbed that ranks run on.
enum Kind {
    /// Made for them: it goes with this process, and with it the scenario with its defaults, which ranks read.
    Made(Tied),
    /// One that stands.
    Found(Standing),
}

/// A testbed that ranks run on, and what its ports had carried before.
pub(super) struct Ground {
    kind: Kind,
    before: Vec<PortCount>,
}

impl Ground {
    /// Builds the network of a scenario.
    pub(super) fn build(scenario: &str, set: &[String]) -> Result<Self, Failure> {
        let arguments = ScenarioArguments { scenario: scenario.into(), set: set.to_vec(), seed: None };
        let scenario = load(&arguments)?;
        let plan = Plan::of_setup(&scenario.setup(scenario.seed)?, &scenario.wire)?;
        let name = format!("collective-{}", std::process::id());
        let made = standing::up_tied(&name, &plan, &scenario.to_toml())?;
        Ground { kind: Kind::Made(made), before: Vec::new() }.counted()
    }

    /// Uses one that stands.
    pub(super) fn find(name: &str) -> Result<Self, Failure> {
        Ground { kind: Kind::Found(standing::find(name)?), before: Vec::new() }.counted()
    }

    fn standing(&self) -> &Standing {
        match &self.kind {
            Kind::Made(made) => made,
            Kind::Found(standing) => standing,
        }
    }

    fn counted(mut self) -> Result<Self, Failure> {
        self.before = self.standing().act(Action::Count)?;
        Ok(self)
    }

    /// Hosts for so many ranks: neighbours in a ring stand at different leaves, so that their messages cross a spine.
    fn hosts(&self, ranks: usize) -> Result<Vec<&str>, Failure> {
        let plan = &self.standing().plan;
        let leaf_of =
            |host: usize| plan.cables.iter().find(|cable| cable.lower.node == host).map(|cable| cable.upper.node);
        let mut hosts: Vec<(usize, usize, usize)> = Vec::new();
        for host in (0..plan.nodes.len()).filter(|node| plan.nodes[*node].role == Role::Host) {
            let leaf = leaf_of(host).unwrap_or(0);
            let place = hosts.iter().filter(|(_, of, _)| *of == leaf).count();
            hosts.push((place, leaf, host));
        }
        hosts.sort_unstable();
        if hosts.len() < ranks {
            return Err(Failure::input(format!("--ranks: {ranks}, and the testbed has {} hosts", hosts.len())));
        }
        Ok(hosts[..ranks].iter().map(|(.., host)| plan.nodes[*host].name.as_str()).collect())
    }

    /// What stands before the command of each rank.
    pub(super) fn places(&self, ranks: usize) -> Result<Vec<Vec<OsString>>, Failure> {
        let place = |host: &str| {
            let command = self.standing().exec(host, &[])?;
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            Ok(words.map(OsString::from).collect())
        };
        self.hosts(ranks)?.into_iter().map(place).collect()
    }

    /// What ranks are told besides what the user says.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let given = |name: &str| std::env::var_os(name).is_some();
        match &self.kind {
            Kind::Made(made) if !given("ANABRANCH_CONFIG") => {
                vec![("ANABRANCH_CONFIG".to_string(), made.text_at.display().to_string())]
            }
            _ => Vec::new(),
        }
    }

    /// What has left leaves for spines since it was built or found.
    pub(super) fn uplinks(&self) -> Result<Vec<Uplink>, Failure> {
        let plan = &self.standing().plan;
        let after = self.standing().act(Action::Count)?;
        let dropped = dropped(plan, &self.before, &after);
        let role = |node: usize| &plan.nodes[node].role;
        let ports = plan.ports().zip(after.iter().zip(&self.before).zip(dropped));
        let upwards = ports.filter(|((end, other), _)| *role(end.node) == Role::Leaf && *role(*other) == Role::Spine);
        Ok(upwards
            .map(|((end, other), ((after, before), drops))| Uplink {
                port: format!("{}->{}", plan.nodes[end.node].name, plan.nodes[other].name),
                bytes: after.bytes - before.bytes,
                packets: after.packets - before.packets,
                drops,
                marks: after.marks.zip(before.marks).map(|(after, before)| after - before),
            })
            .collect())
    }
}
