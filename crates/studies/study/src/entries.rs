//! Entries of a study: load balancers, and variants of the scenario with other settings.

use anabranch_lb::registry::resolve;
use anabranch_results::Plan;
use anabranch_scenario::{
    BackendEntry, COMMIT, MAX_SEEDS, Scenario, ScenarioError, VERSION, did_you_mean, library::in_list, list,
};
use anabranch_settings::nearest;

/// Arguments of a study from the command line; missing ones come from the scenario's `[compare]`.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The load balancers.
    pub schemes: Vec<String>,
    /// Variants of the scenario, `NAME=KEY=VALUE;KEY=VALUE` each.
    pub variants: Vec<String>,
    pub seeds: Option<u64>,
    /// The load balancer or variant to which the others are related.
    pub baseline: Option<String>,
    pub backend: &'static BackendEntry,
}

/// Returns a plan over `scenario` without entries, seeds and runs.
pub(crate) fn plan_of(scenario: &Scenario) -> Plan {
    Plan {
        name: scenario.name.clone(),
        version: VERSION.into(),
        commit: COMMIT.into(),
        scenario: scenario.to_toml(),
        scenario_hash: format!("{:016x}", scenario.hash()),
        ground: format!("{:016x}", scenario.ground()),
        ..Plan::default()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
}

struct Variant {
    name: String,
    changes: Vec<String>,
}

/// Entries of a study, in the order given: load balancers first, then variants.
pub(crate) struct Entries {
    names: Vec<String>,
    schemes: Vec<String>,
    variants: Vec<Variant>,
    from_flag: bool,
    request: Request,
}

impl Entries {
    /// With variants and no load balancers, the scenario's own load balancer is an entry too.
    pub(crate) fn new(scenario: &Scenario, request: &Request) -> Result<Self, ScenarioError> {
        let asked: Vec<String> =
            request.schemes.iter().map(|s| s.trim().to_string()).filter(|s| !s.is_empty()).collect();
        let from_flag = !asked.is_empty();
        let mut schemes = if from_flag { asked } else { scenario.compare.schemes.clone() };
        let variants = request.variants.iter().map(|text| variant(text)).collect::<Result<Vec<_>, _>>()?;
        if schemes.is_empty() && !variants.is_empty() {
            schemes.push(scenario.scheme().to_string());
        }
        if schemes.is_empty() {
            return Err(ScenarioError::new("nothing to compare: no load balancers are named").help(
                "give --schemes A,B,... (`anabranch list schemes`) or `schemes = [...]` under [compare] in the scenario",
            ));
        }
        let names: Vec<String> = schemes.iter().cloned().chain(variants.iter().map(|v| v.name.clone())).collect();
        if let Some(twice) = names.iter().enumerate().find(|(i, s)| names[..*i].contains(s)).map(|(_, s)| s) {
            let what = if variants.is_empty() { "load balancers" } else { "load balancers and variants" };
            let place = in_list("--schemes", &request.schemes, twice);
            return Err(ScenarioError::new(format!("`{twice}` is given twice among the {what} to compare"))
                .maybe_at(place.filter(|_| from_flag)));
        }
        Ok(Entries { names, schemes, variants, from_flag, request: request.clone() })
    }

    pub(crate) fn backend(&self) -> &'static BackendEntry {
        self.request.backend
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the scenario with each of them, or the error of a load balancer or variant.
    pub(crate) fn of(&self, scenario: &Scenario) -> Result<Vec<Entry>, ScenarioError> {
        let place = |scheme: &str| match self.from_flag {
            true => in_list("--schemes", &self.request.schemes, scheme),
            false => scenario.place("compare.schemes"),
        };
        let schemes = self.schemes.iter().map(|scheme| {
            let scenario = scenario.with_scheme(scheme).map_err(|error| error.maybe_at(place(scheme)))?;
            Ok(Entry { name: scheme.clone(), scenario })
        });
        let variants = self.variants.iter().map(|variant| {
            let scenario = scenario.changed(&format!("--variant {}", variant.name), &variant.changes)?;
            Ok(Entry { name: variant.name.clone(), scenario })
        });
        schemes.chain(variants).collect()
    }

    /// Returns the entry to which the others are related.
    pub(crate) fn baseline(&self, scenario: &Scenario) -> Result<String, ScenarioError> {
        match self.request.baseline.clone().or_else(|| scenario.compare.baseline.clone()) {
            None => Ok(self.names[0].clone()),
            Some(baseline) if self.names.contains(&baseline) => Ok(baseline),
            // The scenario's own baseline need not be among the load balancers of the command line.
            Some(_) if self.request.baseline.is_none() && self.from_flag => Ok(self.names[0].clone()),
            Some(baseline) => {
                let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
                let message =
                    format!("the baseline `{baseline}` is not among the load balancers compared: {}", list(&names));
                Err(did_you_mean(ScenarioError::new(message), nearest(&baseline, names)))
            }
        }
    }

    /// Returns the seeds, counting up from the scenario's.
    pub(crate) fn seeds(&self, scenario: &Scenario) -> Result<Vec<u64>, ScenarioError> {
        let count = self.request.seeds.unwrap_or(scenario.compare.seeds);
        if count == 0 || count > MAX_SEEDS {
            return Err(ScenarioError::new(format!("--seeds: found {count}, expected from 1 to {MAX_SEEDS}")));
        }
        if scenario.seed.checked_add(count - 1).is_none() {
            let message =
                format!("--seeds: {count} seeds from {} on end beyond the largest, {}", scenario.seed, u64::MAX);
            return Err(ScenarioError::new(message).help("give a smaller `seed`, or fewer seeds"));
        }
        Ok((0..count).map(|i| scenario.seed + i).collect())
    }
}

const MAX_VARIANT: usize = 100;

fn variant(text: &str) -> Result<Variant, ScenarioError> {
    let wrong = |message: String| {
        Err(ScenarioError::new(format!("--variant {text}: {message}")).help(
            "write --variant NAME='KEY=VALUE;KEY=VALUE', for example --variant short='load_balancer.prime.p_ecn=8'",
        ))
    };
    let Some((name, changes)) = text.split_once('=') else { return wrong("there is no `=`".into()) };
    let name = name.trim();
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.len() > MAX_VARIANT {
        return wrong(format!("the name has {} characters, expected at most {MAX_VARIANT}", name.len()));
    }
    if name.is_empty() || !name.chars().all(fit) || name.starts_with(['.', '-']) {
        return wrong(format!("`{name}` is not a name; names consist of letters, digits, `-`, `_` and `.`"));
    }
    if resolve(name).is_ok() {
        return wrong(format!("`{name}` is a load balancer; give the variant another name"));
    }
    let changes: Vec<String> = changes.split(';').map(|c| c.trim().to_string()).filter(|c| !c.is_empty()).collect();
    if changes.is_empty() || changes.iter().any(|change| !change.contains('=')) {
        return wrong(format!("found `{}` after the name, expected KEY=VALUE", changes.join(";")));
    }
    Ok(Variant { name: name.to_string(), changes })
}
