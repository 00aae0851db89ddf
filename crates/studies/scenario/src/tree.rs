//! A scenario as a tree of values with their origin: the file or a command-line flag.

use crate::ScenarioError;
use anabranch_input::{escaped, masked};
use anabranch_settings::Raw;
use miette::NamedSource;
use std::{ops::Range, sync::Arc};
use toml::de::{DeTable, DeValue};

/// A text from which values are read: a scenario file, or one command-line flag.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the file, or the flag.
    pub name: String,
    pub text: String,
    /// 0 for the file, 1 and up for flags in the order of the command line.
    pub rank: usize,
    /// As errors show it, which share it.
    shown: Arc<NamedSource<String>>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>, rank: usize) -> Arc<Self> {
        let (name, text) = (name.into(), text.into());
        let shown = Arc::new(NamedSource::new(escaped(&name), masked(&text).into_owned()));
        Arc::new(Source { name, text, rank, shown })
    }

    /// Returns name and text without control characters.
    pub(crate) fn shown(&self) -> &Arc<NamedSource<String>> {
        &self.shown
    }
}

/// A range of bytes of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub source: Arc<Source>,
    /// First byte and the one after the last.
    pub span: Range<usize>,
}

/// A value with its place and that of its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: Value,
    pub place: Place,
    /// Place of its key (for an element of a list: the element).
    pub key: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A boolean, a number or text.
    Leaf(Raw),
    List(Vec<Node>),
    /// Keys and their nodes, in the order of the text.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// Returns the value as a parameter takes it; `None` where it contains a table.
    pub fn raw(&self) -> Option<Raw> {
        match &self.value {
            Value::Leaf(raw) => Some(raw.clone()),
            Value::List(items) => items.iter().map(Node::raw).collect::<Option<_>>().map(Raw::List),
            Value::Table(_) => None,
        }
    }

    pub fn describe(&self) -> String {
        match self.raw() {
            Some(raw) => raw.to_string(),
            None if matches!(self.value, Value::List(_)) => "a list of tables".into(),
            None => "a table".into(),
        }
    }
}

/// The whole scenario.
#[derive(Clone, Debug)]
pub struct Tree {
    root: Node,
    changes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Tree {
    /// Reads TOML.
    /// Fails where `text` is not TOML: the place and what was expected.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let source = Source::new(name, text, 0);
        let whole = Place { source: source.clone(), span: 0..text.len() };
        let table = DeTable::parse(text).map_err(|error| not_toml(&source, 0, &error))?;
        let value = table_value(&source, 0, table.get_ref());
        let root = Node { value: value?, key: whole.clone(), place: whole };
        Ok(Tree { root, changes: Vec::new() })
    }

