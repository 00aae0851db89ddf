//! Worked traces of Hopper, beginning with that of its Appendix A.

use super::*;
use crate::host::testing::{feedback, flow, packet, us};

fn hopper(p: HopperParameters) -> Hopper {
    opened(p, flow(&[8]))
}
fn opened(p: HopperParameters, flow: FlowInfo<'_>) -> Hopper {
    let (mut s, base_rtt) = (Hopper::new(p, 1, 2), Time::from_us(8));
    s.open(Time::ZERO, 0, &FlowInfo { base_rtt, probe_rtt: base_rtt, ..flow });
    s
}
fn ask(s: &mut Hopper, now: f64, psn: u64) -> Decision {
    s.select(us(now), 0, &packet(psn, us(now)))
}
fn select(s: &mut Hopper, now: f64) -> Decision {
    ask(s, now, 5)
}
fn path(s: &mut Hopper, now: f64) -> Tag {
    match select(s, now) {
        Decision::Send(tag) => tag,
        other => panic!("{other:?}"),
    }
}
fn ack(s: &mut Hopper, now: f64, tag: Tag, rtt: f64) {
    let f = Feedback { rtt: Some(us(rtt)), cumulative: 0, next_psn: 10, ..feedback(tag, false) };
    s.on_ack(us(now), 0, &f);
}
fn probes(s: &mut Hopper, now: f64) -> Vec<Tag> {
    std::iter::from_fn(|| s.poll_probe(us(now), 0).map(|p| p.tag)).collect()
}

#[test]
fn the_example_of_the_appendix() {
    // Base round trip 8 us, probing from 12 us (1.5x), moving from 14 us (1.75x), margin 80 %.
    let mut s = hopper(HopperParameters { th_cong: 1.75, ..Default::default() });
    let old = path(&mut s, 0.0);
    ack(&mut s, 9.0, old, 10.0);
    assert!(probes(&mut s, 9.0).is_empty(), "10 us: no congestion");
    // A packet sent at 9 us is acknowledged: the first epoch ends and the second begins.
    ack(&mut s, 18.0, old, 9.0);
    ack(&mut s, 19.0, old, 13.0);
    let asked = probes(&mut s, 19.0);
    assert_eq!(asked.len(), 2, "13 us: two paths are probed");
    assert!(asked[0] != asked[1] && !asked.contains(&old));
    ack(&mut s, 20.0, old, 13.5);
    assert!(probes(&mut s, 20.0).is_empty(), "once per epoch");
    s.on_probe_reply(us(28.0), 0, asked[0], us(9.0), false);
    s.on_probe_reply(us(31.0), 0, asked[1], us(12.0), false);
    // 15 us, above 14, of a packet sent at 17 us: still the same epoch. The best probed path has 9 us, below 80 % of
    // 15 = 12. The line through 9, 13, 13.5, 15 rises by (4 * 85 - 6 * 50.5) / (4 * 14 - 36) = 1.85 us per packet from
    // 9.85 us; ten packets on it gives 9.85 + 13 * 1.85 = 33.9 us: the move waits for 33.9 - 9 = 24.9 us.
    ack(&mut s, 32.0, old, 15.0);
    let Decision::Hold(until) = select(&mut s, 32.0) else { panic!() };
    assert!(until.ps().abs_diff(us(56.9).ps()) < 10, "{until}");
    assert_eq!(path(&mut s, 57.0), asked[0]);
    ack(&mut s, 60.0, old, 40.0);
    assert_eq!(path(&mut s, 60.0), asked[0]);
}

#[test]
fn an_epoch_lasts_a_measured_round_trip() {
    // 20 us are measured, 8 us are the base: probes at 20 us, then when a packet sent at that time is acknowledged.
    for (epoch_rtt, second) in [(HopperEpoch::Measured, 40.0), (HopperEpoch::Base, 28.0)] {
        let mut s = hopper(HopperParameters { epoch_rtt, ..Default::default() });
        let old = path(&mut s, 0.0);
        ack(&mut s, 20.0, old, 20.0);
        assert_eq!(probes(&mut s, 20.0).len(), 2);
        ack(&mut s, second - 0.1, old, 20.0);
        assert!(probes(&mut s, second).is_empty(), "{epoch_rtt:?}");
        ack(&mut s, second, old, 20.0);
        assert_eq!(probes(&mut s, second).len(), 2, "{epoch_rtt:?}");
    }
}

