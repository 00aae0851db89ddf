//! The reference of `anabranch bench`: the cost of moving packets through a graph and nothing else.
//!
//! A permutation, a random shortest path per packet, a fixed window, ACKs; the departure from a FIFO port is computed
//! when the packet arrives, so a packet-hop is one event.

mod case;
mod graph;
mod result;
mod wheel;

pub use case::StrippedCase;
pub use graph::{Delays, GraphKind};
pub use result::StrippedResult;

use graph::{Dragonfly, FatTree, LeafSpine, Packet, Routing};
use std::time::Instant;
use wheel::{Event, Wheel};

const MARK_ABOVE_PS: u64 = 2_000_000;

struct Loop<'c, W> {
    case: &'c StrippedCase,
    routing: W,
    free_at: Vec<u64>,
    packets: Vec<Packet>,
    unused: Vec<u32>,
    sent: Vec<u64>,
    received: Vec<u64>,
    packets_per_flow: u64,
    wheel: Wheel,
    random: u64,
}

impl<W: Routing> Loop<'_, W> {
    #[inline]
    fn transmit(&mut self, port: usize, delay: u64, now: u64, id: u32) {
        let packet = &mut self.packets[id as usize];
        let free_at = &mut self.free_at[port];
        let start = (*free_at).max(now);
        packet.marked |= start - now > MARK_ABOVE_PS;
        packet.hop += 1;
        *free_at = start + u64::from(packet.size) * self.case.ps_per_byte;
        self.wheel.push(Event { at: *free_at + delay, packet: id });
    }

    #[inline]
    fn choice(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % self.routing.choices()
    }

    #[inline]
    fn send(&mut self, host: usize, now: u64) {
        let id = self.unused.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() as u32 - 1
        });
        let choice = self.choice();
        let via = self.routing.start(host, choice);
        let (flow, from, to) = (host as u32, host as u16, self.case.to[host] as u16);
        self.packets[id as usize] =
            Packet { sent_at: now, flow, from, to, via, size: self.case.data, ..Packet::default() };
        self.sent[host] += 1;
        self.transmit(host, self.case.delays.up, now, id);
    }

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
        let choice = self.choice();
        let ack = &mut self.packets[id as usize];
        (ack.from, ack.to) = (packet.to, packet.from);
        ack.via = self.routing.start(packet.to as usize, choice);
        (ack.acknowledges, ack.size, ack.hop) = (acknowledges as u16, self.case.ack, 0);
        self.transmit(packet.to as usize, self.case.delays.up, now, id);
    }

    fn run(&mut self) -> StrippedResult {
        let mut tally = StrippedResult::default();
        let started = Instant::now();
        for host in 0..self.routing.hosts() {
            for _ in 0..self.case.window.min(self.packets_per_flow) {
                self.send(host, 0);
            }
        }
        while let Some(Event { at: now, packet: id }) = self.wheel.pop() {
            tally.packet_hops += 1;
            if let Some((port, delay)) = self.routing.next(&mut self.packets[id as usize]) {
                self.transmit(port, delay, now, id);
                continue;
            }
            let packet = self.packets[id as usize];
            if packet.acknowledges == 0 {
                tally.delivered += 1;
                tally.marked += u64::from(packet.marked);
                self.receive(now, id);
                continue;
            }
            self.unused.push(id);
            tally.end_ps = now;
            tally.longest_rtt_ps = tally.longest_rtt_ps.max(now - packet.sent_at);
            let flow = packet.flow as usize;
            for _ in 0..u64::from(packet.acknowledges).min(self.packets_per_flow - self.sent[flow]) {
                self.send(flow, now);
            }
        }
        tally.wall_seconds = started.elapsed().as_secs_f64();
        tally
    }
}

/// Runs `case`.
///
/// # Panics
/// If the case has no host, more than 65,536, no receiver for each or no packet per ACK.
pub fn run(case: &StrippedCase) -> StrippedResult {
    let delays = case.delays;
    match case.graph {
        GraphKind::LeafSpine { leaves, hosts_per_leaf, spines } => {
            run_on(case, LeafSpine { leaves, hosts_per_leaf, spines, delays })
        }
        GraphKind::FatTree { half } => run_on(case, FatTree { half, delays }),
        GraphKind::Dragonfly { p, a, h } => run_on(case, Dragonfly { p, a, h, delays }),
    }
}

