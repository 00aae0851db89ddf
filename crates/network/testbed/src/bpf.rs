//! BPF programs at ports: `tc` loads and lists them, and the system call bpf(2) accesses their maps.
//!
//! Layouts are those of the kernel's `linux/bpf.h`, whose structures only grow at their ends.
#![allow(unsafe_code)]

use crate::{TestbedError, programs};
use std::{
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

const MAP_LOOKUP_ELEM: libc::c_long = 1;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_GET_FD_BY_ID: libc::c_long = 13;
const MAP_GET_FD_BY_ID: libc::c_long = 14;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;

/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;
/// Maps of one program that are searched; the port program has three: its state, its settings, its rate.
const MAX_MAPS: usize = 16;

/// The head of `struct bpf_prog_info`, up to its maps.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_bytes: u32,
    translated_bytes: u32,
    jited: u64,
    translated: u64,
    load_time: u64,
    user: u32,
    /// In: capacity of the identifier array; out: number of maps.
    maps: u32,
    map_ids: u64,
}

/// The head of `struct bpf_map_info`, up to the name.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_bytes: u32,
    value_bytes: u32,
    max_entries: u32,
    flags: u32,
    name: [u8; 16],
}

/// Attributes of the commands that open an object by its identifier.
#[repr(C)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}

/// Attributes of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InfoByFd {
    fd: u32,
    bytes: u32,
    info: u64,
}

