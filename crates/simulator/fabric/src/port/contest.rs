//! Contests for one place in a full queue.
//!
//! A full queue has one place per transmission. Two senders that are as fast as the port arrive once each in that time, for
//! ever in the same order, and the first would take every place (the phase effect of Floyd and Jacobson, "On Traffic
//! Phase Effects in Packet-Switched Gateways"). Clocks of real NICs drift and switches arbitrate: here those that have
//! come since the port's last departure contend for its place, and two flows have it in turn.

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contest {
    /// Packets that the port had sent when it began.
    sent: u64,
    number: u64,
}

impl Contest {
    /// Returns `true` if the packet of flow `newcomer` takes the place of one of flow `holder`, at a port that has sent
    /// `sent` packets. `key` is that of the port.
    pub(super) fn won_by(&mut self, newcomer: u32, holder: u32, sent: u64, key: u64) -> bool {
        if self.sent != sent {
            *self = Contest { sent, number: self.number + 1 };
        }
        // Every second contest has the opposite result.
        let opposite = u64::MAX * (self.number & 1);
        let pair = anabranch_random::mix(key.wrapping_add(self.number >> 1));
        let score = |flow: u32| anabranch_random::mix(pair ^ u64::from(flow)) ^ opposite;
        score(newcomer) > score(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Flows that come in the same order for every place: each has its share. Two have exactly half; of more, a share
        /// is within five deviations of a binomial variable.
        #[test]
        fn every_flow_has_its_share(flows in 2u32..9, first in 0u32..1_000_000, key: u64) {
            const PLACES: u64 = 20_000;
            let mut contest = Contest::default();
            let mut taken = vec![0u64; flows as usize];
            for sent in 1..=PLACES {
                let winner = (1..flows).fold(0, |holder, flow| {
                    if contest.won_by(first + flow, first + holder, sent, key) { flow } else { holder }
                });
                taken[winner as usize] += 1;
            }
            let share = PLACES as f64 / f64::from(flows);
            let deviation = (share * (1.0 - 1.0 / f64::from(flows))).sqrt();
            let allowed = if flows == 2 { 1.0 } else { 5.0 * deviation };
            for count in &taken {
                prop_assert!((*count as f64 - share).abs() <= allowed, "{taken:?}");
            }
        }
    }
}
