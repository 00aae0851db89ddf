//! NCCL's network plugin: a collective library's traffic over this project's endpoints and host schemes (docs/reference/nccl.md).
//!
//! Built as `libnccl_net_anabranch.so`, which exports the tables `ncclNetPlugin_v8` to `ncclNetPlugin_v12` ([`abi`]). It consists
//! of
//! - [`Node`]: all communicators of a device over one endpoint, without threads, clocks or pointers;
//! - `process`: a node per device, and the thread that helps out where NCCL does not call;
//! - `entries`: the functions that NCCL calls; no panic and no invalid pointer passes them;
//! - [`page`]: counters of all paths in shared memory, and `exported`: the same for a tuner inside the process.

pub mod abi;
mod device;
mod entries;
mod exported;
mod fork;
pub mod handle;
mod helper;
mod host;
pub mod ids;
mod log;
pub mod message;
mod node;
pub mod page;
mod path;
mod process;
mod thread;
mod variables;

pub use exported::{anabranchPaths, anabranchSet, anabranchWent};
pub use node::{Buffer, Connecting, Done, Failure, MAX_CONNECTIONS, Memory, Node, Watched, Went};
pub use variables::{VARIABLES, Variable};
