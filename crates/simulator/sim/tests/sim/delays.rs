//! Parts of completion times: by hand where one cause delays a flow, and exact sums for schemes, transports and modes.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_outcome::{FlowDelays, RunResult};
use anabranch_sim::How;
use anabranch_topology::{FaultKind, FaultParameters, Topology};
use anabranch_units::Time;
use anabranch_workload::{Start, Trigger, TriggerId, TriggerKind};

fn attributed(mut setup: Setup) -> Setup {
    setup.measure.attribution = true;
    setup
}

/// Checks that the parts add up to both completion times; returns those of every complete flow.
fn exact(result: &RunResult) -> Vec<FlowDelays> {
    let mut all = Vec::new();
    for flow in &result.flows {
        assert_eq!(flow.delays.is_some(), flow.fct_rx.is_some(), "{flow:?}");
        let (Some(delays), Some(rx)) = (flow.delays, flow.fct_rx) else { continue };
        let FlowDelays { queue, pause, timeout, nack, sender, serialisation, flight, .. } = delays;
        assert_eq!(queue + pause + timeout + nack + sender + serialisation + flight, rx, "{flow:?}");
        assert_eq!(delays.ack.map(|ack| delays.start + rx + ack), flow.fct_ack, "{flow:?}");
        assert!(delays.longest.map_or(Time::ZERO, |longest| longest.1) <= queue, "{flow:?}");
        assert_eq!(delays.longest.is_some(), queue > Time::ZERO, "{flow:?}");
        all.push(delays);
    }
    all
}

fn delays(setup: Setup) -> Vec<FlowDelays> {
    exact(&run(&attributed(setup)))
}

fn link_name(result: &RunResult, link: u32) -> String {
    let link = &result.links[link as usize];
    format!("{}->{}", link.from, link.to)
}

#[test]
fn a_lone_flow_sends_and_flies() {
    let all = delays(unconstrained(setup(two_leaves(), flows(&[(0, 2, 10 * 4096, 7000)]), "ecmp")));
    let flight = Time::from_ps(3 * WIRE + 4 * DELAY);
    let expected = FlowDelays {
        serialisation: Time::from_ps(10 * WIRE),
        flight,
        ack: Some(Time::from_ps(4 * (ACK + DELAY))),
        ..FlowDelays::default()
    };
    assert_eq!(all, [expected]);
}

#[test]
fn the_second_of_two_packets_waits_at_the_last_link() {
    let setup =
        unconstrained(setup(two_leaves(), flows(&[(0, 2, 4096, 0), (3, 2, 4096, 2 * (DELAY + WIRE) + 1000)]), "ecmp"));
    let result = run(&attributed(setup));
    let all = exact(&result);
    // The packet of host 0 is at leaf 1 after three hops, that of host 3 after one, 1 ns later.
    let wait = Time::from_ps(WIRE - 1000);
    assert_eq!((all[0].queue, all[1].queue), (Time::ZERO, wait));
    let (link, time) = all[1].longest.unwrap();
    assert_eq!((link_name(&result, link).as_str(), time), ("leaf1->host2", wait));
}

#[test]
fn flows_of_a_host_wait_for_each_other_at_its_link() {
    let setup = unconstrained(setup(two_leaves(), flows(&[(0, 2, 3 * 4096, 0), (0, 3, 3 * 4096, 0)]), "ecmp"));
    let result = run(&attributed(setup));
    let all = exact(&result);
    // Flow 0 has sent one packet and waits for its next turn when flow 1 starts: the order is 0 0 1 0 1 1.
    for (flow, delays) in all.iter().enumerate() {
        assert_eq!((delays.queue, delays.start), (Time::from_ps(WIRE), Time::from_ps(flow as u64 * 2 * WIRE)));
        let (link, time) = delays.longest.unwrap();
        assert_eq!((link_name(&result, link).as_str(), time), ("host0->leaf0", delays.queue));
    }
}

#[test]
fn a_window_of_one_packet_holds_the_sender_back() {
    let mut setup = unconstrained(setup(two_leaves(), flows(&[(0, 2, 5 * 4096, 0)]), "ecmp"));
    set_keys(uet(&mut setup), "window=4160B ack_every=1");
    // From the end of each packet but the last to its acknowledgement.
    let wait = 3 * WIRE + 4 * DELAY + 4 * (ACK + DELAY);
    let all = delays(setup);
    assert_eq!((all[0].sender, all[0].queue), (Time::from_ps(4 * wait), Time::ZERO));
}

/// Lost until 200 us; sent at 0, 50, 100, 150 and 200 us.
#[test]
fn timeouts_are_waited_for() {
    let down = link_fault(FaultKind::LinkDown, Time::ZERO, "leaf0-spine0");
    let up = link_fault(FaultKind::LinkUp, Time::from_us(200), "leaf0-spine0");
    let mut setup = with_fault(with_fault(setup(two_leaves(), flows(&[(0, 2, 4096, 0)]), "ecmp"), down), up);
    set_keys(uet(&mut setup), "rto=50us");
    let expected = FlowDelays {
        timeout: Time::from_us(200) - Time::from_ps(4 * WIRE),
        serialisation: Time::from_ps(5 * WIRE),
        flight: Time::from_ps(3 * WIRE + 4 * DELAY),
        ack: Some(Time::from_ps(4 * (ACK + DELAY))),
        ..FlowDelays::default()
    };
    assert_eq!(delays(setup), [expected]);
}

