//! The transports, one per run.
//!
//! To add one, write a file (or a folder) with `pub(super) const ABOUT: About` and types that implement [`Protocol`],
//! [`TransportSettings`], [`Constants`], [`Sending`] and [`Receiving`], and add its `mod` and a line to the list.

pub mod roce;
pub mod uet;

use crate::{
    AckOutcome, BaseRttShift, DataArrival, Network, Reply, Segment,
    dispatch::{calls, dispatch},
    kind::{Constants, NicLimits, Protocol, Receiving, Sending, TransportSettings},
};
use anabranch_settings::registry;
use anabranch_units::{Rate, Time};
use std::ops::{Deref, DerefMut};

macro_rules! transports {
    ($dollar:tt $($module:ident $kind:ident $parameters:ident,)*) => {
        registry! {
            /// `[transport]` of a scenario.
            pub enum TransportParameters("transport"): pub dyn TransportSettings in self {
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

        dispatch! { $dollar Transport: $($kind)* }
    };
}

transports! { $
    uet Uet UetTransport,
    roce Roce RoceTransport,
}

macro_rules! getters {
    ($type:ident, $trait:ident: $($name:ident -> $result:ty,)*) => {
        impl $type {
            $(
                #[doc = concat!("See [`", stringify!($trait), "::", stringify!($name), "`].")]
                #[inline]
                pub fn $name(&self) -> $result {
                    of!(self, $type(it) => it.$name())
                }
            )*
        }
    };
}

getters! { Transport, Constants:
    base_rtt_shift -> BaseRttShift,
    window_packets -> u64,
    fresh_acks -> bool,
    reports_last_hop_trims -> bool,
    early_packets -> u64,
    credit_window -> Option<u64>,
    nic_limits -> Option<NicLimits>,
    min_timeout -> Option<Time>,
    max_timeout -> Option<Time>,
}
getters! { Sender, Sending:
    next_avail -> Time,
    keeps_turn -> bool,
    next_psn -> u64,
    cumulative -> u64,
    in_flight -> u64,
    retransmitted -> u64,
    packets -> u64,
    is_failed -> bool,
}
getters! { Receiver, Receiving:
    cumulative -> u64,
    deadline -> Option<Time>,
    out_of_order -> u64,
    out_of_sequence -> u64,
    max_reorder_bytes -> u64,
    received_bytes -> u64,
    early_bytes -> u64,
    early_limit -> u64,
    refused -> u64,
}

impl Deref for TransportParameters {
    type Target = dyn TransportSettings;
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
    /// See [`Constants::short_window`].
    pub fn short_window(&self, network: &Network) -> Option<(u64, u64)> {
        of!(self, Transport(it) => it.short_window(network))
    }

    /// Resolves `parameters`, which must have passed `check`.
    pub fn new(parameters: &TransportParameters, network: &Network) -> Self {
        made!(parameters, TransportParameters(parameters) => Transport(parameters.resolve(network)))
    }
    /// See [`Constants::set_base_rtt_shift`].
    pub fn set_base_rtt_shift(&mut self, base_rtt_shift: BaseRttShift) {
        of!(self, Transport(config) => config.set_base_rtt_shift(base_rtt_shift));
    }
    /// See [`Constants::check`].
    ///
    /// # Errors
    /// If every packet would be retransmitted before its reply can arrive.
    pub fn check(&self, network: &Network) -> Result<(), String> {
        of!(self, Transport(config) => config.check(network))
    }
    /// See [`Constants::final_reply`].
    pub fn final_reply(&self, size: u64, arrival: &DataArrival) -> Reply {
        of!(self, Transport(config) => config.final_reply(size, arrival))
    }
}

calls! { pub Sender, Sending, Transport, self:
    [mut] fn append(packets: u64);
    [mut] fn shorten(packets: u64);
    fn ready() -> bool;
    fn peek() -> Option<Segment>;
    [mut] fn send(now: Time, tag: u32) -> Segment;
    [mut] fn on_reply(now: Time, reply: &Reply, path_rtt: Option<Time>, measured: Option<Time>) -> AckOutcome;
    fn demand(active: u32) -> u64;
    [mut] fn on_grant(granted: u64);
    [mut] fn on_timer(now: Time, timed_out: &mut impl FnMut(u64, u32));
    fn allowed(now: Time) -> (Option<u64>, Option<Rate>);
}
calls! { pub Receiver, Receiving, Transport, self:
    [mut] fn shorten(packets: u64);
    [mut] fn on_data(now: Time, data: &DataArrival) -> (Option<Reply>, bool);
    [mut] fn on_header(psn: u64, tag: u32, ack_request: bool) -> Option<Reply>;
    [mut] fn on_timer(now: Time) -> Option<Reply>;
}

impl Sender {
    /// See [`Sending::deadline`].
    #[inline(always)]
    pub fn deadline(&self, config: &Transport) -> Option<Time> {
        both!(self, config: Sender(it, constants) => Sending::deadline(it, constants))
    }
    /// See [`Sending::sent_at`].
    pub fn sent_at(&self, psn: u64) -> Option<Time> {
        of!(self, Sender(sender) => sender.sent_at(psn))
    }
    /// See [`Sending::last_lost`].
    pub fn last_lost(&self, count: u32, lost: &mut impl FnMut(u32)) {
        of!(self, Sender(sender) => sender.last_lost(count, lost));
    }
    /// See [`Sending::new`].
    pub fn new(transport: &Transport, rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self {
        made!(transport, Transport(config) => Sender(Sending::new(config, rate, base_rtt, size, now)))
    }
    /// See [`Sending::of_stream`].
    pub fn of_stream(transport: &Transport, rate: Rate, base_rtt: Time, now: Time, first: u64) -> Self {
        made!(transport, Transport(config) => Sender(Sending::of_stream(config, rate, base_rtt, now, first)))
    }
    /// See [`Sending::requests_ack`].
    #[inline]
    pub fn requests_ack(&self, ready: bool) -> bool {
        of!(self, Sender(sender) => sender.requests_ack(ready))
    }
    /// See [`Sending::on_blocked`].
    #[inline]
    pub fn on_blocked(&mut self) {
        of!(self, Sender(sender) => sender.on_blocked());
    }
}

impl Receiver {
    /// See [`Receiving::new`].
    pub fn new(transport: &Transport, size: u64) -> Self {
        made!(transport, Transport(config) => Receiver(Receiving::new(config, size)))
    }
    /// See [`Receiving::of_stream`].
    pub fn of_stream(transport: &Transport, first: u64) -> Self {
        made!(transport, Transport(config) => Receiver(Receiving::of_stream(config, first)))
    }
    /// See [`Receiving::limit_early`].
    #[inline]
    pub fn limit_early(&mut self, bytes: u64) {
        of!(self, Receiver(receiver) => receiver.limit_early(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Raw;

    #[test]
    fn every_congestion_control_is_found_by_name() {
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
            }
            let error = transport.parameters_mut().set("congestion_control", &Raw::Text("nome".into())).unwrap_err();
            assert!(error.to_string().contains("did you mean `none`?"), "{error}");
            assert!(transport.control_parameters_mut("cubic").is_none());
        }
    }

    #[test]
    fn invalid_value_names_its_table() {
        let mut transport = TransportParameters::named("roce").unwrap();
        transport.control_parameters_mut("dcqcn").unwrap().set("g", &Raw::Float(-1.0)).unwrap();
        let error = transport.check().unwrap_err().to_string();
        assert!(error.contains("`dcqcn.g`: found -1"), "{error}");
    }
}
