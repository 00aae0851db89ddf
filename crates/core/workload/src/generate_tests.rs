use super::*;
use crate::{
    Algorithm, AllToAllParameters, CollectiveParameters, FileParameters, IncastParameters, Members,
    MicrobenchmarkParameters, PermutationParameters, PoissonParameters, Ranks, Scope, TriggerKind,
    kinds::{
        adversarial::tests::low_diameter,
        testing::{self, view},
    },
};
use anabranch_settings::Auto;
use anabranch_units::{Bytes, Rate, Time};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    time::Instant,
};

fn sent_as(name: &str) -> GeneratedAs {
    GeneratedAs { name: name.into(), class: 0, load_balancer: 0, measured: true, split: None }
}

fn poisson(load: f64) -> WorkloadParameters {
    WorkloadParameters::Poisson(testing::of::<PoissonParameters>(&format!(
        "load={load} sizes=google-rpc duration=200us"
    )))
}

fn permutation(rounds: u32) -> WorkloadParameters {
    WorkloadParameters::Permutation(testing::of::<PermutationParameters>(&format!("rounds={rounds}")))
}

fn all_to_all(ranks: u32, parallel: u32) -> WorkloadParameters {
    WorkloadParameters::AllToAll(AllToAllParameters { ranks: Ranks::Number(ranks), parallel, ..Default::default() })
}

fn file(path: &str) -> WorkloadParameters {
    WorkloadParameters::File(FileParameters { path: path.into(), ..Default::default() })
}

const FLOWS_CSV: &str = "src,dst,size_bytes,start_ps,workload,class\n\
    3,4,10,9,,\n0,1,11,5,web,bulk\n0,1,12,5,,\n0,1,13,5,web,data\n2,1,14,0,mine,bulk\n";
const FLOWS_CM: &str =
    "Nodes 4\nConnections 1\nFailures 1\n0->1 start 0 size 5\nfailure switch_type TOR switch_id 0 link_id 1\n";

fn files(path: &str) -> std::io::Result<Vec<u8>> {
    match path {
        "flows.csv" => Ok(FLOWS_CSV.into()),
        "flows.cm" => Ok(FLOWS_CM.into()),
        _ => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "not found")),
    }
}

fn make(list: &[(WorkloadParameters, GeneratedAs)]) -> FlowSet {
    generate(list, &view(16, 4, 2), 1, &files).unwrap()
}

/// Returns flows by key, without what the merge numbers.
fn of(set: &FlowSet, name: &str) -> BTreeMap<u64, (u32, u32, u64, Option<Time>, u8)> {
    let number = set.workloads.iter().position(|w| w.name == name).unwrap() as u16;
    let own = set.flows.iter().filter(|f| f.workload == number);
    own.map(|f| {
        let at = if let Start::At(at) = f.start { Some(at) } else { None };
        (f.key, (f.src, f.dst, f.size, at, f.class))
    })
    .collect()
}

fn check(set: &FlowSet, hosts: u32) {
    let timed = set.flows.iter().take_while(|f| matches!(f.start, Start::At(_))).count();
    assert!(set.flows[timed..].iter().all(|f| matches!(f.start, Start::On(_))));
    let order = |f: &Flow| (if let Start::At(at) = f.start { at } else { Time::MAX }, f.src, f.dst);
    assert!(set.flows[..timed].windows(2).all(|pair| order(&pair[0]) <= order(&pair[1])));
    let mut started_by = vec![None; set.flows.len()];
    for (number, trigger) in (0..).zip(&set.triggers) {
        assert!(!trigger.targets.is_empty());
        for &target in &trigger.targets {
            assert_eq!(started_by[target as usize].replace(TriggerId(number)), None);
        }
    }
    let mut keys = BTreeSet::new();
    for (flow, trigger) in set.flows.iter().zip(started_by) {
        assert!(flow.src != flow.dst && flow.src < hosts && flow.dst < hosts && flow.size > 0);
        assert!((flow.workload as usize) < set.workloads.len() && keys.insert(flow.key));
        assert_eq!(trigger, if let Start::On(trigger) = flow.start { Some(trigger) } else { None });
        for done in [flow.on_sent, flow.on_received].into_iter().flatten() {
            assert!((done.0 as usize) < set.triggers.len());
        }
    }
}

