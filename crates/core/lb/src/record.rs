//! Record of the calls to schemes, with what they returned and the state that each left; [`replay`] repeats those of host
//! schemes on fresh ones.

use crate::{
    Candidates, Decision, Delivery, Effects, Feedback, FlowInfo, GuidedPath, GuidedPaths, GuidedSwitch, HostScheme,
    LinkSignal, LocalQueues, Loss, Outgoing, PacketView, PathReading, PathSpace, Probe, SchemeCounters, State,
    SwitchHeader, SwitchScheme, Tag, ValueState,
    registry::{Host, Switch},
};
use anabranch_units::{Rate, Time};
use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Copy of a [`FlowInfo`].
#[derive(Clone, Debug)]
pub struct OpenedFlow {
    info: FlowInfo<'static>,
    uplinks: Box<[u32]>,
    labels: Box<[Tag]>,
    guided: Option<Arc<GuidedPaths>>,
    dead: Box<[bool]>,
    rates: Box<[Rate]>,
}

impl PartialEq for OpenedFlow {
    fn eq(&self, other: &Self) -> bool {
        let of = |flow: &Self| (flow.info.key, flow.info.src, flow.info.dst, flow.info.base_rtt, flow.info.bdp_packets);
        of(self) == of(other)
            && (&self.uplinks, &self.labels, &self.dead) == (&other.uplinks, &other.labels, &other.dead)
            && self.rates == other.rates
    }
}

impl Eq for OpenedFlow {}

impl OpenedFlow {
    /// Copies the properties of a flow.
    pub fn new(of: &FlowInfo<'_>) -> Self {
        let PathSpace { uplinks, labels, guided, planes, edge, dead, rates } = of.paths;
        OpenedFlow {
            info: FlowInfo { paths: PathSpace { planes, edge, ..PathSpace::default() }, ..*of },
            uplinks: uplinks.into(),
            labels: labels.into(),
            guided: guided.cloned(),
            dead: dead.into(),
            rates: rates.into(),
        }
    }

    /// Returns the properties of the flow.
    pub fn info(&self) -> FlowInfo<'_> {
        let OpenedFlow { info, uplinks, labels, guided, dead, rates } = self;
        FlowInfo { paths: PathSpace { uplinks, labels, guided: guided.as_ref(), dead, rates, ..info.paths }, ..*info }
    }
}

/// Numbers of a flow in its text, in this order.
const NUMBERS: [&str; 14] = [
    "key",
    "connection",
    "src",
    "dst",
    "size",
    "packets",
    "bdp_packets",
    "base_rtt_ps",
    "probe_rtt_ps",
    "rate_bps",
    "full_packet",
    "early_packets",
    "planes",
    "edge",
];

fn joined(numbers: impl IntoIterator<Item = impl Display>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

fn numbers<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect()
}

fn rates(text: &str) -> Option<Box<[Rate]>> {
    Some(numbers(text)?.into_iter().map(Rate).collect())
}

fn flags(text: &str) -> Box<[bool]> {
    text.bytes().map(|byte| byte == b'1').collect()
}

/// `NAME=VALUE` words; lists have commas, `dead` a digit per path, `guided` six numbers per path.
impl Display for OpenedFlow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FlowInfo { paths, key, connection, src, dst, size, packets, bdp_packets, .. } = self.info;
        let FlowInfo { base_rtt, probe_rtt, rate, full_packet, early_packets, .. } = self.info;
        let first =
            [key, connection, src.into(), dst.into(), size, packets, bdp_packets, base_rtt.ps(), probe_rtt.ps()];
        let last = [rate.0, full_packet.into(), early_packets, paths.planes.into(), paths.edge.into()];
        for (name, value) in NUMBERS.iter().zip(first.into_iter().chain(last)) {
            write!(f, "{name}={value} ")?;
        }
        let rates = joined(self.rates.iter().map(|rate| rate.0));
        write!(f, "uplinks={} labels={} rates={rates} dead=", joined(&self.uplinks), joined(&self.labels))?;
        self.dead.iter().try_for_each(|dead| write!(f, "{}", u8::from(*dead)))?;
        let Some(guided) = &self.guided else { return Ok(()) };
        let path = |path: GuidedPath| {
            let [ev, kind, minimal, hops] = [path.ev, path.kind.into(), path.minimal.into(), path.hops.into()];
            joined([ev.into(), kind.into(), minimal.into(), path.latency.ps(), path.propagation.ps(), hops.into()])
        };
        write!(f, " guided={}", joined((0..guided.len()).filter_map(|index| guided.path(index)).map(path)))
    }
}

