//! The rotation of a flow: its entropy values with their states, and the cursor that selects one per packet.

use crate::{Tag, ValueState as State};
use anabranch_random::Stream;
use anabranch_settings::{OnceOr, RotationOr};
use anabranch_units::Time;

/// An entropy value of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    tag: Tag,
    /// Index among the paths to the destination.
    index: u32,
    plane: u8,
    state: State,
    /// Probes in a row with replies.
    successes: u8,
    /// Its seat in the rotation; [`NO_SEAT`]: it is a backup, or withdrawn.
    seat: u16,
    /// Rotation, or time, of the mark that it is skipped for.
    marked_in: u64,
}

const NO_SEAT: u16 = u16::MAX;
/// A seat whose value was withdrawn, and for which there is no backup.
const EMPTY: u16 = u16::MAX;

impl Path {
    pub(super) fn new(tag: Tag, index: u32, plane: u8) -> Self {
        Path { tag, index, plane, state: State::Good, successes: 0, seat: NO_SEAT, marked_in: 0 }
    }
}

/// Parameters of a rotation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) skip: OnceOr<RotationOr<Time>>,
    pub(super) restores_all: bool,
    pub(super) by_plane: bool,
    pub(super) reshuffle: u32,
    /// Values that stay, regardless of losses.
    pub(super) least: u32,
}

#[derive(Debug)]
pub(super) struct Rotation {
    paths: Box<[Path]>,
    /// Tags in ascending order with their values.
    by_tag: Box<[(Tag, u16)]>,
    /// The order: seat k is of plane k % `planes`.
    seats: Box<[u16]>,
    /// Backups in the order in which they are used.
    backups: Vec<u16>,
    planes: u32,
    /// Planes whose ports are down, one bit each.
    masked: u32,
    /// Next seat; with a cursor per plane, that of each.
    cursors: Box<[u16]>,
    /// Plane whose turn it is, with a cursor per plane.
    turn: u32,
    rotations: u64,
    rules: Rules,
    /// Values that are good or skipped, backups included; and withdrawn after losses.
    usable: u32,
    withdrawn: u32,
    stream: Stream,
    /// Changes of states, where they are recorded.
    changes: Option<Vec<(Time, Tag, State)>>,
}

impl Rotation {
    /// Creates the rotation over the first `active` of `paths`, planes interleaved; the others are backups.
    pub(super) fn new(mut paths: Vec<Path>, active: usize, planes: u32, rules: Rules, stream: Stream) -> Self {
        let mut by_tag: Vec<(Tag, u16)> = paths.iter().zip(0..).map(|(path, value)| (path.tag, value)).collect();
        by_tag.sort_unstable();
        for (seat, path) in (0..active as u16).zip(&mut paths) {
            path.seat = seat;
        }
        let (usable, count) = (paths.len() as u32, paths.len() as u16);
        let cursors = if rules.by_plane { planes } else { 1 };
        Rotation {
            paths: paths.into(),
            by_tag: by_tag.into(),
            seats: (0..active as u16).collect(),
            backups: (active as u16..count).collect(),
            planes,
            masked: 0,
            cursors: (0..cursors as u16).collect(),
            turn: 0,
            rotations: 0,
            rules,
            usable,
            withdrawn: 0,
            stream,
            changes: None,
        }
    }

    /// Returns the value of a tag.
    #[inline]
    pub(super) fn find(&self, tag: Tag) -> Option<u16> {
        let at = self.by_tag.binary_search_by_key(&tag, |known| known.0).ok()?;
        Some(self.by_tag[at].1)
    }

    pub(super) fn tag(&self, value: u16) -> Tag {
        self.paths[usize::from(value)].tag
    }

    pub(super) fn changes(&mut self) -> &mut Option<Vec<(Time, Tag, State)>> {
        &mut self.changes
    }

    #[inline]
    fn set(&mut self, now: Time, value: u16, state: State) {
        let path = &mut self.paths[usize::from(value)];
        path.state = state;
        if let Some(changes) = &mut self.changes {
            changes.push((now, path.tag, state));
        }
    }

    /// Returns the number of values in this state.
    pub(super) fn count(&self, state: State) -> usize {
        self.paths.iter().filter(|path| path.state == state).count()
    }

    pub(super) fn withdrawn(&self) -> u32 {
        self.withdrawn
    }

    /// Returns `true` if some seat has a value whose port is up.
    pub(super) fn has_usable(&self) -> bool {
        let is_up = |value: &u16| *value != EMPTY && self.masked >> self.paths[usize::from(*value)].plane & 1 == 0;
        self.seats.iter().any(is_up)
    }