/// §3.1: a mark comes before the round trip grows. 10 us are below 1.5 x 8.
#[test]
fn mark_starts_probing_if_configured() {
    for (probe_on_ecn, expected) in [(false, 0), (true, 2)] {
        let mut s = hopper(HopperParameters { probe_on_ecn, ..Default::default() });
        let path = path(&mut s, 0.0);
        let marked = Feedback { rtt: Some(us(10.0)), ..feedback(path, true) };
        s.on_ack(us(9.0), 0, &marked);
        assert_eq!(probes(&mut s, 9.0).len(), expected);
    }
    // Of a chunk any packet counts, at its end. 10 us are below 1.5 x 8.7488.
    let mut s = hopper(HopperParameters { probe_on_ecn: true, ..chunks_of_ten() });
    ask(&mut s, 0.0, 0);
    s.on_ack(us(9.0), 0, &Feedback { cumulative: 4, ..feedback(0, true) });
    assert!(probes(&mut s, 9.0).is_empty());
    s.on_ack(us(10.0), 0, &Feedback { cumulative: 10, ..feedback(0, false) });
    assert_eq!(probes(&mut s, 10.0).len(), 2);
}

#[test]
fn the_two_paths_just_probed_count() {
    // A good result of the epoch before is a candidate by its age alone (10 us of 32).
    for (candidates, moves) in [(HopperCandidates::Epoch, false), (HopperCandidates::Ttl, true)] {
        let mut s = hopper(HopperParameters { candidates, ..Default::default() });
        let old = path(&mut s, 0.0);
        ack(&mut s, 20.0, old, 15.0);
        let asked = probes(&mut s, 20.0);
        s.on_probe_reply(us(30.0), 0, asked[0], us(10.0), false);
        ack(&mut s, 40.0, old, 19.9);
        assert!(s.flows.get(0).unwrap().path == old, "a new epoch, whose probes are on their way");
        ack(&mut s, 41.0, old, 21.0);
        assert_eq!(s.flows.get(0).unwrap().path != old, moves, "{candidates:?}");
    }
}

#[test]
fn packets_within_the_receivers_window_need_not_wait() {
    // 20 packets in flight, up to 30 may be early: the first ten of the new path are sent at once, then one per
    // packet that arrives, and all of them when the time is over.
    let p = HopperParameters { th_cong: 1.75, ..Default::default() };
    let mut s = opened(p, FlowInfo { early_packets: 30, ..flow(&[8]) });
    let Decision::Send(old) = ask(&mut s, 0.0, 0) else { panic!() };
    let ack = |s: &mut Hopper, now: f64, rtt: f64, cumulative| {
        s.on_ack(us(now), 0, &Feedback { rtt: Some(us(rtt)), cumulative, next_psn: 40, ..feedback(old, false) });
    };
    ack(&mut s, 15.0, 15.0, 20);
    let asked = probes(&mut s, 15.0);
    s.on_probe_reply(us(24.0), 0, asked[0], us(9.0), false);
    ack(&mut s, 25.0, 15.0, 20);
    // The move waits for 15 - 9 = 6 us, until 31 us.
    assert_eq!(ask(&mut s, 25.0, 40), Decision::Send(asked[0]));
    assert_eq!(ask(&mut s, 25.5, 50), Decision::Send(asked[0]));
    assert_eq!(ask(&mut s, 26.0, 51), Decision::Wait);
    ack(&mut s, 26.5, 16.0, 21);
    assert_eq!(ask(&mut s, 26.5, 51), Decision::Send(asked[0]));
    assert_eq!(ask(&mut s, 30.9, 90), Decision::Wait);
    assert_eq!(ask(&mut s, 31.0, 90), Decision::Send(asked[0]));
}

#[test]
fn timeout_moves_a_flow_if_configured() {
    for (on_timeout, moves) in [(OnTimeout::Ignore, false), (OnTimeout::Move, true)] {
        let mut s = hopper(HopperParameters { on_timeout, ..Default::default() });
        let old = path(&mut s, 0.0);
        s.on_timeout(us(300.0), 0, old);
        assert_eq!(path(&mut s, 300.0) != old, moves);
    }
}

#[test]
fn line_fit_predicts_the_last_packet_in_flight() {
    // Samples of 20, 21, 22 us grow by 1 us per packet; ten are in flight: 32 us. The path found has 10 us.
    let at_22_us = |delay| {
        let mut s = hopper(HopperParameters { th_cong: 2.7, delay, ..Default::default() });
        let old = path(&mut s, 0.0);
        ack(&mut s, 20.0, old, 20.0);
        let asked = probes(&mut s, 20.0);
        s.on_probe_reply(us(20.5), 0, asked[0], us(10.0), false);
        ack(&mut s, 21.0, old, 21.0);
        ack(&mut s, 22.0, old, 22.0);
        (s, old, asked[0])
    };
    let (mut s, ..) = at_22_us(HopperDelay::Hold);
    assert_eq!(select(&mut s, 22.0), Decision::Hold(us(22.0 + 32.0 - 10.0)));
    let (mut s, old, new) = at_22_us(HopperDelay::Continue);
    assert_eq!((path(&mut s, 22.0), path(&mut s, 43.9), path(&mut s, 44.0)), (old, old, new));
}

