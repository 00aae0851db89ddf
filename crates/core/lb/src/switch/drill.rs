//! DRILL (specification 4.3; SIGCOMM 2017).
//!
//! In the `conweave-ns3` profiles (specification 17.5) the memory is kept per destination host, next hops are drawn
//! independently of it, and remembered ones win ties.

use crate::{
    Candidates, LocalQueues, PacketView, State, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{self, Hasher},
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::Stream;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "drill",
    summary: "the shortest local queue of some random next hops and the best remembered",
    source: "specification 4.3; DRILL, SIGCOMM 2017",
    description: "For every data packet the switch samples `d` random next hops and the `m` best of the last \
        decision for the same set of next hops, and takes the one with the shortest queue.",
};

state! {
    /// Queue of the next hop chosen, with the packet in transmission.
    shortest_bytes: "bytes";
    /// Longest queue among those compared.
    longest_bytes: "bytes";
    /// Queues compared.
    compared: "queues";
}

parameters! {
    pub struct DrillParameters {
        /// Next hops drawn at random (all different).
        d: u32 = 2, source "DRILL(2, 1), SIGCOMM 2017", Expert;
        /// Next hops remembered from the last decision.
        m: u32 = 1, source "DRILL(2, 1), SIGCOMM 2017", Expert;
    }
}

impl SchemeCapabilities for DrillParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((1..=64).contains(&self.d), "d", self.d, "1 to 64")?;
        Invalid::unless(self.m <= 64, "m", self.m, "0 to 64")
    }
}

/// No next hop remembered.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub struct Drill {
    d: usize,
    m: usize,
    hasher: Hasher,
    stream: Stream,
    /// `m` next hops per set, or per destination host.
    memory: Vec<u32>,
    per_host: bool,
    /// The next hops drawn for the current packet, if drawn independently of the memory.
    drawn: Vec<u32>,
    sample: Vec<(u64, u32)>,
}

impl Drill {
    pub fn new(parameters: DrillParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let (d, m) = (parameters.d.clamp(1, 64) as usize, parameters.m.min(64) as usize);
        Drill {
            d,
            m,
            hasher: Hasher::of(seed, switch),
            stream: Stream::keyed(seed, switch.key, "drill"),
            memory: if switch.udp_ports { Vec::new() } else { vec![NONE; m * switch.groups as usize] },
            per_host: switch.udp_ports,
            drawn: Vec::with_capacity(d),
            sample: Vec::with_capacity(d + m),
        }
    }
}

impl SwitchScheme for Drill {
    #[inline]
    fn forward<Q: LocalQueues>(
        &mut self,
        _: Time,
        packet: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        queues: &mut Q,
    ) -> u32 {
        let count = candidates.count;
        if packet.control {
            return hash::ecmp(&self.hasher, packet, count);
        }
        let Drill { sample, memory, stream, drawn, .. } = self;
        let place = if self.per_host { packet.dst } else { candidates.group } as usize * self.m;
        if self.per_host {
            memory.resize(memory.len().max(place + self.m), NONE);
        }
        let remembered = memory.get_mut(place..place + self.m).unwrap_or_default();
        sample.clear();
        let mut look = |index: u32, sample: &mut Vec<(u64, u32)>| {
            if sample.iter().all(|&(_, other)| other != index) {
                // Sorted; of equal queues the first one wins.
                let bytes = queues.bytes(index);
                sample.insert(sample.partition_point(|&(other, _)| other <= bytes), (bytes, index));
            }
        };
        if self.per_host {
            for &index in remembered.iter().filter(|&&index| index < count) {
                look(index, sample);
            }
            drawn.clear();
            while drawn.len() < self.d.min(count as usize) {
                let index = stream.below(u64::from(count)) as u32;
                if !drawn.contains(&index) {
                    drawn.push(index);
                    look(index, sample);
                }
            }
        } else if count as usize <= self.d {
            // From a random one on: the first of equal queues wins.
            let first = stream.below(u64::from(count)) as u32;
            (first..first + count).for_each(|index| look(index % count, sample));
        } else {
            while sample.len() < self.d {
                look(stream.below(u64::from(count)) as u32, sample);
            }
        }
        for &index in remembered.iter().filter(|&&index| index < count) {
            look(index, sample);
        }
        for (i, place) in remembered.iter_mut().enumerate() {
            *place = sample.get(i).map_or(NONE, |&(_, index)| index);
        }
        sample[0].1
    }

