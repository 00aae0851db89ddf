//! Path, window and pacing are evaluated when a transmission starts.

use crate::Flow;
use anabranch_lb::{Decision, HostScheme, Outgoing, Tag};
use anabranch_transport::{Segment, Transport};
use anabranch_units::Time;
use slab::Slab;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub segment: Segment,
    pub tag: Tag,
    /// The sender requests an immediate ACK.
    pub ack_request: bool,
    /// Time since the flow's previous packet; `None` for the first.
    pub gap: Option<Time>,
    /// Earliest time at which pacing and the scheme let it leave; the packet waited for the line from then on.
    pub ready_at: Time,
}

/// Egress of packets: a port of the simulator, or a pacer in front of a socket.
pub trait Egress<T> {
    /// Scheme that chooses paths.
    type Scheme: HostScheme;

    fn scheme(&mut self, flow: &T) -> &mut Self::Scheme;

    /// Selects the path of a flow's next packet; `slot` is the flow's slot with its scheme. By default the scheme decides.
    #[inline]
    fn choose(&mut self, flow: &mut T, slot: u32, start: Time, packet: &Outgoing) -> Decision {
        self.scheme(flow).select(start, slot, packet)
    }

    /// Returns the classes whose flows must not send, one bit each.
    #[inline]
    fn paused(&self) -> u8 {
        0
    }

    /// Returns the ports that have space for a packet, one bit each.
    #[inline]
    fn free_ports(&self) -> u32 {
        u32::MAX
    }

    /// Returns the earliest time at which another port has space.
    #[inline]
    fn port_free_at(&self) -> Time {
        Time::ZERO
    }

    /// Returns the number of open flows that share the line, where packets request credit; 0: they do not.
    #[inline]
    fn sharing_credit(&self) -> u32 {
        0
    }

    /// Notes the credit that the next packet requests, in bytes since the start of its flow.
    fn request_credit(&mut self, _bytes: u64) {}

    /// Returns the tag that a packet carries if the scheme has chosen `tag`.
    #[inline]
    fn tag(&self, _flow: &T, tag: Tag) -> Tag {
        tag
    }

    /// Starts a packet of a flow at `start`; returns the earliest start of the next one.
    fn start(&mut self, flow: &mut T, packet: &Departure, start: Time) -> Time;

    /// Notifies the line that the scheme of the flow in `slot` sends nothing before the next ACK.
    #[inline]
    fn on_blocked(&mut self, _slot: u32) {}

    /// Returns `true` if packets wait that precede the flows.
    fn has_urgent(&self) -> bool;
}

/// Transport of each flow: one for all, or one per peer.
pub trait Transports<T> {
    fn of<'a>(&'a self, flow: &'a T) -> &'a Transport;
}

impl<T> Transports<T> for Transport {
    #[inline]
    fn of<'a>(&'a self, _flow: &'a T) -> &'a Transport {
        self
    }
}

/// Arbitration among a host's flows, named by their index in the caller's slab.
#[derive(Debug)]
pub struct Nic {
    /// Per class, flows with something to send and an open window, served round-robin by packet.
    rounds: Vec<VecDeque<u32>>,
    /// Classes whose round has flows, one bit each.
    ready: u8,
    /// Bytes per class and turn; empty: the first class that may send goes first.
    quanta: Vec<i32>,
    /// Bytes that each class may still send in its turn.
    deficits: Vec<i32>,
    /// Class whose turn it is.
    turn: usize,
    /// Bytes of a packet beside its payload.
    overhead: i32,
    /// Time, number and slot of flows that may send later (pacing, or a hold of their scheme).
    paced: BinaryHeap<Reverse<(Time, u32, u32)>>,
}

impl Default for Nic {
    fn default() -> Self {
        Nic::new(1, &[], 0)
    }
}

impl Nic {
    /// Creates a NIC for flows of `classes` classes, whose packets have `overhead` bytes beside their payload: by weighted
    /// round robin with these bytes per class and turn, a full packet or more, or by strict priority if there are none.
    pub fn new(classes: usize, quanta: &[i32], overhead: u16) -> Self {
        Nic {
            rounds: vec![VecDeque::new(); classes],
            ready: 0,
            quanta: quanta.to_vec(),
            deficits: vec![0; quanta.len()],
            turn: 0,
            overhead: i32::from(overhead),
            paced: BinaryHeap::new(),
        }
    }

