//! NCCL's network plugin interface, versions 8 to 12, as docs/reference/nccl.md describes it.
//!
//! NCCL searches for the data symbols `ncclNetPlugin_v8` to `ncclNetPlugin_v12`, tables of functions, and takes the
//! newest that it supports. Pointers that the plugin returns are opaque to NCCL.

use std::ffi::{c_char, c_int, c_ulong, c_void};

/// Result of a function of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Success = 0,
    /// The network or the kernel reports an error.
    System = 2,
    /// NCCL makes a call that is not allowed.
    Internal = 3,
    /// An argument is invalid.
    Argument = 4,
    /// The configuration is wrong, or sizes do not match.
    Usage = 5,
    /// The peer is gone.
    Remote = 6,
}

/// Host pointers, the only kind that the plugin supports.
pub const PTR_HOST: c_int = 1;
/// Bytes of the handle that a sender needs to connect.
pub const HANDLE_BYTES: usize = 128;
/// Maximum number of receives of one grouped receive.
pub const MAX_RECEIVES: usize = 8;
/// Maximum number of open requests of a communicator; a sender may have [`MAX_RECEIVES`] times as many.
pub const MAX_REQUESTS: usize = 32;
/// Maximum bytes of a message since version 9; in version 8 the limit is that of an `int`.
pub const MAX_BYTES: usize = 1 << 40;
/// Value of `*request` before a receive whose completion NCCL does not need.
pub const OPTIONAL_COMPLETION: usize = 1;
/// Levels of log lines.
pub const LOG_WARN: c_int = 2;
pub const LOG_INFO: c_int = 3;
pub const LOG_TRACE: c_int = 5;
/// Subsystem of the plugin's log lines: the network.
pub const LOG_NET: c_ulong = 16;

/// NCCL's logger: level, subsystems, file, line, format and its arguments.
pub type Logger = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...);
/// NCCL's profiler, which the plugin does not call.
pub type Profiler = unsafe extern "C" fn(*mut *mut c_void, c_int, *mut c_void, i64, *mut c_void) -> c_int;

/// A C string that lives as long as the library.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Name(pub *const c_char);

// SAFETY: the pointer is to bytes that never change.
#[allow(unsafe_code)]
unsafe impl Sync for Name {}

/// First properties of a device in every version.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Identity {
    pub name: *const c_char,
    /// Path of the device in `/sys`; null: it has none.
    pub pci_path: *const c_char,
    /// Identifier, unique within the machine.
    pub guid: u64,
    /// Supported kinds of pointers: [`PTR_HOST`].
    pub ptr_support: c_int,
    /// 1 where registered memory is valid for all communicators.
    pub reg_is_global: c_int,
}

/// Limits of a device in every version.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceLimits {
    /// Speed in Mbit/s.
    pub speed: c_int,
    pub port: c_int,
    /// Latency in microseconds.
    pub latency: f32,
    pub max_comms: c_int,
    pub max_recvs: c_int,
    /// Type of device offload; 0: none.
    pub net_device_type: c_int,
    pub net_device_version: c_int,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PropertiesV8 {
    pub identity: Identity,
    pub limits: DeviceLimits,
}

/// Members of a fused device: at most 4 in versions 9 to 11, 8 in version 12.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Virtual<const N: usize> {
    pub count: c_int,
    pub devices: [c_int; N],
}

/// Properties of a device, versions 9 and 10; those of versions 11 and 12 begin with them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PropertiesV9<const N: usize = 4> {
    pub identity: Identity,
    /// 1 where receives must be flushed.
    pub force_flush: c_int,
    pub limits: DeviceLimits,
    /// Members of this device: itself, or those that it was made of.
    pub virtual_devices: Virtual<N>,
    pub max_p2p_bytes: usize,
    pub max_coll_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PropertiesV11 {
    pub v9: PropertiesV9,
    pub max_multi_request_size: c_int,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PropertiesV12 {
    pub v9: PropertiesV9<8>,
    pub max_multi_request_size: c_int,
    /// Rail; -1: unknown.
    pub rail: i16,
    /// Plane; -1: unknown.
    pub plane: i16,
}

/// NCCL's configuration of a connection (version 10) or a communicator (version 11).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// Traffic class; -1: not set.
    pub traffic_class: c_int,
}

type Pointer = *mut c_void;
type Out = *mut *mut c_void;

