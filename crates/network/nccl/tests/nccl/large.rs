//! Messages larger than any memory: without bytes, but with real offsets and sizes.

use crate::common::{Pair, settings};
use anabranch_endpoint::Bytes;
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;
use nccl_net_anabranch::{Buffer, Memory};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

static NOTHING: [u8; 256 << 10] = [0; 256 << 10];

/// Memory without bytes: the ranges that have been read or written, once each, in any order.
#[derive(Clone, Debug, Default)]
struct Hollow(Rc<RefCell<BTreeMap<u64, u64>>>);

impl Hollow {
    fn take(&self, from: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let (mut from, mut to, mut all) = (from, from + bytes, self.0.borrow_mut());
        if let Some((begins, ends)) = all.range(..to).next_back().map(|(begins, ends)| (*begins, *ends)) {
            assert!(ends <= from, "{from} to {to} after {begins} to {ends}");
            if ends == from {
                from = begins;
            }
        }
        to = all.remove(&to).unwrap_or(to);
        all.insert(from, to);
    }

    fn whole(&self) -> u64 {
        self.0.borrow().get(&0).copied().unwrap_or(0)
    }
}

impl Memory for Hollow {
    fn lend(&self, from: u64, bytes: usize) -> Bytes {
        assert_eq!(from, self.whole(), "pieces leave in order");
        self.take(from, bytes as u64);
        Bytes::from_static(&NOTHING[..bytes])
    }

    fn write(&mut self, to: u64, bytes: &[u8]) {
        self.take(to, bytes.len() as u64);
    }
}

/// Sends a message of `size` bytes until `until` bytes of it have arrived.
fn carry(size: u64, until: u64) {
    let link = Link::new(Rate::gbps(100), Time::from_us(2));
    let of = |seed| anabranch_endpoint::Settings { rate: Rate::gbps(100), ..settings(seed, 8900, 2) };
    let mut pair: Pair<Hollow> = Pair::of(1, &link, [of(1), of(2)]);
    let (sender, receiver) = pair.connect(0);
    let (from, to) = (Hollow::default(), Hollow::default());
    let receiving = pair.nodes[1].receive(receiver, vec![Buffer { memory: to.clone(), size, tag: 7 }]).unwrap();
    let sending =
        pair.until("room", |pair| pair.nodes[0].send(sender, from.clone(), size, 7).transpose()).expect("a request");
    if until < size {
        pair.until("some of it", |_| (to.whole() >= until).then_some(()));
        for (host, request) in [(0, sending), (1, receiving)] {
            assert_eq!(pair.nodes[host].test(request).expect("well"), None, "it is not done");
        }
    } else {
        for (host, request) in [(1, receiving), (0, sending)] {
            assert_eq!(pair.finish(host, request).expect("well").sizes(), [size]);
        }
        assert_eq!((from.whole(), to.whole()), (size, size));
    }
    pair.nodes[0].close_sender(sender).unwrap();
    pair.nodes[1].close_receiver(receiver).unwrap();
}

/// The largest message: 1 TiB is accepted, begins to arrive, and can be closed in between.
#[test]
fn a_tebibyte_begins() {
    carry(1 << 40, 32 << 20);
}

/// The largest message of version 8, and one whose offsets need more than 32 bits.
#[test]
#[ignore = "six gibibytes over the datapath in memory: half a minute"]
fn two_gibibytes_less_one_and_more_than_four() {
    carry((1 << 31) - 1, u64::MAX);
    carry((1 << 32) + 70_001, u64::MAX);
}
