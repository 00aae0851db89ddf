//! Messages between two nodes, over the streams of docs/reference/wire.md; numbers are big-endian.
//!
//! A control word has a kind (1 byte), a connection by its sender's number (4), and
//!
//! | kind | sent by | further fields |
//! |---|---|---|
//! | 1 connect | sender | key of the listener (8) |
//! | 2 connected | receiver | |
//! | 3 refused | receiver | 1 no listener, 2 too many (1) |
//! | 4 grant | receiver | number of the receive (4), buffers (1), of each its bytes (8) and tag (4) |
//! | 5 wrong size | sender | number of the receive (4), bytes of the message (8) |
//! | 6 close | both | 1 sender, 2 receiver (1); receives that were complete (4) |
//! | 7 ping | both | the connection is 0 |
//! | 8 grant of windows | receiver | as 4, and of each buffer its address (8), key (4) and number (4) |
//!
//! A piece has the connection (4), number of the receive (4), buffer of it (4), zero (4), its offset in the message (8),
//! bytes of the message (8), then its bytes. A peer that sends anything else is disconnected.
//!
//! Stream 0 of each direction carries [`Control`] messages. Each connection, which the sender numbers, has a further
//! stream to its receiver, which carries pieces of messages, each behind a [`PieceHeader`].

pub const PIECE_HEADER: usize = 32;
pub const PIECE: usize = 256 << 10;
pub const MAX_ENTRIES: usize = crate::abi::MAX_RECEIVES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    NoListener = 1,
    TooMany = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedBuffer {
    pub size: u64,
    pub tag: i32,
    /// Where the sender writes by RDMA; the same of all buffers of a grant.
    pub window: Option<Window>,
}

/// Registered memory of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub at: u64,
    pub key: u32,
    /// Number by which the receiver identifies the buffer.
    pub number: u32,
}

/// Endpoint of a connection that sends a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    Sender = 1,
    Receiver = 2,
}

