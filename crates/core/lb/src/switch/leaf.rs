//! Numbering of paths and table of flows for schemes that choose a whole path at the sender's leaf.

use crate::{Candidates, PacketView, SwitchInfo};
use anabranch_units::Time;
use rustc_hash::FxHashMap;

/// Maximum paths between two leaves (10 bits of ConWeave's header).
pub(crate) const MAX_LEAF_PATHS: u64 = 1024;

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

    pub(crate) fn count(&self) -> u32 {
        self.uplinks[0] * self.uplinks[1]
    }

    /// Returns the candidate at the path's position or, if that link is dead, at the position modulo the live ones.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey(u64, u64);

impl FlowKey {
    /// Creates the key; with `udp_ports` that of the reference model, in which some flows share an entry (conweave-ns3,
    /// "What the runs showed").
    #[inline]
    pub(crate) fn of(packet: &PacketView, udp_ports: bool) -> Self {
        if udp_ports {
            let (source, destination) = (packet.flow & 0xffff, packet.flow >> 16 & 0xffff | 3);
            return FlowKey(u64::from(packet.dst), source << 16 | destination);
        }
        FlowKey(u64::from(packet.src) << 32 | u64::from(packet.dst), packet.flow)
    }
}

pub(crate) trait FlowEntry {
    fn last(&self) -> Time;
    fn idle(&self) -> bool {
        true
    }
}

/// A table of flows that removes long-idle ones, which schemes treat as new in any case.
#[derive(Debug)]
pub(crate) struct FlowTable<T> {
    entries: FxHashMap<FlowKey, T>,
    forget_after: Time,
    sweep_at: usize,
}

/// Number of entries before the first sweep.
const FIRST_SWEEP: usize = 1024;

impl<T: FlowEntry> FlowTable<T> {
    pub(crate) fn new(forget_after: Time) -> Self {
        FlowTable { entries: FxHashMap::default(), forget_after, sweep_at: FIRST_SWEEP }
    }

    #[inline]
    pub(crate) fn get(&mut self, key: FlowKey) -> Option<&mut T> {
        self.entries.get_mut(&key)
    }

    pub(crate) fn peek(&self, key: FlowKey) -> Option<&T> {
        self.entries.get(&key)
    }

    pub(crate) fn insert(&mut self, key: FlowKey, entry: T, now: Time) -> &mut T {
        if self.entries.len() >= self.sweep_at {
            let after = self.forget_after;
            self.entries.retain(|_, entry| entry.last().saturating_add(after) > now || !entry.idle());
            self.sweep_at = FIRST_SWEEP.max(2 * self.entries.len());
        }
        self.entries.entry(key).insert_entry(entry).into_mut()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flowlet {
    pub(crate) last: Time,
    pub(crate) path: u32,
}

impl FlowEntry for Flowlet {
    fn last(&self) -> Time {
        self.last
    }
}