    /// Returns the class to serve, among some that have flows (one bit each).
    #[inline]
    fn next_class(&mut self, ready: u8) -> usize {
        if self.quanta.is_empty() { ready.trailing_zeros() as usize } else { self.next_turn(ready) }
    }

    /// Surplus round robin: a class pays for a packet once its size is known, and saves nothing.
    #[inline(never)]
    fn next_turn(&mut self, ready: u8) -> usize {
        while ready >> self.turn & 1 == 0 || self.deficits[self.turn] <= 0 {
            self.deficits[self.turn] = self.deficits[self.turn].min(0);
            self.turn = (self.turn + 1) % self.rounds.len();
            if ready >> self.turn & 1 == 1 {
                self.deficits[self.turn] += self.quanta[self.turn];
            }
        }
        self.turn
    }

    #[inline]
    fn push<T>(&mut self, slot: u32, flow: &mut Flow<T>) {
        flow.in_round = true;
        self.ready |= 1 << flow.class;
        self.rounds[usize::from(flow.class)].push_back(slot);
    }

    #[inline]
    fn pace<T>(&mut self, slot: u32, flow: &mut Flow<T>, time: Time) {
        flow.paced = true;
        self.paced.push(Reverse((time, flow.number, slot)));
    }

    /// Returns the earliest time at which a paced flow may send.
    #[inline]
    pub fn paced_until(&self) -> Option<Time> {
        self.paced.peek().map(|Reverse((time, ..))| *time)
    }

    /// Returns the classes of flows that may send now, one bit each.
    #[inline]
    pub fn ready(&self) -> u8 {
        self.ready
    }

    /// Adds the flow in `slot` to the round or to the paced flows, if it may send. Returns `true` if it was in neither.
    #[inline]
    pub fn enter<T>(&mut self, slot: u32, flow: &mut Flow<T>, transport: &Transport, now: Time) -> bool {
        if flow.in_round || flow.paced || flow.waits || !flow.sender.ready(transport) {
            return false;
        }
        let next_avail = flow.sender.next_avail();
        flow.eligible_at = next_avail.max(now);
        if next_avail <= now {
            self.push(slot, flow);
        } else {
            self.pace(slot, flow, next_avail);
        }
        true
    }

    pub fn leave<T>(&mut self, slot: u32, flow: &Flow<T>) {
        if flow.in_round {
            let round = &mut self.rounds[usize::from(flow.class)];
            round.retain(|other| *other != slot);
            self.ready &= !(u8::from(round.is_empty()) << flow.class);
        }
    }

    /// Moves the paced flows that are due to the round.
    #[inline]
    pub fn promote<T>(&mut self, flows: &mut Slab<Flow<T>>, transports: &impl Transports<T>, now: Time) {
        while let Some(&Reverse((time, number, slot))) = self.paced.peek()
            && time <= now
        {
            self.paced.pop();
            // The slot of a removed flow may be in use by another.
            let Some(flow) = flows.get_mut(slot as usize).filter(|flow| flow.number == number) else { continue };
            flow.paced = false;
            if !flow.in_round && flow.sender.ready(transports.of(&flow.of)) {
                self.push(slot, flow);
            }
        }
    }

    /// Serves the line, free at `start`: the next flow, by class and in turn, sends a packet, and more while it is alone and
    /// they may start by `until`. Returns its slot; `None` if no flow may send.
    #[inline]
    pub fn serve<T, L: Egress<T>>(
        &mut self,
        flows: &mut Slab<Flow<T>>,
        transports: &impl Transports<T>,
        line: &mut L,
        start: Time,
        until: Time,
    ) -> Option<u32> {
        loop {
            let ready = self.ready & !line.paused();
            if ready == 0 {
                return None;
            }
            let class = self.next_class(ready);
            let round = &mut self.rounds[class];
            let slot = round.pop_front()?;
            self.ready &= !(u8::from(round.is_empty()) << class);
            if self.send(slot, &mut flows[slot as usize], transports, line, start, until) {
                return Some(slot);
            }
        }
    }

