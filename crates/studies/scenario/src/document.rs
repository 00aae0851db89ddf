//! Scenarios as TOML documents: parameters become tables.

use anabranch_settings::{Parameters, Raw};
use toml::{Table, Value};

/// Converts a value to TOML.
pub fn value(raw: &Raw) -> Value {
    match raw {
        Raw::Text(text) => Value::String(text.clone()),
        Raw::List(items) => Value::Array(items.iter().map(value).collect()),
        Raw::Bool(flag) => Value::Boolean(*flag),
        Raw::Int(number) => Value::Integer(*number),
        Raw::Float(number) => Value::Float(*number),
    }
}

/// Returns a value as it is written on a command line.
pub fn text(raw: &Raw) -> String {
    match raw {
        Raw::Text(text) => text.clone(),
        other => value(other).to_string(),
    }
}

pub(crate) fn table<const N: usize>(first: [(&str, Raw); N], parameters: &dyn Parameters) -> Table {
    let all = first.into_iter().chain(parameters.entries());
    all.map(|(key, raw)| (key.to_string(), value(&raw))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_scenario_reads_back() {
        for text in
            ["plain", "with \"quotes\" and \\", "two\nlines\tand \u{7f}\u{1}", "it's '''", "\u{fc}\u{1f600}", ""]
        {
            let raw = Raw::List(vec![Raw::Text(text.into()), Raw::Float(1e-7), Raw::Int(-3), Raw::Bool(true)]);
            let document: Table = [("a".to_string(), value(&raw))].into_iter().collect();
            let read: Table = document.to_string().parse().unwrap();
            assert_eq!(read["a"], value(&raw));
        }
    }
}
