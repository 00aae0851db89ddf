//! Control packets, which precede all data.

use crate::{
    event::Sizes,
    header::{Cookie, Greeting, ProbeHeader},
    peer::{LastSeal, Peer},
};
use anabranch_lb::Tag;
use anabranch_transport::Reply;
use anabranch_units::Time;

pub(super) const NO_PEER: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) enum Control {
    Hello { is_short: bool },
    Retry { connection: u32, nonce: u64, cookie: Cookie },
    Welcome(Welcome),
    Ack { stream: u32, ack: Reply, transmission: u32, arrived: Time },
    Probe { stream: u32, tag: Tag, size: usize, ecn: bool },
    Echo { probe: ProbeHeader, arrived: Time },
    Bye { connection: u32, proof: u64, stalled: Option<Sizes>, seal: Option<Box<LastSeal>> },
}

impl Control {
    pub(super) fn bye(peer: &mut Peer, stalled: Option<Sizes>) -> Self {
        let (connection, proof) = (peer.theirs, peer.their_nonce.unwrap_or(peer.nonce));
        Control::Bye { connection, proof, stalled, seal: peer.last_seal() }
    }

    /// Returns `true` if `next`, sent right after it, makes this ACK redundant: both are of packets of one path that
    /// arrived in order.
    pub(super) fn is_superseded_by(&self, stream: u32, next: &Reply) -> bool {
        let Control::Ack { stream: of, ack, .. } = self else { return false };
        let plain = |ack: &Reply| !ack.nack && !ack.cnp && ack.bitmap == 0 && ack.offset == 0;
        *of == stream
            && (ack.tag, ack.ecn) == (next.tag, next.ecn)
            && plain(ack)
            && plain(next)
            && ack.cumulative <= next.cumulative
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Welcome {
    /// Connection number of the initiator; `ours`: the local one, 0 if there is none.
    pub(super) to: u32,
    pub(super) ours: u32,
    pub(super) nonce: u64,
    pub(super) own_nonce: u64,
    /// For a candidate for the place of a peer, whose key it does not use.
    pub(super) is_for_candidate: bool,
}

impl Welcome {
    /// Names no connection.
    pub(super) fn refusing(greeting: &Greeting) -> Self {
        let Greeting { connection: to, nonce, .. } = *greeting;
        Welcome { to, ours: 0, nonce, own_nonce: 0, is_for_candidate: false }
    }
}
