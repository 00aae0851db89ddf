//! Closed forms of the model behind the recorded runs, PFC without loss, recovery of every loss.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_outcome::FlowStatus;
use anabranch_settings::{Auto, Never};
use anabranch_topology::{Affects, FaultKind, FaultParameters};
use anabranch_units::{Bytes, Time};

fn fct_ns(setup: &Setup) -> Vec<u64> {
    let times = |flow: &anabranch_outcome::FlowRow| flow.fct_ack.expect("a finished flow").ps();
    run(setup).flows.iter().map(|flow| times(flow) / 1000).collect()
}

/// specification 17.2: `FCT = (n-1 + h-1) * 83 + w_last + 2000 h + 4 h` ns for n packets over h hops, n >= 2; a single
/// packet takes `h * w_last + 2000 h + 4 h`; `w_last = floor(8 (payload + 48) / 100)`.
#[test]
fn single_flow_matches_closed_form_of_recorded_runs() {
    let topology = leaf_spine_128();
    for (dst, hops) in [(17u32, 4u64), (1, 2)] {
        for size in [1000u64, 1, 64, 500, 1001, 1500, 2000, 10_000, 99_999, 104_000, 1_000_000] {
            for profile in [Profile::ConweaveIrn, Profile::ConweaveLossless] {
                let setup = roce_setup(topology.clone(), flows(&[(0, dst, size, 0)]), "ecmp", profile);
                let packets = size.div_ceil(1000);
                let last_payload = size - (packets - 1) * 1000;
                let wire = |payload: u64| match payload {
                    // The double of the seconds is slightly below the true value where 8 (p + 48) is a multiple of 200.
                    p if (p + 48) % 25 == 0 => 8 * (p + 48) / 100 - 1,
                    p => 8 * (p + 48) / 100,
                };
                let last = wire(last_payload);
                let fct = match packets {
                    1 => hops * last + 2000 * hops + 4 * hops,
                    _ => (packets - 1 + hops - 1) * 83 + last + 2000 * hops + 4 * hops,
                };
                // An ACK closer than 4 ns to the previous one waits behind it.
                let fct = if packets > 1 && last < 4 { fct + 1 } else { fct };
                assert_eq!(fct_ns(&setup), [fct], "{size} B over {hops} hops, {profile:?}");
            }
        }
    }
    // The published values: 1000 B in 8,348 and 4,174 ns, 1 MB in 91,265 and 87,091 ns.
    let lone =
        |dst, size| fct_ns(&roce_setup(leaf_spine_128(), flows(&[(0, dst, size, 0)]), "ecmp", Profile::ConweaveIrn));
    assert_eq!([lone(17, 1000), lone(1, 1000)].concat(), [8348, 4174]);
    assert_eq!([lone(17, 1_000_000), lone(1, 1_000_000)].concat(), [91_265, 87_091]);
}

/// Three packets of 1000 B (1048 B at 100 Gb/s: 83.84 ns) over four hops of 1 us, ACK 60 B: 4.8 ns.
#[test]
fn single_flow_of_default_profile() {
    let setup = roce_setup(leaf_spine_128(), flows(&[(0, 17, 3000, 0)]), "ecmp", Profile::Irn);
    let result = run(&setup);
    let expected = 6 * 83_840 + 4 * 1_000_000 + 4 * 4_800 + 4 * 1_000_000;
    assert_eq!(result.flows[0].fct_ack, Some(Time::from_ps(expected)));
    assert_eq!(result.flows[0].ideal_ack, Time::from_ps(expected));
}

/// Ports with PFC have service events only while paused; otherwise a hop costs one event as without PFC. 160 packets
/// from each of 128 hosts queue far below 32 MB. Besides arrivals there are a start per flow and some timers.
#[test]
fn pfc_costs_no_events_without_pauses() {
    let topology = leaf_spine_128();
    let flows = permutation(&topology, 160_000, 1);
    let result = run(&roce_setup(topology, flows, "ecmp", Profile::Lossless));
    assert_eq!(result.counters.pfc_pauses, Some(0));
    let longest = result.links.iter().filter_map(|link| link.queue.max_packets).max();
    assert!(longest > Some(50), "flows collide: {longest:?}");
    let (events, hops) = (result.events.unwrap(), result.packet_hops.unwrap());
    assert!(events < hops + hops / 10, "{events} events for {hops} packet-hops");
}

