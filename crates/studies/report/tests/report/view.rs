//! `view.html`: the data in the page equal the rows, and missing data are reported.

use crate::{
    common,
    common::{CSV, SCHEMES, fault, link, meta, result, run},
};
use anabranch_lb::registry::HostParameters;
use anabranch_outcome::{
    GpuRow, GroupRow, JobFlowRow, JobRows, LinkRow, PacketKind, PortSample, PortSeries, RankRow, RunRows, TraceEvent,
    TraceRow,
};
use anabranch_report::{report, viewed_runs, write_view, write_view_into};
use anabranch_results::{Formats, Inputs, LinkFault, Manifest, OutputFile, ReportError};
use anabranch_testkit::{Folder, assert_contains, folder};
use anabranch_units::Time;
use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

#[derive(Debug)]
enum Column {
    Text(Vec<String>),
    Whole(Vec<u64>),
    Real(Vec<f64>),
}

/// Decodes as documented in `pack.rs`.
fn blocks(page: &str) -> Vec<(Value, BTreeMap<String, Column>)> {
    let mark = "<script type=\"text/plain\" data-run=";
    page.split(mark).skip(1).map(|rest| block(rest.split_once('>').unwrap().1.split_once('<').unwrap().0)).collect()
}

fn block(text: &str) -> (Value, BTreeMap<String, Column>) {
    let mut bytes = vec![];
    ZlibDecoder::new(&*BASE64_STANDARD.decode(text).unwrap()).read_to_end(&mut bytes).unwrap();
    let (length, rest) = bytes.split_at(4);
    let (head, mut rest) = rest.split_at(u32::from_le_bytes(length.try_into().unwrap()) as usize);
    let head: Value = serde_json::from_slice(head).unwrap();
    let mut columns = BTreeMap::new();
    for column in head["columns"].as_array().unwrap() {
        let (part, after) = rest.split_at(column["bytes"].as_u64().unwrap() as usize);
        rest = after;
        let cells = match column["kind"].as_str().unwrap() {
            "text" => Column::Text(std::str::from_utf8(part).unwrap().split('\n').map(str::to_string).collect()),
            "whole" => Column::Whole(leb128(part)),
            "steps" => Column::Whole(steps(&leb128(part), column["period"].as_u64().unwrap() as usize)),
            "real" => Column::Real(part.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()),
            "near" => Column::Real(part.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()).into()).collect()),
            other => panic!("{other}"),
        };
        let rows = match &cells {
            Column::Text(cells) => cells.len(),
            Column::Whole(cells) => cells.len(),
            Column::Real(cells) => cells.len(),
        };
        assert_eq!(rows as u64, column["rows"].as_u64().unwrap(), "{column}");
        columns.insert(column["name"].as_str().unwrap().to_string(), cells);
    }
    assert!(rest.is_empty());
    (head, columns)
}

/// The only run on the page of the run in `dir`.
fn shown(dir: &Path) -> (Value, BTreeMap<String, Column>) {
    let page = fs::read_to_string(write_view_into(dir, &[dir.to_path_buf()]).unwrap()).unwrap();
    let [block] = <[_; 1]>::try_from(blocks(&page)).unwrap();
    block
}

fn leb128(mut part: &[u8]) -> Vec<u64> {
    let mut values = vec![];
    while !part.is_empty() {
        let length = part.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        values.push(part[..length].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)));
        part = &part[length..];
    }
    values
}

fn steps(values: &[u64], period: usize) -> Vec<u64> {
    let mut cells = vec![];
    for stretch in values.chunks(period) {
        let mut before = 0i64;
        for value in stretch {
            before += (value >> 1) as i64 ^ -((value & 1) as i64);
            cells.push(before as u64);
        }
    }
    cells
}

impl Column {
    fn whole(&self) -> &[u64] {
        if let Column::Whole(cells) = self { cells } else { panic!("{self:?}") }
    }
    fn real(&self) -> &[f64] {
        if let Column::Real(cells) = self { cells } else { panic!("{self:?}") }
    }
    fn text(&self) -> &[String] {
        if let Column::Text(cells) = self { cells } else { panic!("{self:?}") }
    }
}

