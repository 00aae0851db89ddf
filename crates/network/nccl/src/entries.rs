//! Entry points that NCCL calls. Every failure inside becomes a result code, with a line in NCCL's log.

#![allow(unsafe_code, non_upper_case_globals)]

use crate::{
    abi::{
        Code, Config, DeviceLimits, EndV9, EndV11, HANDLE_BYTES, Identity, Logger, MAX_BYTES, MAX_RECEIVES, Name,
        NetV8, NetV9, NetV10, NetV11, NetV12, PTR_HOST, Profiler, PropertiesV8, PropertiesV9, PropertiesV11,
        PropertiesV12, Table, Virtual,
    },
    fork, fused,
    handle::{Handle, SCRATCH},
    host::HostMemory,
    ids::{Id, IdKind},
    labels::Paths,
    log::{self, Level},
    node::{Buffer, Connecting, Failure, MAX_CONNECTIONS},
    path::Path,
    process::{self, DeviceNode, Process, Rail},
};
use anabranch_wire::{Datapath, Driver, Region};
use std::{
    ffi::{c_int, c_void},
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

type Pointer = *mut c_void;
type Out = *mut *mut c_void;

/// Calls `body`, logs its failure, and returns the result code.
fn enter(entry: &str, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Code::Success as c_int,
        Ok(Err(failure)) => {
            if let Some(message) = failure.report() {
                log::say(Level::Warn, &format!("{entry}: {message}"));
            }
            failure.code as c_int
        }
        Err(_) => {
            log::say(Level::Warn, &format!("{entry}: internal plugin error; please report it"));
            Code::Internal as c_int
        }
    }
}

fn null(what: &str) -> Failure {
    Failure::new(Code::Argument, format!("the pointer to {what} is null"))
}

/// Writes a result to NCCL's memory.
///
/// # Safety
/// `out` is null or NCCL's memory, valid for writes.
unsafe fn put<T>(out: *mut T, what: &str, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's.
    unsafe { out.write(value) };
    Ok(())
}

/// Writes a communicator, or null while there is none, and no handle of a device.
///
/// # Safety
/// Both are null or NCCL's memory, valid for writes.
unsafe fn put_communicator(out: Out, device_handle: Out, communicator: Option<Pointer>) -> Result<(), Failure> {
    // SAFETY: the caller's.
    unsafe {
        if !device_handle.is_null() {
            device_handle.write(ptr::null_mut());
        }
        put(out, "the communicator", communicator.unwrap_or(ptr::null_mut()))
    }
}

fn named(pointer: Pointer, kind: IdKind) -> Result<(u8, Id), Failure> {
    Id::of_pointer(pointer, kind)
        .ok_or_else(|| Failure::internal("NCCL passed a pointer that this plugin has not returned"))
}

fn in_context(process: &Process, context: Pointer) -> Result<u8, Failure> {
    let (_, id) = named(context, IdKind::Context)?;
    process.context(id).ok_or_else(|| Failure::internal("NCCL names a context that has ended"))
}

/// Returns the traffic class in NCCL's configuration; 0 where it is not set (less than zero) or no byte.
///
/// # Safety
/// `config` is null or a configuration of NCCL's.
unsafe fn class(config: *const Config) -> u8 {
    // SAFETY: the caller's.
    unsafe { config.as_ref() }.and_then(|config| u8::try_from(config.traffic_class).ok()).unwrap_or(0)
}

// ---- init, devices, properties, finalize ----

unsafe extern "C" fn init(logger: Option<Logger>) -> c_int {
    enter("init", || {
        log::to(logger);
        process::init().map(|_| ())
    })
}

unsafe extern "C" fn init_v10(logger: Option<Logger>, _profiler: Option<Profiler>) -> c_int {
    // SAFETY: as it was called.
    unsafe { init(logger) }
}

unsafe extern "C" fn init_v11(
    context: Out,
    _communicator: u64,
    config: *const Config,
    logger: Option<Logger>,
    _profiler: Option<Profiler>,
) -> c_int {
    enter("init", || {
        log::to(logger);
        if context.is_null() {
            return Err(null("the context"));
        }
        let process = process::init()?;
        // SAFETY: NCCL's, or null.
        let id = process.add_context(unsafe { class(config) })?;
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(context, "the context", id.pointer(IdKind::Context, 0)) }
    })
}

