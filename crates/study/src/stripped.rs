//! The yardstick of `anabranch bench`: what moving packets through a two-tier fat tree costs when nothing else is done.
//!
//! A fixed permutation, a random spine per packet, a fixed window of 1.5 BDP, acknowledgements, one event per
//! packet-hop: a FIFO port's departure is computed when the packet arrives. Events lie in a ring of time buckets that
//! are sorted when the clock reaches them. No congestion control, no scheme, no statistics.

use std::time::Instant;

/// The case that the loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Leaf switches.
    pub leaves: usize,
    /// Hosts per leaf, and as many spines.
    pub hosts_per_leaf: usize,
    /// Payload of each host's flow.
    pub bytes_per_flow: u64,
    /// Delay of every link in picoseconds.
    pub link_delay_ps: u64,
    /// Data packets per acknowledgement.
    pub packets_per_ack: u64,
    /// Bucket width: 2 to this power picoseconds.
    pub bucket_bits: u32,
}

/// What it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    /// Packets that left a port.
    pub packet_hops: u64,
    /// Data packets that reached their host.
    pub delivered: u64,
    /// Packets above the marking threshold.
    pub marked: u64,
    /// Simulated time of the last arrival, in picoseconds.
    pub end_ps: u64,
    /// Longest time from a packet's sending to its acknowledgement, in picoseconds.
    pub longest_rtt_ps: u64,
    /// Wall time of the loop.
    pub wall_seconds: f64,
}

const PAYLOAD: u64 = 4096;
const DATA: u16 = 4160;
const ACK: u16 = 64;
/// 400 Gb/s.
const PS_PER_BYTE: u64 = 20;
const MARK_ABOVE_PS: u64 = 2_000_000;
const RING_BITS: u32 = 13;

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
    /// Packets it acknowledges; zero for data.
    acknowledges: u16,
    hop: u8,
    marked: bool,
}

/// A ring of time buckets; what lies beyond its horizon waits aside.
struct Wheel {
    ring: Vec<Vec<Event>>,
    beyond: Vec<Event>,
    bits: u32,
    current: u64,
    next: usize,
    pending: usize,
}

impl Wheel {
    fn new(bits: u32) -> Self {
        let ring = (0..1usize << RING_BITS).map(|_| Vec::with_capacity(64)).collect();
        Wheel { ring, beyond: Vec::new(), bits, current: 0, next: 0, pending: 0 }
    }

    #[inline]
    fn push(&mut self, event: Event) {
        let bucket = event.at >> self.bits;
        self.pending += 1;
        if bucket - self.current >= 1 << RING_BITS {
            self.beyond.push(event);
            return;
        }
        let slot = &mut self.ring[bucket as usize & ((1 << RING_BITS) - 1)];
        slot.push(event);
        if bucket == self.current {
            let key = (event.at, event.packet);
            let mut hole = slot.len() - 1;
            while hole > self.next && (slot[hole - 1].at, slot[hole - 1].packet) > key {
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
        let mask = (1usize << RING_BITS) - 1;
        loop {
            let slot = &mut self.ring[self.current as usize & mask];
            if let Some(&event) = slot.get(self.next) {
                self.next += 1;
                self.pending -= 1;
                return Some(event);
            }
            slot.clear();
            self.next = 0;
            self.current += 1;
            // Twice per turn of the ring is early enough: what waits aside is a whole turn away.
            if !self.beyond.is_empty() && self.current.is_multiple_of(1 << (RING_BITS - 1)) {
                let (current, bits) = (self.current, self.bits);
                let near = |e: &mut Event| (e.at >> bits) - current < 1 << RING_BITS;
                for event in self.beyond.extract_if(.., near) {
                    self.ring[(event.at >> bits) as usize & mask].push(event);
                }
            }
            self.ring[self.current as usize & mask].sort_unstable_by_key(|e| (e.at, e.packet));
        }
    }
}

struct Loop {
    case: Case,
    free_at: Vec<u64>,
    packets: Vec<Packet>,
    unused: Vec<u32>,
    sent: Vec<u64>,
    received: Vec<u64>,
    packets_per_flow: u64,
    wheel: Wheel,
    random: u64,
}

impl Loop {
    fn hosts(&self) -> usize {
        self.case.leaves * self.case.hosts_per_leaf
    }

    #[inline]
    fn transmit(&mut self, port: usize, now: u64, id: u32) {
        let packet = &mut self.packets[id as usize];
        let free_at = &mut self.free_at[port];
        let start = (*free_at).max(now);
        packet.marked |= start - now > MARK_ABOVE_PS;
        packet.hop += 1;
        *free_at = start + u64::from(packet.size) * PS_PER_BYTE;
        self.wheel.push(Event { at: *free_at + self.case.link_delay_ps, packet: id });
    }

    #[inline]
    fn spine(&mut self) -> u16 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % self.case.hosts_per_leaf as u64) as u16
    }