/// Two leaves with two hosts each, a spine with two parallel cables to each leaf, series of some links.
fn small() -> RunRows {
    let mut result = result(vec![common::flow(0, 1000, Time::ZERO, 1.5), common::flow(1, 3000, Time::from_us(2), 4.0)]);
    let name = |kind: &str, number: usize| format!("{kind}{number}");
    for host in 0..4 {
        let (h, l) = (name("host", host), name("leaf", host / 2));
        result.links.push(link(h.clone(), l.clone(), "host", "up", 0.25 * host as f64, 100.0));
        result.links.push(link(l, h, "host", "down", 0.5, 3000.0));
    }
    for cable in 0..4 {
        let (l, s) = (name("leaf", cable / 2), "spine0".to_string());
        let parallel = cable as u16 % 2;
        let up = link(l.clone(), s.clone(), "tier0-1", "up", 0.1 * cable as f64, 10.0);
        result.links.push(LinkRow { parallel, ..up });
        result.links.push(LinkRow { parallel, ..link(s, l, "tier0-1", "down", 0.2, 1e7) });
    }
    // Series of both uplink cables of leaf 1; queues grow and shrink by more than a byte can represent.
    let samples = |by: u64| {
        let sample = move |i: u64| PortSample {
            time: Time::from_us(i),
            queue_bytes: (i * 7919 * by) % 1_000_000,
            queue_packets: i % 3,
            sent_bytes: i * i * 500_000 * by,
            ..PortSample::default()
        };
        (0..50).map(sample).collect()
    };
    for by in [1, 3] {
        let (from, to) = ("leaf1".to_string(), "spine0".to_string());
        result.series.push(PortSeries { from, to, samples: samples(by) });
    }
    result
}

fn written(result: &RunRows, formats: Formats) -> Folder {
    let dir = folder();
    let mut meta = meta("prime", 1);
    let faults = [(20, LinkFault::DOWN), (35, "up")];
    meta.faults = faults.map(|(at, what)| fault("leaf0", "spine0", Time::from_us(at), what)).to_vec();
    common::write_run(&dir, result, &meta, formats);
    dir
}

/// Group 0 of a job has hosts 0 and 1 and flow 1, group 1 host 2 and no flow; server 3 has the NICs host1 and host2.
#[test]
fn groups_and_servers_are_on_the_page() {
    let mut result = small();
    let group =
        |group, completion| GroupRow { group, completion, start: Some(Time::from_us(1)), ..GroupRow::default() };
    let rank = |group, host| RankRow { group, host, ..RankRow::default() };
    result.jobs = JobRows {
        groups: vec![group(0, Some(Time::from_us(4))), group(1, None)],
        ranks: vec![rank(0, 0), rank(0, 1), rank(1, 2)],
        steps: vec![],
        flows: vec![JobFlowRow { flow_id: 1, ..JobFlowRow::default() }],
        unlisted: vec![],
    };
    let gpu = |gpu, host| GpuRow { gpu, host, server: 3, ..GpuRow::default() };
    result.gpus = vec![gpu(24, 1), gpu(25, 2)];
    for formats in [Formats::PARQUET, CSV] {
        let dir = written(&result, formats);
        let (head, columns) = shown(&dir);
        assert_eq!(head["jobs"], serde_json::json!({ "groups": 2, "flows": true }));
        assert_eq!(head["servers"], true);
        let names = columns["node.name"].text();
        let named = |column: &str| -> Vec<&str> {
            columns[column].whole().iter().map(|node| names[*node as usize].as_str()).collect()
        };
        assert_eq!(columns["job.group"].whole(), [0, 1]);
        let completion = columns["job.completion_ps"].real();
        assert!(completion[0] == 4e6 && completion[1].is_nan(), "{completion:?}");
        assert_eq!(columns["rank.job"].whole(), [0, 0, 1]);
        assert_eq!(named("rank.node"), ["host0", "host1", "host2"]);
        // Flow 1 goes from host1 to host2 from 2 us on.
        assert_eq!((named("job_flow.from"), named("job_flow.to")), (vec!["host1"], vec!["host2"]));
        assert_eq!((columns["job_flow.job"].whole(), columns["job_flow.start_ps"].real()), (&[0][..], &[2e6][..]));
        assert_eq!((columns["gpu.number"].whole(), columns["gpu.server"].whole()), (&[24, 25][..], &[3, 3][..]));
        assert_eq!(named("gpu.node"), ["host1", "host2"]);
    }
}

