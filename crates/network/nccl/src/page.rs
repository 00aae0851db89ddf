//! Statistics page: counters of all paths of a process' connections, in a file in shared memory that processes of the
//! same user may read (docs/reference/nccl.md has the layout, [`Slot`] that of a path).
//!
//! One process writes; a sequence number shows consistent reads. The file is never mapped: access to a mapping of a
//! truncated file ends the process by a signal.

mod files;

pub use files::{AgentLock, Found, Skipped, pages};

use bytemuck::{Pod, Zeroable};
use rustix::{
    fs::{FallocateFlags, FlockOperation, fallocate, flock},
    process::{Resource, getrlimit},
};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// First bytes of a page.
pub const MAGIC: [u8; 8] = *b"ANABPATH";
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes before the first slot.
pub const HEADER_BYTES: usize = 2048;
pub const SLOT_BYTES: usize = 144;
pub const SLOTS: usize = 4096;
/// Default folder of the pages; `ANABRANCH_STATS` sets another one.
pub const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "anabranch-";
/// Maximum bytes of a request and of a response, with a final zero.
const TEXT: usize = 768;
/// Bytes at the beginning of the header that only the process writes.
const OWN_BYTES: usize = 256;

/// Offsets in the header, in bytes.
mod offset {
    pub(super) const SEQUENCE: usize = 16;
    pub(super) const REQUEST: usize = 256;
    pub(super) const RESPONSE: usize = 264;
    pub(super) const CODE: usize = 272;
    pub(super) const REQUEST_TEXT: usize = 288;
    pub(super) const RESPONSE_TEXT: usize = REQUEST_TEXT + super::TEXT;
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The slot is unused.
    Free = 0,
    /// The connection is open.
    Open = 1,
    /// The connection has failed, or the peer has closed it.
    Failed = 2,
    /// The connection is open, and no reply has come over this path, which carries nothing.
    Silent = 3,
    /// It is open, and full packets do not pass: they are sent in fragments.
    Fragmented = 4,
}

/// A path of a connection, in the layout of the page and of `anabranchPaths`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Slot {
    /// State of the connection: a [`State`].
    pub state: u32,
    /// Number of the path: its label.
    pub path: u32,
    /// Number of the connection in its device.
    pub connection: u32,
    pub device: u32,
    /// Address of the peer, with IPv4 mapped to IPv6 (`::ffff:10.0.0.1`).
    pub address: [u8; 16],
    /// First port of the peer.
    pub port: u32,
    /// Reserved; zero.
    pub reserved: u32,
    /// Bytes of the data packets sent over this path, with headers of this project.
    pub bytes: u64,
    /// Number of these packets.
    pub packets: u64,
    /// Number of retransmissions among them.
    pub retransmitted: u64,
    /// Number of ACKs received.
    pub answers: u64,
    /// Number of ACKs that report a marked packet.
    pub marks: u64,
    /// Number of packets declared lost.
    pub losses: u64,
    /// Number of moves from another path to this one.
    pub moves: u64,
    /// Minimum round-trip time in nanoseconds; zero: none yet.
    pub rtt_min: u64,
    /// Mean round-trip time in nanoseconds, over the last 100 to 200 ms with samples.
    pub rtt_mean: u64,
    /// 99th percentile of the same samples, in nanoseconds.
    pub rtt_p99: u64,
    /// Window of the connection in bytes, the same for all its paths; zero: it has none.
    pub window: u64,
    /// Time at which a packet was last sent over it, in nanoseconds since 1970; zero: never.
    pub used_at: u64,
    /// Reserved; zero.
    pub reserved2: u64,
}