    /// Returns `false` if the flow may not send after all.
    fn send<T, L: Egress<T>>(
        &mut self,
        slot: u32,
        flow: &mut Flow<T>,
        transports: &impl Transports<T>,
        line: &mut L,
        mut start: Time,
        until: Time,
    ) -> bool {
        flow.in_round = false;
        if !flow.sender.ready(transports.of(&flow.of)) {
            return false;
        }
        let next_avail = flow.sender.next_avail();
        if next_avail > start {
            self.pace(slot, flow, next_avail);
            return false;
        }
        let mut sent = false;
        let is_done = loop {
            let Some(segment) = flow.sender.peek(transports.of(&flow.of)) else { break true };
            let outgoing = Outgoing {
                psn: segment.psn,
                bytes: segment.payload,
                retransmission: segment.retransmission,
                eligible_at: flow.eligible_at,
                free_ports: line.free_ports(),
                port_free_at: line.port_free_at(),
            };
            let (tag, requests_ack) = match line.choose(&mut flow.of, flow.scheme_slot, start, &outgoing) {
                Decision::Send(tag) => (line.tag(&flow.of, tag), false),
                Decision::SendWithAckRequest(tag) => (line.tag(&flow.of, tag), true),
                Decision::Hold(until) => {
                    flow.held_until = until.max(Time::from_ps(start.ps() + 1));
                    self.pace(slot, flow, flow.held_until);
                    break true;
                }
                Decision::Wait => {
                    flow.waits = true;
                    flow.sender.on_blocked();
                    line.on_blocked(slot);
                    break true;
                }
            };
            let transport = transports.of(&flow.of);
            flow.sender.send(transport, start, tag);
            if requests_ack {
                flow.sender.on_blocked();
            }
            let ready = flow.sender.ready(transport);
            if flow.last_tag != Some(tag) {
                flow.path_switches += u64::from(flow.last_tag.is_some());
                flow.last_tag = Some(tag);
            }
            let last = std::mem::replace(&mut flow.last_sent, start);
            let gap = (last != Time::MAX).then(|| start.saturating_sub(last));
            let ack_request = requests_ack || segment.retransmission || flow.sender.requests_ack(ready);
            let ready_at = flow.eligible_at.max(flow.held_until);
            let sharing = line.sharing_credit();
            if sharing > 0 {
                request_credit(line, flow, transport, sharing);
            }
            let free_at = line.start(&mut flow.of, &Departure { segment, tag, ack_request, gap, ready_at }, start);
            sent = true;
            let is_weighted = !self.quanta.is_empty();
            if is_weighted {
                self.deficits[usize::from(flow.class)] -= segment.payload as i32 + self.overhead;
            }
            if !ready {
                break true;
            }
            // A flow that may send by the time the line is free skips the heap.
            let next_avail = flow.sender.next_avail();
            flow.eligible_at = next_avail.max(start);
            if next_avail > free_at {
                self.pace(slot, flow, next_avail);
                break true;
            }
            // The turns of classes advance with every packet, alone or not.
            let is_alone = self.ready == 0 && self.paced.is_empty() && !is_weighted;
            if !is_alone || free_at > until || line.has_urgent() {
                break false;
            }
            start = free_at;
        };
        if !is_done {
            self.push(slot, flow);
            // Segmentation offload hands whole bursts to a NIC.
            if flow.sender.keeps_turn() {
                self.rounds[usize::from(flow.class)].rotate_right(1);
            }
        }
        sent
    }
}

