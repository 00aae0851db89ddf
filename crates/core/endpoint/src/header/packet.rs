use super::{
    check::{crc32c, is_greeting, is_intact, layout, with_covered},
    format::*,
};
use crate::event::Sizes;
use anabranch_transport::Reply;
use anabranch_units::Time;

/// Reason to refuse a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Its length does not match its kind.
    Length,
    /// Its check or that of its payload does not match: bits changed on its path.
    Damaged,
    /// It has another version of the format, or another format.
    Version(u8),
    /// It is authenticated, and the reader has no key.
    Sealed,
    /// Its kind does not exist in this version.
    Kind(u8),
    /// A field has an invalid value.
    Value(&'static str),
}

/// Scope of an endpoint's authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Nothing: there is no key.
    #[default]
    Off,
    /// Headers, with the CRC32C of their payload, and all control packets.
    Control,
    /// Payloads as well.
    All,
}

/// The first packet between two endpoints: their connection numbers and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Connection number that datagrams to the sender of this greeting must carry.
    pub connection: u32,
    /// Nonce of the HELLO; the WELCOME repeats it.
    pub nonce: u64,
    /// Nonce of the sender of this greeting; in a HELLO the same.
    pub own_nonce: u64,
    /// Payload bytes of a full data packet, below 2^24.
    pub mtu: u32,
    /// Number of labels that the sender of this greeting receives on.
    pub labels: u16,
    /// Number of planes that these labels are of, from 1.
    pub planes: u8,
    pub protection: Protection,
    /// Maximum packets of a stream under way beyond the first missing one.
    pub span: u32,
    /// Maximum message that the sender of this greeting accepts, in bytes.
    pub max_message: u64,
}

/// Part of a packet that is sent in several datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Its index, from 0.
    pub index: u8,
    /// Number of fragments of a full packet, 1 to 16, which cut its payload at equal distances.
    pub count: u8,
}

impl Fragment {
    pub const WHOLE: Fragment = Fragment { index: 0, count: 1 };
}

impl Default for Fragment {
    fn default() -> Self {
        Fragment::WHOLE
    }
}

/// A data packet without its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Number of its sender's stream.
    pub stream: u32,
    /// Payload bytes; fewer follow if a switch has trimmed it.
    pub payload: u32,
    /// Packet sequence number in the stream.
    pub psn: u64,
    pub tag: u32,
    /// Number of its message, from 0 per stream.
    pub message: u64,
    /// Bytes of that message, of which the header has 48 bits.
    pub length: u64,
    pub index: u32,
    /// Part of the packet that follows, of `payload` bytes.
    pub fragment: Fragment,
    /// CRC32C of the payload; `None`: it has none.
    pub checksum: Option<u32>,
    /// Placement of the message's bytes, in values that the receiver defines ([`crate::Placement`]); 0: none.
    pub steering: u64,
    /// Number by which its sender finds its own record of this transmission; the ACK repeats it. 0: none.
    pub transmission: u32,
    pub ack_request: bool,
}

/// A probe, or its echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeHeader {
    /// Stream whose scheme sends it; `u32::MAX`: the endpoint itself, for the base round trip.
    pub stream: u32,
    pub tag: u32,
    /// Number by which its sender finds its own record of it; the echo repeats it.
    pub transmission: u32,
    /// Of an echo: time that it was held.
    pub held: Time,
    /// Of an echo: the probe was marked.
    pub ecn: bool,
}

/// What identifies data or a probe to its own sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfOurs {
    pub(crate) stream: u32,
    /// `None`: a probe.
    pub(crate) psn: Option<u64>,
    pub(crate) tag: u32,
    pub(crate) transmission: u32,
}

/// Returns `true` for the header of a probe.
pub fn is_probe(header: &[u8]) -> bool {
    header.get(1) == Some(&PROBE)
}

/// Returns `true` for the header of data.
pub fn is_data(header: &[u8]) -> bool {
    header.get(1) == Some(&DATA)
}

/// Returns `true` if both are headers of the same packet of data to a peer, possibly of two transmissions.
pub fn is_same_data(one: &[u8], other: &[u8]) -> bool {
    let of = |header| OfOurs::read(header).filter(|of| of.psn.is_some()).map(|of| (of.stream, of.psn));
    of(one).is_some() && of(one) == of(other)
}

