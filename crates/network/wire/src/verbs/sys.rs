//! An open device (rdma-core, ABI `IBVERBS_1.1`). All unsafe code of this crate is here and in `library`.
//! Inline functions of the header (`ibv_poll_cq`, `ibv_post_send`, ...) are called through the table of the open device.

#![allow(unsafe_code)]

use super::{
    VerbsSettings,
    abi::{
        AhAttr, Channel, Context, GlobalRoute, Mr, Opaque, PortAttr, Qp, QpAttr, QpCap, QpInitAttr, RecvWr, SendWr,
        Sge, Wc,
    },
    library::{Functions, Mlx5, find_device},
};
use crate::{Region, WireError};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
};
use std::{
    ffi::{CStr, c_int, c_uint, c_void},
    io,
    os::fd::BorrowedFd,
    ptr,
    sync::Arc,
    time::Duration,
};

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
const ERR: c_uint = 6;

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
pub(super) enum Post {
    /// RDMA write to an address of the peer, with the remote key and optional immediate data, which takes a receive.
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
    /// A write with a notice has arrived, and taken the receive of this number.
    Arrived { qpn: u32, number: u64, notice: u32, bytes: u32 },
    /// In the memory of the receive of this number.
    Received { qpn: u32, number: u64, bytes: u32 },
    /// The queue pair of the receive of this number has failed.
    Withdrawn { qpn: u32, number: u64 },
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

/// An open device with its protection domain.
pub(super) struct Domain {
    functions: &'static Functions,
    context: *mut Context,
    pd: *mut Opaque,
    mlx5: Option<&'static Mlx5>,
}

// SAFETY: libibverbs lets any thread use objects of another, also at the same time.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    pub(super) fn open(name: &str) -> Result<Arc<Self>, WireError> {
        let functions = Functions::load()?;
        // If a step fails, `drop` releases the objects created so far.
        let mut domain = Domain { functions, context: ptr::null_mut(), pd: ptr::null_mut(), mlx5: None };
        // SAFETY: each pointer is checked before it is used.
        unsafe {
            let what = format!("opening the RDMA device {name}");
            let opened = find_device(functions, |found, of| {
                (of.to_bytes() == name.as_bytes()).then(|| there(&what, (functions.open_device)(found)))
            });
            domain.context = opened.unwrap_or_else(|| there(&what, ptr::null_mut()))?;
            domain.mlx5 = Mlx5::load().filter(|mlx5| (mlx5.is_supported)((*domain.context).device));
            domain.pd = there("a protection domain", (functions.alloc_pd)(domain.context))?;
        }
        Ok(Arc::new(domain))
    }

    /// Peers may write to the region if `is_open`.
    pub(super) fn register(self: &Arc<Self>, region: Region, is_open: bool) -> Result<Registration, WireError> {
        let (at, bytes) = (region.at as *mut c_void, region.bytes as usize);
        let access = if is_open { LOCAL_WRITE | REMOTE_WRITE } else { LOCAL_WRITE };
        // SAFETY: the domain is open, and the memory is that of a region.
        let mr = unsafe { (self.functions.reg_mr)(self.pd, at, bytes, access) };
        let mr = there(&format!("registering {bytes} B (see `ulimit -l`)"), mr)?;
        Ok(Registration { domain: Arc::clone(self), mr })
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

    pub(super) fn gid(&self, index: u8) -> Result<[u8; 16], WireError> {
        let mut gid = [0u64; 2];
        let index = c_int::from(index);
        // SAFETY: the context is open; a GID has 16 bytes.
        let status = unsafe { (self.functions.query_gid)(self.context, PORT, index, &mut gid) };
        if status != 0 {
            return Err(WireError::Verbs(format!("the device has no GID {index}")));
        }
        Ok(std::array::from_fn(|at| gid[at / 8].to_ne_bytes()[at % 8]))
    }

    pub(super) fn meaning(&self, error: u32) -> String {
        // SAFETY: the library returns a constant text, for unknown numbers too.
        unsafe { CStr::from_ptr((self.functions.wc_status_str)(error)).to_string_lossy().into_owned() }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let f = self.functions;
        // SAFETY: nothing depends on them any more: registrations and devices hold the domain.
        unsafe {
            if !self.pd.is_null() {
                (f.dealloc_pd)(self.pd);
            }
            if !self.context.is_null() {
                (f.close_device)(self.context);
            }
        }
    }
}

