use super::{
    VerbsSettings, gid, pairs,
    sys::{Device, Domain},
};
use crate::WireError;
use std::{fs, net::IpAddr, path::Path};

/// Usable RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaDevice {
    /// Name, as `ibv_devices` lists it.
    pub name: String,
    /// Maximum bytes of a one-packet message: its path MTU.
    pub mtu: u64,
    /// Globally unique identifier (GUID).
    pub guid: u64,
    /// Speed of its port in Mbit/s, if the kernel reports it.
    pub speed: Option<u32>,
}

/// Returns the RDMA device whose port 1 has RoCEv2 addresses of a network interface.
pub fn of_interface(interface: &str) -> Option<String> {
    of(&gid::folder(), interface)
}

fn of(folder: &Path, interface: &str) -> Option<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names.into_iter().find(|name| has(&folder.join(name).join("ports/1"), interface))
}

fn has(port: &Path, interface: &str) -> bool {
    gid::addresses(port).iter().any(|(index, _)| {
        let of = fs::read_to_string(port.join(format!("gid_attrs/ndevs/{index}")));
        of.is_ok_and(|name| name.trim() == interface)
    })
}

/// Checks that packets with `labels` labels may leave a device by the address with an index, or by that of its interface, over reliable or unreliable queue
/// pairs, and returns its description.
///
/// # Errors
/// Fails if libibverbs, the device or its RoCEv2 address is missing, if its port is no active Ethernet port, or if
/// memory for a peer cannot be registered.
pub fn query_device(
    name: &str,
    (index, at): (Option<u8>, IpAddr),
    labels: u32,
    is_reliable: bool,
) -> Result<RdmaDevice, WireError> {
    let name = super::device(Some(name))?;
    let index = gid::choose(&name, index, Some(at))?;
    let domain = Domain::open(&name)?;
    domain.gid(index)?;
    // 1 for 256 B to 5 for 4096 B.
    let mtu: u64 = 128 << domain.mtu()?;
    let settings = VerbsSettings { is_reliable, ..VerbsSettings::default() };
    let bytes = pairs::capacity(is_reliable, labels, mtu as u32, 0).bytes;
    Device::new(&domain, index, bytes, 16, &settings)?;
    let folder = gid::folder().join(&name);
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let guid = u64::from_str_radix(&read("node_guid").trim().replace(':', ""), 16).unwrap_or(0);
    Ok(RdmaDevice { name, mtu, guid, speed: rate(&read("ports/1/rate")) })
}

/// Parses Mbit/s from the kernel's text, such as `100 Gb/sec (4X EDR)`.
fn rate(text: &str) -> Option<u32> {
    let number: f64 = text.split_once(" Gb/sec")?.0.trim().parse().ok()?;
    (number > 0.0 && number < 1e6).then_some((number * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_the_kernel_writes_them() {
        assert_eq!(rate("100 Gb/sec (4X EDR)\n"), Some(100_000));
        assert_eq!(rate("2.5 Gb/sec (1X SDR)\n"), Some(2500));
        assert_eq!([rate(""), rate("0 Gb/sec ( SDR)"), rate("fast Gb/sec")], [None; 3]);
    }

    #[test]
    fn an_interface_has_the_device_that_has_its_addresses() {
        let own = tempfile::tempdir().unwrap();
        let folder = own.path().to_path_buf();
        // One of InfiniBand, whose addresses have no interface, then RoCE with a VLAN.
        let address = |device: &str, index: u8, kind: &str, interface: &str| {
            for (place, text) in [
                (format!("gid_attrs/types/{index}"), kind),
                (format!("gid_attrs/ndevs/{index}"), interface),
                (format!("gids/{index}"), "0000:0000:0000:0000:0000:ffff:0a01:0102"),
            ] {
                let file = folder.join(device).join("ports/1").join(place);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("{text}\n")).unwrap();
            }
        };
        address("mlx5_0", 0, "IB/RoCE v1", "ib0");
        address("mlx5_1", 0, "IB/RoCE v1", "eth1");
        address("mlx5_2", 3, "RoCE v2", "eth2");
        address("mlx5_2", 5, "RoCE v2", "eth2.100");
        let of = |interface: &str| of(&folder, interface);
        assert_eq!((of("eth2"), of("eth2.100")), (Some("mlx5_2".into()), Some("mlx5_2".into())));
        // RoCEv1 has no UDP ports.
        assert_eq!((of("eth1"), of("eth"), of("eth2.10"), of("ib0")), (None, None, None, None));
        drop(own);
        assert_eq!(super::of(&folder, "eth2"), None);
    }
}
