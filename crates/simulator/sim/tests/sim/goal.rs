//! Schedules with dependencies in whole runs.

use crate::common::*;
use anabranch_backend::RunError;
use anabranch_outcome::{FlowStatus, RunResult};
use anabranch_topology::Topology;
use anabranch_units::Time;
use anabranch_workload::{FlowSet, Start, Trigger, TriggerId, TriggerKind};

/// Packet of 4096 B over four links, store and forward.
const ONE_WAY: u64 = 4 * (WIRE + DELAY);
const ACK_BACK: u64 = 4 * (ACK + DELAY);

/// Flows of one workload per text.
fn goals(topology: &Topology, texts: &[&str], keys: &str) -> FlowSet {
    let kinds = (0..texts.len()).map(|number| workload("file", &format!("path={number}.goal {keys}"))).collect();
    generated(&host_view(topology), kinds, texts)
}

fn run_twice(topology: &Topology, set: &FlowSet) -> RunResult {
    let one = run_in_every_mode(&setup(topology.clone(), set.clone(), "ops"), "goal");
    assert!(one.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
    one
}

fn starts(result: &RunResult) -> Vec<u64> {
    let mut starts: Vec<u64> = result.flows.iter().map(|flow| flow.start.unwrap().ps()).collect();
    starts.sort_unstable();
    starts
}

/// `rounds` round trips between hosts 0 and 2, with a computation before each reply.
fn ping_pong(rounds: u32, calc: u32) -> String {
    let (mut ping, mut pong) = (String::new(), String::new());
    for n in 0..rounds {
        ping += &format!("s{n}: send 4096b to 2 tag {n}\nr{n}: recv 4096b from 2 tag {n}\nc{n}: calc {calc}\n");
        ping += &format!("c{n} requires r{n}\n");
        if n > 0 {
            ping += &format!("s{n} requires c{}\n", n - 1);
        }
        pong += &format!("r{n}: recv 4096b from 0 tag {n}\nc{n}: calc {calc}\ns{n}: send 4096b to 0 tag {n}\n");
        pong += &format!("c{n} requires r{n}\ns{n} requires c{n}\n");
    }
    format!("num_ranks 3\nrank 0 {{\n{ping}}}\nrank 1 {{\n}}\nrank 2 {{\n{pong}}}\n")
}

#[test]
fn ping_pong_takes_messages_and_computations() {
    let result = run_twice(&two_leaves(), &goals(&two_leaves(), &[&ping_pong(5, 100)], ""));
    let step = ONE_WAY + 100_000;
    assert_eq!(starts(&result), (0..10).map(|n| n * step).collect::<Vec<_>>());
    // Ten messages and nine computations between them, then the last acknowledgement; 42.4 us in all.
    let end = result.flows.iter().map(|flow| (flow.start.unwrap() + flow.fct_rx.unwrap()).ps()).max().unwrap();
    assert_eq!(end, 10 * ONE_WAY + 9 * 100_000);
    let later = goals(&two_leaves(), &[&ping_pong(5, 100)], "start_at=3us");
    assert_eq!(starts(&run_twice(&two_leaves(), &later)), (0..10).map(|n| 3_000_000 + n * step).collect::<Vec<_>>());
}

#[test]
fn send_completes_on_acknowledgement() {
    let text = "num_ranks 3\nrank 0 {\na: send 4096b to 2\nb: send 4096b to 2\nb requires a\n}\nrank 1 { }\n\
        rank 2 {\nrecv 4096b from 0\nrecv 4096b from 0\n}\n";
    let result = run_twice(&two_leaves(), &goals(&two_leaves(), &[text], ""));
    assert_eq!(starts(&result), [0, ONE_WAY + ACK_BACK]);
}

#[test]
fn computations_share_a_processor_or_have_one_each() {
    let start = |cpu: u8, waits: &str| {
        let text = format!(
            "num_ranks 3\nrank 0 {{\na: calc 300\nb: calc 500 cpu {cpu}\ns: send 1b to 2\n{waits}\n}}\n\
             rank 1 {{ }}\nrank 2 {{\nrecv 1b from 0\n}}\n"
        );
        starts(&run_twice(&two_leaves(), &goals(&two_leaves(), &[&text], "")))[0]
    };
    let both = "s requires a\ns requires b";
    // 300 + 500 ns one after the other; the longer of the two side by side.
    assert_eq!((start(0, both), start(1, both)), (800_000, 500_000));
    assert_eq!((start(0, "s irequires b"), start(1, "s irequires b")), (300_000, 0));
}

#[test]
fn computations_before_the_first_message_shift_with_it() {
    let text = "num_ranks 3\nrank 0 {\na: calc 300\ns: send 1b to 2\ns requires a\n}\nrank 1 { }\n\
        rank 2 {\nrecv 1b from 0\n}\n";
    let set = goals(&two_leaves(), &[text], "start_at=2us");
    assert_eq!(starts(&run_twice(&two_leaves(), &set)), [2_300_000]);
    // Another schedule on the same hosts shares their processors.
    let both = goals(&two_leaves(), &[text, text], "");
    assert_eq!(starts(&run_twice(&two_leaves(), &both)), [300_000, 600_000]);
}

/// Ring all-reduce of 16 ranks with a computation after each of its 30 receives, odd ranks slower.
fn ring() -> String {
    let ranks = 16;
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let (right, left) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        text += &format!("rank {rank} {{\n");
        for step in 0..2 * (ranks - 1) {
            text += &format!("s{step}: send 20000b to {right} tag 1 cpu 0 nic 0\n");
            text += &format!("r{step}: recv 20000b from {left} tag 1 cpu 0 nic 0\n");
            text += &format!("c{step}: calc {} cpu {}\n", 500 + 200 * (rank % 2), step % 2);
            text += &format!("c{step} requires r{step}\nr{step} irequires s{step}\n");
            if step > 0 {
                text += &format!("s{step} requires c{}\n", step - 1);
            }
        }
        text += "}\n";
    }
    text
}

