//! Every numeric key at the ends of its range: refused, or run without a panic, an abort or a failed invariant.

use anabranch_backend::{RunError, RunOptions};
use anabranch_scenario::{SIMULATOR, Scenario, Tree, schema::schema};
use regex_lite::Regex;
use serde_json::{Map, Value};
use std::{
    fmt::Write,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

/// Wall time of a run.
const MAX_RUN: Duration = Duration::from_millis(60);

/// Returns numbers in TOML at the ends of what a property of the schema takes, and beyond.
fn ends(property: &Value) -> Vec<String> {
    let mut ends = Vec::new();
    let shapes = property["anyOf"].as_array().cloned().unwrap_or_else(|| vec![property.clone()]);
    for shape in shapes {
        let units = shape["pattern"].as_str().and_then(|pattern| pattern.split_once(")\\s*$")?.0.rsplit_once('('));
        match (shape["type"].as_str(), units) {
            (Some("integer"), _) => {
                ends.extend([0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX)].map(|whole| whole.to_string()));
                ends.extend([999_999_999_999_999, 1_000_000_000_000_000, i64::MAX].map(|whole| whole.to_string()));
            }
            (Some("number"), _) => ends.extend(["-1.0", "0.0", "1e-300", "1.0", "1e15", "1e308"].map(String::from)),
            (_, Some((_, units))) => {
                let (least, most) =
                    (units.split('|').next().unwrap_or(units), units.rsplit('|').next().unwrap_or(units));
                ends.extend(["0", "1", "18446744073709551614"].map(|number| format!("\"{number}{least}\"")));
                let largest: &[&str] = match most {
                    "s" => &["1000000s", "999999.999999999999s"],
                    "TiB" => &["1024TiB", "1125899906842623B"],
                    "Tbps" => &["1000Tbps", "1Mbps"],
                    "bdp" => &["0.000001bdp", "1000000bdp", "1024TiB", "1000000000000"],
                    _ => &["0.000001pass", "1000000passes", "1000000bdp", "1000000000000"],
                };
                ends.extend(
                    largest.iter().map(|text| if text.ends_with('0') { (*text).into() } else { format!("\"{text}\"") }),
                );
            }
            _ => {}
        }
    }
    // The range of a declaration is in its description.
    let range = Regex::new(r", from (\S+) to (\S+)\. ").unwrap();
    let described = property["description"].as_str().and_then(|text| range.captures(text));
    let range = described.iter().flat_map(|found| [found[1].to_string(), found[2].to_string()]);
    ends.extend(range.map(|end| if end.parse::<f64>().is_ok() { end } else { format!("\"{end}\"") }));
    ends
}

fn properties(shape: &Value) -> &Map<String, Value> {
    shape["properties"].as_object().unwrap()
}

fn kind(shape: &Value) -> &str {
    shape["properties"]["kind"]["enum"][0].as_str().unwrap()
}

const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
const COLLECTIVE: &str = "kind = \"collective\"\nsize = \"64kB\"\n";

fn scenario(topology: &str, workload: &str, more: &str) -> String {
    format!(
        "[topology]\n{topology}{more}\n[[workload]]\n{workload}\n[measure]\nattribution = true\nseries_links = [\"*\"]\n\
         series_flows = [\"*\"]\nseries_interval = \"1us\"\ntrace_flows = [\"first:2\"]\n[run]\nmemory_limit = \"256MiB\"\n"
    )
}

/// Losses and three senders to one host, so that timeouts, marks and several paths occur.
const INCAST: &str = "kind = \"incast\"\nsize = \"100kB\"\nsenders = 3\nreceivers = 1\n";
const LOSSES: &str = "[[fault]]\nkind = \"packet-loss\"\nfraction = 1.0\nloss = 0.05\n";

/// Returns the scenario, and one of links as slow as they may be, whose times are as long as they may be.
fn fast_and_slow(topology: &str, more: &str) -> [String; 2] {
    let delay = if topology == LEAF_SPINE { "link_delay" } else { "global_link_delay" };
    let slow = format!("{topology}link_rate = \"1Mbps\"\n{delay} = \"1s\"\n");
    let limit = "time_limit = \"1000000s\"\n";
    let more = format!("{more}{LOSSES}");
    [topology, &slow].map(|topology| scenario(topology, INCAST, &more).replace("\"1us\"", "\"1s\"") + limit)
}

/// Returns why the program is at fault, if it is.
fn fault(text: &str, change: &str) -> Option<String> {
    let mut tree = Tree::parse("ends.toml", text).unwrap();
    tree.set(change).unwrap();
    let Ok(scenario) = Scenario::read(tree, "ends", Path::new(".")) else { return None };
    let Ok(setup) = scenario.setup(1) else { return None };
    if scenario.check(&setup, &SIMULATOR).is_err() {
        return None;
    }
    let end = Instant::now() + MAX_RUN;
    match (SIMULATOR.make)(&scenario).run(&setup, RunOptions { threads: 1 }, &mut |_| Instant::now() < end) {
        Err(error @ (RunError::Invariant(_) | RunError::EndedEarly(_) | RunError::Failed(_))) => {
            Some(error.to_string())
        }
        _ => None,
    }
}

