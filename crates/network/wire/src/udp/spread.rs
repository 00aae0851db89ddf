//! Labels over equal links, as switches and bonds choose them: a hash of both addresses and ports.

use super::peers::address;
use crate::verbs::port_pairs;
use anabranch_random::Stream;
use std::net::SocketAddr;

const DRAWS: u64 = 3_000;

/// Addresses and ports of a packet.
type Tuple = ([u32; 2], [u16; 2]);
type Hash = fn(Tuple) -> u32;

/// `layer3+4` of Linux' bonds (`bond_ip_hash`, `drivers/net/bonding/bond_main.c`).
fn layer34((ips, [source, destination]): Tuple) -> u32 {
    // The fields as they are in memory, read on a little-endian machine.
    let ports = (u32::from(source) << 16 | u32::from(destination)).swap_bytes();
    let mut hash = ports ^ ips[0].swap_bytes() ^ ips[1].swap_bytes();
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    hash >> 1
}

fn xor((ips, ports): Tuple) -> u32 {
    ips[0] ^ ips[1] ^ u32::from(ports[0] ^ ports[1])
}

fn sum((ips, ports): Tuple) -> u32 {
    ips[0].wrapping_add(ips[1]).wrapping_add(u32::from(ports[0])).wrapping_add(u32::from(ports[1]))
}

fn bytes((ips, ports): Tuple) -> Vec<u8> {
    let ips = ips.iter().flat_map(|ip| ip.to_be_bytes());
    ips.chain([17]).chain(ports.iter().flat_map(|port| port.to_be_bytes())).collect()
}

/// CRC-16/CCITT, of which switches take the lowest bits.
fn crc16(of: Tuple) -> u32 {
    bytes(of).into_iter().fold(0xffff, |crc: u32, byte| {
        (0..8)
            .fold(crc ^ u32::from(byte) << 8, |crc, _| (crc << 1 ^ if crc & 0x8000 > 0 { 0x1021 } else { 0 }) & 0xffff)
    })
}

fn crc32(of: Tuple) -> u32 {
    crc32fast::hash(&bytes(of))
}

struct Model {
    name: &'static str,
    hash: Hash,
    /// Of a CRC: as many lowest bits of the varied port, the destination or of replies the source, give all values of the lowest
    /// three of the hash (`ports_in_a_row_have_all_remainders`).
    bits: [u32; 2],
}

const MODELS: [Model; 5] = [
    Model { name: "layer3+4", hash: layer34, bits: [0; 2] },
    Model { name: "xor", hash: xor, bits: [0; 2] },
    Model { name: "sum", hash: sum, bits: [0; 2] },
    Model { name: "crc16", hash: crc16, bits: [3, 6] },
    Model { name: "crc32", hash: crc32, bits: [3, 3] },
];

impl Model {
    /// Returns the maximum number of labels on one of `links` links, a power of two; `back`: of replies.
    ///
    /// XOR and sums: any `links` ports in a row have different remainders, exactly `labels / links` on each.
    ///
    /// `layer3+4` drops the lowest bit, so a link takes two ports in a row, and the exclusive or with the upper byte changes
    /// where the lower byte wraps. Both parts of the row have at most two more than their share, less two if neither is whole.
    ///
    /// CRCs are linear: `2^bits` ports from a multiple of that on are spread evenly. A row has one block less and two parts.
    fn bound(&self, labels: u32, links: u32, back: bool) -> u32 {
        match self.name {
            "xor" | "sum" => labels / links,
            "layer3+4" => labels / links + 2,
            _ => labels.min((labels + (1 << self.bits[usize::from(back)])) / links),
        }
    }
}

fn drawn(number: u64) -> ([u32; 2], [SocketAddr; 2]) {
    let mut draw = Stream::keyed(1, number, "ports");
    let ips = [draw.bits() as u32, draw.bits() as u32];
    let mut at = |ip: u32| SocketAddr::from((ip.to_be_bytes(), 1024 + (draw.bits() % 64_000) as u16));
    (ips, [at(ips[0]), at(ips[1])])
}

