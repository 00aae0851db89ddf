//! Windows, limits and timeouts follow the pair of hosts and the port, regardless of other links and of names.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_lb::CallEvent;
use anabranch_outcome::RunResult;
use anabranch_settings::Auto;
use anabranch_topology::{Fault, FaultAction, LinkOverride, Topology};
use anabranch_units::{Rate, Time};
use proptest::prelude::*;

const LEAVES: u32 = 3;
const SPINES: u64 = 4;

fn leaf_spine(hosts_per_leaf: u32, rate: &str, delay: &str) -> Topology {
    let keys =
        format!("leaves={LEAVES} spines={SPINES} hosts_per_leaf={hosts_per_leaf} link_rate={rate} link_delay={delay}");
    topology("leaf-spine", &keys)
}

fn change(topology: &mut Topology, link: &str, rate: Rate, delay: Time) {
    let change = LinkOverride { link: Some(link.into()), rate: Some(rate), delay: Some(delay), ..Default::default() };
    topology.apply(&change).expect("a link");
}

fn rows(result: &RunResult) -> Vec<(Option<Time>, Option<Time>, Time)> {
    result.flows.iter().map(|flow| (flow.fct_rx, flow.fct_ack, flow.ideal_rx)).collect()
}

/// A run under one of several transports and window rules, with this many packets per acknowledgement.
fn under(topology: Topology, sent: anabranch_workload::FlowSet, kind: usize, ack_every: u32, scheme: &str) -> Setup {
    if kind >= 4 {
        let mut setup = roce_setup(topology, sent, "ecmp", Profile::Irn);
        set_keys(roce(&mut setup), &format!("congestion_control={}", ["dcqcn", "swift"][kind - 4]));
        return setup;
    }
    let mut setup = setup(topology, sent, scheme);
    let control = ["nscc", "dctcp", "smartt", "none"][kind];
    set_keys(uet(&mut setup), &format!("congestion_control={control}"));
    uet(&mut setup).ack_every = ack_every;
    setup
}

