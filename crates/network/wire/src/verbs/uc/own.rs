use crate::{
    WireError,
    verbs::{
        VerbsSettings,
        control::Greeting,
        gid,
        sys::{Device, Service},
    },
};
use std::net::IpAddr;

pub(super) const SENDS: u32 = 128;
/// Posted receives per peer, over all labels, and their minimum and maximum per label.
const RECEIVES: u32 = 2048;
const RECEIVES_OF_LABEL: (u32, u32) = (32, 256);
/// Above the largest packet, and a limit to the memory that an unknown peer may cost.
pub(super) const MAX_DATAGRAM: usize = 1 << 14;

pub(in crate::verbs) fn memory(labels: u32, largest: usize) -> usize {
    slots(labels).1 as usize * largest
}

/// Returns the receives per label and the memory slots of a peer.
pub(super) fn slots(labels: u32) -> (u32, u32) {
    let receives = (RECEIVES / labels).clamp(RECEIVES_OF_LABEL.0, RECEIVES_OF_LABEL.1);
    (receives, labels * receives + SENDS)
}

impl Greeting {
    pub(super) fn makes_sense(&self) -> bool {
        self.labels > 0 && self.largest as usize <= MAX_DATAGRAM
    }
}

pub(super) struct Own {
    pub(super) name: String,
    pub(super) settings: VerbsSettings,
    pub(super) labels: u32,
    pub(super) largest: u32,
    pub(super) class: u8,
}

impl Own {
    pub(super) fn greeting(&self, local: Option<IpAddr>) -> Result<Greeting, WireError> {
        let index = gid::choose(&self.name, self.settings.gid_index, local)?;
        let device = Device::open(&self.name, index, 4096, 16, Service::Unreliable)?;
        Ok(Greeting { gid: device.gid()?, mtu: device.mtu()?, labels: self.labels, largest: self.largest })
    }
}
