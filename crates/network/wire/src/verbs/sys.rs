//! libibverbs, loaded on first use (rdma-core, ABI `IBVERBS_1.1`), and an open device. All unsafe code of this crate is here.
//! Inline functions of the header (`ibv_poll_cq`, `ibv_post_send`, ...) are called through the table of the open device.

#![allow(unsafe_code)]

use super::abi::{
    AhAttr, Channel, Context, GlobalRoute, Mr, Opaque, PortAttr, Qp, QpAttr, QpCap, QpInitAttr, RecvWr, SendWr, Sge, Wc,
};
use crate::WireError;
use libloading::Library;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
};
use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    io,
    os::fd::BorrowedFd,
    ptr,
    sync::OnceLock,
    time::Duration,
};

const LIBRARY: &str = "libibverbs.so.1";

const RC: c_uint = 2;
const UC: c_uint = 3;
const LOCAL_WRITE: c_int = 1;
const REMOTE_WRITE: c_int = 2;
const SIGNALED: c_uint = 2;
const WRITE: c_uint = 0;
const WRITE_WITH_IMMEDIATE: c_uint = 1;
const SEND: c_uint = 2;
const RECEIVED: c_uint = 1 << 7;
const RECEIVED_IMMEDIATE: c_uint = (1 << 7) + 1;
const ETHERNET: u8 = 2;
const ACTIVE: c_uint = 4;
const PORT: u8 = 1;

const RESET: c_uint = 0;
const INIT: c_uint = 1;
const RTR: c_uint = 2;
const RTS: c_uint = 3;
const SQD: c_uint = 4;

mod mask {
    use super::c_int;

    pub(super) const STATE: c_int = 1;
    pub(super) const ACCESS_FLAGS: c_int = 1 << 3;
    pub(super) const PKEY_INDEX: c_int = 1 << 4;
    pub(super) const PORT: c_int = 1 << 5;
    pub(super) const AV: c_int = 1 << 7;
    pub(super) const PATH_MTU: c_int = 1 << 8;
    pub(super) const TIMEOUT: c_int = 1 << 9;
    pub(super) const RETRY_CNT: c_int = 1 << 10;
    pub(super) const RNR_RETRY: c_int = 1 << 11;
    pub(super) const RQ_PSN: c_int = 1 << 12;
    pub(super) const MAX_QP_RD_ATOMIC: c_int = 1 << 13;
    pub(super) const MIN_RNR_TIMER: c_int = 1 << 15;
    pub(super) const SQ_PSN: c_int = 1 << 16;
    pub(super) const MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
    pub(super) const DEST_QPN: c_int = 1 << 20;
}

macro_rules! functions {
    ($($name:ident: $type:ty,)*) => {
        /// By their names without `ibv_`.
        struct Functions {
            $($name: $type,)*
            /// Stays loaded while its functions are used.
            _library: Library,
        }

        impl Functions {
            /// # Safety
            /// The signatures are those of the library's header.
            unsafe fn of(library: Library) -> Result<Self, libloading::Error> {
                $(
                    // SAFETY: the caller's.
                    let $name = *unsafe { library.get::<$type>(concat!("ibv_", stringify!($name), "\0").as_bytes()) }?;
                )*
                Ok(Functions { $($name,)* _library: library })
            }
        }
    };
}

