//! The statistics page: what the paths of a process' connections do, in shared memory that any process may read (docs/nccl.md has
//! the layout). One process writes; a sequence number says whether what was read is of one piece.

#![allow(unsafe_code)]

use rustix::{
    fs::{FallocateFlags, FlockOperation, fallocate, flock},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering, fence},
    thread,
    time::Duration,
};

/// What a page begins with.
pub const MAGIC: [u8; 8] = *b"ANABPATH";
/// The layout.
pub const VERSION: u32 = 1;
/// Bytes before the first slot.
pub const HEADER_BYTES: usize = 2048;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 144;
/// Slots of a page.
pub const SLOTS: usize = 4096;
/// Where pages lie, unless `ANABRANCH_STATS` says otherwise.
pub const FOLDER: &str = "/dev/shm";
/// What their names begin with.
const PREFIX: &str = "anabranch-";
/// Bytes of a wish and of its answer.
const TEXT: usize = 768;

/// Places in the header, in bytes.
mod place {
    pub(super) const SEQUENCE: usize = 16;
    pub(super) const WISH: usize = 256;
    pub(super) const ANSWERED: usize = 264;
    pub(super) const CODE: usize = 272;
    pub(super) const WISHED: usize = 288;
    pub(super) const ANSWER: usize = WISHED + super::TEXT;
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// There is none in this slot.
    Free = 0,
    /// It is open.
    Open = 1,
    /// It has failed, or its other end has closed.
    Failed = 2,
}

/// A path of a connection, as the page and `anabranchPaths` have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// [`State`].
    pub state: u32,
    /// Number of the path: its label.
    pub path: u32,
    /// Number of the connection in its device.
    pub connection: u32,
    /// The device.
    pub device: u32,
    /// The other end's address, IPv4 as IPv6 has it (`::ffff:10.0.0.1`).
    pub address: [u8; 16],
    /// Its first port.
    pub port: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes of the data packets sent over this path, headers of ours included.
    pub bytes: u64,
    /// These packets.
    pub packets: u64,
    /// Of them those that were sent again.
    pub retransmitted: u64,
    /// Answers that came.
    pub answers: u64,
    /// Of them those that say that a packet was marked.
    pub marks: u64,
    /// Packets given up for lost.
    pub losses: u64,
    /// How often packets came to this path from another.
    pub moves: u64,
    /// Shortest round trip in nanoseconds; zero: none yet.
    pub rtt_least: u64,
    /// Mean of the last 100 to 200 ms in which there were any.
    pub rtt_mean: u64,
    /// No more than one of a hundred of these was longer.
    pub rtt_p99: u64,
    /// Window of the connection in bytes, the same for all its paths; zero: it has none.
    pub window: u64,
    /// When a packet was last sent over it, in nanoseconds since 1970; zero: never.
    pub used_at: u64,
    /// Zero.
    pub reserved2: u64,
}

const WORDS: usize = SLOT_BYTES / 8;

impl Slot {
    fn words(&self) -> [u64; WORDS] {
        let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [a, b] = [0, 8].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&self.address[at..at + 8]);
            u64::from_le_bytes(word)
        });
        [
            two(self.state, self.path),
            two(self.connection, self.device),
            a,
            b,
            two(self.port, self.reserved),
            self.bytes,
            self.packets,
            self.retransmitted,
            self.answers,
            self.marks,
            self.losses,
            self.moves,
            self.rtt_least,
            self.rtt_mean,
            self.rtt_p99,
            self.window,
            self.used_at,
            self.reserved2,
        ]
    }

    fn of_words(words: [u64; WORDS]) -> Self {
        let [first, second, a, b, third, rest @ ..] = words;
        let [bytes, packets, retransmitted, answers, marks, losses, moves, rtt_least, rtt_mean, rtt_p99, ..] = rest;
        let [.., window, used_at, reserved2] = rest;
        let mut address = [0; 16];
        address[..8].copy_from_slice(&a.to_le_bytes());
        address[8..].copy_from_slice(&b.to_le_bytes());
        Slot {
            state: first as u32,
            path: (first >> 32) as u32,
            connection: second as u32,
            device: (second >> 32) as u32,
            address,
            port: third as u32,
            reserved: (third >> 32) as u32,
            bytes,
            packets,
            retransmitted,
            answers,
            marks,
            losses,
            moves,
            rtt_least,
            rtt_mean,
            rtt_p99,
            window,
            used_at,
            reserved2,
        }
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.address);
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        SocketAddr::new(ip, self.port as u16)
    }

    /// Says who the other end is.
    pub fn set_peer(&mut self, at: SocketAddr) {
        self.address = match at.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        self.port = u32::from(at.port());
    }
}