#[test]
fn a_ring_is_the_same_on_every_number_of_threads() {
    let topology = fat_tree(2, 8);
    let set = goals(&topology, &[&ring(), &ping_pong(20, 50)], "");
    let mut setup = setup(topology.clone(), set, "ops");
    let result = run_in_every_mode(&setup, "ring");
    assert_eq!(result.flows.len(), 16 * 30 + 40);
    // No step is shorter than its message's serialisation and its computation.
    let last = result.flows.iter().map(|flow| flow.start.unwrap()).max().unwrap();
    assert!(last.ps() > 29 * (20_000 * 20 + 2 * DELAY + 500_000), "{last}");
    setup.limits.time_limit = Time::from_us(30);
    assert!(run_in_every_mode(&setup, "cut").time_limit_struck);
}

#[test]
fn a_trigger_reaches_followers_at_other_hosts_after_its_latency() {
    // Flow a (0 -> 2) activates a trigger at host 2 with a delay of 100 ns. When the delay begins, it activates one at
    // host 1, whose flow b (1 -> 3) starts 1 us later; when it ends, one at host 3, likewise for flow c (3 -> 1).
    let mut set = flows(&[(0, 2, 4096, 0), (1, 3, 4096, 0), (3, 1, 4096, 0)]);
    let number = |src| set.flows.iter().position(|f| f.src == src).unwrap();
    let (a, b, c) = (number(0), number(1), number(3));
    set.triggers = vec![
        Trigger {
            home: Some(2),
            delay: Time::from_ps(100_000),
            begun: vec![TriggerId(1)],
            next: vec![TriggerId(2)],
            ..Trigger::new(TriggerKind::Oneshot, vec![])
        },
        Trigger::new(TriggerKind::Oneshot, vec![b as u32]),
        Trigger { home: Some(3), ..Trigger::new(TriggerKind::Barrier(1), vec![c as u32]) },
    ];
    set.flows[a].on_received = Some(TriggerId(0));
    (set.flows[b].start, set.flows[c].start) = (Start::On(TriggerId(1)), Start::On(TriggerId(2)));
    let result = run_twice(&two_leaves(), &set);
    assert_eq!(starts(&result), [0, ONE_WAY + 1_000_000, ONE_WAY + 1_100_000]);
}

#[test]
fn a_multishot_with_a_delay_starts_one_flow_each_time() {
    let mut set = flows(&[(0, 2, 4096, 0), (2, 0, 4096, 0), (2, 0, 4096, 1)]);
    let back: Vec<u32> = (0..3).filter(|&flow| set.flows[flow as usize].src == 2).collect();
    let there = set.flows.iter().position(|f| f.src == 0).unwrap();
    set.triggers = vec![Trigger {
        at: Some(Time::from_us(1)),
        delay: Time::from_us(1),
        ..Trigger::new(TriggerKind::Multishot, back.clone())
    }];
    set.flows[there].on_received = Some(TriggerId(0));
    back.iter().for_each(|&flow| set.flows[flow as usize].start = Start::On(TriggerId(0)));
    assert_eq!(starts(&run_twice(&two_leaves(), &set)), [0, 2_000_000, ONE_WAY + 1_000_000]);
}

#[test]
fn unused_triggers_and_unstarted_flows_are_named() {
    let mut set = flows(&[(0, 2, 4096, 0), (2, 0, 4096, 0)]);
    let error = |set: &FlowSet| refused(&setup(two_leaves(), set.clone(), "ecmp"));
    set.triggers = vec![Trigger::new(TriggerKind::Oneshot, vec![])];
    let found = error(&set);
    assert!(matches!(&found, RunError::Setup(m) if m.contains("starts no flow and has no host")), "{found}");
    set.triggers[0].home = Some(4);
    let found = error(&set);
    assert!(matches!(&found, RunError::Setup(m) if m.contains("host 4; hosts are 0 to 3")), "{found}");
    set.triggers[0] = Trigger {
        home: Some(2),
        at: Some(Time::ZERO),
        delay: Time::from_us(50),
        ..Trigger::new(TriggerKind::Oneshot, vec![])
    };
    let waiting = set.flows.iter().position(|f| f.src == 2).unwrap();
    set.triggers.push(Trigger::new(TriggerKind::Barrier(2), vec![waiting as u32]));
    set.triggers[0].next = vec![TriggerId(1)];
    set.flows[waiting].start = Start::On(TriggerId(1));
    let result = run(&setup(two_leaves(), set, "ecmp"));
    assert_eq!(result.flows[waiting].status, FlowStatus::NotStarted);
}
