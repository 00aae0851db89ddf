//! Worked traces of shares, silence, reuse and of flows that keep their path.

use super::*;
use crate::{
    PathSpace,
    host::testing::{clean, feedback, flow, four_paths, guided_flow, mark, packet, us},
};
use proptest::prelude::*;

fn spread(p: BraidParameters, uplinks: &[u32]) -> Braid {
    let mut s = Braid::new(p, 1, 2);
    s.open(Time::ZERO, 0, &FlowInfo { early_packets: u64::MAX, ..flow(uplinks) });
    s
}

fn shares(s: &mut Braid) -> Vec<f32> {
    s.spread(0).unwrap().shares()
}

fn send(s: &mut Braid, now: Time, psn: u64) -> Tag {
    match s.select(now, 0, &packet(psn, now)) {
        Decision::Send(tag) => tag,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_marks_every_pass_has_every_path_once() {
    for uplinks in [&[8][..], &[4, 4], &[3, 5]] {
        let mut s = spread(BraidParameters::default(), uplinks);
        let paths: u32 = uplinks.iter().product();
        let first = u64::from(uplinks[0]);
        for pass in 0..5 {
            let tags: Vec<Tag> = (0..u64::from(paths)).map(|n| send(&mut s, Time::ZERO, pass * 100 + n)).collect();
            let mut sorted = tags.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), paths as usize, "{tags:?}");
            // Uplinks of the leaf in turn.
            let uplink = |tag: &Tag| tag & (first.next_power_of_two() - 1) as u32;
            for row in tags.chunks(first as usize) {
                let mut row: Vec<u32> = row.iter().map(uplink).collect();
                row.sort_unstable();
                row.dedup();
                assert_eq!(row.len(), first as usize);
            }
        }
    }
}

#[test]
fn a_mark_lowers_a_share_by_its_excess_once_per_round_trip() {
    let mut s = spread(BraidParameters { growth: 0.0, recovery: 1e6, reuse: 0, ..Default::default() }, &[4]);
    // The mean of marks is 1/16 with the first mark, so its excess 15/16.
    s.on_ack(us(1.0), 0, &feedback(2, true));
    let first = 1.0 - 0.5 * (15.0 / 16.0);
    assert!((shares(&mut s)[2] - first).abs() < 1e-4, "{:?}", shares(&mut s));
    s.on_ack(us(2.0), 0, &feedback(2, true));
    assert!((shares(&mut s)[2] - first).abs() < 1e-3, "in the same round trip");
    // m = 1/16, 31/256, then 721/4096.
    s.on_ack(us(12.0), 0, &feedback(2, true));
    let second = first * (1.0 - 0.5 * (1.0 - 721.0 / 4096.0));
    assert!((shares(&mut s)[2] - second).abs() < 1e-3, "{:?} {second}", shares(&mut s));
    assert_eq!(shares(&mut s)[3], 1.0);
    // Shares are turns: 1 : 1 : 1 : second.
    let mut sent = [0u32; 4];
    (0..4000).for_each(|psn| sent[send(&mut s, us(12.0), psn) as usize] += 1);
    let (low, others) = (sent[2] as f32, (sent[0] + sent[1] + sent[3]) as f32 / 3.0);
    assert!((low / others - second).abs() < 0.01, "{sent:?} {second}");
}

#[test]
fn what_marks_all_paths_changes_no_share_for_long() {
    let mut s = spread(BraidParameters { reuse: 0, ..Default::default() }, &[4]);
    for n in 0..400u32 {
        s.on_ack(us(f64::from(n)), 0, &feedback(n % 4, true));
    }
    // m approaches 1, and the excess of a mark 0; shares have grown back.
    assert!(shares(&mut s).iter().all(|share| *share > 0.9), "{:?}", shares(&mut s));
}

#[test]
fn clean_paths_are_used_again_while_others_are_marked() {
    let mut s = spread(BraidParameters { reuse_run: 3, ..Default::default() }, &[8]);
    clean(&mut s, 5);
    let turns: Vec<Tag> = (0..8).map(|psn| send(&mut s, Time::ZERO, psn)).collect();
    assert_eq!(turns.iter().filter(|tag| **tag == 5).count(), 1, "no marks, no reuse: {turns:?}");
    mark(&mut s, 1);
    (0..4).for_each(|_| clean(&mut s, 6));
    let tags: Vec<Tag> = (0..4).map(|psn| send(&mut s, Time::ZERO, 10 + psn)).collect();
    // The ring has 5 below the four 6; three in a row, then a turn.
    assert_eq!(tags[..3], [6, 6, 6]);
}

