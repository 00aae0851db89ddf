//! What frames of every kind share.

use anabranch_outcome::{CapturedPacket, PacketKind};
use anabranch_units::Time;

/// How packets of data and their answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// RoCEv2: UDP port 4791, BTH, RETH, AETH.
    Roce,
    /// UDP with a header of our own.
    Ours,
}

/// What frames are made of beyond the packets.
#[derive(Clone, Copy)]
pub struct Wire<'a> {
    /// How packets are written.
    pub encapsulation: Encapsulation,
    /// Name of the link.
    pub link: &'a str,
    /// Number of the node it leaves.
    pub from: u32,
    /// Number of the node it leads to.
    pub to: u32,
    /// Its rate in bits per second.
    pub rate_bps: u64,
    /// Whether switches mark packets.
    pub ecn: bool,
    /// How long a PFC frame pauses; `None`: until the one that ends the pause.
    pub pause: Option<Time>,
    /// Data packets of a flow.
    pub packets: &'a dyn Fn(u32) -> u64,
    /// Payload bytes of a flow.
    pub bytes: &'a dyn Fn(u32) -> u64,
}

/// The beginning of a frame.
pub(crate) struct Head {
    /// All headers, and what follows the payload where there is none.
    pub(crate) bytes: Vec<u8>,
    /// The least length of the frame.
    pub(crate) least: usize,
}

/// Whether payload follows the headers.
pub(crate) fn carries_payload(packet: &CapturedPacket) -> bool {
    matches!(packet.kind, PacketKind::Data | PacketKind::Probe)
}

/// Whether it goes before data.
pub(crate) fn is_control(packet: &CapturedPacket) -> bool {
    !carries_payload(packet)
}
