//! State of the plugin in a process: configuration, devices, and a node for each device in use.

use crate::{
    abi::Code,
    device::{self, Device},
    fork::{self, Owner},
    fused,
    handle::Authentication,
    helper::Helper,
    host::HostMemory,
    ids::{Id, Slots},
    log::{self, Level},
    node::{Failure, MAX_CONTROL, Node, Watched},
    page::{Page, Slot, State},
    path::{By, Path},
    schemes,
    variables::{self, Configuration, MAX_PEERS, MAX_VERBS_PEERS},
};
use anabranch_endpoint::{Endpoint, Key};
use anabranch_lb::{StateColumn, registry::HostParameters};
use anabranch_units::Time;
use anabranch_wire::{
    Datapath, Driver, FindLabels,
    udp::UdpPath,
    verbs::{Dimensions, VerbsPath, VerbsSettings},
};
use std::{
    collections::hash_map::RandomState,
    ffi::CString,
    fs,
    hash::BuildHasher,
    net::SocketAddr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Maximum time that the close of the last communicator waits for ACKs of its peers.
const MAX_DRAIN: Time = Time::from_us(100_000);
/// Maximum time that a closed RDMA device has to send what was posted.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Interval of writes of the statistics page, with activity and without.
const WRITES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(100)];
/// Beginning of a request to spread the chunks of connections.
const STEER: &str = "steer=";
/// Identifiers have a byte for the device.
const MAX_DEVICES: usize = 255;
/// At most this fraction of the time, as its reciprocal, is spent on writes.
const WRITES_SHARE: u32 = 50;

pub(crate) type DeviceNode = Node<Path, HostMemory>;

#[derive(Debug)]
pub(crate) struct Rail {
    pub(crate) device: Device,
    /// Devices of which NCCL made it; none: it is an interface.
    pub(crate) members: Vec<i32>,
    pub(crate) name: CString,
    pub(crate) pci_path: Option<CString>,
    node: Mutex<Option<DeviceNode>>,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) configuration: Configuration,
    key: Option<Key>,
    /// Authentication that the handles of this process require.
    pub(crate) authentication: Authentication,
    pub(crate) rails: Vec<Rail>,
    /// Devices that NCCL has made of these, in the order of their numbers; then empty slots.
    pub(crate) fused: Vec<OnceLock<Box<Rail>>>,
    pub(crate) helper: Helper,
    /// NCCL's communicators since version 11, with the traffic class of each.
    contexts: Mutex<Slots<u8>>,
    /// Scheme that chooses paths; it may change while traffic runs.
    scheme: Mutex<HostParameters>,
    page: Mutex<Option<Written>>,
    page_at: Option<PathBuf>,
}

#[derive(Debug)]
struct Written {
    page: Page,
    next: Instant,
}

static PROCESS: RwLock<Option<Arc<Process>>> = RwLock::new(None);

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn forked() -> Failure {
    Failure::new(Code::System, "this process was forked from one that had loaded the plugin; start it anew")
}

/// Returns the state of this process; fails if `init` was not called, or only by the parent of this process.
pub(crate) fn get() -> Result<Arc<Process>, Failure> {
    with(|process| Ok(Arc::clone(process)))
}

/// Calls `body` with the state of this process, which cannot end meanwhile.
#[inline]
pub(crate) fn with<T>(body: impl FnOnce(&Arc<Process>) -> Result<T, Failure>) -> Result<T, Failure> {
    // In a forked child, locks may be held by threads that do not exist there.
    if fork::owner() == Owner::Parent {
        return Err(forked());
    }
    let process = PROCESS.read().unwrap_or_else(PoisonError::into_inner);
    body(process.as_ref().ok_or_else(|| Failure::internal("NCCL calls before init"))?)
}