/// Of 8 + 4 + 2 + 2 parts a path has as many packets, in any 16 in a row.
#[test]
fn known_capacities_are_shares_of_turns() {
    let mut s = spread(BraidParameters { capacities: BraidCapacities::Known, ..Default::default() }, &[4]);
    s.on_rates_changed(Time::ZERO, 0, &[800, 400, 200, 200].map(Rate::gbps));
    let tags: Vec<Tag> = (0..1600).map(|psn| send(&mut s, Time::ZERO, psn)).collect();
    for path in 0..4 {
        let sent = tags.iter().filter(|tag| **tag == path).count();
        assert!(sent.abs_diff([800, 400, 200, 200][path as usize]) <= 2, "{path}: {sent}");
    }
    // Unknown again.
    s.on_rates_changed(Time::ZERO, 0, &[]);
    let turn: std::collections::BTreeSet<Tag> = (0..4).map(|psn| send(&mut s, Time::ZERO, psn)).collect();
    assert_eq!(turn.len(), 4);
}

#[test]
fn a_path_without_replies_is_blocked_and_probed() {
    let mut s = spread(BraidParameters { reuse: 0, ..Default::default() }, &[4]);
    let mut psn = 0;
    let mut turn = |s: &mut Braid, now: Time| -> Vec<Tag> {
        let sent = (0..4).map(|_| (send(s, now, psn), psn += 1).0).collect::<Vec<Tag>>();
        for tag in sent.iter().filter(|tag| **tag != 3) {
            s.on_ack(now, 0, &feedback(*tag, false));
        }
        sent
    };
    // The base round trip is 10 us: after 30 us with two packets out path 3 is silent.
    assert!([0.0, 10.0, 20.0, 30.0].iter().all(|at| turn(&mut s, us(*at)).contains(&3)));
    assert!(!turn(&mut s, us(31.0)).contains(&3));
    assert_eq!((s.poll_probe(us(600.0), 0), s.probe_at(0)), (None, us(31.0 + 640.0)));
    assert_eq!(s.poll_probe(us(671.0), 0).map(|probe| probe.tag), Some(3));
    assert_eq!((s.poll_probe(us(671.0), 0), s.probe_at(0)), (None, us(701.0)));
    // Lost: twice as long.
    assert_eq!((s.poll_probe(us(701.0), 0), s.probe_at(0)), (None, us(701.0 + 1280.0)));
    assert_eq!(s.poll_probe(us(1981.0), 0).map(|probe| probe.tag), Some(3));
    assert!(!s.on_probe_reply(us(1990.0), 0, 3, us(9.0), false), "others were usable");
    assert!(turn(&mut s, us(1991.0)).contains(&3));
    assert_eq!(s.probe_at(0), Time::MAX);
}

#[test]
fn a_path_whose_reply_comes_late_is_slow() {
    let mut s = spread(BraidParameters { reuse: 0, growth: 0.0, recovery: 1e6, ..Default::default() }, &[4]);
    let mut psn = 0;
    for at in [0.0, 10.0, 20.0, 30.0, 31.0] {
        for _ in 0..4 {
            let tag = send(&mut s, us(at), psn);
            psn += 1;
            if tag != 3 {
                s.on_ack(us(at), 0, &feedback(tag, false));
            }
        }
    }
    // Silent at 31 us, a reply at 40: the path is used again, for a quarter of its turns.
    s.on_ack(us(40.0), 0, &feedback(3, false));
    assert!((shares(&mut s)[3] - 0.25).abs() < 1e-3, "{:?}", shares(&mut s));
    let mut sent = [0u32; 4];
    (0..1300).for_each(|psn| {
        let tag = send(&mut s, us(40.0), 100 + psn);
        s.on_ack(us(40.0), 0, &feedback(tag, false));
        sent[tag as usize] += 1;
    });
    assert!((99..=101).contains(&sent[3]), "{sent:?}");
}

