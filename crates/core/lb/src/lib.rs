//! Load-balancing schemes as pure state machines: host side and switch side.
//!
//! A scheme takes `(now, event)` and returns a decision, without clock, I/O or allocation per packet: the same code
//! runs in the simulator and on a real network. One scheme is one file and one line of [`registry`].

#![deny(missing_docs)]

pub mod checks;
mod external;
mod guided;
mod hash;
mod host;
mod record;
pub mod registry;
mod sent;
mod signal;
mod state;
mod switch;
#[cfg(test)]
mod tests;

pub use external::{DescribedHost, DynHost, ExternalHost, ExternalSwitch, described_host, host_scheme, switch_scheme};
pub use guided::{Category, GuidedPath, GuidedPaths, GuidedSwitch, GuidedTopology, Step, Weights};
pub use hash::{Hasher, ecmp};
pub use record::{Call, CallEvent, OpenedFlow, Record, Recorded, RecordedSwitch, replay, replay_each};
pub use sent::Sent;
pub use signal::{LinkLoad, LinkSignal};
pub use state::{MAX_STATE, State, StateColumn};

use anabranch_units::{Rate, Time};
use std::sync::Arc;

/// Path selector that only switch schemes read; ACKs return it: (multi-part) entropy value, source route or category.
pub type Tag = u32;

/// Properties of a flow, passed to a host scheme when the flow opens.
#[derive(Clone, Copy, Debug)]
pub struct FlowInfo<'a> {
    /// Key of the flow for random streams: derived from stable names, never a dense index.
    pub key: u64,
    /// Key of the flow's connection. Schemes that keep a path begin every message of a connection with its label.
    pub connection: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Payload bytes.
    pub size: u64,
    /// Packets of the payload.
    pub packets: u64,
    /// Bandwidth-delay product of the topology in full packets, rounded up.
    pub bdp_packets: u64,
    /// Round trip of a full packet and its acknowledgement on the empty network.
    pub base_rtt: Time,
    /// Maximum time on the empty network from the transmission of a probe to its reply.
    pub probe_rtt: Time,
    /// Maximum rate of the flow alone: the slowest link of the best path, NICs included.
    pub rate: Rate,
    /// Bytes of a full packet on the wire.
    pub full_packet: u32,
    /// Packets that may arrive early without a NACK (Hopper §4.1.1); `u64::MAX` where order is irrelevant.
    pub early_packets: u64,
    /// Paths towards `dst`.
    pub paths: PathSpace<'a>,
}

/// Paths towards a destination: multi-part entropy values of a fat tree (PRIME, Table I), or a list (Spritz §III-C).
#[derive(Clone, Copy, Debug, Default)]
pub struct PathSpace<'a> {
    /// Uplinks per tier, leaf first: `[8]` on a 2-tier, `[8, 8]` on a 3-tier fat tree, empty without a choice. Where entropy
    /// values name planes, their number precedes them.
    pub uplinks: &'a [u32],
    /// Entropy values that lead over different paths, one per path, for schemes that profile them; empty: unknown.
    pub labels: &'a [Tag],
    /// Paths to the destination's switch, for schemes that write [`registry::TagKind::Guided`]; else `None`.
    pub guided: Option<&'a Arc<GuidedPaths>>,
    /// Number of planes, of which part 0 of a value names one; 0 or 1: values name none.
    pub planes: u32,
    /// Number of the destination's group: its switch, which shares `guided`; on a real network the peer. State that a host's flows
    /// to it share has this key.
    pub edge: u32,
    /// `true` per path (index in `guided`, else part 0 + U0 * (part 1 + U1 * ...)) reported dead to the host, or empty.
    pub dead: &'a [bool],
    /// Rate between the switches per path, indexed as `dead`, as the topology has it and degradations that were detected leave
    /// it; 0 if dead. Only for schemes with [`registry::SchemeCapabilities::reads_path_rates`]; empty: unknown.
    pub rates: &'a [Rate],
}

