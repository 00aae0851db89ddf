//! Tests against misleading reports, each with a result that a reader could misinterpret.

use crate::{
    common,
    common::{
        Behaviour, CSV, SCHEMES, add_measurements, fault, flow, link, meta, names, provenance, result, run,
        slowdowns_compared as compared,
    },
};
use anabranch_outcome::{FlowDelays, FlowRow, LinkWindow, RunRows};
use anabranch_report::{ALL, Comparison, headlines, report, report_pooled};
use anabranch_results::{Formats, LinkFault, RunMeta, Summary, WorkloadMeta};
use anabranch_testkit::{assert_contains, folder, rows};
use anabranch_units::Time;
use base64::{Engine, prelude::BASE64_STANDARD};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn flows(workload: u16, slowdowns: impl IntoIterator<Item = f64>) -> Vec<FlowRow> {
    let row = |(slowdown, id): (f64, u32)| FlowRow {
        workload,
        ..flow(u32::from(workload) * 100_000 + id, 300_000, Time::ZERO, slowdown)
    };
    slowdowns.into_iter().zip(0..).map(row).collect()
}

fn two_workloads(scheme: &str, seed: u64) -> RunMeta {
    let mut meta = meta(scheme, seed);
    meta.workloads = ["web", "incast"]
        .map(|name| WorkloadMeta { name: name.to_string(), measured: true, ..WorkloadMeta::default() })
        .to_vec();
    meta
}

/// Two workloads in each of which prime's tail is lower, although pooled it is higher. The tail of all 1,020 flows is
/// prime's twenty incast flows at 20, but ecmp's eleven web flows at 5.
fn paradox(scheme: &str, seed: u64) -> (RunRows, RunMeta) {
    let wobble = seed as f64 / 100.0;
    let (web, incast): (f64, [f64; 2]) = if scheme == "ecmp" { (5.0, [3.0, 30.0]) } else { (4.0, [20.0, 20.0]) };
    let tail = (0..1000).map(|i| if i < 11 { web + wobble } else { 1.0 });
    let burst = (0..20).map(|i| incast[usize::from(i < 2)] + wobble * f64::from(i % 3));
    (result([flows(0, tail), flows(1, burst)].concat()), two_workloads(scheme, seed))
}

fn write(dir: &Path, runs: &[(RunRows, RunMeta)], schemes: &[&str]) -> Comparison {
    let summaries: Vec<Summary> = runs
        .iter()
        .map(|(result, meta)| {
            let own = crate::common::place(dir, &meta.scheme, meta.seed);
            common::write_run(&own, result, meta, Formats::BOTH)
        })
        .collect();
    crate::common::compared(dir, &summaries, &names(schemes), schemes[0])
}

fn page(dir: &Path, with_all: bool) -> String {
    let path = if with_all { report_pooled(dir) } else { report(dir) };
    let page = fs::read_to_string(path.unwrap()).unwrap();
    page.replace("&#x2f;", "/").replace("&#x27;", "'")
}

fn message(comparison: &Comparison) -> String {
    headlines(comparison, false).iter().flat_map(|h| h.sentences.clone()).collect::<Vec<_>>().join(" ")
}

#[test]
fn workloads_are_not_pooled_by_default() {
    let dir = folder();
    let runs: Vec<_> = ["ecmp", "prime"].iter().flat_map(|scheme| (1..=5).map(|seed| paradox(scheme, seed))).collect();
    let comparison = write(&dir, &runs, &["ecmp", "prime"]);
    // Pooled, ecmp seems four times as good.
    let pooled = |scheme| comparison.row(ALL, scheme, "slowdown_p99").unwrap().mean.unwrap();
    assert!(pooled("ecmp") < 6.0 && pooled("prime") > 19.0, "{} {}", pooled("ecmp"), pooled("prime"));
    let headlines = headlines(&comparison, false);
    let workloads: Vec<_> = headlines.iter().map(|h| h.workload.clone().unwrap()).collect();
    assert_eq!(workloads, ["incast", "web"]);
    for headline in &headlines {
        assert!(headline.sentences[0].starts_with("prime has the best"), "{headline:?}");
    }
    let text = comparison.to_text(80);
    assert!(text.contains("workload web") && text.contains("workload incast") && !text.contains("pooled"), "{text}");
    let shown = page(&dir, false);
    assert!(!shown.contains("ecmp has the best") && !shown.contains("pooled"));
    for figure in ["slowdown_cdf", "fct_ratio"] {
        assert!(!dir.join(format!("figures/{figure}.svg")).exists(), "{figure} pools the workloads");
        for workload in ["web", "incast"] {
            assert!(dir.join(format!("figures/{figure}-{workload}.csv")).exists());
        }
    }
    let shown = page(&dir, true);
    assert_contains(&shown, &["all 2 workloads pooled", "these numbers mix the flows of different workloads"]);
    assert!(dir.join("figures/slowdown_cdf.csv").exists());
    let own = fs::read_to_string(report(&dir.join("runs/prime/seed1")).unwrap()).unwrap();
    assert!(!own.contains("Slowdown, p99</div>") && own.contains("<td>incast</td>"));
    page(&dir, false);
    assert!(!dir.join("figures/slowdown_cdf.csv").exists());
}