#[test]
fn after_a_timeout_lost_packets_take_a_path_that_replied() {
    let mut s = spread(BraidParameters { reuse: 0, ..Default::default() }, &[8]);
    let tags: Vec<Tag> = (0..8).map(|psn| send(&mut s, Time::ZERO, psn)).collect();
    let again =
        |s: &mut Braid, psn| match s.select(us(50.0), 0, &Outgoing { retransmission: true, ..packet(psn, us(50.0)) }) {
            Decision::Send(tag) => tag,
            other => panic!("{other:?}"),
        };
    s.on_ack(us(10.0), 0, &feedback(tags[2], false));
    assert_ne!(again(&mut s, 0), tags[2], "no timeout yet: its turn");
    // A path that has never replied is blocked by one timeout.
    s.on_timeout(us(40.0), 0, tags[5]);
    assert_eq!([again(&mut s, 0), again(&mut s, 1)], [tags[2]; 2]);
    s.on_ack(us(50.0), 0, &feedback(tags[7], false));
    assert_eq!(again(&mut s, 1), tags[7], "the last reply");
    assert!((10..40).all(|psn| send(&mut s, us(50.0), psn) != tags[5]));
}

#[test]
fn one_acknowledgement_for_many_packets_is_no_silence() {
    let mut s = spread(BraidParameters { reuse: 0, ..Default::default() }, &[4]);
    for n in 0..100u64 {
        let now = us(n as f64);
        send(&mut s, now, n);
        // Every sixteenth packet is acknowledged, always on the same path, with all before it.
        if n % 16 == 15 {
            s.on_ack(now, 0, &Feedback { cumulative: n, packets: 16, ..feedback(0, false) });
        }
    }
    assert_eq!(s.probe_at(0), Time::MAX);
}

#[test]
fn shortest_paths_have_their_share() {
    let paths = four_paths();
    let mut s = Braid::new(BraidParameters { values: BraidValues::Guided, ..Default::default() }, 1, 2);
    s.open(Time::ZERO, 0, &FlowInfo { early_packets: u64::MAX, ..guided_flow(&paths) });
    let mut sent = [0u32; 4];
    (0..1000).for_each(|psn| sent[GuidedPaths::index(send(&mut s, Time::ZERO, psn)) as usize] += 1);
    // One of four is minimal: 35 % of the packets; the others share the rest.
    assert!(sent[0].abs_diff(350) <= 10 && sent[1..].iter().all(|sent| sent.abs_diff(217) <= 10), "{sent:?}");
}

#[test]
fn a_flow_that_needs_order_moves_between_flights() {
    let mut s = Braid::new(BraidParameters::default(), 1, 2);
    s.open(Time::ZERO, 0, &flow(&[4]));
    s.open(Time::ZERO, 1, &FlowInfo { key: 43, ..flow(&[4]) });
    let ask = |s: &mut Braid, now, slot, psn| s.select(now, slot, &packet(psn, now));
    let Decision::Send(path) = ask(&mut s, Time::ZERO, 0, 0) else { panic!("it sends") };
    let Decision::Send(other) = ask(&mut s, Time::ZERO, 1, 0) else { panic!("it sends") };
    assert_ne!(path, other, "the second flow takes a path without open bytes");
    (1..10).for_each(|psn| assert_eq!(ask(&mut s, us(1.0), 0, psn), Decision::Send(path)));
    // 26 us are above 2.5 base round trips, and other paths have none; ten packets are out.
    let late = |cumulative| Feedback { rtt: Some(us(26.0)), cumulative, ..feedback(path, false) };
    s.on_ack(us(26.0), 0, &late(5));
    assert_eq!(ask(&mut s, us(26.0), 0, 10), Decision::Wait);
    s.on_ack(us(27.0), 0, &late(10));
    let Decision::Send(moved) = ask(&mut s, us(27.0), 0, 10) else { panic!("it goes on") };
    assert!(moved != path && moved != other, "{moved} after {path}, beside {other}");
    // Closed flows leave no bytes behind.
    s.close(0);
    s.close(1);
    for slot in 0..4 {
        s.open(us(1e6), slot, &FlowInfo { key: u64::from(slot), ..flow(&[4]) });
    }
    let mut tags: Vec<Decision> = (0..4).map(|slot| ask(&mut s, us(1e6), slot, 0)).collect();
    tags.dedup();
    assert_eq!(tags.len(), 4, "{tags:?}");
}

