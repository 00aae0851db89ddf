//! Numbers of connections and receives that wrap.

use crate::common::Pair;
use nccl_net_anabranch::ids::Id;

/// Receives begin four numbers before 32 bits wrap, connections before the 24 bits of a steering word do: each connection
/// has its own number, and all bytes arrive.
#[test]
fn numbers_wrap() {
    for first in [u32::MAX - 3, (1 << 24) - 4, (1 << 8) - 4] {
        let mut pair = Pair::usual(1);
        pair.nodes.iter_mut().for_each(|node| node.begin_numbers_at(first, first));
        let first_of_all: (Id, Id) = pair.connect(0);
        let others: Vec<(Id, Id)> = (0..8).map(|_| pair.connect(0)).collect();
        for round in 0..12u8 {
            for (number, (sender, receiver)) in [&[first_of_all][..], &others].concat().into_iter().enumerate() {
                // Longer than a packet: it is placed.
                let sent: Vec<u8> = (0..5000).map(|at| (at as u8).wrapping_mul(7) ^ round ^ number as u8).collect();
                let (receive, memory) = pair.receive(1, receiver, sent.len(), 3);
                let send = pair.send(0, sender, &sent, 3).unwrap();
                assert_eq!(pair.finish(1, receive).unwrap().sizes(), [5000]);
                pair.finish(0, send).unwrap();
                assert_eq!(memory.bytes(), sent, "round {round} from {first}");
            }
        }
        // Sixteen million connections later the first one still has its number.
        pair.nodes[0].begin_numbers_at(first, first);
        let (sender, receiver) = pair.connect(0);
        let (receive, memory) = pair.receive(1, receiver, 3, 3);
        let send = pair.send(0, sender, b"abc", 3).unwrap();
        pair.finish(1, receive).unwrap();
        pair.finish(0, send).unwrap();
        assert_eq!(memory.bytes(), b"abc");
    }
}