functions! {
    get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut Opaque,
    free_device_list: unsafe extern "C" fn(*mut *mut Opaque),
    get_device_name: unsafe extern "C" fn(*mut Opaque) -> *const c_char,
    open_device: unsafe extern "C" fn(*mut Opaque) -> *mut Context,
    close_device: unsafe extern "C" fn(*mut Context) -> c_int,
    query_port: unsafe extern "C" fn(*mut Context, u8, *mut PortAttr) -> c_int,
    query_gid: unsafe extern "C" fn(*mut Context, u8, c_int, *mut [u64; 2]) -> c_int,
    alloc_pd: unsafe extern "C" fn(*mut Context) -> *mut Opaque,
    dealloc_pd: unsafe extern "C" fn(*mut Opaque) -> c_int,
    reg_mr: unsafe extern "C" fn(*mut Opaque, *mut c_void, usize, c_int) -> *mut Mr,
    dereg_mr: unsafe extern "C" fn(*mut Mr) -> c_int,
    create_comp_channel: unsafe extern "C" fn(*mut Context) -> *mut Channel,
    destroy_comp_channel: unsafe extern "C" fn(*mut Channel) -> c_int,
    create_cq: unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut Channel, c_int) -> *mut Opaque,
    destroy_cq: unsafe extern "C" fn(*mut Opaque) -> c_int,
    get_cq_event: unsafe extern "C" fn(*mut Channel, *mut *mut Opaque, *mut *mut c_void) -> c_int,
    ack_cq_events: unsafe extern "C" fn(*mut Opaque, c_uint),
    create_qp: unsafe extern "C" fn(*mut Opaque, *mut QpInitAttr) -> *mut Qp,
    modify_qp: unsafe extern "C" fn(*mut Qp, *mut QpAttr, c_int) -> c_int,
    destroy_qp: unsafe extern "C" fn(*mut Qp) -> c_int,
    wc_status_str: unsafe extern "C" fn(c_uint) -> *const c_char,
}

fn failed(what: impl Into<String>, source: io::Error) -> WireError {
    WireError::System { what: what.into(), source }
}

fn check(what: &str, returned: c_int) -> Result<(), WireError> {
    match returned {
        0 => Ok(()),
        number => Err(failed(what, io::Error::from_raw_os_error(number.abs()))),
    }
}

fn there<T>(what: &str, returned: *mut T) -> Result<*mut T, WireError> {
    if returned.is_null() { Err(failed(what, io::Error::last_os_error())) } else { Ok(returned) }
}

/// Never unloaded: its drivers may have threads of their own.
static LOADED: OnceLock<Functions> = OnceLock::new();

impl Functions {
    fn load() -> Result<&'static Self, WireError> {
        if let Some(functions) = LOADED.get() {
            return Ok(functions);
        }
        // SAFETY: loading libibverbs has no harmful effects, and the signatures are those of its header.
        let loaded = || unsafe { Functions::of(Library::new(LIBRARY)?) };
        let functions = loaded().map_err(|error| {
            WireError::Verbs(format!(
                "RDMA verbs need {LIBRARY} (Debian packages libibverbs1 and ibverbs-providers): {error}"
            ))
        })?;
        Ok(LOADED.get_or_init(|| functions))
    }
}

const MLX5: &str = "libmlx5.so.1";

/// NVIDIA's driver can change the source port of a connected queue pair, regardless of outstanding requests.
struct Mlx5 {
    is_supported: unsafe extern "C" fn(*mut Opaque) -> bool,
    modify_qp_udp_sport: unsafe extern "C" fn(*mut Qp, u16) -> c_int,
    _library: Library,
}

static LOADED_MLX5: OnceLock<Option<Mlx5>> = OnceLock::new();

impl Mlx5 {
    /// `None`: not installed, or older than rdma-core 34.
    fn load() -> Option<&'static Self> {
        // SAFETY: libibverbs loads it as well, and the signatures are those of its header `infiniband/mlx5dv.h`.
        let loaded = || unsafe {
            let library = Library::new(MLX5)?;
            Ok::<_, libloading::Error>(Mlx5 {
                is_supported: *library.get(b"mlx5dv_is_supported\0")?,
                modify_qp_udp_sport: *library.get(b"mlx5dv_modify_qp_udp_sport\0")?,
                _library: library,
            })
        };
        LOADED_MLX5.get_or_init(|| loaded().ok()).as_ref()
    }
}

