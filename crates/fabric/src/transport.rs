//! The transports a run can use, behind one face: which one is the scenario's choice, the same for all its flows.

use crate::packet::{Kind, MARKED, NOTIFICATION, Packet};
use anabranch_lb::SwitchHeader;
use anabranch_transport::{
    Ack, Nack,
    roce::{RoceConfig, RoceReceiver, RoceReply, RoceSender, RoceTransport, final_reply},
    uet::{Acked, DataArrival, Network, Segment, UetConfig, UetReceiver, UetSender, UetTransport},
};
use anabranch_units::{Rate, Time};

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

/// The transport of a run, resolved.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Transport {
    Uet(UetConfig),
    Roce(RoceConfig),
}

impl Transport {
    pub(crate) fn new(parameters: &TransportParameters, network: &Network) -> Self {
        match parameters {
            TransportParameters::Uet(t) => Transport::Uet(UetConfig::new(t, network)),
            TransportParameters::Roce(t) => Transport::Roce(RoceConfig::new(t, network)),
        }
    }

    fn packets(&self, size: u64) -> u64 {
        match self {
            Transport::Uet(config) => config.packets(size),
            Transport::Roce(config) => config.packets(size),
        }
    }

    /// Packets that may come early without harm (Hopper §4.1.1).
    pub(crate) fn early_packets(&self) -> u64 {
        match self {
            Transport::Uet(_) => u64::MAX,
            Transport::Roce(config) => config.early_packets(),
        }
    }

    /// Packets that a window holds, for estimates of memory.
    pub(crate) fn window_packets(&self) -> u64 {
        match self {
            Transport::Uet(config) => config.window_packets(),
            Transport::Roce(_) => 128,
        }
    }

    /// The answer to a data packet of a flow of `size` bytes that is complete: the last answer was lost or is on its way.
    pub(crate) fn final_answer(&self, size: u64, arrival: &DataArrival) -> Answer {
        match self {
            Transport::Uet(_) => {
                let packets = self.packets(size);
                Answer { head: Packet::answer(packets, 0, 0), ecn: arrival.ecn, cnp: false, nack: false }
            }
            Transport::Roce(config) => Answer::roce(&final_reply(config, size, arrival)),
        }
    }
}

/// What a receiver answers: the parts of the packet that are its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) head: SwitchHeader,
    /// The packet answered was marked.
    pub(crate) ecn: bool,
    /// A congestion notification (`roce`).
    pub(crate) cnp: bool,
    pub(crate) nack: bool,
}

impl Answer {
    fn uet(ack: &Ack) -> Self {
        let offset = (ack.bitmap_base - ack.cumulative) as u32;
        Answer { head: Packet::answer(ack.cumulative, ack.bitmap, offset), ecn: ack.ecn, cnp: false, nack: false }
    }

    pub(crate) fn roce(reply: &RoceReply) -> Self {
        let head = Packet::answer(reply.cumulative, reply.sack.unwrap_or(0), u32::from(reply.sack.is_some()));
        Answer { head, ecn: reply.ecn, cnp: reply.cnp, nack: reply.nack }
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.nack { Kind::Nack } else { Kind::Ack }
    }
}