#[test]
fn another_workload_changes_no_other() {
    let alone = make(&[(poisson(0.5), sent_as("web"))]);
    let together = make(&[
        (permutation(2), sent_as("ring")),
        (poisson(0.8), sent_as("more")),
        (poisson(0.5), sent_as("web")),
        (all_to_all(5, 2), sent_as("a2a")),
    ]);
    check(&alone, 16);
    check(&together, 16);
    assert!(alone.flows.len() > 1000);
    assert_eq!(of(&alone, "web"), of(&together, "web"));
    assert_eq!(of(&make(&[(permutation(2), sent_as("ring"))]), "ring"), of(&together, "ring"));
    assert_ne!(of(&make(&[(poisson(0.5), sent_as("web2"))]), "web2"), of(&alone, "web"));
    let reseeded = generate(&[(poisson(0.5), sent_as("web"))], &view(16, 4, 2), 2, &files).unwrap();
    assert_ne!(reseeded.flows, alone.flows);
}

#[test]
fn triggers_point_at_the_same_flows_after_sorting() {
    let set =
        make(&[(poisson(0.5), sent_as("web")), (all_to_all(6, 2), sent_as("a2a")), (permutation(3), sent_as("p"))]);
    check(&set, 16);
    let [a2a, p] = ["a2a", "p"].map(|n| set.workloads.iter().position(|w| w.name == n).unwrap() as u16);
    for (number, trigger) in (0..).zip(&set.triggers) {
        let feeds: Vec<&Flow> = set.flows.iter().filter(|f| f.on_sent == Some(TriggerId(number))).collect();
        match trigger.kind {
            TriggerKind::Multishot => {
                let src = feeds[0].src;
                // Five messages per rank, two at once, three wait, in the shifted order.
                assert_eq!((feeds.len(), trigger.targets.len()), (5, 3));
                let peers: Vec<u32> = trigger.targets.iter().map(|&t| set.flows[t as usize].dst).collect();
                assert_eq!(peers, (3..6).map(|step| (src + step) % 6).collect::<Vec<_>>());
                assert!(trigger.targets.iter().all(|&t| set.flows[t as usize].src == src));
                assert!(feeds.iter().all(|f| f.src == src && f.workload == a2a));
            }
            kind => {
                assert_eq!((kind, feeds.len(), trigger.targets.len()), (TriggerKind::Barrier(16), 16, 16));
                assert!(trigger.targets.iter().all(|&t| set.flows[t as usize].workload == p));
            }
        }
    }
    assert_eq!(set.triggers.len(), 6 + 2);
}

#[test]
fn a_split_takes_exactly_its_share_and_changes_no_flow() {
    let mut whole = sent_as("p");
    let plain = make(&[(permutation(1), whole.clone())]);
    let inner = GeneratedAs { load_balancer: 2, measured: false, ..sent_as("inner") };
    let rest = GeneratedAs { class: 1, load_balancer: 1, split: Some((0.5, Box::new(inner))), ..sent_as("ecmp") };
    whole.split = Some((0.25, Box::new(rest)));
    let split = make(&[(permutation(1), whole)]);
    check(&split, 16);
    // 16 flows: 4 leave, 2 of them again.
    assert_eq!(["p", "ecmp", "inner"].map(|name| of(&split, name).len()), [12, 2, 2]);
    assert!(of(&split, "ecmp").values().all(|flow| flow.4 == 1));
    let info: Vec<_> = split.workloads.iter().map(|w| (w.load_balancer, w.measured)).collect();
    assert_eq!(info, [(0, true), (1, true), (2, false)]);
    let bare = |set: &FlowSet| set.flows.iter().map(|f| (f.key, f.src, f.dst, f.size, f.start)).collect::<Vec<_>>();
    assert_eq!(bare(&plain), bare(&split));
}

#[test]
fn the_columns_of_a_csv_name_workloads_and_classes() {
    let own = GeneratedAs { class: 0, load_balancer: 3, measured: false, ..sent_as("mine") };
    let set = make(&[(file("flows.csv"), own)]);
    let info: Vec<_> = set.workloads.iter().map(|w| (w.name.as_str(), w.load_balancer, w.measured)).collect();
    assert_eq!(info, [("mine", 3, false), ("web", 3, false)]);
    let seen: Vec<_> = set.flows.iter().map(|f| (f.size, f.workload, f.class)).collect();
    assert_eq!(seen, [(14, 0, 1), (11, 1, 1), (12, 0, 0), (13, 1, 0), (10, 0, 0)]);
    assert_eq!(set.flows.iter().map(|f| f.listed).collect::<Vec<_>>(), [4, 1, 2, 3, 0]);
}

