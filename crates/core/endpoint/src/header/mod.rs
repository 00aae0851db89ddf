//! Format of datagrams (docs/reference/wire.md); numbers are big-endian. A damaged datagram is refused before any of
//! its fields is used.

mod check;
mod format;
mod packet;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use check::{MAX_COVERED, authenticate, crc32c_of, is_greeting_datagram};
pub use check::{crc32c, reseal};
pub use format::{ANSWER, COOKIE, Cookie, DATA_HEADER, ECHO, MAX_HEADER, SEAL, SEAL_ALL, TAG, Tag, VERSION};
pub(crate) use format::{GREETING, HELLO_BYTES};
pub use packet::{Data, Greeting, Packet, Probed, Protection, Refused, Sealed};
pub(crate) use packet::{Foreign, foreign};
pub use write::{answer, bye, data, echo, hello, probe, retry, welcome};
