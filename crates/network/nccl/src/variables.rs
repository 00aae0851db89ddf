//! User settings: environment variables with NCCL's syntax, and the sections of a scenario that apply to a real
//! network. `anabranch explain nccl` prints [`VARIABLES`].

use crate::{
    handle::{Authentication, Carrier, MAX_PLANES},
    hardware::{self, Hardware},
    log::Level,
};
use anabranch_endpoint::{Key, Secret, header::Protection};
use anabranch_lb::registry::{self, HostParameters, SwitchParameters};
use anabranch_settings::{Auto, Parameters, Raw, SetError, nearest};
use anabranch_transport::TransportParameters;
use anabranch_units::{Bytes, Rate};
use anabranch_wire::{DatapathKind, FindLabels, WireParameters};
use std::{
    ffi::OsString,
    net::IpAddr,
    path::{Path, PathBuf},
};

#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub name: &'static str,
    /// Meaning of the variable, for users.
    pub meaning: &'static str,
    pub expected: &'static str,
    /// Value that applies where the variable is not set.
    pub default: &'static str,
}

/// Every variable that the plugin reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "ANABRANCH_SCHEME",
        meaning: "The scheme that chooses paths: a host scheme, or an alias whose hosts choose them",
        expected: "a name of `anabranch list schemes`",
        default: "reps",
    },
    Variable {
        name: "ANABRANCH_PATHS",
        meaning: "Paths of a connection: as many UDP ports in a row at each end, or queue pairs (wire.labels)",
        expected: "a whole number from 1 to 256",
        default: "8",
    },
    Variable {
        name: "ANABRANCH_DATAPATH",
        meaning: "What carries packets: UDP sockets, unreliable (UC) or reliable (RC) queue pairs of the interfaces' RDMA devices, or auto: UC where a device is and libibverbs opens it, UDP elsewhere; the same at both ends of a connection",
        expected: "udp, uc, rc or auto",
        default: "udp",
    },
    Variable {
        name: "ANABRANCH_IFNAME",
        meaning: "Network interfaces, each of which is a device, read as NCCL_SOCKET_IFNAME is (which holds where this is not set)",
        expected: "beginnings of names with commas; `=eth0` is the whole name, `^docker,lo` all others",
        default: "all but lo, docker and virbr; lo where there is no other",
    },
    Variable {
        name: "ANABRANCH_PLANES",
        meaning: "Planes, networks of their own: as many interfaces in a row, in the kernel's order, are one device; the same in all ranks. Only with udp",
        expected: "a whole number from 1 to 8, over IPv6 to 3",
        default: "1",
    },
    Variable {
        name: "ANABRANCH_ADDRESS",
        meaning: "Addresses by which others reach the interfaces; of one with several of them the first in the kernel's order. NCCL_SOCKET_FAMILY (AF_INET or AF_INET6) holds too",
        expected: "addresses and networks with commas, for example 10.1.0.0/16,2001:db8::/32",
        default: "any: IPv4 before IPv6, and no temporary, deprecated or unassigned one where there is another",
    },
    Variable {
        name: "ANABRANCH_MTU",
        meaning: "Payload of a full packet, the same in all ranks (wire.payload)",
        expected: "bytes from 64B to 8888B, without headers: 92 B less than the network carries, over IPv6 112 B; with uc 64 B less than the path MTU; 32 B less again with authentication",
        default: "what the interface or its RDMA device carries, at most 8888B; 32 B less with authentication",
    },
    Variable {
        name: "ANABRANCH_RATE",
        meaning: "Rate at which packets leave a device (wire.rate)",
        expected: "a rate, for example 25Gbps",
        default: "the interface's, 10Gbps where it does not say, 100Gbps over lo",
    },
    Variable {
        name: "ANABRANCH_CONGESTION_CONTROL",
        meaning: "Congestion control (transport.congestion_control)",
        expected: "a name of `anabranch list transports`",
        default: "dctcp",
    },
    Variable {
        name: "ANABRANCH_GIVE_UP",
        meaning: "Timeout of a rank that owes acknowledgements and sends none (wire.give_up)",
        expected: "a time above zero, for example 10s",
        default: "10s",
    },
    Variable {
        name: "ANABRANCH_AUTHENTICATE",
        meaning: "What ranks authenticate, each by a secret of its own that NCCL's bootstrap carries to the others, or by the key of wire.key: nothing, headers and control packets, or payloads as well (wire.authenticate); the same in all ranks",
        expected: "off, control or all",
        default: "off, with wire.key control",
    },
    Variable {
        name: "ANABRANCH_CONFIG",
        meaning: "A file with [load_balancer], [transport] and [wire] of a scenario; other sections are not read",
        expected: "a path",
        default: "none",
    },
    Variable {
        name: "ANABRANCH_SET",
        meaning: "Keys of those sections, which win over the file; the other variables win over them",
        expected: "key=value with semicolons, for example transport.ack_every=4;wire.rtt_floor=50us",
        default: "none",
    },
    Variable {
        name: "ANABRANCH_STATS",
        meaning: "Folder of the statistics page that `anabranch stats` reads",
        expected: "a folder of shared memory, or off",
        default: "/dev/shm",
    },
    Variable {
        name: "ANABRANCH_DEBUG",
        meaning: "Detail of messages in NCCL's log, which NCCL_DEBUG filters",
        expected: "WARN, INFO or TRACE",
        default: "INFO",
    },
];

