//! ConWeave (specification 4.4; SIGCOMM 2023).
//!
//! An epoch of a flow starts with an INIT packet. If its REPLY arrives before a deadline, the next packet starts the
//! next epoch. Otherwise the next packet is the TAIL on the old path and later ones are phase 1, on a new path. The
//! receiver's leaf replies to the TAIL with CLEAR, and the next epoch may begin.

use super::leaf::{FlowEntry, FlowKey, FlowTable, MAX_LEAF_PATHS, PathNumbers};
use crate::{
    Candidates, Delivery, Effects, LocalQueues, PacketView, SchemeCounters, State, SwitchHeader, SwitchInfo,
    SwitchScheme,
    hash::{self, Hasher},
    registry::{PacketScope, SchemeCapabilities},
    state::{ps, state},
};
use anabranch_random::Stream;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;
use rustc_hash::FxHashMap;

pub(crate) const ABOUT: About = About {
    name: "conweave",
    summary: "leaves move running flows off slow paths and put their packets back into order",
    source: "specification 4.4; ConWeave, SIGCOMM 2023",
    description: "The sender's leaf measures the round trip of a flow and, if the reply is late, moves the flow to a \
        path that has not been reported congested. The receiver's leaf keeps early packets of the new path in a queue \
        until the last packet of the old one has passed. Needs a congestion control that does not read round trips.",
};

state! {
    /// Path of the flow, from the sender's leaf, after this packet.
    path: "";
    /// Epoch of the flow.
    epoch: "";
    /// 1: it has been moved in this epoch, and the reply to the TAIL is out.
    phase: "";
    /// Time by which a reply must be back; empty: none is out.
    deadline_ps: "ps";
    /// Paths to leaves that are not chosen for congestion.
    paused_paths: "paths";
}

parameters! {
    pub struct ConweaveParameters {
    }
}

// Constants of specification 4.4.
/// Time beyond the base round trip within which the reply to INIT must arrive.
const REPLY_DEADLINE_EXTRA: Time = Time::from_us(4);
/// Time for which a path reported congested is not chosen.
const PATH_PAUSE: Time = Time::from_us(16);

impl SchemeCapabilities for ConweaveParameters {
    fn packet_scope(&self) -> PacketScope {
        PacketScope::EveryHop
    }

    fn fills_header(&self) -> bool {
        true
    }

    fn max_leaf_paths(&self) -> Option<u64> {
        Some(MAX_LEAF_PATHS)
    }

    /// Its reordering queues distort them (specification 4.4).
    fn distorts_round_trips(&self) -> bool {
        true
    }
}

/// Word 4 of the header: the path in 10 bits, then phase, kind (2 bits) and the epoch in 19 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    path: u32,
    phase: bool,
    kind: MarkKind,
    epoch: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkKind {
    Data,
    /// In a data packet: requests a reply. In a control packet: is one.
    Init,
    Tail,
    /// In a control packet: the path is congested.
    Notify,
}

const EPOCHS: u32 = 1 << 19;

impl Mark {
    fn write(self, header: &mut SwitchHeader) {
        let kind = match self.kind {
            MarkKind::Data => 0,
            MarkKind::Init => 1,
            MarkKind::Tail => 2,
            MarkKind::Notify => 3,
        };
        header.0[4] = self.path | u32::from(self.phase) << 10 | kind << 11 | self.epoch << 13;
    }

    fn read(header: &SwitchHeader) -> Self {
        let word = header.0[4];
        let kind = [MarkKind::Data, MarkKind::Init, MarkKind::Tail, MarkKind::Notify][(word >> 11 & 3) as usize];
        Mark { path: word & 1023, phase: word >> 10 & 1 == 1, kind, epoch: word >> 13 }
    }
}

/// Returns `true` if epoch `a` is before `b`; epochs wrap.
fn before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) % EPOCHS < EPOCHS / 2
}

#[derive(Clone, Debug)]
struct Source {
    path: u32,
    epoch: u32,
    phase: bool,
    active: Time,
    /// Deadline of the reply; `None`: none is expected.
    deadline: Option<Time>,
    stable: bool,
    tail: Time,
}

