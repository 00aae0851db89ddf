//! `serve` and `send`: transfers between two machines.

use crate::{Failure, Format, INTERRUPTED, complete, count, is_quiet, note, print, print_json, table};
use anabranch_endpoint::{Endpoint, SchemeState, Settings};
use anabranch_lb::StateColumn;
use anabranch_random::Stream;
use anabranch_scenario::{Scenario, library};
use anabranch_units::{Bytes, Time};
#[cfg(target_os = "linux")]
use anabranch_wire::paths;
use anabranch_wire::{
    Datapath, DatapathKind, Driver, FindLabels, WireError, WireParameters, resolve, transfer,
    transfer::{Destination, Received, Sent, TransferError},
    udp::UdpPath,
    verbs::{Dimensions, VerbsPath, VerbsSettings},
};
use serde_json::json;
use std::{
    collections::{BTreeMap, hash_map::RandomState},
    hash::BuildHasher,
    io::{IsTerminal, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::atomic::Ordering,
    time::Duration,
};

/// Options of both `serve` and `send`.
#[derive(Debug, clap::Args)]
pub(crate) struct WireOptions {
    /// Scenario whose [transport], [load_balancer] and [wire] are used: a file or the name of a ready-made one
    /// [default: two machines with eight paths between them]
    #[arg(value_name = "SCENARIO", add = complete::scenarios())]
    pub(crate) scenario: Option<String>,
    /// Set a key of it, for example wire.labels=16 or transport.congestion_control=nscc; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = complete::keys())]
    pub(crate) set: Vec<String>,
    /// Short for --set wire.datapath=NAME: udp, rc or uc
    #[arg(long, value_name = "NAME")]
    pub(crate) datapath: Option<String>,
    /// RDMA device of the datapaths rc and uc [default: the only one]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) wire: WireOptions,
    /// Address and first port to listen on; with commas one in each plane
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7000")]
    pub(crate) at: String,
    /// Exit after the first complete and verified transfer
    #[arg(long)]
    pub(crate) once: bool,
}

fn bytes(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error: anabranch_units::UnitError| error.to_string())?;
    if bytes <= Bytes::LARGEST { Ok(bytes) } else { Err(format!("expected at most {}", Bytes::LARGEST)) }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) wire: WireOptions,
    /// Address and first port of `serve`; with commas one in each plane
    #[arg(long, value_name = "ADDR")]
    pub(crate) to: String,
    /// Local address, and with it the interface, to send from; with commas one in each plane [default: by the routing table]
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = anabranch_wire::resolve_local)]
    pub(crate) from: Vec<SocketAddr>,
    /// Bytes to send, at most 1024TiB
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = bytes)]
    pub(crate) bytes: Bytes,
    /// Load balancer: a host scheme or an alias of `anabranch list schemes` [default: the scenario's]
    #[arg(long, value_name = "NAME", add = complete::schemes())]
    pub(crate) scheme: Option<String>,
    /// Random seed of the scheme and of the bytes [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Maximum number of concurrent peers of `serve`.
const MAX_PEERS: u32 = 1024;

/// The same over queue pairs, where each peer has its own memory.
const MAX_VERBS_PEERS: u32 = 16;

fn scenario(options: &WireOptions, seed: Option<u64>) -> Result<Scenario, Failure> {
    let mut set = options.set.clone();
    set.extend(options.datapath.as_ref().map(|name| format!("wire.datapath={name}")));
    let scenario = library::load_for_wire(options.scenario.as_deref(), &set, seed)?;
    match &options.device {
        Some(_) if scenario.wire.datapath == DatapathKind::Udp => {
            Err(Failure::input("--device is for the datapaths rc and uc: add --datapath rc"))
        }
        _ => Ok(scenario),
    }
}

fn address(text: &str, flag: &str) -> Result<SocketAddr, Failure> {
    addresses(text, flag).map(|all| all[0])
}

/// Returns at least one.
fn addresses(text: &str, flag: &str) -> Result<Vec<SocketAddr>, Failure> {
    resolve(text).map_err(|wrong| Failure::input(format!("{flag}: {wrong}")))
}

