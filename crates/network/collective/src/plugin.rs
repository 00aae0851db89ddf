//! A network plugin, loaded and called as NCCL does: the newest version first, or the requested one.

#![allow(unsafe_code)]

use libloading::{Library, Symbol};
pub use nccl_net_anabranch::DeliveryCounters;
use nccl_net_anabranch::abi::{
    Code, Config, DeviceLimits, HANDLE_BYTES, Identity, LOG_WARN, NetV8, NetV9, NetV10, NetV11, NetV12,
    OPTIONAL_COMPLETION, PTR_HOST, PropertiesV8, PropertiesV9, PropertiesV11, PropertiesV12, Virtual,
};
use std::{
    cell::RefCell,
    ffi::{CStr, c_char, c_int, c_ulong, c_void},
    path::{Path, PathBuf},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// Supported versions of the interface, newest first.
pub const VERSIONS: &[u32] = &[12, 11, 10, 9, 8];

/// Errors of loading or calling a plugin.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("{path}: {reason}")]
    Load {
        path: PathBuf,
        /// Message of the loader.
        reason: String,
    },
    /// It has no table of the version.
    #[error("{path} has no {symbol}")]
    Version { path: PathBuf, symbol: String },
    #[error("{entry}: {code}")]
    Call {
        entry: &'static str,
        /// Its result code by NCCL's name.
        code: &'static str,
    },
    /// A call failed in a thread that keeps the log ([`keep_log`]).
    #[error("{reason}")]
    Reason {
        /// Lines that the plugin has logged.
        reason: String,
        /// Its result code by NCCL's name.
        code: &'static str,
    },
}

/// Beginning of our plugin's log lines.
const TITLE: &str = "NET/Anabranch: ";

pub fn code_name(code: c_int) -> &'static str {
    match code {
        0 => "ncclSuccess",
        1 => "ncclUnhandledCudaError",
        2 => "ncclSystemError",
        3 => "ncclInternalError",
        4 => "ncclInvalidArgument",
        5 => "ncclInvalidUsage",
        6 => "ncclRemoteError",
        _ => "a code that NCCL does not have",
    }
}

thread_local! {
    /// Warnings of the plugin since the last failure; `None`: they go to standard error.
    static KEPT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// From now on warnings of the plugin in this thread become the text of its errors.
pub fn keep_log() {
    KEPT.with_borrow_mut(|kept| *kept = Some(kept.take().unwrap_or_default()));
}

/// The entry called last, for the report of a crash or a hang.
static CALLED: AtomicPtr<&'static str> = AtomicPtr::new(ptr::null_mut());

/// Returns the name of the entry that was called last, by any thread.
pub fn last_call() -> &'static str {
    // SAFETY: null or a static.
    unsafe { CALLED.load(Ordering::Relaxed).as_ref() }.copied().unwrap_or("dlopen")
}

fn call(entry: &'static &'static str, body: impl FnOnce() -> c_int) -> Result<(), PluginError> {
    CALLED.store(ptr::from_ref(entry).cast_mut(), Ordering::Relaxed);
    let code = body();
    if code == Code::Success as c_int {
        return Ok(());
    }
    let code = code_name(code);
    match KEPT.with_borrow_mut(|kept| kept.as_mut().map(std::mem::take)).filter(|kept| !kept.is_empty()) {
        Some(kept) => Err(PluginError::Reason { reason: kept.join("; "), code }),
        None => Err(PluginError::Call { entry, code }),
    }
}

