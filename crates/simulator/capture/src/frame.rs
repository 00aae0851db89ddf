use crate::{
    ethernet, ours, roce,
    wire::{Encapsulation, Wire, carries_payload},
};
use anabranch_outcome::{CapturedPacket, PacketKind};

/// Captured bytes and length of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// All bytes, payload as zeros; in frames with our own header without payload.
    pub head: Vec<u8>,
    /// Bytes on the wire without preamble and FCS: those of the packet, or more if the headers do not fit.
    pub length: u32,
}

/// Counts of written frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub packets: u64,
    /// Sum of their lengths.
    pub bytes: u64,
    /// Frames longer than their packets because of the headers.
    pub widened: u64,
    /// Total of the additional bytes.
    pub widened_by: u64,
}

impl Written {
    pub(crate) fn add(&mut self, frame: &Frame, simulated: u16) {
        self.packets += 1;
        self.bytes += u64::from(frame.length);
        let by = u64::from(frame.length) - u64::from(simulated);
        self.widened += u64::from(by > 0);
        self.widened_by += by;
    }
}

impl Frame {
    pub fn of(packet: &CapturedPacket, wire: &Wire<'_>) -> Self {
        let head = match (packet.kind, wire.encapsulation) {
            (PacketKind::Pause, _) => ethernet::pause(packet, wire),
            // RoCEv2 has neither of the two.
            (PacketKind::SwitchControl | PacketKind::Header, _) | (_, Encapsulation::Ours) => ours::frame(packet, wire),
            (_, Encapsulation::Roce) => roce::frame(packet, wire),
        };
        let length = head.least.max(usize::from(packet.size_bytes));
        let mut bytes = head.bytes;
        if !carries_payload(packet) {
            bytes.resize(length, 0);
        }
        Frame { head: bytes, length: length as u32 }
    }
}
