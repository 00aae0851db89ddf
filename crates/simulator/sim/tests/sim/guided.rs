//! Dragonfly and Slim Fly: closed forms, invariants and determinism of guided schemes.

use crate::common::*;
use anabranch_settings::Never;
use anabranch_topology::{Affects, FaultKind, FaultParameters, Topology};
use anabranch_units::Time;

const SCHEMES: [&str; 16] = [
    "minimal",
    "valiant",
    "ugal-l",
    "ugal-g",
    "ecmp+source-guided",
    "flicr-u",
    "flicr-w",
    "ops-u",
    "ops-w",
    "spritz-scout",
    "spritz-scout-u",
    "spritz-spray-u",
    "spritz-spray-w",
    "spritz-coarse",
    "reps+source-guided",
    "hopper+source-guided",
];

fn dragonfly(p: i64, a: i64, h: i64) -> Topology {
    topology("dragonfly", &format!("p={p} a={a} h={h}"))
}

fn slim_fly(q: i64, p: i64) -> Topology {
    topology("slim-fly", &format!("q={q} p={p}"))
}

#[test]
fn one_packet_over_the_default_path() {
    // 4160 B at 400 Gb/s: 83,200 ps per link; host links and local links 25 ns, global links 500 ns, 500 ns per switch.
    let of = |local: u64, global: u64, wire: u64| {
        let switches = local + global + 1;
        (local + global + 2) * wire + (local + 2) * 25_000 + global * 500_000 + switches * 500_000
    };
    let graph = dragonfly(4, 8, 4);
    let guide = graph.guide().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for dst in (4..1056).step_by(97) {
        let result = run(&spritz(graph.clone(), flows(&[(0, dst, 4096, 0)]), "minimal"));
        let mut at = graph.edge_switch(0);
        let (mut local, mut global) = (0, 0);
        while let Some(link) = guide.minimal(at, graph.edge_switch(dst)) {
            match graph.link(link).class {
                anabranch_topology::LinkClass::Local => local += 1,
                _ => global += 1,
            }
            at = graph.link(link).to;
        }
        seen.insert((local, global));
        let flow = &result.flows[0];
        assert_eq!(flow.fct_rx, Some(Time::from_ps(of(local, global, 83_200))), "{dst}: {local} {global}");
        assert_eq!(flow.fct_ack.unwrap() - flow.fct_rx.unwrap(), Time::from_ps(of(local, global, 1280)));
        assert_eq!(flow.ideal_rx, flow.fct_rx.unwrap());
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn single_flow_takes_91_us() {
    // Spritz, Table III. 1024 packets of 83.2 ns are 85.2 us; the farthest path adds 2.9 us of wire and delay and 3 us
    // of switches.
    for scheme in ["minimal", "valiant", "spritz-scout", "spritz-spray-w"] {
        let result = run(&spritz(dragonfly(4, 8, 4), flows(&[(0, 1000, 4 << 20, 0)]), scheme));
        let fct = result.flows[0].fct_ack.unwrap().as_us();
        assert!((88.0..93.0).contains(&fct), "{scheme}: {fct}");
    }
}

#[test]
fn minimal_routing_is_bound_by_the_one_global_link() {
    // 8 hosts of group 0 send 4 MiB each to group 5 over one link: 8 * 1024 * 83.2 ns = 681.6 us.
    let graph = dragonfly(2, 4, 2);
    let list: Vec<_> = (0..8).map(|host| (host, 40 + host, 4 << 20, 0)).collect();
    let result = run(&spritz(graph.clone(), flows(&list), "minimal"));
    let bound = 8.0 * 1024.0 * 0.0832;
    let last = result.flows.iter().map(|f| f.fct_rx.unwrap().as_us()).fold(0.0, f64::max);
    assert!(last >= bound && last < 1.05 * bound, "{last} {bound}");
    // Valiant can use the links of nine groups.
    let result = run(&spritz(graph, flows(&list), "valiant"));
    let other = result.flows.iter().map(|f| f.fct_rx.unwrap().as_us()).fold(0.0, f64::max);
    assert!(other < 0.6 * last, "{other} {last}");
}

#[test]
fn the_adversarial_patterns_at_full_size() {
    // Minimal routing: 32 flows of 4 MiB over one link of the Dragonfly, 7 over one of the Slim Fly. 1024 packets of
    // 83.2 ns each: 2,726 and 596 us.
    let graph = dragonfly(4, 8, 4);
    let pairs: Vec<_> = (0..1056).map(|host| (host, (host + 160) % 1056, 4 << 20, 0)).collect();
    let slim = slim_fly(9, 7);
    let over: Vec<_> = slim.adversarial_pairs(1).into_iter().map(|(from, to)| (from, to, 4 << 20, 0)).collect();
    for (graph, list, flows_per_link) in [(graph, pairs, 32.0), (slim, over, 7.0)] {
        let result = run(&spritz(graph, flows(&list), "minimal"));
        let last = result.flows.iter().map(|f| f.fct_rx.unwrap().as_us()).fold(0.0, f64::max);
        let bound = flows_per_link * 1024.0 * 0.0832;
        // 6 us for the path there; congestion control leaves the rest unused.
        assert!(last >= bound && last < 1.05 * bound + 6.0, "{last} {bound}");
    }
}

#[test]
fn every_scheme_delivers_everything_the_same_on_every_thread_count() {
    for graph in [dragonfly(2, 4, 2), slim_fly(4, 2)] {
        let traffic = permutation(&graph, 200_000, 3);
        for scheme in SCHEMES {
            let setup = spritz(graph.clone(), traffic.clone(), scheme);
            let one = run_in_every_mode(&setup, scheme);
            assert!(one.flows.iter().all(|f| f.fct_ack.is_some()), "{scheme}");
        }
    }
}

#[test]
fn ugal_may_decide_at_every_switch() {
    for graph in [dragonfly(2, 4, 2), slim_fly(5, 2)] {
        let mut setup = spritz(graph.clone(), permutation(&graph, 100_000, 1), "ugal-l");
        for knowledge in ["local", "global"] {
            let keys = format!("decide=every-switch knowledge={knowledge}");
            set_keys(setup.load_balancers[0].switch.parameters_mut(), &keys);
            assert!(run_in_every_mode(&setup, "ugal").flows.iter().all(|f| f.fct_ack.is_some()));
        }
    }
}

fn down(fraction: f64, affects: Affects) -> FaultParameters {
    FaultParameters { kind: FaultKind::LinkDown, fraction, directed: true, affects, ..FaultParameters::default() }
}

#[test]
fn spritz_steers_clear_of_dead_links() {
    // 5 % of the links between switches lose all data. Schemes without path feedback lose on them throughout; Spritz
    // loses a packet per path and round of its timer.
    let graph = dragonfly(2, 4, 2);
    let lost = |scheme: &str| {
        let setup = spritz(graph.clone(), permutation(&graph, 1 << 20, 3), scheme);
        let result = run(&with_fault(setup, down(0.05, Affects::Data)));
        assert!(result.flows.iter().all(|f| f.fct_ack.is_some()), "{scheme}");
        result.counters.dropped.unwrap()
    };
    let (ops, scout, spray) = (lost("ops-u"), lost("spritz-scout"), lost("spritz-spray-w"));
    assert!(scout * 2 < ops && spray * 2 < ops, "{ops} {scout} {spray}");
}

#[test]
fn replies_may_take_the_path_of_their_entropy_value() {
    // One packet per flow over the fastest path of its list. The reply's value chooses the ports of the first two switches
    // on the way back; from there the default tables lead. 64 B at 400 Gb/s are 1,280 ps; host and local links 25 ns, global
    // ones 500 ns, a switch 500 ns.
    let graph = dragonfly(2, 4, 2);
    let guide = graph.guide().unwrap();
    let (mut same, mut other) = (0, 0);
    for dst in (2..72).step_by(5) {
        let mut setup = spritz(graph.clone(), flows(&[(0, dst, 4096, 0)]), "spritz-spray-w");
        let host = setup.load_balancers[0].host.parameters_mut();
        set_keys(host, "max_paths=1");
        let minimal = run(&setup).flows[0].clone();
        set_keys(&mut setup.fabric, "reply_paths=scheme");
        let guided = run(&setup).flows[0].clone();
        assert_eq!(guided.fct_rx, minimal.fct_rx);
        let (from, to) = (graph.edge_switch(0), graph.edge_switch(dst));
        let paths = guide.paths(&graph, from, to, 4160);
        let ev = paths.first().map_or([0, 0], |path| path.ev);
        let (mut at, back, mut hop, mut over_local) = (to.0 - graph.hosts, from.0 - graph.hosts, 0, false);
        let (mut local, mut global) = (0, 0);
        while at != back {
            let port = guide.next_port(at, hop, over_local, ev, back);
            over_local = guide.is_local(at, port);
            (local, global) = (local + u64::from(over_local), global + u64::from(!over_local));
            (at, hop) = (guide.peer(at, port), hop + 1);
        }
        let way =
            (local + global + 2) * 1280 + (local + 2) * 25_000 + global * 500_000 + (local + global + 1) * 500_000;
        assert_eq!(guided.fct_ack.unwrap() - guided.fct_rx.unwrap(), Time::from_ps(way), "{dst}: {local} {global}");
        if guided.fct_ack == minimal.fct_ack { same += 1 } else { other += 1 }
    }
    assert!(same > 0 && other > 0, "{same} {other}");
}

#[test]
fn with_guided_replies_flows_end_where_links_lose_everything() {
    // 5 % of the links between switches lose data and replies. Where replies are minimal, a pair whose default path back is
    // dead never ends; where they are routed by their value, every scheme that changes paths ends.
    for graph in [dragonfly(2, 4, 2), slim_fly(5, 2)] {
        for scheme in ["spritz-scout", "spritz-spray-u", "spritz-spray-w", "ops-u", "valiant", "spritz-coarse"] {
            let unfinished = |reply_paths: &str, threads: usize| {
                let setup = spritz(graph.clone(), permutation(&graph, 1 << 20, 3), scheme);
                let mut setup = with_fault(setup, down(0.05, Affects::All));
                set_keys(&mut setup.fabric, &format!("reply_paths={reply_paths}"));
                setup.limits.time_limit = Time::from_ms(200);
                let result = run_on(&setup, threads);
                (result.flows.iter().filter(|f| f.fct_ack.is_none()).count(), result.fingerprint)
            };
            let guided = unfinished("scheme", 1);
            assert_eq!(guided.0, 0, "{scheme}");
            assert_eq!(guided, unfinished("scheme", 3), "{scheme}");
            assert!(unfinished("default", 1).0 > 0, "{scheme}");
        }
    }
}

#[test]
fn detected_failures_leave_tables_and_lists() {
    for graph in [dragonfly(2, 4, 2), slim_fly(5, 2)] {
        for scheme in SCHEMES {
            let setup = spritz(graph.clone(), permutation(&graph, 50_000, 3), scheme);
            let fault = FaultParameters { detect_after: Never::Value(Time::ZERO), ..down(0.04, Affects::All) };
            let result = run_in_every_mode(&with_fault(setup, fault), scheme);
            assert!(result.flows.iter().all(|f| f.fct_ack.is_some()), "{scheme}");
            // Valiant and UGAL draw ports, of which some are dead.
            if !["valiant", "ugal-l", "ugal-g", "reps+source-guided"].contains(&scheme) {
                assert_eq!(result.counters.dropped.unwrap(), 0, "{scheme}");
            }
        }
    }
}
