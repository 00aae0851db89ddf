//! Number of draws of each registered name.

use super::Draft;
use anabranch_lb::registry::resolve;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Counts per kind of name (`topology`, `host_scheme`, ...) and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, BTreeMap<String, u64>>);

const COUNTED: &[(&str, &str, &str)] = &[
    ("[topology]", "kind", "topology"),
    ("[topology]", "format", "topology_format"),
    ("[fabric]", "profile", "profile"),
    ("[transport]", "kind", "transport"),
    ("[transport]", "congestion_control", "congestion_control"),
    ("[transport]", "recovery", "recovery"),
    ("[load_balancer]", "scheme", "scheme"),
    ("[[workload]]", "kind", "workload"),
    ("[[workload]]", "format", "workload_format"),
    ("[[fault]]", "kind", "fault"),
];

const MEASURED: [&str; 7] =
    ["series_links", "series_flows", "series_scheme", "uplink_counts", "occupancy", "trace_flows", "trace_scheme"];

impl Tally {
    /// Counts a case. A name counts once per case.
    pub(super) fn add(&mut self, draft: &Draft) {
        let mut seen = Vec::new();
        for section in &draft.sections {
            for (_, key, kind) in COUNTED.iter().filter(|(header, ..)| *header == section.header) {
                seen.extend(section.get(key).map(|name| (*kind, name.to_string())));
            }
            let named =
                ["scheme", "load_balancer", "split_load_balancer"].into_iter().filter_map(|key| section.get(key));
            for (host, switch) in named.filter_map(|name| resolve(name).ok()) {
                seen.extend([("host_scheme", host.name().to_string()), ("switch_scheme", switch.name().to_string())]);
            }
            if section.header == "[measure]" {
                let asked = MEASURED.into_iter().filter(|key| section.get(key).is_some());
                seen.extend(asked.map(|key| ("measurement", key.to_string())));
            }
        }
        if !draft.captures.is_empty() {
            seen.push(("measurement", "captures".into()));
        }
        seen.sort();
        seen.dedup();
        for (kind, name) in seen {
            *self.0.entry(kind).or_default().entry(name).or_default() += 1;
        }
    }

    pub fn count(&self, kind: &str, name: &str) -> u64 {
        self.0.get(kind).and_then(|names| names.get(name)).copied().unwrap_or(0)
    }

    pub(super) fn json(&self) -> Value {
        json!(self.0)
    }
}