unsafe extern "C" fn finalize(context: Pointer) -> c_int {
    enter("finalize", || {
        let process = process::get()?;
        in_context(&process, context)?;
        process.remove_context(named(context, IdKind::Context)?.1);
        Ok(())
    })
}

unsafe extern "C" fn set_net_attr(_context: Pointer, _attributes: *const c_void) -> c_int {
    Code::Success as c_int
}

unsafe extern "C" fn devices(count: *mut c_int) -> c_int {
    enter("devices", || {
        let process = process::get()?;
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(count, "the number of devices", process.all_rails().count() as c_int) }
    })
}

fn properties<const N: usize>(device: c_int, rail: &Rail) -> PropertiesV9<N> {
    let itself = [device];
    let members = if rail.members.is_empty() { &itself } else { &rail.members[..] };
    let devices = std::array::from_fn(|at| members.get(at).copied().unwrap_or(0));
    PropertiesV9 {
        identity: Identity {
            name: rail.name.as_ptr(),
            pci_path: rail.pci_path.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            guid: rail.device.rdma.as_ref().map_or(u64::from(rail.device.index), |rdma| rdma.guid),
            ptr_support: PTR_HOST,
            reg_is_global: 0,
        },
        force_flush: 0,
        limits: DeviceLimits {
            speed: rail.device.speed() as c_int,
            port: c_int::from(rail.device.rdma.is_some()),
            latency: 0.0,
            max_comms: MAX_CONNECTIONS as c_int,
            max_recvs: MAX_RECEIVES as c_int,
            net_device_type: 0,
            net_device_version: 0,
        },
        virtual_devices: Virtual { count: members.len() as c_int, devices },
        max_p2p_bytes: MAX_BYTES,
        max_coll_bytes: MAX_BYTES,
    }
}

/// Implements `getProperties` for the types of one version.
///
/// # Safety
/// `out` is null or NCCL's memory, valid for writes.
unsafe fn write_properties<P, const N: usize>(
    device: c_int,
    out: *mut P,
    of: impl FnOnce(PropertiesV9<N>) -> P,
) -> c_int {
    enter("getProperties", || {
        let process = process::get()?;
        let properties = properties(device, process.rail(device)?);
        // SAFETY: the caller's.
        unsafe { put(out, "the properties", of(properties)) }
    })
}

unsafe extern "C" fn get_properties_v8(device: c_int, out: *mut PropertiesV8) -> c_int {
    let of = |PropertiesV9 { identity, limits, .. }: PropertiesV9| PropertiesV8 { identity, limits };
    // SAFETY: as it was called.
    unsafe { write_properties(device, out, of) }
}

unsafe extern "C" fn get_properties_v9(device: c_int, out: *mut PropertiesV9) -> c_int {
    // SAFETY: as it was called.
    unsafe { write_properties(device, out, |properties| properties) }
}

unsafe extern "C" fn get_properties_v11(device: c_int, out: *mut PropertiesV11) -> c_int {
    // SAFETY: as it was called.
    unsafe { write_properties(device, out, |v9| PropertiesV11 { v9, max_multi_request_size: 1 }) }
}

unsafe extern "C" fn get_properties_v12(device: c_int, out: *mut PropertiesV12) -> c_int {
    let of = |v9| PropertiesV12 { v9, max_multi_request_size: 1, rail: -1, plane: -1 };
    // SAFETY: as it was called.
    unsafe { write_properties(device, out, of) }
}

/// Fuses devices, before the first connection; NCCL's topology takes the properties of the new one.
unsafe extern "C" fn make_v_device<const N: usize>(device: *mut c_int, members: *mut Virtual<N>) -> c_int {
    enter("makeVDevice", || {
        // SAFETY: NCCL's, or null.
        let list = unsafe { members.as_ref() }.ok_or_else(|| null("the list of devices"))?;
        if device.is_null() {
            return Err(null("the device"));
        }
        let count = usize::try_from(list.count).ok().filter(|count| (1..=N).contains(count));
        let wrong = || Failure::new(Code::Usage, format!("found {} devices, expected 1 to {N}", list.count));
        let process = process::get()?;
        let made = fused::make(&process, &list.devices[..count.ok_or_else(wrong)?])?;
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(device, "the device", made) }
    })
}

// ---- connections ----

