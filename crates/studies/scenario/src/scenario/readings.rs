//! Readings of a paper that a scenario sets.

use super::Scenario;
use anabranch_lb::registry::{HostParameters, SwitchParameters};
use anabranch_settings::{Level, Parameters};
use anabranch_transport::TransportParameters;
use anabranch_workload::WorkloadParameters;

/// Returns the keys of level `Reading` with other values than in `defaults`, as `TABLE.KEY = VALUE`.
fn unlike(table: &str, set: &dyn Parameters, defaults: &dyn Parameters) -> Vec<String> {
    let (values, defaults) = (set.entries(), defaults.entries());
    let documented = set.documentation().into_iter().zip(values.iter().zip(&defaults));
    let differs = documented.filter(|(key, (value, default))| key.level == Level::Reading && value != default);
    differs.map(|(key, (value, _))| format!("{table}.{} = {}", key.name, value.1)).collect()
}

/// Returns the readings that a scenario sets: keys that only try readings of a paper, with other values than their defaults.
pub fn readings(scenario: &Scenario) -> Vec<String> {
    let mut all = unlike("fabric", &scenario.fabric, &(scenario.profile.fabric)());
    let (mut transport, mut defaults) = (scenario.transport.clone(), (scenario.profile.transport)());
    if let Ok(plain) = TransportParameters::named(transport.name())
        && plain.name() != defaults.name()
    {
        defaults = plain;
    }
    all.extend(unlike("transport", transport.parameters(), defaults.parameters()));
    for control in scenario.transport.controls().all() {
        let table = format!("transport.{}", control.name);
        let pair = (transport.control_parameters_mut(control.name), defaults.control_parameters_mut(control.name));
        if let (Some(set), Some(default)) = pair {
            all.extend(unlike(&table, &*set, &*default));
        }
    }
    for (scheme, entries) in scenario.load_balancers.given() {
        let (host, switch) = (HostParameters::named(scheme).ok(), SwitchParameters::named(scheme).ok());
        let host = host.map(|host| (host.clone(), host));
        let switch = switch.map(|switch| (switch.clone(), switch));
        let table = format!("load_balancer.{scheme}");
        if let Some((mut set, default)) = host {
            entries.iter().for_each(|(key, raw)| set.parameters_mut().set(key, raw).unwrap_or(()));
            all.extend(unlike(&table, set.parameters(), default.parameters()));
        }
        if let Some((mut set, default)) = switch {
            entries.iter().for_each(|(key, raw)| set.parameters_mut().set(key, raw).unwrap_or(()));
            all.extend(unlike(&table, set.parameters(), default.parameters()));
        }
    }
    for (number, workload) in scenario.workloads.iter().enumerate() {
        if let Ok(default) = WorkloadParameters::named(workload.kind.name()) {
            all.extend(unlike(&format!("workload.{number}"), workload.kind.parameters(), default.parameters()));
        }
    }
    all
}
