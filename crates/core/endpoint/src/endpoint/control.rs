//! Packets that go before all data.

use crate::{
    header::{Cookie, Greeting, Probed},
    peer::{LastSeal, Peer},
};
use anabranch_lb::Tag;
use anabranch_transport::Reply;
use anabranch_units::Time;

/// The number of no peer.
pub(super) const NO_PEER: u32 = u32::MAX;

/// A packet that goes before all data.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Hello { is_short: bool },
    Retry { connection: u32, nonce: u64, cookie: Cookie },
    Welcome(Welcome),
    Answer { stream: u32, answer: Reply, stamp: Option<Time>, arrived: Time },
    Probe { stream: u32, tag: Tag, size: usize },
    Echo { probe: Probed, arrived: Time },
    Bye { connection: u32, proof: u64, seal: Option<Box<LastSeal>> },
}

impl Control {
    /// A BYE that this peer believes.
    pub(super) fn bye(peer: &mut Peer) -> Self {
        let (connection, proof) = (peer.theirs, peer.their_nonce.unwrap_or(peer.nonce));
        Control::Bye { connection, proof, seal: peer.last_seal() }
    }

    /// Whether it is an answer that says nothing which `next`, to be sent right after it, does not say too: of packets of one path that
    /// came in order.
    pub(super) fn is_told_by(&self, stream: u32, next: &Reply) -> bool {
        let Control::Answer { stream: of, answer, .. } = self else { return false };
        let plain = |answer: &Reply| !answer.nack && !answer.cnp && answer.bitmap == 0 && answer.offset == 0;
        *of == stream
            && (answer.tag, answer.ecn) == (next.tag, next.ecn)
            && plain(answer)
            && plain(next)
            && answer.cumulative <= next.cumulative
    }
}

/// What a welcome says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Welcome {
    /// The connection of whoever said hello, and ours; 0: there is none.
    pub(super) to: u32,
    pub(super) ours: u32,
    pub(super) nonce: u64,
    pub(super) own_nonce: u64,
    pub(super) stamp: Time,
    pub(super) arrived: Time,
    /// It goes to whoever may take the place of a peer, and knows nothing of that peer's key.
    pub(super) is_for_candidate: bool,
}

impl Welcome {
    /// One that says: there is no connection for this greeting.
    pub(super) fn refusing(greeting: &Greeting, arrived: Time) -> Self {
        let Greeting { connection: to, nonce, stamp, .. } = *greeting;
        Welcome { to, ours: 0, nonce, own_nonce: 0, stamp, arrived, is_for_candidate: false }
    }
}
