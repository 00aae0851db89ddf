//! NCCL's network plugin: a collective library's traffic over this project's endpoints and host schemes (docs/reference/nccl.md).
//!
//! The library `libnccl_net_anabranch.so` exports the tables `ncclNetPlugin_v8` to `ncclNetPlugin_v12` ([`abi`]); no panic and
//! no invalid pointer passes their functions (`entries`). A [`Node`] has all communicators of a device over one endpoint,
//! without threads, clocks or pointers. `process` has a node per device, and a thread that helps out where NCCL does not call.

#[doc(hidden)]
pub mod abi;
mod addresses;
pub mod check;
mod device;
mod entries;
mod exported;
mod fork;
mod fused;
pub mod handle;
mod hardware;
mod helper;
mod host;
#[doc(hidden)]
pub mod ids;
mod labels;
mod log;
#[doc(hidden)]
pub mod message;
mod node;
pub mod page;
mod path;
mod process;
mod requests;
mod schemes;
mod thread;
mod variables;

#[doc(hidden)]
pub use entries::table;
pub use exported::{anabranchPaths, anabranchSet, anabranchWent, settings, wait};
pub use node::{Buffer, Connecting, DeliveryCounters, Done, Failure, MAX_CONNECTIONS, Memory, Node, Watched};
pub use schemes::add;
pub use variables::{VARIABLES, Variable};