/// Incast of hosts of other racks on one.
fn incast(senders: u32, size: u64, profile: Profile) -> Setup {
    let list: Vec<_> = (0..senders).map(|i| (16 + i * 3 % 112, 0, size, 0)).collect();
    roce_setup(leaf_spine_128(), flows(&list), "ecmp", profile)
}

#[test]
fn pfc_loses_nothing() {
    // 32 MB towards one host; the switch has 9 MiB, the pause threshold is far below.
    let mut setup = incast(64, 500_000, Profile::Lossless);
    for control in ["dcqcn", "none"] {
        set_keys(roce(&mut setup), &format!("congestion_control={control}"));
        let result = run(&setup);
        assert_eq!((result.counters.dropped.unwrap(), result.counters.retransmitted.unwrap()), (0, 0), "{control}");
        assert!(result.counters.pfc_pauses.unwrap() > 0, "{control}");
        assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
        // Pauses reach the spines, then the leaves (head-of-line blocking), and without control the hosts.
        let paused = |from: &str| result.links.iter().any(|l| l.from.starts_with(from) && l.pauses.unwrap() > 0);
        assert!(paused("spine"));
        assert!(control == "dcqcn" || (paused("leaf") && paused("host")));
    }
    // The link to the receiver is never idle: 64 * 500 packets of 1048 B, and the path there and back.
    let last = run(&setup).flows.iter().filter_map(|f| f.fct_ack).max().unwrap();
    let busy = 64 * 500 * 83_840 + 8_000_000 + 3 * 83_840 + 4 * 4_800;
    assert!(last.ps() >= busy && last.ps() < busy + 1_000_000, "{last} against {busy} ps");
}

/// A real switch repeats its pauses and they expire, so that faults of a link do not stop its sender for ever.
#[test]
fn no_fault_of_a_link_stops_a_paused_sender_for_ever() {
    let loss = FaultParameters { kind: FaultKind::PacketLoss, loss: 0.05, fraction: 1.0, ..FaultParameters::default() };
    let times =
        [(FaultKind::LinkDown, 20), (FaultKind::LinkUp, 400), (FaultKind::LinkDown, 420), (FaultKind::LinkUp, 900)];
    let flap = times.map(|(kind, at)| link_fault(kind, Time::from_us(at), "host0-leaf0"));
    for faults in [&[loss][..], &flap] {
        let mut setup = faults.iter().cloned().fold(incast(64, 100_000, Profile::Lossless), with_fault);
        set_keys(roce(&mut setup), "congestion_control=none");
        let result = run(&setup);
        assert!(result.counters.pfc_pauses.unwrap() > 0);
        assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
    }
}

#[test]
fn without_pfc_the_same_buffer_overflows_and_every_loss_is_repaired() {
    for recovery in ["irn", "irn-extended", "go-back-n"] {
        let mut setup = incast(64, 500_000, Profile::Irn);
        set_keys(roce(&mut setup), &format!("recovery={recovery}"));
        setup.fabric.shared_buffer = Bytes(1_500_000);
        let result = run(&setup);
        assert!(result.counters.dropped.unwrap() > 0 && result.counters.retransmitted.unwrap() > 0, "{recovery}");
        assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished), "{recovery}");
        assert_eq!(result.conservation.unwrap().unique_bytes, result.conservation.unwrap().flow_bytes);
    }
}

#[test]
fn recorded_lossless_profile_drops_when_pauses_expire() {
    // conweave-ns3, "What the recorded runs showed": 64 senders of 1 MB overrun a pause of 5 us that nothing refreshes
    // (282,531 packets lost, last flow 20.8 ms); with 20 us it takes 5.8 ms.
    let list: Vec<_> = (0..64).map(|i| (16 + i, 0, 1_000_000, 0)).collect();
    let mut setup = roce_setup(leaf_spine_128(), flows(&list), "ecmp", Profile::ConweaveLossless);
    let short = run(&setup);
    assert!((50_000..600_000).contains(&short.counters.dropped.unwrap()), "{}", short.counters.dropped.unwrap());
    setup.fabric.pfc_pause = Never::Value(Time::from_us(20));
    let long = run(&setup);
    assert!(long.counters.dropped.unwrap() < 2000, "{}", long.counters.dropped.unwrap());
    let last = |result: &anabranch_outcome::RunResult| result.flows.iter().filter_map(|f| f.fct_ack).max().unwrap();
    assert!((last(&long).as_seconds() - 5.8e-3).abs() < 0.6e-3, "{}", last(&long));
    assert!(last(&short).as_seconds() > 2.0 * last(&long).as_seconds());
}

