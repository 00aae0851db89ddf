//! Scenarios to start from: a short one, and one with every parameter, from the declarations that read it.

use crate::{CompareParameters, MeasureParameters, PROFILES, RunParameters, document};
use anabranch_lb::registry::{Alias, HostParameters, SwitchParameters};
use anabranch_settings::{Level, Parameters, Raw};
use anabranch_topology::{FaultParameters, LinkOverride, TopologyParameters};
use anabranch_wire::WireParameters;
use anabranch_workload::{CommonParameters, ServerParameters, WorkloadParameters};

const WIDTH: usize = 96;

/// A short scenario that runs unchanged.
pub const FIRST: &str = include_str!("first.toml");

/// Returns the text of a scenario with every key of `levels` that runs unchanged. Defaults are commented out.
pub fn every_key(levels: &[Level]) -> String {
    let mut out = String::from(
        "# A scenario to start from: web search on a fat tree of 128 hosts.\n\
         #\n\
         # Lines that are commented out show defaults: take the `#` away to change one. `anabranch check FILE` shows\n\
         # mistakes with their place, `anabranch explain NAME` tells more of a scheme, section or key (with --expert\n\
         # and --readings, as here, of keys that are not shown), and\n\
         # `anabranch compare FILE` runs the load balancers under [compare] below.\n\
         name = \"My scenario\"\n\
         seed = 1\n",
    );
    let mut section = |header: &str, meaning: &str, active: &[(&str, &str)], parameters: &[&dyn Parameters]| {
        let is_shown = |all: &&dyn Parameters| all.documentation().iter().any(|key| levels.contains(&key.level));
        if active.is_empty() && !parameters.iter().any(is_shown) {
            return;
        }
        out.push('\n');
        comment(&mut out, meaning);
        // A list or a section that has an effect by itself is commented out.
        let is_off = active.is_empty() && (header.starts_with("[[") || header == "[servers]");
        let off = if is_off { "# " } else { "" };
        out.push_str(&format!("{off}{header}\n"));
        for (key, value) in active {
            out.push_str(&format!("{key} = {value}\n"));
        }
        for parameters in parameters {
            lines(&mut out, *parameters, active, levels);
        }
    };
    let kinds: Vec<&str> = TopologyParameters::ALL.iter().map(|kind| kind.name).collect();
    if let Ok(topology) = TopologyParameters::named("fat-tree") {
        let meaning = format!("The graph. `kind` is one of {}; each has its own keys.", kinds.join(", "));
        let active = [("kind", "\"fat-tree\""), ("tiers", "2"), ("radix", "16")];
        section("[topology]", &meaning, &active, &[topology.parameters()]);
    }
    section(
        "[[topology.link]]",
        "Other rates and delays for single links or a class of links.",
        &[],
        &[&LinkOverride::default()],
    );
    section(
        "[servers]",
        "Servers: groups of hosts (NICs) with GPUs, between which the traffic is, and a scale-up network. Without it hosts are endpoints.",
        &[],
        &[&ServerParameters::default()],
    );
    let profiles: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    if let Some(profile) = PROFILES.iter().find(|profile| profile.name == "uet-lossy") {
        let fabric = (profile.fabric)();
        let meaning = format!("Switches and NICs. `profile` names a set of defaults: {}.", profiles.join(", "));
        section("[fabric]", &meaning, &[("profile", "\"uet-lossy\"")], &[&fabric]);
        let mut transport = (profile.transport)();
        section(
            "[transport]",
            "Senders and receivers: uet or roce.",
            &[("kind", "\"uet\"")],
            &[transport.parameters()],
        );
        let named = transport.control().name;
        if let Some(parameters) = transport.control_parameters_mut(named) {
            section(&format!("[transport.{named}]"), "Parameters of the congestion control.", &[], &[&*parameters]);
        }
    }
    section(
        "[load_balancer]",
        "Load balancer: an alias for a pair (`anabranch list schemes`), or `host` and `switch`.",
        &[("scheme", "\"prime\"")],
        &[],
    );
    if let Some(alias) = Alias::named("prime") {
        if let Ok(host) = HostParameters::named(alias.host) {
            section(&format!("[load_balancer.{}]", alias.host), "Its host side.", &[], &[host.parameters()]);
        }
        if let Ok(switch) =
            SwitchParameters::named(alias.switch).map(|switch| (switch.parameters().entries().len(), switch))
            && switch.0 > 0
        {
            section(&format!("[load_balancer.{}]", alias.switch), "Its switch side.", &[], &[switch.1.parameters()]);
        }
    }
    let kinds: Vec<&str> = WorkloadParameters::ALL.iter().map(|kind| kind.name).collect();
    if let Ok(poisson) = WorkloadParameters::named("poisson") {
        let meaning = format!("Traffic; one or more of these. `kind` is one of {}.", kinds.join(", "));
        let active = [("kind", "\"poisson\""), ("sizes", "\"web-search\""), ("load", "0.6"), ("duration", "\"1ms\"")];
        section("[[workload]]", &meaning, &active, &[poisson.parameters(), &CommonParameters::default()]);
    }
    section(
        "[[fault]]",
        "Faults of links and switches, with their times; none or more of these.",
        &[],
        &[&FaultParameters::default()],
    );
    section("[measure]", "Optional measurements.", &[], &[&MeasureParameters::default()]);
    section("[run]", "End of a run, and flows in the statistics.", &[], &[&RunParameters::default()]);
    section(
        "[compare]",
        "Defaults of `anabranch compare` for arguments that are not given.",
        &[("schemes", "[\"ecmp\", \"ops\", \"prime\"]"), ("seeds", "3")],
        &[&CompareParameters::default()],
    );
    section(
        "[wire]",
        "Settings of real networks only (`anabranch serve`, `send`, testbeds).",
        &[],
        &[&WireParameters::default()],
    );
    out
}

