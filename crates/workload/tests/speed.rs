//! How long it takes to make many flows: `cargo test --release -p anabranch-workload -- --ignored`.

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
