//! ACK and NACK.

use crate::Reply;

/// Acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// First PSN not yet received.
    pub cumulative: u64,
    /// First PSN of `bitmap`.
    pub bitmap_base: u64,
    /// Bit i is set if PSN `bitmap_base + i` has been received.
    pub bitmap: u64,
    /// PSN of the packet that triggered this ACK; [`Ack::OF_TIMER`] if its delay has passed, which has no round trip.
    pub psn: u64,
    /// Path tag of that packet.
    pub tag: u32,
    /// ECN mark of that packet, or of any packet since the last ACK, as the receiver is configured.
    pub ecn: bool,
}

/// Negative acknowledgement of a trimmed packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nack {
    /// First PSN not yet received.
    pub cumulative: u64,
    /// PSN of the trimmed packet.
    pub psn: u64,
    /// Path tag of the trimmed packet.
    pub tag: u32,
}

impl Ack {
    /// PSN of no packet: the largest of 63 bits. A flow has fewer packets, also where only 32 bits of a PSN are kept.
    pub const OF_TIMER: u64 = (1 << 63) - 1;
}

impl From<Ack> for Reply {
    #[inline]
    fn from(ack: Ack) -> Self {
        let offset = (ack.bitmap_base - ack.cumulative) as u32;
        let Ack { cumulative, bitmap, ecn, psn, tag, .. } = ack;
        Reply { psn, tag, cumulative, bitmap, offset, ecn, ..Reply::default() }
    }
}

impl From<Reply> for Ack {
    #[inline]
    fn from(reply: Reply) -> Self {
        let Reply { psn, tag, cumulative, bitmap, offset, ecn, .. } = reply;
        Ack { cumulative, bitmap_base: cumulative + u64::from(offset), bitmap, psn, tag, ecn }
    }
}

impl From<Nack> for Reply {
    fn from(nack: Nack) -> Self {
        let Nack { cumulative, psn, tag } = nack;
        Reply { cumulative, psn, tag, nack: true, ..Reply::default() }
    }
}

impl From<Reply> for Nack {
    fn from(reply: Reply) -> Self {
        let Reply { cumulative, psn, tag, .. } = reply;
        Nack { cumulative, psn, tag }
    }
}
