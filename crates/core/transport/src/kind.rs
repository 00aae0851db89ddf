//! Traits of a transport: its scenario parameters, the constants of a run, sender and receiver.

use crate::{AckOutcome, BaseRttShift, DataArrival, Network, Reply, Segment, control::Controls};
use anabranch_settings::{About, Never, Parameters, SetError};
use anabranch_units::{Bytes, BytesOrBdp, Rate, Time};
use std::fmt::Debug;

/// `[transport]` of one kind as a scenario sets it: its limits and its differences from other transports.
pub trait TransportSettings: Parameters {
    /// Returns its congestion controls.
    fn controls(&self) -> &dyn Controls;
    /// Returns its congestion controls for modification.
    fn controls_mut(&mut self) -> &mut dyn Controls;
    /// Returns the registry entry of the selected congestion control.
    fn control(&self) -> &'static About;
    /// Checks that every parameter is within its range. The key of an error is relative to `[transport]`.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`] for the first parameter out of range.
    fn check(&self) -> Result<(), SetError>;
    /// Payload bytes of a full packet.
    fn mtu(&self) -> u64;
    /// Header bytes of a data packet.
    fn header(&self) -> u64;
    /// Bytes of an acknowledgement on the wire.
    fn ack_size(&self) -> u64;
    /// Window, and the bytes that a full packet occupies in it; `None`: derived from the network, or unlimited.
    fn window(&self) -> Option<(BytesOrBdp, u64)>;
    /// Applies the settings that a real network requires.
    fn adapt(&mut self, real: &RealNetwork);

    /// Parameters of the congestion control `name`, `[transport.<name>]`, if it has any.
    fn control_parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
        self.controls_mut().parameters_mut(name).filter(|parameters| !parameters.entries().is_empty())
    }
    /// Data packets per acknowledgement, unless an acknowledgement is requested earlier.
    fn packets_per_ack(&self) -> u64 {
        1
    }
    /// Returns `true` if its timeouts outlast every queue that drops nothing, where switches trim: without a drop there is no
    /// timeout.
    fn outlasts_queues(&self) -> bool {
        false
    }
    /// Returns `true` if its receivers process trimmed packets.
    fn supports_trimming(&self) -> bool {
        false
    }
    /// Returns `true` if receivers grant credit, for which a real network has no pacer.
    fn takes_credit(&self) -> bool {
        false
    }
    /// Returns the keys that differ from their defaults to no effect, each with the setting that it needs.
    fn idle_keys(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// Returns `true` if a flow that changes its path resets its rate or window.
    fn restarts_on_path_change(&self) -> bool {
        false
    }
    /// Returns `true` if its packets have RoCEv2 headers, which captures then show.
    fn has_roce_headers(&self) -> bool {
        false
    }
    /// Conflict with PFC, if any: the parameter at fault with its value, and the remedy.
    fn pfc_problem(&self) -> Option<(String, &'static str)> {
        None
    }
}

/// Settings on a real network: sizes of the wire format, a measured timeout, and loss detection by overtaking packets.
#[derive(Clone, Copy, Debug)]
pub struct RealNetwork {
    /// Payload bytes of a full packet.
    pub payload: Bytes,
    /// Header bytes of a data packet.
    pub header: Bytes,
    /// Lower bound of the timeout.
    pub min_timeout: Time,
    /// Reordering window per path: a packet is lost once one sent this much later on the same path is acknowledged.
    pub early_loss: Never<Time>,
    /// The datapath reports each loss itself: the least timeout is the timeout.
    pub is_reliable: bool,
}

/// Memory of a NIC that receivers keep within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicLimits {
    /// Bytes of a NIC for queue pairs and early packets.
    pub memory: u64,
    /// Bytes that each connection reserves for early packets; `None`: connections share what is free.
    pub reorder: Option<u64>,
    /// Bytes of the context of a queue pair.
    pub queue_pair: u64,
}

/// A transport as its module implements it: the runtime types of a [`TransportSettings`].
pub trait Protocol: TransportSettings {
    /// The constants of a run.
    type Config: Constants;
    /// The sending side of a flow.
    type Sender: Sending<Config = Self::Config>;
    /// The receiving side of a flow.
    type Receiver: Receiving<Config = Self::Config>;
    /// Resolves parameters that have passed `check` against the network.
    fn resolve(&self, network: &Network) -> Self::Config;
}

