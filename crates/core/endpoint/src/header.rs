//! Format of an endpoint's datagrams (docs/reference/wire.md). Numbers are big-endian. Input from outside becomes a [`Packet`] here
//! or is refused; a damaged datagram is refused before any field of it is used.

use anabranch_transport::Reply;
use anabranch_units::Time;

/// Version of this format; peers of another one are refused, with both versions named.
pub const VERSION: u8 = 2;
/// The word that hellos carry.
const MAGIC: u32 = u32::from_be_bytes(*b"ABCH");
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
const RETRY: usize = 24 + COOKIE;
/// Bytes of a probe before its padding: as many as its echo has.
const PROBE: usize = ECHO;
const BYE: usize = 20;
/// Bytes of a MAC, which is truncated: 96 bits, as RFC 4868 and RFC 4106 allow.
pub const TAG: usize = 12;
/// Bytes of a packet's number.
const NUMBER: usize = 8;
/// Bytes that authentication adds to a header, and to that of data whose payload is authenticated too.
pub const SEAL: usize = NUMBER + TAG;
/// See [`SEAL`].
pub const SEAL_ALL: usize = NUMBER + 2 * TAG;
/// Bytes of the longest header of all: what a switch that trims must leave where hosts authenticate.
pub const MAX_HEADER: usize = DATA_HEADER + SEAL_ALL;
/// Bytes that all kinds begin with.
const COMMON: usize = 12;
/// Place of the check field. Greetings keep the word `ABCH` there, as version 1 has it, so that all versions can name each other.
const CHECK: usize = 8;
const GREETING_CHECK: usize = 52;

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const DATA: u8 = 3;
const ANSWERED: u8 = 4;
const PROBED: u8 = 5;
const ECHOED: u8 = 6;
const LEFT: u8 = 7;
const RETRIED: u8 = 8;

/// Of greetings: what their sender authenticates.
const PROTECTION: u8 = 3;
const ACK_REQUEST: u8 = 1;
const CHECKED: u8 = 4;
/// Of all kinds: a number and a MAC follow the header, and before the MAC, of data, that of the payload.
const SEALED: u8 = 0x80;
const SEALED_PAYLOAD: u8 = 0x40;

/// A truncated MAC.
pub type Tag = [u8; TAG];
const ECN: u8 = 1;
const NOTIFICATION: u8 = 2;
const NACK: u8 = 4;

/// What a RETRY gives to an initiator, and its next HELLO brings back.
pub type Cookie = [u8; COOKIE];

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is shorter or longer than its kind says.
    Length,
    /// Its check or that of its payload does not fit: bits changed on its way.
    Damaged,
    /// Of another version of the format, or not of this format at all.
    Version(u8),
    /// It is authenticated, and no key is known to its reader.
    Sealed,
    /// A kind that this version does not know.
    Kind(u8),
    /// A field has a value that it cannot have.
    Value(&'static str),
}

/// What an endpoint authenticates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Nothing: it has no key.
    #[default]
    Off,
    /// Headers, with the CRC32C of their payload, and all control packets.
    Control,
    /// Payloads as well.
    All,
}

/// The first packets between two endpoints: who they are to each other, and what they can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// What datagrams to the sender of this greeting must carry as their connection.
    pub connection: u32,
    /// Nonce of the hello; the welcome repeats it.
    pub nonce: u64,
    /// Nonce of the sender of this greeting; in a hello the same.
    pub own_nonce: u64,
    /// Payload bytes of a full data packet.
    pub mtu: u16,
    /// Labels that the sender of this greeting listens to.
    pub labels: u16,
    /// What its sender authenticates.
    pub protection: Protection,
    /// Packets beyond the first one missing that a stream may have under way.
    pub span: u32,
    /// Largest message that the sender of this greeting takes, in bytes.
    pub most_message: u64,
    /// When the hello was sent, by its sender's clock.
    pub stamp: Time,
    /// How long whoever answered held the hello.
    pub held: Time,
}