#[test]
fn a_ring_of_pauses_is_a_deadlock_and_is_named() {
    // Four switches in a ring, every flow two hops on: a cyclic buffer dependency.
    let text_file = "8 4 8\n4 5 6 7\n0 4 100Gbps 1000ns 0\n1 5 100Gbps 1000ns 0\n2 6 100Gbps 1000ns 0\n3 7 100Gbps 1000ns 0\n\
                     4 5 100Gbps 1000ns 0\n5 6 100Gbps 1000ns 0\n6 7 100Gbps 1000ns 0\n7 4 100Gbps 1000ns 0\n";
    let mut parameters = anabranch_topology::TopologyParameters::named("file").unwrap();
    set_keys(parameters.parameters_mut(), "path=ring format=conweave");
    let ring = parameters.build(&|_| Ok(text_file.to_string())).unwrap();
    // Only flows that happen to take the same direction fill the ring, hence many seeds.
    let list: Vec<_> = (0..4).flat_map(|h| (0..24).map(move |_| (h, (h + 2) % 4, 2_000_000, 0))).collect();
    let mut found = Vec::new();
    for seed in 1..40 {
        let mut setup = roce_setup(ring.clone(), flows(&list), "ops", Profile::Lossless);
        set_keys(roce(&mut setup), "congestion_control=none");
        roce(&mut setup).rto = Auto::Value(Never::Never);
        setup.fabric.shared_buffer = Bytes(300_000);
        setup.fabric.ecn = false;
        setup.seed = seed;
        let result = run_on(&setup, 1);
        assert_eq!(result.counters.dropped.unwrap(), 0);
        let open = result.flows.iter().filter(|flow| flow.fct_ack.is_none()).count();
        assert_eq!(result.deadlock.is_empty(), open == 0, "without timers a run ends whole or stuck");
        if open > 0 {
            let again = run_on(&setup, 2);
            assert_eq!((again.fingerprint, &again.deadlock), (result.fingerprint, &result.deadlock));
            setup.limits.until_all_done = false;
            assert_eq!(run_on(&setup, 1).deadlock, result.deadlock);
            found = result.deadlock.clone();
            break;
        }
    }
    // The only cycles are the four links of one direction. Switches are numbered from 4.
    let names = |link: &String| link.split("->").map(str::to_string).collect::<Vec<_>>();
    let ends: Vec<Vec<String>> = found.iter().map(names).collect();
    assert_eq!(ends.len(), 4, "{found:?}");
    for (link, next) in ends.iter().zip(ends.iter().cycle().skip(1)) {
        assert_eq!(link[1], next[0], "{found:?}");
    }
}

#[test]
fn a_buffer_too_small_for_its_headroom_is_refused() {
    let mut setup = incast(4, 1000, Profile::Lossless);
    setup.fabric.shared_buffer = Bytes(500_000);
    let message = refused(&setup).to_string();
    // 24 ports: headroom 2 * 12.5 B/ns * 1000 ns + 3 * 1048 + 64 + 1 = 28,209 B each, minimum 8 * 1048 B each.
    assert!(message.contains("shared_buffer") && message.contains("677016") && message.contains("201216"), "{message}");
}

#[test]
fn settings_with_which_pfc_loses_packets_are_refused() {
    let refused = |change: &dyn Fn(&mut Setup)| {
        let mut setup = incast(4, 1000, Profile::Lossless);
        change(&mut setup);
        refused(&setup).to_string()
    };
    let headroom = refused(&|setup| setup.fabric.pfc_headroom = Auto::Value(Bytes(28_208)));
    assert!(headroom.contains("pfc_headroom") && headroom.contains("28209B"), "{headroom}");
    let pause = refused(&|setup| setup.fabric.pfc_pause = Never::Value(Time::from_ms(1)));
    assert!(pause.contains("pfc_pause") && pause.contains("never"), "{pause}");
    let mut setup = incast(4, 1000, Profile::Lossless);
    setup.fabric.pfc_headroom = Auto::Value(Bytes(28_209));
    run(&setup);
}

