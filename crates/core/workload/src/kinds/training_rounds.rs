//! Rounds of a training job (Hopper §4.2): the next round begins when every message of this one has been received.

use super::{
    WorkloadKind,
    host_set::HostSet,
    placement::{Groups, Placed, Placement},
    ranks::Ranks,
};
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
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "training-rounds",
    summary: "rounds of an AllReduce with a barrier after each",
    source: "Hopper 4.2; specification 2.7",
    description: "Ranks are placed across racks, so that neighbours are in different racks. A round is one \
        message from each sender to its receiver (pairs), from each rank to each other (direct) or to the next (ring). \
        When all messages of a round are received, the next round of the group starts after `run.trigger_latency`.",
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
        /// Number of groups, each of which trains by itself.
        groups: u32 = 1, source "ours";
        /// Number of participating hosts of a group; all: the hosts, divided among the groups that run at a time.
        ranks: Ranks = Ranks::Number(8), source "Hopper 4.2: all four clients, and their receivers";
        /// Hosts on which groups may run.
        hosts: HostSet = HostSet::All, source "ours";
        /// Groups that run at a time; when one ends, the next starts on its hosts. auto: all.
        concurrent: Auto<u32> = Auto::Auto, source "ours", Expert;
        /// Placement of ranks on hosts, as in `collective`.
        placement: Placement = Placement::AcrossRacks, source "Hopper 4.2: senders and receivers in different racks";
        /// Senders and receivers of a round.
        exchange: Exchange = Exchange::Pairs, source "Hopper 4.2: each sender transmits data to its corresponding receiver", Expert;
        /// Message sizes: a name (`anabranch list workloads`), one size such as "100MB", or the path of a table.
        sizes: String = "100MB".into(), source "ours: the sizes of GPT-3's messages are not given";
        /// Time between the end of a round and the begin of the next.
        gap: Time = Time::ZERO, source "ours", Expert;
        /// Computation of every rank at the begin of a round, before its first message.
        compute: Time = Time::ZERO, source "ours", Expert;
        /// Start time of the first round.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

impl TrainingRoundsParameters {
    fn placement(&self, ranks: Ranks) -> Groups<'_> {
        Groups {
            groups: self.groups,
            ranks,
            concurrent: self.concurrent,
            hosts: &self.hosts,
            placement: &self.placement,
        }
    }

    /// With pairs, a last host of a group without a partner is excluded.
    fn placed(&self, context: &Context<'_>) -> Result<Placed, WorkloadError> {
        let placed = self.placement(self.ranks).place(context)?;
        let (ranks, is_odd) = (placed.ranks, !placed.ranks.is_multiple_of(2));
        match self.exchange {
            Exchange::Pairs if is_odd && self.placement.is_file() => {
                let message = format!("found {ranks} ranks, expected an even number, since exchange = \"pairs\"");
                Err(WorkloadError::of_key("placement", message))
            }
            Exchange::Pairs if is_odd => self.placement(Ranks::Number(ranks - 1)).place(context),
            _ => Ok(placed),
        }
    }
}

