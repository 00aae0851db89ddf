//! The transports a run can use, behind one face: which one is the scenario's choice, the same for all its flows.
//! To add one, add a variant here; nobody else tells transports apart.

use crate::{
    Acked, Answer, DataArrival, Moved, Network, Segment, cc,
    control::About,
    roce::{RateOnPathChange, Recovery, RoceConfig, RoceReceiver, RoceSender, RoceTransport, control, final_reply},
    uet::{Nack, UetConfig, UetReceiver, UetSender, UetTransport},
};
use anabranch_settings::{Auto, Parameters, SetError, Setting};
use anabranch_units::{BytesOrBdp, Rate, Time};

/// What the registry says of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportAbout {
    /// The `kind` of a scenario.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Its congestion controls.
    pub controls: &'static [About],
}

/// Every transport.
pub const TRANSPORTS: &[TransportAbout] = &[
    TransportAbout {
        name: "uet",
        summary: "Ultra-Ethernet-like: window-based, coalesced acknowledgements with a selective bitmap, selective \
                  retransmission, NACKs for trimmed packets.",
        controls: cc::CONTROLS,
    },
    TransportAbout {
        name: "roce",
        summary: "RoCEv2: a queue pair per flow with its own pacing, an acknowledgement per packet, go-back-N or IRN, DCQCN.",
        controls: control::CONTROLS,
    },
];

/// `[transport]` of a scenario.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)]
pub enum TransportParameters {
    /// Ultra-Ethernet-like.
    Uet(UetTransport),
    /// RoCEv2.
    Roce(RoceTransport),
}

impl TransportParameters {
    /// The transport of this kind with its defaults.
    pub fn named(kind: &str) -> Option<Self> {
        let all = [Self::Uet(UetTransport::default()), Self::Roce(RoceTransport::default())];
        all.into_iter().find(|transport| transport.about().name == kind)
    }

    /// What the registry says of it.
    pub fn about(&self) -> &'static TransportAbout {
        match self {
            TransportParameters::Uet(_) => &TRANSPORTS[0],
            TransportParameters::Roce(_) => &TRANSPORTS[1],
        }
    }

    /// What the registry says of the congestion control in use.
    pub fn control(&self) -> &'static About {
        match self {
            TransportParameters::Uet(t) => t.uet.congestion_control.about(),
            TransportParameters::Roce(t) => t.roce.congestion_control.about(),
        }
    }

    /// The parameters of the transport itself, `[transport]`.
    pub fn parameters_mut(&mut self) -> &mut dyn Parameters {
        match self {
            TransportParameters::Uet(t) => &mut t.uet,
            TransportParameters::Roce(t) => &mut t.roce,
        }
    }

    /// The parameters of one of its congestion controls, `[transport.<name>]`, where that has any.
    pub fn control_parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
        let parameters = match self {
            TransportParameters::Uet(t) => t.cc.named_mut(name),
            TransportParameters::Roce(t) => t.cc.named_mut(name),
        };
        parameters.filter(|parameters| !parameters.entries().is_empty())
    }

    /// Whether every value lies in the range where it has a meaning. The key of an error is relative to `[transport]`.
    ///
    /// # Errors
    /// [`SetError::WrongValue`] of the first that does not.
    pub fn check(&self) -> Result<(), SetError> {
        match self {
            TransportParameters::Uet(t) => t.check(),
            TransportParameters::Roce(t) => t.check(),
        }
    }

    /// The window, and the bytes that a full packet takes of it; `None`: it follows from the network, or there is none.
    pub fn window(&self) -> Option<(BytesOrBdp, u64)> {
        match self {
            TransportParameters::Uet(t) => Some((t.uet.window, self.mtu() + self.header())),
            TransportParameters::Roce(t) => match t.roce.window {
                Auto::Auto => None,
                // Payload alone counts.
                Auto::Value(window) => Some((window, self.mtu())),
            },
        }
    }

    /// Data packets per acknowledgement, as long as nothing asks for one sooner.
    pub fn packets_per_ack(&self) -> u64 {
        match self {
            TransportParameters::Uet(t) => u64::from(t.uet.ack_every),
            TransportParameters::Roce(_) => 1,
        }
    }

    /// Whether its receivers understand packets that were trimmed.
    pub fn understands_trimming(&self) -> bool {
        matches!(self, TransportParameters::Uet(_))
    }

    /// Whether a flow that changes its path starts its rate or window afresh.
    pub fn restarts_on_path_change(&self) -> bool {
        matches!(self, TransportParameters::Roce(t) if t.roce.rate_on_path_change == RateOnPathChange::Fresh)
    }

    /// Why it does not go with PFC: its parameter at fault as it stands, and what to do.
    pub fn pfc_problem(&self) -> Option<(String, &'static str)> {
        let TransportParameters::Roce(t) = self else { return None };
        let help = "IRN does without PFC: use the profile roce-irn, or recovery = \"go-back-n\" with PFC (profile roce-lossless)";
        let fits = t.roce.recovery == Recovery::GoBackN;
        (!fits).then(|| (format!("recovery = {}", t.roce.recovery.write()), help))
    }

    /// Payload bytes of a full packet.
    pub fn mtu(&self) -> u64 {
        match self {
            TransportParameters::Uet(t) => t.uet.mtu.0,
            TransportParameters::Roce(t) => t.roce.mtu.0,
        }
    }
    /// Header bytes of a data packet.
    pub fn header(&self) -> u64 {
        match self {
            TransportParameters::Uet(t) => t.uet.header.0,
            TransportParameters::Roce(t) => t.roce.header.0,
        }
    }
    /// Bytes of an acknowledgement on the wire.
    pub fn ack_size(&self) -> u64 {
        match self {
            TransportParameters::Uet(t) => t.uet.ack_size.0,
            TransportParameters::Roce(t) => t.roce.ack_size.0,
        }
    }
}