#[derive(Clone, Debug)]
struct Sink {
    active: Time,
    epoch: u32,
    phase: bool,
    /// Departure from the sender's leaf and arrival of the last packet of phase 0, if any.
    phase0: Option<(Time, Time)>,
    tail: Time,
    /// Queue of held packets, and its release time.
    held: Option<(u32, Time)>,
}

impl FlowEntry for Source {
    fn last(&self) -> Time {
        self.active
    }
}

impl FlowEntry for Sink {
    fn last(&self) -> Time {
        self.active
    }
    fn idle(&self) -> bool {
        self.held.is_none()
    }
}

#[derive(Debug)]
pub struct Conweave {
    deadline: Time,
    /// Time beyond the expected arrival of the TAIL that held packets wait.
    flush_extra: Time,
    /// Maximum wait of held packets if there is no information on the old path.
    default_wait: Time,
    /// Idle time after which a flow restarts.
    expiry: Time,
    hasher: Hasher,
    stream: Stream,
    number: u32,
    paths: PathNumbers,
    sources: FlowTable<Source>,
    sinks: FlowTable<Sink>,
    /// Per leaf and path the time until which it is not chosen.
    paused: FxHashMap<(u32, u32), Time>,
    /// Flow of each reordering queue; free queues.
    queues: Vec<Option<FlowKey>>,
    free: Vec<u32>,
    counters: SchemeCounters,
}

impl Conweave {
    pub fn new(_: ConweaveParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let three = switch.uplinks.len() > 1;
        let wait = if !three {
            200
        } else if switch.lossless {
            600
        } else {
            300
        };
        // Out and back between leaves: two hops in two tiers, four in three (also within a pod, ours).
        let hops = if three { 8 } else { 4 };
        let expiry = Time::from_us(if three { 1000 } else { 300 });
        let forget = Time::from_ms(2).max(Time::from_ps(2 * expiry.ps()));
        Conweave {
            deadline: Time::from_ps(hops * switch.hop_delay.ps()) + REPLY_DEADLINE_EXTRA,
            flush_extra: Time::from_us(if three && switch.lossless { 64 } else { 16 }),
            default_wait: Time::from_us(wait),
            expiry,
            hasher: Hasher::of(seed, switch),
            stream: Stream::keyed(seed, switch.key, "conweave"),
            number: switch.number,
            paths: PathNumbers::of(switch),
            sources: FlowTable::new(forget),
            sinks: FlowTable::new(forget),
            paused: FxHashMap::default(),
            queues: Vec::new(),
            free: Vec::new(),
            counters: SchemeCounters::default(),
        }
    }

    /// Draws two random paths; returns the first one not paused, if any, and the first one drawn.
    fn draw(&mut self, now: Time, leaf: u32) -> (Option<u32>, u32) {
        let count = u64::from(self.paths.count());
        let (first, second) = (self.stream.below(count) as u32, self.stream.below(count) as u32);
        let good = |path: &u32| self.paused.get(&(leaf, *path)).is_none_or(|until| *until <= now);
        ([first, second].into_iter().find(good), first)
    }

