//! Control packets, which precede all data.

use crate::{
    event::Sizes,
    header::{Cookie, Greeting, MAX_BYES, ProbeHeader, bye_streams},
    peer::{LastSeal, Peer},
    stream::Incoming,
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
    Bye(Box<Bye>),
}

#[derive(Clone, Debug)]
pub(super) struct Bye {
    pub(super) connection: u32,
    pub(super) proof: u64,
    pub(super) stalled: Option<Sizes>,
    pub(super) part: [u8; 2],
    pub(super) streams: Vec<(u32, u64)>,
    pub(super) seal: Option<Box<LastSeal>>,
}

impl Control {
    /// Returns the datagrams of a BYE, of at most `longest` bytes. It repeats all ACKs, which it may overtake.
    pub(super) fn byes(peer: &mut Peer, stalled: Option<Sizes>, longest: usize) -> Vec<Self> {
        let (connection, proof) = (peer.theirs, peer.their_nonce.unwrap_or(peer.nonce));
        let of = |(stream, incoming): (&u32, &mut Incoming)| (*stream, incoming.receiver().cumulative());
        let streams: Vec<(u32, u64)> = peer.incoming.iter_mut().map(of).collect();
        let most = bye_streams(longest);
        let parts = streams.len().div_ceil(most).clamp(1, MAX_BYES);
        let part = |index: usize| {
            let streams = streams.iter().skip(index * most).take(most).copied().collect();
            let (part, seal) = ([index as u8, parts as u8], peer.last_seal());
            Control::Bye(Box::new(Bye { connection, proof, stalled, part, streams, seal }))
        };
        (0..parts).map(part).collect()
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
