use crate::{Dataset, LinkPoint, RunRows, colours, dataset::Load};
use anabranch_results::{bytes, seconds, thousands};
use minijinja::{Value, context};

/// Ports listed by waiting time; `LOSING` more are listed by trims and drops.
const WAITING: usize = 8;
const LOSING: usize = 4;

/// Returns a block per scheme, of its first seed. `measured` without rows: `true` if no packet waited, `false` if
/// queues were not measured.
pub(super) fn blocks(data: &Dataset) -> Vec<Value> {
    let colours = colours(&data.names());
    let block = |(at, scheme): (usize, &crate::dataset::SchemeRuns)| {
        let run = &scheme.runs[0];
        let rows: Vec<Value> = worst(run).into_iter().map(|link| row(link, run, data)).collect();
        context! { scheme => &scheme.name, series => colours[at], seed => run.summary.seed, rows => rows,
        measured => run.links.iter().any(|link| waited(link, run).is_some()) }
    };
    data.schemes.iter().enumerate().map(block).collect()
}

/// Total waiting time of packets at a port in seconds, by Little's law the integral of the queue length.
fn waited(link: &LinkPoint, run: &RunRows) -> Option<f64> {
    Some(link.queue_mean_packets? * run.summary.simulated_s)
}

/// Ports with the longest waiting time, and those that trimmed and dropped the most; the longest wait first.
fn worst(run: &RunRows) -> Vec<&LinkPoint> {
    let mut links: Vec<&LinkPoint> = run.links.iter().filter(|link| !link.is_nic).collect();
    let lost = |link: &LinkPoint| link.trims.unwrap_or(0) + link.drops.unwrap_or(0);
    let wait = |link: &LinkPoint| waited(link, run).unwrap_or(0.0);
    // The largest queue is used only if the mean was not measured: with trimming it equals the limit at many ports.
    let mean = |link: &LinkPoint| link.queue_mean_bytes.or(link.queue_max_bytes).unwrap_or(0.0);
    let by_wait = |a: &&LinkPoint, b: &&LinkPoint| {
        wait(b).total_cmp(&wait(a)).then(lost(b).cmp(&lost(a))).then(mean(b).total_cmp(&mean(a)))
    };
    links.sort_by(by_wait);
    let rest = links.split_off(WAITING.min(links.len()));
    let mut losing: Vec<&LinkPoint> = rest.into_iter().filter(|link| lost(link) > 0).collect();
    losing.sort_by_key(|link| std::cmp::Reverse(lost(link)));
    links.retain(|link| wait(link) > 0.0 || mean(link) > 0.0 || lost(link) > 0);
    links.extend(losing.into_iter().take(LOSING));
    links.sort_by(by_wait);
    links
}

fn row(link: &LinkPoint, run: &RunRows, data: &Dataset) -> Value {
    let unknown = || "-".to_string();
    let count = |value: Option<u64>| value.map_or_else(unknown, |value| thousands(&value.to_string()));
    let size = |value: Option<f64>| value.map_or_else(unknown, bytes);
    // Without a natural largest value, the bar of the busiest link of all schemes is full.
    let largest = || data.schemes.iter().flat_map(|s| &s.runs[0].links).map(|link| link.load).fold(1.0, f64::max);
    let full = if data.load == Load::EvenSplit { largest() } else { 1.0 };
    let share = 100.0 * link.load / full;
    context! {
        from => &link.from,
        to => link.to_port(),
        group => &*link.group,
        fault => &link.fault,
        load => data.load.text(link.load),
        load_value => link.load,
        share => share.clamp(0.0, 100.0),
        waited => waited(link, run).map_or_else(unknown, seconds),
        waited_value => waited(link, run),
        mean => size(link.queue_mean_bytes),
        p99 => size(link.queue_p99_bytes),
        max => size(link.queue_max_bytes),
        marks => count(link.ecn_marks),
        trims => count(link.trims),
        drops => count(link.drops),
    }
}