#[test]
fn schemes_without_significant_difference_tie() {
    // The tied schemes differ in the third digit alone; ecmp is far off.
    let comparison = compared(&[
        ("ecmp", &[8.0, 8.5, 7.9, 8.2, 8.4]),
        ("ops", &[3.02, 3.11, 2.98, 3.05, 3.00]),
        ("reps", &[3.01, 3.05, 3.04, 3.03, 3.02]),
        ("ar", &[3.05, 3.00, 3.02, 3.06, 3.03]),
        ("co-prime", &[3.00, 3.08, 3.01, 3.01, 3.04]),
        ("prime", &[3.03, 3.02, 3.01, 3.00, 3.05]),
    ]);
    let text = message(&comparison);
    assert!(text.starts_with("Five schemes tie for the best"), "{text}");
    assert!(text.contains("than ecmp (baseline)") && text.contains("Holm's correction over all 15 pairs"), "{text}");
    let row = |scheme| comparison.row(ALL, scheme, "fct_ratio_max").unwrap();
    for scheme in ["ops", "reps", "ar", "co-prime", "prime"] {
        assert!(row(scheme).leading == Some(true) && row(scheme).group == "a", "{:?}", row(scheme));
        assert_eq!(row(scheme).significant, Some(true), "each differs from the baseline");
    }
    assert_eq!((row("ecmp").leading, row("ecmp").group.as_str()), (Some(false), "b"));
    let table = comparison.to_text(80);
    let marked = table.lines().filter(|line| line.contains('*') && !line.starts_with('*')).count();
    assert_eq!(marked, 5, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn large_insignificant_difference_is_no_tie() {
    let comparison = compared(&[("ecmp", &[8.0, 3.1, 5.0]), ("prime", &[3.0, 3.5, 2.9])]);
    let text = message(&comparison);
    assert!(text.starts_with("No scheme differs significantly from the lowest"), "{text}");
    assert!(text.contains("with three seeds"), "{text}");
    // The differences 5, -0.4, 2.1 have a mean of 2.23 and a deviation of 2.70: 14 (2.70 (2.16 + 0.87) / 2.23)^2.
    assert!(text.contains("prime needs about 14 seeds") && !text.contains("tie"), "{text}");
}

#[test]
fn two_seeds_give_no_test() {
    let comparison = compared(&[("ecmp", &[8.0, 8.5]), ("prime", &[3.0, 3.5])]);
    let text = message(&comparison);
    assert!(text.starts_with("Too few seeds to rank the schemes: two seeds so far"), "{text}");
    let row = comparison.row(ALL, "prime", "fct_ratio_max").unwrap();
    assert_eq!((row.p_value, row.significant, row.leading), (None, None, None));
    assert!(comparison.to_text(80).contains("too few seeds to compare schemes"));
}

#[test]
fn no_variance_is_no_tiny_p_value() {
    let comparison = compared(&[("ecmp", &[8.0, 8.0, 8.0]), ("prime", &[3.0, 3.0, 3.0])]);
    let row = comparison.row(ALL, "prime", "fct_ratio_max").unwrap();
    assert_eq!((row.p_value, row.p_holm, row.significant), (None, None, None));
    let text = message(&comparison);
    assert!(text.contains("no variance to test against") && !text.contains("p <"), "{text}");
    let dir = folder();
    let runs: Vec<_> = [("ecmp", 8.0), ("prime", 3.0)]
        .into_iter()
        .flat_map(|(scheme, v)| (1..=3).map(move |seed| (result(flows(0, [v])), meta(scheme, seed))))
        .collect();
    write(&dir, &runs, &["ecmp", "prime"]);
    let shown = page(&dir, false);
    assert!(!shown.contains("p &lt; 0.001") && shown.contains("the same difference at every seed"));
}

fn network(dir: &Path, schemes: &[Behaviour], seeds: u64, count: u32) -> Comparison {
    let runs: Vec<_> = schemes
        .iter()
        .flat_map(|scheme| (1..=seeds).map(|seed| (run(scheme, seed, count, false), meta(scheme.name, seed))))
        .collect();
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name).collect();
    write(dir, &runs, &names)
}

#[test]
fn figures_and_tables_show_equal_numbers() {
    let dir = folder();
    let comparison = network(&dir, &SCHEMES[..2], 4, 1500);
    let page = page(&dir, false);
    let mut reader = csv::Reader::from_path(dir.join("figures/slowdown_cdf.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    for scheme in ["ecmp", "hf2t+letflow"] {
        let mean = comparison.row(ALL, scheme, "slowdown_p99").unwrap().mean.unwrap();
        // The curve at 99 % equals the number in the table and in the legend.
        let at = rows.iter().find(|r| &r[0] == scheme && (r[1].parse::<f64>().unwrap() - 0.99).abs() < 1e-9).unwrap();
        assert!((at[2].parse::<f64>().unwrap() / mean - 1.0).abs() < 1e-9, "{} is not {mean}", &at[2]);
        let shown = if mean < 10.0 { format!("{mean:.2}") } else { format!("{mean:.1}") };
        assert!(page.contains(&format!("{scheme} · p99 {shown}")), "{mean}");
        assert!(page.contains(&format!("<span class=\"mean\">{shown}</span>")), "{mean}");
    }
}

#[test]
fn interrupted_comparison_lists_missing_runs() {
    let dir = folder();
    let schemes = &SCHEMES[..3];
    let runs: Vec<_> = schemes
        .iter()
        .flat_map(|scheme| (1..=5).map(|seed| (run(scheme, seed, 400, false), meta(scheme.name, seed))))
        .filter(|(_, meta)| !(meta.scheme == "hopper" && meta.seed == 4))
        .collect();
    write(&dir, &runs, &["ecmp", "hf2t+letflow", "hopper", "prime"]);
    let shown = page(&dir, false);
    assert!(shown.contains("<strong>Results are missing</strong>"));
    for message in [
        "hopper: 4 of 5 seeds; not run: seed 4.",
        "prime: 0 of 5 seeds; not run: seed 1, 2, 3, 4, 5.",
        "Compared over the seeds of every scheme: seed 1, 2, 3, 5.",
        "Not finished: prime/seed1; prime/seed2; prime/seed3; hopper/seed4; prime/seed4; prime/seed5. Repeat",
        "hopper, 4 seeds",
        "ecmp (baseline), 5 seeds",
    ] {
        assert!(shown.contains(message), "{message}");
    }
    assert!(shown.contains("seeds run</button>"));
    assert!(shown.split("<footer>").nth(1).unwrap().contains("4 of 5 seeds"));
    let comparison = anabranch_report::read_comparison(&dir).unwrap().unwrap();
    assert!(comparison.rows.iter().all(|row| row.seeds <= 4));
    assert_eq!(comparison.compared_seeds, [1, 2, 3, 5]);
    let mut reader = csv::Reader::from_path(dir.join("figures/slowdown_by_size.csv")).unwrap();
    assert!(reader.records().all(|row| &row.unwrap()[12] == "4"));
}

#[test]
fn page_embeds_fonts_and_figures() {
    let dir = folder();
    network(&dir, &SCHEMES[..2], 3, 600);
    // Unescaped on purpose, as a browser reads it.
    let page = fs::read_to_string(report(&dir).unwrap()).unwrap();
    let fonts: Vec<&str> =
        page.match_indices("url(data:font/woff2;base64,").map(|(at, m)| &page[at + m.len()..]).collect();
    assert_eq!(fonts.len(), 2);
    for font in fonts {
        let bytes = BASE64_STANDARD.decode(&font[..font.find(')').unwrap()]).unwrap();
        assert!(bytes.starts_with(b"wOF2"), "not a font");
    }
    for (extension, kind) in
        [("svg", "image/svg+xml"), ("pdf", "application/pdf"), ("png", "image/png"), ("csv", "text/csv")]
    {
        let link = format!("<a download=\"slowdown_cdf.{extension}\" href=\"data:{kind}");
        let at = page.find(&link).unwrap_or_else(|| panic!("no {extension}"));
        let data = &page[at..];
        let data = &data[data.find("base64,").unwrap() + 7..];
        let bytes = BASE64_STANDARD.decode(&data[..data.find('"').unwrap()]).unwrap();
        assert_eq!(bytes, fs::read(dir.join(format!("figures/slowdown_cdf.{extension}"))).unwrap());
    }
    let hits = page.split("class=\"hits\">").nth(2).unwrap().split("</script>").next().unwrap();
    let hits: Vec<serde_json::Value> = serde_json::from_str(hits).unwrap();
    assert!(hits.len() > 10 && hits[0][3].as_str().unwrap().contains("slowdown"), "{:?}", hits.first());
    assert!(page.contains("data-s=\"1\" data-key=\"1\">hf2t+letflow"));
    assert!(page.contains("<button type=\"button\" data-key=\"0\""));
}

#[test]
fn page_starts_with_the_setup() {
    let dir = folder();
    let mut own = provenance();
    own.command = "anabranch run web.toml --seed 3 --out 'my results'".to_string();
    own.scenario_toml = "name = \"x\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 16\nspines = 8\nhosts_per_leaf = 8\nlink_delay = \"1us\"\n\
        [transport]\nkind = \"uet\"\ncongestion_control = \"dctcp\"\n[fabric]\nprofile = \"uet-lossy\"\n\
        [[workload]]\nkind = \"poisson\"\nname = \"web\"\nsizes = \"web-search\"\nload = 0.6\nload_reference = \"host\"\nduration = \"2ms\"\n\
        [[fault]]\nkind = \"link-down\"\nat = \"20us\"\ncount = 1\n[run]\nuntil = \"all-flows-done\"\ntime_limit = \"1s\"\nwarmup = \"0us\"\n"
        .to_string();
    let mut meta = meta("prime", 3);
    let cable = [("leaf3", "spine5"), ("spine5", "leaf3")];
    meta.faults = cable.map(|(from, to)| fault(from, to, Time::from_us(20), LinkFault::DOWN)).to_vec();
    common::write_run_from(&dir, &run(&SCHEMES[4], 3, 500, false), &meta, &own, Formats::BOTH);
    let shown = page(&dir, false);
    for message in [
        "128 hosts, 16 leaves and 8 spines, 512 directed links; links of 400 Gb/s; link delay 1us",
        "fabric uet-lossy, transport uet with dctcp",
        "web: poisson, sizes web-search, load 0.6 of the host, duration 2ms",
        "link-down at 20us, count 1",
        "seed 3: leaf3–spine5 (down at 20us)",
        "until all flows are done, time limit 1s, warm-up 0us",
        "anabranch run web.toml --seed 3 --out 'my results'",
    ] {
        assert!(shown.contains(message), "{message}");
    }
    assert!(shown.find("id=\"setup\"").unwrap() < shown.find("<figure").unwrap());
    // The failed link is marked: both directions in the figures' rows, a cross in the drawing, its fault in the hover text.
    let heat = fs::read_to_string(dir.join("figures/link_heat.csv")).unwrap();
    assert_eq!(heat.lines().filter(|line| line.ends_with("down at 20us")).count(), 2);
    assert!(shown.contains("leaf3 → spine5: 0 % (down at 20us)"));
    assert!(shown.contains("a red cross marks a failed link"));
    let rows = rows(&fs::read_to_string(dir.join("figures/link_utilisation.csv")).unwrap());
    let failed: usize = rows.iter().map(|row| row["fault_seeds"].parse::<usize>().unwrap()).sum();
    assert_eq!(failed, 2);
}

/// Two leaves with four hosts each, all links of 400 Gb/s, `uplinks` per leaf.
fn two_leaves(uplinks: usize) -> RunRows {
    let mut result = result(vec![]);
    for host in 0..8 {
        let (h, l) = (format!("host{host}"), format!("leaf{}", host / 4));
        result.links.push(link(h.clone(), l.clone(), "host", "up", 0.5, 0.0));
        result.links.push(link(l, h, "host", "down", 0.5, 0.0));
    }
    for leaf in ["leaf0", "leaf1"] {
        for spine in 0..uplinks {
            let spine = format!("spine{spine}");
            result.links.push(link(leaf.to_string(), spine.clone(), "tier0-1", "up", 0.5, 0.0));
            result.links.push(link(spine, leaf.to_string(), "tier0-1", "down", 0.5, 0.0));
        }
    }
    result
}

#[test]
fn overload_is_a_warning() {
    // 8 hosts send across the leaves: 1000 flows of 1 MB within 999 us are 8.008 Tb/s of 8 x 400 Gb/s = 3.2 Tb/s.
    let with = |size: u64, uplinks: usize, meta: &RunMeta| {
        let mut result = two_leaves(uplinks);
        let across =
            |id: u32| FlowRow { src: id % 8, dst: (id + 4) % 8, ..flow(id, size, Time::from_us(u64::from(id)), 2.0) };
        result.flows = (0..1000).map(across).collect();
        common::summary(&result, meta)
    };
    let overloaded = with(1_000_000, 4, &meta("prime", 1));
    let load = |links: &str| overloaded.offered_load.iter().find(|o| o.links.contains(links)).unwrap().load;
    assert!((load("hosts that send") - 2.5025).abs() < 1e-4, "{:?}", overloaded.offered_load);
    assert!((load("tier0-1") - 2.5025).abs() < 1e-4);
    let warnings = overloaded.warnings();
    assert!(warnings.iter().any(|w| w.starts_with("The flows offer 250 % of what")), "{warnings:?}");
    // 0.3 MB are 75 %: no warning, unless half of the uplinks are missing or down.
    assert_eq!(with(300_000, 4, &meta("prime", 1)).offered_load, []);
    let half = with(300_000, 2, &meta("prime", 1));
    assert_eq!(half.offered_load.iter().map(|o| o.links.as_str()).collect::<Vec<_>>(), ["the tier0-1 links"]);
    let mut down = meta("prime", 1);
    for leaf in ["leaf0", "leaf1"] {
        for spine in ["spine0", "spine1"] {
            down.faults.push(fault(leaf, spine, Time::ZERO, LinkFault::DOWN));
        }
    }
    assert_eq!(with(300_000, 4, &down).offered_load.len(), 1);
    // A burst with simultaneous starts has no load, and flows that wait for others offer only the throughput.
    let mut burst = two_leaves(4);
    burst.flows = (0..1000)
        .map(|id| FlowRow { src: id % 8, dst: (id + 4) % 8, ..flow(id, 1_000_000, Time::ZERO, 2.0) })
        .collect();
    assert_eq!(common::summary(&burst, &meta("prime", 1)).offered_load, []);
    let mut waits = meta("prime", 1);
    waits.flows_wait = true;
    assert_eq!(with(1_000_000, 4, &waits).offered_load, []);
}

#[test]
fn utilisation_names_its_time_window() {
    let dir = folder();
    // Flows start up to 2 ms of a run of 10 ms.
    let mut result = run(&SCHEMES[4], 1, 500, false);
    for flow in &mut result.flows {
        flow.start = flow.start.map(|start| Time::from_ps(start.ps() % 2_000_000_000));
    }
    result.flows[0].start = Some(Time::from_ms(2));
    common::write_run(&dir, &result, &meta("prime", 1), Formats::BOTH);
    let shown = page(&dir, false);
    assert!(shown.contains("over the whole run (0 to 10 ms, the drain included)"));
    assert!(shown.contains("The last flow starts at 2 ms; the remaining 80 % of the run drain the network"));
    // With the bytes of a window the utilisation is that of the window: 75 MB of 2 ms at 400 Gb/s (100 MB) are 75 %.
    let sent_bytes = result.links.iter().map(|_| 75_000_000).collect();
    result.window = Some(LinkWindow { from: Time::ZERO, to: Time::from_ms(2), sent_bytes });
    common::write_run(&dir, &result, &meta("prime", 1), Formats::BOTH);
    let shown = page(&dir, false);
    assert!(shown.contains("over the time in which flows start (0 µs to 2 ms)") || shown.contains("(0 s to 2 ms)"));
    assert!(!shown.contains("the drain included") && !shown.contains("drain the network"));
    let rows = fs::read_to_string(dir.join("figures/link_heat.csv")).unwrap();
    assert!(rows.lines().skip(1).all(|line| line.ends_with(",0.75,")), "{}", rows.lines().nth(1).unwrap());
}

#[test]
fn ports_are_sorted_by_waiting_time() {
    let dir = folder();
    let mut result = run(&SCHEMES[4], 1, 200, false);
    // Every port once reached the trim limit; at one, packets waited for long, at another they were trimmed.
    for link in &mut result.links {
        (link.queue.max_bytes, link.queue.mean_packets, link.queue.mean_bytes, link.trims) =
            (Some(200_000), Some(0.001), Some(4.0), Some(0));
    }
    let at = |result: &RunRows, from: &str, to: &str| {
        result.links.iter().position(|l| l.from == from && l.to == to).unwrap()
    };
    let (slow, lossy) = (at(&result, "spine7", "leaf9"), at(&result, "spine6", "leaf8"));
    result.links[slow].queue.mean_packets = Some(12.0);
    result.links[lossy].trims = Some(500);
    common::write_run(&dir, &result, &meta("prime", 1), Formats::BOTH);
    let shown = page(&dir, false);
    let table = shown.split("Where packets waited").nth(1).unwrap();
    let first = table.split("<tbody>").nth(1).unwrap().trim_start();
    // 12 packets waiting over 10 ms: 120 ms of waiting.
    assert!(first.starts_with("<tr><td>spine7 → leaf9</td>"), "{}", &first[..80]);
    assert!(first.split("</tr>").next().unwrap().contains(">120 ms</td>"));
    assert!(table.contains("spine6 → leaf8"), "a port that trimmed is listed too");
}

fn value_ticks(page: &str, id: &str) -> Vec<String> {
    let svg = page.split(&format!("id=\"{id}\">")).nth(1).unwrap().split("</svg>").next().unwrap();
    let texts =
        svg.split("<text ").filter(|text| text.contains("font-size=\"11\"") && text.contains("text-anchor=\"end\""));
    texts.map(|text| text.split('>').nth(1).unwrap().split('<').next().unwrap().to_string()).collect()
}

#[test]
fn panels_share_their_scale() {
    let dir = folder();
    network(&dir, SCHEMES, 3, 4000);
    let shown = page(&dir, false);
    for id in ["slowdown_by_size", "link_utilisation"] {
        let ticks = value_ticks(&shown, id);
        let (left, right) = ticks.split_at(ticks.len() / 2);
        assert!(left.len() > 2 && left == right, "{id}: {left:?} {right:?}");
    }
    // The tail of the smallest bins has an interval; every axis has its title.
    let rows = rows(&fs::read_to_string(dir.join("figures/slowdown_by_size.csv")).unwrap());
    assert!(["slowdown_p99_ci95_low", "slowdown_p99_ci95_high"].iter().all(|name| rows[0].contains_key(*name)));
    assert!(rows.iter().flat_map(|row| row.values()).all(|cell| !cell.is_empty()), "a bin has no tail");
    for title in [
        "times the ideal",
        "Waiting data per port",
        "links of a switch, in order",
        "sending switches",
        "Share of flows above",
    ] {
        assert!(shown.contains(&format!(">{title}</text>")), "{title}");
    }
}

#[test]
fn bins_with_few_flows_have_no_tail() {
    let dir = folder();
    network(&dir, &SCHEMES[..2], 3, 90);
    let shown = page(&dir, false);
    assert!(shown.contains("a 99th percentile is shown where every seed has 100 flows or more (here nowhere)"));
    let mut reader = csv::Reader::from_path(dir.join("figures/slowdown_by_size.csv")).unwrap();
    assert!(reader.records().all(|row| row.as_ref().unwrap()[7].is_empty()));
    // With fewer flows the figure is omitted, and the page states it.
    network(&dir, &SCHEMES[..2], 3, 12);
    let omitted = "Not drawn: <code>slowdown_by_size</code>: each seed has too few flows for two sizes";
    assert!(page(&dir, false).contains(omitted));
}

fn snapshot(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut open, mut files) = (vec![dir.to_path_buf()], vec![]);
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { files.push((path.clone(), fs::read(&path).unwrap())) }
        }
    }
    files.sort();
    files
}