/// Shared memory of this process' own.
struct Mapping {
    at: *mut std::ffi::c_void,
    bytes: usize,
}

// SAFETY: it is only looked at as atomic words.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, which nobody else has.
        let at = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)?
        };
        Ok(Mapping { at, bytes })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: pages are aligned, there are so many bytes, and they stay until this is dropped.
        unsafe { std::slice::from_raw_parts(self.at.cast::<AtomicU64>(), self.bytes / 8) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference to it any more. It can only fail where it is no mapping.
        let _ = unsafe { munmap(self.at, self.bytes) };
    }
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} B", self.bytes)
    }
}

/// What somebody wishes that the process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    number: u64,
    /// What is to be set.
    pub(crate) text: String,
}

/// A page, as its process writes it.
#[derive(Debug)]
pub(crate) struct Page {
    mapping: Mapping,
    paths: usize,
    /// Places of connections, by device and number.
    blocks: BTreeMap<(u32, u32), usize>,
    free: Vec<usize>,
    used: usize,
    no_room: u64,
    /// Locked as long as the process lives, by which others know that it does.
    _file: File,
}

impl Page {
    /// Makes a page for connections of `paths` paths; returns it and its file, which whoever makes it removes. What processes have
    /// left behind that were killed is removed.
    ///
    /// # Errors
    /// Where there is no room, or no such folder.
    pub(crate) fn create(folder: &Path, pid: u32, paths: usize, scheme: &str) -> io::Result<(Self, PathBuf)> {
        let _ = pages(folder);
        let name = format!("{PREFIX}{pid}-{:08x}", RandomState::new().hash_one(pid) as u32);
        let (hidden, path) = (folder.join(format!(".{name}")), folder.join(&name));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(&hidden)?;
        let made = (|| {
            let bytes = HEADER_BYTES + SLOTS * SLOT_BYTES;
            // Room that is not there is found out now, and not by a signal later.
            fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let mapping = Mapping::new(&file, bytes)?;
            let (free, blocks) = (Vec::new(), BTreeMap::new());
            let page = Page { mapping, paths: paths.max(1), blocks, free, used: 0, no_room: 0, _file: file };
            let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            page.set(0, u64::from_le_bytes(MAGIC));
            page.set(8, two(VERSION, HEADER_BYTES as u32));
            page.set(24, two(SLOT_BYTES as u32, SLOTS as u32));
            page.set(32, two(0, pid));
            page.set(56, paths as u64);
            page.say(64, 64, scheme);
            Ok(page)
        })();
        let made: io::Result<Page> = made.and_then(|page: Page| fs::rename(&hidden, &path).map(|()| page));
        if made.is_err() {
            let _ = fs::remove_file(&hidden);
        }
        Ok((made?, path))
    }

    fn set(&self, at: usize, value: u64) {
        self.mapping.words()[at / 8].store(value, Ordering::Relaxed);
    }

    fn get(&self, at: usize) -> u64 {
        self.mapping.words()[at / 8].load(Ordering::Acquire)
    }

    fn say(&self, at: usize, room: usize, text: &str) {
        let mut bytes = text.bytes().take(room - 1).chain(std::iter::repeat(0));
        for word in 0..room / 8 {
            let mut eight = [0; 8];
            eight.iter_mut().zip(&mut bytes).for_each(|(place, byte)| *place = byte);
            self.set(at + 8 * word, u64::from_le_bytes(eight));
        }
    }

