//! A plugin for NCCL in the manner of its own socket transport: plain TCP, version 8, a connection per communicator. The
//! suite's tests run on it, and on variants with a bug: `SOCKET_NET_BREAK` is `last-byte`, `early`, `tags`, `close` or `crash`. It shares no
//! code with our plugin, so that an error in the types of the tables cannot hide.

#![allow(unsafe_code, non_upper_case_globals)]

use std::{
    collections::VecDeque,
    ffi::{c_int, c_void},
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    ptr,
};

const SUCCESS: c_int = 0;
const SYSTEM: c_int = 2;
const INTERNAL: c_int = 3;
const USAGE: c_int = 5;
const REMOTE: c_int = 6;
const GROUP: usize = 8;
const MAGIC: u64 = 0x736f_636b_6574_5f6e;
/// Size and tag before the bytes of a message.
const HEADER: usize = 12;

type Pointer = *mut c_void;
type Out = *mut Pointer;

fn is_broken(how: &str) -> bool {
    std::env::var("SOCKET_NET_BREAK").is_ok_and(|of| of == how)
}

/// One end of a connection.
struct Comm {
    stream: TcpStream,
    /// Requests that are not done, oldest first.
    open: VecDeque<*mut Request>,
    /// Header that is being received, and the buffer and place of the message behind it.
    header: ([u8; HEADER], usize),
    part: Option<(usize, usize)>,
}

enum Request {
    Send { comm: *mut Comm, header: [u8; HEADER], data: *const u8, size: usize, sent: usize },
    Receive { comm: *mut Comm, parts: Vec<Part> },
}

struct Part {
    data: *mut u8,
    room: usize,
    tag: c_int,
    /// Bytes of its message; `None`: none has come.
    size: Option<usize>,
    is_done: bool,
}

/// Makes a non-blocking call's wait no bytes.
fn moved(result: std::io::Result<usize>) -> Result<Option<usize>, c_int> {
    match result {
        Ok(moved) => Ok(Some(moved)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => REMOTE,
            _ => SYSTEM,
        }),
    }
}

impl Request {
    fn comm(&self) -> *mut Comm {
        match self {
            Request::Send { comm, .. } | Request::Receive { comm, .. } => *comm,
        }
    }

    fn is_done(&self) -> bool {
        let early = is_broken("early");
        match self {
            Request::Send { size, sent, .. } => *sent == HEADER + size || early && *sent > HEADER,
            Request::Receive { parts, .. } => parts.iter().all(|part| part.is_done || early && part.size.is_some()),
        }
    }
}

impl Comm {
    fn over(stream: TcpStream) -> std::io::Result<Pointer> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let comm = Comm { stream, open: VecDeque::new(), header: ([0; HEADER], 0), part: None };
        Ok(Box::into_raw(Box::new(comm)).cast())
    }

    /// Sends or receives as far as the socket allows.
    unsafe fn work(&mut self) -> Result<(), c_int> {
        while let Some(&request) = self.open.front() {
            // SAFETY: open requests exist.
            let done = match unsafe { &mut *request } {
                Request::Send { header, data, size, sent, .. } => {
                    let bytes = match *sent {
                        0..HEADER => &header[*sent..],
                        // SAFETY: the caller keeps the message.
                        _ => unsafe { std::slice::from_raw_parts(data.add(*sent - HEADER), *size + HEADER - *sent) },
                    };
                    let Some(moved) = moved(self.stream.write(bytes))? else { return Ok(()) };
                    *sent += moved;
                    *sent == HEADER + *size
                }
                Request::Receive { parts, .. } => {
                    let (at, header) = (&mut self.header.1, &mut self.header.0);
                    let buffer = match self.part {
                        None => &mut header[*at..],
                        Some((index, from)) => {
                            let (data, size) = (parts[index].data, parts[index].size.unwrap_or(0));
                            // SAFETY: the caller keeps the buffer, which is large enough.
                            unsafe { std::slice::from_raw_parts_mut(data.add(from), size - from) }
                        }
                    };
                    let Some(moved) = moved(self.stream.read(buffer))? else { return Ok(()) };
                    if moved == 0 && !buffer.is_empty() {
                        return Err(REMOTE);
                    }
                    match &mut self.part {
                        Some((_, from)) => *from += moved,
                        None => *at += moved,
                    }
                    if self.part.is_none() && *at == HEADER {
                        *at = 0;
                        let size = usize::from_le_bytes(header[..8].try_into().map_err(|_| INTERNAL)?);
                        let tag = c_int::from_le_bytes(header[8..].try_into().map_err(|_| INTERNAL)?);
                        let any = is_broken("tags");
                        let fits = |part: &Part| part.size.is_none() && (any || part.tag == tag);
                        let index = parts.iter().position(fits).ok_or(INTERNAL)?;
                        if size > parts[index].room {
                            return Err(USAGE);
                        }
                        parts[index].size = Some(size);
                        self.part = Some((index, 0));
                    }
                    if let Some((index, from)) = self.part
                        && parts[index].size == Some(from)
                    {
                        parts[index].is_done = true;
                        self.part = None;
                        if from > 0 && is_broken("last-byte") {
                            // SAFETY: as above.
                            unsafe { *parts[index].data.add(from - 1) = 0 };
                        }
                    }
                    parts.iter().all(|part| part.is_done)
                }
            };
            if done {
                self.open.pop_front();
            }
        }
        Ok(())
    }
}

