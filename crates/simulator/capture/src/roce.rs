//! RoCEv2 (InfiniBand Architecture Specification, volume 1, annex A17).

use crate::{
    ethernet::{ETHERNET, HEADERS, headers},
    wire::{Head, Wire},
};
use anabranch_outcome::{CapturedPacket, PacketKind};

/// The UDP port of RoCEv2.
pub const PORT: u16 = 4791;

/// Bytes of headers (transport, RDMA write, acknowledgement) and of the invariant CRC.
const BTH: usize = 12;
const RETH: usize = 16;
const AETH: usize = 4;
const ICRC: usize = 4;

/// Opcodes of reliable connections (section 9.2.1).
const WRITE_FIRST: u8 = 6;
const WRITE_MIDDLE: u8 = 7;
const WRITE_LAST: u8 = 8;
const WRITE_ONLY: u8 = 10;
const ACKNOWLEDGE: u8 = 17;

/// Backward congestion notification, next to the queue pair.
const BECN: u8 = 0x40;
/// Syndromes of an acknowledgement without credits, and of a missing packet.
const ACK: u8 = 0x1F;
const SEQUENCE_ERROR: u8 = 0x60;

/// Bit of the queue pairs of probes.
const PROBES: u32 = 0x80_0000;

/// Source port of a path tag: its bits folded to the fourteen below the highest two, which are set.
fn source_port(tag: u32) -> u16 {
    ((tag & 0x3FFF) ^ (tag >> 14)) as u16 & 0x3FFF | 0xC000
}

pub(crate) fn frame(packet: &CapturedPacket, wire: &Wire<'_>) -> Head {
    let (answers, probes) = match packet.kind {
        PacketKind::Ack | PacketKind::Nack => (true, false),
        PacketKind::ProbeReply => (true, true),
        PacketKind::Probe => (false, true),
        _ => (false, false),
    };
    let packets = (wire.packets)(packet.flow_id);
    let (opcode, psn) = match packet.kind {
        PacketKind::Ack => (ACKNOWLEDGE, packet.acked_below.wrapping_sub(1)),
        PacketKind::Nack => (ACKNOWLEDGE, packet.acked_below),
        PacketKind::ProbeReply => (ACKNOWLEDGE, 0),
        PacketKind::Probe => (WRITE_ONLY, 0),
        _ => (segment(packet.psn, packets), packet.psn),
    };
    let begins = matches!(opcode, WRITE_FIRST | WRITE_ONLY);
    let extra = if answers { AETH } else { 0 } + if begins { RETH } else { 0 };
    let least = HEADERS + BTH + extra + ICRC;
    let length = least.max(usize::from(packet.size_bytes));
    // Payload is in words of four bytes; the remainder of the simulated packet follows as Ethernet's padding.
    let payload = if answers { 0 } else { (length - least) / 4 * 4 };
    let mut bytes = headers(packet, wire, (source_port(packet.tag), PORT), least - ETHERNET - 28 + payload);
    let pair = (packet.flow_id.wrapping_add(2) & (PROBES - 1)) | if probes { PROBES } else { 0 };
    bytes.extend([opcode, 0, 0xFF, 0xFF, if packet.notification { BECN } else { 0 }]);
    bytes.extend(&pair.to_be_bytes()[1..]);
    bytes.push(if packet.ack_request || packet.kind == PacketKind::Probe { 0x80 } else { 0 });
    bytes.extend(&(psn as u32).to_be_bytes()[1..]);
    if begins {
        // Address (not simulated), key, length of the message.
        let message = if probes { u64::from(packet.payload_bytes) } else { (wire.bytes)(packet.flow_id) };
        bytes.extend([0; 8]);
        bytes.extend(packet.flow_id.to_be_bytes());
        bytes.extend((message as u32).to_be_bytes());
    }
    if answers {
        // Completed messages: a flow is one.
        let done = u8::from(!probes && packet.acked_below == packets);
        bytes.extend([if packet.kind == PacketKind::Nack { SEQUENCE_ERROR } else { ACK }, 0, 0, done]);
    }
    // Wireshark treats a packet without captured payload as malformed, and guesses the content of a SEND.
    bytes.resize(bytes.len() + payload, 0);
    let icrc = invariant_crc(&bytes[ETHERNET..]);
    bytes.extend(icrc);
    bytes.resize(length, 0);
    Head { bytes, least }
}

fn segment(psn: u64, packets: u64) -> u8 {
    match (psn, packets) {
        (0, 0 | 1) => WRITE_ONLY,
        (0, _) => WRITE_FIRST,
        (psn, packets) if psn + 1 >= packets => WRITE_LAST,
        _ => WRITE_MIDDLE,
    }
}

/// The invariant CRC from the IP header on: fields that switches may change, and eight bytes before, count as ones
/// (annex A17.3.3).
pub(crate) fn invariant_crc(packet: &[u8]) -> [u8; 4] {
    let mut masked = vec![0xFF; 8];
    masked.extend_from_slice(packet);
    // Type of service, TTL, checksums of IP and UDP, reserved byte of the BTH.
    for place in [1, 8, 10, 11, 26, 27, 32] {
        masked[8 + place] = 0xFF;
    }
    crc32fast::hash(&masked).to_le_bytes()
}
