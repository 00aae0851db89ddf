//! Devices: one per network interface of this machine (a rail), some with an RDMA device.

use crate::{
    addresses::{self, Address},
    handle::{self, Carrier},
    variables::{Addresses, Carriers, Configuration, Interfaces, hint},
};
use anabranch_wire::verbs::{self, RdmaDevice};
use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Default speed in Mbit/s, for an interface without one in `/sys`.
const USUAL_SPEED: u32 = 10_000;
/// Default at a loopback address, where the kernel copies.
const LOOPBACK_SPEED: u32 = 100_000;
/// Default bytes of a packet, for an interface without an MTU in `/sys`.
const USUAL_MTU: u64 = 1500;

/// An interface that carries traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
    /// Bits of its network.
    pub(crate) bits: u8,
    /// Addresses of the interfaces in its other planes.
    pub(crate) others: Vec<IpAddr>,
    pub(crate) index: u32,
    /// Path of the device in `/sys`; `None`: it is virtual.
    pub(crate) pci_path: Option<PathBuf>,
    pub(crate) is_pci: bool,
    /// In Mbit/s, where the system reports it.
    pub(crate) speed: Option<u32>,
    /// Bytes of its largest packet, from the IP header on.
    pub(crate) mtu: u64,
    /// Its RDMA device, where that carries the packets.
    pub(crate) rdma: Option<RdmaDevice>,
    /// By reliable queue pairs.
    pub(crate) is_reliable: bool,
}

impl Device {
    pub(crate) fn title(&self) -> &str {
        self.rdma.as_ref().map_or(&self.name, |rdma| &rdma.name)
    }

    /// Returns the speed in Mbit/s.
    pub(crate) fn speed(&self) -> u32 {
        self.speed.unwrap_or(if self.ip.is_loopback() { LOOPBACK_SPEED } else { USUAL_SPEED })
    }

    pub(crate) fn carrier(&self) -> Carrier {
        match self.rdma {
            None => Carrier::Udp,
            Some(_) if self.is_reliable => Carrier::Rc,
            Some(_) => Carrier::Uc,
        }
    }

    /// Returns its address in each plane.
    pub(crate) fn planes(&self) -> impl Iterator<Item = IpAddr> {
        std::iter::once(self.ip).chain(self.others.iter().copied())
    }

