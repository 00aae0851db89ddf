use anabranch_scenario::{Scenario, ScenarioError, library};

/// Standard case: a ready-made scenario with changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name in tables and in JSON.
    pub name: &'static str,
    /// Ready-made scenario.
    pub scenario: &'static str,
    /// `KEY=VALUE`, as with `--set`.
    pub changes: &'static [&'static str],
    /// Run once only, because of its size.
    pub once: bool,
    /// With the dispatch of schemes of other crates.
    pub external: bool,
}

const fn case(name: &'static str, scenario: &'static str, changes: &'static [&'static str]) -> Case {
    Case { name, scenario, changes, once: false, external: false }
}

/// Standard cases in ascending size, since a process does not return memory.
pub const CASES: &[Case] = &[
    case("permutation-128", "permutation-128", &[]),
    Case { external: true, ..case("permutation-128-external", "permutation-128", &[]) },
    case("leaf-spine-roce-pfc", "permutation-roce", &[]),
    case("leaf-spine-roce-irn", "permutation-roce", &["fabric.profile=roce-irn", "fabric.shared_buffer=1MB"]),
    case("dragonfly-minimal", "spritz-permutation-dragonfly", &["load_balancer.scheme=minimal"]),
    case("dragonfly-spritz-spray", "spritz-permutation-dragonfly", &[]),
    case("permutation-1024", "permutation-1024", &[]),
    case("permutation-8192", "permutation-8192", &[]),
];

/// 128 hosts, for `--small`.
pub const SMALL: &[Case] = CASES.split_at(2).0;

/// 65,536 hosts in three tiers, on request.
pub const LARGE: Case = Case {
    name: "permutation-65536",
    scenario: "permutation-1024",
    changes: &["topology.radix=64", "workload.0.size=64KiB"],
    once: true,
    external: false,
};

impl Case {
    pub fn load(&self) -> Result<Scenario, ScenarioError> {
        let changes: Vec<String> = self.changes.iter().map(|change| (*change).to_string()).collect();
        library::load(self.scenario, &changes, None)
    }
}
