//! `[load_balancer]`: an alias for a pair or both sides by name, and a table of parameters for any scheme.

use crate::{Mistakes, Node, Place, ScenarioError, Section, Tree, did_you_mean, document, list, tree::Value};
use anabranch_backend::{LoadBalancer, PortSelector, Setup};
use anabranch_lb::registry::{
    Alias, DEFAULT_ALIAS, HostParameters, SchemeError, SwitchParameters, aliases, check_host_side, check_pair, resolve,
};
use anabranch_settings::{Parameters, Raw, SetError, Setting, nearest};
use toml::Table;

/// The load balancer of a scenario, and the parameters given for others.
#[derive(Clone, Debug)]
pub struct LoadBalancers {
    /// The load balancer of all workloads that do not name their own.
    pub main: LoadBalancer,
    given: Vec<Given>,
}

#[derive(Clone, Debug)]
struct Given {
    scheme: String,
    entries: Vec<(String, Raw)>,
}

impl LoadBalancers {
    /// Returns the schemes whose parameters the scenario gives, with these.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&str, &[(String, Raw)])> {
        self.given.iter().map(|given| (given.scheme.as_str(), given.entries.as_slice()))
    }

    /// Returns a load balancer by name (an alias or `host+switch`) with the parameters that the scenario gives, checked.
    pub fn named(&self, name: &str) -> Result<LoadBalancer, SchemeError> {
        let (host, switch) = resolve(name)?;
        self.with_parameters(name.trim(), host, switch)
    }

    /// Returns the host side of a load balancer, or a host scheme by its own name, for a real network.
    /// Errors: there is none of this name, or its switches choose the paths.
    pub fn host(&self, name: &str) -> Result<HostParameters, SchemeError> {
        match (resolve(name), HostParameters::named(name.trim())) {
            (Err(_), Ok(host)) => Ok(self.with_parameters("", host, SwitchParameters::named("ecmp")?)?.host),
            (pair, _) => {
                let (host, switch) = pair?;
                check_host_side(&host, &switch)?;
                Ok(self.with_parameters(name.trim(), host, switch)?.host)
            }
        }
    }

    /// Returns a pair with the parameters that the scenario gives and those that the name fixes. Both sides are checked as they
    /// then are.
    fn with_parameters(
        &self,
        name: &str,
        mut host: HostParameters,
        mut switch: SwitchParameters,
    ) -> Result<LoadBalancer, SchemeError> {
        for Given { scheme, entries } in &self.given {
            for (key, raw) in entries {
                // A key of only one side is refused by the other; both were checked when they were read.
                if scheme == host.name() {
                    let _ = host.parameters_mut().set(key, raw);
                }
                if scheme == switch.name() {
                    let _ = switch.parameters_mut().set(key, raw);
                }
            }
        }
        if let Some(alias) = Alias::named(name) {
            alias.fix(&mut host, &mut switch);
        }
        if let Some(timeout) =
            switch.capabilities().flowlet_timeout().filter(|_| host.capabilities().holds_for_flowlets())
        {
            let key = "flowlet_timeout";
            let auto = (key, Raw::Text("auto".into()));
            if host.parameters().entries().contains(&auto) {
                let _ = host.parameters_mut().set(key, &timeout.write());
            }
        }
        host.check()?;
        switch.check()?;
        Ok(LoadBalancer { name: name.to_string(), host, switch })
    }

    /// Replaces the switch scheme of an alias by its guided form, if any. A pair named in full stays.
    pub(crate) fn guide(&self, balancer: &mut LoadBalancer) -> Result<(), SchemeError> {
        let is_alias = Alias::named(&balancer.name).is_some();
        let form = balancer.switch.capabilities().guided_form().filter(|_| is_alias);
        if let Some(Ok(switch)) = form.map(SwitchParameters::named) {
            *balancer = self.with_parameters(&balancer.name.clone(), balancer.host.clone(), switch)?;
        }
        Ok(())
    }

    /// Returns a warning per parameter of `used` that is given another value than its default, to no effect.
    pub(crate) fn warnings(&self, used: &[LoadBalancer]) -> Vec<String> {
        let sides = |balancer: &LoadBalancer| [balancer.host.name(), balancer.switch.name()];
        let idle = |balancer: &LoadBalancer, scheme: &str| match balancer.host.name() == scheme {
            true => balancer.host.capabilities().without_effect(balancer.host.capabilities().tags()),
            false => balancer.switch.capabilities().without_effect(balancer.host.capabilities().tags()),
        };
        let of = |given: &Given| {
            let scheme = given.scheme.as_str();
            let mut all = used.iter().filter(|balancer| sides(balancer).contains(&scheme));
            let mut unused = all.next().map(|balancer| idle(balancer, scheme)).unwrap_or_default();
            all.for_each(|other| unused.retain(|pair| idle(other, scheme).contains(pair)));
            let defaults = HostParameters::named(scheme).map(|host| host.parameters().entries());
            let of_switch = || SwitchParameters::named(scheme).map(|switch| switch.parameters().entries());
            let defaults = defaults.or_else(|_| of_switch()).unwrap_or_default();
            let is_default = |key: &str, raw: &Raw| defaults.iter().any(|(name, value)| *name == key && value == raw);
            let is_given = |key: &str| given.entries.iter().any(|(name, raw)| name == key && !is_default(key, raw));
            unused
                .into_iter()
                .filter(|(key, _)| is_given(key))
                .map(|(key, why)| format!("[load_balancer.{}]: `{key}` has no effect with {why}", given.scheme))
                .collect::<Vec<_>>()
        };
        let fixed = |balancer: &LoadBalancer| Alias::named(&balancer.name).map_or(&[][..], |alias| alias.fixed);
        let is_read = |scheme: &str, key: &str| {
            let mut of_scheme = used.iter().filter(|balancer| sides(balancer).contains(&scheme));
            of_scheme.any(|balancer| fixed(balancer).iter().all(|(name, _)| *name != key))
        };
        let set_by_name = |balancer: &LoadBalancer| {
            let (fixed, sides) = (fixed(balancer), sides(balancer));
            let of_sides = self.given.iter().filter(move |given| sides.contains(&given.scheme.as_str()));
            let all = of_sides.flat_map(|given| given.entries.iter().map(move |(key, raw)| (&given.scheme, key, raw)));
            let is_other = move |key: &str, raw: &Raw| {
                fixed.iter().any(|(name, word)| *name == key && *raw != Raw::Text((*word).to_string()))
            };
            let message = |(scheme, key, _): (&String, &String, &Raw)| {
                format!("[load_balancer.{scheme}]: `{key}` has no effect with `{}`, whose name sets it", balancer.name)
            };
            all.filter(|(scheme, key, raw)| is_other(key, raw) && !is_read(scheme, key))
                .map(message)
                .collect::<Vec<_>>()
        };
        self.given.iter().flat_map(of).chain(used.iter().flat_map(set_by_name)).collect()
    }

    /// Returns the section with every default of `used`. With `as_file`, also all that is given, and without what names fix: for
    /// another pair with the same scheme it would count as given.
    pub(crate) fn table(&self, used: &[LoadBalancer], as_file: bool) -> Table {
        let mut section = Table::new();
        section.insert("scheme".into(), self.main.name.clone().into());
        for LoadBalancer { name, host, switch } in used {
            let fixed = Alias::named(name).filter(|_| as_file).map_or(&[][..], |alias| alias.fixed);
            let sides = [(host.name(), host.parameters().entries()), (switch.name(), switch.parameters().entries())];
            for (scheme, entries) in sides {
                let own = entries.iter().filter(|(key, _)| fixed.iter().all(|(name, _)| name != key));
                add_all(&mut section, scheme, own.map(|(key, raw)| (*key, raw)));
            }
        }
        for Given { scheme, entries } in self.given.iter().filter(|_| as_file) {
            add_all(&mut section, scheme, entries.iter().map(|(key, raw)| (key.as_str(), raw)));
        }
        section
    }
}

