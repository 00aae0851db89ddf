//! Printing values as TOML.

use anabranch_settings::{Parameters, Raw};
use std::fmt::Write;

/// A value as it stands in a TOML file.
pub(crate) fn value(raw: &Raw) -> String {
    match raw {
        Raw::Text(text) => quoted(text),
        Raw::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Raw::Bool(_) | Raw::Int(_) | Raw::Float(_) => raw.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => write!(out, "\\u{:04X}", c as u32).expect("text"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `key = value`.
pub(crate) fn line(out: &mut String, key: &str, raw: &Raw) {
    writeln!(out, "{key} = {}", value(raw)).expect("text");
}

/// A line per parameter.
pub(crate) fn lines(out: &mut String, parameters: &dyn Parameters) {
    for (key, raw) in parameters.entries() {
        line(out, key, &raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["plain", "with \"quotes\" and \\", "two\nlines\tand \u{7f}\u{1}", "\u{fc}\u{1f600}", ""] {
            let raw = Raw::List(vec![Raw::Text(text.into()), Raw::Float(1e-7), Raw::Int(-3), Raw::Bool(true)]);
            let tree = crate::tree::Tree::parse("t", &format!("a = {}", value(&raw))).unwrap();
            assert_eq!(tree.find("a").unwrap().raw(), Some(raw));
        }
    }
}
