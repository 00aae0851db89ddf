use super::{Parts, TRIES};
use crate::{Flow, HostView, Start};
use anabranch_random::Stream;
use anabranch_units::Time;

/// Draws receivers with few concurrent senders (specification 12.3), for flows in the order of their starts. A flow is active
/// from its start for the time of its bytes at its sender's NIC rate.
pub(crate) struct Limit<'a> {
    max_senders: usize,
    parts: &'a Parts,
    view: &'a HostView,
    streams: Vec<Stream>,
    /// Active senders per host, with the completion time of the last flow of each.
    active: Vec<Vec<(u32, Time)>>,
}

impl<'a> Limit<'a> {
    pub(crate) fn new(max_senders: u32, parts: &'a Parts, view: &'a HostView, streams: Vec<Stream>) -> Self {
        let active = vec![Vec::new(); view.hosts as usize];
        Limit { max_senders: max_senders as usize, parts, view, streams, active }
    }

    /// `flows` are sorted by their starts.
    pub(crate) fn draw(mut self, flows: &mut [Flow]) {
        for flow in flows {
            let Start::At(at) = flow.start else { continue };
            let dst = self.receiver(flow.src, at);
            let end = at.saturating_add(self.view.nic_rate[flow.src as usize].wire_time(flow.size));
            match self.active[dst as usize].iter_mut().find(|(src, _)| *src == flow.src) {
                Some((_, last)) => *last = end.max(*last),
                None => self.active[dst as usize].push((flow.src, end)),
            }
            flow.dst = dst;
        }
    }

    /// Returns a random receiver with capacity for `src`: a drawn one, else the first from a random position on; if all are
    /// full, the one with the fewest senders.
    fn receiver(&mut self, src: u32, at: Time) -> u32 {
        for _ in 0..TRIES {
            let dst = self.parts.receiver(src, &mut self.streams[src as usize]);
            if self.others(src, dst, at) < self.max_senders {
                return dst;
            }
        }
        let drawn = self.parts.receiver(src, &mut self.streams[src as usize]);
        let members = self.parts.members();
        let place = members.partition_point(|&host| host < drawn);
        let (before, from) = members.split_at(place);
        let (mut best, mut fewest) = (drawn, usize::MAX);
        for &dst in from.iter().chain(before).filter(|&&dst| self.parts.apart(src, dst)) {
            let others = self.others(src, dst, at);
            if others < fewest {
                (best, fewest) = (dst, others);
            }
            if others < self.max_senders {
                break;
            }
        }
        best
    }

    fn others(&mut self, src: u32, dst: u32, at: Time) -> usize {
        let active = &mut self.active[dst as usize];
        active.retain(|(_, end)| *end > at);
        active.iter().filter(|(sender, _)| *sender != src).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scope, flow::plain, kinds::testing::view};

    /// Draws receivers of flows (source, start in ns) of 1 us each among four hosts, at most one sender each.
    fn receivers(seed: u64, flows: &[(u32, u64)]) -> Vec<u32> {
        let hosts = view(4, 1, 1);
        let parts = Parts::new(&hosts, Scope::Any, (0..4).collect());
        let streams = (0..4).map(|host| Stream::keyed(seed, host, "test")).collect();
        // 12,500 B at 100 Gb/s.
        let flow = |&(src, ns): &(u32, u64)| plain(src, src, 12_500, Start::At(Time::from_ns(ns)));
        let mut flows: Vec<Flow> = flows.iter().map(flow).collect();
        Limit::new(1, &parts, &hosts, streams).draw(&mut flows);
        flows.into_iter().map(|flow| flow.dst).collect()
    }

    #[test]
    fn a_full_receiver_is_passed_over() {
        for seed in 0..50 {
            let to = receivers(seed, &[(0, 0), (1, 1), (2, 999)]);
            assert!(to[0] != to[1] && to[1] != to[2] && to[0] != to[2], "{to:?}");
            // All three others may be full for the last; it still gets one of them.
            let to = receivers(seed, &[(0, 0), (1, 0), (2, 0), (3, 1)]);
            assert_ne!(to[3], 3);
        }
    }

    #[test]
    fn a_sender_counts_once_and_ended_flows_do_not() {
        let hosts = view(2, 1, 1);
        let parts = Parts::new(&hosts, Scope::Any, vec![0, 1]);
        let mut limit = Limit::new(1, &parts, &hosts, vec![Stream::keyed(1, 0, "a"), Stream::keyed(1, 1, "b")]);
        limit.active[1].push((0, Time::from_us(1)));
        limit.active[0].push((1, Time::from_us(1)));
        assert_eq!(limit.others(0, 1, Time::ZERO), 0);
        assert_eq!(limit.others(1, 1, Time::ZERO), 1);
        assert_eq!(limit.others(1, 1, Time::from_us(1)), 0);
        assert!(limit.active[1].is_empty());
    }
}