impl FromStr for OpenedFlow {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let word = |name: &str| text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let mut values = [0u64; NUMBERS.len()];
        for (value, name) in values.iter_mut().zip(NUMBERS) {
            *value = word(name).and_then(|word| word.parse().ok()).ok_or(())?;
        }
        let [
            key,
            connection,
            src,
            dst,
            size,
            packets,
            bdp_packets,
            base_rtt,
            probe_rtt,
            rate,
            full,
            early,
            planes,
            edge,
        ] = values;
        let narrow = |value: u64| u32::try_from(value).map_err(drop);
        let guided = word("guided").map(|word| {
            let list = numbers::<u64>(word).ok_or(())?;
            let (paths, _) = list.as_chunks::<6>();
            let path = |&[ev, kind, minimal, latency, propagation, hops]: &[u64; 6]| GuidedPath {
                ev: ev as u16,
                kind: kind as u8,
                minimal: minimal == 1,
                latency: Time::from_ps(latency),
                propagation: Time::from_ps(propagation),
                hops: hops as u8,
            };
            Ok(Arc::new(GuidedPaths::new(paths.iter().map(path))))
        });
        Ok(OpenedFlow {
            info: FlowInfo {
                key,
                connection,
                src: narrow(src)?,
                dst: narrow(dst)?,
                size,
                packets,
                bdp_packets,
                base_rtt: Time::from_ps(base_rtt),
                probe_rtt: Time::from_ps(probe_rtt),
                rate: Rate(rate),
                full_packet: narrow(full)?,
                early_packets: early,
                paths: PathSpace { planes: narrow(planes)?, edge: narrow(edge)?, ..PathSpace::default() },
            },
            uplinks: word("uplinks").and_then(numbers).ok_or(())?.into(),
            labels: word("labels").and_then(numbers).ok_or(())?.into(),
            dead: flags(word("dead").ok_or(())?),
            rates: word("rates").and_then(rates).ok_or(())?,
            guided: guided.transpose()?,
        })
    }
}

/// What a call passed to a scheme, and what it returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// [`HostScheme::open`].
    Open(Arc<OpenedFlow>),
    /// [`HostScheme::select`].
    Select(Outgoing, Decision),
    /// [`HostScheme::on_ack`].
    Ack(Feedback),
    /// [`HostScheme::on_signal`].
    Signal(Tag, LinkSignal),
    /// [`HostScheme::on_loss`].
    Loss(Tag, Loss),
    /// [`HostScheme::on_timeout`].
    Timeout(Tag),
    /// [`HostScheme::on_paths_changed`].
    PathsChanged(Box<[bool]>),
    /// [`HostScheme::on_rates_changed`].
    RatesChanged(Box<[Rate]>),
    /// [`HostScheme::on_ports_changed`].
    PortsChanged(u32, u32),
    /// [`HostScheme::poll_probe`].
    PollProbe(Option<Probe>),
    /// [`HostScheme::on_probe_reply`]: path, round trip, mark, and `true` if the flow need no longer wait.
    ProbeReply(Tag, Time, bool, bool),
    /// [`HostScheme::close`].
    Close,
    /// [`SwitchScheme::forward`] or [`SwitchScheme::guide`]: PSN and tag of the packet, and the link that it takes.
    Forward(u64, Tag, u32),
}

impl CallEvent {
    /// Reads [`Call::passed`] of the words `paths`, `rates` and `ports`; `None`: it is none of them.
    pub fn of_change(word: &str, passed: &str) -> Option<Self> {
        match (word, passed.split_once(',')) {
            ("paths", _) => Some(CallEvent::PathsChanged(flags(passed))),
            ("rates", _) => Some(CallEvent::RatesChanged(rates(passed)?)),
            ("ports", Some((local, remote))) => {
                Some(CallEvent::PortsChanged(local.parse().ok()?, remote.parse().ok()?))
            }
            _ => None,
        }
    }
}

