//! Traces and captures, merged over all partitions.

use crate::{ids::FlowId, partition::Partition, plan::Plan};
use anabranch_lb::{CallEvent, Record};
use anabranch_outcome::{Capture, SchemeRow, TraceRow, Watched};
use anabranch_units::Time;

/// Returns the rows of traced flows in canonical order, and the packets of captured links.
pub(super) fn watched(plan: &Plan<'_>, partitions: &mut [Partition<'_>], end: Time) -> Watched {
    let mut trace: Vec<TraceRow> = partitions.iter_mut().flat_map(|p| p.cx.ports.queues.watch.take_rows()).collect();
    // Receptions are written in advance, when the transmission starts. Events at the time limit itself do not happen.
    trace.retain(|row| row.time <= end && row.time < plan.time_limit);
    trace.sort_unstable();
    let limit = usize::try_from(plan.measure.trace_limit).unwrap_or(usize::MAX);
    let trace_cut = trace.len() > limit;
    trace.truncate(limit);
    let records = partitions.iter().filter_map(|p| p.cx.ports.queues.watch.record.as_ref());
    let mut schemes: Vec<SchemeRow> = records
        .flat_map(Record::take)
        .filter(|call| call.time <= end && call.time < plan.time_limit)
        .map(|call| SchemeRow {
            link: match call.event {
                CallEvent::Forward(_, _, link) => link,
                _ => plan.host_up[plan.flow(FlowId(call.flow)).src as usize],
            },
            call,
        })
        .collect();
    // Those of a host, or of a switch's link, keep their order.
    schemes.sort_by_key(|row| (row.call.time, row.link));
    let schemes_cut = schemes.len() > limit;
    schemes.truncate(limit);
    let mut links: Vec<u32> = plan.measure.capture_links.iter().map(|link| link.0).collect();
    links.sort_unstable();
    links.dedup();
    let capture = |link: u32| {
        let watch = &mut partitions[usize::from(plan.owner_of_link(link))].cx.ports.queues.watch;
        Capture { link, packets: watch.take_capture(plan.port_of(link)) }
    };
    Watched { trace, trace_cut, schemes, schemes_cut, captures: links.into_iter().map(capture).collect() }
}