/// Flows from many hosts of leaf 1, and of leaf 2 where `mixed`, to the last host of leaf 1.
fn incast(hosts_per_leaf: u32, mixed: bool, size: u64) -> anabranch_workload::FlowSet {
    let to = 2 * hosts_per_leaf - 1;
    let from = hosts_per_leaf..if mixed { 3 * hosts_per_leaf } else { to };
    flows(&from.filter(|host| *host != to).map(|host| (host, to, size, u64::from(host))).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A cable that no flow can reach has no effect, whichever it is.
    #[test]
    fn links_that_no_flow_meets_change_nothing(
        hosts in 3u32..10, kind in 0usize..5, ack_every in 1u32..9, spine in 0..SPINES, size in 1u64..400_000,
        mixed in any::<bool>(), mbps in 100u64..1_000_000, delay_ns in 0u64..200_000, scheme in 0usize..3,
    ) {
        let scheme = ["ops", "reps", "prime"][scheme];
        let fabric = leaf_spine(hosts, "100Gbps", "500ns");
        let mut other = fabric.clone();
        // Leaf 0 sends and receives nothing.
        change(&mut other, &format!("leaf0-spine{spine}"), Rate(mbps * 1_000_000), Time::from_ns(delay_ns));
        let [plain, odd] =
            [fabric, other].map(|fabric| run(&under(fabric, incast(hosts, mixed, size), kind, ack_every, scheme)));
        prop_assert_eq!(rows(&plain), rows(&odd));
    }

    /// Schemes count with the fastest path, which a host measures, as long as one spine is healthy: 4160 B and 64 B at 80 ps per
    /// byte, and 500 ns in both directions, over four links, are 5351.68 ns.
    #[test]
    fn schemes_count_with_the_fastest_path(
        healthy in 0..SPINES, slow in prop::collection::vec((1u64..100, 0u64..200_000), SPINES as usize), leaf in 0u32..2,
    ) {
        let mut fabric = leaf_spine(2, "100Gbps", "500ns");
        for (spine, (gbps, delay)) in slow.into_iter().enumerate().filter(|(spine, _)| *spine as u64 != healthy) {
            change(&mut fabric, &format!("leaf{leaf}-spine{spine}"), Rate::gbps(gbps), Time::from_ns(500 + delay));
        }
        let mut setup = setup(fabric, flows(&[(0, 2, 100_000, 0)]), "flowlet");
        (setup.measure.trace_flows, setup.measure.trace_scheme, setup.measure.trace_limit) = (vec![0], true, 1);
        let result = run(&setup);
        let CallEvent::Open(flow) = &result.watched.schemes[0].call.event else { panic!("no flow") };
        // 66,896 B of 4160 B each.
        prop_assert_eq!((flow.info().base_rtt, flow.info().bdp_packets), (Time::from_ps(5_351_680), 17));
    }

    /// Where switches trim and nothing is dropped, nothing times out, under every window rule, also where a link is slow in
    /// one direction for a while.
    #[test]
    fn nothing_times_out_where_nothing_is_lost(
        hosts in 3u32..20, kind in 0usize..4, ack_every in 1u32..17, size in 1u64..1_500_000, mixed in any::<bool>(),
        slow in 1u64..101, scheme in 0usize..3, seed in any::<u64>(), weights in 0usize..3,
        degraded in prop::option::of((any::<Option<prop::sample::Index>>(), 20_000_000u64..100_000_000_000, 0u64..100)),
    ) {
        let scheme = ["ops", "reps", "prime"][scheme];
        let mut fabric = leaf_spine(hosts, "100Gbps", "500ns");
        change(&mut fabric, "leaf2-spine1", Rate::gbps(slow), Time::from_us(1));
        let mut set = incast(hosts, mixed, size);
        if weights > 0 {
            set.flows.iter_mut().for_each(|flow| flow.class = (flow.src % 2) as u8);
        }
        let links: Vec<_> = fabric.link_ids().collect();
        // Half of the time the uplink of the receiver, where replies to all senders wait behind one another.
        let replies = fabric.host_uplink(2 * hosts - 1);
        let mut setup = Setup { seed, ..under(fabric, set, kind, ack_every, scheme) };
        setup.faults.extend(degraded.map(|(link, rate, at)| Fault {
            at: Time::from_us(at),
            action: FaultAction::Degrade(Rate(rate)),
            links: vec![link.map_or(replies, |link| links[link.index(links.len())])],
            number: Some(0),
            data_only: false,
            detect_at: None,
            port_detect_at: [None; 2],
        }));
        if weights > 0 {
            setup.fabric.classes = vec!["first".into(), "second".into()];
            set_keys(&mut setup.fabric, &format!("scheduling={}", ["", "strict", "wrr"][weights]));
            setup.fabric.class_weights = if weights == 2 { vec![9, 1] } else { vec![] };
        }
        let result = run(&setup);
        prop_assert!(result.flows.iter().all(|flow| flow.fct_ack.is_some()));
        prop_assert!(result.counters.dropped > Some(0) || result.counters.timeouts == Some(0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However many messages go to one host, headers of trimmed packets take no more than their share: data has the rest.
    #[test]
    fn trimmed_headers_do_not_starve_data(
        messages in 1u32..4_000, share in prop_oneof![Just(0.05), Just(0.25), Just(0.5)], scheme in 0usize..3, seed: u64,
    ) {
        let list: Vec<_> = (0..messages).map(|message| (1 + message % 127, 0, 20_000, u64::from(message))).collect();
        let mut setup = setup(leaf_spine_128(), flows(&list), ["ops", "reps", "prime"][scheme]);
        setup.seed = seed;
        set_keys(&mut setup.fabric, &format!("trimmed_class={share}"));
        let result = run(&setup);
        prop_assert!(result.flows.iter().all(|flow| flow.fct_ack.is_some()));
        // Five packets per message, with their headers on the wire; 100 us for the first and the last packets and timeouts.
        let wire = Rate::gbps(100).wire_time(u64::from(messages) * (20_000 + 5 * 64));
        let allowed = wire.ps() as f64 / (1.0 - share) * 1.05 + 100e6;
        prop_assert!((result.simulated.ps() as f64) < allowed, "{}, allowed {allowed} ps", result.simulated);
    }
}

/// Headers that precede data starve it; a run that stalls names the port.
#[test]
fn a_stall_names_the_port_full_of_headers() {
    let list: Vec<_> = (0..4_000).map(|message| (1 + message % 127, 0, 20_000, u64::from(message))).collect();
    let mut setup = setup(leaf_spine_128(), flows(&list), "ops");
    set_keys(&mut setup.fabric, "trimmed_class=control");
    setup.limits.stall_after = Some(4);
    let result = run(&setup);
    let (port, bytes) = result.stalled_port.clone().expect("a stall");
    assert!(port == "leaf0->host0" && bytes > 10_000, "{port}, {bytes} B");
}

/// Schemes of every kind: by hash, by index, by queue, by flowlet, with and without memory. Not CONGA, which by default
/// compares four paths in a row, as the recorded model does: the first and the last of all paths are compared less often.
const SCHEMES: [&str; 12] =
    ["ops", "reps", "prime", "co-prime", "ecmp", "ar", "drill", "letflow", "flowbender", "plb", "hopper", "qp-spray"];

/// Mean and slowest completion times of seeds, each with the mean and the variance of that mean.
fn distribution(runs: impl Iterator<Item = Setup>) -> [(f64, f64); 2] {
    let (mut means, mut slowest) = (Vec::new(), Vec::new());
    for setup in runs {
        let times: Vec<f64> = run(&setup).flows.iter().map(|flow| flow.fct_rx.expect("complete").ps() as f64).collect();
        means.push(times.iter().sum::<f64>() / times.len() as f64);
        slowest.push(times.into_iter().fold(0.0, f64::max));
    }
    [means, slowest].map(|values| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, squares / (count - 1.0) / count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Other names for equals, and another order of the flows that follows from them, give the same distribution of times over
    /// seeds: leaves, spines, parallel cables (one of which is slow) and hosts. Within five deviations of a difference of
    /// means, or a thousandth.
    #[test]
    fn names_of_equals_do_not_matter(
        leaves in Just([0u32, 1, 2]).prop_shuffle(), spine in 0..SPINES, second: bool,
        hosts in Just([0u32, 1, 2, 3]).prop_shuffle(), kind in 0usize..5, scheme in 0..SCHEMES.len(), size in 20_000u64..400_000,
    ) {
        const HOSTS: u32 = 4;
        let keys = format!("leaves={LEAVES} spines={SPINES} hosts_per_leaf={HOSTS} links_per_spine=2 link_rate=100Gbps");
        let setup = |leaves: [u32; 3], spine: u64, second: bool, hosts: [u32; 4], seed: u64| {
            let mut fabric = topology("leaf-spine", &keys);
            let cable = format!("leaf{}-spine{spine}{}", leaves[0], if second { "#1" } else { "" });
            change(&mut fabric, &cable, Rate::gbps(20), Time::from_us(1));
            let host = |leaf: u32, host: u32| leaves[leaf as usize] * HOSTS + hosts[host as usize];
            // Between leaves, within one, and an incast.
            let mut list: Vec<_> = (0..HOSTS).map(|i| (host(0, i), host(1, (i + 1) % HOSTS), size, 0)).collect();
            list.extend((0..2).map(|i| (host(2, i), host(2, i + 2), size, 0)));
            list.extend((0..3).map(|i| (host(2, i), host(0, 3), size / 2, 1_000_000)));
            Setup { seed, ..under(fabric, flows(&list), kind, 4, SCHEMES[scheme]) }
        };
        let one = distribution((0..40).map(|seed| setup([0, 1, 2], 0, false, [0, 1, 2, 3], seed)));
        let other = distribution((100..140).map(|seed| setup(leaves, spine, second, hosts, seed)));
        for (one, other) in one.into_iter().zip(other) {
            let allowed = 5.0 * (one.1 + other.1).sqrt() + one.0 / 1000.0;
            prop_assert!((one.0 - other.0).abs() < allowed, "{} and {}, allowed {allowed} ps", one.0, other.0);
        }
    }
}

/// One flow alone fills its links: its last byte arrives at the closed form, and nothing is retransmitted. Two hosts of a
/// switch, with d of delay per link and w of wire time per full packet: 2 (w + d) for the first packet, then w for each other.
#[test]
fn a_lone_flow_fills_links_of_any_rate_and_length() {
    let rates = ["1Mbps", "1Gbps", "10Gbps", "100Gbps", "400Gbps", "3.2Tbps"];
    let delays = ["10ns", "50ns", "1us", "500us", "2ms", "10ms", "50ms"];
    for (rate, delay) in rates.iter().flat_map(|rate| delays.iter().map(move |delay| (*rate, *delay))) {
        let packets = if rate == "1Mbps" { 40 } else { 1000 };
        for kind in 0..6 {
            let (payload, header) = if kind >= 4 { (1000, 48) } else { (4096, 64) };
            let fabric = leaf_spine(2, rate, delay);
            let link = fabric.link(fabric.host_uplink(0)).rate;
            let mut setup = under(fabric, flows(&[(0, 1, packets * payload, 0)]), kind, 4, "ops");
            setup.limits.time_limit = Time::from_ms(100_000);
            setup.limits.stall_after = Some(4);
            let result = run(&setup);
            let wire = link.wire_time(payload + header);
            let first = (wire + delay.parse::<Time>().unwrap()) * 2;
            // At 3.2 Tb/s a packet takes no whole number of picoseconds: the rest carries over.
            let expected = first + link.wire_time((payload + header) * (packets - 1));
            let found = result.flows[0].fct_rx.expect("complete");
            let off = found.ps().abs_diff(expected.ps());
            assert!(off <= 2, "{rate}, {delay}, transport {kind}: {found}, expected {expected}");
            assert_eq!(result.counters.retransmitted, Some(0), "{rate}, {delay}, transport {kind}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A flow alone with default windows takes the closed form over two or four links, whose NIC may be faster than the links
    /// between switches, with any last packet, and nothing is trimmed, dropped or retransmitted.
    #[test]
    fn a_lone_flow_takes_its_ideal_time(
        gbps in prop_oneof![Just(1i64), Just(10), Just(25), Just(100)], faster in prop_oneof![Just(1i64), Just(2), Just(10), Just(128)],
        bdp in 1u64..40, kind in 0usize..6, ack_every in prop_oneof![1u32..9, Just(64)], size in 1u64..2_000_000, far in any::<bool>(),
    ) {
        let packet = if kind >= 4 { 1048 } else { 4160 };
        // Of about `bdp` packets over four links.
        let delay = packet * 8 * bdp / (8 * gbps as u64);
        let keys = format!("leaves=2 spines=1 hosts_per_leaf=2 link_rate={gbps}Gbps host_link_rate={}Gbps link_delay={delay}ns", gbps * faster);
        let set = flows(&[(0, if far { 2 } else { 1 }, size, 0)]);
        let result = run(&under(topology("leaf-spine", &keys), set, kind, ack_every, "ops"));
        let (flow, counters) = (&result.flows[0], &result.counters);
        let lost = [counters.trimmed, counters.dropped, counters.retransmitted].map(Option::unwrap_or_default);
        prop_assert_eq!(lost, [0, 0, 0]);
        let (taken, ideal) = (flow.fct_rx.expect("complete").ps(), flow.ideal_rx.ps());
        // Times round to picoseconds at each link and packet. Marks of the first window hold back the window rules that follow
        // them, SMaRTT most where few acknowledgements come. DCTCP halves 1.5 BDP: three quarters of the rate are left; an
        // acknowledgement that waits for more packets than are in flight is late by `ack_delay`, a base round trip.
        let round_trip = 8_000 * delay + 4 * packet * 8_000 / gbps as u64;
        let allowed = 10 + [ideal / 3, ideal / 3 + round_trip, ideal, 0, 0, 0][kind];
        prop_assert!(taken <= ideal + allowed, "{taken}, ideal {ideal}");
    }

    /// All hosts of a ring send to the next: each flow takes its ideal time, the wire times of the acknowledgements that share its
    /// links, and the waits of two round trips, however few packets the BDP has.
    #[test]
    fn a_ring_fills_links_of_few_packets(
        gbps in prop_oneof![Just(10i64), Just(100), Just(400)], bdp in 0u64..14, kind in 0usize..6, ack_every in 1u32..5, leaves in 1u64..3,
    ) {
        let (packet, ack) = if kind >= 4 { (1048, 60 * u64::from(ack_every)) } else { (4160, 64) };
        let delay = packet * 8 * bdp / (4 * leaves * gbps as u64);
        let keys = format!("leaves={leaves} spines=1 hosts_per_leaf={} link_rate={gbps}Gbps link_delay={delay}ns host_link_rate={gbps}Gbps", 8 / leaves);
        let size = 500 * (packet - if kind >= 4 { 48 } else { 64 });
        let set = flows(&(0..8).map(|host| (host, (host + 1) % 8, size, 0)).collect::<Vec<_>>());
        let result = run(&under(topology("leaf-spine", &keys), set, kind, ack_every, "ops"));
        for flow in &result.flows {
            let (taken, ideal) = (flow.fct_rx.expect("complete").ps(), flow.ideal_rx.ps());
            let wire = packet * 8_000 / gbps as u64;
            let acks = 500 * ack * 8_000 / gbps as u64 / u64::from(ack_every);
            prop_assert!(taken <= ideal + acks + 2 * (bdp + 4 * leaves) * wire, "{taken}, ideal {ideal}, {acks} of ACKs, {wire} each");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What the check accepts delivers the packets of a lone flow, at any rates of ports and limits of their queues.
    #[test]
    fn queues_that_pass_the_check_admit_packets(
        gbps in 1i64..400, faster in 1i64..300, limit in -6.0f64..1.0, pooled in any::<bool>(),
    ) {
        let keys = format!("leaves=2 spines=1 hosts_per_leaf=1 link_rate={gbps}Gbps host_link_rate={}Gbps", gbps * faster);
        let set = flows(&[(0, 1, 40_960, 0)]);
        let fabric = topology("leaf-spine", &keys);
        let mut setup =
            if pooled { roce_setup(fabric, set, "ecmp", Profile::Irn) } else { setup(fabric, set, "ecmp") };
        let limit = 10f64.powf(limit);
        match pooled {
            true => setup.fabric.buffer_alpha = limit,
            false => set_keys(&mut setup.fabric, &format!("queue_limit={limit:.6}bdp")),
        }
        setup.limits.stall_after = Some(4);
        match anabranch_fabric::check(&setup, &mut || true) {
            Ok(()) => prop_assert!(run(&setup).flows[0].fct_ack.is_some()),
            Err(error) => prop_assert!(error.to_string().contains("no full packet ("), "{error}"),
        }
    }
}

/// Two links of 10 ms: a reply takes 40 ms. `uet` refuses a shorter timeout; that of `roce` is lengthened.
#[test]
fn no_timeout_is_shorter_than_a_round_trip() {
    let fabric = || leaf_spine(2, "1Gbps", "10ms");
    let sent = || flows(&[(0, 1, 40_960, 0)]);
    let mut short = setup(fabric(), sent(), "ops");
    uet(&mut short).rto = Auto::Value(Time::from_ms(39));
    let error = refused(&short).to_string();
    assert!(error.contains("transport.rto: found 39ms") && error.contains("base round trip"), "{error}");
    let mut irn = roce_setup(fabric(), sent(), "ecmp", Profile::Irn);
    set_keys(roce(&mut irn), "rto_low=100us rto_high=100us");
    assert_eq!(run(&irn).counters.retransmitted, Some(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A window is reported as too short exactly if a lone long flow is slower than over its link alone; the window named fills it.
    #[test]
    fn short_windows_are_reported(
        mbps in 1_000u64..900_000, delay_ns in 1u64..20_000, ack_every in 1u32..17, packets in 1u64..80, far in any::<bool>(),
        is_roce in any::<bool>(),
    ) {
        // Pacing rounds at each packet, but not at these rates.
        let paced = [1_000, 10_000, 25_000, 40_000, 100_000, 200_000, 400_000, 800_000];
        let mbps = if is_roce { paced[mbps as usize % paced.len()] } else { mbps };
        let fabric = leaf_spine(2, &format!("{mbps}Mbps"), &format!("{delay_ns}ns"));
        let lone = |window: u64, size: u64| {
            let set = flows(&[(0, if far { 2 } else { 1 }, size, 0)]);
            if is_roce {
                let mut setup = roce_setup(fabric.clone(), set, "ecmp", Profile::Irn);
                set_keys(&mut setup.fabric, "ecn=false");
                let keys = format!("congestion_control=none rto_low=1s rto_high=1s window={window}B");
                set_keys(roce(&mut setup), &keys);
                return setup;
            }
            let mut setup = unconstrained(setup(fabric.clone(), set, "ecmp"));
            set_keys(uet(&mut setup), &format!("rto=1s window={window}B"));
            uet(&mut setup).ack_every = ack_every;
            setup
        };
        let packet = if is_roce { 1000 } else { 4160 };
        let is_slow = |setup: &Setup| {
            let flow = &run(setup).flows[0];
            // Times round to picoseconds at each link.
            flow.fct_rx.unwrap() > flow.ideal_rx + Time::from_ps(10)
        };
        let size = 3_000_000;
        let short = lone(packets * packet, size);
        let reported = anabranch_fabric::short_window(&short);
        prop_assert_eq!(reported.is_some(), is_slow(&short), "{:?}", reported);
        if let Some(text) = reported {
            let filling: u64 = text.rsplit('"').nth(1).and_then(|bytes| bytes.strip_suffix('B')?.parse().ok()).expect("bytes");
            prop_assert!(!is_slow(&lone(filling, size)));
            prop_assert_eq!(anabranch_fabric::short_window(&lone(filling, size)), None);
        }
        prop_assert_eq!(anabranch_fabric::short_window(&lone(packets * packet, packets * packet / 2)), None, "short flows");
    }
}
