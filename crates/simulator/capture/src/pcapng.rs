//! The pcapng container (draft-ietf-opsawg-pcapng): one section, one interface, a block per packet.

use anabranch_units::Time;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;

/// Options: of the section the program's name; of the interface the others.
const USER_APPLICATION: u16 = 4;
const NAME: u16 = 2;
const SPEED: u16 = 8;
const RESOLUTION: u16 = 9;
const CHECK_SEQUENCE: u16 = 13;

pub(crate) struct Writer<W: Write> {
    to: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(to: W, link: &str, rate_bps: u64) -> io::Result<Self> {
        let mut writer = Writer { to, block: Vec::with_capacity(256) };
        writer.put(&BYTE_ORDER.to_le_bytes());
        writer.put(&1u16.to_le_bytes());
        writer.put(&0u16.to_le_bytes());
        writer.put(&u64::MAX.to_le_bytes());
        writer.option(USER_APPLICATION, concat!("anabranch ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.option(0, &[]);
        writer.end_block(SECTION_HEADER)?;
        writer.put(&ETHERNET.to_le_bytes());
        writer.put(&0u16.to_le_bytes());
        // No snap length: only payload is omitted, whose bytes are not simulated.
        writer.put(&0u32.to_le_bytes());
        writer.option(NAME, link.as_bytes());
        writer.option(SPEED, &rate_bps.to_le_bytes());
        writer.option(RESOLUTION, &[9]);
        writer.option(CHECK_SEQUENCE, &[0]);
        writer.option(0, &[]);
        writer.end_block(INTERFACE)?;
        Ok(writer)
    }

    /// Writes a packet of `length` bytes, sent at `time`, that begins with `head`.
    pub(crate) fn packet(&mut self, time: Time, head: &[u8], length: u32) -> io::Result<()> {
        let stamp = time.ps() / 1000;
        self.put(&0u32.to_le_bytes());
        self.put(&((stamp >> 32) as u32).to_le_bytes());
        self.put(&(stamp as u32).to_le_bytes());
        self.put(&(head.len() as u32).to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put(head);
        self.pad();
        self.end_block(ENHANCED_PACKET)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.to.write_all(&kind.to_le_bytes())?;
        self.to.write_all(&length)?;
        self.to.write_all(&self.block)?;
        self.to.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}
