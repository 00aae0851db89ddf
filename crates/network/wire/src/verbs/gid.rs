use crate::WireError;
use std::{
    env, fs,
    net::{IpAddr, Ipv6Addr},
    path::{Path, PathBuf},
};

const MAX_INDEX: u8 = 255;

/// As in libibverbs, `SYSFS_PATH` replaces `/sys`.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(env::var_os("SYSFS_PATH").unwrap_or_else(|| "/sys".into())).join("class/infiniband")
}

/// Returns the index `requested`, else that of the RoCEv2 address `local`, else of the first IPv4 address, else the first.
pub(super) fn choose(device: &str, requested: Option<u8>, local: Option<IpAddr>) -> Result<u8, WireError> {
    if let Some(index) = requested {
        return Ok(index);
    }
    let addresses = addresses(&folder().join(device).join("ports/1"));
    pick(&addresses, local).ok_or_else(|| {
        let message = format!("{device} has no RoCEv2 address: give its network interface an IPv4 address");
        WireError::Verbs(message)
    })
}

/// Address of the local port in a device's table, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalGid {
    pub(super) index: u8,
    pub(super) gid: [u8; 16],
}

impl LocalGid {
    /// Returns it as the table is now: an address may have moved to another index, or an index have another address. A port
    /// that is down may have none: the old one then.
    pub(super) fn refreshed(
        self,
        read: impl Fn(u8) -> Option<[u8; 16]>,
        choose: impl FnOnce() -> Option<u8>,
    ) -> LocalGid {
        if read(self.index) == Some(self.gid) {
            return self;
        }
        let found = choose().and_then(|index| Some(LocalGid { index, gid: read(index)? }));
        found.unwrap_or(self)
    }
}

pub(super) fn addresses(port: &Path) -> Vec<(u8, Ipv6Addr)> {
    let read = |place: String| fs::read_to_string(port.join(place)).ok();
    let at = |index: u8| {
        let kind = read(format!("gid_attrs/types/{index}"))?;
        let address = read(format!("gids/{index}"))?.trim().parse().ok()?;
        kind.contains("v2").then_some((index, address))
    };
    (0..=MAX_INDEX).filter_map(at).collect()
}

fn pick(addresses: &[(u8, Ipv6Addr)], local: Option<IpAddr>) -> Option<u8> {
    let same = |address: &Ipv6Addr| local.is_some_and(|local| address.to_canonical() == local.to_canonical());
    let own = addresses.iter().find(|(_, address)| same(address));
    let first = addresses.iter().find(|(_, address)| address.to_canonical().is_ipv4());
    own.or(first).or(addresses.first()).map(|(index, _)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_connection_comes_first() {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let all = [
            (0, address("fe80::5054:ff:fe00:1")),
            (1, address("0000:0000:0000:0000:0000:ffff:0a01:0102")),
            (3, address("::ffff:10.2.1.2")),
        ];
        let local = |text: &str| Some(text.parse().unwrap());
        assert_eq!(pick(&all, local("10.2.1.2")), Some(3));
        assert_eq!(pick(&all, local("fe80::5054:ff:fe00:1")), Some(0));
        assert_eq!(pick(&all, local("127.0.0.1")), Some(1), "the first of IPv4");
        assert_eq!((pick(&all[..1], None), pick(&[], None)), (Some(0), None));
    }

    #[test]
    fn the_address_is_found_again_in_a_changed_table() {
        let (old, new) = (LocalGid { index: 3, gid: [1; 16] }, LocalGid { index: 5, gid: [1; 16] });
        let table = |held: Vec<(u8, [u8; 16])>| {
            move |at: u8| held.iter().find(|(index, _)| *index == at).map(|(_, address)| *address)
        };
        assert_eq!(old.refreshed(table(vec![(3, [1; 16])]), || panic!("not searched")), old, "unchanged");
        assert_eq!(old.refreshed(table(vec![(3, [2; 16]), (5, [1; 16])]), || Some(5)), new, "moved");
        assert_eq!(old.refreshed(table(vec![(3, [2; 16])]), || Some(3)).gid, [2; 16], "another address");
        assert_eq!(old.refreshed(table(vec![]), || Some(3)), old, "the port is down");
        assert_eq!(old.refreshed(table(vec![]), || None), old, "none is left");
    }
}