#[test]
fn probes_are_real_packets() {
    let topology = leaf_spine_128();
    let many = random_flows(&topology, 400, 1_000_000, 20_000_000, 3);
    let mut setup = roce_setup(topology, many, "hopper", Profile::Irn);
    set_keys(roce(&mut setup), "recovery=irn-extended");
    let result = run(&setup);
    let counters = result.counters;
    assert!(counters.probes.unwrap() > 0 && counters.path_switches.unwrap() > 0, "{counters:?}");
    // 64 B of payload and 48 B of headers each, and a reply each.
    assert_eq!(counters.probe_bytes.unwrap(), counters.probes.unwrap() * 112);
    assert_eq!(result.conservation.unwrap().probes.delivered, 2 * counters.probes.unwrap());
}

/// Hopper §2: spraying needs a reordering buffer per connection. Without memory for it early packets are refused and
/// retransmitted; every byte still arrives. A flow on one path needs none.
#[test]
fn a_nic_without_memory_refuses_early_packets() {
    let list: Vec<_> = (0..32).map(|i| (16 + i * 3 % 112, i % 4, 300_000, 0)).collect();
    let counters = |scheme: &str, keys: &str| {
        let mut setup = roce_setup(leaf_spine_128(), flows(&list), scheme, Profile::Irn);
        set_keys(roce(&mut setup), keys);
        let result = run(&setup);
        assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished), "{scheme} {keys:?}");
        (result.counters, result.flows.iter().filter_map(|flow| flow.metrics.refused_packets).sum::<u64>())
    };
    for (scheme, keys, refuses) in
        [("ops", "nic_memory=20kB", true), ("ops", "", false), ("ecmp", "nic_memory=20kB", false)]
    {
        let (counters, of_flows) = counters(scheme, keys);
        assert_eq!((of_flows > 0, counters.refused_packets), (refuses, Some(of_flows)), "{scheme} {keys:?}");
        // Eight flows end at each of four hosts, and some hosts send several; one queue pair each.
        assert!(counters.max_queue_pairs.unwrap() >= 8, "{counters:?}");
        assert_eq!(counters.unbuffered_flows, Some(0));
    }
    // 250 kB hold two buffers of 104 kB and the queue pairs; six of the eight flows at each receiver are without.
    let (counters, _) = counters("ops", "nic_memory=250kB reorder_memory=104kB");
    assert!((4 * 6..=32).contains(&counters.unbuffered_flows.unwrap()), "{counters:?}");
}

/// A probe is a queue pair of its sender until its reply: a lone flow with two probes out has three at most.
#[test]
fn probes_count_as_queue_pairs() {
    let topology = leaf_spine_128();
    let many = random_flows(&topology, 400, 1_000_000, 20_000_000, 3);
    let most = |scheme: &str| {
        let result = run(&roce_setup(topology.clone(), many.clone(), scheme, Profile::Irn));
        result.flows.iter().filter_map(|flow| flow.metrics.max_queue_pairs).max().unwrap()
    };
    assert_eq!([most("ecmp"), most("qp-spray"), most("cast")], [1, 4, 4]);
    assert!(most("hopper") >= 3);
}

/// Hopper §3.2: profiled ports are one per path, eight in all. A move per round trip, some hundred of them, uses each: one is
/// omitted with a probability of 8 x (7/8)^100, 1 in 80,000.
#[test]
fn profiled_ports_reach_every_path() {
    let topology = leaf_spine_128();
    let paths = |ports: &str| {
        let list: Vec<_> = (0..16).map(|i| (i, 16 + i, 10_000_000, 0)).collect();
        let mut setup = roce_setup(topology.clone(), flows(&list), "hopper", Profile::Irn);
        setup.measure.uplink_counts = true;
        let host = setup.load_balancers[0].host.parameters_mut();
        // A probe after every round trip, and a move to the path that was probed.
        set_keys(host, &format!("ports={ports} th_probe=0.0 th_cong=0.0 delta_rtt=1000.0 ttl_probe=0.5"));
        let counts = run(&setup).uplink_counts.clone();
        let used = |flow: u32| counts.iter().filter(|count| count.flow_id == flow && count.packets > 0).count();
        (0..16).map(used).collect::<Vec<_>>()
    };
    assert_eq!(paths("profiled"), [8; 16], "each flow reaches all eight spines");
}