/// Reads the variables and finds the devices, unless that was done already.
pub(crate) fn init() -> Result<Arc<Process>, Failure> {
    match fork::owner() {
        Owner::Parent => return Err(forked()),
        Owner::Us => {
            if let Ok(process) = get() {
                return Ok(process);
            }
        }
        Owner::None => {}
    }
    let usage = |message| Failure::new(Code::Usage, message);
    schemes::check().map_err(usage)?;
    let configuration = Configuration::read(std::env::vars_os()).map_err(usage)?;
    log::at_most(configuration.level);
    let (mut devices, remarks) = device::find(&configuration).map_err(usage)?;
    // An interface without a speed, of a virtual machine for example, gets the configured rate.
    devices.iter_mut().for_each(|device| device.speed = device.speed.or(configuration.speed()));
    remarks.iter().for_each(|remark| log::say(Level::Info, remark));
    let process = Arc::new(Process::new(configuration, devices)?);
    fused::repeat(&process)?;
    *PROCESS.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&process));
    fork::own();
    log::say(Level::Info, &process.describe());
    Ok(process)
}

pub(crate) fn end() {
    // A forked child leaves the state to its parent.
    if fork::owner() == Owner::Parent {
        return;
    }
    if let Ok(mut process) = PROCESS.try_write() {
        // The helper thread may hold a reference for a while, so the file is removed here.
        if let Some(path) = process.as_ref().and_then(|process| process.page_at.as_ref()) {
            let _ = fs::remove_file(path);
        }
        *process = None;
        fork::disown();
    }
}

impl Process {
    /// File of the statistics page; `None`: there is none.
    pub(crate) fn page_at(&self) -> Option<&std::path::Path> {
        self.page_at.as_deref()
    }

    pub(crate) fn new(configuration: Configuration, devices: Vec<Device>) -> Result<Self, Failure> {
        let devices = devices.into_iter().take(MAX_DEVICES);
        let rails = devices.map(|device| Rail::new(device, Vec::new())).collect::<Result<Vec<_>, Failure>>()?;
        let fused = (rails.len()..MAX_DEVICES).map(|_| OnceLock::new()).collect();
        let (page, page_at) = make_page(&configuration).unzip();
        let page = Mutex::new(page.map(|page| Written { page, next: Instant::now() }));
        let (helper, contexts) = (Helper::default(), Mutex::default());
        let scheme = Mutex::new(configuration.scheme.clone());
        let (key, authentication) = configuration.make_key().map_err(|message| Failure::new(Code::Usage, message))?;
        Ok(Process { configuration, key, authentication, rails, fused, helper, contexts, scheme, page, page_at })
    }

    fn describe(&self) -> String {
        let configuration = &self.configuration;
        let devices: Vec<String> = self.all_rails().map(|rail| self.describe_device(&rail.device)).collect();
        let page = self.page_at.as_ref().map_or_else(|| "nowhere".into(), |path| path.display().to_string());
        format!(
            "version {}, scheme {} over {} paths, transport {} with {}, a silent rank is given up after {} s, devices {}, statistics in {page}",
            env!("CARGO_PKG_VERSION"),
            configuration.scheme.name(),
            configuration.wire.labels,
            configuration.transport.about().name,
            configuration.transport.control().name,
            configuration.wire.give_up.as_seconds(),
            devices.join(", ")
        )
    }

    pub(crate) fn describe_device(&self, device: &Device) -> String {
        let ip = device.planes().map(|ip| ip.to_string()).collect::<Vec<_>>().join("+");
        let (speed, payload) = (device.speed(), self.configuration.payload(device.max_packet()));
        let by = device.rdma.as_ref().map_or_else(String::new, |rdma| format!(", queue pairs of {}", rdma.name));
        let what = if device.is_reliable { "chunks".into() } else { format!("packets of {payload} B") };
        format!("{} ({ip}, {speed} Mbit/s, {what}{by})", device.name)
    }

