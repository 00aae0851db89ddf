use super::*;
use crate::{
    Flow, Start, TriggerId, TriggerKind,
    kinds::testing::{assert_refused, longest_chain, of, traffic, view},
};
use anabranch_settings::Raw;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn named(name: &str) -> Algorithm {
    Algorithm::named(name).expect("a pattern")
}

/// Follows flow `first` by what each flow starts.
fn chain(made: &Traffic, first: usize, next: impl Fn(&Flow) -> Option<TriggerId>) -> Vec<&Flow> {
    let mut flows = vec![&made.flows[first]];
    while let Some(trigger) = flows.last().and_then(|flow| next(flow)) {
        let trigger = &made.triggers[trigger.0 as usize];
        assert_eq!((trigger.kind, trigger.targets.len()), (TriggerKind::Oneshot, 1));
        flows.push(&made.flows[trigger.targets[0] as usize]);
    }
    flows
}

fn check(made: &Traffic) {
    let mut fired = vec![0; made.triggers.len()];
    for flow in &made.flows {
        flow.on_sent.iter().chain(&flow.on_received).for_each(|trigger| fired[trigger.0 as usize] += 1);
    }
    assert!(fired.iter().all(|&times| times == 1));
    let mut started = 0;
    for (number, trigger) in (0..).zip(&made.triggers) {
        for &target in &trigger.targets {
            assert_eq!(made.flows[target as usize].start, Start::On(TriggerId(number)));
            started += 1;
        }
    }
    assert_eq!(started, made.flows.iter().filter(|flow| matches!(flow.start, Start::On(_))).count());
}

#[test]
fn a_ring_of_four_passes_its_chunks_around() {
    let p = of::<CollectiveParameters>("size=1000B ranks=4 start=1us");
    let made = traffic(&p, &view(8, 4, 1), "").unwrap();
    check(&made);
    // 2(n-1) = 6 steps of 4 messages of S/n = 250 B.
    assert_eq!((made.flows.len(), made.triggers.len()), (24, 20));
    assert!(made.flows.iter().all(|f| f.size == 250 && f.on_sent.is_none() && f.dst == (f.src + 1) % 4));
    for rank in 0..4 {
        let flows = chain(&made, rank, |flow| flow.on_received);
        assert_eq!(flows[0].start, Start::At(Time::from_us(1)));
        assert_eq!(
            flows.iter().map(|f| f.src).collect::<Vec<_>>(),
            (0..6).map(|k| (rank as u32 + k) % 4).collect::<Vec<_>>()
        );
    }
    for algorithm in [named("ring-all-gather"), named("ring-reduce-scatter")] {
        let made = traffic(&CollectiveParameters { algorithm, ..p.clone() }, &view(8, 4, 1), "").unwrap();
        check(&made);
        assert_eq!(made.flows.len(), 3 * 4);
    }
}

#[test]
fn the_ring_of_spritz_has_255_acknowledged_sends_per_chain() {
    let p =
        of::<CollectiveParameters>("ranks=128 placement=random steps=255 trigger=acknowledged message_size=4194304B");
    let made = traffic(&p, &view(1056, 4, 8), "").unwrap();
    check(&made);
    assert_eq!(made.flows.len(), 128 * 255);
    let hosts: BTreeSet<u32> = made.flows.iter().map(|f| f.src).collect();
    assert_eq!(hosts.len(), 128);
    assert!(!hosts.into_iter().eq(0..128));
    for first in [0, 77, 127] {
        let flows = chain(&made, first, |flow| flow.on_sent);
        assert_eq!(flows.len(), 255);
        assert!(flows.windows(2).all(|pair| pair[0].dst == pair[1].src));
        assert!(flows.iter().all(|f| f.size == 4_194_304 && f.on_received.is_none()));
    }
}

#[test]
fn recursive_doubling_of_128_has_seven_rounds_of_the_whole_vector() {
    let p = of::<CollectiveParameters>("algorithm=recursive-doubling size=4194304B ranks=128");
    let made = traffic(&p, &view(128, 4, 8), "").unwrap();
    check(&made);
    assert_eq!(made.flows.len(), 7 * 128);
    for (number, flow) in made.flows.iter().enumerate() {
        let (round, rank) = (number / 128, number as u32 % 128);
        assert_eq!((flow.src, flow.dst, flow.size), (rank, rank ^ 1 << round, 4_194_304));
        let started = flow.on_received.map(|trigger| made.triggers[trigger.0 as usize].targets[0] as usize);
        assert_eq!(started, (round < 6).then_some((round + 1) * 128 + (rank as usize ^ 1 << round)));
    }
}