/// Returns an address in each plane.
fn planes(text: &str, flag: &str, datapath: DatapathKind) -> Result<Vec<SocketAddr>, Failure> {
    let all: Vec<SocketAddr> = text.split(',').map(|one| address(one, flag)).collect::<Result<_, _>>()?;
    match &all[..] {
        [_, _, ..] if datapath != DatapathKind::Udp => Err(Failure::input(format!(
            "{flag}: found {} addresses; planes are for --datapath udp, expected one",
            all.len()
        ))),
        [first, others @ ..] if others.iter().any(|at| at.is_ipv4() != first.is_ipv4()) => {
            Err(Failure::input(format!("{flag}: found {text}, expected addresses of one family")))
        }
        _ => Ok(all),
    }
}

fn opened(path: Result<UdpPath, WireError>) -> Result<UdpPath, Failure> {
    let path = path.map_err(|error| Failure::input(error.to_string()))?;
    path.warning().into_iter().for_each(|warning| note(&format!("warning: {warning}")));
    Ok(path)
}

fn open_pairs(
    at: Option<SocketAddr>,
    options: &WireOptions,
    scenario: &Scenario,
    endpoint: &Endpoint,
    labels: u32,
) -> Result<VerbsPath, Failure> {
    let settings = VerbsSettings {
        device: options.device.clone(),
        is_reliable: scenario.wire.datapath == DatapathKind::Rc,
        queue_pairs: scenario.wire.queue_pairs,
        peer_timeout: Duration::from_nanos(scenario.wire.give_up.ps() / 1000),
        ..VerbsSettings::default()
    };
    let longest = endpoint.longest_datagram();
    let dimensions = Dimensions { labels, peers: MAX_VERBS_PEERS, datagram: longest, probe: longest };
    VerbsPath::open(at, settings, dimensions, scenario.seed).map_err(|error| Failure::input(error.to_string()))
}

fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Minimum bytes for a rate: the receiver's time starts at the first datagram, whose own bytes must not matter.
const MIN_RATED_BYTES: u64 = 64 << 10;

/// Returns the rate in bits per second, and as text; `None` for too few bytes. `took` is the time that both endpoints print.
fn goodput(bytes: u64, took: Time) -> (Option<f64>, String) {
    if bytes < MIN_RATED_BYTES {
        return (None, "- (less than 64 KiB)".into());
    }
    let rate = bytes as f64 * 8.0 / took.as_seconds().max(1e-9);
    (Some(rate), rate_text(rate))
}

/// Three digits, as [`Time::rounded`].
fn rate_text(rate: f64) -> String {
    let units = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)];
    let (name, scale) = units.into_iter().find(|(_, scale)| rate >= scale * 0.9995).unwrap_or(("bit/s", 1.0));
    let decimals = match rate / scale {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{:.decimals$} {name}", rate / scale)
}

pub(crate) fn serve(arguments: &Serve) -> Result<(), Failure> {
    let options = &arguments.wire;
    let scenario = scenario(options, None)?;
    // Connection identifiers must differ between starts.
    let seed = RandomState::new().hash_one(&arguments.at);
    let (mut settings, _) = scenario.wire_settings(None, seed)?;
    let (labels, is_keyed) = (settings.labels, settings.key.is_some());
    let planes = planes(&arguments.at, "--at", scenario.wire.datapath)?;
    let at = planes[0];
    settings.planes = planes.len() as u32;
    let endpoint = Endpoint::new(settings);
    if scenario.wire.datapath != DatapathKind::Udp {
        let mut path = open_pairs(Some(at), options, &scenario, &endpoint, labels)?;
        path.on_error(note);
        let at = path.at().unwrap_or(at);
        note(&format!("listening at {at} with {}", path.device()));
        warn_unauthenticated(at, is_keyed);
        return serve_over(Driver::new(endpoint, path), at, arguments);
    }
    let path = opened(UdpPath::open_planes(&planes, labels, MAX_PEERS))?;
    let at = path.at();
    let all: Vec<String> = path.planes().iter().map(ToString::to_string).collect();
    let after = labels / all.len() as u32 - 1;
    note(&format!(
        "listening at {} and the {after} ports after {}",
        all.join(", "),
        if all.len() > 1 { "each" } else { "it" }
    ));
    warn_unauthenticated(at, is_keyed);
    serve_over(Driver::new(endpoint, path), at, arguments)
}