/// The transport of a run, resolved against its network.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Transport {
    /// Ultra-Ethernet-like.
    Uet(UetConfig),
    /// RoCEv2.
    Roce(RoceConfig),
}

impl Transport {
    /// Resolves `parameters`, which must have passed their `check`.
    pub fn new(parameters: &TransportParameters, network: &Network) -> Self {
        match parameters {
            TransportParameters::Uet(t) => Transport::Uet(UetConfig::new(t, network)),
            TransportParameters::Roce(t) => Transport::Roce(RoceConfig::new(t, network)),
        }
    }

    /// The base round trip is another than flows were told.
    pub fn set_moved(&mut self, moved: Moved) {
        match self {
            Transport::Uet(config) => config.moved = moved,
            Transport::Roce(config) => config.moved = moved,
        }
    }

    /// See [`Transport::set_moved`].
    pub fn moved(&self) -> Moved {
        match self {
            Transport::Uet(config) => config.moved,
            Transport::Roce(config) => config.moved,
        }
    }

    /// Packets that a window holds, for estimates of memory.
    pub fn window_packets(&self) -> u64 {
        match self {
            Transport::Uet(config) => config.window_packets(),
            Transport::Roce(_) => 128,
        }
    }

    /// Whether an acknowledgement has an entropy value of its own.
    #[inline]
    pub fn fresh_acks(&self) -> bool {
        matches!(self, Transport::Uet(config) if config.fresh_acks)
    }

    /// Whether a scheme hears of a packet that was trimmed at its last hop.
    #[inline]
    pub fn blames_last_hop(&self) -> bool {
        matches!(self, Transport::Uet(config) if config.blames_last_hop)
    }

    /// Packets that may come early without harm (Hopper §4.1.1); `u64::MAX` where order does not matter.
    pub fn early_packets(&self) -> u64 {
        match self {
            Transport::Uet(_) => u64::MAX,
            Transport::Roce(config) => config.early_packets(),
        }
    }

    /// Whether the timeouts leave time for an answer.
    ///
    /// # Errors
    /// Where every packet would be sent again before its answer can be back.
    pub fn check(&self, network: &Network) -> Result<(), String> {
        let Transport::Uet(config) = self else { return Ok(()) };
        if config.rto >= network.base_rtt {
            return Ok(());
        }
        let (rto, rtt) = (config.rto, network.base_rtt);
        Err(format!(
            "transport.rto: found {rto}, expected the base round trip of {rtt} at least: every packet would be sent again before its \
             answer can be back"
        ))
    }

