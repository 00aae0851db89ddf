//! Jobs in results: the rows of groups and ranks follow from those of flows.

use crate::common::{Folder, assert_contains};
use anabranch_testkit::rows;
use std::collections::BTreeMap;

type Row = BTreeMap<String, String>;

/// End of a message, its flow, its receiver and its start.
type Message = (u64, u64, u64, u64);

fn number(row: &Row, column: &str) -> u64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

fn real(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

fn table(folder: &Folder, name: &str) -> Vec<Row> {
    rows(&folder.read(format!("out/{name}.csv")))
}

/// The ready-made scenario with fewer groups and less web search, from the rows of its flows alone.
#[test]
fn rows_of_jobs_follow_from_those_of_flows() {
    let folder = Folder::new("jobs");
    let small = "run allreduce-64x8 --progress never --out out --set load_balancer.scheme=ecmp --set workload.0.groups=16 \
                 --set workload.0.repetitions=2 --set workload.0.size=512KiB --set workload.1.duration=20us \
                 --set fault.0.at=60us";
    folder.ok(&small.split_whitespace().collect::<Vec<_>>());
    let (flows, labels, jobs) = (table(&folder, "flows"), table(&folder, "job_flows"), table(&folder, "jobs"));
    // 16 groups of 8 ranks, 2(8-1) steps, twice.
    assert_eq!((labels.len(), jobs.len()), (16 * 8 * 14 * 2, 16 * 2));
    // Per group, repetition and rank: its last message received or acknowledgement.
    let mut ends: BTreeMap<(u64, u64, u64), (u64, u64)> = BTreeMap::new();
    for label in &labels {
        let flow = &flows[number(label, "flow_id") as usize];
        let start = number(flow, "start_ps");
        let received = start + number(flow, "wait_start_ps") + number(flow, "fct_rx_ps");
        let acknowledged = start + number(flow, "fct_ack_ps");
        for (rank, end) in [("dst_rank", received), ("src_rank", acknowledged)] {
            let key = (number(label, "group"), number(label, "repetition"), number(label, rank));
            let last = ends.entry(key).or_default();
            *last = (*last).max((end, number(label, "flow_id")));
        }
    }
    // Step and sending rank of each flow, and the flow of a step of the first repetition.
    let place: BTreeMap<u64, (u64, u64)> = labels
        .iter()
        .map(|label| (number(label, "flow_id"), (number(label, "step"), number(label, "src_rank"))))
        .collect();
    let first = labels.iter().filter(|label| number(label, "repetition") == 0);
    let of_step: BTreeMap<(u64, u64, u64), u64> = first
        .map(|label| {
            let key = (number(label, "group"), number(label, "step"), number(label, "src_rank"));
            (key, number(label, "flow_id"))
        })
        .collect();
    for job in &jobs {
        let (group, repetition) = (number(job, "group"), number(job, "repetition"));
        let end = |repetition: u64, rank: u64| ends[&(group, repetition, rank)].0;
        // A rank begins a repetition when it has ended the one before.
        let start = |rank: u64| if repetition == 0 { 0 } else { end(repetition - 1, rank) };
        let first = (0..8).map(start).min().unwrap();
        let last = (0..8).map(|rank| end(repetition, rank)).max().unwrap();
        assert_eq!((number(job, "start_ps"), number(job, "completion_ps")), (first, last - first), "{job:?}");
        let rank = (0..8).find(|rank| end(repetition, *rank) == last).unwrap();
        assert_eq!(number(job, "last_rank"), rank);
        let flow = &flows[number(job, "last_flow") as usize];
        assert_eq!((number(job, "last_src"), number(job, "last_dst")), (number(flow, "src"), number(flow, "dst")));
        assert_eq!((&job["last_link"], &job["last_link_ps"]), (&flow["wait_link"], &flow["wait_link_ps"]));
        // In a ring a message waits for the one that its sender received in the step before. In the first repetition all
        // ranks start together, so that the critical path begins at step 0.
        if repetition == 0 {
            let (mut step, mut sender) = place[&number(job, "last_flow")];
            let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
            let messages = step + 1;
            loop {
                let flow = &flows[of_step[&(group, step, sender)] as usize];
                if !flow["wait_link"].is_empty() {
                    *waits.entry(&flow["wait_link"]).or_default() += number(flow, "wait_link_ps");
                }
                if step == 0 {
                    break;
                }
                (step, sender) = (step - 1, (sender + 7) % 8);
            }
            assert_eq!(number(job, "critical_messages"), messages);
            assert_eq!(number(job, "critical_link_ps"), waits.values().copied().max().unwrap());
            assert_eq!(number(job, "critical_link_ps"), waits[job["critical_link"].as_str()]);
        }
        // 50 us of the time is computation; NCCL's factor of 8 ranks is 2 * 7/8.
        let exposed = last - first - 50_000_000;
        assert_eq!(number(job, "exposed_ps"), exposed);
        let bus = 524_288.0 * 8.0 * 1.75 / (exposed as f64 / 1e12);
        assert!((real(job, "bus_bandwidth_bps") / bus - 1.0).abs() < 1e-9);
        let slowdown = (last - first) as f64 / number(job, "ideal_ps") as f64;
        assert!((real(job, "slowdown") / slowdown.max(1.0) - 1.0).abs() < 1e-9);
    }
    // A step lasts from the first start of its messages to the last one received.
    let mut of_steps: BTreeMap<(u64, u64, u64), Vec<Message>> = BTreeMap::new();
    for label in &labels {
        let (id, flow) = (number(label, "flow_id"), &flows[number(label, "flow_id") as usize]);
        let start = number(flow, "start_ps");
        let received = start + number(flow, "wait_start_ps") + number(flow, "fct_rx_ps");
        let key = (number(label, "group"), number(label, "repetition"), number(label, "step"));
        of_steps.entry(key).or_default().push((received, id, number(label, "dst_rank"), start));
    }
    let steps = table(&folder, "job_steps");
    assert_eq!(steps.len(), 16 * 2 * 14);
    for (row, (key, messages)) in steps.iter().zip(&of_steps) {
        assert_eq!((number(row, "group"), number(row, "repetition"), number(row, "step")), *key);
        let start = messages.iter().map(|message| message.3).min().unwrap();
        let end = messages.iter().map(|message| message.0).max().unwrap();
        let times = (number(row, "messages"), number(row, "start_ps"), number(row, "end_ps"));
        assert_eq!(times, (8, start, end), "{row:?}");
        assert_eq!(number(row, "completion_ps"), end - start);
        let last: Vec<_> = messages.iter().filter(|message| message.0 == end).collect();
        let found = (number(row, "last_flow"), number(row, "last_rank"));
        assert!(last.iter().any(|message| (message.1, message.2) == found), "{row:?}");
        let flow = &flows[found.0 as usize];
        assert_eq!((&row["last_link"], &row["last_link_ps"]), (&flow["wait_link"], &flow["wait_link_ps"]));
        let slowdown = (end - start) as f64 / number(row, "ideal_ps") as f64;
        assert!((real(row, "slowdown") / slowdown - 1.0).abs() < 1e-9);
    }
    // The summary is over these rows.
    let mut completions: Vec<f64> = jobs.iter().map(|job| number(job, "completion_ps") as f64 / 1e6).collect();
    completions.sort_by(f64::total_cmp);
    let of = &folder.json_file("out/summary.json")["workloads"]["allreduce"]["groups"];
    assert_eq!((of["total"].as_u64(), of["complete"].as_u64()), (Some(32), Some(32)));
    let median = (completions[15] + completions[16]) / 2.0;
    assert!((of["completion_us"]["p50"].as_f64().unwrap() / median - 1.0).abs() < 1e-12);
    let page = folder.read("out/report.html");
    assert_contains(&page, &["id=\"jobs\"", "job_completion-allreduce", "Groups of allreduce took"]);
}

/// Groups of 8 on 1024 hosts, 100 at a time, without rows of their flows.
fn many_groups(folder: &Folder, groups: u32) {
    let scenario = format!(
        "name = \"groups\"\n[topology]\nkind = \"fat-tree\"\ntiers = 3\nradix = 16\n[load_balancer]\nscheme = \"ops\"\n\
         [[workload]]\nkind = \"collective\"\nname = \"rings\"\ngroups = {groups}\nranks = 8\nconcurrent = 100\n\
         placement = \"strided\"\nsize = \"64KiB\"\n[measure]\nflow_rows = \"without-jobs\"\n"
    );
    folder.file("groups.toml", &scenario);
    folder.ok("run groups.toml --progress never --out out --replace");
}

#[test]
fn flows_of_jobs_need_no_rows() {
    let folder = Folder::new("jobs-unlisted");
    many_groups(&folder, 150);
    let (jobs, ranks, flows) = (table(&folder, "jobs"), table(&folder, "job_ranks"), table(&folder, "flows"));
    assert_eq!((jobs.len(), ranks.len(), flows.len()), (150, 150 * 8, 0));
    let steps = table(&folder, "job_steps");
    assert!(steps.len() == 150 * 14 && steps.iter().all(|step| number(step, "completion_ps") > 0));
    assert!(!folder.exists("out/job_flows.csv"));
    assert!(jobs.iter().all(|job| number(job, "completion_ps") > 0 && job["last_flow"].is_empty()));
    let summary = folder.json_file("out/summary.json");
    let of = &summary["workloads"]["rings"];
    // 150 groups of 8 x 14 messages.
    assert_eq!(of["unlisted"], serde_json::json!({ "total": 150 * 112, "finished": 150 * 112 }));
    let last = jobs.iter().map(|job| number(job, "start_ps") + number(job, "completion_ps")).max().unwrap();
    assert!((of["completion_us"].as_f64().unwrap() - last as f64 / 1e6).abs() < 1e-6, "{of}");
}

/// Ten times as many groups take at most 1.5 times the memory, and set-up less than 5 s.
#[test]
#[ignore = "10,000 groups: 10 s"]
fn memory_does_not_grow_with_the_groups_to_come() {
    let folder = Folder::new("jobs-memory");
    let peak = |groups| {
        many_groups(&folder, groups);
        folder.json_file("out/summary.json")["peak_rss_bytes"].as_u64().expect("a system that reports memory")
    };
    let (few, many) = (peak(1_000), peak(10_000));
    println!("1,000 groups {few} B, 10,000 groups {many} B: {:.2} times", many as f64 / few as f64);
    assert!(many * 2 <= few * 3, "{few} B and {many} B");
    let begin = std::time::Instant::now();
    folder.ok("check groups.toml");
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}
