//! Devices: the network interfaces of this machine, of which each is one (a rail).

use crate::variables::Interfaces;
use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Mbit/s of an interface that does not say.
const USUAL_SPEED: u32 = 10_000;
/// Bytes of a packet of an interface that does not say.
const USUAL_MTU: u64 = 1500;

/// An interface that carries traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Its name.
    pub(crate) name: String,
    /// Its address.
    pub(crate) ip: IpAddr,
    /// Its number.
    pub(crate) index: u32,
    /// Where it hangs in `/sys`; `None`: it is virtual.
    pub(crate) pci_path: Option<PathBuf>,
    /// Mbit/s.
    pub(crate) speed: u32,
    /// Bytes of its largest packet, from the IP header on.
    pub(crate) mtu: u64,
}

/// An interface with an address, as the system names it.
#[derive(Clone, Debug)]
struct Found {
    name: String,
    ip: IpAddr,
    index: u32,
    is_loopback: bool,
}

/// The interfaces that are wanted, each with one address: IPv4 before IPv6.
///
/// # Errors
/// Where there are none, for people.
pub(crate) fn find(wanted: &Interfaces) -> Result<Vec<Device>, String> {
    let all = if_addrs::get_if_addrs().map_err(|error| format!("cannot list network interfaces: {error}"))?;
    let found = all.into_iter().filter(|interface| interface.is_oper_up() && !interface.is_link_local()).map(|of| {
        let (ip, is_loopback) = (of.ip(), of.is_loopback());
        Found { name: of.name, ip, index: of.index.unwrap_or(0), is_loopback }
    });
    let chosen = choose(found.collect(), wanted)?;
    Ok(chosen.into_iter().map(|found| look(found, Path::new("/sys/class/net"))).collect())
}

/// Those of the interfaces found that are wanted.
fn choose(mut found: Vec<Found>, wanted: &Interfaces) -> Result<Vec<Found>, String> {
    found.sort_by_key(|interface| (interface.index, interface.name.clone(), interface.ip.is_ipv6(), interface.ip));
    found.dedup_by(|next, first| next.name == first.name);
    let names: Vec<&str> = found.iter().map(|interface| interface.name.as_str()).collect();
    if let Some(missing) = wanted.missing(&names) {
        let near = anabranch_settings::nearest(missing, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
        return Err(format!(
            "ANABRANCH_IFNAME: no interface with an address is called `{missing}`; there are {}{hint}",
            names.join(", ")
        ));
    }
    let mut chosen: Vec<Found> =
        found.iter().filter(|interface| wanted.wants(&interface.name, interface.is_loopback)).cloned().collect();
    // A machine that is alone talks to itself.
    if chosen.is_empty() && wanted.is_default() {
        chosen = found.iter().filter(|interface| interface.is_loopback).cloned().collect();
    }
    if chosen.is_empty() {
        return Err(format!("ANABRANCH_IFNAME leaves none of the interfaces with an address: {}", names.join(", ")));
    }
    Ok(chosen)
}

/// What `/sys` says of an interface.
fn look(found: Found, sys: &Path) -> Device {
    let Found { name, ip, index, .. } = found;
    let folder = sys.join(&name);
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<i64>().ok();
    let speed = number("speed").and_then(|speed| u32::try_from(speed).ok()).filter(|speed| *speed > 0);
    let mtu = number("mtu").and_then(|mtu| u64::try_from(mtu).ok());
    Device {
        pci_path: fs::canonicalize(folder.join("device")).ok(),
        speed: speed.unwrap_or(USUAL_SPEED),
        mtu: mtu.unwrap_or(USUAL_MTU),
        name,
        ip,
        index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Vec<Found> {
        let of = |name: &str, ip: &str, index| Found {
            name: name.into(),
            ip: ip.parse().unwrap(),
            index,
            is_loopback: name == "lo",
        };
        vec![
            of("eth1", "10.1.0.1", 3),
            of("eth0", "2001:db8::1", 2),
            of("eth0", "10.0.0.1", 2),
            of("lo", "127.0.0.1", 1),
            of("docker0", "172.17.0.1", 4),
        ]
    }

    fn chosen(text: &str) -> Result<Vec<String>, String> {
        let interfaces = if text.is_empty() { Interfaces::default() } else { Interfaces::read(text).unwrap() };
        Ok(choose(found(), &interfaces)?.into_iter().map(|found| format!("{} {}", found.name, found.ip)).collect())
    }

    #[test]
    fn interfaces_are_chosen_as_nccl_chooses_them() {
        assert_eq!(chosen(""), Ok(vec!["eth0 10.0.0.1".into(), "eth1 10.1.0.1".into()]), "neither lo nor docker");
        assert_eq!(chosen("eth"), Ok(vec!["eth0 10.0.0.1".into(), "eth1 10.1.0.1".into()]), "by what they begin with");
        assert_eq!(chosen("=eth1"), Ok(vec!["eth1 10.1.0.1".into()]));
        assert_eq!(chosen("lo"), Ok(vec!["lo 127.0.0.1".into()]));
        assert_eq!(chosen("^eth1,docker,lo"), Ok(vec!["eth0 10.0.0.1".into()]));
        let error = chosen("=eth").unwrap_err();
        assert!(error.contains("`eth`") && error.contains("lo, eth0, eth1, docker0"), "{error}");
        let error = chosen("^eth,docker,lo").unwrap_err();
        assert!(error.contains("leaves none"), "{error}");
    }

    #[test]
    fn a_machine_without_a_network_uses_loopback() {
        let alone: Vec<Found> = found().into_iter().filter(|found| found.name == "lo").collect();
        assert_eq!(choose(alone, &Interfaces::default()).unwrap()[0].name, "lo");
    }

    #[test]
    fn what_sys_does_not_say_is_usual() {
        let device = look(found().remove(0), Path::new("/no/such/folder"));
        assert_eq!((device.speed, device.mtu, device.pci_path), (10_000, 1500, None));
    }
}
