//! The kinds of workload, one file each.

pub(crate) mod adversarial;
pub(crate) mod all_to_all;
pub(crate) mod collective;
pub(crate) mod file;
pub(crate) mod incast;
pub(crate) mod microbenchmark;
pub(crate) mod nccl;
pub(crate) mod permutation;
pub(crate) mod poisson;
pub(crate) mod training_rounds;

use crate::{
    Flow, Start, WorkloadError,
    view::{Context, NO_CLASS, Traffic},
};
use anabranch_settings::Parameters;

/// A kind of workload with its parameters.
pub(crate) trait Kind: Parameters {
    /// Whether every parameter is within its limits, as far as hosts and files are not needed to tell.
    fn check(&self) -> Result<(), WorkloadError>;
    /// Makes the flows; `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}

/// A flow that nothing waits for. The merge sets class and key.
pub(crate) fn plain(src: u32, dst: u32, size: u64, start: Start) -> Flow {
    Flow { src, dst, size, start, workload: 0, class: NO_CLASS, key: 0, listed: 0, on_sent: None, on_received: None }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Hosts for the tests of this crate.

    use super::Kind;
    use crate::{
        HostView, WorkloadError,
        view::{Context, Traffic},
    };
    use anabranch_random::mix;
    use anabranch_units::Rate;

    /// `hosts` hosts, so many per leaf, so many leaves per group, at 100 Gb/s, classes `data` and `bulk`.
    pub(crate) fn view(hosts: u32, per_leaf: u32, leaves_per_group: u32) -> HostView {
        HostView {
            hosts,
            leaf_of: (0..hosts).map(|h| h / per_leaf).collect(),
            group_of: (0..hosts).map(|h| h / per_leaf / leaves_per_group).collect(),
            host_key: (0..hosts).map(|h| mix(u64::from(h) + 1)).collect(),
            nic_rate: vec![Rate::gbps(100); hosts as usize],
            oversubscription: 1.0,
            classes: vec!["data".into(), "bulk".into()],
            flow_memory: u64::MAX,
            low_diameter: None,
        }
    }

    /// What `kind` makes, seed 1, with `content` as that of any file.
    pub(crate) fn traffic(
        kind: &impl Kind,
        view: &HostView,
        content: impl AsRef<[u8]>,
    ) -> Result<Traffic, WorkloadError> {
        kind.check()?;
        let used = vec![false; view.hosts as usize];
        kind.generate(&Context {
            view,
            seed: 1,
            name: "test",
            used: &used,
            room: u64::MAX,
            read_file: &|_| Ok(content.as_ref().to_vec()),
        })
    }
}