fn without(path: &Path, columns: &[&str]) {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let kept: Vec<usize> = (0..header.len()).filter(|at| !columns.contains(&&header[*at])).collect();
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(kept.iter().map(|at| &header[*at])).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        writer.write_record(kept.iter().map(|at| &row[*at])).unwrap();
    }
    fs::write(path, writer.into_inner().unwrap()).unwrap();
}

#[test]
fn figures_skipped_for_old_rows_are_named() {
    let dir = folder();
    let csv = CSV;
    let mut result = run(&SCHEMES[2], 1, 2000, false);
    add_measurements(&mut result);
    common::write_run(&dir, &result, &meta("hopper", 1), csv);
    without(&dir.join("links.csv"), &["queue_p99_bytes", "window_utilisation", "fault", "queue_mean_packets"]);
    without(&dir.join("flows.csv"), &["slowdown", "workload"]);
    without(&dir.join("occupancy.csv"), &["time_ps"]);
    let mut manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join("manifest.json")).unwrap()).unwrap();
    manifest["version"] = "0.0.7".into();
    fs::write(dir.join("manifest.json"), anabranch_results::resealed(&format!("{manifest:#}"))).unwrap();
    let mut summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join("summary.json")).unwrap()).unwrap();
    for key in ["arrivals_from_s", "window_from_s", "offered_load", "queues", "warmup_s"] {
        summary.as_object_mut().unwrap().remove(key).unwrap();
    }
    fs::write(dir.join("summary.json"), summary.to_string()).unwrap();
    let shown = page(&dir, false);
    for message in [
        "Not drawn: <code>slowdown_by_size</code>: the rows of <code>flows</code> have no values of <code>slowdown</code>.",
        "Not drawn: <code>slowdown_cdf</code>: the rows of <code>flows</code> have no values of <code>slowdown</code>.",
        "Not drawn: <code>queue_depth</code>: the rows of <code>links</code> have no values of <code>queue_p99_bytes</code>.",
        "Not drawn: <code>queue_occupancy</code>: the rows of <code>occupancy</code> have no values of <code>time_ps</code>.",
        "The rows were written by version 0.0.7, this page by",
    ] {
        assert!(shown.contains(message), "{message}");
    }
    assert!(shown.contains("id=\"link_heat\"") && shown.contains("id=\"link_utilisation\""));
}

