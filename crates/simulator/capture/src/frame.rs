//! A packet as the frame it would be.

use crate::{
    ethernet, ours, roce,
    wire::{Encapsulation, Wire, carries_payload},
};
use anabranch_outcome::{CapturedPacket, PacketKind};

/// A frame: what is captured of it, and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// All of it, payload as zeros; in frames with a header of our own without payload.
    pub head: Vec<u8>,
    /// Bytes on the wire, without preamble and frame check sequence: those of the simulated packet, unless the headers
    /// need more.
    pub length: u32,
}

/// How many frames were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Frames.
    pub packets: u64,
    /// Their lengths added up.
    pub bytes: u64,
    /// Frames that are longer than the packets they stand for, which have no room for their headers.
    pub widened: u64,
    /// By how much, all together.
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
    /// The frame that a packet would be.
    pub fn of(packet: &CapturedPacket, wire: &Wire<'_>) -> Self {
        let head = match (packet.kind, wire.encapsulation) {
            (PacketKind::Pause, _) => ethernet::pause(packet, wire),
            // RoCEv2 knows neither of the two.
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
