//! Switch side of PRIME (PRIME §III-C, specification 5.3), for data and control packets.

use crate::{
    Candidates, LocalQueues, PacketView, SwitchHeader, SwitchInfo, SwitchScheme, Tag,
    hash::{ecmp_hash, reduce},
    registry::{SchemeCapabilities, TagKind},
    state::state,
};
use anabranch_random::key;
use anabranch_settings::{About, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "ev-index",
    summary: "this tier's part of the multi-part entropy value names the uplink",
    source: "PRIME §III-C, Fig. 4; specification 5.3",
    description: "The switch reads its tier's part of the multi-part entropy value and takes the uplink of that index. \
        After a failure the index is taken modulo the live uplinks (remap = \"mod\", which doubles the load of some; hosts \
        are not notified), or it selects the uplink as before and only dead uplinks are remapped. Then notified hosts \
        exclude them (remap = \"skip\"), or their packets are hashed over the live ones and hosts are not notified \
        (remap = \"hash\": resilient ECMP), or tables never change, and a dead uplink loses its packets (remap = \"static\").",
};

state! {}

choices! {
    /// Meaning of an index if uplinks have failed.
    pub enum Remap {
        /// Index modulo the number of live uplinks. Hosts are not notified of dead paths: the indices change their
        /// meaning.
        Mod = "mod",
        /// The uplink of that position; if it is dead, as with `mod`. Hosts are notified, and exclude it.
        Skip = "skip",
        /// The uplink of that position; packets of a dead one are spread over the live ones by a hash of source,
        /// destination, flow and value, as by resilient ECMP. Hosts are not notified: all values still work.
        Hash = "hash",
        /// The uplink of that position, dead or alive: tables never change, regardless of `detect_after` (MRC).
        Static = "static",
    }
}

parameters! {
    /// Multi-part entropy value to uplink.
    pub struct EvIndexParameters {
        /// Meaning of an index if uplinks have failed.
        remap: Remap = Remap::Mod, source "ours (specification 5.3)", Reading;
    }
}

impl SchemeCapabilities for EvIndexParameters {
    fn tags(&self) -> TagKind {
        TagKind::MultiPart
    }

    /// Where switches renumber their live uplinks, or give a dead value's packets to live ones, a host that excluded a
    /// value would exclude live paths.
    fn reports_dead_paths(&self) -> bool {
        self.remap == Remap::Skip
    }

    fn keeps_tables(&self) -> bool {
        self.remap == Remap::Static
    }
}

#[derive(Debug)]
pub struct EvIndex {
    shift: u32,
    mask: u32,
    /// A live uplink keeps its index.
    keeps: bool,
    /// Seed of the hash that spreads the packets of dead uplinks; `None`: modulo.
    seed: Option<u64>,
}

impl EvIndex {
    pub fn new(parameters: EvIndexParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let mask = switch.part_size.clamp(1, 1 << 31).next_power_of_two() - 1;
        let seed = (parameters.remap == Remap::Hash).then(|| key(seed, switch.key, "ev-index"));
        EvIndex { shift: switch.part_shift.min(31), mask, keeps: parameters.remap != Remap::Mod, seed }
    }
}

impl EvIndex {
    #[inline]
    fn choose(&self, packet: &PacketView, candidates: &Candidates<'_>) -> u32 {
        let index = packet.tag >> self.shift & self.mask;
        let count = candidates.count;
        // Parallel cables down have no position.
        let upwards = candidates.position.last().is_some_and(|last| *last > 0);
        if self.keeps && count != candidates.uplinks && upwards {
            // Positions ascend with the ports.
            if let Ok(found) = candidates.position.binary_search(&(index.min(u32::from(u16::MAX)) as u16)) {
                return found as u32;
            }
            if let Some(seed) = self.seed {
                return reduce(ecmp_hash(seed, packet), count);
            }
        }
        if index < count { index } else { index % count }
    }
}

impl SwitchScheme for EvIndex {
    #[inline]
    fn by_labels(&self, tag: Tag, _: impl FnOnce() -> PacketView, count: u32, uplinks: u32) -> Option<u32> {
        if self.keeps && count != uplinks {
            return None;
        }
        let index = tag >> self.shift & self.mask;
        Some(if index < count { index } else { index % count })
    }

    #[inline]
    fn forward<Q: LocalQueues>(
        &mut self,
        _: Time,
        packet: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        self.choose(packet, candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, choose, data};

    #[test]
    fn each_tier_reads_its_part() {
        // 3-tier, 16 ports: tag = uplink of the leaf | uplink of the aggregation switch << 3.
        let mut leaf = EvIndex::new(EvIndexParameters::default(), 1, &LEAF);
        let mut above = EvIndex::new(EvIndexParameters::default(), 1, &SwitchInfo { tier: 1, part_shift: 3, ..LEAF });
        let mut q = Queues::new(&[0; 8]);
        for (low, high) in [(0, 0), (5, 2), (7, 7), (3, 6)] {
            for packet in [data(1, high << 3 | low), ack(1, high << 3 | low)] {
                assert_eq!(choose(&mut leaf, &packet, &POSITIONS, &mut q), low);
                assert_eq!(choose(&mut above, &packet, &POSITIONS, &mut q), high);
            }
        }
    }

    #[test]
    fn a_worked_trace_of_remapping() {
        // Uplink 2 of 8 is dead; the candidates are the positions 0 1 3 4 5 6 7.
        let live = [0, 1, 3, 4, 5, 6, 7];
        let mut q = Queues::new(&[0; 7]);
        let mut uplinks = |remap| {
            let mut s = EvIndex::new(EvIndexParameters { remap }, 1, &LEAF);
            (0..8).map(|tag| live[choose(&mut s, &data(1, tag), &live, &mut q) as usize]).collect::<Vec<_>>()
        };
        // mod 7: index 7 wraps to 0, whose load doubles; all from 2 on are shifted.
        assert_eq!(uplinks(Remap::Mod), [0, 1, 3, 4, 5, 6, 7, 0]);
        // skip: every index selects its own uplink; 2, which a notified host never sends, is mapped to candidate 2.
        assert_eq!(uplinks(Remap::Skip), [0, 1, 3, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn packets_of_a_dead_uplink_are_hashed_over_the_live_ones() {
        let live = [0, 1, 3, 4, 5, 6, 7];
        let mut q = Queues::new(&[0; 7]);
        let mut s = EvIndex::new(EvIndexParameters { remap: Remap::Hash }, 1, &LEAF);
        for tag in (0..8u16).filter(|tag| *tag != 2) {
            assert_eq!(live[choose(&mut s, &data(1, u32::from(tag)), &live, &mut q) as usize], tag);
        }
        // 7,000 flows with value 2: 1,000 per live uplink, standard deviation sqrt(7000 * 1/7 * 6/7) = 29.3; a flow keeps its
        // uplink.
        let mut counts = [0u32; 7];
        for flow in 0..7000 {
            let index = choose(&mut s, &data(flow, 2), &live, &mut q);
            assert_eq!(index, choose(&mut s, &data(flow, 2), &live, &mut q));
            counts[index as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 117), "{counts:?}: four deviations");
        // Without a failure it is the index.
        assert_eq!(choose(&mut s, &data(1, 2), &POSITIONS, &mut Queues::new(&[0; 8])), 2);
    }
}
