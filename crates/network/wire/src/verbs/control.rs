//! Control messages of two endpoints over TCP: which queue pairs belong together, and what has arrived over one that has failed. A frame
//! is a byte with its kind and its fields in network order. Each kind has a fixed length.

use crate::WireError;
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd, BorrowedFd},
};

const VERSION: u16 = 4;
const WORD: [u8; 4] = *b"ABCV";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Caller and listener: who they are.
    Hello(Greeting),
    Welcome(Greeting),
    /// Caller: a queue pair by index, new or connected again.
    Queue {
        queue: u32,
        pair: Pair,
    },
    /// Listener: the one that it is connected to.
    Ready {
        queue: u32,
        pair: Pair,
    },
    /// Listener: its queue pair has failed; the caller connects both again.
    Failed {
        queue: u32,
    },
    /// Listener: refusal; its log has the reason.
    Refused,
}

/// Endpoint: its GID and MTU, number of labels and queue pairs, maximum bytes of its datagrams and of probes over reliable queue
/// pairs; none: its queue pairs are unreliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) gid: [u8; 16],
    pub(super) mtu: u8,
    pub(super) labels: u32,
    pub(super) queues: u32,
    pub(super) largest: u32,
    pub(super) probe: u32,
}

/// A queue pair, by number, sequence number of its first packet, how many messages had arrived over it since it was last connected,
/// where probes are written, and the GID of its port, which a reset may find changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) qpn: u32,
    pub(super) psn: u32,
    pub(super) arrived: u64,
    pub(super) at: u64,
    pub(super) key: u32,
    pub(super) gid: [u8; 16],
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

impl Greeting {
    fn write(&self) -> Vec<u8> {
        let Greeting { gid, mtu, labels, queues, largest, probe } = *self;
        let numbers = [labels, queues, largest, probe].map(u32::to_be_bytes);
        [&WORD[..], &VERSION.to_be_bytes(), &gid, &[mtu], numbers.as_flattened()].concat()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        if fields.take()? != WORD || fields.take()? != VERSION.to_be_bytes() {
            return None;
        }
        let (gid, [mtu]) = (fields.take()?, fields.take()?);
        let (labels, queues, largest, probe) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        (1..=5).contains(&mtu).then_some(Greeting { gid, mtu, labels, queues, largest, probe })
    }
}

impl Pair {
    fn write(&self, kind: u8, queue: u32) -> Vec<u8> {
        let Pair { qpn, psn, arrived, at, key, gid } = *self;
        let (numbers, long) = ([queue, qpn, psn, key].map(u32::to_be_bytes), [arrived, at].map(u64::to_be_bytes));
        [&[kind], numbers.as_flattened(), long.as_flattened(), &gid].concat()
    }

    /// Behind its index.
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (qpn, psn, key) = (fields.u32()?, fields.u32()?, fields.u32()?);
        Some(Pair { qpn, psn, key, arrived: fields.u64()?, at: fields.u64()?, gid: fields.take()? })
    }
}

impl Frame {
    /// Bytes of a frame, its kind included; `None`: there is no such kind.
    fn length(kind: u8) -> Option<usize> {
        Some(match kind {
            1 | 2 => 1 + 4 + 2 + 16 + 1 + 4 * 4,
            3 | 4 => 1 + 4 * 4 + 2 * 8 + 16,
            5 => 1 + 4,
            8 => 1,
            _ => return None,
        })
    }

    fn write(&self) -> Vec<u8> {
        match *self {
            Frame::Hello(greeting) => [&[1], &greeting.write()[..]].concat(),
            Frame::Welcome(greeting) => [&[2], &greeting.write()[..]].concat(),
            Frame::Queue { queue, pair } => pair.write(3, queue),
            Frame::Ready { queue, pair } => pair.write(4, queue),
            Frame::Failed { queue } => [&[5], &queue.to_be_bytes()[..]].concat(),
            Frame::Refused => vec![8],
        }
    }

    /// `None` if it is no frame of this version.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, fields) = bytes.split_first()?;
        let mut fields = Fields(fields);
        let from = &mut fields;
        Some(match kind {
            1 => Frame::Hello(Greeting::read(from)?),
            2 => Frame::Welcome(Greeting::read(from)?),
            3 => Frame::Queue { queue: from.u32()?, pair: Pair::read(from)? },
            4 => Frame::Ready { queue: from.u32()?, pair: Pair::read(from)? },
            5 => Frame::Failed { queue: from.u32()? },
            8 => Frame::Refused,
            _ => return None,
        })
    }
}

/// Parses any bytes as frames, for fuzzing.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let Some(length) = bytes.first().copied().and_then(Frame::length) else { return };
    if let Some(frame) = bytes.get(..length).and_then(Frame::read) {
        assert_eq!(frame.write(), bytes[..length]);
    }
}

/// Errors of a connection, which name its peer.
pub(super) fn refused(peer: SocketAddr) -> WireError {
    WireError::Verbs(format!("{peer} refused the connection; its output has the reason"))
}

pub(super) fn unknown(peer: SocketAddr) -> WireError {
    WireError::Verbs(format!("{peer} sent an unknown control message; both endpoints need the same version"))
}

