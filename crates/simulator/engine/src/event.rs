//! Events and their order.

/// Event of 16 bytes, ordered by (time, order, payload).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Time in picoseconds.
    pub time: u64,
    /// Canonical rank among events of the same time; its meaning is the model's.
    pub order: u32,
    /// Data that the model gets back.
    pub payload: u32,
}

/// Event of the running window, ordered by `key` except for ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Time since the start of the window in the upper half, order in the lower.
    pub(crate) key: u64,
    pub(crate) payload: u32,
}

impl Due {
    /// Converts an event less than 2^32 ps after `base`, the start of its window.
    #[inline]
    pub(crate) fn new(event: &Event, base: u64) -> Self {
        debug_assert!(event.time - base <= u64::from(u32::MAX));
        Due { key: (event.time - base) << 32 | u64::from(event.order), payload: event.payload }
    }

    /// Returns key and payload as one number: compared without a branch for ties.
    #[inline]
    fn rank(self) -> u128 {
        u128::from(self.key) << 64 | u128::from(self.payload)
    }

    #[inline]
    pub(crate) fn event(self, base: u64) -> Event {
        Event { time: base + (self.key >> 32), order: self.key as u32, payload: self.payload }
    }
}

impl Ord for Due {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Due {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.rank() < other.rank()
    }
    #[inline]
    fn gt(&self, other: &Self) -> bool {
        self.rank() > other.rank()
    }
    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.rank() >= other.rank()
    }
}