fn own_address(driver: &mut Driver<Path>) -> Result<SocketAddr, Failure> {
    driver.datapath().at().ok_or_else(|| Failure::new(Code::System, "the listener has no address any more"))
}

/// Describes a listener of this key.
pub(crate) fn handle_of(process: &Process, device: c_int, node: &mut DeviceNode, key: u64) -> Result<Handle, Failure> {
    let driver = node.driver();
    let (payload, labels) = (driver.endpoint().0.settings().mtu(), driver.datapath().abilities().labels);
    let (at, carrier) = (own_address(driver)?, driver.datapath().carrier());
    let of_planes = &process.rail(device)?.device.others;
    let others = std::array::from_fn(|other| of_planes.get(other).copied());
    let (labels, payload, authentication) = (labels as u16, payload as u32, process.authentication);
    Ok(Handle { carrier, at, others, labels, payload, key, authentication })
}

/// # Safety
/// `handle` points to 128 bytes, `out` to a pointer, both NCCL's memory and valid for writes; or they are null.
unsafe fn begin_listen(
    process: &std::sync::Arc<Process>,
    (device, class): (c_int, u8),
    handle: *mut u8,
    out: Out,
) -> Result<(), Failure> {
    if handle.is_null() || out.is_null() {
        return Err(null("the handle or the communicator"));
    }
    let class = process.class(class);
    let mut opened = process.open(device, class)?;
    let node = opened.node()?;
    let (id, key) = node.listen(class)?;
    let own = handle_of(process, device, node, key)?;
    let (at, written) = (own.at, own.write());
    if let Err(failure) = process.begins() {
        node.close_listener(id)?;
        return Err(failure);
    }
    log::say(Level::Trace, &format!("listening at {at}"));
    // SAFETY: the caller's.
    unsafe {
        ptr::copy_nonoverlapping(written.as_ptr(), handle, HANDLE_BYTES);
        put(out, "the communicator", id.pointer(IdKind::Listener, device as u8))
    }
}

unsafe extern "C" fn listen(device: c_int, handle: *mut u8, out: Out) -> c_int {
    // SAFETY: as it was called.
    enter("listen", || unsafe { begin_listen(&process::get()?, (device, 0), handle, out) })
}

unsafe extern "C" fn listen_v11(context: Pointer, device: c_int, handle: *mut u8, out: Out) -> c_int {
    enter("listen", || {
        let process = process::get()?;
        let class = in_context(&process, context)?;
        // SAFETY: as it was called.
        unsafe { begin_listen(&process, (device, class), handle, out) }
    })
}

/// Returns the paths to a rank that is to be called; `None`: they are still being traced.
fn find_paths(
    process: &Process,
    device: c_int,
    node: &mut DeviceNode,
    handle: &Handle,
    attempt: Option<Id>,
) -> Result<Option<Paths>, Failure> {
    if !process.finds_paths() || !node.is_first_call(handle, attempt)? {
        return Ok(Some(Paths::new()));
    }
    node.work()?;
    node.driver().datapath().find_paths(process.rail(device)?.device.ip, handle)
}

/// # Safety
/// As for [`begin_listen`].
unsafe fn go_on_connecting(
    process: &std::sync::Arc<Process>,
    (device, class): (c_int, u8),
    handle: *mut u8,
    out: Out,
    device_handle: Out,
) -> Result<(), Failure> {
    if handle.is_null() || out.is_null() {
        return Err(null("the handle or the communicator"));
    }
    // SAFETY: the caller's.
    let bytes = unsafe { &mut *handle.cast::<[u8; HANDLE_BYTES]>() };
    let read = Handle::read(bytes).map_err(|message| Failure::new(Code::Internal, message))?;
    let scratch = u64::from_ne_bytes(std::array::from_fn(|at| bytes[SCRATCH + at]));
    let attempt = Id::of_number(scratch, IdKind::Attempt);
    let attempt = attempt.filter(|(of, _)| c_int::from(*of) == device).map(|(_, id)| id);
    let class = process.class(class);
    let mut opened = process.open(device, class)?;
    let node = opened.node()?;
    let ours = node.driver().datapath().carrier();
    if read.carrier != ours {
        let message = format!(
            "the rank at {} uses {} and this one {ours}: give both the same ANABRANCH_DATAPATH, or udp where one has no RDMA device",
            read.at, read.carrier
        );
        return Err(Failure::new(Code::Usage, message));
    }
    if read.at.is_ipv4() != own_address(node.driver())?.is_ipv4() {
        let message = format!("{} cannot be reached from {}", read.at, process.rail(device)?.device.ip);
        return Err(Failure::new(Code::Usage, message));
    }
    process.check_planes(process.rail(device)?, &read)?;
    let paths = find_paths(process, device, node, &read, attempt);
    let connecting = paths.and_then(|paths| paths.map(|paths| node.connect(&read, attempt, class, &paths)).transpose());
    let (scratch, sender) = match connecting {
        // The paths are not known yet.
        Ok(None) => (0, None),
        Ok(Some(Connecting::Wait(id))) => (id.number(IdKind::Attempt, device as u8), None),
        Ok(Some(Connecting::Done(id))) => {
            process.begins()?;
            log::say(Level::Trace, &format!("connected to {}", read.at));
            (0, Some(id.pointer(IdKind::Sender, device as u8)))
        }
        Err(failure) => {
            bytes[SCRATCH..].fill(0);
            opened.closed();
            return Err(failure);
        }
    };
    bytes[SCRATCH..].copy_from_slice(&scratch.to_ne_bytes());
    // SAFETY: the caller's.
    unsafe { put_communicator(out, device_handle, sender) }
}