    #[inline]
    fn send(&mut self, host: usize, now: u64) {
        let id = self.unused.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() as u32 - 1
        });
        let case = &self.case;
        let stride = case.hosts_per_leaf * (case.leaves / 2).max(1) + 3;
        let to = ((host + stride) % self.hosts()) as u16;
        let spine = self.spine();
        let (flow, from) = (host as u32, host as u16);
        self.packets[id as usize] = Packet { sent_at: now, flow, from, to, spine, size: DATA, ..Packet::default() };
        self.sent[host] += 1;
        self.transmit(host, now, id);
    }

    /// A data packet reached its host: answers with an acknowledgement where one is due.
    #[inline]
    fn receive(&mut self, now: u64, id: u32) {
        let packet = self.packets[id as usize];
        let received = &mut self.received[packet.flow as usize];
        *received += 1;
        let every = self.case.packets_per_ack;
        let over = *received % every;
        let acknowledges = match over {
            0 => every,
            over if *received == self.packets_per_flow => over,
            _ => return self.unused.push(id),
        };
        let ack = &mut self.packets[id as usize];
        (ack.from, ack.to) = (packet.to, packet.from);
        (ack.acknowledges, ack.size, ack.hop) = (acknowledges as u16, ACK, 0);
        self.transmit(packet.to as usize, now, id);
    }
}

/// Runs `case`.
///
/// # Panics
/// Where the case has no leaf, no host, more than 65,536 hosts or no packet per acknowledgement.
pub fn run(case: Case) -> Tally {
    let hosts = case.leaves * case.hosts_per_leaf;
    assert!(hosts > 0 && hosts <= 1 << 16 && case.packets_per_ack > 0, "{case:?}");
    let packets_per_flow = case.bytes_per_flow.div_ceil(PAYLOAD);
    let base_rtt = 8 * case.link_delay_ps + 4 * u64::from(DATA + ACK) * PS_PER_BYTE;
    let window = (base_rtt * 3 / 2).div_ceil(u64::from(DATA) * PS_PER_BYTE).clamp(case.packets_per_ack, u64::MAX);
    // Ports: host up, leaf down, leaf up, spine down.
    let (per_leaf, spines) = (case.hosts_per_leaf, case.hosts_per_leaf);
    let (leaf_down, leaf_up) = (hosts, 2 * hosts);
    let spine_down = leaf_up + case.leaves * spines;
    let mut state = Loop {
        case,
        free_at: vec![0; spine_down + case.leaves * spines],
        packets: Vec::new(),
        unused: Vec::new(),
        sent: vec![0; hosts],
        received: vec![0; hosts],
        packets_per_flow,
        wheel: Wheel::new(case.bucket_bits),
        random: 0x9E37_79B9_7F4A_7C15,
    };
    let mut tally = Tally { packet_hops: 0, delivered: 0, marked: 0, end_ps: 0, longest_rtt_ps: 0, wall_seconds: 0.0 };
    let started = Instant::now();
    for host in 0..hosts {
        for _ in 0..window.min(packets_per_flow) {
            state.send(host, 0);
        }
    }
    while let Some(Event { at: now, packet: id }) = state.wheel.pop() {
        tally.packet_hops += 1;
        let packet = state.packets[id as usize];
        let (from, to, spine) = (packet.from as usize, packet.to as usize, packet.spine as usize);
        match packet.hop {
            1 => state.transmit(leaf_up + from / per_leaf * spines + spine, now, id),
            2 => state.transmit(spine_down + spine * case.leaves + to / per_leaf, now, id),
            3 => state.transmit(leaf_down + to, now, id),
            _ if packet.acknowledges == 0 => {
                tally.delivered += 1;
                tally.marked += u64::from(packet.marked);
                state.receive(now, id);
            }
            _ => {
                state.unused.push(id);
                tally.end_ps = now;
                tally.longest_rtt_ps = tally.longest_rtt_ps.max(now - packet.sent_at);
                let flow = packet.flow as usize;
                for _ in 0..u64::from(packet.acknowledges).min(packets_per_flow - state.sent[flow]) {
                    state.send(flow, now);
                }
            }
        }
    }
    tally.wall_seconds = started.elapsed().as_secs_f64();
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Case = Case {
        leaves: 4,
        hosts_per_leaf: 4,
        bytes_per_flow: 40 * PAYLOAD,
        link_delay_ps: 1_000_000,
        packets_per_ack: 4,
        bucket_bits: 14,
    };

    #[test]
    fn every_packet_makes_its_hops() {
        // 16 flows of 40 packets over 4 hops, one ACK per 4 packets over 4 hops: 16 * 4 * (40 + 10).
        let tally = run(SMALL);
        assert_eq!((tally.packet_hops, tally.delivered), (3200, 640));
        // 42 packets: the last ACK covers two.
        let tally = run(Case { bytes_per_flow: 42 * PAYLOAD, ..SMALL });
        assert_eq!(tally.packet_hops, 16 * 4 * (42 + 11));
    }

    #[test]
    fn one_packet_takes_its_closed_form() {
        // Out: 4 hops of 4160 B at 20 ps per byte and 1 us; back: 4 hops of 64 B and 1 us. One packet per flow, and
        // with one host per leaf no two flows share a link, but all share the only spine, each on links of its own.
        let case = Case { hosts_per_leaf: 1, bytes_per_flow: 1, packets_per_ack: 1, ..SMALL };
        assert_eq!(run(case).end_ps, 8 * 1_000_000 + 4 * (4160 + 64) * 20);
    }

    #[test]
    fn the_width_of_the_buckets_does_not_show() {
        // Narrow buckets put most events beyond the ring's horizon.
        let times: Vec<_> = [8, 14, 20].map(|bucket_bits| run(Case { bucket_bits, ..SMALL }).end_ps).into();
        assert!(times.iter().all(|t| *t == times[0]), "{times:?}");
    }
}
