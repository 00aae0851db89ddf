//! Devices that NCCL makes of others (`makeVDevice`): each has a plane per member.

use crate::{
    abi::Code,
    device,
    handle::Handle,
    log::{self, Level},
    node::Failure,
    process::{Process, Rail},
    requests,
};
use anabranch_wire::FindLabels;
use std::{
    ffi::c_int,
    sync::{Mutex, PoisonError},
};

/// Lists of members since the library was loaded. NCCL calls once, and keeps the numbers of devices even if all of its
/// communicators, and with them the state of this process, end meanwhile (`NCCL_NET_PLUGIN_REF_COUNT`).
static MADE: Mutex<Vec<Vec<c_int>>> = Mutex::new(Vec::new());

/// Makes a device of others; returns its number. As in NCCL's own InfiniBand network, every call makes another one, also of a
/// single member. Fails where they cannot be planes; NCCL then uses each by itself, or ends if the user requests them.
pub(crate) fn make(process: &Process, list: &[c_int]) -> Result<c_int, Failure> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let members = process.members(list)?;
    let names: Vec<&str> = members.iter().map(|rail| rail.device.title()).collect();
    let is_forced = is_forced(&std::env::var("NCCL_NET_FORCE_MERGE").unwrap_or_default(), &names);
    let device = process.join(&members, list, is_forced).map_err(|reason| {
        let message = format!("{} stay apart: {reason}", names.join(", "));
        if is_forced {
            return Failure::new(Code::Usage, message);
        }
        // NCCL requests the ports of each card: the user has done nothing wrong.
        log::say(Level::Info, &format!("makeVDevice: {message}"));
        Failure::new(Code::Usage, "")
    })?;
    log::say(Level::Info, &format!("device {device} is {}", process.describe_device(&process.rail(device)?.device)));
    made.push(list.to_vec());
    Ok(device)
}

/// Makes the devices again, after the state of this process has ended and begun again.
pub(crate) fn repeat(process: &Process) -> Result<(), Failure> {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.iter().try_for_each(|list| process.fuse(list).map(|_| ()))
}

/// Forgets them, as the library is unloaded.
pub(crate) fn forget() {
    *MADE.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
}

/// Returns `true` if the user requests a device of these interfaces.
fn is_forced(text: &str, names: &[&str]) -> bool {
    requests::groups(text).any(|group| names.iter().all(|name| group.contains(name)))
}

impl Process {
    /// Makes a device that NCCL has had, or that the user requests.
    pub(crate) fn fuse(&self, list: &[c_int]) -> Result<c_int, Failure> {
        self.join(&self.members(list)?, list, true).map_err(|reason| Failure::new(Code::Usage, reason))
    }

    fn members(&self, list: &[c_int]) -> Result<Vec<&Rail>, Failure> {
        let wrong = |what: String| Failure::new(Code::Usage, what);
        let mut members: Vec<&Rail> = Vec::new();
        for (at, device) in list.iter().enumerate() {
            let rail = self.rail(*device).map_err(|failure| wrong(failure.message))?;
            if !rail.members.is_empty() {
                return Err(wrong(format!("device {device} ({}) is fused already", rail.device.name)));
            }
            if list[..at].contains(device) {
                return Err(wrong(format!("device {device} ({}) is listed twice", rail.device.name)));
            }
            members.push(rail);
        }
        Ok(members)
    }

    /// Returns the number of a new device, or the reason why there is none.
    pub(crate) fn try_fuse(&self, list: &[c_int], is_forced: bool) -> Result<c_int, String> {
        self.join(&self.members(list).map_err(|failure| failure.message)?, list, is_forced)
    }

    fn join(&self, members: &[&Rail], list: &[c_int], is_forced: bool) -> Result<c_int, String> {
        if let Some(reason) = self.refusal(members, is_forced).filter(|_| list.len() > 1) {
            return Err(reason);
        }
        let device = device::fuse(members.iter().map(|rail| rail.device.clone()).collect())?;
        let mut rail = Box::new(Rail::new(device, list.to_vec()).map_err(|failure| failure.message)?);
        for (slot, number) in self.fused.iter().zip(self.rails.len()..) {
            rail = match slot.set(rail) {
                Ok(()) => return Ok(number as c_int),
                Err(taken) => taken,
            };
        }
        Err(format!("there are {} devices already", self.rails.len() + self.fused.len()))
    }

