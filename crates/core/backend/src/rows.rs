use crate::{Setup, ideal::IdealTimes};
use anabranch_outcome::{FlowDelays, FlowMetrics, FlowRow, FlowStatus};
use anabranch_units::Time;
use anabranch_workload::Medium;

/// Measurements of a flow by a backend. Times count from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    pub started: Option<Time>,
    /// Time of the first transmission.
    pub first_sent: Option<Time>,
    /// Time at which the receiver had the last byte.
    pub received: Option<Time>,
    /// Time at which the sender had the last acknowledgement.
    pub acknowledged: Option<Time>,
    /// Combined counts of sender and receiver.
    pub metrics: FlowMetrics,
    /// Parts of the completion time.
    pub delays: Option<FlowDelays>,
}

/// Returns a row per listed flow of `setup`, in flow order, with its ideal times.
pub fn flow_rows(setup: &Setup, outcomes: &[FlowOutcome]) -> Vec<FlowRow> {
    let mut ideals = IdealTimes::new(setup);
    outcomes.iter().enumerate().map(|(number, outcome)| row(setup, &mut ideals, number, outcome)).collect()
}

pub(crate) fn row(setup: &Setup, ideals: &mut IdealTimes, number: usize, outcome: &FlowOutcome) -> FlowRow {
    let flow = &setup.flows.flow(number as u32);
    let (ideal_rx, ideal_ack) = ideals.of(setup, flow);
    let span = |from: Option<Time>, to: Option<Time>| Some(to? - from?);
    FlowRow {
        flow_id: number as u32,
        src: flow.src,
        dst: flow.dst,
        gpus: flow.gpus,
        is_scale_up: flow.medium == Medium::ScaleUp,
        size_bytes: flow.size,
        start: outcome.started,
        nic_wait: span(outcome.started, outcome.first_sent),
        fct_rx: span(outcome.first_sent, outcome.received),
        fct_ack: span(outcome.started, outcome.acknowledged),
        ideal_rx,
        ideal_ack,
        status: match (outcome.started, outcome.received, outcome.acknowledged) {
            (None, ..) => FlowStatus::NotStarted,
            (_, None, _) => FlowStatus::Unfinished,
            (_, _, None) => FlowStatus::Received,
            _ => FlowStatus::Finished,
        },
        workload: flow.workload,
        load_balancer: setup.flows.workloads[flow.workload as usize].load_balancer,
        class: flow.class,
        metrics: outcome.metrics,
        delays: outcome.delays,
    }
}