/// Partners and bytes of rank 0 of eight; steps beyond the schedule repeat it.
#[test]
fn partners_and_sizes_of_steps() {
    let sent = |name: &str, steps: u32, size: u64| {
        let steps = Auto::Value(steps);
        let p = CollectiveParameters { algorithm: named(name), steps, size: Bytes(size), ..Default::default() };
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        made.flows.iter().filter(|f| f.src == 0).map(|f| (f.dst, f.size)).collect::<Vec<_>>()
    };
    assert_eq!(sent("recursive-doubling", 4, 800), [(1, 800), (2, 800), (4, 800), (1, 800)]);
    let there = [(1, 400), (2, 200), (4, 100)];
    let back = [(4, 100), (2, 200), (1, 400)];
    assert_eq!(sent("halving-doubling", 9, 800), [there, back, there].concat());
    // 801 / 8 = 100.1 and 3 / 8 are rounded up.
    assert_eq!([sent("ring-all-gather", 1, 801), sent("ring", 2, 3)].concat(), [(1, 101), (1, 1), (1, 1)]);
    assert_eq!(sent("halving-doubling", 3, 3), [(1, 2), (2, 1), (4, 1)]);
}

/// A key that a pattern declares changes its messages, and any other is refused.
#[test]
fn keys_have_effect_where_they_are_declared() {
    let values = [
        ("message_size", Raw::Text("7B".into())),
        ("steps", Raw::Int(5)),
        ("trigger", Raw::Text("received".into())),
        ("trigger", Raw::Text("acknowledged".into())),
        ("channels", Raw::Int(3)),
        ("chunks", Raw::Int(3)),
        ("server_ranks", Raw::Int(4)),
        ("skew", Raw::Float(1.0)),
        ("parallel", Raw::Int(3)),
        ("order", Raw::Text("random".into())),
    ];
    for algorithm in Algorithm::each() {
        let declared = algorithm.pattern().keys;
        // Without a window the event of an all-to-all has no effect.
        let parallel = if declared.contains(&"parallel") { 2 } else { 0 };
        let base = CollectiveParameters { algorithm, parallel, ..Default::default() };
        let made = |p: &CollectiveParameters| {
            traffic(p, &view(8, 4, 1), "").map(|made| format!("{:?} {:?}", made.flows, made.triggers))
        };
        let whole = made(&base).unwrap();
        let mut effective = BTreeSet::new();
        for (key, value) in &values {
            let mut p = base.clone();
            p.set(key, value).unwrap();
            match made(&p) {
                Ok(changed) if changed != whole => drop(effective.insert(*key)),
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.key.as_deref(), Some(*key));
                    assert!(error.message.contains("no effect") && !declared.contains(key), "{algorithm:?}: {error}");
                }
            }
        }
        assert_eq!(effective, declared.iter().copied().collect(), "{algorithm:?}");
    }
}

#[test]
fn channels_share_the_vector() {
    let p = of::<CollectiveParameters>("size=1000B channels=3");
    let made = traffic(&p, &view(4, 2, 1), "").unwrap();
    check(&made);
    assert_eq!(made.flows.len(), 3 * 24);
    assert!(made.flows.iter().all(|f| f.size == 84));
    assert_eq!(made.flows.iter().filter(|f| f.start == Start::At(Time::ZERO)).count(), 12);
    assert_eq!(chain(&made, 24, |flow| flow.on_received).len(), 6);
}

#[test]
fn an_all_to_all_has_a_window() {
    let p = of::<CollectiveParameters>("algorithm=all-to-all size=6000B parallel=2 order=random");
    let made = traffic(&p, &view(6, 2, 1), "").unwrap();
    assert_eq!((made.flows.len(), made.triggers.len()), (30, 6));
    // S/n = 1000 B; two of five messages of a rank start at once.
    assert!(made.flows.iter().all(|f| f.size == 1000 && f.on_sent.is_some() && f.on_received.is_none()));
    assert_eq!(made.flows.iter().filter(|f| f.start == Start::At(Time::ZERO)).count(), 12);
    let received = CollectiveParameters { trigger: Auto::Value(TriggeredBy::Received), ..p };
    let made = traffic(&received, &view(6, 2, 1), "").unwrap();
    assert!(made.flows.iter().all(|f| f.on_received.is_some() && f.on_sent.is_none()));
}

#[test]
fn errors_are_reported() {
    assert_refused::<CollectiveParameters>(&view(12, 4, 1), "", "collective");
}