#[test]
fn profiled_ports_are_one_per_path() {
    let labels = [3, 17, 40];
    let paths = crate::PathSpace { labels: &labels, ..flow(&[3]).paths };
    let parameters =
        HopperParameters { ports: HopperPorts::Profiled, on_timeout: OnTimeout::Move, ..Default::default() };
    let mut s = opened(parameters, FlowInfo { paths, ..flow(&[3]) });
    let own = path(&mut s, 0.0);
    ack(&mut s, 13.0, own, 13.0);
    let mut all = probes(&mut s, 13.0);
    all.push(own);
    all.sort_unstable();
    assert_eq!(all, labels, "the flow's own path and two others");
    s.on_timeout(us(300.0), 0, own);
    assert!(path(&mut s, 300.0) != own && labels.contains(&path(&mut s, 300.0)));
}

#[test]
fn results_expire_and_the_margin_counts() {
    let mut s = hopper(HopperParameters::default());
    let old = path(&mut s, 0.0);
    ack(&mut s, 10.0, old, 13.0);
    let asked = probes(&mut s, 10.0);
    s.on_probe_reply(us(20.0), 0, asked[0], us(18.0), false);
    // 22 us is above 20 (2.5x), but 18 is not below 17.6 (80 %): no move, and the chance of this epoch is used up.
    ack(&mut s, 21.0, old, 22.0);
    assert_eq!(path(&mut s, 21.0), old);
    ack(&mut s, 22.0, old, 40.0);
    assert_eq!(path(&mut s, 22.0), old);
    // Next epoch, 32 us (4x) after the result: it has expired. Without a result the chance remains.
    ack(&mut s, 53.0, old, 40.0);
    assert_eq!(path(&mut s, 53.0), old);
    let asked = probes(&mut s, 53.0);
    s.on_probe_reply(us(54.0), 0, asked[0], us(9.0), false);
    ack(&mut s, 55.0, old, 40.0);
    assert!(matches!(select(&mut s, 55.0), Decision::Hold(_)));
    let mut s = hopper(HopperParameters { consume_on_no_result: true, ..Default::default() });
    let old = path(&mut s, 0.0);
    ack(&mut s, 53.0, old, 40.0);
    let asked = probes(&mut s, 53.0);
    s.on_probe_reply(us(54.0), 0, asked[0], us(9.0), false);
    ack(&mut s, 55.0, old, 40.0);
    assert_eq!(path(&mut s, 55.0), old);
}

fn chunks_of_ten() -> HopperParameters {
    HopperParameters { granularity: Granularity::Chunk, chunk: Bytes(40_960), ..Default::default() }
}

/// Algorithm 1: the probes return, then the better of the two paths is taken.
#[test]
fn a_congested_chunk_waits_for_its_probes() {
    // The ideal of a chunk is 8.7488 us, so 40 us are 4.572 times as much, above 2.5. A path is better from 0.8 x 4.572 =
    // 3.6576 times the base on, of a probe 3.6576 x 8 us = 29.261 us: no later reply can allow a move.
    let due = 40.0 + 8.0 * 0.8 * 40.0 / 8.7488;
    let start = |p: HopperParameters, took: f64| {
        let mut s = hopper(p);
        let Decision::Send(old) = ask(&mut s, 0.0, 0) else { panic!() };
        s.on_ack(us(took), 0, &Feedback { cumulative: 10, ..feedback(old, false) });
        let asked = probes(&mut s, took);
        (s, old, asked)
    };
    let held = |decision: Decision| match decision {
        Decision::Hold(until) => until.ps().abs_diff(us(due).ps()) < 10,
        _ => false,
    };

    let (mut s, _, asked) = start(chunks_of_ten(), 40.0);
    assert_eq!(asked.len(), 2);
    assert!(held(ask(&mut s, 40.0, 10)));
    assert!(!s.on_probe_reply(us(52.0), 0, asked[0], us(12.0), false), "the second is out");
    assert!(held(ask(&mut s, 52.0, 10)));
    assert!(s.on_probe_reply(us(60.0), 0, asked[1], us(9.0), false), "both are there: the flow goes on");
    assert_eq!(ask(&mut s, 60.0, 10), Decision::Send(asked[1]), "the better of the two");

    // A lost probe: what is known when no reply can help any more decides.
    let (mut s, _, asked) = start(chunks_of_ten(), 40.0);
    s.on_probe_reply(us(52.0), 0, asked[0], us(12.0), false);
    assert_eq!(ask(&mut s, due + 0.001, 10), Decision::Send(asked[0]));
    // The network reports both as lost: nothing to wait for, nowhere to go.
    let (mut s, old, asked) = start(chunks_of_ten(), 40.0);
    assert!(
        !s.on_probe_reply(us(45.0), 0, asked[0], Time::MAX, false)
            && s.on_probe_reply(us(46.0), 0, asked[1], Time::MAX, false)
    );
    assert_eq!(ask(&mut s, 46.0, 10), Decision::Send(old));
    // 15 us are above 1.5 x 8.7488 and below 2.5 x: probes, but no move that could wait for them.
    let (mut s, old, asked) = start(chunks_of_ten(), 15.0);
    assert_eq!((asked.len(), ask(&mut s, 15.0, 10)), (2, Decision::Send(old)));
    let (mut s, old, asked) = start(HopperParameters { probe_wait: false, ..chunks_of_ten() }, 40.0);
    assert_eq!((asked.len(), ask(&mut s, 40.0, 10)), (2, Decision::Send(old)));
}

