//! Event queues of the cells of one thread.
//!
//! Nearly every event is pushed for a later window: an append to its cell's list. At the cell's turn the events of the
//! window are sorted at once: scattered into as many buckets as there are events, then put in order by insertion. The
//! few events that a cell pushes into its own running window wait in a heap.

use crate::event::{Due, Event};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Events this many picoseconds beyond the window wait in a heap, so that a cell does not scan them in every window.
const FAR: u64 = 1 << 24;
const BUCKETS: usize = 1 << 14;
/// Buckets up to this size are put in order by insertion; larger ones (synchronous starts) are sorted.
const SMALL: u32 = 16;

#[derive(Debug, Default)]
struct Cell {
    /// Events of later windows, unordered.
    later: Vec<Event>,
    far: BinaryHeap<Reverse<Event>>,
}

/// Cells of one thread, one of which runs at a time.
#[derive(Debug)]
pub struct Cells {
    cells: Vec<Cell>,
    /// Per cell, a lower bound of the time of its events.
    next: Vec<u64>,
    running: u32,
    /// Its window: from `base` to before `end`.
    base: u64,
    end: u64,
    /// Its events, sorted; `position` is the index of the next one.
    due: Vec<Due>,
    position: usize,
    soon: BinaryHeap<Reverse<Due>>,
    /// Empty list, filled with the events that a cell keeps for later.
    kept: Vec<Event>,
    counts: Box<[u32; BUCKETS]>,
    late: Option<Event>,
}

impl Cells {
    /// Longest window, in picoseconds: times within it fit into 32 bits.
    pub const LONGEST_WINDOW: u64 = u32::MAX as u64;

    /// Returns `cells` cells without events.
    pub fn new(cells: usize) -> Self {
        Cells {
            cells: (0..cells).map(|_| Cell::default()).collect(),
            next: vec![u64::MAX; cells],
            running: u32::MAX,
            base: 0,
            end: 0,
            due: Vec::new(),
            position: 0,
            soon: BinaryHeap::new(),
            kept: Vec::new(),
            counts: Box::new([0; BUCKETS]),
            late: None,
        }
    }

    /// Adds an event to a cell: to the running one at any time from now on, to another from the end of the window on.
    #[inline]
    pub fn push(&mut self, cell: u32, event: Event) {
        if event.time.wrapping_sub(self.end) >= FAR {
            return self.push_aside(cell, event);
        }
        self.cells[cell as usize].later.push(event);
        let next = &mut self.next[cell as usize];
        *next = (*next).min(event.time);
    }

    #[cold]
    fn push_aside(&mut self, cell: u32, event: Event) {
        if event.time >= self.end {
            self.next[cell as usize] = self.next[cell as usize].min(event.time);
            self.cells[cell as usize].far.push(Reverse(event));
        } else if cell == self.running && event.time >= self.base {
            self.soon.push(Reverse(Due::new(&event, self.base)));
        } else {
            self.late.get_or_insert(event);
        }
    }

    /// Starts the cell's next window at `time` at the latest, even without an event.
    #[inline]
    pub fn wake(&mut self, cell: u32, time: u64) {
        let next = &mut self.next[cell as usize];
        *next = (*next).min(time);
    }

