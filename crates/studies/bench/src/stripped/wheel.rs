#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) at: u64,
    pub(super) packet: u32,
}

const RING_BITS: u32 = 13;

/// Ring of time buckets, sorted when the clock reaches them; events beyond its horizon are kept apart.
pub(super) struct Wheel {
    ring: Vec<Vec<Event>>,
    beyond: Vec<Event>,
    bits: u32,
    current: u64,
    next: usize,
    pending: usize,
}

impl Wheel {
    pub(super) fn new(bits: u32) -> Self {
        let ring = (0..1usize << RING_BITS).map(|_| Vec::with_capacity(64)).collect();
        Wheel { ring, beyond: Vec::new(), bits, current: 0, next: 0, pending: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        let bucket = event.at >> self.bits;
        self.pending += 1;
        if bucket - self.current >= 1 << RING_BITS {
            self.beyond.push(event);
            return;
        }
        let slot = &mut self.ring[bucket as usize & ((1 << RING_BITS) - 1)];
        slot.push(event);
        if bucket == self.current {
            let key = (event.at, event.packet);
            let mut hole = slot.len() - 1;
            while hole > self.next && (slot[hole - 1].at, slot[hole - 1].packet) > key {
                slot[hole] = slot[hole - 1];
                hole -= 1;
            }
            slot[hole] = event;
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.pending == 0 {
            return None;
        }
        let mask = (1usize << RING_BITS) - 1;
        loop {
            let slot = &mut self.ring[self.current as usize & mask];
            if let Some(&event) = slot.get(self.next) {
                self.next += 1;
                self.pending -= 1;
                return Some(event);
            }
            slot.clear();
            self.next = 0;
            self.current += 1;
            // Twice per turn of the ring is enough: events apart are a whole turn away.
            if !self.beyond.is_empty() && self.current.is_multiple_of(1 << (RING_BITS - 1)) {
                let (current, bits) = (self.current, self.bits);
                let near = |e: &mut Event| (e.at >> bits) - current < 1 << RING_BITS;
                for event in self.beyond.extract_if(.., near) {
                    self.ring[(event.at >> bits) as usize & mask].push(event);
                }
            }
            self.ring[self.current as usize & mask].sort_unstable_by_key(|e| (e.at, e.packet));
        }
    }
}