fn lines(out: &mut String, parameters: &dyn Parameters, active: &[(&str, &str)], levels: &[Level]) {
    let values = parameters.entries();
    for parameter in parameters.documentation() {
        if active.iter().any(|(key, _)| *key == parameter.name) || !levels.contains(&parameter.level) {
            continue;
        }
        let value = values.iter().find(|(key, _)| *key == parameter.name).map(|(_, raw)| raw);
        comment(out, &format!("{} Takes {}.", parameter.meaning, parameter.expected));
        match value {
            // A parameter without a default has no value.
            None => out.push_str(&format!("# {} =\n", parameter.name)),
            Some(Raw::Text(text)) if text.is_empty() => out.push_str(&format!("# {} =\n", parameter.name)),
            Some(value) => out.push_str(&format!("# {} = {}\n", parameter.name, document::value(value))),
        }
    }
}

/// Appends `text` in lines after `## `, which distinguishes it from defaults that are commented out.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("##");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = String::from("##");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scenario::Scenario, tree::Tree};
    use std::path::Path;

    fn read(text: &str) -> Scenario {
        Scenario::read(Tree::parse("start.toml", text).unwrap(), "start", Path::new(""))
            .unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    #[test]
    fn short_scenario_is_that_of_all_keys() {
        assert_eq!(FIRST.lines().count(), 25);
        assert!(FIRST.lines().all(|line| line.chars().count() <= 100));
        assert_eq!(read(FIRST).hash(), read(&every_key(&[Level::User])).hash(), "the same scenario, in short");
    }

    #[test]
    fn template_runs_and_comments_show_defaults() {
        let shown = |text: &str| text.lines().filter(|line| line.starts_with("# ") && line.contains(" =")).count();
        let text = every_key(&[Level::User, Level::Expert, Level::Reading]);
        let users = every_key(&[Level::User]);
        assert!(shown(&users) <= 60 && shown(&text) > 150, "{} of {}", shown(&users), shown(&text));
        assert!(!users.contains("# ack_ecn =") && text.contains("# ack_ecn ="));
        let scenario = read(&text);
        let setup = scenario.setup(1).unwrap();
        assert_eq!(setup.topology.hosts, 128, "a fat tree of two tiers of radix 16 has 16 * 16 / 2 hosts");
        // With every default written out (outside optional tables), it is the same scenario.
        let mut optional = false;
        let said: Vec<String> = text
            .lines()
            .map(|line| {
                if line.trim_start_matches("# ").starts_with('[') {
                    optional = line.starts_with("# [");
                }
                match line.strip_prefix("# ") {
                    Some(default) if !optional && !line.ends_with('=') && line.contains(" = ") => default.to_string(),
                    _ => line.to_string(),
                }
            })
            .collect();
        let aloud = read(&said.join("\n"));
        assert_eq!(aloud.to_toml(), scenario.to_toml());
        assert_eq!(aloud.hash(), scenario.hash());
    }
}
