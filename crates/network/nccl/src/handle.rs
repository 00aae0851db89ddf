//! The 128-byte handle by which a sender finds a receiver; opaque bytes for NCCL.
//!
//! | byte | field |
//! |---|---|
//! | 0 | the word `ANABRNCH` |
//! | 8 | version, 2 |
//! | 9 | datapath: 1 UDP, 2 UC queue pairs, 3 RC queue pairs |
//! | 10 | labels (2 bytes) |
//! | 12 | payload of a full packet, or chunk (2; the upper 8 bits at 27) |
//! | 14 | first port; with verbs the TCP port of the listener (2) |
//! | 16 | key of the listener (8) |
//! | 24 | 4 or 6, of the address |
//! | 25 | authentication: 0 none, 1 by the secret at 48, 2 by the key of a file |
//! | 26 | planes less one (1) |
//! | 28 | zero (4) |
//! | 32 | the address (16) |
//! | 48 | secret of the job (32) |
//! | 80 | the addresses in the other planes, of 4 or 16 bytes each, with the same port; then zero |
//! | 116 | CRC-32 of all bytes before it (4) |
//! | 120 | scratch of the sender: its attempt to connect (8) |

use crate::abi::HANDLE_BYTES;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

const MAGIC: &[u8; 8] = b"ANABRNCH";
const VERSION: u8 = 2;
const SECRET_AT: usize = 48;
/// Bytes of the secret.
pub const SECRET: usize = 32;
const PLANES_AT: usize = 80;
const CHECKSUM: usize = 116;
/// Maximum number of planes, and of those beside the first.
pub const MAX_PLANES: usize = 1 + MAX_OTHERS;
/// See [`MAX_PLANES`].
pub const MAX_OTHERS: usize = 7;

/// Returns the maximum number of planes whose addresses a handle has space for.
pub(crate) fn max_planes(is_ipv6: bool) -> usize {
    MAX_PLANES.min(1 + (CHECKSUM - PLANES_AT) / if is_ipv6 { 16 } else { 4 })
}
/// Offset of the scratch in which a sender stores its attempt.
pub const SCRATCH: usize = 120;

/// Carrier of a device's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Udp = 1,
    /// Unreliable queue pairs of an RDMA device.
    Uc = 2,
    /// Reliable ones.
    Rc = 3,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Carrier::Udp => "udp",
            Carrier::Uc => "uc",
            Carrier::Rc => "rc",
        })
    }
}

/// Source of the key with which a rank authenticates its peers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    Off,
    /// A secret, which the handle carries.
    Job([u8; SECRET]),
    /// The key of a file, which the handle does not carry.
    File,
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Authentication::Off => "Off",
            Authentication::Job(_) => "Job",
            Authentication::File => "File",
        })
    }
}

/// Address and properties of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub carrier: Carrier,
    /// The address of its label 0, or the one at which it accepts connections.
    pub at: SocketAddr,
    /// Its addresses in the other planes, as many as there are, with the same port.
    pub others: [Option<IpAddr>; MAX_OTHERS],
    pub labels: u16,
    /// Payload bytes of its full packets.
    pub payload: u32,
    /// Key of the listener, unique within its process.
    pub key: u64,
    pub authentication: Authentication,
}

fn put_ip(bytes: &mut [u8], ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[..16].copy_from_slice(&ip.octets()),
    }
    if ip.is_ipv4() { 4 } else { 16 }
}

fn read_ip(bytes: &[u8], is_ipv4: bool) -> IpAddr {
    match is_ipv4 {
        true => IpAddr::from(std::array::from_fn::<u8, 4, _>(|at| bytes[at])),
        false => IpAddr::from(std::array::from_fn::<u8, 16, _>(|at| bytes[at])),
    }
}

impl Handle {
    /// Returns its address in each plane.
    pub fn planes(&self) -> Vec<SocketAddr> {
        let others = self.others.iter().flatten().map(|ip| SocketAddr::new(*ip, self.at.port()));
        std::iter::once(self.at).chain(others).collect()
    }

