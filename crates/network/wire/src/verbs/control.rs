//! Control messages of a verbs connection over TCP: location of memory, pairing of queue pairs, summaries. A frame is a
//! byte with its kind and its fields in network order. Each kind has a fixed length.

use crate::{WireError, transfer::Summary};
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

const VERSION: u16 = 2;
const WORD: [u8; 4] = *b"ABCV";
/// Maximum frames queued while another is expected.
const MAX_WAITING: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Sender: its GID and MTU, and the memory that it requests.
    Hello {
        gid: [u8; 16],
        mtu: u8,
        memory: u64,
    },
    /// Receiver: its GID and MTU, and the address, key and size of the memory.
    Welcome {
        gid: [u8; 16],
        mtu: u8,
        at: u64,
        key: u32,
        memory: u64,
    },
    /// Sender: a queue pair, new or restarted, by its local index.
    Queue {
        queue: u32,
        qpn: u32,
        psn: u32,
        label: u32,
    },
    /// Receiver: the queue pair that it is connected to.
    Ready {
        queue: u32,
        qpn: u32,
        psn: u32,
    },
    /// Sender: a message has arrived, in `chunks` chunks.
    Message {
        number: u64,
        at: u64,
        bytes: u64,
        chunks: u64,
    },
    /// Receiver: the message is read, and its memory is free again.
    Taken {
        number: u64,
    },
    /// Sender or receiver: summary of all bytes, and the time in nanoseconds that the sender has measured.
    Total(Summary, u64),
    /// Sender and receiver of datagrams.
    HelloDatagrams(Greeting),
    WelcomeDatagrams(Greeting),
    /// Receiver: refusal; its log has the reason.
    Refused,
}

/// Endpoint for datagrams: its GID and MTU, number of labels, and maximum bytes of its datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) gid: [u8; 16],
    pub(super) mtu: u8,
    pub(super) labels: u32,
    pub(super) largest: u32,
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

impl Frame {
    /// Bytes of a frame, its kind included; `None`: there is no such kind.
    fn length(kind: u8) -> Option<usize> {
        Some(match kind {
            1 => 1 + 4 + 2 + 16 + 1 + 8,
            2 => 1 + 4 + 2 + 16 + 1 + 8 + 4 + 8,
            3 => 1 + 4 * 4,
            4 => 1 + 3 * 4,
            5 => 1 + 4 * 8,
            6 => 1 + 8,
            7 => 1 + 8 + 4 + 8,
            8 => 1,
            9 | 10 => 1 + 4 + 2 + 16 + 1 + 4 + 4,
            _ => return None,
        })
    }

    fn write(&self) -> Vec<u8> {
        let frame = |fields: &[&[u8]]| fields.concat();
        let version = VERSION.to_be_bytes();
        match self {
            Frame::Hello { gid, mtu, memory } => frame(&[&[1], &WORD, &version, gid, &[*mtu], &memory.to_be_bytes()]),
            Frame::Welcome { gid, mtu, at, key, memory } => {
                let (at, key, memory) = (at.to_be_bytes(), key.to_be_bytes(), memory.to_be_bytes());
                frame(&[&[2], &WORD, &version, gid, &[*mtu], &at, &key, &memory])
            }
            Frame::Queue { queue, qpn, psn, label } => {
                frame(&[&[3], [queue, qpn, psn, label].map(|field| field.to_be_bytes()).as_flattened()])
            }
            Frame::Ready { queue, qpn, psn } => {
                frame(&[&[4], [queue, qpn, psn].map(|field| field.to_be_bytes()).as_flattened()])
            }
            Frame::Message { number, at, bytes, chunks } => {
                frame(&[&[5], [number, at, bytes, chunks].map(|field| field.to_be_bytes()).as_flattened()])
            }
            Frame::Taken { number } => frame(&[&[6], &number.to_be_bytes()]),
            Frame::Total(Summary { bytes, checksum }, took) => {
                frame(&[&[7], &bytes.to_be_bytes(), &checksum.to_be_bytes(), &took.to_be_bytes()])
            }
            Frame::Refused => frame(&[&[8]]),
            Frame::HelloDatagrams(greeting) | Frame::WelcomeDatagrams(greeting) => {
                let kind = 9 + u8::from(matches!(self, Frame::WelcomeDatagrams(_)));
                let Greeting { gid, mtu, labels, largest } = greeting;
                frame(&[&[kind], &WORD, &version, gid, &[*mtu], &labels.to_be_bytes(), &largest.to_be_bytes()])
            }
        }
    }