unsafe extern "C" fn connect(device: c_int, handle: *mut u8, out: Out, device_handle: Out) -> c_int {
    // SAFETY: as it was called.
    enter("connect", || unsafe { go_on_connecting(&process::get()?, (device, 0), handle, out, device_handle) })
}

unsafe extern "C" fn connect_v10(
    device: c_int,
    config: *const Config,
    handle: *mut u8,
    out: Out,
    device_handle: Out,
) -> c_int {
    enter("connect", || {
        let process = process::get()?;
        // SAFETY: as it was called.
        unsafe { go_on_connecting(&process, (device, class(config)), handle, out, device_handle) }
    })
}

unsafe extern "C" fn connect_v11(
    context: Pointer,
    device: c_int,
    handle: *mut u8,
    out: Out,
    device_handle: Out,
) -> c_int {
    enter("connect", || {
        let process = process::get()?;
        let class = in_context(&process, context)?;
        // SAFETY: as it was called.
        unsafe { go_on_connecting(&process, (device, class), handle, out, device_handle) }
    })
}

unsafe extern "C" fn accept(listener: Pointer, out: Out, device_handle: Out) -> c_int {
    enter("accept", || {
        if out.is_null() {
            return Err(null("the communicator"));
        }
        let process = process::get()?;
        let (device, id) = named(listener, IdKind::Listener)?;
        let mut opened = process.opened(device)?;
        let accepted = opened.node()?.accept(id)?;
        if accepted.is_some() {
            process.begins()?;
        }
        let receiver = accepted.map(|id| id.pointer(IdKind::Receiver, device));
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put_communicator(out, device_handle, receiver) }
    })
}

/// Closes a communicator; the helper thread ends with the last one.
fn close(entry: &str, pointer: Pointer, kind: IdKind) -> c_int {
    enter(entry, || {
        let process = process::get()?;
        let (device, id) = named(pointer, kind)?;
        {
            let mut opened = process.opened(device)?;
            let node = opened.node()?;
            match kind {
                IdKind::Listener => node.close_listener(id)?,
                IdKind::Sender => node.close_sender(id)?,
                _ => node.close_receiver(id)?,
            }
            opened.closed();
        }
        process.helper.end();
        Ok(())
    })
}

unsafe extern "C" fn close_send(sender: Pointer) -> c_int {
    close("closeSend", sender, IdKind::Sender)
}

unsafe extern "C" fn close_recv(receiver: Pointer) -> c_int {
    close("closeRecv", receiver, IdKind::Receiver)
}

unsafe extern "C" fn close_listen(listener: Pointer) -> c_int {
    close("closeListen", listener, IdKind::Listener)
}

// ---- memory ----

unsafe extern "C" fn reg_mr(communicator: Pointer, data: Pointer, size: usize, kind: c_int, out: Out) -> c_int {
    enter("regMr", || {
        let (device, id) = named(communicator, IdKind::Sender).or_else(|_| named(communicator, IdKind::Receiver))?;
        if kind != PTR_HOST {
            return Err(Failure::internal(format!(
                "memory of kind {kind}; only memory of the host ({PTR_HOST}) was offered"
            )));
        }
        let process = process::get()?;
        // SAFETY: NCCL deregisters memory before it reuses or frees it.
        let region = unsafe { Region::new(data.cast(), size) };
        let registered = process.opened(device)?.node()?.register(region)?;
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(out, "the handle of the memory", registered.unwrap_or(id).pointer(IdKind::Memory, device)) }
    })
}

