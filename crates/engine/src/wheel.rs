//! The event queue: a ring of time buckets, each sorted when the clock reaches it, and a heap for the far future.

use std::{cmp::Reverse, collections::BinaryHeap};

/// An event: 16 bytes, ordered by (time, order, payload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in picoseconds.
    pub time: u64,
    /// Canonical rank among events of the same time; see the model for its meaning.
    pub order: u32,
    /// What the model wants back.
    pub payload: u32,
}

impl Event {
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.order) << 32 | u128::from(self.payload)
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The events of one partition.
///
/// Pushing is O(1) for events within the ring's horizon. Popping sorts a bucket when the clock enters it, so
/// buckets should hold a few to a few hundred events: the bucket width follows the density of events.
#[derive(Debug)]
pub struct Wheel {
    buckets: Vec<Vec<Event>>,
    /// One bit per bucket: whether it holds an event.
    occupied: Vec<u64>,
    shift: u32,
    /// The bucket being handled, sorted; `position` is the next event in it.
    current: Vec<Event>,
    position: usize,
    now_bucket: u64,
    /// Events in `buckets`.
    near: usize,
    far: BinaryHeap<Reverse<Event>>,
}

impl Wheel {
    /// A wheel whose buckets are `2^shift` picoseconds wide and whose ring reaches at least `horizon`
    /// picoseconds ahead.
    pub fn new(shift: u32, horizon: u64) -> Self {
        let buckets = ((horizon >> shift) + 2).next_power_of_two().max(64) as usize;
        Wheel {
            buckets: vec![Vec::new(); buckets],
            occupied: vec![0; buckets / 64],
            shift,
            current: Vec::new(),
            position: 0,
            now_bucket: 0,
            near: 0,
            far: BinaryHeap::new(),
        }
    }

