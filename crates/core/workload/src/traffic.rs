//! Output of a kind of workload.

use crate::{Flow, NcclJob, Trigger, WorkloadError};

/// The tier of a switch in a failure line of a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedSwitch {
    /// `TOR`: a leaf.
    Tor,
    /// `AGG`: an aggregation switch.
    Agg,
    /// `CORE`: a core switch.
    Core,
}

/// A failed link of a flow file (a `failure` line of htsim's connection matrix).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFailure {
    /// The tier of the switch.
    pub switch_type: FailedSwitch,
    /// The switch's number within its tier.
    pub switch_id: u32,
    /// The number of its uplink.
    pub link_id: u32,
    /// File and line.
    pub place: String,
}

/// A named part of a workload's flows.
#[derive(Debug, Default)]
pub(crate) struct Label {
    pub(crate) name: String,
    /// `true` if its flows count in the statistics when those of the workload do.
    pub(crate) measured: bool,
}

impl Label {
    /// Creates a part measured like its workload.
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Label { name: name.into(), measured: true }
    }
}

/// Output of a kind of workload. In its flows `workload` is an index into `labels`, trigger numbers and targets
/// count within this traffic, and `key` is unset.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    pub(crate) triggers: Vec<Trigger>,
    /// Named parts of the flows; entry 0, if any, represents the workload's own.
    pub(crate) labels: Vec<Label>,
    pub(crate) failures: Vec<FileFailure>,
    /// Collective that the flows represent; its workload and first flow are unset.
    pub(crate) job: Option<NcclJob>,
}

impl Traffic {
    /// Refuses more than `max_flows` flows: guards against typing errors.
    pub(crate) fn check_room(flows: u128, max_flows: u64, key: &str) -> Result<(), WorkloadError> {
        if flows > u128::from(max_flows) {
            let message = format!("this makes {flows} flows, and `max_flows` allows {max_flows}");
            return Err(WorkloadError::of_key(key, message));
        }
        Ok(())
    }
}
