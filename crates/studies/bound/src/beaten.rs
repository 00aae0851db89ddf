//! Holds the results of a run against its bounds.

use crate::{Bounds, limit::ALL};
use anabranch_backend::{FctKind, Setup};
use anabranch_outcome::FlowRow;
use anabranch_units::Time;

/// Returns a description of the first limit that the results `flows` of `setup` fall below, which no run may; `None` if they keep
/// all. Limits of workloads with unfinished flows are skipped.
pub fn beaten(setup: &Setup, bounds: &Bounds, flows: &[FlowRow]) -> Option<String> {
    // Skipped spans make times estimates.
    if setup.limits.skip {
        return None;
    }
    let first = flows.iter().filter_map(|flow| flow.start).min().unwrap_or_default();
    let counted_from = first.saturating_add(setup.limits.warmup);
    let workloads = &setup.flows.workloads;
    bounds.limits.iter().find_map(|limit| {
        let belongs = |flow: &FlowRow| match workloads.get(usize::from(flow.workload)) {
            Some(own) if limit.workload == ALL => own.measured,
            Some(own) => own.name == limit.workload,
            None => limit.workload == ALL,
        };
        let counts = |flow: &&FlowRow| belongs(flow) && flow.start.is_none_or(|start| start >= counted_from);
        let counted: Vec<&FlowRow> = flows.iter().filter(counts).collect();
        let value = value(setup.fabric.fct_kind, &limit.metric, &counted)?;
        (value < limit.value).then(|| {
            format!(
                "{} of workload {} is {value}, below the bound {} by {}: the bound or the simulator is wrong",
                limit.metric, limit.workload, limit.value, limit.by
            )
        })
    })
}

/// Returns the value of a metric; `None` without flows, or if one did not finish.
fn value(kind: FctKind, metric: &str, flows: &[&FlowRow]) -> Option<f64> {
    let times = |flow: &&FlowRow| match kind {
        FctKind::Rx => Some((flow.fct_rx?, flow.ideal_rx)),
        FctKind::Ack => Some((flow.fct_ack?, flow.ideal_ack)),
    };
    let times: Vec<(Time, Time)> = flows.iter().map(times).collect::<Option<_>>()?;
    let count = times.len() as f64;
    let slowdowns = || times.iter().map(|(time, ideal)| time.ps() as f64 / ideal.ps().max(1) as f64);
    let longest = times.iter().map(|(time, _)| *time).max()?;
    match metric {
        "fct_mean" => Some(times.iter().map(|(time, _)| time.as_us()).sum::<f64>() / count),
        "fct_max" => Some(longest.as_us()),
        "slowdown_mean" => Some(slowdowns().sum::<f64>() / count),
        "slowdown_max" => slowdowns().max_by(f64::total_cmp),
        "fct_ratio_max" => {
            let ideal = times.iter().map(|(_, ideal)| *ideal).max()?;
            (ideal > Time::ZERO).then(|| longest.ps() as f64 / ideal.ps() as f64)
        }
        _ => {
            let ends: Vec<Time> = flows.iter().map(|flow| Some(flow.start? + flow.fct_ack?)).collect::<Option<_>>()?;
            let first = flows.iter().filter_map(|flow| flow.start).min()?;
            Some((ends.into_iter().max()? - first).as_us())
        }
    }
}
