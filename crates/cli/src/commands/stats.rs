//! `stats`: paths of NCCL jobs on this machine, read from the statistics pages of the plugin.

use super::stats_prometheus;
use crate::{Failure, Format, Table, count, note, print, print_json};
use anabranch_lb::{StateColumn, registry::HostParameters};
use clap::Args;
use nccl_net_anabranch::{
    page,
    page::{FOLDER, Skipped, Slot, Snapshot, State},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

const REFRESH: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Refresh every second until interrupted; with --format json one object per line
    #[arg(long)]
    watch: bool,
    /// Change a parameter of the scheme in running processes, for example load_balancer.hopper.alpha=0.1
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "watch")]
    set: Vec<String>,
    /// Show the state of the scheme of a connection, numbered as in the table, for example 0.1
    #[arg(long, value_name = "DEVICE.NUMBER", conflicts_with_all = ["watch", "set"])]
    state: Option<String>,
    /// Restrict to these processes, by their PIDs
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    pid: Vec<u32>,
    /// With --set: change every process, where several run
    #[arg(long, requires = "set", conflicts_with = "pid")]
    all: bool,
    /// Directory of the statistics pages [default: ANABRANCH_STATS, else /dev/shm]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Write the readings to a text file of Prometheus, replaced as a whole; with --watch every second
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "state", "format"])]
    prometheus: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) type ProcessPage = (PathBuf, Snapshot);
/// Bytes of a path and time of the previous sample.
type PathSamples = BTreeMap<(PathBuf, u32, u32, u32), (u64, u64)>;

pub(crate) fn stats(arguments: &Stats) -> Result<(), Failure> {
    let variable = std::env::var_os("ANABRANCH_STATS").filter(|folder| !folder.is_empty() && folder != "off");
    let folder = arguments.folder.clone().or(variable.map(PathBuf::from)).unwrap_or_else(|| FOLDER.into());
    if !arguments.set.is_empty() {
        return set(arguments, &folder);
    }
    if let Some(connection) = &arguments.state {
        return show_state(arguments, connection, &folder);
    }
    let file = arguments.prometheus.as_deref().map(stats_prometheus::file).transpose()?;
    let mut before = PathSamples::new();
    let mut is_first = true;
    loop {
        let (seen, skipped) = read_pages(arguments, &folder)?;
        if std::mem::take(&mut is_first) {
            note_skipped(&skipped, &folder);
        }
        match (arguments.format, arguments.watch) {
            _ if file.is_some() => {
                file.iter().try_for_each(|file| file.write_all(stats_prometheus::text(&seen).as_bytes()))?;
            }
            (Format::Json, false) => print_json(&json(&seen, &skipped)),
            (Format::Json, true) => print(&format!("{}\n", json(&seen, &skipped))),
            (Format::Table, watch) => {
                let top = if watch && stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
                print(&format!("{top}{}", text(&seen, watch.then_some(&before), &folder)));
            }
        }
        if !arguments.watch {
            return Ok(());
        }
        before = seen
            .iter()
            .flat_map(|(path, page)| page.slots.iter().map(move |s| (slot_key(path, s), (s.bytes, page.written_at))))
            .collect();
        std::thread::sleep(REFRESH);
    }
}

fn slot_key(path: &Path, slot: &Slot) -> (PathBuf, u32, u32, u32) {
    (path.to_path_buf(), slot.device, slot.connection, slot.path)
}

fn read_pages(arguments: &Stats, folder: &Path) -> Result<(Vec<ProcessPage>, Vec<Skipped>), Failure> {
    let found = page::pages(folder).map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    let mut seen = Vec::new();
    for file in found.pages {
        match page::read(&file) {
            Ok(page) if arguments.pid.is_empty() || arguments.pid.contains(&page.pid) => seen.push((file, page)),
            Ok(_) => {}
            // The process may have ended meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => note(&format!("warning: {}: {error}", file.display())),
        }
    }
    match arguments.pid.iter().find(|pid| seen.iter().all(|(_, page)| page.pid != **pid)) {
        Some(pid) => {
            Err(Failure::input(format!("--pid: process {pid} has no statistics page in {}", folder.display())))
        }
        None => Ok((seen, found.skipped)),
    }
}

