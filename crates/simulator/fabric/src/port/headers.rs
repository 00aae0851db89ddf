//! Trimmed headers that wait for the share of their class, where they have one.
//!
//! Control packets precede data, and so do headers while their class has credit: what the class of headers may send beside
//! data that waits, by weighted (deficit) round robin. Without credit they wait here. Only then is a port in this table.

use crate::{
    arena::Packets,
    ids::{PacketId, PortId},
    packet::Fifo,
    plan::TrimmedShare,
};

/// Headers of one port, while its class has less than its full credit.
#[derive(Clone, Debug)]
struct Waiting {
    packets: Fifo,
    bytes: u32,
    /// Bytes times the share of data.
    credit: i64,
    /// The port takes its short path again afterwards.
    plain: bool,
}

#[derive(Debug)]
pub(super) struct Headers {
    share: Option<TrimmedShare>,
    /// Per port; empty until a header has been trimmed.
    ports: Vec<Option<Box<Waiting>>>,
    count: usize,
}

/// Where a header goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Before data, with the control packets.
    Now,
    Waits,
    /// The class is full.
    Never,
}

impl Headers {
    pub(super) fn new(share: Option<TrimmedShare>, count: usize) -> Self {
        Headers { share, ports: Vec::new(), count }
    }

    fn of(&mut self, port: PortId) -> Option<&mut Waiting> {
        self.ports.get_mut(port.at()).and_then(Option::as_deref_mut)
    }

    /// Returns `true` if headers wait at the port, or have used credit.
    #[inline]
    pub(super) fn any(&self, port: PortId) -> bool {
        self.ports.get(port.at()).is_some_and(Option::is_some)
    }

    pub(super) fn bytes(&self, port: PortId) -> u32 {
        self.ports.get(port.at()).and_then(Option::as_ref).map_or(0, |waiting| waiting.bytes)
    }

    pub(super) fn queue(&self, port: PortId) -> Option<&Fifo> {
        self.ports.get(port.at()).and_then(Option::as_ref).map(|waiting| &waiting.packets)
    }

    /// Returns the bytes of the table, which has a place per port.
    pub(super) fn memory(&self) -> usize {
        self.ports.capacity() * size_of::<Option<Box<Waiting>>>()
    }

    /// Stores whether the port takes its short path once no header waits.
    pub(super) fn set_plain(&mut self, port: PortId, plain: bool) {
        if let Some(waiting) = self.of(port) {
            waiting.plain = plain;
        }
    }

    /// Admits a header to a port where data waits, of at most `limit` bytes; `plain`: the port takes its short path.
    pub(super) fn admit(
        &mut self,
        packets: &mut Packets,
        port: PortId,
        id: PacketId,
        limit: u32,
        plain: bool,
    ) -> Admitted {
        let Some(share) = self.share else { return Admitted::Now };
        if self.ports.is_empty() {
            self.ports.resize(self.count, None);
        }
        let new = || Box::new(Waiting { packets: Fifo::EMPTY, bytes: 0, credit: share.most, plain });
        let waiting = self.ports[port.at()].get_or_insert_with(new);
        let size = u32::from(packets[id].size);
        if waiting.packets.is_empty() && waiting.credit > 0 {
            waiting.credit -= i64::from(size) * share.data;
            return Admitted::Now;
        }
        if waiting.bytes.saturating_add(size) > limit {
            return Admitted::Never;
        }
        waiting.bytes += size;
        packets[id].next = PacketId::NONE.0;
        waiting.packets.push(packets, id);
        Admitted::Waits
    }

    /// Adds the credit for a data packet of `size` bytes that leaves.
    pub(super) fn earn(&mut self, port: PortId, size: u32) {
        let Some(share) = self.share else { return };
        if let Some(waiting) = self.of(port) {
            waiting.credit = share.most.min(waiting.credit + i64::from(size) * share.headers);
        }
    }

    /// Takes the next header that has credit or, where the port is idle otherwise, any.
    pub(super) fn take(&mut self, packets: &Packets, port: PortId, idle: bool) -> Option<PacketId> {
        let share = self.share?;
        let waiting = self.of(port)?;
        if waiting.packets.is_empty() || waiting.credit <= 0 && !idle {
            return None;
        }
        let id = waiting.packets.pop(packets);
        let size = packets[id].size;
        waiting.bytes -= u32::from(size);
        if waiting.credit > 0 {
            waiting.credit -= i64::from(size) * share.data;
        }
        Some(id)
    }

    /// Forgets the port if no header waits and the class has all its credit, or nothing competes with it. Returns `true` if
    /// the port takes its short path again.
    pub(super) fn settle(&mut self, port: PortId, idle: bool) -> bool {
        let most = self.share.map_or(0, |share| share.most);
        let done = self.of(port).is_some_and(|waiting| waiting.packets.is_empty() && (idle || waiting.credit == most));
        done && self.ports[port.at()].take().is_some_and(|waiting| waiting.plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arena::{Arena, Attribution},
        packet::{Kind, Packet},
    };
    use proptest::prelude::*;

    proptest! {
        /// Headers and data that always wait share a port by their weights, to within one full packet.
        #[test]
        fn classes_share_a_port_by_weight(
            per_mille in 1u32..501, header in 1u16..129, full in 200u16..9001, sizes in prop::collection::vec(1u16..9001, 1..300),
        ) {
            const PORT: PortId = PortId(1);
            let share = TrimmedShare::new(f64::from(per_mille) / 1000.0, u32::from(full));
            let (mut packets, mut headers) = (Packets::new(Arena::new(Attribution::default(), None).unwrap()), Headers::new(Some(share), 2));
            let (mut sent, mut data) = (0i64, 0i64);
            let mut waiting = 0;
            for size in sizes.iter().map(|size| size.min(&full)) {
                while waiting < 200_000 {
                    let id = packets.insert(Packet { kind: Kind::Header, size: header, ..Packet::default() });
                    match headers.admit(&mut packets, PORT, id, u32::MAX, true) {
                        Admitted::Now => sent += i64::from(header),
                        _ => waiting += i64::from(header),
                    }
                }
                data += i64::from(*size);
                headers.earn(PORT, u32::from(*size));
                while let Some(id) = headers.take(&packets, PORT, false) {
                    sent += i64::from(packets[id].size);
                    waiting -= i64::from(packets[id].size);
                }
                // In bytes times both weights; one packet of credit at the start, and one header beyond it.
                let ahead = sent * share.data - data * share.headers;
                prop_assert!((0..=share.most + i64::from(header) * share.data).contains(&ahead), "{ahead} of {}", share.most);
            }
            prop_assert!(headers.any(PORT) && !headers.settle(PORT, false));
            while headers.take(&packets, PORT, true).is_some() {}
            prop_assert!(headers.settle(PORT, true) && !headers.any(PORT) && headers.bytes(PORT) == 0);
        }
    }
}
