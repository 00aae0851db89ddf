//! Record of the calls to a host scheme and its decisions. A fresh scheme with the same seed repeats them.

use crate::{
    Decision, Feedback, FlowInfo, GuidedPaths, HostScheme, Outgoing, PathSpace, Probe, SchemeCounters, Tag,
    registry::Host,
};
use anabranch_units::Time;
use std::sync::{Arc, Mutex, PoisonError};

/// An owned [`FlowInfo`].
#[derive(Clone, Debug)]
pub struct OpenedFlow {
    info: FlowInfo<'static>,
    uplinks: Vec<u32>,
    labels: Vec<Tag>,
    guided: Option<Arc<GuidedPaths>>,
    dead: Vec<bool>,
}

impl OpenedFlow {
    fn of(flow: &FlowInfo<'_>) -> Self {
        let paths = flow.paths;
        OpenedFlow {
            info: FlowInfo { paths: PathSpace { edge: paths.edge, ..PathSpace::default() }, ..*flow },
            uplinks: paths.uplinks.to_vec(),
            labels: paths.labels.to_vec(),
            guided: paths.guided.cloned(),
            dead: paths.dead.to_vec(),
        }
    }

    /// Returns the [`FlowInfo`].
    pub fn info(&self) -> FlowInfo<'_> {
        let paths = PathSpace {
            uplinks: &self.uplinks,
            labels: &self.labels,
            guided: self.guided.as_ref(),
            edge: self.info.paths.edge,
            dead: &self.dead,
        };
        FlowInfo { paths, ..self.info }
    }
}

/// One call of a scheme, with its result.
#[derive(Clone, Debug)]
pub enum Call {
    /// [`HostScheme::open`].
    Open(Box<OpenedFlow>),
    /// [`HostScheme::close`].
    Close,
    /// [`HostScheme::select`].
    Select(Outgoing, Decision),
    /// [`HostScheme::on_ack`].
    Ack(Feedback),
    /// [`HostScheme::on_nack`].
    Nack(Tag),
    /// [`HostScheme::on_timeout`].
    Timeout(Tag),
    /// [`HostScheme::on_paths_changed`].
    PathsChanged(Vec<bool>),
    /// [`HostScheme::poll_probe`].
    PollProbe(Option<Probe>),
    /// [`HostScheme::on_probe_reply`].
    ProbeReply(Tag, Time, bool),
}

/// A call with its circumstances.
#[derive(Clone, Debug)]
pub struct RecordEntry {
    /// Stable key of the scheme's host.
    pub host: u64,
    /// Time of the call.
    pub now: Time,
    /// Slot of the flow.
    pub slot: u32,
    /// The call.
    pub call: Call,
}

/// Calls and results of the schemes of one or several hosts, in order. Clones share one record.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<Vec<RecordEntry>>>);

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Record {}

impl Record {
    /// Returns the entries so far and empties the record.
    pub fn take(&self) -> Vec<RecordEntry> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, host: u64, now: Time, slot: u32, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(RecordEntry { host, now, slot, call });
    }

    /// Wraps `scheme`, of the host with the stable key `host`, to record its calls.
    pub fn wrap(&self, scheme: Host, host: u64) -> Host {
        Host::Recorded(Box::new(Recorded { scheme, host, record: self.clone() }))
    }
}

/// A scheme whose calls are recorded.
#[derive(Debug)]
pub struct Recorded {
    scheme: Host,
    host: u64,
    record: Record,
}

impl HostScheme for Recorded {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.record.write(self.host, now, slot, Call::Open(Box::new(OpenedFlow::of(flow))));
        self.scheme.open(now, slot, flow);
    }
    fn close(&mut self, slot: u32) {
        self.record.write(self.host, Time::ZERO, slot, Call::Close);
        self.scheme.close(slot);
    }
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let decision = self.scheme.select(now, slot, packet);
        self.record.write(self.host, now, slot, Call::Select(*packet, decision));
        decision
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        self.record.write(self.host, now, slot, Call::Ack(*feedback));
        self.scheme.on_ack(now, slot, feedback);
    }
    fn on_nack(&mut self, now: Time, slot: u32, tag: Tag) {
        self.record.write(self.host, now, slot, Call::Nack(tag));
        self.scheme.on_nack(now, slot, tag);
    }
    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        self.record.write(self.host, now, slot, Call::Timeout(tag));
        self.scheme.on_timeout(now, slot, tag);
    }
    fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        self.record.write(self.host, now, slot, Call::PathsChanged(dead.to_vec()));
        self.scheme.on_paths_changed(now, slot, dead);
    }
    fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
        let probe = self.scheme.poll_probe(now, slot);
        self.record.write(self.host, now, slot, Call::PollProbe(probe));
        probe
    }
    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time) -> bool {
        let ends_wait = self.scheme.on_probe_reply(now, slot, tag, rtt);
        self.record.write(self.host, now, slot, Call::ProbeReply(tag, rtt, ends_wait));
        ends_wait
    }
    fn counters(&self) -> SchemeCounters {
        self.scheme.counters()
    }
}

/// Replays `entries` to schemes from `fresh`, one per host key; returns the number of results compared.
///
/// # Errors
/// Index of the first entry whose result differs, with the results of the record and of the fresh scheme.
pub fn replay(entries: &[RecordEntry], fresh: &mut dyn FnMut(u64) -> Host) -> Result<usize, String> {
    fn same<T: PartialEq + std::fmt::Debug>(recorded: &T, fresh: &T) -> Option<Result<(), String>> {
        Some(if recorded == fresh {
            Ok(())
        } else {
            Err(format!("{recorded:?} recorded, {fresh:?} by a fresh scheme"))
        })
    }
    let mut schemes: std::collections::BTreeMap<u64, Host> = std::collections::BTreeMap::new();
    let mut compared = 0;
    for (number, &RecordEntry { host, now, slot, ref call }) in entries.iter().enumerate() {
        let scheme = schemes.entry(host).or_insert_with(|| fresh(host));
        let result = match call {
            Call::Select(packet, decision) => same(decision, &scheme.select(now, slot, packet)),
            Call::PollProbe(probe) => same(probe, &scheme.poll_probe(now, slot)),
            Call::ProbeReply(tag, rtt, ends_wait) => same(ends_wait, &scheme.on_probe_reply(now, slot, *tag, *rtt)),
            call => {
                match call {
                    Call::Open(opened) => scheme.open(now, slot, &opened.info()),
                    Call::Ack(feedback) => scheme.on_ack(now, slot, feedback),
                    Call::Nack(tag) => scheme.on_nack(now, slot, *tag),
                    Call::Timeout(tag) => scheme.on_timeout(now, slot, *tag),
                    Call::PathsChanged(dead) => scheme.on_paths_changed(now, slot, dead),
                    _ => scheme.close(slot),
                }
                None
            }
        };
        if let Some(result) = result {
            result.map_err(|differs| format!("entry {number}: {differs}"))?;
            compared += 1;
        }
    }
    Ok(compared)
}
