//! Packets, and how they are read.

use super::{
    check::{MAX_COVERED, covered, crc32c, is_greeting, is_intact, layout},
    format::*,
};
use anabranch_transport::Reply;
use anabranch_units::Time;

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
