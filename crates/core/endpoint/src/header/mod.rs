//! Format of datagrams, version 3 (docs/reference/wire.md describes the protocol). A damaged datagram is refused before
//! any of its fields is used.
//!
//! UDP payload; numbers are big-endian; held times are nanoseconds. All kinds but hello, welcome and retry have this
//! header:
//!
//! | byte | field |
//! |---|---|
//! | 0 | version, 3 |
//! | 1 | kind: 1 hello, 2 welcome, 3 data, 4 reply, 5 probe, 6 echo, 7 bye, 8 retry |
//! | 2 | flags |
//! | 3 | of data: index of the fragment (upper four bits), number of fragments less one; of a BYE: number of streams; else 0 |
//! | 4 to 7 | connection: the number that the receiver of this datagram gave its sender; 0 in a hello |
//! | 8 to 11 | check: CRC32C of the header, padding and payload not included, with this field as zero |
//!
//! **HELLO** (96 bytes, padded to a full packet) and **WELCOME** (64 bytes): 8 the word `ABCH`, 12 connection number
//! of the sender (0 in a WELCOME: refused), 16 payload of a full packet (2 bytes, the upper 8 bits at 19), 18 planes
//! less one (1), 20 zero (2), 22 packets of a stream that may be under way, 26 nonce (8 bytes; a WELCOME repeats that of the HELLO), 34 largest message (8), 42 zero
//! (8), 50 labels that the sender listens to (2), 52 check: CRC32C of the whole datagram, padding included, with this
//! field as zero, 56 nonce of the sender (8). A HELLO further has 64 the cookie (32; all zero: none).
//!
//! **RETRY** (56 bytes): 8 the word `ABCH`, 12 the nonce of the HELLO (8), 20 the cookie (32), 52 check: CRC32C of the
//! datagram, with this field as zero.
//!
//! **BYE** (26 bytes and 12 for each stream; flag 1: the receiver acknowledged no data): 12 the nonce of the receiver
//! (8), from its HELLO or WELCOME, 20 and 22 bytes of datagrams that pass to it and that do not (2 each; 0: unknown),
//! 24 number of this datagram and 25 of all of this BYE (1 each, 64 at most; the connection ends with the last to
//! arrive), 26 for each stream of the receiver its number (4) and the PSN below which all has been received (8). Check
//! and MAC cover the list.
//!
//! In every version, hellos and welcomes have bytes 0, 1 and 4 to 15, the nonce at 26 and the check at 52 as here. A
//! hello of another version is followed by a welcome of one's own with connection 0.
//!
//! **Data** (64 bytes and the payload; flags 1: reply at once, 4: the payload has a CRC32C): 12 stream, 16 payload
//! bytes (2; 65,535: that many or more, all that follow), 18 bytes of the message (6), 24 PSN (8), 32 message (8), 40 place in the message (4), 44 path tag, 48
//! CRC32C of the payload, 52 transmission (4), 56 where the receiver is to put the message (8; 0: it does not state;
//! direct data placement, RFC 5041). A switch that trims must leave these 64 bytes, 96 where hosts authenticate; a
//! datagram with fewer payload bytes than it names was trimmed.
//!
//! **Reply** (56 bytes; flags 1: marked, 2: congestion notification, 4: the packet came without its payload, or out of
//! order where that matters): 12 stream, 16 path tag, 20 PSN of the packet that is acknowledged (8), 28 every PSN
//! below has been received (8), 36 the transport's bitmap (8), 44 where that begins beyond the PSN at 28, 48 how long
//! the packet was held, 52 its transmission (0: none).
//!
//! **Probe** (28 bytes, padded to a full packet) and **echo** (28 bytes): 12 stream (all ones: of the endpoint itself,
//! one less: of a label, which the tag names, without a transmission; two less: the search for a size, which is the
//! tag), 16 path tag, 20 transmission; an echo further 24 how long the probe was held. A probe has zeros there.
//!
//! Datagrams whose fields contradict each other or the stream are counted and dropped.

mod check;
mod format;
mod packet;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use check::{authenticate, crc32c_of, is_greeting};
pub use check::{crc32c, reseal};
pub use format::{
    ACK_BYTES, COOKIE_BYTES, Cookie, DATA_HEADER, ECHO_BYTES, MAX_HEADER, SEAL, SEAL_ALL, TAG_BYTES, Tag, VERSION,
};
pub(crate) use format::{GREETING_BYTES, MAX_BYES};
pub use packet::{
    Data, DecodeError, Fragment, Greeting, Packet, ProbeHeader, Protection, Sealed, bye_list, is_data, is_probe,
    is_same_data,
};
pub(crate) use packet::{ForeignGreeting, OfOurs, decode_foreign};
pub(crate) use write::bye_streams;
pub use write::{ack, bye, bye_part, data, echo, hello, probe, retry, welcome};
