use crate::{
    Flow, NcclJob, Trigger, WorkloadError,
    jobs::{job::GroupedJob, template::GroupTemplate},
};

/// Tier of a switch in a failure line of a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedSwitch {
    /// `TOR`: a leaf.
    Tor,
    /// `AGG`: an aggregation switch.
    Agg,
    /// `CORE`: a core switch.
    Core,
}

/// A `failure` line of htsim's connection matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFailure {
    /// The tier of the switch.
    pub switch_type: FailedSwitch,
    /// The switch's number within its tier.
    pub switch_id: u32,
    /// The number of its uplink.
    pub link_id: u32,
    pub place: String,
}

#[derive(Debug, Default)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) measured: bool,
}

impl Label {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Label { name: name.into(), measured: true }
    }
}

/// Output of a kind. `workload` is an index into `labels`, trigger numbers and targets count within this traffic, and `key`
/// is unset.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    pub(crate) triggers: Vec<Trigger>,
    /// Entry 0, if any, represents the workload's own flows.
    pub(crate) labels: Vec<Label>,
    pub(crate) failures: Vec<FileFailure>,
    /// Words of a file that have no effect here, or another one.
    pub(crate) notes: Vec<String>,
    /// Its workload and first flow are unset.
    pub(crate) job: Option<NcclJob>,
    /// The flows are its messages in order. Its workload and first message are unset.
    pub(crate) grouped: Option<GroupedJob>,
    /// Makes the messages of `grouped`, instead of `flows` and `triggers`. Its numbers are unset.
    pub(crate) template: Option<GroupTemplate>,
}

impl Traffic {
    /// Guards against typing errors.
    pub(crate) fn check_room(flows: u128, max_flows: u64, key: &str) -> Result<(), WorkloadError> {
        if flows > u128::from(max_flows) {
            let message = format!("this makes {flows} flows, and `max_flows` allows {max_flows}");
            return Err(WorkloadError::of_key(key, message));
        }
        Ok(())
    }
}
