//! Memory of measurements, estimated in advance from the shortest time that the run can take.

use super::memory::Budget;
use crate::ScenarioError;
use anabranch_backend::{LoadBalancer, Measures, Setup};
use anabranch_lb::registry::TagKind;
use anabranch_units::Time;
use anabranch_workload::{FLOW_MEMORY, Flow, GroupTemplate, Medium, Start};

/// Bytes of a path of an open flow, where its load balancer keeps a state per path.
const PATH: u64 = 4;
/// Bytes of a flow for the parts of its completion time.
const DELAYS: u64 = 250;
/// Bytes of a row of a trace, from the packet to the file.
const TRACE_ROW: u64 = 250;
/// Bytes of a row of the calls of schemes, from the call to the file.
const SCHEME_ROW: u64 = 500;
/// Bytes of a count of a flow's packets on an uplink.
const UPLINK_ROW: u64 = 120;
/// Bytes of the occupancy of a port.
const OCCUPANCY: u64 = 8_000;

/// Returns a warning for each key of `[measure]` that requests more than a backend with `measures` measures.
pub(super) fn unmeasured(setup: &Setup, measures: &Measures, backend: &str) -> Vec<String> {
    let asked = &setup.measure;
    let has_histogram = measures.links.is_some_and(|links| links.queue_p99);
    let keys = [
        ("series_links", !asked.series_links.is_empty(), measures.samples, "time series"),
        ("series_flows", !asked.series_flows.is_empty(), measures.samples, "time series"),
        ("series_scheme", asked.series_scheme, measures.samples, "time series"),
        ("trace_flows", !asked.trace_flows.is_empty(), measures.samples, "traces of packets"),
        ("trace_scheme", asked.trace_scheme, measures.schemes, "states of schemes"),
        ("uplink_counts", asked.uplink_counts, measures.samples, "counts per uplink"),
        ("occupancy", asked.occupancy, has_histogram, "histograms of queues"),
    ];
    let wrong = keys.into_iter().filter(|(_, is_asked, is_measured, _)| *is_asked && !is_measured);
    let effect = |key: &str| match key == "trace_flows" && asked.trace_scheme && measures.schemes {
        true => "names the flows of `trace_scheme` alone",
        false => "has no effect",
    };
    wrong
        .map(|(key, .., what)| {
            format!("[measure]: `{key}` {}: the backend `{backend}` measures no {what}", effect(key))
        })
        .collect()
}

/// Returns a warning for each load balancer whose schemes have no state to be traced.
pub(super) fn without_state(setup: &Setup) -> impl Iterator<Item = String> {
    let is_bare = |of: &&LoadBalancer| of.host.state().is_empty() && of.switch.state().is_empty();
    setup.load_balancers.iter().filter(|_| setup.measure.trace_scheme).filter(is_bare).map(|of| {
        let rows = match of.host.capabilities().leaves_choice_to_switches() {
            true => "nothing is written",
            false => "its rows have its calls alone",
        };
        format!(
            "[measure]: `trace_scheme`: `{}` keeps no state between packets: {rows}; its tags are in `trace.csv` too",
            of.name
        )
    })
}

/// Returns the maximum number of flows that start at the same time with a load balancer that keeps a state per path, and the
/// number of their paths.
fn open_paths(setup: &Setup) -> (u64, u64) {
    let keeps: Vec<bool> =
        setup.load_balancers.iter().map(|b| b.host.capabilities().tags() == TagKind::MultiPart).collect();
    let with_state = |flow: &&Flow| {
        if flow.medium != Medium::Network {
            return false;
        }
        let balancer = setup.flows.workloads[usize::from(flow.workload)].load_balancer;
        keeps.get(balancer as usize).is_some_and(|keeps| *keeps)
    };
    let at = |flow: &Flow| match flow.start {
        Start::At(time) => Some(time),
        Start::On(_) => None,
    };
    let mut starts: Vec<Time> = setup.flows.flows.iter().filter(with_state).filter_map(at).collect();
    starts.sort_unstable();
    let open = starts.chunk_by(|a, b| a == b).map(<[Time]>::len).max().unwrap_or(0);
    let uplinks = setup.topology.uplinks.iter().chain([&setup.topology.planes]);
    (open as u64, uplinks.map(|uplinks| u64::from(*uplinks)).product())
}

/// Returns the number of flows of the groups of templates that run at a time, with the rows of all their ranks counted as
/// flows.
fn open_flows(setup: &Setup) -> u64 {
    let of = |template: &GroupTemplate| {
        let job = &setup.flows.grouped[template.job as usize];
        let rows = u64::from(job.groups) * u64::from(job.repetitions) * u64::from(job.ranks);
        u64::from(template.flows_per_group()) * u64::from(job.concurrent.min(job.groups)) + rows
    };
    setup.flows.templates.iter().map(of).fold(0, u64::saturating_add)
}