#[cold]
#[inline(never)]
fn request_credit<T, L: Egress<T>>(line: &mut L, flow: &Flow<T>, transport: &Transport, sharing: u32) {
    line.request_credit(flow.sender.demand(transport, sharing));
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lb::{FlowInfo, HostScheme};
    use anabranch_transport::{Network, Reply, Sender, TransportParameters, uet::UetTransport};
    use anabranch_units::{BytesOrBdp, Rate};

    /// Holds the packet with PSN 1 for 3 ns, sends the others over the path of their number, and waits at PSN 3 for an ACK.
    #[derive(Default)]
    struct Scripted {
        acked: bool,
    }

    impl HostScheme for Scripted {
        fn open(&mut self, _: Time, _: u32, _: &FlowInfo<'_>) {}
        fn close(&mut self, _: u32) {}
        fn select(&mut self, now: Time, _: u32, packet: &Outgoing) -> Decision {
            match packet.psn {
                1 if now < packet.eligible_at + Time::from_ns(3) => {
                    Decision::Hold(packet.eligible_at + Time::from_ns(3))
                }
                3 if !self.acked => Decision::Wait,
                psn => Decision::Send(psn as u32),
            }
        }
        fn on_ack(&mut self, _: Time, _: u32, _: &anabranch_lb::Feedback) {
            self.acked = true;
        }
    }

    #[derive(Default)]
    struct TenNanoseconds<S> {
        scheme: S,
        sent: Vec<(u32, u64, u32, u64)>,
    }

    impl<S: HostScheme> Egress<u32> for TenNanoseconds<S> {
        type Scheme = S;
        fn scheme(&mut self, _: &u32) -> &mut S {
            &mut self.scheme
        }
        fn start(&mut self, flow: &mut u32, packet: &Departure, start: Time) -> Time {
            self.sent.push((*flow, packet.segment.psn, packet.tag, start.ps() / 1000));
            start + Time::from_ns(10)
        }
        fn has_urgent(&self) -> bool {
            false
        }
    }

    /// Holds every packet but the first for a microsecond, or until a probe has its reply.
    #[derive(Default)]
    struct Probing {
        is_answered: bool,
    }

    impl HostScheme for Probing {
        fn open(&mut self, _: Time, _: u32, _: &FlowInfo<'_>) {}
        fn close(&mut self, _: u32) {}
        fn select(&mut self, _: Time, _: u32, packet: &Outgoing) -> Decision {
            if packet.psn == 0 || self.is_answered { Decision::Send(0) } else { Decision::Hold(Time::from_us(1)) }
        }
        fn on_probe_reply(&mut self, _: Time, _: u32, _: Tag, rtt: Time, _: bool) -> bool {
            self.is_answered = rtt < Time::MAX;
            self.is_answered
        }
    }

    #[test]
    fn reply_to_a_probe_ends_a_hold() {
        let network =
            Network { base_rtt: Time::from_us(1), bdp: 50_000, nic_rate: Rate::gbps(100), ..Network::default() };
        let transport = Transport::new(&TransportParameters::Uet(UetTransport::default()), &network);
        let (mut nic, mut flows, mut line) = (Nic::default(), Slab::new(), TenNanoseconds::<Probing>::default());
        let sender = Sender::new(&transport, network.nic_rate, network.base_rtt, 3 * 4096, Time::ZERO);
        let slot = flows.insert(Flow::new(sender, 0, 0, Time::ZERO, 0u32));
        nic.enter(slot as u32, &mut flows[slot], &transport, Time::ZERO);
        nic.serve(&mut flows, &transport, &mut line, Time::ZERO, Time::ZERO);
        let now = Time::from_ns(10);
        assert_eq!(nic.serve(&mut flows, &transport, &mut line, now, now), None);
        assert_eq!((line.sent.len(), nic.paced_until()), (1, Some(Time::from_us(1))));
        // A lost probe changes nothing, a reply lets the flow go on.
        let now = Time::from_ns(20);
        assert!(!flows[slot].on_probe_reply(&mut line.scheme, now, 0, Time::MAX, false));
        nic.enter(slot as u32, &mut flows[slot], &transport, now);
        assert_eq!(nic.serve(&mut flows, &transport, &mut line, now, now), None);
        assert!(flows[slot].on_probe_reply(&mut line.scheme, now, 0, Time::from_ns(10), false));
        nic.enter(slot as u32, &mut flows[slot], &transport, now);
        assert_eq!(nic.serve(&mut flows, &transport, &mut line, now, now), Some(0));
        let now = Time::from_ns(30);
        nic.serve(&mut flows, &transport, &mut line, now, now);
        assert_eq!(line.sent, [(0, 0, 0, 0), (0, 1, 0, 20), (0, 2, 0, 30)]);
        // The end of the hold finds nothing left.
        nic.promote(&mut flows, &transport, Time::from_us(1));
        assert_eq!(nic.serve(&mut flows, &transport, &mut line, Time::from_us(1), Time::from_us(1)), None);
    }

    #[test]
    fn flows_are_served_round_robin_and_held_by_schemes() {
        let network =
            Network { base_rtt: Time::from_us(1), bdp: 50_000, nic_rate: Rate::gbps(100), ..Network::default() };
        let mut uet = UetTransport::default();
        uet.uet.window = anabranch_settings::Auto::Value(BytesOrBdp::Bytes(1 << 20));
        let transport = Transport::new(&TransportParameters::Uet(uet), &network);
        let (mut nic, mut flows, mut line) = (Nic::default(), Slab::new(), TenNanoseconds::<Scripted>::default());
        for name in [0u32, 1] {
            let size = if name == 0 { 5 * 4096 } else { 1 };
            let sender = Sender::new(&transport, network.nic_rate, network.base_rtt, size, Time::ZERO);
            let slot = flows.insert(Flow::new(sender, name, name, Time::ZERO, name));
            nic.enter(slot as u32, &mut flows[slot], &transport, Time::ZERO);
        }
        let mut now = Time::ZERO;
        let serve =
            |nic: &mut Nic, flows: &mut Slab<Flow<u32>>, line: &mut TenNanoseconds<Scripted>, now: &mut Time| {
                while *now < Time::from_ns(200) {
                    nic.promote(flows, &transport, *now);
                    let sent = nic.serve(flows, &transport, line, *now, *now);
                    match (sent, nic.paced_until()) {
                        (Some(_), _) => *now += Time::from_ns(10),
                        (None, Some(time)) => *now = time,
                        (None, None) => return,
                    }
                }
            };
        serve(&mut nic, &mut flows, &mut line, &mut now);
        // Packet 1 could leave from 0 ns on (no pacing), so its 3 ns are over at its turn, at 20 ns; packet 3 waits.
        assert_eq!(line.sent, [(0, 0, 0, 0), (1, 0, 0, 10), (0, 1, 1, 20), (0, 2, 2, 30)]);
        assert_eq!(nic.paced_until(), None);
        let flow = &mut flows[0];
        assert_eq!(flow.path_switches(), 2);
        let ack = Reply { psn: 0, tag: 0, cumulative: 1, ..Reply::default() };
        let outcome = flow.on_ack(&transport, &mut line.scheme, Time::from_ns(100), &ack, None, None, None);
        assert_eq!((outcome.packets, outcome.rtt), (1, Some(Time::from_ns(100))));
        nic.enter(0, flow, &transport, Time::from_ns(100));
        now = Time::from_ns(100);
        line.sent.clear();
        serve(&mut nic, &mut flows, &mut line, &mut now);
        assert_eq!(line.sent, [(0, 3, 3, 100), (0, 4, 4, 110)]);
        // Timers are lazy: the first, for packet 0, finds nothing; the next is for packet 1, sent at 20 ns.
        let flow = &mut flows[0];
        let armed = flow.arm(&transport, now).expect("packets are in flight");
        assert_eq!((flow.arm(&transport, now), flow.awaits(armed)), (None, true));
        assert_eq!(flow.on_timer(&transport, &mut line.scheme, armed, &mut |_, _| ()), 0);
        let again = flow.arm(&transport, armed).expect("packets are in flight");
        assert_eq!(again - armed, Time::from_ns(20));
        assert_eq!(
            flow.on_timer(&transport, &mut line.scheme, again, &mut |_, _| ()),
            1,
            "packet 2 was sent 10 ns later"
        );
        nic.leave(0, &flows.remove(0));
        assert_eq!(nic.ready(), 0);
    }
}