impl WorkloadKind for TrainingRoundsParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.rounds > 0, "rounds", self.rounds, "1 or more")?;
        self.placement(self.ranks).check()?;
        match self.ranks {
            Ranks::Number(ranks) => {
                let even = ranks % 2 == 0 || self.exchange != Exchange::Pairs;
                WorkloadError::unless(even, "ranks", ranks, "an even number, since exchange = \"pairs\"")
            }
            Ranks::All => Ok(()),
        }
    }

    fn is_job(&self) -> bool {
        true
    }

    fn listed_because(&self) -> Option<&'static str> {
        Some("each message of training-rounds has a size of its own, drawn from `sizes`")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let placed = self.placed(context)?;
        let ranks = placed.ranks;
        let per_round = match self.exchange {
            Exchange::Direct => u64::from(ranks) * u64::from(ranks - 1),
            Exchange::Ring => u64::from(ranks),
            Exchange::Pairs => u64::from(ranks / 2),
        };
        let flows = u128::from(per_round) * u128::from(self.rounds) * u128::from(self.groups);
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
        let job = GroupedJob {
            repetitions: self.rounds,
            gap: self.gap,
            compute: self.compute,
            barrier: Barrier::Group,
            ..placed.job(self.groups, self.start, vec![schedule])
        };
        Ok(compile(job, &|group, round, message| {
            let rounds = u64::from(group) * u64::from(self.rounds) + u64::from(round);
            drawn.get((rounds * per_round + u64::from(message)) as usize).copied()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Start, TriggerId, TriggerKind,
        kinds::testing::{assert_refused, of, traffic, view},
    };

    #[test]
    fn fifty_one_rounds_of_four_pairs_are_204_flows() {
        let made = traffic(&TrainingRoundsParameters::default(), &view(8, 4, 1), "").unwrap();
        assert_eq!((made.flows.len(), made.triggers.len()), (51 * 4, 50));
        // Hosts 0 to 3 are one rack, 4 to 7 the other.
        let ends: Vec<_> = made.flows[..4].iter().map(|f| (f.src, f.dst)).collect();
        assert_eq!(ends, [(0, 4), (1, 5), (2, 6), (3, 7)]);
        assert!(made.triggers.iter().all(|t| t.kind == TriggerKind::Barrier(4)));
        let odd = of::<TrainingRoundsParameters>("ranks=all rounds=1");
        assert_eq!(traffic(&odd, &view(7, 4, 1), "").unwrap().flows.len(), 3);
    }

    #[test]
    fn seventeen_rounds_of_four_ranks_are_204_flows_too() {
        let p = of::<TrainingRoundsParameters>("rounds=17 ranks=4 exchange=direct");
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
        let p = of::<TrainingRoundsParameters>("exchange=ring ranks=all rounds=2");
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        assert_eq!(made.flows.len(), 16);
        assert!(made.flows.iter().all(|f| f.src / 4 != f.dst / 4));
    }

    #[test]
    fn groups_have_hosts_of_their_own() {
        let p = of::<TrainingRoundsParameters>("groups=3 ranks=2 rounds=2 hosts=0..6");
        let pairs = |p: &TrainingRoundsParameters| -> Vec<(u32, u32)> {
            traffic(p, &view(8, 3, 1), "").unwrap().flows.iter().map(|flow| (flow.src, flow.dst)).collect()
        };
        // Racks of three hosts: across them 0, 3, 1, 4, 2, 5. Group after group, each twice.
        assert_eq!(pairs(&p), [(0, 3), (0, 3), (1, 4), (1, 4), (2, 5), (2, 5)]);
        let packed = TrainingRoundsParameters { placement: Placement::Packed, ..p.clone() };
        assert_eq!(pairs(&packed), [(0, 1), (0, 1), (2, 3), (2, 3), (4, 5), (4, 5)]);
        // The second group takes over the hosts of the first.
        let one = TrainingRoundsParameters { concurrent: Auto::Value(1), groups: 2, ..packed };
        assert_eq!(pairs(&one), [(0, 1); 4]);
    }

    #[test]
    fn sizes_are_drawn_in_the_order_of_groups_and_rounds() {
        let sizes = |groups| {
            let p = of::<TrainingRoundsParameters>(&format!("groups={groups} ranks=2 rounds=3 sizes=web-search"));
            traffic(&p, &view(8, 4, 1), "").unwrap().flows.iter().map(|flow| flow.size).collect::<Vec<_>>()
        };
        let (one, two) = (sizes(1), sizes(2));
        assert_eq!((one.len(), two.len(), &one[..]), (3, 6, &two[..3]));
        assert_ne!(two[..3], two[3..]);
    }
    #[test]
    fn errors_are_reported() {
        assert_refused::<TrainingRoundsParameters>(&view(8, 4, 1), "bad", "training-rounds");
    }
}