/// The acknowledgement is lost until 200 us: timeouts after the last byte do not count for it.
#[test]
fn superfluous_retransmissions_delay_the_acknowledgement_alone() {
    let down = FaultParameters { directed: true, ..link_fault(FaultKind::LinkDown, Time::ZERO, "spine0->leaf0") };
    let up = link_fault(FaultKind::LinkUp, Time::from_us(200), "spine0-leaf0");
    let mut setup = with_fault(with_fault(setup(two_leaves(), flows(&[(0, 2, 4096, 0)]), "ecmp"), down), up);
    set_keys(uet(&mut setup), "rto=50us");
    let all = delays(setup);
    assert_eq!((all[0].timeout, all[0].serialisation), (Time::ZERO, Time::from_ps(WIRE)));
    assert!(all[0].ack.unwrap() > Time::from_us(190), "{all:?}");
}

#[test]
fn a_follower_waits_for_its_predecessor() {
    let mut set = flows(&[(0, 2, 4096, 5000), (2, 0, 4096, 6000)]);
    set.triggers = vec![Trigger::new(TriggerKind::Oneshot, vec![1])];
    set.flows[0].on_received = Some(TriggerId(0));
    set.flows[1].start = Start::On(TriggerId(0));
    let all = delays(unconstrained(setup(two_leaves(), set, "ecmp")));
    assert_eq!([all[0].predecessor, all[1].predecessor], [Time::ZERO, Time::from_ps(4 * (WIRE + DELAY))]);
}

/// Sixteen senders, one receiver.
fn incast(topology: &Topology, size: u64) -> anabranch_workload::FlowSet {
    let list: Vec<_> = (4..20).map(|host| (host, 0, size, u64::from(host % 3) * 1000)).collect();
    flows(&list[..list.len().min(topology.hosts as usize - 4)])
}

fn sum(all: &[FlowDelays], part: fn(&FlowDelays) -> Time) -> Time {
    all.iter().map(part).fold(Time::ZERO, |a, b| a + b)
}

fn assert_one(setup: Setup, what: &str) -> Vec<FlowDelays> {
    let setup = attributed(setup);
    let of = |how: How| {
        let result = run_as(&setup, how);
        (exact(&result), result.fingerprint)
    };
    let first = of(How::on(1));
    for how in modes() {
        assert_eq!(of(how), first, "{what}: {how:?}");
    }
    let off = run(&Setup { measure: anabranch_backend::Measure::default(), ..setup });
    assert_eq!(off.fingerprint, first.1, "{what}: attribution changes results");
    assert!(off.flows.iter().all(|flow| flow.delays.is_none()));
    first.0
}

#[test]
fn every_scheme_trims_and_adds_up() {
    for scheme in
        ["ecmp", "ops", "reps", "bitmap", "plb", "flowbender", "ar", "drill", "rr", "prime", "hopper", "hf2t+letflow"]
    {
        let topology = fat_tree(2, 8);
        let mut setup = setup(topology.clone(), incast(&topology, 60 * 4096), scheme);
        let trim = if scheme == "reps" { "coin" } else { "arrival" };
        set_keys(&mut setup.fabric, &format!("queue_limit=0.3bdp trim={trim}"));
        let all = assert_one(setup, scheme);
        let (queue, nack) = (sum(&all, |d| d.queue), sum(&all, |d| d.nack));
        assert!(queue > Time::ZERO && nack > Time::ZERO, "{scheme}: {queue} {nack}");
    }
}

#[test]
fn losses_add_up() {
    let topology = fat_tree(2, 8);
    let mut setup = setup(topology.clone(), incast(&topology, 60 * 4096), "ops");
    set_keys(&mut setup.fabric, "trimming=false queue_limit=0.3bdp");
    let all = assert_one(setup, "drop-tail");
    assert!(sum(&all, |d| d.timeout) > Time::ZERO);
}

#[test]
fn dragonflies_add_up() {
    for scheme in ["minimal", "ugal-l", "spritz-spray-w", "valiant"] {
        let dragonfly = topology("dragonfly", "p=2 a=4 h=2");
        let set = random_flows(&dragonfly, 200, 400_000, 20_000_000, 3);
        assert_one(spritz(dragonfly, set, scheme), scheme);
    }
}

#[test]
fn queue_pairs_add_up_and_are_paused() {
    for profile in [Profile::Irn, Profile::Lossless, Profile::ConweaveIrn, Profile::ConweaveLossless] {
        for scheme in ["ecmp", "letflow", "conga", "conweave"] {
            for control in ["dcqcn", "swift", "none"] {
                let mut list = random_list(128, 60, 300_000, 20_000_000, 5);
                list.extend((20..80).map(|host| (host, 3, 200_000, 1000)));
                let mut setup = roce_setup(leaf_spine_128(), flows(&list), scheme, profile);
                set_keys(roce(&mut setup), &format!("congestion_control={control}"));
                if setup.fabric.pfc {
                    set_keys(&mut setup.fabric, "shared_buffer=4MB");
                }
                let lossless = setup.fabric.pfc;
                let what = format!("{profile:?}, {scheme}, {control}");
                let all = if control == "none" { assert_one(setup, &what) } else { delays(setup) };
                let paused = sum(&all, |d| d.pause);
                assert!(!(lossless && control == "none") || paused > Time::ZERO, "{what}: {paused}");
            }
        }
    }
}
