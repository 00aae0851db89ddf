//! Record of the calls to a host scheme. A fresh scheme with the same seed receives them too and must return the same.

use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Loss, Outgoing, PathReading, Probe, SchemeCounters, Tag, ValueState,
    registry::{Host, HostParameters},
};
use anabranch_units::Time;
use std::sync::{Arc, Mutex, PoisonError};

/// A call that returns something, or opens a flow.
#[derive(Clone, Debug)]
pub enum Call {
    /// [`HostScheme::open`]: base round trip, and bandwidth-delay product in packets.
    Open(Time, u64),
    /// [`HostScheme::select`].
    Select(Decision),
    /// [`HostScheme::poll_probe`].
    PollProbe(Option<Probe>),
    /// [`HostScheme::on_probe_reply`], with the round trip.
    ProbeReply(Time),
}

/// Calls of the schemes of one or several hosts, in order. Clones share one record.
#[derive(Clone, Debug)]
pub struct Record {
    parameters: HostParameters,
    seed: u64,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.calls, &other.calls)
    }
}

impl Eq for Record {}

impl Record {
    /// Creates the record of schemes of this kind with this seed.
    pub fn of(parameters: &HostParameters, seed: u64) -> Self {
        Record { parameters: parameters.clone(), seed, calls: Arc::default() }
    }

    /// Returns the calls so far and empties the record.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wraps `scheme`, of the host with the stable key `host`, to record its calls.
    pub fn wrap(&self, scheme: Host, host: u64) -> Host {
        let fresh = self.parameters.build(self.seed, host);
        Host::Recorded(Box::new(Recorded { scheme, fresh, record: self.clone() }))
    }
}

/// A scheme whose calls are recorded.
///
/// # Panics
/// Every call, if the fresh scheme returns something else.
#[derive(Debug)]
pub struct Recorded {
    scheme: Host,
    fresh: Host,
    record: Record,
}

impl Recorded {
    fn both<T: PartialEq + std::fmt::Debug>(&mut self, mut call: impl FnMut(&mut Host) -> T) -> T {
        let result = call(&mut self.scheme);
        assert_eq!(result, call(&mut self.fresh), "a fresh {} returns something else", self.record.parameters.name());
        result
    }

    fn write(&self, call: Call) {
        self.record.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl HostScheme for Recorded {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.write(Call::Open(flow.base_rtt, flow.bdp_packets));
        self.both(|scheme| scheme.open(now, slot, flow));
    }
    fn close(&mut self, slot: u32) {
        self.both(|scheme| scheme.close(slot));
    }
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let decision = self.both(|scheme| scheme.select(now, slot, packet));
        self.write(Call::Select(decision));
        decision
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        self.both(|scheme| scheme.on_ack(now, slot, feedback));
    }
    fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
        self.both(|scheme| scheme.on_loss(now, slot, tag, cause));
    }
    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        self.both(|scheme| scheme.on_timeout(now, slot, tag));
    }
    fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        self.both(|scheme| scheme.on_paths_changed(now, slot, dead));
    }
    fn on_ports_changed(&mut self, now: Time, slot: u32, local: u32, remote: u32) {
        self.both(|scheme| scheme.on_ports_changed(now, slot, local, remote));
    }
    fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
        let probe = self.both(|scheme| scheme.poll_probe(now, slot));
        self.write(Call::PollProbe(probe));
        probe
    }
    fn probe_at(&self, slot: u32) -> Time {
        self.scheme.probe_at(slot)
    }
    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, ecn: bool) -> bool {
        self.write(Call::ProbeReply(rtt));
        self.both(|scheme| scheme.on_probe_reply(now, slot, tag, rtt, ecn))
    }
    fn record_changes(&mut self, slot: u32) {
        self.both(|scheme| scheme.record_changes(slot));
    }
    fn take_changes(&mut self, slot: u32, each: &mut dyn FnMut(Time, Tag, ValueState)) {
        self.fresh.take_changes(slot, &mut |_, _, _| ());
        self.scheme.take_changes(slot, each);
    }
    fn steer(&mut self, connection: u64, weights: &[f32]) -> bool {
        self.fresh.steer(connection, weights) | self.scheme.steer(connection, weights)
    }
    fn readings(&self, connection: u64) -> &[PathReading] {
        self.scheme.readings(connection)
    }
    fn counters(&self) -> SchemeCounters {
        self.scheme.counters()
    }
}
