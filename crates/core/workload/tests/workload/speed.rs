//! Time to generate many flows: `cargo test --release -p anabranch-workload -- --ignored`.

use anabranch_random::mix;
use anabranch_units::{Rate, Time};
use anabranch_workload::{
    AllToAllParameters, FileParameters, GeneratedAs, HostView, PoissonParameters, Ranks, Start, WorkloadParameters,
    generate,
};
use std::{fmt::Write, time::Instant};

fn view(hosts: u32) -> HostView {
    HostView {
        hosts,
        leaf_of: (0..hosts).map(|h| h / 32).collect(),
        group_of: (0..hosts).map(|h| h / 512).collect(),
        host_key: (0..hosts).map(|h| mix(u64::from(h) + 1)).collect(),
        nic_rate: vec![Rate::gbps(400); hosts as usize],
        oversubscription: 1.0,
        classes: vec!["data".into()],
        flow_memory: u64::MAX,
        low_diameter: None,
        servers: None,
        templates: false,
    }
}

#[test]
#[ignore = "a matter of speed, for a release build"]
fn a_million_flows_in_a_second() {
    let sent_as = |name: &str| GeneratedAs {
        name: name.into(),
        class: 0,
        load_balancer: 0,
        measured: true,
        split: Some((
            0.1,
            Box::new(GeneratedAs { name: "rest".into(), class: 0, load_balancer: 0, measured: true, split: None }),
        )),
    };
    // 8192 hosts * 400 Gb/s * 0.5 / (121,849 B * 8) = 1.68e9 flows per second.
    let poisson = WorkloadParameters::Poisson(PoissonParameters {
        sizes: "hadoop".into(),
        duration: Time::from_us(600),
        ..Default::default()
    });
    let all_to_all = WorkloadParameters::AllToAll(AllToAllParameters {
        ranks: Ranks::Number(1001),
        parallel: 4,
        ..Default::default()
    });
    let file = WorkloadParameters::File(FileParameters { path: "flows.csv".into(), ..Default::default() });
    let view = view(8192);
    let mut csv = String::from("src,dst,size_bytes,start_ps\n");
    for (name, kind) in [("poisson", poisson), ("all-to-all", all_to_all), ("csv", file)] {
        let begin = Instant::now();
        let set = generate(&[(kind, sent_as(name))], &view, 1, &|_| Ok(csv.clone().into_bytes())).unwrap();
        let took = begin.elapsed();
        println!("{name}: {} flows in {took:?}", set.flows.len());
        assert!(set.flows.len() >= 990_000 && took.as_secs_f64() < 1.0);
        if name == "poisson" {
            for flow in set.flows.iter().rev() {
                let Start::At(at) = flow.start else { continue };
                writeln!(csv, "{},{},{},{}", flow.src, flow.dst, flow.size, at.ps()).unwrap();
            }
        }
    }
}

#[test]
#[ignore = "a matter of speed, for a release build"]
fn a_schedule_of_a_million_operations_in_seconds() {
    // 1000 ranks, each 250 times: receive from the left, compute, send to the right.
    let ranks = 1000;
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        writeln!(text, "rank {rank} {{").unwrap();
        for step in 0..250 {
            writeln!(text, "r{step}: recv 4096b from {} tag {step}", (rank + ranks - 1) % ranks).unwrap();
            writeln!(text, "c{step}: calc 100 cpu 0\nd{step}: calc 100 cpu 1").unwrap();
            writeln!(text, "s{step}: send 4096b to {} tag {step} cpu 0 nic 0", (rank + 1) % ranks).unwrap();
            if step > 0 {
                writeln!(text, "c{step} requires r{}\ns{step} requires c{step}\ns{step} irequires d{step}", step - 1)
                    .unwrap();
            }
        }
        text.push_str("}\n");
    }
    let kind = WorkloadParameters::File(FileParameters { path: "ring.goal".into(), ..Default::default() });
    let sent_as = GeneratedAs { name: "goal".into(), class: 0, load_balancer: 0, measured: true, split: None };
    let begin = Instant::now();
    let set = generate(&[(kind, sent_as)], &view(8192), 1, &|_| Ok(text.clone().into_bytes())).unwrap();
    let took = begin.elapsed();
    println!("goal: {} flows, {} triggers in {took:?}", set.flows.len(), set.triggers.len());
    assert!(set.flows.len() == 250_000 && took.as_secs_f64() < 5.0);
}
