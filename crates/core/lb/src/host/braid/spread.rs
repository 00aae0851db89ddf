//! A flow whose packets are spread: a cursor per group of paths, on which a path has its share of turns.

use super::{BraidParameters, BraidValues, Columns, number_of};
use crate::{Feedback, FlowInfo, Outgoing, State, Tag, host::mp_ev::PathEncoding, state::ps};
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};

/// Parameters as they are used per packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    fall: f32,
    growth: f32,
    recovery: f32,
    trim: f32,
    timeout: f32,
    reuse: usize,
    reuse_run: u32,
    silence: f32,
    block: f32,
    guided: bool,
}

impl Rules {
    pub(super) fn new(p: &BraidParameters) -> Self {
        Rules {
            fall: p.fall as f32,
            growth: p.growth as f32,
            recovery: p.recovery as f32,
            trim: p.trim as f32,
            timeout: p.timeout as f32,
            reuse: p.reuse as usize,
            reuse_run: p.reuse_run,
            silence: p.silence as f32,
            block: p.block as f32,
            guided: p.values == BraidValues::Guided,
        }
    }
}

/// A path of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    tag: Tag,
    number: u32,
    /// Its plane; of a guided list 0 for the shortest paths, else 1.
    group: u8,
    dead: bool,
    /// It has delivered a packet.
    proven: bool,
    /// Times it was blocked in a row.
    blocks: u8,
    /// Packets sent since its last reply, at most 255.
    unanswered: u8,
    /// Capacity relative to the largest, by which a share counts.
    capacity: f32,
    /// Learnt share, its credit of turns, and how often the share has fallen.
    share: f32,
    credit: f32,
    falls: f32,
    /// Time of the last fall, and up to which the share has grown by itself.
    fell: Time,
    grown: Time,
    /// First packet without a reply and the last one sent, with the time of the first.
    first: u64,
    last: u64,
    since: Time,
    /// Time until which it is blocked; zero: it is not.
    blocked: Time,
}