    fn mark(&mut self, now: Time, packet: &PacketView, header: &mut SwitchHeader) -> u32 {
        let key = FlowKey::of(packet, false);
        let (expiry, wanted) = (self.expiry, now + self.deadline);
        let known = self.sources.get(key);
        let is_known = known.is_some();
        let expired = known.is_none_or(|flow| flow.active + expiry < now);
        let late = |flow: &Source| flow.deadline.is_some_and(|deadline| deadline < now);
        let stable = !expired && self.sources.get(key).is_some_and(|flow| flow.stable);
        let timed_out = !expired && !stable && self.sources.get(key).is_some_and(|flow| late(flow));
        let drawn = (expired || timed_out).then(|| self.draw(now, packet.dst_leaf));
        if !is_known {
            let path = drawn.map_or(0, |(good, first)| good.unwrap_or(first));
            let fresh =
                Source { path, epoch: 0, phase: false, active: now, deadline: None, stable: false, tail: Time::ZERO };
            self.sources.insert(key, fresh, now);
        }
        let Some(flow) = self.sources.get(key) else { return 0 };
        flow.active = now;
        let mut mark = Mark { path: flow.path, phase: flow.phase, kind: MarkKind::Data, epoch: 0 };
        if expired || stable {
            flow.stable = false;
            flow.deadline = Some(wanted);
            flow.epoch = (flow.epoch + 1) % EPOCHS;
            flow.phase = false;
            flow.tail = Time::ZERO;
            if let Some((Some(good), _)) = drawn {
                self.counters.reroutes += u64::from(is_known && good != flow.path);
                flow.path = good;
            }
            mark = Mark { path: flow.path, phase: false, kind: MarkKind::Init, epoch: 0 };
        } else if timed_out {
            flow.deadline = None;
            flow.phase = true;
            flow.tail = now;
            mark = Mark { path: flow.path, phase: false, kind: MarkKind::Tail, epoch: 0 };
            if let Some((Some(good), _)) = drawn {
                flow.path = good;
                self.counters.reroutes += 1;
            }
        }
        Mark { epoch: flow.epoch, ..mark }.write(header);
        header.set_wide(0, now.ps());
        header.set_wide(1, flow.tail.ps());
        mark.path
    }

    fn open_queue(&mut self, key: FlowKey) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.queues.push(None);
            self.queues.len() as u32 - 1
        });
        self.queues[number as usize] = Some(key);
        number
    }
}

impl SwitchScheme for Conweave {
    fn forward<Q: LocalQueues>(
        &mut self,
        now: Time,
        packet: &PacketView,
        header: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        if packet.control || packet.src_leaf == packet.dst_leaf {
            return hash::ecmp(&self.hasher, packet, candidates.count);
        }
        let path =
            if packet.src_leaf == self.number { self.mark(now, packet, header) } else { Mark::read(header).path };
        self.paths.candidate(path, candidates)
    }

    fn deliver(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) -> Delivery {
        if packet.src_leaf == packet.dst_leaf {
            return Delivery::Deliver;
        }
        let mark = Mark::read(header);
        let key = FlowKey::of(packet, false);
        let new = self.sinks.get(key).is_none();
        if new {
            let fresh =
                Sink { active: now, epoch: mark.epoch, phase: false, phase0: None, tail: Time::ZERO, held: None };
            self.sinks.insert(key, fresh, now);
        }
        let (flush_extra, default_wait) = (self.flush_extra, self.default_wait);
        let Some(flow) = self.sinks.get(key) else { return Delivery::Deliver };
        flow.active = now;
        if before(mark.epoch, flow.epoch) {
            return Delivery::Deliver;
        }
        if packet.marked {
            let mut reply = SwitchHeader::default();
            Mark { kind: MarkKind::Notify, ..mark }.write(&mut reply);
            out.reply.push(reply);
        }
        if mark.kind != MarkKind::Data {
            let mut reply = SwitchHeader::default();
            Mark { phase: mark.kind == MarkKind::Tail, ..mark }.write(&mut reply);
            out.reply.push(reply);
        }
        let new_epoch = new || before(flow.epoch, mark.epoch);
        flow.epoch = mark.epoch;
        let is_tail = mark.kind == MarkKind::Tail;
        if new_epoch {
            flow.phase = is_tail;
            flow.phase0 = None;
        }
        if !mark.phase {
            flow.phase0 = Some((Time::from_ps(header.wide(0)), now));
        }
        if is_tail && !new_epoch && flow.held.is_none() {
            flow.phase = true;
        }
        let early = !is_tail && mark.phase && !flow.phase;
        if is_tail || mark.phase {
            flow.tail = Time::from_ps(header.wide(1));
        }
        let gap = flow.phase0.map_or(default_wait, |(sent, _)| flow.tail.saturating_sub(sent));
        if !mark.phase
            && let Some((queue, _)) = flow.held
        {
            // A packet of the old path passes: held packets follow after the TAIL.
            let at = if is_tail { now + Time::from_ns(1) } else { now + gap + flush_extra };
            flow.held = Some((queue, at));
            out.wake.push((at, queue));
        }
        if !early {
            return Delivery::Deliver;
        }
        self.counters.reordered_packets += 1;
        if let Some((queue, _)) = flow.held {
            return Delivery::Hold(queue);
        }
        let at = flow.phase0.map_or(now, |(_, came)| came) + gap + flush_extra;
        let at = at.max(now);
        let queue = self.open_queue(key);
        if let Some(flow) = self.sinks.get(key) {
            flow.held = Some((queue, at));
        }
        out.wake.push((at, queue));
        Delivery::Hold(queue)
    }

