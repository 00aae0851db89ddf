use anabranch_random::Stream;
use anabranch_units::{Rate, Serialiser, Time};

/// Probability in millionths.
pub type Share = u32;

const WHOLE: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Rate at which datagrams leave its queue.
    pub rate: Rate,
    /// Propagation delay after departure.
    pub delay: Time,
    /// Capacity of the queue in bytes, including the datagram being sent.
    pub queue: u64,
    /// Queue length in bytes above which an ECN-capable datagram is marked.
    pub mark_above: u64,
    /// Bytes to which a data packet is trimmed if the queue is full; `None`: it is dropped. Trimmed headers may fill as
    /// much space again.
    pub trim_to: Option<usize>,
    /// Bytes on the wire per datagram besides its own.
    pub overhead: u64,
    /// Bytes of the largest datagram that passes.
    pub largest: usize,
    /// ECN-capable datagrams are dropped.
    pub drops_ecn: bool,
    /// Share of datagrams lost.
    pub loss: Share,
    /// Share of datagrams that arrive twice.
    pub duplicates: Share,
    /// Share of datagrams delayed by up to `late_by`, so that others overtake them.
    pub late: Share,
    /// Maximum extra delay of a late datagram.
    pub late_by: Time,
    /// Share of datagrams with bit errors that no hardware check detects.
    pub damage: Share,
    /// Intervals (start, end) of cuts.
    pub cuts: Vec<(Time, Time)>,
}

impl Link {
    /// Returns a link without losses and with an unlimited queue.
    pub fn new(rate: Rate, delay: Time) -> Self {
        Link {
            rate,
            delay,
            queue: u64::MAX,
            mark_above: u64::MAX,
            trim_to: None,
            overhead: 42,
            largest: usize::MAX,
            drops_ecn: false,
            loss: 0,
            duplicates: 0,
            late: 0,
            late_by: Time::ZERO,
            damage: 0,
            cuts: Vec::new(),
        }
    }
}

/// Counters of a link, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Datagrams passed to the link.
    pub sent: u64,
    /// Their bytes on the wire, without those lost.
    pub bytes: u64,
    /// Datagrams lost, cut off or dropped by the queue.
    pub lost: u64,
    pub trimmed: u64,
    pub marked: u64,
    /// Datagrams that arrived twice.
    pub duplicated: u64,
    /// Datagrams with bit errors.
    pub damaged: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) at: Time,
    pub(super) ecn: bool,
    pub(super) kept: usize,
}

#[derive(Debug)]
pub(super) struct LinkState {
    link: Link,
    serialiser: Serialiser,
    free_at: Time,
    draws: Stream,
    counted: Counted,
}

impl LinkState {
    pub(super) fn new(link: Link, draws: Stream) -> Self {
        let serialiser = Serialiser::new(link.rate);
        LinkState { link, serialiser, free_at: Time::ZERO, draws, counted: Counted::default() }
    }

    pub(super) fn set(&mut self, link: Link) {
        self.serialiser = Serialiser::new(link.rate);
        self.link = link;
    }

    pub(super) fn counted(&self) -> Counted {
        self.counted
    }

    fn happens(&mut self, share: Share) -> bool {
        share > 0 && self.draws.chance(u64::from(share).min(WHOLE), WHOLE)
    }

