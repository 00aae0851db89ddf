/// Version of this format; peers of another version are refused.
pub const VERSION: u8 = 3;
pub(super) const MAGIC: u32 = u32::from_be_bytes(*b"ABCH");
/// Bytes of the data header: a switch that trims must leave this many.
pub const DATA_HEADER: usize = 64;
/// Bytes of an ACK (kind 4).
pub const ACK_BYTES: usize = 56;
pub const ECHO_BYTES: usize = 28;
/// Bytes of a WELCOME, and of the same fields of a HELLO.
pub(crate) const GREETING_BYTES: usize = 64;
/// Bytes of a cookie in a HELLO; all zero: none.
pub const COOKIE_BYTES: usize = 32;
/// Before its padding.
pub(crate) const HELLO_BYTES: usize = GREETING_BYTES + COOKIE_BYTES;
pub(super) const RETRY_BYTES: usize = 24 + COOKIE_BYTES;
/// Before its padding.
pub(super) const PROBE_BYTES: usize = ECHO_BYTES;
/// Before its list of streams.
pub(super) const BYE_BYTES: usize = 26;
/// Bytes of a stream in that list; `MAX_BYES`: maximum datagrams of a BYE.
pub(super) const BYE_STREAM: usize = 12;
pub(crate) const MAX_BYES: usize = 64;
/// Bytes of a MAC, which is truncated: 96 bits, as RFC 4868 and RFC 4106 allow.
pub const TAG_BYTES: usize = 12;
pub(super) const NUMBER: usize = 8;
/// Bytes that authentication adds to a header; [`SEAL_ALL`]: to a data header if the payload is authenticated too.
pub const SEAL: usize = NUMBER + TAG_BYTES;
/// See [`SEAL`].
pub const SEAL_ALL: usize = NUMBER + 2 * TAG_BYTES;
/// Bytes of the data header with both MACs: a switch that trims must leave this many if hosts authenticate.
pub const MAX_HEADER: usize = DATA_HEADER + SEAL_ALL;
/// Bytes of the common beginning of all kinds.
pub(super) const COMMON: usize = 12;
/// Greetings keep `ABCH` there, as in version 1, so that all versions can identify each other.
pub(super) const CHECK: usize = 8;
pub(super) const GREETING_CHECK: usize = 52;

pub(super) const HELLO: u8 = 1;
pub(super) const WELCOME: u8 = 2;
pub(super) const DATA: u8 = 3;
pub(super) const ACK: u8 = 4;
pub(super) const PROBE: u8 = 5;
pub(super) const ECHO: u8 = 6;
pub(super) const BYE: u8 = 7;
pub(super) const RETRY: u8 = 8;

/// Payload field of a datagram that has this many bytes or more.
pub(super) const LONG: u32 = u16::MAX as u32;
pub(super) const PROTECTION: u8 = 3;
pub(super) const ACK_REQUEST: u8 = 1;
pub(super) const CHECKED: u8 = 4;
/// A number and a MAC follow the header. `SEALED_PAYLOAD`: the MAC of the payload precedes it.
pub(super) const SEALED: u8 = 0x80;
pub(super) const SEALED_PAYLOAD: u8 = 0x40;

/// Largest PSN of a datagram: at 500 million packets per second it is reached after 292 years.
pub(super) const MAX_NUMBER: u64 = (1 << 62) - 1;
/// PSN of an ACK of no packet.
pub(super) const NO_PSN: u64 = anabranch_transport::Reply::OF_TIMER;

/// A truncated MAC.
pub type Tag = [u8; TAG_BYTES];
pub(super) const ECN: u8 = 1;
pub(super) const NOTIFICATION: u8 = 2;
pub(super) const NACK: u8 = 4;
/// Of a BYE.
pub(super) const STALLED: u8 = 1;

/// Token of a RETRY, which the initiator returns in its next HELLO.
pub type Cookie = [u8; COOKIE_BYTES];