/// Lives as long as the library.
#[derive(Clone, Copy, Debug)]
enum Net {
    V8(&'static NetV8),
    V9(&'static NetV9),
    V10(&'static NetV10),
    V11(&'static NetV11),
    V12(&'static NetV12),
}

macro_rules! with {
    ($net:expr, $table:ident => $body:expr) => {
        match $net {
            Net::V8($table) => $body,
            Net::V9($table) => $body,
            Net::V10($table) => $body,
            Net::V11($table) => $body,
            Net::V12($table) => $body,
        }
    };
}

/// A communicator or a request of the plugin: opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opaque(*mut c_void);

impl Opaque {
    pub(crate) const NULL: Opaque = Opaque(ptr::null_mut());
}

// SAFETY: NCCL passes these pointers between threads, too; nothing here reads what they point to.
unsafe impl Send for Opaque {}
/// Maximum number of buffers of [`Plugin::receive_group`], more than any plugin takes.
pub const MAX_GROUP: usize = 16;
const NO_EVENTS: [*mut c_void; MAX_GROUP] = [ptr::null_mut(); MAX_GROUP];

/// A buffer of a grouped receive.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub data: *mut u8,
    pub size: usize,
    pub tag: c_int,
    /// Registration of the buffer.
    pub memory: Opaque,
}

/// Properties of a device that all versions have.
#[derive(Clone, Debug)]
pub struct Properties {
    pub name: String,
    /// Supported kinds of pointers, in bits: 1 for those of the host.
    pub pointers: c_int,
    pub limits: DeviceLimits,
    /// Devices of which it consists: itself, in version 8 unknown.
    pub members: Vec<c_int>,
}

pub type Handle = [u8; HANDLE_BYTES];

type ReadCounters = unsafe extern "C" fn(*mut c_void, *mut DeliveryCounters) -> c_int;

/// A loaded plugin. Its methods return the plugin's error codes as [`PluginError::Call`].
#[derive(Debug)]
pub struct Plugin {
    net: Net,
    context: *mut c_void,
    version: u32,
    /// Optional export of our own plugin.
    counters: Option<ReadCounters>,
    // Unloaded last; `None`: it is part of this program.
    _library: Option<Library>,
}

// SAFETY: a plugin's functions may be called from any thread, and the context is opaque.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

/// NCCL's logger to standard error: warnings always, the rest where `NCCL_DEBUG` is INFO or TRACE.
unsafe extern "C" fn log(
    level: c_int,
    _flags: c_ulong,
    _file: *const c_char,
    _line: c_int,
    format: *const c_char,
    text: *const c_char,
) {
    let loud = std::env::var("NCCL_DEBUG").is_ok_and(|level| ["INFO", "TRACE"].contains(&level.as_str()));
    if level != LOG_WARN && !loud {
        return;
    }
    // SAFETY: a plugin passes C strings. A format other than "%s" is shown unchanged.
    let line = unsafe {
        let format = CStr::from_ptr(format);
        if format == c"%s" && !text.is_null() { CStr::from_ptr(text) } else { format }
    };
    let line = line.to_string_lossy();
    let is_kept = level == LOG_WARN
        && KEPT
            .with_borrow_mut(|kept| kept.as_mut().map(|kept| kept.push(line.trim_start_matches(TITLE).into())))
            .is_some();
    if !is_kept {
        eprintln!("{line}");
    }
}

impl Plugin {
    /// Loads a shared object and calls `init`; `version` is that of the interface, `None` the newest available.
    /// Fails if it cannot be loaded, has no such table, or returns an error.
    pub fn load(path: &Path, version: Option<u32>) -> Result<Self, PluginError> {
        let failed = |reason: libloading::Error| PluginError::Load { path: path.into(), reason: reason.to_string() };
        // SAFETY: the user selects the library to execute.
        let library = unsafe { Library::new(path) }.map_err(failed)?;
        let requested: Vec<u32> = version.map_or_else(|| VERSIONS.to_vec(), |version| vec![version]);
        let found = requested.iter().find_map(|version| Some((*version, table(&library, *version)?)));
        let Some((version, net)) = found else {
            let symbol = format!("ncclNetPlugin_v{}", requested[0]);
            return Err(PluginError::Version { path: path.into(), symbol });
        };
        // SAFETY: only our plugin has a function of this name, of this type; it is called while the library is loaded.
        let counters = unsafe { library.get::<ReadCounters>(b"anabranchWent\0") }.ok().map(|counters| *counters);
        let mut plugin = Plugin { net, context: ptr::null_mut(), version, counters, _library: Some(library) };
        plugin.init()?;
        Ok(plugin)
    }

    /// Initialises our own plugin, which is part of this program.
    pub fn linked() -> Result<Self, PluginError> {
        let net = Net::V12(nccl_net_anabranch::table());
        let mut plugin = Plugin { net, context: ptr::null_mut(), version: 12, counters: None, _library: None };
        plugin.init()?;
        Ok(plugin)
    }

    fn init(&mut self) -> Result<(), PluginError> {
        // SAFETY: NCCL calls the variadic function with one string; a function with one pointer after its five
        // arguments has that calling convention on every platform that NCCL supports.
        let logger = Some(unsafe {
            std::mem::transmute::<
                unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, *const c_char),
                nccl_net_anabranch::abi::Logger,
            >(log)
        });
        let config = Config { traffic_class: -1 };
        // SAFETY: the table defines the types of its functions.
        call(&"init", || unsafe {
            match self.net {
                Net::V8(net) => (net.init)(logger),
                Net::V9(net) => (net.init)(logger),
                Net::V10(net) => (net.init)(logger, None),
                Net::V11(net) => (net.init)(&mut self.context, 1, &config, logger, None),
                Net::V12(net) => (net.init)(&mut self.context, 1, &config, logger, None),
            }
        })
    }

    pub fn version(&self) -> u32 {
        self.version
    }

    pub fn devices(&self) -> Result<c_int, PluginError> {
        let mut count = 0;
        // SAFETY: the table defines the types of its functions; the same holds for all calls below.
        call(&"devices", || with!(self.net, net => unsafe { (net.devices)(&mut count) }))?;
        Ok(count)
    }

    /// Fails if the plugin reports none, or writes beyond the block of its version.
    pub fn properties(&self, device: c_int) -> Result<Properties, PluginError> {
        #[repr(C, align(16))]
        struct Block([u8; 256]);
        macro_rules! read {
            ($net:ident, $kind:ty, |$of:ident| $parts:expr) => {{
                let mut block = Block([0x5a; 256]);
                let at = block.0.as_mut_ptr().cast::<$kind>();
                // SAFETY: the block is larger than the table's version needs.
                call(&"getProperties", || unsafe { ($net.get_properties)(device, at) })?;
                if block.0[size_of::<$kind>()..].iter().any(|byte| *byte != 0x5a) {
                    return Err(PluginError::Call { entry: "getProperties", code: "it writes beyond the properties" });
                }
                // SAFETY: any bytes are a value of it.
                let $of = unsafe { at.read() };
                $parts
            }};
        }
        fn parts<const N: usize>(of: PropertiesV9<N>) -> (Identity, DeviceLimits, Vec<c_int>) {
            let Virtual { count, devices } = of.virtual_devices;
            (of.identity, of.limits, devices.into_iter().take(usize::try_from(count).unwrap_or(0)).collect())
        }
        let (identity, limits, members) = match self.net {
            Net::V8(net) => read!(net, PropertiesV8, |of| (of.identity, of.limits, Vec::new())),
            Net::V9(net) => read!(net, PropertiesV9, |of| parts::<4>(of)),
            Net::V10(net) => read!(net, PropertiesV9, |of| parts::<4>(of)),
            Net::V11(net) => read!(net, PropertiesV11, |of| parts(of.v9)),
            Net::V12(net) => read!(net, PropertiesV12, |of| parts(of.v9)),
        };
        // SAFETY: null or a C string that lives as long as the library.
        let name = (!identity.name.is_null()).then(|| unsafe { CStr::from_ptr(identity.name) });
        let name = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Properties { name, pointers: identity.ptr_support, limits, members })
    }

    /// Makes a device of others, at most 4; `None`: the plugin makes none.
    pub fn fuse(&self, members: &[c_int]) -> Option<Result<c_int, PluginError>> {
        fn list<const N: usize>(members: &[c_int]) -> Virtual<N> {
            let devices = std::array::from_fn(|at| members.get(at).copied().unwrap_or(0));
            Virtual { count: members.len() as c_int, devices }
        }
        let mut device = -1;
        macro_rules! make {
            ($net:ident) => {{
                let make = $net.end.make_v_device?;
                // SAFETY: see `devices`.
                call(&"makeVDevice", || unsafe { make(&mut device, &mut list(members)) })
            }};
        }
        let made = match self.net {
            Net::V8(_) => return None,
            Net::V9(net) => make!(net),
            Net::V10(net) => make!(net),
            Net::V11(net) => make!(net),
            Net::V12(net) => make!(net),
        };
        Some(made.map(|()| device))
    }

    pub fn listen(&self, device: c_int) -> Result<(Handle, Opaque), PluginError> {
        let (mut handle, mut out) = ([0; HANDLE_BYTES], ptr::null_mut());
        let at = handle.as_mut_ptr();
        // SAFETY: see `devices`.
        call(&"listen", || unsafe {
            match self.net {
                Net::V8(net) => (net.listen)(device, at, &mut out),
                Net::V9(net) => (net.listen)(device, at, &mut out),
                Net::V10(net) => (net.listen)(device, at, &mut out),
                Net::V11(net) => (net.listen)(self.context, device, at, &mut out),
                Net::V12(net) => (net.listen)(self.context, device, at, &mut out),
            }
        })?;
        Ok((handle, Opaque(out)))
    }

    /// Tries to connect; `None`: repeat with the same handle.
    pub fn connect(&self, device: c_int, handle: &mut Handle) -> Result<Option<Opaque>, PluginError> {
        let (mut out, mut extra) = (ptr::null_mut(), ptr::null_mut());
        let config = Config { traffic_class: -1 };
        let at = handle.as_mut_ptr();
        // SAFETY: see `devices`.
        call(&"connect", || unsafe {
            match self.net {
                Net::V8(net) => (net.connect)(device, at, &mut out, &mut extra),
                Net::V9(net) => (net.connect)(device, at, &mut out, &mut extra),
                Net::V10(net) => (net.connect)(device, &config, at, &mut out, &mut extra),
                Net::V11(net) => (net.connect)(self.context, device, at, &mut out, &mut extra),
                Net::V12(net) => (net.connect)(self.context, device, at, &mut out, &mut extra),
            }
        })?;
        Ok((!out.is_null()).then_some(Opaque(out)))
    }

    /// Tries to accept; `None`: repeat.
    pub fn accept(&self, listener: Opaque) -> Result<Option<Opaque>, PluginError> {
        let (mut out, mut extra) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: see `devices`.
        call(&"accept", || with!(self.net, net => unsafe { (net.accept)(listener.0, &mut out, &mut extra) }))?;
        Ok((!out.is_null()).then_some(Opaque(out)))
    }

    /// Registers memory of the host, which must not move until it is deregistered.
    pub fn register(&self, communicator: Opaque, memory: &mut [u8]) -> Result<Opaque, PluginError> {
        self.register_as(communicator, memory, PTR_HOST)
    }

    /// Registers memory as one of a kind of pointers.
    pub fn register_as(&self, communicator: Opaque, memory: &mut [u8], kind: c_int) -> Result<Opaque, PluginError> {
        let (at, size, mut out) = (memory.as_mut_ptr().cast(), memory.len(), ptr::null_mut());
        // SAFETY: see `devices`.
        call(&"regMr", || with!(self.net, net => unsafe { (net.reg_mr)(communicator.0, at, size, kind, &mut out) }))?;
        Ok(Opaque(out))
    }

    pub fn deregister(&self, communicator: Opaque, memory: Opaque) -> Result<(), PluginError> {
        // SAFETY: see `devices`.
        call(&"deregMr", || with!(self.net, net => unsafe { (net.dereg_mr)(communicator.0, memory.0) }))
    }

    /// Starts to send; `None`: no request is available yet.
    ///
    /// # Safety
    /// `bytes` must neither move nor change until the request is done or the communicator closed.
    pub unsafe fn send(
        &self,
        sender: Opaque,
        bytes: &[u8],
        tag: c_int,
        memory: Opaque,
    ) -> Result<Option<Opaque>, PluginError> {
        let (at, size, mut out) = (bytes.as_ptr().cast_mut().cast(), bytes.len(), ptr::null_mut());
        let none = ptr::null_mut();
        // SAFETY: the caller's.
        call(&"isend", || unsafe {
            match self.net {
                Net::V8(net) => (net.isend)(sender.0, at, size as c_int, tag, memory.0, &mut out),
                Net::V9(net) => (net.isend)(sender.0, at, size, tag, memory.0, &mut out),
                Net::V10(net) => (net.isend)(sender.0, at, size, tag, memory.0, none, &mut out),
                Net::V11(net) => (net.isend)(sender.0, at, size, tag, memory.0, none, &mut out),
                Net::V12(net) => (net.isend)(sender.0, at, size, tag, memory.0, none, &mut out),
            }
        })?;
        Ok((!out.is_null()).then_some(Opaque(out)))
    }

    /// Starts to receive; `None`: no request is available yet.
    ///
    /// # Safety
    /// `bytes` must not move, and no other code may access them, until the request is done or the communicator closed.
    pub unsafe fn receive(
        &self,
        receiver: Opaque,
        bytes: &mut [u8],
        tag: c_int,
        memory: Opaque,
    ) -> Result<Option<Opaque>, PluginError> {
        let piece = Piece { data: bytes.as_mut_ptr(), size: bytes.len(), tag, memory };
        // SAFETY: the caller's. Completion is optional, as for NCCL's LL protocols.
        unsafe { self.receive_group(receiver, &[piece], true) }
    }

    /// Starts a grouped receive into at most 16 buffers; `None`: no request is available yet.
    ///
    /// # Safety
    /// As [`Plugin::receive`], for every buffer.
    pub unsafe fn receive_group(
        &self,
        receiver: Opaque,
        pieces: &[Piece],
        is_optional: bool,
    ) -> Result<Option<Opaque>, PluginError> {
        let (mut data, mut memories, mut none) =
            ([ptr::null_mut(); MAX_GROUP], [ptr::null_mut(); MAX_GROUP], NO_EVENTS);
        let (mut small, mut large, mut tags) = ([0; MAX_GROUP], [0; MAX_GROUP], [0; MAX_GROUP]);
        for (at, piece) in pieces.iter().enumerate() {
            (data[at], memories[at], tags[at]) = (piece.data.cast(), piece.memory.0, piece.tag);
            (small[at], large[at]) = (piece.size as c_int, piece.size);
        }
        let mut out = if is_optional { OPTIONAL_COMPLETION as *mut c_void } else { ptr::null_mut() };
        let (count, data, tags, memories) =
            (pieces.len() as c_int, data.as_mut_ptr(), tags.as_mut_ptr(), memories.as_mut_ptr());
        let (none, sizes) = (none.as_mut_ptr(), large.as_mut_ptr());
        // SAFETY: the caller's.
        call(&"irecv", || unsafe {
            match self.net {
                Net::V8(net) => (net.irecv)(receiver.0, count, data, small.as_mut_ptr(), tags, memories, &mut out),
                Net::V9(net) => (net.irecv)(receiver.0, count, data, sizes, tags, memories, &mut out),
                Net::V10(net) => (net.irecv)(receiver.0, count, data, sizes, tags, memories, none, &mut out),
                Net::V11(net) => (net.irecv)(receiver.0, count, data, sizes, tags, memories, none, &mut out),
                Net::V12(net) => (net.irecv)(receiver.0, count, data, sizes, tags, memories, none, &mut out),
            }
        })?;
        if out as usize == OPTIONAL_COMPLETION {
            return Err(PluginError::Call {
                entry: "irecv",
                code: "it returns no request where completion is optional",
            });
        }
        Ok((!out.is_null()).then_some(Opaque(out)))
    }

    /// Makes received bytes visible; `None`: there is nothing to do.
    pub fn flush(&self, receiver: Opaque, piece: &Piece) -> Result<Option<Opaque>, PluginError> {
        let (mut data, mut size, mut memory, mut out) =
            (piece.data.cast(), piece.size as c_int, piece.memory.0, ptr::null_mut());
        // SAFETY: see `devices`.
        let flush = || with!(self.net, net => unsafe { (net.iflush)(receiver.0, 1, &mut data, &mut size, &mut memory, &mut out) });
        call(&"iflush", flush)?;
        Ok((!out.is_null()).then_some(Opaque(out)))
    }

    /// Returns `true` if a request is done, with the bytes of each buffer if requested.
    pub fn test_group(&self, request: Opaque, sizes: Option<&mut [c_int; MAX_GROUP]>) -> Result<bool, PluginError> {
        let (mut done, sizes) = (0, sizes.map_or(ptr::null_mut(), |sizes| sizes.as_mut_ptr()));
        // SAFETY: see `devices`.
        call(&"test", || with!(self.net, net => unsafe { (net.test)(request.0, &mut done, sizes) }))?;
        Ok(done != 0)
    }

    /// Returns the bytes of a completed request of one message; `None`: it is pending.
    pub fn test(&self, request: Opaque) -> Result<Option<usize>, PluginError> {
        let mut sizes = [0; MAX_GROUP];
        Ok(self.test_group(request, Some(&mut sizes))?.then_some(sizes[0].max(0) as usize))
    }

    /// Returns the transport counters of the message that [`Plugin::test`] completed last, if exported.
    pub fn counters(&self, sender: Opaque) -> Option<DeliveryCounters> {
        let mut counters = DeliveryCounters::default();
        // SAFETY: see `load`.
        (unsafe { self.counters?(sender.0, &mut counters) } == Code::Success as c_int).then_some(counters)
    }

    pub fn close_listener(&self, listener: Opaque) -> Result<(), PluginError> {
        // SAFETY: see `devices`.
        call(&"closeListen", || with!(self.net, net => unsafe { (net.close_listen)(listener.0) }))
    }

    pub fn close_sender(&self, sender: Opaque) -> Result<(), PluginError> {
        // SAFETY: see `devices`.
        call(&"closeSend", || with!(self.net, net => unsafe { (net.close_send)(sender.0) }))
    }

    pub fn close_receiver(&self, receiver: Opaque) -> Result<(), PluginError> {
        // SAFETY: see `devices`.
        call(&"closeRecv", || with!(self.net, net => unsafe { (net.close_recv)(receiver.0) }))
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let finalize = match self.net {
            Net::V11(net) => net.end.finalize,
            Net::V12(net) => net.end.finalize,
            Net::V8(_) | Net::V9(_) | Net::V10(_) => return,
        };
        if !self.context.is_null() {
            // SAFETY: see `devices`. There is no caller to report a failure to.
            let _ = call(&"finalize", || unsafe { finalize(self.context) });
        }
    }
}

fn table(library: &Library, version: u32) -> Option<Net> {
    /// Valid as long as the library is loaded, which is as long as its `Plugin` lives.
    fn of<T>(library: &Library, symbol: &[u8]) -> Option<&'static T> {
        // SAFETY: the name defines the type of the data symbol; the plugin keeps the library as long as the reference.
        unsafe {
            let symbol: Symbol<'_, *const T> = library.get(symbol).ok()?;
            (*symbol).as_ref()
        }
    }
    match version {
        8 => of(library, b"ncclNetPlugin_v8\0").map(Net::V8),
        9 => of(library, b"ncclNetPlugin_v9\0").map(Net::V9),
        10 => of(library, b"ncclNetPlugin_v10\0").map(Net::V10),
        11 => of(library, b"ncclNetPlugin_v11\0").map(Net::V11),
        12 => of(library, b"ncclNetPlugin_v12\0").map(Net::V12),
        _ => None,
    }
}