/// Prints, once, the files that are not read.
fn note_skipped(skipped: &[Skipped], folder: &Path) {
    if let [first, rest @ ..] = skipped {
        let name = first.path.file_name().unwrap_or_default().display();
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        note(&format!("not read in {}: {name} ({}){more}", folder.display(), first.reason));
    }
}

fn set(arguments: &Stats, folder: &Path) -> Result<(), Failure> {
    let (settings, (seen, skipped)) = (arguments.set.join(";"), read_pages(arguments, folder)?);
    note_skipped(&skipped, folder);
    if seen.is_empty() {
        return Err(Failure::input(format!("--set: no process has a statistics page in {}", folder.display())));
    }
    if let ([_, _, ..], true) = (&seen[..], arguments.pid.is_empty() && !arguments.all) {
        let one = |(_, page): &ProcessPage| {
            let mut peers: Vec<String> = page.slots.iter().map(|slot| slot.peer().to_string()).collect();
            peers.dedup();
            let more = if peers.len() > 1 { format!(" and {} more", peers.len() - 1) } else { String::new() };
            let to = peers.first().map_or_else(|| ", no connections".into(), |to| format!(", to {to}{more}"));
            format!("\n  {}: scheme {}{to}", page.pid, page.scheme)
        };
        return Err(Failure::input(format!(
            "--set: {} processes have a statistics page in {}; expected --pid with those to change, or --all:{}",
            seen.len(),
            folder.display(),
            seen.iter().map(one).collect::<String>()
        )));
    }
    let mut answers = Vec::new();
    for (file, page) in &seen {
        let response = page::request(file, &settings, REQUEST_TIMEOUT)
            .map_err(|error| Failure::input(format!("--set: process {}: {error}", page.pid)))?;
        answers.push(json!({ "pid": page.pid, "file": file, "answer": response }));
    }
    match arguments.format {
        Format::Json => print_json(&json!({ "set": answers })),
        Format::Table => print(&format!("{} processes applied {settings}\n", answers.len())),
    }
    Ok(())
}

fn show_state(arguments: &Stats, connection: &str, folder: &Path) -> Result<(), Failure> {
    let (seen, skipped) = read_pages(arguments, folder)?;
    note_skipped(&skipped, folder);
    let [(file, page)] = &seen[..] else {
        return Err(Failure::input(format!(
            "--state: {} processes have a statistics page in {}; expected one: give its --pid",
            seen.len(),
            folder.display()
        )));
    };
    let response = page::request(file, &format!("state {connection}"), REQUEST_TIMEOUT)
        .map_err(|error| Failure::input(format!("--state: process {}: {error}", page.pid)))?;
    let columns = HostParameters::named(&page.scheme).map_or(&[][..], |scheme| scheme.state());
    let value = |name: &str| response.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    match arguments.format {
        Format::Json => {
            let one = |of: &StateColumn| json!({ "name": of.name, "value": value(of.name), "unit": of.unit, "meaning": of.meaning });
            let columns = columns.iter().map(one).collect::<Vec<_>>();
            print_json(&json!({ "pid": page.pid, "connection": connection, "scheme": page.scheme, "state": columns }));
        }
        Format::Table if columns.is_empty() => {
            print(&format!("the scheme {} keeps no state between packets\n", page.scheme))
        }
        Format::Table => {
            let row = |of: &StateColumn| {
                let value = value(of.name).map_or("-".into(), |value| value.to_string());
                [of.name, &value, of.unit, of.meaning].map(String::from).to_vec()
            };
            let rows = columns.iter().map(row).collect();
            print(&Table::new(&["column", "value", "unit", "meaning"], rows).hide_first(&["meaning"]).draw());
        }
    }
    Ok(())
}

pub(super) fn state(slot: &Slot) -> &'static str {
    match slot.state {
        state if state == State::Open as u32 => "open",
        state if state == State::Silent as u32 => "silent",
        state if state == State::Fragmented as u32 => "fragmented",
        _ => "failed",
    }
}