#[test]
fn page_data_equals_rows() {
    let result = small();
    for formats in [Formats::PARQUET, CSV] {
        let dir = written(&result, formats);
        let (head, columns) = shown(&dir);
        let names = columns["node.name"].text();
        let end = |column: &str, row: usize| names[columns[column].whole()[row] as usize].clone();
        for (row, link) in result.links.iter().enumerate() {
            assert_eq!((end("link.from", row), end("link.to", row)), (link.from.clone(), link.to.clone()));
            let class = columns["link.class"].whole()[row] as usize;
            assert_eq!(head["classes"][class], link.tier);
            assert_eq!(columns["link.direction"].text()[row], link.direction);
            let queue = &link.queue;
            for (column, value) in [
                ("rate_bps", link.rate_bps),
                ("bytes", link.bytes),
                ("packets", link.packets),
                ("queue_p99_bytes", queue.p99_bytes.unwrap()),
                ("queue_max_bytes", queue.max_bytes.unwrap()),
                ("ecn_marks", link.ecn_marks.unwrap()),
                ("trims", link.trims.unwrap()),
                ("drops", link.drops.unwrap()),
                ("pauses", link.pauses.unwrap()),
            ] {
                assert_eq!(columns[&format!("link.{column}")].whole()[row], value, "{column} of link {row}");
            }
            assert_eq!(columns["link.utilisation"].real()[row], link.utilisation);
            assert_eq!(columns["link.queue_mean_bytes"].real()[row], queue.mean_bytes.unwrap());
            assert!(columns["link.window_utilisation"].real()[row].is_nan(), "no window was kept");
        }
        // The second cable of leaf 1 is the 15th link, after 8 links of hosts and 6 between switches.
        assert_eq!(columns["series.link"].whole(), [12, 14]);
        assert_eq!(columns["link.parallel"].whole()[12..], [0, 0, 1, 1]);
        assert_eq!(head["series"]["interval_ps"], 1_000_000);
        assert_eq!(head["series"]["samples"], 50);
        let cells = |value: fn(&PortSample) -> u64| -> Vec<u64> {
            result.series.iter().flat_map(|series| series.samples.iter().map(value)).collect()
        };
        assert_eq!(columns["series.queue_bytes"].whole(), cells(|sample| sample.queue_bytes));
        assert_eq!(columns["series.queue_packets"].whole(), cells(|sample| sample.queue_packets));
        assert_eq!(columns["series.sent_bytes"].whole(), cells(|sample| sample.sent_bytes));
        // The fault is of the first of two parallel cables alone.
        assert_eq!(head["faults"][0]["at_ps"], 20_000_000);
        assert_eq!(head["faults"][0]["what"], "down");
        assert_eq!(head["faults"][0]["links"], serde_json::json!([8]));
        assert_eq!(head["faults"][1]["what"], "up");
        // Flows 0 and 1 go from hosts 0 and 1 to hosts 1 and 2.
        let of = |name: &str| names.iter().position(|other| other == name).unwrap();
        assert_eq!(columns["node.bytes_sent"].whole()[of("host1")], 3000);
        assert_eq!(columns["node.bytes_received"].whole()[of("host1")], 1000);
        assert_eq!(columns["node.flows_received"].whole()[of("host2")], 1);
        assert_eq!(columns["node.slowdown_max"].real()[of("host0")], 1.5);
        assert_eq!((&head["hosts"], &head["switches"], &head["links"]), (&4.into(), &3.into(), &16.into()));
    }
}

#[test]
fn page_is_complete_and_linked_from_report() {
    let dir = written(&run(&SCHEMES[0], 1, 50, false), Formats::BOTH);
    let linked = |dir: &Path| fs::read_to_string(dir.join("report.html")).unwrap().contains("<a href=\"view.html\">");
    report(&dir).unwrap();
    assert!(!linked(&dir));
    let page = fs::read_to_string(write_view_into(&dir, &[dir.to_path_buf()]).unwrap()).unwrap();
    assert!(linked(&dir));
    report(&dir).unwrap();
    assert!(linked(&dir), "written again, the report links to the view that is there");
    let named = Manifest::read(&dir).unwrap().unwrap();
    assert_eq!(named.files.iter().filter(|file| file.name == "view.html").count(), 1);
    assert!(page.contains("https://d3js.org v7.9.2"), "the library is in the page");
    for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(outside), "the page reaches out: {outside}");
    }
    let (head, columns) = blocks(&page).remove(0);
    assert!(head.get("series").is_none() && !columns.contains_key("series.link"), "no series were recorded");
    assert!(page.contains("[measure]<br>series_links"), "and the page says how to record them");
    common::write_run(&dir, &small(), &meta("ecmp", 2), Formats::BOTH);
    assert!(!dir.join("view.html").exists());
}

