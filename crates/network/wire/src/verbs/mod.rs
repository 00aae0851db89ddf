//! RDMA verbs of any device that libibverbs supports, Soft-RoCE included (docs/reference/verbs.md).
//!
//! The endpoints connect their queue pairs, reliable (RC) or unreliable (UC) ones, over TCP ([`VerbsPath`]).

mod abi;
mod control;
mod device_info;
mod gid;
mod library;
mod pairs;
mod sys;

#[doc(hidden)]
pub use control::fuzz;
pub use device_info::{RdmaDevice, of_interface, query_device};
pub use pairs::{Dimensions, OVERHEAD, VerbsPath};

use crate::{Label, WireError};
use anabranch_units::Time;
use std::time::{Duration, Instant};

/// Settings of a verbs connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsSettings {
    /// Device, as `ibv_devices` lists it; `None`: the only one.
    pub device: Option<String>,
    /// Index in the GID table; `None`: that of the RoCEv2 address that the control connection uses.
    pub gid_index: Option<u8>,
    /// RC: hardware acknowledges and retransmits. Otherwise UC.
    pub is_reliable: bool,
    /// Service level, 15 at most.
    pub service_level: u8,
    /// Maximum reliable queue pairs to a peer: with more labels, idle ones are relabelled.
    pub queue_pairs: u32,
    /// Acknowledgement timeout of the hardware: 4.096 us times two to the power of this, 31 at most.
    pub timeout: u8,
    /// Retransmissions by the hardware, 7 at most; Soft-RoCE takes 7 as "unlimited".
    pub retries: u8,
    /// Timeout for replies of the peer.
    pub peer_timeout: Duration,
    /// Maximum time for which a closing endpoint waits for unsent packets.
    pub parting: Duration,
}

impl Default for VerbsSettings {
    /// Returns the only device, unreliable queue pairs, and of reliable ones eight, a timeout of 268 ms and six retransmissions.
    fn default() -> Self {
        VerbsSettings {
            device: None,
            gid_index: None,
            is_reliable: false,
            service_level: 0,
            queue_pairs: 8,
            timeout: 16,
            retries: 6,
            peer_timeout: Duration::from_secs(10),
            parting: Duration::from_millis(500),
        }
    }
}

impl VerbsSettings {
    /// Timeout and retransmissions of reliable queue pairs.
    fn reliable(&self) -> Option<(u8, u8)> {
        self.is_reliable.then_some((self.timeout, self.retries))
    }
}

/// Maximum reliable queue pairs to a peer.
pub const MAX_QUEUES: u32 = 64;

/// Returns the UDP source port of RoCEv2 packets with a flow label: its low 14 bits, with the rest folded in, from
/// 49,152 on.
///
/// Linux has it as `rdma_flow_label_to_udp_sport`; Annex 17 of the InfiniBand specification leaves it open.
pub fn source_port(label: Label) -> u16 {
    (((label & 0x3fff) ^ (label >> 14)) | 0xc000) as u16
}

/// UDP destination port of RoCEv2.
const ROCE_PORT: u16 = 4791;

/// Returns the UDP source and destination port of RoCEv2 packets with each of these flow labels.
pub fn port_pairs(flow_labels: impl IntoIterator<Item = Label>) -> Vec<(u16, u16)> {
    flow_labels.into_iter().map(|label| (source_port(label), ROCE_PORT)).collect()
}

fn device(name: Option<&str>) -> Result<String, WireError> {
    let there = library::devices()?;
    let list = || there.join(", ");
    match (name, &there[..]) {
        (_, []) => Err(WireError::Verbs(
            "there is no RDMA device; Soft-RoCE makes one of any network interface: `modprobe rdma_rxe` (Debian's \
             linux-image-amd64, not its cloud kernel), `rdma link add rxe0 type rxe netdev eth0` (iproute2), with \
             ibverbs-providers installed"
                .into(),
        )),
        (Some(name), there) if there.iter().any(|known| known == name) => Ok(name.into()),
        (Some(name), _) => Err(WireError::Verbs(format!("there is no RDMA device {name}, but {}", list()))),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(WireError::Verbs(format!("which RDMA device, of {}?", list()))),
    }
}

/// One hour at most.
fn duration(time: Time) -> Duration {
    Duration::from_nanos((time.ps() / 1000).min(3_600_000_000_000))
}

fn since(start: Instant) -> Time {
    let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000);
    Time::from_ps(nanoseconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_of_the_kernel() {
        // By `rdma_flow_label_to_udp_sport` (include/rdma/ib_verbs.h): low 14 bits ^ (high 6 bits), | 0xc000.
        let ports = [(1, 49_153), (0x3fff, 65_535), (0x4000, 49_153), (0x4001, 49_152), (0xa_bcde, 0xfcf4)];
        for (label, port) in ports {
            assert_eq!(source_port(label), port, "{label:#x}");
        }
        let different: std::collections::BTreeSet<u16> = (1..=16_383).map(source_port).collect();
        assert_eq!(different.len(), 16_383, "no two of the first 16,383 labels share a port");
    }

    #[test]
    fn missing_library_is_reported_with_its_package() {
        // With libibverbs or a device the message is another one.
        let Err(error) = device(Some("nothing-of-this-name")) else { panic!("there is no such device") };
        let error = error.to_string();
        let known = ["libibverbs1", "ibverbs-providers", "nothing-of-this-name"];
        assert!(known.iter().any(|word| error.contains(word)), "{error}");
    }
}