    /// The place of a connection, which may be new.
    fn block(&mut self, device: u32, connection: u32) -> Option<usize> {
        if let Some(block) = self.blocks.get(&(device, connection)) {
            return Some(*block);
        }
        let block = self.free.pop().or_else(|| {
            let block = self.used;
            ((block + 1) * self.paths <= SLOTS).then(|| {
                self.used += 1;
                block
            })
        });
        match block {
            None => self.no_room += 1,
            Some(block) => {
                self.blocks.insert((device, connection), block);
            }
        }
        block
    }

    /// Writes what the connections of a device do; those that are not among them are gone.
    pub(crate) fn write(&mut self, now_ns: u64, device: u32, scheme: &str, connections: &[Vec<Slot>]) {
        let sequence = self.get(place::SEQUENCE);
        self.set(place::SEQUENCE, sequence + 1);
        fence(Ordering::Release);
        self.no_room = 0;
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
            // What has failed keeps what it did.
            let keeps = first.state == State::Failed as u32 && self.blocks.contains_key(&(device, first.connection));
            let Some(block) = self.block(device, first.connection) else { continue };
            for (path, slot) in slots.iter().take(self.paths).enumerate() {
                let place = block * self.paths + path;
                if keeps { self.set(HEADER_BYTES + place * SLOT_BYTES, slot.words()[0]) } else { self.put(place, slot) }
            }
        }
        let used = (self.used * self.paths) as u64;
        self.set(32, used | self.get(32) >> 32 << 32);
        self.set(40, now_ns);
        self.set(48, self.no_room);
        self.say(64, 64, scheme);
        self.mapping.words()[place::SEQUENCE / 8].store(sequence + 2, Ordering::Release);
    }

    fn put(&self, slot: usize, what: &Slot) {
        let at = HEADER_BYTES + slot * SLOT_BYTES;
        what.words().into_iter().enumerate().for_each(|(word, value)| self.set(at + 8 * word, value));
    }

    /// A wish that has not been answered.
    pub(crate) fn wish(&self) -> Option<Wish> {
        let number = self.get(place::WISH);
        if number == self.get(place::ANSWERED) {
            return None;
        }
        let bytes: Vec<u8> = (0..TEXT / 8)
            .flat_map(|word| self.get(place::WISHED + 8 * word).to_le_bytes())
            .take_while(|byte| *byte != 0)
            .collect();
        // Another wish may have been written meanwhile.
        if self.get(place::WISH) != number {
            return None;
        }
        Some(Wish { number, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Answers a wish.
    pub(crate) fn answer(&self, wish: &Wish, result: &Result<String, String>) {
        let (code, text) = match result {
            Ok(text) => (0, text),
            Err(text) => (crate::abi::Code::Usage as u64, text),
        };
        self.say(place::ANSWER, TEXT, text);
        self.set(place::CODE, code);
        self.mapping.words()[place::ANSWERED / 8].store(wish.number, Ordering::Release);
    }
}

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The process, by its own number, which in a container may be another than outside.
    pub pid: u32,
    /// The scheme that steers.
    pub scheme: String,
    /// When it was written, in nanoseconds since 1970; zero: not yet.
    pub written_at: u64,
    /// Connections for which the page had no room.
    pub no_room: u64,
    /// Paths of open and failed connections.
    pub slots: Vec<Slot>,
}

fn four(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |of| u32::from_le_bytes([of[0], of[1], of[2], of[3]]))
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    u64::from(four(bytes, at)) | u64::from(four(bytes, at + 4)) << 32
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn wrong(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// How often somebody looks again who has come upon a page that is being written.
const LOOKS: u32 = 200;

/// Reads a page.
///
/// # Errors
/// Where it is none, of another version, or stays half-written.
pub fn read(path: &Path) -> io::Result<Snapshot> {
    let file = File::open(path)?;
    for _ in 0..LOOKS {
        let mut before = [0; 8];
        file.read_exact_at(&mut before, place::SEQUENCE as u64)?;
        let bytes = fs::read(path)?;
        let mut after = [0; 8];
        file.read_exact_at(&mut after, place::SEQUENCE as u64)?;
        if before == after && before[0].is_multiple_of(2) {
            return parse(&bytes);
        }
        thread::sleep(Duration::from_micros(500));
    }
    Err(wrong("it is being written, and whoever does so stands still".into()))
}

fn parse(bytes: &[u8]) -> io::Result<Snapshot> {
    if bytes.get(..8) != Some(&MAGIC[..]) {
        return Err(wrong("it is no statistics page".into()));
    }
    if four(bytes, 8) != VERSION {
        return Err(wrong(format!("its version is {}, and known is {VERSION}", four(bytes, 8))));
    }
    let [header, size, slots, used] = [12, 24, 28, 32].map(|at| four(bytes, at) as usize);
    if header < HEADER_BYTES
        || size < SLOT_BYTES
        || used > slots
        || header.saturating_add(slots.saturating_mul(size)) > bytes.len()
    {
        return Err(wrong("it says what cannot be".into()));
    }
    let slot = |number: usize| {
        let at = header + number * size;
        Slot::of_words(std::array::from_fn(|word| eight(bytes, at + 8 * word)))
    };
    let slots = (0..used).map(slot).filter(|slot| slot.state != State::Free as u32).collect();
    let (pid, scheme) = (four(bytes, 36), text(&bytes[64..128]));
    Ok(Snapshot { pid, scheme, written_at: eight(bytes, 40), no_room: eight(bytes, 48), slots })
}

/// The pages of processes that live, in the order of their names. Those of processes that do not are removed, as far as that is
/// allowed.
///
/// # Errors
/// Where the folder cannot be read.
pub fn pages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut living = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_page = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        let Some(file) = is_page.then(|| File::open(&path).ok()).flatten() else { continue };
        let mut begins = [0; 8];
        if file.read_exact_at(&mut begins, 0).is_err() || begins != MAGIC {
            continue;
        }
        // Whoever writes holds the lock.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                let _ = fs::remove_file(&path);
            }
            Err(_) => living.push(path),
        }
    }
    living.sort();
    Ok(living)
}