    /// Returns why devices cannot be planes of one; `None`: they can, as far as their addresses are of one family.
    fn refusal(&self, members: &[&Rail], is_forced: bool) -> Option<String> {
        let configuration = &self.configuration;
        let (labels, count) = (configuration.wire.labels, members.len());
        if configuration.planes > 1 {
            return Some(format!("found ANABRANCH_PLANES={}, expected 1", configuration.planes));
        }
        if let Some(rdma) = members.iter().find_map(|rail| rail.device.rdma.as_ref()) {
            return Some(format!("found the RDMA device {}, expected ANABRANCH_DATAPATH=udp", rdma.name));
        }
        if configuration.wire.find_labels != FindLabels::All {
            return Some("expected wire.find_labels=all: paths of one plane alone are traced".into());
        }
        if !labels.is_multiple_of(count as u32) {
            return Some(format!("found ANABRANCH_PATHS={labels}, expected a multiple of {count}"));
        }
        // NCCL 2.30 hangs such a device into its tree where it does not search.
        let virtual_one = members.iter().find(|rail| !rail.device.is_pci).filter(|_| !is_forced);
        virtual_one.map(|rail| {
            format!(
                "{} is no PCI device, and NCCL would lose them; NCCL_NET_FORCE_MERGE={} fuses them, with an NCCL_TOPO_FILE that has them",
                rail.device.name,
                members.iter().map(|rail| rail.device.title()).collect::<Vec<_>>().join(",")
            )
        })
    }