    fn on_routes_changed(&mut self, groups: u32) {
        self.memory.clear();
        if !self.per_host {
            self.memory.resize(self.m * groups as usize, NONE);
        }
    }

    fn state(&self, _now: Time, packet: &PacketView, _header: &SwitchHeader) -> State {
        let (Some(first), Some(last), false) = (self.sample.first(), self.sample.last(), packet.control) else {
            return State::default();
        };
        let compared = self.sample.len() as f64;
        Columns { shortest_bytes: first.0 as f64, longest_bytes: last.0 as f64, compared }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, among, choose, data};

    #[test]
    fn remembers_the_best_per_set() {
        // Queue 5 is empty, all others are not. Once it has been drawn, the memory keeps it.
        let mut s = Drill::new(DrillParameters::default(), 1, &LEAF);
        let mut q = Queues::new(&[9, 9, 9, 9, 9, 0, 9, 9]);
        while choose(&mut s, &data(1, 0), &POSITIONS, &mut q) != 5 {}
        for _ in 0..100 {
            q.reads.fill(0);
            assert_eq!(choose(&mut s, &data(1, 0), &POSITIONS, &mut q), 5);
            assert!(q.reads.iter().all(|&r| r <= 1) && q.reads.iter().sum::<u32>() <= 3);
        }
        // The other set of next hops has its own memory: 2 of 8 are drawn, so 5 is missed 3 times of 4 at first.
        let missed = (0..400).filter(|_| {
            s.on_routes_changed(2);
            choose(&mut s, &data(1, 0), &POSITIONS, &mut q);
            s.forward(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), &among(&POSITIONS, 1), &mut q) != 5
        });
        // Mean 300, standard deviation sqrt(400 * 3/16) = 8.7.
        let missed = missed.count();
        assert!((260..340).contains(&missed), "{missed}");
    }

    #[test]
    fn a_worked_trace_with_two_next_hops() {
        let mut s = Drill::new(DrillParameters::default(), 1, &LEAF);
        for (bytes, shorter) in [([5, 4], 1), ([4, 5], 0), ([0, 1], 0), ([9, 0], 1)] {
            let mut q = Queues::new(&bytes);
            assert_eq!(choose(&mut s, &data(1, 0), &[0, 1], &mut q), shorter);
            assert_eq!(q.reads, [1, 1]);
        }
    }

    #[test]
    fn the_recorded_runs_remember_per_destination_host() {
        let info = SwitchInfo { udp_ports: true, ..LEAF };
        let mut s = Drill::new(DrillParameters::default(), 1, &info);
        let to = |s: &mut Drill, dst, q: &mut Queues| {
            let packet = crate::PacketView { dst, ..data(1, 0) };
            s.forward(Time::ZERO, &packet, &mut SwitchHeader::default(), &among(&POSITIONS, 0), q)
        };
        // All queues alike: the first of two drawn is taken and, since a remembered next hop wins a tie, kept.
        let mut q = Queues::new(&[5; 8]);
        let mut taken = [0u32; 8];
        for dst in 0..800 {
            let first = to(&mut s, dst, &mut q);
            assert!((0..20).all(|_| to(&mut s, dst, &mut q) == first));
            taken[first as usize] += 1;
        }
        // 100 each; chi-square with 7 degrees of freedom exceeds 24.3 with probability 0.001.
        let chi: f64 = taken.iter().map(|&n| (f64::from(n) - 100.0).powi(2) / 100.0).sum();
        assert!(chi < 24.3, "{taken:?}");
        // A shorter queue is found with probability 1/4 per packet (2 of 8), also if the memory is among the drawn:
        // 21 draws of another host's memory do not help. 800 hosts: mean 200, deviation 12.2.
        q.bytes[3] = 4;
        let found = (0..800).filter(|&dst| to(&mut s, dst, &mut q) == 3).count();
        // A host in eight has it already: 100 + 700 / 4 = 275, deviation 14.
        assert!(found.abs_diff(taken[3] as usize + (800 - taken[3] as usize) / 4) < 60, "{found}");
    }
}
