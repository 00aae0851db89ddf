//! Devices: one per network interface of this machine (a rail), some with an RDMA device.

use crate::{
    handle::Carrier,
    variables::{Carriers, Interfaces},
};
use anabranch_wire::verbs::{self, RdmaDevice};
use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Default speed in Mbit/s, for an interface without one in `/sys`.
const USUAL_SPEED: u32 = 10_000;
/// Default bytes of a packet, for an interface without an MTU in `/sys`.
const USUAL_MTU: u64 = 1500;

/// An interface that carries traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
    pub(crate) index: u32,
    /// Path of the device in `/sys`; `None`: it is virtual.
    pub(crate) pci_path: Option<PathBuf>,
    /// In Mbit/s, where the system reports it.
    pub(crate) speed: Option<u32>,
    /// Bytes of its largest packet, from the IP header on.
    pub(crate) mtu: u64,
    /// Its RDMA device, where that carries the packets.
    pub(crate) rdma: Option<RdmaDevice>,
}

impl Device {
    pub(crate) fn title(&self) -> &str {
        self.rdma.as_ref().map_or(&self.name, |rdma| &rdma.name)
    }

    /// Returns the speed in Mbit/s.
    pub(crate) fn speed(&self) -> u32 {
        self.speed.unwrap_or(USUAL_SPEED)
    }

    pub(crate) fn carrier(&self) -> Carrier {
        if self.rdma.is_some() { Carrier::Uc } else { Carrier::Udp }
    }

    /// Returns the bytes of a packet for header and payload of the plugin.
    pub(crate) fn max_packet(&self) -> u64 {
        match &self.rdma {
            Some(rdma) => rdma.mtu,
            // IP and UDP headers.
            None => self.mtu.saturating_sub(if self.ip.is_ipv6() { 48 } else { 28 }),
        }
    }
}

#[derive(Clone, Debug)]
struct Found {
    name: String,
    ip: IpAddr,
    index: u32,
    is_loopback: bool,
}

/// Finds the selected interfaces, each with one address (IPv4 before IPv6), and returns them with remarks for the log.
/// Fails with a message for the user.
pub(crate) fn find(
    selection: &Interfaces,
    carriers: Carriers,
    labels: u32,
) -> Result<(Vec<Device>, Vec<String>), String> {
    let all = if_addrs::get_if_addrs().map_err(|error| format!("cannot list network interfaces: {error}"))?;
    let found = all.into_iter().filter(|interface| interface.is_oper_up() && !interface.is_link_local()).map(|of| {
        let (ip, is_loopback) = (of.ip(), of.is_loopback());
        Found { name: of.name, ip, index: of.index.unwrap_or(0), is_loopback }
    });
    let chosen = choose(found.collect(), selection)?;
    let found = chosen.into_iter().map(|found| describe(found, Path::new("/sys/class/net"))).collect();
    let rdma = |device: &Device| Some(verbs::query_device(&verbs::of_interface(&device.name)?, device.ip, labels));
    equip(found, selection, carriers, |device| rdma(device).map(|found| found.map_err(|error| error.to_string())))
}

/// Assigns RDMA devices to the interfaces, as `carriers` requires.
fn equip(
    found: Vec<Device>,
    selection: &Interfaces,
    carriers: Carriers,
    rdma: impl Fn(&Device) -> Option<Result<RdmaDevice, String>>,
) -> Result<(Vec<Device>, Vec<String>), String> {
    if carriers == Carriers::Udp {
        return Ok((found, Vec::new()));
    }
    let all: Vec<String> = found.iter().map(|device| device.name.clone()).collect();
    let wrong = |reason: String| format!("ANABRANCH_DATAPATH=uc: {reason}; allowed are udp, uc and auto");
    let (mut devices, mut remarks) = (Vec::new(), Vec::new());
    for mut device in found {
        let name = device.name.clone();
        match (rdma(&device), carriers) {
            (Some(Ok(rdma)), _) => {
                device.speed = device.speed.or(rdma.speed);
                device.rdma = Some(rdma);
                devices.push(device);
            }
            (Some(Err(reason)), Carriers::Auto) => {
                remarks.push(format!("{name} is used with UDP, since its RDMA device cannot be: {reason}"));
                devices.push(device);
            }
            (None, Carriers::Auto) => devices.push(device),
            (Some(Err(reason)), _) => return Err(wrong(format!("{name}: {reason}"))),
            (None, _) if selection.names() => {
                return Err(wrong(format!("{name} has no RDMA device with a RoCEv2 address")));
            }
            (None, _) => remarks.push(format!("{name} is not used: it has no RDMA device with a RoCEv2 address")),
        }
    }
    if devices.is_empty() {
        return Err(wrong(format!(
            "none of the interfaces {} has an RDMA device with a RoCEv2 address",
            all.join(", ")
        )));
    }
    Ok((devices, remarks))
}