/// Adds missing keys to the table of a scheme: host and switch side can have keys in common.
fn add_all<'a>(section: &mut Table, scheme: &str, entries: impl Iterator<Item = (&'a str, &'a Raw)>) {
    for (key, raw) in entries {
        let table = section.entry(scheme).or_insert_with(|| Table::new().into());
        if let toml::Value::Table(table) = table {
            table.entry(key).or_insert_with(|| document::value(raw));
        }
    }
}

pub(crate) fn scheme_error(error: &SchemeError, place: Option<Place>) -> ScenarioError {
    ScenarioError::new(format!("[load_balancer]: {error}")).maybe_at(place)
}

pub(crate) fn read(section: Option<Section<'_>>, tree: &Tree) -> Result<LoadBalancers, ScenarioError> {
    let mut section = section.unwrap_or_else(|| Section::absent("[load_balancer]"));
    let rank = |key: &str| section.peek(key).map(|node| node.place.source.rank);
    let (scheme_rank, side_rank) = (rank("scheme"), rank("host").max(rank("switch")));
    let place = |key: &str| tree.place(&format!("load_balancer.{key}"));
    if scheme_rank == Some(0) && (rank("host") == Some(0) || rank("switch") == Some(0)) {
        return Err(ScenarioError::new("[load_balancer]: found `scheme` together with `host` or `switch`")
            .maybe_at(place("scheme"))
            .help("`scheme` names both sides; give either `scheme`, or `host` and `switch`"));
    }
    let scheme: Option<String> = section.read("scheme")?;
    let host: Option<String> = section.read("host")?;
    let switch: Option<String> = section.read("switch")?;

    // The later setting (on the command line) wins: a scheme over the file's sides, a side over the scheme's.
    let base = scheme.as_deref().unwrap_or(DEFAULT_ALIAS);
    let (base_host, base_switch) = match base.split_once('+') {
        Some((host, switch)) => (host.trim(), switch.trim()),
        None => Alias::named(base.trim()).map_or(("", ""), |a| (a.host, a.switch)),
    };
    let sides_count = side_rank.is_some() && side_rank >= scheme_rank;
    let (host_parameters, switch_parameters, name) = if sides_count {
        if scheme.is_some() && base_host.is_empty() {
            resolve(base).map_err(|error| scheme_error(&error, place("scheme")))?;
        }
        let wins = |key: &str| tree.find(&format!("load_balancer.{key}")).map(|n| n.place.source.rank) >= scheme_rank;
        let host = host.filter(|_| wins("host"));
        let switch = switch.filter(|_| wins("switch"));
        let (host, switch) = (host.as_deref().unwrap_or(base_host), switch.as_deref().unwrap_or(base_switch));
        let at = |key: &str| place(key).or_else(|| place("host")).or_else(|| place("switch"));
        let h = HostParameters::named(host).map_err(|error| scheme_error(&error.into(), at("host")))?;
        let s = SwitchParameters::named(switch).map_err(|error| scheme_error(&error.into(), at("switch")))?;
        check_pair(&h, &s).map_err(|error| scheme_error(&error, at("switch")))?;
        let alias = aliases().iter().find(|a| a.host == h.name() && a.switch == s.name());
        let name = alias.map_or_else(|| format!("{}+{}", h.name(), s.name()), |alias| alias.name.to_string());
        (h, s, name)
    } else {
        let (h, s) = resolve(base).map_err(|error| scheme_error(&error, place("scheme")))?;
        (h, s, base.trim().to_string())
    };
    let given = tables(section)?;
    let mut balancers =
        LoadBalancers { main: LoadBalancer { name, host: host_parameters, switch: switch_parameters }, given };
    let main = balancers.main.clone();
    balancers.main = balancers.with_parameters(&main.name, main.host, main.switch).map_err(|error| {
        let of = match &error {
            SchemeError::Invalid { scheme, invalid } => place(&format!("{scheme}.{}", invalid.key)),
            _ => None,
        };
        scheme_error(&error, of.or_else(|| place("scheme")).or_else(|| place("host")).or_else(|| place("switch")))
    })?;
    Ok(balancers)
}