    /// Returns a lower bound of the next event's time in any cell; `u64::MAX`: no event is left.
    pub fn next_time(&self) -> u64 {
        self.next.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Returns a lower bound of the next event's time in the cell.
    #[inline]
    pub fn next_of(&self, cell: u32) -> u64 {
        self.next[cell as usize]
    }

    /// Begins the turn of `cell`: [`Cells::pop`] returns its events from `base` to before `end`, at most
    /// [`Cells::LONGEST_WINDOW`] later. No event may precede the window.
    pub fn open(&mut self, cell: u32, base: u64, end: u64) {
        debug_assert!(base <= self.next[cell as usize] && end - base <= Self::LONGEST_WINDOW);
        (self.running, self.base, self.end) = (cell, base, end);
        let Cell { later, far } = &mut self.cells[cell as usize];
        let (due, counts, kept) = (&mut self.due, &mut self.counts[..], &mut self.kept);
        let mut next = u64::MAX;
        // About as many buckets as there are events; an event's bucket follows from its time alone.
        let buckets = later.len().next_power_of_two().clamp(1, BUCKETS);
        let shift = (u64::BITS - (end - base - 1).leading_zeros()).saturating_sub(buckets.trailing_zeros());
        let bucket = |event: &Event| ((event.time - base) >> shift) as usize & (BUCKETS - 1);
        counts[..buckets].fill(0);
        let mut taken = 0;
        for event in later.iter() {
            // Nearly every event belongs to the very next window of its cell.
            if event.time < end {
                counts[bucket(event)] += 1;
                taken += 1;
            } else {
                next = next.min(event.time);
                kept.push(*event);
            }
        }
        let (mut sum, mut most) = (0, 0);
        for count in &mut counts[..buckets] {
            most = most.max(*count);
            sum += std::mem::replace(count, sum);
        }
        due.resize(taken, Due::default());
        for event in later.iter().filter(|event| event.time < end) {
            let place = &mut counts[bucket(event)];
            due[*place as usize] = Due::new(event, base);
            *place += 1;
        }
        later.clear();
        std::mem::swap(later, kept);
        if most > SMALL {
            // Each count is now the end of its bucket.
            let mut start = 0;
            for &end in &counts[..buckets] {
                if end - start > SMALL {
                    due[start as usize..end as usize].sort_unstable();
                }
                start = end;
            }
        }
        insertion_sort(due);
        while let Some(Reverse(event)) = far.peek() {
            if event.time >= end {
                next = next.min(event.time);
                break;
            }
            self.soon.push(Reverse(Due::new(event, base)));
            far.pop();
        }
        self.next[cell as usize] = next;
        self.position = 0;
    }

    /// Returns the next event of the running cell in its window.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        if !self.soon.is_empty() {
            return self.pop_merged();
        }
        let due = *self.due.get(self.position)?;
        self.position += 1;
        Some(due.event(self.base))
    }

    #[cold]
    fn pop_merged(&mut self) -> Option<Event> {
        let soon = self.soon.peek().map(|Reverse(due)| *due);
        let sorted = self.due.get(self.position).copied();
        let due = match (soon, sorted) {
            (Some(soon), Some(sorted)) if sorted < soon => {
                self.position += 1;
                sorted
            }
            (None, sorted) => {
                self.position += 1;
                sorted?
            }
            (Some(soon), _) => {
                self.soon.pop();
                soon
            }
        };
        Some(due.event(self.base))
    }

    /// Returns order and payload of the event `ahead` places after the next one, if it is in the window: a prefetch hint.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<(u32, u32)> {
        self.due.get(self.position + ahead).map(|due| (due.key as u32, due.payload))
    }

    /// Ends the turn of the running cell; every event before `end` has been handled.
    #[inline]
    pub fn close(&mut self) {
        debug_assert!(self.position >= self.due.len());
        if let Some(Reverse(due)) = self.soon.pop() {
            self.late.get_or_insert(due.event(self.base));
        }
        self.running = u32::MAX;
        self.base = self.end;
    }

    /// Returns the end of the current or last window.
    #[inline]
    pub fn window_end(&self) -> u64 {
        self.end
    }

    /// Returns an event that was pushed for a time that its cell has already passed: a bug of the model.
    pub fn late(&self) -> Option<&Event> {
        self.late.as_ref()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let later: usize = self.cells.iter().map(|cell| cell.later.len() + cell.far.len()).sum();
        later + self.soon.len() + self.due.len().saturating_sub(self.position)
    }

    /// Returns the bytes of memory held.
    pub fn bytes(&self) -> usize {
        let events: usize = self.cells.iter().map(|cell| cell.later.capacity() + cell.far.capacity()).sum();
        events * size_of::<Event>()
            + (self.due.capacity() + self.soon.capacity()) * size_of::<Due>()
            + self.kept.capacity() * size_of::<Event>()
            + size_of_val(&*self.counts)
            + self.cells.len() * (size_of::<Cell>() + 8)
    }
}

