//! Congestion history: a penalty per path that decays with every packet (PRIME §III-D, specification 5.4).
//!
//! Nothing is decremented: a clock counts the decay, and a penalised path carries a stamp, the clock at which its
//! penalty ends. Doubly linked lists threaded through the paths hold them by signal, the least penalised in front. A
//! signal with a constant penalty appends, so every operation is O(1), amortised; one with varying penalties passes over
//! the later stamps of its list. Stamps and clock wrap; penalties are at most 2^30, so differences determine the order.

/// Not in a list.
const NONE: u16 = u16::MAX;
/// Not in a list, and excluded.
const DEAD: u16 = u16::MAX - 1;
/// Maximum penalty and maximum decay.
pub(crate) const MAX_PENALTY: u32 = 1 << 30;

#[derive(Clone, Copy, Debug)]
struct ListNode {
    stamp: u32,
    /// Next path in its list, or NONE or DEAD.
    next: u16,
    previous: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// An ECN mark: penalises only a path without penalty.
    Mark,
    /// A trimmed or lost packet: overrides a smaller penalty.
    Loss,
    /// A timed-out packet: as a loss, with its own penalty if configured.
    Timeout,
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Paths, then the heads of the lists: marks, losses and, with a penalty of their own, timeouts. Empty before the first
    /// penalty or dead path: most flows of a large fabric are short and never have one.
    entries: Box<[ListNode]>,
    paths: u16,
    end: u16,
    listed: u16,
    live: u16,
    clock: u32,
    larger: Signal,
    /// A loss leaves the penalty of a mark as it is.
    keeps_marks: bool,
    /// Per path: its last penalty is that of a mark. Empty unless `keeps_marks`.
    by_mark: Box<[bool]>,
    /// The least penalised paths have been released although their penalty lasts until this stamp.
    released: Option<u32>,
}

