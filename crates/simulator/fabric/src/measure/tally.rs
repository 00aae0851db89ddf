//! Conservation of packets.

use crate::packet::{Kind, Packet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), |a, b| Tally { packets: a.packets + b.packets, bytes: a.bytes + b.bytes })
    }
}

/// Packets that are balanced together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Data,
    /// Headers of trimmed data.
    Headers,
    Acks,
    /// Probes and their replies.
    Probes,
    /// Pauses, grants of receivers, and messages of switch schemes.
    Control,
}

impl Family {
    pub(crate) const COUNT: usize = 5;

    #[inline]
    pub(crate) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Data => Family::Data,
            Kind::Header => Family::Headers,
            Kind::Ack | Kind::Nack | Kind::Free => Family::Acks,
            Kind::Probe | Kind::ProbeReply => Family::Probes,
            Kind::SwitchControl | Kind::Grant | Kind::Pause => Family::Control,
        }
    }
}

/// Conservation counters of a partition. A header is created when its data packet is trimmed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balances {
    born: [Tally; Family::COUNT],
    delivered: [Tally; Family::COUNT],
    dropped: [Tally; Family::COUNT],
    /// Data packets that became headers, with their bytes before.
    pub(crate) trimmed: Tally,
}

impl Balances {
    #[inline]
    pub(crate) fn born(&mut self, packet: &Packet) {
        self.born[Family::of(packet.kind) as usize].add(packet);
    }
    #[inline]
    pub(crate) fn delivered(&mut self, packet: &Packet) {
        self.delivered[Family::of(packet.kind) as usize].add(packet);
    }
    pub(crate) fn dropped(&mut self, packet: &Packet) {
        self.dropped[Family::of(packet.kind) as usize].add(packet);
    }
    pub(crate) fn trimmed(&mut self, packet: &Packet) {
        self.trimmed.add(packet);
    }

    /// Returns created, delivered and dropped packets.
    pub(crate) fn of(&self, family: Family) -> [Tally; 3] {
        let index = family as usize;
        [self.born[index], self.delivered[index], self.dropped[index]]
    }

    pub(crate) fn all_dropped(&self) -> u64 {
        self.dropped.iter().map(|tally| tally.packets).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_kinds_are_accounted_separately() {
        let mut ledger = Balances::default();
        let packet = |kind, size| Packet { kind, size, ..Packet::default() };
        ledger.born(&packet(Kind::Data, 4160));
        ledger.born(&packet(Kind::Nack, 64));
        ledger.delivered(&packet(Kind::Ack, 64));
        ledger.dropped(&packet(Kind::Probe, 100));
        ledger.trimmed(&packet(Kind::Data, 4160));
        let tally = |packets, bytes| Tally { packets, bytes };
        let none = Tally::default();
        assert_eq!(ledger.of(Family::Data), [tally(1, 4160), none, none]);
        assert_eq!(ledger.of(Family::Acks), [tally(1, 64), tally(1, 64), none]);
        assert_eq!(ledger.of(Family::Probes), [none, none, tally(1, 100)]);
        assert_eq!((ledger.all_dropped(), ledger.trimmed), (1, tally(1, 4160)));
    }
}