/// A data packet without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Of its sender's streams.
    pub stream: u32,
    /// Payload bytes; fewer follow where a switch has trimmed it.
    pub payload: u16,
    /// Its place in the stream.
    pub psn: u64,
    /// Its path tag.
    pub tag: u32,
    /// The message it is of, counted from 0 per stream.
    pub message: u32,
    /// Bytes of that message.
    pub length: u64,
    /// Its place in the message.
    pub index: u32,
    /// CRC32C of the payload; `None`: it has none.
    pub checksum: Option<u32>,
    /// Where the receiver is to put that message's bytes, in words of its own ([`crate::Place`]); 0: it does not say.
    pub steering: u64,
    /// When it was sent, by its sender's clock.
    pub stamp: Time,
    /// An answer is wanted at once.
    pub ack_request: bool,
}

/// A probe, or its echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The stream whose scheme asks; `u32::MAX`: the endpoint itself, for the base round trip.
    pub stream: u32,
    /// Its path tag.
    pub tag: u32,
    /// When it was sent, by its sender's clock.
    pub stamp: Time,
    /// Of an echo: bytes of the probe.
    pub size: u16,
    /// Of an echo: how long it was held.
    pub held: Time,
}

/// A datagram that has been understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// An initiator opens a connection.
    Hello {
        /// What it says of itself.
        greeting: Greeting,
        /// The cookie of a RETRY that answered an earlier one; all zero: none.
        cookie: Cookie,
    },
    /// The initiator must show that it receives at its address: it repeats its HELLO with this cookie.
    Retry {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// The nonce of the HELLO.
        nonce: u64,
        /// What the HELLO is to carry.
        cookie: Cookie,
    },
    /// And is answered.
    Welcome {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// What the other says of itself.
        greeting: Greeting,
    },
    /// Payload.
    Data {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// Its header.
        data: Data,
        /// Its payload; `None` where it was trimmed.
        payload: Option<&'a [u8]>,
    },
    /// What a receiver answers.
    Answer {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// The stream.
        stream: u32,
        /// What the receiver says.
        answer: Reply,
        /// Stamp of the packet that it answers; `None` where it answers none of late.
        stamp: Option<Time>,
        /// How long the receiver held it.
        held: Time,
    },
    /// A question for a round trip.
    Probe {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// What it asks.
        probe: Probed,
    },
    /// The answer to it.
    Echo {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// What it says.
        echo: Probed,
    },
    /// The other end is gone, or knows nothing of this connection.
    Bye {
        /// The connection of the endpoint that it goes to.
        connection: u32,
        /// A nonce of the handshake, which only its two endpoints have seen.
        proof: u64,
    },
}

/// Reads numbers from the front of a datagram, whose length has been checked.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => [0; N],
        }
    }
    fn u8(&mut self) -> u8 {
        u8::from_be_bytes(self.bytes())
    }
    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes())
    }
    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes())
    }
    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes())
    }
    /// A duration in nanoseconds.
    fn held(&mut self) -> Time {
        Time::from_ns(u64::from(self.u32()))
    }
    fn time(&mut self) -> Time {
        Time::from_ps(self.u64())
    }
}

/// Bytes that a MAC covers at most.
pub(crate) const MAX_COVERED: usize = 128;

/// What authenticates a datagram, to be verified before anything of it is acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The number of the packet among those of its connection and direction; 0 in greetings.
    pub number: u64,
    pub(crate) tag: Tag,
    /// The payload and its tag, where it has one and has not been trimmed.
    pub(crate) payload: Option<(&'a [u8], Tag)>,
    pub(crate) is_data: bool,
    pub(crate) has_payload_tag: bool,
    /// Whether it comes before both ends have keys of their connection.
    pub(crate) is_greeting: bool,
    /// The header, number and payload's tag included.
    header: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// Writes the bytes that the MAC covers.
    pub(crate) fn covered<'b>(&self, into: &'b mut [u8; MAX_COVERED]) -> Option<&'b [u8]> {
        covered(self.header, into)
    }
}

/// Writes the bytes of a header, with what follows it up to the MAC, that the MAC covers: those of greetings all but their check, of other
/// kinds all but connection number and check, so that they fill a block of the hash and no more. Their key is of the connection.
fn covered<'b>(header: &[u8], into: &'b mut [u8; MAX_COVERED]) -> Option<&'b [u8]> {
    let left_out = if is_greeting(*header.get(1)?) { GREETING_CHECK..GREETING_CHECK + 4 } else { 4..COMMON };
    let (first, rest) = (header.get(..left_out.start)?, header.get(left_out.end..)?);
    let end = first.len() + rest.len();
    into.get_mut(..first.len())?.copy_from_slice(first);
    into.get_mut(first.len()..end)?.copy_from_slice(rest);
    into.get(..end)
}

