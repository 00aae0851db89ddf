//! A collective over NCCL's network plugin: real processes at the hosts of a testbed. The ranks start its flows, and report
//! when each began and completed.

mod job;
mod parameters;
pub mod plan;

pub use job::{Message, NcclJob};
pub use parameters::{Abi, Element, NcclParameters};

use super::{WorkloadKind, ranks::Ranks};
use crate::{
    Start, Trigger, TriggerId, TriggerKind, WorkloadError,
    flow::plain,
    traffic::Traffic,
    view::{Context, HostView},
};
use anabranch_settings::About;
use anabranch_units::Bytes;

/// As in `anabranch collective`.
const MAX_RANKS: u32 = 64;
const MAX_BYTES: Bytes = Bytes(4 << 30);
const MAX_CHANNELS: u32 = 32;

pub(crate) const ABOUT: About = About {
    name: "nccl",
    summary: "a collective of real processes over NCCL's network plugin: on testbeds alone",
    source: "ours; NCCL's interface of network plugins",
    description: "`anabranch testbed run` starts a process per rank at a host, which loads the plugin as NCCL does and runs the \
        collective `rounds` times after one round that does not count; every element is checked. A flow is a message of up to \
        512 KiB. A simulation cannot do it; its kinds `collective` and `all-to-all` send the same shapes.",
};

fn placed(of: &NcclParameters, view: &HostView) -> Result<Vec<u32>, WorkloadError> {
    let most = view.hosts.min(MAX_RANKS);
    if let Some(host) = of.hosts.iter().find(|host| **host >= view.hosts) {
        let message = format!("host {host} does not exist; hosts are 0 to {}", view.hosts - 1);
        return Err(WorkloadError::of_key("hosts", message));
    }
    let ranks = match of.ranks {
        Ranks::Number(ranks) => ranks,
        Ranks::All if of.hosts.is_empty() => view.hosts,
        Ranks::All => of.hosts.len() as u32,
    };
    WorkloadError::unless(ranks <= most, "ranks", ranks, &format!("at most {most}, a host for each"))?;
    if !of.hosts.is_empty() {
        return Ok(of.hosts.clone());
    }
    // The first host of every leaf, then the second of every leaf, and so on.
    let mut places: Vec<(usize, u32, u32)> = Vec::new();
    for host in 0..view.hosts {
        let leaf = view.leaf_of[host as usize];
        places.push((places.iter().filter(|(_, at, _)| *at == leaf).count(), leaf, host));
    }
    places.sort_unstable();
    Ok(places[..ranks as usize].iter().map(|(.., host)| *host).collect())
}

impl WorkloadKind for NcclParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        let words = self.size.0 > 0 && self.size <= MAX_BYTES && self.size.0.is_multiple_of(4);
        WorkloadError::unless(words, "size", self.size, "whole words of 4 B, up to 4GiB")?;
        WorkloadError::unless(self.rounds > 0, "rounds", self.rounds, "1 or more")?;
        let few = (1..=MAX_CHANNELS).contains(&self.channels);
        WorkloadError::unless(few, "channels", self.channels, "1 to 32")?;
        if let Ranks::Number(ranks) = self.ranks {
            WorkloadError::unless((2..=MAX_RANKS).contains(&ranks), "ranks", ranks, "2 to 64")?;
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

    fn is_job(&self) -> bool {
        true
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        context.needs_a_pair()?;
        let hosts = placed(self, context.view)?;
        // A part without bytes is a message, but no flow.
        let least = 4 * hosts.len() as u64 * u64::from(self.channels);
        let parts = format!("{least} B or more: a word for each rank and channel");
        WorkloadError::unless(self.size.0 >= least, "size", self.size, &parts)?;
        let of_round = job::round(self, hosts.len());
        let flows = of_round.len() as u128 * u128::from(self.rounds);
        context.check_room(flows, self.max_flows.min(u64::from(u32::MAX)), "rounds")?;
        let job = NcclJob { workload: 0, first: 0, hosts, parameters: self.clone() };
        // No flow activates it: ranks start by themselves.
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
    use crate::kinds::testing::{assert_refused, of, traffic, view};
    use anabranch_settings::{Raw, Setting};
    use plan::{Action, KINDS};

    fn ring() -> NcclParameters {
        of::<NcclParameters>("size=65536B channels=1 rounds=2")
    }

    #[test]
    fn neighbours_are_below_different_leaves() {
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
        // The third operation of rank 0 is its second send, which is the second receive of rank 1 from it.
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
                .map(|program| program.iter().filter(|(what, _)| matches!(what, Action::Send(_))).count())
                .sum();
            let mut received: Vec<_> = job.messages().map(|m| (m.round, m.channel, m.to)).collect();
            assert_eq!(received.len(), 2 * sends, "{name}");
            received.sort_unstable();
            received.dedup();
            assert_eq!(received.len(), 2 * sends, "{name}: a receive for each");
        }
    }

    #[test]
    fn errors_are_reported() {
        assert_refused::<NcclParameters>(&view(8, 4, 1), "", "nccl");
        let near = plan::CollectiveKind::read(&Raw::Text("rings".into())).unwrap_err().to_string();
        assert!(near.contains("did you mean `ring`"), "{near}");
        let near = Abi::read(&Raw::Text("v13".into())).unwrap_err().to_string();
        assert!(near.contains("v12"), "{near}");
        assert_eq!(Abi::V12.number(), 12);
    }
}