    /// Adds an event. Its time must not lie before the last popped event's.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let bucket = event.time >> self.shift;
        let ahead = bucket.wrapping_sub(self.now_bucket);
        if ahead.wrapping_sub(1) < self.buckets.len() as u64 - 1 {
            let slot = bucket as usize & (self.buckets.len() - 1);
            self.buckets[slot].push(event);
            self.occupied[slot >> 6] |= 1 << (slot & 63);
            self.near += 1;
        } else {
            self.push_aside(event, bucket);
        }
    }

    #[cold]
    fn push_aside(&mut self, event: Event, bucket: u64) {
        if bucket > self.now_bucket {
            self.far.push(Reverse(event));
            return;
        }
        debug_assert!(
            self.position == 0 || self.current[self.position - 1].time <= event.time,
            "an event in the past: {event:?}"
        );
        let at = self.position + self.current[self.position..].partition_point(|e| *e < event);
        self.current.insert(at, event);
    }

    /// The time of the next event.
    pub fn next_time(&mut self) -> Option<u64> {
        if self.position == self.current.len() && !self.advance() {
            return None;
        }
        Some(self.current[self.position].time)
    }

    /// Removes and returns the next event if it lies before `end`.
    #[inline]
    pub fn pop_before(&mut self, end: u64) -> Option<Event> {
        if self.position == self.current.len() && !self.advance() {
            return None;
        }
        let event = self.current[self.position];
        if event.time >= end {
            return None;
        }
        self.position += 1;
        Some(event)
    }

    /// The event `ahead` places after the next one, if it lies in the bucket being handled: a hint of what to fetch.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<Event> {
        self.current.get(self.position + ahead).copied()
    }

    /// Whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.near + self.far.len() + (self.current.len() - self.position)
    }

    /// All pending events, in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = &Event> {
        let far = self.far.iter().map(|Reverse(event)| event);
        self.current[self.position..].iter().chain(self.buckets.iter().flatten()).chain(far)
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        let events =
            self.current.capacity() + self.far.capacity() + self.buckets.iter().map(Vec::capacity).sum::<usize>();
        events * size_of::<Event>() + self.buckets.len() * size_of::<Vec<Event>>()
    }

    /// Moves to the next bucket that holds an event; false where there is none.
    fn advance(&mut self) -> bool {
        self.current.clear();
        self.position = 0;
        let far = self.far.peek().map(|Reverse(event)| event.time >> self.shift);
        let next = match (self.near > 0, far) {
            (false, None) => return false,
            (false, Some(far)) => far,
            (true, None) => self.next_occupied(),
            (true, Some(far)) => self.next_occupied().min(far),
        };
        self.now_bucket = next;
        let slot = next as usize & (self.buckets.len() - 1);
        if self.occupied[slot >> 6] >> (slot & 63) & 1 == 1 {
            self.occupied[slot >> 6] &= !(1 << (slot & 63));
            std::mem::swap(&mut self.current, &mut self.buckets[slot]);
            self.near -= self.current.len();
        }
        if far == Some(next) {
            while let Some(Reverse(event)) = self.far.peek() {
                if event.time >> self.shift != next {
                    break;
                }
                self.current.push(*event);
                self.far.pop();
            }
        }
        self.current.sort_unstable_by_key(Event::key);
        true
    }

    /// The next occupied bucket of the ring after `now_bucket`; there must be one.
    fn next_occupied(&self) -> u64 {
        let (length, words) = (self.buckets.len() as u64, self.occupied.len());
        let first = self.now_bucket + 1;
        let slot = first as usize & (self.buckets.len() - 1);
        let mut word = slot >> 6;
        let mut bits = self.occupied[word] & (!0 << (slot & 63));
        for _ in 0..=words {
            if bits != 0 {
                let found = ((word as u64) << 6) + u64::from(bits.trailing_zeros());
                return first + (found.wrapping_sub(first) & (length - 1));
            }
            word = (word + 1) & (words - 1);
            bits = self.occupied[word];
        }
        unreachable!("a ring that holds events has an occupied bucket")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(wheel: &mut Wheel) -> Vec<Event> {
        std::iter::from_fn(|| wheel.pop_before(u64::MAX)).collect()
    }

    #[test]
    fn same_time_events_come_in_order_of_their_rank() {
        let mut wheel = Wheel::new(4, 1000);
        for (time, order) in [(5, 2), (5, 1), (1, 9), (900_000, 0), (5, 0)] {
            wheel.push(Event { time, order, payload: 0 });
        }
        let order: Vec<_> = drain(&mut wheel).iter().map(|e| (e.time, e.order)).collect();
        assert_eq!(order, [(1, 9), (5, 0), (5, 1), (5, 2), (900_000, 0)]);
    }

    #[test]
    fn pop_before_leaves_later_events() {
        let mut wheel = Wheel::new(3, 100);
        wheel.push(Event { time: 10, order: 0, payload: 0 });
        assert_eq!(wheel.pop_before(10), None);
        assert_eq!(wheel.next_time(), Some(10));
        wheel.push(Event { time: 9, order: 0, payload: 7 });
        assert_eq!(wheel.pop_before(11).unwrap().payload, 7);
        assert_eq!(wheel.len(), 1);
    }

    proptest! {
        /// Any mix of pushes (each not before the last popped time) and pops gives the order of a sorted list.
        #[test]
        fn behaves_as_a_sorted_list(
            steps in prop::collection::vec((0u64..5000, 0u32..4, any::<bool>()), 1..400),
            shift in 0u32..8,
            horizon in 1u64..3000,
        ) {
            let mut wheel = Wheel::new(shift, horizon);
            let mut model = std::collections::BTreeSet::new();
            let (mut now, mut payload) = (0, 0);
            for (delta, order, pop) in steps {
                let event = Event { time: now + delta, order, payload };
                payload += 1;
                wheel.push(event);
                model.insert(event);
                if pop {
                    let expected = model.pop_first();
                    prop_assert_eq!(wheel.pop_before(u64::MAX), expected);
                    now = expected.unwrap().time;
                }
                prop_assert_eq!(wheel.len(), model.len());
                prop_assert_eq!(wheel.pending().count(), model.len());
            }
            prop_assert_eq!(drain(&mut wheel), model.into_iter().collect::<Vec<_>>());
        }
    }
}