/// Reads the parameter tables, each checked against the host and the switch scheme of its name.
fn tables(section: Section<'_>) -> Result<Vec<Given>, ScenarioError> {
    let names: Vec<&'static str> = HostParameters::all()
        .iter()
        .chain(SwitchParameters::all())
        .map(|about| about.name)
        .fold(Vec::new(), |mut all, name| {
            if !all.contains(&name) {
                all.push(name);
            }
            all
        });
    let (mut given, mut mistakes) = (Vec::new(), Mistakes::default());
    for (name, node) in section.rest() {
        given.extend(mistakes.ok(given_table(name, node, &names)));
    }
    mistakes.or(given)
}

fn given_table(name: &str, node: &Node, names: &[&str]) -> Result<Given, ScenarioError> {
    let (mut host, mut switch) = (HostParameters::named(name).ok(), SwitchParameters::named(name).ok());
    if host.is_none() && switch.is_none() {
        let sides = "scheme, host, switch, and a table for the parameters of a scheme:";
        let message = format!("[load_balancer]: unknown key `{name}`; allowed are {sides} {}", list(names));
        let near = nearest(name, names.iter().copied().chain(["scheme", "host", "switch"]));
        return Err(did_you_mean(ScenarioError::new(message).at(node.key.clone()), near));
    }
    let title = format!("[load_balancer.{name}]");
    let Value::Table(entries) = &node.value else {
        let message = format!("{title}: found {}, expected a table of parameters", node.describe());
        return Err(ScenarioError::new(message).at(node.place.clone()));
    };
    let (mut kept, mut mistakes) = (Vec::new(), Mistakes::default());
    for (key, value) in entries {
        let Some(raw) = value.raw() else {
            let message = format!("{title}: `{key}`: found a table, expected a value");
            mistakes.add(ScenarioError::new(message).at(value.place.clone()));
            continue;
        };
        let sides =
            [host.as_mut().map(HostParameters::parameters_mut), switch.as_mut().map(SwitchParameters::parameters_mut)];
        let set = set_either(sides, key, &raw).map_err(|error| match error {
            SetError::UnknownKey { key, allowed, nearest } => {
                let message = match allowed.is_empty() {
                    true => format!("{title}: unknown key `{key}`; {name} has no parameters"),
                    false => format!("{title}: unknown key `{key}`; allowed are {}", list(&allowed)),
                };
                did_you_mean(ScenarioError::new(message).at(value.key.clone()), nearest)
            }
            SetError::InvalidValue { key, wrong } => {
                ScenarioError::new(format!("{title}: `{key}`: {wrong}")).at(value.place.clone())
            }
        });
        mistakes.ok(set);
        kept.push((key.clone(), raw));
    }
    let kept = mistakes.or(kept)?;
    let checks = [host.map(|h| h.check()), switch.map(|s| s.check())];
    for checked in checks.into_iter().flatten() {
        checked.map_err(|error| {
            let key = match &error {
                SchemeError::Invalid { invalid, .. } => Some(invalid.key),
                _ => None,
            };
            let at = entries.iter().find(|(k, _)| Some(k.as_str()) == key).map(|(_, n)| n.place.clone());
            ScenarioError::new(format!("{title}: {error}")).maybe_at(at.or_else(|| Some(node.key.clone())))
        })?;
    }
    Ok(Given { scheme: name.to_string(), entries: kept })
}

