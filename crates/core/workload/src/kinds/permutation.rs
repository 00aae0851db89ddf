//! Permutation: every host sends one message and receives one (specification 12.3). A barrier separates rounds.

use super::WorkloadKind;
use crate::{
    Members, Scope, Start, Trigger, TriggerId, TriggerKind, WorkloadError, flow::plain, pairs::Parts, traffic::Traffic,
    view::Context,
};
use anabranch_random::Stream;
use anabranch_settings::{About, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "permutation",
    summary: "every host sends one message to another one, and receives one",
    source: "specification 12.3; PRIME §IV-A1, Spritz §V-B",
    description: "A random permutation of the hosts without fixed points; with `scope`, without flows inside a leaf or \
        a group; with `hosts = \"rest\"` of the hosts that no workload before this one uses. With several `rounds`, each draws a new permutation and begins when every flow of the one before is \
        acknowledged.",
};

parameters! {
    /// Permutation traffic.
    pub struct PermutationParameters {
        /// Bytes per message.
        size: Bytes = Bytes(4 << 20), source "ours; Spritz §V-B has 4 MiB for the monitored flow and the incast";
        /// Participating hosts: all, or those that neither send nor receive in the workloads listed before.
        hosts: Members = Members::All, source "ours; specification 12.3, 12.5: bystanders and backgrounds";
        /// Scope of the receivers.
        scope: Scope = Scope::Any, source "ours", Expert;
        /// Start time of the first round.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Number of consecutive permutations.
        rounds: u32 = 1, source "ours";
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

impl WorkloadKind for PermutationParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        WorkloadError::unless(self.rounds > 0, "rounds", self.rounds, "1 or more")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let members = context.members(self.hosts)?;
        let hosts = members.len() as u32;
        context.check_room(u128::from(self.rounds) * u128::from(hosts), self.max_flows, "rounds")?;
        let parts = Parts::new(context.view, self.scope, members);
        parts.check_permutation("scope")?;
        let mut stream = Stream::keyed(context.seed, context.key(), "workload permutation");
        let mut traffic = Traffic::default();
        for round in 0..self.rounds {
            let start = match round {
                0 => Start::At(self.start),
                _ => {
                    let first = traffic.flows.len() as u32;
                    traffic.triggers.push(Trigger::new(TriggerKind::Barrier(hosts), (first..first + hosts).collect()));
                    Start::On(TriggerId(round - 1))
                }
            };
            for (&src, dst) in parts.members().iter().zip(parts.permutation(&mut stream)) {
                let mut flow = plain(src, dst, self.size.0, start);
                flow.on_sent = (round + 1 < self.rounds).then_some(TriggerId(round));
                traffic.flows.push(flow);
            }
        }
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{assert_refused, of, traffic, view};

    #[test]
    fn every_host_sends_once_and_receives_once() {
        let p = of::<PermutationParameters>("scope=other-group start=3us");
        let made = traffic(&p, &view(32, 4, 2), "").unwrap();
        let mut received: Vec<u32> = made.flows.iter().map(|f| f.dst).collect();
        received.sort_unstable();
        assert_eq!(received, (0..32).collect::<Vec<_>>());
        assert_eq!(made.flows.iter().map(|f| f.src).collect::<Vec<_>>(), received);
        for flow in &made.flows {
            assert_ne!(flow.src / 8, flow.dst / 8);
            assert_eq!((flow.size, flow.start), (4_194_304, Start::At(Time::from_us(3))));
        }
        assert!(made.triggers.is_empty());
    }

    #[test]
    fn rounds_wait_for_each_other() {
        let p = of::<PermutationParameters>("rounds=3");
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        assert_eq!((made.flows.len(), made.triggers.len()), (24, 2));
        for (number, flow) in made.flows.iter().enumerate() {
            let (round, done) = (number as u32 / 8, Some(TriggerId(number as u32 / 8)));
            assert_eq!(flow.on_sent, if round < 2 { done } else { None });
            let expected = if round == 0 { Start::At(Time::ZERO) } else { Start::On(TriggerId(round - 1)) };
            assert_eq!(flow.start, expected);
        }
        assert_eq!(made.triggers[1].kind, TriggerKind::Barrier(8));
        assert_eq!(made.triggers[1].targets, (16..24).collect::<Vec<_>>());
        let pairs = |round: usize| made.flows[8 * round..8 * round + 8].iter().map(|f| f.dst).collect::<Vec<_>>();
        assert_ne!(pairs(0), pairs(1));
    }
    #[test]
    fn errors_are_reported() {
        assert_refused::<PermutationParameters>(&view(8, 6, 1), "", "permutation");
    }
}