/// A call of a scheme for a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Time of the call; that of the flow's last call before for [`CallEvent::Close`].
    pub time: Time,
    /// Time of the same clock at the start of the run; zero where it is simulated.
    pub zero: Time,
    /// Name of the scheme.
    pub scheme: &'static str,
    /// Stable key of the host; 0 at switches.
    pub host: u64,
    /// Number of the flow.
    pub flow: u32,
    /// The call.
    pub event: CallEvent,
    /// State of the scheme for this flow after it.
    pub state: State,
}

impl Call {
    /// Returns its time since the start of the run.
    pub fn at(&self) -> Time {
        self.time.saturating_sub(self.zero)
    }

    /// Returns the word of the call in results.
    pub fn word(&self) -> &'static str {
        match &self.event {
            CallEvent::Open(_) => "open",
            CallEvent::Select(_, Decision::Send(_)) => "send",
            CallEvent::Select(_, Decision::SendWithAckRequest(_)) => "send-ack-request",
            CallEvent::Select(_, Decision::Hold(_)) => "hold",
            CallEvent::Select(_, Decision::Wait) => "wait",
            CallEvent::Ack(_) => "ack",
            CallEvent::Loss(_, Loss::Trimmed) => "trimmed",
            CallEvent::Loss(_, Loss::TrimmedAtLastHop) => "trimmed-last-hop",
            CallEvent::Loss(_, Loss::Gap) => "gap",
            CallEvent::Loss(_, Loss::Refused) => "refused",
            CallEvent::Signal(..) => "signal",
            CallEvent::Timeout(_) => "timeout",
            CallEvent::PathsChanged(_) => "paths",
            CallEvent::RatesChanged(_) => "rates",
            CallEvent::PortsChanged(..) => "ports",
            CallEvent::PollProbe(Some(_)) => "probe",
            CallEvent::PollProbe(None) => "no-probe",
            CallEvent::ProbeReply(_, Time::MAX, _, false) => "probe-lost",
            CallEvent::ProbeReply(_, Time::MAX, _, true) => "probe-lost-resume",
            CallEvent::ProbeReply(_, _, _, false) => "reply",
            CallEvent::ProbeReply(_, _, _, true) => "reply-resume",
            CallEvent::Close => "close",
            CallEvent::Forward(..) => "forward",
        }
    }

    /// Returns what it passed beyond tags and numbers, as text; [`CallEvent::of_change`] and [`OpenedFlow`] read it.
    pub fn passed(&self) -> Option<String> {
        match &self.event {
            CallEvent::Open(flow) if self.zero == Time::ZERO => Some(format!("host={} {flow}", self.host)),
            CallEvent::Open(flow) => Some(format!("host={} zero_ps={} {flow}", self.host, self.zero.ps())),
            CallEvent::PathsChanged(dead) => Some(dead.iter().map(|dead| if *dead { '1' } else { '0' }).collect()),
            CallEvent::RatesChanged(rates) => Some(joined(rates.iter().map(|rate| rate.0))),
            CallEvent::PortsChanged(local, remote) => Some(format!("{local},{remote}")),
            _ => None,
        }
    }

    /// Returns `true` if it returned a choice, which may differ between schemes.
    pub fn is_choice(&self) -> bool {
        matches!(self.event, CallEvent::Select(..) | CallEvent::PollProbe(Some(_)))
    }

    /// Returns the path that it chose or reports on.
    pub fn tag(&self) -> Option<Tag> {
        match &self.event {
            CallEvent::Select(_, Decision::Send(tag) | Decision::SendWithAckRequest(tag))
            | CallEvent::Loss(tag, _)
            | CallEvent::Signal(tag, _)
            | CallEvent::Timeout(tag)
            | CallEvent::PollProbe(Some(Probe { tag, .. }))
            | CallEvent::ProbeReply(tag, ..)
            | CallEvent::Forward(_, tag, _) => Some(*tag),
            CallEvent::Ack(feedback) => Some(feedback.tag),
            _ => None,
        }
    }

    /// Returns the packet of a choice.
    pub fn packet(&self) -> Option<&Outgoing> {
        if let CallEvent::Select(packet, _) = &self.event { Some(packet) } else { None }
    }

    /// Returns the contents of an acknowledgement.
    pub fn feedback(&self) -> Option<&Feedback> {
        if let CallEvent::Ack(feedback) = &self.event { Some(feedback) } else { None }
    }

    /// Returns the packet's sequence number.
    pub fn psn(&self) -> Option<u64> {
        match &self.event {
            CallEvent::Forward(psn, ..) => Some(*psn),
            _ => self.packet().map(|packet| packet.psn).or(self.feedback().map(|feedback| feedback.psn)),
        }
    }

    /// Returns the payload bytes of the packet or probe, or those newly acknowledged.
    pub fn bytes(&self) -> Option<u64> {
        match &self.event {
            CallEvent::PollProbe(Some(probe)) => Some(probe.bytes.into()),
            _ => self.packet().map(|packet| packet.bytes.into()).or(self.feedback().map(|feedback| feedback.bytes)),
        }
    }

    /// Returns the round trip that it reports.
    pub fn rtt(&self) -> Option<Time> {
        match self.event {
            CallEvent::ProbeReply(_, rtt, ..) => Some(rtt).filter(|rtt| *rtt < Time::MAX),
            _ => self.feedback()?.rtt,
        }
    }

    /// Returns `true` if it reports a mark.
    pub fn is_marked(&self) -> bool {
        matches!(self.event, CallEvent::Ack(Feedback { ecn: true, .. }) | CallEvent::ProbeReply(_, _, true, _))
    }
}