#[inline]
fn insertion_sort(due: &mut [Due]) {
    let mut last = Due::default();
    for index in 0..due.len() {
        let event = due[index];
        if event >= last {
            last = event;
            continue;
        }
        let mut at = index;
        while at > 0 && due[at - 1] > event {
            due[at] = due[at - 1];
            at -= 1;
        }
        due[at] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(cells: &mut Cells, cell: u32, base: u64, end: u64) -> Vec<Event> {
        cells.open(cell, base, end);
        let events = std::iter::from_fn(|| cells.pop()).collect();
        cells.close();
        events
    }

    #[test]
    fn many_ties_at_one_instant_are_sorted() {
        let mut cells = Cells::new(1);
        for order in 0..5_000u32 {
            cells.push(0, Event { time: 7, order: order * 7919 % 5_000, payload: order });
        }
        let orders: Vec<u32> = drain(&mut cells, 0, 0, 100).iter().map(|e| e.order).collect();
        assert_eq!(orders, (0..5_000).collect::<Vec<_>>());
    }

    #[test]
    fn only_own_cell_may_push_into_current_window() {
        let mut cells = Cells::new(2);
        cells.push(0, Event { time: 10, order: 0, payload: 0 });
        cells.push(0, Event { time: 30, order: 0, payload: 0 });
        cells.open(0, 10, 100);
        assert_eq!(cells.pop().unwrap().time, 10);
        cells.push(0, Event { time: 20, order: 0, payload: 7 });
        assert_eq!(cells.pop().unwrap().payload, 7);
        cells.push(1, Event { time: 100, order: 0, payload: 0 });
        assert_eq!(cells.late(), None);
        cells.push(1, Event { time: 99, order: 0, payload: 0 });
        assert_eq!(cells.late().unwrap().time, 99);
    }

    proptest! {
        /// Any mix of events over several cells comes out in the order of a sorted list.
        #[test]
        fn behaves_as_a_sorted_list(
            first in prop::collection::vec((0u64..3_000, 0u32..4, 0u32..3), 1..200),
            children in prop::collection::vec((0u64..40, 0u64..60_000_000, 0u32..3), 1..200),
            window in 1u64..400,
        ) {
            let mut cells = Cells::new(3);
            let mut model: [std::collections::BTreeSet<Event>; 3] = Default::default();
            let mut payload = 0;
            let mut event = |time, order| { payload += 1; Event { time, order, payload } };
            for (time, order, cell) in first {
                let event = event(time, order);
                cells.push(cell, event);
                model[cell as usize].insert(event);
            }
            let mut children = children.into_iter();
            loop {
                let base = cells.next_time();
                let least = model.iter().filter_map(|m| m.first()).map(|e| e.time).min();
                prop_assert_eq!(least.unwrap_or(u64::MAX), base);
                if base == u64::MAX { break }
                let end = base + window;
                for cell in 0..3 {
                    cells.open(cell, base, end);
                    while let Some(next) = cells.pop() {
                        prop_assert_eq!(model[cell as usize].pop_first(), Some(next));
                        if let Some((near, far, to)) = children.next() {
                            let own = event(next.time + near, 1);
                            cells.push(cell, own);
                            model[cell as usize].insert(own);
                            let other = event(end + far, 2);
                            cells.push(to, other);
                            model[to as usize].insert(other);
                        }
                    }
                    cells.close();
                }
                prop_assert_eq!(cells.len(), model.iter().map(|m| m.len()).sum::<usize>());
            }
            prop_assert!(cells.len() == 0 && cells.late().is_none());
        }
    }
}