#[test]
fn errors_name_the_workload() {
    let hosts = view(16, 4, 2);
    let wrong = |list: &[(WorkloadParameters, GeneratedAs)]| generate(list, &hosts, 1, &files).unwrap_err();
    let error = wrong(&[(permutation(1), sent_as("a")), (permutation(1), sent_as("a"))]);
    assert_eq!((error.workload, error.key.as_deref()), (Some(1), Some("name")));
    let error = wrong(&[(permutation(1), sent_as("a")), (permutation(0), sent_as("b"))]);
    assert_eq!((error.workload, error.key.as_deref()), (Some(1), Some("rounds")));
    let error = wrong(&[(file("flows.csv"), sent_as("f")), (permutation(1), sent_as("web"))]);
    assert!(error.workload == Some(0) && error.message.contains("`web`"), "{error}");
    let error = wrong(&[(file("no.csv"), sent_as("f"))]);
    assert!(error.key.as_deref() == Some("path") && error.message.contains("not found"), "{error}");
    let split = Some((1.5, Box::new(sent_as("b"))));
    let error = wrong(&[(permutation(1), GeneratedAs { split, ..sent_as("a") })]);
    assert_eq!(error.key.as_deref(), Some("split_share"));
    let error = wrong(&[(file("flows.cm"), sent_as("f"))]);
    assert_eq!(error.place.as_deref(), Some("flows.cm:5"));
    let made = generate_all(&[(file("flows.cm"), sent_as("f"))], &hosts, 1, &files).unwrap();
    assert_eq!((made.flows.flows.len(), made.failures.len()), (1, 1));
    assert_eq!(generate(&[], &hosts, 1, &files), Ok(FlowSet::default()));
}

fn rest(scope: Scope) -> WorkloadParameters {
    WorkloadParameters::Permutation(PermutationParameters { hosts: Members::Rest, scope, ..Default::default() })
}

#[test]
fn the_bystanders_of_an_incast_are_a_permutation_of_the_rest() {
    // Spritz: hosts 0 to 31 send to host 160 of 1056; 1056 - 33 = 1023 flows among the others.
    let incast = WorkloadParameters::Incast(IncastParameters {
        sender_hosts: (0..32).collect(),
        receiver_hosts: vec![160],
        ..Default::default()
    });
    let hosts = view(1056, 4, 8);
    for scope in [Scope::Any, Scope::OtherGroup] {
        let list = [(incast.clone(), sent_as("incast")), (rest(scope), sent_as("bystanders"))];
        let set = generate(&list, &hosts, 1, &files).unwrap();
        check(&set, 1056);
        let bystanders = of(&set, "bystanders");
        let others: Vec<u32> = (32..1056).filter(|&host| host != 160).collect();
        assert_eq!((bystanders.len(), of(&set, "incast").len()), (1023, 32));
        let sorted = |mut hosts: Vec<u32>| {
            hosts.sort_unstable();
            hosts
        };
        assert_eq!(sorted(bystanders.values().map(|flow| flow.0).collect()), others);
        assert_eq!(sorted(bystanders.values().map(|flow| flow.1).collect()), others);
        assert!(scope == Scope::Any || bystanders.values().all(|flow| flow.0 / 32 != flow.1 / 32));
    }
}

#[test]
fn the_background_of_a_collective_uses_none_of_its_hosts() {
    let collective = WorkloadParameters::Collective(testing::of::<CollectiveParameters>("ranks=128 placement=random"));
    let web = WorkloadParameters::Poisson(testing::of::<PoissonParameters>("hosts=rest sizes=10kB duration=20us"));
    let hosts = view(1056, 4, 8);
    for background in [rest(Scope::OtherGroup), web] {
        let list = [(collective.clone(), sent_as("ring")), (background.clone(), sent_as("background"))];
        let set = generate(&list, &hosts, 1, &files).unwrap();
        check(&set, 1056);
        let ranks: BTreeSet<u32> = of(&set, "ring").values().map(|flow| flow.0).collect();
        let flows = of(&set, "background");
        assert!(ranks.len() == 128 && flows.values().all(|f| !ranks.contains(&f.0) && !ranks.contains(&f.1)));
        let senders: BTreeSet<u32> = flows.values().map(|flow| flow.0).collect();
        // 20 us * 50 Gb/s / 80,000 bits = 12.5 flows per host: that one of 928 sends none has a chance of 0.3 %.
        assert_eq!(senders.len(), 1056 - 128);
        let first = generate(&[(background, sent_as("background")), list[0].clone()], &hosts, 1, &files).unwrap();
        let senders: BTreeSet<u32> = of(&first, "background").values().map(|flow| flow.0).collect();
        assert_eq!(senders.len(), 1056);
    }
}