#[test]
fn nodes_are_spaced_and_tiers_stacked() {
    let dir = written(&run(&SCHEMES[0], 1, 5, false), Formats::PARQUET);
    let (_, columns) = shown(&dir);
    let (x, y, height) = (columns["node.x"].real(), columns["node.y"].real(), columns["node.height"].whole());
    for a in 0..x.len() {
        for b in 0..a {
            assert!((x[a] - x[b]).hypot(y[a] - y[b]) > 1.0, "nodes {a} and {b} cover each other");
            // A higher node has a smaller y.
            assert!(height[a] <= height[b] || y[a] < y[b], "node {a} is not above {b}");
        }
    }
}

#[test]
fn groups_are_placed_on_a_circle() {
    // Three groups of two switches with a host each, named as in Dragonfly and Slim Fly.
    let mut result = result(vec![]);
    for group in 0..3 {
        for number in 0..2 {
            let (s, h) = (format!("sw{group}.{number}"), format!("host{}", group * 2 + number));
            result.links.push(link(h.clone(), s.clone(), "host", "up", 0.5, 0.0));
            result.links.push(link(s, h, "host", "down", 0.5, 0.0));
        }
        result.links.push(link(format!("sw{group}.0"), format!("sw{group}.1"), "local", "flat", 0.5, 0.0));
        result.links.push(link(format!("sw{group}.1"), format!("sw{}.0", (group + 1) % 3), "global", "flat", 0.5, 0.0));
    }
    let dir = written(&result, Formats::PARQUET);
    let (head, columns) = shown(&dir);
    assert_eq!(head["grouped"], true);
    let (x, y, group) = (columns["node.x"].real(), columns["node.y"].real(), columns["node.group"].whole());
    let names = columns["node.name"].text();
    let centre = |of: u64| {
        let switches: Vec<usize> = (0..x.len()).filter(|&n| group[n] == of && names[n].starts_with("sw")).collect();
        let mean = |of: &[f64]| switches.iter().map(|&n| of[n]).sum::<f64>() / switches.len() as f64;
        assert_eq!(switches.len(), 2);
        (mean(x), mean(y))
    };
    let centres = [1, 2, 3].map(centre);
    let radii = centres.map(|(x, y)| x.hypot(y));
    assert!(radii.iter().all(|radius| (radius - radii[0]).abs() < 1e-2), "{radii:?}");
    let apart = (centres[0].0 - centres[1].0).hypot(centres[0].1 - centres[1].1);
    for node in 0..x.len() {
        let (cx, cy) = centres[group[node] as usize - 1];
        assert!((x[node] - cx).hypot(y[node] - cy) < apart / 2.0, "{} stands outside its group", names[node]);
    }
}

#[test]
fn runs_of_a_comparison_are_chosen_by_name_and_seed() {
    let dir = folder();
    let runs = [("ecmp", 1), ("ecmp", 2), ("prime", 2), ("prime", 3)];
    common::write_compared(&dir, runs.map(|(scheme, seed)| (small(), meta(scheme, seed))), "ecmp");
    let one = |scheme: &str| [scheme.to_string()];
    let runs = viewed_runs(&dir, &[], None, 2).unwrap();
    assert_eq!(runs, [crate::common::place(&dir, "ecmp", 2), common::place(&dir, "prime", 2)], "the seed both have");
    assert_eq!(viewed_runs(&dir, &one("prime"), Some(3), 2).unwrap(), [crate::common::place(&dir, "prime", 3)]);
    let page = fs::read_to_string(write_view_into(&dir, &runs).unwrap()).unwrap();
    let schemes: Vec<Value> = blocks(&page).into_iter().map(|(head, _)| head["scheme"].clone()).collect();
    assert_eq!(schemes, ["ecmp", "prime"]);
    let message = |result: Result<Vec<PathBuf>, ReportError>| result.map_err(|error| error.to_string()).unwrap_err();
    assert!(message(viewed_runs(&dir, &one("hopper"), None, 2)).contains("it compares ecmp, prime"));
    assert!(message(viewed_runs(&dir, &one("prime"), Some(1), 2)).contains("its seeds are 2, 3"));
    let single = crate::common::place(&dir, "ecmp", 1);
    assert_eq!(viewed_runs(&single, &one("ecmp"), Some(1), 2).unwrap(), std::slice::from_ref(&single));
    assert!(message(viewed_runs(&single, &one("prime"), None, 2)).contains("a single run, of `ecmp` with seed 1"));
    assert!(message(viewed_runs(&single, &one("ecmp"), Some(2), 2)).contains("a single run, of `ecmp` with seed 1"));
    assert!(message(viewed_runs(&folder(), &[], None, 2)).contains("has no results"));
}