proptest! {
    /// Shares stay within their limits, and some path is always selected while one is alive.
    #[test]
    fn shares_stay_in_range(events in prop::collection::vec((0u32..8, 0u8..4, 0u64..20_000_000), 1..400)) {
        let mut s = spread(BraidParameters::default(), &[8]);
        let mut now = Time::ZERO;
        for (number, (tag, kind, later)) in events.into_iter().enumerate() {
            now += Time::from_ps(later);
            match kind {
                0 => s.on_ack(now, 0, &feedback(tag, true)),
                1 => s.on_ack(now, 0, &feedback(tag, false)),
                2 => s.on_loss(now, 0, tag, Loss::Trimmed),
                _ => s.on_timeout(now, 0, tag),
            }
            prop_assert!(send(&mut s, now, number as u64) < 8);
            prop_assert!(shares(&mut s).iter().all(|share| (1.0 / 64.0..=1.0).contains(share)));
        }
    }
}

fn planes(uplinks: &[u32], planes: u32) -> Braid {
    let mut s = Braid::new(BraidParameters::default(), 1, 2);
    let paths = PathSpace { uplinks, planes, ..PathSpace::default() };
    s.open(Time::ZERO, 0, &FlowInfo { early_packets: u64::MAX, base_rtt: us(10.0), paths, ..flow(&[]) });
    s
}

proptest! {
    #[test]
    fn planes_stay_equal_whatever_is_marked(marked in proptest::collection::vec(any::<bool>(), 400)) {
        let mut s = planes(&[4, 4], 4);
        let mut sent = [0u32; 4];
        for (n, ecn) in marked.into_iter().enumerate() {
            let now = us(n as f64 / 10.0);
            let tag = send(&mut s, now, n as u64);
            sent[(tag & 3) as usize] += 1;
            s.on_ack(now, 0, &feedback(tag, ecn));
            prop_assert!(sent.iter().max().unwrap() - sent.iter().min().unwrap() <= 1, "{sent:?}");
        }
    }
}

#[test]
fn one_mark_in_planes_may_be_chance() {
    let mut s = planes(&[2, 8], 2);
    clean(&mut s, 5);
    for (marks, sent) in [(1, 1), (1, 2)] {
        (0..marks).for_each(|_| mark(&mut s, 1));
        let turns: Vec<Tag> = (0..16).map(|psn| send(&mut s, Time::ZERO, psn)).collect();
        assert_eq!(turns.iter().filter(|tag| **tag == 5).count(), sent, "{turns:?}");
    }
}

#[test]
fn a_port_that_flaps_waits_twice_as_long_each_time() {
    let mut s = planes(&[2, 4], 2);
    let mut psn = 0;
    let mut uses = |s: &mut Braid, now: Time| {
        let planes = (0..8).map(|_| {
            psn += 1;
            let tag = send(s, now, psn);
            s.on_ack(now, 0, &feedback(tag, false));
            tag & 1
        });
        planes.filter(|plane| *plane == 0).count()
    };
    assert_eq!(uses(&mut s, Time::ZERO), 4);
    // Silence is 3 round trips of 10 us. An outage long after the last wait is a first one.
    for (down, wait) in [(100.0, 30.0), (170.0, 60.0), (300.0, 120.0), (2000.0, 30.0)] {
        s.on_ports_changed(us(down), 0, 1, 0);
        assert_eq!(uses(&mut s, us(down)), 0);
        let up = down + 20.0;
        s.on_ports_changed(us(up), 0, 0, 0);
        assert_eq!(uses(&mut s, us(up + wait - 1.0)), 0, "after {down}");
        assert!(matches!(uses(&mut s, us(up + wait)), 4..=5), "after {down}");
    }
    // One that waits is used where the others are down.
    s.on_ports_changed(us(2100.0), 0, 1, 0);
    s.on_ports_changed(us(2101.0), 0, 2, 0);
    assert_eq!(uses(&mut s, us(2102.0)), 8);
}
