//! What a transport is: what a scenario sets of it, its constants in a run, and both ends of a flow.

use crate::{Acked, Answer, DataArrival, Moved, Network, Segment, control::Controls};
use anabranch_settings::{About, Never, Parameters, SetError};
use anabranch_units::{Bytes, BytesOrBdp, Rate, Time};
use std::fmt::Debug;

/// `[transport]` of one kind, as a scenario sets it: its limits, and how it differs from others.
pub trait Kind: Parameters {
    /// Its congestion controls.
    fn controls(&self) -> &dyn Controls;
    /// Its congestion controls, to be set.
    fn controls_mut(&mut self) -> &mut dyn Controls;
    /// What the registry says of the congestion control in use.
    fn control(&self) -> &'static About;
    /// Whether every value lies in the range where it has a meaning. The key of an error is relative to `[transport]`.
    ///
    /// # Errors
    /// [`SetError::WrongValue`] of the first that does not.
    fn check(&self) -> Result<(), SetError>;
    /// Payload bytes of a full packet.
    fn mtu(&self) -> u64;
    /// Header bytes of a data packet.
    fn header(&self) -> u64;
    /// Bytes of an acknowledgement on the wire.
    fn ack_size(&self) -> u64;
    /// The window, and the bytes that a full packet takes of it; `None`: it follows from the network, or there is none.
    fn window(&self) -> Option<(BytesOrBdp, u64)>;
    /// Sets what a real network asks for.
    fn adapt(&mut self, real: &RealNetwork);

    /// The parameters of one of its congestion controls, `[transport.<name>]`, where that has any.
    fn control_parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
        self.controls_mut().parameters_mut(name).filter(|parameters| !parameters.entries().is_empty())
    }
    /// Data packets per acknowledgement, as long as nothing asks for one sooner.
    fn packets_per_ack(&self) -> u64 {
        1
    }
    /// Whether its receivers understand packets that were trimmed.
    fn understands_trimming(&self) -> bool {
        false
    }
    /// Whether a flow that changes its path starts its rate or window afresh.
    fn restarts_on_path_change(&self) -> bool {
        false
    }
    /// Whether its packets are those of RoCEv2, which captures show as such.
    fn has_roce_headers(&self) -> bool {
        false
    }
    /// Why it does not go with PFC: its parameter at fault as it stands, and what to do.
    fn pfc_problem(&self) -> Option<(String, &'static str)> {
        None
    }
}

/// What a transport must be set to on a real network: packets of our size and header, a timeout that follows measured round trips,
/// losses found by what overtakes them.
#[derive(Clone, Copy, Debug)]
pub struct RealNetwork {
    /// Payload bytes of a full packet.
    pub payload: Bytes,
    /// Header bytes of a data packet.
    pub header: Bytes,
    /// The shortest timeout.
    pub min_timeout: Time,
    /// How much later a packet of the same path must have left whose acknowledgement makes a packet count as lost.
    pub early_loss: Never<Time>,
}

/// A transport as its room implements it: what runs where [`Kind`] is set.
pub trait Protocol: Kind {
    /// The constants of a run.
    type Config: Constants;
    /// The sending side of a flow.
    type Sender: Sending<Config = Self::Config>;
    /// The receiving side of a flow.
    type Receiver: Receiving<Config = Self::Config>;
    /// Resolves the parameters, which must have passed their `check`, against the network.
    fn resolve(&self, network: &Network) -> Self::Config;
}

/// The constants of a run, shared by all its flows.
pub trait Constants: Clone + Debug {
    /// By how much the base round trip is another than flows were told.
    fn moved(&self) -> Moved;
    /// The base round trip is another than flows were told.
    fn set_moved(&mut self, moved: Moved);
    /// The answer to a data packet of a flow of `size` bytes that is complete: the last answer was lost or is on its way.
    fn final_answer(&self, size: u64, arrival: &DataArrival) -> Answer;
    /// The shortest time from a packet's sending to the timeout that it may cause; `None`: there is no timeout.
    fn least_timeout(&self) -> Option<Time>;

    /// Whether the timeouts leave time for an answer.
    ///
    /// # Errors
    /// Where every packet would be sent again before its answer can be back.
    fn check(&self, _network: &Network) -> Result<(), String> {
        Ok(())
    }
    /// Packets that a window holds, for estimates of memory.
    fn window_packets(&self) -> u64 {
        128
    }
    /// Whether an acknowledgement has an entropy value of its own.
    fn fresh_acks(&self) -> bool {
        false
    }
    /// Whether a scheme hears of a packet that was trimmed at its last hop.
    fn blames_last_hop(&self) -> bool {
        false
    }
    /// Packets that may come early without harm (Hopper §4.1.1); `u64::MAX` where order does not matter.
    fn early_packets(&self) -> u64 {
        u64::MAX
    }
}