impl OfOurs {
    /// Reads the header of a datagram that this endpoint has written; `None`: it is neither.
    pub(crate) fn read(header: &[u8]) -> Option<Self> {
        let at = |from: usize| header.get(from..from + 4)?.first_chunk::<4>().copied().map(u32::from_be_bytes);
        let psn = || Some(u64::from(at(24)?) << 32 | u64::from(at(28)?));
        match *header.get(1)? {
            DATA => Some(OfOurs { stream: at(12)?, psn: Some(psn()?), tag: at(44)?, transmission: at(52)? }),
            PROBE => Some(OfOurs { stream: at(12)?, psn: None, tag: at(16)?, transmission: at(20)? }),
            _ => None,
        }
    }
}

/// A decoded datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// HELLO: an initiator opens a connection.
    Hello {
        greeting: Greeting,
        /// Cookie of the RETRY to an earlier HELLO; all zero: none.
        cookie: Cookie,
    },
    /// RETRY: the initiator must prove that it receives at its address, and repeats its HELLO with this cookie.
    Retry {
        /// Connection number of the receiving endpoint.
        connection: u32,
        nonce: u64,
        /// Cookie that the HELLO must carry.
        cookie: Cookie,
    },
    /// WELCOME: reply to a HELLO.
    Welcome {
        /// Connection number of the receiving endpoint.
        connection: u32,
        greeting: Greeting,
    },
    Data {
        /// Connection number of the receiving endpoint.
        connection: u32,
        data: Data,
        /// Its payload; `None` if it was trimmed.
        payload: Option<&'a [u8]>,
    },
    Ack {
        /// Connection number of the receiving endpoint.
        connection: u32,
        stream: u32,
        ack: Reply,
        /// Transmission of the acknowledged packet; 0 for an ACK that a timer has triggered.
        transmission: u32,
        /// Time that the receiver held that packet.
        held: Time,
    },
    /// Probe of a round trip.
    Probe {
        /// Connection number of the receiving endpoint.
        connection: u32,
        probe: ProbeHeader,
    },
    Echo {
        /// Connection number of the receiving endpoint.
        connection: u32,
        echo: ProbeHeader,
    },
    /// BYE: the peer is gone, or has no such connection.
    Bye {
        /// Connection number of the receiving endpoint.
        connection: u32,
        /// A nonce of the handshake, which only its two endpoints have seen.
        proof: u64,
        /// The sender has lost the peer, which acknowledged none of its data; `None`: it leaves.
        stalled: Option<Sizes>,
        /// Which of how many datagrams of the BYE this one is.
        part: [u8; 2],
        /// Streams of the receiving endpoint, as [`bye_list`] reads them.
        streams: &'a [u8],
    },
}

/// Returns the streams of a BYE, each with the first PSN that has not been received.
pub fn bye_list(streams: &[u8]) -> impl Iterator<Item = (u32, u64)> {
    streams.chunks_exact(BYE_STREAM).map(|bytes| {
        let mut from = Reader(bytes);
        (from.u32(), from.u64())
    })
}

/// Reads from the front of a datagram, whose length has been checked.
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
    fn held(&mut self) -> Time {
        Time::from_ns(u64::from(self.u32()))
    }
}

/// Authentication of a datagram, to be verified before any of it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// Packet number within its connection and direction; 0 in greetings.
    pub number: u64,
    pub(crate) tag: Tag,
    /// `None` if there is no tag or the payload has been trimmed.
    pub(crate) payload: Option<(&'a [u8], Tag)>,
    pub(crate) is_data: bool,
    pub(crate) has_payload_tag: bool,
    pub(crate) is_greeting: bool,
    /// With number and payload tag.
    header: &'a [u8],
}

impl<'a> Sealed<'a> {
    pub(crate) fn is_covered(&self, check: impl FnOnce(&[u8]) -> bool) -> bool {
        with_covered(self.header, check).unwrap_or(false)
    }
}

impl<'a> Packet<'a> {
    /// Of the receiving endpoint; 0 of a HELLO.
    pub(crate) fn connection(&self) -> u32 {
        match self {
            Packet::Hello { .. } => 0,
            Packet::Retry { connection, .. }
            | Packet::Welcome { connection, .. }
            | Packet::Data { connection, .. }
            | Packet::Ack { connection, .. }
            | Packet::Probe { connection, .. }
            | Packet::Echo { connection, .. }
            | Packet::Bye { connection, .. } => *connection,
        }
    }

