//! Section `[wire]` of a scenario.

use crate::{
    key,
    stev::{Stev, StructuredValues},
    verbs,
};
use anabranch_endpoint::{
    Checksum, Key, Secret, Settings,
    header::{self, Protection},
};
use anabranch_lb::registry::HostParameters;
use anabranch_settings::{Auto, InvalidValue, Never, Raw, SetError, Setting, choices, parameters};
use anabranch_transport::{RealNetwork, TransportParameters};
use anabranch_units::{Bytes, Rate, Time};

/// Bytes of the headers of UDP, IPv4 and Ethernet, which pacing and windows count.
pub const OVERHEAD: u64 = 42;
/// A jumbo frame without Ethernet's header, and the headers of IPv6 and UDP.
const JUMBO_MTU: u64 = 9000;
const IPV6_UDP: u64 = 48;

/// With all headers the packet fits a jumbo frame.
const fn max_payload(is_authenticated: bool) -> u64 {
    let header = if is_authenticated { header::MAX_HEADER } else { header::DATA_HEADER };
    JUMBO_MTU - IPV6_UDP - header as u64
}

const MIN_PAYLOAD: u64 = 64;
/// Maximum labels of an endpoint, which uses one socket per label.
pub const MAX_LABELS: u32 = 256;
/// The largest that a greeting has bits for.
const MAX_CHUNK: u64 = (1 << 24) - 1;
/// Least chunk that follows from the rate.
const MIN_CHUNK: u64 = 64 << 10;
/// Four of the largest messages.
const MIN_BUFFERED: u64 = 64 << 20;
const MAX_BUFFERED: u64 = 1 << 40;
/// Timeouts for which a path that timed out is not used. A retry on a dead path fills the window with lost packets and
/// stalls the stream for a timeout: this limits the stall to a tenth of the time.
const TIMEOUTS: u64 = 10;
const MAX_RUN_LENGTH: u32 = 64;
/// A full packet leaves within a second; the fastest port of Ethernet.
const MIN_RATE: Rate = Rate(100_000);
const MAX_RATE: Rate = Rate::gbps(1_600);
/// Windows hold what the rate carries in it.
const MAX_FLOOR: Time = Time::from_ms(100);
/// Least time above zero that a datapath waits for, and a day.
const MIN_TIME: Time = Time::from_us(1);
const MAX_TIME: Time = Time::from_ms(86_400_000);

choices! {
    /// What carries packets.
    pub enum DatapathKind {
        /// UDP sockets, one per label.
        Udp = "udp",
        /// RC queue pairs of an RDMA device, whose messages are chunks.
        Rc = "rc",
        /// UC queue pairs of an RDMA device, one per label, whose messages are packets.
        Uc = "uc",
    }
}

choices! {
    /// What is authenticated.
    pub enum Authenticate {
        /// Headers and control packets where there is a key, nothing elsewhere.
        Auto = "auto",
        /// Nothing.
        Off = "off",
        /// Headers, with the CRC32C of their payload, and control packets.
        Control = "control",
        /// Payloads as well.
        All = "all",
    }
}

choices! {
    /// Which labels are used.
    pub enum FindLabels {
        /// All of them, wherever they lead.
        All = "all",
        /// Those that were found to lead over known switches: labels over the same switches are one path.
        Paths = "paths",
    }
}

impl FindLabels {
    /// Reason why [`FindLabels::Paths`] is refused on other systems than Linux.
    pub const UNSUPPORTED: &str = "find_labels: found \"paths\", which needs Linux; expected \"all\"";

    /// Returns the reason why [`FindLabels::Paths`] is refused where paths cannot be traced.
    pub fn refusal(error: impl std::fmt::Display) -> String {
        format!("find_labels: found \"paths\": {error}; expected \"all\"")
    }
}

choices! {
    /// What a scheme does whose path loses a packet for good.
    pub enum OnTimeoutHere {
        /// It leaves the path, where it has a rule for that (`on_timeout`) and chooses paths at all.
        Move = "move",
        /// The effect of its own `on_timeout`.
        Scheme = "scheme",
    }
}

