//! Groups of jobs.

use anabranch_results::Frame;

/// A group in a repetition that all its ranks have ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupPoint {
    /// Index into [`super::Dataset::workloads`].
    pub(crate) workload: u16,
    pub(crate) group: u64,
    pub(crate) repetition: u64,
    pub(crate) completion_us: f64,
    /// `None`: the ideal time is unknown.
    pub(crate) slowdown: Option<f64>,
    /// Rank, flow and its hosts that ended last; no flow if a computation did.
    pub(crate) last_rank: Option<u64>,
    pub(crate) last_flow: Option<(u64, u64, u64)>,
    /// Link whose queue held that flow longest, and the time; `None` where it was not measured, or nothing waited.
    pub(crate) last_link: Option<(String, f64)>,
    /// Messages of the critical path, the link at which they waited longest, and the time; `None` as `last_link`.
    pub(crate) critical: Option<(u64, String, f64)>,
}

pub(super) const COLUMNS: &[&str] = &[
    "workload",
    "group",
    "repetition",
    "completion_ps",
    "slowdown",
    "last_rank",
    "last_flow",
    "last_src",
    "last_dst",
    "last_link",
    "last_link_ps",
    "critical_messages",
    "critical_link",
    "critical_link_ps",
];

pub(super) fn read(frame: Option<&Frame>, workloads: &[String]) -> Vec<GroupPoint> {
    let Some(frame) = frame else { return vec![] };
    let whole = |name: &str, row: usize| frame.integers(name).get(row).copied().flatten();
    let point = |row: usize| {
        let name = frame.texts("workload").get(row)?;
        let link = frame.texts("last_link").get(row).filter(|name| !name.is_empty()).cloned();
        Some(GroupPoint {
            workload: workloads.iter().position(|workload| workload == name)? as u16,
            group: whole("group", row)?,
            repetition: whole("repetition", row)?,
            completion_us: whole("completion_ps", row)? as f64 / 1e6,
            slowdown: frame.reals("slowdown").get(row).copied().flatten(),
            last_rank: whole("last_rank", row),
            last_flow: whole("last_flow", row)
                .and_then(|flow| Some((flow, whole("last_src", row)?, whole("last_dst", row)?))),
            critical: frame.texts("critical_link").get(row).filter(|name| !name.is_empty()).cloned().and_then(|link| {
                Some((whole("critical_messages", row)?, link, whole("critical_link_ps", row)? as f64 / 1e6))
            }),
            last_link: link.zip(whole("last_link_ps", row).map(|ps| ps as f64 / 1e6)),
        })
    };
    (0..frame.rows()).filter_map(point).collect()
}
