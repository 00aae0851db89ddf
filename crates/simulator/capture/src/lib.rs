//! What left over a simulated link, as a pcapng file that other people's tools read: Ethernet, IPv4, UDP and within it
//! RoCEv2, or our own header where the transport is `uet`. `docs/looking-inside.md` describes every field.

mod ethernet;
mod frame;
mod ours;
mod pcapng;
mod roce;

pub use frame::{Frame, Written};
pub use ours::PORT as OUR_PORT;
pub use roce::PORT as ROCE_PORT;

use anabranch_outcome::Capture;
use anabranch_units::Time;
use std::io::{self, Write};

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

/// Writes `capture` as pcapng.
///
/// # Errors
/// Those of `to`.
pub fn write(capture: &Capture, wire: &Wire<'_>, to: impl Write) -> io::Result<Written> {
    let mut file = pcapng::Writer::new(to, wire.link, wire.rate_bps)?;
    let mut written = Written::default();
    for packet in &capture.packets {
        let frame = Frame::of(packet, wire);
        file.packet(packet.time, &frame.head, frame.length)?;
        written.add(&frame, packet.size_bytes);
    }
    file.finish()?;
    Ok(written)
}