/// A function that the plugin does not implement, such as device offload.
pub type Absent = Option<unsafe extern "C" fn()>;
/// `init`, versions 8 and 9.
pub type Init = unsafe extern "C" fn(Option<Logger>) -> c_int;
pub type InitV10 = unsafe extern "C" fn(Option<Logger>, Option<Profiler>) -> c_int;
/// `init` since version 11: context out, number of the communicator, its configuration, logger, profiler.
pub type InitV11 = unsafe extern "C" fn(Out, u64, *const Config, Option<Logger>, Option<Profiler>) -> c_int;
/// `devices`: number of devices out.
pub type Devices = unsafe extern "C" fn(*mut c_int) -> c_int;
/// `getProperties`: device, properties out.
pub type GetProperties<P> = unsafe extern "C" fn(c_int, *mut P) -> c_int;
/// `listen` up to version 10: device, handle out, listener out.
pub type Listen = unsafe extern "C" fn(c_int, *mut u8, Out) -> c_int;
/// `listen` since version 11.
pub type ListenV11 = unsafe extern "C" fn(Pointer, c_int, *mut u8, Out) -> c_int;
/// `connect`, versions 8 and 9: device, handle, sender out, device handle out.
pub type Connect = unsafe extern "C" fn(c_int, *mut u8, Out, Out) -> c_int;
pub type ConnectV10 = unsafe extern "C" fn(c_int, *const Config, *mut u8, Out, Out) -> c_int;
/// `connect` since version 11.
pub type ConnectV11 = unsafe extern "C" fn(Pointer, c_int, *mut u8, Out, Out) -> c_int;
/// `accept`: listener, receiver out, device handle out.
pub type Accept = unsafe extern "C" fn(Pointer, Out, Out) -> c_int;
/// `regMr`: communicator, memory, bytes, kind, handle out.
pub type RegMr = unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Out) -> c_int;
pub type DeregMr = unsafe extern "C" fn(Pointer, Pointer) -> c_int;
/// `isend`, version 8: communicator, memory, bytes, tag, handle of memory, request out.
pub type SendV8 = unsafe extern "C" fn(Pointer, Pointer, c_int, c_int, Pointer, Out) -> c_int;
pub type SendV9 = unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Pointer, Out) -> c_int;
/// `isend` since version 10, with the profiler's handle.
pub type SendV10 = unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Pointer, Pointer, Out) -> c_int;
/// `irecv`, version 8: communicator, count, and arrays of memory, bytes, tags, handles of memory; request out.
pub type ReceiveV8 =
    unsafe extern "C" fn(Pointer, c_int, *mut Pointer, *mut c_int, *mut c_int, *mut Pointer, Out) -> c_int;
pub type ReceiveV9 =
    unsafe extern "C" fn(Pointer, c_int, *mut Pointer, *mut usize, *mut c_int, *mut Pointer, Out) -> c_int;
/// `irecv` since version 10, with the profiler's handles.
pub type ReceiveV10 = unsafe extern "C" fn(
    Pointer,
    c_int,
    *mut Pointer,
    *mut usize,
    *mut c_int,
    *mut Pointer,
    *mut Pointer,
    Out,
) -> c_int;
/// `iflush`: receiver, count, memory, bytes, handles of memory, request out.
pub type Flush = unsafe extern "C" fn(Pointer, c_int, *mut Pointer, *mut c_int, *mut Pointer, Out) -> c_int;
/// `test`: request, done flag out, sizes out.
pub type Test = unsafe extern "C" fn(Pointer, *mut c_int, *mut c_int) -> c_int;
/// `closeSend`, `closeRecv`, `closeListen`, `finalize`.
pub type Close = unsafe extern "C" fn(Pointer) -> c_int;
pub type SetAttributes = unsafe extern "C" fn(Pointer, *const c_void) -> c_int;
/// `makeVDevice`: device out, its members.
pub type MakeVDevice<const N: usize = 4> = unsafe extern "C" fn(*mut c_int, *mut Virtual<N>) -> c_int;