/// NACKs of lost packets carry notifications that do not concern FlowBender's path.
#[test]
fn flowbender_and_plb_react_to_their_own_marks_only() {
    for scheme in ["flowbender", "plb"] {
        let list: Vec<_> = (0..64).map(|i| (16 + i * 3 % 112, 0, 500_000, 0)).collect();
        let mut setup = roce_setup(leaf_spine_128(), flows(&list), scheme, Profile::Irn);
        setup.fabric.shared_buffer = Bytes(1_500_000);
        setup.fabric.ecn = false;
        let counters = run(&setup).counters;
        assert!(
            counters.dropped.unwrap() > 0 && counters.retransmitted.unwrap() > 0 && counters.ecn_marked.unwrap() == 0,
            "{scheme}"
        );
        assert!(counters.path_switches.unwrap() <= counters.timeouts.unwrap(), "{scheme}: {counters:?}");
    }
}

/// Schemes that keep their path complete only if a timeout moves them; those that choose again after a pause or per
/// packet avoid the cut.
#[test]
fn behind_an_undetected_cut_a_flow_ends_if_something_moves_it() {
    let topology = leaf_spine_128();
    let list: Vec<_> = (0..64).map(|i| (i % 16, 16 + i, 200_000, 0)).collect();
    let unfinished = |scheme: &str, on_timeout: Option<&str>| {
        let mut setup = roce_setup(topology.clone(), flows(&list), scheme, Profile::Irn);
        if let Some(value) = on_timeout {
            set_keys(setup.load_balancers[0].host.parameters_mut(), &format!("on_timeout={value}"));
        }
        setup.limits.time_limit = Time::from_ms(20);
        // Acknowledgements do not take part in the choice of paths.
        let cut = link_fault(FaultKind::LinkDown, Time::ZERO, "leaf0-spine3");
        run(&with_fault(setup, FaultParameters { affects: Affects::Data, ..cut }))
            .flows
            .iter()
            .filter(|flow| flow.status != FlowStatus::Finished)
            .count()
    };
    for scheme in ["ecmp", "qp-spray", "hopper", "hf2t+ecmp"] {
        assert!(unfinished(scheme, None) > 0, "{scheme}");
        assert_eq!(unfinished(scheme, Some("move")), 0, "{scheme}");
    }
    for scheme in ["flowbender", "plb", "flowlet", "co-prime", "hf2t", "ops"] {
        assert_eq!(unfinished(scheme, None), 0, "{scheme}");
    }
}

/// HF2T creates flowlets, which may overtake: a packet held for one timeout follows others that a paused link holds longer.
#[test]
fn hf2t_makes_flowlets_and_reorders_more_than_letflow() {
    let tree = topology("fat-tree", "tiers=3 radix=4 link_rate=100Gbps link_delay=1us");
    let many = random_flows(&tree, 600, 2_000_000, 3_000_000_000, 4);
    let run_of = |scheme: &str| {
        let mut setup = roce_setup(tree.clone(), many.clone(), scheme, Profile::Lossless);
        let balancer = &mut setup.load_balancers[0];
        set_keys(balancer.switch.parameters_mut(), "flowlet_timeout=100us");
        if scheme == "hf2t" {
            set_keys(balancer.host.parameters_mut(), "flowlet_timeout=100us");
        }
        run(&setup)
    };
    let (letflow, hf2t) = (run_of("letflow"), run_of("hf2t"));
    let leaves = |flow: &&anabranch_outcome::FlowRow| flow.src / 2 != flow.dst / 2;
    let crossing = letflow.flows.iter().filter(leaves).count() as u64;
    assert!(letflow.counters.flowlets.unwrap() >= crossing);
    assert_eq!(letflow.counters.created_flowlets.unwrap(), 0);
    let counters = hf2t.counters;
    assert!(counters.created_flowlets.unwrap() > 0 && counters.added_delay_ns.unwrap() > 0, "{counters:?}");
    assert!(counters.flowlets.unwrap() > letflow.counters.flowlets.unwrap(), "{counters:?}");
    // The cost are overtaking packets, which go-back-N retransmits; with fewer packets in the network it pauses less.
    assert!(counters.out_of_order.unwrap() > letflow.counters.out_of_order.unwrap(), "{counters:?}");
    assert!(counters.out_of_order.unwrap() * 20 < counters.data_packets.unwrap(), "{counters:?}");
    assert!(counters.pfc_pauses.unwrap() < letflow.counters.pfc_pauses.unwrap(), "{counters:?}");
}
