//! Placement of the ranks of a job on hosts.

use super::{host_set::HostSet, ranks::Ranks};
use crate::{
    ServerParameters, WorkloadError,
    jobs::{
        job::{Barrier, GroupedJob},
        schedule::Schedule,
    },
    view::Context,
};
use anabranch_random::Stream;
use anabranch_settings::{Auto, InvalidValue, Raw, Setting, ValueSchema};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// Placement of ranks on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Group after group on consecutive hosts.
    Packed,
    /// Random hosts in a random order.
    Random,
    /// The groups in turn: each has every g-th host, for g groups.
    Strided,
    /// Group after group on the first hosts of all racks, then the second ones, and so on: neighbours are in different
    /// racks.
    AcrossRacks,
    /// Group after group on the GPUs of one number in consecutive servers, which are on one rail.
    Rail,
    /// As in this file: a line per group, with the hosts of its ranks.
    File(String),
}

const WORDS: [(&str, Placement); 5] = [
    ("packed", Placement::Packed),
    ("random", Placement::Random),
    ("strided", Placement::Strided),
    ("across-racks", Placement::AcrossRacks),
    ("rail", Placement::Rail),
];

impl Setting for Placement {
    fn expected() -> String {
        "\"packed\", \"random\", \"strided\", \"across-racks\", \"rail\" or the path of a file with the hosts of each group".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Words(WORDS.iter().map(|(word, _)| *word).collect()), ValueSchema::Text])
    }
    /// A text with a dot or a slash is a path.
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        let Raw::Text(found) = raw else { return Err(InvalidValue::of::<Self>(raw)) };
        match WORDS.iter().find(|(word, _)| word == found) {
            Some((_, placement)) => Ok(placement.clone()),
            None if found.contains(['.', '/', '\\']) => Ok(Placement::File(found.clone())),
            None => Err(InvalidValue::of::<Self>(raw).near(WORDS.iter().map(|(word, _)| *word))),
        }
    }
    fn write(&self) -> Raw {
        let word = WORDS.iter().find(|(_, placement)| placement == self).map(|(word, _)| (*word).to_string());
        Raw::Text(match self {
            Placement::File(path) => path.clone(),
            _ => word.unwrap_or_default(),
        })
    }
}

impl Placement {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Placement::File(_))
    }
}

/// Groups of a job, and where they run.
pub(crate) struct Groups<'a> {
    pub(crate) groups: u32,
    pub(crate) ranks: Ranks,
    pub(crate) concurrent: Auto<u32>,
    pub(crate) hosts: &'a HostSet,
    pub(crate) placement: &'a Placement,
}

/// Ranks on hosts.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) ranks: u32,
    /// Groups that run at a time.
    pub(crate) concurrent: u32,
    /// Host of each rank, group by group.
    pub(crate) hosts: Vec<u32>,
}

impl Placed {
    /// Returns a job that runs its schedules once. Its workload and first message are unset.
    pub(crate) fn job(self, groups: u32, start: Time, schedules: Vec<Schedule>) -> GroupedJob {
        GroupedJob {
            workload: 0,
            first: 0,
            groups,
            ranks: self.ranks,
            repetitions: 1,
            concurrent: self.concurrent,
            start,
            gap: Time::ZERO,
            compute: Time::ZERO,
            barrier: Barrier::Rank,
            hosts: self.hosts,
            schedules,
            collective: None,
        }
    }
}