/// Prefixes of variables that other parts of the project read.
const OTHERS: &[&str] = &[
    "ANABRANCH_SOAK_",
    "ANABRANCH_RECORD",
    "ANABRANCH_COMMIT",
    "ANABRANCH_PROGRAMS",
    "ANABRANCH_TEST_",
    "ANABRANCH_TESTBED_",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interfaces {
    /// The variable that has named them.
    pub(crate) by: &'static str,
    pub(crate) is_default: bool,
    pub(crate) except: bool,
    whole: bool,
    names: Vec<String>,
}

impl Default for Interfaces {
    fn default() -> Self {
        let names = ["lo", "docker", "virbr"].map(String::from).to_vec();
        Interfaces { by: "ANABRANCH_IFNAME", is_default: true, except: true, whole: false, names }
    }
}

impl Interfaces {
    /// Reads NCCL's syntax: `^` excludes the names, `=` means whole names; otherwise names are prefixes.
    pub(crate) fn read(by: &'static str, text: &str) -> Result<Self, String> {
        let (except, rest) = text.strip_prefix('^').map_or((false, text), |rest| (true, rest));
        let (whole, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let names: Vec<String> =
            rest.split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Err(format!("{by}: found `{text}`, expected names of interfaces"));
        }
        Ok(Interfaces { by, is_default: false, except, whole, names })
    }

    fn fits(&self, of: &str, name: &str) -> bool {
        if self.whole { name == of } else { name.starts_with(of) }
    }

    pub(crate) fn selects(&self, name: &str, is_loopback: bool) -> bool {
        self.names.iter().any(|of| self.fits(of, name)) != self.except && !(self.is_default && is_loopback)
    }

    /// Returns the selected names that fit none of these.
    pub(crate) fn missing<'a>(&'a self, names: &[String]) -> Vec<&'a str> {
        let is_missing = |of: &&String| !self.except && !names.iter().any(|name| self.fits(of, name));
        self.names.iter().filter(is_missing).map(String::as_str).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// Networks and the number of their leading bits; empty: all.
    networks: Vec<(IpAddr, u32)>,
    /// `Some(true)`: IPv6 alone.
    ipv6: Option<bool>,
    by: Vec<&'static str>,
}

impl Addresses {
    /// Reads the values of `ANABRANCH_ADDRESS` and `NCCL_SOCKET_FAMILY`.
    pub(crate) fn read(networks: Option<&str>, family: Option<&str>) -> Result<Self, String> {
        let mut addresses = Addresses::default();
        for text in networks.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
            let (ip, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
            let network = ip.parse::<IpAddr>().ok().and_then(|ip| {
                let most = if ip.is_ipv4() { 32 } else { 128 };
                let bits = bits.map_or(Ok(most), str::parse::<u32>).ok()?;
                (bits <= most).then_some((ip, bits))
            });
            addresses.networks.push(network.ok_or_else(|| {
                format!("ANABRANCH_ADDRESS: found `{text}`, expected an address or a network, for example 10.1.0.0/16")
            })?);
        }
        if !addresses.networks.is_empty() {
            addresses.by.push("ANABRANCH_ADDRESS");
        }
        addresses.ipv6 = match family {
            Some("AF_INET") => Some(false),
            Some("AF_INET6") => Some(true),
            // As NCCL reads it: others do not count.
            _ => None,
        };
        addresses.by.extend(addresses.ipv6.map(|_| NCCL_FAMILY));
        Ok(addresses)
    }

    pub(crate) fn selects(&self, ip: IpAddr) -> bool {
        let inside = |(of, bits): &(IpAddr, u32)| match (*of, ip) {
            (IpAddr::V4(of), IpAddr::V4(ip)) => (of.to_bits() ^ ip.to_bits()).leading_zeros() >= *bits,
            (IpAddr::V6(of), IpAddr::V6(ip)) => (of.to_bits() ^ ip.to_bits()).leading_zeros() >= *bits,
            _ => false,
        };
        self.ipv6.is_none_or(|ipv6| ipv6 == ip.is_ipv6())
            && (self.networks.is_empty() || self.networks.iter().any(inside))
    }

