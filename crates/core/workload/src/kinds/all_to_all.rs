//! All-to-all: every rank sends one message to every other (specification 12.5). With a window of w, each acknowledged
//! message starts the next of its rank, by a multishot trigger.

use super::{
    WorkloadKind,
    placement::{Groups, Placement},
    ranks::Ranks,
};
use crate::{
    CollectiveInfo, WorkloadError,
    jobs::{
        compile::compile_alike,
        job::GroupedJob,
        schedule::{Done, MessageWindow, Schedule},
    },
    traffic::Traffic,
    view::Context,
};
use anabranch_random::Stream;
use anabranch_settings::{About, choices, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "all-to-all",
    summary: "every rank sends one message to every other, with a window of messages outstanding",
    source: "specification 12.5; Spritz §V-B",
    description: "Rank r sends to r+1, r+2, ... (mod n), or to the others in a random order. With `parallel` = w a rank \
        has w messages outstanding: each that is acknowledged starts the next (a sliding window).",
};

choices! {
    /// Order in which a rank serves the others.
    pub enum Order {
        /// r+1, r+2, ... (mod n).
        Shifted = "shifted",
        /// A random order of its own.
        Random = "random",
    }
}

parameters! {
    /// All-to-all.
    pub struct AllToAllParameters {
        /// Bytes per message.
        size: Bytes = Bytes(1 << 20), source "ours";
        /// Number of participating hosts.
        ranks: Ranks = Ranks::All, source "ours; Spritz: 128";
        /// Maximum outstanding messages of a rank; 0: unlimited.
        parallel: u32 = 0, source "ours; Spritz: 4";
        /// Order in which a rank serves the others.
        order: Order = Order::Shifted, source "specification 12.5", Expert;
        /// Placement of ranks on hosts.
        placement: Placement = Placement::Packed, source "ours; Spritz: random";
        /// Start time of the first messages.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

/// Returns the schedule of messages of `size` bytes from every rank to every other. `window` is the maximum number of
/// outstanding messages of a rank (0: unlimited), and the event that ends one.
pub(crate) fn exchange(
    context: &Context<'_>,
    hosts: &[u32],
    size: u64,
    order: Order,
    (parallel, done): (u32, Done),
) -> Schedule {
    let ranks = hosts.len() as u32;
    let purpose = format!("workload {} order", context.name);
    let messages = if parallel == 0 { ranks - 1 } else { parallel };
    let window = (messages < ranks - 1).then_some(MessageWindow { messages, done });
    let mut schedule = Schedule::default();
    schedule.window = window;
    for rank in 0..ranks {
        let next = |step: u32| ((u64::from(rank) + u64::from(step)) % u64::from(ranks)) as u32;
        let mut peers: Vec<u32> = (1..ranks).map(next).collect();
        if order == Order::Random {
            let key = context.view.host_key[hosts[rank as usize] as usize];
            Stream::keyed(context.seed, key, &purpose).shuffle(&mut peers);
        }
        for to in peers {
            schedule.send(rank, to, size, 0, &[]);
        }
    }
    schedule
}

impl WorkloadKind for AllToAllParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        Groups::one(self.ranks, &self.placement).check()
    }

    fn is_job(&self) -> bool {
        true
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let placed = Groups::one(self.ranks, &self.placement).place(context)?;
        let ranks = placed.ranks;
        context.check_room(u128::from(ranks) * u128::from(ranks - 1), self.max_flows, "ranks")?;
        let window = (self.parallel, Done::Acknowledged);
        let schedule = exchange(context, &placed.hosts, self.size.0, self.order, window);
        // NCCL's buffer of an all-to-all has a block for every rank, the own one included.
        let bytes = self.size.0.checked_mul(u64::from(ranks));
        let bus_factor = f64::from(ranks - 1) / f64::from(ranks);
        let collective = CollectiveInfo { name: "all-to-all", ranks, bytes, rounds: Some(1), bus_factor };
        let job = GroupedJob { collective: Some(collective), ..placed.job(1, self.start, vec![schedule]) };
        Ok(compile_alike(job, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Start, Trigger, TriggerId, TriggerKind,
        kinds::testing::{assert_refused, of, traffic, view},
    };
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_exactly_once() {
        for order in [Order::Shifted, Order::Random] {
            for placement in [Placement::Packed, Placement::Random] {
                let p = AllToAllParameters {
                    ranks: Ranks::Number(7),
                    parallel: 2,
                    order,
                    placement: placement.clone(),
                    ..Default::default()
                };
                let flows = traffic(&p, &view(12, 4, 1), "").unwrap().flows;
                let pairs: BTreeSet<_> = flows.iter().map(|f| (f.src, f.dst)).collect();
                let ranks: BTreeSet<_> = flows.iter().map(|f| f.src).collect();
                assert_eq!((flows.len(), pairs.len(), ranks.len()), (42, 42, 7));
                assert!(pairs.iter().all(|(src, dst)| src != dst && ranks.contains(dst)));
                assert!(placement == Placement::Random || ranks.into_iter().eq(0..7));
            }
        }
    }

    #[test]
    fn the_shifted_order_and_the_window() {
        let p = of::<AllToAllParameters>("parallel=3 start=1us");
        let made = traffic(&p, &view(6, 2, 1), "").unwrap();
        // Rank 4 of 6 serves 5, 0, 1, then 2, 3 one by one.
        let own: Vec<_> = made.flows.iter().enumerate().filter(|(_, f)| f.src == 4).collect();
        assert_eq!(own.iter().map(|(_, f)| f.dst).collect::<Vec<_>>(), [5, 0, 1, 2, 3]);
        assert!(own[..3].iter().all(|(_, f)| f.start == Start::At(Time::from_us(1))));
        assert!(own[3..].iter().all(|(_, f)| f.start == Start::On(TriggerId(4))));
        assert!(own.iter().all(|(_, f)| f.on_sent == Some(TriggerId(4)) && f.on_received.is_none()));
        let waiting = vec![own[3].0 as u32, own[4].0 as u32];
        assert_eq!(made.triggers[4], Trigger::new(TriggerKind::Multishot, waiting));
    }

    #[test]
    fn all_at_once_needs_no_triggers() {
        for parallel in [0, 5, 99] {
            let made = traffic(&of::<AllToAllParameters>(&format!("parallel={parallel}")), &view(6, 2, 1), "").unwrap();
            assert!(made.triggers.is_empty());
            assert!(made.flows.iter().all(|f| f.start == Start::At(Time::ZERO) && f.on_sent.is_none()));
        }
    }
    #[test]
    fn errors_are_reported() {
        assert_refused::<AllToAllParameters>(&view(8, 4, 1), "", "all-to-all");
    }
}
