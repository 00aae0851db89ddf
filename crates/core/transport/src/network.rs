//! Properties of the network that a transport needs, and later changes of its base round trip.

use anabranch_units::{Rate, Time};

/// Properties of the network between a pair of hosts that its transport needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Network {
    /// Base round trip: a full packet and its acknowledgement on the empty network, over the longest of the pair's paths.
    pub base_rtt: Time,
    /// Bandwidth-delay product of that round trip and the rate that the pair's ports allow, in bytes on the wire.
    pub bdp: u64,
    /// The largest base round trip and product of any pair of the run.
    pub longest: (Time, u64),
    /// Time to drain one full data queue at the slowest port on the pair's paths.
    pub queue_drain: Time,
    /// Longest time that a packet or its header can wait in queues on its way without a drop.
    pub max_wait: Time,
    /// `true` if switches trim packets.
    pub trimming: bool,
    /// Rate of the sender's port.
    pub nic_rate: Rate,
}

/// Shift of a real network's base round trip since the flows opened, by which measured round trips are corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaseRttShift {
    longer: Time,
    shorter: Time,
}

impl BaseRttShift {
    /// Creates the shift from the base round trip at opening, `opened`, to `base`.
    pub fn new(opened: Time, base: Time) -> Self {
        BaseRttShift { longer: base.saturating_sub(opened), shorter: opened.saturating_sub(base) }
    }

    /// Returns a measured round trip corrected by the shift.
    #[inline]
    pub fn adjust(self, rtt: Time) -> Time {
        rtt.saturating_add(self.shorter).saturating_sub(self.longer)
    }
}