    /// Returns what ranks that exchange addresses elsewhere than in NCCL must have in common.
    pub(crate) fn common(&self) -> String {
        let (scheme, paths) = (self.scheme().name(), self.configuration.wire.labels);
        let carrier = self.rails.first().map_or_else(String::new, |rail| rail.device.carrier().to_string());
        format!("version {}, scheme {scheme}, {paths} paths, datapath {carrier}", env!("CARGO_PKG_VERSION"))
    }

    /// Returns `true` if the labels that share a path are to be traced.
    pub(crate) fn finds_paths(&self) -> bool {
        self.configuration.wire.find_labels == FindLabels::Paths
    }

    pub(crate) fn rail(&self, device: i32) -> Result<&Rail, Failure> {
        let rail = usize::try_from(device).ok().and_then(|device| match self.rails.get(device) {
            None => self.fused.get(device - self.rails.len())?.get().map(|rail| &**rail),
            found => found,
        });
        rail.ok_or_else(|| Failure::internal(format!("there is no device {device}, but {}", self.all_rails().count())))
    }

    /// Returns the interfaces, then the devices that were made of them.
    pub(crate) fn all_rails(&self) -> impl Iterator<Item = &Rail> {
        self.rails.iter().chain(self.fused.iter().map_while(|rail| rail.get().map(|rail| &**rail)))
    }

    /// Returns the traffic class of a connection for which NCCL names this one: as in NCCL, its variable wins.
    pub(crate) fn class(&self, named: u8) -> u8 {
        self.configuration.hardware.class.unwrap_or(named)
    }