parameters! {
    /// Parameters of real networks alone; simulations do not read them.
    pub struct WireParameters {
        /// Transport of packets: UDP sockets, reliable (rc) or unreliable (uc) queue pairs of an RDMA device.
        datapath: DatapathKind = DatapathKind::Udp, source "ours";
        /// Labels: as many consecutive UDP ports of the endpoint that is called, each of which is a path to the network.
        labels: u32 = 8, within 1..=MAX_LABELS, source "ours";
        /// What a path is to schemes: each label, or all labels that were found to lead over the same switches (over IPv4: `send` by every datapath, the NCCL plugin, testbeds). With rc each path has one queue pair.
        find_labels: FindLabels = FindLabels::All, source "ours", Expert;
        /// Structured entropy values (STEV) that packets of `send` over UDP carry, those of the scheme's profile: which half is in the IPv6 flow label, and which in the UDP source port.
        stev: Stev = Stev::Off, source "MRC 1.0: both halves; public summaries disagree on their order, label first by most", Expert;
        /// Payload bytes of a full packet, the same at both peers; auto: transport.mtu.
        payload: Auto<Bytes> = Auto::Auto, source "ours", Expert;
        /// Rate at which packets leave a host; auto: the rate of the scenario's host links.
        rate: Auto<Rate> = Auto::Auto, within MIN_RATE..=MAX_RATE, source "ours";
        /// How much time the pacer makes up for when the process had to wait for its turn.
        catch_up: Time = Time::from_us(1_000), within Time::ZERO..=MAX_TIME, source "ours: what other processes take without a real-time class", Expert;
        /// Packets in a row that carry the label chosen for the first of them, so that they leave and arrive together (GSO,
        /// GRO). Schemes choose once per run; a retransmitted packet begins a new one.
        run_length: u32 = 1, within 1..=MAX_RUN_LENGTH, source "ours", Expert;
        /// With rc: bytes of a chunk, for which a scheme chooses once. auto: what the rate carries in rtt_floor, at least 64 KiB.
        chunk: Auto<Bytes> = Auto::Auto, within Bytes(MIN_PAYLOAD)..=Bytes(MAX_CHUNK), source "ours; Hopper §4.2: 1 MB and 10 MB", Expert;
        /// With rc: maximum number of chunks in flight of a stream. auto: 1 with `send`, 4 with the NCCL plugin.
        chunks_under_way: Auto<u32> = Auto::Auto, within 1..=64, source "ours: not given", Expert;
        /// With rc: bytes of a probe, instead of the scheme's `probe_size`.
        probe: Bytes = Bytes(10_000), within Bytes(1)..=Bytes(MAX_CHUNK), source "Hopper §4.2", Expert;
        /// With rc: number of queue pairs. If there are fewer than labels, idle ones change their labels.
        queue_pairs: u32 = 8, within 1..=verbs::MAX_QUEUES, source "ours", Expert;
        /// Least noise floor of round trips: what exceeds the shortest by up to this counts as nothing.
        rtt_floor: Time = Time::from_us(200), within Time::ZERO..=MAX_FLOOR, source "ours: scheduling of an idle machine; docs/reference/wire.md", Expert;
        /// Full packets that measure the base round trip of a peer when it connects.
        calibrations: u32 = 16, within 1..=1000, source "ours", Expert;
        /// The base round trip rises to the shortest one of this time, where all were longer; a shorter one counts at once.
        rtt_window: Time = Time::from_us(10_000_000), within MIN_TIME..=MAX_TIME, source "BBR (ACM Queue 2016): the minimum of ten seconds", Expert;
        /// Instead of transport.early_loss: a packet counts as lost once one of its tag that left at least this much later has arrived.
        early_loss: Never<Time> = Never::Value(Time::from_us(100)), within Time::ZERO..=MAX_TIME, source "ours: packets of a label keep their order but for what a machine's several queues do", Expert;
        /// Least timeout of the transport, which follows the measured round trips.
        least_timeout: Time = Time::from_us(10_000), within MIN_TIME..=MAX_TIME, source "ours: processes may wait for their turn so long", Expert;
        /// Effect of a timeout on a scheme that keeps its path: it leaves the path as dead, or its own on_timeout decides.
        on_timeout: OnTimeoutHere = OnTimeoutHere::Move, source "ours: a timeout is a round trip without end; who knows round trips alone would stand still on a dead path", Expert;
        /// Time after which a peer that owes a reply and sends nothing, or acknowledges nothing new, has timed out.
        give_up: Time = Time::from_us(10_000_000), within MIN_TIME..=MAX_TIME, source "ours", Expert;
        /// Time after which a peer that sends nothing at all is removed.
        idle_timeout: Time = Time::from_us(60_000_000), within MIN_TIME..=MAX_TIME, source "ours", Expert;
        /// Bytes of memory that messages of all peers may take before they are complete; those from one source address may take half of it.
        max_buffered_bytes: Bytes = Bytes(128 << 20), within Bytes(MIN_BUFFERED)..=Bytes(MAX_BUFFERED), source "ours", Expert;
        /// Peers that may have connected from one source address; of IPv6 from one prefix of 64 bits.
        max_peers_per_address: u32 = 256, within 1..=1 << 16, source "ours", Expert;
        /// Replies per second to addresses that have not shown that they receive there (RETRY); more HELLOs get none.
        max_retries: u32 = 20_000, within 1..=1_000_000, source "ours: 16 Mbit/s", Expert;
        /// Whether data packets may be marked; the ports of a testbed then mark according to [fabric].
        ecn: bool = true, source "ours", Expert;
        /// Whether the payload of each packet carries a CRC32C, as each header does; a packet that does not fit it counts as lost. auto: over UDP to other hosts; queue pairs have one of their own.
        checksum: Auto<bool> = Auto::Auto, source "ours: 16 bits miss one damaged packet of 65,536", Expert;
        /// A file with the key that both peers share: 64 hexadecimal digits or more, readable by its owner alone. Packets are authenticated by it; "": none.
        key: Option<String> = None, source "ours: hosts of a network that trust each other need none";
        /// What is authenticated by the key: nothing, headers and control packets, or payloads as well; auto: headers and control packets where there is a key. The stronger setting of the two peers applies.
        authenticate: Authenticate = Authenticate::Auto, source "ours", Expert;
        /// Whether the ports of a testbed trim instead of dropping.
        trimming: bool = false, source "ours: no switch that one can buy trims our header", Expert;
        /// Whether the endpoints of a testbed run in the real-time class (SCHED_RR), where that is allowed.
        real_time: bool = true, source "ours: without it they stand still for 12 to 26 ms on a loaded machine", Expert;
    }
}