#[test]
fn unreadable_results_are_reported_and_kept() {
    let dir = folder();
    network(&dir, &SCHEMES[..2], 3, 300);
    report(&dir).unwrap();
    let own = dir.join("runs/ecmp/seed2");
    let half = |file: &str| {
        let bytes = fs::read(own.join(file)).unwrap();
        fs::write(own.join(file), &bytes[..bytes.len() / 2]).unwrap();
    };
    type Break<'b> = (&'b str, &'b str, Box<dyn Fn() + 'b>);
    let breaks: [Break<'_>; 5] = [
        ("truncated Parquet", "flows.parquet", Box::new(|| half("flows.parquet"))),
        ("truncated summary", "summary.json", Box::new(|| half("summary.json"))),
        ("truncated manifest", "manifest.json", Box::new(|| half("manifest.json"))),
        (
            "missing rows",
            "its manifest lists rows of `links`, but the file is missing",
            Box::new(|| {
                ["links.csv", "links.parquet"].iter().for_each(|file| fs::remove_file(own.join(file)).unwrap())
            }),
        ),
        (
            "fewer rows",
            "rows of `flows`, but `summary.json` counts 300 flows",
            Box::new(|| {
                fs::remove_file(own.join("flows.parquet")).unwrap();
                let text = fs::read_to_string(own.join("flows.csv")).unwrap();
                let lines: Vec<&str> = text.lines().take(100).collect();
                fs::write(own.join("flows.csv"), lines.join("\n")).unwrap();
            }),
        ),
    ];
    let whole = snapshot(&own);
    for (what, message, damage) in breaks {
        damage();
        let before = snapshot(&dir);
        let error = report(&dir).expect_err(what).to_string();
        assert!(error.contains("seed2") && error.contains(message), "{what}: {error}");
        assert!(error.contains("repeat the run"), "{what}: {error}");
        assert!(snapshot(&dir) == before, "{what}: something was overwritten");
        whole.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }
    report(&dir).unwrap();
}