fn choose(mut found: Vec<Found>, selection: &Interfaces) -> Result<Vec<Found>, String> {
    found.sort_by_key(|interface| (interface.index, interface.name.clone(), interface.ip.is_ipv6(), interface.ip));
    found.dedup_by(|next, first| next.name == first.name);
    let names: Vec<&str> = found.iter().map(|interface| interface.name.as_str()).collect();
    if let Some(missing) = selection.missing(&names) {
        let near = anabranch_settings::nearest(missing, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
        return Err(format!(
            "ANABRANCH_IFNAME: no interface with an address is called `{missing}`; there are {}{hint}",
            names.join(", ")
        ));
    }
    let mut chosen: Vec<Found> =
        found.iter().filter(|interface| selection.selects(&interface.name, interface.is_loopback)).cloned().collect();
    // A machine without other interfaces uses loopback.
    if chosen.is_empty() && selection.is_default() {
        chosen = found.iter().filter(|interface| interface.is_loopback).cloned().collect();
    }
    if chosen.is_empty() {
        return Err(format!("ANABRANCH_IFNAME leaves none of the interfaces with an address: {}", names.join(", ")));
    }
    Ok(chosen)
}

/// Reads the properties of an interface from `/sys`.
fn describe(found: Found, sys: &Path) -> Device {
    let Found { name, ip, index, .. } = found;
    let folder = sys.join(&name);
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<i64>().ok();
    let speed = number("speed").and_then(|speed| u32::try_from(speed).ok()).filter(|speed| *speed > 0);
    let mtu = number("mtu").and_then(|mtu| u64::try_from(mtu).ok());
    Device {
        pci_path: fs::canonicalize(folder.join("device")).ok(),
        speed,
        mtu: mtu.unwrap_or(USUAL_MTU),
        name,
        ip,
        index,
        rdma: None,
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
    fn missing_sysfs_values_have_defaults() {
        let device = describe(found().remove(0), Path::new("/no/such/folder"));
        assert_eq!((device.speed(), device.mtu, &device.pci_path), (10_000, 1500, &None));
        // 20 B IPv4 or 40 B IPv6, 8 B UDP.
        assert_eq!(device.max_packet(), 1472);
        assert_eq!(Device { ip: "2001:db8::1".parse().unwrap(), ..device }.max_packet(), 1452);
    }

    fn equipped(text: &str, carriers: Carriers) -> Result<(Vec<Device>, Vec<String>), String> {
        let interfaces = if text.is_empty() { Interfaces::default() } else { Interfaces::read(text).unwrap() };
        let found =
            choose(found(), &interfaces)?.into_iter().map(|found| describe(found, Path::new("/no/such/folder")));
        equip(found.collect(), &interfaces, carriers, |device| match device.name.as_str() {
            "eth1" => Some(Ok(RdmaDevice { name: "mlx5_1".into(), mtu: 4096, guid: 7, speed: Some(100_000) })),
            "docker0" => Some(Err("no libibverbs".into())),
            _ => None,
        })
    }

    #[test]
    fn interfaces_use_the_selected_devices() {
        let titles = |(all, _): &(Vec<Device>, Vec<String>)| -> Vec<String> {
            all.iter().map(|device| format!("{} {}", device.title(), device.carrier())).collect()
        };
        let udp = equipped("", Carriers::Udp).unwrap();
        assert_eq!((titles(&udp), udp.1.len()), (vec!["eth0 udp".to_string(), "eth1 udp".into()], 0));
        let auto = equipped("eth,docker", Carriers::Auto).unwrap();
        assert_eq!(titles(&auto), ["eth0 udp", "mlx5_1 uc", "docker0 udp"]);
        assert!(auto.1.len() == 1 && auto.1[0].contains("docker0") && auto.1[0].contains("no libibverbs"), "{auto:?}");
        assert_eq!((auto.0[1].speed(), auto.0[1].max_packet(), auto.0[0].speed()), (100_000, 4096, 10_000));
        // Without names in the variable, the interfaces with an RDMA device are used.
        let verbs = equipped("", Carriers::Uc).unwrap();
        assert_eq!(titles(&verbs), ["mlx5_1 uc"]);
        assert!(verbs.1.len() == 1 && verbs.1[0].contains("eth0 is not used"), "{verbs:?}");
        for (text, word) in
            [("eth", "eth0 has no RDMA device"), ("=docker0", "docker0: no libibverbs"), ("^eth1,docker", "none of")]
        {
            let error = equipped(text, Carriers::Uc).unwrap_err();
            assert!(error.contains(word) && error.contains("udp, uc and auto"), "{error}");
        }
    }
}
