//! Host schemes in Python. A call that returns nothing waits until the next one that does, so that both take one acquisition
//! of the GIL.

use crate::error;
use anabranch_lb::{
    CallEvent, Decision as Choice, DescribedHost, DynHost, Feedback as Acknowledged, FlowInfo, HostScheme, LinkSignal,
    Loss, OpenedFlow, Outgoing, Probe, Tag, described_host,
    registry::{SchemeCapabilities, TagKind},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{
    About, InvalidValue, Level, Parameter, Parameters, Raw, SetError, Setting, ValueSchema, external, nearest,
};
use anabranch_units::{Bytes, Rate, Time};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyTuple, PyType},
};
use std::{
    fmt::{self, Debug, Formatter},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names of the schemes so far.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
/// Name of a scheme, its method, and what that raised; the run ends.
static ERROR: Mutex<Option<(&'static str, &'static str, PyErr)>> = Mutex::new(None);
static FAILED: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);

/// Returns `true` if a scheme has raised an exception, and the run is to end.
pub(crate) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Forgets calls and exceptions of runs before.
pub(crate) fn begin() {
    *lock(&ERROR) = None;
    FAILED.store(false, Ordering::Relaxed);
    CALLS.store(0, Ordering::Relaxed);
    NANOSECONDS.store(0, Ordering::Relaxed);
}

/// Returns what schemes in Python took of a run of `seconds`, if there were any; fails if one raised an exception.
pub(crate) fn end(py: Python<'_>, seconds: f64) -> PyResult<Option<String>> {
    FAILED.store(false, Ordering::Relaxed);
    if let Some((scheme, method, raised)) = lock(&ERROR).take() {
        let made = py.import("anabranch._scheme")?.call_method1("raised", (scheme, method, raised.into_value(py)))?;
        return Err(PyErr::from_value(made));
    }
    let (calls, spent) = (CALLS.load(Ordering::Relaxed), NANOSECONDS.load(Ordering::Relaxed) as f64 / 1e9);
    Ok((calls > 0)
        .then(|| format!("a scheme in Python took {spent:.2} s of {seconds:.2} s, in {calls} calls on one thread")))
}

/// Returns the threads of runs of which `texts` are scenarios or names of load balancers: one with a scheme in Python.
pub(crate) fn threads(threads: usize, texts: &[&str]) -> usize {
    let is_named = |name: &&str| texts.iter().any(|text| text.contains(*name));
    if lock(&NAMES).iter().any(is_named) { 1 } else { threads }
}

/// Does `work`, in which schemes take the GIL again and again, on a thread with a state in Python throughout: to create one costs more
/// than a call.
pub(crate) fn beside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if lock(&NAMES).is_empty() { work() } else { Python::attach(|py| py.detach(work)) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Flag,
    Whole,
    Number,
    Word,
    Time,
    Bytes,
    Rate,
}

/// A parameter: kind, and the smallest and largest number.
#[derive(Clone, Debug)]
struct Declared {
    documentation: Parameter,
    kind: Kind,
    range: Option<(f64, f64)>,
}

impl Declared {
    fn read(&self, raw: &Raw) -> Result<f64, InvalidValue> {
        Ok(match self.kind {
            Kind::Flag => f64::from(bool::read(raw)?),
            Kind::Whole => u64::read(raw)? as f64,
            Kind::Number => f64::read(raw)?,
            Kind::Time => Time::read(raw)?.ps() as f64,
            Kind::Bytes => Bytes::read(raw)?.0 as f64,
            Kind::Rate => Rate::read(raw)?.0 as f64,
            Kind::Word => 0.0,
        })
    }

    fn check(&self, raw: &Raw) -> Result<(), InvalidValue> {
        let wrong = || InvalidValue {
            found: raw.to_string(),
            expected: self.documentation.expected.clone(),
            reason: None,
            nearest: None,
        };
        let number = self.read(raw).map_err(|error| InvalidValue { reason: error.reason, ..wrong() })?;
        let is_word = match (&self.documentation.schema, raw) {
            (ValueSchema::Words(words), Raw::Text(word)) => words.contains(&word.as_str()),
            (schema, _) => !matches!(schema, ValueSchema::Words(_)),
        };
        if is_word && self.range.is_none_or(|(low, high)| (low..=high).contains(&number)) {
            Ok(())
        } else {
            Err(wrong())
        }
    }

