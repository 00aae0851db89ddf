//! Endings of runs, and their differences.

use super::check::REFERENCE;
use anabranch_backend::RunError;
use anabranch_outcome::RunResult;
use anabranch_results::{RunMeta, Summary, csv_tables};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// With results: fingerprint, tables as CSV, captures, and the summary without machine-dependent keys.
    Done { fingerprint: Option<u64>, tables: Vec<(String, String)>, summary: String },
    /// The scenario cannot be run: invalid input.
    Refused(String),
    /// An invariant failed, or flows are open and no event is pending without a reason.
    Broken(String),
    /// The run exceeded its time limit and ended when interrupted.
    Slow,
    /// The run exceeded its time limit and did not end when interrupted.
    Hung,
}

/// Keys of the summary that depend on the machine or the mode.
const OF_THE_MACHINE: [&str; 6] =
    ["wall_s", "packet_hops_per_s", "peak_rss_bytes", "threads", "events", "bytes_per_host"];

/// Keys of the summary that depend on the measurements.
const OF_MEASUREMENTS: [&str; 1] = ["trace_cut_s"];

const ALWAYS: [&str; 2] = ["flows", "links"];

pub(super) fn ending(result: &RunResult, meta: &RunMeta) -> Ending {
    let mut summary = serde_json::to_value(Summary::new(result, meta)).unwrap_or_default();
    if let Some(keys) = summary.as_object_mut() {
        keys.retain(|key, _| !OF_THE_MACHINE.contains(&key.as_str()));
    }
    let csv = csv_tables(result, meta).into_iter().map(|(name, text)| (format!("{name}.csv"), text));
    let captures = result.watched.captures.iter().map(|capture| {
        let packets: String = capture.packets.iter().map(|packet| format!("{packet:?}\n")).collect();
        (format!("the capture of link {}", capture.link), packets)
    });
    Ending::Done {
        fingerprint: result.fingerprint,
        tables: csv.chain(captures).collect(),
        summary: format!("{summary:#}"),
    }
}

fn hexadecimal(fingerprint: Option<u64>) -> String {
    fingerprint.map_or_else(|| "-".into(), |fingerprint| format!("{fingerprint:016x}"))
}

impl Ending {
    pub(super) fn of_error(error: &RunError) -> Ending {
        match error {
            RunError::Setup(reason) => Ending::Refused(reason.clone()),
            RunError::Refused(refusal) => Ending::Refused(refusal.to_string()),
            RunError::Interrupted => Ending::Slow,
            error => Ending::Broken(error.to_string()),
        }
    }

    pub(super) fn kind(&self) -> u8 {
        match self {
            Ending::Done { .. } => 0,
            Ending::Refused(_) => 1,
            Ending::Broken(_) => 2,
            Ending::Slow | Ending::Hung => 3,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Ending::Done { fingerprint, .. } => format!("done, fingerprint {}", hexadecimal(*fingerprint)),
            Ending::Refused(reason) => format!("refused: {reason}"),
            Ending::Broken(reason) => reason.clone(),
            Ending::Slow => "not done in time".into(),
            Ending::Hung => "not done in time, and does not react to an interruption".into(),
        }
    }

    /// First difference of each table from `first`, if any. With `measured_otherwise`, only tables of both count.
    pub(super) fn difference(&self, first: &Ending, measured_otherwise: bool) -> Option<String> {
        let (
            Ending::Done { fingerprint: b, tables: tb, summary: sb },
            Ending::Done { fingerprint: a, tables: ta, summary: sa },
        ) = (self, first)
        else {
            let alike = self == first;
            return (!alike).then(|| format!("{}, but with {REFERENCE}: {}", self.describe(), first.describe()));
        };
        let counts = |name: &str| !measured_otherwise || ALWAYS.iter().any(|of| name.strip_suffix(".csv") == Some(of));
        let of = |tables: &[(String, String)], summary: &String| -> Vec<(String, String)> {
            let tables = tables.iter().filter(|(name, _)| counts(name)).cloned();
            let line = |line: &&str| !measured_otherwise || !OF_MEASUREMENTS.iter().any(|key| line.contains(key));
            let summary = summary.lines().filter(line).collect::<Vec<_>>().join("\n");
            tables.chain([("summary.json".to_string(), summary)]).collect()
        };
        let (first, other) = (of(ta, sa), of(tb, sb));
        if a == b && first == other {
            return None;
        }
        let mut out = match a == b {
            true => "rows differ".to_string(),
            false => format!("fingerprints differ, {} instead of {}", hexadecimal(*b), hexadecimal(*a)),
        };
        let names = |tables: &[(String, String)]| tables.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if names(&first) != names(&other) {
            out += &format!("\n  tables are {} instead of {}", names(&other).join(", "), names(&first).join(", "));
        }
        for ((name, x), (_, y)) in first.iter().zip(&other).filter(|(x, y)| x != y) {
            let (xs, ys): (Vec<_>, Vec<_>) = (x.lines().collect(), y.lines().collect());
            let at = xs.iter().zip(&ys).position(|(x, y)| x != y).unwrap_or_else(|| xs.len().min(ys.len()));
            let line = |lines: &[&str]| lines.get(at).map_or("the end", |line| line).to_string();
            out += &format!("\n  {name}: line {} is\n    {}\n  instead of\n    {}", at + 1, line(&ys), line(&xs));
        }
        Some(out)
    }
}

#[test]
fn differences_name_table_and_line() {
    let done = |tables: &[(&str, &str)], summary: &str| Ending::Done {
        fingerprint: Some(1),
        tables: tables.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect(),
        summary: summary.into(),
    };
    let first = done(&[("flows.csv", "a\n1\n2\n"), ("trace.csv", "t\n")], "x\ntrace_cut_s: 1");
    let other = done(&[("flows.csv", "a\n1\n3\n"), ("trace.csv", "t\n")], "x\ntrace_cut_s: 1");
    let text = other.difference(&first, false).expect("a difference");
    assert!(text.contains("flows.csv: line 3 is\n    3\n  instead of\n    2"), "{text}");
    // Tables of measurements, and their keys in the summary, are ignored where measurements differ.
    let unmeasured = done(&[("flows.csv", "a\n1\n2\n")], "x\ntrace_cut_s: null");
    assert_eq!(unmeasured.difference(&first, true), None);
    assert!(unmeasured.difference(&first, false).is_some());
}