    /// The shortest time from a packet's sending to the timeout that it may cause; `None`: there is no timeout.
    pub fn least_timeout(&self) -> Option<Time> {
        match self {
            Transport::Uet(config) => Some(config.rto),
            Transport::Roce(config) => config.least_timeout(),
        }
    }

    /// The answer to a data packet of a flow of `size` bytes that is complete: the last answer was lost or is on its way.
    pub fn final_answer(&self, size: u64, arrival: &DataArrival) -> Answer {
        match self {
            Transport::Uet(config) => {
                let DataArrival { psn, tag, ecn, .. } = *arrival;
                Answer { cumulative: config.packets(size), ecn, psn, tag, ..Answer::default() }
            }
            Transport::Roce(config) => final_reply(config, size, arrival).into(),
        }
    }
}

/// The sending side of a flow.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Sender {
    /// Ultra-Ethernet-like.
    Uet(UetSender),
    /// RoCEv2.
    Roce(RoceSender),
}

macro_rules! of_sender {
    ($self:ident, $sender:ident => $value:expr) => {
        match $self {
            Sender::Uet($sender) => $value,
            Sender::Roce($sender) => $value,
        }
    };
}

/// A flow and the transport of its run are of one kind.
macro_rules! both {
    ($self:ident, $transport:ident, $side:ident: $sender:ident, $config:ident => $value:expr) => {
        match ($self, $transport) {
            ($side::Uet($sender), Transport::Uet($config)) => $value,
            ($side::Roce($sender), Transport::Roce($config)) => $value,
            _ => unreachable!("one transport per run"),
        }
    };
}