/// Kinds whose MAC has the key of greetings.
fn is_greeting(kind: u8) -> bool {
    kind == HELLO || kind == WELCOME || kind == RETRIED
}

/// Returns `true` for a datagram of ours whose MAC has the key of greetings.
pub(crate) fn is_greeting_datagram(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|kind| is_greeting(*kind))
}

/// Bytes of the header of a kind before what authenticates it, and the place of its check.
fn layout(kind: u8) -> Option<(usize, usize)> {
    Some(match kind {
        HELLO => (HELLO_BYTES, GREETING_CHECK),
        WELCOME => (GREETING, GREETING_CHECK),
        RETRIED => (RETRY, GREETING_CHECK),
        DATA => (DATA_HEADER, CHECK),
        ANSWERED => (ANSWER, CHECK),
        PROBED => (PROBE, CHECK),
        ECHOED => (ECHO, CHECK),
        LEFT => (BYE, CHECK),
        _ => return None,
    })
}

/// Makes of a datagram that has just been written, all but its payload, one that is authenticated: by `mac`, which makes the MAC of some bytes.
/// `payload` is the tag of data that are authenticated too. What pads it gives way.
pub(crate) fn authenticate(out: &mut Vec<u8>, number: u64, payload: Option<Tag>, mac: impl FnOnce(&[u8]) -> Tag) {
    let Some((header, check)) = out.get(1).copied().and_then(layout) else { return };
    let end = header + NUMBER + if payload.is_some() { TAG } else { 0 };
    if out.len() < end + TAG {
        out.resize(end + TAG, 0);
    }
    out[2] |= SEALED | if payload.is_some() { SEALED_PAYLOAD } else { 0 };
    out[check..check + 4].fill(0);
    out[header..header + NUMBER].copy_from_slice(&number.to_be_bytes());
    if let Some(payload) = payload {
        out[header + NUMBER..end].copy_from_slice(&payload);
    }
    let mut bytes = [0; MAX_COVERED];
    if let Some(bytes) = covered(&out[..end], &mut bytes) {
        let tag = mac(bytes);
        out[end..end + TAG].copy_from_slice(&tag);
    }
    if is_greeting(out[1]) {
        // Those of another version see that it is whole.
        seal(out, GREETING_CHECK);
    }
}

impl<'a> Packet<'a> {
    /// The connection of the endpoint that it goes to; 0 of a HELLO.
    pub(crate) fn connection(&self) -> u32 {
        match self {
            Packet::Hello { .. } => 0,
            Packet::Retry { connection, .. }
            | Packet::Welcome { connection, .. }
            | Packet::Data { connection, .. }
            | Packet::Answer { connection, .. }
            | Packet::Probe { connection, .. }
            | Packet::Echo { connection, .. }
            | Packet::Bye { connection, .. } => *connection,
        }
    }

