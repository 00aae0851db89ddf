//! The slowest flows of a run, with the parts of their completion times.

use super::Frame;
use anabranch_results::{FctKind, Summary};

/// Columns of `flows` that a tail is read from, besides [`PART_COLUMNS`].
pub(super) const COLUMNS: &[&str] =
    &["flow_id", "src", "dst", "wait_predecessor_ps", "wait_start_ps", "wait_link", "wait_link_ps"];

/// Number of [`Part`]s.
pub(crate) const PARTS: usize = 9;

/// Columns that add up to a completion time, in the order of bars: those of the kind `rx`, then those that `ack` adds.
pub(crate) const PART_COLUMNS: [&str; PARTS] = [
    "wait_queue_ps",
    "wait_pause_ps",
    "wait_timeout_ps",
    "wait_nack_ps",
    "wait_sender_ps",
    "serialisation_ps",
    "flight_ps",
    "wait_start_ps",
    "ack_return_ps",
];
const RX_PARTS: usize = 7;

/// A flow among the slowest of its run and workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TailFlow {
    pub(crate) flow_id: u64,
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) size_bytes: u64,
    pub(crate) slowdown: f64,
    /// Index into the workloads of the data set.
    pub(crate) workload: u16,
    /// By [`PART_COLUMNS`], in picoseconds; they add up to the completion time of the run's kind.
    pub(crate) parts: [u64; PARTS],
    pub(crate) predecessor: u64,
    /// Link with most of its time in queues, and that time.
    pub(crate) link: Option<(String, u64)>,
}

/// Returns the slowest 1 % of the flows of each workload, at least one, the slowest first; none where delays were not
/// measured. `points` are row, size, slowdown and workload of the flows that count.
pub(super) fn slowest(frame: &Frame, summary: &Summary, points: &[(usize, u64, f64, u16)]) -> Vec<TailFlow> {
    let whole = |name: &str, row: usize| frame.integers(name).get(row).copied().flatten();
    let used = if summary.all.fct_kind == FctKind::Ack { PARTS } else { RX_PARTS };
    let mut workloads: Vec<u16> = points.iter().map(|point| point.3).collect();
    workloads.sort_unstable();
    workloads.dedup();
    let mut tail = vec![];
    for workload in workloads {
        let mut of: Vec<_> = points.iter().filter(|point| point.3 == workload).collect();
        of.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
        for &&(row, size_bytes, slowdown, _) in of.iter().take(of.len().div_ceil(100)) {
            let mut parts = [0; PARTS];
            let known = parts.iter_mut().zip(PART_COLUMNS).take(used).all(|(part, name)| {
                let value = whole(name, row);
                *part = value.unwrap_or(0);
                value.is_some()
            });
            if !known {
                continue;
            }
            let link = frame.texts("wait_link").get(row).filter(|link| !link.is_empty()).cloned();
            tail.push(TailFlow {
                flow_id: whole("flow_id", row).unwrap_or_default(),
                src: whole("src", row).unwrap_or_default(),
                dst: whole("dst", row).unwrap_or_default(),
                size_bytes,
                slowdown,
                workload,
                parts,
                predecessor: whole("wait_predecessor_ps", row).unwrap_or(0),
                link: link.zip(whole("wait_link_ps", row)),
            });
        }
    }
    tail
}