/// Registered memory, until it is dropped.
pub(super) struct Registration {
    domain: Arc<Domain>,
    mr: *mut Mr,
}

// SAFETY: as for a domain.
unsafe impl Send for Registration {}

impl Registration {
    /// Returns the keys of own operations and those of peers.
    pub(super) fn keys(&self) -> (u32, u32) {
        // SAFETY: a registration lives until it is dropped.
        unsafe { ((*self.mr).lkey, (*self.mr).rkey) }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: it is released once.
        unsafe { (self.domain.functions.dereg_mr)(self.mr) };
    }
}

/// Queue pairs of a device, by index, and their memory; tests have a model of it.
pub(super) trait QueuePairs {
    /// Returns address and key by which peers reach a place in the memory.
    fn window(&self, at: u64) -> (u64, u32);
    fn write(&mut self, at: u64, bytes: &[u8]);
    /// Concurrent writes of peers may mix old and new bytes.
    fn read(&self, at: u64, bytes: &mut [u8]);
    fn destroy_queues(&mut self);
    /// Posted requests complete with an error, and nothing is received any more.
    fn fail(&self, queue: usize) -> Result<(), WireError>;
    /// Posted requests are discarded.
    fn reset(&self, queue: usize) -> Result<(), WireError>;
    /// From RESET to INIT, in which receives may be posted.
    fn initialise(&self, queue: usize) -> Result<(), WireError>;
    /// `psn` is the sequence number of the first packet.
    fn connect(&self, queue: usize, remote: &Remote, psn: u32) -> Result<(), WireError>;
    /// Nothing may be outstanding. Changes the source port if driver and hardware support it, else takes RTS, SQD,
    /// address vector, RTS.
    fn redirect(&self, queue: usize, address: AddressVector) -> Result<(), WireError>;
    /// Posts a range of own memory; `None`: the queue is full. The number is not 0 and does not have the bit of receives.
    fn post(&mut self, queue: usize, number: u64, range: (u64, u32), what: Post) -> Option<()>;
    /// Does the same with bytes of registered memory of the owner.
    fn post_bytes(&mut self, queue: usize, number: u64, bytes: &[u8], key: u32, what: Post) -> Option<()>;
    /// Posts a receive with a number and a range of own memory.
    fn post_receive(&mut self, queue: usize, number: u64, range: (u64, u32)) -> Result<(), WireError>;
    fn poll(&mut self, take: &mut dyn FnMut(WorkCompletion)) -> Result<(), WireError>;
    /// Returns the GID of an index.
    fn gid(&self, index: u8) -> Result<[u8; 16], WireError>;
    /// Sets the index of the GID of queue pairs that are connected from now on.
    fn use_gid(&mut self, index: u8);
}

/// Its queue pairs are identified by index, and share a completion queue and memory.
pub(super) struct Device {
    pub(super) domain: Arc<Domain>,
    channel: *mut Channel,
    cq: *mut Opaque,
    queues: Vec<*mut Qp>,
    /// `None` before it is registered, and as the device is dropped.
    registered: Option<Registration>,
    memory: Memory,
    gid_index: u8,
    service_level: u8,
    /// Timeout and retransmissions of reliable queue pairs; `None`: unreliable ones.
    reliable: Option<(u8, u8)>,
}

// SAFETY: libibverbs lets any thread use objects of another, and the owner has exclusive access to the device.
unsafe impl Send for Device {}

impl Device {
    pub(super) fn new(
        domain: &Arc<Domain>,
        gid_index: u8,
        memory: usize,
        completions: u32,
        settings: &VerbsSettings,
    ) -> Result<Self, WireError> {
        // If a step fails, `drop` releases the objects created so far.
        let mut device = Device {
            domain: Arc::clone(domain),
            channel: ptr::null_mut(),
            cq: ptr::null_mut(),
            queues: Vec::new(),
            registered: None,
            memory: Memory::new(memory)?,
            gid_index,
            service_level: settings.service_level,
            reliable: settings.reliable(),
        };
        let f = domain.functions;
        // SAFETY: each pointer is checked before it is used.
        unsafe {
            device.channel = there("a completion channel", (f.create_comp_channel)(domain.context))?;
            let depth = c_int::try_from(completions).unwrap_or(c_int::MAX);
            let cq = (f.create_cq)(domain.context, depth, ptr::null_mut(), device.channel, 0);
            device.cq = there(&format!("a completion queue of {depth}"), cq)?;
        }
        let region = Region { at: device.memory.at as u64, bytes: device.memory.bytes as u64 };
        device.registered = Some(domain.register(region, settings.is_reliable)?);
        Ok(device)
    }