/// A packet that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Packet sequence number, from 0.
    pub psn: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// `true` if the packet was sent before.
    pub retransmission: bool,
    /// Time at which pacing and window first allowed this packet on an idle NIC.
    pub eligible_at: Time,
    /// Ports of the NIC that have space for a packet, one bit each; all bits where it has one port.
    pub free_ports: u32,
    /// Earliest time at which another has space.
    pub port_free_at: Time,
}

impl Outgoing {
    /// Creates the first packet of a flow, of `bytes`, at time 0 on a NIC whose ports are free.
    pub const fn first(bytes: u32) -> Self {
        let (zero, free_ports) = (Time::ZERO, u32::MAX);
        Outgoing { psn: 0, bytes, retransmission: false, eligible_at: zero, free_ports, port_free_at: zero }
    }
}

/// Decision of a host scheme on a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send now with this tag.
    Send(Tag),
    /// Send now with this tag and request an immediate acknowledgement: the scheme blocks the flow until it arrives.
    SendWithAckRequest(Tag),
    /// Send no packet of this flow before this time, or a reply to a probe that ends the wait; then call the scheme
    /// again.
    Hold(Time),
    /// Send no packet of this flow before its next acknowledgement (or timeout); then call the scheme again.
    Wait,
}

/// A packet that measures the round trip of a path. It waits in the data queues; its reply uses the control class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Path to measure.
    pub tag: Tag,
    /// Payload bytes.
    pub bytes: u32,
}

/// Cause of a packet's loss, as its sender has it; a timeout has a call of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A switch trimmed it.
    Trimmed,
    /// The last switch trimmed it, before a port that all paths share.
    TrimmedAtLastHop,
    /// A packet sent later has arrived.
    Gap,
    /// It arrived, and the receiver had no memory for it: its path is not at fault.
    Refused,
}

/// State of an entropy value, of schemes that keep one for each (MRC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueState {
    /// In use, or a backup.
    Good,
    /// Congested: skipped, and good again by itself.
    Skipped,
    /// Withdrawn after a loss, and probed.
    Withdrawn,
    /// Denied by a controller.
    Denied,
}

/// Counters of schemes; the results contain the sums over all hosts or switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchemeCounters {
    /// Flowlets, including the first of each flow (switch schemes with a flowlet table).
    pub flowlets: u64,
    /// Flowlets that a host scheme created by holding a packet back.
    pub created_flowlets: u64,
    /// Picoseconds for which a host scheme held packets back.
    pub added_delay_ps: u64,
    /// Flowlet timeouts of the packets that a host scheme held back, in picoseconds.
    pub hold_timeouts_ps: u64,
    /// Moves of flows to another path by a switch (ConWeave).
    pub reroutes: u64,
    /// Packets that waited in a reordering queue of a switch (ConWeave).
    pub reordered_packets: u64,
}

impl std::ops::AddAssign for SchemeCounters {
    fn add_assign(&mut self, other: Self) {
        self.flowlets += other.flowlets;
        self.created_flowlets += other.created_flowlets;
        self.added_delay_ps += other.added_delay_ps;
        self.hold_timeouts_ps += other.hold_timeouts_ps;
        self.reroutes += other.reroutes;
        self.reordered_packets += other.reordered_packets;
    }
}

/// Contents of an acknowledgement for a host scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Tag of the packet that triggered the acknowledgement.
    pub tag: Tag,
    /// `true` if that packet was ECN-marked; other notifications (it came out of order) do not count.
    pub ecn: bool,
    /// Its round-trip time; `None` for a retransmitted packet, whose sample would be ambiguous.
    pub rtt: Option<Time>,
    /// Its PSN.
    pub psn: u64,
    /// Packets newly acknowledged (several where ACKs are coalesced).
    pub packets: u32,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// First PSN not yet received.
    pub cumulative: u64,
    /// Next new PSN.
    pub next_psn: u64,
    /// Packets at or after `cumulative` that have arrived: bit i is PSN `selective_from + i`. 0 where the transport reports none
    /// (go-back-N), and with `roce` for schemes without [`registry::SchemeCapabilities::reads_selective`]. [`Sent`] gives their
    /// tags.
    pub selective: u64,
    /// PSN of the first bit.
    pub selective_from: u64,
}

