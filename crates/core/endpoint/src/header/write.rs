use super::{
    check::{is_greeting, seal},
    format::*,
    packet::{Data, Greeting, ProbeHeader},
};
use crate::event::Sizes;
use anabranch_transport::Reply;
use anabranch_units::Time;

fn nanoseconds(time: Time) -> u32 {
    u32::try_from(time.ps() / 1000).unwrap_or(u32::MAX)
}

fn begin(out: &mut Vec<u8>, kind: u8, flags: u8, connection: u32) {
    out.clear();
    out.extend_from_slice(&[VERSION, kind, flags, 0]);
    out.extend_from_slice(&connection.to_be_bytes());
    if !is_greeting(kind) {
        out.extend_from_slice(&[0; 4]);
    }
}

fn put<const N: usize>(out: &mut Vec<u8>, number: [u8; N]) {
    out.extend_from_slice(&number);
}

fn greet(out: &mut Vec<u8>, kind: u8, connection: u32, greeting: &Greeting) {
    begin(out, kind, greeting.protection as u8, connection);
    put(out, MAGIC.to_be_bytes());
    put(out, greeting.connection.to_be_bytes());
    let [_, upper, mtu @ ..] = greeting.mtu.to_be_bytes();
    put(out, mtu);
    put(out, [greeting.planes.wrapping_sub(1), upper, 0, 0]);
    put(out, greeting.span.to_be_bytes());
    put(out, greeting.nonce.to_be_bytes());
    put(out, greeting.max_message.to_be_bytes());
    put(out, [0; 8]);
    put(out, greeting.labels.to_be_bytes());
    put(out, [0; 4]);
    put(out, greeting.own_nonce.to_be_bytes());
}

/// Writes a HELLO, padded to `size` bytes, so that replies never exceed requests. An all-zero cookie: none.
pub fn hello(out: &mut Vec<u8>, greeting: &Greeting, cookie: &Cookie, size: usize) {
    greet(out, HELLO, 0, greeting);
    put(out, *cookie);
    out.resize(size.max(HELLO_BYTES), 0);
    seal(out, GREETING_CHECK);
}

pub fn retry(out: &mut Vec<u8>, connection: u32, nonce: u64, cookie: &Cookie) {
    begin(out, RETRY, 0, connection);
    put(out, MAGIC.to_be_bytes());
    put(out, nonce.to_be_bytes());
    put(out, *cookie);
    put(out, [0; 4]);
    seal(out, GREETING_CHECK);
}

pub fn welcome(out: &mut Vec<u8>, connection: u32, greeting: &Greeting) {
    greet(out, WELCOME, connection, greeting);
    seal(out, GREETING_CHECK);
}

/// Writes the header of a data packet; the payload follows it.
pub fn data(out: &mut Vec<u8>, connection: u32, data: &Data) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(data.ack_request, ACK_REQUEST) | flag(data.checksum.is_some(), CHECKED);
    begin(out, DATA, flags, connection);
    out[3] = data.fragment.index << 4 | (data.fragment.count - 1);
    put(out, data.stream.to_be_bytes());
    put(out, (data.payload.min(LONG) as u16).to_be_bytes());
    let length = data.length.to_be_bytes();
    put(out, [length[2], length[3], length[4], length[5], length[6], length[7]]);
    put(out, data.psn.to_be_bytes());
    put(out, data.message.to_be_bytes());
    put(out, data.index.to_be_bytes());
    put(out, data.tag.to_be_bytes());
    put(out, data.checksum.unwrap_or(0).to_be_bytes());
    put(out, data.transmission.to_be_bytes());
    put(out, data.steering.to_be_bytes());
    seal(out, CHECK);
}

pub fn ack(out: &mut Vec<u8>, connection: u32, stream: u32, ack: &Reply, transmission: u32, held: Time) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(ack.ecn, ECN) | flag(ack.cnp, NOTIFICATION) | flag(ack.nack, NACK);
    begin(out, ACK, flags, connection);
    put(out, stream.to_be_bytes());
    put(out, ack.tag.to_be_bytes());
    put(out, ack.psn.to_be_bytes());
    put(out, ack.cumulative.to_be_bytes());
    put(out, ack.bitmap.to_be_bytes());
    put(out, ack.offset.to_be_bytes());
    put(out, nanoseconds(held).to_be_bytes());
    put(out, transmission.to_be_bytes());
    seal(out, CHECK);
}

/// Writes a probe, padded to `size` bytes.
pub fn probe(out: &mut Vec<u8>, connection: u32, probe: &ProbeHeader, size: usize) {
    begin(out, PROBE, 0, connection);
    put(out, probe.stream.to_be_bytes());
    put(out, probe.tag.to_be_bytes());
    put(out, probe.transmission.to_be_bytes());
    out.resize(PROBE_BYTES, 0);
    seal(out, CHECK);
    out.resize(size.max(PROBE_BYTES), 0);
}

pub fn echo(out: &mut Vec<u8>, connection: u32, echo: &ProbeHeader) {
    begin(out, ECHO, if echo.ecn { ECN } else { 0 }, connection);
    put(out, echo.stream.to_be_bytes());
    put(out, echo.tag.to_be_bytes());
    put(out, echo.transmission.to_be_bytes());
    put(out, nanoseconds(echo.held).to_be_bytes());
    seal(out, CHECK);
}

/// Writes a BYE without streams, with a nonce of the handshake; `stalled`: why the peer is lost.
pub fn bye(out: &mut Vec<u8>, connection: u32, proof: u64, stalled: Option<Sizes>) {
    begin(out, BYE, if stalled.is_some() { STALLED } else { 0 }, connection);
    put(out, proof.to_be_bytes());
    let Sizes { passes, fails } = stalled.unwrap_or_default();
    [passes, fails].into_iter().for_each(|size| put(out, u16::try_from(size).unwrap_or(u16::MAX).to_be_bytes()));
    put(out, [0, 1]);
    seal(out, CHECK);
}

/// Makes a BYE that has just been written the one of `index` among `parts`, with a list of at most 255 streams and the first
/// PSN of each that has not been received.
pub fn bye_part(out: &mut Vec<u8>, [index, parts]: [u8; 2], streams: &[(u32, u64)]) {
    (out[3], out[BYE_BYTES - 2], out[BYE_BYTES - 1]) = (streams.len() as u8, index, parts);
    for (stream, cumulative) in streams {
        put(out, stream.to_be_bytes());
        put(out, cumulative.to_be_bytes());
    }
    out[CHECK..CHECK + 4].fill(0);
    seal(out, CHECK);
}

/// Returns how many streams fit into a BYE of this size.
pub(crate) fn bye_streams(datagram: usize) -> usize {
    (datagram.saturating_sub(BYE_BYTES + SEAL) / BYE_STREAM).clamp(1, usize::from(u8::MAX))
}