#[inline]
fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl History {
    /// Creates the state of `paths` paths (at most 2^16 - 5) without penalties. `larger` is the signal with the largest
    /// penalty; only [`Signal::Timeout`] gives timeouts a list of their own.
    /// With `keeps_marks` a loss does not replace the penalty of a mark.
    pub(crate) fn new(paths: u16, larger: Signal, keeps_marks: bool) -> Self {
        let end = paths + if larger == Signal::Timeout { 3 } else { 2 };
        let (entries, by_mark) = (Box::default(), Box::default());
        History { entries, paths, end, listed: 0, live: paths, clock: 0, released: None, larger, keeps_marks, by_mark }
    }

    fn allocate(&mut self) {
        if self.entries.is_empty() {
            let mut entries = vec![ListNode { stamp: 0, next: NONE, previous: NONE }; self.end as usize];
            for head in self.paths..self.end {
                entries[head as usize] = ListNode { stamp: 0, next: head, previous: head };
            }
            self.entries = entries.into();
            if self.keeps_marks {
                self.by_mark = vec![false; usize::from(self.paths)].into();
            }
        }
    }

    /// Returns `true` if a path waits for its penalty to decay. A released path does not wait.
    #[inline]
    pub(crate) fn waits(&self, path: u16) -> bool {
        self.entries.get(path as usize).is_some_and(|entry| entry.next < DEAD)
    }

    #[inline]
    pub(crate) fn all_wait(&self) -> bool {
        self.listed == self.live
    }

    /// Returns the number of paths that wait.
    pub(crate) fn listed(&self) -> u16 {
        self.listed
    }

    /// Returns the sum of the decays so far; it wraps.
    #[inline]
    pub(crate) fn clock(&self) -> u32 {
        self.clock
    }

    /// Returns `true` if a mark would penalise the path.
    pub(crate) fn heeds_mark(&self, path: u16) -> bool {
        self.entries.get(path as usize).is_none_or(|entry| entry.next != DEAD) && self.penalty(path) == 0
    }

    pub(crate) fn penalty(&self, path: u16) -> u32 {
        match (self.waits(path), self.released) {
            (true, _) => self.entries[path as usize].stamp.wrapping_sub(self.clock),
            (false, Some(stamp)) => stamp.wrapping_sub(self.clock),
            (false, None) => 0,
        }
    }

    /// Penalises a path. Returns `true` if it starts to wait.
    pub(crate) fn penalise(&mut self, path: u16, signal: Signal, penalty: u32) -> bool {
        self.allocate();
        let entry = self.entries[path as usize];
        let stamp = self.clock.wrapping_add(penalty.min(MAX_PENALTY));
        let until = match entry.next {
            DEAD => return false,
            NONE => self.released.unwrap_or(self.clock),
            _ => entry.stamp,
        };
        let penalised = after(until, self.clock);
        if !after(stamp, until) || signal == Signal::Mark && penalised {
            return false;
        }
        if self.keeps_marks {
            if signal == Signal::Loss && penalised && self.by_mark[path as usize] {
                return false;
            }
            self.by_mark[path as usize] = signal == Signal::Mark;
        }
        let waited = self.waits(path);
        if waited {
            self.unlink(path);
        }
        let head = self.head(signal);
        self.entries[path as usize].stamp = stamp;
        let mut previous = self.entries[head as usize].previous;
        while previous != head && after(self.entries[previous as usize].stamp, stamp) {
            previous = self.entries[previous as usize].previous;
        }
        self.link(path, previous, self.entries[previous as usize].next);
        !waited
    }

    /// Decays all penalties by `decay` after a packet. Calls `free` for each path whose penalty has ended.
    #[inline]
    pub(crate) fn tick(&mut self, decay: u32, mut free: impl FnMut(u16)) {
        self.clock = self.clock.wrapping_add(decay);
        if self.listed > 0 {
            self.pop_until(self.clock, &mut free);
        }
        if self.released.is_some_and(|stamp| !after(stamp, self.clock)) {
            self.released = None;
        }
    }

    #[cold]
    pub(crate) fn release(&mut self, mut free: impl FnMut(u16)) {
        self.allocate();
        let fronts = (self.paths..self.end).map(|head| self.entries[head as usize].next);
        let least = fronts
            .filter(|&path| path < self.paths)
            .map(|path| self.entries[path as usize].stamp)
            .reduce(|a, b| if after(a, b) { b } else { a });
        if let Some(stamp) = least {
            self.released = Some(stamp);
            self.pop_until(stamp, &mut free);
        }
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = u16> {
        (0..self.paths).filter(|&path| self.waits(path))
    }

    /// Sets the dead paths (all: none). One that dies or returns has no penalty. Passes each path's usability to `set`.
    pub(crate) fn set_dead(&mut self, dead: &[bool], mut set: impl FnMut(u16, bool)) {
        self.allocate();
        // The released paths wait again. With constant penalties that is at the front of a list, since none is due
        // earlier; in the list of the larger penalty no later entry is due earlier either.
        if let Some(stamp) = self.released.take() {
            let head = self.head(self.larger);
            for path in 0..self.paths {
                if self.entries[path as usize].next == NONE {
                    self.entries[path as usize].stamp = stamp;
                    let mut next = self.entries[head as usize].next;
                    while next != head && after(stamp, self.entries[next as usize].stamp) {
                        next = self.entries[next as usize].next;
                    }
                    self.link(path, self.entries[next as usize].previous, next);
                }
            }
        }
        let is_dead = |path: u16| dead.get(path as usize).copied().unwrap_or(false);
        let none = (0..self.paths).all(is_dead);
        self.live = 0;
        for path in 0..self.paths {
            let (dies, was_dead) = (!none && is_dead(path), self.entries[path as usize].next == DEAD);
            if dies && self.waits(path) {
                self.unlink(path);
            }
            if dies != was_dead {
                self.entries[path as usize].next = if dies { DEAD } else { NONE };
            }
            self.live += u16::from(!dies);
            set(path, !dies && !self.waits(path));
        }
    }

    fn pop_until(&mut self, stamp: u32, free: &mut impl FnMut(u16)) {
        for head in self.paths..self.end {
            loop {
                let front = self.entries[head as usize].next;
                if front == head || after(self.entries[front as usize].stamp, stamp) {
                    break;
                }
                self.unlink(front);
                free(front);
            }
        }
    }

    fn head(&self, signal: Signal) -> u16 {
        self.paths
            + match signal {
                Signal::Mark => 0,
                Signal::Loss => 1,
                Signal::Timeout => self.end - self.paths - 1,
            }
    }

    fn link(&mut self, path: u16, previous: u16, next: u16) {
        self.entries[path as usize].previous = previous;
        self.entries[path as usize].next = next;
        self.entries[previous as usize].next = path;
        self.entries[next as usize].previous = path;
        self.listed += 1;
    }

    fn unlink(&mut self, path: u16) {
        let ListNode { previous, next, .. } = self.entries[path as usize];
        self.entries[previous as usize].next = next;
        self.entries[next as usize].previous = previous;
        self.entries[path as usize].next = NONE;
        self.listed -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_allocated_with_the_first_penalty() {
        let mut h = History::new(1000, Signal::Loss, false);
        h.tick(5, |_| panic!("nothing waits"));
        assert!(!h.waits(999) && !h.all_wait() && h.waiting().next().is_none());
        assert!(h.entries.is_empty());
        assert!(h.penalise(999, Signal::Mark, 3));
        // 1,000 paths and two heads.
        assert_eq!((h.entries.len(), h.penalty(999), h.waiting().collect::<Vec<_>>()), (1002, 3, vec![999]));
    }

    #[test]
    fn marks_of_varying_length_stay_sorted() {
        // Marks of 9, 2 and 5 in this order end in the order 2, 5, 9.
        let mut h = History::new(4, Signal::Loss, false);
        assert!(h.heeds_mark(3));
        for (path, penalty) in [(0, 9), (1, 2), (2, 5)] {
            h.penalise(path, Signal::Mark, penalty);
        }
        assert!(!h.heeds_mark(0) && h.heeds_mark(3));
        let mut freed = Vec::new();
        (0..9).for_each(|_| h.tick(1, |path| freed.push(path)));
        assert_eq!((freed, h.clock()), (vec![1, 2, 0], 9));
        // A released mark of 20 waits behind a loss of 4 when paths change.
        let mut h = History::new(2, Signal::Loss, false);
        h.penalise(0, Signal::Mark, 20);
        h.penalise(1, Signal::Mark, 20);
        h.release(|_| ());
        h.set_dead(&[false, true], |_, _| ());
        h.set_dead(&[], |_, _| ());
        h.penalise(1, Signal::Loss, 4);
        let mut freed = Vec::new();
        (0..20).for_each(|_| h.tick(1, |path| freed.push(path)));
        assert_eq!(freed, [1, 0]);
    }

    #[test]
    fn the_clock_wraps() {
        let mut h = History::new(2, Signal::Loss, false);
        for _ in 0..40 {
            assert!(h.penalise(0, Signal::Loss, 1 << 29));
            assert!(!h.penalise(0, Signal::Loss, 1 << 28));
            let mut freed = 0;
            h.tick((1 << 29) - 1, |_| freed += 1);
            assert_eq!((freed, h.penalty(0)), (0, 1));
            h.tick(1, |_| freed += 1);
            assert_eq!((freed, h.penalty(0)), (1, 0));
        }
    }
}