unsafe extern "C" fn init(_logger: Pointer) -> c_int {
    SUCCESS
}

unsafe extern "C" fn devices(count: *mut c_int) -> c_int {
    // SAFETY: NCCL's, as all pointers below.
    unsafe { count.write(1) };
    SUCCESS
}

/// Name, path in `/sys` and number; kinds of pointers, global registration, speed, port, latency (floating point), most
/// communicators and receives, type and version of device offload.
#[repr(C)]
struct Properties([usize; 3], [c_int; 9], c_int);

unsafe extern "C" fn get_properties(device: c_int, out: *mut Properties) -> c_int {
    if device != 0 {
        return INTERNAL;
    }
    let numbers = [1, 0, 10_000, 0, 0, 65_536, GROUP as c_int, 0, 0];
    // SAFETY: see `devices`.
    unsafe { out.write(Properties([c"socket".as_ptr() as usize, 0, 1], numbers, 0)) };
    SUCCESS
}

/// Returns the address of the first interface that is not loopback.
fn address() -> Ipv4Addr {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let of = all.into_iter().filter(|of| !of.is_loopback()).find_map(|of| match of.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    });
    of.unwrap_or(Ipv4Addr::LOCALHOST)
}

unsafe extern "C" fn listen(device: c_int, handle: *mut u8, out: Out) -> c_int {
    let Ok(listener) = TcpListener::bind((address(), 0)) else { return SYSTEM };
    let Ok(SocketAddr::V4(at)) = listener.local_addr() else { return SYSTEM };
    if device != 0 || listener.set_nonblocking(true).is_err() {
        return INTERNAL;
    }
    let bytes = [&MAGIC.to_le_bytes()[..], &at.ip().octets(), &at.port().to_le_bytes()].concat();
    // SAFETY: see `devices`; the handle has 128 bytes.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), handle, bytes.len());
        out.write(Box::into_raw(Box::new(listener)).cast());
    }
    SUCCESS
}

unsafe extern "C" fn connect(_device: c_int, handle: *mut u8, out: Out, _offload: Out) -> c_int {
    // SAFETY: see `listen`.
    let bytes: [u8; 14] = unsafe { ptr::read(handle.cast()) };
    if bytes[..8] != MAGIC.to_le_bytes() {
        return INTERNAL;
    }
    let ip = Ipv4Addr::new(bytes[8], bytes[9], bytes[10], bytes[11]);
    let at = SocketAddrV4::new(ip, u16::from_le_bytes([bytes[12], bytes[13]]));
    // The peer's kernel accepts at once.
    match TcpStream::connect(at).and_then(Comm::over) {
        Ok(comm) => {
            // SAFETY: see `devices`.
            unsafe { out.write(comm) };
            SUCCESS
        }
        Err(_) => REMOTE,
    }
}

unsafe extern "C" fn accept(listener: Pointer, out: Out, _offload: Out) -> c_int {
    // SAFETY: NCCL passes what `listen` returned.
    let accepted = unsafe { &*listener.cast::<TcpListener>() }.accept();
    let comm = match accepted.and_then(|(stream, _)| Comm::over(stream)) {
        Ok(comm) => comm,
        Err(error) if error.kind() == ErrorKind::WouldBlock => ptr::null_mut(),
        Err(_) => return SYSTEM,
    };
    // SAFETY: see `devices`.
    unsafe { out.write(comm) };
    SUCCESS
}

unsafe extern "C" fn reg_mr(_comm: Pointer, _data: Pointer, _size: usize, kind: c_int, out: Out) -> c_int {
    // SAFETY: see `devices`.
    unsafe { out.write(ptr::null_mut()) };
    if kind == 1 { SUCCESS } else { INTERNAL }
}