    /// Returns the variables that restrict them, as words; `None`: all may be used.
    pub(crate) fn by(&self) -> Option<String> {
        (!self.by.is_empty()).then(|| self.by.join(" and "))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carriers {
    Udp,
    Uc,
    Rc,
    /// UC queue pairs where available, UDP elsewhere.
    Auto,
}

impl Carriers {
    fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "udp" => Carriers::Udp,
            "uc" => Carriers::Uc,
            "rc" => Carriers::Rc,
            "auto" => Carriers::Auto,
            other => {
                let near = hint(nearest(other, ["udp", "uc", "rc", "auto"]));
                return Err(format!("ANABRANCH_DATAPATH: found `{other}`, expected udp, uc, rc or auto{near}"));
            }
        })
    }
}

/// Names a known word that is near, for the end of a message.
pub(crate) fn hint(near: Option<String>) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}

#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) carriers: Carriers,
    pub(crate) interfaces: Interfaces,
    pub(crate) addresses: Addresses,
    /// Interfaces of a device.
    pub(crate) planes: usize,
    pub(crate) scheme: HostParameters,
    pub(crate) transport: TransportParameters,
    pub(crate) wire: WireParameters,
    /// Folder of the statistics page; `None`: there is no page.
    pub(crate) stats: Option<PathBuf>,
    pub(crate) hardware: Hardware,
    pub(crate) level: Level,
}

struct Entry {
    by: String,
    path: Vec<String>,
    value: Raw,
}

const NCCL_INTERFACES: &str = "NCCL_SOCKET_IFNAME";
const NCCL_FAMILY: &str = "NCCL_SOCKET_FAMILY";

impl Entry {
    fn wrong(&self, error: impl std::fmt::Display) -> String {
        format!("{}: {}: {error}", self.by, self.path.join("."))
    }
}

