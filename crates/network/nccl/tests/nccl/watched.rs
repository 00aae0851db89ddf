//! Path counters of a connection, and a change of scheme while traffic runs.

use crate::common::{self, Pair, settings};
use anabranch_lb::registry::HostParameters;
use anabranch_testkit::set_keys;
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;
use nccl_net_anabranch::{Connecting, Watched};

fn carry(pair: &mut Pair, ends: (nccl_net_anabranch::ids::Id, nccl_net_anabranch::ids::Id)) {
    let (receive, memory) = pair.receive(1, ends.1, 100_000, 3);
    let send = pair.send(0, ends.0, &[9; 100_000], 3).unwrap();
    pair.finish(1, receive).unwrap();
    pair.finish(0, send).unwrap();
    assert_eq!(memory.bytes(), [9; 100_000]);
}

fn watched(pair: &mut Pair) -> Watched {
    let all = pair.nodes[0].watched();
    assert_eq!(all.len(), 1);
    all[0].clone()
}

#[test]
fn path_counters_follow_the_scheme() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let scheme = HostParameters::named("ecmp").unwrap();
    let of = |seed| anabranch_endpoint::Settings { scheme: scheme.clone(), ..settings(seed, 1000, 4) };
    let mut pair = Pair::new(3, &link, [of(3), of(4)]);
    let ends = pair.connect(0);
    assert_eq!(watched(&mut pair).paths, [], "nothing has been sent");
    carry(&mut pair, ends);
    let of = watched(&mut pair);
    assert!(of.is_open && of.window > Some(0) && of.at == common::address(1));
    let used: Vec<_> = of.paths.iter().filter(|path| path.packets > 0).collect();
    let [one] = used[..] else { panic!("ECMP has one path: {:?}", of.paths) };
    // A piece of 65 packets, less its 32 B, and one of 35,064 B are 101 packets, each with a header of 64 B.
    assert_eq!((one.packets, one.bytes), (101, 100_064 + 101 * 64));
    assert_eq!((one.retransmitted, one.losses, one.moves, one.marks), (0, 0, 0, 0));
    // 5 us in each direction, the time of a packet and an ACK, and the first packets leave in a burst.
    assert!(one.min_rtt > Time::from_us(10) && one.min_rtt < Time::from_us(20), "{}", one.min_rtt);
    assert!(one.min_rtt <= one.mean_rtt && one.mean_rtt <= one.p99);
    pair.nodes[0].change_scheme(HostParameters::named("rr").unwrap());
    carry(&mut pair, ends);
    let of = watched(&mut pair);
    assert_eq!(of.paths.iter().map(|path| path.packets).sum::<u64>(), 202);
    assert!(of.paths.iter().all(|path| path.packets >= 25), "in turn: {:?}", of.paths);
    assert!(of.paths.iter().map(|path| path.moves).sum::<u64>() >= 100);
    // The state of the scheme is at hand: thresholds of 1.5 and 2.5 base round trips, and an average of the last alone.
    pair.nodes[0].change_scheme(HostParameters::named("hopper").unwrap());
    carry(&mut pair, ends);
    let connection = watched(&mut pair).connection;
    let state = pair.nodes[0].scheme_state(connection).unwrap();
    let value = |name: &str| state.iter().find(|(column, _)| column.name == name).unwrap().1.unwrap();
    let (probe, cong, average) = (value("probe_above_ps"), value("move_above_ps"), value("average_ps"));
    assert!((probe / cong - 0.6).abs() < 1e-9 && average > probe / 1.5 * 0.99, "{state:?}");
    assert_eq!(pair.nodes[0].scheme_state(99), None);
    pair.nodes[1].close_receiver(ends.1).unwrap();
    pair.until("the end", |pair| (!watched(pair).is_open).then_some(()));
    pair.nodes[0].close_sender(ends.0).unwrap();
    assert!(pair.nodes[0].watched().is_empty());
}

/// A rank that has been called already, and has replied, sends over the paths that it finds when it calls in turn.
#[test]
fn paths_of_a_later_call_hold() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let scheme = HostParameters::named("prime").unwrap();
    let of = |seed| anabranch_endpoint::Settings { scheme: scheme.clone(), ..settings(seed, 1000, 8) };
    for (paths, expected) in [(vec![vec![0, 3, 6], vec![1, 2, 4, 7]], 2), (vec![], 8)] {
        let mut pair = Pair::new(5, &link, [of(5), of(6)]);
        pair.connect(1);
        let (listener, handle) = pair.listen(1);
        assert!(pair.nodes[0].is_first_call(&handle, None).unwrap(), "it has only been called");
        let (mut attempt, mut sender, mut receiver) = (None, None, None);
        let ends = pair.until("a connection", |pair| {
            if sender.is_none() {
                match pair.nodes[0].connect(&handle, attempt, 0, &paths).unwrap() {
                    Connecting::Wait(id) => attempt = Some(id),
                    Connecting::Done(id) => sender = Some(id),
                }
            }
            receiver = receiver.or(pair.nodes[1].accept(listener).unwrap());
            sender.zip(receiver)
        });
        assert!(!pair.nodes[0].is_first_call(&handle, None).unwrap());
        carry(&mut pair, ends);
        // Tags of PRIME number paths, and a path keeps its label.
        let used: Vec<usize> = (0..8).filter(|label| watched(&mut pair).paths[*label].packets > 0).collect();
        assert_eq!(used.len(), expected, "{used:?}");
        for path in &paths {
            assert_eq!(used.iter().filter(|label| path.contains(&(**label as u32))).count(), 1, "{used:?}");
        }
        pair.nodes[0].close_sender(ends.0).unwrap();
    }
}

/// Also where labels share paths, as many to one as others have.
#[test]
fn an_agent_spreads_chunks_over_labels() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut scheme = HostParameters::named("qp-spray").unwrap();
    set_keys(scheme.parameters_mut(), "chunk=1000B");
    let of = |seed| anabranch_endpoint::Settings { scheme: scheme.clone(), ..settings(seed, 1000, 4) };
    let mut pair = Pair::new(3, &link, [of(3), of(4)]);
    let ends = pair.connect(0);
    assert_eq!(pair.nodes[0].steer(7, &[1.0; 4]), None, "no such connection");
    carry(&mut pair, ends);
    let packets = |pair: &mut Pair| -> Vec<u64> { watched(pair).paths.iter().map(|path| path.packets).collect() };
    let before = packets(&mut pair);
    let connection = watched(&mut pair).connection;
    assert_eq!(pair.nodes[0].steer(connection, &[0.0, 3.0, 0.0, 1.0]), Some(true));
    carry(&mut pair, ends);
    let sent: Vec<u64> = packets(&mut pair).iter().zip(&before).map(|(now, then)| now - then).collect();
    // 101 packets, one of the chunk before.
    assert!(sent[0] + sent[2] <= 1 && sent[1].abs_diff(76) <= 2 && sent[3].abs_diff(25) <= 2, "{sent:?}");
    pair.nodes[0].change_scheme(HostParameters::named("rr").unwrap());
    assert_eq!(pair.nodes[0].steer(connection, &[1.0; 4]), Some(false), "it decides alone");
}