#[derive(Debug, Default)]
struct Calls {
    rows: Vec<Call>,
    /// The limit is exceeded: no more are written.
    full: bool,
    /// Number of each recorded flow, by its key; `None`: all, numbered as they open.
    flows: Option<BTreeMap<u64, u32>>,
    opened: u32,
    /// Choice of a switch, until its packet joins a port.
    choice: Option<(Time, PacketView, &'static str, State)>,
}

/// Calls of schemes, in order. Clones share one record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    calls: Arc<Mutex<Calls>>,
}

impl Record {
    /// Creates the record of the flows with these keys and numbers.
    pub fn of(flows: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let calls = Calls { flows: Some(flows.into_iter().collect()), ..Calls::default() };
        Record { calls: Arc::new(Mutex::new(calls)) }
    }

    /// Records the flow with this key too, which has not opened yet.
    pub fn follow(&self, key: u64, number: u32) {
        self.calls().flows.get_or_insert_default().insert(key, number);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the calls so far and empties the record.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls().rows)
    }

    /// Keeps no calls after the first that exceed the limit.
    pub fn close(&self, limit: u64) {
        let mut calls = self.calls();
        calls.full |= calls.rows.len() as u64 > limit;
    }

    /// Wraps the scheme `name` of the host with the stable key `host` to record its calls.
    pub fn wrap(&self, scheme: Host, name: &'static str, host: u64) -> Host {
        let (record, flows, last) = (self.clone(), Vec::new(), Time::ZERO);
        Host::Recorded(Box::new(Recorded { scheme, name, host, record, flows, last }))
    }

    /// Wraps the scheme `name` of a switch to record its choices.
    pub fn wrap_switch(&self, scheme: Switch, name: &'static str) -> Switch {
        Switch::Recorded(Box::new(RecordedSwitch { scheme, name, record: self.clone() }))
    }

    /// Writes the last choice of a switch, if it was made now for a packet of this source, destination and key at switches, as
    /// that of a flow.
    pub fn note_forwarded(&self, now: Time, of: (u32, u32, u64), flow: u32, event: CallEvent) {
        let mut calls = self.calls();
        let Some((time, chosen, scheme, state)) = calls.choice.take() else { return };
        if (time, chosen.src, chosen.dst, chosen.flow) == (now, of.0, of.1, of.2)
            && !calls.full
            && state != State::default()
        {
            calls.rows.push(Call { time, zero: Time::ZERO, scheme, host: 0, flow, event, state });
        }
    }
}

/// A host scheme whose calls are recorded.
#[derive(Debug)]
pub struct Recorded {
    scheme: Host,
    name: &'static str,
    host: u64,
    record: Record,
    /// Number of the flow in each slot, if it is recorded.
    flows: Vec<Option<u32>>,
    last: Time,
}

