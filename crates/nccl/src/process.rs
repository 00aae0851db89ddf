//! What a process has of us: what its variables say, its devices, a node for each that is in use, and the thread that helps
//! out where NCCL has not called for a while.

use crate::{
    abi::Code,
    device::{self, Device},
    helper::Helper,
    host::HostMemory,
    ids::{Id, Slots},
    log::{self, Level},
    node::{Failure, Node},
    variables::{Configuration, MOST_PEERS, seconds},
};
use anabranch_endpoint::Endpoint;
use anabranch_units::Time;
use anabranch_wire::{Datapath, Driver, udp::UdpPath};
use std::{
    collections::hash_map::RandomState,
    ffi::CString,
    hash::BuildHasher,
    net::SocketAddr,
    os::unix::ffi::OsStrExt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError,
        atomic::{AtomicI32, Ordering},
    },
};

/// How long the last communicator that closes waits for its peers to hear of it.
const LINGERS: Time = Time::from_us(100_000);

/// A node over sockets.
pub(crate) type UdpNode = Node<UdpPath, HostMemory>;

/// A device, with its node while it is in use.
#[derive(Debug)]
pub(crate) struct Rail {
    pub(crate) device: Device,
    pub(crate) name: CString,
    pub(crate) pci_path: Option<CString>,
    node: Mutex<Option<UdpNode>>,
}

/// What a process has of us.
#[derive(Debug)]
pub(crate) struct Process {
    configuration: Configuration,
    pub(crate) rails: Vec<Rail>,
    helper: Helper,
    contexts: Mutex<Slots<()>>,
}

static PROCESS: RwLock<Option<Arc<Process>>> = RwLock::new(None);
/// The process that called `init`; 0: none has.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The process' own state.
///
/// # Errors
/// Where nobody has called `init`, or only the parent of this process has.
pub(crate) fn get() -> Result<Arc<Process>, Failure> {
    let owner = OWNER.load(Ordering::Acquire);
    if owner != 0 && owner != own_pid() {
        let message = "this process was forked from one that had loaded the plugin; start it anew";
        return Err(Failure::new(Code::System, message));
    }
    let process = PROCESS.read().unwrap_or_else(PoisonError::into_inner);
    process.clone().ok_or_else(|| Failure::internal("NCCL calls before init"))
}

/// Reads variables and looks for devices, unless that was done already.
///
/// # Errors
/// Where a variable is wrong or there is no device.
pub(crate) fn init() -> Result<Arc<Process>, Failure> {
    let owner = OWNER.load(Ordering::Acquire);
    if owner != 0
        && let Ok(process) = get()
    {
        return Ok(process);
    }
    if owner != 0 && owner != own_pid() {
        return get();
    }
    let usage = |message| Failure::new(Code::Usage, message);
    let all =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let configuration = Configuration::read(all).map_err(usage)?;
    log::at_most(configuration.level);
    let devices = device::find(&configuration.interfaces).map_err(usage)?;
    let process = Arc::new(Process::new(configuration, devices)?);
    *PROCESS.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&process));
    OWNER.store(own_pid(), Ordering::Release);
    log::say(Level::Info, &process.describe());
    Ok(process)
}

/// Forgets everything.
pub(crate) fn end() {
    if let Ok(mut process) = PROCESS.try_write() {
        *process = None;
        OWNER.store(0, Ordering::Release);
    }
}

impl Process {
    fn new(configuration: Configuration, devices: Vec<Device>) -> Result<Self, Failure> {
        let c_string =
            |bytes: &[u8]| CString::new(bytes).map_err(|error| Failure::new(Code::System, error.to_string()));
        let rails = devices
            .into_iter()
            .take(usize::from(u8::MAX))
            .map(|device| {
                let pci_path =
                    device.pci_path.as_ref().map(|path| c_string(path.as_os_str().as_bytes())).transpose()?;
                Ok(Rail { name: c_string(device.name.as_bytes())?, pci_path, device, node: Mutex::new(None) })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Process { configuration, rails, helper: Helper::default(), contexts: Mutex::default() })
    }

    fn describe(&self) -> String {
        let configuration = &self.configuration;
        let devices: Vec<String> = self
            .rails
            .iter()
            .map(|rail| {
                let Device { name, ip, speed, mtu, .. } = &rail.device;
                let payload = configuration.payload(*mtu, ip.is_ipv6());
                format!("{name} ({ip}, {speed} Mbit/s, packets of {payload} B)")
            })
            .collect();
        format!(
            "version {}, scheme {} over {} paths, transport {} with {}, a silent rank is given up after {}, devices {}",
            env!("CARGO_PKG_VERSION"),
            configuration.scheme.name(),
            configuration.wire.labels,
            configuration.transport.about().name,
            configuration.transport.control().name,
            seconds(configuration.wire.give_up),
            devices.join(", ")
        )
    }

    /// A device by its number.
    ///
    /// # Errors
    /// Where there is none.
    pub(crate) fn rail(&self, device: i32) -> Result<&Rail, Failure> {
        let rail = usize::try_from(device).ok().and_then(|device| self.rails.get(device));
        rail.ok_or_else(|| Failure::internal(format!("there is no device {device}, but {}", self.rails.len())))
    }

    /// A node by the number of its device, opened if it is not.
    ///
    /// # Errors
    /// Where sockets cannot be opened.
    pub(crate) fn open(&self, device: i32) -> Result<Opened<'_>, Failure> {
        let rail = self.rail(device)?;
        let mut node = rail.lock()?;
        if node.is_none() {
            *node = Some(self.make_node(&rail.device)?);
        }
        Ok(Opened(node))
    }

