//! IPv6 flow labels that datagrams state themselves. The kernel sends them without a lease (`IPV6_FLOWLABEL_MGR`) and
//! without privileges, unless a socket of the network namespace holds exclusive ones.

use super::send;
use crate::{Outbound, To};
use nix::{libc, setsockopt_impl, sockopt_impl, sys::socket::setsockopt};
use std::{
    io,
    net::{Ipv6Addr, SocketAddr, UdpSocket},
};

sockopt_impl!(
    /// The kernel replaces a flow label of 0 by a hash.
    AutoFlowLabel,
    SetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_AUTOFLOWLABEL,
    bool
);

/// Lets datagrams of a socket carry a flow label of 0.
pub(super) fn is_chosen(socket: &UdpSocket) -> io::Result<()> {
    Ok(setsockopt(socket, AutoFlowLabel, &false)?)
}

/// Sends one over loopback, if there is IPv6.
pub(super) fn check() -> io::Result<()> {
    let Ok(socket) = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) else { return Ok(()) };
    let at: SocketAddr = socket.local_addr()?;
    let one =
        Outbound { to: To::Address(at.into()), label: 0, ecn: false, class: 0, head: &[0], payload: &[], write: None };
    send::send(&socket, at, &[one], 0, None, Some(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Carried, Datapath, udp::UdpPath};
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn6, recvmsg};
    use std::{io::IoSliceMut, os::fd::AsRawFd};

    sockopt_impl!(ReceivesFlowLabels, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO, bool);

    /// The traffic class remains, and a run of segments carries them as a single datagram does.
    #[test]
    fn packets_of_a_label_carry_its_value() {
        let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        let free: Vec<UdpSocket> = (0..2).map(|_| UdpSocket::bind(any).unwrap()).collect();
        let ports: Vec<u16> = free.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        drop(free);
        // Two values share a port.
        let values = [(0x0090, ports[0]), (0, ports[1]), (0xffff, ports[1])];
        let carried = values.map(|(flow_label, port)| Carried { flow_label: Some(flow_label), port: Some(port) });
        let to = UdpPath::open(any, 3, 8).unwrap();
        let mut from = UdpPath::calling_with(&[any], &carried, 8).unwrap();
        let peer = from.peer(to.at(), &[]).unwrap();
        let bytes = [7; 1000];
        for (label, (flow_label, port)) in values.into_iter().enumerate() {
            let socket = &to.sockets[label].0;
            setsockopt(socket, ReceivesFlowLabels, &true).unwrap();
            let one = Outbound {
                to: To::Peer(peer),
                label: label as u32,
                ecn: true,
                class: 184,
                head: &bytes,
                payload: &[],
                write: None,
            };
            assert_eq!(from.send(&[one; 2]).unwrap(), 2);
            let (mut buffer, mut message) = ([0; 3000], nix::cmsg_space!([u8; 512]));
            let mut places = [IoSliceMut::new(&mut buffer)];
            let flags = MsgFlags::empty();
            let got = recvmsg::<SockaddrIn6>(socket.as_raw_fd(), &mut places, Some(&mut message), flags).unwrap();
            assert_eq!(got.address.unwrap().port(), port);
            let info = got.cmsgs().unwrap().find_map(|one| match one {
                ControlMessageOwned::Unknown(one) if one.cmsg_header.cmsg_type == libc::IPV6_FLOWINFO => {
                    Some(one.data_bytes)
                }
                _ => None,
            });
            let info = info.map(|bytes| u32::from_be_bytes(bytes[..4].try_into().unwrap()));
            // Class 184 and ECT(0), 2.
            assert_eq!(info, Some(186 << 20 | u32::from(flow_label)), "label {label}");
        }
    }
}