    /// Returns `true` if an address is in the network of its first plane.
    pub(crate) fn is_beside(&self, ip: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96, 32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        };
        let ((ours, most), (theirs, size)) = (bits(self.ip), bits(ip));
        most == size && (self.bits == 0 || (ours ^ theirs) >> (128 - u32::from(self.bits)) == 0)
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

/// Finds the selected interfaces, each with one address, and returns them with remarks for the log. Fails with a message for
/// the user.
pub(crate) fn find(configuration: &Configuration) -> Result<(Vec<Device>, Vec<String>), String> {
    let Configuration { interfaces, addresses, carriers, hardware, .. } = configuration;
    let labels = configuration.wire.labels;
    let all = addresses::all().map_err(|error| format!("cannot list network interfaces: {error}"))?;
    let (chosen, mut remarks) = choose(all, interfaces, addresses)?;
    let found = chosen.into_iter().map(|found| describe(found, Path::new("/sys/class/net"))).collect();
    let is_reliable = *carriers == Carriers::Rc;
    let rdma = |device: &Device| {
        let name = verbs::of_interface(&device.name).filter(|name| hardware.selects(name))?;
        Some(verbs::query_device(&name, (hardware.gid_index, device.ip), labels, is_reliable))
    };
    let query = |device: &Device| rdma(device).map(|found| found.map_err(|error| error.to_string()));
    let (devices, more) = equip(found, interfaces, *carriers, query)?;
    remarks.extend(more);
    Ok((join_planes(devices, configuration.planes)?, remarks))
}

/// Makes one device of as many interfaces in a row as there are planes.
fn join_planes(found: Vec<Device>, planes: usize) -> Result<Vec<Device>, String> {
    let wrong = |what: String| format!("ANABRANCH_PLANES={planes}: {what}");
    if planes > 1 && !found.len().is_multiple_of(planes) {
        let names: Vec<&str> = found.iter().map(|device| device.name.as_str()).collect();
        let count = names.len();
        return Err(wrong(format!(
            "found {count} interfaces ({}), expected a multiple of {planes}; ANABRANCH_IFNAME selects them",
            names.join(", ")
        )));
    }
    let mut devices = Vec::new();
    for ports in found.chunks(planes) {
        devices.push(join(ports).map_err(wrong)?);
    }
    Ok(devices)
}

/// Makes a device with a plane per port, in their order.
fn join(ports: &[Device]) -> Result<Device, String> {
    let (first, others) = (&ports[0], &ports[1..]);
    if let Some(other) = others.iter().find(|other| other.ip.is_ipv4() != first.ip.is_ipv4()) {
        let text = format!("{} has {} and {} {}", first.name, first.ip, other.name, other.ip);
        return Err(format!("{text}, expected addresses of one family (NCCL_SOCKET_FAMILY)"));
    }
    let most = handle::max_planes(first.ip.is_ipv6());
    if ports.len() > most {
        return Err(format!("{} has {}, expected at most {most} planes over IPv6", first.name, first.ip));
    }
    Ok(Device {
        name: ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join("+"),
        others: others.iter().map(|other| other.ip).collect(),
        speed: ports.iter().map(|port| port.speed).sum(),
        mtu: ports.iter().map(|port| port.mtu).min().unwrap_or(USUAL_MTU),
        ..first.clone()
    })
}

/// Makes a device of those that NCCL fuses. Planes are in the order of addresses: the other host may list its devices in
/// another order, and plane `k` of both must be the same rail.
pub(crate) fn fuse(mut members: Vec<Device>) -> Result<Device, String> {
    members.sort_by_key(|member| member.ip);
    let speed = members.iter().map(Device::speed).sum();
    Ok(Device { speed: Some(speed), ..join(&members)? })
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
    let is_reliable = carriers == Carriers::Rc;
    let name = if is_reliable { "rc" } else { "uc" };
    let wrong = |reason: String| format!("ANABRANCH_DATAPATH={name}: {reason}; allowed are udp, uc, rc and auto");
    let (mut devices, mut remarks) = (Vec::new(), Vec::new());
    for mut device in found {
        let name = device.name.clone();
        match (rdma(&device), carriers) {
            (Some(Ok(rdma)), _) => {
                device.speed = device.speed.or(rdma.speed);
                (device.rdma, device.is_reliable) = (Some(rdma), is_reliable);
                devices.push(device);
            }
            (Some(Err(reason)), Carriers::Auto) => {
                remarks.push(format!("{name} is used with UDP, since its RDMA device cannot be: {reason}"));
                devices.push(device);
            }
            (None, Carriers::Auto) => devices.push(device),
            (Some(Err(reason)), _) => return Err(wrong(format!("{name}: {reason}"))),
            (None, _) if !selection.except => {
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

/// Chooses interfaces, and of each the first of its fittest addresses, IPv4 before IPv6. A selected name that no interface
/// has is a remark, as in NCCL.
fn choose(
    mut found: Vec<Address>,
    interfaces: &Interfaces,
    addresses: &Addresses,
) -> Result<(Vec<Address>, Vec<String>), String> {
    let all = names(&found);
    found.retain(|address| addresses.selects(address.ip));
    if let Some(by) = addresses.by().filter(|_| found.is_empty()) {
        return Err(format!("{by}: no interface has such an address; interfaces are {}", all.join(", ")));
    }
    // Stable, so that otherwise the kernel's order holds.
    let order = |of: &Address| (of.index, of.interface.clone(), of.fitness, of.ip.is_ipv6());
    found.sort_by_key(order);
    found.dedup_by(|next, first| next.interface == first.interface);
    let names = names(&found);
    let missing = interfaces.missing(&names);
    let remarks = missing.into_iter().map(|missing| {
        let near = hint(anabranch_settings::nearest(missing, names.iter().map(String::as_str)));
        format!("{}: no interface that is up is called `{missing}`{near}", interfaces.by)
    });
    let remarks: Vec<String> = remarks.collect();
    let selects = |address: &&Address| interfaces.selects(&address.interface, address.is_loopback);
    let mut chosen: Vec<Address> = found.iter().filter(selects).cloned().collect();
    // A machine without other interfaces uses loopback.
    if chosen.is_empty() && interfaces.is_default {
        chosen = found.iter().filter(|address| address.is_loopback).cloned().collect();
    }
    if chosen.is_empty() {
        let by = if interfaces.is_default { "the default (all but docker and virbr)" } else { interfaces.by };
        let what = format!("{by} selects none of the interfaces with an address: {}", names.join(", "));
        return Err([remarks, vec![what]].concat().join("; "));
    }
    Ok((chosen, remarks))
}

fn names(found: &[Address]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for address in found {
        if !names.contains(&address.interface) {
            names.push(address.interface.clone());
        }
    }
    names
}

/// Reads the properties of an interface from `/sys`.
fn describe(found: Address, sys: &Path) -> Device {
    let Address { interface: name, ip, bits, index, .. } = found;
    let folder = sys.join(&name);
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<i64>().ok();
    let speed = number("speed").and_then(|speed| u32::try_from(speed).ok()).filter(|speed| *speed > 0);
    let mtu = number("mtu").and_then(|mtu| u64::try_from(mtu).ok());
    Device {
        pci_path: fs::canonicalize(folder.join("device")).ok(),
        is_pci: fs::canonicalize(folder.join("device/subsystem")).is_ok_and(|of| of.ends_with("pci")),
        speed,
        mtu: mtu.unwrap_or(USUAL_MTU),
        name,
        ip,
        bits,
        others: Vec::new(),
        index,
        rdma: None,
        is_reliable: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::Fitness;
    use proptest::prelude::*;

    fn address(interface: &str, ip: &str, index: u32, fitness: Fitness) -> Address {
        let is_loopback = interface == "lo";
        Address { interface: interface.into(), index, is_loopback, ip: ip.parse().unwrap(), bits: 24, fitness }
    }

    fn found() -> Vec<Address> {
        vec![
            address("lo", "127.0.0.1", 1, Fitness::Local),
            address("eth0", "10.0.0.9", 2, Fitness::Usual),
            // Added later: an alias, whose number is lower.
            address("eth0", "10.0.0.1", 2, Fitness::Usual),
            address("eth1", "10.1.0.1", 3, Fitness::Usual),
            address("docker0", "172.17.0.1", 4, Fitness::Usual),
            address("eth0", "2001:db8::1", 2, Fitness::Usual),
        ]
    }

    fn chosen_of(
        found: Vec<Address>,
        names: &str,
        networks: &str,
        family: &str,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let given = |text: &'static str, value: &str| (!value.is_empty()).then(|| (text, value.to_string()));
        let interfaces = given("NCCL_SOCKET_IFNAME", names)
            .map_or_else(Interfaces::default, |(by, names)| Interfaces::read(by, &names).unwrap());
        let addresses = Addresses::read(Some(networks), Some(family)).unwrap();
        let (chosen, remarks) = choose(found, &interfaces, &addresses)?;
        Ok((chosen.into_iter().map(|found| format!("{} {}", found.interface, found.ip)).collect(), remarks))
    }

    fn chosen(names: &str) -> Result<Vec<String>, String> {
        chosen_of(found(), names, "", "").map(|(chosen, _)| chosen)
    }

    #[test]
    fn interfaces_are_chosen_as_nccl_chooses_them() {
        assert_eq!(chosen(""), Ok(vec!["eth0 10.0.0.9".into(), "eth1 10.1.0.1".into()]), "neither lo nor docker");
        assert_eq!(chosen("eth"), Ok(vec!["eth0 10.0.0.9".into(), "eth1 10.1.0.1".into()]), "by what they begin with");
        assert_eq!(chosen("=eth1"), Ok(vec!["eth1 10.1.0.1".into()]));
        assert_eq!(chosen("lo"), Ok(vec!["lo 127.0.0.1".into()]));
        assert_eq!(chosen("^eth1,docker,lo"), Ok(vec!["eth0 10.0.0.9".into()]));
        let error = chosen("=eth").unwrap_err();
        assert!(error.contains("`eth`") && error.contains("lo, eth0, eth1, docker0"), "{error}");
        let error = chosen("^eth,docker,lo").unwrap_err();
        assert!(error.contains("NCCL_SOCKET_IFNAME selects none") && !error.contains("ANABRANCH"), "{error}");
        // One list for all hosts of a job: what this one lacks is a remark.
        let (chosen, remarks) = chosen_of(found(), "=eth0,ib0", "", "").unwrap();
        assert_eq!(chosen, ["eth0 10.0.0.9"]);
        assert!(
            remarks.len() == 1 && remarks[0].starts_with("NCCL_SOCKET_IFNAME") && remarks[0].contains("`ib0`"),
            "{remarks:?}"
        );
    }

    #[test]
    fn families_and_networks_select_addresses() {
        let of =
            |networks: &str, family: &str| chosen_of(found(), "=eth0,eth1", networks, family).map(|(chosen, _)| chosen);
        assert_eq!(of("", "AF_INET6"), Ok(vec!["eth0 2001:db8::1".into()]));
        assert_eq!(of("", "AF_INET"), Ok(vec!["eth0 10.0.0.9".into(), "eth1 10.1.0.1".into()]));
        assert_eq!(of("10.0.0.1", ""), Ok(vec!["eth0 10.0.0.1".into()]));
        assert_eq!(of("10.0.0.0/29,2001:db8::/32", ""), Ok(vec!["eth0 10.0.0.1".into()]), "IPv4 before IPv6");
        assert_eq!(of("0.0.0.0/0", ""), of("", ""));
        let error = of("10.2.0.0/16", "").unwrap_err();
        assert!(error.contains("ANABRANCH_ADDRESS") && !error.contains("FAMILY"), "{error}");
        for wrong in ["10.0.0.0/33", "10.0.0", "::/129", "10.0.0.1/x"] {
            assert!(Addresses::read(Some(wrong), None).unwrap_err().contains(wrong));
        }
    }

    proptest! {
        /// An address that the kernel does not keep, or that others cannot reach, is used only where there is no other;
        /// among equals the kernel's first, and one device per interface.
        #[test]
        fn the_fittest_address_comes_first(
            drawn in prop::collection::vec((0u32..3, 0usize..4, any::<bool>(), 1u8..250), 1..12),
        ) {
            let fitness = [Fitness::Usual, Fitness::Passing, Fitness::Local, Fitness::Unassigned];
            let all: Vec<Address> = drawn.iter().map(|(index, fit, ipv6, last)| {
                let ip = if *ipv6 { format!("2001:db8::{last:x}") } else { format!("10.0.0.{last}") };
                address(&format!("eth{index}"), &ip, *index, fitness[*fit])
            }).collect();
            let (chosen, _) = choose(all.clone(), &Interfaces::default(), &Addresses::default()).unwrap();
            for one in &chosen {
                let same: Vec<&Address> = all.iter().filter(|other| other.index == one.index).collect();
                let best = same.iter().map(|other| (other.fitness, other.ip.is_ipv6())).min().unwrap();
                let first = same.iter().find(|other| (other.fitness, other.ip.is_ipv6()) == best).unwrap();
                prop_assert_eq!(one, *first);
            }
            let mut indices: Vec<u32> = all.iter().map(|address| address.index).collect();
            indices.sort_unstable();
            indices.dedup();
            prop_assert_eq!(chosen.iter().map(|one| one.index).collect::<Vec<_>>(), indices);
        }
    }

    #[test]
    fn a_machine_without_a_network_uses_loopback() {
        let alone: Vec<Address> = found().into_iter().filter(|found| found.is_loopback).collect();
        assert_eq!(choose(alone, &Interfaces::default(), &Addresses::default()).unwrap().0[0].interface, "lo");
    }

    #[test]
    fn missing_sysfs_values_have_defaults() {
        let device = describe(found().remove(0), Path::new("/no/such/folder"));
        assert_eq!((device.mtu, &device.pci_path), (1500, &None));
        for (ip, speed) in [("192.0.2.1", 10_000), ("::1", 100_000), ("127.0.0.9", 100_000)] {
            assert_eq!(Device { ip: ip.parse().unwrap(), ..device.clone() }.speed(), speed, "{ip}");
        }
        // 20 B IPv4 or 40 B IPv6, 8 B UDP.
        assert_eq!(device.max_packet(), 1472);
        assert_eq!(Device { ip: "2001:db8::1".parse().unwrap(), ..device }.max_packet(), 1452);
    }

    #[test]
    fn networks_have_their_bits() {
        let beside = |ip: &str, bits, other: &str| {
            let device = describe(Address { bits, ..address("eth0", ip, 1, Fitness::Usual) }, Path::new("/no"));
            device.is_beside(other.parse().unwrap())
        };
        // 9 is 0b1001 and 14 0b1110: they differ in the lowest three bits.
        assert_eq!([29, 30].map(|bits| beside("10.0.0.9", bits, "10.0.0.14")), [true, false]);
        assert_eq!([127, 128].map(|bits| beside("2001:db8::2", bits, "2001:db8::3")), [true, false]);
        assert!(beside("10.0.0.9", 0, "192.0.2.1") && !beside("10.0.0.9", 0, "::1"), "of one family");
    }

    #[test]
    #[cfg(unix)]
    fn functions_of_pci_cards_are_told_from_virtual_devices() {
        let sys = tempfile::tempdir().unwrap();
        // A card, and a virtio device, whose parent is one.
        for (name, subsystem) in [("eth0", "pci"), ("eth1", "virtio")] {
            let (device, bus) = (sys.path().join(name).join("device"), sys.path().join("bus").join(subsystem));
            fs::create_dir_all(&device).and_then(|()| fs::create_dir_all(&bus)).unwrap();
            std::os::unix::fs::symlink(bus, device.join("subsystem")).unwrap();
        }
        let is_pci = |name| describe(address(name, "10.0.0.9", 1, Fitness::Usual), sys.path()).is_pci;
        assert_eq!(["eth0", "eth1", "veth0"].map(is_pci), [true, false, false]);
    }

    #[test]
    fn interfaces_in_a_row_are_planes_of_a_device() {
        let found = |names: &str| {
            let interfaces = Interfaces::read("ANABRANCH_IFNAME", names).unwrap();
            let chosen = choose(found(), &interfaces, &Addresses::default()).unwrap().0;
            chosen.into_iter().map(|found| describe(found, Path::new("/no/such/folder"))).collect::<Vec<_>>()
        };
        let mut two = found("=eth0,eth1");
        (two[0].speed, two[1].speed, two[1].mtu) = (Some(100_000), Some(100_000), 1400);
        let joined = join_planes(two.clone(), 2).unwrap();
        let [device] = &joined[..] else { panic!("{joined:?}") };
        assert_eq!((device.name.as_str(), device.speed(), device.mtu), ("eth0+eth1", 200_000, 1400));
        assert_eq!((device.ip.to_string(), device.others.clone()), ("10.0.0.9".into(), vec![two[1].ip]));
        assert_eq!(join_planes(two.clone(), 1).unwrap(), two);
        let error = join_planes(found("=eth0,eth1,docker0"), 2).unwrap_err();
        assert!(
            error.contains("found 3 interfaces (eth0, eth1, docker0)") && error.contains("ANABRANCH_IFNAME"),
            "{error}"
        );
        two[1].ip = "2001:db8::1".parse().unwrap();
        assert!(join_planes(two, 2).unwrap_err().contains("one family"));
    }

    fn equipped(text: &str, carriers: Carriers) -> Result<(Vec<Device>, Vec<String>), String> {
        let interfaces = match text {
            "" => Interfaces::default(),
            text => Interfaces::read("ANABRANCH_IFNAME", text).unwrap(),
        };
        let chosen = choose(found(), &interfaces, &Addresses::default())?.0;
        let found = chosen.into_iter().map(|found| describe(found, Path::new("/no/such/folder")));
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
            assert!(error.contains(word) && error.contains("udp, uc, rc and auto"), "{error}");
        }
    }
}