/// Walks the numeric keys of `shape` at `prefix`; the scenario itself must be valid.
fn walk(wrong: &mut String, text: &str, prefix: &str, keys: &Map<String, Value>) -> u32 {
    let mut cases = 0;
    assert_eq!(fault(text, "seed=1"), None, "{text}");
    for (key, property) in keys {
        for end in ends(property) {
            cases += 1;
            let change = format!("{prefix}{key}={end}");
            let found = std::panic::catch_unwind(|| fault(text, &change)).unwrap_or_else(|_| Some("panic".into()));
            if let Some(found) = found {
                writeln!(wrong, "{change}: {found}, in:\n{text}").unwrap();
            }
        }
    }
    cases
}

fn assert_none(wrong: &str, cases: u32, least: u32) {
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases >= least, "{cases}");
}

#[test]
fn sections_take_the_ends_of_their_keys() {
    let (schema, mut wrong, mut cases) = (schema(), String::new(), 0);
    let sections = &schema["properties"];
    for section in ["fabric", "measure", "run"] {
        for workload in [COLLECTIVE, "kind = \"permutation\"\nsize = \"20kB\"\n"] {
            let text = scenario(LEAF_SPINE, workload, "");
            cases += walk(&mut wrong, &text, &format!("{section}."), properties(&sections[section]));
        }
    }
    let servers = scenario(LEAF_SPINE, COLLECTIVE, "[servers]\ngpus = 2\nnics = 1\n");
    cases += walk(&mut wrong, &servers, "servers.", properties(&sections["servers"]));
    let faults = properties(&sections["fault"]["items"]);
    for kind in ["link-down", "link-flap", "link-degrade", "packet-loss"] {
        let more = match kind {
            "link-degrade" => "factor = 0.5\n",
            "packet-loss" => "loss = 0.01\n",
            "link-flap" => "down_for = \"1us\"\nperiod = \"5us\"\nflaps = 2\ndetect_after = \"1us\"\n",
            _ => "detect_after = \"1us\"\n",
        };
        let fault = format!("[[fault]]\nkind = \"{kind}\"\nlinks = [\"leaf0-spine0\"]\n{more}");
        cases += walk(&mut wrong, &scenario(LEAF_SPINE, COLLECTIVE, &fault), "fault.0.", faults);
    }
    assert_none(&wrong, cases, 500);
}

/// Walks the keys of transports and of their controls over fast (0) or slow (1) links.
fn walk_transports(links: usize) -> (String, u32) {
    let (schema, mut wrong, mut cases) = (schema(), String::new(), 0);
    for transport in schema["properties"]["transport"]["anyOf"].as_array().unwrap() {
        let more = format!("[transport]\nkind = \"{}\"\n", kind(transport));
        let text = &fast_and_slow(LEAF_SPINE, &more)[links];
        cases += walk(&mut wrong, text, "transport.", properties(transport));
        for (control, keys) in properties(transport).iter().filter(|(_, shape)| shape["type"] == "object") {
            let text = &fast_and_slow(LEAF_SPINE, &format!("{more}congestion_control = \"{control}\"\n"))[links];
            cases += walk(&mut wrong, text, &format!("transport.{control}."), properties(keys));
        }
    }
    (wrong, cases)
}

/// Walks the keys of schemes, as [`walk_transports`].
fn walk_schemes(links: usize) -> (String, u32) {
    let (schema, mut wrong, mut cases) = (schema(), String::new(), 0);
    let sections = properties(&schema["properties"]["load_balancer"]);
    let dragonfly = "kind = \"dragonfly\"\na = 2\nh = 1\np = 1\n";
    for (scheme, keys) in sections.iter().filter(|(_, shape)| shape["type"] == "object") {
        let alone = ["scheme", "host", "switch"].map(|by| format!("{by} = \"{scheme}\""));
        let pairs = sections.keys().map(|host| format!("host = \"{host}\"\nswitch = \"{scheme}\""));
        let mut texts = alone.into_iter().chain(pairs).flat_map(|balancer| {
            let more = format!("[load_balancer]\n{balancer}\n");
            [LEAF_SPINE, dragonfly].map(|topology| fast_and_slow(topology, &more))
        });
        let fits = |[text, _]: &[String; 2]| {
            let read = Scenario::read(Tree::parse("ends.toml", text).unwrap(), "ends", Path::new("."));
            read.and_then(|scenario| scenario.setup(1).and_then(|setup| scenario.check(&setup, &SIMULATOR))).is_ok()
        };
        let text = &texts.find(fits).unwrap_or_else(|| panic!("{scheme}"))[links];
        cases += walk(&mut wrong, text, &format!("load_balancer.{scheme}."), properties(keys));
    }
    (wrong, cases)
}