/// Takes the memory of all that `setup` measures, or returns the dotted key at fault with the value that fits.
pub(super) fn take(budget: &mut Budget, setup: &Setup) -> Result<(), (&'static str, ScenarioError)> {
    let measure = &setup.measure;
    let flows = setup.flows.flows.len() as u64 + open_flows(setup);
    let many = budget.take(
        flows.saturating_mul(FLOW_MEMORY + if measure.attribution { DELAYS } else { 0 }),
        &format!("{flows} flows"),
    );
    many.map_err(|error| ("run.memory_limit", error))?;
    let (open, paths) = open_paths(setup);
    budget
        .take(open.saturating_mul(paths).saturating_mul(PATH), &format!("{open} flows at once with {paths} paths each"))
        .map_err(|error| ("run.memory_limit", error))?;
    let packets = |flow: u32| setup.flows.flow(flow).size.div_ceil(setup.transport.mtu().max(1));
    let traced: u64 =
        measure.trace_flows.iter().map(|flow| packets(*flow).saturating_mul(2)).fold(0, u64::saturating_add);
    let rows = traced.min(measure.trace_limit);
    let row = TRACE_ROW + if measure.trace_scheme { SCHEME_ROW } else { 0 };
    let trace = rows.saturating_mul(row);
    let left = budget.left();
    let fits = (left / row).max(1);
    budget
        .take(trace, &format!("[measure]: `trace_flows`: a trace of {rows} rows"))
        .map_err(|error| ("measure.trace_limit", error.help(format!("`trace_limit = {fits}` in [measure] fits"))))?;
    let uplinks = if measure.uplink_counts { flows * UPLINK_ROW } else { 0 };
    budget
        .take(uplinks, "[measure]: `uplink_counts`: a count per flow and uplink")
        .map_err(|error| ("measure.uplink_counts", error.help("`uplink_counts = false` in [measure] fits")))?;
    let occupancy = if measure.occupancy { setup.topology.links.len() as u64 * OCCUPANCY } else { 0 };
    budget
        .take(occupancy, "[measure]: `occupancy`: a histogram per port")
        .map_err(|error| ("measure.occupancy", error.help("`occupancy = false` in [measure] fits")))?;
    check_series(budget, setup).map_err(|error| ("measure.series_interval", error))
}

fn check_series(budget: &Budget, setup: &Setup) -> Result<(), ScenarioError> {
    let (measure, interval) = (&setup.measure, setup.measure.series_interval.ps());
    if interval == 0 {
        return Ok(());
    }
    let balancers = if measure.series_scheme { setup.load_balancers.len() as u64 } else { 0 };
    let per_time = anabranch_fabric::series_bytes(measure.series_links.len() as u64, 0, balancers);
    let time = min_time(setup);
    let reckon = |interval: u64| {
        let all = (time / interval).saturating_add(1).saturating_mul(per_time);
        // A flow has samples for its time at the rate of its host.
        let flow = |flow: &u32| (wire_time(setup, *flow).min(time) / interval).saturating_add(1);
        let flows = measure.series_flows.iter().map(flow).fold(0, u64::saturating_add);
        all.saturating_add(anabranch_fabric::series_bytes(0, flows, 0))
    };
    let (needed, left) = (reckon(interval), budget.left());
    let what = format!(
        "[measure]: `series_interval`: found {}: time series of {} links, {} flows and {balancers} load balancers over {} or more",
        measure.series_interval,
        measure.series_links.len(),
        measure.series_flows.len(),
        Time::from_ps(time),
    );
    // The run counts them as they grow. It takes longer than the least time: the suggested value has space for twice that.
    budget.clone().take(needed, &what).map_err(|error| {
        match round_intervals(interval).find(|i| reckon(*i).saturating_mul(2) <= left) {
            Some(fits) => error.help(format!("`series_interval = \"{}\"` in [measure] fits", Time::from_ps(fits))),
            None => error.help("name fewer links or flows in [measure]"),
        }
    })
}

/// Yields 1, 2, 5, 10, 20, 50, ... ps, from `interval` on.
fn round_intervals(interval: u64) -> impl Iterator<Item = u64> {
    let decades = std::iter::successors(Some(1u64), |decade| decade.checked_mul(10));
    decades.flat_map(|decade| [1, 2, 5].map(|n| decade.saturating_mul(n))).filter(move |round| *round >= interval)
}

/// Returns the time of a flow at the rate of its host, in picoseconds.
fn wire_time(setup: &Setup, flow: u32) -> u64 {
    let flow = setup.flows.flow(flow);
    setup.topology.host_rates(flow.src).0.wire_time(flow.size).ps()
}

/// A lower bound in picoseconds: each host sends at its rate, and flows do not wait for others.
fn min_time(setup: &Setup) -> u64 {
    let limit = setup.limits.time_limit.ps();
    if !setup.limits.until_all_done {
        return limit;
    }
    let mut busy = vec![0u64; setup.topology.hosts as usize];
    let mut latest = 0;
    let in_packets = |(_, flow): &(u32, Flow)| flow.medium == Medium::Network;
    for (number, flow) in (0..).zip(setup.flows.all_flows()).filter(in_packets) {
        let time = wire_time(setup, number);
        let busy = &mut busy[flow.src as usize];
        *busy = busy.saturating_add(time);
        if let Start::At(start) = flow.start {
            latest = start.ps().saturating_add(time).max(latest);
        }
    }
    busy.into_iter().fold(latest, u64::max).min(limit)
}
