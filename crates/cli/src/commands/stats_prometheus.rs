//! The readings of `stats` as a text file of Prometheus, for the textfile collector of its node exporter.

use super::stats::{ProcessPage, state};
use crate::Failure;
use anabranch_results::{Inputs, OutputFile};
use nccl_net_anabranch::page::Slot;
use std::{fmt::Write, fs::File, io::Read, path::Path};

/// Start of every file that this writes.
const MARK: &str = "# HELP anabranch_page_";

/// A reading of a path.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    /// `None`: there is none yet.
    value: fn(&Slot) -> Option<String>,
}

/// Nanoseconds as seconds, without a loss of digits.
fn seconds(nanoseconds: u64) -> Option<String> {
    (nanoseconds > 0).then(|| format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000))
}

fn whole(number: u64) -> Option<String> {
    Some(number.to_string())
}

macro_rules! metrics {
    ($($name:literal $kind:literal $help:literal $value:expr;)*) => {
        &[$(Metric { name: concat!("anabranch_path_", $name), help: $help, kind: $kind, value: $value }),*]
    };
}

const METRICS: &[Metric] = metrics! {
    "sent_bytes_total" "counter" "Bytes of data packets sent, with headers of Anabranch." |of| whole(of.bytes);
    "sent_packets_total" "counter" "Data packets sent, with retransmissions." |of| whole(of.packets);
    "retransmitted_packets_total" "counter" "Retransmissions." |of| whole(of.retransmitted);
    "acks_total" "counter" "Acknowledgements received." |of| whole(of.answers);
    "marked_acks_total" "counter" "Acknowledgements of packets with ECN marks." |of| whole(of.marks);
    "lost_packets_total" "counter" "Packets declared lost." |of| whole(of.losses);
    "moves_total" "counter" "Moves from another path to this one." |of| whole(of.moves);
    "rtt_min_seconds" "gauge" "Least round-trip time." |of| seconds(of.rtt_min);
    "rtt_mean_seconds" "gauge" "Mean round-trip time of the last 100 to 200 ms." |of| seconds(of.rtt_mean);
    "rtt_p99_seconds" "gauge" "99th percentile of the same round-trip times." |of| seconds(of.rtt_p99);
    "window_bytes" "gauge" "Window of the connection, the same on all its paths." |of| (of.window > 0).then(|| of.window.to_string());
    "last_sent_timestamp_seconds" "gauge" "Time of the last packet." |of| seconds(of.used_at);
    "up" "gauge" "1 while the connection is open and the path replies." |of| whole(u64::from(["open", "fragmented"].contains(&state(of))));
};

/// Checks that `path` is new, or a file of an earlier call.
pub(super) fn file(path: &Path) -> Result<OutputFile, Failure> {
    let mut begin = String::new();
    let is_there = File::open(path).map(|file| file.take(MARK.len() as u64).read_to_string(&mut begin)).is_ok();
    if is_there && begin != MARK {
        let expected = "expected a new file, or one that this command wrote";
        return Err(Failure::input(format!("--prometheus: {} exists, {expected}", path.display())));
    }
    Ok(OutputFile::new(path, true, &Inputs::of([]))?)
}