impl Slot {
    /// Returns the address of the peer.
    pub fn peer(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.address);
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        SocketAddr::new(ip, self.port as u16)
    }

    /// Sets the address of the peer.
    pub fn set_peer(&mut self, at: SocketAddr) {
        self.address = match at.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        self.port = u32::from(at.port());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRequest {
    number: u64,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Page {
    /// Copy of what the process has written: its part of the header, and all slots used so far.
    own: [u8; OWN_BYTES],
    slots: Vec<u8>,
    paths: usize,
    /// Slots of connections, by device and number.
    blocks: BTreeMap<(u32, u32), usize>,
    free: Vec<usize>,
    used: usize,
    unlisted: u64,
    /// The file, locked while the process lives, which readers check.
    file: File,
}

impl Page {
    /// Creates a page for connections of `paths` paths; returns it and its file, which the caller removes. Pages of
    /// killed processes are removed first.
    pub(crate) fn create(folder: &Path, pid: u32, paths: usize, scheme: &str) -> io::Result<(Self, PathBuf)> {
        let _ = pages(folder);
        let bytes = (HEADER_BYTES + SLOTS * SLOT_BYTES) as u64;
        // A write beyond this limit ends the process by a signal.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < bytes) {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("ulimit -f allows less than {bytes} B")));
        }
        let name = format!("{PREFIX}{pid}-{:08x}", RandomState::new().hash_one(pid) as u32);
        let (hidden, path) = (folder.join(format!(".{name}")), folder.join(&name));
        // Only a new file is used: an existing file or link of this name is not touched.
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&hidden)?;
        let made = (|| {
            // Allocation detects missing space now.
            fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let (free, blocks) = (Vec::new(), BTreeMap::new());
            let (own, slots) = ([0; OWN_BYTES], Vec::new());
            let mut page = Page { own, slots, paths: paths.max(1), blocks, free, used: 0, unlisted: 0, file };
            page.own[..8].copy_from_slice(&MAGIC);
            let words =
                [(8, VERSION), (12, HEADER_BYTES as u32), (24, SLOT_BYTES as u32), (28, SLOTS as u32), (36, pid)];
            words.into_iter().for_each(|(at, word)| page.own[at..at + 4].copy_from_slice(&word.to_le_bytes()));
            page.set(56, paths as u64);
            page.set_scheme(scheme);
            page.file.write_all_at(&page.own, 0)?;
            Ok(page)
        })();
        let made: io::Result<Page> = made.and_then(|page: Page| fs::rename(&hidden, &path).map(|()| page));
        if made.is_err() {
            let _ = fs::remove_file(&hidden);
        }
        Ok((made?, path))
    }

    fn set(&mut self, at: usize, value: u64) {
        self.own[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn set_scheme(&mut self, scheme: &str) {
        let field = &mut self.own[64..128];
        field.fill(0);
        field.iter_mut().zip(scheme.bytes().take(63)).for_each(|(place, byte)| *place = byte);
    }

    fn block(&mut self, device: u32, connection: u32) -> Option<usize> {
        if let Some(block) = self.blocks.get(&(device, connection)) {
            return Some(*block);
        }
        let block = match self.free.pop() {
            Some(block) => block,
            None if (self.used + 1) * self.paths <= SLOTS => {
                self.used += 1;
                self.used - 1
            }
            None => {
                self.unlisted += 1;
                return None;
            }
        };
        self.blocks.insert((device, connection), block);
        Some(block)
    }

    /// Writes the counters of a device's connections and frees blocks of others. Errors are ignored: this process does
    /// not depend on the page.
    pub(crate) fn write(&mut self, now_ns: u64, device: u32, scheme: &str, connections: &[Vec<Slot>]) {
        let sequence = eight(&self.own, offset::SEQUENCE);
        self.unlisted = 0;
        let known =
            |connection: u32| connections.iter().any(|of| of.first().is_some_and(|s| s.connection == connection));
        let gone: Vec<(u32, u32)> = self.blocks.keys().copied().filter(|(of, c)| *of == device && !known(*c)).collect();
        for key in gone {
            if let Some(block) = self.blocks.remove(&key) {
                (0..self.paths).for_each(|path| self.put(block * self.paths + path, &Slot::default()));
                self.free.push(block);
            }
        }
        for slots in connections {
            let Some(first) = slots.first() else { continue };
            // A failed connection keeps its last counters.
            let keeps = first.state == State::Failed as u32 && self.blocks.contains_key(&(device, first.connection));
            let Some(block) = self.block(device, first.connection) else { continue };
            for (path, slot) in slots.iter().take(self.paths).enumerate() {
                let place = block * self.paths + path;
                if keeps {
                    let at = place * SLOT_BYTES;
                    self.slots[at..at + 8].copy_from_slice(&bytemuck::bytes_of(slot)[..8]);
                } else {
                    self.put(place, slot);
                }
            }
        }
        let used = (self.used * self.paths) as u64;
        self.set(32, used | eight(&self.own, 32) >> 32 << 32);
        self.set(40, now_ns);
        self.set(48, self.unlisted);
        self.set_scheme(scheme);
        self.set(offset::SEQUENCE, sequence + 1);
        // The sequence is odd during the write, then even. The header is written whole: the file may have been truncated.
        let _ = self.file.write_all_at(&self.own, 0);
        let _ = self.file.write_all_at(&self.slots, HEADER_BYTES as u64);
        self.set(offset::SEQUENCE, sequence + 2);
        let _ = self.file.write_all_at(&(sequence + 2).to_le_bytes(), offset::SEQUENCE as u64);
    }

    fn put(&mut self, slot: usize, what: &Slot) {
        let at = slot * SLOT_BYTES;
        if self.slots.len() < at + SLOT_BYTES {
            self.slots.resize(at + SLOT_BYTES, 0);
        }
        self.slots[at..at + SLOT_BYTES].copy_from_slice(bytemuck::bytes_of(what));
    }

    /// `None` also where the page cannot be read.
    pub(crate) fn request(&self) -> Option<PageRequest> {
        let numbers = || {
            let mut words = [0; 16];
            self.file.read_exact_at(&mut words, offset::REQUEST as u64).ok()?;
            Some((eight(&words, 0), eight(&words, 8)))
        };
        let (number, responded) = numbers()?;
        if number == responded {
            return None;
        }
        let mut bytes = [0; TEXT];
        self.file.read_exact_at(&mut bytes, offset::REQUEST_TEXT as u64).ok()?;
        // Another request may have been written meanwhile.
        if numbers()?.0 != number {
            return None;
        }
        Some(PageRequest { number, text: text(&bytes) })
    }

    pub(crate) fn respond(&self, request: &PageRequest, result: &Result<String, String>) {
        let (code, message) = match result {
            Ok(text) => (0, text),
            Err(text) => (crate::abi::Code::Usage as u64, text),
        };
        let mut bytes = [0; TEXT];
        bytes[..TEXT - 1].iter_mut().zip(message.bytes()).for_each(|(place, byte)| *place = byte);
        // The number comes last: it makes the response valid.
        let _ = self.file.write_all_at(&bytes, offset::RESPONSE_TEXT as u64);
        let _ = self.file.write_all_at(&code.to_le_bytes(), offset::CODE as u64);
        let _ = self.file.write_all_at(&request.number.to_le_bytes(), offset::RESPONSE as u64);
    }
}

/// Contents of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Process number in the process' own namespace; outside its container it may differ.
    pub pid: u32,
    /// Scheme that chooses paths.
    pub scheme: String,
    /// Time of the last write, in nanoseconds since 1970; zero: never.
    pub written_at: u64,
    /// Number of connections that did not fit into the page.
    pub unlisted: u64,
    /// Paths of open and failed connections.
    pub slots: Vec<Slot>,
}

fn four(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes.get(at + byte).copied().unwrap_or(0)))
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    u64::from(four(bytes, at)) | u64::from(four(bytes, at + 4)) << 32
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn wrong(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Maximum number of reads of a page that is being written.
const MAX_READS: u32 = 200;

/// Reads a page of the same user.
/// Errors: the file is no page, belongs to another user, has another version, or stays half-written.
pub fn read(path: &Path) -> io::Result<Snapshot> {
    let (file, bytes) = files::open(path, false)?;
    let mut page = vec![0; bytes];
    for _ in 0..MAX_READS {
        let mut before = [0; 8];
        file.read_exact_at(&mut before, offset::SEQUENCE as u64)?;
        file.read_exact_at(&mut page, 0)?;
        let mut after = [0; 8];
        file.read_exact_at(&mut after, offset::SEQUENCE as u64)?;
        if before == after && before[0].is_multiple_of(2) {
            return parse(&page);
        }
        thread::sleep(Duration::from_micros(500));
    }
    Err(wrong("it is being written, and the writer makes no progress".into()))
}

/// Decodes a page; fails if the bytes are no page, or of another version.
pub fn parse(bytes: &[u8]) -> io::Result<Snapshot> {
    if bytes.get(..8) != Some(&MAGIC[..]) {
        return Err(wrong("it is not a statistics page".into()));
    }
    if four(bytes, 8) != VERSION {
        return Err(wrong(format!("it has version {}, this program reads version {VERSION}", four(bytes, 8))));
    }
    let [header, size, slots, used] = [12, 24, 28, 32].map(|at| four(bytes, at) as usize);
    if header < HEADER_BYTES
        || size < SLOT_BYTES
        || used > slots
        || header.saturating_add(slots.saturating_mul(size)) > bytes.len()
    {
        return Err(wrong("it has invalid sizes".into()));
    }
    let slot = |number: usize| -> Slot { bytemuck::pod_read_unaligned(&bytes[header + number * size..][..SLOT_BYTES]) };
    let slots = (0..used).map(slot).filter(|slot| slot.state != State::Free as u32).collect();
    let (pid, scheme) = (four(bytes, 36), text(&bytes[64..128]));
    Ok(Snapshot { pid, scheme, written_at: eight(bytes, 40), unlisted: eight(bytes, 48), slots })
}

/// Requests that a process sets parameters of its scheme, `KEY=VALUE` with semicolons, or returns its state for a connection,
/// `state DEVICE.NUMBER`, and waits for the response.
///
/// Errors: the process refuses or does not respond in time, or the page cannot be written.
pub fn request(path: &Path, settings: &str, timeout: Duration) -> io::Result<String> {
    if settings.len() >= TEXT {
        return Err(wrong(format!("{} B are too many; the maximum is {}", settings.len(), TEXT - 1)));
    }
    let (file, _) = files::open(path, true)?;
    let word = |at: usize| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at as u64).map(|()| u64::from_le_bytes(word))
    };
    let mut text_bytes = [0; TEXT];
    text_bytes[..settings.len()].copy_from_slice(settings.as_bytes());
    let responded = word(offset::RESPONSE)?;
    let number = word(offset::REQUEST)?.max(responded) + 1;
    // No request is valid while the text is written: a pending one would be read with the new text.
    file.write_all_at(&responded.to_le_bytes(), offset::REQUEST as u64)?;
    file.write_all_at(&text_bytes, offset::REQUEST_TEXT as u64)?;
    file.write_all_at(&number.to_le_bytes(), offset::REQUEST as u64)?;
    let polls = (timeout.as_millis() / 5).max(1);
    for _ in 0..polls {
        if word(offset::RESPONSE)? == number {
            let code = word(offset::CODE)?;
            file.read_exact_at(&mut text_bytes, offset::RESPONSE_TEXT as u64)?;
            let respond = text(&text_bytes);
            return if code == 0 { Ok(respond) } else { Err(wrong(respond)) };
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the process did not respond"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(connection: u32, path: u32) -> Slot {
        let mut slot = Slot { state: State::Open as u32, path, connection, bytes: 1000, ..Slot::default() };
        slot.set_peer("10.1.2.3:7000".parse().unwrap());
        slot
    }

    #[test]
    fn slots_round_trip_and_closed_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut page, path) = Page::create(folder.path(), 77, 2, "hopper").unwrap();
        assert_eq!(read(&path).unwrap().slots, []);
        let of = |connection| vec![slot(connection, 0), slot(connection, 1)];
        page.write(5, 0, "hopper", &[of(3), of(4)]);
        page.write(6, 1, "hopper", &[of(3)]);
        let seen = read(&path).unwrap();
        assert_eq!((seen.pid, seen.scheme.as_str(), seen.written_at, seen.unlisted), (77, "hopper", 6, 0));
        assert_eq!(seen.slots, [of(3), of(4), of(3)].concat());
        assert_eq!(seen.slots[0].peer().to_string(), "10.1.2.3:7000");
        let failed = |connection| of(connection).into_iter().map(|slot| Slot { state: 2, bytes: 0, ..slot }).collect();
        page.write(6, 0, "hopper", &[of(3), failed(4)]);
        let seen = read(&path).unwrap();
        assert_eq!(
            seen.slots.iter().map(|slot| (slot.state, slot.bytes)).collect::<Vec<_>>()[1..3],
            [(1, 1000), (2, 1000)]
        );
        // The first connection closes, and another one takes its block.
        page.write(7, 0, "reps", &[of(4), of(9)]);
        let seen = read(&path).unwrap();
        assert_eq!((seen.scheme.as_str(), seen.slots), ("reps", [of(9), of(4), of(3)].concat()));
        assert_eq!(pages(folder.path()).unwrap().pages, std::slice::from_ref(&path));
        drop(page);
        assert!(pages(folder.path()).unwrap().pages.is_empty(), "no process holds the page");
        assert!(!path.exists());
    }

    proptest::proptest! {
        /// A page is a file, so its bytes are untrusted.
        #[test]
        fn any_bytes_are_a_page_or_none(
            mut bytes in proptest::collection::vec(0u8.., 0..2000),
            numbers in proptest::array::uniform4(0u32..600),
            named in 0..4,
        ) {
            if named > 0 && bytes.len() >= 40 {
                bytes[..8].copy_from_slice(&MAGIC[..]);
                bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
                for (place, number) in [12, 24, 28, 32].into_iter().zip(numbers) {
                    bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
                }
            }
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn a_page_shorter_than_its_header_is_none() {
        let mut bytes = vec![0; 100];
        bytes[..8].copy_from_slice(&MAGIC[..]);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[24..28].copy_from_slice(&(SLOT_BYTES as u32).to_le_bytes());
        assert!(parse(&bytes).unwrap_err().to_string().contains("invalid sizes"));
    }

    /// Offsets are those of readers (docs/reference/nccl.md, tools/paths.py), not of the types in this crate.
    #[test]
    fn the_layout_is_the_one_of_the_page_of_the_docs() {
        let folder = tempfile::tempdir().unwrap();
        let (mut page, path) = Page::create(folder.path(), 0x0102_0304, 1, "flowbender").unwrap();
        let all = Slot {
            state: 1,
            path: 2,
            connection: 3,
            device: 4,
            address: *b"abcdefghijklmnop",
            port: 5,
            reserved: 0,
            bytes: 6,
            packets: 7,
            retransmitted: 8,
            answers: 9,
            marks: 10,
            losses: 11,
            moves: 12,
            rtt_min: 13,
            rtt_mean: 14,
            rtt_p99: 15,
            window: 16,
            used_at: 17,
            reserved2: 0,
        };
        page.write(99, 4, "flowbender", &[vec![all]]);
        let bytes = fs::read(&path).unwrap();
        assert_eq!((&bytes[..8], four(&bytes, 8), four(&bytes, 12)), (&b"ANABPATH"[..], 1, 2048));
        assert_eq!((eight(&bytes, 16), four(&bytes, 24), four(&bytes, 28)), (2, 144, 4096));
        assert_eq!((four(&bytes, 32), four(&bytes, 36), eight(&bytes, 40)), (1, 0x0102_0304, 99));
        assert_eq!((eight(&bytes, 48), eight(&bytes, 56), &bytes[64..75]), (0, 1, &b"flowbender\0"[..]));
        let at = 2048;
        assert_eq!([0, 4, 8, 12, 32].map(|offset| four(&bytes, at + offset)), [1, 2, 3, 4, 5]);
        assert_eq!(&bytes[at + 16..at + 32], b"abcdefghijklmnop");
        let rest: Vec<u64> = (0..12).map(|word| eight(&bytes, at + 40 + 8 * word)).collect();
        assert_eq!(rest, (6..18).collect::<Vec<u64>>());
        // `anabranchPaths` returns the same bytes.
        assert_eq!(
            (size_of::<Slot>(), std::mem::offset_of!(Slot, bytes), std::mem::offset_of!(Slot, used_at)),
            (144, 40, 128)
        );
    }

    #[test]
    fn connections_beyond_the_capacity_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (mut page, path) = Page::create(folder.path(), 1, 2000, "reps").unwrap();
        let all: Vec<Vec<Slot>> =
            (0..3).map(|connection| (0..2000).map(|path| slot(connection, path)).collect()).collect();
        page.write(1, 0, "reps", &all);
        let seen = read(&path).unwrap();
        assert_eq!((seen.slots.len(), seen.unlisted), (4000, 1), "4,096 slots");
    }

    #[test]
    fn requests_receive_responses() {
        let folder = tempfile::tempdir().unwrap();
        let (page, path) = Page::create(folder.path(), 1, 2, "reps").unwrap();
        assert_eq!(page.request(), None);
        let error = request(&path, "a=1", Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let (path_of_caller, settings) = (path.clone(), "load_balancer.hopper.alpha=0.1");
        let thread = thread::spawn(move || request(&path_of_caller, settings, Duration::from_secs(20)));
        let received = loop {
            match page.request().filter(|request| request.text == settings) {
                Some(request) => break request,
                None => thread::yield_now(),
            }
        };
        page.respond(&received, &Err("no".into()));
        assert_eq!(thread.join().unwrap().unwrap_err().to_string(), "no");
        assert_eq!(page.request(), None);
        assert!(request(&path, &"x".repeat(768), Duration::ZERO).unwrap_err().to_string().contains("767"));
    }

    #[test]
    fn invalid_pages_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = Page::create(&folder.path().join("no"), 1, 2, "reps").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let path = folder.path().join("anabranch-1-0");
        fs::write(&path, [0; 4096]).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("not a statistics page"));
        let found = pages(folder.path()).unwrap();
        assert!(found.pages.is_empty() && path.exists(), "the page is kept");
        assert!(found.skipped.len() == 1 && found.skipped[0].reason.contains("not a statistics page"), "{found:?}");
        let mut bytes = vec![0; 4096];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = 2;
        fs::write(&path, &bytes).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("version 2"));
        (bytes[8], bytes[24], bytes[28]) = (1, 144, 200);
        fs::write(&path, &bytes).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("invalid sizes"));
    }
}
