//! Limits of data queues in bytes: those of all ports, and those of ports whose links a fault has slowed.

use crate::{
    ids::PortId,
    plan::{Limits, PortLimits},
};
use anabranch_units::Rate;

/// Limits of all ports: those of most, and of others where they differ.
#[derive(Debug)]
pub(super) struct AllLimits {
    pub(super) usual: PortLimits,
    /// Per port; empty until the first differs.
    own: Vec<Option<PortLimits>>,
    /// The limits of a slowed link fall with its rate.
    scales: bool,
}

impl AllLimits {
    /// Creates the limits of ports with these links and their rates.
    pub(super) fn new(fabric: &Limits, links: impl Iterator<Item = (u32, Rate)>) -> Self {
        let usual = fabric.usual;
        let own: Vec<_> = links.map(|(link, rate)| Some(*fabric.at(link, rate)).filter(|own| *own != usual)).collect();
        let own = if own.iter().any(Option::is_some) { own } else { Vec::new() };
        AllLimits { usual, own, scales: fabric.slowed_scale }
    }

    #[inline]
    pub(super) fn of(&self, port: PortId) -> &PortLimits {
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
        whole: &PortLimits,
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
    use anabranch_backend::{Marking, Red};

    #[test]
    fn limits_fall_with_the_rate() {
        // A quarter of the rate: 400,000, 80,000 and 320,000 B become 100,000, 20,000 and 80,000.
        let usual = PortLimits {
            queue: 400_000,
            trimmed: 400_000,
            marking: Marking::Red(Red { kmin: 80_000, kmax: 320_000, pmax: 1.0 }),
            unmarked: 0,
            leaving: 80_000,
            joining: u32::MAX,
        };
        let mut all = AllLimits { usual, own: Vec::new(), scales: true };
        let (port, other) = (PortId(1), PortId(0));
        all.change_rate(port, (Rate::gbps(100), Rate::gbps(400)), &usual, 2, 4160);
        let quarter = PortLimits {
            queue: 100_000,
            trimmed: 100_000,
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