#[test]
fn chunks_move_between_chunks() {
    // Chunks of 10 packets of 4096 B: ideal 8 us + 0.7488 us at 400 Gb/s.
    let mut s = hopper(HopperParameters { probe_wait: false, ..chunks_of_ten() });
    let Decision::Send(old) = ask(&mut s, 0.0, 0) else { panic!() };
    assert_eq!([8, 9].map(|psn| ask(&mut s, 0.1, psn)), [Decision::Send(old), Decision::SendWithAckRequest(old)]);
    assert_eq!(ask(&mut s, 0.2, 10), Decision::Wait);
    let done = |s: &mut Hopper, now: f64, cumulative| {
        s.on_ack(us(now), 0, &Feedback { cumulative, ..feedback(old, false) });
    };
    // 15 us are above 1.5 x 8.75: probes, of 10 kB if they fit a packet.
    done(&mut s, 15.0, 10);
    assert_eq!(s.poll_probe(us(15.0), 0).map(|p| p.bytes), Some(10_000));
    let asked = probes(&mut s, 15.0);
    s.on_probe_reply(us(24.0), 0, asked[0], us(8.0), false);
    assert_eq!(ask(&mut s, 24.0, 10), Decision::Send(old));
    // 40 us for the next chunk: probes again. The first good result moves the flow, between chunks.
    done(&mut s, 64.0, 20);
    assert_eq!(ask(&mut s, 64.0, 20), Decision::Send(old), "the first result is older than 4 x 8.75 us");
    let again: Vec<Tag> = probes(&mut s, 64.0);
    s.on_probe_reply(us(72.0), 0, again[0], us(8.0), false);
    assert_eq!(ask(&mut s, 72.0, 29), Decision::SendWithAckRequest(old));
    done(&mut s, 304.0, 30);
    assert_eq!(ask(&mut s, 304.0, 30), Decision::Send(again[0]));
}

/// As the example of the appendix: the two probes are the next two packets, whose acknowledgements are the replies.
#[test]
fn data_packets_may_be_the_probes() {
    let p = HopperParameters { probe: HopperProbe::Data, th_cong: 1.75, ..Default::default() };
    let mut s = hopper(p);
    let old = path(&mut s, 0.0);
    ack(&mut s, 13.0, old, 13.0);
    assert!(probes(&mut s, 13.0).is_empty(), "no packet is sent beside the data");
    let again = Outgoing { retransmission: true, ..packet(3, us(13.0)) };
    assert_eq!(s.select(us(13.0), 0, &again), Decision::Send(old), "its round trip would be ambiguous");
    let [first, second] = [5, 6].map(|psn| match ask(&mut s, 13.0, psn) {
        Decision::SendWithAckRequest(tag) => tag,
        other => panic!("{other:?}"),
    });
    assert!(first != second && ![first, second].contains(&old));
    assert_eq!(ask(&mut s, 13.0, 7), Decision::Send(old), "one packet over each");
    // 9 us over the first, a loss over the second. 15 us are above 1.75 x 8: the flow moves by 15 - 9 = 6 us later.
    ack(&mut s, 22.0, first, 9.0);
    s.on_nack(us(24.0), 0, second);
    assert_eq!(path(&mut s, 24.0), old, "they are no samples of the flow's own path");
    s.on_ack(us(26.0), 0, &Feedback { rtt: Some(us(15.0)), cumulative: 9, next_psn: 9, ..feedback(old, false) });
    let Decision::Hold(until) = ask(&mut s, 26.0, 10) else { panic!() };
    assert!(until.ps().abs_diff(us(32.0).ps()) < 10, "{until}");
    assert_eq!(path(&mut s, 33.0), first);
    // A chunk is one message on one queue pair.
    let wrong = HopperParameters { probe: HopperProbe::Data, ..chunks_of_ten() }.check().unwrap_err().to_string();
    assert_eq!(wrong, "`probe`: found \"data\", expected \"packet\", or `granularity = \"packet\"`");
}