    fn of(&self, py: Python<'_>, raw: &Raw) -> PyResult<Py<PyAny>> {
        let number = self.read(raw).map_err(|error| PyValueError::new_err(error.to_string()))?;
        match (self.kind, raw) {
            (Kind::Flag, _) => (number > 0.0).into_py_any(py),
            (Kind::Number, _) => number.into_py_any(py),
            (Kind::Word, Raw::Text(word)) => word.into_py_any(py),
            // Exact: a quantity has less than 2^63 units, and Python's integers are its type.
            (Kind::Time, Raw::Text(text)) => text.parse::<Time>().unwrap_or_default().ps().into_py_any(py),
            (Kind::Bytes, Raw::Text(text)) => text.parse::<Bytes>().map_or(0, |bytes| bytes.0).into_py_any(py),
            (Kind::Rate, Raw::Text(text)) => text.parse::<Rate>().map_or(0, |rate| rate.0).into_py_any(py),
            _ => (number as u64).into_py_any(py),
        }
    }
}

/// A class and what it declares.
struct Class {
    class: Py<PyType>,
    about: &'static About,
    parameters: Vec<Declared>,
    /// Methods that it has.
    methods: Vec<&'static str>,
    tags: TagKind,
    probe_bytes: Option<u32>,
    keeps_path: bool,
    reads: [bool; 2],
}

/// The class with values of its parameters.
#[derive(Clone)]
struct Described {
    class: Arc<Class>,
    values: Vec<Raw>,
}

impl Debug for Described {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.class.about.name, self.values)
    }
}

impl Parameters for Described {
    fn documentation(&self) -> Vec<Parameter> {
        self.class.parameters.iter().map(|declared| declared.documentation.clone()).collect()
    }
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError> {
        let names = || self.class.parameters.iter().map(|declared| declared.documentation.name);
        let Some(at) = names().position(|name| name == key) else {
            let allowed: Vec<_> = names().collect();
            let nearest = nearest(key, allowed.iter().copied());
            return Err(SetError::UnknownKey { key: key.into(), allowed, nearest });
        };
        let check = self.class.parameters[at].check(value);
        check.map_err(|wrong| SetError::InvalidValue { key: key.into(), wrong })?;
        self.values[at] = value.clone();
        Ok(())
    }
    fn entries(&self) -> Vec<(&'static str, Raw)> {
        let names = self.class.parameters.iter().map(|declared| declared.documentation.name);
        names.zip(self.values.iter().cloned()).collect()
    }
}

impl SchemeCapabilities for Described {
    fn tags(&self) -> TagKind {
        self.class.tags
    }
    fn keeps_path(&self) -> bool {
        self.class.keeps_path
    }
    fn probe_payload(&self) -> Option<u32> {
        self.class.probe_bytes
    }
    fn reads_selective(&self) -> bool {
        self.class.reads[0]
    }
    fn reads_path_rates(&self) -> bool {
        self.class.reads[1]
    }
}

impl DescribedHost for Described {
    fn build(&self, seed: u64, host_key: u64) -> Box<dyn DynHost> {
        let mut host =
            Host { class: self.class.clone(), object: None, waiting: Vec::new(), probes: 0, probe_at: Vec::new() };
        host.object = host.enter("__init__", |py, _| {
            let object = self.class.class.bind(py).call_method1("__new__", (&self.class.class,))?;
            for (declared, raw) in self.class.parameters.iter().zip(&self.values) {
                object.setattr(declared.documentation.name, declared.of(py, raw)?)?;
            }
            object.setattr("_key", (seed, host_key))?;
            object.call_method0("__init__")?;
            Ok(object.unbind())
        });
        Box::new(host)
    }
}

/// The scheme of a host.
struct Host {
    class: Arc<Class>,
    /// `None`: its constructor has failed.
    object: Option<Py<PyAny>>,
    waiting: Vec<(Time, u32, CallEvent)>,
    /// Probes since the last poll without one.
    probes: u32,
    /// Time of the next probe per slot, as last returned.
    probe_at: Vec<Time>,
}

