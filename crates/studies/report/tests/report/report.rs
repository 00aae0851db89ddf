//! Tests of whole directories: figures and page from the rows on disk.

use crate::{
    common,
    common::{Behaviour, SCHEMES, add_measurements, meta, result, run, unfinish},
};
use anabranch_outcome::{Measures, PortSeries, RunResult};
use anabranch_report::{SeriesSums, read_comparison, report, report_run};
use anabranch_results::{Formats, Manifest, ReportError, Summary};
use anabranch_testkit::folder;
use std::{fs, path::Path};

fn compare(dir: &Path, schemes: &[Behaviour], seeds: u64, flows: u32) -> Vec<Summary> {
    let run = |scheme: &Behaviour, seed| (run(scheme, seed, flows, false), meta(scheme.name, seed));
    let runs = schemes.iter().flat_map(|scheme| (1..=seeds).map(move |seed| run(scheme, seed)));
    common::write_compared(dir, runs, "ecmp").0
}

fn page_of(dir: &Path) -> String {
    fs::read_to_string(report(dir).unwrap()).unwrap().replace("&#x2f;", "/")
}

/// Checks that a browser fetches no other file, so that the page can be mailed.
fn assert_self_contained(page: &str) {
    for attribute in ["src=", "url(", "@import", "<iframe", "<img", "fetch("] {
        for (at, _) in page.match_indices(attribute) {
            let rest: String = page[at + attribute.len()..].chars().take(20).collect();
            assert!(attribute == "url(" && rest.starts_with("data:font/"), "{attribute}{rest}");
        }
    }
    for (at, _) in page.match_indices("href=\"") {
        // A link to a figure that is too large to embed is followed by the reader alone.
        let target = &page[at + 6..];
        assert!(target.starts_with("data:") || target.starts_with("figures/"), "{}", &page[at..at + 40]);
    }
}

/// Ports of several tiers and directions, one of which begins later, and one whose link is unknown.
#[test]
fn series_in_memory_are_drawn_as_their_rows() {
    let dir = folder();
    let mut rows = run(&SCHEMES[4], 1, 200, false);
    add_measurements(&mut rows);
    let samples = rows.series[0].samples.clone();
    for (number, link) in rows.links.iter().enumerate().step_by(7) {
        let samples = samples[number % 3..].to_vec();
        rows.series.push(PortSeries { from: link.from.clone(), to: link.to.clone(), samples });
    }
    rows.series.push(PortSeries { from: "leaf99".into(), to: "spine99".into(), samples });
    common::write_run(&dir, &rows, &meta("prime", 1), Formats::BOTH);
    let files = || {
        let names = ["csv", "svg"].map(|extension| format!("figures/series_links.{extension}"));
        let names = names.into_iter().chain(["report.html".to_string()]);
        names.map(|name| fs::read(dir.join(name)).unwrap()).collect::<Vec<_>>()
    };
    report_run(&dir, &SeriesSums::of(&RunResult::new(rows, &Measures::ALL))).unwrap();
    let from_memory = files();
    report(&dir).unwrap();
    assert!(from_memory == files() && from_memory[0].len() > 1_000);
}

#[test]
fn a_comparison_of_five_schemes() {
    let dir = folder();
    let summaries = compare(&dir, SCHEMES, 3, 4000);
    let path = report(&dir).unwrap();
    let page = fs::read_to_string(&path).unwrap();
    assert_self_contained(&page);
    assert!(page.contains("99th-percentile slowdown"), "no headline");
    assert!(page.contains("Holm&#x27;s correction over all 10 pairs"));
    let has = |summary: &Summary| page.contains(summary.fingerprint.as_ref().unwrap());
    assert!(summaries.iter().all(has), "a fingerprint is missing");
    assert!(page.contains("0123456789abcdef") && page.contains("kind = &quot;leaf-spine&quot;"));
    for name in ["fct_ratio", "slowdown_by_size", "slowdown_cdf", "link_heat", "link_utilisation", "queue_depth"] {
        assert!(page.contains(&format!("<figure class=\"card\" id=\"{name}\">")), "{name} is not on the page");
        let file = |extension: &str| fs::read(dir.join("figures").join(format!("{name}.{extension}"))).unwrap();
        assert!(file("png").starts_with(b"\x89PNG\r\n\x1a\n"));
        assert!(file("pdf").starts_with(b"%PDF-"));
        let svg = String::from_utf8(file("svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("hash 0123456789abcdef") && !svg.contains("NaN"));
        assert!(!svg.contains("<text"), "{name}: texts are shapes, so that no font is needed");
        assert!(String::from_utf8(file("csv")).unwrap().lines().count() > 5);
    }
    let manifest = Manifest::read(&dir).unwrap().unwrap();
    assert_eq!(manifest.baseline.as_deref(), Some("ecmp"));
    assert!(manifest.files.iter().any(|file| file.name == "figures/slowdown_cdf.csv" && file.columns.len() == 3));
    let comparison = read_comparison(&dir).unwrap().unwrap();
    assert_eq!(comparison.to_csv(), fs::read_to_string(dir.join("comparison.csv")).unwrap());
    report(&dir).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), page);
    assert_eq!(Manifest::read(&dir).unwrap().unwrap(), manifest);
}