#[test]
fn too_few_free_hosts_are_reported() {
    let list = [(permutation(1), sent_as("everybody")), (rest(Scope::Any), sent_as("rest"))];
    let error = generate(&list, &view(16, 4, 2), 1, &files).unwrap_err();
    assert_eq!((error.workload, error.key.as_deref()), (Some(1), Some("hosts")));
    assert!(error.message.contains("leave 0 of 16 hosts free"), "{error}");
}

#[test]
fn the_background_of_the_microbenchmark_is_not_measured() {
    let kind = WorkloadParameters::Microbenchmark(MicrobenchmarkParameters::default());
    let own = GeneratedAs { class: 1, load_balancer: 3, ..sent_as("m") };
    let made = |list: &[_]| generate(list, &low_diameter(9, true), 1, &files);
    let set = made(&[(kind.clone(), own.clone())]).unwrap();
    check(&set, 72);
    let info: Vec<_> = set.workloads.iter().map(|w| (w.name.as_str(), w.load_balancer, w.measured)).collect();
    assert_eq!(info, [("m", 3, true), ("m-background", 3, false)]);
    assert_eq!((of(&set, "m").len(), of(&set, "m-background").len()), (1, 29));
    // A split takes from the monitored flow alone.
    let split = GeneratedAs { split: Some((1.0, Box::new(sent_as("split")))), ..own.clone() };
    let set = made(&[(kind.clone(), split)]).unwrap();
    assert_eq!((of(&set, "split").len(), of(&set, "m-background").len()), (1, 29));
    let error = made(&[(kind, own), (permutation(1), sent_as("m-background"))]).unwrap_err();
    assert!(error.message.contains("`m-background`"), "{error}");
}

proptest! {
    #[test]
    fn every_set_is_in_order(
        hosts in 2u32..40, per_leaf in 1u32..8, load in 0.01f64..1.5, rounds in 1u32..4, parallel in 0u32..5,
        share in 0.0f64..=1.0, seed: u64,
    ) {
        let incast = WorkloadParameters::Incast(IncastParameters {
            senders: Auto::Value(hosts - 1),
            size: Bytes(1),
            start: Time::from_us(100),
            ..Default::default()
        });
        let web = GeneratedAs { split: Some((share, Box::new(sent_as("part")))), ..sent_as("web") };
        let list = [
            (all_to_all(hosts, parallel), sent_as("a2a")),
            (permutation(rounds), sent_as("p")),
            (incast, sent_as("incast")),
            (poisson(load), web),
            (WorkloadParameters::Collective(CollectiveParameters::default()), sent_as("ring")),
        ];
        let set = generate(&list, &view(hosts, per_leaf, 2), seed, &files).unwrap();
        check(&set, hosts);
        prop_assert_eq!(of(&set, "a2a").len() as u32, hosts * (hosts - 1));
        prop_assert_eq!(of(&set, "p").len() as u32, hosts * rounds);
        prop_assert_eq!(of(&set, "incast").len() as u32, hosts - 1);
        prop_assert_eq!(of(&set, "ring").len() as u32, hosts * 2 * (hosts - 1));
        let (part, all) = (of(&set, "part").len(), of(&set, "part").len() + of(&set, "web").len());
        prop_assert_eq!(part, (share * all as f64 + 0.5).floor() as usize);
    }
}

