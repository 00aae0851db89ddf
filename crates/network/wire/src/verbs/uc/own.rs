//! What an end of UC queue pairs is, and what it says of itself to a peer.

use crate::{
    WireError,
    verbs::{
        VerbsSettings, gid,
        sys::{Device, Service},
    },
};
use std::net::IpAddr;

/// Datagrams to a peer that hardware has not sent yet.
pub(super) const SENDS: u32 = 128;
/// Receives that stand ready for a peer, over all labels; of each label so many at least and at most.
const RECEIVES: u32 = 2048;
const RECEIVES_OF_LABEL: (u32, u32) = (32, 256);
/// Bytes of the longest datagram: more than our largest packet, and no more than what memory of a stranger may cost.
pub(super) const LONGEST: usize = 1 << 14;

/// Bytes of memory for a peer of so many labels and datagrams of so many bytes.
pub(in crate::verbs) fn memory(labels: u32, largest: usize) -> usize {
    places(labels).1 as usize * largest
}

/// Receives of each label, and places of memory of a peer of so many labels.
pub(super) fn places(labels: u32) -> (u32, u32) {
    let receives = (RECEIVES / labels).clamp(RECEIVES_OF_LABEL.0, RECEIVES_OF_LABEL.1);
    (receives, labels * receives + SENDS)
}

/// What an end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) gid: [u8; 16],
    pub(super) mtu: u8,
    pub(super) labels: u32,
    pub(super) largest: u32,
}

impl Greeting {
    /// Whether there can be queue pairs for it.
    pub(super) fn makes_sense(&self) -> bool {
        self.labels > 0 && self.largest as usize <= LONGEST
    }
}

/// What this end brings to every peer.
pub(super) struct Own {
    /// The device.
    pub(super) name: String,
    pub(super) settings: VerbsSettings,
    pub(super) labels: u32,
    /// Bytes of the longest datagram of this end.
    pub(super) largest: u32,
    pub(super) class: u8,
}

impl Own {
    /// What this end says of itself over the address that packets will leave by.
    pub(super) fn greeting(&self, local: Option<IpAddr>) -> Result<Greeting, WireError> {
        let index = gid::choose(&self.name, self.settings.gid_index, local)?;
        let device = Device::open(&self.name, index, 4096, 16, Service::Unreliable)?;
        Ok(Greeting { gid: device.gid()?, mtu: device.mtu()?, labels: self.labels, largest: self.largest })
    }
}