    /// Selects the value of the next packet, of a plane whose bit in `free` is set; returns its tag.
    #[inline]
    pub(super) fn select(&mut self, now: Time, free: u32) -> Option<Tag> {
        let free = free & !self.masked;
        if !self.rules.by_plane {
            return self.scan(now, free, 0);
        }
        for _ in 0..self.planes {
            let plane = self.turn;
            self.turn = if plane + 1 == self.planes { 0 } else { plane + 1 };
            if free >> plane & 1 == 1
                && let Some(tag) = self.scan(now, free, plane as usize)
            {
                return Some(tag);
            }
        }
        None
    }

    /// Advances cursor number `cursor` to a value that may be used.
    #[inline]
    fn scan(&mut self, now: Time, free: u32, cursor: usize) -> Option<Tag> {
        let before = self.rotations;
        let tag = self.find_next(now, free, cursor);
        // The order changes between two scans, so that each passes every seat.
        if self.rotations != before
            && self.rules.reshuffle > 0
            && self.rotations.is_multiple_of(u64::from(self.rules.reshuffle))
        {
            self.reshuffle();
        }
        tag
    }

    #[inline]
    fn find_next(&mut self, now: Time, free: u32, cursor: usize) -> Option<Tag> {
        let (count, stride) = (self.seats.len(), self.cursors.len());
        let mut at = usize::from(self.cursors[cursor]);
        let mut restored = None;
        for _ in 0..count / stride {
            let (value, rotation) = (self.seats[at], self.rotations);
            at += stride;
            if at >= count {
                at -= count;
                self.rotations += u64::from(cursor == 0);
            }
            if value == EMPTY {
                continue;
            }
            let path = &mut self.paths[usize::from(value)];
            if free >> path.plane & 1 == 0 {
                continue;
            }
            let is_over = match self.rules.skip {
                OnceOr::Once => false,
                OnceOr::Value(RotationOr::Rotation) => path.marked_in < rotation,
                OnceOr::Value(RotationOr::Value(time)) => path.marked_in.saturating_add(time.ps()) <= now.ps(),
            };
            let (tag, is_skipped) = (path.tag, path.state == State::Skipped);
            if is_skipped && !is_over {
                // Good for the next packet that reaches it, not for this one.
                if restored.is_none() || self.rules.restores_all {
                    if self.rules.skip == OnceOr::Once {
                        self.set(now, value, State::Good);
                    }
                    restored = restored.or(Some((at, value)));
                }
                continue;
            }
            if is_skipped {
                self.set(now, value, State::Good);
            }
            self.cursors[cursor] = at as u16;
            return Some(tag);
        }
        // Only now the restored value may be used.
        let (at, value) = restored?;
        self.cursors[cursor] = at as u16;
        if self.paths[usize::from(value)].state == State::Skipped {
            self.set(now, value, State::Good);
        }
        Some(self.tag(value))
    }

    /// Shuffles the seats of every plane among themselves.
    #[cold]
    fn reshuffle(&mut self) {
        let (planes, count) = (self.planes as usize, self.seats.len());
        for plane in 0..planes.min(count) {
            let own = (count - plane).div_ceil(planes);
            for j in (1..own).rev() {
                let other = self.stream.below(j as u64 + 1) as usize;
                self.seats.swap(plane + j * planes, plane + other * planes);
            }
        }
        for (seat, value) in self.seats.iter().enumerate().filter(|(_, value)| **value != EMPTY) {
            self.paths[usize::from(*value)].seat = seat as u16;
        }
    }

    /// Skips a good value: a packet over it was marked, or trimmed before its last hop.
    #[inline]
    pub(super) fn on_congestion(&mut self, now: Time, tag: Tag) {
        if let Some(value) = self.find(tag) {
            self.skip(now, value);
        }
    }

    fn skip(&mut self, now: Time, value: u16) {
        // A second mark while it is skipped has no effect.
        if self.paths[usize::from(value)].state == State::Good {
            let is_timed = matches!(self.rules.skip, OnceOr::Value(RotationOr::Value(_)));
            self.paths[usize::from(value)].marked_in = if is_timed { now.ps() } else { self.rotations };
            self.set(now, value, State::Skipped);
        }
    }

