//! All of a run.

use crate::{
    Clock, Conservation, FlowRow, FlowSeries, LinkRow, LinkWindow, Measures, OnWire, PortSeries, RunMetrics,
    SchemeSeries, UplinkCount, Watched,
};
use anabranch_units::Time;
use std::ops::Deref;

/// What a backend gives of a run: rows and totals, unknown where it did not measure.
#[derive(Clone, Debug, Default)]
pub struct RunRows {
    /// 64 bits over the integers of flows and links in canonical order; equal for any number of threads. `None` on the clock of
    /// the machine.
    pub fingerprint: Option<u64>,
    /// How long the run took, on its clock.
    pub simulated: Time,
    /// Wall time of the run without its preparations.
    pub wall_seconds: f64,
    /// Events handled; `None`: there are none.
    pub events: Option<u64>,
    /// Packets that left a port.
    pub packet_hops: Option<u64>,
    /// Whether a time limit ended the run before all flows were done.
    pub time_limit_struck: bool,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// The links of a circle of PFC pauses that nothing can resolve; empty: there is none.
    pub deadlock: Vec<String>,
    /// Per flow, in flow order.
    pub flows: Vec<FlowRow>,
    /// Per directed link, in link order.
    pub links: Vec<LinkRow>,
    /// Totals.
    pub counters: RunMetrics,
    /// The balance of packets and bytes; `None`: it was not checked.
    pub conservation: Option<Conservation>,
    /// Time series of the ports asked for.
    pub series: Vec<PortSeries>,
    /// Time series of the flows asked for.
    pub flow_series: Vec<FlowSeries>,
    /// Time series of the load balancers, where asked for.
    pub scheme_series: Vec<SchemeSeries>,
    /// Per-flow packet counts per uplink, where asked for.
    pub uplink_counts: Vec<UplinkCount>,
    /// What was watched packet by packet, where asked for.
    pub watched: Watched,
    /// Bytes of the simulator's own structures per host, estimated from their sizes.
    pub bytes_per_host: Option<u64>,
    /// What the links carried while traffic arrived; `None` where the starts of the flows are not known beforehand, or all
    /// start at once.
    pub window: Option<LinkWindow>,
    /// Of a run of real packets; `None`: it was simulated.
    pub on_wire: Option<OnWire>,
}

impl RunRows {
    /// The share of its rate that a link carried in the window; `None` where there is none.
    pub fn window_utilisation(&self, link: usize) -> Option<f64> {
        let window = self.window.as_ref()?;
        let (bytes, rate) = (*window.sent_bytes.get(link)?, self.links.get(link)?.rate_bps);
        let seconds = window.to.saturating_sub(window.from).as_seconds();
        (seconds > 0.0 && rate > 0).then(|| bytes as f64 * 8.0 / (rate as f64 * seconds))
    }
}

/// The results of a run: the rows of its backend, without whatever the backend does not measure. They can be read and not
/// changed, so that there is no other way to such a result:
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
    /// Returns `rows` without what is not among `measures`.
    pub fn new(mut rows: RunRows, measures: &Measures) -> Self {
        rows.flows.iter_mut().for_each(|flow| flow.metrics.keep(&measures.flows));
        match &measures.links {
            Some(links) => rows.links.iter_mut().for_each(|link| link.keep(links)),
            None => {
                rows.links.clear();
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
            rows.watched = Watched::default();
        }
        RunResult(rows)
    }
}
