//! What schemes share that choose a whole path at the sender's leaf: the numbering of paths and the table of flows.

use crate::{Candidates, PacketView, SwitchInfo};
use anabranch_units::Time;
use rustc_hash::FxHashMap;

/// Paths between two leaves that they can number (10 bits of ConWeave's header).
pub(crate) const MOST_LEAF_PATHS: u64 = 1024;

/// Paths of a tree as its leaves number them: uplink at the leaf, then uplink at the switch above.
#[derive(Clone, Debug)]
pub(crate) struct PathNumbers {
    uplinks: [u32; 2],
    tier: usize,
}

impl PathNumbers {
    pub(crate) fn of(switch: &SwitchInfo) -> Self {
        let at = |tier: usize| switch.uplinks.get(tier).copied().unwrap_or(1).max(1);
        PathNumbers { uplinks: [at(0), at(1)], tier: usize::from(switch.tier) }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.uplinks[0] * self.uplinks[1]
    }

    /// The candidate that a path takes at this switch: the one at its position, or where that link is dead, as many
    /// positions on as leave one.
    #[inline]
    pub(crate) fn candidate(&self, path: u32, candidates: &Candidates<'_>) -> u32 {
        if candidates.count == 1 {
            return 0;
        }
        let part = match self.tier {
            0 => path % self.uplinks[0],
            _ => path / self.uplinks[0] % self.uplinks[1],
        };
        if candidates.position.get(part as usize).is_some_and(|at| u32::from(*at) == part) {
            return part;
        }
        let found = candidates.position.iter().position(|at| u32::from(*at) == part);
        found.map_or(part % candidates.count, |index| index as u32)
    }
}

/// What tells flows apart in a switch's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey(u64, u64);

impl FlowKey {
    /// By sender, receiver and flow; in the reference model by receiver, source port and the destination port with
    /// the bits of the priority group set, so that some flows share an entry (conweave-ns3, "What the runs showed").
    #[inline]
    pub(crate) fn of(packet: &PacketView, udp_ports: bool) -> Self {
        if udp_ports {
            let (source, destination) = (packet.flow & 0xffff, packet.flow >> 16 & 0xffff | 3);
            return FlowKey(u64::from(packet.dst), source << 16 | destination);
        }
        FlowKey(u64::from(packet.src) << 32 | u64::from(packet.dst), packet.flow)
    }
}

/// An entry of a table of flows.
pub(crate) trait Entry {
    /// When a packet of the flow last passed.
    fn last(&self) -> Time;
    /// Whether it may be forgotten once it is idle.
    fn idle(&self) -> bool {
        true
    }
}

/// A table of flows that forgets those that have long been silent. Forgetting never changes a decision: a flow that
/// has been silent for so long is treated as new in any case.
#[derive(Debug)]
pub(crate) struct FlowTable<T> {
    entries: FxHashMap<FlowKey, T>,
    forget_after: Time,
    sweep_at: usize,
}

/// Entries before the first sweep.
const FIRST_SWEEP: usize = 1024;

impl<T: Entry> FlowTable<T> {
    pub(crate) fn new(forget_after: Time) -> Self {
        FlowTable { entries: FxHashMap::default(), forget_after, sweep_at: FIRST_SWEEP }
    }

    #[inline]
    pub(crate) fn get(&mut self, key: FlowKey) -> Option<&mut T> {
        self.entries.get_mut(&key)
    }

    pub(crate) fn insert(&mut self, key: FlowKey, entry: T, now: Time) -> &mut T {
        if self.entries.len() >= self.sweep_at {
            let after = self.forget_after;
            self.entries.retain(|_, entry| entry.last() + after > now || !entry.idle());
            self.sweep_at = FIRST_SWEEP.max(2 * self.entries.len());
        }
        self.entries.entry(key).insert_entry(entry).into_mut()
    }
}

/// The path of a flowlet and its last packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flowlet {
    pub(crate) last: Time,
    pub(crate) path: u32,
}

impl Entry for Flowlet {
    fn last(&self) -> Time {
        self.last
    }
}