/// The constants of a run, shared by all its flows.
pub trait Constants: Clone + Debug {
    /// Shift of the base round trip since the flows opened.
    fn base_rtt_shift(&self) -> BaseRttShift;
    /// Sets the shift of the base round trip since the flows opened.
    fn set_base_rtt_shift(&mut self, base_rtt_shift: BaseRttShift);
    /// Reply to a data packet of a complete flow of `size` bytes; the earlier final reply was lost or is in flight.
    fn final_reply(&self, size: u64, arrival: &DataArrival) -> Reply;
    /// Shortest time from a transmission to the timeout it may cause; `None`: no timeout.
    fn min_timeout(&self) -> Option<Time>;
    /// Longest timeout before any backoff; `None`: no timeout.
    fn max_timeout(&self) -> Option<Time> {
        self.min_timeout()
    }

    /// Checks that a reply can arrive before the timeout.
    ///
    /// # Errors
    /// If every packet would be retransmitted before its reply can arrive.
    fn check(&self, _network: &Network) -> Result<(), String> {
        Ok(())
    }
    /// Returns the window in use and the smallest default that fills a path of `network`, in bytes, if the one in use cannot.
    fn short_window(&self, _network: &Network) -> Option<(u64, u64)> {
        None
    }
    /// Packets per window, for memory estimates.
    fn window_packets(&self) -> u64 {
        128
    }
    /// Returns `true` if each acknowledgement has an entropy value of its own.
    fn fresh_acks(&self) -> bool {
        false
    }
    /// Returns `true` if schemes receive feedback on packets trimmed at their last hop.
    fn reports_last_hop_trims(&self) -> bool {
        false
    }
    /// Packets that may arrive early without harm (Hopper §4.1.1); `u64::MAX` where order is irrelevant.
    fn early_packets(&self) -> u64 {
        u64::MAX
    }
    /// Window of a flow whose receiver grants credit (RCCC); `None`: there is no credit.
    fn credit_window(&self) -> Option<u64> {
        None
    }
    /// Limits of the memory of a NIC; `None`: there are none.
    fn nic_limits(&self) -> Option<NicLimits> {
        None
    }
}

/// The sending side of a flow.
pub trait Sending: Clone + Debug {
    /// The constants of its run.
    type Config;