unsafe extern "C" fn dereg_mr(_communicator: Pointer, memory: Pointer) -> c_int {
    enter("deregMr", || {
        let (device, id) = named(memory, IdKind::Memory)?;
        // Registrations end with their device.
        if let Ok(mut opened) = process::get()?.opened(device)
            && process::get()?.rail(device.into())?.device.is_reliable
        {
            opened.node()?.deregister(id);
        }
        Ok(())
    })
}

// ---- messages ----

fn begin_send(sender: Pointer, data: Pointer, size: Option<usize>, tag: c_int, out: Out) -> c_int {
    enter("isend", || {
        let process = process::get()?;
        let (device, id) = named(sender, IdKind::Sender)?;
        if out.is_null() {
            return Err(null("the request"));
        }
        let size = size.filter(|size| *size <= MAX_BYTES);
        let size = size.ok_or_else(|| Failure::new(Code::Argument, "a message of a size that cannot be"))?;
        if data.is_null() && size > 0 {
            return Err(null("the message"));
        }
        // SAFETY: NCCL keeps the message until the request is done or the communicator closed.
        let memory = unsafe { HostMemory::new(data.cast()) };
        let request = process.opened(device)?.node()?.send(id, memory, size as u64, tag)?;
        let request = request.map_or(ptr::null_mut(), |id| id.pointer(IdKind::Request, device));
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(out, "the request", request) }
    })
}

/// `isend` of versions 8 and 9; sizes are of type `c_int` in version 8, then of `usize`.
unsafe extern "C" fn isend_v8<S: TryInto<usize>>(
    sender: Pointer,
    data: Pointer,
    size: S,
    tag: c_int,
    _memory: Pointer,
    out: Out,
) -> c_int {
    begin_send(sender, data, size.try_into().ok(), tag, out)
}

unsafe extern "C" fn isend_v10(
    sender: Pointer,
    data: Pointer,
    size: usize,
    tag: c_int,
    _memory: Pointer,
    _profile: Pointer,
    out: Out,
) -> c_int {
    begin_send(sender, data, Some(size), tag, out)
}

/// # Safety
/// `data`, `sizes` and `tags` point to `count` values each, or are null; `out` is NCCL's memory, valid for writes, or null.
unsafe fn begin_receive<S: Copy + TryInto<usize>>(
    receiver: Pointer,
    count: c_int,
    data: *mut Pointer,
    sizes: *mut S,
    tags: *mut c_int,
    out: Out,
) -> c_int {
    enter("irecv", || {
        let process = process::get()?;
        let (device, id) = named(receiver, IdKind::Receiver)?;
        if data.is_null() || sizes.is_null() || tags.is_null() || out.is_null() {
            return Err(null("an argument"));
        }
        let count = usize::try_from(count).ok().filter(|count| (1..=MAX_RECEIVES).contains(count));
        let count =
            count.ok_or_else(|| Failure::internal(format!("allowed are 1 to {MAX_RECEIVES} receives at once")))?;
        let mut buffers = Vec::with_capacity(count);
        for at in 0..count {
            // SAFETY: the caller's.
            let (data, size, tag) = unsafe { (*data.add(at), *sizes.add(at), *tags.add(at)) };
            let size = size.try_into().ok().filter(|size| *size <= MAX_BYTES);
            let size = size.ok_or_else(|| Failure::new(Code::Argument, "a buffer of a size that cannot be"))?;
            if data.is_null() && size > 0 {
                return Err(null("a buffer"));
            }
            // SAFETY: NCCL keeps the buffer until the request is done or the communicator closed.
            let memory = unsafe { HostMemory::new(data.cast()) };
            buffers.push(Buffer { memory, size: size as u64, tag });
        }
        let request = process.opened(device)?.node()?.receive(id, buffers)?;
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(out, "the request", request.pointer(IdKind::Request, device)) }
    })
}

