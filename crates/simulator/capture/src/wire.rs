use anabranch_outcome::{CapturedPacket, PacketKind};
use anabranch_units::Time;

/// Encapsulation of data packets and their acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// RoCEv2: UDP port 4791, BTH, RETH, AETH.
    Roce,
    /// UDP with our own header.
    Ours,
}

/// Parameters of frames beyond the packets.
#[derive(Clone, Copy)]
pub struct Wire<'a> {
    pub encapsulation: Encapsulation,
    pub link: &'a str,
    /// Number of the sending node.
    pub from: u32,
    /// Number of the receiving node.
    pub to: u32,
    /// Its rate in bits per second.
    pub rate_bps: u64,
    /// `true` if switches mark packets.
    pub ecn: bool,
    /// Duration of a PFC pause; `None`: until the resume frame.
    pub pause: Option<Time>,
    /// Data packets of a flow.
    pub packets: &'a dyn Fn(u32) -> u64,
    /// Payload bytes of a flow.
    pub bytes: &'a dyn Fn(u32) -> u64,
}

pub(crate) struct Head {
    /// All headers, and trailing bytes if there is no payload.
    pub(crate) bytes: Vec<u8>,
    pub(crate) least: usize,
}

pub(crate) fn carries_payload(packet: &CapturedPacket) -> bool {
    matches!(packet.kind, PacketKind::Data | PacketKind::Probe)
}

pub(crate) fn is_control(packet: &CapturedPacket) -> bool {
    !carries_payload(packet)
}