fn reversed((ips, ports): Tuple) -> Tuple {
    ([ips[1], ips[0]], [ports[1], ports[0]])
}

/// Returns the maximum number of labels on one link in any draw, and the share of the draws in which one link has all; `of`
/// gives the ports of a label.
fn worst(
    hash: Hash,
    (labels, links): (u32, u32),
    back: bool,
    of: impl Fn([SocketAddr; 2], u32) -> [u16; 2],
) -> (u32, f64) {
    let (mut worst, mut all) = (0, 0);
    for number in 0..DRAWS {
        let (ips, ends) = drawn(number);
        let tuple = |label| (ips, of(ends, label));
        let tuples = (0..labels).map(|label| if back { reversed(tuple(label)) } else { tuple(label) });
        let mut counts = [0; 8];
        tuples.for_each(|tuple| counts[(hash(tuple) % links) as usize] += 1);
        let most = counts.into_iter().max().unwrap_or(0);
        worst = most.max(worst);
        all += u32::from(most == labels);
    }
    (worst, f64::from(all) / DRAWS as f64)
}

const CASES: [(u32, u32); 4] = [(8, 2), (64, 2), (64, 4), (64, 8)];

#[test]
fn labels_use_all_links_in_both_directions() {
    let of = |[here, there]: [SocketAddr; 2], label| [here.port(), address(&[there], label).unwrap().port()];
    for model in &MODELS {
        for case @ (labels, links) in CASES {
            for back in [false, true] {
                let bound = model.bound(labels, links, back);
                let (worst, all) = worst(model.hash, case, back, of);
                assert!(worst <= bound, "{}: {worst} of {labels} labels on one of {links} links, {bound}", model.name);
                // Of eight labels over two links a hash of independent bits has all on one with 2/256.
                let is_bound = bound < labels;
                assert!(!is_bound && model.bits != [0; 2] || all <= 1.0 / 128.0, "{}: {all}", model.name);
            }
        }
    }
}

/// Queue pairs vary the source port alone, in both directions.
#[test]
fn queue_pairs_use_all_links() {
    let pairs = port_pairs(1..=64);
    let of = |_: [SocketAddr; 2], label: u32| <[u16; 2]>::from(pairs[label as usize]);
    for model in &MODELS {
        for case @ (labels, links) in CASES {
            let (worst, _) = worst(model.hash, case, false, of);
            assert!(worst <= model.bound(labels, links, true), "{}: {worst} of {labels} labels", model.name);
        }
    }
}

/// With both ports varied, the exclusive or of a pair does not depend on the label where the ports have equal lowest bits, and
/// their sum has one parity.
#[test]
fn varying_both_ports_would_leave_links_unused() {
    let of = |ends: [SocketAddr; 2], label| ends.map(|end| address(&[end], label).unwrap().port());
    let all = |hash, labels| worst(hash, (labels, 2), false, of).1;
    assert_eq!((all(xor, 64), all(sum, 64)), (1.0, 1.0));
    assert!(all(layer34, 8) > 0.4 && all(layer34, 64) > 0.05, "{} {}", all(layer34, 8), all(layer34, 64));
}

#[test]
fn ports_in_a_row_have_all_remainders() {
    for Model { hash, bits, .. } in &MODELS[3..] {
        for (number, back) in (0..200).flat_map(|number| [(number, false), (number, true)]) {
            let (ips, [here, there]) = drawn(number);
            let row = 1 << bits[usize::from(back)];
            let tuple = |low| (ips, [here.port(), there.port() & !(row - 1) | low]);
            let mut counts = [0; 8];
            for of in (0..row).map(tuple) {
                counts[(hash(if back { reversed(of) } else { of }) % 8) as usize] += 1;
            }
            assert_eq!(counts, [row / 8; 8]);
        }
    }
}