/// Most probes that a scheme may request at once.
const MAX_PROBES: u32 = 64;

impl Debug for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.about.name)
    }
}

impl Host {
    /// Calls `work` with the GIL and the name of the method, which it may change; `None` once a scheme has failed.
    fn enter<T>(
        &self,
        mut method: &'static str,
        work: impl FnOnce(Python<'_>, &mut &'static str) -> PyResult<T>,
    ) -> Option<T> {
        if failed() {
            return None;
        }
        let begun = Instant::now();
        // `None`: Python is shutting down.
        let done = Python::try_attach(|py| work(py, &mut method))?;
        CALLS.fetch_add(1, Ordering::Relaxed);
        NANOSECONDS.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        done.map_err(|raised| {
            lock(&ERROR).get_or_insert((self.class.about.name, method, raised));
            FAILED.store(true, Ordering::Relaxed);
        })
        .ok()
    }

    fn has(&self, method: &str) -> bool {
        self.class.methods.contains(&method)
    }

    fn wait(&mut self, method: &str, now: Time, slot: u32, event: impl FnOnce() -> CallEvent) {
        if self.has(method) {
            self.waiting.push((now, slot, event()));
        }
    }

    /// Calls a method that returns something, after those that wait.
    fn ask<T>(
        &mut self,
        method: &'static str,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let waiting = std::mem::take(&mut self.waiting);
        let object = self.object.as_ref()?;
        self.enter(method, |py, at| {
            let object = object.bind(py);
            tell_all(object, waiting, at)?;
            *at = method;
            read(&object.call_method1(method, arguments(py)?)?)
        })
    }
}

fn method_of(event: &CallEvent) -> &'static str {
    match event {
        CallEvent::Open(_) => "open",
        CallEvent::Ack(_) => "on_ack",
        CallEvent::Loss(..) => "on_loss",
        CallEvent::Timeout(_) => "on_timeout",
        CallEvent::Signal(..) => "on_signal",
        CallEvent::PathsChanged(_) => "on_paths_changed",
        CallEvent::RatesChanged(_) => "on_rates_changed",
        CallEvent::PortsChanged(..) => "on_ports_changed",
        _ => "close",
    }
}

fn tell_all(object: &Bound<'_, PyAny>, waiting: Vec<(Time, u32, CallEvent)>, at: &mut &'static str) -> PyResult<()> {
    for (now, slot, event) in waiting {
        *at = method_of(&event);
        tell(object, now, slot, event)?;
    }
    Ok(())
}

fn tell(object: &Bound<'_, PyAny>, now: Time, slot: u32, event: CallEvent) -> PyResult<()> {
    let (method, now) = (method_of(&event), now.ps());
    match event {
        CallEvent::Open(flow) => object.call_method1(method, (now, slot, Flow::new(&flow.info()))),
        CallEvent::Ack(feedback) => object.call_method1(method, (now, slot, Feedback::new(&feedback))),
        CallEvent::Loss(tag, cause) => object.call_method1(method, (now, slot, tag, word(cause))),
        CallEvent::Timeout(tag) => object.call_method1(method, (now, slot, tag)),
        CallEvent::Signal(tag, signal) => object.call_method1(method, (now, slot, tag, signal.0)),
        CallEvent::PathsChanged(dead) => object.call_method1(method, (now, slot, dead.into_vec())),
        CallEvent::RatesChanged(rates) => {
            object.call_method1(method, (now, slot, rates.iter().map(|rate| rate.0).collect::<Vec<_>>()))
        }
        CallEvent::PortsChanged(local, remote) => object.call_method1(method, (now, slot, local, remote)),
        _ => object.call_method1(method, (slot,)),
    }
    .map(drop)
}

fn word(cause: Loss) -> &'static str {
    match cause {
        Loss::Trimmed => "trimmed",
        Loss::TrimmedAtLastHop => "trimmed-last-hop",
        Loss::Gap => "gap",
        Loss::Refused => "refused",
    }
}