/// The sending side of a flow.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Sender {
    Uet(UetSender),
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
    pub(crate) fn new(transport: &Transport, rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self {
        match transport {
            Transport::Uet(config) => Sender::Uet(UetSender::new(config, base_rtt, size)),
            Transport::Roce(config) => Sender::Roce(RoceSender::new(config, rate, base_rtt, size, now)),
        }
    }

    /// Whether there is something to send and the window allows it; pacing aside.
    #[inline]
    pub(crate) fn ready(&self, transport: &Transport) -> bool {
        both!(self, transport, Sender: sender, config => sender.ready(config))
    }

    /// Pacing does not let the next packet go before this.
    #[inline]
    pub(crate) fn next_avail(&self) -> u64 {
        match self {
            Sender::Uet(_) => 0,
            Sender::Roce(sender) => sender.next_avail().ps(),
        }
    }

    #[inline]
    pub(crate) fn peek(&self, transport: &Transport) -> Option<Segment> {
        both!(self, transport, Sender: sender, config => sender.peek(config))
    }

    #[inline]
    pub(crate) fn send(&mut self, transport: &Transport, now: Time, tag: u32) {
        both!(self, transport, Sender: sender, config => { sender.send(config, now, tag); })
    }

    /// Whether its next packet should follow the last one before another flow's turn comes.
    #[inline]
    pub(crate) fn keeps_turn(&self) -> bool {
        matches!(self, Sender::Roce(sender) if sender.in_burst())
    }

    /// Whether the packet just sent should ask for an answer at once.
    #[inline]
    pub(crate) fn wants_answer(&self, transport: &Transport) -> bool {
        matches!(self, Sender::Uet(_)) && !self.ready(transport)
    }

    /// An ACK or NACK of its receiver; of the second transport also what the first would call a NACK.
    #[inline]
    pub(crate) fn on_answer(&mut self, transport: &Transport, now: Time, packet: &Packet) -> Acked {
        let (cumulative, (bitmap, offset)) = (packet.cumulative(), packet.bitmap());
        let ecn = packet.flags & MARKED != 0;
        match (self, transport) {
            (Sender::Uet(sender), Transport::Uet(config)) => {
                let bitmap_base = cumulative + u64::from(offset);
                let ack = Ack { cumulative, bitmap_base, bitmap, psn: packet.psn, tag: packet.tag, ecn };
                sender.on_ack(config, now, &ack)
            }
            (Sender::Roce(sender), Transport::Roce(config)) => {
                let sack = (offset != 0).then_some(bitmap);
                let nack = packet.kind == Kind::Nack;
                let (psn, tag, cnp) = (packet.psn, packet.tag, packet.flags & NOTIFICATION != 0);
                let reply = RoceReply { cumulative, sack, nack, psn, tag, ecn, cnp };
                sender.on_reply(config, now, &reply)
            }
            _ => unreachable!("one transport per run"),
        }
    }

    /// A packet came to its receiver without its payload; returns whether everything is acknowledged.
    pub(crate) fn on_trimmed(&mut self, transport: &Transport, now: Time, packet: &Packet) -> bool {
        match (self, transport) {
            (Sender::Uet(sender), Transport::Uet(config)) => {
                let nack = Nack { cumulative: packet.cumulative(), psn: packet.psn, tag: packet.tag };
                sender.on_nack(config, now, &nack).done
            }
            (sender, _) => sender.is_done(),
        }
    }

    #[inline]
    pub(crate) fn deadline(&self, transport: &Transport) -> Option<Time> {
        both!(self, transport, Sender: sender, config => sender.deadline(config))
    }

    pub(crate) fn on_timer(&mut self, transport: &Transport, now: Time, timed_out: &mut impl FnMut(u64, u32)) {
        both!(self, transport, Sender: sender, config => sender.on_timer(config, now, timed_out))
    }

    pub(crate) fn next_psn(&self) -> u64 {
        of_sender!(self, sender => sender.next_psn())
    }
    pub(crate) fn cumulative(&self) -> u64 {
        of_sender!(self, sender => sender.cumulative())
    }
    pub(crate) fn in_flight(&self) -> u64 {
        of_sender!(self, sender => sender.in_flight())
    }
    pub(crate) fn retransmitted(&self) -> u64 {
        of_sender!(self, sender => sender.retransmitted())
    }
    pub(crate) fn packets(&self) -> u64 {
        of_sender!(self, sender => sender.packets())
    }
    pub(crate) fn is_done(&self) -> bool {
        of_sender!(self, sender => sender.is_done())
    }
}

/// The receiving side of a flow.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Receiver {
    Uet(UetReceiver),
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
    pub(crate) fn new(transport: &Transport, size: u64) -> Self {
        match transport {
            Transport::Uet(config) => Receiver::Uet(UetReceiver::new(config, size)),
            Transport::Roce(config) => Receiver::Roce(RoceReceiver::new(config, size)),
        }
    }

    /// Takes a data packet; returns the answer, if one is due, and whether the flow is complete.
    #[inline]
    pub(crate) fn on_data(&mut self, transport: &Transport, now: Time, data: &DataArrival) -> (Option<Answer>, bool) {
        match (self, transport) {
            (Receiver::Uet(receiver), Transport::Uet(config)) => {
                let received = receiver.on_data(config, data);
                (received.reply.as_ref().map(Answer::uet), received.complete)
            }
            (Receiver::Roce(receiver), Transport::Roce(config)) => {
                let received = receiver.on_data(config, now, data);
                (received.reply.as_ref().map(Answer::roce), received.complete)
            }
            _ => unreachable!("one transport per run"),
        }
    }

    /// A trimmed packet; returns the answer.
    pub(crate) fn on_header(&mut self, transport: &Transport, psn: u64, tag: u32) -> Answer {
        match (self, transport) {
            (Receiver::Uet(receiver), Transport::Uet(config)) => {
                let nack = receiver.on_header(config, psn, tag);
                Answer { head: Packet::answer(nack.cumulative, 0, 0), ecn: false, cnp: false, nack: true }
            }
            _ => unreachable!("a RoCE fabric does not trim"),
        }
    }

    /// When [`Receiver::on_timer`] must be called.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Receiver::Uet(_) => None,
            Receiver::Roce(receiver) => receiver.deadline(),
        }
    }

    /// A delayed acknowledgement is due.
    pub(crate) fn on_timer(&mut self, transport: &Transport, now: Time) -> Option<RoceReply> {
        match (self, transport) {
            (Receiver::Roce(receiver), Transport::Roce(config)) => receiver.on_timer(config, now),
            _ => None,
        }
    }

    pub(crate) fn out_of_order(&self) -> u64 {
        of_receiver!(self, receiver => receiver.out_of_order())
    }
    pub(crate) fn out_of_sequence(&self) -> u64 {
        of_receiver!(self, receiver => receiver.out_of_sequence())
    }
    pub(crate) fn max_reorder_bytes(&self) -> u64 {
        of_receiver!(self, receiver => receiver.max_reorder_bytes())
    }
    pub(crate) fn received_bytes(&self) -> u64 {
        of_receiver!(self, receiver => receiver.received_bytes())
    }
}
