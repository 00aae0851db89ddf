//! Addresses of this machine's interfaces, in the order of the kernel and with its flags.

use std::{collections::BTreeMap, fs, io, net::IpAddr, net::Ipv6Addr};

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
    // Not everywhere, and without IPv6 nowhere.
    let known = parse(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    let all = if_addrs::get_if_addrs()?.into_iter();
    let mut found: Vec<Address> = all
        .filter(|of| of.is_oper_up() && !of.is_link_local())
        .map(|of| {
            let (ip, is_loopback) = (of.ip(), of.is_loopback());
            let fitness = match ip {
                IpAddr::V6(ip) if !ip.is_loopback() => known.get(&ip).copied().unwrap_or_default(),
                _ if ip.is_loopback() => Fitness::Local,
                _ => Fitness::Usual,
            };
            let (name, index) = (of.name.split(':').next().unwrap_or_default().to_string(), of.index.unwrap_or(0));
            Address { interface: name, index, is_loopback, ip, fitness }
        })
        .collect();
    // A label may have no index of its own.
    let named: BTreeMap<String, u32> =
        found.iter().filter(|of| of.index > 0).map(|of| (of.interface.clone(), of.index)).collect();
    found.iter_mut().for_each(|of| of.index = named.get(&of.interface).copied().unwrap_or(0));
    Ok(found)
}

/// Reads the kernel's list of IPv6 addresses: address, index, bits of the network, scope and flags as hexadecimal numbers, and
/// the name (`Documentation/networking` names the flags `IFA_F_*`).
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

    #[test]
    fn loopback_has_an_address_of_host_scope() {
        let found = all().unwrap();
        let loopback = found.iter().find(|address| address.is_loopback && address.ip.is_ipv4()).unwrap();
        assert_eq!((loopback.interface.as_str(), loopback.fitness), ("lo", Fitness::Local));
    }
}
