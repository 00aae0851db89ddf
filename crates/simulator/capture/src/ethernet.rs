//! Ethernet, IPv4 and UDP, and PFC's pause frames.

use crate::wire::{Head, Wire, is_control};
use anabranch_outcome::CapturedPacket;
use etherparse::{EtherType, Ethernet2Header, IpNumber, Ipv4Header, UdpHeader};

pub(crate) const ETHERNET: usize = 14;
pub(crate) const HEADERS: usize = ETHERNET + 20 + 8;

/// DSCP of control packets (CS6).
const CONTROL: u8 = 48;

/// Locally administered, with the node's number.
fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = node.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// Addresses begin at 10.0.0.1.
fn address(host: u32) -> [u8; 4] {
    let [_, b, c, d] = host.wrapping_add(1).to_be_bytes();
    [10, b, c, d]
}

/// Returns the headers of a packet with `inner` bytes within UDP. The UDP checksum is zero (none), as RoCEv2 requires.
pub(crate) fn headers(packet: &CapturedPacket, wire: &Wire<'_>, ports: (u16, u16), inner: usize) -> Vec<u8> {
    let ethernet = Ethernet2Header { source: mac(wire.from), destination: mac(wire.to), ether_type: EtherType::IPV4 };
    // Lengths fit 16 bits.
    let mut ip = Ipv4Header {
        total_len: (20 + 8 + inner) as u16,
        dont_fragment: true,
        time_to_live: 64,
        protocol: IpNumber::UDP,
        source: address(packet.src),
        destination: address(packet.dst),
        ..Ipv4Header::default()
    };
    let (dscp, ecn) = match is_control(packet) {
        true => (CONTROL, 0),
        false if !wire.ecn => (packet.class << 3, 0),
        false => (packet.class << 3, if packet.marked { 3 } else { 2 }),
    };
    ip.dscp = dscp.try_into().unwrap_or_default();
    ip.ecn = ecn.try_into().unwrap_or_default();
    ip.header_checksum = ip.calc_header_checksum();
    let udp = UdpHeader { source_port: ports.0, destination_port: ports.1, length: (8 + inner) as u16, checksum: 0 };
    let mut bytes = Vec::with_capacity(HEADERS + 32);
    bytes.extend(ethernet.to_bytes());
    bytes.extend(ip.to_bytes());
    bytes.extend(udp.to_bytes());
    bytes
}

/// Returns a pause frame (IEEE 802.1Qbb): opcode 0x0101, class, and duration in units of 512 bit times.
pub(crate) fn pause(packet: &CapturedPacket, wire: &Wire<'_>) -> Head {
    let mut bytes = vec![0x01, 0x80, 0xC2, 0, 0, 1];
    bytes.extend(mac(wire.from));
    bytes.extend([0x88, 0x08, 0x01, 0x01, 0, 1 << packet.class]);
    let quanta = match (packet.psn, wire.pause) {
        (0, _) => 0,
        (_, None) => u16::MAX,
        (_, Some(time)) => {
            let bits = u128::from(time.ps()) * u128::from(wire.rate_bps) / 1_000_000_000_000;
            u16::try_from(bits / 512).unwrap_or(u16::MAX)
        }
    };
    for class in 0..8 {
        bytes.extend(if class == packet.class { quanta } else { 0 }.to_be_bytes());
    }
    Head { least: bytes.len(), bytes }
}
