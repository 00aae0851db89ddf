//! What the receiver tells the sender.

use crate::Answer;

/// What the receiver tells the sender with an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// First PSN of `bitmap`.
    pub bitmap_base: u64,
    /// Bit i: PSN `bitmap_base + i` has been received.
    pub bitmap: u64,
    /// PSN of the packet that triggered this ACK.
    pub psn: u64,
    /// Path tag of that packet.
    pub tag: u32,
    /// Whether that packet was ECN-marked (or any packet since the last ACK, by choice of the receiver).
    pub ecn: bool,
}

/// What the receiver tells the sender when a packet came without its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nack {
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// PSN of the trimmed packet.
    pub psn: u64,
    /// Path tag of the trimmed packet.
    pub tag: u32,
}

impl From<Ack> for Answer {
    #[inline]
    fn from(ack: Ack) -> Self {
        let offset = (ack.bitmap_base - ack.cumulative) as u32;
        let Ack { cumulative, bitmap, ecn, psn, tag, .. } = ack;
        Answer { psn, tag, cumulative, bitmap, offset, ecn, ..Answer::default() }
    }
}

impl From<Answer> for Ack {
    #[inline]
    fn from(answer: Answer) -> Self {
        let Answer { psn, tag, cumulative, bitmap, offset, ecn, .. } = answer;
        Ack { cumulative, bitmap_base: cumulative + u64::from(offset), bitmap, psn, tag, ecn }
    }
}

impl From<Nack> for Answer {
    fn from(nack: Nack) -> Self {
        let Nack { cumulative, psn, tag } = nack;
        Answer { cumulative, psn, tag, nack: true, ..Answer::default() }
    }
}

impl From<Answer> for Nack {
    fn from(answer: Answer) -> Self {
        let Answer { cumulative, psn, tag, .. } = answer;
        Nack { cumulative, psn, tag }
    }
}