impl HostScheme for Host {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.wait("open", now, slot, || CallEvent::Open(Arc::new(OpenedFlow::new(flow))));
    }
    fn close(&mut self, slot: u32) {
        self.wait("close", Time::ZERO, slot, || CallEvent::Close);
        // No choice may follow.
        let waiting = std::mem::take(&mut self.waiting);
        if let Some(object) = self.object.as_ref().filter(|_| !waiting.is_empty()) {
            self.enter("close", |py, at| tell_all(object.bind(py), waiting, at));
        }
    }
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Choice {
        let packet = Packet::new(packet);
        let answer = self.ask("select", |py| (now.ps(), slot, packet).into_pyobject(py), |answer| choice(answer, now));
        answer.unwrap_or(Choice::Send(0))
    }
    fn on_signal(&mut self, now: Time, slot: u32, tag: Tag, signal: LinkSignal) {
        self.wait("on_signal", now, slot, || CallEvent::Signal(tag, signal));
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Acknowledged) {
        self.wait("on_ack", now, slot, || CallEvent::Ack(*feedback));
    }
    fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
        self.wait("on_loss", now, slot, || CallEvent::Loss(tag, cause));
    }
    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        self.wait("on_timeout", now, slot, || CallEvent::Timeout(tag));
    }
    fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        self.wait("on_paths_changed", now, slot, || CallEvent::PathsChanged(dead.into()));
    }
    fn on_rates_changed(&mut self, now: Time, slot: u32, rates: &[Rate]) {
        self.wait("on_rates_changed", now, slot, || CallEvent::RatesChanged(rates.into()));
    }
    fn on_ports_changed(&mut self, now: Time, slot: u32, local: u32, remote: u32) {
        self.wait("on_ports_changed", now, slot, || CallEvent::PortsChanged(local, remote));
    }
    fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
        if !self.has("poll_probe") {
            return None;
        }
        let bytes = self.class.probe_bytes.unwrap_or(64);
        let before = self.probes;
        let read = |answer: &Bound<'_, PyAny>| match answer.extract::<Option<Tag>>()? {
            Some(_) if before >= MAX_PROBES => {
                Err(PyValueError::new_err(format!("more than {MAX_PROBES} probes at once; return None after the last")))
            }
            tag => Ok(tag),
        };
        let tag = self.ask("poll_probe", |py| (now.ps(), slot).into_pyobject(py), read).flatten();
        self.probes = if tag.is_some() { before + 1 } else { 0 };
        if tag.is_none() && self.has("probe_at") {
            let at: Option<Option<u64>> =
                self.ask("probe_at", |py| (slot,).into_pyobject(py), |answer| answer.extract());
            self.probe_at.resize(self.probe_at.len().max(slot as usize + 1), Time::MAX);
            self.probe_at[slot as usize] = at.flatten().map_or(Time::MAX, |ps| Time::from_ps(ps).max(now));
        }
        tag.map(|tag| Probe { tag, bytes })
    }
    fn probe_at(&self, slot: u32) -> Time {
        self.probe_at.get(slot as usize).copied().unwrap_or(Time::MAX)
    }
    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, ecn: bool) -> bool {
        let rtt = (rtt < Time::MAX).then_some(rtt.ps());
        self.has("on_probe_reply")
            && self
                .ask(
                    "on_probe_reply",
                    |py| (now.ps(), slot, tag, rtt, ecn).into_pyobject(py),
                    |answer| answer.is_truthy(),
                )
                .unwrap_or(false)
    }
}

fn choice(answer: &Bound<'_, PyAny>, now: Time) -> PyResult<Choice> {
    if let Ok(tag) = answer.extract::<Tag>() {
        return Ok(Choice::Send(tag));
    }
    match answer.cast::<Decision>().map(|decision| decision.get().0) {
        Ok(Choice::Hold(until)) if until <= now => {
            Err(PyValueError::new_err(format!("hold({}): expected a time after now, {}", until.ps(), now.ps())))
        }
        Ok(decision) => Ok(decision),
        Err(_) => Err(PyTypeError::new_err(format!(
            "select: found {}, expected a tag from 0 to 4294967295 or a Decision",
            answer.repr()?
        ))),
    }
}

/// What a scheme decides on a packet besides a tag.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Decision(Choice);