    fn on_control(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, _: &mut Effects) {
        let mark = Mark::read(header);
        if mark.kind == MarkKind::Notify {
            self.paused.insert((packet.dst_leaf, mark.path), now + PATH_PAUSE);
            return;
        }
        let Some(flow) = self.sources.get(FlowKey::of(packet, false)) else { return };
        if mark.epoch != flow.epoch || mark.phase != flow.phase {
            return;
        }
        let in_time = mark.phase || flow.deadline.is_some_and(|deadline| now < deadline);
        if in_time {
            flow.stable = true;
            flow.deadline = None;
        }
    }

    fn on_timer(&mut self, now: Time, number: u32, out: &mut Effects) {
        let Some(key) = self.queues.get(number as usize).copied().flatten() else { return };
        let Some(flow) = self.sinks.get(key) else { return };
        // The flush may have been postponed; then another timer serves it.
        if flow.held.is_none_or(|(queue, at)| queue != number || at > now) {
            return;
        }
        flow.held = None;
        flow.phase = true;
        self.queues[number as usize] = None;
        self.free.push(number);
        out.release.push(number);
    }

    fn counters(&self) -> SchemeCounters {
        self.counters
    }

    fn state(&self, now: Time, packet: &PacketView, _header: &SwitchHeader) -> State {
        let own = !packet.control && packet.src_leaf == self.number && packet.src_leaf != packet.dst_leaf;
        let Some(flow) = self.sources.peek(FlowKey::of(packet, false)).filter(|_| own) else { return State::default() };
        let to_leaf = self.paused.iter().filter(|((leaf, _), until)| *leaf == packet.dst_leaf && **until > now);
        Columns {
            path: flow.path.into(),
            epoch: flow.epoch.into(),
            phase: flow.phase.into(),
            deadline_ps: flow.deadline.map_or(f64::NAN, ps),
            paused_paths: to_leaf.count() as f64,
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, among, data};
    use proptest::prelude::*;

    fn scheme(number: u32) -> Conweave {
        let info = SwitchInfo { uplinks: vec![8], number, ..LEAF };
        Conweave::new(ConweaveParameters::default(), 1, &info)
    }
    fn us(time: f64) -> Time {
        Time::from_ps((time * 1e6) as u64)
    }
    /// The header of a packet that leaves leaf 0 at `time`.
    fn leave(s: &mut Conweave, time: f64) -> SwitchHeader {
        let mut header = SwitchHeader::default();
        s.forward(us(time), &data(7, 0), &mut header, &among(&POSITIONS, 0), &mut Queues::new(&[0; 8]));
        header
    }
    fn arrive(s: &mut Conweave, time: f64, header: &SwitchHeader) -> (Delivery, Effects) {
        let mut out = Effects::default();
        (s.deliver(us(time), &data(7, 0), header, &mut out), out)
    }

    #[test]
    fn timely_reply_keeps_the_path() {
        let (mut a, mut b) = (scheme(0), scheme(1));
        let init = leave(&mut a, 0.0);
        assert_eq!((Mark::read(&init).kind, Mark::read(&init).epoch), (MarkKind::Init, 1));
        let (delivery, out) = arrive(&mut b, 2.0, &init);
        assert_eq!((delivery, out.reply.len()), (Delivery::Deliver, 1));
        assert_eq!(Mark::read(&leave(&mut a, 1.0)).kind, MarkKind::Data);
        // Deadline: 4 us there and back, and 4 us more. The reply is back after 4 us.
        a.on_control(us(4.0), &data(7, 0), &out.reply[0], &mut Effects::default());
        let next = Mark::read(&leave(&mut a, 5.0));
        assert_eq!((next.kind, next.epoch, next.path), (MarkKind::Init, 2, Mark::read(&init).path));
        assert_eq!(a.counters().reroutes, 0);
    }

    /// Idle for more than 300 us, a flow starts over, on the first of the two paths drawn.
    #[test]
    fn reroutes_after_an_idle_time_count() {
        let mut a = scheme(0);
        let (mut path, mut moves) = (Mark::read(&leave(&mut a, 0.0)).path, 0);
        for start in 1..50 {
            let next = Mark::read(&leave(&mut a, 400.0 * f64::from(start))).path;
            moves += u64::from(next != path);
            path = next;
        }
        assert!(moves > 30, "of 49 starts 7 in 8 take another path: {moves}");
        assert_eq!(a.counters().reroutes, moves);
    }

    #[test]
    fn late_reply_moves_the_flow_and_order_is_kept() {
        let (mut a, mut b) = (scheme(0), scheme(1));
        let init = leave(&mut a, 0.0);
        let (_, answer) = arrive(&mut b, 9.0, &init);
        // 8 us pass without a reply: the packet at 8.1 us is the TAIL on the old path, the one after it phase 1.
        assert_eq!(Mark::read(&leave(&mut a, 8.0)).kind, MarkKind::Data);
        let tail = leave(&mut a, 8.1);
        let early = leave(&mut a, 8.2);
        let (t, e) = (Mark::read(&tail), Mark::read(&early));
        assert_eq!((t.kind, t.phase, t.path), (MarkKind::Tail, false, Mark::read(&init).path));
        assert_eq!((e.kind, e.phase), (MarkKind::Data, true));
        assert_eq!(early.wide(1), us(8.1).ps());
        a.on_control(us(11.0), &data(7, 0), &answer.reply[0], &mut Effects::default());
        assert_eq!(Mark::read(&leave(&mut a, 11.1)).epoch, 1);
        // Phase 1 comes first: it waits. INIT left at 0 and came at 9 us, so the TAIL is expected 8.1 us later, plus 16.
        let (delivery, out) = arrive(&mut b, 10.0, &early);
        assert_eq!(delivery, Delivery::Hold(0));
        assert_eq!(out.wake, [(us(33.1), 0)]);
        let (delivery, out) = arrive(&mut b, 17.0, &tail);
        assert_eq!((delivery, out.wake.clone()), (Delivery::Deliver, vec![(us(17.001), 0)]));
        let clear = out.reply[0];
        let mut out = Effects::default();
        b.on_timer(us(17.001), 0, &mut out);
        assert_eq!(out.release, [0]);
        b.on_timer(us(33.1), 0, &mut out);
        assert_eq!(out.release, [0], "once");
        assert_eq!(arrive(&mut b, 18.0, &early).0, Delivery::Deliver, "phase 1 passes now");
        a.on_control(us(20.0), &data(7, 0), &clear, &mut Effects::default());
        let next = Mark::read(&leave(&mut a, 21.0));
        assert_eq!((next.kind, next.epoch, next.path), (MarkKind::Init, 2, e.path));
        assert_eq!(b.counters().reordered_packets, 1);
    }

    #[test]
    fn reported_paths_are_not_chosen_for_a_while() {
        let mut a = scheme(0);
        let mut notify = SwitchHeader::default();
        for path in 0..7 {
            Mark { path, phase: false, kind: MarkKind::Notify, epoch: 0 }.write(&mut notify);
            a.on_control(us(1.0), &data(7, 0), &notify, &mut Effects::default());
        }
        // Path 7 alone is good for 16 us: of two draws one hits it with probability 15/64.
        let good = (0..4000).filter(|_| a.draw(us(17.0 - 0.001), 1).0.is_some()).count();
        assert!((good as f64 / 4000.0 - 15.0 / 64.0).abs() < 0.03, "{good}");
        assert!((0..100).all(|_| a.draw(us(17.0), 1).0.is_some()));
        assert!((0..100).all(|_| a.draw(us(2.0), 5).0.is_some()), "towards another leaf they are good");
    }

    #[test]
    fn epochs_wrap() {
        assert!(before(EPOCHS - 1, 0) && before(3, 4) && !before(4, 3) && !before(4, 4));
        let mark = Mark { path: 1023, phase: true, kind: MarkKind::Notify, epoch: EPOCHS - 1 };
        let mut header = SwitchHeader::default();
        mark.write(&mut header);
        assert_eq!(Mark::read(&header), mark);
    }

    proptest! {
        /// Paths with any delays: per epoch phase 1 follows the TAIL or the flush, and each packet is delivered once.
        #[test]
        fn holds_until_the_tail_or_the_time(delays in prop::collection::vec(1u32..60, 8), gap in 1u32..30, packets in 5usize..80) {
            let (mut a, mut b) = (scheme(0), scheme(1));
            // (time, sequence, header)
            let mut wire: Vec<(u64, usize, SwitchHeader)> = Vec::new();
            for i in 0..packets {
                let now = i as f64 * f64::from(gap) * 0.1;
                let header = leave(&mut a, now);
                let delay = f64::from(delays[Mark::read(&header).path as usize]);
                wire.push((us(now + delay).ps(), i, header));
            }
            wire.sort_by_key(|w| (w.0, w.1));
            let mut queues: Vec<Vec<usize>> = vec![Vec::new(); 4];
            let mut wakes: Vec<(u64, u32)> = Vec::new();
            let mut delivered: Vec<(u64, usize)> = Vec::new();
            let flush = |b: &mut Conweave, wakes: &mut Vec<(u64, u32)>, queues: &mut Vec<Vec<usize>>, delivered: &mut Vec<(u64, usize)>, until: u64| {
                wakes.sort();
                while let Some(&(at, queue)) = wakes.first().filter(|w| w.0 <= until) {
                    wakes.remove(0);
                    let mut out = Effects::default();
                    b.on_timer(Time::from_ps(at), queue, &mut out);
                    for released in out.release {
                        delivered.extend(queues[released as usize].drain(..).map(|i| (at, i)));
                    }
                }
            };
            for (time, i, header) in &wire {
                flush(&mut b, &mut wakes, &mut queues, &mut delivered, *time);
                let mut out = Effects::default();
                match b.deliver(Time::from_ps(*time), &data(7, 0), header, &mut out) {
                    Delivery::Deliver => delivered.push((*time, *i)),
                    Delivery::Hold(queue) => queues[queue as usize].push(*i),
                }
                wakes.extend(out.wake.iter().map(|(at, queue)| (at.ps(), *queue)));
            }
            flush(&mut b, &mut wakes, &mut queues, &mut delivered, u64::MAX);
            prop_assert_eq!(delivered.len(), packets, "every packet, once");
            // Without any reply there is one epoch with one TAIL. The first packet of phase 1 that is delivered before
            // it is released by the timer: 16 us after the last packet of phase 0, or 216 us after itself without one.
            let phase1 = |i: usize| wire.iter().any(|w| w.1 == i && Mark::read(&w.2).phase);
            let tail = wire.iter().find(|w| Mark::read(&w.2).kind == MarkKind::Tail).map_or(u64::MAX, |w| w.0);
            let first = delivered.iter().filter(|(_, i)| phase1(*i)).map(|(time, _)| *time).min();
            if let Some(first) = first.filter(|first| *first < tail) {
                let phase0 = wire.iter().filter(|w| !Mark::read(&w.2).phase && w.0 <= first).map(|w| w.0).max();
                let held = wire.iter().filter(|w| Mark::read(&w.2).phase).map(|w| w.0).min().unwrap();
                let earliest = phase0.map_or(held + us(216.0).ps(), |came| came + us(16.0).ps());
                prop_assert!(first >= earliest, "{first} before {earliest}");
            }
        }
    }
}
