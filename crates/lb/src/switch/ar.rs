//! Adaptive routing as PRIME compares with it (PRIME §IV, specification 4.3): every data packet takes the next hop with
//! the least bytes in its local queue, ties broken at random. Control packets take plain hash ECMP.

use crate::{
    Candidates, LocalQueues, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{self, Hasher},
    registry::{About, Check, Invalid, Sees, TagKind},
};
use anabranch_random::Stream;
use anabranch_settings::parameters;
use anabranch_units::{Bytes, Time};

/// What the registry says of this scheme.
pub const ABOUT: About = About {
    name: "ar",
    summary: "adaptive routing: the least local queue of all next hops",
    source: "PRIME §IV; specification 4.3 (random ties: ours)",
    description: "Every data packet takes the next hop whose queue at this switch is the shortest; equal queues are \
        drawn among at random. It cannot see congestion further on.",
    tags: TagKind::Entropy,
    sees: Sees::Choices,
};

parameters! {
    /// Adaptive routing.
    pub struct ArParameters {
        /// Queue lengths are compared in whole multiples of this many bytes; 1 compares them exactly.
        unit: Bytes = Bytes(1), source "ours: the paper says queue size, no more; htsim compares coarse levels";
    }
}

impl Check for ArParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.unit.0 > 0, "unit", self.unit, "at least 1B")
    }
}

/// Adaptive routing of one switch.
#[derive(Debug)]
pub struct Ar {
    hasher: Hasher,
    unit: u64,
    stream: Stream,
    /// The shortest queues found so far for the current packet.
    shortest: Vec<u32>,
}

impl Ar {
    /// The scheme at this switch.
    pub fn new(parameters: ArParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let shortest = Vec::with_capacity(switch.widest as usize);
        Ar {
            unit: parameters.unit.0.max(1),
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
        _: Time,
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
            let bytes = queues.bytes(index) / self.unit;
            if bytes < least {
                least = bytes;
                self.shortest.clear();
            }
            if bytes == least {
                self.shortest.push(index);
            }
        }
        match self.shortest[..] {
            [only] => only,
            _ => self.shortest[self.stream.below(self.shortest.len() as u64) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, choose, data};

    #[test]
    fn a_worked_trace() {
        let mut s = Ar::new(ArParameters::default(), 1, &LEAF);
        // The shortest of all, each queue read once.
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
        // Control packets read no queue and take the path of plain ECMP.
        let mut q = Queues::new(&[1; 8]);
        let mut plain = super::super::ecmp::Ecmp::new(Default::default(), 1, &LEAF);
        for tag in 0..20 {
            let expected = choose(&mut plain, &ack(1, tag), &POSITIONS, &mut q);
            assert_eq!(choose(&mut s, &ack(1, tag), &POSITIONS, &mut q), expected);
        }
        assert_eq!(q.reads, [0; 8]);
    }
}
