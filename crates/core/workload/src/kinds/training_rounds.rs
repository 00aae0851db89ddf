//! Rounds of a training job (Hopper §4.2): the next round begins when every message of this one has been received.

use super::{WorkloadKind, ranks::Ranks};
use crate::{
    SizeDistribution, WorkloadError,
    jobs::{
        compile::compile,
        job::{Barrier, GroupedJob},
        schedule::Schedule,
    },
    traffic::Traffic,
    view::Context,
};
use anabranch_random::Stream;
use anabranch_settings::{About, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "training-rounds",
    summary: "rounds of an AllReduce with a barrier after each",
    source: "Hopper 4.2; specification 2.7",
    description: "Ranks are placed on the racks in turn, so that neighbours are in different racks. A round is one \
        message from each sender to its receiver (pairs), from each rank to each other (direct) or to the next (ring). \
        When all messages of a round are received, the next round starts after `run.trigger_latency`.",
};

choices! {
    /// Senders and receivers of a round.
    pub enum Exchange {
        /// Every rank to every other.
        Direct = "direct",
        /// Every rank to the next.
        Ring = "ring",
        /// Ranks of even number to the next rank, which is in another rack if there are two.
        Pairs = "pairs",
    }
}

parameters! {
    /// Training rounds.
    pub struct TrainingRoundsParameters {
        /// Number of rounds.
        rounds: u32 = 51, source "ours: 51 rounds of four messages are the 204 flows of Hopper 4.2";
        /// Number of ranks.
        ranks: Ranks = Ranks::Number(8), source "Hopper 4.2: all four clients, and their receivers";
        /// Senders and receivers of a round.
        exchange: Exchange = Exchange::Pairs, source "Hopper 4.2: each sender transmits data to its corresponding receiver";
        /// Message sizes: a name (`anabranch list workloads`), one size such as "100MB", or the path of a table.
        sizes: String = "100MB".into(), source "ours: the sizes of GPT-3's messages are not given";
        /// Start time of the first round.
        start: Time = Time::ZERO, source "ours";
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB";
    }
}

/// Orders hosts so that neighbours are in different racks: the first of every rack, then the second, and so on.
fn across_racks(leaf_of: &[u32]) -> Vec<u32> {
    let mut seen = std::collections::BTreeMap::new();
    let mut order: Vec<(u32, u32, u32)> = Vec::new();
    for (host, &leaf) in leaf_of.iter().enumerate() {
        let place = seen.entry(leaf).or_insert(0u32);
        order.push((*place, leaf, host as u32));
        *place += 1;
    }
    order.sort_unstable();
    order.into_iter().map(|(_, _, host)| host).collect()
}