    /// Decodes a datagram that is not authenticated.
    /// Fails if it has another format, contains an invalid value or is authenticated.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        match Packet::open(datagram)? {
            (packet, None) => Ok(packet),
            (_, Some(_)) => Err(DecodeError::Sealed),
        }
    }

    /// Decodes a datagram. The header check of an authenticated one other than a greeting is not verified: nothing of
    /// it may take effect before its MAC has been verified.
    ///
    /// Fails if it has another format or contains an invalid value.
    pub fn open(datagram: &'a [u8]) -> Result<(Self, Option<Sealed<'a>>), DecodeError> {
        if datagram.len() < COMMON {
            return Err(DecodeError::Length);
        }
        let mut from = Reader(datagram);
        let (version, kind, flags, fragment) = (from.u8(), from.u8(), from.u8(), from.u8());
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let (header, place) = layout(datagram).ok_or(DecodeError::Kind(kind))?;
        let mut sealed = None;
        let mut end = header;
        if flags & SEALED != 0 {
            let has_payload_tag = flags & SEALED_PAYLOAD != 0 && kind == DATA;
            end = header + if has_payload_tag { SEAL_ALL } else { SEAL };
            let all = datagram.get(..end).ok_or(DecodeError::Length)?;
            let (covered, tag) = all.split_at(end - TAG_BYTES);
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
            // The check includes the padding of greetings in every version.
            let all = if is_greeting(kind) { datagram.len().max(header) } else { header };
            if !is_intact(datagram.get(..all).ok_or(DecodeError::Length)?, place) {
                return Err(DecodeError::Damaged);
            }
        }
        let connection = from.u32();
        if place == CHECK {
            let _check = from.u32();
        }
        let packet = match kind {
            HELLO | WELCOME => {
                if from.u32() != MAGIC {
                    return Err(DecodeError::Value("magic"));
                }
                let protection = match flags & PROTECTION {
                    0 => Protection::Off,
                    1 => Protection::Control,
                    2 => Protection::All,
                    _ => return Err(DecodeError::Value("protection")),
                };
                let (connection_of_sender, mtu) = (from.u32(), from.u16());
                let [planes, upper, _reserved @ ..] = from.bytes::<4>();
                let mtu = u32::from(upper) << 16 | u32::from(mtu);
                let (span, nonce, max_message) = (from.u32(), from.u64(), from.u64());
                let _reserved: [u8; 8] = from.bytes();
                let labels = from.u16();
                let mut greeting = Greeting {
                    connection: connection_of_sender,
                    nonce,
                    own_nonce: 0,
                    mtu,
                    labels,
                    planes: planes.wrapping_add(1),
                    protection,
                    span,
                    max_message,
                };
                let _check = from.u32();
                greeting.own_nonce = from.u64();
                if greeting.mtu == 0 || greeting.span == 0 || greeting.labels == 0 || greeting.planes == 0 {
                    return Err(DecodeError::Value("mtu, span, labels or planes"));
                }
                match kind {
                    HELLO => Packet::Hello { greeting, cookie: from.bytes() },
                    _ => Packet::Welcome { connection, greeting },
                }
            }
            DATA => {
                let mut data = Data {
                    stream: from.u32(),
                    payload: u32::from(from.u16()),
                    length: u64::from(from.u16()) << 32 | u64::from(from.u32()),
                    psn: from.u64(),
                    message: from.u64(),
                    index: from.u32(),
                    fragment: Fragment { index: fragment >> 4, count: (fragment & 15) + 1 },
                    tag: from.u32(),
                    checksum: Some(from.u32()).filter(|_| flags & CHECKED != 0),
                    transmission: from.u32(),
                    steering: from.u64(),
                    ack_request: flags & ACK_REQUEST != 0,
                };
                let payload = &datagram[end..];
                if data.payload == LONG {
                    data.payload = LONG.max(payload.len() as u32);
                }
                if payload.len() > data.payload as usize {
                    return Err(DecodeError::Length);
                }
                if data.fragment.index >= data.fragment.count {
                    return Err(DecodeError::Value("fragment"));
                }
                if data.psn.max(data.message) > MAX_NUMBER || data.psn < u64::from(data.index) {
                    return Err(DecodeError::Value("psn, message or index"));
                }
                let whole = payload.len() == data.payload as usize;
                if whole && data.checksum.is_some_and(|checksum| checksum != crc32c(payload)) {
                    return Err(DecodeError::Damaged);
                }
                if let Some(sealed) = &mut sealed
                    && !whole
                {
                    sealed.payload = None;
                }
                Packet::Data { connection, data, payload: whole.then_some(payload) }
            }
            ACK => {
                if datagram.len() != end {
                    return Err(DecodeError::Length);
                }
                let (stream, tag) = (from.u32(), from.u32());
                let (psn, cumulative, bitmap) = (from.u64(), from.u64(), from.u64());
                let (offset, held, transmission) = (from.u32(), from.held(), from.u32());
                // With these bounds, nothing that a sender computes from them can overflow.
                if (psn > MAX_NUMBER && psn != NO_PSN) || cumulative > MAX_NUMBER {
                    return Err(DecodeError::Value("psn"));
                }
                let (ecn, cnp, nack) = (flags & ECN != 0, flags & NOTIFICATION != 0, flags & NACK != 0);
                let ack = Reply { psn, tag, cumulative, bitmap, offset, ecn, cnp, nack, last_hop: false };
                Packet::Ack { connection, stream, ack, transmission, held }
            }
            PROBE => {
                let (stream, tag, transmission) = (from.u32(), from.u32(), from.u32());
                Packet::Probe { connection, probe: ProbeHeader { stream, tag, transmission, ..ProbeHeader::default() } }
            }
            ECHO => {
                if datagram.len() != end {
                    return Err(DecodeError::Length);
                }
                let (stream, tag, transmission, held) = (from.u32(), from.u32(), from.u32(), from.held());
                let ecn = flags & ECN != 0;
                Packet::Echo { connection, echo: ProbeHeader { stream, tag, transmission, held, ecn } }
            }
            BYE if datagram.len() == end => {
                let (proof, passes, fails) = (from.u64(), from.u16().into(), from.u16().into());
                let part @ [index, parts] = from.bytes();
                let streams = &datagram[BYE_BYTES..header];
                if index >= parts || usize::from(parts) > MAX_BYES {
                    return Err(DecodeError::Value("part"));
                }
                if bye_list(streams).any(|(_, cumulative)| cumulative > MAX_NUMBER) {
                    return Err(DecodeError::Value("psn"));
                }
                let stalled = (flags & STALLED != 0).then_some(Sizes { passes, fails });
                Packet::Bye { connection, proof, stalled, part, streams }
            }
            RETRY if datagram.len() == end => {
                if from.u32() != MAGIC {
                    return Err(DecodeError::Value("magic"));
                }
                Packet::Retry { connection, nonce: from.u64(), cookie: from.bytes() }
            }
            BYE | RETRY => return Err(DecodeError::Length),
            kind => return Err(DecodeError::Kind(kind)),
        };
        Ok((packet, sealed))
    }
}

/// Fields of a HELLO or WELCOME of every version, so that different versions can identify each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignGreeting {
    pub(crate) version: u8,
    /// `false`: it is the reply to one.
    pub(crate) hello: bool,
    /// Of the receiver; `connection`: of the sender.
    pub(crate) to: u32,
    pub(crate) connection: u32,
    pub(crate) nonce: u64,
}

pub(crate) fn decode_foreign(datagram: &[u8]) -> Option<ForeignGreeting> {
    let mut from = Reader(datagram.get(..GREETING_CHECK)?);
    let (version, kind, _flags, _) = (from.u8(), from.u8(), from.u8(), from.u8());
    let (to, magic, connection) = (from.u32(), from.u32(), from.u32());
    let _of_its_version: [u8; 10] = from.bytes();
    // A damaged greeting of the local version must not pass for another: those of version 1 end here, or in zeros.
    let intact = match version {
        1 => datagram[GREETING_CHECK..].iter().all(|byte| *byte == 0),
        _ => is_intact(datagram, GREETING_CHECK),
    };
    let known = version != VERSION && magic == MAGIC && (kind == HELLO || kind == WELCOME) && intact;
    known.then(|| ForeignGreeting { version, hello: kind == HELLO, to, connection, nonce: from.u64() })
}