/// Returns `true` in a network namespace other than init's, such as a testbed's, which other machines usually do not reach.
fn is_in_namespace() -> bool {
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
    of("self").ok().zip(of("1").ok()).is_some_and(|(own, first)| own != first)
}

fn warn_unauthenticated(at: SocketAddr, is_keyed: bool) {
    if !is_keyed && !at.ip().is_loopback() && !is_in_namespace() {
        note(&format!(
            "warning: peers are not authenticated: any host that reaches {at} may send to it; set wire.key on both machines to refuse others (docs/reference/wire.md)"
        ));
    }
}

fn serve_over(mut driver: Driver<impl Datapath>, at: SocketAddr, arguments: &Serve) -> Result<(), Failure> {
    let mut on_poll = |received: Option<&Received>| {
        if let Some(received) = received {
            let from = received.from.unwrap_or(at);
            let summary = received.summary;
            let equal = summary == received.sent;
            print_received(from, (summary.bytes, summary.checksum), equal, received.took, arguments.wire.format);
            // The sender must receive the result before this process exits.
            return true;
        }
        !interrupted()
    };
    let served = transfer::serve(&mut driver, arguments.once, &mut on_poll, &mut print_notice);
    served.map_err(|error| Failure::Broken(error.to_string()))?;
    if interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn print_notice(what: &str, at: Option<SocketAddr>, reason: &str) {
    let at = at.map_or_else(|| "unknown address".into(), |at| at.to_string());
    note(&format!("{what}: {at} {reason}"));
}

fn print_received(from: SocketAddr, (bytes, checksum): (u64, u32), equal: bool, took: Time, format: Format) {
    let (rate, text) = goodput(bytes, took);
    match format {
        Format::Json => print_json(&json!({
            "from": from.to_string(),
            "bytes": bytes,
            "took_ps": took.ps(),
            "goodput_bps": rate,
            "crc32": checksum,
            "checksums_equal": equal,
        })),
        Format::Table => {
            let verdict = if equal { "checksums equal" } else { "CHECKSUMS DIFFER" };
            print(&format!(
                "{} B from {from} in {}, {text}, CRC-32 {checksum:08x}, {verdict}\n",
                count(bytes),
                took.rounded()
            ));
        }
    }
}

pub(crate) fn send(arguments: &Send) -> Result<(), Failure> {
    let options = &arguments.wire;
    let is_multi_plane = arguments.to.contains(',');
    let scenario = scenario(options, arguments.seed)?;
    let (mut settings, values) = scenario.wire_settings(arguments.scheme.as_deref(), scenario.seed)?;
    let mut all = match is_multi_plane {
        true => planes(&arguments.to, "--to", scenario.wire.datapath)?,
        false => addresses(&arguments.to, "--to")?,
    };
    if let ([ip], false) = (&arguments.from[..], is_multi_plane) {
        let (fitting, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|at| at.is_ipv4() == ip.is_ipv4());
        all = if fitting.is_empty() { others } else { fitting };
    }
    let to = all[0];
    settings.planes = if is_multi_plane { all.len() as u32 } else { 1 };
    if scenario.wire.datapath == DatapathKind::Udp {
        all.iter().try_for_each(|at| check_ports(*at, settings.labels / settings.planes))?;
    } else {
        from(arguments, &[to], scenario.wire.datapath)?;
    }
    let (name, labels, planes) = (settings.scheme.name(), settings.labels, settings.planes);
    let mut tried: Vec<String> = Vec::new();
    let mut pairs = (0, None);
    let (sent, to, paths) = if scenario.wire.datapath != DatapathKind::Udp {
        let endpoint = Endpoint::new(settings);
        let mut path = open_pairs(None, options, &scenario, &endpoint, labels)?;
        path.reach(to).map_err(|error| match error {
            WireError::NoReply { .. } => {
                let name = if scenario.wire.datapath == DatapathKind::Rc { "rc" } else { "uc" };
                Failure::input(format!("{error}; does `anabranch serve --datapath {name}` run there?"))
            }
            other => Failure::input(other.to_string()),
        })?;
        // Label `i` is the queue pair with flow label `i + 1`.
        let mut paths = find_pairs(to, &(1..=labels).collect::<Vec<_>>(), &scenario.wire)?;
        if scenario.wire.datapath == DatapathKind::Rc {
            // A path has a queue pair of its own.
            paths.iter_mut().for_each(|path| path.truncate(1));
        }
        let destination = Destination { paths: paths.clone(), ..to.into() };
        let mut driver = Driver::new(endpoint, path);
        let sent = send_over(&mut driver, destination, scenario.seed, arguments.bytes.0)?;
        pairs = driver.datapath().relabelled();
        (sent, to, paths)
    } else {
        let (mut driver, to) = match is_multi_plane {
            true => make(arguments, &all, &scenario, (&settings, &values))?,
            false => reach(arguments, &all, &scenario, (&settings, &values), &mut tried)?,
        };
        let paths = to.paths.clone();
        let at = to.at;
        let sent = send_over(&mut driver, to, scenario.seed, arguments.bytes.0).map_err(|failure| match failure {
            Failure::Input(error) if !tried.is_empty() => {
                let (name, others) = (&arguments.to, tried.join(", "));
                Failure::input(format!("{error}; the other addresses of {name} were tried before: {others}"))
            }
            other => other,
        });
        (sent?, at, paths)
    };
    if !sent.silent.is_empty() {
        let ports = (scenario.wire.datapath == DatapathKind::Udp && planes == 1).then_some(to);
        note(&format!("warning: {}", transfer::silent_text(&sent.silent, ports)));
    }
    print_sent(&sent, to, name, (labels, planes, &paths), pairs, options.format);
    Ok(())
}

/// Checks that `labels` ports from that of an address on may be those of a peer.
fn check_ports(at: SocketAddr, labels: u32) -> Result<(), Failure> {
    let wrong = |what: String| Err(Failure::input(format!("--to: found {at}: {what}")));
    match at.port() {
        _ if at.ip().is_multicast() => wrong("a multicast address, expected that of a host".into()),
        0 => wrong("port 0, expected the first port of `serve`".into()),
        port if u32::from(port) + labels > 1 << 16 => {
            let last = (1 << 16) - labels;
            wrong(format!("{labels} labels take as many ports, and ports end at 65535; expected a port up to {last}"))
        }
        _ => Ok(()),
    }
}

/// Time for which an address is tried before the next one of its name.
const TRY: Time = Time::from_us(2_000_000);

/// Opens a datapath to the first address with a reply; to the last one without a try.
fn reach(
    arguments: &Send,
    all: &[SocketAddr],
    scenario: &Scenario,
    of: (&Settings, &[Value]),
    tried: &mut Vec<String>,
) -> Result<(Driver<UdpPath>, Destination), Failure> {
    let (last, others) = all.split_last().expect("an address");
    for at in others {
        let made = make(arguments, &[*at], scenario, of).and_then(|(mut driver, to)| {
            let connected = transfer::connect(&mut driver, &to, TRY.min(of.0.peer_timeout));
            connected.map(|()| (driver, to)).map_err(|error| Failure::input(error.to_string()))
        });
        match made {
            Ok(made) => return Ok(made),
            Err(Failure::Input(error)) => {
                tried.push(at.to_string());
                note(&format!("{error}; trying the next address of {}", arguments.to));
            }
            Err(other) => return Err(other),
        }
        if interrupted() {
            return Err(Failure::Interrupted);
        }
    }
    make(arguments, &[*last], scenario, of)
}

/// Structured entropy value, with its port.
type Value = (u32, Option<u32>);

/// `to` is an address in each plane.
fn make(
    arguments: &Send,
    to: &[SocketAddr],
    scenario: &Scenario,
    (settings, values): (&Settings, &[Value]),
) -> Result<(Driver<UdpPath>, Destination), Failure> {
    let mut from = from(arguments, to, DatapathKind::Udp)?;
    let (planes, mut paths) = (to.len() as u32, Vec::new());
    for (plane, (from, to)) in (0..).zip(from.iter_mut().zip(to)) {
        let (at, found) = find_paths(*from, *to, settings.labels / planes, &scenario.wire)?;
        *from = at;
        let numbered = |path: Vec<u32>| path.into_iter().map(|label| label * planes + plane).collect();
        paths.extend(found.into_iter().map(numbered));
    }
    let path = if values.is_empty() {
        opened(UdpPath::calling(&from, settings.labels, MAX_PEERS))?
    } else {
        carrying(&from, to, scenario, (settings, values))?
    };
    let to = Destination { at: to[0], others: to[1..].to_vec(), paths };
    Ok((Driver::new(Endpoint::new(settings.clone()), path), to))
}

/// Opens a datapath whose labels carry values.
#[cfg(target_os = "linux")]
fn carrying(
    from: &[SocketAddr],
    to: &[SocketAddr],
    scenario: &Scenario,
    (settings, values): (&Settings, &[Value]),
) -> Result<UdpPath, Failure> {
    let wire = &scenario.wire;
    if wire.find_labels == FindLabels::Paths {
        return Err(Failure::input(
            "[wire]: stev: labels that carry values cannot be traced; expected find_labels = \"all\"",
        ));
    }
    let carried = wire.stev.carried(values, settings.labels, to, scenario.seed);
    let carried = carried.map_err(|error| Failure::input(format!("[wire]: {error}")))?;
    opened(UdpPath::calling_with(from, &carried, MAX_PEERS))
}

#[cfg(not(target_os = "linux"))]
fn carrying(_: &[SocketAddr], _: &[SocketAddr], _: &Scenario, _: (&Settings, &[Value])) -> Result<UdpPath, Failure> {
    Err(Failure::input("[wire]: stev: structured values need Linux; expected \"off\""))
}

/// Returns the local address in each plane.
fn from(arguments: &Send, to: &[SocketAddr], datapath: DatapathKind) -> Result<Vec<SocketAddr>, Failure> {
    let any: SocketAddr =
        if to[0].is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    match &arguments.from[..] {
        [] => Ok(vec![any; to.len()]),
        _ if datapath != DatapathKind::Udp => {
            Err(Failure::input("--from is for the datapath udp; rc and uc take --device"))
        }
        all if all.len() != to.len() => {
            let (found, planes) = (all.len(), to.len());
            Err(Failure::input(format!("--from: found {found} addresses, expected {planes}, one for each of --to")))
        }
        all => match all.iter().find(|at| at.is_ipv4() != to[0].is_ipv4()) {
            Some(at) => {
                let (ip, to) = (at.ip(), to[0].ip());
                Err(Failure::input(format!("--from: found {ip}, expected an address of the same family as {to}")))
            }
            None => Ok(all.to_vec()),
        },
    }
}

/// Returns the paths of `labels` labels to `to` as groups of them, and the local address for them; no groups: every label
/// is a path.
#[cfg(target_os = "linux")]
fn find_paths(
    from: SocketAddr,
    to: SocketAddr,
    labels: u32,
    wire: &WireParameters,
) -> Result<(SocketAddr, Vec<Vec<u32>>), Failure> {
    if wire.find_labels == FindLabels::All {
        return Ok((from, Vec::new()));
    }
    if !from.ip().is_unspecified() {
        return Err(wrong_key("paths are traced from the address of the route to the peer, which --from may change"));
    }
    let to = check_peer(to)?;
    let (hops, timeout) = (paths::MAX_SWITCHES, paths::SWITCH_TIMEOUT);
    let request = paths::PathRequest { to, port: 0, labels: labels as u16, hops, timeout };
    let found = paths::discover(&request).map_err(wrong_key)?;
    let port = found.first().map_or(0, |path| path.source);
    let groups = paths::groups(&found);
    note(&paths::describe(&groups, labels as usize, &to.to_string()));
    Ok((SocketAddr::new(from.ip(), port), groups.paths))
}

#[cfg(target_os = "linux")]
fn wrong_key(error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("[wire]: {}", FindLabels::refusal(error)))
}

