//! The transports a run can use: which one is the scenario's choice, the same for all its flows.
//!
//! To add one, write a file (or a folder) with `pub(super) const ABOUT: About` and types that implement [`Protocol`], [`Kind`],
//! [`Constants`], [`Sending`] and [`Receiving`], and add its `mod` and a line to the list. Nobody else tells transports apart.

pub mod roce;
pub mod uet;

use crate::{
    Acked, Answer, DataArrival, Moved, Network, Segment,
    kind::{Constants, Kind, Protocol, Receiving, Sending},
};
use anabranch_settings::registry;
use anabranch_units::{Rate, Time};
use std::ops::{Deref, DerefMut};

macro_rules! transports {
    ($dollar:tt $($module:ident $kind:ident $parameters:ident,)*) => {
        registry! {
            /// `[transport]` of a scenario.
            pub enum TransportParameters("transport"): pub dyn Kind in self {
                $($module $kind $parameters,)*
            }
        }

        /// The transport of a run, resolved against its network.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Transport {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $kind(<$module::$parameters as Protocol>::Config),
            )*
        }

        /// The sending side of a flow.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Sender {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $kind(<$module::$parameters as Protocol>::Sender),
            )*
        }

        /// The receiving side of a flow.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Receiver {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $kind(<$module::$parameters as Protocol>::Receiver),
            )*
        }

        /// What follows from a value of whatever kind.
        macro_rules! of {
            ($dollar value:expr, $dollar from:ident($dollar it:ident) => $dollar result:expr) => {
                match $dollar value { $($dollar from::$kind($dollar it) => $dollar result,)* }
            };
        }

        /// A value of the same kind as another.
        macro_rules! made {
            ($dollar value:expr, $dollar from:ident($dollar it:ident) => $dollar to:ident($dollar result:expr)) => {
                match $dollar value { $($dollar from::$kind($dollar it) => $dollar to::$kind($dollar result),)* }
            };
        }

        /// A flow and the transport of its run are of one kind.
        macro_rules! both {
            ($dollar side:expr, $dollar transport:ident: $dollar from:ident($dollar it:ident, $dollar config:ident) => $dollar result:expr) => {
                match ($dollar side, $dollar transport) {
                    $(($dollar from::$kind($dollar it), Transport::$kind($dollar config)) => $dollar result,)*
                    _ => unreachable!("one transport per run"),
                }
            };
        }
    };
}

transports! { $
    uet Uet UetTransport,
    roce Roce RoceTransport,
}

impl Deref for TransportParameters {
    type Target = dyn Kind;
    fn deref(&self) -> &Self::Target {
        self.as_ref()
    }
}

impl DerefMut for TransportParameters {
    fn deref_mut(&mut self) -> &mut Self::Target {
        of!(self, TransportParameters(parameters) => parameters)
    }
}

impl Transport {
    /// Resolves `parameters`, which must have passed their `check`.
    pub fn new(parameters: &TransportParameters, network: &Network) -> Self {
        made!(parameters, TransportParameters(parameters) => Transport(parameters.resolve(network)))
    }
    /// See [`Constants::set_moved`].
    pub fn set_moved(&mut self, moved: Moved) {
        of!(self, Transport(config) => config.set_moved(moved));
    }
    /// See [`Constants::moved`].
    pub fn moved(&self) -> Moved {
        of!(self, Transport(config) => config.moved())
    }
    /// See [`Constants::window_packets`].
    pub fn window_packets(&self) -> u64 {
        of!(self, Transport(config) => config.window_packets())
    }
    /// See [`Constants::fresh_acks`].
    #[inline]
    pub fn fresh_acks(&self) -> bool {
        of!(self, Transport(config) => config.fresh_acks())
    }
    /// See [`Constants::blames_last_hop`].
    #[inline]
    pub fn blames_last_hop(&self) -> bool {
        of!(self, Transport(config) => config.blames_last_hop())
    }
    /// See [`Constants::early_packets`].
    pub fn early_packets(&self) -> u64 {
        of!(self, Transport(config) => config.early_packets())
    }
    /// See [`Constants::check`].
    ///
    /// # Errors
    /// Where every packet would be sent again before its answer can be back.
    pub fn check(&self, network: &Network) -> Result<(), String> {
        of!(self, Transport(config) => config.check(network))
    }
    /// See [`Constants::least_timeout`].
    pub fn least_timeout(&self) -> Option<Time> {
        of!(self, Transport(config) => config.least_timeout())
    }
    /// See [`Constants::final_answer`].
    pub fn final_answer(&self, size: u64, arrival: &DataArrival) -> Answer {
        of!(self, Transport(config) => config.final_answer(size, arrival))
    }
}