    /// The same of a device whose node is in use.
    ///
    /// # Errors
    /// Where it is not.
    pub(crate) fn opened(&self, device: u8) -> Result<Opened<'_>, Failure> {
        let node = self.rail(i32::from(device))?.lock()?;
        if node.is_none() {
            return Err(Failure::internal("NCCL names a communicator that there is not, or no longer"));
        }
        Ok(Opened(node))
    }

    /// The same, unless somebody else is at work there.
    ///
    /// # Errors
    /// Where it is not in use.
    pub(crate) fn try_opened(&self, device: u8) -> Result<Option<Opened<'_>>, Failure> {
        match self.rail(i32::from(device))?.node.try_lock() {
            Ok(node) if node.is_some() => Ok(Some(Opened(node))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Ok(_) | Err(TryLockError::Poisoned(_)) => self.opened(device).map(Some),
        }
    }

    fn make_node(&self, device: &Device) -> Result<UdpNode, Failure> {
        // What connections are called must differ from one start to the next.
        let seed = RandomState::new().hash_one(&device.name);
        let settings = self
            .configuration
            .settings(device.speed, device.mtu, device.ip.is_ipv6(), seed)
            .map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
        let path = UdpPath::open(SocketAddr::new(device.ip, 0), settings.labels, MOST_PEERS)
            .map_err(|error| Failure::new(Code::System, format!("{}: {error}", device.name)))?;
        Ok(Node::new(Driver::new(Endpoint::new(settings), path)))
    }

    /// One communicator more, for which a thread helps out.
    ///
    /// # Errors
    /// Where there can be no thread.
    pub(crate) fn begins(self: &Arc<Self>) -> Result<(), Failure> {
        self.helper.begin(self).map_err(|error| Failure::new(Code::System, format!("no thread: {error}")))
    }

    /// One communicator less; with the last one the thread is gone.
    pub(crate) fn ends(&self) {
        self.helper.end();
    }

    /// A further communicator of NCCL's, since version 11.
    ///
    /// # Errors
    /// Where there are too many.
    pub(crate) fn add_context(&self) -> Result<Id, Failure> {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.insert(()).ok_or_else(|| Failure::internal("too many contexts"))
    }

    /// Whether there is such a one.
    pub(crate) fn has_context(&self, id: Id) -> bool {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some()
    }

    /// It ends; with the last one everything does.
    pub(crate) fn remove_context(&self, id: Id) {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.remove(id);
        if !contexts.is_empty() {
            return;
        }
        for rail in &self.rails {
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

    /// Does what nobody has done for `since`; whether anything is under way, and whether NCCL calls by itself.
    pub(crate) fn help(&self, since: Time) -> (bool, bool) {
        let (mut under_way, mut called) = (false, false);
        for rail in &self.rails {
            let Ok(mut node) = rail.node.try_lock() else {
                called = true;
                continue;
            };
            let Some(node) = node.as_mut() else { continue };
            if node.idle_for() < since {
                called = true;
            } else {
                // NCCL hears of it when it asks.
                let _ = node.work();
            }
            under_way |= !node.is_quiet() || node.requests() > 0;
        }
        (under_way, called)
    }
}

impl Rail {
    fn lock(&self) -> Result<MutexGuard<'_, Option<UdpNode>>, Failure> {
        // Whoever panicked in there has left it in no state to go on with.
        self.node.lock().map_err(|_| Failure::internal(""))
    }
}

/// A node in use.
pub(crate) struct Opened<'a>(MutexGuard<'a, Option<UdpNode>>);

impl Opened<'_> {
    /// The node.
    ///
    /// # Errors
    /// None, once it is opened.
    pub(crate) fn node(&mut self) -> Result<&mut UdpNode, Failure> {
        self.0.as_mut().ok_or_else(|| Failure::internal("a node that is not open"))
    }

    /// A communicator has closed: the last one waits until its peers have heard of it.
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

/// Waits until everything that was said has been heard, but not for long.
fn linger(node: &mut UdpNode) {
    let until = node.driver().datapath().now() + LINGERS;
    while !node.is_quiet() && node.driver().datapath().now() < until {
        let Ok(next) = node.work() else { return };
        if node.is_quiet() || node.driver().wait(next.unwrap_or(until).min(until)).is_err() {
            return;
        }
    }
}