/// Attributes of `BPF_MAP_LOOKUP_ELEM` and `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct Element {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Makes the system call.
///
/// # Safety
/// `attributes` is the part of `union bpf_attr` that `command` takes, without padding, and every address in it is valid for what
/// the command reads or writes there.
unsafe fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<libc::c_long> {
    let attributes: *mut T = attributes;
    // SAFETY: the kernel reads and writes `size_of::<T>()` bytes at `attributes`, which is borrowed mutably for the
    // call; the caller guarantees the addresses inside.
    let returned = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

fn open(command: libc::c_long, id: u32) -> io::Result<OwnedFd> {
    // SAFETY: these attributes hold no address.
    let fd = unsafe { bpf(command, &mut ById { id, next: 0, flags: 0 }) }?;
    // SAFETY: the kernel has just created this descriptor for this process, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Fills `info`, the head of the kernel's description of an object.
///
/// # Safety
/// `T` is the head of the structure of that kind of object, takes any bytes, and addresses in it are valid for what the kernel
/// writes there.
unsafe fn describe<T>(object: &OwnedFd, info: &mut T) -> io::Result<()> {
    let info: *mut T = info;
    let fd = object.as_raw_fd() as u32;
    // SAFETY: the kernel writes at most `bytes` bytes at `info`, which is borrowed mutably for the call.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut InfoByFd { fd, bytes: size_of::<T>() as u32, info: info as u64 }) }.map(drop)
}

fn maps(program: u32) -> io::Result<Vec<u32>> {
    let program = open(PROG_GET_FD_BY_ID, program)?;
    let mut ids = vec![0u32; MAX_MAPS];
    let mut info = ProgramInfo { maps: MAX_MAPS as u32, map_ids: ids.as_mut_ptr() as u64, ..ProgramInfo::default() };
    // SAFETY: `ids` has capacity for as many identifiers as `maps` specifies and outlives the call; all other
    // addresses are null, with lengths of zero.
    unsafe { describe(&program, &mut info) }?;
    ids.truncate(info.maps as usize);
    Ok(ids)
}

/// Open array of a loaded program, readable even after the program is unloaded.
#[derive(Debug)]
pub(crate) struct Array {
    map: OwnedFd,
    value_bytes: usize,
}

impl Array {
    /// Opens an array of the program at a port by name.
    pub(crate) fn at_port(program: u32, name: &str, namespace: &str, port: &str) -> Result<Self, TestbedError> {
        let failed = |error| TestbedError::system(format!("the program at port {port} of {namespace}"), error);
        Self::open(program, name).map_err(failed)
    }

    fn open(program: u32, name: &str) -> io::Result<Self> {
        for id in maps(program)? {
            let map = open(MAP_GET_FD_BY_ID, id)?;
            let mut info = MapInfo::default();
            // SAFETY: plain numbers without addresses.
            unsafe { describe(&map, &mut info) }?;
            if info.name.split(|byte| *byte == 0).next() != Some(name.as_bytes()) {
                continue;
            }
            if (info.kind, info.key_bytes) != (ARRAY, 4) {
                return Err(io::Error::other(format!("the map `{name}` is no array")));
            }
            return Ok(Array { map, value_bytes: info.value_bytes as usize });
        }
        Err(io::Error::other(format!("the program has no map `{name}`")))
    }

    pub(crate) fn first(&self) -> io::Result<Vec<u8>> {
        let (first, mut value) = (0u32, vec![0u8; self.value_bytes]);
        let (key, at) = (&raw const first as u64, value.as_mut_ptr() as u64);
        let map = self.map.as_raw_fd() as u32;
        // SAFETY: the kernel reads a key of four bytes and writes `value_bytes` bytes, the sizes of both buffers, which outlive
        // the call.
        unsafe { bpf(MAP_LOOKUP_ELEM, &mut Element { map, pad: 0, key, value: at, flags: 0 }) }?;
        Ok(value)
    }

    /// Returns the first value as words, from a byte on.
    pub(crate) fn words(&self, from: usize) -> io::Result<Vec<u64>> {
        let value = self.first()?;
        let words = value.get(from..).unwrap_or_default().chunks_exact(8);
        Ok(words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect())
    }

    /// Sets the first value; fails if it has another size.
    pub(crate) fn set_first(&self, value: &[u8]) -> io::Result<()> {
        if self.value_bytes != value.len() {
            let (own, given) = (self.value_bytes, value.len());
            return Err(io::Error::other(format!("values of the map have {own} B, not {given}")));
        }
        let first = 0u32;
        let (key, at) = (&raw const first as u64, value.as_ptr() as u64);
        let map = self.map.as_raw_fd() as u32;
        // SAFETY: the kernel reads a key of four bytes and `value_bytes` bytes, the sizes of both buffers, which outlive the
        // call.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut Element { map, pad: 0, key, value: at, flags: 0 }) }.map(drop)
    }
}

/// Returns the program at a port, whose `side` is `ingress` or `egress`, which needs the `clsact` queueing discipline.
pub(crate) fn program(namespace: &str, port: &str, side: &str) -> Result<Option<u32>, TestbedError> {
    let filters = programs::json("tc", &["-n", namespace, "-j", "filter", "show", "dev", port, side])?;
    let id = filters.iter().find_map(|filter| filter["options"]["prog"]["id"].as_u64());
    Ok(id.and_then(|id| u32::try_from(id).ok()))
}

pub(crate) fn prepare(namespace: &str, port: &str) -> Result<(), TestbedError> {
    programs::run("tc", &["-n", namespace, "qdisc", "replace", "dev", port, "clsact"], "").map(drop)
}

/// Loads an object at a side of a port that has been prepared.
pub(crate) fn load(object: &[u8], namespace: &str, port: &str, side: &str) -> Result<(), TestbedError> {
    // A random name: in /tmp another user could have placed a link under a predictable one.
    let failed = |error| TestbedError::system("writing a program to a temporary file", error);
    let mut file = tempfile::Builder::new().prefix("anabranch-program-").suffix(".o").tempfile().map_err(failed)?;
    file.write_all(object).map_err(failed)?;
    let path = file.path().to_string_lossy();
    let filter = format!("filter replace dev {port} {side} prio 1 handle 1 bpf da obj \"{path}\" sec classifier\n");
    programs::run("tc", &["-n", namespace, "-batch", "-"], &filter).map(drop)
}

pub(crate) fn not_there(namespace: &str, port: &str) -> TestbedError {
    TestbedError::Input(format!("no program is at port {port} of {namespace}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Offsets of `linux/bpf.h` on a 64-bit machine.
    #[test]
    fn layouts_are_those_of_the_kernel() {
        assert_eq!(
            (offset_of!(ProgramInfo, maps), offset_of!(ProgramInfo, map_ids), size_of::<ProgramInfo>()),
            (52, 56, 64)
        );
        assert_eq!((offset_of!(MapInfo, value_bytes), offset_of!(MapInfo, name), size_of::<MapInfo>()), (12, 24, 40));
        assert_eq!((size_of::<ById>(), size_of::<InfoByFd>(), size_of::<Element>()), (12, 16, 32));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        // EPERM without the privilege, ENOENT with it, ENOSYS if the kernel lacks bpf(2).
        assert!(Array::open(u32::MAX, "port").unwrap_err().raw_os_error().is_some());
    }
}