#[pymethods]
impl Decision {
    /// Sends the packet with this tag and requests an acknowledgement, before which the flow sends no other.
    #[staticmethod]
    fn send_and_wait(tag: Tag) -> Self {
        Decision(Choice::SendWithAckRequest(tag))
    }
    /// Sends nothing of the flow before this time in picoseconds, then selects again.
    #[staticmethod]
    fn hold(until: u64) -> Self {
        Decision(Choice::Hold(Time::from_ps(until)))
    }
    /// Sends nothing of the flow before its next acknowledgement or timeout, then selects again.
    #[staticmethod]
    fn wait() -> Self {
        Decision(Choice::Wait)
    }
}

/// Random numbers of a scheme, as those of schemes in Rust.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Random(Mutex<Stream>);

#[pymethods]
impl Random {
    /// Creates the numbers of the host's key for this purpose and flow.
    #[new]
    fn new(of_host: (u64, u64), purpose: &str, flow: u64) -> Self {
        Random(Mutex::new(Stream::keyed(key(of_host.0, of_host.1, purpose), flow, purpose)))
    }
    /// Returns a whole number from 0 to `n` - 1.
    fn below(&self, n: u64) -> PyResult<u64> {
        if n == 0 {
            return Err(PyValueError::new_err("below: found 0, expected 1 or more"));
        }
        Ok(lock(&self.0).below(n))
    }
    /// Returns a number from 0 to below 1.
    fn unit(&self) -> f64 {
        lock(&self.0).unit()
    }
}

/// Declares a class with its fields for Python, from a value.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident of $from:ty { $($(#[$of:meta])* $field:ident: $kind:ty = $get:expr;)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "anabranch._native")]
        pub(crate) struct $name {
            $($(#[$of])* $field: $kind,)*
        }

        impl $name {
            fn new(of: &$from) -> Self {
                $name { $($field: { let get: fn(&$from) -> $kind = $get; get(of) },)* }
            }
        }
    };
}

view! {
    /// A packet to be sent.
    Packet of Outgoing {
        /// Sequence number, from 0.
        psn: u64 = |of| of.psn;
        /// Payload bytes.
        bytes: u32 = |of| of.bytes;
        /// It was sent before.
        retransmission: bool = |of| of.retransmission;
    }
}

view! {
    /// Contents of an acknowledgement; times in picoseconds.
    Feedback of Acknowledged {
        /// Tag of the packet that triggered it.
        tag: u32 = |of| of.tag;
        /// That packet was marked.
        ecn: bool = |of| of.ecn;
        /// Its round trip; None if it was retransmitted.
        rtt: Option<u64> = |of| of.rtt.map(Time::ps);
        /// Its sequence number.
        psn: u64 = |of| of.psn;
        /// Packets newly acknowledged.
        packets: u32 = |of| of.packets;
        /// Payload bytes newly acknowledged.
        bytes: u64 = |of| of.bytes;
        /// First sequence number not yet received.
        cumulative: u64 = |of| of.cumulative;
        /// Next new sequence number.
        next_psn: u64 = |of| of.next_psn;
        /// Packets that have arrived, a bit each from `selective_from` on.
        selective: u64 = |of| of.selective;
        /// Sequence number of the lowest bit.
        selective_from: u64 = |of| of.selective_from;
    }
}

view! {
    /// A flow; times in picoseconds, rates in bits per second.
    Flow of FlowInfo<'_> {
        /// Key for random numbers.
        key: u64 = |of| of.key;
        /// Key of its connection.
        connection: u64 = |of| of.connection;
        /// Sending host.
        src: u32 = |of| of.src;
        /// Receiving host.
        dst: u32 = |of| of.dst;
        /// Payload bytes.
        size: u64 = |of| of.size;
        /// Packets of the payload.
        packets: u64 = |of| of.packets;
        /// Bandwidth-delay product in packets.
        bdp_packets: u64 = |of| of.bdp_packets;
        /// Round trip of a packet on the empty network.
        base_rtt: u64 = |of| of.base_rtt.ps();
        /// Maximum rate.
        rate: u64 = |of| of.rate.0;
        /// Bytes of a full packet on the wire.
        full_packet: u32 = |of| of.full_packet;
        /// Uplinks per tier.
        uplinks: Vec<u32> = |of| of.paths.uplinks.to_vec();
        /// Planes that tags name.
        planes: u32 = |of| of.paths.planes;
        /// Number of the destination's group.
        edge: u32 = |of| of.paths.edge;
        /// Per path: dead; empty: none is.
        dead: Vec<bool> = |of| of.paths.dead.to_vec();
        /// Rate per path, for a scheme that reads them.
        rates: Vec<u64> = |of| of.paths.rates.iter().map(|rate| rate.0).collect();
    }
}