#[test]
fn transports_take_the_ends_of_their_keys() {
    let (wrong, cases) = walk_transports(0);
    assert_none(&wrong, cases, 180);
}

#[test]
fn schemes_take_the_ends_of_their_keys() {
    let (wrong, cases) = walk_schemes(0);
    assert_none(&wrong, cases, 500);
}

#[test]
#[ignore = "slow: minutes; sums of long times show where overflow is checked"]
fn slow_links_take_the_ends_of_keys() {
    for (wrong, cases) in [walk_transports(1), walk_schemes(1)] {
        assert_none(&wrong, cases, 180);
    }
}

#[test]
fn topologies_and_workloads_take_the_ends_of_their_keys() {
    let (schema, mut wrong, mut cases) = (schema(), String::new(), 0);
    let permutation = "kind = \"permutation\"\nsize = \"20kB\"\n";
    for topology in schema["properties"]["topology"]["anyOf"].as_array().unwrap() {
        let small = match kind(topology) {
            "leaf-spine" => "leaves = 2\nspines = 2\nhosts_per_leaf = 2\n",
            "fat-tree" => "radix = 4\n",
            "clos" => "pods = 2\nleaves_per_pod = 2\nspines_per_pod = 2\ncores = 2\nhosts_per_leaf = 2\n",
            "rail-optimised" => "rails = 2\nservers = 4\nservers_per_pod = 2\nspines = 2\nlinks_per_spine = 1\n",
            "rail-only" => "rails = 2\nservers = 4\nservers_per_pod = 4\n",
            "dragonfly" => "a = 2\nh = 1\np = 1\n",
            "slim-fly" => "q = 5\np = 1\n",
            _ => continue,
        };
        let text = scenario(&format!("kind = \"{}\"\n{small}", kind(topology)), permutation, "");
        cases += walk(&mut wrong, &text, "topology.", properties(topology));
    }
    for workload in schema["properties"]["workload"]["items"]["anyOf"].as_array().unwrap() {
        let small = match kind(workload) {
            "poisson" => "sizes = \"20kB\"\nduration = \"20us\"\n",
            "permutation" | "all-to-all" | "collective" => "size = \"20kB\"\n",
            "incast" => "size = \"20kB\"\nsenders = 3\nreceivers = 1\n",
            "training-rounds" => "sizes = \"20kB\"\nrounds = 2\nranks = 4\n",
            "training-step" => "layers = 2\ndp = 1\nforward = \"1us\"\nactivations = \"20kB\"\ngradients = \"20kB\"\n",
            _ => continue,
        };
        let text = scenario(LEAF_SPINE, &format!("kind = \"{}\"\n{small}", kind(workload)), "");
        cases += walk(&mut wrong, &text, "workload.0.", properties(workload));
    }
    assert_none(&wrong, cases, 500);
}

/// Wall time of a transfer; what takes longer is ended.
const MAX_TRANSFER: Duration = Duration::from_millis(1200);

/// `serve` and `send` over loopback with every numeric key of [wire] at its ends, eight at a time.
#[test]
fn endpoints_take_the_ends_of_their_keys() {
    let folder = crate::common::Folder::new("ends-wire");
    let schema = schema();
    let keys = properties(&schema["properties"]["wire"]);
    let changes = keys.iter().flat_map(|(key, property)| {
        ends(property).into_iter().map(move |end| format!("wire.{key}={}", end.trim_matches('"')))
    });
    let changes: Vec<String> = changes.collect();
    assert!(changes.len() > 80, "{}", changes.len());
    let start = |words: &[&str]| folder.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut moved = 0;
    for (turn, changes) in changes.chunks(8).enumerate() {
        let pairs: Vec<(&String, [Child; 2])> = (0..)
            .zip(changes)
            .map(|(number, change)| {
                // 256 labels take as many ports.
                let port = 20_000 + 300 * number;
                let at = format!("127.0.0.{}:{port}", 1 + turn);
                let set = ["--set", "wire.real_time=false", "--set", change];
                let serve = start(&[&["serve", "--at", &at, "--once"], &set[..]].concat());
                (change, [serve, start(&[&["send", "--to", &at, "--bytes", "20kB"], &set[..]].concat())])
            })
            .collect();
        let end = Instant::now() + MAX_TRANSFER;
        for (change, ends) in pairs {
            for mut child in ends {
                while child.try_wait().unwrap().is_none() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let is_over = child.try_wait().unwrap().is_some();
                let _ = child.kill();
                let output = child.wait_with_output().unwrap();
                let message = crate::common::stderr(&output);
                let is_right = !is_over || [Some(0), Some(2)].contains(&output.status.code());
                assert!(is_right && !message.contains("panicked"), "{change}: {:?}: {message}", output.status);
                moved += u32::from(output.status.success());
            }
        }
    }
    assert!(moved > 20, "{moved} ended well");
}
