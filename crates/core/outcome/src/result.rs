use crate::{
    Clock, Conservation, FlowRow, FlowSeries, GpuRow, JobRows, LinkRow, LinkWindow, Measures, OnWire, PortSeries,
    RunMetrics, SchemeSeries, UplinkCount, Watched,
};
use anabranch_units::Time;
use std::ops::Deref;

/// Output of a backend for a run: rows and totals, unknown where it did not measure.
#[derive(Clone, Debug, Default)]
pub struct RunRows {
    /// 64 bits over the integers of flows and links, equal for any number of threads. `None` on the clock of the machine.
    pub fingerprint: Option<u64>,
    /// Duration of the run, on its clock.
    pub simulated: Time,
    /// Wall time of the run, without preparation.
    pub wall_seconds: f64,
    /// Number of events handled; `None`: the backend has none.
    pub events: Option<u64>,
    /// Packets that left a port.
    pub packet_hops: Option<u64>,
    /// `true` if a time limit ended the run before all flows completed.
    pub time_limit_struck: bool,
    /// `true` if the run was interrupted.
    pub interrupted: bool,
    /// Links of a circle of PFC pauses that cannot resolve; empty: there is none.
    pub deadlock: Vec<String>,
    /// Time of the last progress of a run that stalled, and so can never end; `None`: it ended otherwise.
    pub stalled_after: Option<Time>,
    /// The port with the most bytes of trimmed headers and control packets at that time, and these; `None`: none waits.
    pub stalled_port: Option<(String, u64)>,
    /// Reason of a stall without a pending event; `None` where timeouts were pending, or without a stall.
    pub stall_reason: Option<String>,
    /// Simulated time that was skipped, of a run with `run.skip`. `None`: without it.
    pub skipped: Option<Time>,
    /// Per flow, in flow order.
    pub flows: Vec<FlowRow>,
    /// Groups and ranks of jobs.
    pub jobs: JobRows,
    /// Per directed link, in link order.
    pub links: Vec<LinkRow>,
    /// Per GPU, in their order; empty without servers.
    pub gpus: Vec<GpuRow>,
    /// Totals.
    pub counters: RunMetrics,
    /// Conservation of packets and bytes; `None`: not checked.
    pub conservation: Option<Conservation>,
    /// Time series of the requested ports.
    pub series: Vec<PortSeries>,
    /// Time series of the requested flows.
    pub flow_series: Vec<FlowSeries>,
    /// Time series of the load balancers, on request.
    pub scheme_series: Vec<SchemeSeries>,
    /// Per-flow packet counts per uplink, on request.
    pub uplink_counts: Vec<UplinkCount>,
    /// Traces and captures, on request.
    pub watched: Watched,
    /// Bytes of the simulator's own structures per host, estimated from their sizes.
    pub bytes_per_host: Option<u64>,
    /// Traffic of the links while flows arrived; `None` if the starts of the flows are not known in advance, or all are equal.
    pub window: Option<LinkWindow>,
    /// Results of a run of real packets; `None`: it was simulated.
    pub on_wire: Option<OnWire>,
}

impl RunRows {
    /// Returns the share of its rate that a link carried in the window, if there is one.
    pub fn window_utilisation(&self, link: usize) -> Option<f64> {
        let window = self.window.as_ref()?;
        let (bytes, rate) = (*window.sent_bytes.get(link)?, self.links.get(link)?.rate_bps);
        let seconds = window.to.saturating_sub(window.from).as_seconds();
        (seconds > 0.0 && rate > 0).then(|| bytes as f64 * 8.0 / (rate as f64 * seconds))
    }
}

/// Results of a run: the rows of its backend, without those that it does not measure. They are read-only, so that all
/// pass this filter:
///
/// ```compile_fail
/// # use anabranch_outcome::{Measures, RunResult, RunRows};
/// let mut result = RunResult::new(RunRows::default(), &Measures::TIMES);
/// result.counters.dropped = Some(0);
/// ```
#[derive(Clone, Debug)]
pub struct RunResult(RunRows);

impl Deref for RunResult {
    type Target = RunRows;
    fn deref(&self) -> &RunRows {
        &self.0
    }
}

impl RunResult {
    /// Creates a result from `rows` without the metrics not in `measures`.
    pub fn new(mut rows: RunRows, measures: &Measures) -> Self {
        rows.flows.iter_mut().for_each(|flow| flow.metrics.keep(&measures.flows));
        match &measures.links {
            Some(links) => rows.links.iter_mut().for_each(|link| link.keep(links)),
            None => {
                rows.links.clear();
                rows.gpus.clear();
                rows.window = None;
            }
        }
        rows.counters.keep(&measures.counters);
        rows.conservation = rows.conservation.filter(|_| measures.conservation);
        rows.packet_hops = rows.packet_hops.filter(|_| measures.packet_hops);
        if measures.clock == Clock::Machine {
            (rows.fingerprint, rows.events) = (None, None);
        }
        if !measures.samples {
            rows.series.clear();
            rows.flow_series.clear();
            rows.scheme_series.clear();
            rows.uplink_counts.clear();
            let Watched { schemes, schemes_cut, .. } = std::mem::take(&mut rows.watched);
            if measures.schemes {
                rows.watched = Watched { schemes, schemes_cut, ..Watched::default() };
            }
        }
        RunResult(rows)
    }
}
