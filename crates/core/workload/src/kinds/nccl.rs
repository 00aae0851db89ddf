//! A collective over NCCL's network plugin: real processes at the hosts of a testbed. Its messages are flows that nothing here
//! starts: ranks do, and say when each began and ended.

pub mod plan;

use super::{Kind, all_to_all::Ranks, plain};
use crate::{
    About, Start, Trigger, TriggerId, TriggerKind, WorkloadError,
    view::{Context, HostView, Traffic},
};
use anabranch_settings::{Auto, Raw, Setting, Shape, Wrong, choices, parameters};
use anabranch_units::{Bytes, Time};
use plan::{KINDS, What};
use std::collections::BTreeMap;

/// Most ranks, as `anabranch collective` has them.
const MOST_RANKS: u32 = 64;
/// Most bytes of a rank's buffer.
const MOST_BYTES: Bytes = Bytes(4 << 30);
/// Most channels.
const MOST_CHANNELS: u32 = 32;

/// What the registry says of this kind.
pub(crate) const ABOUT: About = About {
    name: "nccl",
    summary: "a collective of real processes over NCCL's network plugin: on testbeds alone",
    source: "ours; NCCL's interface of network plugins",
    description: "`anabranch testbed run` starts a process per rank at a host, which loads the plugin as NCCL does and runs the \
        collective `rounds` times after one round that does not count; every element is checked. A flow is a message of up to \
        512 KiB. A simulation cannot do it; its kinds `collective` and `all-to-all` send the same shapes.",
};

choices! {
    /// A version of NCCL's interface of network plugins.
    pub enum Abi {
        /// NCCL 2.20 to 2.23.
        V8 = "v8",
        /// NCCL 2.24 and 2.25.
        V9 = "v9",
        /// NCCL 2.26 and 2.27.
        V10 = "v10",
        /// NCCL 2.28 and 2.29.
        V11 = "v11",
        /// NCCL 2.30.
        V12 = "v12",
    }
}

impl Abi {
    /// Its number.
    pub fn number(self) -> u32 {
        8 + self as u32
    }
}

choices! {
    /// What buffers hold.
    pub enum Element {
        /// 32-bit floating point.
        Float = "float",
        /// 32-bit integers.
        Int = "int",
    }
}

impl Setting for plan::Kind {
    fn expected() -> String {
        let names: Vec<String> = KINDS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        format!("one of {}", names.join(" "))
    }
    fn shape() -> Shape {
        Shape::Words(KINDS.iter().map(|(name, _)| *name).collect())
    }
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let found = KINDS.iter().find(|(name, _)| *raw == Raw::Text((*name).into()));
        found.map(|(_, kind)| *kind).ok_or_else(|| Wrong::of::<Self>(raw).near(KINDS.iter().map(|(name, _)| *name)))
    }
    fn write(&self) -> Raw {
        Raw::Text(self.name().into())
    }
}

parameters! {
    /// A collective over NCCL's network plugin.
    pub struct NcclParameters {
        /// The collective: ring and tree are all-reduces; in pairs each rank sends to the next.
        collective: plan::Kind = plan::Kind::Ring, source "ours";
        /// Number of ranks, each a process at a host.
        ranks: Ranks = Ranks::All, source "ours";
        /// The host of each rank, by number; empty: neighbours in a ring stand at different leaves.
        hosts: Vec<u32> = vec![], source "ours";
        /// Bytes of each rank's buffer: whole words of 4 B, at most 4GiB.
        size: Bytes = Bytes(4 << 20), source "ours";
        /// Rounds that count, after one that does not.
        rounds: u32 = 5, source "ours";
        /// Channels, each of which does a share over connections of its own.
        channels: u32 = 2, source "ours";
        /// What buffers hold.
        element: Element = Element::Float, source "ours";
        /// Version of NCCL's interface; auto: the newest that the plugin has.
        abi: Auto<Abi> = Auto::Auto, source "ours";
        /// When ranks are started.
        start: Time = Time::ZERO, source "ours";
        /// Most flows that may be made: a guard for the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB";
    }
}

/// A collective that ranks run.
#[derive(Clone, Debug, PartialEq)]
pub struct NcclJob {
    /// Its workload, an index into [`crate::FlowSet::workloads`].
    pub workload: u16,
    /// [`crate::Flow::listed`] of its first message; the others follow in the order of [`NcclJob::messages`].
    pub first: u32,
    /// The host of each rank.
    pub hosts: Vec<u32>,
    /// What is run.
    pub parameters: NcclParameters,
}

/// A message of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its round, from zero.
    pub round: u32,
    /// Its channel.
    pub channel: usize,
    /// The rank that sends it, and its place in that rank's program.
    pub from: (usize, usize),
    /// The rank that receives it, and its place in that rank's program.
    pub to: (usize, usize),
    /// Its bytes.
    pub bytes: u64,
}