impl Recorded {
    fn write(&mut self, now: Time, slot: u32, event: impl FnOnce() -> CallEvent) {
        let Some(flow) = self.flows.get(slot as usize).copied().flatten() else { return };
        self.last = now;
        let (scheme, host, state, zero) = (self.name, self.host, State::default(), Time::ZERO);
        let mut call = Call { time: now, zero, scheme, host, flow, event: event(), state };
        if !matches!(call.event, CallEvent::Close) {
            call.state = self.scheme.state(now, slot, call.tag());
        }
        let mut calls = self.record.calls();
        if !calls.full {
            calls.rows.push(call);
        }
    }
}

impl HostScheme for Recorded {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let number = {
            let mut calls = self.record.calls();
            calls.opened += 1;
            let next = calls.opened - 1;
            calls.flows.as_ref().map_or(Some(next), |flows| flows.get(&flow.key).copied())
        };
        self.flows.resize(self.flows.len().max(slot as usize + 1), None);
        // A flow whose slot is opened again is closed.
        self.write(self.last, slot, || CallEvent::Close);
        self.flows[slot as usize] = number;
        self.scheme.open(now, slot, flow);
        self.write(now, slot, || CallEvent::Open(Arc::new(OpenedFlow::new(flow))));
    }
    fn close(&mut self, slot: u32) {
        self.scheme.close(slot);
        self.write(self.last, slot, || CallEvent::Close);
        if let Some(flow) = self.flows.get_mut(slot as usize) {
            *flow = None;
        }
    }
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let decision = self.scheme.select(now, slot, packet);
        self.write(now, slot, || CallEvent::Select(*packet, decision));
        decision
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        self.scheme.on_ack(now, slot, feedback);
        self.write(now, slot, || CallEvent::Ack(*feedback));
    }
    fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
        self.scheme.on_loss(now, slot, tag, cause);
        self.write(now, slot, || CallEvent::Loss(tag, cause));
    }
    fn on_signal(&mut self, now: Time, slot: u32, tag: Tag, signal: LinkSignal) {
        self.scheme.on_signal(now, slot, tag, signal);
        self.write(now, slot, || CallEvent::Signal(tag, signal));
    }
    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        self.scheme.on_timeout(now, slot, tag);
        self.write(now, slot, || CallEvent::Timeout(tag));
    }
    fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        self.scheme.on_paths_changed(now, slot, dead);
        self.write(now, slot, || CallEvent::PathsChanged(dead.into()));
    }
    fn on_rates_changed(&mut self, now: Time, slot: u32, rates: &[Rate]) {
        self.scheme.on_rates_changed(now, slot, rates);
        self.write(now, slot, || CallEvent::RatesChanged(rates.into()));
    }
    fn on_ports_changed(&mut self, now: Time, slot: u32, local: u32, remote: u32) {
        self.scheme.on_ports_changed(now, slot, local, remote);
        self.write(now, slot, || CallEvent::PortsChanged(local, remote));
    }
    fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
        let probe = self.scheme.poll_probe(now, slot);
        self.write(now, slot, || CallEvent::PollProbe(probe));
        probe
    }
    fn probe_at(&self, slot: u32) -> Time {
        self.scheme.probe_at(slot)
    }
    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, ecn: bool) -> bool {
        let resumes = self.scheme.on_probe_reply(now, slot, tag, rtt, ecn);
        self.write(now, slot, || CallEvent::ProbeReply(tag, rtt, ecn, resumes));
        resumes
    }
    fn record_changes(&mut self, slot: u32) {
        self.scheme.record_changes(slot);
    }
    fn take_changes(&mut self, slot: u32, each: &mut dyn FnMut(Time, Tag, ValueState)) {
        self.scheme.take_changes(slot, each);
    }
    fn steer(&mut self, connection: u64, weights: &[f32]) -> bool {
        self.scheme.steer(connection, weights)
    }
    fn readings(&self, connection: u64) -> &[PathReading] {
        self.scheme.readings(connection)
    }
    fn state(&self, now: Time, slot: u32, tag: Option<Tag>) -> State {
        self.scheme.state(now, slot, tag)
    }
    fn counters(&self) -> SchemeCounters {
        self.scheme.counters()
    }
}

/// A switch scheme whose choices are recorded.
#[derive(Debug)]
pub struct RecordedSwitch {
    scheme: Switch,
    name: &'static str,
    record: Record,
}

impl RecordedSwitch {
    fn note(&self, now: Time, packet: &PacketView, header: &SwitchHeader) {
        let state = self.scheme.state(now, packet, header);
        self.record.calls().choice = Some((now, *packet, self.name, state));
    }
}

