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
    /// Number of links of a path, at each of which an acknowledgement can wait for a full packet; 0: it never does.
    pub links: u64,
    /// Bytes that the sender can have in flight, all sent at once, before a queue of its empty path overflows; `None`: any.
    pub burst: Option<u64>,
    /// A scheme reads which packets beyond the cumulative PSN have arrived, of transports that report them on request.
    pub selective: bool,
}

/// Full packets of a bandwidth-delay product from which on windows do not cover the waits of acknowledgements.
const FEW_PACKETS: u64 = 16;

impl Network {
    /// Returns the number of packets of `packet` bytes that fill the path of a flow whose acknowledgements cover `ack_every`.
    ///
    /// The last of the packets that an acknowledgement covers is sent `ack_every` - 1 packets after the first.
    pub fn packets_to_fill(&self, packet: u64, ack_every: u32) -> u64 {
        self.bdp.div_ceil(packet).saturating_add(u64::from(ack_every) - 1)
    }

    /// Returns the number of packets beyond the BDP by which a default window covers the waits of acknowledgements: for a
    /// full packet of the opposite direction at each link. Only BDPs of few packets need them.
    pub fn packets_ahead(&self, packet: u64) -> u64 {
        let bdp = self.bdp.div_ceil(packet);
        (bdp.min(FEW_PACKETS) + self.links).saturating_sub(bdp)
    }
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