unsafe extern "C" fn dereg_mr(_comm: Pointer, _memory: Pointer) -> c_int {
    SUCCESS
}

unsafe fn begin(comm: *mut Comm, request: Request, out: Out) -> c_int {
    // SAFETY: NCCL passes what `connect` or `accept` returned.
    let of = unsafe { &mut *comm };
    let request = Box::into_raw(Box::new(request));
    of.open.push_back(request);
    // SAFETY: see `devices`.
    unsafe { out.write(request.cast()) };
    // SAFETY: its requests are open.
    unsafe { of.work() }.err().unwrap_or(SUCCESS)
}

unsafe extern "C" fn isend(comm: Pointer, data: Pointer, size: c_int, tag: c_int, _memory: Pointer, out: Out) -> c_int {
    let size = size as usize;
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&size.to_le_bytes());
    header[8..].copy_from_slice(&tag.to_le_bytes());
    let comm = comm.cast();
    // SAFETY: as it was called.
    unsafe { begin(comm, Request::Send { comm, header, data: data.cast(), size, sent: 0 }, out) }
}

unsafe extern "C" fn irecv(
    comm: Pointer,
    count: c_int,
    data: *mut Pointer,
    sizes: *mut c_int,
    tags: *mut c_int,
    _memory: *mut Pointer,
    out: Out,
) -> c_int {
    if is_broken("crash") {
        std::process::abort();
    }
    if count as usize > GROUP {
        return INTERNAL;
    }
    // SAFETY: see `devices`; arrays of `count` values.
    let part = |at| unsafe {
        let (data, room, tag) = ((*data.add(at)).cast(), *sizes.add(at) as usize, *tags.add(at));
        Part { data, room, tag, size: None, is_done: false }
    };
    let (parts, comm) = ((0..count as usize).map(part).collect(), comm.cast());
    // SAFETY: as it was called.
    unsafe { begin(comm, Request::Receive { comm, parts }, out) }
}

unsafe extern "C" fn iflush(_: Pointer, _: c_int, _: Out, _: *mut c_int, _: Out, out: Out) -> c_int {
    // SAFETY: see `devices`.
    unsafe { out.write(ptr::null_mut()) };
    SUCCESS
}

unsafe extern "C" fn test(request: Pointer, done: *mut c_int, sizes: *mut c_int) -> c_int {
    let request = request.cast::<Request>();
    // SAFETY: NCCL passes requests that are not done, of open communicators.
    unsafe {
        done.write(0);
        if !(*request).is_done() {
            let comm = &mut *(*request).comm();
            if let Err(code) = comm.work() {
                return code;
            }
        }
        if !(*request).is_done() {
            return SUCCESS;
        }
        let all: Vec<usize> = match &*request {
            Request::Send { size, .. } => vec![*size],
            Request::Receive { parts, .. } => parts.iter().map(|part| part.size.unwrap_or(0)).collect(),
        };
        for (at, size) in all.iter().enumerate().filter(|_| !sizes.is_null()) {
            sizes.add(at).write(*size as c_int);
        }
        done.write(1);
        // One that is reported too early goes on.
        if !is_broken("early") {
            drop(Box::from_raw(request));
        }
    }
    SUCCESS
}

unsafe extern "C" fn close_comm(comm: Pointer) -> c_int {
    if is_broken("close") {
        std::thread::sleep(std::time::Duration::MAX);
    }
    // SAFETY: NCCL passes what `connect` or `accept` returned, once.
    unsafe {
        let comm = Box::from_raw(comm.cast::<Comm>());
        comm.open.iter().for_each(|request| drop(Box::from_raw(*request)));
    }
    SUCCESS
}

unsafe extern "C" fn close_listen(listener: Pointer) -> c_int {
    // SAFETY: NCCL passes what `listen` returned, once.
    drop(unsafe { Box::from_raw(listener.cast::<TcpListener>()) });
    SUCCESS
}

#[repr(transparent)]
struct Table([*const (); 19]);

// SAFETY: it never changes.
unsafe impl Sync for Table {}

#[unsafe(no_mangle)]
static ncclNetPlugin_v8: Table = Table([
    c"socket".as_ptr().cast(),
    init as *const (),
    devices as *const (),
    get_properties as *const (),
    listen as *const (),
    connect as *const (),
    accept as *const (),
    reg_mr as *const (),
    ptr::null(),
    dereg_mr as *const (),
    isend as *const (),
    irecv as *const (),
    iflush as *const (),
    test as *const (),
    close_comm as *const (),
    close_comm as *const (),
    close_listen as *const (),
    ptr::null(),
    ptr::null(),
]);
