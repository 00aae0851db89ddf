//! What an endpoint's datagrams look like (docs/wire.md). Numbers are big-endian. Whatever comes from outside becomes a
//! [`Packet`] here or is refused.

use anabranch_transport::Answer;
use anabranch_units::Time;

/// The version of this format; peers of another one are refused, and told so.
pub const VERSION: u8 = 1;
/// The word that hellos carry.
const MAGIC: u32 = u32::from_be_bytes(*b"ABCH");
/// Bytes of the longest header, that of data: a switch that trims must leave as much.
pub const DATA_HEADER: usize = 56;
/// Bytes of an answer.
pub const ANSWER: usize = 56;
/// Bytes of an echo.
pub const ECHO: usize = 32;
/// Bytes of a hello or a welcome before its padding.
const GREETING: usize = 52;
/// Bytes of a probe before its padding.
const PROBE: usize = 24;
const BYE: usize = 8;

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const DATA: u8 = 3;
const ANSWERED: u8 = 4;
const PROBED: u8 = 5;
const ECHOED: u8 = 6;
const LEFT: u8 = 7;

const ACK_REQUEST: u8 = 1;
const STEERED: u8 = 2;
const ECN: u8 = 1;
const NOTIFICATION: u8 = 2;
const NACK: u8 = 4;

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is shorter or longer than its kind says.
    Length,
    /// Of another version of the format, or not of this format at all.
    Version(u8),
    /// A kind that this version does not know.
    Kind(u8),
    /// A field has a value that it cannot have.
    Value(&'static str),
}

/// The first packets between two endpoints: who they are to each other, and what they can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// What datagrams to the sender of this greeting must carry as their connection.
    pub connection: u32,
    /// Chosen by whoever says hello; the welcome repeats it.
    pub nonce: u64,
    /// Payload bytes of a full data packet.
    pub mtu: u16,
    /// Labels that the sender of this greeting listens to.
    pub labels: u16,
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
    /// CRC-32 of that message; 0: it has none.
    pub checksum: u32,
    /// Where the receiver is to put that message's bytes, in words of its own ([`crate::Place`]); 0: it does not say. A message
    /// has this or a checksum.
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
    /// Somebody wants to talk.
    Hello(Greeting),
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
        answer: Answer,
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