/// A control message of stream 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// A sender requests a connection to a listener.
    Connect {
        connection: u32,
        key: u64,
    },
    Connected {
        connection: u32,
    },
    Refused {
        connection: u32,
        reason: Refusal,
    },
    Grant {
        connection: u32,
        /// Number of the receive, from 0.
        number: u32,
        entries: Vec<PostedBuffer>,
    },
    /// A message is larger than its buffer.
    WrongSize {
        connection: u32,
        number: u32,
        size: u64,
    },
    /// An endpoint of the connection has closed.
    Close {
        connection: u32,
        end: End,
        /// From a receiver: number of receives that were complete, from the first on.
        completed: u32,
    },
    /// Keeps the connection alive, so that a gone peer is detected.
    Ping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceHeader {
    pub connection: u32,
    pub number: u32,
    /// The buffer of that receive.
    pub index: u32,
    /// Offset of the piece in the message, in bytes.
    pub offset: u64,
    pub size: u64,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
    fn one(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn four(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn eight(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

impl Control {
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        let mut begin = |kind: u8, connection: u32| {
            out.push(kind);
            out.extend_from_slice(&connection.to_be_bytes());
        };
        match self {
            Control::Connect { connection, key } => {
                begin(1, *connection);
                out.extend_from_slice(&key.to_be_bytes());
            }
            Control::Connected { connection } => begin(2, *connection),
            Control::Refused { connection, reason } => {
                begin(3, *connection);
                out.push(*reason as u8);
            }
            Control::Grant { connection, number, entries } => {
                begin(if entries.iter().any(|entry| entry.window.is_some()) { 8 } else { 4 }, *connection);
                out.extend_from_slice(&number.to_be_bytes());
                out.push(entries.len() as u8);
                for PostedBuffer { size, tag, window } in entries {
                    out.extend_from_slice(&size.to_be_bytes());
                    out.extend_from_slice(&tag.to_be_bytes());
                    if let Some(Window { at, key, number }) = window {
                        out.extend_from_slice(&at.to_be_bytes());
                        out.extend_from_slice(&key.to_be_bytes());
                        out.extend_from_slice(&number.to_be_bytes());
                    }
                }
            }
            Control::WrongSize { connection, number, size } => {
                begin(5, *connection);
                out.extend_from_slice(&number.to_be_bytes());
                out.extend_from_slice(&size.to_be_bytes());
            }
            Control::Close { connection, end, completed } => {
                begin(6, *connection);
                out.push(*end as u8);
                out.extend_from_slice(&completed.to_be_bytes());
            }
            Control::Ping => begin(7, 0),
        }
        out
    }

    /// Decodes one or more messages from `bytes`; `None`: they are invalid.
    pub fn read(bytes: &[u8]) -> Option<Vec<Self>> {
        let (mut reader, mut controls) = (Reader(bytes), Vec::with_capacity(1));
        while controls.is_empty() || !reader.0.is_empty() {
            controls.push(Self::read_one(&mut reader)?);
        }
        Some(controls)
    }

    fn read_one(reader: &mut Reader<'_>) -> Option<Self> {
        let (kind, connection) = (reader.one()?, reader.four()?);
        let control = match kind {
            1 => Control::Connect { connection, key: reader.eight()? },
            2 => Control::Connected { connection },
            3 => {
                let reason = match reader.one()? {
                    1 => Refusal::NoListener,
                    2 => Refusal::TooMany,
                    _ => return None,
                };
                Control::Refused { connection, reason }
            }
            4 | 8 => {
                let (number, count) = (reader.four()?, reader.one()?);
                if count == 0 || usize::from(count) > MAX_ENTRIES {
                    return None;
                }
                let mut entry = || {
                    let (size, tag) = (reader.eight()?, i32::from_be_bytes(reader.take()?));
                    let window = match kind {
                        4 => None,
                        _ => Some(Window { at: reader.eight()?, key: reader.four()?, number: reader.four()? }),
                    };
                    Some(PostedBuffer { size, tag, window })
                };
                let entries = (0..count).map(|_| entry()).collect::<Option<_>>()?;
                Control::Grant { connection, number, entries }
            }
            5 => Control::WrongSize { connection, number: reader.four()?, size: reader.eight()? },
            6 => {
                let end = match reader.one()? {
                    1 => End::Sender,
                    2 => End::Receiver,
                    _ => return None,
                };
                Control::Close { connection, end, completed: reader.four()? }
            }
            7 if connection == 0 => Control::Ping,
            _ => return None,
        };
        Some(control)
    }
}

impl PieceHeader {
    pub fn write(&self) -> [u8; PIECE_HEADER] {
        let mut out = [0; PIECE_HEADER];
        out[..4].copy_from_slice(&self.connection.to_be_bytes());
        out[4..8].copy_from_slice(&self.number.to_be_bytes());
        out[8..12].copy_from_slice(&self.index.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..].copy_from_slice(&self.size.to_be_bytes());
        out
    }

    /// Decodes the header and returns the piece behind it; `None`: the bytes are too short.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader(bytes);
        let (connection, number, index) = (reader.four()?, reader.four()?, reader.four()?);
        let _ = reader.four()?;
        let (offset, size) = (reader.eight()?, reader.eight()?);
        Some((PieceHeader { connection, number, index, offset, size }, reader.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_round_trip() {
        let connection = 0x0102_0304;
        let posted = |size, tag, window| PostedBuffer { size, tag, window };
        let entries = vec![posted(1 << 40, -7, None), posted(0, 3, None)];
        let window = Some(Window { at: 1 << 63, key: 9, number: 7 });
        let windows = vec![posted(8, -7, window), posted(0, 3, window)];
        let all = [
            Control::Connect { connection, key: u64::MAX - 1 },
            Control::Connected { connection },
            Control::Refused { connection, reason: Refusal::NoListener },
            Control::Refused { connection, reason: Refusal::TooMany },
            Control::Grant { connection, number: 9, entries },
            Control::Grant { connection, number: 10, entries: windows },
            Control::WrongSize { connection, number: 9, size: 77 },
            Control::Close { connection, end: End::Sender, completed: 0 },
            Control::Close { connection, end: End::Receiver, completed: 12 },
            Control::Ping,
        ];
        for control in all {
            let bytes = control.write();
            let twice = [&bytes[..], &bytes].concat();
            assert_eq!(Control::read(&twice), Some(vec![control.clone(), control.clone()]));
            assert_eq!(Control::read(&bytes), Some(vec![control]));
            assert_eq!(Control::read(&bytes[..bytes.len() - 1]), None, "cut short");
            assert_eq!(Control::read(&[&bytes[..], &[0]].concat()), None, "too long");
        }
        assert_eq!(Control::read(&[9, 0, 0, 0, 0]), None);
        assert_eq!(Control::Connected { connection }.write(), [2, 1, 2, 3, 4]);
        let none = Control::Grant { connection, number: 9, entries: Vec::new() };
        assert_eq!(Control::read(&none.write()), None, "a receive has a buffer");
    }

    proptest::proptest! {
        /// Every decoded message encodes to the same bytes, and no input makes the decoder panic.
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(0u8.., 0..120), kind in 0u8..11) {
            let _ = PieceHeader::read(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Some(controls) = Control::read(&bytes) {
                assert_eq!(controls.iter().flat_map(Control::write).collect::<Vec<u8>>(), bytes);
            }
        }
    }

    #[test]
    fn pieces_keep_their_offsets() {
        let header = PieceHeader { connection: 5, number: 6, index: 7, offset: 1 << 39, size: 1 << 40 };
        let bytes = [&header.write()[..], b"abc"].concat();
        assert_eq!(PieceHeader::read(&bytes), Some((header, &b"abc"[..])));
        assert_eq!(PieceHeader::read(&bytes[..31]), None);
    }
}
