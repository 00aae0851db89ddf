use super::*;
use crate::{
    PathSpace, ValueState as State,
    host::testing::{clean, feedback, flow, mark, packet, us},
};
use proptest::prelude::*;

/// Four paths in the order 0 1 2 3, which is never shuffled again.
fn four(parameters: MrcParameters) -> Mrc {
    let mut s = opened(MrcParameters { reshuffle: 0, ..parameters }, &[4], 1);
    let of = &mut s.flows.get(0).unwrap().rotation;
    of.in_order();
    s
}

fn opened(parameters: MrcParameters, uplinks: &[u32], planes: u32) -> Mrc {
    let mut s = Mrc::new(parameters, 1, 2);
    let paths = PathSpace { uplinks, planes, ..PathSpace::default() };
    s.open(Time::ZERO, 0, &FlowInfo { paths, ..flow(&[]) });
    s
}

fn none() -> MrcParameters {
    MrcParameters { backup: 0, ..MrcParameters::default() }
}

fn send_at(s: &mut Mrc, now: f64) -> Option<Tag> {
    match s.select(us(now), 0, &packet(0, us(now))) {
        Decision::Send(tag) => Some(tag),
        Decision::Wait => None,
        other => panic!("{other:?}"),
    }
}

fn sent(s: &mut Mrc, count: usize) -> Vec<Tag> {
    (0..count).map(|_| send_at(s, 0.0).expect("a value")).collect()
}

fn states(s: &mut Mrc) -> Vec<State> {
    let of = &s.flows.get(0).unwrap().rotation;
    (0..4).map(|tag| of.state(tag)).collect()
}

#[test]
fn the_worked_trace_of_the_cursor() {
    // Marks before each packet, the value sent, and the states after it: skipped values as bits 0 to 3 for A to D.
    let trace: [(&[u32], u32, u8); 16] = [
        (&[], 0, 0),
        (&[], 1, 0),
        (&[0], 2, 0b0001),
        (&[], 3, 0b0001),
        (&[], 1, 0),
        (&[1, 2, 2], 3, 0b0010),
        (&[], 0, 0b0010),
        (&[3, 0, 2], 1, 0b1101),
        (&[], 1, 0b1001),
        (&[], 2, 0b1001),
        (&[], 1, 0b0001),
        (&[], 2, 0b0001),
        (&[], 3, 0b0001),
        (&[], 1, 0),
        (&[], 2, 0),
        (&[], 3, 0),
    ];
    let mut s = four(none());
    for (number, (marks, value, skipped)) in trace.into_iter().enumerate() {
        marks.iter().for_each(|value| mark(&mut s, *value));
        assert_eq!(send_at(&mut s, 0.0), Some(value), "packet {}", number + 1);
        let found =
            states(&mut s).iter().enumerate().map(|(i, state)| u8::from(*state == State::Skipped) << i).sum::<u8>();
        assert_eq!(found, skipped, "after packet {}", number + 1);
    }
}

#[test]
fn a_value_marked_on_every_use_keeps_half_a_share() {
    // n = 4, the mark arrives before the next rotation: seven packets, A once, the others twice.
    let mut s = four(none());
    let mut order = Vec::new();
    for _ in 0..70 {
        let tag = send_at(&mut s, 0.0).unwrap();
        order.push(tag);
        if tag == 0 {
            mark(&mut s, 0);
        }
    }
    let count = |tag| order.iter().filter(|sent| **sent == tag).count();
    assert_eq!([0, 1, 2, 3].map(count), [10, 20, 20, 20]);
    // n = 64, the mark arrives 100 packets later: 1/127, as long as the delay may be.
    let mut s = opened(MrcParameters { reshuffle: 0, ..none() }, &[64], 1);
    let mut late = std::collections::VecDeque::new();
    let mut count = 0;
    for number in 0..127 * 100 {
        while late.front().is_some_and(|sent| sent + 100 <= number) {
            late.pop_front();
            mark(&mut s, 7);
        }
        if send_at(&mut s, 0.0) == Some(7) {
            late.push_back(number);
            count += 1;
        }
    }
    assert!((99..=101).contains(&count), "{count}");
}