#[test]
fn runs_of_different_builds_warn() {
    let dir = folder();
    let runs: Vec<_> = ["ecmp", "prime"]
        .iter()
        .flat_map(|scheme| {
            (1..=3).map(move |seed| {
                let mut meta = meta(scheme, seed);
                if *scheme == "prime" {
                    meta.commit = "fedcba9".to_string();
                }
                (result(flows(0, [2.0])), meta)
            })
        })
        .collect();
    write(&dir, &runs, &["ecmp", "prime"]);
    assert!(page(&dir, false).contains("The runs come from different builds: 0.1.0 (0123abc), 0.1.0 (fedcba9)."));
}

/// 200 flows, of which two are slow: 60 and 20 us in queues of 100 us each, 40 us of them at one link.
#[test]
fn the_page_says_what_delayed_the_slowest_flows() {
    let us = Time::from_us;
    let slow = |id: u32, slowdown: f64, delays: FlowDelays| FlowRow {
        delays: Some(delays),
        ..flow(id, 300_000, Time::ZERO, slowdown)
    };
    let common = FlowDelays { serialisation: us(6), flight: us(4), ack: Some(us(4)), ..FlowDelays::default() };
    let first = FlowDelays { queue: us(60), sender: us(30), longest: Some((0, us(40))), ..common };
    let second = FlowDelays { queue: us(20), timeout: us(70), predecessor: us(6), ..common };
    let mut rows = vec![slow(7, 9.0, first), slow(3, 8.0, second)];
    rows.extend((100..298).map(|id| slow(id, 1.0, common)));
    let run = |delays: bool| {
        let mut rows = result(rows.clone());
        rows.links.push(link("leaf0".into(), "spine3".into(), "tier0-1", "up", 0.5, 4000.0));
        rows.flows.iter_mut().filter(|_| !delays).for_each(|flow| flow.delays = None);
        (rows, meta("ecmp", 1))
    };
    let with = folder();
    common::write_run(&with, &run(true).0, &run(true).1, Formats::PARQUET);
    let shown = page(&with, false);
    // Of 200 us: 80 in queues, 70 for timeouts, 30 for the sender; half of the queues at the first link.
    for words in [
        "2 flows spent 40 % waiting in queues, 35 % waiting for retransmission timeouts, 15 % held back by window"
            .to_string(),
        "leaf0-&gt;spine3 (50 %, 1 flow).".to_string(),
        "Slowest: flow 7 of seed 1, 300 kB from host7".to_string(),
        "60 % of it waiting in queues".to_string(),
        "<code>anabranch view DIR --record</code> draws its packets<span hidden data-view>".to_string(),
        "href=\"view.html#scheme=ecmp&amp;seed=1&amp;flow=7\"".to_string(),
    ] {
        assert!(shown.contains(&words), "{words}\n{}", shown.split("id=\"delays\"").nth(1).unwrap_or("no section"));
    }
    let without = folder();
    common::write_run(&without, &run(false).0, &run(false).1, Formats::PARQUET);
    assert!(!page(&without, false).contains("What delayed the slowest flows"));
    // With a view beside the page, the link to its slowest flow is shown, and stays when the page is drawn again.
    let view = || anabranch_report::write_view_into(&with, &[with.to_path_buf()]).unwrap();
    let shows_link =
        |page: &str| page.contains("<span data-view>; <a href=\"view.html#scheme=ecmp&amp;seed=1&amp;flow=7\"");
    view();
    assert!(shows_link(&fs::read_to_string(with.join("report.html")).unwrap()));
    assert!(shows_link(&page(&with, false)));
    assert!(fs::read_to_string(with.join("view.html")).unwrap().contains("this.follow(location.hash)"));
}