fn json(seen: &[ProcessPage], skipped: &[Skipped]) -> Value {
    let path = |slot: &Slot| {
        json!({
            "connection": slot.connection,
            "device": slot.device,
            "peer": slot.peer().to_string(),
            "path": slot.path,
            "state": state(slot),
            "bytes": slot.bytes,
            "packets": slot.packets,
            "retransmitted": slot.retransmitted,
            "answers": slot.answers,
            "marks": slot.marks,
            "losses": slot.losses,
            "moves": slot.moves,
            "rtt_least_ns": slot.rtt_min,
            "rtt_mean_ns": slot.rtt_mean,
            "rtt_p99_ns": slot.rtt_p99,
            "window_bytes": slot.window,
            "used_at_ns": slot.used_at,
        })
    };
    let one = |(file, page): &ProcessPage| {
        json!({
            "pid": page.pid,
            "file": file,
            "scheme": page.scheme,
            "written_at_ns": page.written_at,
            "connections_without_room": page.unlisted,
            "paths": page.slots.iter().map(path).collect::<Vec<_>>(),
        })
    };
    let left = |of: &Skipped| json!({ "file": of.path, "reason": of.reason });
    json!({
        "processes": seen.iter().map(one).collect::<Vec<_>>(),
        "skipped": skipped.iter().map(left).collect::<Vec<_>>(),
    })
}

/// Formats the paths that carried packets; with a rate where `before` has a sample.
fn text(seen: &[ProcessPage], before: Option<&PathSamples>, folder: &Path) -> String {
    if seen.is_empty() {
        return format!("no process on this machine has a statistics page in {}\n", folder.display());
    }
    let mut parts = Vec::new();
    for (file, page) in seen {
        let mut header = vec![
            "connection",
            "to",
            "path",
            "state",
            "MB",
            "RTT min",
            "mean",
            "p99 (us)",
            "marks",
            "lost",
            "moves",
            "window (kB)",
        ];
        if before.is_some() {
            header.insert(5, "Mbit/s");
        }
        let us = |ns: u64| if ns == 0 { "-".into() } else { format!("{:.0}", ns as f64 / 1e3) };
        let row = |slot: &Slot| {
            let mut row = vec![
                format!("{}.{}", slot.device, slot.connection),
                slot.peer().to_string(),
                slot.path.to_string(),
                state(slot).into(),
                format!("{:.1}", slot.bytes as f64 / 1e6),
                us(slot.rtt_min),
                us(slot.rtt_mean),
                us(slot.rtt_p99),
                count(slot.marks),
                count(slot.losses),
                count(slot.moves),
                if slot.window == 0 { "-".into() } else { format!("{:.0}", slot.window as f64 / 1e3) },
            ];
            if let Some(before) = before {
                let rate = before.get(&slot_key(file, slot)).and_then(|&(bytes, at)| {
                    let took = page.written_at.checked_sub(at).filter(|took| *took > 0)?;
                    Some(format!("{:.0}", slot.bytes.saturating_sub(bytes) as f64 * 8e3 / took as f64))
                });
                row.insert(5, rate.unwrap_or_else(|| "-".into()));
            }
            row
        };
        let rows: Vec<_> = page.slots.iter().filter(|slot| slot.packets > 0).map(row).collect();
        let mut lines = format!("process {}, scheme {}", page.pid, page.scheme);
        if page.unlisted > 0 {
            lines += &format!(", {} connections do not fit the page", page.unlisted);
        }
        lines += "\n";
        if rows.is_empty() {
            lines += "no packets sent yet\n";
        } else {
            lines += &Table::new(&header, rows).hide_first(&["window (kB)", "RTT min", "state"]).draw();
        }
        parts.push(lines);
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_since_previous_sample() {
        let mut slot = Slot { state: 1, packets: 9, bytes: 3_000_000, rtt_mean: 25_400, ..Slot::default() };
        slot.set_peer("10.1.2.3:7000".parse().expect("an address"));
        let page =
            Snapshot { pid: 7, scheme: "hopper".into(), written_at: 2_000_000_000, unlisted: 0, slots: vec![slot] };
        let file = PathBuf::from("page");
        // A megabyte more than a second ago: 8 Mbit/s.
        let before = PathSamples::from([(slot_key(&file, &slot), (2_000_000, 1_000_000_000))]);
        let said = text(&[(file, page)], Some(&before), Path::new("/dev/shm"));
        anabranch_testkit::assert_contains(&said, &["process 7, scheme hopper", "10.1.2.3:7000", "3.0", " 8 ", " 25 "]);
    }
}
