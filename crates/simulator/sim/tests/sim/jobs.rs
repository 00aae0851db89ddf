//! Jobs of groups in whole runs: closed forms, rows, schedules of GOAL.

use crate::common::*;
use anabranch_outcome::{FlowStatus, GroupRow, RunResult};
use anabranch_topology::Topology;
use anabranch_units::Time;
use anabranch_workload::{Done, FlowSet, Work};

/// Packet of 4096 B between hosts of a leaf, store and forward, and its acknowledgement.
const ONE_WAY: u64 = 2 * (WIRE + DELAY);
const ACK_BACK: u64 = 2 * (ACK + DELAY);
const US: u64 = 1_000_000;

fn made(topology: &Topology, kind: &str, keys: &str) -> FlowSet {
    generated(&host_view(topology), vec![workload(kind, keys)], &[])
}

fn run_of(topology: &Topology, set: FlowSet) -> RunResult {
    let setup = setup(topology.clone(), set, "ops");
    let [one, two, three] = [1, 2, 3].map(|threads| run_on(&setup, threads));
    assert!(one.fingerprint == two.fingerprint && one.fingerprint == three.fingerprint);
    assert!(one.jobs == two.jobs && one.jobs == three.jobs, "jobs differ between numbers of threads");
    assert!(one.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
    one
}

fn run(topology: &Topology, kind: &str, keys: &str) -> RunResult {
    run_of(topology, made(topology, kind, keys))
}

fn ps(time: impl Into<Option<Time>>) -> u64 {
    time.into().expect("a time").ps()
}

fn only(result: &RunResult) -> &GroupRow {
    assert_eq!(result.jobs.groups.len(), 1);
    &result.jobs.groups[0]
}

#[test]
fn ring_allreduce_to_the_picosecond() {
    let keys = "ranks=4 size=16384B";
    let result = run(&fat_tree(2, 8), "collective", keys);
    let group = only(&result);
    // Six steps of a packet, then the last acknowledgement. A host acknowledges before it sends its next message on the same
    // link, which costs the time of an acknowledgement in each step but the first.
    let ideal = 6 * ONE_WAY + ACK_BACK;
    assert_eq!((ps(group.start), ps(group.ideal), ps(group.completion)), (0, ideal, ideal + 5 * ACK));
    // NCCL: bytes over time, times 2(n-1)/n.
    let bus = 16384.0 * 8.0 * 1.5 / ((ideal + 5 * ACK) as f64 / 1e12);
    assert!((group.bus_bandwidth_bps.unwrap() / bus - 1.0).abs() < 1e-12);
    let steps: Vec<u32> = result.jobs.flows.iter().map(|flow| flow.step).collect();
    assert_eq!(steps, (0..6).flat_map(|step| [step; 4]).collect::<Vec<_>>());
    assert!(result.jobs.flows.iter().all(|flow| flow.dst_rank == (flow.src_rank + 1) % 4));
    // Each step begins with its messages and ends when they are received.
    for (number, row) in (0u64..).zip(&result.jobs.steps) {
        let start = number * ONE_WAY + number.saturating_sub(1) * ACK;
        let completion = ONE_WAY + if number > 0 { ACK } else { 0 };
        assert_eq!((u64::from(row.step), row.messages), (number, 4));
        assert_eq!((ps(row.start.get()), ps(row.completion.get())), (start, completion), "step {number}");
        assert_eq!(ps(row.ideal.get()), ONE_WAY);
    }
    assert_eq!(result.jobs.steps.len(), 6);
}

#[test]
fn job_alone_has_slowdown_one() {
    // Two ranks exchange a packet after 5 us of computation, three times with 1 us between.
    let keys = "algorithm=ring-reduce-scatter ranks=2 size=8KiB repetitions=3 compute=5us gap=1us";
    let result = run(&fat_tree(2, 8), "collective", keys);
    let completion = 5 * US + ONE_WAY + ACK_BACK;
    assert_eq!(result.jobs.groups.len(), 3);
    for (repetition, row) in (0..).zip(&result.jobs.groups) {
        assert_eq!((ps(row.start), ps(row.completion)), (repetition * (completion + US), completion));
        assert_eq!((row.ideal, row.computation.ps()), (row.completion, 5 * US));
        // (n-1)/n of 8 KiB per rank, over the time that is not computed.
        let bus = 8192.0 * 8.0 * 0.5 / ((completion - 5 * US) as f64 / 1e12);
        assert!((row.bus_bandwidth_bps.unwrap() / bus - 1.0).abs() < 1e-12);
    }
    assert!(result.jobs.ranks.iter().all(|row| row.ideal == row.completion && ps(row.completion) == completion));
    let hosts: Vec<u32> = result.jobs.ranks.iter().map(|row| row.host).collect();
    assert_eq!(hosts, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn pipeline_step_takes_its_computations_and_messages() {
    let keys = "layers=2 dp=1 tp=1 pp=2 ranks=2 microbatches=1 forward=10us activations=4096B";
    let result = run(&fat_tree(2, 8), "training-step", keys);
    // Forward, activations, forward and backward, gradients, backward: 10 + 10 + 20 + 20 us of computation.
    let row = only(&result);
    assert_eq!((ps(row.completion), row.ideal), (60 * US + 2 * ONE_WAY, row.completion));
    // Stage 0 was last, by a computation, and computed 30 us of it.
    assert_eq!((row.last_rank, row.last_flow, row.computation.ps()), (Some(0), None, 30 * US));
    let stage_1 = &result.jobs.ranks[1];
    assert_eq!(ps(stage_1.completion), 40 * US + 2 * ONE_WAY + ACK_BACK);
    assert_eq!(stage_1.ideal, stage_1.completion);
}

#[test]
fn hierarchical_allreduce_is_its_three_phases() {
    // One leaf of 16 hosts: two servers of four ranks. 16 KiB: messages of 4096 B within a server, of 2048 B between servers.
    let topology = fat_tree(2, 32);
    let of = |algorithm: &str, ranks: i64, size: &str, more: &str| {
        let keys = format!("algorithm={algorithm} ranks={ranks} size={size} {more}");
        let result = run(&topology, "collective", &keys);
        // Without the return of the last acknowledgement.
        (ps(only(&result).ideal) - ACK_BACK, ps(only(&result).completion) - ACK_BACK)
    };
    let whole = of("hierarchical", 8, "16KiB", "server_ranks=4");
    let phases = [
        of("ring-reduce-scatter", 4, "16KiB", ""),
        of("ring-allreduce", 2, "4KiB", ""),
        of("ring-all-gather", 4, "16KiB", ""),
    ];
    assert_eq!(whole.0, phases.iter().map(|phase| phase.0).sum::<u64>());
    // 3 and 3 steps of 4096 B, 2 of 2048 B, with headers of 64 B.
    assert_eq!(whole.0, 6 * ONE_WAY + 2 * 2 * (2112 * 20 + DELAY));
    // In a run each phase begins with the acknowledgement of the last message of the one before.
    assert_eq!(whole.1, phases.iter().map(|phase| phase.1).sum::<u64>() + 2 * ACK);
}

/// A schedule of GOAL with the operations of the only group of `set`, `repetitions` times. A rank begins its next repetition
/// when its own messages of the one before are acknowledged and those to it received, and computes for `compute` first.
fn goal_of(set: &FlowSet, repetitions: usize, compute: Time) -> String {
    let job = &set.grouped[0];
    let schedule = job.schedule(0);
    let mut of_rank = vec![String::new(); job.ranks as usize];
    let mut add = |rank: u32, line: String| of_rank[rank as usize] += &(line + "\n");
    for round in 0..repetitions {
        let computes = repetitions > 1 || compute > Time::ZERO;
        for rank in (0..job.ranks).filter(|_| computes) {
            add(rank, format!("begin{round}: calc {}", compute.ps() / 1000));
        }
        for (number, operation) in schedule.operations().iter().enumerate() {
            let (rank, own) = (operation.rank, format!("{round}x{number}"));
            match operation.work {
                Work::Send { to, bytes } => {
                    add(rank, format!("s{own}: send {bytes}b to {to} tag {number}"));
                    add(to, format!("r{own}: recv {bytes}b from {rank} tag {number}"));
                    if computes {
                        add(rank, format!("s{own} requires begin{round}"));
                    }
                    if round + 1 < repetitions {
                        add(rank, format!("begin{} requires s{own}", round + 1));
                        add(to, format!("begin{} requires r{own}", round + 1));
                    }
                }
                Work::Compute { time, .. } => {
                    add(rank, format!("s{own}: calc {} cpu 1", time.ps() / 1000));
                }
            }
            for on in schedule.after(number) {
                // What a receive is for its rank, sends and computations are for theirs.
                let kind = if on.done == Done::Received { "r" } else { "s" };
                add(rank, format!("s{own} requires {kind}{round}x{}", on.operation));
            }
        }
    }
    let mut all = format!("num_ranks {}\n", job.ranks);
    for (rank, text) in of_rank.iter().enumerate() {
        all += &format!("rank {rank} {{\n{text}}}\n");
    }
    all
}

fn goal_set(topology: &Topology, keys: &str, text: &str) -> FlowSet {
    generated(&host_view(topology), vec![workload("file", &format!("path=0.goal {keys}"))], &[text])
}

/// Patterns that a schedule of GOAL can state (all but a window of messages), and their messages between 8 ranks: 2(n-1) steps
/// of n; log2 n; 2 log2 n; n-1 steps; n(n-1); 2(n-1) edges; two trees; 3 phases of 3 + 2 + 3 steps; there and back; 2(n-1) hops
/// of 8 microbatches.
const PATTERNS: [(&str, usize); 11] = [
    ("ring-allreduce", 14 * 8),
    ("recursive-doubling", 3 * 8),
    ("halving-doubling", 6 * 8),
    ("ring-all-gather", 7 * 8),
    ("ring-reduce-scatter", 7 * 8),
    ("all-to-all", 8 * 7),
    ("tree", 2 * 7),
    ("double-binary-tree", 4 * 7),
    ("hierarchical", (3 + 2 + 3) * 8),
    ("expert-all-to-all", 2 * 8 * 7),
    ("pipeline", 2 * 7 * 8),
];

#[test]
fn goal_schedules_of_collectives_have_their_times() {
    // One leaf of 16 hosts, so that times do not depend on the random paths of flows.
    let topology = fat_tree(2, 32);
    for (algorithm, _) in PATTERNS {
        // Messages that a computation starts together come in the order of the file, others by their receivers.
        let computes = !algorithm.ends_with("all-to-all");
        let compute = if computes { 3 } else { 0 };
        let more = match algorithm {
            "hierarchical" => "server_ranks=4",
            "tree" | "double-binary-tree" => "chunks=3",
            _ => "",
        };
        let keys =
            format!("algorithm={algorithm} ranks=8 size=80000B compute={compute}us groups=2 placement=strided {more}");
        let set = made(&topology, "collective", &keys);
        let of_goal = goal_set(&topology, "groups=2 placement=strided", &goal_of(&set, 1, Time::from_us(compute)));
        let (of_job, of_goal) = (run_of(&topology, set), run_of(&topology, of_goal));
        let flows = |result: &RunResult| {
            let row = |flow: &anabranch_outcome::FlowRow| (flow.src, flow.dst, flow.start, flow.fct_rx, flow.fct_ack);
            let mut rows: Vec<_> = result.flows.iter().map(row).collect();
            rows.sort_unstable();
            rows
        };
        assert!(flows(&of_job) == flows(&of_goal), "{algorithm}: times of flows differ");
        let groups = |result: &RunResult| -> Vec<_> {
            let row = |row: &GroupRow| (row.group, row.ranks, row.start, row.completion, row.ideal, row.computation);
            result.jobs.groups.iter().map(row).collect()
        };
        assert_eq!(groups(&of_job), groups(&of_goal), "{algorithm}");
        assert_eq!(groups(&of_goal).len(), 2);
        let ranks = |result: &RunResult| -> Vec<_> {
            let ranks = result.jobs.ranks.iter();
            ranks.map(|row| (row.group, row.rank, row.host, row.start, row.completion, row.ideal)).collect()
        };
        assert_eq!(ranks(&of_job), ranks(&of_goal), "{algorithm}");
    }
}

#[test]
fn goal_schedule_of_repetitions_has_their_times() {
    let topology = fat_tree(2, 8);
    let keys = "ranks=4 size=80000B repetitions=2 compute=3us";
    let set = made(&topology, "collective", keys);
    let of_goal = goal_set(&topology, "", &goal_of(&set, 2, Time::from_us(3)));
    let (of_job, of_goal) = (run_of(&topology, set), run_of(&topology, of_goal));
    let first = only(&of_goal);
    let (last, ended) = (&of_job.jobs.groups[1], |row: &GroupRow| ps(row.start) + ps(row.completion));
    assert_eq!((ps(first.start), ended(first)), (0, ended(last)));
    // Two computations, and the ideal time of both.
    assert_eq!(first.computation.ps(), 6 * US);
    // Twelve steps of one message to each rank: with the messages of both repetitions.
    let steps: Vec<_> = of_goal.jobs.steps.iter().map(|row| (row.step, row.messages)).collect();
    assert_eq!(steps, (0..12).map(|step| (step, 4)).collect::<Vec<_>>());
    let times = |result: &RunResult| -> Vec<_> {
        result.jobs.steps.iter().map(|row| (row.messages, row.start.get(), row.completion.get())).collect()
    };
    assert_eq!(times(&of_job), times(&of_goal));
}

/// Rank 0 computes 2 and 3 us one after the other on one processor, and 4 us on another; the message starts with the second
/// computation, and its receiver replies 1 us later. Rank 2 does nothing.
#[test]
fn goal_schedule_with_processors_has_the_times_of_its_graph() {
    let text = "num_ranks 3\nrank 0 {\na: calc 2000\nb: calc 3000\nc: calc 4000 cpu 1\nb irequires a\n\
                s: send 4096b to 1 tag 0\ns irequires b\nr: recv 4096b from 1 tag 1\n}\n\
                rank 1 {\nr: recv 4096b from 0 tag 0\nc: calc 1000\ns: send 4096b to 0 tag 1\nc requires r\n\
                s requires c\n}\nrank 2 {\n}\n";
    let topology = fat_tree(2, 8);
    let result = run_of(&topology, goal_set(&topology, "start_at=1us", text));
    let group = only(&result);
    // The second computation begins after the first, the message with it: 2 us, then the way there, 1 us, the way back.
    let reply = 2 * US + ONE_WAY + US + ONE_WAY;
    assert_eq!((ps(group.start), ps(group.completion), ps(group.ideal)), (US, reply + ACK_BACK, reply + ACK_BACK));
    assert_eq!((group.ranks, group.last_rank, group.critical_messages), (3, Some(1), Some(2)));
    let of = |rank: usize| (ps(result.jobs.ranks[rank].completion), result.jobs.ranks[rank].computation.ps());
    // 5 us on the busiest processor of rank 0.
    assert_eq!([of(0), of(1), of(2)], [(reply, 5 * US), (reply + ACK_BACK, US), (0, 0)]);
    let steps: Vec<_> =
        result.jobs.steps.iter().map(|row| (row.step, ps(row.start.get()), ps(row.completion.get()))).collect();
    assert_eq!(steps, [(0, 3 * US, ONE_WAY), (1, 4 * US + ONE_WAY, ONE_WAY)]);
}

#[test]
fn training_rounds_in_groups_compute_between() {
    let keys = "groups=2 ranks=2 rounds=3 sizes=4096B hosts=0..4 placement=packed compute=5us gap=2us";
    let result = run(&fat_tree(2, 8), "training-rounds", keys);
    let hosts: Vec<u32> = result.jobs.ranks.iter().map(|row| row.host).collect();
    assert_eq!(hosts, [0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3]);
    // A message from the first host to the second after 5 us. Its sender has the acknowledgement a latency later, and the next round begins 2 us
    // after that.
    let round = 5 * US + ONE_WAY + US + 2 * US;
    for row in &result.jobs.groups {
        let start = u64::from(row.repetition) * round;
        let rank = &result.jobs.ranks[(row.group * 6 + row.repetition * 2) as usize];
        assert_eq!((ps(rank.start), ps(rank.completion)), (start, 5 * US + ONE_WAY + ACK_BACK));
        assert_eq!(row.computation.ps(), 5 * US);
    }
    let steps: Vec<_> = result.jobs.steps.iter().map(|row| (row.group, row.repetition, ps(row.start.get()))).collect();
    let expected =
        (0..2).flat_map(|group| (0..3).map(move |round_| (group, round_, u64::from(round_) * round + 5 * US)));
    assert_eq!(steps, expected.collect::<Vec<_>>());
}

#[test]
fn groups_follow_each_other_on_their_hosts() {
    let keys = "algorithm=ring-reduce-scatter groups=6 concurrent=2 ranks=2 size=8KiB compute=2us";
    let result = run(&fat_tree(2, 8), "collective", keys);
    let alone = 2 * US + ONE_WAY + ACK_BACK;
    // Both ranks end together. The end of the second reaches the first after 1 us, whose start reaches the second after another.
    // So the second rank is 1 us late, and the first receives its message then.
    for row in &result.jobs.groups {
        let wave = u64::from(row.group / 2);
        let later = if wave == 0 { alone } else { alone + US };
        assert_eq!(ps(row.completion), later, "group {}", row.group);
        let start = if wave == 0 { 0 } else { alone + US + (wave - 1) * (alone + 2 * US) };
        assert_eq!((ps(row.start), row.ideal), (start, row.completion), "group {}", row.group);
    }
    let hosts: Vec<u32> = result.jobs.ranks.iter().map(|row| row.host).collect();
    assert_eq!(hosts, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn every_pattern_runs_in_groups_and_repetitions() {
    let topology = fat_tree(2, 8);
    for (algorithm, messages) in PATTERNS {
        let more = match algorithm {
            "hierarchical" => "server_ranks=4",
            "expert-all-to-all" => "skew=1.0",
            "all-to-all" => "parallel=3 order=random",
            _ => "",
        };
        let keys = format!(
            "algorithm={algorithm} groups=3 concurrent=2 ranks=8 repetitions=2 size=100kB placement=random compute=1us {more}"
        );
        let result = run(&topology, "collective", &keys);
        assert_eq!(result.flows.len(), 3 * 2 * messages, "{algorithm}");
        assert_eq!((result.jobs.groups.len(), result.jobs.ranks.len()), (6, 48));
        for row in &result.jobs.groups {
            assert!(row.completion.is_some() && row.ideal.is_some(), "{algorithm}: {row:?}");
        }
        // A rank begins with its computation; no message of a repetition starts before that.
        for (flow, label) in result.flows.iter().map(|flow| (flow, result.jobs.flows[flow.flow_id as usize])) {
            let of = (label.group * 2 + label.repetition) * 8 + label.src_rank;
            let rank = &result.jobs.ranks[of as usize];
            assert_eq!((rank.rank, rank.host), (label.src_rank, flow.src), "{algorithm}");
            let from = ps(rank.start) + rank.computation.ps();
            let end = ps(rank.start) + ps(rank.completion);
            assert!((from..=end).contains(&ps(flow.start)), "{algorithm}: {label:?} starts at {:?}", flow.start);
            assert!(ps(flow.start) + ps(flow.fct_ack) <= end, "{algorithm}: {label:?}");
        }
    }
}

#[test]
fn training_steps_repeat_and_end() {
    let keys = "layers=4 microbatches=3 ranks=8 buckets=2 repetitions=2 forward=3us activations=16KiB gradients=256KiB";
    let result = run(&fat_tree(2, 8), "training-step", keys);
    assert_eq!((result.jobs.groups.len(), result.jobs.ranks.len()), (2, 16));
    for row in &result.jobs.ranks {
        // Two layers of three microbatches, 3 us forward and 6 us back.
        assert_eq!(row.computation.ps(), 2 * 3 * 9 * US);
        assert!(ps(row.completion) > row.computation.ps() && ps(row.ideal) > row.computation.ps());
    }
    // The second step starts when the first has ended, rank by rank.
    for (first, second) in result.jobs.ranks.iter().zip(&result.jobs.ranks[8..]) {
        assert_eq!(ps(second.start), ps(first.start) + ps(first.completion));
    }
}
