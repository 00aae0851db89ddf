//! Workloads with a congestion control of their own.

use crate::common::*;
use anabranch_outcome::FlowRow;
use anabranch_settings::Raw;
use anabranch_transport::TransportParameters;

fn with_control(transport: &TransportParameters, control: &str) -> TransportParameters {
    let mut own = transport.clone();
    own.parameters_mut().set("congestion_control", &text(control)).unwrap();
    own
}

/// Two incasts under different leaves, which share no link: each flow's times are those of a run in which all flows have
/// its workload's control. With NSCC they differ from those without control.
#[test]
fn a_workload_has_the_times_of_its_own_control() {
    let keys = [("leaves", Raw::Int(2)), ("spines", Raw::Int(1)), ("hosts_per_leaf", Raw::Int(4))];
    let graph = topology("leaf-spine", &keys);
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
        let result = anabranch_sim::run(&setup, threads, &mut |_| true).unwrap();
        result.flows.iter().map(|flow: &FlowRow| (flow.fct_rx, flow.fct_ack)).collect::<Vec<_>>()
    };
    let (nscc, none) = (times("nscc", None, 1), times("none", None, 1));
    assert!(nscc[..3] != none[..3] && nscc[3..] != none[3..]);
    let mixed = times("nscc", Some("none"), 1);
    assert_eq!((&mixed[..3], &mixed[3..]), (&nscc[..3], &none[3..]));
    assert_eq!(times("none", Some("nscc"), 1), [&none[..3], &nscc[3..]].concat());
    assert_eq!(times("nscc", Some("none"), 2), mixed);
    assert_eq!(times("nscc", Some("nscc"), 1), nscc);
}