pub(super) fn text(seen: &[ProcessPage]) -> String {
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        let written = writeln!(text, "{line}");
        debug_assert!(written.is_ok(), "writing to a string");
    };
    let head = |name: &str, help: &str, kind: &str| format!("# HELP {name} {help}\n# TYPE {name} {kind}");
    let name = "anabranch_page_written_timestamp_seconds";
    line(format_args!("{}", head(name, "Time at which a process wrote its readings.", "gauge")));
    for (_, page) in seen {
        let at = seconds(page.written_at).unwrap_or_else(|| "0".into());
        line(format_args!("{name}{{pid=\"{}\",scheme=\"{}\"}} {at}", page.pid, escaped(&page.scheme)));
    }
    let name = "anabranch_page_unlisted_connections";
    line(format_args!("{}", head(name, "Open connections whose paths have no room among the readings.", "gauge")));
    for (_, page) in seen {
        line(format_args!("{name}{{pid=\"{}\"}} {}", page.pid, page.unlisted));
    }
    for Metric { name, help, kind, value } in METRICS {
        line(format_args!("{}", head(name, help, kind)));
        for (_, page) in seen {
            for (slot, value) in page.slots.iter().filter_map(|slot| Some((slot, value(slot)?))) {
                let Slot { device, connection, path, .. } = slot;
                let labels = format!(
                    "pid=\"{}\",device=\"{device}\",connection=\"{connection}\",peer=\"{}\",path=\"{path}\"",
                    page.pid,
                    slot.peer()
                );
                line(format_args!("{name}{{{labels}}} {value}"));
            }
        }
    }
    text
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nccl_net_anabranch::page::{Snapshot, State};
    use std::{collections::BTreeMap, path::PathBuf};

    type Labels = BTreeMap<String, String>;

    /// Reads a line `name{label="value",...} number` by the text format's rules.
    fn sample(line: &str) -> Option<(String, Labels, f64)> {
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (name, mut rest) = line.split_once('{')?;
        let mut labels = Labels::new();
        while !rest.starts_with('}') {
            let (label, after) = rest.trim_start_matches(',').split_once("=\"")?;
            let mut characters = after.char_indices();
            let mut value = String::new();
            let end = loop {
                match characters.next()? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match characters.next()?.1 {
                        'n' => '\n',
                        other => other,
                    }),
                    (_, other) => value.push(other),
                }
            };
            (is_name(label) && labels.insert(label.into(), value).is_none()).then_some(())?;
            rest = &after[end + 1..];
        }
        let number = rest.strip_prefix("} ")?.parse().ok()?;
        is_name(name).then_some((name.into(), labels, number))
    }

    #[test]
    fn prometheus_reads_every_line() {
        let slot = |path: u32, packets: u64| {
            let mut slot = Slot { state: State::Open as u32, path, connection: 3, packets, ..Slot::default() };
            slot.set_peer("[2001:db8::1]:7000".parse().expect("an address"));
            slot
        };
        // 25.4 us; an odd time of 2026; the second path has sent nothing.
        let first = Slot { rtt_mean: 25_400, used_at: 1_790_000_000_000_000_007, window: 9_000_000, ..slot(0, 9) };
        let silent = Slot { state: State::Silent as u32, ..slot(1, 0) };
        let page = Snapshot {
            pid: 7,
            scheme: "a\"b\\c\nd".into(),
            written_at: 1_500_000_000,
            unlisted: 0,
            slots: vec![first, silent],
        };
        let text = text(&[(PathBuf::from("page"), page)]);
        assert!(text.starts_with(MARK) && text.ends_with('\n'));
        let (mut types, mut samples) = (BTreeMap::new(), Vec::new());
        let mut names: Vec<String> = Vec::new();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let words: Vec<&str> = comment.splitn(3, ' ').collect();
                names.push(words[1].into());
                if words[0] == "TYPE" {
                    types.insert(words[1].to_string(), words[2].to_string());
                }
                continue;
            }
            let (name, labels, value) = sample(line).unwrap_or_else(|| panic!("not a sample: {line}"));
            assert!(types.contains_key(&name), "its TYPE is before it: {line}");
            names.push(name.clone());
            samples.push((name, labels, value));
        }
        names.dedup();
        assert_eq!(names.len(), types.len(), "the lines of a metric are one group: {names:?}");
        for (name, kind) in &types {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} {kind}");
            assert!(name.starts_with("anabranch_") && ["gauge", "counter"].contains(&kind.as_str()), "{name} {kind}");
        }
        let of = |name: &str| {
            samples.iter().filter(|of| of.0 == name).map(|of| (of.1["path"].as_str(), of.2)).collect::<Vec<_>>()
        };
        assert_eq!(of("anabranch_path_sent_packets_total"), [("0", 9.0), ("1", 0.0)]);
        assert_eq!(of("anabranch_path_rtt_mean_seconds"), [("0", 0.000_025_4)], "none of the other path");
        assert_eq!(of("anabranch_path_up"), [("0", 1.0), ("1", 0.0)]);
        assert!(text.contains("timestamp_seconds{pid=\"7\",device=\"0\",connection=\"3\",peer=\"[2001:db8::1]:7000\",path=\"0\"} 1790000000.000000007"));
        let written = samples.iter().find(|of| of.0 == "anabranch_page_written_timestamp_seconds").expect("it");
        assert_eq!((written.1["scheme"].as_str(), written.2), ("a\"b\\c\nd", 1.5));
    }
}