/// Calls `body` with each device and its name until it returns a value.
fn find_device<T>(functions: &Functions, mut body: impl FnMut(*mut Opaque, &CStr) -> Option<T>) -> Option<T> {
    // SAFETY: the list is read up to its null, and freed once.
    unsafe {
        let list = (functions.get_device_list)(ptr::null_mut());
        if list.is_null() {
            return None;
        }
        let mut all = (0..).map(|at| *list.add(at)).take_while(|device| !device.is_null());
        let found = all.find_map(|device| body(device, CStr::from_ptr((functions.get_device_name)(device))));
        (functions.free_device_list)(list);
        found
    }
}

pub(super) fn devices() -> Result<Vec<String>, WireError> {
    let mut names = Vec::new();
    find_device(Functions::load()?, |_, name| {
        names.push(name.to_string_lossy().into_owned());
        None::<()>
    });
    Ok(names)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressVector {
    /// Of the peer, in network order.
    pub(super) gid: [u8; 16],
    /// 20 bits, from which the hardware derives the source port.
    pub(super) flow_label: u32,
    pub(super) class: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) qpn: u32,
    pub(super) psn: u32,
    /// In the encoding of verbs: 1 for 256 B to 5 for 4096 B.
    pub(super) mtu: u8,
    pub(super) address: AddressVector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// RC: hardware acknowledges writes and retransmits losses. The timeout is 4.096 us times two to the power of this.
    Reliable { timeout: u8, retries: u8 },
    /// UC: messages without acknowledgement.
    Unreliable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Post {
    /// RDMA write to an address of the peer, with the remote key and optional immediate data.
    Write { to: u64, key: u32, notice: Option<u32> },
    /// Requires a posted receive at the peer.
    Message,
}

/// Bit in the numbers of receives that have memory.
const RECEIVE: u64 = 1 << 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkCompletion {
    /// The operation completed, or failed with this error number.
    Sent { qpn: u32, number: u64, error: Option<u32> },
    /// A write with a notice has arrived.
    Arrived { qpn: u32, notice: u32 },
    /// In the memory of the receive of this number.
    Received { qpn: u32, number: u64, bytes: u32 },
    /// The queue pair of a receive was reset or has failed.
    Withdrawn,
}

/// Memory of hardware, on pages that a forked process does not inherit, so that both keep using the same pages.
struct Memory {
    at: *mut u8,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Result<Self, WireError> {
        let refused = |error: rustix::io::Errno| failed(format!("{bytes} B of memory"), error.into());
        let bytes = bytes.max(1);
        // SAFETY: new pages without other references, unmapped once.
        unsafe {
            let at = mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
                .map_err(refused)?;
            let memory = Memory { at: at.cast(), bytes };
            #[cfg(target_os = "linux")]
            rustix::mm::madvise(at, bytes, rustix::mm::Advice::LinuxDontFork).map_err(refused)?;
            Ok(memory)
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no longer registered: a device drops its registration first. Pages that cannot be
        // unmapped remain until the process ends.
        let _ = unsafe { munmap(self.at.cast(), self.bytes) };
    }
}

/// Its queue pairs are identified by index.
pub(super) struct Device {
    functions: &'static Functions,
    context: *mut Context,
    pd: *mut Opaque,
    channel: *mut Channel,
    cq: *mut Opaque,
    mr: *mut Mr,
    queues: Vec<*mut Qp>,
    memory: Memory,
    gid_index: u8,
    service: Service,
    mlx5: Option<&'static Mlx5>,
}

// SAFETY: libibverbs lets any thread use objects of another, and the owner has exclusive access to the device.
unsafe impl Send for Device {}

impl Device {
    pub(super) fn open(
        name: &str,
        gid_index: u8,
        memory: usize,
        completions: u32,
        service: Service,
    ) -> Result<Self, WireError> {
        let (functions, memory) = (Functions::load()?, Memory::new(memory)?);
        // If a step fails, `drop` releases the objects created so far.
        let mut device = Device {
            functions,
            context: ptr::null_mut(),
            pd: ptr::null_mut(),
            channel: ptr::null_mut(),
            cq: ptr::null_mut(),
            mr: ptr::null_mut(),
            queues: Vec::new(),
            memory,
            gid_index,
            service,
            mlx5: None,
        };
        let f = functions;
        // SAFETY: each pointer is checked before it is used.
        unsafe {
            let what = format!("opening the RDMA device {name}");
            let opened = find_device(f, |found, of| {
                (of.to_bytes() == name.as_bytes()).then(|| there(&what, (f.open_device)(found)))
            });
            device.context = opened.unwrap_or_else(|| there(&what, ptr::null_mut()))?;
            device.mlx5 = Mlx5::load().filter(|mlx5| (mlx5.is_supported)((*device.context).device));
            device.pd = there("a protection domain", (f.alloc_pd)(device.context))?;
            device.channel = there("a completion channel", (f.create_comp_channel)(device.context))?;
            let depth = c_int::try_from(completions).unwrap_or(c_int::MAX);
            let cq = (f.create_cq)(device.context, depth, ptr::null_mut(), device.channel, 0);
            device.cq = there(&format!("a completion queue of {depth}"), cq)?;
            let (at, bytes) = (device.memory.at.cast(), device.memory.bytes);
            let mr = (f.reg_mr)(device.pd, at, bytes, LOCAL_WRITE | device.others_write());
            device.mr = there(&format!("registering {bytes} B (see `ulimit -l`)"), mr)?;
        }
        Ok(device)
    }

    fn others_write(&self) -> c_int {
        if self.service == Service::Unreliable { 0 } else { REMOTE_WRITE }
    }

    /// In the encoding of verbs. Fails unless the port is an active RoCE port.
    pub(super) fn mtu(&self) -> Result<u8, WireError> {
        let mut attr = PortAttr::default();
        // SAFETY: the context is open, and the structure is at least as long as what is written.
        check("asking for the port", unsafe { (self.functions.query_port)(self.context, PORT, &mut attr) })?;
        if attr.link_layer != ETHERNET {
            return Err(WireError::Verbs("port 1 of the device is no Ethernet port: labels need RoCEv2".into()));
        }
        if attr.state != ACTIVE {
            return Err(WireError::Verbs("port 1 of the device is not active: is its network interface up?".into()));
        }
        Ok(attr.active_mtu as u8)
    }

    pub(super) fn gid(&self) -> Result<[u8; 16], WireError> {
        let mut gid = [0u64; 2];
        let index = c_int::from(self.gid_index);
        // SAFETY: the context is open; a GID has 16 bytes.
        let status = unsafe { (self.functions.query_gid)(self.context, PORT, index, &mut gid) };
        if status != 0 {
            return Err(WireError::Verbs(format!("the device has no GID {index}")));
        }
        Ok(std::array::from_fn(|at| gid[at / 8].to_ne_bytes()[at % 8]))
    }

    pub(super) fn window(&self) -> (u64, u32) {
        // SAFETY: an open device has registered its memory.
        (self.memory.at as u64, unsafe { (*self.mr).rkey })
    }

    /// Returns the address of `bytes` bytes from `at` on; panics if they are not within the memory.
    fn place(&self, at: u64, bytes: usize) -> *mut u8 {
        let end = at.checked_add(bytes as u64).filter(|end| *end <= self.memory.bytes as u64);
        assert!(end.is_some(), "{bytes} B from {at} on are not within the memory");
        // SAFETY: within the memory.
        unsafe { self.memory.at.add(at as usize) }
    }

    fn sge(&self, (at, bytes): (u64, u32)) -> Sge {
        // SAFETY: an open device has registered its memory.
        Sge { addr: self.place(at, bytes as usize) as u64, length: bytes, lkey: unsafe { (*self.mr).lkey } }
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        // SAFETY: within the memory, to which no reference exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.place(at, bytes.len()), bytes.len()) }
    }

    /// Concurrent writes of peers may mix old and new bytes.
    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) {
        // SAFETY: within the memory, to which no reference exists.
        unsafe { ptr::copy_nonoverlapping(self.place(at, bytes.len()), bytes.as_mut_ptr(), bytes.len()) }
    }

    pub(super) fn create(&mut self, sends: u32, receives: u32) -> Result<(usize, u32), WireError> {
        let cap =
            QpCap { max_send_wr: sends, max_recv_wr: receives, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
        let mut attr = QpInitAttr {
            qp_context: ptr::null_mut(),
            send_cq: self.cq,
            recv_cq: self.cq,
            srq: ptr::null_mut(),
            cap,
            qp_type: if self.service == Service::Unreliable { UC } else { RC },
            sq_sig_all: 0,
        };
        // SAFETY: the domain and the queue are this device's; the structure is valid.
        let qp = there("a queue pair", unsafe { (self.functions.create_qp)(self.pd, &mut attr) })?;
        self.queues.push(qp);
        // SAFETY: just made.
        Ok((self.queues.len() - 1, unsafe { (*qp).qp_num }))
    }

    fn modify(&self, queue: usize, what: &str, mut attr: QpAttr, mask: c_int) -> Result<(), WireError> {
        // SAFETY: the queue pair is this device's and lives until the device is dropped.
        check(what, unsafe { (self.functions.modify_qp)(self.queues[queue], &mut attr, mask) })
    }

    fn address(&self, address: AddressVector) -> AhAttr {
        let word = |from: usize| u64::from_ne_bytes(std::array::from_fn(|at| address.gid[from + at]));
        let grh = GlobalRoute {
            dgid: [word(0), word(8)],
            flow_label: address.flow_label,
            sgid_index: self.gid_index,
            hop_limit: 64,
            traffic_class: address.class,
        };
        AhAttr { grh, is_global: 1, port_num: PORT, ..AhAttr::default() }
    }

    /// Posted requests are discarded.
    pub(super) fn reset(&self, queue: usize) -> Result<(), WireError> {
        let attr = QpAttr { qp_state: RESET, ..QpAttr::default() };
        self.modify(queue, "a queue pair to RESET", attr, mask::STATE)
    }

    /// From RESET to INIT, in which receives may be posted.
    pub(super) fn initialise(&self, queue: usize) -> Result<(), WireError> {
        let qp_access_flags = self.others_write() as c_uint;
        let attr = QpAttr { qp_state: INIT, port_num: PORT, qp_access_flags, ..QpAttr::default() };
        let set = mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::ACCESS_FLAGS;
        self.modify(queue, "a queue pair to INIT", attr, set)
    }

    /// `psn` is the sequence number of the first packet.
    pub(super) fn connect(&self, queue: usize, remote: &Remote, psn: u32) -> Result<(), WireError> {
        let mut receiving = QpAttr {
            qp_state: RTR,
            path_mtu: c_uint::from(remote.mtu),
            dest_qp_num: remote.qpn,
            rq_psn: remote.psn,
            ah_attr: self.address(remote.address),
            ..QpAttr::default()
        };
        let mut sending = QpAttr { qp_state: RTS, sq_psn: psn, ..QpAttr::default() };
        let mut set =
            (mask::STATE | mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN, mask::STATE | mask::SQ_PSN);
        if let Service::Reliable { timeout, retries } = self.service {
            (receiving.max_dest_rd_atomic, receiving.min_rnr_timer) = (1, 12);
            (sending.timeout, sending.retry_cnt) = (timeout, retries);
            (sending.rnr_retry, sending.max_rd_atomic) = (7, 1);
            set.0 |= mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER;
            set.1 |= mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC;
        }
        self.modify(queue, "a queue pair to RTR", receiving, set.0)?;
        self.modify(queue, "a queue pair to RTS", sending, set.1)
    }

    /// Nothing may be outstanding. Changes the source port if driver and hardware support it, else takes RTS, SQD,
    /// address vector, RTS.
    pub(super) fn redirect(&self, queue: usize, address: AddressVector) -> Result<(), WireError> {
        if let Some(mlx5) = self.mlx5 {
            let port = super::source_port(address.flow_label);
            // SAFETY: the queue pair is this device's, which is one of that driver.
            let status = unsafe { (mlx5.modify_qp_udp_sport)(self.queues[queue], port) };
            if status == 0 {
                return Ok(());
            }
        }
        let to = |qp_state| QpAttr { qp_state, ..QpAttr::default() };
        self.modify(queue, "a queue pair to SQD", to(SQD), mask::STATE)?;
        let attr = QpAttr { ah_attr: self.address(address), ..to(SQD) };
        let moved = self.modify(queue, "a queue pair's address vector", attr, mask::STATE | mask::AV);
        self.modify(queue, "a queue pair back to RTS", to(RTS), mask::STATE)?;
        moved
    }

    /// Posts a range of own memory; `None`: the queue is full. The number is not 0 and does not have the bit of receives.
    pub(super) fn post(&mut self, queue: usize, number: u64, range: (u64, u32), what: Post) -> Option<()> {
        let (opcode, (remote_addr, rkey, notice)) = match what {
            Post::Write { to, key, notice: None } => (WRITE, (to, key, 0)),
            Post::Write { to, key, notice: Some(notice) } => (WRITE_WITH_IMMEDIATE, (to, key, notice)),
            Post::Message => (SEND, (0, 0, 0)),
        };
        // SAFETY: the memory is registered and within bounds, the lists live until the call returns, and the library copies them.
        unsafe {
            let mut sge = self.sge(range);
            let mut wr = SendWr {
                wr_id: number,
                next: ptr::null_mut(),
                sg_list: &mut sge,
                num_sge: 1,
                opcode,
                send_flags: SIGNALED,
                imm_data: notice.to_be(),
                remote_addr,
                rkey,
                rest: [0; 9],
            };
            let mut bad = ptr::null_mut();
            let status = ((*self.context).ops.post_send)(self.queues[queue], &mut wr, &mut bad);
            (status == 0).then_some(())
        }
    }

    /// Posts a receive with a number and a range of own memory for a message, or with none for a write with a notice.
    pub(super) fn post_receive(&mut self, queue: usize, message: Option<(u64, (u64, u32))>) -> Result<(), WireError> {
        let (number, range) = message.map_or((0, (0, 0)), |(number, range)| (RECEIVE | number, range));
        let mut sge = self.sge(range);
        let num_sge = c_int::from(message.is_some());
        let mut wr = RecvWr { wr_id: number, next: ptr::null_mut(), sg_list: &mut sge, num_sge };
        let mut bad = ptr::null_mut();
        // SAFETY: the memory is registered and within bounds, the lists live until the call returns, and the library copies them.
        check("a receive", unsafe { ((*self.context).ops.post_recv)(self.queues[queue], &mut wr, &mut bad) })
    }

    pub(super) fn poll(&mut self, take: &mut dyn FnMut(WorkCompletion)) -> Result<(), WireError> {
        loop {
            let mut completed = [Wc::default(); 32];
            let max = completed.len() as c_int;
            // SAFETY: the array has as many entries as the call requests.
            let found = unsafe { ((*self.context).ops.poll_cq)(self.cq, max, completed.as_mut_ptr()) };
            let found = usize::try_from(found)
                .map_err(|_| failed("polling the completion queue", io::Error::from_raw_os_error(-found)))?;
            for wc in &completed[..found] {
                let error = (wc.status != 0).then_some(wc.status);
                // A failed one names no operation; receives have the number 0 or their bit, posted operations neither.
                take(match (error, wc.wr_id) {
                    (None, 0) if wc.opcode == RECEIVED_IMMEDIATE => {
                        WorkCompletion::Arrived { qpn: wc.qp_num, notice: u32::from_be(wc.imm_data) }
                    }
                    (None, number) if number & RECEIVE != 0 && wc.opcode == RECEIVED => {
                        WorkCompletion::Received { qpn: wc.qp_num, number: number ^ RECEIVE, bytes: wc.byte_len }
                    }
                    (_, number) if number == 0 || number & RECEIVE != 0 => WorkCompletion::Withdrawn,
                    (error, number) => WorkCompletion::Sent { qpn: wc.qp_num, number, error },
                });
            }
            if found < completed.len() {
                return Ok(());
            }
        }
    }

    pub(super) fn arm(&self) -> Result<(), WireError> {
        // SAFETY: the queue is this device's.
        check("arming the completion queue", unsafe { ((*self.context).ops.req_notify_cq)(self.cq, 0) })
    }

    fn take_event(&self) {
        let (mut cq, mut unused) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: there is an event, so this does not block; each is acknowledged once.
        unsafe {
            if (self.functions.get_cq_event)(self.channel, &mut cq, &mut unused) == 0 {
                (self.functions.ack_cq_events)(cq, 1);
            }
        }
    }

    pub(super) fn meaning(&self, error: u32) -> String {
        // SAFETY: the library returns a constant text, for unknown numbers too.
        unsafe { CStr::from_ptr((self.functions.wc_status_str)(error)).to_string_lossy().into_owned() }
    }
}

/// Also returns when one of `calling` is connected.
pub(super) fn wait(
    devices: &[&Device],
    sockets: &[BorrowedFd<'_>],
    calling: &[BorrowedFd<'_>],
    timeout: Duration,
) -> Result<(), WireError> {
    // SAFETY: channels are open as long as their devices.
    let channels: Vec<_> =
        devices.iter().map(|device| unsafe { BorrowedFd::borrow_raw((*device.channel).fd) }).collect();
    let mut fds: Vec<PollFd<'_>> = channels.iter().chain(sockets).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    fds.extend(calling.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)));
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(failed("waiting for completions", error.into())),
    }
    devices
        .iter()
        .zip(&fds)
        .filter(|(_, fd)| fd.revents().contains(PollFlags::IN))
        .for_each(|(device, _)| device.take_event());
    Ok(())
}

impl Drop for Device {
    fn drop(&mut self) {
        let f = self.functions;
        // SAFETY: each object is released once, dependent objects first. Objects that cannot be released stay with the kernel
        // until the process ends.
        unsafe {
            for qp in self.queues.drain(..) {
                (f.destroy_qp)(qp);
            }
            if !self.mr.is_null() {
                (f.dereg_mr)(self.mr);
            }
            if !self.cq.is_null() {
                (f.destroy_cq)(self.cq);
            }
            if !self.channel.is_null() {
                (f.destroy_comp_channel)(self.channel);
            }
            if !self.pd.is_null() {
                (f.dealloc_pd)(self.pd);
            }
            if !self.context.is_null() {
                (f.close_device)(self.context);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_and_read_within_bounds() {
        let memory = Memory::new(10_000).unwrap();
        assert_eq!((memory.at as usize % 4096, memory.bytes), (0, 10_000));
        assert!(Memory::new(usize::MAX).is_err());
    }

    /// Otherwise a fork would leave hardware with pages that this process no longer uses once it writes to them.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_is_forked_has_no_part_in_the_memory() {
        let memory = Memory::new(100_000).unwrap();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let address = memory.at as usize;
        let mut within = false;
        let flags = maps.lines().find(|line| {
            if let Some((from, to)) = line.split_once(' ').and_then(|(range, _)| range.split_once('-')) {
                let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
                within = (number(from)..number(to)).contains(&address);
            }
            within && line.starts_with("VmFlags:")
        });
        // `dc`: do not copy area on fork (Documentation/filesystems/proc.rst).
        assert!(flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "dc")), "{flags:?}");
    }
}