#[test]
fn collectives_and_jobs_are_known_from_the_scenario() {
    let set = make(&[
        (poisson(0.2), sent_as("web")),
        (all_to_all(6, 0), sent_as("a2a")),
        (permutation(3), sent_as("rounds")),
        (WorkloadParameters::named("training-rounds").unwrap(), sent_as("train")),
        (permutation(1), sent_as("once")),
    ]);
    let jobs: Vec<(&str, bool)> = set.workloads.iter().map(|w| (w.name.as_str(), w.is_job)).collect();
    assert_eq!(jobs, [("web", false), ("a2a", true), ("rounds", true), ("train", true), ("once", false)]);
    // NCCL's buffer of an all-to-all of 6 ranks has 6 blocks; the factor is 5/6.
    let of = set.workloads[1].collective.as_ref().unwrap();
    assert_eq!((of.name, of.ranks, of.rounds), ("all-to-all", 6, Some(1)));
    assert!((of.bus_factor - 5.0 / 6.0).abs() < 1e-12);
    assert!(set.workloads.iter().enumerate().all(|(at, w)| (at == 1) == w.collective.is_some()));
}

/// Keys of connections by rank pair and channel of a job's flows.
fn connections(set: &FlowSet, channel: impl Fn(u32) -> u32) -> BTreeMap<(u32, u32, u32, u32), BTreeSet<u64>> {
    let mut found: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for (number, flow) in set.flows.iter().enumerate() {
        let label = set.label(number).expect("a flow of a job");
        let message = set.messages[number] % set.grouped[0].schedule(0).messages();
        found
            .entry((label.group, label.src_rank, label.dst_rank, channel(message)))
            .or_default()
            .insert(flow.connection);
    }
    found
}

proptest! {
    /// Messages share a key exactly where group, sender, receiver and channel are the same; the first has its own.
    #[test]
    fn messages_of_a_connection_share_its_key(
        (algorithm, passes) in prop_oneof![
            Just(("ring-allreduce", 2)), Just(("ring-all-gather", 1)), Just(("ring-reduce-scatter", 1)),
        ],
        (channels, groups, repetitions, ranks) in (1u32..4, 1u32..4, 1u32..4, 3u32..6),
    ) {
        let ring = CollectiveParameters {
            algorithm: Algorithm::named(algorithm).unwrap(), channels, groups, repetitions, ranks: Ranks::Number(ranks), ..Default::default()
        };
        let set = make(&[(WorkloadParameters::Collective(ring), sent_as("ring"))]);
        // A ring passes `passes` times n - 1 messages from each rank over each channel; channels follow one another.
        let of_channel = passes * (ranks - 1) * ranks;
        let found = connections(&set, |message| message / of_channel);
        prop_assert_eq!(found.len() as u32, groups * ranks * channels);
        prop_assert!(found.values().all(|keys| keys.len() == 1));
        let all: BTreeSet<u64> = found.values().flatten().copied().collect();
        prop_assert_eq!(all.len(), found.len());
        let own = set.flows.iter().filter(|flow| flow.key == flow.connection).count();
        prop_assert_eq!(own, found.len());
    }
}

#[test]
fn other_flows_are_connections_of_their_own() {
    let set = make(&[(permutation(3), sent_as("p")), (all_to_all(4, 1), sent_as("a")), (poisson(0.2), sent_as("w"))]);
    assert!(set.flows.len() > 60 && set.flows.iter().all(|flow| flow.connection == flow.key));
}

#[test]
#[ignore = "a matter of speed, for a release build"]
fn a_million_flows_in_a_second() {
    let split = |name: &str| GeneratedAs { split: Some((0.1, Box::new(sent_as("rest")))), ..sent_as(name) };
    // 8192 hosts * 400 Gb/s * 0.5 / (121,849 B * 8) = 1.68e9 flows per second.
    let poisson = WorkloadParameters::Poisson(testing::of::<PoissonParameters>("sizes=hadoop duration=600us"));
    let view = HostView { nic_rate: vec![Rate::gbps(400); 8192], ..view(8192, 32, 16) };
    let mut csv = String::from("src,dst,size_bytes,start_ps\n");
    for (name, kind) in [("poisson", poisson), ("all-to-all", all_to_all(1001, 4)), ("csv", file("flows.csv"))] {
        let begin = Instant::now();
        let set = generate(&[(kind, split(name))], &view, 1, &|_| Ok(csv.clone().into_bytes())).unwrap();
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
    let list = [(file("ring.goal"), sent_as("goal"))];
    let begin = Instant::now();
    let set = generate(&list, &view(8192, 32, 16), 1, &|_| Ok(text.clone().into_bytes())).unwrap();
    let took = begin.elapsed();
    println!("goal: {} flows, {} triggers in {took:?}", set.flows.len(), set.triggers.len());
    assert!(set.flows.len() == 250_000 && took.as_secs_f64() < 5.0);
}
