use super::WorkloadKind;
use crate::{HostView, WorkloadError, traffic::Traffic, view::Context};
use anabranch_random::mix;
use anabranch_units::Rate;

/// Returns `hosts` hosts, `per_leaf` per leaf, `leaves_per_group` per group, at 100 Gb/s, classes `data` and `bulk`.
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
        servers: None,
        templates: false,
    }
}

/// Generates with seed 1; `content` is that of any file.
pub(crate) fn traffic(
    kind: &impl WorkloadKind,
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
        templates: view.templates,
        read_file: &|_| Ok(content.as_ref().to_vec()),
    })
}
