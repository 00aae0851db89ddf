//! Jobs whose flows have no rows: made by arithmetic, group by group, they give what listed flows give.

use crate::common::*;
use anabranch_outcome::RunResult;
use anabranch_topology::Topology;
use anabranch_units::Time;
use anabranch_workload::{FlowSet, HostView};

fn made(topology: &Topology, kinds: &[(&str, &str)], templates: bool) -> FlowSet {
    let view = HostView { templates, ..host_view(topology) };
    generated(&view, kinds.iter().map(|(kind, keys)| workload(kind, keys)).collect(), &[])
}

fn run(topology: &Topology, set: FlowSet, threads: usize) -> RunResult {
    run_on(&setup(topology.clone(), set, "ops"), threads)
}

/// A job of 24 groups of 4, 4 at a time, twice each, beside a window of 3 in an all-to-all of 6 groups, 2 at a time, and a
/// permutation with rows.
const KINDS: [(&str, &str); 3] = [
    ("collective", "groups=24 ranks=4 concurrent=4 placement=strided size=64KiB repetitions=2 compute=3us gap=500ns"),
    ("permutation", "size=100KiB"),
    ("collective", "algorithm=all-to-all groups=6 ranks=8 concurrent=2 size=96KiB parallel=3 start=2us"),
];

fn sets(topology: &Topology) -> [FlowSet; 2] {
    let made = made(topology, &KINDS, true);
    let mut listed = made.clone();
    listed.list_templates();
    [made, listed]
}

#[test]
fn numbers_follow_the_listed_flows() {
    let topology = fat_tree(2, 8);
    let [made, listed] = sets(&topology);
    // 24 x 2 rings of 2(n-1) n = 24 messages, 6 exchanges of n(n-1) = 56, and the permutation of 32 hosts.
    assert_eq!((made.number_of_flows(), made.flows.len()), (24 * 2 * 24 + 6 * 56 + 32, 32));
    assert_eq!((listed.flows.len(), listed.triggers.len()), (made.number_of_flows(), made.number_of_triggers()));
    assert!(made.all_flows().eq(listed.flows.iter().copied()));
    assert!((0..made.number_of_flows()).all(|flow| made.label(flow) == listed.label(flow)));
    assert!((0..made.number_of_flows() as u32).all(|flow| made.flow_key(flow) == listed.flow(flow).key));
    assert!((0..made.number_of_flows() as u32).all(|flow| made.connection_key(flow) == listed.flow(flow).connection));
}

/// Keys, sizes and ends of the messages are those that the job has with rows, whose flows have other numbers.
#[test]
fn messages_are_those_of_the_job_with_rows() {
    let topology = fat_tree(2, 8);
    let (with, without) = (made(&topology, &KINDS, false), made(&topology, &KINDS, true));
    let all = |set: &FlowSet| {
        let mut all: Vec<_> = set
            .all_flows()
            .enumerate()
            .map(|(number, flow)| {
                let label = set.label(number).map(|of| (of.group, of.repetition, of.step, of.src_rank, of.dst_rank));
                (flow.workload, label, flow.key, flow.connection, flow.src, flow.dst, flow.size)
            })
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(all(&with), all(&without));
}

#[test]
fn runs_do_not_depend_on_the_listing() {
    let topology = fat_tree(2, 8);
    let [made, listed] = sets(&topology);
    let with_rows = run(&topology, listed, 1);
    let mut fingerprints = vec![];
    for threads in [1, 2, 3] {
        let without = run(&topology, made.clone(), threads);
        assert_eq!(without.flows.len(), 32, "rows of the permutation alone");
        let times = |result: &RunResult| -> Vec<_> {
            let groups = result.jobs.groups.iter().map(|row| {
                (row.workload, row.group, row.repetition, row.start, row.completion, row.ideal, row.last_rank)
            });
            groups.collect()
        };
        assert_eq!(times(&with_rows), times(&without));
        let ranks = |result: &RunResult| -> Vec<_> {
            result
                .jobs
                .ranks
                .iter()
                .map(|row| (row.host, row.start, row.completion, row.ideal, row.computation))
                .collect()
        };
        assert_eq!(ranks(&with_rows), ranks(&without));
        let steps = |result: &RunResult| -> Vec<_> {
            let steps = result.jobs.steps.iter();
            steps.map(|row| (row.workload, row.group, row.repetition, row.step, row.start, row.completion)).collect()
        };
        assert_eq!(steps(&with_rows), steps(&without));
        // 24 x 2 rings of 6 steps, and 6 all-to-alls of one.
        assert_eq!(without.jobs.steps.len(), 24 * 2 * 6 + 6);
        assert_eq!((without.counters, without.conservation), (with_rows.counters, with_rows.conservation));
        assert_eq!((without.simulated, without.packet_hops), (with_rows.simulated, with_rows.packet_hops));
        let totals: Vec<_> = without.jobs.unlisted.iter().map(|of| (of.workload, of.total, of.finished)).collect();
        assert_eq!(totals, [(0, 24 * 2 * 24, 24 * 2 * 24), (2, 6 * 56, 6 * 56)]);
        for of in &without.jobs.unlisted {
            let own = || with_rows.flows.iter().filter(|flow| flow.workload == of.workload);
            assert_eq!(of.first_start, own().filter_map(|flow| flow.start).min());
            assert_eq!(of.last_end, own().filter_map(|flow| Some(flow.start? + flow.fct_ack?)).max());
        }
        fingerprints.push(without.fingerprint);
    }
    assert!(fingerprints.iter().all(|fingerprint| fingerprint.is_some() && *fingerprint == fingerprints[0]));
}

/// The time limit ends a run in the middle of its groups: what has not started has no times.
#[test]
fn groups_that_have_not_ended_have_rows_without_times() {
    let topology = fat_tree(2, 8);
    let [made, listed] = sets(&topology);
    let limited = |set: FlowSet, threads| {
        let mut setup = setup(topology.clone(), set, "ops");
        setup.limits.time_limit = Time::from_us(60);
        run_on(&setup, threads)
    };
    let (with, without) = (limited(listed, 1), limited(made, 2));
    let completions = |result: &RunResult| result.jobs.groups.iter().map(|row| row.completion).collect::<Vec<_>>();
    assert_eq!(completions(&with), completions(&without));
    let complete = without.jobs.groups.iter().filter(|row| row.completion.is_some()).count();
    assert!(complete > 0 && complete < without.jobs.groups.len(), "{complete}");
    let of = &without.jobs.unlisted[0];
    assert!(of.finished > 0 && of.finished < of.total);
}
