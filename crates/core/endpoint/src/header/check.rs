use super::format::{
    ACK, ACK_BYTES, BYE, BYE_BYTES, BYE_STREAM, CHECK, COMMON, DATA, DATA_HEADER, ECHO, ECHO_BYTES, GREETING_BYTES,
    GREETING_CHECK, HELLO, HELLO_BYTES, NUMBER, PROBE, PROBE_BYTES, RETRY, RETRY_BYTES, SEALED, SEALED_PAYLOAD,
    TAG_BYTES, Tag, WELCOME,
};

/// Passes on what the MAC covers of a header and what follows it: all but the check in greetings, else all but connection
/// number (bound by the key) and check, so that a data header with its number fills one block of the hash.
pub(super) fn with_covered<R>(header: &[u8], take: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let skipped = if is_greeting(*header.get(1)?) { GREETING_CHECK..GREETING_CHECK + 4 } else { 4..COMMON };
    let (first, rest) = (header.get(..skipped.start)?, header.get(skipped.end..)?);
    let (mut short, mut long) = ([0; 128], Vec::new());
    let into = match short.get_mut(..first.len() + rest.len()) {
        Some(short) => short,
        // BYEs with many streams, which are rare.
        None => {
            long.resize(first.len() + rest.len(), 0);
            &mut long[..]
        }
    };
    into[..first.len()].copy_from_slice(first);
    into[first.len()..].copy_from_slice(rest);
    Some(take(into))
}

pub(crate) fn is_greeting(kind: u8) -> bool {
    kind == HELLO || kind == WELCOME || kind == RETRY
}

/// Returns header bytes before authentication, and the offset of the check.
pub(super) fn layout(datagram: &[u8]) -> Option<(usize, usize)> {
    Some(match *datagram.get(1)? {
        HELLO => (HELLO_BYTES, GREETING_CHECK),
        WELCOME => (GREETING_BYTES, GREETING_CHECK),
        RETRY => (RETRY_BYTES, GREETING_CHECK),
        DATA => (DATA_HEADER, CHECK),
        ACK => (ACK_BYTES, CHECK),
        PROBE => (PROBE_BYTES, CHECK),
        ECHO => (ECHO_BYTES, CHECK),
        BYE => (BYE_BYTES + BYE_STREAM * usize::from(*datagram.get(3)?), CHECK),
        _ => return None,
    })
}

/// Authenticates a datagram that has just been written, without its payload, whose tag is `payload`. `mac` computes the
/// MAC of some bytes. Padding is overwritten.
pub(crate) fn authenticate(out: &mut Vec<u8>, number: u64, payload: Option<Tag>, mac: impl FnOnce(&[u8]) -> Tag) {
    let Some((header, check)) = layout(out) else { return };
    let end = header + NUMBER + if payload.is_some() { TAG_BYTES } else { 0 };
    if out.len() < end + TAG_BYTES {
        out.resize(end + TAG_BYTES, 0);
    }
    out[2] |= SEALED | if payload.is_some() { SEALED_PAYLOAD } else { 0 };
    out[check..check + 4].fill(0);
    out[header..header + NUMBER].copy_from_slice(&number.to_be_bytes());
    if let Some(payload) = payload {
        out[header + NUMBER..end].copy_from_slice(&payload);
    }
    if let Some(tag) = with_covered(&out[..end], mac) {
        out[end..end + TAG_BYTES].copy_from_slice(&tag);
    }
    if is_greeting(out[1]) {
        // Endpoints of other versions verify this check.
        seal(out, GREETING_CHECK);
    }
}

/// Returns the CRC32C of some bytes (Castagnoli's polynomial, as in iSCSI).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

pub(crate) fn crc32c_of(head: &[u8], rest: &[u8]) -> u32 {
    if head.is_empty() {
        return crc32c(rest);
    }
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(head);
    digest.update(rest);
    digest.finalize() as u32
}

/// The check field at `place` counts as zero.
pub(super) fn check_of(header: &[u8], place: usize) -> u32 {
    let mut short = [0; DATA_HEADER];
    let mut long = Vec::new();
    let copy = match short.get_mut(..header.len()) {
        Some(short) => short,
        // Padded greetings, which are rare.
        None => {
            long.resize(header.len(), 0);
            &mut long[..]
        }
    };
    copy.copy_from_slice(header);
    copy[place..place + 4].fill(0);
    crc32c(copy)
}

pub(super) fn is_intact(header: &[u8], place: usize) -> bool {
    header.get(place..place + 4).is_some_and(|check| check == check_of(header, place).to_be_bytes())
}

/// Recomputes the check of a changed datagram, for tests of the content of intact ones.
#[doc(hidden)]
pub fn reseal(datagram: &mut [u8]) {
    if let Some((length, place)) = layout(datagram)
        && let length = if is_greeting(datagram[1]) { datagram.len().max(length) } else { length }
        && let Some(header) = datagram.get_mut(..length)
    {
        let check = check_of(header, place);
        header[place..place + 4].copy_from_slice(&check.to_be_bytes());
    }
}

/// The check field is zero so far.
pub(super) fn seal(out: &mut [u8], place: usize) {
    let check = crc32c(out);
    out[place..place + 4].copy_from_slice(&check.to_be_bytes());
}
