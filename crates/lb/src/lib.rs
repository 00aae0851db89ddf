//! Load-balancing schemes as pure state machines: host side and switch side.
//!
//! A scheme is given `(now, event)` and returns a decision. It reads no clock, opens nothing, knows neither the
//! simulator nor a socket, and allocates nothing per packet, so the same code runs in the simulator and on a
//! real network. One scheme is one file; [`registry`] has one line for each.

pub mod hash;
pub mod host;
pub mod registry;
pub mod switch;

use anabranch_units::Time;

/// What a packet carries to choose its path: an entropy value, a multi-part entropy value (MP-EV), a source
/// route or a category. Only the switch scheme reads it; the acknowledgement brings it back.
pub type Tag = u32;

/// What a host scheme is told of a flow when it opens.
#[derive(Clone, Copy, Debug)]
pub struct FlowInfo<'a> {
    /// Key of the flow for random streams: derived from stable names, never a dense index.
    pub key: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Payload bytes.
    pub size: u64,
    /// Packets the payload fills.
    pub packets: u64,
    /// The bandwidth-delay product of the topology in full packets, rounded up.
    pub bdp_packets: u64,
    /// Round trip of a full packet and its acknowledgement on the empty network.
    pub base_rtt: Time,
    /// The paths towards `dst`.
    pub paths: PathSpace<'a>,
}

/// The paths of a fat tree as a multi-part entropy value names them (PRIME, Table I).
#[derive(Clone, Copy, Debug)]
pub struct PathSpace<'a> {
    /// Uplinks per tier, leaf first: `[8]` on a 2-tier, `[8, 8]` on a 3-tier fat tree, empty where there is no choice.
    pub uplinks: &'a [u32],
    /// Per path (index: part 0 + U0 * (part 1 + U1 * ...)): true where the host has been told that it is dead.
    /// Empty where every path lives.
    pub dead: &'a [bool],
}

/// A packet that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Packet sequence number, from 0.
    pub psn: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// True where the packet was sent before.
    pub retransmission: bool,
}

/// A host scheme's answer to "which path?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send now with this tag.
    Send(Tag),
    /// Do not send any packet of this flow before this time; ask again then.
    Hold(Time),
}

/// What an acknowledgement tells a host scheme.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Tag of the packet that triggered the acknowledgement.
    pub tag: Tag,
    /// Whether that packet was ECN-marked.
    pub ecn: bool,
    /// Its round-trip time; `None` for a retransmitted packet, whose sample would be ambiguous.
    pub rtt: Option<Time>,
    /// Packets newly acknowledged (several where ACKs are coalesced).
    pub packets: u32,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// The next new PSN the sender will send.
    pub next_psn: u64,
}

/// The host side of a scheme: one object per host over all its flows. Flows are named by dense slots that are
/// reused after [`HostScheme::close`].
pub trait HostScheme {
    /// A flow opens in `slot`.
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>);
    /// The flow in `slot` is done.
    fn close(&mut self, slot: u32);
    /// The path of the next packet of the flow in `slot`.
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision;
    /// An acknowledgement arrived.
    fn on_ack(&mut self, _now: Time, _slot: u32, _feedback: &Feedback) {}
    /// The packet with this tag was trimmed on its way (the receiver's NACK says so).
    fn on_nack(&mut self, _now: Time, _slot: u32, _tag: Tag) {}
    /// The packet with this tag was not acknowledged in time.
    fn on_timeout(&mut self, _now: Time, _slot: u32, _tag: Tag) {}
    /// The host has learnt which paths are dead (indexed as [`PathSpace::dead`]; empty: none).
    fn on_paths_changed(&mut self, _now: Time, _slot: u32, _dead: &[bool]) {}
}

/// A packet as a switch scheme sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Stable key of the flow (its ports, so to say).
    pub flow: u64,
    /// Its path tag.
    pub tag: Tag,
    /// Bytes on the wire.
    pub bytes: u32,
    /// True for ACKs and NACKs; false for data and for headers of trimmed data.
    pub control: bool,
}

/// The equal-cost next hops of a packet at a switch, in port order. At least two where a scheme is asked.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// How many there are.
    pub count: u32,
    /// Dense number of this set of next hops at this switch, below `SwitchInfo::groups`.
    pub group: u32,
    /// For each its position among the switch's uplinks when nothing has failed.
    pub position: &'a [u16],
    /// How many positions there are when nothing has failed.
    pub uplinks: u32,
}

/// What a switch scheme is told of its switch.
#[derive(Clone, Copy, Debug)]
pub struct SwitchInfo {
    /// Stable key of the switch, for hash seeds and random streams.
    pub key: u64,
    /// Tier: 0 for leaves (top of rack), 1 above, and so on.
    pub tier: u8,
    /// Number of different sets of next hops at this switch.
    pub groups: u32,
    /// Largest number of candidates in a set.
    pub widest: u32,
    /// Bits of the multi-part entropy value below this tier's part (0 for leaves).
    pub part_shift: u32,
    /// Number of values of this tier's part: uplinks of a switch of this tier when nothing has failed.
    pub part_size: u32,
}

/// The queues of the candidates, read when asked.
pub trait LocalQueues {
    /// Bytes waiting at candidate `index` in the classes that matter to the packet, with the packet in transmission.
    fn bytes(&mut self, index: u32) -> u64;
}

/// The switch side of a scheme: one object per switch.
pub trait SwitchScheme {
    /// Which candidate the packet takes, by index.
    fn forward<Q: LocalQueues>(
        &mut self,
        now: Time,
        packet: &PacketView,
        candidates: &Candidates<'_>,
        queues: &mut Q,
    ) -> u32;
    /// The candidate that [`SwitchScheme::forward`] will choose, where that follows from the packet alone. A hint: a
    /// simulator fetches memory by it, nothing depends on it.
    fn foresee(&self, _packet: &PacketView, _candidates: &Candidates<'_>) -> Option<u32> {
        None
    }
    /// The sets of next hops changed (a failed link left or rejoined the tables): memory of them is void.
    fn on_routes_changed(&mut self, _groups: u32) {}
}