    /// Understands a datagram that is not authenticated.
    ///
    /// # Errors
    /// Where it is not one of this format, says what cannot be, or is authenticated.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Refused> {
        match Packet::open(datagram)? {
            (packet, None) => Ok(packet),
            (_, Some(_)) => Err(Refused::Sealed),
        }
    }

    /// Understands a datagram. One that is authenticated is not checked otherwise: nothing of it may be acted on before its MAC has been
    /// verified.
    ///
    /// # Errors
    /// Where it is not one of this format, or says what cannot be.
    pub fn open(datagram: &'a [u8]) -> Result<(Self, Option<Sealed<'a>>), Refused> {
        if datagram.len() < COMMON {
            return Err(Refused::Length);
        }
        let mut from = Reader(datagram);
        let (version, kind, flags, _) = (from.u8(), from.u8(), from.u8(), from.u8());
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        let (header, place) = layout(kind).ok_or(Refused::Kind(kind))?;
        let mut sealed = None;
        let mut end = header;
        if flags & SEALED != 0 {
            let has_payload_tag = flags & SEALED_PAYLOAD != 0 && kind == DATA;
            end = header + if has_payload_tag { SEAL_ALL } else { SEAL };
            let all = datagram.get(..end).ok_or(Refused::Length)?;
            let (covered, tag) = all.split_at(end - TAG);
            sealed = Some(Sealed {
                number: Reader(&covered[header..]).u64(),
                tag: Reader(tag).bytes(),
                payload: has_payload_tag.then(|| (&datagram[end..], Reader(&covered[header + NUMBER..]).bytes())),
                is_data: kind == DATA,
                has_payload_tag,
                is_greeting: is_greeting(kind),
                header: covered,
            });
        }
        if sealed.is_none() || is_greeting(kind) {
            // Padding of greetings included, so that the rule is the same whatever a version adds.
            let all = if is_greeting(kind) { datagram.len().max(header) } else { header };
            if !is_intact(datagram.get(..all).ok_or(Refused::Length)?, place) {
                return Err(Refused::Damaged);
            }
        }
        let connection = from.u32();
        if place == CHECK {
            let _check = from.u32();
        }
        let packet = match kind {
            HELLO | WELCOME => {
                if from.u32() != MAGIC {
                    return Err(Refused::Value("magic"));
                }
                let mut greeting = Greeting {
                    connection: from.u32(),
                    mtu: from.u16(),
                    held: Time::from_ns(u64::from(from.u16()) << 16 | u64::from(from.u16())),
                    span: from.u32(),
                    nonce: from.u64(),
                    most_message: from.u64(),
                    stamp: from.time(),
                    labels: from.u16(),
                    own_nonce: 0,
                    protection: match flags & PROTECTION {
                        0 => Protection::Off,
                        1 => Protection::Control,
                        2 => Protection::All,
                        _ => return Err(Refused::Value("protection")),
                    },
                };
                let _check = from.u32();
                greeting.own_nonce = from.u64();
                if greeting.mtu == 0 || greeting.span == 0 || greeting.labels == 0 {
                    return Err(Refused::Value("mtu, span or labels"));
                }
                match kind {
                    HELLO => Packet::Hello { greeting, cookie: from.bytes() },
                    _ => Packet::Welcome { connection, greeting },
                }
            }
            DATA => {
                let data = Data {
                    stream: from.u32(),
                    payload: from.u16(),
                    index: u32::from(from.u16()) << 16 | u32::from(from.u16()),
                    psn: u64::from(from.u16()) << 32 | u64::from(from.u32()),
                    tag: from.u32(),
                    message: from.u32(),
                    checksum: Some(from.u32()).filter(|_| flags & CHECKED != 0),
                    length: from.u64(),
                    stamp: from.time(),
                    steering: from.u64(),
                    ack_request: flags & ACK_REQUEST != 0,
                };
                let payload = &datagram[end..];
                if payload.len() > usize::from(data.payload) {
                    return Err(Refused::Length);
                }
                if data.psn < u64::from(data.index) {
                    return Err(Refused::Value("index"));
                }
                let whole = payload.len() == usize::from(data.payload);
                if whole && data.checksum.is_some_and(|checksum| checksum != crc32c(payload)) {
                    return Err(Refused::Damaged);
                }
                if let Some(sealed) = &mut sealed
                    && !whole
                {
                    sealed.payload = None;
                }
                Packet::Data { connection, data, payload: whole.then_some(payload) }
            }
            ANSWERED => {
                if datagram.len() != end {
                    return Err(Refused::Length);
                }
                let (stream, tag) = (from.u32(), from.u32());
                let (psn, cumulative, bitmap) = (from.u64(), from.u64(), from.u64());
                let (offset, held, stamp) = (from.u32(), from.held(), from.time());
                // Nothing that a sender computes from these can overflow.
                if psn >> 48 != 0 || cumulative >> 48 != 0 {
                    return Err(Refused::Value("psn"));
                }
                let (ecn, cnp, nack) = (flags & ECN != 0, flags & NOTIFICATION != 0, flags & NACK != 0);
                let answer = Reply { psn, tag, cumulative, bitmap, offset, ecn, cnp, nack };
                let stamp = (stamp != Time::MAX).then_some(stamp);
                Packet::Answer { connection, stream, answer, stamp, held }
            }
            PROBED => {
                let size = u16::try_from(datagram.len()).map_err(|_| Refused::Length)?;
                let (stream, tag, stamp) = (from.u32(), from.u32(), from.time());
                Packet::Probe { connection, probe: Probed { stream, tag, stamp, size, held: Time::ZERO } }
            }
            ECHOED => {
                if datagram.len() != end {
                    return Err(Refused::Length);
                }
                let (stream, tag, stamp) = (from.u32(), from.u32(), from.time());
                let (held, size, _reserved) = (from.held(), from.u16(), from.u16());
                Packet::Echo { connection, echo: Probed { stream, tag, stamp, size, held } }
            }
            LEFT if datagram.len() == end => Packet::Bye { connection, proof: from.u64() },
            RETRIED if datagram.len() == end => {
                if from.u32() != MAGIC {
                    return Err(Refused::Value("magic"));
                }
                Packet::Retry { connection, nonce: from.u64(), cookie: from.bytes() }
            }
            LEFT | RETRIED => return Err(Refused::Length),
            kind => return Err(Refused::Kind(kind)),
        };
        Ok((packet, sealed))
    }
}

