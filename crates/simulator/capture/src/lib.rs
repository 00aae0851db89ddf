//! Capture of a simulated link as pcapng: Ethernet, IPv4, UDP and RoCEv2 or our header (`docs/how-to/inspect.md`).

mod ethernet;
mod frame;
mod ours;
mod pcapng;
mod roce;
mod wire;

pub use frame::{Frame, Written};
pub use ours::PORT as OUR_PORT;
pub use roce::PORT as ROCE_PORT;
pub use wire::{Encapsulation, Wire};

use anabranch_outcome::Capture;
use std::io::{self, Write};

/// Writes `capture` as pcapng.
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
