//! libibverbs and NVIDIA's driver, loaded on first use.

#![allow(unsafe_code)]

use super::abi::{Channel, Context, Mr, Opaque, PortAttr, Qp, QpAttr, QpInitAttr};
use crate::WireError;
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr,
    sync::OnceLock,
};

const LIBRARY: &str = "libibverbs.so.1";

macro_rules! functions {
    ($($name:ident: $type:ty,)*) => {
        /// By their names without `ibv_`.
        pub(super) struct Functions {
            $(pub(super) $name: $type,)*
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
    fork_init: unsafe extern "C" fn() -> c_int,
    wc_status_str: unsafe extern "C" fn(c_uint) -> *const c_char,
}

/// Never unloaded: its drivers may have threads of their own.
static LOADED: OnceLock<Functions> = OnceLock::new();

impl Functions {
    pub(super) fn load() -> Result<&'static Self, WireError> {
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
        // SAFETY: nothing is registered yet. Older kernels would else leave hardware with pages that a fork has copied; if it fails, so does
        // only that.
        unsafe { (functions.fork_init)() };
        Ok(LOADED.get_or_init(|| functions))
    }
}

const MLX5: &str = "libmlx5.so.1";

/// NVIDIA's driver can change the source port of a connected queue pair, regardless of outstanding requests.
pub(super) struct Mlx5 {
    pub(super) is_supported: unsafe extern "C" fn(*mut Opaque) -> bool,
    pub(super) modify_qp_udp_sport: unsafe extern "C" fn(*mut Qp, u16) -> c_int,
    _library: Library,
}

static LOADED_MLX5: OnceLock<Option<Mlx5>> = OnceLock::new();

impl Mlx5 {
    /// `None`: not installed, or older than rdma-core 34.
    pub(super) fn load() -> Option<&'static Self> {
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
pub(super) fn find_device<T>(
    functions: &Functions,
    mut body: impl FnMut(*mut Opaque, &CStr) -> Option<T>,
) -> Option<T> {
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
