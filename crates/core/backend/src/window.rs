use crate::Setup;
use anabranch_units::Time;
use anabranch_workload::{GroupTemplate, Start};

/// Returns the first and last start of the flows that count (of measured workloads, past the warm-up) up to the time
/// limit. `None` if one of them waits for others, or all starts are equal.
pub fn arrivals(setup: &Setup) -> Option<(Time, Time)> {
    let flows = &setup.flows.flows;
    let waits = |template: &GroupTemplate| {
        let workload = setup.flows.grouped[template.job as usize].workload;
        setup.flows.workloads.get(usize::from(workload)).is_none_or(|w| w.measured)
    };
    if setup.flows.templates.iter().any(waits) {
        return None;
    }
    let at = |start: Start| match start {
        Start::At(time) => Some(time),
        Start::On(_) => None,
    };
    let counted_from = flows.iter().filter_map(|flow| at(flow.start)).min()?.saturating_add(setup.limits.warmup);
    let counts = |workload: u16| setup.flows.workloads.get(usize::from(workload)).is_none_or(|w| w.measured);
    let (mut first, mut last) = (Time::MAX, Time::ZERO);
    for flow in flows.iter().filter(|flow| counts(flow.workload)) {
        let start = at(flow.start)?;
        first = first.min(start);
        last = last.max(start);
    }
    let (from, to) = (first.max(counted_from), last.min(setup.limits.time_limit));
    (from < to).then_some((from, to))
}
