//! Format of datagrams (docs/reference/wire.md); numbers are big-endian. A damaged datagram is refused before any of
//! its fields is used.

mod check;
mod format;
mod packet;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use check::{authenticate, crc32c_of, is_greeting_datagram};
pub use check::{crc32c, reseal};
pub use format::{
    ACK_BYTES, COOKIE_BYTES, Cookie, DATA_HEADER, ECHO_BYTES, MAX_HEADER, SEAL, SEAL_ALL, TAG_BYTES, Tag, VERSION,
};
pub(crate) use format::{GREETING_BYTES, MAX_BYES};
pub use packet::{Data, DecodeError, Fragment, Greeting, Packet, ProbeHeader, Protection, Sealed, bye_list};
pub(crate) use packet::{ForeignGreeting, decode_foreign};
pub(crate) use write::bye_streams;
pub use write::{ack, bye, bye_part, data, echo, hello, probe, retry, welcome};
