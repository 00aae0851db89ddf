//! Addresses of this machine's interfaces, in the order of the kernel and with its flags.

use if_addrs::IfAddr;
use std::{
    collections::BTreeMap,
    fs, io,
    net::{IpAddr, Ipv6Addr},
};

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
    /// Bits of its network.
    pub(crate) bits: u8,
    pub(crate) fitness: Fitness,
}

/// Returns the addresses of interfaces that are up, without link-local ones.
pub(crate) fn all() -> io::Result<Vec<Address>> {
    // Not on every system, nor without IPv6.
    let known = parse(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    let all = if_addrs::get_if_addrs()?.into_iter().filter(|of| of.is_oper_up() && !of.is_link_local());
    let bits = |of: &IfAddr| match of {
        IfAddr::V4(of) => of.prefixlen,
        IfAddr::V6(of) => of.prefixlen,
    };
    Ok(with_flags(all.map(|of| (of.ip(), bits(&of.addr), of.index.unwrap_or(0), of.name)).collect(), &known))
}

/// Describes addresses (with the bits of their network, index and name of their interface) by what the kernel has noted of IPv6 ones.
fn with_flags(all: Vec<(IpAddr, u8, u32, String)>, known: &BTreeMap<Ipv6Addr, Fitness>) -> Vec<Address> {
    let interface = |name: &str| name.split(':').next().unwrap_or_default().to_string();
    // Per interface: its index, which a label may lack, and whether it has a loopback address beside others.
    let mut interfaces: BTreeMap<String, (u32, bool)> = BTreeMap::new();
    for (ip, _, index, name) in &all {
        let (known, is_loopback) = interfaces.entry(interface(name)).or_default();
        *known = (*known).max(*index);
        *is_loopback |= ip.is_loopback();
    }
    let describe = |(ip, bits, _, name): (IpAddr, u8, u32, String)| {
        let interface = interface(&name);
        let (index, is_loopback) = interfaces[&interface];
        let fitness = match ip {
            _ if ip.is_loopback() => Fitness::Local,
            IpAddr::V6(ip) => known.get(&ip).copied().unwrap_or_default(),
            IpAddr::V4(_) => Fitness::Usual,
        };
        Address { interface, index, is_loopback, ip, bits, fitness }
    };
    all.into_iter().map(describe).collect()
}

/// Reads the kernel's list of IPv6 addresses: address, index, bits of the network, scope and flags (`IFA_F_*` of
/// `linux/if_addr.h`) as hexadecimal numbers, and the name.
fn parse(text: &str) -> BTreeMap<Ipv6Addr, Fitness> {
    const TEMPORARY: u32 = 0x01;
    const DAD_FAILED: u32 = 0x08;
    const DEPRECATED: u32 = 0x20;
    const TENTATIVE: u32 = 0x40;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let ip = Ipv6Addr::from(u128::from_str_radix(words.next()?, 16).ok()?);
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let fitness = match flags {
            _ if flags & (TENTATIVE | DAD_FAILED) != 0 => Fitness::Unassigned,
            _ if flags & (TEMPORARY | DEPRECATED) != 0 => Fitness::Passing,
            _ => Fitness::Usual,
        };
        Some((ip, fitness))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_kernel_are_read() {
        let known = parse(
            "20010db8000000000000000000000001 02 40 00 80     eth0\n\
             20010db8000000000000000000000002 02 40 00 01     eth0\n\
             20010db8000000000000000000000003 02 40 00 a0     eth0\n\
             20010db8000000000000000000000004 02 40 00 c8     eth0\nwrong\n",
        );
        let fitness: Vec<Fitness> = known.into_values().collect();
        assert_eq!(fitness, [Fitness::Usual, Fitness::Passing, Fitness::Passing, Fitness::Unassigned]);
    }

    /// A routed host has its own address on `lo`, which stays a loopback interface; a label belongs to its interface.
    #[test]
    fn addresses_belong_to_their_interface() {
        let of = |ip: &str, index, name: &str| (ip.parse().unwrap(), 24, index, name.to_string());
        let all = vec![
            of("127.0.0.1", 1, "lo"),
            of("10.255.0.1", 1, "lo"),
            of("10.0.0.9", 2, "eth0"),
            of("10.0.0.1", 0, "eth0:1"),
        ];
        let found = with_flags(all, &BTreeMap::new());
        let short: Vec<_> =
            found.iter().map(|of| (of.interface.as_str(), of.index, of.is_loopback, of.fitness)).collect();
        let (usual, local) = (Fitness::Usual, Fitness::Local);
        assert_eq!(
            short,
            [("lo", 1, true, local), ("lo", 1, true, usual), ("eth0", 2, false, usual), ("eth0", 2, false, usual)]
        );
    }

    #[test]
    fn loopback_has_an_address_of_host_scope() {
        let found = all().unwrap();
        let loopback = found.iter().find(|address| address.is_loopback && address.ip.is_ipv4()).unwrap();
        assert_eq!((loopback.interface.as_str(), loopback.fitness, loopback.bits), ("lo", Fitness::Local, 8));
    }
}