/// What a host has measured of a tag of a steered connection ([`HostScheme::steer`]), summed since it is steered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathReading {
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Round trips measured.
    pub samples: u64,
    /// Their sum.
    pub round_trips: Time,
    /// Acknowledgements of marked packets.
    pub marks: u64,
    /// Packets lost.
    pub losses: u64,
    /// Chunks sent over it after a chunk over another tag.
    pub moves: u64,
}

/// Host side of a scheme: one object per host. Dense slots identify flows and are reused after [`HostScheme::close`].
pub trait HostScheme {
    /// Opens a flow in `slot`.
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>);
    /// Closes the flow in `slot`.
    fn close(&mut self, slot: u32);
    /// Selects the path of the next packet of the flow in `slot`.
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision;
    /// Handles the signal that an acknowledged or trimmed packet with this tag has brought back; its acknowledgement or loss
    /// follows. Called for schemes with [`registry::SchemeCapabilities::reads_signals`].
    fn on_signal(&mut self, _now: Time, _slot: u32, _tag: Tag, _signal: LinkSignal) {}
    /// Handles an acknowledgement.
    fn on_ack(&mut self, _now: Time, _slot: u32, _feedback: &Feedback) {}
    /// Handles the loss of the packet with this tag. Schemes that treat all causes alike implement [`HostScheme::on_nack`].
    #[inline]
    fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
        if cause != Loss::Refused {
            self.on_nack(now, slot, tag);
        }
    }
    /// Handles the loss of the packet with this tag on its path: it was trimmed, or a packet sent later has arrived.
    fn on_nack(&mut self, _now: Time, _slot: u32, _tag: Tag) {}
    /// Handles the timeout of the packet with this tag.
    fn on_timeout(&mut self, _now: Time, _slot: u32, _tag: Tag) {}
    /// Handles a change of the dead paths (indexed as [`PathSpace::dead`]; empty: none).
    fn on_paths_changed(&mut self, _now: Time, _slot: u32, _dead: &[bool]) {}
    /// Handles a change of the rates of paths ([`PathSpace::rates`]), after that of the dead paths.
    fn on_rates_changed(&mut self, _now: Time, _slot: u32, _rates: &[Rate]) {}
    /// Handles a change of the ports that are down, one bit per plane: the host's own and the receiver's.
    fn on_ports_changed(&mut self, _now: Time, _slot: u32, _local: u32, _remote: u32) {}
    /// Returns the next probe for the flow in `slot`; called until it returns `None` after every
    /// acknowledgement, reply to a probe and timer of the flow, and at [`HostScheme::probe_at`].
    fn poll_probe(&mut self, _now: Time, _slot: u32) -> Option<Probe> {
        None
    }
    /// Returns the time at which it must be polled for probes again, acknowledgements or not; [`Time::MAX`]: never.
    #[inline]
    fn probe_at(&self, _slot: u32) -> Time {
        Time::MAX
    }
    /// Handles the reply to a probe. `rtt` is corrected for serialisation to that of a full data packet;
    /// [`Time::MAX`]: the network reported the probe as lost. `ecn`: the probe was marked. Returns `true` if the flow need no longer wait
    /// ([`Decision::Hold`], [`Decision::Wait`]): the scheme is called again.
    fn on_probe_reply(&mut self, _now: Time, _slot: u32, _tag: Tag, _rtt: Time, _ecn: bool) -> bool {
        false
    }
    /// Records the changes of the states of a flow's entropy values from now on.
    fn record_changes(&mut self, _slot: u32) {}
    /// Takes the recorded changes, in order of time.
    fn take_changes(&mut self, _slot: u32, _each: &mut dyn FnMut(Time, Tag, ValueState)) {}
    /// Spreads the chunks of a connection over tags 0 to `weights.len() - 1` by these shares, from its next chunk on. `false`: the
    /// scheme decides alone, and nothing changes.
    fn steer(&mut self, _connection: u64, _weights: &[f32]) -> bool {
        false
    }
    /// Returns the readings of a steered connection, by tag; of others none.
    fn readings(&self, _connection: u64) -> &[PathReading] {
        &[]
    }
    /// Returns the values of the columns that its file declares with `state!`, for the flow in `slot`; `tag` is the path that the
    /// call before chose or reported on. Only traces and observers call it.
    fn state(&self, _now: Time, _slot: u32, _tag: Option<Tag>) -> State {
        State::default()
    }
    /// Returns its counters.
    fn counters(&self) -> SchemeCounters {
        SchemeCounters::default()
    }
}

