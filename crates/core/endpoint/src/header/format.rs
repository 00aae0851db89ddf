//! Sizes, places and words of the format.

/// Version of this format; peers of another one are refused, with both versions named.
pub const VERSION: u8 = 2;
/// The word that hellos carry.
pub(super) const MAGIC: u32 = u32::from_be_bytes(*b"ABCH");
/// Bytes of the longest header, that of data: a switch that trims must leave as much.
pub const DATA_HEADER: usize = 64;
/// Bytes of an answer.
pub const ANSWER: usize = 60;
/// Bytes of an echo.
pub const ECHO: usize = 36;
/// Bytes of a WELCOME, and of what a HELLO has in common with it.
pub(crate) const GREETING: usize = 64;
/// Bytes of a cookie, which a HELLO carries behind its greeting: zero where it has none.
pub const COOKIE: usize = 32;
/// Bytes of a HELLO before its padding.
pub(crate) const HELLO_BYTES: usize = GREETING + COOKIE;
/// Bytes of a RETRY.
pub(super) const RETRY: usize = 24 + COOKIE;
/// Bytes of a probe before its padding: as many as its echo has.
pub(super) const PROBE: usize = ECHO;
pub(super) const BYE: usize = 20;
/// Bytes of a MAC, which is truncated: 96 bits, as RFC 4868 and RFC 4106 allow.
pub const TAG: usize = 12;
/// Bytes of a packet's number.
pub(super) const NUMBER: usize = 8;
/// Bytes that authentication adds to a header, and to that of data whose payload is authenticated too.
pub const SEAL: usize = NUMBER + TAG;
/// See [`SEAL`].
pub const SEAL_ALL: usize = NUMBER + 2 * TAG;
/// Bytes of the longest header of all: what a switch that trims must leave where hosts authenticate.
pub const MAX_HEADER: usize = DATA_HEADER + SEAL_ALL;
/// Bytes that all kinds begin with.
pub(super) const COMMON: usize = 12;
/// Place of the check field. Greetings keep the word `ABCH` there, as version 1 has it, so that all versions can name each other.
pub(super) const CHECK: usize = 8;
pub(super) const GREETING_CHECK: usize = 52;

pub(super) const HELLO: u8 = 1;
pub(super) const WELCOME: u8 = 2;
pub(super) const DATA: u8 = 3;
pub(super) const ANSWERED: u8 = 4;
pub(super) const PROBED: u8 = 5;
pub(super) const ECHOED: u8 = 6;
pub(super) const LEFT: u8 = 7;
pub(super) const RETRIED: u8 = 8;

/// Of greetings: what their sender authenticates.
pub(super) const PROTECTION: u8 = 3;
pub(super) const ACK_REQUEST: u8 = 1;
pub(super) const CHECKED: u8 = 4;
/// Of all kinds: a number and a MAC follow the header, and before the MAC, of data, that of the payload.
pub(super) const SEALED: u8 = 0x80;
pub(super) const SEALED_PAYLOAD: u8 = 0x40;

/// A truncated MAC.
pub type Tag = [u8; TAG];
pub(super) const ECN: u8 = 1;
pub(super) const NOTIFICATION: u8 = 2;
pub(super) const NACK: u8 = 4;

/// What a RETRY gives to an initiator, and its next HELLO brings back.
pub type Cookie = [u8; COOKIE];