    /// Withdraws a value after a loss, or skips it where too few would be left.
    pub(super) fn on_loss(&mut self, now: Time, tag: Tag) {
        let Some(value) = self.find(tag) else { return };
        if !matches!(self.paths[usize::from(value)].state, State::Good | State::Skipped) {
            return;
        }
        if self.usable <= self.rules.least {
            return self.skip(now, value);
        }
        self.withdrawn += 1;
        self.take_away(now, value, State::Withdrawn);
    }

    /// Removes a usable value from the rotation, where a backup of its plane replaces it, or from the backups.
    fn take_away(&mut self, now: Time, value: u16, state: State) {
        self.usable -= 1;
        self.set(now, value, state);
        let path = &mut self.paths[usize::from(value)];
        let (plane, seat) = (path.plane, std::mem::replace(&mut path.seat, NO_SEAT));
        path.successes = 0;
        if seat == NO_SEAT {
            return self.backups.retain(|backup| *backup != value);
        }
        let next = self.backups.iter().position(|backup| self.paths[usize::from(*backup)].plane == plane);
        let next = next.map_or(EMPTY, |at| self.backups.remove(at));
        self.seats[usize::from(seat)] = next;
        if next != EMPTY {
            self.paths[usize::from(next)].seat = seat;
        }
    }

    /// Returns a value to the end of the backups, or to an empty seat of its plane.
    fn give_back(&mut self, now: Time, value: u16) {
        self.usable += 1;
        self.set(now, value, State::Good);
        let plane = self.paths[usize::from(value)].plane;
        let own = (usize::from(plane)..self.seats.len()).step_by(self.planes as usize);
        let seat = own.into_iter().find(|seat| self.seats[*seat] == EMPTY);
        let path = &mut self.paths[usize::from(value)];
        path.successes = 0;
        match seat {
            Some(seat) => {
                path.seat = seat as u16;
                self.seats[seat] = value;
            }
            None => self.backups.push(value),
        }
    }

    /// Returns the withdrawn value at or after `from`, in turn.
    pub(super) fn next_withdrawn(&self, from: u16) -> Option<u16> {
        let count = self.paths.len();
        let turn = |step: usize| (usize::from(from) + step) % count;
        (0..count).map(turn).find(|at| self.paths[*at].state == State::Withdrawn).map(|at| at as u16)
    }

    /// Counts a reply to the probe of a withdrawn value, which returns after `enough` in a row: skipped, if the probe was marked.
    pub(super) fn on_probe_reply(&mut self, now: Time, value: u16, ecn: bool, enough: u32) {
        let path = &mut self.paths[usize::from(value)];
        // The NIC sends probes of a port that is down over another one.
        if path.state != State::Withdrawn || self.masked >> path.plane & 1 == 1 {
            return;
        }
        path.successes = path.successes.saturating_add(1);
        if u32::from(path.successes) >= enough {
            self.withdrawn -= 1;
            self.give_back(now, value);
            if ecn {
                self.skip(now, value);
            }
        }
    }

    pub(super) fn on_probe_lost(&mut self, value: u16) {
        self.paths[usize::from(value)].successes = 0;
    }

    /// Denies the values of these paths, and allows all others that were denied.
    pub(super) fn deny(&mut self, now: Time, denied: &[bool]) {
        for value in 0..self.paths.len() as u16 {
            let path = self.paths[usize::from(value)];
            let is_denied = denied.get(path.index as usize).copied().unwrap_or(false);
            match path.state {
                State::Denied if !is_denied => self.give_back(now, value),
                State::Withdrawn if is_denied => {
                    self.withdrawn -= 1;
                    self.set(now, value, State::Denied);
                }
                State::Good | State::Skipped if is_denied => self.take_away(now, value, State::Denied),
                _ => {}
            }
        }
    }

    /// Sets the planes whose ports are down; states are kept.
    pub(super) fn mask(&mut self, planes: u32) {
        self.masked = planes;
    }

    /// Sorts the values of the rotation by tag.
    #[cfg(test)]
    pub(super) fn in_order(&mut self) {
        let active = self.seats.len();
        self.paths[..active].sort_by_key(|path| path.tag);
        for (seat, path) in (0..).zip(&mut self.paths[..active]) {
            path.seat = seat;
        }
        self.by_tag = self.paths.iter().zip(0..).map(|(path, value)| (path.tag, value)).collect();
        self.by_tag.sort_unstable();
    }

    #[cfg(test)]
    pub(super) fn state(&self, tag: Tag) -> State {
        self.paths[usize::from(self.find(tag).expect("a value of the flow"))].state
    }
}