    /// `None` if it is no frame of this version.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, fields) = bytes.split_first()?;
        let mut fields = Fields(fields);
        if [1, 2, 9, 10].contains(kind) && (fields.take()? != WORD || fields.take()? != VERSION.to_be_bytes()) {
            return None;
        }
        Some(match kind {
            1 => Frame::Hello { gid: fields.take()?, mtu: mtu(fields.u8()?)?, memory: fields.u64()? },
            2 => {
                let (gid, mtu) = (fields.take()?, mtu(fields.u8()?)?);
                Frame::Welcome { gid, mtu, at: fields.u64()?, key: fields.u32()?, memory: fields.u64()? }
            }
            3 => Frame::Queue { queue: fields.u32()?, qpn: fields.u32()?, psn: fields.u32()?, label: fields.u32()? },
            4 => Frame::Ready { queue: fields.u32()?, qpn: fields.u32()?, psn: fields.u32()? },
            5 => {
                Frame::Message { number: fields.u64()?, at: fields.u64()?, bytes: fields.u64()?, chunks: fields.u64()? }
            }
            6 => Frame::Taken { number: fields.u64()? },
            7 => Frame::Total(Summary { bytes: fields.u64()?, checksum: fields.u32()? }, fields.u64()?),
            8 => Frame::Refused,
            9 | 10 => {
                let (gid, mtu) = (fields.take()?, mtu(fields.u8()?)?);
                let greeting = Greeting { gid, mtu, labels: fields.u32()?, largest: fields.u32()? };
                if *kind == 9 { Frame::HelloDatagrams(greeting) } else { Frame::WelcomeDatagrams(greeting) }
            }
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

fn mtu(number: u8) -> Option<u8> {
    (1..=5).contains(&number).then_some(number)
}

#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    pub(super) peer: SocketAddr,
    bytes: Vec<u8>,
    waiting: VecDeque<Frame>,
    unsent: Vec<u8>,
    /// The socket is in blocking mode.
    waits: bool,
    peer_timeout: Duration,
}

impl Control {
    pub(super) fn new(stream: TcpStream, peer_timeout: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(peer_timeout.max(Duration::from_millis(1))))?;
        let peer = stream.peer_addr()?;
        let (bytes, waiting, unsent) = (Vec::new(), VecDeque::new(), Vec::new());
        Ok(Control { stream, peer, bytes, waiting, unsent, waits: true, peer_timeout })
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

    fn wait_or_not(&mut self, waits: bool) -> io::Result<()> {
        if self.waits != waits {
            self.stream.set_nonblocking(!waits)?;
            self.waits = waits;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, frame: &Frame) -> Result<(), WireError> {
        let sent = self.wait_or_not(true).and_then(|()| self.stream.write_all(&frame.write()));
        sent.map_err(|error| self.failed("sending to", error))
    }

    /// Sends without blocking; [`flush`](Control::flush) sends the rest.
    pub(super) fn post(&mut self, frame: &Frame) -> Result<(), WireError> {
        self.unsent.extend_from_slice(&frame.write());
        self.flush()
    }

    /// Does not block.
    pub(super) fn flush(&mut self) -> Result<(), WireError> {
        while !self.unsent.is_empty() {
            match self.wait_or_not(false).and_then(|()| self.stream.write(&self.unsent)) {
                Ok(0) => return Err(self.failed("sending to", io::ErrorKind::WriteZero.into())),
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("sending to", error)),
            }
        }
        Ok(())
    }

    pub(super) fn poll(&mut self) -> Result<Option<Frame>, WireError> {
        match self.waiting.pop_front() {
            Some(frame) => Ok(Some(frame)),
            None => self.take(Duration::ZERO),
        }
    }

    pub(super) fn has_frames(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Queues frames that `accept` does not accept.
    pub(super) fn expect<T>(&mut self, accept: &mut dyn FnMut(&Frame) -> Option<T>) -> Result<T, WireError> {
        let until = Instant::now() + self.peer_timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // A peer that sends many other frames times out as well.
            if self.waiting.len() >= MAX_WAITING || left.is_zero() && !self.waiting.is_empty() {
                return Err(no_reply(self.peer));
            }
            match self.take(left.max(Duration::from_millis(1)))? {
                Some(Frame::Refused) => return Err(refused(self.peer)),
                Some(frame) => match accept(&frame) {
                    Some(found) => return Ok(found),
                    None => self.waiting.push_back(frame),
                },
                None if left.is_zero() => return Err(no_reply(self.peer)),
                None => {}
            }
        }
    }

    fn take(&mut self, max_wait: Duration) -> Result<Option<Frame>, WireError> {
        let until = Instant::now() + max_wait;
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
            // A peer that sends byte by byte gets no longer timeout.
            let left = until.saturating_duration_since(Instant::now());
            let timeout = (!max_wait.is_zero()).then(|| left.max(Duration::from_millis(1)));
            let prepared = self.wait_or_not(timeout.is_some()).and_then(|()| match timeout {
                Some(timeout) => self.stream.set_read_timeout(Some(timeout)),
                None => Ok(()),
            });
            prepared.map_err(|error| self.failed("receiving from", error))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(self.failed("receiving from", io::ErrorKind::ConnectionReset.into())),
                Ok(read) => {
                    self.bytes.extend_from_slice(&buffer[..read]);
                    if left.is_zero() && !max_wait.is_zero() {
                        return Ok(None);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("receiving from", error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn all() -> [Frame; 10] {
        [
            Frame::Hello { gid: [7; 16], mtu: 3, memory: 1 << 40 },
            Frame::Welcome { gid: [9; 16], mtu: 5, at: u64::MAX, key: 17, memory: 5 },
            Frame::Queue { queue: 1, qpn: 0xff_ffff, psn: 3, label: 0xf_ffff },
            Frame::Ready { queue: 1, qpn: 2, psn: 3 },
            Frame::Message { number: 1, at: 2, bytes: 3, chunks: 4 },
            Frame::Taken { number: 6 },
            Frame::Total(Summary { bytes: 7, checksum: 8 }, 9),
            Frame::Refused,
            Frame::HelloDatagrams(Greeting { gid: [1; 16], mtu: 1, labels: 8, largest: 4152 }),
            Frame::WelcomeDatagrams(Greeting { gid: [2; 16], mtu: 5, labels: 256, largest: 65_536 }),
        ]
    }

    fn pair() -> (Control, Control) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        let timeout = Duration::from_millis(200);
        (Control::new(one, timeout).unwrap(), Control::new(other, timeout).unwrap())
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        for frame in all() {
            let bytes = frame.write();
            assert_eq!(Frame::length(bytes[0]), Some(bytes.len()), "{frame:?}");
            assert_eq!(Frame::read(&bytes), Some(frame));
            assert_eq!(Frame::read(&bytes[..bytes.len() - 1]), None, "{frame:?}");
        }
        let mut old = Frame::Hello { gid: [7; 16], mtu: 3, memory: 1 }.write();
        old[6] = 9;
        assert_eq!(Frame::read(&old), None, "another version");
        assert_eq!(Frame::read(&Frame::Hello { gid: [7; 16], mtu: 6, memory: 1 }.write()), None, "no such MTU");
    }

    #[test]
    fn frames_come_in_order_in_pieces_and_while_others_are_waited_for() {
        let (mut one, mut other) = pair();
        assert_eq!(other.poll().unwrap(), None);
        let bytes: Vec<u8> = all()[..7].iter().flat_map(Frame::write).collect();
        for piece in bytes.chunks(5) {
            one.stream.write_all(piece).unwrap();
        }
        let number = other.expect(&mut |frame| match frame {
            Frame::Taken { number } => Some(*number),
            _ => None,
        });
        assert_eq!(number.unwrap(), 6);
        let mut rest = Vec::new();
        while rest.len() < 6 {
            rest.extend(other.poll().unwrap());
        }
        assert_eq!(rest[..5], all()[..5]);
        assert_eq!(rest[5], all()[6]);
    }

    #[test]
    fn post_does_not_block_on_a_slow_reader() {
        let (mut one, mut other) = pair();
        let frame = Frame::Queue { queue: 1, qpn: 2, psn: 3, label: 4 };
        socket2::SockRef::from(&one.stream).set_send_buffer_size(4096).unwrap();
        socket2::SockRef::from(&other.stream).set_recv_buffer_size(4096).unwrap();
        let began = Instant::now();
        // More than the buffers of these sockets hold.
        let posted = 3000;
        (0..posted).for_each(|_| one.post(&frame).unwrap());
        assert!(!one.unsent.is_empty(), "{} B went", posted * 17);
        let mut read = 0;
        while read < posted {
            one.flush().unwrap();
            while let Some(found) = other.poll().unwrap() {
                assert_eq!(found, frame);
                read += 1;
            }
            assert!(began.elapsed() < Duration::from_secs(30));
        }
        assert!(one.unsent.is_empty() && other.poll().unwrap().is_none());
    }

    #[test]
    fn slow_or_unexpected_frames_do_not_extend_the_timeout() {
        let (mut one, mut other) = pair();
        let began = Instant::now();
        let talks = std::thread::spawn(move || {
            // Unexpected frames, then incomplete ones.
            for number in 0..2000 {
                let _ = one.stream.write_all(&Frame::Taken { number }.write());
            }
            let endless = Frame::Queue { queue: 1, qpn: 2, psn: 3, label: 4 }.write();
            for byte in endless.iter().cycle().take(400) {
                if one.stream.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let error = other.expect(&mut |frame| matches!(frame, Frame::Total(..)).then_some(())).unwrap_err().to_string();
        assert!(error.contains("did not reply"), "{error}");
        assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
        drop(other);
        talks.join().unwrap();
    }

    #[test]
    fn failed_handshakes_report_the_peer() {
        let (mut one, mut other) = pair();
        let at = other.peer.to_string();
        let error_of = |other: &mut Control| other.expect(&mut |_| Some(())).unwrap_err().to_string();
        let error = error_of(&mut other);
        assert!(error.contains(&at) && error.contains("did not reply"), "{error}");
        one.send(&Frame::Refused).unwrap();
        assert!(error_of(&mut other).contains("refused the connection"));
        one.stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert!(error_of(&mut other).contains("unknown control message"));
        let (one, mut other) = pair();
        drop(one);
        assert!(error_of(&mut other).contains("receiving from"));
    }
}