    /// Returns the datagram's arrivals: none, one or two.
    pub(super) fn send(&mut self, now: Time, bytes: usize, capable: bool) -> [Option<Delivery>; 2] {
        self.counted.sent += 1;
        let cut = self.link.cuts.iter().any(|(from, to)| *from <= now && now < *to);
        if cut || bytes > self.link.largest || (self.link.drops_ecn && capable) || self.happens(self.link.loss) {
            self.counted.lost += 1;
            return [None, None];
        }
        let queued = self.link.rate.bytes_in(self.free_at.saturating_sub(now));
        let mut kept = bytes;
        if queued.saturating_add(bytes as u64 + self.link.overhead) > self.link.queue {
            match self.link.trim_to {
                Some(head) if capable && bytes > head && queued <= self.link.queue.saturating_mul(2) => {
                    kept = head;
                    self.counted.trimmed += 1;
                }
                _ => {
                    self.counted.lost += 1;
                    return [None, None];
                }
            }
        }
        let ecn = capable && queued > self.link.mark_above;
        self.counted.marked += u64::from(ecn);
        let wire = kept as u64 + self.link.overhead;
        self.counted.bytes += wire;
        self.free_at = self.free_at.max(now) + self.serialiser.serialise(wire);
        let mut at = self.free_at + self.link.delay;
        if self.link.late_by > Time::ZERO && self.happens(self.link.late) {
            at += Time::from_ps(self.draws.below(self.link.late_by.ps()));
        }
        let delivery = Delivery { at, ecn, kept };
        let twice = self.happens(self.link.duplicates);
        self.counted.duplicated += u64::from(twice);
        let again = twice
            .then(|| Delivery { at: at + Time::from_ps(self.draws.below(self.link.delay.ps().max(1))), ..delivery });
        [Some(delivery), again]
    }

    /// Makes one to four bit errors, or a run of damaged bytes, with the link's probability.
    pub(super) fn damage(&mut self, bytes: &mut [u8]) {
        if bytes.is_empty() || !self.happens(self.link.damage) {
            return;
        }
        self.counted.damaged += 1;
        let (size, draws) = (bytes.len() as u64, &mut self.draws);
        if draws.chance(1, 4) {
            let from = draws.below(size) as usize;
            let to = bytes.len().min(from + 1 + draws.below(16) as usize);
            // Never zero, so that every byte changes.
            bytes[from..to].iter_mut().for_each(|byte| *byte ^= 1 + draws.below(255) as u8);
        } else {
            let first = draws.below(size) as usize;
            bytes[first] ^= 1 << draws.below(8);
            for _ in 0..draws.below(4) {
                // Not the first byte again, which could restore it.
                let other = draws.below(size) as usize;
                if other != first {
                    bytes[other] ^= 1 << draws.below(8);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_marks_trims_and_drops() {
        // 1000 B take 1 us at 8 Gbit/s; the queue holds three packets, and as many bytes again of trimmed headers.
        let link =
            Link { queue: 3000, mark_above: 999, trim_to: Some(58), ..Link::new(Rate::gbps(8), Time::from_us(10)) };
        let mut state = LinkState::new(link, Stream::keyed(1, 2, "test"));
        let mut send = || state.send(Time::ZERO, 958, true)[0];
        let whole = |us, ecn| Some(Delivery { at: Time::from_us(us), ecn, kept: 958 });
        assert_eq!([send(), send(), send()], [whole(11, false), whole(12, true), whole(13, true)]);
        // 58 + 42 B take 0.1 us.
        assert_eq!(send(), Some(Delivery { at: Time::from_ns(13_100), ecn: true, kept: 58 }));
        for _ in 0..29 {
            assert!(send().is_some());
        }
        assert_eq!(send().map(|delivery| delivery.at), Some(Time::from_us(16) + Time::from_ns(100)));
        assert_eq!(send(), None, "6,100 B wait");
        assert_eq!(state.send(Time::ZERO, 40, false), [None, None], "control is not trimmed");
        let counted = Counted { sent: 36, bytes: 6100, lost: 2, trimmed: 31, marked: 33, duplicated: 0, damaged: 0 };
        assert_eq!(state.counted(), counted);
    }

    #[test]
    fn a_cut_link_loses_everything_while_it_lasts() {
        let link = Link {
            cuts: vec![(Time::from_us(1), Time::from_us(2))],
            duplicates: WHOLE as Share,
            ..Link::new(Rate::gbps(8), Time::from_us(10))
        };
        let mut state = LinkState::new(link, Stream::keyed(1, 2, "test"));
        let mut arrivals = |us| state.send(Time::from_us(us), 1, true).into_iter().flatten().count();
        assert_eq!([arrivals(0), arrivals(1), arrivals(2)], [2, 0, 2]);
    }
}