impl WorkloadKind for TrainingRoundsParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.rounds > 0, "rounds", self.rounds, "1 or more")?;
        match self.ranks {
            Ranks::Number(ranks) => {
                WorkloadError::unless(ranks >= 2, "ranks", ranks, "2 or more")?;
                let even = ranks % 2 == 0 || self.exchange != Exchange::Pairs;
                WorkloadError::unless(even, "ranks", ranks, "an even number, since exchange = \"pairs\"")
            }
            Ranks::All => Ok(()),
        }
    }

    fn is_job(&self) -> bool {
        true
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        context.needs_a_pair()?;
        let hosts = context.view.hosts;
        let ranks = match self.ranks {
            // With pairs a last host without a partner is excluded.
            Ranks::All if self.exchange == Exchange::Pairs => hosts / 2 * 2,
            Ranks::All => hosts,
            Ranks::Number(ranks) => ranks,
        };
        WorkloadError::unless(ranks <= hosts, "ranks", ranks, &format!("at most the {hosts} hosts there are"))?;
        let per_round = match self.exchange {
            Exchange::Direct => u64::from(ranks) * u64::from(ranks - 1),
            Exchange::Ring => u64::from(ranks),
            Exchange::Pairs => u64::from(ranks / 2),
        };
        let flows = u128::from(per_round) * u128::from(self.rounds);
        context.check_room(flows, self.max_flows.min(u64::from(u32::MAX)), "rounds")?;
        let sizes = SizeDistribution::named(&self.sizes, context.read_file).map_err(|error| error.with_key("sizes"))?;
        let mut stream = Stream::keyed(context.seed, context.key(), "workload sizes");
        let mut schedule = Schedule::default();
        for rank in (0..ranks).step_by(if self.exchange == Exchange::Pairs { 2 } else { 1 }) {
            let steps = if self.exchange == Exchange::Direct { 1..ranks } else { 1..2 };
            for step in steps {
                schedule.send(rank, (rank + step) % ranks, 1, 0, &[]);
            }
        }
        let drawn: Vec<u64> = (0..flows).map(|_| sizes.sample(&mut stream)).collect();
        let mut host_of = across_racks(&context.view.leaf_of);
        host_of.truncate(ranks as usize);
        let job = GroupedJob {
            workload: 0,
            first: 0,
            groups: 1,
            ranks,
            repetitions: self.rounds,
            concurrent: 1,
            start: self.start,
            gap: Time::ZERO,
            compute: Time::ZERO,
            barrier: Barrier::Group,
            hosts: host_of,
            schedules: vec![schedule],
            collective: None,
        };
        Ok(compile(job, &|_, round, message| {
            drawn.get((u64::from(round) * per_round + u64::from(message)) as usize).copied()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Start, TriggerId, TriggerKind,
        kinds::testing::{traffic, view},
    };

    #[test]
    fn fifty_one_rounds_of_four_pairs_are_204_flows() {
        let made = traffic(&TrainingRoundsParameters::default(), &view(8, 4, 1), "").unwrap();
        assert_eq!((made.flows.len(), made.triggers.len()), (51 * 4, 50));
        // Hosts 0 to 3 are one rack, 4 to 7 the other.
        let ends: Vec<_> = made.flows[..4].iter().map(|f| (f.src, f.dst)).collect();
        assert_eq!(ends, [(0, 4), (1, 5), (2, 6), (3, 7)]);
        assert!(made.triggers.iter().all(|t| t.kind == TriggerKind::Barrier(4)));
        let odd = TrainingRoundsParameters { ranks: Ranks::All, rounds: 1, ..Default::default() };
        assert_eq!(traffic(&odd, &view(7, 4, 1), "").unwrap().flows.len(), 3);
    }

    #[test]
    fn seventeen_rounds_of_four_ranks_are_204_flows_too() {
        let p = TrainingRoundsParameters {
            rounds: 17,
            ranks: Ranks::Number(4),
            exchange: Exchange::Direct,
            ..Default::default()
        };
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        // 4 * 3 messages per round.
        assert_eq!((made.flows.len(), made.triggers.len()), (17 * 12, 16));
        // Ranks 0 to 3 are the first two hosts of both racks, in turn.
        let mut hosts: Vec<u32> = made.flows[..12].iter().map(|f| f.src).collect();
        hosts.dedup();
        assert_eq!(hosts, [0, 4, 1, 5]);
        assert!(made.flows.iter().all(|f| f.size == 100_000_000 && f.src != f.dst));
        for (number, flow) in made.flows.iter().enumerate() {
            let round = number / 12;
            let start = if round == 0 { Start::At(Time::ZERO) } else { Start::On(TriggerId(round as u32 - 1)) };
            assert_eq!(flow.start, start);
            assert_eq!(flow.on_received, (round < 16).then_some(TriggerId(round as u32)));
        }
        for (round, trigger) in made.triggers.iter().enumerate() {
            assert_eq!(trigger.kind, TriggerKind::Barrier(12));
            assert_eq!(trigger.targets, (12 * (round as u32 + 1)..12 * (round as u32 + 2)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_ring_crosses_racks_at_every_step() {
        let p =
            TrainingRoundsParameters { exchange: Exchange::Ring, ranks: Ranks::All, rounds: 2, ..Default::default() };
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        assert_eq!(made.flows.len(), 16);
        assert!(made.flows.iter().all(|f| f.src / 4 != f.dst / 4));
    }

    #[test]
    fn errors_are_reported() {
        let base = TrainingRoundsParameters::default;
        for (p, key) in [
            (TrainingRoundsParameters { rounds: 0, ..base() }, "rounds"),
            (TrainingRoundsParameters { ranks: Ranks::Number(10), ..base() }, "ranks"),
            (TrainingRoundsParameters { ranks: Ranks::Number(5), ..base() }, "ranks"),
            (TrainingRoundsParameters { sizes: "no such".into(), ..base() }, "sizes"),
            (TrainingRoundsParameters { max_flows: 203, ..base() }, "rounds"),
        ] {
            assert_eq!(traffic(&p, &view(8, 4, 1), "bad").unwrap_err().key.as_deref(), Some(key));
        }
    }
}