/// Returns the address of a peer if a network with switches, which state the paths, may be in between.
#[cfg(target_os = "linux")]
fn check_peer(to: SocketAddr) -> Result<std::net::SocketAddrV4, Failure> {
    paths::check_network(to.ip()).and_then(|()| paths::address(to)).map_err(wrong_key)
}

/// Returns the paths of queue pairs with these flow labels as groups of their indices; no groups: every label is a path.
#[cfg(target_os = "linux")]
fn find_pairs(to: SocketAddr, flow_labels: &[u32], wire: &WireParameters) -> Result<Vec<Vec<u32>>, Failure> {
    use anabranch_wire::verbs::port_pairs;
    if wire.find_labels == FindLabels::All {
        return Ok(Vec::new());
    }
    let ip = *check_peer(to)?.ip();
    let pairs = port_pairs(flow_labels.iter().copied());
    let found = paths::discover_pairs(ip, &pairs, paths::MAX_SWITCHES, paths::SWITCH_TIMEOUT).map_err(wrong_key)?;
    let groups = paths::groups(&found);
    note(&paths::describe(&groups, flow_labels.len(), &ip.to_string()));
    Ok(groups.paths)
}

#[cfg(not(target_os = "linux"))]
fn find_pairs(_: SocketAddr, _: &[u32], wire: &WireParameters) -> Result<Vec<Vec<u32>>, Failure> {
    if wire.find_labels == FindLabels::All {
        return Ok(Vec::new());
    }
    Err(Failure::input(format!("[wire]: {}", FindLabels::UNSUPPORTED)))
}