    fn others_write(&self) -> c_int {
        if self.reliable.is_none() { 0 } else { REMOTE_WRITE }
    }

    fn keys(&self) -> (u32, u32) {
        self.registered.as_ref().map_or((0, 0), Registration::keys)
    }

    /// Returns the address of `bytes` bytes from `at` on; panics if they are not within the memory.
    fn place(&self, at: u64, bytes: usize) -> *mut u8 {
        let end = at.checked_add(bytes as u64).filter(|end| *end <= self.memory.bytes as u64);
        assert!(end.is_some(), "{bytes} B from {at} on are not within the memory");
        // SAFETY: within the memory.
        unsafe { self.memory.at.add(at as usize) }
    }

    fn sge(&self, (at, bytes): (u64, u32)) -> Sge {
        Sge { addr: self.place(at, bytes as usize) as u64, length: bytes, lkey: self.keys().0 }
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
            qp_type: if self.reliable.is_none() { UC } else { RC },
            sq_sig_all: 0,
        };
        // SAFETY: the domain and the queue are this device's; the structure is valid.
        let qp = there("a queue pair", unsafe { (self.domain.functions.create_qp)(self.domain.pd, &mut attr) })?;
        self.queues.push(qp);
        // SAFETY: just made.
        Ok((self.queues.len() - 1, unsafe { (*qp).qp_num }))
    }

    fn modify(&self, queue: usize, what: &str, mut attr: QpAttr, mask: c_int) -> Result<(), WireError> {
        // SAFETY: the queue pair is this device's and lives until the device is dropped.
        check(what, unsafe { (self.domain.functions.modify_qp)(self.queues[queue], &mut attr, mask) })
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
        AhAttr { grh, service_level: self.service_level, is_global: 1, port_num: PORT, ..AhAttr::default() }
    }

    fn post_sge(&mut self, queue: usize, number: u64, mut sge: Sge, what: Post) -> Option<()> {
        let (opcode, (remote_addr, rkey, notice)) = match what {
            Post::Write { to, key, notice: None } => (WRITE, (to, key, 0)),
            Post::Write { to, key, notice: Some(notice) } => (WRITE_WITH_IMMEDIATE, (to, key, notice)),
            Post::Message => (SEND, (0, 0, 0)),
        };
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
        // SAFETY: hardware checks the key, whose memory is registered; the lists live until the call returns, and the library
        // copies them.
        let status = unsafe { ((*self.domain.context).ops.post_send)(self.queues[queue], &mut wr, &mut bad) };
        (status == 0).then_some(())
    }

    pub(super) fn arm(&self) -> Result<(), WireError> {
        // SAFETY: the queue is this device's.
        check("arming the completion queue", unsafe { ((*self.domain.context).ops.req_notify_cq)(self.cq, 0) })
    }

    fn take_event(&self) {
        let (mut cq, mut unused) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: there is an event, so this does not block; each is acknowledged once.
        unsafe {
            if (self.domain.functions.get_cq_event)(self.channel, &mut cq, &mut unused) == 0 {
                (self.domain.functions.ack_cq_events)(cq, 1);
            }
        }
    }
}

impl QueuePairs for Device {
    fn window(&self, at: u64) -> (u64, u32) {
        (self.place(at, 0) as u64, self.keys().1)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        // SAFETY: within the memory, to which no reference exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.place(at, bytes.len()), bytes.len()) }
    }

    fn read(&self, at: u64, bytes: &mut [u8]) {
        // SAFETY: within the memory, to which no reference exists.
        unsafe { ptr::copy_nonoverlapping(self.place(at, bytes.len()), bytes.as_mut_ptr(), bytes.len()) }
    }

    fn destroy_queues(&mut self) {
        for qp in self.queues.drain(..) {
            // SAFETY: each is released once.
            unsafe { (self.domain.functions.destroy_qp)(qp) };
        }
    }

    fn fail(&self, queue: usize) -> Result<(), WireError> {
        let attr = QpAttr { qp_state: ERR, ..QpAttr::default() };
        self.modify(queue, "a queue pair to ERR", attr, mask::STATE)
    }

