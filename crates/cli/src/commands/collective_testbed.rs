//! `collective` on a testbed: each rank on its own host, and the counters of the leaves' uplinks.

use super::collective::Uplink;
use crate::{Failure, ScenarioArguments, commands::request::load};
use anabranch_testbed::{
    PortCount, Role, TestbedPlan, dropped, standing,
    standing::{Action, RunningTestbed, Tied},
};
use std::ffi::OsString;

enum RankTestbed {
    /// Built for the ranks; removed with this process, together with the scenario file that ranks read.
    Owned(Tied),
    Shared(RunningTestbed),
}

pub(super) struct RankHosts {
    kind: RankTestbed,
    before: Vec<PortCount>,
}

impl RankHosts {
    pub(super) fn build(scenario: &str, set: &[String]) -> Result<Self, Failure> {
        let arguments = ScenarioArguments { scenario: scenario.into(), set: set.to_vec(), seed: None };
        let scenario = load(&arguments)?;
        let plan = TestbedPlan::of_setup(&scenario.setup(scenario.seed)?, &scenario.wire)?;
        let name = format!("collective-{}", std::process::id());
        let owned = standing::up_tied(&name, &plan, &scenario.to_toml())?;
        RankHosts { kind: RankTestbed::Owned(owned), before: Vec::new() }.counted()
    }

    pub(super) fn find(name: &str) -> Result<Self, Failure> {
        RankHosts { kind: RankTestbed::Shared(standing::find(name)?), before: Vec::new() }.counted()
    }

    pub(super) fn standing(&self) -> &RunningTestbed {
        match &self.kind {
            RankTestbed::Owned(owned) => owned,
            RankTestbed::Shared(standing) => standing,
        }
    }

    fn counted(mut self) -> Result<Self, Failure> {
        self.before = self.standing().act(Action::Count)?;
        Ok(self)
    }

    /// Hosts of the ranks. Neighbours in a ring are on different leaves, so that their messages cross a spine.
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
            return Err(Failure::input(format!(
                "--ranks: found {ranks}, expected at most {}, the hosts of the testbed",
                hosts.len()
            )));
        }
        Ok(hosts[..ranks].iter().map(|(.., host)| plan.nodes[*host].name.as_str()).collect())
    }

    /// Words before the command of each rank, which run it on its host.
    pub(super) fn command_prefixes(&self, ranks: usize) -> Result<Vec<Vec<OsString>>, Failure> {
        let place = |host: &str| {
            let command = self.standing().exec(host, &[])?;
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            Ok(words.map(OsString::from).collect())
        };
        self.hosts(ranks)?.into_iter().map(place).collect()
    }

    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let given = |name: &str| std::env::var_os(name).is_some();
        let config = match &self.kind {
            RankTestbed::Owned(owned) => Some(owned.text_at.display().to_string()),
            _ => None,
        };
        let planes = Some(self.standing().plan.plane_count().to_string());
        let set = |(name, value): (&str, Option<String>)| Some((name.to_string(), value.filter(|_| !given(name))?));
        [("ANABRANCH_CONFIG", config), ("ANABRANCH_PLANES", planes)].into_iter().filter_map(set).collect()
    }

    /// Counters of the ports from leaves to spines since the job started.
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
