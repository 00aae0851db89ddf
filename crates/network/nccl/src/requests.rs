//! Lists of devices that NCCL passes to `makeVDevice`, for `anabranch nccl check`.

use crate::device::Device;
use std::ffi::c_int;

/// Members of a device at most, since version 12; 4 before.
const MAX_MEMBERS: usize = 8;

/// A list that NCCL requests; an error: NCCL ends before.
pub(crate) struct Request {
    pub(crate) list: Result<Vec<c_int>, String>,
    /// The user requests it.
    pub(crate) is_forced: bool,
}

/// Returns the names of the devices in each group of `NCCL_NET_FORCE_MERGE`, without their ports.
pub(crate) fn groups(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.split(';')
        .filter(|group| !group.is_empty())
        .map(|group| group.split(',').map(|of| of.split(':').next().unwrap_or(of)).collect())
}

/// Returns `true` if NCCL takes two devices for ports of a card: their PCI addresses differ in the function alone, or neither
/// has one.
fn are_ports(one: &Device, other: &Device) -> bool {
    let card = |device: &Device| {
        let path = device.pci_path.as_ref()?.to_str()?;
        path.char_indices().next_back().map(|(last, _)| path[..last].to_string())
    };
    card(one) == card(other)
}

/// Returns what NCCL requests: each group of the user, then the ports of each card if the level of `NCCL_NET_MERGE_LEVEL` is
/// the default.
pub(crate) fn of(devices: &[&Device], forced: &str, level: &str) -> Vec<Request> {
    let (mut requests, mut placed) = (Vec::new(), vec![false; devices.len()]);
    for names in groups(forced) {
        let list: Vec<usize> = (0..devices.len()).filter(|at| names.contains(&devices[*at].title())).collect();
        list.iter().for_each(|at| placed[*at] = true);
        let wrong = || format!("{} names {} devices, expected {}", names.join(","), list.len(), names.len());
        let list = if list.len() == names.len() { Ok(numbers(&list)) } else { Err(wrong()) };
        requests.push(Request { list, is_forced: true });
    }
    if !matches!(level, "" | "PORT") {
        return requests;
    }
    for first in 0..devices.len() {
        let is_member = |at: &usize| !placed[*at] && (*at == first || are_ports(devices[first], devices[*at]));
        let list: Vec<usize> = (first..devices.len()).filter(is_member).take(MAX_MEMBERS).collect();
        if list.first() != Some(&first) {
            continue;
        }
        list.iter().for_each(|at| placed[*at] = true);
        if list.len() > 1 {
            requests.push(Request { list: Ok(numbers(&list)), is_forced: false });
        }
    }
    requests
}

fn numbers(list: &[usize]) -> Vec<c_int> {
    list.iter().map(|at| *at as c_int).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, path: &str) -> Device {
        Device {
            name: name.into(),
            ip: "10.0.0.1".parse().unwrap(),
            bits: 24,
            others: Vec::new(),
            index: 7,
            pci_path: (!path.is_empty()).then(|| path.into()),
            is_pci: !path.is_empty(),
            speed: None,
            mtu: 1500,
            rdma: None,
            is_reliable: false,
        }
    }

    fn requested(forced: &str, level: &str) -> Vec<Result<Vec<c_int>, String>> {
        let (here, there) = ("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00", "/sys/devices/pci0000:80/0000:81:00");
        let devices = [
            device("a0", &format!("{here}.0")),
            device("b0", &format!("{there}.0")),
            device("a1", &format!("{here}.1")),
            device("v0", ""),
            device("v1", ""),
        ];
        of(&devices.each_ref(), forced, level).into_iter().map(|request| request.list).collect()
    }

    /// As `ncclTopoForceMerge` and `ncclTopoAutoMerge` of NCCL 2.30 group them.
    #[test]
    fn ports_of_a_card_and_groups_of_the_user_are_requested() {
        let ports = [Ok(vec![0, 2]), Ok(vec![3, 4])];
        assert_eq!((requested("", "").as_slice(), requested("", "PORT").as_slice()), (&ports[..], &ports[..]));
        assert!(requested("", "LOC").is_empty() && requested("", "SYS").is_empty());
        // In the order of devices; what is left over of a card stays alone.
        assert_eq!(requested("b0:1,a0", ""), [Ok(vec![0, 1]), ports[1].clone()]);
        assert_eq!(requested("a0,a1;b0,v0;", "LOC"), [Ok(vec![0, 2]), Ok(vec![1, 3])]);
        assert_eq!(requested("a0,a9", "LOC"), [Err("a0,a9 names 1 devices, expected 2".into())]);
    }
}
