//! `explain` shows the defaults that a scenario with the name has.

use anabranch_backend::LoadBalancer;
use anabranch_lb::registry::ALIASES;
use anabranch_scenario::{Scenario, Tree, explain::find};
use anabranch_settings::Raw;
use std::path::Path;

#[test]
fn defaults_of_a_pair_are_those_of_a_scenario_with_its_name() {
    let mut compared = 0;
    for alias in ALIASES {
        let (name, mut fixed) = (alias.name, 0);
        let text = format!(
            "[topology]\nkind = \"dragonfly\"\n[load_balancer]\nscheme = \"{name}\"\n[[workload]]\nkind = \"permutation\"\n"
        );
        let scenario = Scenario::read(Tree::parse("pair.toml", &text).unwrap(), "pair", Path::new("")).unwrap();
        let LoadBalancer { host, switch, .. } = &scenario.load_balancers.main;
        let sides = [(host.name(), host.parameters().entries()), (switch.name(), switch.parameters().entries())];
        for part in find(name).unwrap().parts {
            let Some(side) = part.table.strip_prefix("[load_balancer.").and_then(|rest| rest.split(']').next()) else {
                continue;
            };
            let values = || sides.iter().filter(|(name, _)| *name == side).flat_map(|(_, entries)| entries);
            for key in part.parameters {
                // A scenario resolves "auto".
                let value = values().find(|(name, _)| *name == key.name).map(|(_, value)| value);
                let Some(value) = value.filter(|_| key.default != Raw::Text("auto".into())) else { continue };
                assert_eq!(key.default.to_string(), value.to_string(), "{name}: {side}.{}", key.name);
                compared += 1;
                fixed += usize::from(alias.fixed.iter().any(|(fixed, _)| *fixed == key.name));
            }
        }
        // Both sides may have such a key.
        assert!(fixed >= alias.fixed.len(), "{name}");
    }
    assert!(compared > 100, "only {compared} keys");
}