/// Name, meaning, source, kind, default, range, words.
type Row<'py> = (String, String, String, String, Bound<'py, PyAny>, Option<(f64, f64)>, Vec<String>);

fn leaked(text: &str) -> &'static str {
    text.to_string().leak()
}

fn declared((name, meaning, source, kind, default, range, words): &Row<'_>) -> PyResult<Declared> {
    let (kind, expected, schema) = match kind.as_str() {
        "bool" => (Kind::Flag, bool::expected(), bool::schema()),
        "int" => (Kind::Whole, u64::expected(), u64::schema()),
        "float" => (Kind::Number, f64::expected(), f64::schema()),
        "time" => (Kind::Time, Time::expected(), Time::schema()),
        "bytes" => (Kind::Bytes, Bytes::expected(), Bytes::schema()),
        "rate" => (Kind::Rate, Rate::expected(), Rate::schema()),
        _ => {
            let listed: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let words = words.iter().map(|word| leaked(word)).collect();
            (Kind::Word, format!("one of {}", listed.join(" ")), ValueSchema::Words(words))
        }
    };
    let raw = match kind {
        Kind::Flag => Raw::Bool(default.extract()?),
        Kind::Whole => Raw::Int(default.extract()?),
        Kind::Number => Raw::Float(default.extract()?),
        _ => Raw::Text(default.extract()?),
    };
    let end = |value: f64| if kind == Kind::Whole { Raw::Int(value as i64) } else { Raw::Float(value) };
    let (expected, schema) = match *range {
        Some((low, high)) => (
            format!("{}, from {} to {}", expected.trim_end_matches(", zero or more"), end(low), end(high)),
            ValueSchema::Between(Box::new(schema), end(low), end(high)),
        ),
        None => (expected, schema),
    };
    let documentation = Parameter {
        name: leaked(name),
        meaning: leaked(meaning),
        expected,
        schema,
        default: raw,
        source: leaked(source),
        level: Level::User,
    };
    Ok(Declared { documentation, kind, range: *range })
}

/// Registers a class as a host scheme, in place of one of its name before.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn register_scheme(
    class_: Bound<'_, PyType>,
    name: &str,
    texts: (String, String, String),
    parameters: Vec<Row<'_>>,
    methods: Vec<String>,
    tags: &str,
    probe_bytes: Option<u32>,
    keeps_path: bool,
    reads: (bool, bool),
) -> PyResult<()> {
    let (summary, source, description) = texts;
    let name = leaked(name);
    let about = About { name, summary: leaked(&summary), source: leaked(&source), description: leaked(&description) };
    let class = Class {
        class: class_.unbind(),
        about: Box::leak(Box::new(about)),
        parameters: parameters.iter().map(declared).collect::<PyResult<_>>()?,
        methods: methods.iter().map(|method| leaked(method)).collect(),
        tags: if tags == "multi-part" { TagKind::MultiPart } else { TagKind::Entropy },
        probe_bytes,
        keeps_path,
        reads: reads.into(),
    };
    let wrong = |found: String| error::scenario(&anabranch_scenario::ScenarioError::new(found));
    for declared in &class.parameters {
        let check = declared.check(&declared.documentation.default);
        check.map_err(|invalid| wrong(format!("scheme `{name}`: `{}`: {invalid}", declared.documentation.name)))?;
    }
    let values = class.parameters.iter().map(|declared| declared.documentation.default.clone()).collect();
    let about = class.about;
    external::add_or_replace(described_host(about, Described { class: Arc::new(class), values }))
        .map_err(|found| wrong(format!("scheme `{name}`: {found}")))?;
    let mut names = lock(&NAMES);
    if !names.contains(&name) {
        names.push(name);
    }
    Ok(())
}
