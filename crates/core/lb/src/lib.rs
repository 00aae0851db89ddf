//! Load-balancing schemes as pure state machines: host side and switch side.
//!
//! A scheme is given `(now, event)` and returns a decision. It reads no clock, opens nothing, knows neither the
//! simulator nor a socket, and allocates nothing per packet, so the same code runs in the simulator and on a
//! real network. One scheme is one file; [`registry`] has one line for each.

mod guided;
pub mod hash;
pub mod host;
mod record;
pub mod registry;
pub mod switch;

pub use guided::{Category, GuidedPath, GuidedPaths, GuidedSwitch, Shape, Spread, Step, Weights};
pub use record::{Call, Differs, Entry, Opened, Record, Recorded, replay};

use anabranch_units::{Rate, Time};
use std::sync::Arc;

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
    /// The rate that the flow can reach alone: the slowest link of the best path, NICs included.
    pub rate: Rate,
    /// Bytes that a full packet has on the wire.
    pub full_packet: u32,
    /// Packets beyond the one it waits for that the receiver takes early without complaint (Hopper §4.1.1); `u64::MAX`
    /// where order does not matter.
    pub early_packets: u64,
    /// The paths towards `dst`.
    pub paths: PathSpace<'a>,
}

/// The paths towards a destination: those of a fat tree as a multi-part entropy value names them (PRIME, Table I), those
/// of a Dragonfly or a Slim Fly as a list (Spritz §III-C).
#[derive(Clone, Copy, Debug, Default)]
pub struct PathSpace<'a> {
    /// Uplinks per tier, leaf first: `[8]` on a 2-tier, `[8, 8]` on a 3-tier fat tree, empty where there is no choice.
    pub uplinks: &'a [u32],
    /// The endpoint's list of paths to the destination's switch, for schemes that write [`registry::TagKind::Guided`];
    /// `None` elsewhere.
    pub guided: Option<&'a Arc<GuidedPaths>>,
    /// Per path (index in `guided`, else part 0 + U0 * (part 1 + U1 * ...)): true where the host has been told that it is
    /// dead. Empty where every path lives.
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
    /// When pacing and window first allowed this packet to go, had the NIC been idle: the gap that a flowlet table sees
    /// is the time from the last packet to this.
    pub eligible_at: Time,
}

/// A host scheme's answer to "which path?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send now with this tag.
    Send(Tag),
    /// Send now with this tag, and have the receiver answer at once: the scheme will send nothing further before it hears of it.
    SendAsking(Tag),
    /// Do not send any packet of this flow before this time; ask again then.
    Hold(Time),
    /// Do not send any packet of this flow before its next acknowledgement (or timeout); ask again then.
    Wait,
}

/// A packet that a host scheme sends to learn the round trip of a path. It waits in the queues of data and is
/// answered in the control class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The path it explores.
    pub tag: Tag,
    /// Its payload bytes.
    pub bytes: u32,
}

/// What schemes count; sums over all hosts or switches end in the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchemeCounters {
    /// Flowlets, the first of each flow included (switch schemes that keep a flowlet table).
    pub flowlets: u64,
    /// Flowlets that a host scheme made by holding a packet back.
    pub created_flowlets: u64,
    /// Picoseconds for which packets were held back by a host scheme.
    pub added_delay_ps: u64,
    /// Flows moved to another path by a switch (ConWeave), counted each time.
    pub reroutes: u64,
    /// Packets that waited in a reordering queue of a switch (ConWeave).
    pub reordered_packets: u64,
}

impl std::ops::AddAssign for SchemeCounters {
    fn add_assign(&mut self, other: Self) {
        self.flowlets += other.flowlets;
        self.created_flowlets += other.created_flowlets;
        self.added_delay_ps += other.added_delay_ps;
        self.reroutes += other.reroutes;
        self.reordered_packets += other.reordered_packets;
    }
}

