//! Limits of data queues in bytes: those of all ports, and those of ports whose links a fault has slowed.

use crate::{
    ids::PortId,
    plan::{Limits, PortLimits},
};
use anabranch_backend::{MarkAt, Marking};
use anabranch_units::Rate;

/// Limits of the data queues of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QueueLimits {
    /// Bytes of a class above which packets are trimmed or dropped.
    pub(super) queue: u32,
    pub(super) marking: Marking,
    /// Bytes of a queue that do not count for marking.
    pub(super) unmarked: u32,
    /// [`Marking::floor`] if packets are marked when they leave, else a limit that no queue reaches.
    pub(super) leaving: u32,
    pub(super) joining: u32,
}

impl QueueLimits {
    pub(super) fn new(fabric: &Limits, of: &PortLimits) -> Self {
        let PortLimits { queue, marking } = *of;
        let marks = |at| if fabric.ecn && fabric.mark_at == at { marking.floor() } else { u32::MAX };
        QueueLimits {
            queue,
            marking,
            unmarked: fabric.unmarked,
            leaving: marks(MarkAt::Dequeue),
            joining: marks(MarkAt::Enqueue),
        }
    }

    /// Returns the limits times `now` over `healthy`, rounded down; the queue holds a packet of `least` bytes.
    fn scaled(&self, now: Rate, healthy: Rate, least: u32) -> Self {
        let scale = |bytes: u32| match bytes {
            u32::MAX => u32::MAX,
            bytes => (u128::from(bytes) * u128::from(now.0) / u128::from(healthy.0.max(1))) as u32,
        };
        QueueLimits {
            queue: scale(self.queue).max(least.min(self.queue)),
            marking: self.marking.scaled(scale),
            unmarked: self.unmarked,
            leaving: scale(self.leaving),
            joining: scale(self.joining),
        }
    }
}

/// Limits of all ports: those of most, and of others where they differ.
#[derive(Debug)]
pub(super) struct AllLimits {
    pub(super) usual: QueueLimits,
    /// Per port; empty until the first differs.
    own: Vec<Option<QueueLimits>>,
    /// The limits of a slowed link fall with its rate.
    scales: bool,
}

impl AllLimits {
    /// Creates the limits of ports with links of these rates.
    pub(super) fn new(fabric: &Limits, rates: impl Iterator<Item = Rate>) -> Self {
        let usual = QueueLimits::new(fabric, &fabric.usual);
        let own: Vec<_> =
            rates.map(|rate| Some(QueueLimits::new(fabric, fabric.at(rate))).filter(|own| *own != usual)).collect();
        let own = if own.iter().any(Option::is_some) { own } else { Vec::new() };
        AllLimits { usual, own, scales: fabric.slowed_scale }
    }

    #[inline]
    pub(super) fn of(&self, port: PortId) -> &QueueLimits {
        self.own.get(port.at()).and_then(Option::as_ref).unwrap_or(&self.usual)
    }

    /// Returns `true` if a port has limits of its own.
    #[inline]
    pub(super) fn differ(&self, port: PortId) -> bool {
        self.own.get(port.at()).is_some_and(Option::is_some)
    }

    /// Sets the rate of a port's link, one of `ports`, whose limits are `whole` at the healthy rate. No rate above it raises
    /// a limit.
    pub(super) fn change_rate(
        &mut self,
        port: PortId,
        (now, healthy): (Rate, Rate),
        whole: &QueueLimits,
        ports: usize,
        least: u32,
    ) {
        if !self.scales {
            return;
        }
        self.own.resize(ports, None);
        let limits = if now < healthy { whole.scaled(now, healthy, least) } else { *whole };
        self.own[port.at()] = (now < healthy || *whole != self.usual).then_some(limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_backend::Red;

    #[test]
    fn limits_fall_with_the_rate() {
        // A quarter of the rate: 400,000, 80,000 and 320,000 B become 100,000, 20,000 and 80,000.
        let usual = QueueLimits {
            queue: 400_000,
            marking: Marking::Red(Red { kmin: 80_000, kmax: 320_000, pmax: 1.0 }),
            unmarked: 0,
            leaving: 80_000,
            joining: u32::MAX,
        };
        let mut all = AllLimits { usual, own: Vec::new(), scales: true };
        let (port, other) = (PortId(1), PortId(0));
        all.change_rate(port, (Rate::gbps(100), Rate::gbps(400)), &usual, 2, 4160);
        let quarter = QueueLimits {
            queue: 100_000,
            marking: Marking::Red(Red { kmin: 20_000, kmax: 80_000, pmax: 1.0 }),
            unmarked: 0,
            leaving: 20_000,
            joining: u32::MAX,
        };
        assert_eq!((all.of(port), all.of(other)), (&quarter, &usual));
        assert!(all.differ(port) && !all.differ(other));
        // At a thousandth the queue still holds a packet; at the full rate it is as before.
        all.change_rate(port, (Rate(400_000_000), Rate::gbps(400)), &usual, 2, 4160);
        assert_eq!(all.of(port).queue, 4160);
        all.change_rate(port, (Rate::gbps(400), Rate::gbps(400)), &usual, 2, 4160);
        assert_eq!((all.of(port), all.differ(port)), (&usual, false));
        let mut kept = AllLimits { usual, own: Vec::new(), scales: false };
        kept.change_rate(port, (Rate::gbps(100), Rate::gbps(400)), &usual, 2, 4160);
        assert!(!kept.differ(port));
    }
}
