//! The receiver of a flow (specification 7.10): accepts any order, acknowledges every n-th packet, and at once where
//! waiting would hurt.

use super::{AckEcn, UetConfig};
use crate::{Ack, Nack, psn_set::PsnSet};

/// A data packet as it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataArrival {
    /// Its sequence number.
    pub psn: u64,
    /// Its payload bytes.
    pub payload: u32,
    /// Its path tag.
    pub tag: u32,
    /// Whether it was ECN-marked.
    pub ecn: bool,
    /// The sender cannot go on before it hears of this packet (or has nothing left): acknowledge at once.
    pub ack_request: bool,
}

/// How an arrival relates to what came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// It had arrived before.
    pub duplicate: bool,
    /// Its PSN is not the lowest one missing.
    pub out_of_order: bool,
    /// Its PSN is not the last arrival's plus one.
    pub out_of_sequence: bool,
}

/// What a data packet brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How it relates to what came before.
    pub arrival: Arrival,
    /// The ACK to send now, if one is due.
    pub reply: Option<Ack>,
    /// This packet completed the flow.
    pub complete: bool,
}

/// The receiving side of a flow.
#[derive(Clone, Debug)]
pub struct UetReceiver {
    /// PSNs at or above `cumulative` that have been received.
    received: PsnSet,
    cumulative: u64,
    packets: u64,
    last_payload: u32,
    /// Data packets since the last ACK.
    unacknowledged: u32,
    /// PSN that would follow the last arrival.
    following: u64,
    /// Mark of the last arrival.
    marked: bool,
    /// A mark since the last ACK.
    any_marked: bool,
    received_bytes: u64,
    /// Payload bytes held beyond the lowest missing PSN.
    beyond: u64,
    max_reorder_bytes: u64,
    out_of_order: u64,
    out_of_sequence: u64,
}

impl UetReceiver {
    /// The receiver of `size` payload bytes.
    pub fn new(config: &UetConfig, size: u64) -> Self {
        let packets = config.packets(size);
        UetReceiver {
            received: PsnSet::new(config.window_packets().min(packets)),
            cumulative: 0,
            packets,
            last_payload: (size - (packets - 1) * config.mtu) as u32,
            unacknowledged: 0,
            following: 0,
            marked: false,
            any_marked: false,
            received_bytes: 0,
            beyond: 0,
            max_reorder_bytes: 0,
            out_of_order: 0,
            out_of_sequence: 0,
        }
    }

    /// A data packet arrived. PSNs beyond the flow's end are the caller's mistake and ignored.
    pub fn on_data(&mut self, config: &UetConfig, packet: &DataArrival) -> Received {
        let DataArrival { psn, payload, tag, ecn, ack_request } = *packet;
        let duplicate = psn < self.cumulative || self.received.contains(self.cumulative, psn);
        let arrival =
            Arrival { duplicate, out_of_order: psn != self.cumulative, out_of_sequence: psn != self.following };
        self.out_of_order += u64::from(arrival.out_of_order);
        self.out_of_sequence += u64::from(arrival.out_of_sequence);
        self.following = psn + 1;
        let fills = !duplicate && psn == self.cumulative && self.beyond > 0;
        if !duplicate && psn < self.packets {
            self.received_bytes += u64::from(payload);
            if psn == self.cumulative {
                self.advance(config);
            } else {
                self.received.insert(self.cumulative, psn);
                self.beyond += u64::from(payload);
                self.max_reorder_bytes = self.max_reorder_bytes.max(self.beyond);
            }
        }
        let complete = !duplicate && self.cumulative == self.packets;
        let changed = ecn != self.marked;
        self.marked = ecn;
        self.any_marked |= ecn;
        self.unacknowledged += 1;
        let due = self.unacknowledged >= config.ack_every || duplicate || fills || complete || changed || ack_request;
        Received { arrival, reply: due.then(|| self.acknowledge(config, psn, tag, ecn)), complete }
    }

    /// The lowest missing packet has come: moves on to the next one missing.
    fn advance(&mut self, config: &UetConfig) {
        let next = self.cumulative + 1;
        if self.beyond == 0 {
            self.cumulative = next;
            return;
        }
        self.cumulative = self.received.take_run(next);
        let mut taken = (self.cumulative - next) * config.mtu;
        if self.cumulative == self.packets && self.cumulative > next {
            taken = taken - config.mtu + u64::from(self.last_payload);
        }
        self.beyond -= taken;
    }

    fn acknowledge(&mut self, config: &UetConfig, psn: u64, tag: u32, own: bool) -> Ack {
        self.unacknowledged = 0;
        let any = std::mem::take(&mut self.any_marked);
        let bitmap_base = self.cumulative.max(psn.saturating_sub(63));
        let bitmap = if self.beyond == 0 { 0 } else { self.received.bits_from(self.cumulative, bitmap_base) };
        let ecn = if config.ack_ecn == AckEcn::Own { own } else { any };
        Ack { cumulative: self.cumulative, bitmap_base, bitmap, psn, tag, ecn }
    }

    /// The header of a trimmed packet arrived.
    pub fn on_header(&mut self, _config: &UetConfig, psn: u64, tag: u32) -> Nack {
        Nack { cumulative: self.cumulative, psn, tag }
    }

    /// Most payload bytes ever held beyond the lowest missing PSN.
    pub fn max_reorder_bytes(&self) -> u64 {
        self.max_reorder_bytes
    }
    /// Arrivals whose PSN was not the lowest one missing.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }
    /// Arrivals whose PSN was not the last arrival's plus one.
    pub fn out_of_sequence(&self) -> u64 {
        self.out_of_sequence
    }
    /// Unique payload bytes received.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }
}
