//! Jobs: completion of their groups per scheme, and the group that was last.

use crate::{Dataset, GroupPoint, RunRows, SchemeRuns, colours};
use anabranch_results::{significant_digits, thousands};
use anabranch_statistics::{mean, quantile};
use minijinja::{Value, context};

/// Returns a block per job with a row per scheme; none without jobs of groups.
pub(super) fn blocks(data: &Dataset) -> Vec<Value> {
    let colours = colours(&data.names());
    let block = |(number, name): (u16, &String)| {
        let rows: Vec<Value> = data
            .schemes
            .iter()
            .zip(&colours)
            .filter_map(|(scheme, colour)| row(*colour, scheme, number, name))
            .collect();
        (!rows.is_empty()).then(|| context! { workload => name, rows => rows })
    };
    (0..).zip(&data.workloads).filter_map(block).collect()
}

fn row(colour: usize, scheme: &SchemeRuns, workload: u16, name: &str) -> Option<Value> {
    let of = |run: &RunRows| run.groups.iter().filter(|group| group.workload == workload).cloned().collect::<Vec<_>>();
    let runs: Vec<(u64, Vec<GroupPoint>)> =
        scheme.runs.iter().map(|run| (run.summary.seed, of(run))).filter(|(_, groups)| !groups.is_empty()).collect();
    let groups = |run: &RunRows| run.summary.workloads.get(name).and_then(|of| of.groups.clone());
    let summaries: Vec<_> = scheme.runs.iter().filter_map(groups).collect();
    let over_seeds = |get: &dyn Fn(&anabranch_results::summary::GroupSummary) -> Option<f64>| {
        let values: Vec<f64> = summaries.iter().filter_map(get).collect();
        mean(&values).map_or_else(|| "-".to_string(), |value| significant_digits(value, 4))
    };
    let (total, complete) = summaries.iter().fold((0, 0), |sum, of| (sum.0 + of.total, sum.1 + of.complete));
    let slowest = runs.iter().flat_map(|(seed, groups)| groups.iter().map(move |group| (*seed, group)));
    let slowest = slowest.max_by(|a, b| a.1.completion_us.total_cmp(&b.1.completion_us))?;
    let quantiles = |share: f64| {
        let of_seed = |groups: &Vec<GroupPoint>| {
            let mut times: Vec<f64> = groups.iter().map(|group| group.completion_us).collect();
            times.sort_unstable_by(f64::total_cmp);
            quantile(&times, share)
        };
        let values: Vec<f64> = runs.iter().filter_map(|(_, groups)| of_seed(groups)).collect();
        mean(&values).map_or_else(|| "-".to_string(), |value| significant_digits(value, 4))
    };
    Some(context! {
        scheme => &scheme.name,
        colour => colour,
        complete => thousands(&complete.to_string()),
        total => thousands(&total.to_string()),
        p50 => quantiles(0.5),
        p99 => quantiles(0.99),
        max => quantiles(1.0),
        slowdown_p50 => over_seeds(&|of| of.slowdown.p50),
        slowdown_p99 => over_seeds(&|of| of.slowdown.p99),
        exposed => over_seeds(&|of| of.exposed_us.p50),
        bus => over_seeds(&|of| of.bus_bandwidth_bps.map(|bps| bps / 1e9)),
        slowest => sentence(slowest.0, slowest.1),
    })
}

fn sentence(seed: u64, group: &GroupPoint) -> String {
    let rank = group.last_rank.map_or(String::new(), |rank| format!("; rank {rank} was last"));
    let flow = group
        .last_flow
        .map_or(String::new(), |(flow, src, dst)| format!(", with flow {flow} from host{src} to host{dst}"));
    let link = group.last_link.as_ref().map_or(String::new(), |(link, time)| {
        let link = link.replace("->", " \u{2192} ");
        format!(", which {link} held longest ({} µs)", significant_digits(*time, 3))
    });
    let critical = group.critical.as_ref().map_or(String::new(), |(messages, link, time)| {
        let link = link.replace("->", " \u{2192} ");
        let all = match messages {
            1 => "The only message of its critical path".to_string(),
            _ => format!("The {messages} messages of its critical path"),
        };
        format!(" {all} waited longest at {link} ({} µs).", significant_digits(*time, 3))
    });
    let slowdown = group
        .slowdown
        .map_or(String::new(), |slowdown| format!(", {} times that alone", significant_digits(slowdown, 3)));
    format!(
        "Slowest: group {}, repetition {} of seed {seed}: {} µs{slowdown}{rank}{flow}{link}.{critical}",
        group.group,
        group.repetition,
        significant_digits(group.completion_us, 4)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_paths_of_one_and_of_several_messages() {
        let of = |messages| {
            let group = GroupPoint {
                workload: 0,
                group: 3,
                repetition: 1,
                completion_us: 12.5,
                slowdown: Some(1.25),
                last_rank: Some(2),
                last_flow: None,
                last_link: None,
                critical: Some((messages, "leaf0->spine1".into(), 0.5)),
            };
            sentence(7, &group)
        };
        let begin = "Slowest: group 3, repetition 1 of seed 7: 12.50 µs, 1.25 times that alone; rank 2 was last. The";
        let end = "of its critical path waited longest at leaf0 \u{2192} spine1 (0.500 µs).";
        assert_eq!(of(1), format!("{begin} only message {end}"));
        assert_eq!(of(6), format!("{begin} 6 messages {end}"));
    }
}