/// Returns a secret from the system's random number generator.
///
/// # Panics
/// Panics if the system has none: a connection without an unpredictable secret would be insecure.
pub fn secret() -> Secret {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system's random number generator");
    Secret(bytes)
}

/// Returns the value as text, if the scheme has the key.
fn entry(scheme: &HostParameters, key: &str) -> Option<String> {
    let entries = scheme.parameters().entries();
    entries.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_string())
}

fn is_auto(scheme: &HostParameters, key: &str) -> bool {
    entry(scheme, key).is_some_and(|value| value == "\"auto\"")
}

fn wrong(key: &str, found: impl std::fmt::Display, expected: impl Into<String>) -> SetError {
    let wrong = InvalidValue { found: found.to_string(), expected: expected.into(), reason: None, nearest: None };
    SetError::InvalidValue { key: key.into(), wrong }
}

impl WireParameters {
    /// Checks what depends on several keys.
    /// Errors: [`SetError::InvalidValue`] for the first value that does not fit the others.
    pub fn check(&self) -> Result<(), SetError> {
        if let Auto::Value(chunk) = self.chunk
            && self.probe > chunk
        {
            return Err(wrong("probe", self.probe, format!("at most wire.chunk = {chunk}")));
        }
        match self.payload {
            Auto::Value(payload) if !(MIN_PAYLOAD..=self.max_payload()).contains(&payload.0) => {
                Err(wrong("payload", payload, self.payloads()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the protection of packets if there is a key.
    pub fn protection(&self) -> Protection {
        match self.authenticate {
            Authenticate::Off => Protection::Off,
            Authenticate::Auto | Authenticate::Control => Protection::Control,
            Authenticate::All => Protection::All,
        }
    }

    /// Reads the key from the configured file.
    /// Fails if authentication is configured without a key, or if the key file is invalid.
    pub fn read_key(&self) -> Result<Option<Key>, SetError> {
        match &self.key {
            _ if self.authenticate == Authenticate::Off => Ok(None),
            Some(path) => key::read_key(path).map(Some).map_err(|error| wrong("key", error.found, error.expected)),
            None if self.authenticate == Authenticate::Auto => Ok(None),
            None => {
                let found = if self.authenticate == Authenticate::All { "`all`" } else { "`control`" };
                Err(wrong("authenticate", format!("{found} without wire.key"), "a key that both ends share, or `auto`"))
            }
        }
    }

    fn header(&self, has_key: bool) -> u64 {
        let protection = if has_key { self.protection() } else { Protection::Off };
        let of = match protection {
            Protection::Off => header::DATA_HEADER,
            Protection::Control => header::DATA_HEADER + header::SEAL,
            Protection::All => header::MAX_HEADER,
        };
        of as u64
    }

    /// Returns `true` if packets have MACs.
    pub fn is_authenticated(&self) -> bool {
        match self.authenticate {
            Authenticate::Off => false,
            Authenticate::Auto => self.key.is_some(),
            Authenticate::Control | Authenticate::All => true,
        }
    }

    /// Returns the bytes of the longest packet header.
    pub fn max_header(&self) -> u64 {
        if self.is_authenticated() { header::MAX_HEADER as u64 } else { header::DATA_HEADER as u64 }
    }

    /// Returns the payload bytes of the largest packet.
    pub fn max_payload(&self) -> u64 {
        max_payload(self.is_authenticated())
    }

    /// For error messages.
    fn payloads(&self) -> String {
        let with = if self.is_authenticated() { " with a key" } else { "" };
        format!("from {MIN_PAYLOAD}B to {}B{with}", self.max_payload())
    }

    /// Returns the bytes of a packet besides the protocol's header and payload, which pacing and windows count.
    pub fn overhead(&self) -> u64 {
        if self.datapath == DatapathKind::Udp { OVERHEAD } else { verbs::OVERHEAD }
    }

    /// Returns the payload bytes of a full packet.
    /// Fails if they do not fit a datagram.
    pub fn payload_of(&self, transport: &TransportParameters) -> Result<u64, SetError> {
        let payload = match self.payload {
            Auto::Value(payload) => payload.0,
            Auto::Auto => transport.mtu(),
        };
        // With rc it is the chunk.
        if self.datapath == DatapathKind::Rc || (MIN_PAYLOAD..=self.max_payload()).contains(&payload) {
            return Ok(payload);
        }
        let found = format!("{} (transport.mtu = {payload}B)", self.payload.write());
        Err(wrong("payload", found, self.payloads()))
    }

    /// Returns the transport adapted to a real network: sizes of packets, a timeout that follows measured round trips,
    /// and early loss detection by reordering.
    /// Fails if packets would be too large.
    pub fn transport(&self, transport: &TransportParameters) -> Result<TransportParameters, SetError> {
        self.transport_with(transport, self.key.is_some())
    }

    fn transport_with(&self, transport: &TransportParameters, has_key: bool) -> Result<TransportParameters, SetError> {
        if transport.takes_credit() {
            let expected = "a congestion control without receiver credit, which simulated receivers alone grant";
            return Err(wrong("transport.congestion_control", transport.control().name, expected));
        }
        let payload = Bytes(self.payload_of(transport)?);
        let header = Bytes(self.header(has_key) + self.overhead());
        let mut ours = transport.clone();
        let (early_loss, is_reliable) = (self.early_loss, self.datapath == DatapathKind::Rc);
        let min_timeout = if is_reliable { self.give_up } else { self.least_timeout };
        ours.adapt(&RealNetwork { payload, header, min_timeout, early_loss, is_reliable });
        Ok(ours)
    }

    /// Returns the settings of an endpoint; `link_rate` is the rate of its host's link in the scenario.
    /// Fails if packets would be too large, or if the key cannot be read.
    pub fn settings(
        &self,
        transport: &TransportParameters,
        scheme: HostParameters,
        link_rate: Rate,
        seed: u64,
    ) -> Result<Settings, SetError> {
        self.settings_with_key(transport, scheme, link_rate, seed, self.read_key()?)
    }

    /// Returns the same settings of an endpoint that carries structured values, and the values: `send` over UDP alone does, and
    /// `serve` ignores them.
    ///
    /// Fails if packets would be too large, the key cannot be read, or there are values without [`WireParameters::stev`] or
    /// the reverse.
    pub fn settings_with_values(
        &self,
        transport: &TransportParameters,
        mut scheme: HostParameters,
        link_rate: Rate,
        seed: u64,
    ) -> Result<(Settings, StructuredValues), SetError> {
        let values = self.stev.take_values(&mut scheme)?;
        if self.stev != Stev::Off && self.datapath != DatapathKind::Udp {
            return Err(wrong("stev", self.stev.write(), "\"off\", or the datapath \"udp\""));
        }
        let settings =
            WireParameters { stev: Stev::Off, ..self.clone() }.settings(transport, scheme, link_rate, seed)?;
        Ok((settings, values))
    }

    /// Returns the same settings with another key.
    /// Fails if packets would be too large.
    pub fn settings_with_key(
        &self,
        transport: &TransportParameters,
        mut scheme: HostParameters,
        link_rate: Rate,
        seed: u64,
        key: Option<Key>,
    ) -> Result<Settings, SetError> {
        let rate = match self.rate {
            Auto::Value(rate) => rate,
            Auto::Auto => link_rate,
        };
        if !self.stev.take_values(&mut scheme)?.is_empty() {
            return Err(wrong("stev", self.stev.write(), "\"off\": only `send` carries structured values"));
        }
        if let Some((key, value)) = scheme.capabilities().reads_signals().and_then(|setting| setting.split_once(" = "))
        {
            let expected = "another value: switches of a real network write no signal that endpoints read; \
                            the simulator (`anabranch run`) does";
            return Err(wrong(&format!("{}.{key}", scheme.name()), value, expected));
        }
        let (usual, is_reliable) = (Settings::default(), self.datapath == DatapathKind::Rc);
        if self.on_timeout == OnTimeoutHere::Move && !scheme.capabilities().leaves_choice_to_switches() {
            // Schemes without this key handle timeouts themselves.
            let _ = scheme.parameters_mut().set("on_timeout", &Raw::Text("move".into()));
        }
        let (mut own, mut transport) = (self.clone(), transport.clone());
        if is_reliable {
            own.take_chunks(&mut transport, &mut scheme, rate)?;
        }
        let transport = own.transport_with(&transport, key.is_some())?;
        if is_auto(&scheme, "p_timeout") {
            let packets = rate.bytes_in(self.least_timeout * TIMEOUTS) / (transport.mtu() + transport.header());
            let _ = scheme.parameters_mut().set("p_timeout", &Raw::Int(packets as i64));
        }
        Ok(Settings {
            transport,
            scheme,
            seed,
            secret: secret(),
            max_buffered_bytes: self.max_buffered_bytes.0,
            // Two of the largest messages.
            max_held: usual.max_held.min(self.max_buffered_bytes.0 / 2),
            max_peers_per_address: self.max_peers_per_address as usize,
            max_retries: self.max_retries,
            labels: self.labels,
            rate,
            overhead: self.overhead(),
            catch_up: self.catch_up,
            calibrations: self.calibrations,
            rtt_floor: self.rtt_floor,
            rtt_window: self.rtt_window,
            peer_timeout: self.give_up,
            idle_timeout: self.idle_timeout,
            // An RDMA NIC does not report marks.
            ecn: self.ecn && self.datapath == DatapathKind::Udp,
            checksum: match self.checksum {
                Auto::Value(true) => Checksum::Always,
                Auto::Auto if self.datapath == DatapathKind::Udp => Checksum::BetweenHosts,
                Auto::Value(false) | Auto::Auto => Checksum::Never,
            },
            key,
            protection: self.protection(),
            run_length: if is_reliable { 1 } else { self.run_length },
            span: if is_reliable { self.chunks_under_way() } else { usual.span },
            is_reliable,
            ..usual
        })
    }

    fn chunks_under_way(&self) -> u32 {
        self.chunks_under_way.value().unwrap_or(1)
    }

    /// Adapts transport and scheme to reliable queue pairs, where a chunk is a packet and hardware controls congestion.
    /// Fails if they cannot work with chunks, or if the scheme's own `probe_size` differs from [`WireParameters::probe`].
    fn take_chunks(
        &mut self,
        transport: &mut TransportParameters,
        scheme: &mut HostParameters,
        rate: Rate,
    ) -> Result<(), SetError> {
        let chunk = match self.chunk {
            Auto::Value(chunk) => chunk,
            Auto::Auto => Bytes(rate.bytes_in(self.rtt_floor).clamp(MIN_CHUNK, MAX_CHUNK)),
        };
        self.payload = Auto::Value(chunk);
        let window = u64::from(self.chunks_under_way()) * (chunk.0 + self.overhead() + header::MAX_HEADER as u64);
        if transport.has_roce_headers() {
            let expected = "the transport `uet`: reliable queue pairs keep no order among paths";
            return Err(wrong("transport", transport.about().name, expected));
        }
        transport.parameters_mut().set("congestion_control", &Raw::Text("none".into()))?;
        transport.parameters_mut().set("window", &Raw::Text(format!("{window}B")))?;
        let mut own = scheme.clone();
        let [number, bytes] = [u64::from(self.labels), self.probe.0.min(chunk.0)];
        let bytes = Raw::Text(format!("{bytes}B"));
        // Most schemes have few of these keys, and some take fewer values.
        for (key, value) in [
            ("probe_size", bytes),
            ("granularity", Raw::Text("chunk".into())),
            ("variant", Raw::Text("rtt".into())),
            ("chunk", Raw::Text(format!("{}B", chunk.0))),
            ("outstanding", Raw::Int(i64::from(self.chunks_under_way()))),
            ("values", Raw::Int(number as i64)),
            ("entropy_values", Raw::Int(number as i64)),
            ("range", Raw::Int(number as i64)),
        ] {
            let _ = own.parameters_mut().set(key, &value);
        }
        let [requested, sent] = [&*scheme, &own].map(|scheme| entry(scheme, "probe_size"));
        if let (Some(requested), Some(sent)) = (requested, sent)
            && requested != sent
            && !is_auto(scheme, "probe_size")
        {
            let key = format!("load_balancer.{}.probe_size", scheme.name());
            let expected = format!(
                "{sent}, which is `wire.probe`, or \"auto\": over RC queue pairs that key says the size of probes"
            );
            return Err(wrong(&key, requested, expected));
        }
        own.check().map_err(|error| wrong("labels", self.labels, error.to_string()))?;
        *scheme = own;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Parameters;

    #[test]
    fn invalid_values_are_reported() {
        let refused = |key: &str, raw: Raw, word: &str| {
            let mut wire = WireParameters::default();
            let set = wire.set(key, &raw).and_then(|()| wire.check()).unwrap_err().to_string();
            assert!(set.contains(key) && set.contains(word), "{set}");
        };
        refused("labels", Raw::Int(0), "from 1 to 256");
        refused("authenticate", Raw::Text("al".into()), "`all`");
        // 9000 B minus 40 B IPv6, 8 B UDP and 64 B of the protocol's header; with a key 32 B more.
        refused("payload", Raw::Text("8889B".into()), "to 8888B");
        let mut keyed = WireParameters { key: Some("key".into()), ..WireParameters::default() };
        keyed.set("payload", &Raw::Text("8856B".into())).unwrap();
        keyed.check().unwrap();
        keyed.set("payload", &Raw::Text("8857B".into())).unwrap();
        assert!(keyed.check().unwrap_err().to_string().contains("to 8856B with a key"));
        keyed.authenticate = Authenticate::Off;
        keyed.check().unwrap();
        refused("run_length", Raw::Int(65), "64");
        refused("max_buffered_bytes", Raw::Text("1MiB".into()), "from 64MiB to 1TiB");
        refused("max_retries", Raw::Int(0), "from 1 to 1000000");
        refused("idle_timeout", Raw::Text("0s".into()), "from 1us to 86400s");
        refused("find_labels", Raw::Text("path".into()), "did you mean `paths`?");
        refused("lables", Raw::Int(8), "did you mean `labels`?");
    }

    #[test]
    fn p_timeout_covers_ten_timeouts() {
        let transport = TransportParameters::named("uet").unwrap();
        let wire = WireParameters { least_timeout: Time::from_us(10_000), ..WireParameters::default() };
        let resolved = |p_timeout: Raw| {
            let mut scheme = HostParameters::named("prime").unwrap();
            scheme.parameters_mut().set("p_timeout", &p_timeout).unwrap();
            entry(&wire.settings(&transport, scheme, Rate::gbps(1), 1).unwrap().scheme, "p_timeout").unwrap()
        };
        // 100 ms of 1 Gbit/s in packets of 4096 + 106 B.
        assert_eq!([resolved(Raw::Text("auto".into())), resolved(Raw::Int(70))], ["2974", "70"]);
    }

    #[test]
    fn receiver_credit_is_refused() {
        let mut transport = TransportParameters::named("uet").unwrap();
        transport.parameters_mut().set("congestion_control", &Raw::Text("rccc".into())).unwrap();
        let error = WireParameters::default().transport(&transport).unwrap_err().to_string();
        assert!(error.contains("found rccc") && error.contains("without receiver credit"), "{error}");
    }

    #[test]
    fn conflicting_probe_sizes_are_refused() {
        let transport = TransportParameters::named("uet").unwrap();
        let wire = WireParameters { probe: Bytes(20_000), datapath: DatapathKind::Rc, ..WireParameters::default() };
        let chunks = |size: &str| {
            let mut scheme = HostParameters::named("hopper").unwrap();
            scheme.parameters_mut().set("probe_size", &Raw::Text(size.into())).unwrap();
            wire.settings(&transport, scheme, Rate::gbps(25), 1)
        };
        for size in ["auto", "20kB"] {
            let settings = chunks(size).unwrap();
            // 200 us of 25 Gbit/s, and 20 kB with a header of 64 B.
            assert_eq!((settings.mtu(), settings.span, settings.probe_datagram(20_000)), (625_000, 1, 20_064));
            assert_eq!(entry(&settings.scheme, "probe_size").unwrap(), "\"20kB\"");
            assert_eq!(entry(&settings.scheme, "values").unwrap(), "8");
        }
        let slow = wire.settings(&transport, HostParameters::named("ecmp").unwrap(), Rate::gbps(1), 1).unwrap();
        assert_eq!(slow.mtu(), 64 << 10, "25 kB are too few");
        let roce = TransportParameters::named("roce").unwrap();
        let error = wire.settings(&roce, HostParameters::named("ecmp").unwrap(), Rate::gbps(1), 1).unwrap_err();
        assert!(error.to_string().contains("`uet`"), "{error}");
        let error = chunks("64B").unwrap_err().to_string();
        assert!(error.contains("load_balancer.hopper.probe_size") && error.contains("20kB"), "{error}");
    }

    #[test]
    fn settings_default_to_the_scenario() {
        let mut transport = TransportParameters::named("uet").unwrap();
        let scheme = || HostParameters::named("ecmp").unwrap();
        let wire = WireParameters::default();
        let settings = wire.settings(&transport, scheme(), Rate::gbps(25), 1).unwrap();
        assert_eq!((settings.mtu(), settings.rate), (4096, Rate::gbps(25)));
        // 14 B Ethernet, 20 B IPv4, 8 B UDP, 64 B of the protocol's header.
        assert_eq!(settings.transport.header(), 106);
        transport.parameters_mut().set("mtu", &Raw::Text("9000B".into())).unwrap();
        let error = wire.settings(&transport, scheme(), Rate::gbps(25), 1).unwrap_err().to_string();
        assert!(error.contains("transport.mtu = 9000B"), "{error}");
        // 14 B Ethernet, 20 B IPv4, 8 B UDP, 12 B base transport header, 4 B invariant CRC, 64 B of the protocol's header.
        let uc = WireParameters { datapath: DatapathKind::Uc, ..wire.clone() };
        let settings = uc.settings(&TransportParameters::named("uet").unwrap(), scheme(), Rate::gbps(25), 1).unwrap();
        assert_eq!((settings.transport.header(), settings.overhead, settings.ecn), (122, 58, false));
        assert_eq!(settings.checksum, Checksum::Never, "queue pairs have one of their own");
        let small = WireParameters { payload: Auto::Value(Bytes(1400)), rate: Auto::Value(Rate::gbps(1)), ..wire };
        let settings = small.settings(&transport, scheme(), Rate::gbps(25), 1).unwrap();
        assert_eq!((settings.mtu(), settings.rate, settings.checksum), (1400, Rate::gbps(1), Checksum::BetweenHosts));
    }
}