/// 20 bytes of a data packet for the headers of switch schemes: zero at the host, which never reads them.
///
/// The last word is that of schemes with [`registry::SchemeCapabilities::writes_header`], else of the signals of links
/// ([`LinkSignal`]); the others are only those of schemes with [`registry::SchemeCapabilities::fills_header`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchHeader(pub [u32; 5]);

impl SwitchHeader {
    /// Returns the 64 bits in words `2 * half` and `2 * half + 1` (`half` is 0 or 1).
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

/// View of a packet for a switch scheme.
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
    /// Path tag.
    pub tag: Tag,
    /// Bytes on the wire.
    pub bytes: u32,
    /// `true` for ACKs and NACKs, whose `src` is the flow's receiver; `false` for data and headers of trimmed data.
    pub control: bool,
    /// `true` if the packet has been ECN-marked.
    pub marked: bool,
}

/// Equal-cost next hops of a packet, in port order: at least two, or with [`registry::PacketScope::EveryHop`] one.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// Number of candidates.
    pub count: u32,
    /// Dense number of this set of next hops at this switch, below `SwitchInfo::groups`.
    pub group: u32,
    /// Position of each among the switch's uplinks without failures.
    pub position: &'a [u16],
    /// Output port of each at this switch, below `SwitchInfo::ports`.
    pub port: &'a [u16],
    /// Number of positions without failures.
    pub uplinks: u32,
}

/// Properties of a switch, passed to its scheme.
#[derive(Clone, Debug)]
pub struct SwitchInfo {
    /// Stable key of the switch, for hash seeds and random streams.
    pub key: u64,
    /// Tier: 0 for leaves (top of rack), 1 above, and so on.
    pub tier: u8,
    /// Number of different sets of next hops at this switch.
    pub groups: u32,
    /// Maximum number of candidates in a set.
    pub widest: u32,
    /// Bits of the multi-part entropy value below the part that the switch reads: its tier's, or without uplinks that of the
    /// tier below, so that parallel cables down are chosen as those up were.
    pub part_shift: u32,
    /// Number of values of that part.
    pub part_size: u32,
    /// Number of the switch, as in `PacketView::src_leaf`.
    pub number: u32,
    /// Number of switches.
    pub switches: u32,
    /// Output ports.
    pub ports: u32,
    /// Uplinks per tier, leaf first, without failures; empty if the topology has no tiers.
    pub uplinks: Vec<u32>,
    /// Number of the switch, hosts counted first, if its hash is that of the recorded runs (`fabric.recorded`).
    pub murmur3: Option<u32>,
    /// `true` if flows are identified by their UDP ports (`fabric.flow_keys`), as in the recorded runs.
    pub udp_ports: bool,
    /// Propagation delay of one link between switches.
    pub hop_delay: Time,
    /// Maximum bytes of data at a port (`fabric.queue_limit`; with a shared buffer only a reference value).
    pub queue_limit: u64,
    /// `true` if the fabric pauses instead of dropping (PFC).
    pub lossless: bool,
    /// Kind of tags of the packets.
    pub tags: registry::TagKind,
}

