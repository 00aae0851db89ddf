//! The JSON Schema of scenario files, for editors, from the declarations that read them.

use crate::{CompareParameters, MeasureParameters, PROFILES, RunParameters};
use anabranch_backend::{FabricParameters, MarkingParameters};
use anabranch_lb::registry::{HostParameters, SwitchParameters, aliases};
use anabranch_settings::{About, Each, Parameter, Parameters, Raw, Registry, Seed, Setting, ValueSchema};
use anabranch_topology::{FaultParameters, LinkOverride, TopologyParameters};
use anabranch_transport::TransportParameters;
use anabranch_wire::WireParameters;
use anabranch_workload::{CommonParameters, ServerParameters, WorkloadParameters};
use serde_json::{Map, Value, json};

/// Returns the schema (draft 7, which editors support).
pub fn schema() -> Value {
    let topologies = kinds::<TopologyParameters>(|keys| {
        keys.insert("link".into(), list_of(object(properties(&LinkOverride::default()), &[])));
    });
    let workloads = kinds::<WorkloadParameters>(|keys| keys.extend(properties(&CommonParameters::default())));
    let mut fabric = Map::from_iter([(
        "profile".to_string(),
        described(words(PROFILES.iter().map(|profile| profile.name)), "A set of defaults."),
    )]);
    fabric.extend(properties(&FabricParameters::default()));
    let rules = MarkingParameters::each().into_iter().filter(|rule| !rule.parameters().entries().is_empty());
    fabric.extend(rules.map(|rule| {
        let table = object(properties(rule.parameters()), &[]);
        (rule.name().to_string(), described(table, rule.about().summary))
    }));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of Anabranch",
        "type": "object",
        "required": ["topology", "workload"],
        "additionalProperties": false,
        "properties": {
            "name": described(json!({ "type": "string" }), "Name in tables and reports."),
            "seed": described(of_shape(&Seed::schema()), &format!("Seed of everything random: {}.", Seed::expected())),
            "topology": described(json!({ "anyOf": topologies }), "The graph."),
            "servers": described(
                object(properties(&ServerParameters::default()), &[]),
                "Servers: GPUs, NICs and the scale-up network between the GPUs.",
            ),
            "fabric": described(object(fabric, &[]), "Switches and NICs: buffers, marking, trimming, classes."),
            "transport": described(transports(), "Senders and receivers."),
            "load_balancer": described(load_balancer(), "Load balancer: spreads packets over the paths."),
            "workload": described(
                json!({ "type": "array", "minItems": 1, "items": { "anyOf": workloads } }),
                "Traffic: flows and their start times.",
            ),
            "fault": described(
                list_of(object(properties(&FaultParameters::default()), &[])),
                "Faults of links and switches, with their times.",
            ),
            "measure": described(
                object(properties(&MeasureParameters::default()), &[]),
                "Optional measurements.",
            ),
            "run": described(object(properties(&RunParameters::default()), &[]), "End of a run, and flows in the statistics."),
            "compare": described(
                object(properties(&CompareParameters::default()), &[]),
                "Defaults of `anabranch compare` for arguments that are not given.",
            ),
            "wire": described(
                object(properties(&WireParameters::default()), &[]),
                "Settings of real networks only; simulations do not read them.",
            ),
        },
    })
}

fn transports() -> Value {
    let of = |mut transport: TransportParameters| {
        let mut keys = properties(transport.parameters());
        keys.insert("kind".into(), words([transport.name()]));
        for control in transport.controls().all() {
            if let Some(parameters) = transport.control_parameters_mut(control.name) {
                let table = object(properties(&*parameters), &[]);
                keys.insert(control.name.into(), described(table, control.summary));
            }
        }
        object(keys, &[])
    };
    json!({ "anyOf": TransportParameters::each().into_iter().map(of).collect::<Vec<_>>() })
}

fn load_balancer() -> Value {
    let names = |abouts: &'static [About]| words(abouts.iter().map(|about| about.name));
    let mut keys = Map::new();
    // Besides the names there are pairs, `host+switch`.
    let pair = json!({ "type": "string", "pattern": "^[^+]+\\+[^+]+$" });
    let scheme = json!({ "anyOf": [words(aliases().iter().map(|alias| alias.name)), pair] });
    keys.insert("scheme".into(), described(scheme, "A pair by name, or `host+switch`."));
    keys.insert("host".into(), described(names(HostParameters::all()), "A host-side scheme."));
    keys.insert("switch".into(), described(names(SwitchParameters::all()), "A switch-side scheme."));
    for about in HostParameters::all().iter().chain(SwitchParameters::all()) {
        let mut table = Map::new();
        if let Ok(host) = HostParameters::named(about.name) {
            table.extend(properties(host.parameters()));
        }
        if let Ok(switch) = SwitchParameters::named(about.name) {
            table.extend(properties(switch.parameters()));
        }
        keys.insert(about.name.into(), described(object(table, &[]), about.summary));
    }
    object(keys, &[])
}

fn kinds<T: Registry>(common: impl Fn(&mut Map<String, Value>)) -> Vec<Value> {
    let of = |kind: &T| {
        let mut keys = properties(kind.parameters());
        keys.insert("kind".into(), described(words([kind.about().name]), kind.about().summary));
        common(&mut keys);
        object(keys, &["kind"])
    };
    Each::<T>::default().iter().map(of).collect()
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn list_of(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn words(words: impl IntoIterator<Item = &'static str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

fn properties(parameters: &dyn Parameters) -> Map<String, Value> {
    parameters.documentation().iter().map(|parameter| (parameter.name.to_string(), property(parameter))).collect()
}

fn property(parameter: &Parameter) -> Value {
    let takes = format!("{} Takes {}. Default from: {}.", parameter.meaning, parameter.expected, parameter.source);
    let mut schema = described(of_shape(&parameter.schema), &takes);
    // The empty text means "not given".
    if parameter.default != Raw::Text(String::new()) {
        schema["default"] = crate::explain::raw_json(&parameter.default);
    }
    schema
}

fn of_shape(shape: &ValueSchema) -> Value {
    match shape {
        ValueSchema::Any => json!({}),
        ValueSchema::Bool => json!({ "type": "boolean" }),
        ValueSchema::Whole => json!({ "type": "integer", "minimum": 0 }),
        ValueSchema::Number => json!({ "type": "number" }),
        ValueSchema::Between(number, min, max) => {
            let mut shape = of_shape(number);
            shape["minimum"] = crate::explain::raw_json(min);
            shape["maximum"] = crate::explain::raw_json(max);
            shape
        }
        ValueSchema::Text => json!({ "type": "string" }),
        ValueSchema::Digits => json!({ "type": "string", "pattern": "^[0-9]+$" }),
        ValueSchema::Quantity(units) => {
            json!({ "type": "string", "pattern": format!("^\\s*[0-9][0-9._]*\\s*({})\\s*$", units.join("|")) })
        }
        ValueSchema::Words(words) => json!({ "enum": words }),
        ValueSchema::List(each) => list_of(of_shape(each)),
        ValueSchema::Either(shapes) => json!({ "anyOf": shapes.iter().map(of_shape).collect::<Vec<_>>() }),
    }
}
