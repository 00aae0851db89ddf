//! ACK and NACK.

use crate::Answer;

/// Acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// First PSN not yet received.
    pub cumulative: u64,
    /// First PSN of `bitmap`.
    pub bitmap_base: u64,
    /// Bit i is set if PSN `bitmap_base + i` has been received.
    pub bitmap: u64,
    /// PSN of the packet that triggered this ACK.
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
