//! All-to-all: every rank sends one message to every other (specification 12.5). With a window of w, each acknowledged
//! message starts the next of its rank, by a multishot trigger.

use super::{WorkloadKind, ranks::Ranks};
use crate::{
    CollectiveInfo, Start, Trigger, TriggerId, TriggerKind, WorkloadError, flow::plain, traffic::Traffic, view::Context,
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

choices! {
    /// Placement of ranks on hosts.
    pub enum Placement {
        /// Rank r is host r.
        Packed = "packed",
        /// Random hosts in a random order.
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
        order: Order = Order::Shifted, source "specification 12.5";
        /// Placement of ranks on hosts.
        placement: Placement = Placement::Packed, source "ours; Spritz: random";
        /// Start time of the first messages.
        start: Time = Time::ZERO, source "ours";
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB";
    }
}

pub(crate) fn placed(
    ranks: Ranks,
    placement: Placement,
    context: &Context<'_>,
) -> Result<(u32, Vec<u32>), WorkloadError> {
    context.needs_a_pair()?;
    let hosts = context.view.hosts;
    let ranks = ranks.number(hosts);
    WorkloadError::unless(ranks <= hosts, "ranks", ranks, &format!("at most the {hosts} hosts there are"))?;
    let mut host_of: Vec<u32> = (0..hosts).collect();
    if placement == Placement::Random {
        Stream::keyed(context.seed, context.key(), "workload placement").shuffle(&mut host_of);
    }
    host_of.truncate(ranks as usize);
    Ok((ranks, host_of))
}

impl WorkloadKind for AllToAllParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        match self.ranks {
            Ranks::Number(ranks) => WorkloadError::unless(ranks >= 2, "ranks", ranks, "2 or more"),
            Ranks::All => Ok(()),
        }
    }

    fn is_job(&self) -> bool {
        true
    }

    /// NCCL's buffer of an all-to-all has a block for every rank, the own one included.
    fn collective(&self, hosts: u32) -> Option<CollectiveInfo> {
        let ranks = self.ranks.number(hosts);
        let bytes = self.size.0.checked_mul(u64::from(ranks));
        let bus_factor = f64::from(ranks - 1) / f64::from(ranks);
        Some(CollectiveInfo { name: "all-to-all", ranks, bytes, rounds: Some(1), bus_factor })
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let (ranks, host_of) = placed(self.ranks, self.placement, context)?;
        context.check_room(u128::from(ranks) * u128::from(ranks - 1), self.max_flows, "ranks")?;
        let purpose = format!("workload {} order", context.name);
        let at_once = match self.parallel {
            0 => ranks - 1,
            window => window.min(ranks - 1),
        } as usize;
        let mut traffic = Traffic::default();
        traffic.flows.reserve(ranks as usize * (ranks as usize - 1));
        for rank in 0..ranks {
            let src = host_of[rank as usize];
            let mut peers: Vec<u32> = (1..ranks)
                .map(|step| host_of[((u64::from(rank) + u64::from(step)) % u64::from(ranks)) as usize])
                .collect();
            if self.order == Order::Random {
                Stream::keyed(context.seed, context.view.host_key[src as usize], &purpose).shuffle(&mut peers);
            }
            let first = traffic.flows.len() as u32;
            let window = (at_once < peers.len()).then_some(TriggerId(rank));
            for (number, &dst) in peers.iter().enumerate() {
                let start = match window {
                    Some(trigger) if number >= at_once => Start::On(trigger),
                    _ => Start::At(self.start),
                };
                let mut flow = plain(src, dst, self.size.0, start);
                flow.on_sent = window;
                traffic.flows.push(flow);
            }
            if window.is_some() {
                let waiting = (first + at_once as u32..traffic.flows.len() as u32).collect();
                traffic.triggers.push(Trigger::new(TriggerKind::Multishot, waiting));
            }
        }
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{traffic, view};
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_exactly_once() {
        for order in [Order::Shifted, Order::Random] {
            for placement in [Placement::Packed, Placement::Random] {
                let p =
                    AllToAllParameters { ranks: Ranks::Number(7), parallel: 2, order, placement, ..Default::default() };
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
        let p = AllToAllParameters { parallel: 3, start: Time::from_us(1), ..Default::default() };
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
            let made = traffic(&AllToAllParameters { parallel, ..Default::default() }, &view(6, 2, 1), "").unwrap();
            assert!(made.triggers.is_empty());
            assert!(made.flows.iter().all(|f| f.start == Start::At(Time::ZERO) && f.on_sent.is_none()));
        }
    }

    #[test]
    fn errors_are_reported() {
        let base = AllToAllParameters::default;
        for (p, key) in [
            (AllToAllParameters { size: Bytes(0), ..base() }, "size"),
            (AllToAllParameters { ranks: Ranks::Number(9), ..base() }, "ranks"),
            (AllToAllParameters { ranks: Ranks::Number(1), ..base() }, "ranks"),
            (AllToAllParameters { max_flows: 55, ..base() }, "ranks"),
        ] {
            assert_eq!(traffic(&p, &view(8, 4, 1), "").unwrap_err().key.as_deref(), Some(key));
        }
    }
}