    pub fn write(&self) -> [u8; HANDLE_BYTES] {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        (bytes[8], bytes[9]) = (VERSION, self.carrier as u8);
        bytes[10..12].copy_from_slice(&self.labels.to_be_bytes());
        bytes[12..14].copy_from_slice(&(self.payload as u16).to_be_bytes());
        bytes[27] = (self.payload >> 16) as u8;
        bytes[14..16].copy_from_slice(&self.at.port().to_be_bytes());
        bytes[16..24].copy_from_slice(&self.key.to_be_bytes());
        bytes[24] = if self.at.is_ipv4() { 4 } else { 6 };
        put_ip(&mut bytes[32..], self.at.ip());
        let mut at = PLANES_AT;
        for ip in self.others.iter().flatten() {
            bytes[26] += 1;
            at += put_ip(&mut bytes[at..], *ip);
        }
        match &self.authentication {
            Authentication::Off => {}
            Authentication::Job(secret) => {
                bytes[25] = 1;
                bytes[SECRET_AT..SECRET_AT + SECRET].copy_from_slice(secret);
            }
            Authentication::File => bytes[25] = 2,
        }
        let checksum = crc32fast::hash(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..SCRATCH].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Decodes a handle; fails with a message for the user that states the invalid field.
    pub fn read(bytes: &[u8; HANDLE_BYTES]) -> Result<Self, String> {
        if bytes[..8] != *MAGIC {
            return Err("the other rank's handle is of another network plugin: all ranks must load this one".into());
        }
        let checksum = crc32fast::hash(&bytes[..CHECKSUM]);
        if bytes[CHECKSUM..SCRATCH] != checksum.to_be_bytes() {
            return Err("the other rank's handle was damaged on its way".into());
        }
        if bytes[8] != VERSION {
            return Err(format!(
                "the other rank has another version of this plugin (handle {}, ours {VERSION})",
                bytes[8]
            ));
        }
        let carrier = match bytes[9] {
            1 => Carrier::Udp,
            2 => Carrier::Uc,
            3 => Carrier::Rc,
            other => return Err(format!("the other rank sends by a kind of network that we do not know ({other})")),
        };
        let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let is_ipv4 = match bytes[24] {
            4 => true,
            6 => false,
            other => return Err(format!("the other rank's handle has an address of kind {other}")),
        };
        let ip = read_ip(&bytes[32..], is_ipv4);
        let others = usize::from(bytes[26]);
        if others >= max_planes(!is_ipv4) {
            return Err(format!("the other rank's handle has {} planes", others + 1));
        }
        let size = if is_ipv4 { 4 } else { 16 };
        let others =
            std::array::from_fn(|other| (other < others).then(|| read_ip(&bytes[PLANES_AT + other * size..], is_ipv4)));
        let key = u64::from_be_bytes(std::array::from_fn(|at| bytes[16 + at]));
        let authentication = match bytes[25] {
            0 => Authentication::Off,
            1 => Authentication::Job(std::array::from_fn(|at| bytes[SECRET_AT + at])),
            2 => Authentication::File,
            other => return Err(format!("the other rank authenticates in a way that we do not know ({other})")),
        };
        let payload = u32::from(bytes[27]) << 16 | u32::from(two(12));
        let (at, labels) = (SocketAddr::new(ip, two(14)), two(10));
        Ok(Handle { carrier, at, others, labels, payload, key, authentication })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(at: &str) -> Handle {
        Handle {
            carrier: Carrier::Uc,
            at: at.parse().unwrap(),
            others: [None; MAX_OTHERS],
            labels: 8,
            payload: 1408,
            key: 0x0102_0304_0506_0708,
            authentication: Authentication::Job(std::array::from_fn(|at| at as u8 + 100)),
        }
    }

    #[test]
    fn a_handle_comes_back() {
        for at in ["10.1.2.3:40000", "[2001:db8::7]:65000"] {
            for authentication in [handle(at).authentication, Authentication::Off, Authentication::File] {
                let handle = Handle { authentication, ..handle(at) };
                assert_eq!(Handle::read(&handle.write()), Ok(handle));
                // As many planes as there is space for.
                let most = max_planes(handle.at.is_ipv6());
                let others = std::array::from_fn(|other| (other + 1 < most).then_some(handle.at.ip()));
                let many = Handle { others, ..handle };
                assert_eq!((Handle::read(&many.write()), many.planes().len()), (Ok(many), most));
            }
        }
        let text = format!("{:?}", handle("10.1.2.3:40000"));
        assert!(text.contains("Job") && !text.contains("101"), "no secret is ever printed: {text}");
        let bytes = handle("10.1.2.3:40000").write();
        assert_eq!(bytes[12..16], [0x05, 0x80, 0x9c, 0x40], "1408 and 40000");
        assert_eq!(bytes[32..36], [10, 1, 2, 3]);
        assert_eq!((bytes[25], bytes[48], bytes[79], bytes[80]), (1, 100, 131, 0));
        let with = |kind: u8| {
            let mut bytes = bytes;
            bytes[9] = kind;
            let sum = crc32fast::hash(&bytes[..CHECKSUM]);
            bytes[CHECKSUM..SCRATCH].copy_from_slice(&sum.to_be_bytes());
            Handle::read(&bytes).map(|handle| handle.carrier)
        };
        assert_eq!([1, 2, 3].map(with), [Carrier::Udp, Carrier::Uc, Carrier::Rc].map(Ok));
        assert!(with(4).unwrap_err().contains("(4)"));
        let chunk = Handle { payload: 10_000_000, ..handle("10.1.2.3:40000") };
        assert_eq!(Handle::read(&chunk.write()), Ok(chunk));
        assert_eq!([false, true].map(max_planes), [8, 3]);
    }

    #[test]
    fn damage_anywhere_but_in_the_scratch_is_noticed() {
        let whole = handle("10.1.2.3:40000").write();
        for byte in 0..HANDLE_BYTES {
            let mut bytes = whole;
            bytes[byte] ^= 0x20;
            assert_eq!(Handle::read(&bytes).is_ok(), byte >= SCRATCH, "byte {byte}");
        }
        assert!(Handle::read(&[0; HANDLE_BYTES]).unwrap_err().contains("another network plugin"));
    }
}