impl NcclParameters {
    /// The messages of a round of so many ranks, by channel, sender and place in the sender's program.
    fn round(&self, ranks: usize) -> Vec<Message> {
        let (all, channels) = (self.size.0 as usize, self.channels as usize);
        let mut messages = Vec::new();
        for channel in 0..channels {
            let share = plan::part(&(0..all), channel, channels);
            let programs: Vec<_> =
                (0..ranks).map(|rank| plan::operations(self.collective, rank, ranks, share.clone(), all)).collect();
            // Of each pair of ranks the receives, which meet the sends in order.
            let mut receives: BTreeMap<(usize, usize), std::vec::IntoIter<usize>> = BTreeMap::new();
            for (to, program) in programs.iter().enumerate() {
                let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                for (place, (what, _)) in program.iter().enumerate() {
                    if let What::Receive(from, _) = what {
                        places.entry(*from).or_default().push(place);
                    }
                }
                receives.extend(places.into_iter().map(|(from, places)| ((from, to), places.into_iter())));
            }
            for (from, program) in programs.iter().enumerate() {
                for (place, (what, bytes)) in program.iter().enumerate() {
                    if let What::Send(to) = *what
                        && let Some(there) = receives.get_mut(&(from, to)).and_then(Iterator::next)
                    {
                        let (from, to, bytes) = ((from, place), (to, there), bytes.len() as u64);
                        messages.push(Message { round: 0, channel, from, to, bytes });
                    }
                }
            }
        }
        messages
    }

    /// The host of each rank.
    fn placed(&self, view: &HostView) -> Result<Vec<u32>, WorkloadError> {
        let most = view.hosts.min(MOST_RANKS);
        if let Some(host) = self.hosts.iter().find(|host| **host >= view.hosts) {
            let message = format!("host {host} does not exist; hosts are 0 to {}", view.hosts - 1);
            return Err(WorkloadError::of_key("hosts", message));
        }
        let ranks = match self.ranks {
            Ranks::Number(ranks) => ranks,
            Ranks::All if self.hosts.is_empty() => view.hosts,
            Ranks::All => self.hosts.len() as u32,
        };
        WorkloadError::unless(ranks <= most, "ranks", ranks, &format!("at most {most}, a host for each"))?;
        if !self.hosts.is_empty() {
            return Ok(self.hosts.clone());
        }
        // The first host of every leaf, then the second of every leaf, and so on.
        let mut places: Vec<(usize, u32, u32)> = Vec::new();
        for host in 0..view.hosts {
            let leaf = view.leaf_of[host as usize];
            places.push((places.iter().filter(|(_, of, _)| *of == leaf).count(), leaf, host));
        }
        places.sort_unstable();
        Ok(places[..ranks as usize].iter().map(|(.., host)| *host).collect())
    }
}

impl NcclJob {
    /// All messages, by round, channel, sender and place in the sender's program: as its flows are listed.
    pub fn messages(&self) -> impl Iterator<Item = Message> {
        let of_round = self.parameters.round(self.hosts.len());
        (0..self.parameters.rounds)
            .flat_map(move |round| of_round.clone().into_iter().map(move |message| Message { round, ..message }))
    }
}

