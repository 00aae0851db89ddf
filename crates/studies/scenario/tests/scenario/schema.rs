//! The JSON Schema accepts every ready-made scenario and that of `init`, and refuses what the reader refuses.

use anabranch_scenario::{init::every_key, library::READY_MADE, schema::schema};
use anabranch_settings::Level;
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};

fn as_json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

fn cases() -> Vec<(String, Value, bool)> {
    let mut cases: Vec<_> =
        READY_MADE.iter().map(|ready| (ready.name.to_string(), as_json(ready.text), true)).collect();
    cases.push(("init".into(), as_json(&every_key(&[Level::User, Level::Expert, Level::Reading])), true));
    let tiny = as_json(READY_MADE.iter().find(|ready| ready.name == "tiny").unwrap().text);
    let mistakes: [(&str, &[&str], Value); 9] = [
        ("unknown section", &["topologie"], json!({})),
        ("unknown key", &["topology", "radx"], json!(4)),
        ("text for a number", &["topology", "radix"], json!("four")),
        ("beyond its range", &["wire"], json!({ "labels": 257 })),
        ("no unit", &["topology", "link_rate"], json!("400")),
        ("another unit", &["topology", "link_delay"], json!("1Gbps")),
        ("unknown kind", &["topology", "kind"], json!("fat-three")),
        ("unknown scheme", &["load_balancer", "scheme"], json!("prme")),
        ("unknown parameter", &["load_balancer", "prime"], json!({ "p_enc": 3 })),
    ];
    for (name, path, value) in mistakes {
        let mut wrong = tiny.clone();
        let (last, tables) = path.split_last().unwrap();
        let table = tables.iter().fold(&mut wrong, |at, key| &mut at[*key]);
        table[*last] = value;
        cases.push((name.into(), wrong, false));
    }
    cases
}

fn takes(schema: &Value, value: &Value) -> bool {
    let keywords = schema.as_object().unwrap();
    keywords.iter().all(|(keyword, says)| match keyword.as_str() {
        "$schema" | "title" | "description" | "default" | "items" => true,
        "type" => match says.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value
                .as_array()
                .is_some_and(|items| schema.get("items").is_none_or(|each| items.iter().all(|item| takes(each, item)))),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            other => panic!("{other}"),
        },
        "minimum" => value.as_f64().is_some_and(|number| number >= says.as_f64().unwrap()),
        "maximum" => value.as_f64().is_some_and(|number| number <= says.as_f64().unwrap()),
        "minItems" => value.as_array().is_some_and(|items| items.len() as u64 >= says.as_u64().unwrap()),
        "enum" => says.as_array().unwrap().contains(value),
        "pattern" => {
            regex_lite::Regex::new(says.as_str().unwrap()).unwrap().is_match(value.as_str().unwrap_or_default())
        }
        "anyOf" => says.as_array().unwrap().iter().any(|one| takes(one, value)),
        "required" => says.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
        "properties" => {
            let Some(table) = value.as_object() else { return true };
            says.as_object().unwrap().iter().all(|(key, each)| table.get(key).is_none_or(|value| takes(each, value)))
        }
        "additionalProperties" => {
            assert_eq!(says, &json!(false));
            let known = schema["properties"].as_object().unwrap();
            value.as_object().is_none_or(|table| table.keys().all(|key| known.contains_key(key)))
        }
        other => panic!("a keyword that this test does not know: {other}"),
    })
}

#[test]
fn schema_accepts_what_the_reader_accepts() {
    let schema = schema();
    for (name, scenario, right) in cases() {
        assert_eq!(takes(&schema, &scenario), right, "{name}");
    }
}

/// Needs `pip install jsonschema`; `PYTHON=` names the interpreter that has it.
#[test]
#[ignore = "needs Python's jsonschema"]
fn schema_by_another_validator() {
    let program = "import json, sys, jsonschema\n\
        given = json.load(sys.stdin)\n\
        jsonschema.Draft7Validator.check_schema(given['schema'])\n\
        validator = jsonschema.Draft7Validator(given['schema'])\n\
        print(json.dumps([validator.is_valid(case) for case in given['cases']]))\n";
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let mut child =
        Command::new(python).args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let cases = cases();
    let scenarios: Vec<&Value> = cases.iter().map(|(_, scenario, _)| scenario).collect();
    let given = json!({ "schema": schema(), "cases": scenarios });
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let found: Vec<bool> = serde_json::from_slice(&output.stdout).unwrap();
    for ((name, _, right), found) in cases.iter().zip(found) {
        assert_eq!(found, *right, "{name}");
    }
}