    /// Returns the outermost table.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the node at a dotted key such as `workload[0].load` or `workload.0.load`.
    pub fn find(&self, path: &str) -> Option<&Node> {
        steps(path)?.iter().try_fold(&self.root, |node, step| match (&node.value, step) {
            (Value::Table(entries), Step::Key(key)) => entries.iter().find(|(k, _)| k == key).map(|(_, n)| n),
            (Value::List(items), Step::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Returns the place of the value at a dotted key.
    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        self.find(path).map(|node| node.place.clone())
    }

    /// Returns the place of a key of a table, or else that of the table's header.
    pub(crate) fn place_in(&self, table: &str, key: Option<&str>) -> Option<Place> {
        let own = key.and_then(|key| self.place(&format!("{table}.{key}")));
        own.or_else(|| self.find(table).map(|node| node.key.clone()))
    }

    /// Returns file and line of a table as the begin of a warning; empty where it has none.
    pub(crate) fn line_of(&self, table: &str) -> String {
        let at = self.place_in(table, None).map(|at| ScenarioError::new("").at(at));
        let at = at.as_ref().and_then(|at| Some((at.source_name()?.to_string(), at.line_column()?.0)));
        at.map_or(String::new(), |(name, line)| format!("{name}:{line}: "))
    }

    /// Overrides one value, as `--set key=value` does: the value is read as TOML, else taken as text.
    /// Fails where the key is invalid: no `=`, a step into a value, an element that does not exist.
    pub fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        self.change("--set", assignment)
    }

    /// As [`Tree::set`], for another flag, `name`; the change is part of [`Tree::changes`].
    pub fn change(&mut self, name: &str, assignment: &str) -> Result<(), ScenarioError> {
        self.set_from(name, assignment)?;
        self.changes.push(assignment.to_string());
        Ok(())
    }

    /// Returns the changes made by [`Tree::set`] and [`Tree::change`] so far.
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// As [`Tree::change`], for the text `assignment` of the flag `name`, but not part of [`Tree::changes`].
    pub fn set_from(&mut self, name: &str, assignment: &str) -> Result<(), ScenarioError> {
        let rank = 1 + self.highest_rank();
        let source = Source::new(name, assignment, rank);
        let Some(equals) = assignment.find('=') else {
            return Err(ScenarioError::new(format!("`{name} {assignment}` has no `=`"))
                .at(Place { source, span: 0..assignment.len() })
                .help("write KEY=VALUE, for example `--set topology.link_rate=100Gbps`"));
        };
        let key = Place { source: source.clone(), span: 0..equals };
        let path = assignment[..equals].trim();
        let Some(steps) = steps(path) else {
            return Err(ScenarioError::new(format!("`{path}` is not a key"))
                .at(key)
                .help("a key is words joined by dots, with numbers for elements: `workload.0.load`"));
        };
        let text = &assignment[equals + 1..];
        let place = Place { source: source.clone(), span: equals + 1..assignment.len() };
        refuse_control(&key, "a key", path)?;
        let value = match DeValue::parse(text) {
            // Integers that TOML cannot represent: a seed above 2^63-1.
            Ok(_) if text.trim().parse::<u64>().is_ok_and(|number| number > i64::MAX as u64) => {
                Value::Leaf(Raw::Text(text.trim().to_string()))
            }
            Ok(value) => convert(&source, equals + 1, path, value.get_ref(), place.span.clone())?,
            Err(_) => {
                refuse_control(&place, &format!("`{path}`"), text.trim())?;
                Value::Leaf(Raw::Text(text.trim().to_string()))
            }
        };
        insert(&mut self.root, &steps, path, Node { value, place, key })
    }

    fn highest_rank(&self) -> usize {
        fn walk(node: &Node) -> usize {
            let below = match &node.value {
                Value::Leaf(_) => 0,
                Value::List(items) => items.iter().map(walk).max().unwrap_or(0),
                Value::Table(entries) => entries.iter().map(|(_, n)| walk(n)).max().unwrap_or(0),
            };
            below.max(node.place.source.rank)
        }
        walk(&self.root)
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (word, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        match word.trim().trim_matches('"') {
            "" => return None,
            word => steps.push(word.parse().map_or_else(|_| Step::Key(word.to_string()), Step::Index)),
        }
        for index in indices.split_terminator(']') {
            steps.push(Step::Index(index.trim().strip_prefix('[')?.trim().parse().ok()?));
        }
        if !indices.is_empty() && !indices.ends_with(']') {
            return None;
        }
    }
    Some(steps)
}

/// Puts `leaf` at the end of `steps`, starting from `node`; creates missing tables and list elements.
fn insert(node: &mut Node, steps: &[Step], path: &str, leaf: Node) -> Result<(), ScenarioError> {
    let Some((step, rest)) = steps.split_first() else {
        *node = leaf;
        return Ok(());
    };
    let fresh = || {
        let value = match rest.first() {
            Some(Step::Index(_)) => Value::List(Vec::new()),
            _ => Value::Table(Vec::new()),
        };
        Node { value, place: leaf.key.clone(), key: leaf.key.clone() }
    };
    let at_fault = leaf.key.clone();
    let next = match (&mut node.value, step) {
        (Value::Table(entries), Step::Key(key)) => {
            let index = entries.iter().position(|(k, _)| k == key).unwrap_or_else(|| {
                entries.push((key.clone(), fresh()));
                entries.len() - 1
            });
            &mut entries[index].1
        }
        (Value::List(items), Step::Index(index)) if *index <= items.len() => {
            if *index == items.len() {
                items.push(fresh());
            }
            &mut items[*index]
        }
        (Value::List(items), Step::Index(index)) => {
            return Err(ScenarioError::new(format!("`{path}`: element {index} of a list with {}", items.len()))
                .at(at_fault)
                .help("elements count from 0; the next free number adds one"));
        }
        (Value::List(items), Step::Key(key)) => {
            // A number here is a typing error, not the name of a key below.
            let below = if key.parse::<i64>().is_ok() { String::new() } else { format!(".{key}") };
            return Err(ScenarioError::new(format!("`{path}`: which of the {}?", items.len()))
                .at(at_fault)
                .help(format!("name the element by its number from 0, for example `0{below}`")));
        }
        (Value::Table(_), Step::Index(index)) => {
            return Err(ScenarioError::new(format!("`{path}`: {index} is not a key of a table")).at(at_fault));
        }
        (Value::Leaf(found), _) => {
            return Err(
                ScenarioError::new(format!("`{path}` leads into the value {found}, which has no keys")).at(at_fault)
            );
        }
    };
    insert(next, rest, path, leaf)
}

fn not_toml(source: &Arc<Source>, offset: usize, error: &toml::de::Error) -> ScenarioError {
    let end = source.text.len();
    let span = error.span().map_or(offset..end, |s| (s.start + offset).min(end)..(s.end + offset).min(end));
    ScenarioError::new(format!("not valid TOML: {}", error.message().trim()))
        .at(Place { source: source.clone(), span })
        .help("a scenario is TOML: `key = value` lines under `[section]` headers; text and quantities in quotes")
}

/// Refuses control characters, which a terminal would obey: the text is shown, and becomes part of file names.
fn refuse_control(place: &Place, what: &str, text: &str) -> Result<(), ScenarioError> {
    match text.chars().find(|c| !anabranch_input::is_plain(c.encode_utf8(&mut [0; 4])) || matches!(c, '\n' | '\t')) {
        None => Ok(()),
        Some(c) => {
            let message = format!("{what}: found the control character U+{:04X}", u32::from(c));
            let help = "names, paths and values are text that can be shown on one line";
            Err(ScenarioError::new(message).at(place.clone()).help(help))
        }
    }
}

fn table_value(source: &Arc<Source>, offset: usize, table: &DeTable<'_>) -> Result<Value, ScenarioError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let shift = |s: Range<usize>| s.start + offset..s.end + offset;
        let (key_span, span) = (shift(key.span()), shift(value.span()));
        let place = Place { source: source.clone(), span: key_span };
        refuse_control(&place, "a key", key.get_ref())?;
        let node = Node {
            value: convert(source, offset, key.get_ref(), value.get_ref(), span.clone())?,
            place: Place { source: source.clone(), span },
            key: place,
        };
        entries.push((key.get_ref().to_string(), node));
    }
    entries.sort_by_key(|(_, node)| node.key.span.start);
    Ok(Value::Table(entries))
}

fn convert(
    source: &Arc<Source>,
    offset: usize,
    key: &str,
    value: &DeValue<'_>,
    span: Range<usize>,
) -> Result<Value, ScenarioError> {
    Ok(Value::Leaf(match value {
        DeValue::String(text) => {
            refuse_control(&Place { source: source.clone(), span }, &format!("`{key}`"), text)?;
            Raw::Text(text.to_string())
        }
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Raw::Int(integer),
            Err(_) => {
                let message = format!("the number {integer} exceeds 64-bit TOML integers");
                let error = ScenarioError::new(message).at(Place { source: source.clone(), span });
                return Err(match integer.as_str().parse::<u64>() {
                    Ok(number) => error.help(format!("a seed of this size is written as text: \"{number}\"")),
                    Err(_) => error,
                });
            }
        },
        DeValue::Float(float) => Raw::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Raw::Bool(*boolean),
        DeValue::Datetime(date) => Raw::Text(date.to_string()),
        DeValue::Array(array) => {
            let mut items = Vec::with_capacity(array.len());
            for item in array.iter() {
                let span = item.span().start + offset..item.span().end + offset;
                let place = Place { source: source.clone(), span: span.clone() };
                let value = convert(source, offset, key, item.get_ref(), span)?;
                items.push(Node { value, key: place.clone(), place });
            }
            return Ok(Value::List(items));
        }
        DeValue::Table(table) => return table_value(source, offset, table),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "seed = 1\n[[workload]]\nload = 0.5\n[[workload]]\nload = 0.25\n[topology]\nkind = \"fat-tree\"\n";

    fn value(tree: &Tree, path: &str) -> Option<Raw> {
        tree.find(path).and_then(Node::raw)
    }

    #[test]
    fn values_have_positions() {
        let tree = Tree::parse("x.toml", TEXT).unwrap();
        let node = tree.find("workload[1].load").unwrap();
        assert_eq!(node.raw(), Some(Raw::Float(0.25)));
        assert_eq!(&TEXT[node.place.span.clone()], "0.25");
        assert_eq!(&TEXT[node.key.span.clone()], "load");
        assert_eq!(value(&tree, "topology.kind"), Some(Raw::Text("fat-tree".into())));
    }

    #[test]
    fn flags_override_and_add() {
        let mut tree = Tree::parse("x.toml", TEXT).unwrap();
        tree.set("workload.0.load=0.75").unwrap();
        tree.set("workload[1].name = background").unwrap();
        tree.set("topology.link_rate=100Gbps").unwrap();
        tree.set("fault.0.links=[\"a-b\", \"c-d\"]").unwrap();
        tree.set("load_balancer.prime.p_ecn=10").unwrap();
        assert_eq!(value(&tree, "workload.0.load"), Some(Raw::Float(0.75)));
        assert_eq!(value(&tree, "workload.1.name"), Some(Raw::Text("background".into())));
        assert_eq!(value(&tree, "topology.link_rate"), Some(Raw::Text("100Gbps".into())));
        assert_eq!(value(&tree, "load_balancer.prime.p_ecn"), Some(Raw::Int(10)));
        let links = vec![Raw::Text("a-b".into()), Raw::Text("c-d".into())];
        assert_eq!(value(&tree, "fault.0.links"), Some(Raw::List(links)));
        let place = &tree.find("topology.link_rate").unwrap().place;
        assert_eq!((place.source.name.as_str(), place.source.rank), ("--set", 3));
    }

    #[test]
    fn impossible_keys_are_errors() {
        let mut tree = Tree::parse("x.toml", TEXT).unwrap();
        for (flag, word) in [
            ("seed", "no `=`"),
            ("workload.load=1", "which of the 2"),
            ("workload.7.load=1", "a list with 2"),
            ("seed.x=1", "has no keys"),
            ("..=1", "not a key"),
            ("topology.3=1", "not a key of a table"),
        ] {
            let error = tree.set(flag).unwrap_err().to_string();
            assert!(error.contains(word), "{flag}: {error}");
        }
    }

    #[test]
    fn invalid_toml_is_located() {
        let error = Tree::parse("x.toml", "seed = 1\nkind = fat-tree\n").unwrap_err();
        assert_eq!(error.line_column(), Some((2, 8)));
        assert!(Tree::parse("x.toml", "n = 99999999999999999999").unwrap_err().to_string().contains("64-bit"));
    }
}