unsafe extern "C" fn irecv_v8<S: Copy + TryInto<usize>>(
    receiver: Pointer,
    count: c_int,
    data: *mut Pointer,
    sizes: *mut S,
    tags: *mut c_int,
    _memory: *mut Pointer,
    out: Out,
) -> c_int {
    // SAFETY: as it was called.
    unsafe { begin_receive(receiver, count, data, sizes, tags, out) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn irecv_v10(
    receiver: Pointer,
    count: c_int,
    data: *mut Pointer,
    sizes: *mut usize,
    tags: *mut c_int,
    _memory: *mut Pointer,
    _profile: *mut Pointer,
    out: Out,
) -> c_int {
    // SAFETY: as it was called.
    unsafe { begin_receive(receiver, count, data, sizes, tags, out) }
}

unsafe extern "C" fn iflush(
    receiver: Pointer,
    _count: c_int,
    _data: *mut Pointer,
    _sizes: *mut c_int,
    _memory: *mut Pointer,
    out: Out,
) -> c_int {
    enter("iflush", || {
        named(receiver, IdKind::Receiver)?;
        // Received data is already in host memory.
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { put(out, "the request", ptr::null_mut()) }
    })
}

unsafe extern "C" fn test(request: Pointer, done: *mut c_int, sizes: *mut c_int) -> c_int {
    enter("test", || {
        if done.is_null() {
            return Err(null("the answer"));
        }
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { done.write(0) };
        let (device, id) = named(request, IdKind::Request)?;
        let finished = process::with(|process| {
            // The thread that holds the node's lock works for this request too.
            let Some(mut opened) = process.try_opened(device)? else { return Ok(None) };
            opened.node()?.test(id)
        })?;
        let Some(finished) = finished else { return Ok(()) };
        if !sizes.is_null() {
            for (at, size) in finished.sizes().iter().enumerate() {
                // SAFETY: NCCL provides space for the sizes of all buffers of the request.
                unsafe { sizes.add(at).write(c_int::try_from(*size).unwrap_or(c_int::MAX)) };
            }
        }
        // SAFETY: NCCL's memory, valid for writes.
        unsafe { done.write(1) };
        Ok(())
    })
}

/// Drops the remaining state when the library is unloaded: up to version 10 there is no other notification.
extern "C" fn unload() {
    let _ = catch_unwind(|| {
        process::end();
        fused::forget();
        fork::unload();
    });
}

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

// ---- tables ----

macro_rules! table {
    ($symbol:ident: $kind:ty = $init:ident $properties:ident $listen:ident $connect:ident $send:ident $receive:ident $end:expr) => {
        #[doc = concat!("NCCL's data symbol `", stringify!($symbol), "`.")]
        #[unsafe(no_mangle)]
        pub(crate) static $symbol: $kind = Table {
            name: Name(c"Anabranch".as_ptr()),
            init: $init,
            devices,
            get_properties: $properties,
            listen: $listen,
            connect: $connect,
            accept,
            reg_mr,
            reg_mr_dma_buf: None,
            dereg_mr,
            isend: $send,
            irecv: $receive,
            iflush,
            test,
            close_send,
            close_recv,
            close_listen,
            get_device_mr: None,
            irecv_consumed: None,
            end: $end,
        };
    };
}

const END_V9: EndV9 = EndV9 { make_v_device: Some(make_v_device::<4>) };
const fn end_v11<const N: usize>() -> EndV11<N> {
    EndV11 { make_v_device: Some(make_v_device::<N>), finalize, set_net_attr }
}

table!(ncclNetPlugin_v8: NetV8 = init get_properties_v8 listen connect isend_v8 irecv_v8 ());
table!(ncclNetPlugin_v9: NetV9 = init get_properties_v9 listen connect isend_v8 irecv_v8 END_V9);
table!(ncclNetPlugin_v10: NetV10 = init_v10 get_properties_v9 listen connect_v10 isend_v10 irecv_v10 END_V9);
table!(ncclNetPlugin_v11: NetV11 = init_v11 get_properties_v11 listen_v11 connect_v11 isend_v10 irecv_v10 end_v11());
table!(ncclNetPlugin_v12: NetV12 = init_v11 get_properties_v12 listen_v11 connect_v11 isend_v10 irecv_v10 end_v11());

/// Returns the newest table, for a program that contains this library.
pub fn table() -> &'static NetV12 {
    &ncclNetPlugin_v12
}