    /// Fails where the planes of a rank that is to be called are not those of this device.
    pub(crate) fn check_planes(&self, rail: &Rail, handle: &Handle) -> Result<(), Failure> {
        let (theirs, ours) = (handle.planes(), rail.device.planes());
        let wrong = |what: String| Err(Failure::new(Code::Usage, format!("the rank at {} {what}", handle.at)));
        let count = rail.device.others.len() + 1;
        if theirs.len() != count {
            return wrong(format!(
                "has {} planes and {} {count}: give both the same ANABRANCH_PLANES, or let NCCL fuse the same devices at both (NCCL_NET_FORCE_MERGE)",
                theirs.len(),
                rail.device.name
            ));
        }
        if rail.members.len() < 2 {
            return Ok(());
        }
        for (at, ip) in theirs.iter().zip(ours) {
            let Some(own) = self.rails.iter().map(|rail| &rail.device).find(|device| device.ip == ip) else { continue };
            // Networks that no interface has are routed.
            let beside = |device: &&Rail| device.device.bits >= own.bits && device.device.is_beside(at.ip());
            if let Some(other) = self.rails.iter().find(beside).filter(|_| !own.is_beside(at.ip())) {
                return wrong(format!(
                    "has {} where {} has {ip} of {}, and it is in the network of {}: let NCCL fuse the same rails at both (NCCL_NET_FORCE_MERGE)",
                    at.ip(),
                    rail.device.name,
                    own.name,
                    other.device.name
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        device::Device,
        entries::handle_of,
        host::HostMemory,
        node::{Buffer, Connecting},
        variables::Configuration,
    };
    use std::sync::Arc;

    fn port(name: &str, ip: &str) -> Device {
        Device {
            name: name.into(),
            ip: ip.parse().unwrap(),
            bits: 24,
            others: Vec::new(),
            index: 7,
            pci_path: None,
            is_pci: true,
            speed: None,
            mtu: 9000,
            rdma: None,
            is_reliable: false,
        }
    }

    fn host_with(variables: &[(&str, &str)], ports: &[(&str, &str)]) -> Arc<Process> {
        let fixed = [("ANABRANCH_STATS", "off"), ("ANABRANCH_SCHEME", "rps"), ("ANABRANCH_PATHS", "4")];
        let all = variables.iter().chain(&fixed).map(|(name, value)| (name.into(), value.into()));
        let ports = ports.iter().map(|(name, ip)| port(name, ip)).collect();
        Arc::new(Process::new(Configuration::read(all).unwrap(), ports).unwrap())
    }

    pub(crate) fn host(ports: &[(&str, &str)]) -> Arc<Process> {
        host_with(&[], ports)
    }

    fn planes(host: &Process, device: i32) -> Vec<String> {
        host.rail(device).unwrap().device.planes().map(|ip| ip.to_string()).collect()
    }

    fn handle(host: &Process, device: i32) -> Handle {
        let mut opened = host.open(device, 0).unwrap();
        let key = opened.node().unwrap().listen(0).unwrap().1;
        handle_of(host, device, opened.node().unwrap(), key).unwrap()
    }

    /// Rails 1 and 2 are `eth0` and `eth1` here, and `eth1` and `eth0` there.
    #[test]
    fn swapped_devices_meet_on_their_rails() {
        let here = host(&[("eth0", "127.8.1.1"), ("eth1", "127.8.2.1")]);
        let there = host(&[("eth0", "127.8.2.2"), ("eth1", "127.8.1.2")]);
        // Device 2 in one order, device 3 in the other.
        let lists = [[0, 1], [1, 0]];
        assert_eq!([&here, &there].map(|host| lists.map(|list| host.fuse(&list).unwrap())), [[2, 3]; 2]);
        for device in [2, 3] {
            assert_eq!(planes(&here, device), ["127.8.1.1", "127.8.2.1"]);
            assert_eq!(planes(&there, device), ["127.8.1.2", "127.8.2.2"]);
            // Loopback addresses have 100 Gbit/s each.
            assert_eq!(here.rail(device).unwrap().device.speed(), 200_000);
        }
        assert_eq!(there.rail(2).unwrap().name.to_str(), Ok("eth1+eth0"));
        assert_eq!(there.rail(3).unwrap().members, [1, 0], "as NCCL has listed them");

        let (mut a, mut b) = (here.open(2, 0).unwrap(), there.open(3, 0).unwrap());
        let (a, b) = (a.node().unwrap(), b.node().unwrap());
        let (listener, key) = b.listen(0).unwrap();
        let handle = handle_of(&there, 3, b, key).unwrap();
        here.check_planes(here.rail(2).unwrap(), &handle).unwrap();
        let (mut attempt, mut sender, mut receiver) = (None, None, None);
        while sender.is_none() || receiver.is_none() {
            if sender.is_none() {
                match a.connect(&handle, attempt, 0, &[]).unwrap() {
                    Connecting::Wait(id) => attempt = Some(id),
                    Connecting::Done(id) => sender = Some(id),
                }
            }
            receiver = receiver.or(b.accept(listener).unwrap());
        }
        let (mut from, mut to) = ((0..1 << 20).map(|at| ((at * 31) >> 3) as u8).collect::<Vec<u8>>(), vec![0; 1 << 20]);
        // SAFETY: both outlive their requests.
        let mut memory =
            |is_source| unsafe { HostMemory::new(if is_source { &mut from } else { &mut to }.as_mut_ptr()) };
        let buffer = Buffer { memory: memory(false), size: 1 << 20, tag: 7 };
        let received = b.receive(receiver.unwrap(), vec![buffer]).unwrap();
        // No request before the receive is known.
        let sent = loop {
            match a.send(sender.unwrap(), memory(true), 1 << 20, 7).unwrap() {
                None => b.work().map(|_| ()).unwrap(),
                Some(sent) => break sent,
            }
        };
        let mut done = [false; 2];
        while done != [true; 2] {
            done[0] = done[0] || a.test(sent).unwrap().is_some();
            done[1] = done[1] || b.test(received).unwrap().is_some();
            a.work().unwrap();
            b.work().unwrap();
        }
        assert!(from == to);
        // Label `i` is in plane `i % 2`. Packets of a MiB take every path of four by chance but for 4 * 0.75^117.
        let watched = a.watched();
        assert!(watched[0].paths.len() == 4 && watched[0].paths.iter().all(|path| path.packets > 0), "{watched:?}");
    }

    #[test]
    fn other_planes_are_an_error() {
        let here = host(&[("eth0", "127.8.1.1"), ("eth1", "127.8.2.1"), ("eth2", "127.8.3.1")]);
        let there = host(&[("eth0", "127.8.1.2"), ("eth1", "127.8.2.2"), ("eth2", "127.8.3.2"), ("eth3", "127.9.9.2")]);
        assert_eq!(
            (here.fuse(&[0, 1]).unwrap(), there.fuse(&[0, 2]).unwrap(), there.fuse(&[0, 3]).unwrap()),
            (3, 4, 5)
        );
        let check = |device: i32, handle| here.check_planes(here.rail(device).unwrap(), &handle);
        let error = |device, handle| {
            let failure = check(device, handle).unwrap_err();
            assert_eq!(failure.code, Code::Usage);
            failure.message
        };
        let alone = error(3, handle(&there, 0));
        assert!(alone.contains("has 1 planes and eth0+eth1 2") && alone.contains("ANABRANCH_PLANES"), "{alone}");
        assert!(error(0, handle(&there, 4)).contains("has 2 planes and eth0 1"));
        let crossed = error(3, handle(&there, 4));
        for part in ["has 127.8.3.2 where eth0+eth1 has 127.8.2.1 of eth1", "in the network of eth2", "FORCE_MERGE"] {
            assert!(crossed.contains(part), "{crossed}");
        }
        check(3, handle(&there, 5)).expect("a rail may be routed");
        check(0, handle(&there, 1)).expect("unfused devices are not compared");
    }

    #[test]
    fn groups_of_the_user_are_known() {
        let of = |text| is_forced(text, &["eth0", "eth1"]);
        assert_eq!(["eth1:1,eth0", "x;eth0,eth1,eth2", "eth0;eth1", ""].map(of), [true, true, false, false]);
    }

    #[test]
    fn what_cannot_be_fused_stays_apart() {
        let ports = [("eth0", "127.8.1.1"), ("eth1", "127.8.2.1"), ("eth2", "127.8.3.1")];
        let refusal = |variables: &[(&str, &str)], change: fn(&mut Rail), count: usize| {
            let mut process = Arc::into_inner(host_with(variables, &ports)).unwrap();
            change(&mut process.rails[1]);
            let list: Vec<c_int> = (0..count as c_int).collect();
            process.try_fuse(&list, false).err().unwrap_or_default()
        };
        let same: fn(&mut Rail) = |_| ();
        assert_eq!(refusal(&[], same, 2), "");
        assert_eq!(refusal(&[], same, 3), "found ANABRANCH_PATHS=4, expected a multiple of 3");
        assert_eq!(refusal(&[("ANABRANCH_PATHS", "6")], same, 3), "");
        assert_eq!(refusal(&[("ANABRANCH_PLANES", "2")], same, 2), "found ANABRANCH_PLANES=2, expected 1");
        assert!(refusal(&[("ANABRANCH_SET", "wire.find_labels=paths")], same, 2).contains("wire.find_labels=all"));
        let virtual_one = refusal(&[], |rail| rail.device.is_pci = false, 2);
        assert!(virtual_one.contains("eth1 is no PCI") && virtual_one.contains("MERGE=eth0,eth1"), "{virtual_one}");
        let mut process = Arc::into_inner(host(&ports)).unwrap();
        process.rails[1].device.is_pci = false;
        assert_eq!(process.try_fuse(&[0, 1], true), Ok(3), "as the user requests");
        let rdma = |rail: &mut Rail| {
            let (name, mtu, guid, speed) = ("mlx5_1".into(), 4096, 7, None);
            rail.device.rdma = Some(anabranch_wire::verbs::RdmaDevice { name, mtu, guid, speed });
        };
        assert!(refusal(&[], rdma, 2).contains("RDMA device mlx5_1, expected ANABRANCH_DATAPATH=udp"));
        let mixed = host(&[("eth0", "127.8.1.1"), ("eth1", "2001:db8::1")]);
        assert_eq!(mixed.fuse(&[0, 1]).unwrap_err().code, Code::Usage);
        // A handle has space for three addresses of IPv6.
        let ipv6 = host(&["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"].map(|ip| ("eth", ip)));
        assert_eq!((ipv6.fuse(&[0, 1, 2, 3]).unwrap_err().code, ipv6.fuse(&[1, 0]).unwrap()), (Code::Usage, 4));
    }

    /// Identifiers have space for 255 devices; one of a single member is as good as that.
    #[test]
    fn devices_are_counted() {
        let host = host(&[("eth0", "127.8.1.1"), ("eth1", "127.8.2.1")]);
        let made: Vec<c_int> = (2..255).map(|_| host.fuse(&[1]).unwrap()).collect();
        assert_eq!((made, host.all_rails().count()), ((2..255).collect(), 255));
        assert_eq!((planes(&host, 254), host.rail(254).unwrap().device.speed()), (vec!["127.8.2.1".into()], 100_000));
        for (list, part) in [
            ([0, 0], "eth0) is listed twice"),
            ([0, 2], "eth1) is fused already"),
            ([0, 255], "no device 255"),
            ([0, -1], "no device -1"),
            ([0, 1], "255 devices already"),
        ] {
            let failure = host.fuse(&list).unwrap_err();
            assert!(failure.code == Code::Usage && failure.message.contains(part), "{failure:?}");
        }
    }
}