pub(super) fn no_reply(peer: SocketAddr) -> WireError {
    WireError::Verbs(format!("{peer} did not reply"))
}

#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    pub(super) peer: SocketAddr,
    bytes: Vec<u8>,
    unsent: Vec<u8>,
}

impl Control {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let peer = stream.peer_addr()?;
        Ok(Control { stream, peer, bytes: Vec::new(), unsent: Vec::new() })
    }

    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.stream.local_addr().ok()
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn failed(&self, what: &str, error: io::Error) -> WireError {
        WireError::System { what: format!("{what} {}", self.peer), source: error }
    }

    /// Sends without blocking; [`flush`](Control::flush) sends the rest.
    pub(super) fn post(&mut self, frame: &Frame) -> Result<(), WireError> {
        self.unsent.extend_from_slice(&frame.write());
        self.flush()
    }

    /// Does not block.
    pub(super) fn flush(&mut self) -> Result<(), WireError> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(self.failed("sending to", io::ErrorKind::WriteZero.into())),
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("sending to", error)),
            }
        }
        Ok(())
    }

    /// Returns the next frame that has arrived.
    pub(super) fn poll(&mut self) -> Result<Option<Frame>, WireError> {
        loop {
            if let Some(kind) = self.bytes.first() {
                let foreign = || unknown(self.peer);
                let length = Frame::length(*kind).ok_or_else(foreign)?;
                if self.bytes.len() >= length {
                    let frame = Frame::read(&self.bytes[..length]).ok_or_else(foreign)?;
                    self.bytes.drain(..length);
                    return Ok(Some(frame));
                }
            }
            let mut buffer = [0; 512];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(self.failed("receiving from", io::ErrorKind::ConnectionReset.into())),
                Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("receiving from", error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::TcpListener,
        time::{Duration, Instant},
    };

    fn all() -> [Frame; 6] {
        let greeting = Greeting { gid: [7; 16], mtu: 3, labels: 256, queues: 8, largest: 1 << 24, probe: 1_000_064 };
        let pair = Pair { qpn: 0xff_ffff, psn: 3, arrived: 1 << 40, at: u64::MAX - 1, key: 17, gid: [9; 16] };
        [
            Frame::Hello(greeting),
            Frame::Welcome(Greeting { mtu: 5, probe: 0, ..greeting }),
            Frame::Queue { queue: 1, pair },
            Frame::Ready { queue: 0, pair: Pair { qpn: 2, arrived: 4, ..pair } },
            Frame::Failed { queue: 7 },
            Frame::Refused,
        ]
    }

    fn pair() -> (Control, Control) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        (Control::new(one).unwrap(), Control::new(other).unwrap())
    }

    fn next(of: &mut Control) -> Result<Frame, String> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match of.poll() {
                Ok(Some(frame)) => return Ok(frame),
                Err(error) => return Err(error.to_string()),
                Ok(None) => assert!(Instant::now() < until),
            }
        }
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        for frame in all() {
            let bytes = frame.write();
            assert_eq!(Frame::length(bytes[0]), Some(bytes.len()), "{frame:?}");
            assert_eq!(Frame::read(&bytes), Some(frame));
            assert_eq!(Frame::read(&bytes[..bytes.len() - 1]), None, "{frame:?}");
        }
        let mut old = all()[0].write();
        old[6] = 9;
        assert_eq!(Frame::read(&old), None, "another version");
        let mut large = all()[0].write();
        large[23] = 6;
        assert_eq!(Frame::read(&large), None, "no such MTU");
    }

    #[test]
    fn frames_come_in_order_in_pieces() {
        let (mut one, mut other) = pair();
        assert_eq!(other.poll().unwrap(), None);
        let bytes: Vec<u8> = all().iter().flat_map(Frame::write).collect();
        for piece in bytes.chunks(5) {
            one.stream.write_all(piece).unwrap();
        }
        assert_eq!(all().map(Ok), std::array::from_fn(|_| next(&mut other)));
    }

    #[test]
    fn post_does_not_block_on_a_slow_reader() {
        let (mut one, mut other) = pair();
        let frame = Frame::Failed { queue: 4 };
        socket2::SockRef::from(&one.stream).set_send_buffer_size(4096).unwrap();
        socket2::SockRef::from(&other.stream).set_recv_buffer_size(4096).unwrap();
        // More than the buffers of these sockets hold.
        let posted = 9000;
        (0..posted).for_each(|_| one.post(&frame).unwrap());
        assert!(!one.unsent.is_empty(), "{} B went", posted * 5);
        for _ in 0..posted {
            one.flush().unwrap();
            while other.bytes.is_empty() && !one.unsent.is_empty() {
                one.flush().unwrap();
                if let Some(found) = other.poll().unwrap() {
                    assert_eq!(found, frame);
                    break;
                }
            }
        }
    }

    #[test]
    fn failures_name_the_peer() {
        let (mut one, mut other) = pair();
        let at = other.peer.to_string();
        one.stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let error = next(&mut other).unwrap_err();
        assert!(error.contains("unknown control message") && error.contains(&at), "{error}");
        let (one, mut other) = pair();
        drop(one);
        assert!(next(&mut other).unwrap_err().contains("receiving from"));
    }
}