impl Sender {
    /// The sender of `size` payload bytes, from `now` on, by a NIC of `rate`, over paths of base round trip `base_rtt`.
    pub fn new(transport: &Transport, rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self {
        match transport {
            Transport::Uet(config) => Sender::Uet(UetSender::new(config, base_rtt, size)),
            Transport::Roce(config) => Sender::Roce(RoceSender::new(config, rate, base_rtt, size, now)),
        }
    }

    /// The sender of a stream without end: it has nothing to send until packets are appended. Every packet of a stream
    /// counts as a full one.
    pub fn of_stream(transport: &Transport, rate: Rate, base_rtt: Time, now: Time) -> Self {
        match transport {
            Transport::Uet(config) => Sender::Uet(UetSender::of_stream(config, base_rtt)),
            Transport::Roce(config) => Sender::Roce(RoceSender::of_stream(config, rate, base_rtt, now)),
        }
    }

    /// Appends packets to a stream.
    pub fn append(&mut self, transport: &Transport, packets: u64) {
        both!(self, transport, Sender: sender, config => sender.append(config, packets))
    }

    /// Whether there is something to send and the window allows it; pacing aside.
    #[inline]
    pub fn ready(&self, transport: &Transport) -> bool {
        both!(self, transport, Sender: sender, config => sender.ready(config))
    }

    /// Pacing does not let the next packet go before this.
    #[inline]
    pub fn next_avail(&self) -> Time {
        match self {
            Sender::Uet(_) => Time::ZERO,
            Sender::Roce(sender) => sender.next_avail(),
        }
    }

    /// What would be sent next, whatever window and pacing say.
    #[inline]
    pub fn peek(&self, transport: &Transport) -> Option<Segment> {
        both!(self, transport, Sender: sender, config => sender.peek(config))
    }

    /// Sends what [`Sender::peek`] shows, at `now` with path tag `tag`.
    #[inline]
    pub fn send(&mut self, transport: &Transport, now: Time, tag: u32) {
        both!(self, transport, Sender: sender, config => { sender.send(config, now, tag); })
    }

    /// Whether the packet just sent should ask for an answer at once; `ready` is what [`Sender::ready`] says after it.
    #[inline]
    pub fn wants_answer(&self, ready: bool) -> bool {
        matches!(self, Sender::Uet(_)) && !ready
    }

    /// Nothing further goes before something is heard: its load balancer waits. Until then what was sent last is the end of what there
    /// is to send.
    #[inline]
    pub fn rest(&mut self) {
        if let Sender::Uet(sender) = self {
            sender.rest();
        }
    }

    /// Whether its next packet should follow the last one before another flow's turn comes.
    #[inline]
    pub fn keeps_turn(&self) -> bool {
        matches!(self, Sender::Roce(sender) if sender.in_burst())
    }

    /// An answer of its receiver. `path_rtt` is the base round trip over the path of the packet that it answers, where that
    /// is known; `measured` is that packet's own round trip, where a stamp came back with the answer: else it is the time
    /// since the packet was sent.
    #[inline]
    pub fn on_answer(
        &mut self,
        transport: &Transport,
        now: Time,
        answer: &Answer,
        path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> Acked {
        match (self, transport) {
            (Sender::Uet(sender), Transport::Uet(config)) if answer.nack => {
                sender.note_round_trip(config, measured);
                let nack = Nack { cumulative: answer.cumulative, psn: answer.psn, tag: answer.tag };
                let done = sender.on_nack(config, now, &nack).done;
                Acked { trimmed: true, done, ..Acked::default() }
            }
            (Sender::Uet(sender), Transport::Uet(config)) => {
                sender.on_ack_over(config, now, &(*answer).into(), path_rtt, measured)
            }
            (Sender::Roce(sender), Transport::Roce(config)) => {
                sender.on_reply_measured(config, now, &(*answer).into(), measured)
            }
            _ => unreachable!("one transport per run"),
        }
    }

    /// When [`Sender::on_timer`] must be called next at the latest.
    #[inline]
    pub fn deadline(&self, transport: &Transport) -> Option<Time> {
        both!(self, transport, Sender: sender, config => sender.deadline(config))
    }

    /// Its timer strikes; tells PSN and tag of each packet that is declared lost.
    pub fn on_timer(&mut self, transport: &Transport, now: Time, timed_out: &mut impl FnMut(u64, u32)) {
        both!(self, transport, Sender: sender, config => sender.on_timer(config, now, timed_out))
    }

    /// What its congestion control allows at `now`: a window in bytes and a rate, where it has them. Looking changes nothing.
    pub fn allowed(&self, transport: &Transport, now: Time) -> (Option<u64>, Option<Rate>) {
        match (self, transport) {
            (Sender::Uet(sender), _) => (Some(sender.cwnd()), None),
            (Sender::Roce(sender), Transport::Roce(config)) => sender.allowed(config, now),
            _ => unreachable!("one transport per run"),
        }
    }

    /// The next new PSN.
    pub fn next_psn(&self) -> u64 {
        of_sender!(self, sender => sender.next_psn())
    }
    /// Every PSN below this one is acknowledged.
    pub fn cumulative(&self) -> u64 {
        of_sender!(self, sender => sender.cumulative())
    }
    /// Bytes that are neither acknowledged nor lost.
    pub fn in_flight(&self) -> u64 {
        of_sender!(self, sender => sender.in_flight())
    }
    /// Packets sent more than once, counted each time.
    pub fn retransmitted(&self) -> u64 {
        of_sender!(self, sender => sender.retransmitted())
    }
    /// Packets in all.
    pub fn packets(&self) -> u64 {
        of_sender!(self, sender => sender.packets())
    }
}

/// The receiving side of a flow.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Receiver {
    /// Ultra-Ethernet-like.
    Uet(UetReceiver),
    /// RoCEv2.
    Roce(RoceReceiver),
}

macro_rules! of_receiver {
    ($self:ident, $receiver:ident => $value:expr) => {
        match $self {
            Receiver::Uet($receiver) => $value,
            Receiver::Roce($receiver) => $value,
        }
    };
}

impl Receiver {
    /// The receiver of `size` payload bytes.
    pub fn new(transport: &Transport, size: u64) -> Self {
        match transport {
            Transport::Uet(config) => Receiver::Uet(UetReceiver::new(config, size)),
            Transport::Roce(config) => Receiver::Roce(RoceReceiver::new(config, size)),
        }
    }