/// What an acknowledgement tells a host scheme.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Tag of the packet that triggered the acknowledgement.
    pub tag: Tag,
    /// Whether that packet was ECN-marked; a notification for another reason (it came out of order) does not count.
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
    /// The packet with this tag was trimmed on its way (the receiver's NACK says so), or counts as lost because a later one
    /// with this tag has arrived.
    fn on_nack(&mut self, _now: Time, _slot: u32, _tag: Tag) {}
    /// The packet with this tag was not acknowledged in time.
    fn on_timeout(&mut self, _now: Time, _slot: u32, _tag: Tag) {}
    /// The host has learnt which paths are dead (indexed as [`PathSpace::dead`]; empty: none).
    fn on_paths_changed(&mut self, _now: Time, _slot: u32, _dead: &[bool]) {}
    /// The next probe that the scheme wants to send for the flow in `slot`; asked after every acknowledgement until
    /// there is none.
    fn poll_probe(&mut self, _now: Time, _slot: u32) -> Option<Probe> {
        None
    }
    /// A probe came back. `rtt` is what a full data packet on its path would have measured: the difference of the
    /// serialisation times has been added.
    fn on_probe_reply(&mut self, _now: Time, _slot: u32, _tag: Tag, _rtt: Time) {}
    /// What it has counted so far.
    fn counters(&self) -> SchemeCounters {
        SchemeCounters::default()
    }
}

/// 20 bytes of a data packet that belong to the switches: what LetFlow, CONGA and ConWeave write into their headers.
/// All zero when the packet leaves its host; hosts never read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchHeader(pub [u32; 5]);

impl SwitchHeader {
    /// The 64 bits in words `2 * half` and `2 * half + 1` (`half` is 0 or 1).
    #[inline]
    pub fn wide(&self, half: usize) -> u64 {
        u64::from(self.0[2 * half]) | u64::from(self.0[2 * half + 1]) << 32
    }
    /// Sets those 64 bits.
    #[inline]
    pub fn set_wide(&mut self, half: usize, value: u64) {
        self.0[2 * half] = value as u32;
        self.0[2 * half + 1] = (value >> 32) as u32;
    }
}

/// A packet as a switch scheme sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Leaf (switch, by number) of the sending host.
    pub src_leaf: u32,
    /// Leaf of the receiving host.
    pub dst_leaf: u32,
    /// Stable key of the flow; in the `conweave-ns3` profiles its UDP ports, `source | destination << 16`.
    pub flow: u64,
    /// Its path tag.
    pub tag: Tag,
    /// Bytes on the wire.
    pub bytes: u32,
    /// True for ACKs and NACKs, whose `src` is the flow's receiver; false for data and headers of trimmed data.
    pub control: bool,
    /// True where the packet has been ECN-marked on its way here.
    pub marked: bool,
}

/// The equal-cost next hops of a packet at a switch, in port order. At least two where a scheme is asked, unless it
/// asks for every hop ([`registry::Sees::EveryHop`]): then one where there is no choice.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// How many there are.
    pub count: u32,
    /// Dense number of this set of next hops at this switch, below `SwitchInfo::groups`.
    pub group: u32,
    /// For each its position among the switch's uplinks when nothing has failed.
    pub position: &'a [u16],
    /// For each the number of its output port at this switch, below `SwitchInfo::ports`.
    pub port: &'a [u16],
    /// How many positions there are when nothing has failed.
    pub uplinks: u32,
}