#[test]
fn invalid_views_are_refused_and_write_nothing() {
    let refused = |dir: &Path, words: &[&str]| {
        let error = write_view_into(dir, &[dir.to_path_buf()]).unwrap_err().to_string();
        assert_contains(&error, words);
        assert!(!dir.join("view.html").exists(), "{error}");
    };
    let whole = written(&small(), Formats::BOTH);
    let damage = |change: &dyn Fn(&Path)| {
        let dir = folder();
        for file in fs::read_dir(&whole).unwrap().map(|file| file.unwrap().path()) {
            fs::copy(&file, dir.join(file.file_name().unwrap())).unwrap();
        }
        change(&dir);
        dir
    };
    let without = |dir: &Path, names: &[&str]| names.iter().for_each(|name| fs::remove_file(dir.join(name)).unwrap());
    let replace = |dir: &Path, file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        assert!(text.contains(from));
        fs::write(dir.join(file), text.replace(from, to)).unwrap();
    };
    let cut = damage(&|dir| {
        let bytes = fs::read(dir.join("series.parquet")).unwrap();
        fs::write(dir.join("series.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    });
    refused(&cut, &["series.parquet", "repeat the run"]);
    let gone = damage(&|dir| without(dir, &["links.csv", "links.parquet"]));
    refused(&gone, &["no rows of `links`"]);
    let older = damage(&|dir| {
        without(dir, &["links.parquet"]);
        replace(dir, "links.csv", "from,to,parallel,tier,", "from,to,parallel,layer,");
    });
    refused(&older, &["no column `tier`"]);
    let newer = damage(&|dir| {
        without(dir, &["links.parquet"]);
        replace(dir, "links.csv", "tier0-1", "torus");
    });
    refused(&newer, &["`torus`", "this version does not know"]);
    let foreign = damage(&|dir| {
        without(dir, &["series.parquet"]);
        replace(dir, "series.csv", "leaf1,spine0", "leaf7,spine0");
    });
    refused(&foreign, &["leaf7->spine0", "`links` does not name"]);
    let uneven = damage(&|dir| {
        without(dir, &["series.parquet"]);
        replace(dir, "series.csv", "leaf1,spine0,9000000,", "leaf1,spine0,9000001,");
    });
    refused(&uneven, &["not all sampled at the same, even times"]);
    let file = |path: &Path, replace| OutputFile::new(path, replace, &Inputs::default());
    let other = whole.join("notes.html");
    fs::write(&other, "mine").unwrap();
    let error = file(&other, false).unwrap_err().to_string();
    assert!(error.contains("this file exists"), "{error}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    write_view(&[whole.to_path_buf()], &file(&other, true).unwrap()).unwrap();
    assert!(fs::read_to_string(&other).unwrap().contains("Anabranch"));
}

/// Packets of flow 0, from host 0 over both leaves to host 2: marked, trimmed, lost and retransmitted, dropped.
fn traced() -> RunRows {
    let mut result = small();
    let number =
        |from: &str, to: &str| result.links.iter().position(|link| link.from == from && link.to == to).unwrap() as u32;
    let route = [("host0", "leaf0"), ("leaf0", "spine0"), ("spine0", "leaf1"), ("leaf1", "host2")];
    let route = route.map(|(from, to)| number(from, to));
    let row = |time, psn, packet, event, hop: usize, joined: Option<u64>| TraceRow {
        time: Time::from_ns(time),
        psn: Some(psn),
        packet,
        event,
        link: route[hop],
        tag: 7,
        joined: joined.map(Time::from_ns),
        size_bytes: 1000,
        retransmission: psn == 2 && time >= 5000,
        ..TraceRow::default()
    };
    use PacketKind::{Ack, Data, Header};
    use TraceEvent::{Drop, Hop, Loss, Mark, PathChange, Receive, Send, Trim};
    let mut rows = vec![
        row(100, 0, Data, PathChange, 0, None),
        row(100, 0, Data, Send, 0, None),
        row(300, 0, Data, Mark, 1, Some(200)),
        row(300, 0, Data, Hop, 1, Some(200)),
        row(400, 0, Data, Hop, 2, Some(400)),
        row(600, 0, Data, Hop, 3, Some(500)),
        row(700, 0, Data, Receive, 3, None),
        row(120, 1, Data, Send, 0, None),
        row(320, 1, Data, Hop, 1, Some(220)),
        row(420, 1, Data, Trim, 2, None),
        row(421, 1, Header, Hop, 2, Some(420)),
        row(520, 1, Header, Hop, 3, Some(520)),
        row(620, 1, Header, Receive, 3, None),
        row(140, 2, Data, Send, 0, None),
        row(340, 2, Data, Hop, 1, Some(240)),
        row(340, 2, Data, Loss, 1, Some(240)),
        // A retransmission. The ACK of packet 0 has the same PSN as packet 0 and another path.
        row(5000, 2, Data, Send, 0, None),
        row(160, 3, Data, Send, 0, None),
        row(260, 3, Data, Drop, 1, None),
        row(5100, 0, Ack, Send, 0, None),
    ];
    rows.sort();
    result.watched.trace = rows;
    result
}

#[test]
fn packets_of_traced_flows_are_assembled_from_rows() {
    let dir = written(&traced(), Formats::PARQUET);
    let (head, columns) = shown(&dir);
    let of = |name: &str| columns[&format!("trace.{name}")].whole().to_vec();
    assert_eq!(head["trace"]["journeys"], 6);
    assert_eq!(head["trace"]["flows"][0]["size_bytes"], 1000);
    assert_eq!(head["trace"]["flows"].as_array().unwrap().len(), 1);
    // Data 0, 1, 2 and 3, the retransmission of 2, the ACK; in the order of their begins.
    assert_eq!(of("psn"), [0, 1, 2, 3, 2, 0]);
    assert_eq!(of("kind"), [0, 0, 0, 0, 0, 1]);
    assert_eq!(of("again"), [0, 0, 0, 0, 1, 0]);
    assert_eq!(of("begin"), [100, 120, 140, 160, 5000, 5100].map(|time| time * 1000));
    // Received, received as a header, lost, dropped, and two that are still in flight at the end of the rows.
    assert_eq!(of("end"), [1, 1, 3, 2, 0, 0]);
    assert_eq!(of("took"), [600, 500, 200, 100, 0, 0].map(|time| time * 1000));
    assert_eq!(of("hops"), [4, 4, 2, 1, 1, 1]);
    let of = |name: &str| columns[&format!("hop.{name}")].whole().to_vec();
    // Host h has links 2 h and 2 h + 1, cable c between switches 8 + 2 c and 9 + 2 c.
    let route = [0, 8, 13, 5];
    assert_eq!(of("link")[..10], [&route[..], &route[..], &route[..2]].concat());
    assert_eq!(of("joined")[..4], [0, 100, 300, 400].map(|time| time * 1000));
    assert_eq!(of("waited")[..4], [0, 100, 0, 100].map(|time| time * 1000));
    // Marked at leaf 0, trimmed at the spine.
    assert_eq!(of("flags")[..10], [0, 1, 0, 0, 0, 0, 2, 0, 0, 0]);
}

/// What a scheme knew is on the page as the file has it, with the units and meanings that the scheme declares.
#[test]
fn states_of_schemes_are_shown() {
    let mut result = traced();
    result.watched.schemes = common::scheme_rows();
    let (head, columns) = shown(&written(&result, Formats::PARQUET));
    assert_eq!(head["schemes"][0]["name"], "scheme_hopper");
    let declared = HostParameters::named("hopper").unwrap().state();
    for (at, column) in declared.iter().enumerate() {
        let shown = &head["schemes"][0]["columns"][at];
        assert_eq!([&shown["name"], &shown["unit"], &shown["meaning"]], [column.name, column.unit, column.meaning]);
    }
    let real = |name: &str| columns[&format!("scheme.0.{name}")].real().to_vec();
    assert_eq!(real("time_ps"), [1e6, 2e6, 3e6, 4e6, 5e6]);
    assert!(real("average_ps")[0].is_nan() && real("average_ps")[1..] == [14e6; 4]);
    assert_eq!((real("tag")[..4].to_vec(), real("tag")[4].is_nan()), (vec![9.0, 9.0, 5.0, 5.0], true));
}