/// The sending side of a flow.
pub trait Sending: Clone + Debug {
    /// The constants of its run.
    type Config;

    /// The sender of `size` payload bytes, from `now` on, by a NIC of `rate`, over paths of base round trip `base_rtt`.
    fn new(config: &Self::Config, rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self;
    /// The sender of a stream without end: it has nothing to send until packets are appended. Every packet of a stream
    /// counts as a full one.
    fn of_stream(config: &Self::Config, rate: Rate, base_rtt: Time, now: Time) -> Self;
    /// Appends packets to a stream.
    fn append(&mut self, config: &Self::Config, packets: u64);
    /// Whether there is something to send and the window allows it; pacing aside.
    fn ready(&self, config: &Self::Config) -> bool;
    /// What would be sent next, whatever window and pacing say.
    fn peek(&self, config: &Self::Config) -> Option<Segment>;
    /// Sends what [`Sending::peek`] shows, at `now` with path tag `tag`; returns it.
    ///
    /// # Panics
    /// Where there is nothing to send.
    fn send(&mut self, config: &Self::Config, now: Time, tag: u32) -> Segment;
    /// An answer of its receiver. `path_rtt` is the base round trip over the path of the packet that it answers, where that
    /// is known; `measured` is that packet's own round trip, where a stamp came back with the answer: else it is the time
    /// since the packet was sent.
    fn on_answer(
        &mut self,
        config: &Self::Config,
        now: Time,
        answer: &Answer,
        path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> Acked;
    /// When [`Sending::on_timer`] must be called next at the latest; `None` where nothing is in flight. It may be too early, which
    /// costs a look, but is never too late.
    fn deadline(&self, config: &Self::Config) -> Option<Time>;
    /// Its timer strikes; tells PSN and tag of each packet that is declared lost.
    fn on_timer(&mut self, config: &Self::Config, now: Time, timed_out: &mut impl FnMut(u64, u32));
    /// What its congestion control allows at `now`: a window in bytes and a rate, where it has them. Looking changes nothing.
    fn allowed(&self, config: &Self::Config, now: Time) -> (Option<u64>, Option<Rate>);
    /// The next new PSN.
    fn next_psn(&self) -> u64;
    /// Every PSN below this one is acknowledged.
    fn cumulative(&self) -> u64;
    /// What is neither acknowledged nor lost, in bytes (`uet`) or packets (`roce`).
    fn in_flight(&self) -> u64;
    /// Packets sent more than once, counted each time.
    fn retransmitted(&self) -> u64;
    /// Packets in all.
    fn packets(&self) -> u64;

    /// Pacing does not let the next packet go before this.
    #[inline]
    fn next_avail(&self) -> Time {
        Time::ZERO
    }
    /// Whether the packet just sent should ask for an answer at once; `ready` is what [`Sending::ready`] says after it.
    #[inline]
    fn wants_answer(&self, _ready: bool) -> bool {
        false
    }
    /// Nothing further goes before something is heard: its load balancer waits. Until then what was sent last is the end of what there
    /// is to send.
    #[inline]
    fn rest(&mut self) {}
    /// Whether its next packet should follow the last one before another flow's turn comes.
    #[inline]
    fn keeps_turn(&self) -> bool {
        false
    }
}

/// The receiving side of a flow.
pub trait Receiving: Clone + Debug {
    /// The constants of its run.
    type Config;

    /// The receiver of `size` payload bytes.
    fn new(config: &Self::Config, size: u64) -> Self;
    /// The receiver of a stream without end, whose packets all count as full ones; it is never complete.
    fn of_stream(config: &Self::Config) -> Self;
    /// Takes a data packet; returns the answer, if one is due, and whether the flow is complete.
    fn on_data(&mut self, config: &Self::Config, now: Time, data: &DataArrival) -> (Option<Answer>, bool);
    /// The first PSN that has not been received.
    fn cumulative(&self) -> u64;
    /// Arrivals whose PSN was not the lowest one missing.
    fn out_of_order(&self) -> u64;
    /// Arrivals whose PSN was not the last arrival's plus one.
    fn out_of_sequence(&self) -> u64;
    /// Most payload bytes that were ever held beyond the lowest missing one.
    fn max_reorder_bytes(&self) -> u64;
    /// Unique payload bytes.
    fn received_bytes(&self) -> u64;

    /// A packet without its payload; returns the answer. Where the transport knows no trimming there is none.
    fn on_header(&mut self, _config: &Self::Config, _psn: u64, _tag: u32) -> Option<Answer> {
        None
    }
    /// When [`Receiving::on_timer`] must be called.
    #[inline]
    fn deadline(&self) -> Option<Time> {
        None
    }
    /// A delayed acknowledgement is due.
    fn on_timer(&mut self, _config: &Self::Config, _now: Time) -> Option<Answer> {
        None
    }
}