#[cfg(not(target_os = "linux"))]
fn find_paths(
    from: SocketAddr,
    _to: SocketAddr,
    _labels: u32,
    wire: &WireParameters,
) -> Result<(SocketAddr, Vec<Vec<u32>>), Failure> {
    if wire.find_labels == FindLabels::All {
        return Ok((from, Vec::new()));
    }
    Err(Failure::input(format!("[wire]: {}", FindLabels::UNSUPPORTED)))
}

fn send_over(driver: &mut Driver<impl Datapath>, to: Destination, seed: u64, total: u64) -> Result<Sent, Failure> {
    let live = std::io::stderr().is_terminal() && !is_quiet();
    let mut before = (Time::ZERO, 0);
    let mut on_poll = |now: Time, acknowledged: u64| {
        if live {
            let seconds = now.saturating_sub(before.0).as_seconds().max(1e-9);
            let rate = rate_text((acknowledged - before.1) as f64 * 8.0 / seconds);
            eprint!("\r{} of {} B, {rate}      ", count(acknowledged), count(total));
            let _ = std::io::stderr().flush();
            before = (now, acknowledged);
        }
        !interrupted()
    };
    let sent = transfer::send(driver, &to, total, &mut content(seed), &mut on_poll);
    if live {
        eprint!("\r{:60}\r", "");
    }
    sent.map_err(transfer_failure)
}