impl Groups<'_> {
    /// One group, which `placement` puts on all hosts.
    pub(crate) fn one(ranks: Ranks, placement: &Placement) -> Groups<'_> {
        Groups { groups: 1, ranks, concurrent: Auto::Auto, hosts: &HostSet::All, placement }
    }

    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.groups > 0, "groups", self.groups, "1 or more")?;
        if let Auto::Value(concurrent) = self.concurrent {
            let groups = self.groups;
            let expected = format!("1 to {groups}, the number of groups, or \"auto\"");
            WorkloadError::unless((1..=groups).contains(&concurrent), "concurrent", concurrent, &expected)?;
        }
        match self.ranks {
            Ranks::Number(ranks) => WorkloadError::unless(ranks >= 2, "ranks", ranks, "2 or more"),
            Ranks::All => Ok(()),
        }
    }

    /// Returns the hosts of each rank; no two ranks that run at the same time share one.
    pub(crate) fn place(&self, context: &Context<'_>) -> Result<Placed, WorkloadError> {
        let concurrent = self.concurrent.value().unwrap_or(self.groups);
        if let Placement::File(path) = self.placement {
            return self.of_file(path, concurrent, context);
        }
        let mut hosts = self.hosts.hosts(context)?;
        let number = hosts.len() as u32;
        let ranks = match self.ranks {
            Ranks::Number(ranks) => ranks,
            Ranks::All if number.is_multiple_of(concurrent) && number / concurrent >= 2 => number / concurrent,
            Ranks::All => {
                let message = format!(
                    "found \"all\", and {number} hosts do not divide into {concurrent} groups at a time of 2 or more \
                     ranks; expected a number, or other `groups`, `concurrent` or `hosts`"
                );
                return Err(WorkloadError::of_key("ranks", message));
            }
        };
        let needed = u64::from(ranks) * u64::from(concurrent);
        if needed > u64::from(number) {
            return Err(self.too_many(ranks, concurrent, number, context.view.hosts));
        }
        match self.placement {
            Placement::Random => {
                Stream::keyed(context.seed, context.key(), "workload placement").shuffle(&mut hosts);
            }
            Placement::AcrossRacks => across_racks(&mut hosts, &context.view.leaf_of),
            Placement::Rail => {
                let servers = context.view.servers.as_ref().ok_or_else(no_servers)?;
                hosts.sort_by_key(|&host| (host % servers.gpus, servers.server_of(host)));
            }
            _ => {}
        }
        hosts.truncate(needed as usize);
        if *self.placement == Placement::Strided {
            let rank = |at: u64| (at % u64::from(ranks) * u64::from(concurrent) + at / u64::from(ranks)) as usize;
            hosts = (0..needed).map(|at| hosts[rank(at)]).collect();
        }
        if let (Placement::Rail, Some(servers)) = (self.placement, &context.view.servers) {
            on_one_rail(&hosts, ranks, servers)?;
        }
        Ok(Placed { ranks, concurrent, hosts })
    }

    fn too_many(&self, ranks: u32, concurrent: u32, number: u32, all: u32) -> WorkloadError {
        let hosts = if number == all { format!("the {all} hosts there are") } else { format!("the {number} `hosts`") };
        if self.groups == 1 {
            return WorkloadError::of_key("ranks", format!("found {ranks}, expected at most {hosts}"));
        }
        let (needed, most) = (u64::from(ranks) * u64::from(concurrent), number / ranks);
        let remedy = match most {
            0 => format!("expected `ranks` of at most {number}"),
            _ => format!("expected `concurrent` of at most {most}, fewer `ranks`, or more `hosts`"),
        };
        let message = format!("{concurrent} groups of {ranks} ranks at a time take {needed} of {hosts}; {remedy}");
        WorkloadError::of_key(if self.concurrent == Auto::Auto { "groups" } else { "concurrent" }, message)
    }

    /// Reads a line per group that runs at a time.
    fn of_file(&self, path: &str, concurrent: u32, context: &Context<'_>) -> Result<Placed, WorkloadError> {
        if *self.hosts != HostSet::All {
            let message = "has no effect with a placement file, which names the hosts; expected \"all\"";
            return Err(WorkloadError::of_key("hosts", message));
        }
        context.needs_a_pair()?;
        let key = |error: WorkloadError| error.with_key("placement");
        let content = (context.read_file)(path)
            .map_err(|why| WorkloadError::of_key("placement", format!("`{path}` could not be read: {why}")))?;
        let text = String::from_utf8(content)
            .map_err(|_| WorkloadError::of_key("placement", format!("`{path}` is not text (UTF-8)")))?;
        let all = context.view.hosts;
        // Line in which a host is named.
        let mut named = vec![0; all as usize];
        let (mut hosts, mut groups, mut ranks) = (vec![], 0, None);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let mut of_line = 0;
            for word in line.split([',', ' ', '\t', '\r']).filter(|word| !word.is_empty()) {
                let wrong = |message: String| key(WorkloadError::in_line(path, number, message));
                let host: u32 =
                    word.parse().map_err(|_| wrong(format!("found `{word}`, expected the number of a host")))?;
                let before = named
                    .get_mut(host as usize)
                    .ok_or_else(|| wrong(format!("host {host} does not exist; hosts are 0 to {}", all - 1)))?;
                if *before > 0 {
                    return Err(wrong(format!("host {host} is named twice, first in line {before}; expected it once")));
                }
                *before = number;
                hosts.push(host);
                of_line += 1;
            }
            if of_line == 0 {
                continue;
            }
            groups += 1;
            let expected = match (self.ranks, ranks) {
                (Ranks::Number(ranks), _) => ranks,
                (Ranks::All, Some(ranks)) => ranks,
                (Ranks::All, None) => of_line,
            };
            if of_line != expected || of_line < 2 {
                let expected = if expected < 2 { "two or more".to_string() } else { expected.to_string() };
                let message = format!("found {of_line} host(s), expected {expected}, a host for each rank of a group");
                return Err(key(WorkloadError::in_line(path, number, message)));
            }
            ranks = Some(of_line);
        }
        if groups != concurrent {
            let message = format!(
                "`{path}` has {groups} line(s) with hosts, expected {concurrent}: one for each group that runs at a time \
                 (`groups`, `concurrent`)"
            );
            return Err(WorkloadError::of_key("placement", message));
        }
        Ok(Placed { ranks: ranks.unwrap_or(0), concurrent, hosts })
    }
}

/// Orders hosts by their number within their rack, then by rack.
fn across_racks(hosts: &mut [u32], leaf_of: &[u32]) {
    let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
    let mut key = |host: u32| {
        let place = seen.entry(leaf_of[host as usize]).or_default();
        *place += 1;
        (*place, leaf_of[host as usize], host)
    };
    let mut order: Vec<_> = hosts.iter().map(|host| key(*host)).collect();
    order.sort_unstable();
    hosts.iter_mut().zip(order).for_each(|(place, (.., host))| *place = host);
}

fn no_servers() -> WorkloadError {
    let message = "found \"rail\", but the scenario has no [servers], so hosts have no rails; add [servers] with `gpus` \
                   and `nics`, or choose another placement";
    WorkloadError::of_key("placement", message)
}

/// Refuses a group that continues on the next rail.
fn on_one_rail(hosts: &[u32], ranks: u32, servers: &ServerParameters) -> Result<(), WorkloadError> {
    for (group, hosts) in hosts.chunks(ranks as usize).enumerate() {
        if let Some(other) = hosts.iter().find(|host| servers.rail_of(**host) != servers.rail_of(hosts[0])) {
            let message = format!(
                "group {group} has ranks on rails {} and {}; expected `ranks` that divide the GPUs of a rail, such as \
                 the number of servers",
                servers.rail_of(hosts[0]),
                servers.rail_of(*other)
            );
            return Err(WorkloadError::of_key("ranks", message));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