/// Returns the CRC32C of some bytes (Castagnoli's polynomial, as iSCSI has it).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Returns the CRC32C of two parts, one after the other.
pub(crate) fn crc32c_of(head: &[u8], rest: &[u8]) -> u32 {
    if head.is_empty() {
        return crc32c(rest);
    }
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(head);
    digest.update(rest);
    digest.finalize() as u32
}

/// Returns the check of a header, whose check field at `place` counts as zero.
fn check_of(header: &[u8], place: usize) -> u32 {
    let mut short = [0; DATA_HEADER];
    let mut long = Vec::new();
    let copy = match short.get_mut(..header.len()) {
        Some(short) => short,
        // Padded greetings, which are few.
        None => {
            long.resize(header.len(), 0);
            &mut long[..]
        }
    };
    copy.copy_from_slice(header);
    copy[place..place + 4].fill(0);
    crc32c(copy)
}

/// Returns `true` if the check field at `place` is that of its header.
fn is_intact(header: &[u8], place: usize) -> bool {
    header.get(place..place + 4).is_some_and(|check| check == check_of(header, place).to_be_bytes())
}

/// Gives a datagram that has been changed a check that fits, for tests of what an intact one may say.
#[doc(hidden)]
pub fn reseal(datagram: &mut [u8]) {
    if let Some((length, place)) = datagram.get(1).copied().and_then(layout)
        && let length = if is_greeting(datagram[1]) { datagram.len().max(length) } else { length }
        && let Some(header) = datagram.get_mut(..length)
    {
        let check = check_of(header, place);
        header[place..place + 4].copy_from_slice(&check.to_be_bytes());
    }
}

/// Writes the check field, which is zero so far, of a header that is otherwise complete.
fn seal(out: &mut [u8], place: usize) {
    let check = crc32c(out);
    out[place..place + 4].copy_from_slice(&check.to_be_bytes());
}

/// What a hello or a welcome says in every version of the format, so that peers of different ones can tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) version: u8,
    /// A hello, or the answer to one.
    pub(crate) hello: bool,
    /// Whose connection it is for, and what its sender's is.
    pub(crate) to: u32,
    pub(crate) connection: u32,
    pub(crate) nonce: u64,
}

/// A hello or a welcome of another version.
pub(crate) fn foreign(datagram: &[u8]) -> Option<Foreign> {
    let mut from = Reader(datagram.get(..GREETING_CHECK)?);
    let (version, kind, _flags, _) = (from.u8(), from.u8(), from.u8(), from.u8());
    let (to, magic, connection) = (from.u32(), from.u32(), from.u32());
    let _of_its_version: [u8; 10] = from.bytes();
    // A damaged greeting of our own version is none of another: those of version 1 end here, or in zeros.
    let intact = match version {
        1 => datagram[GREETING_CHECK..].iter().all(|byte| *byte == 0),
        _ => is_intact(datagram, GREETING_CHECK),
    };
    let known = version != VERSION && magic == MAGIC && (kind == HELLO || kind == WELCOME) && intact;
    known.then(|| Foreign { version, hello: kind == HELLO, to, connection, nonce: from.u64() })
}

/// Nanoseconds, as many as 32 bits hold.
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
    put(out, greeting.mtu.to_be_bytes());
    put(out, nanoseconds(greeting.held).to_be_bytes());
    put(out, greeting.span.to_be_bytes());
    put(out, greeting.nonce.to_be_bytes());
    put(out, greeting.most_message.to_be_bytes());
    put(out, greeting.stamp.ps().to_be_bytes());
    put(out, greeting.labels.to_be_bytes());
    put(out, [0; 4]);
    put(out, greeting.own_nonce.to_be_bytes());
}