    /// The receiver of a stream without end, whose packets all count as full ones; it is never complete.
    pub fn of_stream(transport: &Transport) -> Self {
        match transport {
            Transport::Uet(config) => Receiver::Uet(UetReceiver::of_stream(config)),
            Transport::Roce(config) => Receiver::Roce(RoceReceiver::of_stream(config)),
        }
    }

    /// The first PSN that has not been received.
    #[inline]
    pub fn cumulative(&self) -> u64 {
        of_receiver!(self, receiver => receiver.cumulative())
    }

    /// Takes a data packet; returns the answer, if one is due, and whether the flow is complete.
    #[inline]
    pub fn on_data(&mut self, transport: &Transport, now: Time, data: &DataArrival) -> (Option<Answer>, bool) {
        match (self, transport) {
            (Receiver::Uet(receiver), Transport::Uet(config)) => {
                let received = receiver.on_data(config, data);
                (received.reply.map(Answer::from), received.complete)
            }
            (Receiver::Roce(receiver), Transport::Roce(config)) => {
                let received = receiver.on_data(config, now, data);
                (received.reply.map(Answer::from), received.complete)
            }
            _ => unreachable!("one transport per run"),
        }
    }

    /// A packet without its payload; returns the answer. Where the transport knows no trimming there is none.
    pub fn on_header(&mut self, transport: &Transport, psn: u64, tag: u32) -> Option<Answer> {
        match (self, transport) {
            (Receiver::Uet(receiver), Transport::Uet(config)) => Some(receiver.on_header(config, psn, tag).into()),
            _ => None,
        }
    }

    /// When [`Receiver::on_timer`] must be called.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Receiver::Uet(_) => None,
            Receiver::Roce(receiver) => receiver.deadline(),
        }
    }

    /// A delayed acknowledgement is due.
    pub fn on_timer(&mut self, transport: &Transport, now: Time) -> Option<Answer> {
        match (self, transport) {
            (Receiver::Roce(receiver), Transport::Roce(config)) => receiver.on_timer(config, now).map(Answer::from),
            _ => None,
        }
    }

    /// Arrivals whose PSN was not the lowest one missing.
    pub fn out_of_order(&self) -> u64 {
        of_receiver!(self, receiver => receiver.out_of_order())
    }
    /// Arrivals whose PSN was not the last arrival's plus one.
    pub fn out_of_sequence(&self) -> u64 {
        of_receiver!(self, receiver => receiver.out_of_sequence())
    }
    /// Most payload bytes that were ever held beyond the lowest missing one.
    pub fn max_reorder_bytes(&self) -> u64 {
        of_receiver!(self, receiver => receiver.max_reorder_bytes())
    }
    /// Unique payload bytes.
    pub fn received_bytes(&self) -> u64 {
        of_receiver!(self, receiver => receiver.received_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Raw;

    #[test]
    fn every_congestion_control_goes_by_its_name() {
        for about in TRANSPORTS {
            let mut transport = TransportParameters::named(about.name).unwrap();
            assert_eq!((transport.about(), transport.check()), (about, Ok(())));
            for (i, control) in about.controls.iter().enumerate() {
                assert!(about.controls[..i].iter().all(|other| other.name != control.name), "{}", control.name);
                transport.parameters_mut().set("congestion_control", &Raw::Text(control.name.into())).unwrap();
                assert_eq!(transport.control(), control);
                // Without parameters there is no table to give.
                let table = transport.control_parameters_mut(control.name);
                assert_eq!(table.is_some(), control.name != "none", "{}", control.name);
                assert!(table.is_none_or(|parameters| !parameters.documentation().is_empty()));
            }
            let error = transport.parameters_mut().set("congestion_control", &Raw::Text("nome".into())).unwrap_err();
            assert!(error.to_string().contains("did you mean `none`?"), "{error}");
            assert!(transport.control_parameters_mut("cubic").is_none());
        }
    }

    #[test]
    fn a_wrong_value_names_its_table() {
        let mut transport = TransportParameters::named("roce").unwrap();
        transport.control_parameters_mut("swift").unwrap().set("beta", &Raw::Float(-1.0)).unwrap();
        let error = transport.check().unwrap_err().to_string();
        assert!(error.contains("`swift.beta`: found -1"), "{error}");
    }
}