/// What a switch scheme is told of its switch.
#[derive(Clone, Debug)]
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
    /// The switch's number, as in `PacketView::src_leaf`.
    pub number: u32,
    /// Number of switches.
    pub switches: u32,
    /// Output ports.
    pub ports: u32,
    /// Uplinks per tier, leaf first, when nothing has failed; empty where the topology has no tiers.
    pub uplinks: Vec<u32>,
    /// The switch's number, hosts counted first, where its hash is that of the recorded runs (`fabric.switch_hash`).
    pub murmur3: Option<u32>,
    /// Whether flows are told apart by their UDP ports (`fabric.flow_keys`), as in the recorded runs.
    pub udp_ports: bool,
    /// Propagation delay of one link between switches.
    pub hop_delay: Time,
    /// Bytes of data that a port may hold (`fabric.queue_limit`; where ports share a buffer, a yardstick only).
    pub queue_limit: u64,
    /// True where the fabric pauses instead of dropping (PFC).
    pub lossless: bool,
    /// What the tags of the packets are.
    pub tags: registry::TagKind,
}

/// The queues of the candidates, read when asked.
pub trait LocalQueues {
    /// Bytes waiting at candidate `index` in the classes that matter to the packet, with the packet in transmission.
    fn bytes(&mut self, index: u32) -> u64;
    /// Rate of the link behind candidate `index`.
    fn rate(&mut self, index: u32) -> Rate;
}

/// What becomes of a data packet at its last switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It goes on to its host.
    Deliver,
    /// It waits at the end of this reordering queue of the scheme until [`Effects::release`].
    Hold(u32),
}

/// What a switch scheme asks of its switch besides a decision. The switch empties it after every call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Control packets to send now, in this order, to the leaf of the sender of the packet at hand (only while a packet
    /// is at hand): their headers.
    pub reply: Vec<SwitchHeader>,
    /// Wake the scheme at this time with this number ([`SwitchScheme::on_timer`]).
    pub wake: Vec<(Time, u32)>,
    /// Reordering queues whose packets go on to their hosts now, in order.
    pub release: Vec<u32>,
}

/// The switch side of a scheme: one object per switch.
pub trait SwitchScheme {
    /// Which of `count` candidates a packet takes, where its path tag alone decides: [`SwitchScheme::forward`], which must
    /// say the same, is then not asked. `uplinks` as in [`Candidates::uplinks`].
    #[inline]
    fn by_tag(&self, _tag: Tag, _count: u32, _uplinks: u32) -> Option<u32> {
        None
    }
    /// Which candidate the packet takes, by index. `header` is the packet's own, to be read and rewritten; of an ACK or
    /// NACK it must be left alone. Schemes with [`registry::Sees::Guided`] are asked [`SwitchScheme::guide`] instead.
    fn forward<Q: LocalQueues>(
        &mut self,
        _now: Time,
        _packet: &PacketView,
        _header: &mut SwitchHeader,
        _candidates: &Candidates<'_>,
        _queues: &mut Q,
    ) -> u32 {
        0
    }
    /// The switch-facing port that a data packet takes on a Dragonfly or a Slim Fly, for schemes with
    /// [`registry::Sees::Guided`].
    fn guide<G: GuidedSwitch>(
        &mut self,
        _now: Time,
        _packet: &PacketView,
        _header: &mut SwitchHeader,
        at: &mut G,
    ) -> u32 {
        at.minimal(at.here())
    }
    /// A data packet has reached the switch of its receiver; asked only of schemes with
    /// [`registry::Sees::EveryHop`].
    fn deliver(&mut self, _now: Time, _packet: &PacketView, _header: &SwitchHeader, _out: &mut Effects) -> Delivery {
        Delivery::Deliver
    }
    /// A control packet of another switch's scheme has reached this leaf. `packet` is the view of the data packet that
    /// it answers (`src` is the flow's sender).
    fn on_control(&mut self, _now: Time, _packet: &PacketView, _header: &SwitchHeader, _out: &mut Effects) {}
    /// A time that the scheme asked to be woken at has come.
    fn on_timer(&mut self, _now: Time, _number: u32, _out: &mut Effects) {}
    /// What it has counted so far.
    fn counters(&self) -> SchemeCounters {
        SchemeCounters::default()
    }
    /// The sets of next hops changed (a failed link left or rejoined the tables): memory of them is void.
    fn on_routes_changed(&mut self, _groups: u32) {}
}
