//! Figures for papers and slides.

use crate::{
    common,
    common::{SCHEMES, add_measurements, meta, run, unfinish},
};
use anabranch_outcome::RunRows;
use anabranch_report::{FigureStyle, report, report_styled};
use anabranch_results::{Manifest, RunMeta};
use anabranch_testkit::folder;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn write(dir: &Path, seeds: u64, change: impl Fn(&mut RunRows, &RunMeta)) {
    let mut runs = vec![];
    for scheme in &SCHEMES[..3] {
        for seed in 1..=seeds {
            let (mut rows, meta) = (run(scheme, seed, 2000, false), meta(scheme.name, seed));
            add_measurements(&mut rows);
            change(&mut rows, &meta);
            runs.push((rows, meta));
        }
    }
    common::write_compared(dir, runs, "ecmp");
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|found| found == extension));
    found.sort();
    found
}

/// The number behind `before` in `text`.
fn number(text: &str, before: &str) -> f64 {
    let (_, rest) =
        text.split_once(before).unwrap_or_else(|| panic!("no {before} in {}", &text[..text.len().min(400)]));
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().unwrap()
}

/// `\the\columnwidth` and `\the\textwidth` of `acmart` (sigconf) and `IEEEtran`; a point of TeX is 1/72.27 inch.
const WIDTHS: [(&str, f64); 4] =
    [("acm-column", 241.14749), ("acm-text", 506.295), ("ieee-column", 252.0), ("ieee-text", 516.0)];

#[test]
fn figures_of_a_paper_fit_its_columns() {
    let dir = folder();
    write(&dir, 4, |_, _| {});
    let drawn = report_styled(&dir, FigureStyle::Paper, false).unwrap();
    assert_eq!(drawn.folders.len(), WIDTHS.len());
    assert!(drawn.figures >= 5, "{drawn:?}");
    for (folder, points) in WIDTHS {
        let (folder, inches) = (dir.join("figures").join(folder), points / 72.27);
        for extension in ["svg", "pdf", "txt"] {
            assert_eq!(files(&folder, extension).len(), drawn.figures, "{} {extension}", folder.display());
        }
        for path in files(&folder, "svg") {
            let svg = fs::read_to_string(&path).unwrap();
            assert!((number(&svg, "width=\"") / 72.0 - inches).abs() < 0.01, "{}", path.display());
            // Text in embedded fonts, of 8 to 9 points: 11 and 12 pixels.
            assert!(svg.contains("@font-face") && svg.contains("<text"), "{}", path.display());
            let sizes: BTreeSet<&str> =
                svg.split("font-size=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(sizes.iter().all(|size| ["11", "12"].contains(size)), "{}: {sizes:?}", path.display());
            // The title is in the description alone.
            let title = svg.split("aria-label=\"").nth(1).unwrap().split('"').next().unwrap();
            assert!(!svg.contains(&format!(">{title}</text>")), "{}: {title}", path.display());
            // A column of a paper has 9 inches.
            let height = number(&svg, "height=\"") / 72.0;
            assert!(height < 9.0, "{}: {height} inches", path.display());
        }
        for path in files(&folder, "pdf") {
            let pdf = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!((number(&pdf, "/MediaBox [0 0 ") / 72.0 - inches).abs() < 0.01, "{}", path.display());
        }
        for path in files(&folder, "txt") {
            let text = fs::read_to_string(&path).unwrap().replace('\n', " ");
            for words in [
                "n = 4 seeds (1, 2, 3, 4).",
                "Main metric (slowdown, 99th percentile): tests against ecmp:",
                "Source: ",
            ] {
                assert!(text.contains(words), "{}: {words}: {text}", path.display());
            }
            // What it does not show, it does not explain; which panels are side by side follows from the width.
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let explains = ["slowdown_by_size", "fct_ratio"].contains(&stem.as_str());
            assert_eq!(text.contains("Intervals are 95 % confidence intervals"), explains, "{stem}: {text}");
            assert!(!text.contains("left:") && !text.contains("right:"), "{stem}: {text}");
        }
    }
    // Schemes differ without colour: each legend has samples with markers or dashes.
    let svg = fs::read_to_string(dir.join("figures/acm-column/slowdown_by_size.svg")).unwrap();
    assert!(svg.contains("stroke-dasharray") && svg.contains("<circle"));
}

#[test]
fn slides_have_large_letters() {
    let dir = folder();
    write(&dir, 3, |_, _| {});
    let drawn = report_styled(&dir, FigureStyle::Slides, false).unwrap();
    assert_eq!(drawn.folders, [dir.join("figures/slide")]);
    for path in files(&drawn.folders[0], "svg") {
        let svg = fs::read_to_string(&path).unwrap();
        // 12.2 inches for 585.6 pixels, so 11 pixels are 16.5 points.
        let (width, pixels) = (number(&svg, "width=\""), number(&svg, "viewBox=\"0 0 "));
        assert!((width / 72.0 - 12.2).abs() < 0.01 && (11.0 * width / pixels - 16.5).abs() < 0.01, "{width} {pixels}");
    }
    assert_eq!(files(&drawn.folders[0], "png").len(), drawn.figures);
}

#[test]
fn figures_of_a_style_stay_until_results_change() {
    let dir = folder();
    write(&dir, 3, |_, _| {});
    report_styled(&dir, FigureStyle::Paper, false).unwrap();
    report_styled(&dir, FigureStyle::Slides, false).unwrap();
    report(&dir).unwrap();
    let listed = |name: &str| Manifest::read(&dir).unwrap().unwrap().file(name).is_some();
    for name in ["figures/acm-column/fct_ratio.pdf", "figures/slide/fct_ratio.svg"] {
        assert!(listed(name) && dir.join(name).exists(), "{name}");
    }
    write(&dir, 4, |_, _| {});
    for name in ["figures/acm-column/fct_ratio.pdf", "figures/slide/fct_ratio.svg"] {
        assert!(!listed(name) && !dir.join(name).exists(), "{name} shows other results");
    }
}

#[test]
fn captions_state_what_is_not_compared() {
    let dir = folder();
    write(&dir, 3, |rows, meta| {
        if meta.scheme == "hopper" && meta.seed == 2 {
            unfinish(&mut rows.flows[0]);
        }
    });
    report_styled(&dir, FigureStyle::Paper, false).unwrap();
    let text = fs::read_to_string(dir.join("figures/ieee-text/slowdown_cdf.txt")).unwrap().replace('\n', " ");
    assert!(text.contains("hopper is not compared: 1 measured flow did not finish"), "{text}");
    let dir = folder();
    write(&dir, 1, |_, _| {});
    report_styled(&dir, FigureStyle::Paper, false).unwrap();
    let text = fs::read_to_string(dir.join("figures/ieee-text/slowdown_cdf.txt")).unwrap().replace('\n', " ");
    assert!(text.contains("n = 1 (seed 1), so there is no interval and no test"), "{text}");
    assert!(!text.contains("95 %"), "{text}");
}