impl Path {
    pub(super) fn new(tag: Tag, number: u32, group: u8) -> Self {
        Path {
            tag,
            number,
            group,
            dead: false,
            proven: false,
            blocks: 0,
            unanswered: 0,
            capacity: 1.0,
            share: 1.0,
            credit: 0.0,
            falls: 0.0,
            fell: Time::ZERO,
            grown: Time::ZERO,
            first: 0,
            last: 0,
            since: Time::ZERO,
            blocked: Time::ZERO,
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn group(&self) -> u8 {
        self.group
    }

    pub(super) fn tag(&self) -> Tag {
        self.tag
    }

    fn is_usable(&self) -> bool {
        !self.dead && self.blocked == Time::ZERO
    }
}

/// Paths with a cursor of their own: a plane, or the shortest or other paths of a list.
#[derive(Debug)]
struct Group {
    /// Share of the packets relative to the others, and what it has sent in terms of it.
    prior: f32,
    spent: f32,
    /// Paths in the order of their turns.
    order: Vec<u16>,
    cursor: usize,
    /// Largest share in this turn of the cursor and in the last, by which turns are scaled: some path always has a whole one.
    most: f32,
    scale: f32,
    /// Times its port has gone down in a row, and until when it waits after that.
    downs: u8,
    held: Time,
}

#[derive(Debug)]
pub(super) struct Spread {
    rules: Rules,
    encoding: Option<PathEncoding>,
    paths: Box<[Path]>,
    /// The paths are all there are: the number of one is its index.
    complete: bool,
    groups: Vec<Group>,
    /// Groups that are planes whose ports are down, one bit each, and those that were and wait.
    masked: u32,
    held: u32,
    planes: bool,
    /// Share of marks of the flow, and its smoothed round trip.
    marks: f32,
    marked: f32,
    round_trip: Time,
    cumulative: u64,
    /// Clean paths to use again, a ring, and packets on them since the last turn.
    clean: Vec<u16>,
    reused: u32,
    /// The path of the last reply, and whether a packet of the flow has timed out.
    last_reply: Option<u16>,
    timed_out: bool,
    /// Blocked paths, the earliest end of a block, and the path that is probed.
    blocked: u32,
    next_probe: Time,
    probe: Option<(u16, Time)>,
    _stream: Stream,
}

/// The mean of marks has this memory, in acknowledgements.
const MEMORY: f32 = 16.0;
/// The least share: a path is tried once in 64 turns.
const LEAST: f32 = 1.0 / 64.0;
/// Share of marks above which clean paths are used again. In planes more than a single mark makes, which may be chance: a strict turn
/// over as many queues as ports has hardly any.
const MARKED: f32 = 1.0 / 64.0;
const MARKED_IN_PLANES: f32 = 1.0 / MEMORY;

impl Spread {
    pub(super) fn new(
        paths: Vec<Path>,
        priors: Vec<f32>,
        flow: &FlowInfo<'_>,
        rules: Rules,
        mut stream: Stream,
    ) -> Self {
        let group = |number: usize| Group {
            prior: priors[number],
            spent: 0.0,
            order: vec![],
            cursor: 0,
            most: 1.0,
            scale: 1.0,
            downs: 0,
            held: Time::ZERO,
        };
        let mut groups: Vec<Group> = (0..priors.len()).map(group).collect();
        let mut order: Vec<u16> = (0..paths.len() as u16).collect();
        stream.shuffle(&mut order);
        // Neighbours in a turn differ in their first part: one pass over the uplinks, then the next.
        let first = flow.paths.uplinks.get(usize::from(flow.paths.planes > 1)).copied().unwrap_or(1).max(1);
        if !rules.guided {
            let planes = flow.paths.planes.max(1);
            let mut turns = vec![0u32; (first * planes) as usize];
            let turn = |path: &u16| {
                let turn = &mut turns[(paths[usize::from(*path)].number % (first * planes)) as usize];
                std::mem::replace(turn, *turn + 1)
            };
            let mut by_turn: Vec<(u32, u16)> = order.iter().map(turn).zip(order.iter().copied()).collect();
            by_turn.sort_by_key(|(turn, _)| *turn);
            order = by_turn.into_iter().map(|(_, path)| path).collect();
        }
        for path in order {
            groups[usize::from(paths[usize::from(path)].group)].order.push(path);
        }
        let encoding = if rules.guided { None } else { PathEncoding::new(flow.paths.uplinks) };
        Spread {
            rules,
            encoding,
            complete: paths.iter().zip(0..).all(|(path, index)| path.number == index),
            paths: paths.into(),
            groups,
            masked: 0,
            held: 0,
            planes: !rules.guided && flow.paths.planes > 1,
            marks: 0.0,
            marked: if !rules.guided && flow.paths.planes > 1 { MARKED_IN_PLANES } else { MARKED },
            round_trip: flow.base_rtt,
            cumulative: 0,
            clean: Vec::with_capacity(rules.reuse),
            reused: 0,
            last_reply: None,
            timed_out: false,
            blocked: 0,
            next_probe: Time::MAX,
            probe: None,
            _stream: stream,
        }
    }

    #[inline]
    fn find(&self, tag: Tag) -> Option<usize> {
        let number = number_of(self.encoding.as_ref(), tag)?;
        if self.complete {
            return ((number as usize) < self.paths.len()).then_some(number as usize);
        }
        self.paths.binary_search_by_key(&number, Path::number).ok()
    }

    pub(super) fn has_usable(&self) -> bool {
        self.paths.iter().any(|path| path.is_usable() && !(self.planes && self.masked >> path.group & 1 == 1))
    }

    /// Sets the planes whose ports are down. One that returns waits as long as a silent path does before it is blocked, twice as
    /// long each further time: a port that flaps loses what is sent until its next end is known, and the last packets of a flow
    /// have no later ones that report their loss.
    pub(super) fn mask(&mut self, now: Time, ports: u32) {
        let changed = self.masked ^ ports;
        self.masked = ports;
        for plane in (0..self.groups.len()).filter(|plane| self.planes && changed >> plane & 1 == 1) {
            let times = 1u16 << self.groups[plane].downs.saturating_sub(1).min(10);
            let wait = self.round_trips(self.rules.silence * f32::from(times));
            let of = &mut self.groups[plane];
            if ports >> plane & 1 == 1 {
                of.downs = if now > of.held + wait { 1 } else { of.downs.saturating_add(1) };
            } else {
                of.held = now + wait;
                self.held |= 1 << plane;
            }
        }
    }

    /// Returns the planes whose ports are down, or wait while another does not.
    #[inline(never)]
    fn avoided(&mut self, now: Time) -> u32 {
        if self.held > 0 {
            self.held = (0..self.groups.len())
                .filter(|plane| self.held >> plane & 1 == 1 && self.groups[*plane].held > now)
                .fold(0, |held, plane| held | 1 << plane);
        }
        let avoided = self.masked | self.held;
        if avoided.count_ones() as usize == self.groups.len() { self.masked } else { avoided }
    }

    pub(super) fn set_dead(&mut self, now: Time, dead: &[bool]) {
        for path in &mut self.paths {
            path.dead = dead.get(path.number as usize).copied().unwrap_or(false);
            path.unanswered = 0;
            path.since = now;
        }
        self.clean.clear();
    }

    /// Sets the capacities of paths, by their numbers; empty: unknown.
    pub(super) fn set_capacities(&mut self, rates: &[Rate]) {
        let known = |path: &Path| rates.get(path.number as usize).map_or(0, |rate| rate.0);
        let most = self.paths.iter().map(known).max().unwrap_or(0);
        for path in &mut self.paths {
            // Of dead paths hosts learn elsewhere.
            path.capacity = match known(path) {
                0 => 1.0,
                rate => (rate as f32 / most as f32).max(LEAST),
            };
        }
    }

    #[inline]
    fn round_trips(&self, count: f32) -> Time {
        Time::from_ps((self.round_trip.ps() as f32 * count) as u64)
    }

    /// Returns the tag of the next packet; `None`: no path is usable, or no port of one is free.
    #[inline]
    pub(super) fn select(&mut self, now: Time, packet: &Outgoing) -> Option<Tag> {
        let free = if self.planes { packet.free_ports & !self.avoided(now) } else { u32::MAX };
        if packet.retransmission
            && self.timed_out
            && let Some(path) = self.last_reply.filter(|path| self.is_free(*path, free))
        {
            // A second loss would cost a longer timeout.
            return Some(self.sent(now, usize::from(path), packet.psn));
        }
        if self.marks > self.marked
            && self.reused < self.rules.reuse_run
            && let Some(path) = self.reuse(free)
        {
            return Some(self.sent(now, path, packet.psn));
        }
        self.reused = 0;
        let path = if let [_] = self.groups[..] {
            self.turn(now, 0)?
        } else {
            let mut tried = 0u64;
            loop {
                let group = self.least(free, tried)?;
                tried |= 1 << group;
                if let Some(path) = self.turn(now, group) {
                    self.charge(group);
                    break path;
                }
            }
        };
        Some(self.sent(now, path, packet.psn))
    }

    /// Returns a path that came back clean, of the plane whose turn it is: planes stay equal.
    // Beside other schemes in one function it costs each of them instructions.
    #[inline(never)]
    fn reuse(&mut self, free: u32) -> Option<usize> {
        let plane = if self.planes { Some(self.least(free, 0)?) } else { None };
        let fits = |path: &u16| plane.is_none_or(|plane| usize::from(self.paths[usize::from(*path)].group) == plane);
        while let Some(at) = self.clean.iter().rposition(fits) {
            let path = self.clean.remove(at);
            if self.is_free(path, free) {
                self.reused += 1;
                if let Some(plane) = plane {
                    self.charge(plane);
                }
                return Some(usize::from(path));
            }
        }
        None
    }

    /// Returns the group that has sent least by its share, of those not tried and with a free port.
    #[inline]
    fn least(&self, free: u32, tried: u64) -> Option<usize> {
        let is_open = |group: &usize| tried >> group & 1 == 0 && (!self.planes || free >> group & 1 == 1);
        let groups = (0..self.groups.len()).filter(is_open);
        groups.min_by(|a, b| self.groups[*a].spent.total_cmp(&self.groups[*b].spent))
    }

    fn is_free(&self, path: u16, free: u32) -> bool {
        let at = &self.paths[usize::from(path)];
        at.is_usable() && free >> (at.group & 31) & 1 == 1
    }

    /// Charges a group for a packet. The others do not catch up with it by more than a packet.
    fn charge(&mut self, group: usize) {
        let [least, most] = [self.groups[group].spent, 1.0 / self.groups[group].prior.max(LEAST)];
        for other in &mut self.groups {
            other.spent = (other.spent - least).max(0.0);
        }
        self.groups[group].spent = most;
    }

    /// Returns the path whose turn it is in a group; `None`: none is usable.
    #[inline]
    fn turn(&mut self, now: Time, group: usize) -> Option<usize> {
        // In one turn of the cursor some path has a whole turn, unless shares have just fallen.
        for _ in 0..3 * self.groups[group].order.len() {
            let of = &mut self.groups[group];
            let path = usize::from(of.order[of.cursor]);
            let scale = of.scale;
            of.cursor += 1;
            if of.cursor == of.order.len() {
                (of.cursor, of.scale, of.most) = (0, of.most, LEAST);
            }
            if !self.paths[path].is_usable() || self.is_silent(now, path) {
                continue;
            }
            let share = self.grow(now, path, 0.0) * self.paths[path].capacity;
            let of = &mut self.groups[group];
            of.most = of.most.max(share);
            let at = &mut self.paths[path];
            // A share that has grown beyond all of the last turn has a whole one.
            at.credit += (share / scale).min(1.0);
            if at.credit > 0.999 {
                at.credit -= 1.0;
                return Some(path);
            }
        }
        let usable = |path: &&u16| self.paths[usize::from(**path)].is_usable();
        self.groups[group].order.iter().find(usable).map(|path| usize::from(*path))
    }

    #[inline]
    fn sent(&mut self, now: Time, path: usize, psn: u64) -> Tag {
        let at = &mut self.paths[path];
        if at.unanswered == 0 {
            (at.first, at.since) = (psn, now);
        }
        at.unanswered = at.unanswered.saturating_add(1);
        at.last = psn;
        at.tag
    }

    /// Blocks the path if two packets or more wait too long for a reply, and it is not the last one.
    #[inline]
    fn is_silent(&mut self, now: Time, path: usize) -> bool {
        let at = &self.paths[path];
        if at.unanswered < 2 || self.rules.silence == 0.0 {
            return false;
        }
        if now.saturating_sub(at.since) <= self.round_trips(self.rules.silence) {
            return false;
        }
        if at.first < self.cumulative {
            // Replies that name one packet of several have covered it.
            let at = &mut self.paths[path];
            (at.unanswered, at.first, at.since) = (u8::from(at.last >= self.cumulative), at.last, now);
            return false;
        }
        self.block(now, path)
    }

    /// Blocks a path if it is not the last one; returns whether it did.
    fn block(&mut self, now: Time, path: usize) -> bool {
        if self.paths[path].blocked == Time::ZERO && self.paths.iter().filter(|path| path.is_usable()).count() < 2 {
            return false;
        }
        let time = self.round_trips(self.rules.block * f32::from(1u16 << self.paths[path].blocks.min(10)));
        let at = &mut self.paths[path];
        self.blocked += u32::from(at.blocked == Time::ZERO);
        at.blocked = now + time;
        at.blocks = at.blocks.saturating_add(1);
        self.next_probe = self.next_probe.min(at.blocked);
        true
    }

    fn unblock(&mut self, now: Time, path: usize) {
        self.last_reply = Some(path as u16);
        let at = &mut self.paths[path];
        at.proven = true;
        if at.blocked != Time::ZERO {
            (at.blocked, at.credit, at.since) = (Time::ZERO, 0.0, now);
            self.blocked -= 1;
        }
        (at.blocks, at.unanswered) = (0, 0);
    }

    /// Lets a share grow by itself, and by this much more; returns it.
    #[inline]
    fn grow(&mut self, now: Time, path: usize, by: f32) -> f32 {
        let at = &mut self.paths[path];
        if at.share >= 1.0 {
            at.grown = now;
            return 1.0;
        }
        let slower = 1.0 + 0.5 * at.falls;
        let passed = now.saturating_sub(at.grown).ps() as f32 / self.round_trip.ps().max(1) as f32;
        at.share += (passed / self.rules.recovery + by) / slower;
        at.grown = now;
        if at.share >= 1.0 {
            (at.share, at.falls) = (1.0, (at.falls - 1.0).max(0.0));
        }
        at.share
    }

    #[inline]
    fn congested(&mut self, now: Time, path: usize, mark: f32) {
        let (excess, fall) = (mark - self.marks, self.rules.fall);
        if excess <= 0.0 || fall == 0.0 {
            return;
        }
        self.grow(now, path, 0.0);
        let round_trip = self.round_trip;
        let at = &mut self.paths[path];
        if at.fell == Time::ZERO || now.saturating_sub(at.fell) >= round_trip {
            at.share = (at.share * (1.0 - fall * excess)).max(LEAST);
            (at.fell, at.falls) = (now, (at.falls + 1.0).min(16.0));
        }
    }

    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, feedback: &Feedback) {
        self.cumulative = self.cumulative.max(feedback.cumulative);
        if let Some(rtt) = feedback.rtt {
            let (old, new) = (self.round_trip.ps(), rtt.ps());
            self.round_trip = Time::from_ps(old - old / 8 + new / 8);
        }
        let mark = f32::from(u8::from(feedback.ecn));
        self.marks += (mark - self.marks) / MEMORY;
        let Some(path) = self.find(feedback.tag) else { return };
        if self.paths[path].blocked > Time::ZERO {
            // It is slow, not dead.
            self.late(now, path);
        }
        self.unblock(now, path);
        if feedback.ecn {
            return self.congested(now, path, mark);
        }
        if self.paths[path].share < 1.0 {
            self.grow(now, path, self.rules.growth);
        } else if self.clean.len() < self.rules.reuse {
            self.clean.push(path as u16);
        }
    }

    pub(super) fn on_trim(&mut self, now: Time, tag: Tag) {
        let mark = self.rules.trim;
        self.marks += (mark - self.marks) / MEMORY;
        if let Some(path) = self.find(tag) {
            self.unblock(now, path);
            self.congested(now, path, mark);
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time, tag: Tag) {
        let Some(path) = self.find(tag) else { return };
        self.timed_out = true;
        if self.rules.silence > 0.0 && !self.paths[path].proven && self.paths[path].blocked == Time::ZERO {
            self.block(now, path);
        } else if self.paths[path].unanswered >= 2 && self.rules.silence > 0.0 {
            let _ = self.is_silent(now, path);
        } else {
            self.late(now, path);
        }
    }

    /// Lowers the share of a path that replies, but late.
    fn late(&mut self, now: Time, path: usize) {
        if self.rules.fall > 0.0 {
            self.grow(now, path, 0.0);
            let at = &mut self.paths[path];
            at.share = (at.share * self.rules.timeout).max(LEAST);
            (at.fell, at.falls) = (now, (at.falls + 1.0).min(16.0));
        }
    }

    pub(super) fn probe_at(&self) -> Time {
        match self.probe {
            Some((_, sent)) => sent + self.round_trips(self.rules.silence),
            None if self.blocked == 0 => Time::MAX,
            None => self.next_probe,
        }
    }

    /// Returns the tag of a path whose block has ended.
    pub(super) fn poll_probe(&mut self, now: Time) -> Option<Tag> {
        if let Some((path, sent)) = self.probe
            && sent + self.round_trips(self.rules.silence) <= now
        {
            self.probe = None;
            self.block(now, usize::from(path));
        }
        if self.probe.is_some() || self.blocked == 0 || now < self.next_probe {
            return None;
        }
        self.next_probe = Time::MAX;
        let mut due = None;
        for (number, path) in self.paths.iter().enumerate().filter(|(_, path)| path.blocked > Time::ZERO && !path.dead)
        {
            if path.blocked <= now && due.is_none() {
                due = Some(number);
            } else {
                self.next_probe = self.next_probe.min(path.blocked);
            }
        }
        let path = due?;
        self.probe = Some((path as u16, now));
        Some(self.paths[path].tag)
    }

    /// Returns `true` if the flow had no usable path.
    pub(super) fn on_probe_reply(&mut self, now: Time, tag: Tag) -> bool {
        let Some(path) = self.find(tag) else { return false };
        self.probe.take_if(|(probed, _)| usize::from(*probed) == path);
        let blocked = !self.has_usable();
        self.unblock(now, path);
        blocked
    }

    pub(super) fn state(&self, tag: Option<Tag>) -> State {
        let share = tag.and_then(|tag| self.find(tag)).map_or(f64::NAN, |path| self.paths[path].share.into());
        let (mark_share, blocked_paths) = (self.marks.into(), self.blocked.into());
        Columns { share, mark_share, round_trip_ps: ps(self.round_trip), blocked_paths }.into()
    }

    #[cfg(test)]
    pub(super) fn shares(&self) -> Vec<f32> {
        self.paths.iter().map(|path| path.share).collect()
    }
}