proptest! {
    #[test]
    fn every_schedule_starts_every_message_once(
        hosts in 2u32..40, steps in prop::option::of(1u32..40), channels in 1u32..4, size in 1u64..10_000, acknowledged: bool,
        algorithm in prop::sample::select(vec![
            named("ring-allreduce"), named("recursive-doubling"), named("halving-doubling"), named("ring-all-gather"),
            named("ring-reduce-scatter"),
        ]),
    ) {
        let ranks = if algorithm.pattern().needs_a_power_of_two { 1 << hosts.ilog2() } else { hosts };
        let p = CollectiveParameters {
            algorithm,
            size: Bytes(size),
            ranks: Ranks::Number(ranks),
            placement: Placement::Random,
            steps: steps.map_or(Auto::Auto, Auto::Value),
            trigger: if acknowledged { Auto::Value(TriggeredBy::Acknowledged) } else { Auto::Auto },
            channels,
            ..Default::default()
        };
        let made = traffic(&p, &view(hosts, 4, 2), "").unwrap();
        check(&made);
        let steps = steps.unwrap_or((algorithm.pattern().steps)(ranks));
        prop_assert_eq!(made.flows.len() as u32, ranks * steps * channels);
        // Chains from the flows of the first step reach every flow.
        let first = (0..made.flows.len()).filter(|&flow| made.flows[flow].start == Start::At(Time::ZERO));
        let reached: usize = first.map(|flow| chain(&made, flow, |flow| flow.on_sent.or(flow.on_received)).len()).sum();
        prop_assert_eq!(reached, made.flows.len());
        for step in made.flows.chunks(ranks as usize) {
            let (from, to): (BTreeSet<u32>, BTreeSet<u32>) = step.iter().map(|flow| (flow.src, flow.dst)).unzip();
            prop_assert!(from.len() as u32 == ranks && from == to);
            prop_assert!(step.iter().all(|flow| flow.src != flow.dst && flow.size >= 1));
        }
    }
}

/// nccl-tests, doc/PERFORMANCE.md: 2(n-1)/n for an all-reduce by any algorithm, (n-1)/n for the others.
#[test]
fn bus_bandwidth_has_the_factors_of_nccl() {
    let of = |algorithm, change: &dyn Fn(&mut CollectiveParameters)| {
        let mut p = CollectiveParameters { algorithm, size: Bytes(800), ranks: Ranks::Number(4), ..Default::default() };
        change(&mut p);
        p.info(if let Ranks::Number(ranks) = p.ranks { ranks } else { 16 })
    };
    for algorithm in [named("ring-allreduce"), named("recursive-doubling"), named("halving-doubling")] {
        assert_eq!(of(algorithm, &|_| {}).bus_factor, 1.5, "{algorithm:?}");
    }
    for algorithm in [named("ring-all-gather"), named("ring-reduce-scatter"), named("all-to-all")] {
        assert_eq!(of(algorithm, &|_| {}).bus_factor, 0.75, "{algorithm:?}");
    }
    let ring = named("ring-allreduce");
    let plain = of(ring, &|_| {});
    assert_eq!((plain.bytes, plain.rounds, plain.ranks), (Some(800), Some(1), 4));
    // 12 steps of a ring of 6 are two rounds, 7 are no whole number; messages of 50 B in 2 channels are 400 B for 4 ranks.
    assert_eq!(of(ring, &|p| p.steps = Auto::Value(12)).rounds, Some(2));
    assert_eq!(of(ring, &|p| p.steps = Auto::Value(7)).rounds, None);
    let sized = of(ring, &|p| (p.message_size, p.channels) = (Auto::Value(Bytes(50)), 2));
    assert_eq!(sized.bytes, Some(400));
    assert_eq!(of(named("halving-doubling"), &|p| p.message_size = Auto::Value(Bytes(50))).bytes, None);
    assert_eq!(of(ring, &|p| p.ranks = Ranks::All).ranks, 16);
}