    fn reset(&self, queue: usize) -> Result<(), WireError> {
        let attr = QpAttr { qp_state: RESET, ..QpAttr::default() };
        self.modify(queue, "a queue pair to RESET", attr, mask::STATE)
    }

    fn initialise(&self, queue: usize) -> Result<(), WireError> {
        let qp_access_flags = self.others_write() as c_uint;
        let attr = QpAttr { qp_state: INIT, port_num: PORT, qp_access_flags, ..QpAttr::default() };
        let set = mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::ACCESS_FLAGS;
        self.modify(queue, "a queue pair to INIT", attr, set)
    }

    fn connect(&self, queue: usize, remote: &Remote, psn: u32) -> Result<(), WireError> {
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
        if let Some((timeout, retries)) = self.reliable {
            (receiving.max_dest_rd_atomic, receiving.min_rnr_timer) = (1, 12);
            (sending.timeout, sending.retry_cnt) = (timeout, retries);
            (sending.rnr_retry, sending.max_rd_atomic) = (7, 1);
            set.0 |= mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER;
            set.1 |= mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC;
        }
        self.modify(queue, "a queue pair to RTR", receiving, set.0)?;
        self.modify(queue, "a queue pair to RTS", sending, set.1)
    }

    fn redirect(&self, queue: usize, address: AddressVector) -> Result<(), WireError> {
        if let Some(mlx5) = self.domain.mlx5 {
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

    fn post(&mut self, queue: usize, number: u64, range: (u64, u32), what: Post) -> Option<()> {
        let sge = self.sge(range);
        self.post_sge(queue, number, sge, what)
    }

    fn post_bytes(&mut self, queue: usize, number: u64, bytes: &[u8], key: u32, what: Post) -> Option<()> {
        let sge = Sge { addr: bytes.as_ptr() as u64, length: bytes.len() as u32, lkey: key };
        self.post_sge(queue, number, sge, what)
    }

    fn post_receive(&mut self, queue: usize, number: u64, range: (u64, u32)) -> Result<(), WireError> {
        let mut sge = self.sge(range);
        let mut wr = RecvWr { wr_id: RECEIVE | number, next: ptr::null_mut(), sg_list: &mut sge, num_sge: 1 };
        let mut bad = ptr::null_mut();
        // SAFETY: the memory is registered and within bounds, the lists live until the call returns, and the library copies them.
        check("a receive", unsafe { ((*self.domain.context).ops.post_recv)(self.queues[queue], &mut wr, &mut bad) })
    }

    fn poll(&mut self, take: &mut dyn FnMut(WorkCompletion)) -> Result<(), WireError> {
        loop {
            let mut completed = [Wc::default(); 32];
            let max = completed.len() as c_int;
            // SAFETY: the array has as many entries as the call requests.
            let found = unsafe { ((*self.domain.context).ops.poll_cq)(self.cq, max, completed.as_mut_ptr()) };
            let found = usize::try_from(found)
                .map_err(|_| failed("polling the completion queue", io::Error::from_raw_os_error(-found)))?;
            for wc in &completed[..found] {
                let (qpn, bytes) = (wc.qp_num, wc.byte_len);
                let error = (wc.status != 0).then_some(wc.status);
                // A failed one names no operation; receives have their bit.
                let number = wc.wr_id & !RECEIVE;
                take(match (wc.wr_id & RECEIVE != 0, error) {
                    (false, error) => WorkCompletion::Sent { qpn, number, error },
                    (true, None) if wc.opcode == RECEIVED_IMMEDIATE => {
                        WorkCompletion::Arrived { qpn, number, notice: u32::from_be(wc.imm_data), bytes }
                    }
                    (true, None) if wc.opcode == RECEIVED => WorkCompletion::Received { qpn, number, bytes },
                    (true, _) => WorkCompletion::Withdrawn { qpn, number },
                });
            }
            if found < completed.len() {
                return Ok(());
            }
        }
    }

    fn gid(&self, index: u8) -> Result<[u8; 16], WireError> {
        self.domain.gid(index)
    }

    fn use_gid(&mut self, index: u8) {
        self.gid_index = index;
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
        self.destroy_queues();
        self.registered = None;
        let f = self.domain.functions;
        // SAFETY: each object is released once, dependent objects first. Objects that cannot be released stay with the kernel
        // until the process ends.
        unsafe {
            if !self.cq.is_null() {
                (f.destroy_cq)(self.cq);
            }
            if !self.channel.is_null() {
                (f.destroy_comp_channel)(self.channel);
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
