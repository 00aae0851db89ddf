//! Addresses of this machine's interfaces, in the order of the kernel and with what it knows of each.

use std::{io, net::IpAddr};

/// Use of an address as the one by which others reach an interface, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fitness {
    #[default]
    Usual,
    /// A temporary or a deprecated one, which the kernel removes in time.
    Passing,
    /// Of no use to other machines: of host scope.
    Local,
    /// Not assigned yet, or in use elsewhere (duplicate address detection).
    Unassigned,
}

/// An address of an interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Name of the interface; addresses with labels (`eth0:1`) have that of their interface.
    pub(crate) interface: String,
    pub(crate) index: u32,
    pub(crate) is_loopback: bool,
    pub(crate) ip: IpAddr,
    pub(crate) fitness: Fitness,
}

/// Returns the addresses of interfaces that are up, without link-local ones.
pub(crate) fn all() -> io::Result<Vec<Address>> {
    kernel::all()
}

#[cfg(target_os = "linux")]
mod kernel {
    use super::{Address, Fitness};
    use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
    use netlink_packet_route::{
        RouteNetlinkMessage as Message,
        address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope},
        link::{LinkAttribute, LinkFlags, LinkMessage},
    };
    use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
    use std::{collections::BTreeMap, io, net::IpAddr, os::fd::AsFd, time::Duration};

    /// Longest wait for the kernel, which replies at once.
    const TIMEOUT: Duration = Duration::from_secs(2);

    pub(super) fn all() -> io::Result<Vec<Address>> {
        let mut up = BTreeMap::new();
        for message in dump(Message::GetLink(LinkMessage::default()))? {
            let Message::NewLink(link) = message else { continue };
            let flags = link.header.flags;
            let name = link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            });
            if let Some(name) = name.filter(|_| flags.contains(LinkFlags::Up | LinkFlags::Running)) {
                up.insert(link.header.index, (name, flags.contains(LinkFlags::Loopback)));
            }
        }
        let mut found = Vec::new();
        for message in dump(Message::GetAddress(AddressMessage::default()))? {
            let Message::NewAddress(message) = message else { continue };
            let index = message.header.index;
            let (Some((interface, is_loopback)), Some(ip)) = (up.get(&index), address(&message)) else { continue };
            if !is_link_local(ip) {
                let (interface, is_loopback, fitness) = (interface.clone(), *is_loopback, fitness(&message));
                found.push(Address { interface, index, is_loopback, ip, fitness });
            }
        }
        Ok(found)
    }

    /// Returns the interface's own address; of a point-to-point link, the other attribute is the peer's.
    fn address(message: &AddressMessage) -> Option<IpAddr> {
        let of = |local| {
            message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Local(ip) if local => Some(*ip),
                AddressAttribute::Address(ip) if !local => Some(*ip),
                _ => None,
            })
        };
        of(true).or_else(|| of(false))
    }

    fn fitness(message: &AddressMessage) -> Fitness {
        let short = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        let long = message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Flags(flags) => Some(*flags),
            _ => None,
        });
        let flags = long.unwrap_or(short);
        // IFA_F_TEMPORARY of IPv6 is the bit of IFA_F_SECONDARY.
        let is_temporary = address(message).is_some_and(|ip| ip.is_ipv6()) && flags.contains(AddressFlags::Secondary);
        if flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed) {
            Fitness::Unassigned
        } else if matches!(message.header.scope, AddressScope::Host | AddressScope::Nowhere) {
            Fitness::Local
        } else if is_temporary || flags.contains(AddressFlags::Deprecated) {
            Fitness::Passing
        } else {
            Fitness::Usual
        }
    }

    fn is_link_local(ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        }
    }

    /// Returns the kernel's replies to a request for all objects of a kind.
    fn dump(request: Message) -> io::Result<Vec<Message>> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        rustix::net::sockopt::set_socket_timeout(socket.as_fd(), rustix::net::sockopt::Timeout::Recv, Some(TIMEOUT))?;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(request));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        socket.send(&bytes, 0)?;
        let mut replies = Vec::new();
        loop {
            let (bytes, _) = socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let reply = NetlinkMessage::<Message>::deserialize(rest).map_err(io::Error::other)?;
                match reply.payload {
                    NetlinkPayload::Done(_) => return Ok(replies),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(message) => replies.push(message),
                    _ => {}
                }
                // Messages are aligned to four bytes.
                let length = (reply.header.length as usize).next_multiple_of(4);
                rest = rest.get(length.max(4)..).unwrap_or_default();
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    pub(super) fn all() -> std::io::Result<Vec<super::Address>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_address_of_host_scope() {
        let found = all().unwrap();
        let loopback = found.iter().find(|address| address.is_loopback && address.ip.is_ipv4()).unwrap();
        assert_eq!((loopback.interface.as_str(), loopback.fitness), ("lo", Fitness::Local));
    }
}