impl SwitchInfo {
    /// Returns the number of uplinks of a switch of this tier without failures.
    pub fn own_uplinks(&self) -> u32 {
        self.uplinks.get(usize::from(self.tier)).copied().unwrap_or(0)
    }
}

/// Queues of the candidates, read on demand.
pub trait LocalQueues {
    /// Returns the bytes queued at candidate `index` in the classes that matter, including the packet in transmission.
    fn bytes(&mut self, index: u32) -> u64;
    /// Returns the rate of the link of candidate `index`.
    fn rate(&mut self, index: u32) -> Rate;
}

/// Treatment of a data packet at its last switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Forward it to its host.
    Deliver,
    /// Append it to this reordering queue of the scheme until [`Effects::release`].
    Hold(u32),
}

/// Requests of a switch scheme to its switch besides a decision. The switch empties it after every call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Control packets for the leaf of the current packet's sender, in order; only while a packet is processed.
    pub reply: Vec<SwitchHeader>,
    /// Timers to set: time and number for [`SwitchScheme::on_timer`].
    pub wake: Vec<(Time, u32)>,
    /// Reordering queues to release to their hosts now, in order.
    pub release: Vec<u32>,
}

/// Switch side of a scheme: one object per switch.
pub trait SwitchScheme {
    /// Returns the candidate, out of `count`, of a packet that its tag, or addresses, flow and tag, determine: without
    /// queues, header or state. [`SwitchScheme::forward`], which must agree, is then not called. `packet` takes longer than
    /// its `tag` alone; `uplinks` as in [`Candidates::uplinks`].
    #[inline]
    fn by_labels(&self, _tag: Tag, _packet: impl FnOnce() -> PacketView, _count: u32, _uplinks: u32) -> Option<u32> {
        None
    }
    /// Returns the index of the packet's candidate. `header` is the packet's own and may be rewritten, except that of
    /// an ACK or NACK. Schemes with [`registry::PacketScope::Guided`] implement [`SwitchScheme::guide`] instead.
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
    /// Returns the switch-facing port of a data packet, for schemes with [`registry::PacketScope::Guided`].
    fn guide<G: GuidedSwitch>(
        &mut self,
        _now: Time,
        _packet: &PacketView,
        _header: &mut SwitchHeader,
        at: &mut G,
    ) -> u32 {
        at.minimal(at.here())
    }
    /// Handles a data packet at the switch of its receiver, for schemes with [`registry::PacketScope::EveryHop`].
    fn deliver(&mut self, _now: Time, _packet: &PacketView, _header: &SwitchHeader, _out: &mut Effects) -> Delivery {
        Delivery::Deliver
    }
    /// Handles another switch's control packet at this leaf. `packet` is the data packet that triggered it.
    fn on_control(&mut self, _now: Time, _packet: &PacketView, _header: &SwitchHeader, _out: &mut Effects) {}
    /// Handles a timer of [`Effects::wake`].
    fn on_timer(&mut self, _now: Time, _number: u32, _out: &mut Effects) {}
    /// Returns the values of the columns that its file declares with `state!`, after it has forwarded this packet, which has this
    /// header now; the default if that was no choice of its own. Only traces call it.
    fn state(&self, _now: Time, _packet: &PacketView, _header: &SwitchHeader) -> State {
        State::default()
    }
    /// Returns its counters.
    fn counters(&self) -> SchemeCounters {
        SchemeCounters::default()
    }
    /// Handles a change of the sets of next hops (a failed link left or rejoined the tables): state per set is void.
    fn on_routes_changed(&mut self, _groups: u32) {}
}