/// Wishes that a process sets parameters of its scheme, `KEY=VALUE` with semicolons, and waits for its answer.
///
/// # Errors
/// Where the process says no, says nothing in time, or the page cannot be written.
pub fn wish(path: &Path, settings: &str, patience: Duration) -> io::Result<String> {
    if settings.len() >= TEXT {
        return Err(wrong(format!("{} B are too many; a wish has {} at most", settings.len(), TEXT - 1)));
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let word = |at: usize| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at as u64).map(|()| u64::from_le_bytes(word))
    };
    let mut text_bytes = [0; TEXT];
    text_bytes[..settings.len()].copy_from_slice(settings.as_bytes());
    let answered = word(place::ANSWERED)?;
    let number = word(place::WISH)?.max(answered) + 1;
    // While it is written there is no wish: one that nobody has answered would be read with these words.
    file.write_all_at(&answered.to_le_bytes(), place::WISH as u64)?;
    file.write_all_at(&text_bytes, place::WISHED as u64)?;
    file.write_all_at(&number.to_le_bytes(), place::WISH as u64)?;
    let looks = (patience.as_millis() / 5).max(1);
    for _ in 0..looks {
        if word(place::ANSWERED)? == number {
            let code = word(place::CODE)?;
            file.read_exact_at(&mut text_bytes, place::ANSWER as u64)?;
            let answer = text(&text_bytes);
            return if code == 0 { Ok(answer) } else { Err(wrong(answer)) };
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the process has not answered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("anabranch-page-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn slot(connection: u32, path: u32) -> Slot {
        let mut slot = Slot { state: State::Open as u32, path, connection, bytes: 1000, ..Slot::default() };
        slot.set_peer("10.1.2.3:7000".parse().unwrap());
        slot
    }

    #[test]
    fn what_is_written_is_read_and_what_is_gone_is_not() {
        let folder = folder("read");
        let (mut page, path) = Page::create(&folder, 77, 2, "hopper").unwrap();
        assert_eq!(read(&path).unwrap().slots, []);
        let of = |connection| vec![slot(connection, 0), slot(connection, 1)];
        page.write(5, 0, "hopper", &[of(3), of(4)]);
        page.write(6, 1, "hopper", &[of(3)]);
        let seen = read(&path).unwrap();
        assert_eq!((seen.pid, seen.scheme.as_str(), seen.written_at, seen.no_room), (77, "hopper", 6, 0));
        assert_eq!(seen.slots, [of(3), of(4), of(3)].concat());
        assert_eq!(seen.slots[0].peer().to_string(), "10.1.2.3:7000");
        let failed = |connection| of(connection).into_iter().map(|slot| Slot { state: 2, bytes: 0, ..slot }).collect();
        page.write(6, 0, "hopper", &[of(3), failed(4)]);
        let seen = read(&path).unwrap();
        assert_eq!(
            seen.slots.iter().map(|slot| (slot.state, slot.bytes)).collect::<Vec<_>>()[1..3],
            [(1, 1000), (2, 1000)]
        );
        // The first one ends, and another takes its place.
        page.write(7, 0, "reps", &[of(4), of(9)]);
        let seen = read(&path).unwrap();
        assert_eq!((seen.scheme.as_str(), seen.slots), ("reps", [of(9), of(4), of(3)].concat()));
        assert_eq!(pages(&folder).unwrap(), std::slice::from_ref(&path));
        drop(page);
        assert!(pages(&folder).unwrap().is_empty(), "nobody holds it any more");
        assert!(!path.exists());
        fs::remove_dir(&folder).unwrap();
    }

    proptest::proptest! {
        /// A page is a file, which anybody may have written.
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
        assert!(parse(&bytes).unwrap_err().to_string().contains("what cannot be"));
    }

    /// Offsets are those of docs/nccl.md, not of our own types.
    #[test]
    fn the_layout_is_the_one_of_the_page_of_the_docs() {
        let folder = folder("layout");
        let (mut page, path) = Page::create(&folder, 0x0102_0304, 1, "flowbender").unwrap();
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
            rtt_least: 13,
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
        // `anabranchPaths` gives the same bytes.
        assert_eq!(
            (size_of::<Slot>(), std::mem::offset_of!(Slot, bytes), std::mem::offset_of!(Slot, used_at)),
            (144, 40, 128)
        );
        drop(page);
        fs::remove_file(&path).unwrap();
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn connections_beyond_its_room_are_counted() {
        let folder = folder("room");
        let (mut page, path) = Page::create(&folder, 1, 2000, "reps").unwrap();
        let all: Vec<Vec<Slot>> =
            (0..3).map(|connection| (0..2000).map(|path| slot(connection, path)).collect()).collect();
        page.write(1, 0, "reps", &all);
        let seen = read(&path).unwrap();
        assert_eq!((seen.slots.len(), seen.no_room), (4000, 1), "4,096 slots");
        drop(page);
        fs::remove_file(&path).unwrap();
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn wishes_are_answered() {
        let folder = folder("wish");
        let (page, path) = Page::create(&folder, 1, 2, "reps").unwrap();
        assert_eq!(page.wish(), None);
        let silent = wish(&path, "a=1", Duration::from_millis(10)).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        let (asker, asked) = (path.clone(), "load_balancer.hopper.alpha=0.1");
        let thread = thread::spawn(move || wish(&asker, asked, Duration::from_secs(20)));
        let heard = loop {
            match page.wish().filter(|wish| wish.text == asked) {
                Some(wish) => break wish,
                None => thread::yield_now(),
            }
        };
        page.answer(&heard, &Err("no".into()));
        assert_eq!(thread.join().unwrap().unwrap_err().to_string(), "no");
        assert_eq!(page.wish(), None);
        assert!(wish(&path, &"x".repeat(768), Duration::ZERO).unwrap_err().to_string().contains("767"));
        drop(page);
        fs::remove_file(&path).unwrap();
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn what_is_no_page_is_said() {
        let folder = folder("none");
        let error = Page::create(&folder.join("no"), 1, 2, "reps").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let path = folder.join("anabranch-1-0");
        fs::write(&path, [0; 4096]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("no statistics page"));
        assert!(pages(&folder).unwrap().is_empty() && path.exists(), "and nobody removes it");
        let mut bytes = vec![0; 4096];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = 2;
        fs::write(&path, &bytes).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("version is 2"));
        (bytes[8], bytes[24], bytes[28]) = (1, 144, 200);
        fs::write(&path, &bytes).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("cannot be"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