    /// Returns the node of a device, and opens it if necessary, for a connection of this traffic class.
    pub(crate) fn open(&self, device: i32, class: u8) -> Result<Opened<'_>, Failure> {
        let rail = self.rail(device)?;
        let mut node = rail.lock()?;
        if node.is_none() {
            *node = Some(self.make_node(&rail.device)?);
        }
        if let Some(node) = node.as_mut() {
            node.driver().datapath().set_traffic_class(class);
        }
        Ok(Opened(node))
    }

    /// Returns the node of a device; fails if it is not open.
    pub(crate) fn opened(&self, device: u8) -> Result<Opened<'_>, Failure> {
        let node = self.rail(i32::from(device))?.lock()?;
        if node.is_none() {
            return Err(Failure::internal("NCCL names a communicator that there is not, or no longer"));
        }
        Ok(Opened(node))
    }

    /// Returns the node of a device; `None`: another thread holds its lock. Fails if the node is not open.
    pub(crate) fn try_opened(&self, device: u8) -> Result<Option<Opened<'_>>, Failure> {
        match self.rail(i32::from(device))?.node.try_lock() {
            Ok(node) if node.is_some() => Ok(Some(Opened(node))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Ok(_) | Err(TryLockError::Poisoned(_)) => self.opened(device).map(Some),
        }
    }

    fn make_node(&self, device: &Device) -> Result<DeviceNode, Failure> {
        // Names of connections must differ from one start to the next.
        let seed = RandomState::new().hash_one(&device.name);
        let mut settings = self
            .configuration
            .settings(
                device.speed(),
                device.max_packet(),
                device.carrier(),
                &self.scheme().clone(),
                seed,
                self.key.clone(),
            )
            .map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
        let planes: Vec<SocketAddr> = device.planes().map(|ip| SocketAddr::new(ip, 0)).collect();
        settings.planes = planes.len() as u32;
        let (at, labels, peer_timeout) = (planes[0], settings.labels, settings.peer_timeout);
        let endpoint = Endpoint::new(settings);
        let path = match &device.rdma {
            None => UdpPath::open_planes(&planes, labels, MAX_PEERS).map(|path| {
                path.warning().into_iter().for_each(|warning| log::say(Level::Warn, warning));
                Path::new(By::Udp(path))
            }),
            Some(rdma) => {
                let verbs = self.configuration.hardware.apply(VerbsSettings {
                    device: Some(rdma.name.clone()),
                    peer_timeout: Duration::from_nanos(peer_timeout.ps() / 1000),
                    parting: CLOSE_TIMEOUT,
                    is_reliable: device.is_reliable,
                    queue_pairs: self.configuration.wire.queue_pairs,
                    ..VerbsSettings::default()
                });
                let longest = endpoint.longest_datagram();
                // Chunks are written to NCCL's memory.
                let control = MAX_CONTROL as usize + endpoint.settings().max_header();
                let datagram = if device.is_reliable { longest.min(control) } else { longest };
                let dimensions = Dimensions { labels, peers: MAX_VERBS_PEERS, datagram, probe: longest };
                VerbsPath::open(Some(at), verbs, dimensions, seed).map(|mut path| {
                    path.on_error(|reason| log::say(Level::Warn, reason));
                    Path::new(By::Verbs(path))
                })
            }
        };
        let path = path.map_err(|error| Failure::new(Code::System, format!("{}: {error}", device.name)))?;
        Ok(Node::new(Driver::new(endpoint, path)))
    }

    /// Counts a communicator, for which the helper thread runs.
    pub(crate) fn begins(self: &Arc<Self>) -> Result<(), Failure> {
        self.helper.begin(self).map_err(|error| Failure::new(Code::System, format!("no thread: {error}")))
    }

    /// Adds a context of NCCL's, since version 11, with its traffic class.
    pub(crate) fn add_context(&self, class: u8) -> Result<Id, Failure> {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.insert(class).ok_or_else(|| Failure::internal("too many contexts"))
    }

    pub(crate) fn context(&self, id: Id) -> Option<u8> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// Removes a context; the last one ends the state of this process.
    pub(crate) fn remove_context(&self, id: Id) {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.remove(id);
        if !contexts.is_empty() {
            return;
        }
        for rail in self.all_rails() {
            if let Ok(mut node) = rail.lock()
                && let Some(mut node) = node.take()
            {
                linger(&mut node);
                node.leave();
            }
        }
        self.helper.stop();
        end();
    }

    fn scheme(&self) -> MutexGuard<'_, HostParameters> {
        self.scheme.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets parameters of the scheme, here and in every device; returns a line that describes them.
    pub(crate) fn set(&self, settings: &str) -> Result<String, String> {
        if let Some(list) = settings.strip_prefix(STEER) {
            return self.steer(list).map(|()| format!("scheme {}", self.scheme().name()));
        }
        let scheme = {
            let mut scheme = self.scheme();
            *scheme = variables::changed(&scheme, settings)?;
            scheme.clone()
        };
        // A thread that opens a device meanwhile has the new scheme, or holds the lock that is awaited here.
        for rail in self.all_rails() {
            if let Ok(mut node) = rail.lock()
                && let Some(node) = node.as_mut()
            {
                let device = &rail.device;
                let (speed, carrier) = (device.speed(), device.carrier());
                let settings =
                    self.configuration.settings(speed, device.max_packet(), carrier, &scheme, 0, self.key.clone());
                node.change_scheme(settings.map_err(|error| error.to_string())?.scheme);
            }
        }
        let text = format!("{settings}: scheme {}", scheme.name());
        log::say(Level::Info, &text);
        Ok(text)
    }

    /// Spreads the chunks of connections: `DEVICE:CONNECTION:WEIGHT,WEIGHT,...` with a weight per label, separated by semicolons.
    fn steer(&self, list: &str) -> Result<(), String> {
        let labels = self.configuration.wire.labels as usize;
        for entry in list.split(';') {
            let wrong = |why: String| format!("{STEER}{entry}: {why}");
            let form = || wrong("expected DEVICE:CONNECTION:WEIGHT,WEIGHT,...".into());
            let mut parts = entry.splitn(3, ':');
            let mut number = || parts.next()?.parse::<u32>().ok();
            let (device, connection) = number().zip(number()).ok_or_else(form)?;
            let weights = parts.next().unwrap_or("").split(',').map(str::parse).collect::<Result<Vec<f32>, _>>();
            let weights = weights.map_err(|_| form())?;
            let sum: f32 = weights.iter().sum();
            if weights.len() != labels || !(0.0..f32::INFINITY).contains(&sum) || weights.iter().any(|w| *w < 0.0) {
                return Err(wrong(format!("expected {labels} weights, one per label, of 0 or more")));
            }
            if sum == 0.0 {
                return Err(wrong("expected a weight above 0".into()));
            }
            let rail = self.rail(device as i32).map_err(|_| wrong(format!("no device {device}")))?;
            let mut node = rail.lock().map_err(|failure| failure.to_string())?;
            match node.as_mut().and_then(|node| node.steer(connection, &weights)) {
                Some(true) => {}
                Some(false) => {
                    let scheme = self.scheme().name();
                    return Err(wrong(format!(
                        "`{scheme}` chooses paths alone; set load_balancer.scheme=\"qp-spray\" first"
                    )));
                }
                None => {
                    return Err(wrong(format!(
                        "device {device} has no connection {connection}, or its peer has sent no reply yet"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Returns the state of the scheme for a connection `DEVICE.NUMBER`: a line `COLUMN VALUE` each, `-` where it has none.
    fn state(&self, connection: &str) -> Result<String, String> {
        let numbers =
            connection.split_once('.').and_then(|(of, number)| Some((of.parse().ok()?, number.parse().ok()?)));
        let (device, number): (i32, u32) = numbers.ok_or(format!("{connection}: not a connection, such as 0.1"))?;
        let node = self.rail(device).ok().and_then(|rail| rail.node.lock().ok());
        let state = node.and_then(|mut node| node.as_mut()?.scheme_state(number));
        let state = state.ok_or(format!("{connection}: no such connection is open and has sent"))?;
        let line = |(column, value): (&StateColumn, Option<f64>)| {
            format!("{} {}", column.name, value.map_or("-".into(), |value| value.to_string()))
        };
        Ok(state.into_iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    pub(crate) fn paths(&self) -> Vec<Slot> {
        self.all_rails().enumerate().flat_map(|(device, rail)| self.paths_of(device, rail)).flatten().collect()
    }

    fn paths_of(&self, device: usize, rail: &Rail) -> Vec<Vec<Slot>> {
        let Ok(mut node) = rail.node.lock() else { return Vec::new() };
        let Some(node) = node.as_mut() else { return Vec::new() };
        let (now, all) = (node.driver().datapath().now(), node.watched());
        let paths = self.configuration.wire.labels as usize;
        all.iter().map(|of| slots(device as u32, of, paths, now)).collect()
    }

    /// Writes the statistics page if it is due, and handles a request of a reader.
    fn write_page(&self, busy: bool) {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Written { page, next }) = page.as_mut() else { return };
        let began = Instant::now();
        if began < *next {
            return;
        }
        if let Some(request) = page.request() {
            let response = match request.text.strip_prefix("state ") {
                Some(connection) => self.state(connection),
                None => self.set(&request.text),
            };
            page.respond(&request, &response);
        }
        for (device, rail) in self.all_rails().enumerate() {
            let slots = self.paths_of(device, rail);
            page.write(wall_ns(), device as u32, self.scheme().name(), &slots);
        }
        let took = began.elapsed();
        *next = began + WRITES[usize::from(!busy)].max(took * WRITES_SHARE);
    }

    /// Works for nodes idle for `since`. Returns two flags: there is activity, and NCCL calls by itself.
    pub(crate) fn help(&self, since: Time) -> (bool, bool) {
        let (mut is_active, mut called) = (false, false);
        for rail in self.all_rails() {
            let Ok(mut node) = rail.node.try_lock() else {
                called = true;
                continue;
            };
            let Some(node) = node.as_mut() else { continue };
            if node.idle_for() < since {
                called = true;
            } else {
                // NCCL receives a failure at its next call.
                let _ = node.work();
            }
            is_active |= !node.is_idle() || node.requests() > 0;
        }
        self.write_page(is_active || called);
        (is_active, called)
    }
}

/// Creates the statistics page, unless it is off; a failure is logged once.
fn make_page(configuration: &Configuration) -> Option<(Page, PathBuf)> {
    let folder = configuration.stats.as_ref()?;
    let paths = configuration.wire.labels as usize;
    match Page::create(folder, own_pid() as u32, paths, configuration.scheme.name()) {
        Ok(made) => Some(made),
        Err(error) => {
            log::say(Level::Warn, &format!("no statistics page in {}: {error}; all else works", folder.display()));
            None
        }
    }
}

fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn slots(device: u32, of: &Watched, paths: usize, now: Time) -> Vec<Slot> {
    let open = if of.is_fragmented { State::Fragmented } else { State::Open };
    let wall = wall_ns();
    let one = |path: usize| {
        let counts = of.paths.get(path).copied().unwrap_or_default();
        let ns = |time: Time| time.ps() / 1000;
        let used_at =
            (counts.used_at > Time::ZERO).then(|| wall.saturating_sub(ns(now.saturating_sub(counts.used_at))));
        let state = match of.is_open {
            true if counts.is_silent => State::Silent,
            true => open,
            false => State::Failed,
        };
        let mut slot = Slot {
            state: state as u32,
            path: path as u32,
            connection: of.connection,
            device,
            bytes: counts.bytes,
            packets: counts.packets,
            retransmitted: counts.retransmitted,
            answers: counts.acks,
            marks: counts.marks,
            losses: counts.losses,
            moves: counts.moves,
            rtt_min: ns(counts.min_rtt),
            rtt_mean: ns(counts.mean_rtt),
            rtt_p99: ns(counts.p99),
            window: of.window.unwrap_or(0),
            used_at: used_at.unwrap_or(0),
            ..Slot::default()
        };
        slot.set_peer(of.at);
        slot
    };
    (0..paths).map(one).collect()
}

impl Rail {
    pub(crate) fn new(device: Device, members: Vec<i32>) -> Result<Self, Failure> {
        let c_string =
            |bytes: &[u8]| CString::new(bytes).map_err(|error| Failure::new(Code::System, error.to_string()));
        let pci_path = device.pci_path.as_ref().map(|path| c_string(path.as_os_str().as_bytes())).transpose()?;
        Ok(Rail { name: c_string(device.title().as_bytes())?, pci_path, device, members, node: Mutex::new(None) })
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<DeviceNode>>, Failure> {
        // A panic under this lock has left the node in an undefined state.
        self.node.lock().map_err(|_| Failure::internal(""))
    }
}

pub(crate) struct Opened<'a>(MutexGuard<'a, Option<DeviceNode>>);

impl Opened<'_> {
    pub(crate) fn node(&mut self) -> Result<&mut DeviceNode, Failure> {
        self.0.as_mut().ok_or_else(|| Failure::internal("a node that is not open"))
    }

    /// Handles a closed communicator: the last one waits for the ACKs of its peers, and an unused node is dropped.
    pub(crate) fn closed(&mut self) {
        let Some(node) = self.0.as_mut() else { return };
        if node.communicators() == 0 {
            linger(node);
        }
        if !node.is_used() {
            node.leave();
            *self.0 = None;
        }
    }
}

/// Waits until all messages are acknowledged, at most for [`MAX_DRAIN`].
fn linger(node: &mut DeviceNode) {
    let until = node.driver().datapath().now() + MAX_DRAIN;
    while !node.is_idle() && node.driver().datapath().now() < until {
        let Ok(next) = node.work() else { return };
        if node.is_idle() || node.driver().wait(next.unwrap_or(until).min(until)).is_err() {
            return;
        }
    }
}
