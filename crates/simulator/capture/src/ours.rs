//! Our own header within UDP: the fields of a simulated packet in 22 bytes.

use crate::{
    ethernet::{ETHERNET, HEADERS, headers},
    wire::{Head, Wire},
};
use anabranch_outcome::{CapturedPacket, PacketKind};

/// UDP port of the receiver: private, and unknown to Wireshark, like all source ports.
pub const PORT: u16 = 0xEFFF;

const HEADER: usize = 22;
const VERSION: u8 = 1;

/// Source port of a path tag: its bits folded to the twelve below the highest four, which are set.
fn source_port(tag: u32) -> u16 {
    (tag ^ tag >> 12 ^ tag >> 24) as u16 & 0x0FFF | 0xF000
}

pub(crate) fn frame(packet: &CapturedPacket, wire: &Wire<'_>) -> Head {
    let least = HEADERS + HEADER;
    let length = least.max(usize::from(packet.size_bytes));
    let mut bytes = headers(packet, wire, (source_port(packet.tag), PORT), length - ETHERNET - 28);
    let kind = match packet.kind {
        PacketKind::Data | PacketKind::Pause => 0,
        PacketKind::Header => 1,
        PacketKind::Ack => 2,
        PacketKind::Nack => 3,
        PacketKind::Probe => 4,
        PacketKind::ProbeReply => 5,
        PacketKind::SwitchControl => 6,
        PacketKind::Grant => 7,
    };
    let flags = [packet.retransmission, packet.ack_request, packet.marked, packet.notification];
    let flags = flags.iter().enumerate().map(|(bit, set)| u8::from(*set) << bit).sum();
    bytes.extend([kind, flags]);
    bytes.extend(packet.payload_bytes.to_be_bytes());
    bytes.extend(packet.flow_id.to_be_bytes());
    bytes.extend(packet.tag.to_be_bytes());
    bytes.extend((packet.psn as u32).to_be_bytes());
    bytes.extend((packet.acked_below as u32).to_be_bytes());
    bytes.extend([packet.class, VERSION]);
    Head { bytes, least }
}
