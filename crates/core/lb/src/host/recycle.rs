//! A queue of entropy values that returned unmarked (legacy REPS and the mixed scheme, specification 6.1 and 6.3).

use crate::Tag;

/// FIFO of fixed size; when it is full the newest value is dropped.
#[derive(Debug)]
pub(crate) struct Recycle {
    ring: Box<[Tag]>,
    front: u32,
    len: u32,
}

impl Recycle {
    pub(crate) fn new(room: u64) -> Self {
        let room = room.clamp(8, 1 << 16).next_power_of_two() as usize;
        Recycle { ring: vec![0; room].into(), front: 0, len: 0 }
    }
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
    #[inline]
    pub(crate) fn push(&mut self, tag: Tag) {
        if (self.len as usize) < self.ring.len() {
            let mask = self.ring.len() - 1;
            self.ring[(self.front + self.len) as usize & mask] = tag;
            self.len += 1;
        }
    }
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Tag> {
        if self.len == 0 {
            return None;
        }
        let mask = self.ring.len() - 1;
        let tag = self.ring[self.front as usize & mask];
        self.front = (self.front + 1) & mask as u32;
        self.len -= 1;
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out() {
        let mut queue = Recycle::new(5);
        assert_eq!(queue.pop(), None);
        for round in 0..10 {
            for i in 0..10 {
                queue.push(round * 10 + i);
            }
            // Capacity 8.
            assert_eq!((0..9).map(|_| queue.pop()).collect::<Vec<_>>(), {
                let mut expected: Vec<_> = (0..8).map(|i| Some(round * 10 + i)).collect();
                expected.push(None);
                expected
            });
        }
    }
}
