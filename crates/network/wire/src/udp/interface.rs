//! Network interface of an address, for hosts on which the kernel's routes alone would select another.
//!
//! Of two interfaces in one subnet the kernel's main table uses the first, regardless of the source address, so each
//! datagram names its interface (`IP_PKTINFO`). A socket bound by `SO_BINDTODEVICE` would not receive from the same
//! machine, nor what arrives over the other interface, which may have replied to ARP for the address (`arp_ignore`).

use if_addrs::{IfAddr, get_if_addrs};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, UdpSocket},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    index: u32,
    name: String,
    address: IpAddr,
    /// Its networks in which other interfaces are too.
    shared: Vec<Network>,
    /// Traffic to these addresses uses no interface.
    own: Vec<IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    bits: u128,
    mask: u128,
    is_v6: bool,
}

fn bits(ip: IpAddr) -> (u128, bool) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), false),
        IpAddr::V6(ip) => (u128::from(ip), true),
    }
}

impl Network {
    fn of(address: &IfAddr) -> Self {
        let (ip, mask) = match address {
            IfAddr::V4(v4) => (v4.ip.into(), v4.netmask.into()),
            IfAddr::V6(v6) => (v6.ip.into(), v6.netmask.into()),
        };
        let ((bits, is_v6), (mask, _)) = (self::bits(ip), self::bits(mask));
        Network { bits: bits & mask, mask, is_v6 }
    }

    fn has(&self, ip: IpAddr) -> bool {
        let (bits, is_v6) = bits(ip);
        is_v6 == self.is_v6 && bits & self.mask == self.bits
    }

    fn overlaps(&self, other: &Self) -> bool {
        let mask = self.mask & other.mask;
        self.is_v6 == other.is_v6 && self.bits & mask == other.bits & mask
    }
}

/// Returns `true` for the broadcast address of a network of this machine, or of all.
pub(super) fn is_broadcast(ip: IpAddr) -> bool {
    let IpAddr::V4(ip) = ip else { return false };
    let of = |one: &if_addrs::Interface| match &one.addr {
        IfAddr::V4(of) => !u32::from(of.netmask) > 1 && u32::from(ip) == u32::from(of.ip) | !u32::from(of.netmask),
        IfAddr::V6(_) => false,
    };
    ip.is_broadcast() || get_if_addrs().is_ok_and(|all| all.iter().any(of))
}

/// Index and name of the interface, and the address.
type Found = (u32, String, IfAddr);

impl Interface {
    /// `None` if no other interface shares its networks, or if several have this address.
    pub(super) fn of(ip: IpAddr) -> Option<Self> {
        if ip.is_unspecified() || ip.is_loopback() {
            return None;
        }
        let all = get_if_addrs().ok()?;
        let up = all.into_iter().filter(if_addrs::Interface::is_oper_up);
        let all: Vec<Found> = up.filter_map(|of| Some((of.index?, of.name, of.addr))).collect();
        Self::among(ip, &all)
    }

    fn among(ip: IpAddr, all: &[Found]) -> Option<Self> {
        let address = ip.to_canonical();
        let mut having = all.iter().filter(|(_, _, of)| of.ip() == address);
        let (index, name, _) = having.next()?;
        if having.any(|(other, ..)| other != index) {
            return None;
        }
        // Every interface has the link-local network, whose addresses name their interface.
        let counts = |of: &IfAddr| of.ip().is_ipv6() == address.is_ipv6() && !of.is_loopback() && !of.is_link_local();
        let networks = |own: bool| {
            all.iter().filter(move |(of, _, at)| (of == index) == own && counts(at)).map(|(.., at)| Network::of(at))
        };
        let shared: Vec<Network> =
            networks(true).filter(|one| networks(false).any(|other| one.overlaps(&other))).collect();
        let own = all.iter().map(|(.., of)| of.ip()).collect();
        let name = name.split(':').next().unwrap_or_default().to_string();
        (!shared.is_empty()).then_some(Interface { index: *index, name, address, shared, own })
    }

    /// Returns `true` if packets to this address leave by this interface.
    pub(super) fn leads_to(&self, ip: IpAddr) -> bool {
        self.shared.iter().any(|network| network.has(ip)) && !self.own.contains(&ip.to_canonical())
    }