fn set_either(sides: [Option<&mut dyn Parameters>; 2], key: &str, raw: &Raw) -> Result<(), SetError> {
    let (mut known, mut allowed) = (false, Vec::new());
    for side in sides.into_iter().flatten() {
        match side.set(key, raw) {
            Ok(()) => known = true,
            Err(SetError::UnknownKey { allowed: names, .. }) => allowed.extend(names),
            Err(wrong) => return Err(wrong),
        }
    }
    if known {
        return Ok(());
    }
    let nearest = nearest(key, allowed.iter().copied());
    Err(SetError::UnknownKey { key: key.to_string(), allowed, nearest })
}

/// Warns of numbers of paths that are others on this topology.
pub(crate) fn fitted(setup: &Setup) -> Vec<String> {
    let of = |balancer: &LoadBalancer| {
        let planes = balancer.named_planes(setup.fabric.nic_ports, setup.topology.planes);
        let capabilities = balancer.host.capabilities();
        if setup.topology.planes > 1 && capabilities.heeds_ports() && setup.fabric.nic_ports == PortSelector::FreePort {
            return Some(format!(
                "[fabric]: `nic_ports`: {} withdraws values for losses of planes that they do not name; \"by-ev\" names them",
                balancer.host.name()
            ));
        }
        let note = balancer.host.capabilities().fitted(&setup.topology.uplinks, planes)?;
        Some(format!("[load_balancer.{}]: {note}", balancer.host.name()))
    };
    setup.load_balancers.iter().filter_map(of).collect()
}