/// The list at the top and every table show a dot before a scheme's name: in one colour.
#[test]
fn dots_of_a_scheme_have_one_colour() {
    let dir = folder();
    compare(&dir, SCHEMES, 2, 400);
    let page = page_of(&dir);
    for scheme in SCHEMES {
        let [cell, chip] = [format!("\"></i>{}<", scheme.name), format!("\"></i>{} (", scheme.name)];
        let places = page.match_indices(&cell).chain(page.match_indices(&chip));
        let colours: Vec<&str> = places.map(|(at, _)| page[..at].rsplit("dot dot").next().unwrap()).collect();
        let is_one = colours.len() >= 2 && colours.iter().all(|colour| *colour == colours[0]);
        assert!(is_one, "{}: {colours:?}", scheme.name);
    }
}

#[test]
fn rows_beside_figure_equal_it() {
    let dir = folder();
    compare(&dir, &SCHEMES[..2], 2, 1000);
    report(&dir).unwrap();
    let mut reader = csv::Reader::from_path(dir.join("figures/slowdown_by_size.csv")).unwrap();
    let flows: u64 = reader.records().map(|row| row.unwrap()[4].parse::<u64>().unwrap()).sum();
    // Every flow of two schemes and two seeds is in one bin.
    assert_eq!(flows, 2 * 2 * 1000);
    let mut reader = csv::Reader::from_path(dir.join("figures/link_heat.csv")).unwrap();
    // 16 leaves, 8 spines, both directions, two schemes.
    assert_eq!(reader.records().count(), 16 * 8 * 2 * 2);
}

#[test]
fn single_run_with_measurements_and_unfinished_flows() {
    let dir = folder();
    let mut result = run(&SCHEMES[2], 1, 5000, false);
    add_measurements(&mut result);
    result.flows.iter_mut().take(7).for_each(unfinish);
    result.time_limit_struck = true;
    common::write_run(&dir, &result, &meta("hopper", 1), Formats::BOTH);
    let page = page_of(&dir);
    assert_self_contained(&page);
    assert!(page.contains("4993 of 5000 flows finished"));
    assert!(page.contains("7 of 5000 measured flows did not finish"));
    assert!(page.contains("The time limit ended the run"));
    assert!(page.contains("id=\"queue_occupancy\"") && !page.contains("id=\"fct_ratio\""));
    // Without `[measure]` the occupancy figure and its files are removed.
    common::write_run(&dir, &run(&SCHEMES[2], 1, 500, false), &meta("hopper", 1), Formats::BOTH);
    let page = page_of(&dir);
    assert!(!page.contains("id=\"queue_occupancy\""));
    assert!(!dir.join("figures/queue_occupancy.svg").exists());
}

#[test]
fn page_without_figures_is_written() {
    let dir = folder();
    common::write_run(&dir, &result(vec![]), &meta("prime", 1), Formats::BOTH);
    let page = page_of(&dir);
    assert!(page.contains("No finished flow is in the statistics."));
    assert!(!page.contains("<figure"));
}

#[test]
fn one_seed_and_one_size_are_stated() {
    let dir = folder();
    let runs = SCHEMES[..2].iter().map(|scheme| (run(scheme, 1, 128, true), meta(scheme.name, 1)));
    common::write_compared(&dir, runs, "ecmp");
    let page = page_of(&dir);
    assert!(page.contains("max FCT over ideal (slowest flow)"));
    assert!(page.contains("one seed, CI n/a") && page.contains("Too few seeds to rank the schemes: one seed so far"));
    assert!(!page.contains("id=\"slowdown_by_size\""), "one size is no axis");
}

#[test]
fn names_cannot_break_the_page_or_the_drawings() {
    let dir = folder();
    let mut meta = meta("a<b>&\"c\"", 1);
    meta.scenario = "</style><script>alert(1)</script>".to_string();
    common::write_run(&dir, &run(&SCHEMES[0], 1, 300, false), &meta, Formats::BOTH);
    let page = page_of(&dir);
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("a&lt;b&gt;&amp;"));
}

#[test]
fn directory_without_results_is_user_error() {
    let dir = folder();
    let error = report(&dir).unwrap_err();
    assert!(matches!(error, ReportError::NoResults { .. }));
    assert!(error.to_string().contains("give the --out directory of run"));
}

#[test]
fn run_directories_stay_below_the_comparison() {
    let dir = Path::new("out");
    assert_eq!(crate::common::place(dir, "hf2t+letflow", 3), Path::new("out/runs/hf2t+letflow/seed3"));
    assert_eq!(crate::common::place(dir, "../../x", 1), Path::new("out/runs/_._.._x/seed1"));
}

/// Figures are in boxes that scroll on their own, printed pages put two side by side and break none.
#[test]
fn figures_scroll_on_a_phone_and_share_a_printed_sheet() {
    let dir = anabranch_testkit::folder();
    common::write_run(&dir, &run(&SCHEMES[0], 1, 400, false), &meta("ecmp", 1), Formats::BOTH);
    let page = std::fs::read_to_string(report(&dir).unwrap()).unwrap();
    let figures = page.matches("<figure class=\"card\"").count();
    assert!(figures > 0);
    assert_eq!(page.matches("<div class=\"scroll\"><svg").count(), figures);
    assert_eq!(page.matches("<div class=\"figures\">").count(), 1);
    let (_, print) = page.split_once("@media print {").unwrap();
    for rule in [
        ".figures { display: grid; grid-template-columns: 1fr 1fr;",
        ".card, .tile, tr, figure, .delayed { break-inside: avoid; }",
    ] {
        assert!(print.contains(rule), "no {rule:?}");
    }
    assert!(page.contains(".scroll { overflow-x: auto;"));
    // Outside of tables and figures nothing is wider than a phone.
    assert!(page.contains("@media screen and (max-width: 700px)"));
}