impl Sender {
    /// See [`Sending::new`].
    pub fn new(transport: &Transport, rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self {
        made!(transport, Transport(config) => Sender(Sending::new(config, rate, base_rtt, size, now)))
    }
    /// See [`Sending::of_stream`].
    pub fn of_stream(transport: &Transport, rate: Rate, base_rtt: Time, now: Time) -> Self {
        made!(transport, Transport(config) => Sender(Sending::of_stream(config, rate, base_rtt, now)))
    }
    /// See [`Sending::append`].
    pub fn append(&mut self, transport: &Transport, packets: u64) {
        both!(self, transport: Sender(sender, config) => sender.append(config, packets));
    }
    /// See [`Sending::ready`].
    #[inline]
    pub fn ready(&self, transport: &Transport) -> bool {
        both!(self, transport: Sender(sender, config) => sender.ready(config))
    }
    /// See [`Sending::next_avail`].
    #[inline]
    pub fn next_avail(&self) -> Time {
        of!(self, Sender(sender) => sender.next_avail())
    }
    /// See [`Sending::peek`].
    #[inline]
    pub fn peek(&self, transport: &Transport) -> Option<Segment> {
        both!(self, transport: Sender(sender, config) => sender.peek(config))
    }
    /// See [`Sending::send`].
    ///
    /// # Panics
    /// Where there is nothing to send.
    #[inline]
    pub fn send(&mut self, transport: &Transport, now: Time, tag: u32) {
        both!(self, transport: Sender(sender, config) => { sender.send(config, now, tag); });
    }
    /// See [`Sending::wants_answer`].
    #[inline]
    pub fn wants_answer(&self, ready: bool) -> bool {
        of!(self, Sender(sender) => sender.wants_answer(ready))
    }
    /// See [`Sending::rest`].
    #[inline]
    pub fn rest(&mut self) {
        of!(self, Sender(sender) => sender.rest());
    }
    /// See [`Sending::keeps_turn`].
    #[inline]
    pub fn keeps_turn(&self) -> bool {
        of!(self, Sender(sender) => sender.keeps_turn())
    }
    /// See [`Sending::on_answer`].
    #[inline]
    pub fn on_answer(
        &mut self,
        transport: &Transport,
        now: Time,
        answer: &Answer,
        path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> Acked {
        both!(self, transport: Sender(sender, config) => sender.on_answer(config, now, answer, path_rtt, measured))
    }
    /// See [`Sending::deadline`].
    #[inline]
    pub fn deadline(&self, transport: &Transport) -> Option<Time> {
        both!(self, transport: Sender(sender, config) => sender.deadline(config))
    }
    /// See [`Sending::on_timer`].
    pub fn on_timer(&mut self, transport: &Transport, now: Time, timed_out: &mut impl FnMut(u64, u32)) {
        both!(self, transport: Sender(sender, config) => sender.on_timer(config, now, timed_out));
    }
    /// See [`Sending::allowed`].
    pub fn allowed(&self, transport: &Transport, now: Time) -> (Option<u64>, Option<Rate>) {
        both!(self, transport: Sender(sender, config) => sender.allowed(config, now))
    }
    /// See [`Sending::next_psn`].
    pub fn next_psn(&self) -> u64 {
        of!(self, Sender(sender) => sender.next_psn())
    }
    /// See [`Sending::cumulative`].
    pub fn cumulative(&self) -> u64 {
        of!(self, Sender(sender) => sender.cumulative())
    }
    /// See [`Sending::in_flight`].
    pub fn in_flight(&self) -> u64 {
        of!(self, Sender(sender) => sender.in_flight())
    }
    /// See [`Sending::retransmitted`].
    pub fn retransmitted(&self) -> u64 {
        of!(self, Sender(sender) => sender.retransmitted())
    }
    /// See [`Sending::packets`].
    pub fn packets(&self) -> u64 {
        of!(self, Sender(sender) => sender.packets())
    }
}

impl Receiver {
    /// See [`Receiving::new`].
    pub fn new(transport: &Transport, size: u64) -> Self {
        made!(transport, Transport(config) => Receiver(Receiving::new(config, size)))
    }
    /// See [`Receiving::of_stream`].
    pub fn of_stream(transport: &Transport) -> Self {
        made!(transport, Transport(config) => Receiver(Receiving::of_stream(config)))
    }
    /// See [`Receiving::cumulative`].
    #[inline]
    pub fn cumulative(&self) -> u64 {
        of!(self, Receiver(receiver) => receiver.cumulative())
    }
    /// See [`Receiving::on_data`].
    #[inline]
    pub fn on_data(&mut self, transport: &Transport, now: Time, data: &DataArrival) -> (Option<Answer>, bool) {
        both!(self, transport: Receiver(receiver, config) => Receiving::on_data(receiver, config, now, data))
    }
    /// See [`Receiving::on_header`].
    pub fn on_header(&mut self, transport: &Transport, psn: u64, tag: u32) -> Option<Answer> {
        both!(self, transport: Receiver(receiver, config) => receiver.on_header(config, psn, tag))
    }
    /// See [`Receiving::deadline`].
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        of!(self, Receiver(receiver) => receiver.deadline())
    }
    /// See [`Receiving::on_timer`].
    pub fn on_timer(&mut self, transport: &Transport, now: Time) -> Option<Answer> {
        both!(self, transport: Receiver(receiver, config) => receiver.on_timer(config, now))
    }
    /// See [`Receiving::out_of_order`].
    pub fn out_of_order(&self) -> u64 {
        of!(self, Receiver(receiver) => receiver.out_of_order())
    }
    /// See [`Receiving::out_of_sequence`].
    pub fn out_of_sequence(&self) -> u64 {
        of!(self, Receiver(receiver) => receiver.out_of_sequence())
    }
    /// See [`Receiving::max_reorder_bytes`].
    pub fn max_reorder_bytes(&self) -> u64 {
        of!(self, Receiver(receiver) => receiver.max_reorder_bytes())
    }
    /// See [`Receiving::received_bytes`].
    pub fn received_bytes(&self) -> u64 {
        of!(self, Receiver(receiver) => receiver.received_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Raw;

    #[test]
    fn every_congestion_control_goes_by_its_name() {
        for about in TransportParameters::ALL {
            let mut transport = TransportParameters::named(about.name).unwrap();
            assert_eq!((transport.about(), transport.check()), (about, Ok(())));
            for (i, control) in transport.controls().all().iter().enumerate() {
                assert!(
                    transport.controls().all()[..i].iter().all(|other| other.name != control.name),
                    "{}",
                    control.name
                );
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