/// Writes a HELLO, padded to `size` bytes, so that replies never exceed requests. Without a cookie that is all zero.
pub fn hello(out: &mut Vec<u8>, greeting: &Greeting, cookie: &Cookie, size: usize) {
    greet(out, HELLO, 0, greeting);
    put(out, *cookie);
    out.resize(size.max(HELLO_BYTES), 0);
    seal(out, GREETING_CHECK);
}

/// Writes a RETRY.
pub fn retry(out: &mut Vec<u8>, connection: u32, nonce: u64, cookie: &Cookie) {
    begin(out, RETRIED, 0, connection);
    put(out, MAGIC.to_be_bytes());
    put(out, nonce.to_be_bytes());
    put(out, *cookie);
    put(out, [0; 4]);
    seal(out, GREETING_CHECK);
}

/// Writes a WELCOME.
pub fn welcome(out: &mut Vec<u8>, connection: u32, greeting: &Greeting) {
    greet(out, WELCOME, connection, greeting);
    seal(out, GREETING_CHECK);
}

/// Writes the header of a data packet; the payload follows it.
pub fn data(out: &mut Vec<u8>, connection: u32, data: &Data) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(data.ack_request, ACK_REQUEST) | flag(data.checksum.is_some(), CHECKED);
    begin(out, DATA, flags, connection);
    put(out, data.stream.to_be_bytes());
    put(out, data.payload.to_be_bytes());
    put(out, data.index.to_be_bytes());
    let psn = data.psn.to_be_bytes();
    put(out, [psn[2], psn[3], psn[4], psn[5], psn[6], psn[7]]);
    put(out, data.tag.to_be_bytes());
    put(out, data.message.to_be_bytes());
    put(out, data.checksum.unwrap_or(0).to_be_bytes());
    put(out, data.length.to_be_bytes());
    put(out, data.stamp.ps().to_be_bytes());
    put(out, data.steering.to_be_bytes());
    seal(out, CHECK);
}

/// Writes an answer.
pub fn answer(out: &mut Vec<u8>, connection: u32, stream: u32, answer: &Reply, stamp: Option<Time>, held: Time) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(answer.ecn, ECN) | flag(answer.cnp, NOTIFICATION) | flag(answer.nack, NACK);
    begin(out, ANSWERED, flags, connection);
    put(out, stream.to_be_bytes());
    put(out, answer.tag.to_be_bytes());
    put(out, answer.psn.to_be_bytes());
    put(out, answer.cumulative.to_be_bytes());
    put(out, answer.bitmap.to_be_bytes());
    put(out, answer.offset.to_be_bytes());
    put(out, nanoseconds(held).to_be_bytes());
    put(out, stamp.unwrap_or(Time::MAX).ps().to_be_bytes());
    seal(out, CHECK);
}

/// Writes a probe, padded to `size` bytes.
pub fn probe(out: &mut Vec<u8>, connection: u32, probe: &Probed, size: usize) {
    begin(out, PROBED, 0, connection);
    put(out, probe.stream.to_be_bytes());
    put(out, probe.tag.to_be_bytes());
    put(out, probe.stamp.ps().to_be_bytes());
    out.resize(PROBE, 0);
    seal(out, CHECK);
    out.resize(size.max(PROBE), 0);
}

/// Writes the echo of a probe.
pub fn echo(out: &mut Vec<u8>, connection: u32, echo: &Probed) {
    begin(out, ECHOED, 0, connection);
    put(out, echo.stream.to_be_bytes());
    put(out, echo.tag.to_be_bytes());
    put(out, echo.stamp.ps().to_be_bytes());
    put(out, nanoseconds(echo.held).to_be_bytes());
    put(out, echo.size.to_be_bytes());
    put(out, [0; 2]);
    seal(out, CHECK);
}