    /// Creates the sender of `size` payload bytes at `now`; `rate` is the NIC's, `base_rtt` the paths'.
    fn new(config: &Self::Config, rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self;
    /// Creates the sender of an endless stream of full packets, which sends nothing until packets are appended; its
    /// first PSN is `first`.
    fn of_stream(config: &Self::Config, rate: Rate, base_rtt: Time, now: Time, first: u64) -> Self;
    /// Appends packets to a stream.
    fn append(&mut self, config: &Self::Config, packets: u64);
    /// Removes `packets` full packets that have not been sent yet from the end of the flow.
    fn shorten(&mut self, config: &Self::Config, packets: u64);
    /// Returns `true` if a packet is available and the window allows it; ignores pacing.
    fn ready(&self, config: &Self::Config) -> bool;
    /// Returns the next packet, regardless of window and pacing.
    fn peek(&self, config: &Self::Config) -> Option<Segment>;
    /// Sends the packet that [`Sending::peek`] returns, at `now` with path tag `tag`.
    ///
    /// # Panics
    /// If there is no packet to send.
    fn send(&mut self, config: &Self::Config, now: Time, tag: u32) -> Segment;
    /// Processes a reply. `path_rtt` is the base round trip of the acknowledged packet's path, if known. `measured` is
    /// that packet's round trip from a timestamp, otherwise the time since its transmission.
    fn on_reply(
        &mut self,
        config: &Self::Config,
        now: Time,
        reply: &Reply,
        path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> AckOutcome;
    /// Passes the tags of the `count` packets that were declared lost last to `lost`.
    #[inline]
    fn last_lost(&self, _count: u32, _lost: &mut impl FnMut(u32)) {}
    /// Time at which [`Sending::on_timer`] is due, maybe early, never late; `None` if nothing is in flight.
    fn deadline(&self, config: &Self::Config) -> Option<Time>;
    /// Handles the timer; passes PSN and tag of each packet declared lost to `timed_out`.
    fn on_timer(&mut self, config: &Self::Config, now: Time, timed_out: &mut impl FnMut(u64, u32));
    /// Window in bytes and rate that the congestion control allows at `now`, where it has them.
    fn allowed(&self, config: &Self::Config, now: Time) -> (Option<u64>, Option<Rate>);
    /// Next new PSN.
    fn next_psn(&self) -> u64;
    /// First PSN not yet acknowledged cumulatively.
    fn cumulative(&self) -> u64;
    /// Data neither acknowledged nor lost, in bytes (`uet`) or packets (`roce`).
    fn in_flight(&self) -> u64;
    /// Time at which a packet in flight has left last; `None`: it is not known.
    fn sent_at(&self, _psn: u64) -> Option<Time> {
        None
    }
    /// Number of retransmissions.
    fn retransmitted(&self) -> u64;
    /// Number of packets of the flow.
    fn packets(&self) -> u64;

    /// Returns the credit that it requests of its receiver, in bytes since its start; `active` senders share its NIC.
    #[inline]
    fn demand(&self, _config: &Self::Config, _active: u32) -> u64 {
        0
    }
    /// Processes a grant of its receiver, in bytes since its start.
    fn on_grant(&mut self, _config: &Self::Config, _granted: u64) {}
    /// Returns `true` if its queue pair is in error: it sends nothing more.
    fn is_failed(&self) -> bool {
        false
    }
    /// Earliest time at which pacing allows the next packet.
    #[inline]
    fn next_avail(&self) -> Time {
        Time::ZERO
    }
    /// Returns `true` if the last packet must request an immediate ACK; `ready` is [`Sending::ready`] after it.
    #[inline]
    fn requests_ack(&self, _ready: bool) -> bool {
        false
    }
    /// Notes that the load balancer blocks the flow until feedback arrives: the last packet sent is the tail for now.
    #[inline]
    fn on_blocked(&mut self) {}
    /// Returns `true` if its next packet must follow the last one before another flow's turn.
    #[inline]
    fn keeps_turn(&self) -> bool {
        false
    }
}

/// The receiving side of a flow.
pub trait Receiving: Clone + Debug {
    /// The constants of its run.
    type Config;

    /// Creates the receiver of `size` payload bytes.
    fn new(config: &Self::Config, size: u64) -> Self;
    /// Creates the receiver of an endless stream, which is never complete; all packets count as full, the first has the
    /// PSN `first`.
    fn of_stream(config: &Self::Config, first: u64) -> Self;
    /// Removes `packets` full packets that have not arrived yet from the end of the flow.
    fn shorten(&mut self, config: &Self::Config, packets: u64);
    /// Processes a data packet; returns the reply, if one is due, and `true` if it completed the flow.
    fn on_data(&mut self, config: &Self::Config, now: Time, data: &DataArrival) -> (Option<Reply>, bool);
    /// First PSN not yet received.
    fn cumulative(&self) -> u64;
    /// Arrivals whose PSN was not the lowest missing one.
    fn out_of_order(&self) -> u64;
    /// Arrivals whose PSN was not the previous arrival's plus one.
    fn out_of_sequence(&self) -> u64;
    /// Maximum of the payload bytes held beyond the lowest missing PSN.
    fn max_reorder_bytes(&self) -> u64;
    /// Unique payload bytes received.
    fn received_bytes(&self) -> u64;

    /// Payload bytes held beyond the lowest missing PSN.
    #[inline]
    fn early_bytes(&self) -> u64 {
        0
    }
    /// Limits the payload bytes that it may hold beyond the lowest missing PSN. What exceeds them is refused.
    #[inline]
    fn limit_early(&mut self, _bytes: u64) {}
    /// Limit of [`Receiving::limit_early`].
    fn early_limit(&self) -> u64 {
        u64::MAX
    }
    /// Packets refused for lack of memory.
    fn refused(&self) -> u64 {
        0
    }

    /// Processes a trimmed packet, which may have requested an immediate ACK; returns the NACK. Transports without trimming
    /// return `None`.
    fn on_header(&mut self, _config: &Self::Config, _psn: u64, _tag: u32, _ack_request: bool) -> Option<Reply> {
        None
    }
    /// Time at which [`Receiving::on_timer`] is due.
    #[inline]
    fn deadline(&self) -> Option<Time> {
        None
    }
    /// Handles the timer of a delayed acknowledgement.
    fn on_timer(&mut self, _config: &Self::Config, _now: Time) -> Option<Reply> {
        None
    }
}
