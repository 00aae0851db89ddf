//! The leaner loop: as [`super::run`] with everything fixed that can be. Two tiers with as many spines as hosts per leaf, 400
//! Gb/s, 500 ns, full packets, one ACK per packet on the reverse path. docs/evidence/performance.md compares the two.

use super::result::StrippedResult;
use std::time::Instant;

const PS_PER_BYTE: u64 = 20;
const LINK_DELAY: u64 = 500_000;
const MARK_ABOVE: u64 = 2_000_000;
const PAYLOAD: u64 = 4096;
const DATA: u16 = 4160;
const ACK: u16 = 64;
/// Buckets of 16 ns, 8,192 of them: no event is further ahead than a turn of the ring, the longest queue included.
const BUCKET_BITS: u32 = 14;
const RING: usize = 1 << 13;

#[derive(Clone, Copy)]
struct Event {
    at: u64,
    packet: u32,
}

#[derive(Clone, Copy, Default)]
struct Packet {
    sent_at: u64,
    flow: u32,
    from: u16,
    to: u16,
    spine: u16,
    size: u16,
    is_ack: bool,
    marked: bool,
    hop: u8,
}

/// A ring of buckets, sorted when the clock reaches them.
struct Ring {
    buckets: Vec<Vec<Event>>,
    current: u64,
    next: usize,
    pending: usize,
}

impl Ring {
    #[inline]
    fn push(&mut self, event: Event) {
        let bucket = event.at >> BUCKET_BITS;
        self.pending += 1;
        let slot = &mut self.buckets[bucket as usize & (RING - 1)];
        slot.push(event);
        if bucket == self.current {
            let mut hole = slot.len() - 1;
            while hole > self.next && (slot[hole - 1].at, slot[hole - 1].packet) > (event.at, event.packet) {
                slot[hole] = slot[hole - 1];
                hole -= 1;
            }
            slot[hole] = event;
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Event> {
        if self.pending == 0 {
            return None;
        }
        loop {
            let slot = &mut self.buckets[self.current as usize & (RING - 1)];
            if let Some(&event) = slot.get(self.next) {
                self.next += 1;
                self.pending -= 1;
                return Some(event);
            }
            slot.clear();
            self.next = 0;
            self.current += 1;
            self.buckets[self.current as usize & (RING - 1)].sort_unstable_by_key(|e| (e.at, e.packet));
        }
    }
}

struct Loop {
    hosts: usize,
    per_leaf: usize,
    stride: usize,
    free_at: Vec<u64>,
    packets: Vec<Packet>,
    unused: Vec<u32>,
    sent: Vec<u64>,
    ring: Ring,
    random: u64,
}

impl Loop {
    #[inline(always)]
    fn transmit(&mut self, port: usize, now: u64, id: u32) {
        let packet = &mut self.packets[id as usize];
        let free_at = &mut self.free_at[port];
        let start = (*free_at).max(now);
        packet.marked |= start - now > MARK_ABOVE;
        packet.hop += 1;
        *free_at = start + u64::from(packet.size) * PS_PER_BYTE;
        self.ring.push(Event { at: *free_at + LINK_DELAY, packet: id });
    }

    #[inline(always)]
    fn send(&mut self, host: usize, now: u64) {
        let id = self.unused.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() as u32 - 1
        });
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.packets[id as usize] = Packet {
            sent_at: now,
            flow: host as u32,
            from: host as u16,
            to: ((host + self.stride) % self.hosts) as u16,
            spine: (self.random % self.per_leaf as u64) as u16,
            size: DATA,
            ..Packet::default()
        };
        self.sent[host] += 1;
        self.transmit(host, now, id);
    }
}

/// Flows of `bytes` from every host of a tree with `leaves` leaves, and hosts at each.
///
/// # Panics
/// With more than 65,536 hosts.
pub fn run_lean(leaves: usize, per_leaf: usize, bytes: u64) -> StrippedResult {
    let hosts = leaves * per_leaf;
    assert!((1..=1 << 16).contains(&hosts), "{hosts} hosts");
    let packets_per_flow = bytes.div_ceil(PAYLOAD);
    let wire = u64::from(DATA) * PS_PER_BYTE;
    let window = ((8 * LINK_DELAY + 8 * wire) * 3 / 2 / wire).min(packets_per_flow);
    // Ports of hosts, of leaves down and up, of spines.
    let (down, up) = (hosts, 2 * hosts);
    let spine_down = up + leaves * per_leaf;
    let mut l = Loop {
        hosts,
        per_leaf,
        stride: per_leaf * (leaves / 2).max(1) + 3,
        free_at: vec![0; spine_down + leaves * per_leaf],
        packets: Vec::new(),
        unused: Vec::new(),
        sent: vec![0; hosts],
        ring: Ring { buckets: (0..RING).map(|_| Vec::with_capacity(64)).collect(), current: 0, next: 0, pending: 0 },
        random: 0x9E37_79B9_7F4A_7C15,
    };
    let mut tally = StrippedResult::default();
    let started = Instant::now();
    for host in 0..hosts {
        (0..window).for_each(|_| l.send(host, 0));
    }
    while let Some(Event { at: now, packet: id }) = l.ring.pop() {
        tally.packet_hops += 1;
        let packet = l.packets[id as usize];
        let (from, to, spine) = (usize::from(packet.from), usize::from(packet.to), usize::from(packet.spine));
        match packet.hop {
            1 => l.transmit(up + from / per_leaf * per_leaf + spine, now, id),
            2 => l.transmit(spine_down + spine * leaves + to / per_leaf, now, id),
            3 => l.transmit(down + to, now, id),
            _ if packet.is_ack => {
                l.unused.push(id);
                tally.end_ps = now;
                tally.longest_rtt_ps = tally.longest_rtt_ps.max(now - packet.sent_at);
                let flow = packet.flow as usize;
                if l.sent[flow] < packets_per_flow {
                    l.send(flow, now);
                }
            }
            _ => {
                tally.delivered += 1;
                tally.marked += u64::from(packet.marked);
                let ack = &mut l.packets[id as usize];
                (ack.from, ack.to) = (packet.to, packet.from);
                (ack.is_ack, ack.size, ack.hop) = (true, ACK, 0);
                l.transmit(to, now, id);
            }
        }
    }
    tally.wall_seconds = started.elapsed().as_secs_f64();
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_and_its_acknowledgement_make_four_hops() {
        // 16 hosts, 40 packets each, out and back: 16 * 40 * 8.
        let tally = run_lean(4, 4, 40 * PAYLOAD);
        assert_eq!((tally.packet_hops, tally.delivered), (16 * 40 * 8, 16 * 40));
        // One packet from each of four hosts at four leaves to the next: 4 hops out, 4 back, on links of its own.
        let wire = u64::from(DATA + ACK) * PS_PER_BYTE;
        let tally = run_lean(4, 1, 1);
        assert_eq!((tally.packet_hops, tally.end_ps), (4 * 8, 8 * LINK_DELAY + 4 * wire));
    }
}