#[test]
fn other_lengths_of_a_skip() {
    // The rest of the rotation: A comes back with the next one. Two microseconds: when they are over.
    let with = |skip| four(MrcParameters { skip, ..none() });
    let mut s = with(OnceOr::Value(RotationOr::Rotation));
    mark(&mut s, 1);
    assert_eq!(sent(&mut s, 7), [0, 2, 3, 0, 1, 2, 3]);
    let mut s = with(OnceOr::Value(RotationOr::Value(Time::from_us(2))));
    mark(&mut s, 1);
    let mut at = |now| send_at(&mut s, now).unwrap();
    assert_eq!([0.0, 0.0, 0.0, 1.0, 1.9, 2.0, 2.0, 2.0, 2.0].map(&mut at), [0, 2, 3, 0, 2, 3, 0, 1, 2]);
    // All at once: the packet that passes A and B makes both good.
    let mut s = four(MrcParameters { restores_all: true, ..none() });
    mark(&mut s, 0);
    mark(&mut s, 1);
    assert_eq!(sent(&mut s, 6), [2, 3, 0, 1, 2, 3]);
    // Where all are skipped, one is used after all.
    let mut s = with(OnceOr::Value(RotationOr::Rotation));
    (0..4).for_each(|value| mark(&mut s, value));
    assert_eq!(sent(&mut s, 1), [0]);
}

#[test]
fn causes_are_told_apart() {
    let after = |act: &dyn Fn(&mut Mrc)| {
        let mut s = four(none());
        act(&mut s);
        states(&mut s)[2]
    };
    let loss = |cause| move |s: &mut Mrc| s.on_loss(Time::ZERO, 0, 2, cause);
    assert_eq!(after(&|s| clean(s, 2)), State::Good);
    assert_eq!(after(&|s| mark(s, 2)), State::Skipped);
    assert_eq!(after(&loss(Loss::Trimmed)), State::Skipped);
    assert_eq!(after(&loss(Loss::TrimmedAtLastHop)), State::Good);
    assert_eq!(after(&loss(Loss::Refused)), State::Good);
    assert_eq!(after(&loss(Loss::Gap)), State::Withdrawn);
    assert_eq!(after(&|s| s.on_timeout(Time::ZERO, 0, 2)), State::Withdrawn);
    assert_eq!(after(&|s| s.on_paths_changed(Time::ZERO, 0, &[false, false, true])), State::Denied);
    // A clean acknowledgement does not end a skip, and no mark one of a withdrawn value.
    assert_eq!(after(&|s| [mark(s, 2), clean(s, 2)][1]), State::Skipped);
    assert_eq!(after(&|s| [s.on_timeout(Time::ZERO, 0, 2), mark(s, 2)][1]), State::Withdrawn);
}

#[test]
fn withdrawn_values_return_after_three_probes() {
    // Base round trip 10 us: a probe per 100 us; lost after 100 us.
    let mut s = four(MrcParameters { probe_timeout: Time::from_us(50), ..none() });
    assert_eq!((s.probe_at(0), s.poll_probe(us(0.0), 0)), (Time::MAX, None));
    s.on_loss(us(5.0), 0, 2, Loss::Gap);
    assert_eq!(sent(&mut s, 6), [0, 1, 3, 0, 1, 3]);
    let mut probe = |now: f64, reply: Option<bool>| {
        assert_eq!(s.probe_at(0), us(now));
        assert_eq!(s.poll_probe(us(now - 0.1), 0), None, "none before its time");
        let probe = s.poll_probe(us(now), 0).expect("a probe");
        assert_eq!((probe.tag, s.poll_probe(us(now), 0)), (2, None));
        let ends_wait = reply.map(|ecn| s.on_probe_reply(us(now + 10.0), 0, 2, us(10.0), ecn));
        assert_ne!(ends_wait, Some(true), "the flow does not wait");
        let state = states(&mut s)[2];
        (state, s.probe_at(0))
    };
    assert_eq!(probe(5.0, Some(false)), (State::Withdrawn, us(105.0)));
    assert_eq!(probe(105.0, Some(false)), (State::Withdrawn, us(205.0)));
    // The third is lost, so that three more are needed; a marked reply counts, and the value begins skipped.
    assert_eq!(probe(205.0, None), (State::Withdrawn, us(305.0)));
    assert_eq!(probe(305.0, Some(false)), (State::Withdrawn, us(405.0)));
    assert_eq!(probe(405.0, Some(false)), (State::Withdrawn, us(505.0)));
    assert_eq!(probe(505.0, Some(true)), (State::Skipped, Time::MAX));
    assert_eq!(sent(&mut s, 7), [0, 1, 3, 0, 1, 2, 3]);
}