impl Kind for NcclParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        let words = self.size.0 > 0 && self.size <= MOST_BYTES && self.size.0.is_multiple_of(4);
        WorkloadError::unless(words, "size", self.size, "whole words of 4 B, up to 4GiB")?;
        WorkloadError::unless(self.rounds > 0, "rounds", self.rounds, "1 or more")?;
        let few = (1..=MOST_CHANNELS).contains(&self.channels);
        WorkloadError::unless(few, "channels", self.channels, "1 to 32")?;
        if let Ranks::Number(ranks) = self.ranks {
            WorkloadError::unless((2..=MOST_RANKS).contains(&ranks), "ranks", ranks, "2 to 64")?;
            let listed = self.hosts.len();
            if listed > 0 && listed != ranks as usize {
                let message = format!("found {ranks}, but {listed} are listed by host; leave one out");
                return Err(WorkloadError::of_key("ranks", message));
            }
        }
        let mut seen = self.hosts.clone();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("host {} is named twice, expected a host for each rank", twice[0]);
            return Err(WorkloadError::of_key("hosts", message));
        }
        WorkloadError::unless(seen.len() != 1, "hosts", "one host", "two or more")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        context.needs_a_pair()?;
        let hosts = self.placed(context.view)?;
        // A part that has no bytes is a message all the same, but no flow.
        let least = 4 * hosts.len() as u64 * u64::from(self.channels);
        let parts = format!("{least} B or more: a word for each rank and channel");
        WorkloadError::unless(self.size.0 >= least, "size", self.size, &parts)?;
        let of_round = self.round(hosts.len());
        let flows = of_round.len() as u128 * u128::from(self.rounds);
        context.check_room(flows, self.max_flows.min(u64::from(u32::MAX)), "rounds")?;
        let job = NcclJob { workload: 0, first: 0, hosts, parameters: self.clone() };
        // Nothing activates it: ranks start by themselves.
        let never = Trigger::new(TriggerKind::Oneshot, vec![]);
        let flow = |message: Message| {
            let host = |(rank, _): (usize, usize)| job.hosts[rank];
            plain(host(message.from), host(message.to), message.bytes, Start::On(TriggerId(0)))
        };
        let flows = job.messages().map(flow).collect();
        Ok(Traffic { flows, triggers: vec![never], job: Some(job), ..Traffic::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{traffic, view};

    fn ring() -> NcclParameters {
        NcclParameters { size: Bytes(64 << 10), channels: 1, rounds: 2, ..NcclParameters::default() }
    }

    #[test]
    fn neighbours_stand_at_different_leaves() {
        // Two leaves of four hosts: 0 to 3 and 4 to 7.
        let p = NcclParameters { ranks: Ranks::Number(4), ..ring() };
        let job = traffic(&p, &view(8, 4, 1), "").unwrap().job.unwrap();
        assert_eq!(job.hosts, [0, 4, 1, 5]);
    }

    #[test]
    fn a_ring_of_four_is_six_messages_a_rank_and_round() {
        let p = NcclParameters { hosts: vec![3, 1, 0, 2], ..ring() };
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        // 2 (n - 1) steps of a quarter of 64 KiB.
        assert_eq!(made.flows.len(), 2 * 4 * 6);
        assert!(made.flows.iter().all(|flow| flow.size == 16 << 10 && matches!(flow.start, Start::On(_))));
        assert!(made.flows[..6].iter().all(|flow| (flow.src, flow.dst) == (3, 1)));
        // The third thing that rank 0 does is to send again, which is the second thing that rank 1 hears from it.
        let messages: Vec<Message> = made.job.unwrap().messages().collect();
        assert_eq!((messages[1].round, messages[1].from, messages[1].to), (0, (0, 2), (1, 3)));
        assert_eq!((messages[24].round, messages[24].from, messages[24].to), (1, (0, 0), (1, 1)));
    }

    #[test]
    fn every_send_has_its_receive() {
        for (name, kind) in KINDS {
            let p = NcclParameters { collective: *kind, ranks: Ranks::Number(5), channels: 3, ..ring() };
            let job = traffic(&p, &view(8, 4, 1), "").unwrap().job.unwrap();
            let shares = (0..3).map(|channel| plan::part(&(0..64 << 10), channel, 3));
            let sends: usize = shares
                .flat_map(|share| (0..5).map(move |rank| plan::operations(*kind, rank, 5, share.clone(), 64 << 10)))
                .map(|program| program.iter().filter(|(what, _)| matches!(what, What::Send(_))).count())
                .sum();
            let mut received: Vec<_> = job.messages().map(|m| (m.round, m.channel, m.to)).collect();
            assert_eq!(received.len(), 2 * sends, "{name}");
            received.sort_unstable();
            received.dedup();
            assert_eq!(received.len(), 2 * sends, "{name}: a receive for each");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (p, key, part) in [
            (NcclParameters { size: Bytes(6), ..ring() }, "size", "whole words"),
            (NcclParameters { size: Bytes(28), ..ring() }, "size", "32 B or more"),
            (NcclParameters { rounds: 0, ..ring() }, "rounds", "1 or more"),
            (NcclParameters { channels: 33, ..ring() }, "channels", "1 to 32"),
            (NcclParameters { ranks: Ranks::Number(9), ..ring() }, "ranks", "at most 8"),
            (NcclParameters { ranks: Ranks::Number(3), hosts: vec![0, 1], ..ring() }, "ranks", "2 are listed"),
            (NcclParameters { hosts: vec![0, 8], ..ring() }, "hosts", "0 to 7"),
            (NcclParameters { hosts: vec![1, 1], ..ring() }, "hosts", "twice"),
            (NcclParameters { hosts: vec![1], ..ring() }, "hosts", "two or more"),
            (NcclParameters { max_flows: 95, ..ring() }, "rounds", "224 flows"),
        ] {
            let error = traffic(&p, &view(8, 4, 1), "").unwrap_err();
            assert_eq!(error.key.as_deref(), Some(key), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
        let near = plan::Kind::read(&Raw::Text("rings".into())).unwrap_err().to_string();
        assert!(near.contains("did you mean `ring`"), "{near}");
        let near = Abi::read(&Raw::Text("v13".into())).unwrap_err().to_string();
        assert!(near.contains("v12"), "{near}");
        assert_eq!(Abi::V12.number(), 12);
    }
}