/// Eight ranks, a vector of S = 80,000 B: messages in sequence, and bytes that each rank sends.
#[test]
fn steps_and_bytes_of_patterns_are_those_counted_by_hand() {
    let size = 80_000u64;
    let made = |algorithm: Algorithm, change: &dyn Fn(&mut CollectiveParameters)| {
        let mut p = CollectiveParameters {
            algorithm,
            ranks: Ranks::Number(8),
            size: Bytes(size),
            ..CollectiveParameters::default()
        };
        change(&mut p);
        let made = traffic(&p, &view(8, 4, 1), "").unwrap();
        let mut sent = vec![0; 8];
        made.flows.iter().for_each(|flow| sent[flow.src as usize] += flow.size);
        (longest_chain(made.grouped.unwrap().schedule(0)), sent)
    };
    // Parent (r-1)/2: 0 has the children 1 and 2, 1 has 3 and 4, 2 has 5 and 6, 3 has 7. Three levels up and three down; a
    // rank sends S to its parent, unless it is the root, and S to each child.
    let (chain, sent) = made(named("tree"), &|_| {});
    assert_eq!((chain, sent), (6, [2, 3, 3, 2, 1, 1, 1, 1].map(|times| times * size).to_vec()));
    // Chunks do not change the bytes.
    let (_, sent) = made(named("tree"), &|p| p.chunks = Auto::Value(4));
    assert_eq!(sent, [2, 3, 3, 2, 1, 1, 1, 1].map(|times| times * size));
    // Node v of the trees in order is on level 0 if it is odd, else its children are half its lowest bit away. First tree: node v is
    // rank v-1, so the root 8 is rank 7 with the child 3; 3 has 1 and 5, 1 has 0 and 2, 5 has 4 and 6. Second tree: node v is
    // rank v-2, so the root is rank 6 with the child 2; 2 has 0 and 4, 0 has 7 and 1, 4 has 3 and 5. Three levels up and down
    // each. A rank sends S/2 to its parent and S/2 to each child, in each tree.
    let (first, second) = ([1, 3, 1, 3, 1, 3, 1, 1], [3, 1, 3, 1, 3, 1, 1, 1]);
    let by_hand: Vec<u64> = first.iter().zip(&second).map(|(one, two)| (one + two) * size / 2).collect();
    assert_eq!(by_hand, [2, 2, 2, 2, 2, 2, 1, 1].map(|times| times * size));
    for chunks in [1, 4] {
        let (chain, sent) = made(named("double-binary-tree"), &|p| p.chunks = Auto::Value(chunks));
        assert_eq!(sent, by_hand, "{chunks}");
        assert!(if chunks == 1 { chain == 6 } else { chain > 6 }, "{chain}");
    }
    // Servers of 4: 3 steps of S/4, 2 (8/4 - 1) steps of S/8, 3 steps of S/4.
    let (chain, sent) = made(named("hierarchical"), &|p| p.server_ranks = Auto::Value(4));
    assert_eq!((chain, sent), (3 + 2 + 3, vec![2 * 3 * size / 4 + 2 * size / 8; 8]));
    // A ring passes S/8 on 2 * 7 times, its halves 7 times; doublings exchange S with 3 others, or S/2, S/4 and S/8 there and back.
    let ring = |steps: u64| vec![steps * size / 8; 8];
    assert_eq!(made(named("ring-allreduce"), &|_| {}), (14, ring(14)));
    assert_eq!(made(named("ring-all-gather"), &|_| {}), (7, ring(7)));
    assert_eq!(made(named("ring-reduce-scatter"), &|_| {}), (7, ring(7)));
    assert_eq!(made(named("recursive-doubling"), &|_| {}), (3, vec![3 * size; 8]));
    assert_eq!(made(named("halving-doubling"), &|_| {}), (6, vec![2 * (size / 2 + size / 4 + size / 8); 8]));
    // Seven messages of S/8 at once.
    assert_eq!(made(named("all-to-all"), &|_| {}), (1, ring(7)));
    // Tokens to 7 experts, and back.
    let (chain, sent) = made(named("expert-all-to-all"), &|_| {});
    assert_eq!((chain, sent), (2, vec![2 * 7 * size / 8; 8]));
    // The k-th most popular of 8 experts gets 1/k of 1 + 1/2 + ... + 1/8 = 761/280. A rank sends their shares to 7 experts, and as
    // an expert its own share back 7 times: the whole, and 6 of its shares.
    let shares: Vec<u64> = (1..=8).map(|k| (size * 280).div_ceil(761 * k)).collect();
    let whole: u64 = shares.iter().sum();
    let (chain, mut sent) = made(named("expert-all-to-all"), &|p| p.skew = 1.0);
    sent.sort_unstable_by(|one, two| two.cmp(one));
    assert_eq!((chain, sent), (2, shares.iter().map(|share| whole + 6 * share).collect::<Vec<_>>()));
    // A microbatch passes 7 times on and 7 times back; the ends send in one direction alone.
    let (chain, sent) = made(named("pipeline"), &|p| p.chunks = Auto::Value(1));
    assert_eq!((chain, sent), (14, [1, 2, 2, 2, 2, 2, 2, 1].map(|times| times * size).to_vec()));
    let (_, sent) = made(named("pipeline"), &|_| {});
    assert_eq!(sent, [1, 2, 2, 2, 2, 2, 2, 1].map(|times| times * size));
}
