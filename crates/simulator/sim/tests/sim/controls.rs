//! Workloads with a congestion control of their own, and the queue where controls and marking rules settle.

use crate::common::*;
use anabranch_outcome::FlowRow;
use anabranch_topology::LinkId;
use anabranch_transport::TransportParameters;
use anabranch_units::Time;

fn with_control(transport: &TransportParameters, control: &str) -> TransportParameters {
    let mut own = transport.clone();
    set_keys(own.parameters_mut(), &format!("congestion_control={control}"));
    own
}

/// Two incasts under different leaves, which share no link: each flow's times are those of a run in which all flows have
/// its workload's control. With NSCC they differ from those without control.
#[test]
fn a_workload_has_the_times_of_its_own_control() {
    let keys = "leaves=2 spines=1 hosts_per_leaf=4";
    let graph = topology("leaf-spine", keys);
    let list: Vec<_> = [(1, 0), (2, 0), (3, 0), (5, 4), (6, 4), (7, 4)].map(|(src, dst)| (src, dst, 4 << 20, 0)).into();
    let mut set = flows(&list);
    let second = anabranch_workload::WorkloadInfo { name: "second".into(), ..set.workloads[0].clone() };
    set.workloads.push(second);
    set.flows.iter_mut().filter(|flow| flow.dst == 4).for_each(|flow| flow.workload = 1);
    let times = |main: &str, own: Option<&str>, threads: usize| {
        let mut setup = setup(graph.clone(), set.clone(), "ecmp");
        setup.transport = with_control(&setup.transport, main);
        let own = own.map(|control| (1, with_control(&setup.transport, control)));
        setup.own_transports = own.into_iter().collect();
        run_on(&setup, threads).flows.iter().map(|flow: &FlowRow| (flow.fct_rx, flow.fct_ack)).collect::<Vec<_>>()
    };
    let (nscc, none) = (times("nscc", None, 1), times("none", None, 1));
    assert!(nscc[..3] != none[..3] && nscc[3..] != none[3..]);
    let mixed = times("nscc", Some("none"), 1);
    assert_eq!((&mixed[..3], &mixed[3..]), (&nscc[..3], &none[3..]));
    assert_eq!(times("none", Some("nscc"), 1), [&none[..3], &nscc[3..]].concat());
    assert_eq!(times("nscc", Some("none"), 2), mixed);
    assert_eq!(times("nscc", Some("nscc"), 1), nscc);
}

/// Mean queue in bytes before the receiver of long flows from `senders` hosts, over 100 Gb/s links, under DCTCP; over the last
/// 8 of 20 ms.
fn settled_queue(senders: u32, marking: &str, reference: &str) -> u64 {
    let keys = "leaves=2 spines=1 hosts_per_leaf=33 link_rate=100Gbps link_delay=10us";
    let list: Vec<_> = (1..=senders).map(|src| (src, 0, 1 << 30, 0)).collect();
    let mut setup = setup(topology("leaf-spine", keys), flows(&list), "ecmp");
    setup.transport = with_control(&setup.transport, "dctcp");
    set_keys(&mut setup.fabric, &format!("marking={marking}"));
    set_keys(setup.marking.parameters_mut("pi").unwrap(), &format!("reference={reference}"));
    // The first windows of all fit: nothing is trimmed.
    set_keys(&mut setup.fabric, "queue_limit=100bdp");
    setup.limits.time_limit = Time::from_ms(20);
    let to_receiver = setup.topology.links.iter().position(|link| link.to.0 == 0).unwrap();
    setup.measure.series_links = vec![LinkId(to_receiver as u32)];
    setup.measure.series_interval = Time::from_us(1);
    let samples = run(&setup).series[0].samples.clone();
    let last: Vec<u64> = samples.iter().filter(|s| s.time > Time::from_ms(12)).map(|s| s.queue_bytes).collect();
    assert!(last.len() > 7_000, "{}", last.len());
    last.iter().sum::<u64>() / last.len() as u64
}

/// The controller integrates the distance to its reference, which is therefore zero in any steady state, for any number of
/// flows. More flows need more marks, which RED gives for a longer queue alone.
#[test]
fn pi_holds_its_reference_under_any_number_of_flows() {
    for (senders, reference) in [(4, 100_000), (32, 100_000), (8, 250_000)] {
        let mean = settled_queue(senders, "pi", &format!("{reference}B"));
        assert!(mean.abs_diff(reference) < reference / 10, "{senders} flows: {mean} B, expected {reference} B");
    }
    let [few, many] = [4, 32].map(|senders| settled_queue(senders, "red", "100kB"));
    assert!(many > few + few / 4, "{few} and {many} B");
}
