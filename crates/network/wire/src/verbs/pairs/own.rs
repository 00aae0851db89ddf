use crate::{
    WireError,
    verbs::{
        VerbsSettings,
        control::Greeting,
        sys::{Device, Domain},
    },
};
use std::sync::Arc;

/// Datagrams under way, and posted receives per peer, over all queue pairs, and their minimum and maximum per queue pair.
const SENDS: u32 = 128;
const RECEIVES: u32 = 2048;
const RECEIVES_OF_QUEUE: (u32, u32) = (32, 256);
/// The same of reliable queue pairs: bytes of all receives, which may be whole chunks. Hardware waits for a receive.
const RELIABLE_BYTES: u32 = 32 << 20;
const RELIABLE_RECEIVES: (u32, u32) = (4, 64);
const RELIABLE_SENDS: (u32, u32) = (8, 64);
/// Above the largest packet, and a limit to the memory that an unknown peer may cost; of reliable queue pairs with a chunk.
const MAX_DATAGRAM: [usize; 2] = [1 << 14, (1 << 24) + 128];

/// Memory of a peer.
pub(in crate::verbs) struct Capacity {
    /// Receives of each queue pair, and datagrams on their way out.
    pub(super) receives: u32,
    pub(super) sends: u32,
    pub(in crate::verbs) bytes: usize,
}

pub(in crate::verbs) fn capacity(is_reliable: bool, queues: u32, largest: u32, probe: u32) -> Capacity {
    let (receives, sends) = if is_reliable {
        let of = |(least, most): (u32, u32), queues: u32| (RELIABLE_BYTES / largest.max(1) / queues).clamp(least, most);
        (of(RELIABLE_RECEIVES, queues), of(RELIABLE_SENDS, 1))
    } else {
        ((RECEIVES / queues).clamp(RECEIVES_OF_QUEUE.0, RECEIVES_OF_QUEUE.1), SENDS)
    };
    let bytes = (queues * receives + sends) as usize * largest as usize + probe as usize;
    Capacity { receives, sends, bytes }
}

pub(super) fn max_datagram(is_reliable: bool) -> usize {
    MAX_DATAGRAM[usize::from(is_reliable)]
}

pub(super) struct Own {
    pub(super) name: String,
    pub(super) domain: Arc<Domain>,
    pub(super) settings: VerbsSettings,
    pub(super) labels: u32,
    pub(super) queues: u32,
    pub(super) largest: u32,
    /// Bytes of memory for probes; none over unreliable queue pairs.
    pub(super) probe: u32,
    pub(super) class: u8,
}

impl Own {
    pub(super) fn is_reliable(&self) -> bool {
        self.settings.is_reliable
    }

    pub(super) fn greeting(&self, gid_index: u8) -> Result<Greeting, WireError> {
        let (gid, mtu) = (self.domain.gid(gid_index)?, self.domain.mtu()?);
        let Own { labels, queues, largest, probe, .. } = *self;
        Ok(Greeting { gid, mtu, labels, queues, largest, probe })
    }

    /// Returns `true` if a peer may have these values.
    pub(super) fn fits(&self, theirs: &Greeting) -> bool {
        let is_positive = theirs.labels > 0 && theirs.queues > 0;
        is_positive && theirs.largest as usize <= max_datagram(self.is_reliable())
    }

    /// Registers the memory of a peer and releases it again.
    pub(super) fn check_memory(&self, gid_index: u8) -> Result<(), WireError> {
        let bytes = capacity(self.is_reliable(), self.queues.min(self.labels), self.largest, self.probe).bytes;
        Device::new(&self.domain, gid_index, bytes, 16, &self.settings).map(drop)
    }
}