impl<'a> Packet<'a> {
    /// Understands a datagram.
    ///
    /// # Errors
    /// Where it is not one of this format, or says what cannot be.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Refused> {
        if datagram.len() < BYE {
            return Err(Refused::Length);
        }
        let mut from = Reader(datagram);
        let (version, kind, flags, _) = (from.u8(), from.u8(), from.u8(), from.u8());
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        let connection = from.u32();
        let at_least = |bytes: usize| if datagram.len() < bytes { Err(Refused::Length) } else { Ok(()) };
        match kind {
            HELLO | WELCOME => {
                at_least(GREETING)?;
                if from.u32() != MAGIC {
                    return Err(Refused::Value("magic"));
                }
                let greeting = Greeting {
                    connection: from.u32(),
                    mtu: from.u16(),
                    held: Time::from_ns(u64::from(from.u16()) << 16 | u64::from(from.u16())),
                    span: from.u32(),
                    nonce: from.u64(),
                    most_message: from.u64(),
                    stamp: from.time(),
                    labels: from.u16(),
                };
                if greeting.mtu == 0 || greeting.span == 0 || greeting.labels == 0 {
                    return Err(Refused::Value("mtu, span or labels"));
                }
                Ok(match kind {
                    HELLO => Packet::Hello(greeting),
                    _ => Packet::Welcome { connection, greeting },
                })
            }
            DATA => {
                at_least(DATA_HEADER)?;
                let mut data = Data {
                    stream: from.u32(),
                    payload: from.u16(),
                    index: u32::from(from.u16()) << 16 | u32::from(from.u16()),
                    psn: u64::from(from.u16()) << 32 | u64::from(from.u32()),
                    tag: from.u32(),
                    message: from.u32(),
                    checksum: from.u32(),
                    steering: 0,
                    length: from.u64(),
                    stamp: from.time(),
                    ack_request: flags & ACK_REQUEST != 0,
                };
                let rest = from.u32();
                if flags & STEERED != 0 {
                    data.steering = u64::from(std::mem::take(&mut data.checksum)) << 32 | u64::from(rest);
                }
                let payload = &datagram[DATA_HEADER..];
                if payload.len() > usize::from(data.payload) {
                    return Err(Refused::Length);
                }
                if data.psn < u64::from(data.index) {
                    return Err(Refused::Value("index"));
                }
                let whole = payload.len() == usize::from(data.payload);
                Ok(Packet::Data { connection, data, payload: whole.then_some(payload) })
            }
            ANSWERED => {
                if datagram.len() != ANSWER {
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
                let answer = Answer { psn, tag, cumulative, bitmap, offset, ecn, cnp, nack };
                let stamp = (stamp != Time::MAX).then_some(stamp);
                Ok(Packet::Answer { connection, stream, answer, stamp, held })
            }
            PROBED => {
                at_least(PROBE)?;
                let size = u16::try_from(datagram.len()).map_err(|_| Refused::Length)?;
                let (stream, tag, stamp) = (from.u32(), from.u32(), from.time());
                Ok(Packet::Probe { connection, probe: Probed { stream, tag, stamp, size, held: Time::ZERO } })
            }
            ECHOED => {
                if datagram.len() != ECHO {
                    return Err(Refused::Length);
                }
                let (stream, tag, stamp) = (from.u32(), from.u32(), from.time());
                let (held, size, _reserved) = (from.held(), from.u16(), from.u16());
                Ok(Packet::Echo { connection, echo: Probed { stream, tag, stamp, size, held } })
            }
            LEFT if datagram.len() == BYE => Ok(Packet::Bye { connection }),
            LEFT => Err(Refused::Length),
            kind => Err(Refused::Kind(kind)),
        }
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
    let mut from = Reader(datagram.get(..GREETING)?);
    let (version, kind, _flags, _) = (from.u8(), from.u8(), from.u8(), from.u8());
    let (to, magic, connection) = (from.u32(), from.u32(), from.u32());
    let _of_its_version: [u8; 10] = from.bytes();
    let known = version != VERSION && magic == MAGIC && (kind == HELLO || kind == WELCOME);
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
}

fn put<const N: usize>(out: &mut Vec<u8>, number: [u8; N]) {
    out.extend_from_slice(&number);
}

fn greet(out: &mut Vec<u8>, kind: u8, connection: u32, greeting: &Greeting, size: usize) {
    begin(out, kind, 0, connection);
    put(out, MAGIC.to_be_bytes());
    put(out, greeting.connection.to_be_bytes());
    put(out, greeting.mtu.to_be_bytes());
    put(out, nanoseconds(greeting.held).to_be_bytes());
    put(out, greeting.span.to_be_bytes());
    put(out, greeting.nonce.to_be_bytes());
    put(out, greeting.most_message.to_be_bytes());
    put(out, greeting.stamp.ps().to_be_bytes());
    put(out, greeting.labels.to_be_bytes());
    out.resize(size.max(GREETING), 0);
}

/// Writes a hello, padded to `size` bytes, so that no answer is longer than its question.
pub fn hello(out: &mut Vec<u8>, greeting: &Greeting, size: usize) {
    greet(out, HELLO, 0, greeting, size);
}

/// Writes a welcome.
pub fn welcome(out: &mut Vec<u8>, connection: u32, greeting: &Greeting) {
    greet(out, WELCOME, connection, greeting, GREETING);
}

/// Writes the header of a data packet; the payload follows it.
pub fn data(out: &mut Vec<u8>, connection: u32, data: &Data) {
    let is_steered = data.steering != 0;
    let flags = if data.ack_request { ACK_REQUEST } else { 0 } | if is_steered { STEERED } else { 0 };
    begin(out, DATA, flags, connection);
    put(out, data.stream.to_be_bytes());
    put(out, data.payload.to_be_bytes());
    put(out, data.index.to_be_bytes());
    let psn = data.psn.to_be_bytes();
    put(out, [psn[2], psn[3], psn[4], psn[5], psn[6], psn[7]]);
    put(out, data.tag.to_be_bytes());
    put(out, data.message.to_be_bytes());
    put(out, if is_steered { (data.steering >> 32) as u32 } else { data.checksum }.to_be_bytes());
    put(out, data.length.to_be_bytes());
    put(out, data.stamp.ps().to_be_bytes());
    put(out, (data.steering as u32).to_be_bytes());
}

/// Writes an answer.
pub fn answer(out: &mut Vec<u8>, connection: u32, stream: u32, answer: &Answer, stamp: Option<Time>, held: Time) {
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
}

/// Writes a probe, padded to `size` bytes.
pub fn probe(out: &mut Vec<u8>, connection: u32, probe: &Probed, size: usize) {
    begin(out, PROBED, 0, connection);
    put(out, probe.stream.to_be_bytes());
    put(out, probe.tag.to_be_bytes());
    put(out, probe.stamp.ps().to_be_bytes());
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
}

/// Writes a farewell.
pub fn bye(out: &mut Vec<u8>, connection: u32) {
    begin(out, LEFT, 0, connection);
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

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in any::<[u32; 5]>(), wide in any::<[u64; 3]>(), psn in 0u64..1 << 48, cumulative in 0u64..1 << 48,
            small in 1u16.., flags in any::<[bool; 4]>(), stamp in times(), held in holds(),
        ) {
            let [connection, stream, tag, message, checksum] = numbers;
            let mut out = Vec::new();
            let greeting = Greeting {
                connection: tag, nonce: wide[0], mtu: small, labels: small, span: message | 1, most_message: wide[1],
                stamp, held,
            };
            hello(&mut out, &greeting, 1000);
            prop_assert_eq!((Packet::decode(&out), out.len()), (Ok(Packet::Hello(greeting)), 1000));
            welcome(&mut out, connection, &greeting);
            prop_assert_eq!(Packet::decode(&out), Ok(Packet::Welcome { connection, greeting }));

            let index = (wide[2] % (psn + 1)).min(u64::from(u32::MAX)) as u32;
            let (checksum, steering) = if flags[3] { (0, wide[0]) } else { (checksum, 0) };
            let header = Data {
                stream, payload: small % 100, psn, tag, message, length: wide[1], index, checksum, steering, stamp,
                ack_request: flags[0],
            };
            data(&mut out, connection, &header);
            prop_assert_eq!(out.len(), DATA_HEADER);
            let payload = vec![7u8; usize::from(header.payload)];
            out.extend_from_slice(&payload);
            let read = Packet::Data { connection, data: header, payload: Some(&payload) };
            prop_assert_eq!(Packet::decode(&out), Ok(read));
            if header.payload > 0 {
                let trimmed = Packet::Data { connection, data: header, payload: None };
                prop_assert_eq!(Packet::decode(&out[..DATA_HEADER]), Ok(trimmed));
            }

            let said = Answer {
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
            bye(&mut out, connection);
            prop_assert_eq!(Packet::decode(&out), Ok(Packet::Bye { connection }));
        }

        /// Nothing that arrives makes the decoder panic, whatever it is and wherever it ends.
        #[test]
        fn garbage_is_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 0u8..9, ours in any::<bool>()) {
            if ours && bytes.len() > 1 {
                (bytes[0], bytes[1]) = (VERSION, kind);
            }
            for end in 0..=bytes.len() {
                let _ = Packet::decode(&bytes[..end]);
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut out = Vec::new();
        bye(&mut out, 1);
        out[0] = 2;
        assert_eq!(Packet::decode(&out), Err(Refused::Version(2)));
        out[0] = VERSION;
        out[1] = 8;
        assert_eq!(Packet::decode(&out), Err(Refused::Kind(8)));
    }
}