#[test]
fn some_values_stay_whatever_is_lost() {
    // Eight active, four stay: the fifth loss makes its value skip turns.
    let mut s = opened(MrcParameters { min_active: Auto::Value(4), ..none() }, &[8], 1);
    (0..5).for_each(|value| s.on_timeout(Time::ZERO, 0, value));
    let all = sent(&mut s, 40);
    let count = |tag| all.iter().filter(|sent| **sent == tag).count();
    assert_eq!([0, 1, 2, 3].map(count), [0; 4]);
    assert!(count(4) >= 9 && (5..8).all(|tag| count(tag) >= 10), "{all:?}");
    // Denied ones do go; a flow without any waits, and goes on when a value is allowed again.
    s.on_paths_changed(Time::ZERO, 0, &[true; 8]);
    assert_eq!(send_at(&mut s, 0.0), None);
    s.on_paths_changed(Time::ZERO, 0, &[true, true, true, true, true, true, true, false]);
    assert_eq!(sent(&mut s, 2), [7, 7]);
    // The same with probes, where none is protected.
    let mut s = opened(MrcParameters { min_active: Auto::Value(0), ..none() }, &[2], 1);
    (0..2).for_each(|value| s.on_timeout(Time::ZERO, 0, value));
    assert_eq!(send_at(&mut s, 0.0), None);
    let mut replies = Vec::new();
    for round in 0..6u32 {
        let now = us(f64::from(round) * 100.0);
        let tag = s.poll_probe(now, 0).expect("a probe").tag;
        replies.push((tag, s.on_probe_reply(now, 0, tag, us(10.0), false)));
    }
    assert_eq!(replies, [(0, false), (1, false), (0, false), (1, false), (0, true), (1, false)]);
}

/// 16 paths over each of four planes, four of them active and two backups.
fn planes(planes: MrcPlanes) -> Mrc {
    let parameters =
        MrcParameters { active: 16, backup: 8, planes, min_active: Auto::Value(1), ..MrcParameters::default() };
    opened(parameters, &[4, 16], 4)
}

#[test]
fn planes_stay_equal_while_backups_replace_what_is_withdrawn() {
    let mut s = planes(MrcPlanes::Rotation);
    let plane = |tag: &Tag| tag & 3;
    assert_eq!(sent(&mut s, 12).iter().map(plane).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    let first: Vec<_> = sent(&mut s, 16).into_iter().filter(|tag| plane(tag) == 1).collect();
    first[..2].iter().for_each(|tag| s.on_timeout(Time::ZERO, 0, *tag));
    let then = sent(&mut s, 64);
    assert!(then.iter().enumerate().all(|(at, tag)| plane(tag) as usize == at % 4), "{then:?}");
    assert!(first[..2].iter().all(|gone| !then.contains(gone)));
    // The third loss finds no backup: the plane has three turns of 15 now, or by planes in turn the same as before.
    s.on_timeout(Time::ZERO, 0, first[2]);
    let short = sent(&mut s, 60);
    assert_eq!(short.iter().filter(|tag| plane(tag) == 1).count(), 12);
    let mut s = planes(MrcPlanes::Equal);
    let own: Vec<_> = sent(&mut s, 16).into_iter().filter(|tag| plane(tag) == 1).collect();
    own[..3].iter().for_each(|tag| s.on_timeout(Time::ZERO, 0, *tag));
    let equal = sent(&mut s, 64);
    assert_eq!(equal.iter().filter(|tag| plane(tag) == 1).count(), 16);
}

#[test]
fn ports_that_are_down_or_busy_are_passed_over() {
    let mut s = planes(MrcPlanes::Rotation);
    s.on_ports_changed(Time::ZERO, 0, 0b0010, 0b1000);
    let plane = |tag: &Tag| tag & 3;
    assert_eq!(sent(&mut s, 6).iter().map(plane).collect::<Vec<_>>(), [0, 2, 0, 2, 0, 2]);
    s.on_ports_changed(Time::ZERO, 0, 0, 0);
    let busy = |s: &mut Mrc, free_ports, port_free_at| {
        s.select(us(1.0), 0, &Outgoing { free_ports, port_free_at, ..Outgoing::first(4096) })
    };
    let Decision::Send(tag) = busy(&mut s, 0b0100, us(2.0)) else { panic!() };
    assert_eq!(plane(&tag), 2);
    assert_eq!(busy(&mut s, 0, us(2.0)), Decision::Hold(us(2.0)));
    s.on_ports_changed(Time::ZERO, 0, 0b1111, 0);
    assert_eq!(busy(&mut s, 0b1111, us(2.0)), Decision::Wait, "all ports are down");
}

#[test]
fn every_flow_has_a_subset_of_its_own() {
    let subset = |key, paths: &[u32]| {
        let mut s = Mrc::new(MrcParameters { active: 8, ..none() }, 1, 2);
        let paths = PathSpace { uplinks: paths, ..PathSpace::default() };
        s.open(Time::ZERO, 0, &FlowInfo { key, paths, ..flow(&[]) });
        let mut tags = sent(&mut s, 8);
        assert_eq!(sent(&mut s, 8), tags, "a rotation");
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 8);
        tags
    };
    assert_ne!(subset(1, &[64]), subset(2, &[64]));
    assert_eq!(subset(1, &[8]), (0..8).collect::<Vec<_>>());
    // Each of 64 paths is one of the eight with probability 1/8: 2000 flows, deviation sqrt(2000 * 7 / 64) = 14.8.
    let mut counts = [0u32; 64];
    (0..2000).flat_map(|key| subset(key, &[64])).for_each(|tag| counts[tag as usize] += 1);
    assert!(counts.iter().all(|count| count.abs_diff(250) < 75), "{counts:?}: five deviations");
}