/// The same bytes in 10 ms and in 1 ms. Of four uplinks one carries twice the mean. The queues of the first hold 1000 B on
/// average for 10 ms (10 B s), those of the second 4000 B for 1 ms (4 B s): over 10 ms that is 400 B.
#[test]
fn runs_of_different_lengths_compare_over_one_window() {
    let dir = folder();
    let of = |scheme: &str, ms: u64, queue: f64| {
        let mut rows = result(flows(0, [2.0, 3.0]));
        rows.simulated = Time::from_ms(ms);
        for (spine, share) in [2.0, 1.0, 1.0, 0.0].into_iter().enumerate() {
            let load = 0.05 * share * 10.0 / ms as f64;
            rows.links.push(link("leaf0".into(), format!("spine{spine}"), "tier0-1", "up", load, queue));
        }
        (rows, meta(scheme, 1))
    };
    write(&dir, &[of("ecmp", 10, 1000.0), of("prime", 1, 4000.0)], &["ecmp", "prime"]);
    let shown = page(&dir, false);
    let table = |name: &str| rows(&fs::read_to_string(dir.join(format!("figures/{name}.csv"))).unwrap());
    let loads = |scheme: &str| -> Vec<f64> {
        let own = table("link_heat").into_iter().filter(|row| row["scheme"] == scheme);
        own.map(|row| row["bytes_over_even_split"].parse().unwrap()).collect()
    };
    for scheme in ["ecmp", "prime"] {
        let expected = [2.0, 1.0, 1.0, 0.0];
        assert!(loads(scheme).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{:?}", loads(scheme));
    }
    let mean = |scheme: &str| -> f64 {
        table("queue_depth").iter().find(|row| row["scheme"] == scheme).unwrap()["queue_mean_bytes"].parse().unwrap()
    };
    assert!((mean("ecmp") - 1000.0).abs() < 1e-9 && (mean("prime") - 400.0).abs() < 1e-9, "{}", mean("prime"));
    assert_contains(&shown, &["bytes over those of an even split", "the longest run of each seed (0 to 10 ms)"]);
    assert!(!shown.contains("tilisation over") && !shown.contains("drain the network"));
    // One window in which flows start, the same for both, is a utilisation.
    let windowed = |scheme: &str, ms: u64| {
        let (mut rows, meta) = of(scheme, ms, 1000.0);
        rows.window = Some(LinkWindow { from: Time::ZERO, to: Time::from_ms(1), sent_bytes: vec![25_000_000; 4] });
        (rows, meta)
    };
    let dir = folder();
    write(&dir, &[windowed("ecmp", 10), windowed("prime", 2)], &["ecmp", "prime"]);
    // 25 MB of 1 ms at 400 Gb/s (50 MB) are 50 %.
    page(&dir, false);
    let heat = rows(&fs::read_to_string(dir.join("figures/link_heat.csv")).unwrap());
    assert!(heat.iter().all(|row| row["utilisation"] == "0.5"), "{heat:?}");
}

#[test]
fn the_page_says_what_each_scheme_did() {
    let dir = folder();
    let of = |scheme: &str, moves: u64, slowdown: f64| {
        let mut rows = result(flows(0, [slowdown; 200]));
        rows.counters.path_switches = Some(moves);
        rows.counters.timeouts = Some(7);
        (rows, meta(scheme, 1))
    };
    let runs = [of("ecmp", 0, 2.0), of("plb", 3, 1.9), of("prime", 50_000, 1.5), of("idle", 0, 2.0)];
    write(&dir, &runs, &["ecmp", "plb", "prime", "idle"]);
    let shown = page(&dir, false);
    let section = shown.split("id=\"actions\"").nth(1).unwrap().split("<h2").next().unwrap();
    // 3 moves in 200 flows are ECMP by another name, 50,000 are 250 per flow.
    assert!(section.contains("plb hardly acted: 3 path changes in 200 flows."), "{section}");
    assert!(section.contains("Whether ecmp and idle acted cannot be judged by path changes"), "{section}");
    assert!(section.contains("ecmp and idle have the same flow times at every seed"), "{section}");
    assert!(!section.contains("prime hardly acted") && !section.contains("ecmp hardly acted"), "{section}");
    assert_contains(section, &[">path changes<", ">timeouts<", ">50,000<", ">250<", ">7<"]);
    assert!(!section.contains(">probes<"), "a count that is zero throughout has no column");
}

#[test]
fn go_back_n_and_packets_out_of_order_do_not_belong_together() {
    let dir = folder();
    let mut rows = result(flows(0, [2.0]));
    rows.counters.out_of_order = Some(90);
    let scenario = "[transport]\nkind = \"roce\"\nrecovery = \"go-back-n\"\n".to_string();
    let provenance = anabranch_results::Provenance { scenario_toml: scenario, ..provenance() };
    common::write_run_from(&dir, &rows, &meta("ops", 1), &provenance, Formats::BOTH);
    // 90 of 900 arrivals.
    let told = "ops and this fabric do not belong together: 10 % of its arrivals are out of order";
    assert!(page(&dir, false).contains(told));
}
