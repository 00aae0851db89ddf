use super::WorkloadKind;
use crate::{HostView, Schedule, Work, WorkloadError, traffic::Traffic, view::Context};
use anabranch_random::mix;
use anabranch_settings::{Parameters, SetError};
use anabranch_testkit::{set_keys, try_set_keys};
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

/// Returns the messages of the longest chain of a schedule.
pub(crate) fn longest_chain(schedule: &Schedule) -> u32 {
    let mut chains: Vec<u32> = vec![];
    for (at, operation) in schedule.operations().iter().enumerate() {
        let before = schedule.after(at).iter().map(|on| chains[on.operation as usize]).max().unwrap_or(0);
        chains.push(before + u32::from(matches!(operation.work, Work::Send { .. })));
    }
    chains.into_iter().max().unwrap_or(0)
}

/// Returns the parameters of a kind with `KEY=VALUE` pairs.
pub(crate) fn of<P: Parameters + Default>(pairs: &str) -> P {
    let mut parameters = P::default();
    set_keys(&mut parameters, pairs);
    parameters
}

/// Returns the lines of a section of `refused.txt`.
pub(crate) fn rows<const N: usize>(section: &str) -> Vec<[String; N]> {
    let all = include_str!("../refused.txt").split("\n== ").find(|part| part.starts_with(section));
    let lines = all.expect("a section").lines().skip(1).filter(|line| !line.is_empty());
    let parts = |line: &str| line.replace("\\n", "\n").split(" => ").map(String::from).collect::<Vec<_>>();
    lines.map(|line| parts(line).try_into().expect(line)).collect()
}

/// Asserts that the keys of a section are refused, each with the key and words of the message.
pub(crate) fn assert_refused<P: WorkloadKind + Parameters + Default>(view: &HostView, content: &str, section: &str) {
    for [pairs, key, words] in rows(&format!("{section}:")) {
        let mut parameters = P::default();
        let (found, message) = match try_set_keys(&mut parameters, &pairs) {
            Ok(()) => {
                let error = traffic(&parameters, view, content).map(|_| ()).expect_err(&pairs);
                (error.key.clone().unwrap_or_default(), error.to_string())
            }
            Err(SetError::InvalidValue { key, wrong }) => (key, wrong.to_string()),
            Err(error) => panic!("{pairs}: {error}"),
        };
        assert_eq!(found, key, "{pairs}: {message}");
        assert!(message.contains(&words), "{pairs}: {message}");
    }
}