impl Configuration {
    /// Reads the configuration from variables; fails with one line: name of the variable, value and allowed values.
    pub(crate) fn read(all: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, String> {
        let all = texts(all)?;
        let names = || VARIABLES.iter().map(|variable| variable.name);
        for (name, _) in all.iter().filter(|(name, _)| name.starts_with("ANABRANCH_")) {
            if names().all(|known| known != name) && !OTHERS.iter().any(|other| name.starts_with(other)) {
                let allowed: Vec<&str> = names().collect();
                return Err(match nearest(name, names()) {
                    Some(near) => format!("there is no variable {name} (did you mean {near}?)"),
                    None => format!("there is no variable {name}; allowed are {}", allowed.join(", ")),
                });
            }
        }
        let get = |name: &str| all.iter().find(|(of, _)| of == name).map(|(_, text)| text.trim());
        let given = |name: &str| get(name).filter(|text| !text.is_empty());
        let mut entries = Vec::new();
        if let Some(path) = given("ANABRANCH_CONFIG") {
            read_file(path, &mut entries)?;
        }
        for entry in given("ANABRANCH_SET").unwrap_or_default().split(';').filter(|entry| !entry.trim().is_empty()) {
            entries.push(read_entry("ANABRANCH_SET", entry)?);
        }
        let keys = [
            ("ANABRANCH_SCHEME", "load_balancer.scheme"),
            ("ANABRANCH_PATHS", "wire.labels"),
            ("ANABRANCH_MTU", "wire.payload"),
            ("ANABRANCH_RATE", "wire.rate"),
            ("ANABRANCH_CONGESTION_CONTROL", "transport.congestion_control"),
            ("ANABRANCH_GIVE_UP", "wire.give_up"),
            ("ANABRANCH_AUTHENTICATE", "wire.authenticate"),
        ];
        for (name, key) in keys {
            if let Some(text) = given(name) {
                let value = text.parse().map_or_else(|_| Raw::Text(text.into()), Raw::Int);
                entries.push(Entry { by: name.into(), path: key.split('.').map(String::from).collect(), value });
            }
        }
        let (scheme, transport, wire) = settle(&entries)?;
        let named = ["ANABRANCH_IFNAME", NCCL_INTERFACES].into_iter().find_map(|by| Some((by, given(by)?)));
        let interfaces = named.map_or(Ok(Interfaces::default()), |(by, text)| Interfaces::read(by, text))?;
        let addresses = Addresses::read(given("ANABRANCH_ADDRESS"), given(NCCL_FAMILY))?;
        let carriers = match (given("ANABRANCH_DATAPATH"), wire.datapath) {
            (Some(text), _) => Carriers::read(text)?,
            (None, DatapathKind::Udp) => Carriers::Udp,
            (None, DatapathKind::Uc) => Carriers::Uc,
            (None, DatapathKind::Rc) => Carriers::Rc,
        };
        if carriers == Carriers::Rc && wire.is_authenticated() && wire.protection() == Protection::All {
            let expected = "`control`, or ANABRANCH_DATAPATH=udp: hardware writes chunks, and checks no MAC";
            return Err(format!("ANABRANCH_AUTHENTICATE: found `all` with ANABRANCH_DATAPATH=rc, expected {expected}"));
        }
        let planes = given("ANABRANCH_PLANES").unwrap_or("1");
        let wrong = |expected: &str| Err(format!("ANABRANCH_PLANES: found `{planes}`, expected {expected}"));
        let planes = match planes.parse::<usize>() {
            Ok(1) => 1,
            Ok(2..=MAX_PLANES) if carriers != Carriers::Udp => return wrong("1, or ANABRANCH_DATAPATH=udp"),
            Ok(2..=MAX_PLANES) if wire.find_labels != FindLabels::All => {
                return wrong("1, or wire.find_labels=all: paths of one plane alone are traced");
            }
            Ok(planes @ 2..=MAX_PLANES) if !wire.labels.is_multiple_of(planes as u32) => {
                return wrong(&format!("a divisor of ANABRANCH_PATHS, {}", wire.labels));
            }
            Ok(planes @ 2..=MAX_PLANES) => planes,
            _ => return wrong("a whole number from 1 to 8"),
        };
        let level = match given("ANABRANCH_DEBUG").map(str::to_uppercase).as_deref() {
            None | Some("INFO") => Level::Info,
            Some("WARN") => Level::Warn,
            Some("TRACE") => Level::Trace,
            Some(other) => return Err(format!("ANABRANCH_DEBUG: found `{other}`, expected WARN, INFO or TRACE")),
        };
        let stats = match given("ANABRANCH_STATS") {
            Some("off") => None,
            folder => Some(PathBuf::from(folder.unwrap_or(crate::page::FOLDER))),
        };
        let hardware = match carriers {
            Carriers::Udp => Hardware::default(),
            _ => Hardware::read(given)?,
        };
        Ok(Configuration { carriers, interfaces, addresses, planes, scheme, transport, wire, stats, hardware, level })
    }

    /// Returns the payload bytes of a full packet where a packet has `capacity` bytes for header and payload.
    pub(crate) fn payload(&self, capacity: u64) -> u64 {
        match self.wire.payload {
            Auto::Value(payload) => payload.0,
            Auto::Auto => capacity.saturating_sub(self.wire.max_header()).clamp(64, self.wire.max_payload()),
        }
    }

    /// Returns the configured rate of a device in Mbit/s, where it is set.
    pub(crate) fn speed(&self) -> Option<u32> {
        match self.wire.rate {
            Auto::Value(Rate(rate)) => Some(u32::try_from(rate / 1_000_000).unwrap_or(i32::MAX as u32).max(1)),
            Auto::Auto => None,
        }
    }

    /// Returns the key of a file or a random secret, and its representation in handles.
    pub(crate) fn make_key(&self) -> Result<(Option<Key>, Authentication), String> {
        if !self.wire.is_authenticated() {
            return Ok((None, Authentication::Off));
        }
        if self.wire.key.is_some() {
            let key = self.wire.read_key().map_err(|error| format!("wire.{error}"))?;
            return Ok((key, Authentication::File));
        }
        let Secret(secret) = anabranch_wire::secret();
        Ok((Some(Key::of(&secret)), Authentication::Job(secret)))
    }

    /// Returns the settings of an endpoint for an interface; fails if packets would be too large.
    pub(crate) fn settings(
        &self,
        speed: u32,
        capacity: u64,
        carrier: Carrier,
        scheme: &HostParameters,
        seed: u64,
        key: Option<Key>,
    ) -> Result<anabranch_endpoint::Settings, SetError> {
        let mut wire = self.wire.clone();
        wire.payload = Auto::Value(Bytes(self.payload(capacity)));
        wire.datapath = match carrier {
            Carrier::Udp => DatapathKind::Udp,
            Carrier::Uc => DatapathKind::Uc,
            Carrier::Rc => DatapathKind::Rc,
        };
        wire.chunks_under_way = Auto::Value(wire.chunks_under_way.value().unwrap_or(CHUNKS));
        let rate = Rate(u64::from(speed) * 1_000_000);
        let settings = wire.settings_with_key(&self.transport, scheme.clone(), rate, seed, key)?;
        let max_message = if carrier == Carrier::Rc { settings.mtu().max(PIECE_BYTES) } else { PIECE_BYTES };
        let scheme = if carrier == Carrier::Rc { settings.scheme } else { scheme.clone() };
        Ok(anabranch_endpoint::Settings {
            scheme,
            max_message,
            max_streams: MAX_STREAMS,
            max_peers: MAX_PEERS as usize,
            ..settings
        })
    }
}

/// Chunks of a connection in flight over reliable queue pairs.
const CHUNKS: u32 = 4;
/// Bytes of the largest piece with its header.
const PIECE_BYTES: u64 = (crate::message::PIECE + crate::message::PIECE_HEADER) as u64;
/// Maximum number of streams from one peer: one per open connection; later connections reuse them.
const MAX_STREAMS: usize = 4096;
/// Maximum number of peers of a device.
pub(crate) const MAX_PEERS: u32 = 16_384;
/// Maximum number of peers with verbs. Each needs memory and queue pairs of its own, twice where both peers connect.
pub(crate) const MAX_VERBS_PEERS: u32 = 1024;

fn raw(value: &toml::Value) -> Option<Raw> {
    Some(match value {
        toml::Value::Boolean(value) => Raw::Bool(*value),
        toml::Value::Integer(value) => Raw::Int(*value),
        toml::Value::Float(value) => Raw::Float(*value),
        toml::Value::String(value) => Raw::Text(value.clone()),
        toml::Value::Array(values) => Raw::List(values.iter().map(raw).collect::<Option<_>>()?),
        toml::Value::Datetime(_) | toml::Value::Table(_) => return None,
    })
}

/// Reads the sections of a file that apply to a real network.
fn read_file(path: &str, entries: &mut Vec<Entry>) -> Result<(), String> {
    let by = format!("ANABRANCH_CONFIG={path}");
    let text = anabranch_input::read_text(Path::new(path), anabranch_input::MAX_TEXT)
        .map_err(|error| format!("{by}: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        format!("{by}, line {line}: {}", error.message())
    })?;
    for section in ["load_balancer", "transport", "wire"] {
        match table.get(section) {
            None => {}
            Some(toml::Value::Table(table)) => flatten(&by, &[section], table, entries)?,
            Some(_) => return Err(format!("{by}: [{section}] is a section")),
        }
    }
    Ok(())
}

fn flatten(by: &str, path: &[&str], table: &toml::Table, entries: &mut Vec<Entry>) -> Result<(), String> {
    for (key, value) in table {
        let path = [path, &[key.as_str()]].concat();
        match (value, raw(value)) {
            (toml::Value::Table(table), _) => flatten(by, &path, table, entries)?,
            (_, Some(value)) => {
                let path = path.into_iter().map(String::from).collect();
                entries.push(Entry { by: by.into(), path, value });
            }
            (_, None) => return Err(format!("{by}: {}: found {value}, expected a value", path.join("."))),
        }
    }
    Ok(())
}

/// Returns a scheme with changed parameters, or another scheme, from keys of `[load_balancer]` with semicolons.
pub(crate) fn changed(scheme: &HostParameters, settings: &str) -> Result<HostParameters, String> {
    let mut scheme = scheme.clone();
    for entry in settings.split(';').filter(|entry| !entry.trim().is_empty()) {
        let entry = read_entry("to be set", entry)?;
        let path: Vec<&str> = entry.path.iter().map(String::as_str).collect();
        let set = match path[..] {
            ["load_balancer", "scheme" | "host"] => {
                let Raw::Text(name) = &entry.value else { return Err(entry.wrong("expected the name of a scheme")) };
                scheme = named_scheme(&entry, name)?;
                Ok(())
            }
            ["load_balancer", name, key] => set_scheme(&mut scheme, name, key, &entry)?,
            _ => return Err(entry.wrong("only keys of load_balancer can be changed while traffic runs")),
        };
        set.map_err(|error| entry.wrong(error))?;
    }
    scheme.check().map_err(|error| format!("[load_balancer]: {error}"))?;
    Ok(scheme)
}

fn named_scheme(of: &Entry, name: &str) -> Result<HostParameters, String> {
    let own = HostParameters::named(name);
    match registry::resolve(name) {
        // `rr` is a host scheme, and a load balancer of switches.
        Ok((host, _)) if own.as_ref().is_ok_and(|own| own.name() != host.name()) => {}
        Ok((host, switch)) => {
            registry::check_host_side(&host, &switch).map_err(|error| of.wrong(format!("found `{name}`: {error}")))?;
            return Ok(host);
        }
        Err(error) if own.is_err() => return Err(of.wrong(error)),
        Err(_) => {}
    }
    own.map_err(|error| of.wrong(error))
}

fn read_entry(by: &str, entry: &str) -> Result<Entry, String> {
    let expected = "expected key=value, for example transport.ack_every=4";
    let (key, text) = entry.split_once('=').ok_or_else(|| format!("{by}: found `{}`, {expected}", entry.trim()))?;
    let text = text.trim();
    let value = format!("value = {text}").parse::<toml::Table>().ok().and_then(|table| raw(table.get("value")?));
    let path = key.trim().split('.').map(|part| part.trim().to_string()).collect();
    Ok(Entry { by: by.into(), path, value: value.unwrap_or_else(|| Raw::Text(text.into())) })
}

/// Returns the variables as text. One of this plugin that is none is an error: without it, a job would run without
/// authentication, for example.
fn texts(all: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Vec<(String, String)>, String> {
    let mut texts = Vec::new();
    for (name, value) in all {
        let shown = name.to_string_lossy().into_owned();
        let is_other = OTHERS.iter().any(|other| shown.starts_with(other));
        let is_read = shown.starts_with("ANABRANCH_") && !is_other
            || [NCCL_INTERFACES, NCCL_FAMILY]
                .iter()
                .chain(hardware::NAMES.iter().map(|(name, _)| name))
                .any(|name| *name == shown);
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => texts.push((name, value)),
            (Ok(name), Err(value)) if is_read => {
                return Err(format!("{name}: found {value:?}, expected text in UTF-8"));
            }
            (Err(name), _) if is_read => return Err(format!("there is no variable {name:?}, whose name is not UTF-8")),
            _ => {}
        }
    }
    Ok(texts)
}

/// Applies the settings to the defaults; a later setting overrides an earlier one.
fn settle(entries: &[Entry]) -> Result<(HostParameters, TransportParameters, WireParameters), String> {
    let last = |section: &str, keys: &[&str]| {
        let is_it = |of: &&Entry| of.path.len() == 2 && of.path[0] == section && keys.contains(&of.path[1].as_str());
        entries.iter().rev().find(is_it)
    };
    let text = |of: &Entry| match &of.value {
        Raw::Text(text) => Ok(text.clone()),
        other => Err(of.wrong(format!("found {other}, expected a name"))),
    };
    let mut transport = TransportParameters::named("uet").map_err(|error| error.to_string())?;
    if let Some(of) = last("transport", &["kind"]) {
        let kind = text(of)?;
        transport = TransportParameters::named(&kind).map_err(|unknown| of.wrong(unknown))?;
    } else {
        let control = Raw::Text("dctcp".into());
        transport.parameters_mut().set("congestion_control", &control).map_err(|error| error.to_string())?;
    }
    let mut scheme = HostParameters::named("reps").map_err(|error| error.to_string())?;
    if let Some(of) = last("load_balancer", &["scheme", "host"]) {
        scheme = named_scheme(of, &text(of)?)?;
    }
    let mut wire = WireParameters::default();
    for of in entries {
        let path: Vec<&str> = of.path.iter().map(String::as_str).collect();
        let set = match path[..] {
            ["wire", key] => wire.set(key, &of.value),
            ["transport", "kind"] | ["load_balancer", "scheme" | "host" | "switch"] => Ok(()),
            ["transport", key] => transport.parameters_mut().set(key, &of.value),
            ["transport", name, key] => match transport.control_parameters_mut(name) {
                Some(parameters) => parameters.set(key, &of.value),
                None => return Err(of.wrong(format!("there is no [transport.{name}]"))),
            },
            ["load_balancer", name, key] => set_scheme(&mut scheme, name, key, of)?,
            _ => return Err(of.wrong("there is no such key; sections are load_balancer, transport and wire")),
        };
        set.map_err(|error| of.wrong(error))?;
    }
    scheme.check().map_err(|error| format!("[load_balancer]: {error}"))?;
    transport.check().map_err(|error| format!("[transport]: {error}"))?;
    wire.check().map_err(|error| format!("[wire]: {error}"))?;
    Ok((scheme, transport, wire))
}

/// Sets a parameter of a scheme, which need not be the one in use: a file may have tables for several.
fn set_scheme(scheme: &mut HostParameters, name: &str, key: &str, of: &Entry) -> Result<Result<(), SetError>, String> {
    let (other, switch) = (HostParameters::named(name), SwitchParameters::named(name));
    if other.is_err() && switch.is_err() {
        return Err(of.wrong(format!("there is no scheme `{name}`")));
    }
    // Parameters of switches are accepted and ignored: the switches of a real network are not configured here.
    if switch.is_ok_and(|mut switch| switch.parameters_mut().set(key, &of.value).is_ok()) && scheme.name() != name {
        return Ok(Ok(()));
    }
    Ok(match other {
        _ if scheme.name() == name => scheme.parameters_mut().set(key, &of.value),
        Ok(mut other) => other.parameters_mut().set(key, &of.value),
        Err(_) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Setting;
    use anabranch_units::Time;
    use std::fs;

    fn read(all: &[(&str, &str)]) -> Result<Configuration, String> {
        Configuration::read(all.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn variables_of_other_parts_are_accepted() {
        for name in ["ANABRANCH_PROGRAMS", "ANABRANCH_TEST_SKIPPED", "ANABRANCH_TESTBED_INSIDE"] {
            assert!(read(&[(name, "x")]).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_variable_is_ignored_for_its_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let other = |name: &str| OsString::from_vec([name.as_bytes(), b"\xff"].concat());
        for variable in VARIABLES.iter().map(|variable| variable.name).chain(["NCCL_SOCKET_IFNAME"]) {
            let error = Configuration::read([(variable.into(), other("wire.key=/key"))]).map(drop).unwrap_err();
            assert!(error.contains(variable) && error.contains("UTF-8"), "{error}");
        }
        let error = Configuration::read([(other("ANABRANCH_SET"), "x".into())]).map(drop).unwrap_err();
        assert!(error.contains("ANABRANCH_SET"), "{error}");
        // Those of others may have any bytes.
        for name in ["HOME", "NCCL_DEBUG_FILE", "ANABRANCH_PROGRAMS"] {
            assert!(Configuration::read([(name.into(), other("/x")), (other("Y"), "x".into())]).is_ok(), "{name}");
        }
    }

    #[test]
    fn settings_of_all_sources_are_merged() {
        let usual = read(&[("PATH", "/bin"), ("ANABRANCH_SCHEME", "")]).unwrap();
        assert_eq!((usual.scheme.name(), usual.wire.labels, usual.level), ("reps", 8, Level::Info));
        let set = read(&[
            ("ANABRANCH_SCHEME", "hopper"),
            ("ANABRANCH_PATHS", "16"),
            ("ANABRANCH_MTU", "1400B"),
            ("ANABRANCH_RATE", "25Gbps"),
            ("ANABRANCH_GIVE_UP", "3s"),
            ("ANABRANCH_SET", "transport.ack_every=4; wire.labels=2;transport.congestion_control=smartt"),
            ("ANABRANCH_DEBUG", "trace"),
            ("ANABRANCH_IFNAME", "^lo"),
        ])
        .unwrap();
        assert_eq!((set.scheme.name(), set.wire.labels, set.level), ("hopper", 16, Level::Trace));
        assert_eq!((set.wire.rate, set.wire.give_up), (Auto::Value(Rate::gbps(25)), Time::from_us(3_000_000)));
        let TransportParameters::Uet(uet) = &set.transport else { panic!("uet") };
        assert_eq!((uet.uet.ack_every, uet.uet.congestion_control.write()), (4, Raw::Text("smartt".into())));
        let settings = set.settings(40_000, 8972, Carrier::Udp, &set.scheme, 1, None).unwrap();
        assert_eq!((settings.mtu(), settings.rate, settings.labels), (1400, Rate::gbps(25), 16));
    }

    #[test]
    fn packets_fit_the_interface() {
        let usual = read(&[]).unwrap();
        // 64 B of the plugin's header, 8 B UDP, 20 B IPv4 or 40 B IPv6.
        assert_eq!([usual.payload(1472), usual.payload(1452)], [1408, 1388]);
        assert_eq!([usual.payload(65_508), usual.payload(8972)], [8888, 8888]);
        // An RDMA device's path MTU with Ethernet's 1500 B, which excludes Ethernet, IPv4, UDP, transport header and CRC.
        let settings = usual.settings(40_000, 1024, Carrier::Uc, &usual.scheme, 1, None).unwrap();
        assert_eq!((settings.mtu(), settings.overhead, settings.ecn), (960, 58, false));
        let settings = usual.settings(40_000, 1472, Carrier::Udp, &usual.scheme, 1, None).unwrap();
        assert_eq!((settings.mtu(), settings.rate), (1408, Rate::gbps(40)), "40,000 Mbit/s");
    }

    #[test]
    fn speed_is_the_rate_that_is_set() {
        let speed = |all: &[(&str, &str)]| read(all).unwrap().speed();
        assert_eq!((speed(&[]), speed(&[("ANABRANCH_RATE", "2.5Gbps")])), (None, Some(2500)));
        assert_eq!(speed(&[("ANABRANCH_SET", "wire.rate=100Mbps")]), Some(100));
        assert_eq!(speed(&[("ANABRANCH_RATE", "300Kbps")]), Some(1), "NCCL takes 0 for none");
    }

    #[test]
    fn mistakes_are_one_line_that_helps() {
        let refused = |all: &[(&str, &str)], words: &[&str]| {
            let error = read(all).unwrap_err();
            assert!(!error.contains('\n') && words.iter().all(|word| error.contains(word)), "{error}");
        };
        refused(&[("ANABRANCH_SHEME", "reps")], &["ANABRANCH_SHEME", "did you mean ANABRANCH_SCHEME?"]);
        refused(&[("ANABRANCH_SCHEME", "hoper")], &["ANABRANCH_SCHEME", "hoper", "hopper"]);
        refused(&[("ANABRANCH_SCHEME", "hf2t")], &["ANABRANCH_SCHEME", "`hf2t`", "switches", "`flowlet`"]);
        assert_eq!(read(&[("ANABRANCH_SCHEME", "rr")]).unwrap().scheme.name(), "rr");
        refused(&[("ANABRANCH_PATHS", "300")], &["labels", "300", "256"]);
        refused(&[("ANABRANCH_PATHS", "many")], &["ANABRANCH_PATHS", "many", "a whole number"]);
        refused(&[("ANABRANCH_MTU", "9000B")], &["payload", "8888B"]);
        refused(&[("ANABRANCH_RATE", "25")], &["ANABRANCH_RATE", "25", "Gbps"]);
        refused(&[("ANABRANCH_DATAPATH", "us")], &["ANABRANCH_DATAPATH", "udp, uc, rc or auto", "did you mean `uc`?"]);
        refused(&[("ANABRANCH_DATAPATH", "rdma")], &["ANABRANCH_DATAPATH", "`rdma`", "udp, uc, rc or auto"]);
        let rc = [("ANABRANCH_DATAPATH", "rc"), ("ANABRANCH_AUTHENTICATE", "all")];
        refused(&rc, &["ANABRANCH_AUTHENTICATE", "`all`", "`control`"]);
        refused(&[("ANABRANCH_DEBUG", "loud")], &["ANABRANCH_DEBUG", "LOUD", "WARN, INFO or TRACE"]);
        refused(&[("ANABRANCH_SET", "wire.lables=3")], &["ANABRANCH_SET", "did you mean `labels`?"]);
        refused(&[("ANABRANCH_SET", "topology.hosts=3")], &["ANABRANCH_SET", "topology.hosts", "wire"]);
        refused(&[("ANABRANCH_SET", "labels")], &["ANABRANCH_SET", "key=value"]);
        refused(&[("ANABRANCH_CONFIG", "/no/such/file")], &["ANABRANCH_CONFIG=/no/such/file"]);
        refused(&[("ANABRANCH_CONGESTION_CONTROL", "cubic")], &["ANABRANCH_CONGESTION_CONTROL", "cubic", "dctcp"]);
        refused(&[("ANABRANCH_IFNAME", "^")], &["ANABRANCH_IFNAME"]);
    }

    #[test]
    fn datapaths_are_those_of_the_variable_or_of_the_scenario() {
        let carriers = |all: &[(&str, &str)]| read(all).unwrap().carriers;
        assert_eq!((carriers(&[]), carriers(&[("ANABRANCH_DATAPATH", "auto")])), (Carriers::Udp, Carriers::Auto));
        let scenario = ("ANABRANCH_SET", "wire.datapath=uc");
        assert_eq!(carriers(&[scenario]), Carriers::Uc);
        assert_eq!(carriers(&[scenario, ("ANABRANCH_DATAPATH", "udp")]), Carriers::Udp, "variables win");
        assert_eq!(carriers(&[("ANABRANCH_DATAPATH", "uc")]), Carriers::Uc);
        assert_eq!(carriers(&[("ANABRANCH_SET", "wire.datapath=rc")]), Carriers::Rc);
    }

    #[test]
    fn schemes_are_changed_by_keys() {
        let hopper = HostParameters::named("hopper").unwrap();
        let mut other = changed(&hopper, "load_balancer.hopper.alpha=0.25").unwrap();
        assert!(other.parameters_mut().entries().contains(&("alpha", Raw::Float(0.25))));
        assert_eq!(changed(&hopper, "load_balancer.scheme=reps;").unwrap().name(), "reps");
        for (set, word) in [
            ("load_balancer.hopper.alfa=1", "alpha"),
            ("wire.labels=4", "load_balancer"),
            ("load_balancer.hopper.alpha", "key=value"),
            ("load_balancer.scheme=hoper", "hopper"),
        ] {
            let error = changed(&hopper, set).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_scenario_is_a_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nccl.toml");
        let text = "[topology]\nkind = \"leaf-spine\"\n[load_balancer]\nscheme = \"flowbender\"\n\
            [transport]\nack_every = 2\n[wire]\nlabels = 4\n";
        fs::write(&path, text).unwrap();
        let name = path.to_str().unwrap().to_string();
        let read_it = || read(&[("ANABRANCH_CONFIG", &name), ("ANABRANCH_PATHS", "5")]);
        let configuration = read_it().unwrap();
        assert_eq!((configuration.scheme.name(), configuration.wire.labels), ("flowbender", 5), "variables win");
        fs::write(&path, "[wire]\nlabels = = 4\n").unwrap();
        let error = read_it().unwrap_err();
        assert!(error.contains("line 2"), "{error}");
        fs::write(&path, "[load_balancer.reps]\nbufer = 4\n").unwrap();
        let error = read_it().unwrap_err();
        assert!(error.contains("load_balancer.reps.bufer"), "{error}");
    }
}
