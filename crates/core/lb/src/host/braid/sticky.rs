//! A flow that keeps a path, since its receiver counts early packets as lost.

use super::{BraidParameters, BraidValues, number_of, spread::Path};
use crate::{Decision, Feedback, FlowInfo, Outgoing, Tag, host::mp_ev::PathEncoding};
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};

/// What the flows of a host share about a path.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Bytes that its flows have left.
    open: u64,
    /// Delay beyond the base round trip, and when it was measured.
    delay: Time,
    at: Time,
}

/// Paths of a host, by number.
#[derive(Debug, Default)]
pub(super) struct Shared(Vec<Seen>);

#[derive(Debug)]
pub(super) struct Sticky {
    /// Key of what it shares: 0, or the switch of its receiver.
    shared: u32,
    encoding: Option<PathEncoding>,
    paths: Box<[Path]>,
    dead: Vec<bool>,
    masked: u32,
    planes: u32,
    base: Time,
    rate: Rate,
    above: Time,
    below: f64,
    /// Index of its path and bytes left.
    path: usize,
    left: u64,
    /// Smoothed round trip on this path.
    round_trip: Time,
    /// First packet without an acknowledgement, and the next new one.
    cumulative: u64,
    next: u64,
    moves: bool,
    stream: Stream,
}

/// Base round trips after which a measured delay counts half.
const AGE: u64 = 16;

impl Sticky {
    pub(super) fn new(
        now: Time,
        paths: Vec<Path>,
        flow: &FlowInfo<'_>,
        parameters: &BraidParameters,
        shared: &mut Shared,
        stream: Stream,
    ) -> Self {
        let is_guided = parameters.values == BraidValues::Guided;
        let most = paths.iter().map(|path| path.number() as usize + 1).max().unwrap_or(1);
        if shared.0.len() < most {
            shared.0.resize(most, Seen::default());
        }
        let mut sticky = Sticky {
            shared: if is_guided { flow.paths.edge } else { 0 },
            encoding: if is_guided { None } else { PathEncoding::new(flow.paths.uplinks) },
            paths: paths.into(),
            dead: Vec::new(),
            masked: 0,
            planes: if is_guided { 1 } else { flow.paths.planes.max(1) },
            base: flow.base_rtt,
            rate: flow.rate,
            above: crate::host::times(flow.base_rtt, parameters.move_above),
            below: parameters.move_below,
            path: 0,
            left: flow.size,
            round_trip: Time::ZERO,
            cumulative: 0,
            next: 0,
            moves: false,
            stream,
        };
        sticky.dead = flow.paths.dead.to_vec();
        sticky.path = sticky.best(now, shared, None).map_or(0, |best| best.0);
        sticky.enter(shared);
        sticky
    }

    pub(super) fn round_trip(&self) -> Time {
        self.round_trip
    }

    pub(super) fn shared(&self) -> u32 {
        self.shared
    }

    fn seen<'a>(&self, shared: &'a mut Shared, path: usize) -> &'a mut Seen {
        let number = self.paths[path].number() as usize;
        if shared.0.len() <= number {
            shared.0.resize(number + 1, Seen::default());
        }
        &mut shared.0[number]
    }

    fn enter(&self, shared: &mut Shared) {
        self.seen(shared, self.path).open += self.left;
    }

    pub(super) fn leave(&mut self, shared: &mut Shared) {
        let left = self.left;
        let seen = self.seen(shared, self.path);
        seen.open = seen.open.saturating_sub(left);
    }

    /// Returns the path with the least open bytes and aged delay, other than `but`, and its aged delay. Ties are drawn.
    fn best(&mut self, now: Time, shared: &Shared, but: Option<usize>) -> Option<(usize, Time)> {
        let (mut best, mut ties): (Option<(Time, usize, Time)>, u64) = (None, 0);
        for (index, path) in self.paths.iter().enumerate() {
            let number = path.number() as usize;
            let is_dead = self.dead.get(number).copied().unwrap_or(false);
            let is_down = self.planes > 1 && self.masked >> path.group() & 1 == 1;
            if is_dead || is_down || but == Some(index) {
                continue;
            }
            let seen = shared.0.get(number).copied().unwrap_or_default();
            let halves = now.saturating_sub(seen.at).ps() / (AGE * self.base.ps().max(1));
            let delay = Time::from_ps(seen.delay.ps() >> halves.min(63));
            let cost = self.rate.wire_time(seen.open) + delay;
            let is_better = best.is_none_or(|(least, ..)| cost < least);
            let is_tie = best.is_some_and(|(least, ..)| cost == least);
            ties = if is_better { 1 } else { ties + u64::from(is_tie) };
            if is_better || is_tie && self.stream.below(ties) == 0 {
                best = Some((cost, index, delay));
            }
        }
        best.map(|(_, index, delay)| (index, delay))
    }

    #[inline]
    pub(super) fn select(&mut self, now: Time, packet: &Outgoing, shared: &mut Shared) -> Decision {
        if self.moves {
            if self.cumulative < self.next {
                return if packet.retransmission { self.send(packet) } else { Decision::Wait };
            }
            self.moves = false;
            if let Some((other, _)) = self.best(now, shared, Some(self.path)) {
                self.leave(shared);
                (self.path, self.round_trip) = (other, Time::ZERO);
                self.enter(shared);
            }
        }
        self.send(packet)
    }

    fn send(&mut self, packet: &Outgoing) -> Decision {
        let path = &self.paths[self.path];
        if self.planes > 1 && packet.free_ports >> path.group() & 1 == 0 {
            return Decision::Hold(packet.port_free_at);
        }
        self.next = self.next.max(packet.psn + 1);
        Decision::Send(path.tag())
    }

    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, feedback: &Feedback, shared: &mut Shared) {
        self.cumulative = self.cumulative.max(feedback.cumulative);
        let acknowledged = feedback.bytes.min(self.left);
        self.left -= acknowledged;
        let base = self.base;
        let seen = self.seen(shared, self.path);
        seen.open = seen.open.saturating_sub(acknowledged);
        let Some(rtt) = feedback.rtt.filter(|_| self.is_own(feedback.tag)) else { return };
        (seen.delay, seen.at) = (rtt.saturating_sub(base), now);
        self.round_trip = match self.round_trip {
            Time::ZERO => rtt,
            mean => Time::from_ps(mean.ps() - mean.ps() / 8 + rtt.ps() / 8),
        };
        if !self.moves && self.round_trip > self.above {
            let limit = crate::host::times(self.round_trip, self.below);
            self.moves = self.best(now, shared, Some(self.path)).is_some_and(|(_, delay)| base + delay < limit);
        }
    }

    fn is_own(&self, tag: Tag) -> bool {
        number_of(self.encoding.as_ref(), tag) == Some(self.paths[self.path].number())
    }

    pub(super) fn on_timeout(&mut self) {
        // What was in flight counts as lost.
        (self.moves, self.cumulative) = (true, self.next);
    }

    pub(super) fn set_dead(&mut self, dead: &[bool]) {
        self.dead = dead.to_vec();
        self.moves |= dead.get(self.paths[self.path].number() as usize).copied().unwrap_or(false);
    }

    pub(super) fn mask(&mut self, ports: u32) {
        self.masked = ports;
        self.moves |= self.planes > 1 && ports >> self.paths[self.path].group() & 1 == 1;
    }
}