fn run_on<W: Routing>(case: &StrippedCase, routing: W) -> StrippedResult {
    let hosts = routing.hosts();
    assert!((1..=1 << 16).contains(&hosts) && case.to.len() == hosts && case.packets_per_ack > 0, "{case:?}");
    let mut state = Loop {
        case,
        free_at: vec![0; routing.ports()],
        packets: Vec::new(),
        unused: Vec::new(),
        sent: vec![0; hosts],
        received: vec![0; hosts],
        packets_per_flow: case.bytes_per_flow.div_ceil(case.payload),
        wheel: Wheel::new(case.bucket_bits),
        random: 0x9E37_79B9_7F4A_7C15,
        routing,
    };
    state.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u64 = 4096;

    /// 16 hosts, 1 us links at 400 Gb/s, 40 packets each to another leaf.
    fn small(graph: GraphKind) -> StrippedCase {
        let hosts = graph.hosts();
        StrippedCase {
            graph,
            delays: Delays { up: 1_000_000, down: 1_000_000, near: 1_000_000, far: 1_000_000 },
            to: (0..hosts).map(|host| ((host + hosts / 2) % hosts) as u32).collect(),
            bytes_per_flow: 40 * PAYLOAD,
            payload: PAYLOAD,
            data: 4160,
            ack: 64,
            ps_per_byte: 20,
            window: 150,
            packets_per_ack: 4,
            bucket_bits: 14,
        }
    }

    const TREE: GraphKind = GraphKind::LeafSpine { leaves: 4, hosts_per_leaf: 4, spines: 4 };

    #[test]
    fn every_packet_makes_its_hops() {
        // 16 flows of 40 packets over 4 hops, one ACK per 4 packets over 4 hops: 16 * 4 * (40 + 10).
        let tally = run(&small(TREE));
        assert_eq!((tally.packet_hops, tally.delivered), (3200, 640));
        // 42 packets: the last ACK covers two.
        let tally = run(&StrippedCase { bytes_per_flow: 42 * PAYLOAD, ..small(TREE) });
        assert_eq!(tally.packet_hops, 16 * 4 * (42 + 11));
        // 16 hosts in 4 pods, receivers two pods away: 6 hops.
        let tally = run(&small(GraphKind::FatTree { half: 2 }));
        assert_eq!((tally.packet_hops, tally.delivered), (16 * 6 * (40 + 10), 640));
        // The next leaf of the same pod: 4 hops.
        let next = (0..16u32).map(|host| host / 4 * 4 + (host + 2) % 4).collect();
        assert_eq!(
            run(&StrippedCase { to: next, ..small(GraphKind::FatTree { half: 2 }) }).packet_hops,
            16 * 4 * (40 + 10)
        );
    }

    #[test]
    fn one_packet_matches_closed_form() {
        // Out: 4 hops of 4160 B at 20 ps per byte and 1 us; back: 4 hops of 64 B and 1 us. One packet per flow; with one
        // host per leaf no two flows share a link.
        let graph = GraphKind::LeafSpine { leaves: 4, hosts_per_leaf: 1, spines: 1 };
        let case = StrippedCase { bytes_per_flow: 1, packets_per_ack: 1, ..small(graph) };
        assert_eq!(run(&case).end_ps, 8 * 1_000_000 + 4 * (4160 + 64) * 20);
    }

    #[test]
    fn dragonfly_paths_have_up_to_three_switch_hops() {
        // Groups of 2 switches with a host and a global link each: 3 groups, 6 hosts. Port k of group g leads to group
        // g + k + 1: from switch 0 to the next group's switch 1, from switch 1 to the last group's switch 0.
        let graph = GraphKind::Dragonfly { p: 1, a: 2, h: 1 };
        let hops = |from: usize, to: u32| {
            let mut case = StrippedCase { bytes_per_flow: 1, packets_per_ack: 1, ..small(graph) };
            // All other hosts send to their neighbour, over one local link.
            case.to = (0..6).map(|host| host ^ 1).collect();
            case.to[from] = to;
            run(&case).packet_hops - 5 * 2 * 3
        };
        // Out and back: host 0 to 3 over one global link; to 2 with a local one after it; host 1 to 2 with one on each side.
        assert_eq!((hops(0, 3), hops(0, 2), hops(1, 2)), (2 * 3, 2 * 4, 2 * 5));
    }

    #[test]
    fn the_width_of_the_buckets_does_not_show() {
        // Narrow buckets put most events beyond the ring's horizon.
        let times: Vec<_> =
            [8, 14, 20].map(|bucket_bits| run(&StrippedCase { bucket_bits, ..small(TREE) }).end_ps).into();
        assert!(times.iter().all(|t| *t == times[0]), "{times:?}");
    }
}