/// Table of functions. The versions differ in the types of some functions and in the fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Table<I, P, L, C, S, R, E> {
    /// Name that `NCCL_NET` selects.
    pub name: Name,
    /// Called once, since version 11 once for each of NCCL's communicators.
    pub init: I,
    pub devices: Devices,
    pub get_properties: GetProperties<P>,
    pub listen: L,
    pub connect: C,
    pub accept: Accept,
    pub reg_mr: RegMr,
    /// Null: no DMA-BUF.
    pub reg_mr_dma_buf: Absent,
    pub dereg_mr: DeregMr,
    pub isend: S,
    pub irecv: R,
    /// Makes received data visible: nothing to do.
    pub iflush: Flush,
    pub test: Test,
    pub close_send: Close,
    pub close_recv: Close,
    pub close_listen: Close,
    /// Null: no device offload.
    pub get_device_mr: Absent,
    /// Null: no device offload.
    pub irecv_consumed: Absent,
    /// Fields of later versions.
    pub end: E,
}

/// Additional fields of versions 9 and 10.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EndV9 {
    /// Null: devices are not fused.
    pub make_v_device: Option<MakeVDevice>,
}

/// Additional fields of versions 11 and 12.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EndV11<const N: usize = 4> {
    /// Null: devices are not fused.
    pub make_v_device: Option<MakeVDevice<N>>,
    /// Ends a context of `init`.
    pub finalize: Close,
    /// Sets hints, which the plugin ignores.
    pub set_net_attr: SetAttributes,
}

pub type NetV8 = Table<Init, PropertiesV8, Listen, Connect, SendV8, ReceiveV8, ()>;
pub type NetV9 = Table<Init, PropertiesV9, Listen, Connect, SendV9, ReceiveV9, EndV9>;
pub type NetV10 = Table<InitV10, PropertiesV9, Listen, ConnectV10, SendV10, ReceiveV10, EndV9>;
pub type NetV11 = Table<InitV11, PropertiesV11, ListenV11, ConnectV11, SendV10, ReceiveV10, EndV11>;
pub type NetV12 = Table<InitV11, PropertiesV12, ListenV11, ConnectV11, SendV10, ReceiveV10, EndV11<8>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// Checks the size of a type and the offsets of its fields.
    macro_rules! laid_out {
        ($type:ty, $size:expr, $($field:ident)*: $($offset:expr)*) => {
            assert_eq!((size_of::<$type>(), [$(offset_of!($type, $field)),*]), ($size, [$($offset),*]));
        };
    }

    /// As NVIDIA's headers of NCCL 2.30 on x86-64.
    #[test]
    fn tables_are_laid_out_as_nccl_expects() {
        macro_rules! table {
            ($type:ty, $size:expr) => {
                laid_out!($type, $size, name init devices get_properties listen connect accept: 0 8 16 24 32 40 48);
                laid_out!($type, $size, reg_mr reg_mr_dma_buf dereg_mr isend irecv iflush test: 56 64 72 80 88 96 104);
                laid_out!($type, $size, close_send close_recv close_listen get_device_mr: 112 120 128 136);
                laid_out!($type, $size, irecv_consumed end: 144 152);
            };
        }
        table!(NetV8, 152);
        table!(NetV9, 160);
        table!(NetV10, 160);
        table!(NetV11, 176);
        table!(NetV12, 176);
        laid_out!(EndV11, 24, make_v_device finalize set_net_attr: 0 8 16);
        laid_out!(Virtual<4>, 20, count devices: 0 4);
    }

    #[test]
    fn properties_are_laid_out_as_nccl_expects() {
        laid_out!(Identity, 32, name pci_path guid ptr_support reg_is_global: 0 8 16 24 28);
        // In version 8 they begin at 32, later at 36.
        laid_out!(DeviceLimits, 28, speed port latency max_comms: 0 4 8 12);
        laid_out!(DeviceLimits, 28, max_recvs net_device_type net_device_version: 16 20 24);
        laid_out!(PropertiesV8, 64, identity limits: 0 32);
        macro_rules! later {
            ($type:ty, $size:expr, $($offset:expr)*) => {
                laid_out!($type, $size, identity force_flush limits virtual_devices max_p2p_bytes max_coll_bytes: $($offset)*);
            };
        }
        later!(PropertiesV9, 104, 0 32 36 64 88 96);
        later!(PropertiesV9<8>, 120, 0 32 36 64 104 112);
        laid_out!(PropertiesV11, 112, v9 max_multi_request_size: 0 104);
        laid_out!(PropertiesV12, 128, v9 max_multi_request_size rail plane: 0 120 124 126);
        assert_eq!([size_of::<Virtual<4>>(), size_of::<Virtual<8>>()], [20, 36]);
    }
}