/// Writes a BYE with a nonce of the handshake.
pub fn bye(out: &mut Vec<u8>, connection: u32, proof: u64) {
    begin(out, LEFT, 0, connection);
    put(out, proof.to_be_bytes());
    seal(out, CHECK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times() -> impl Strategy<Value = Time> {
        (0..u64::MAX).prop_map(Time::from_ps)
    }

    fn holds() -> impl Strategy<Value = Time> {
        any::<u32>().prop_map(|ns| Time::from_ns(u64::from(ns)))
    }

    /// As docs/reference/wire.md has it.
    #[test]
    fn fields_of_a_retry() {
        let mut out = Vec::new();
        retry(&mut out, 0x0102_0304, 0x1112_1314_1516_1718, &[0xAB; COOKIE]);
        assert_eq!(out.len(), 56);
        assert_eq!((out[1], &out[4..8]), (8, &[1, 2, 3, 4][..]));
        assert_eq!(&out[8..12], b"ABCH");
        assert_eq!(&out[12..20], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        assert_eq!(&out[20..52], [0xAB; 32]);
        let check: [u8; 4] = out[52..].try_into().unwrap();
        out[52..].fill(0);
        assert_eq!(crc_fast::crc32_iscsi(&out).to_be_bytes(), check);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in any::<[u32; 5]>(), wide in any::<[u64; 3]>(), psn in 0u64..1 << 48, cumulative in 0u64..1 << 48,
            small in 1u16.., flags in any::<[bool; 4]>(), stamp in times(), held in holds(),
        ) {
            let [connection, stream, tag, message, _] = numbers;
            let mut out = Vec::new();
            let greeting = Greeting {
                connection: tag, nonce: wide[0], own_nonce: wide[2], mtu: small, labels: small, span: message | 1, most_message: wide[1],
                stamp, held, protection: [Protection::Off, Protection::Control, Protection::All][psn as usize % 3],
            };
            let cookie = std::array::from_fn(|at| (wide[at % 3] >> (at % 8)) as u8);
            hello(&mut out, &greeting, &cookie, 1000);
            prop_assert_eq!((Packet::decode(&out), out.len()), (Ok(Packet::Hello { greeting, cookie }), 1000));
            retry(&mut out, connection, wide[0], &cookie);
            prop_assert_eq!(out.len(), RETRY);
            prop_assert_eq!(Packet::decode(&out), Ok(Packet::Retry { connection, nonce: wide[0], cookie }));
            welcome(&mut out, connection, &greeting);
            prop_assert_eq!(Packet::decode(&out), Ok(Packet::Welcome { connection, greeting }));

            let index = (wide[2] % (psn + 1)).min(u64::from(u32::MAX)) as u32;
            let payload = vec![tag as u8; usize::from(small % 100)];
            let (checksum, steering) = (flags[3].then(|| crc32c(&payload)), wide[0]);
            let header = Data {
                stream, payload: payload.len() as u16, psn, tag, message, length: wide[1], index, checksum, steering, stamp,
                ack_request: flags[0],
            };
            data(&mut out, connection, &header);
            prop_assert_eq!(out.len(), DATA_HEADER);
            out.extend_from_slice(&payload);
            let read = Packet::Data { connection, data: header, payload: Some(&payload) };
            prop_assert_eq!(Packet::decode(&out), Ok(read));
            if header.payload > 0 {
                let trimmed = Packet::Data { connection, data: header, payload: None };
                prop_assert_eq!(Packet::decode(&out[..DATA_HEADER]), Ok(trimmed));
            }

            let said = Reply {
                psn, tag, cumulative, bitmap: wide[0], offset: message, ecn: flags[1], cnp: flags[2], nack: flags[3],
            };
            let echoed = flags[0].then_some(stamp);
            answer(&mut out, connection, stream, &said, echoed, held);
            prop_assert_eq!(out.len(), ANSWER);
            let read = Packet::Answer { connection, stream, answer: said, stamp: echoed, held };
            prop_assert_eq!(Packet::decode(&out), Ok(read));

            let asked = Probed { stream, tag, stamp, size: 500 + small / 2, held: Time::ZERO };
            probe(&mut out, connection, &asked, usize::from(asked.size));
            prop_assert_eq!(Packet::decode(&out), Ok(Packet::Probe { connection, probe: asked }));
            let back = Probed { held, ..asked };
            echo(&mut out, connection, &back);
            prop_assert_eq!((Packet::decode(&out), out.len()), (Ok(Packet::Echo { connection, echo: back }), ECHO));
            bye(&mut out, connection, wide[1]);
            prop_assert_eq!(Packet::decode(&out), Ok(Packet::Bye { connection, proof: wide[1] }));
        }

        /// Nothing that arrives makes the decoder panic, whatever it is and wherever it ends.
        #[test]
        fn garbage_is_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 0u8..10, ours in any::<bool>()) {
            if ours && bytes.len() > 1 {
                (bytes[0], bytes[1]) = (VERSION, kind);
            }
            for end in 0..=bytes.len() {
                let _ = Packet::decode(&bytes[..end]);
            }
        }
    }

    /// RFC 3720, appendix B.4.
    #[test]
    fn crc32c_is_that_of_iscsi() {
        let ascending: Vec<u8> = (0..32).collect();
        let vectors = [(&[0; 32][..], 0x8a91_36aa), (&[0xff; 32], 0x62a8_ab43), (&ascending, 0x46dd_794e)];
        for (bytes, expected) in vectors {
            assert_eq!(crc32c(bytes), expected);
            let (first, rest) = bytes.split_at(7);
            assert_eq!((crc32c_of(first, rest), crc32c_of(&[], bytes)), (expected, expected));
        }
    }

    /// One to three changed bits, or a changed word, anywhere in a datagram: nothing of it is believed, but the padding of a probe.
    #[test]
    fn damage_is_found_wherever_it_is() {
        let payload: Vec<u8> = (0..200u8).collect();
        let data_of = |checksum| Data {
            stream: 1,
            payload: 200,
            psn: 9,
            tag: 3,
            message: 2,
            length: 900,
            index: 1,
            checksum,
            steering: 5,
            stamp: Time::from_us(7),
            ack_request: true,
        };
        let greeting = Greeting {
            connection: 1,
            nonce: 2,
            own_nonce: 3,
            protection: Protection::Off,
            mtu: 4,
            labels: 5,
            span: 6,
            most_message: 7,
            stamp: Time::from_us(8),
            held: Time::from_ns(9),
        };
        let said = Reply { psn: 1, tag: 2, cumulative: 3, bitmap: 4, offset: 5, ecn: true, cnp: false, nack: false };
        let probe_of = Probed { stream: 1, tag: 2, stamp: Time::from_us(3), size: 4, held: Time::from_ns(5) };
        let mut all = vec![Vec::new(); 8];
        data(&mut all[0], 1, &data_of(Some(crc32c(&payload))));
        all[0].extend_from_slice(&payload);
        hello(&mut all[1], &greeting, &[6; COOKIE], 300);
        welcome(&mut all[2], 1, &greeting);
        answer(&mut all[3], 1, 2, &said, None, Time::ZERO);
        probe(&mut all[4], 1, &probe_of, PROBE);
        echo(&mut all[5], 1, &probe_of);
        bye(&mut all[6], 1, 2);
        retry(&mut all[7], 1, 2, &[6; COOKIE]);
        let believed = |bytes: &[u8]| Packet::decode(bytes).is_ok() || foreign(bytes).is_some();
        for datagram in &all {
            assert!(believed(datagram));
            let bits = 8 * datagram.len();
            for first in 0..bits {
                for (second, third) in [(first, first), (first / 2, first), (bits - 1, 17), (first + 1, first + 5)] {
                    let mut changed = datagram.clone();
                    let places = std::collections::BTreeSet::from([first, second % bits, third % bits]);
                    places.iter().for_each(|bit| changed[bit / 8] ^= 1 << (bit % 8));
                    assert!(!believed(&changed), "{places:?} of {datagram:?}");
                }
            }
        }
        // A header alone, as a switch leaves it, is checked as well; so is one whose payload has no check of its own.
        let mut trimmed = all[0][..DATA_HEADER].to_vec();
        assert!(believed(&trimmed));
        trimmed[30] ^= 4;
        assert!(!believed(&trimmed));
        data(&mut trimmed, 1, &data_of(None));
        trimmed.extend_from_slice(&[1; 200]);
        assert!(believed(&trimmed));
    }

    #[test]
    fn another_version_is_named() {
        let mut out = Vec::new();
        bye(&mut out, 1, 2);
        out[0] = 1;
        assert_eq!(Packet::decode(&out), Err(Refused::Version(1)));
        out[0] = VERSION;
        out[1] = 9;
        assert_eq!(Packet::decode(&out), Err(Refused::Kind(9)));
    }
}