// Out of line, so that they cost nothing where no choice is recorded.
impl SwitchScheme for RecordedSwitch {
    #[cold]
    fn by_labels(&self, tag: Tag, packet: impl FnOnce() -> PacketView, count: u32, uplinks: u32) -> Option<u32> {
        self.scheme.by_labels(tag, packet, count, uplinks)
    }
    #[cold]
    fn forward<Q: LocalQueues>(
        &mut self,
        now: Time,
        packet: &PacketView,
        header: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        queues: &mut Q,
    ) -> u32 {
        let index = self.scheme.forward(now, packet, header, candidates, queues);
        self.note(now, packet, header);
        index
    }
    #[cold]
    fn guide<G: GuidedSwitch>(&mut self, now: Time, packet: &PacketView, header: &mut SwitchHeader, at: &mut G) -> u32 {
        let port = self.scheme.guide(now, packet, header, at);
        self.note(now, packet, header);
        port
    }
    #[cold]
    fn deliver(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) -> Delivery {
        self.scheme.deliver(now, packet, header, out)
    }
    fn on_control(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) {
        self.scheme.on_control(now, packet, header, out);
    }
    fn on_timer(&mut self, now: Time, number: u32, out: &mut Effects) {
        self.scheme.on_timer(now, number, out);
    }
    fn counters(&self) -> SchemeCounters {
        self.scheme.counters()
    }
    fn on_routes_changed(&mut self, groups: u32) {
        self.scheme.on_routes_changed(groups);
    }
    fn state(&self, now: Time, packet: &PacketView, header: &SwitchHeader) -> State {
        self.scheme.state(now, packet, header)
    }
}

/// Repeats the calls of host schemes on fresh ones, which `build` creates for the hosts with these keys. Where flows of a host
/// share state, the calls must be those of all its flows.
///
/// # Errors
/// The first call whose result or state differs.
pub fn replay(calls: &[Call], build: impl Fn(&'static str, u64) -> Host) -> Result<(), String> {
    let mut differs = None;
    replay_each(calls, build, |call, again| {
        if call != &again {
            differs.get_or_insert_with(|| format!("a fresh {} differs at {call:?}", call.scheme));
        }
    });
    differs.map_or(Ok(()), Err)
}

/// Repeats calls as [`replay`], on schemes that may be others. `each` receives every call, and the same one with what the fresh
/// scheme returned and its state.
pub fn replay_each(calls: &[Call], build: impl Fn(&'static str, u64) -> Host, mut each: impl FnMut(&Call, Call)) {
    let mut fresh: BTreeMap<(&str, u64), Host> = BTreeMap::new();
    let of_host = |call: &&Call| !matches!(call.event, CallEvent::Forward(..));
    for call in calls.iter().filter(of_host) {
        let Call { time, scheme, host, flow, .. } = *call;
        let of = fresh.entry((scheme, host)).or_insert_with(|| build(scheme, host));
        let mut again = Call { state: State::default(), ..call.clone() };
        match &mut again.event {
            CallEvent::Open(info) => of.open(time, flow, &info.info()),
            CallEvent::Select(packet, decision) => *decision = of.select(time, flow, packet),
            CallEvent::PollProbe(probe) => *probe = of.poll_probe(time, flow),
            CallEvent::ProbeReply(tag, rtt, ecn, resumes) => {
                *resumes = of.on_probe_reply(time, flow, *tag, *rtt, *ecn);
            }
            CallEvent::Ack(feedback) => of.on_ack(time, flow, feedback),
            CallEvent::Loss(tag, cause) => of.on_loss(time, flow, *tag, *cause),
            CallEvent::Signal(tag, signal) => of.on_signal(time, flow, *tag, *signal),
            CallEvent::Timeout(tag) => of.on_timeout(time, flow, *tag),
            CallEvent::PathsChanged(dead) => of.on_paths_changed(time, flow, dead),
            CallEvent::RatesChanged(rates) => of.on_rates_changed(time, flow, rates),
            CallEvent::PortsChanged(local, remote) => of.on_ports_changed(time, flow, *local, *remote),
            CallEvent::Close | CallEvent::Forward(..) => of.close(flow),
        }
        again.state = of.state(time, flow, again.tag());
        each(call, again);
    }
}