/// Returns what fills buffers with the bytes of a transfer.
fn content(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut draws = Stream::keyed(seed, 0, "transfer");
    move |bytes| {
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&draws.bits().to_le_bytes()[..word.len()]);
        }
    }
}

fn transfer_failure(error: TransferError) -> Failure {
    match error {
        TransferError::Interrupted => Failure::Interrupted,
        TransferError::Differs { .. } => Failure::Broken(error.to_string()),
        _ => Failure::input(error.to_string()),
    }
}

/// Packets of a transfer from which on their system calls matter.
const FEW_PACKETS: u64 = 100;

/// Formats the columns that have values, times in microseconds.
fn state_text(state: &SchemeState) -> String {
    let one = |(column, value): &(&StateColumn, Option<f64>)| {
        let text = match column.name.strip_suffix("_ps") {
            Some(name) => format!("{name} {:.1} us", (*value)? / 1e6),
            None => format!("{} {}", column.name, (*value)?),
        };
        Some(text.replace('_', " "))
    };
    let all: Vec<String> = state.iter().filter_map(one).collect();
    if all.is_empty() { "it keeps none".into() } else { all.join(", ") }
}

fn print_sent(
    sent: &Sent,
    to: SocketAddr,
    scheme: &str,
    (labels, planes, paths): (u32, u32, &[Vec<u32>]),
    (relabelled, last_error): (u64, Option<String>),
    format: Format,
) {
    // Without groups every label counts as a path.
    let paths = Some(paths).filter(|paths| !paths.is_empty());
    let of_planes = if planes > 1 { format!(" of {planes} planes") } else { String::new() };
    let over = paths.map_or_else(String::new, |paths| format!(", paths found: {}", paths.len()));
    let took = sent.record.confirmed.saturating_sub(sent.record.due);
    let (rate, text) = goodput(sent.record.summary.bytes, sent.record.received_in);
    // Round trips before and after, and the wait for the confirmation, are in `took` alone.
    let over_time = rate.map_or_else(String::new, |_| {
        format!(", over the {} in which the receiver got it", sent.record.received_in.rounded())
    });
    let (c, summary, [datagrams, calls]) = (sent.counters, sent.record.summary, sent.calls);
    let per_call = (calls > 0).then(|| datagrams as f64 / calls as f64);
    if per_call.is_some_and(|per_call| per_call < 2.0) && c.packets >= FEW_PACKETS {
        let over = if to.ip().is_loopback() { ", and over loopback that limits the goodput" } else { "" };
        note(&format!(
            "{} packets left in {} system calls, without segmentation offload (GSO): that takes processor time{over}; wire.run_length=16 sends as many in a row over a label",
            count(datagrams),
            count(calls)
        ));
    }
    // A line of a terminal holds those of the default; `--format json` has all.
    let per_label = match &*sent.record.per_label {
        few if few.len() <= 8 => few.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        many => format!("{} to {}", count(*many.iter().min().unwrap_or(&0)), count(*many.iter().max().unwrap_or(&0))),
    };
    if let Some(sizes) = sent.fragmented {
        note(&format!(
            "packets to {to} were sent in fragments: {}",
            transfer::fragments_text(sizes, transfer::PAYLOAD)
        ));
    }
    if sent.drops_ecn {
        note(&format!("warning: {to} {}", transfer::ECN_TEXT));
    }
    if let Some(error) = &last_error {
        note(&format!(
            "hardware failed to deliver messages to {to}, which were retransmitted; the last error: {error}"
        ));
    }
    let fragmented = sent.fragmented.map(|sizes| json!({ "passes": sizes.passes, "fails": sizes.fails }));
    match format {
        Format::Json => print_json(&json!({
            "to": to.to_string(),
            "scheme": scheme,
            "scheme_state": sent.scheme_state.iter().map(|(column, value)| (column.name, value)).collect::<BTreeMap<_, _>>(),
            "fragmented": fragmented,
            "ecn_dropped": sent.drops_ecn,
            "labels": labels,
            "planes": planes,
            "paths": paths,
            "bytes": summary.bytes,
            "took_ps": took.ps(),
            "received_in_ps": sent.record.received_in.ps(),
            "goodput_bps": rate,
            "crc32": summary.checksum,
            "checksums_equal": true,
            "base_rtt_ps": sent.base_rtt.ps(),
            "noise_ps": sent.noise.ps(),
            "packets": c.packets,
            "retransmitted_packets": c.retransmitted,
            "overtaken_packets": c.overtaken,
            "timeouts": c.timeouts,
            "probes": c.probes,
            "path_switches": c.path_switches,
            "packets_per_label": sent.record.per_label,
            "silent_labels": sent.silent,
            "relabelled": relabelled,
            "last_error": last_error,
            "packets_per_call": per_call,
            "longest_pause_ps": sent.longest_pause.ps(),
        })),
        Format::Table => {
            let row = |what: &str, value: String| vec![what.to_string(), value];
            print(&table(
                &["what", "value"],
                &[
                    row("sent", format!("{} B to {to} in {}", count(summary.bytes), took.rounded())),
                    row("goodput", format!("{text}{over_time}")),
                    row("CRC-32 of both peers", format!("{:08x}", summary.checksum)),
                    row("scheme", format!("{scheme} over {labels} labels{of_planes}{over}")),
                    row("state of the scheme", state_text(&sent.scheme_state)),
                    row(
                        "base round trip",
                        format!("{}, and {} of noise", sent.base_rtt.rounded(), sent.noise.rounded()),
                    ),
                    row(
                        "packets",
                        format!(
                            "{}, {} retransmitted, {} timeouts",
                            count(c.packets),
                            count(c.retransmitted),
                            count(c.timeouts)
                        ),
                    ),
                    row("path changes", count(c.path_switches)),
                    row("packets per label", per_label),
                    row("packets per system call", per_call.map_or_else(|| "-".into(), |n| format!("{n:.1}"))),
                    row("probes", count(c.probes)),
                    row("longest pause of this process", sent.longest_pause.rounded()),
                ],
            ));
        }
    }
}
