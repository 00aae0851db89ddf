//! Adaptive routing as in PRIME's comparison (PRIME §IV, specification 4.3).
//!
//! Queues are compared by levels: with exact lengths, the port that a flow took last has just become idle at its next
//! packet, so flows keep their ports and their downstream collisions persist.

use crate::{
    Candidates, LocalQueues, PacketView, State, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{self, Hasher},
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::Stream;
use anabranch_settings::{About, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "ar",
    summary: "adaptive routing: the least local queue of all next hops",
    source: "PRIME §IV; specification 4.3 (random ties: ours)",
    description: "Every data packet takes the next hop whose queue at this switch is the shortest, by levels of its \
        filling or exactly; equal queues are drawn among at random. It cannot see congestion further on.",
};

state! {
    /// Next hops with the shortest queue, or in the lowest level, of which one was drawn.
    equal_hops: "links";
}

choices! {
    /// Comparison of queues.
    pub enum Compare {
        /// By the fill levels of `levels`.
        Levels = "levels",
        /// By their bytes.
        Exact = "exact",
    }
}

parameters! {
    pub struct ArParameters {
        /// Comparison of queues.
        compare: Compare = Compare::Levels, source "ours: PRIME says queue size, no more; levels as hardware and Ultra Ethernet's public simulator", Expert;
        /// Upper bounds of the levels, in percent of `fabric.queue_limit`; one more level is above the last. No effect
        /// with `compare = "exact"`.
        levels: Vec<u64> = vec![5, 10, 20], source "Ultra Ethernet's public simulator", Expert;
        /// Validity of a port's level after it was read: hardware samples its queues. "0ns" reads it for every packet.
        refresh: Time = Time::ZERO, source "ours; 100 ns in Ultra Ethernet's public simulator", Expert;
    }
}

impl SchemeCapabilities for ArParameters {
    fn check(&self) -> Result<(), Invalid> {
        let ascending = self.levels.windows(2).all(|pair| pair[0] < pair[1]);
        let fine = ascending && !self.levels.is_empty() && self.levels.iter().all(|level| (1..=100).contains(level));
        let found = format!("{:?}", self.levels);
        Invalid::unless(fine, "levels", found, "ascending percentages from 1 to 100, for example [5, 10, 20]")
    }
}

#[derive(Debug)]
pub struct Ar {
    hasher: Hasher,
    /// Bytes at which each level ends; `None`: exact lengths are compared.
    levels: Option<Vec<u64>>,
    refresh: Time,
    /// Per port: time of the last reading, and the level. Empty if every packet reads it.
    read: Vec<(Time, u64)>,
    stream: Stream,
    /// Shortest queues found so far for the current packet.
    shortest: Vec<u32>,
}

impl Ar {
    pub fn new(parameters: ArParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let shortest = Vec::with_capacity(switch.widest as usize);
        Ar {
            levels: (parameters.compare == Compare::Levels).then(|| {
                parameters.levels.iter().map(|&percent| switch.queue_limit.saturating_mul(percent) / 100).collect()
            }),
            refresh: parameters.refresh,
            read: match parameters.refresh {
                Time::ZERO => vec![],
                _ => vec![(Time::ZERO, 0); switch.ports as usize],
            },
            hasher: Hasher::of(seed, switch),
            stream: Stream::keyed(seed, switch.key, "ar"),
            shortest,
        }
    }
}

impl SwitchScheme for Ar {
    #[inline]
    fn forward<Q: LocalQueues>(
        &mut self,
        now: Time,
        packet: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        queues: &mut Q,
    ) -> u32 {
        if packet.control {
            return hash::ecmp(&self.hasher, packet, candidates.count);
        }
        self.shortest.clear();
        let mut least = u64::MAX;
        for index in 0..candidates.count {
            let measure = |queues: &mut Q| {
                let bytes = queues.bytes(index);
                self.levels.as_ref().map_or(bytes, |levels| levels.iter().filter(|&&end| bytes >= end).count() as u64)
            };
            let length = if self.read.is_empty() {
                measure(queues)
            } else {
                let (at, length) = &mut self.read[usize::from(candidates.port[index as usize])];
                if now.saturating_sub(*at) > self.refresh {
                    (*at, *length) = (now, measure(queues));
                }
                *length
            };
            if length < least {
                least = length;
                self.shortest.clear();
            }
            if length == least {
                self.shortest.push(index);
            }
        }
        match self.shortest[..] {
            [only] => only,
            _ => self.shortest[self.stream.below(self.shortest.len() as u64) as usize],
        }
    }

    fn state(&self, _now: Time, packet: &PacketView, _header: &SwitchHeader) -> State {
        if packet.control { State::default() } else { Columns { equal_hops: self.shortest.len() as f64 }.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, among, choose, data};

    #[test]
    fn a_worked_trace() {
        let mut s = Ar::new(ArParameters { compare: Compare::Exact, ..Default::default() }, 1, &LEAF);
        let mut q = Queues::new(&[9, 8, 7, 3, 4, 5, 6, 7]);
        assert_eq!(choose(&mut s, &data(1, 0), &POSITIONS, &mut q), 3);
        assert_eq!(q.reads, [1; 8]);
        // Ties 1, 4 and 7 at random: 3000 draws, 2 degrees of freedom, 13.8 is exceeded with probability 0.001.
        let mut q = Queues::new(&[9, 2, 7, 3, 2, 5, 6, 2]);
        let mut cells = [0u32; 8];
        for _ in 0..3000 {
            cells[choose(&mut s, &data(1, 0), &POSITIONS, &mut q) as usize] += 1;
        }
        let chi: f64 = [1, 4, 7].map(|i| (f64::from(cells[i]) - 1000.0).powi(2) / 1000.0).iter().sum();
        assert!(chi < 13.8 && cells.iter().sum::<u32>() == cells[1] + cells[4] + cells[7], "{cells:?}");
        let mut q = Queues::new(&[1; 8]);
        let mut plain = super::super::ecmp::Ecmp::new(Default::default(), 1, &LEAF);
        for tag in 0..20 {
            let expected = choose(&mut plain, &ack(1, tag), &POSITIONS, &mut q);
            assert_eq!(choose(&mut s, &ack(1, tag), &POSITIONS, &mut q), expected);
        }
        assert_eq!(q.reads, [0; 8]);
    }

    #[test]
    fn levels_are_shares_of_the_queue_limit() {
        // A limit of 1000 B: levels end at 50, 100 and 200 B. Queues of 49 and 0 B are equal, 50 B is a level more, and
        // all from 200 B on are equal again.
        let mut s = Ar::new(ArParameters::default(), 1, &SwitchInfo { queue_limit: 1000, ..LEAF });
        let mut chosen = |bytes: &[u64]| {
            let mut q = Queues::new(bytes);
            let mut seen: Vec<u32> =
                (0..200).map(|_| choose(&mut s, &data(1, 0), &POSITIONS[..bytes.len()], &mut q)).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        assert_eq!(chosen(&[49, 0, 50, 900]), [0, 1]);
        assert_eq!(chosen(&[99, 100, 50, 900]), [0, 2]);
        assert_eq!(chosen(&[199, 200, 900, 5000]), [0]);
        assert_eq!(chosen(&[200, 5000, 900, 1000]), [0, 1, 2, 3]);
    }

    #[test]
    fn level_is_kept_until_it_is_refreshed() {
        // Levels end at 50, 100 and 200 bytes of 1000. Read every 100 ns: changes in between have no effect.
        let leaf = SwitchInfo { queue_limit: 1000, ..LEAF };
        let mut s = Ar::new(ArParameters { refresh: Time::from_ns(100), ..Default::default() }, 1, &leaf);
        let mut at = |ns: u64, bytes: [u64; 2]| {
            let (mut header, mut queues) = (SwitchHeader::default(), Queues::new(&bytes));
            let candidates = among(&POSITIONS[..2], 0);
            s.forward(Time::from_ns(ns), &data(1, 0), &mut header, &candidates, &mut queues)
        };
        assert_eq!(at(101, [900, 0]), 1);
        assert_eq!(at(201, [0, 900]), 1);
        assert_eq!(at(202, [0, 900]), 0);
    }

    #[test]
    fn levels_must_ascend() {
        let refused = |levels: &[u64]| ArParameters { levels: levels.to_vec(), ..Default::default() }.check().is_err();
        assert!(refused(&[]) && refused(&[5, 5]) && refused(&[20, 10]) && refused(&[0, 5]) && refused(&[101]));
        assert!(!refused(&[50]) && ArParameters::default().check().is_ok());
    }
}
