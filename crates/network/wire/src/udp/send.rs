//! Runs of datagrams without a copy: one call gathers the headers and payloads of all of them.

use crate::Outbound;
#[cfg(target_os = "linux")]
use arrayvec::ArrayVec;
use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
};

pub(super) const MAX_RUN: usize = 64;

/// Sends a run, of which the last datagram may be shorter, with `class` as traffic class. `by` is the interface, 0 for
/// that of the routes, and the source address. Over IPv6 packets carry this flow label; `None`: the kernel's.
#[cfg(target_os = "linux")]
pub(super) fn send(
    socket: &UdpSocket,
    to: SocketAddr,
    run: &[Outbound<'_>],
    class: u8,
    by: Option<(u32, IpAddr)>,
    flow_label: Option<u16>,
) -> io::Result<()> {
    // Avoids the larger array of a run.
    if run.len() == 1 {
        gather::<2>(socket, to, run, class, by, flow_label)
    } else {
        gather::<{ 2 * MAX_RUN }>(socket, to, run, class, by, flow_label)
    }
}

#[cfg(target_os = "linux")]
fn gather<const N: usize>(
    socket: &UdpSocket,
    to: SocketAddr,
    run: &[Outbound<'_>],
    class: u8,
    by: Option<(u32, IpAddr)>,
    flow_label: Option<u16>,
) -> io::Result<()> {
    use nix::libc;
    use socket2::{MsgHdr, SockAddr, SockRef};
    let bytes = run.iter().flat_map(|datagram| [datagram.head, datagram.payload]).filter(|bytes| !bytes.is_empty());
    let pieces: ArrayVec<io::IoSlice<'_>, N> = bytes.map(io::IoSlice::new).collect();
    let mut control = Control { bytes: [0; _], used: 0 };
    if class > 0 {
        // An IPv4-mapped IPv6 address is sent over IPv4.
        let is_v6 = matches!(to, SocketAddr::V6(at) if at.ip().to_ipv4_mapped().is_none());
        let (level, kind) =
            if is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        control.say(level, kind, &i32::from(class).to_ne_bytes());
    }
    if let Some(flow_label) = flow_label {
        control.say(libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO, &u32::from(flow_label).to_be_bytes());
    }
    if let [first, _, ..] = run {
        control.say(libc::SOL_UDP, libc::UDP_SEGMENT, &(first.size() as u16).to_ne_bytes());
    }
    if let Some((index, source)) = by {
        // Without the source address the route would select it (ip(7), ipv6(7)).
        match source {
            IpAddr::V4(ip) => {
                let mut info = [0; 12];
                info[..4].copy_from_slice(&index.to_ne_bytes());
                info[4..8].copy_from_slice(&ip.octets());
                control.say(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            IpAddr::V6(ip) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                info[16..].copy_from_slice(&index.to_ne_bytes());
                control.say(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
    }
    let to = SockAddr::from(to);
    let message = MsgHdr::new().with_addr(&to).with_buffers(&pieces).with_control(&control.bytes[..control.used]);
    loop {
        match SockRef::from(socket).sendmsg(&message, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return sent.map(|_| ()),
        }
    }
}

/// In the kernel's format (cmsg(3)).
#[cfg(target_os = "linux")]
struct Control {
    /// Traffic class, flow label and segment size, one word each, and the interface.
    bytes: [u8; 3 * (HEADER + size_of::<usize>()) + HEADER + 24],
    used: usize,
}

/// Length, level and type.
#[cfg(target_os = "linux")]
const HEADER: usize = size_of::<usize>() + 8;

#[cfg(target_os = "linux")]
impl Control {
    fn say(&mut self, level: i32, kind: i32, what: &[u8]) {
        let length = (HEADER + what.len()).to_ne_bytes();
        let fields: [&[u8]; 4] = [&length, &level.to_ne_bytes(), &kind.to_ne_bytes(), what];
        let mut at = self.used;
        for field in fields {
            self.bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        self.used = at.next_multiple_of(size_of::<usize>());
    }
}

/// Keeps only the marks of the traffic class, and copies the run.
#[cfg(not(target_os = "linux"))]
pub(super) fn send(
    socket: &UdpSocket,
    to: SocketAddr,
    run: &[Outbound<'_>],
    class: u8,
    by: Option<(u32, IpAddr)>,
    _flow_label: Option<u16>,
) -> io::Result<()> {
    use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
    let contents: Vec<u8> =
        run.iter().flat_map(|datagram| [datagram.head, datagram.payload]).flatten().copied().collect();
    let transmit = Transmit {
        destination: to,
        ecn: EcnCodepoint::from_bits(class),
        contents: &contents,
        segment_size: (run.len() > 1).then(|| run[0].size()),
        src_ip: by.map(|(_, source)| source),
    };
    UdpSocketState::new(socket.into())?.try_send(socket.into(), &transmit)
}
