//! Tags of the packets under way, for schemes that heed which packets an acknowledgement covers.

use crate::{Feedback, Tag};

/// Tags of a flow's packets that no acknowledgement has covered: [`Sent::note`] what is sent, then call [`Sent::covered`]. The
/// ring grows with the packets under way.
#[derive(Debug)]
pub struct Sent {
    /// PSN and tag of PSN p at `p & (len - 1)`; [`FREE`]: covered, or never sent.
    ring: Vec<(u64, Tag)>,
    /// Every packet before it is covered.
    first: u64,
    /// PSN after the last one sent.
    end: u64,
}

const FREE: u64 = u64::MAX;

impl Default for Sent {
    fn default() -> Self {
        Sent { ring: vec![(FREE, 0); 64], first: 0, end: 0 }
    }
}

impl Sent {
    fn slot(&mut self, psn: u64) -> &mut (u64, Tag) {
        let mask = self.ring.len() as u64 - 1;
        &mut self.ring[(psn & mask) as usize]
    }

    /// Notes the tag of a packet that is sent, or retransmitted. A packet without another within 65,536 of the first that is not
    /// covered is noted; others are not.
    pub fn note(&mut self, psn: u64, tag: Tag) {
        if self.first == self.end {
            (self.first, self.end) = (psn, psn);
        }
        if psn < self.first || psn - self.first >= 1 << 16 {
            return;
        }
        while psn - self.first >= self.ring.len() as u64 {
            let old = std::mem::take(&mut self.ring);
            self.ring = vec![(FREE, 0); 2 * old.len()];
            old.into_iter().filter(|(psn, _)| *psn != FREE).for_each(|entry| *self.slot(entry.0) = entry);
        }
        *self.slot(psn) = (psn, tag);
        self.end = self.end.max(psn + 1);
    }

    fn take(&mut self, psn: u64) -> Option<Tag> {
        let slot = self.slot(psn);
        let tag = (slot.0 == psn).then_some(slot.1);
        if tag.is_some() {
            slot.0 = FREE;
        }
        tag
    }

    /// Calls `each` with the tag of every packet that the acknowledgement covers and none before it has covered.
    pub fn covered(&mut self, feedback: &Feedback, mut each: impl FnMut(Tag)) {
        let cumulative = feedback.cumulative.min(self.end);
        for psn in self.first..cumulative {
            self.take(psn).into_iter().for_each(&mut each);
        }
        self.first = self.first.max(cumulative);
        let mut bits = feedback.selective;
        while bits != 0 {
            let psn = feedback.selective_from.saturating_add(bits.trailing_zeros().into());
            bits &= bits - 1;
            if (self.first..self.end).contains(&psn) {
                self.take(psn).into_iter().for_each(&mut each);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(sent: &mut Sent, cumulative: u64, selective_from: u64, selective: u64) -> Vec<Tag> {
        let mut tags = Vec::new();
        sent.covered(&Feedback { cumulative, selective_from, selective, ..Feedback::default() }, |tag| tags.push(tag));
        tags
    }

    #[test]
    fn a_worked_trace() {
        let mut sent = Sent::default();
        (0..200).for_each(|psn| sent.note(psn, 1000 + psn as Tag));
        // Below 2, and 4 and 6 of the bitmap from 3 on.
        assert_eq!(covered(&mut sent, 2, 3, 0b1010), [1000, 1001, 1004, 1006]);
        // The same again, in a late acknowledgement, and one of less.
        assert_eq!(covered(&mut sent, 2, 3, 0b1010), []);
        assert_eq!(covered(&mut sent, 1, 2, 0), []);
        // 3 was retransmitted over another path; 4 and 6 are covered already.
        sent.note(3, 7);
        assert_eq!(covered(&mut sent, 8, 0, 0), [1002, 7, 1005, 1007]);
        // Packets that were never sent.
        assert_eq!(covered(&mut sent, u64::MAX, u64::MAX, u64::MAX).len(), 192);
        sent.note(1 << 40, 5);
        assert_eq!(covered(&mut sent, 1 << 41, 0, 0), [5]);
    }
}