    /// Returns a warning if packets to this address are dropped: reverse path filtering is strict (`rp_filter` 1), and the routes
    /// lead to other hosts of its network by another interface.
    pub(super) fn warning(&self) -> Option<String> {
        let filter = |of: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter")).ok()?;
            text.trim().parse::<u32>().ok()
        };
        let IpAddr::V4(address) = self.address else { return None };
        let is_strict = filter("all").max(filter(&self.name)) == Some(1);
        let mut others = (1..8).map(|bit| IpAddr::from(Ipv4Addr::from(u32::from(address) ^ bit)));
        let other = others.find(|ip| self.leads_to(*ip)).filter(|_| is_strict)?;
        // Nothing is sent.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((other, 9)).ok()?;
        (socket.local_addr().ok()?.ip() != self.address).then(|| {
            format!(
                "{address} is at {0}, and routes lead to its network by another interface: the kernel drops what arrives at {0} \
                 (net.ipv4.conf.{0}.rp_filter = 1); set rp_filter of `all` and `{0}` to 2 or 0, and arp_ignore to 1",
                self.name
            )
        })
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn address(&self) -> IpAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use if_addrs::{Ifv4Addr, Ifv6Addr};

    fn found(index: u32, ip: &str, mask: &str) -> Found {
        let address = match (ip.parse().unwrap(), mask.parse().unwrap()) {
            (IpAddr::V4(ip), IpAddr::V4(netmask)) => {
                IfAddr::V4(Ifv4Addr { ip, netmask, prefixlen: 0, broadcast: None })
            }
            (IpAddr::V6(ip), IpAddr::V6(netmask)) => {
                IfAddr::V6(Ifv6Addr { ip, netmask, prefixlen: 0, broadcast: None })
            }
            _ => unreachable!(),
        };
        (index, format!("eth{index}"), address)
    }

    fn leads(of: &str, to: &str, all: &[Found]) -> Option<(u32, bool)> {
        let interface = Interface::among(of.parse().unwrap(), all)?;
        Some((interface.index, interface.leads_to(to.parse().unwrap())))
    }

    #[test]
    fn interface_is_reported_if_routes_choose_another() {
        let two = [
            found(1, "127.0.0.1", "255.0.0.0"),
            found(2, "10.0.0.1", "255.255.255.0"),
            found(3, "10.0.0.2", "255.255.255.0"),
            found(4, "192.168.7.1", "255.255.255.0"),
            found(2, "2001:db8::1", "ffff:ffff:ffff:ffff::"),
            found(3, "2001:db8::2", "ffff:ffff:ffff:ffff::"),
        ];
        assert_eq!(leads("10.0.0.2", "10.0.0.9", &two), Some((3, true)));
        assert_eq!(leads("::ffff:10.0.0.2", "::ffff:10.0.0.9", &two), Some((3, true)), "IPv4 as IPv6 has it");
        assert_eq!(leads("2001:db8::2", "2001:db8::7", &two), Some((3, true)));
        assert_eq!(leads("10.0.0.2", "10.0.1.9", &two), Some((3, false)), "routers know the way there");
        assert_eq!(leads("10.0.0.2", "10.0.0.1", &two), Some((3, false)), "this machine");
        assert_eq!(leads("192.168.7.1", "192.168.7.2", &two), None, "no other interface has a route");
        assert_eq!(leads("10.0.0.3", "10.0.0.9", &two), None, "no address of this machine");
        // In a nested subnet the kernel selects the longer prefix.
        let nested = [found(2, "10.0.0.1", "255.255.0.0"), found(3, "10.0.0.2", "255.255.255.0")];
        assert_eq!(leads("10.0.0.1", "10.0.0.9", &nested), Some((2, true)));
        assert_eq!(leads("10.0.0.1", "10.0.7.9", &nested), Some((2, true)));
        // The same address at two interfaces identifies neither.
        let twice = [found(2, "10.0.0.1", "255.255.255.0"), found(3, "10.0.0.1", "255.255.255.0")];
        assert_eq!(leads("10.0.0.1", "10.0.0.9", &twice), None);
    }
}