#[test]
fn feedback_on_unknown_values_is_ignored() {
    let mut s = four(none());
    s.on_ack(Time::ZERO, 0, &feedback(99, true));
    s.on_timeout(Time::ZERO, 0, 99);
    assert!(
        !s.on_probe_reply(Time::ZERO, 0, 99, us(1.0), false) && !s.on_probe_reply(Time::ZERO, 0, 1, us(1.0), false)
    );
    assert_eq!(states(&mut s), [State::Good; 4]);
}

/// While any value may be used, a packet finds one, for all losses and orders.
#[test]
fn a_usable_value_is_always_found() {
    for reshuffle in [1, 2, 3] {
        for lost in 0..4 {
            let mut s = opened(MrcParameters { reshuffle, min_active: Auto::Value(1), ..none() }, &[4], 1);
            (0..4).filter(|value| *value != lost).for_each(|value| s.on_timeout(Time::ZERO, 0, value));
            assert_eq!(sent(&mut s, 100), vec![lost; 100]);
        }
    }
}

proptest! {
    /// A GENERATED profile of all uplinks is AUTO: every path of every plane, each once in a rotation.
    #[test]
    fn a_profile_of_all_uplinks_is_all_paths(tiers in prop::collection::vec(1u32..6, 1..3), planes in 1u32..5) {
        let fields = tiers.iter().map(|uplinks| format!("8 0 0xff 0..{}", uplinks - 1)).collect();
        let parameters = MrcParameters { fields, ..MrcParameters::default() };
        let uplinks: Vec<u32> = [planes].into_iter().filter(|planes| *planes > 1).chain(tiers).collect();
        let paths: u32 = uplinks.iter().product();
        prop_assume!(paths > 1);
        prop_assert_eq!(crate::registry::HostParameters::Mrc(parameters.clone()).check_uplinks(&uplinks, planes), Ok(()));
        let rotation = |parameters| {
            let mut tags = sent(&mut opened(parameters, &uplinks, planes), paths as usize);
            tags.sort_unstable();
            tags.dedup();
            tags
        };
        let all = rotation(MrcParameters::default());
        prop_assert_eq!(all.len(), paths as usize);
        prop_assert_eq!(rotation(parameters), all);
    }
}

proptest! {
    /// The note on a number of active values states what a rotation has.
    #[test]
    fn a_number_that_does_not_fit_is_said(tiers in prop::collection::vec(1u32..9, 1..3), planes in 1u32..5, active in 1u32..100) {
        let parameters = MrcParameters { active, backup: 32, min_active: Auto::Value(0), ..MrcParameters::default() };
        let said = crate::registry::SchemeCapabilities::fitted(&parameters, &tiers, planes);
        let uplinks: Vec<u32> = Some(planes).filter(|planes| *planes > 1).into_iter().chain(tiers).collect();
        prop_assume!(uplinks.iter().product::<u32>() > 1);
        let mut tags = sent(&mut opened(parameters, &uplinks, planes), 200);
        tags.sort_unstable();
        tags.dedup();
        let used = tags.len() as u32;
        prop_assert_eq!(said.is_some(), used != active);
        let expected = format!("`active` {active} is {used}: ");
        prop_assert!(said.is_none_or(|said| said.starts_with(&expected)));
    }
}

#[test]
fn probes_of_a_port_that_is_down_restore_nothing() {
    let mut s = planes(MrcPlanes::Rotation);
    let lost = sent(&mut s, 1)[0];
    s.on_timeout(Time::ZERO, 0, lost);
    let mut probes = |down: u32, from: u64, count: u64| {
        s.on_ports_changed(Time::ZERO, 0, down, 0);
        for round in from..from + count {
            let now = Time::from_us(round * 100);
            let tag = s.poll_probe(now, 0).expect("a probe").tag;
            s.on_probe_reply(now, 0, tag, us(10.0), false);
        }
        s.flows.get(0).unwrap().rotation.state(lost)
    };
    assert_eq!(probes(1 << (lost & 3), 0, 5), State::Withdrawn);
    assert_eq!(probes(0, 5, 3), State::Good);
}
