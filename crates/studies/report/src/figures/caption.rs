//! Text for the caption of a figure in a paper or on a slide: what the page states around it.

use super::{Figure, Layout};
use crate::{Comparison, Dataset, LETTERS, Metric, wording};
use anabranch_results::{capital, list};
use std::collections::BTreeSet;

/// Sentences that belong to every figure of the same results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caption {
    /// Number of seeds.
    number: String,
    /// How the main metric was tested.
    tests: Vec<String>,
    /// Schemes that are not compared, and seeds that are missing.
    omissions: Vec<String>,
    source: String,
}

/// Returns what `n` is.
fn number(seeds: &[u64]) -> String {
    let all: Vec<String> = seeds.iter().map(u64::to_string).collect();
    match seeds {
        [seed] => format!("n = 1 (seed {seed}), so there is no interval and no test"),
        _ => format!("n = {} seeds ({})", seeds.len(), all.join(", ")),
    }
}

const INTERVALS: &str = "Intervals are 95 % confidence intervals of the mean over seeds (Student's t; on a log scale above \
                         the least possible value, 1 for slowdowns and 0 for counts)";

impl Caption {
    pub(crate) fn new(seeds: &[u64], tests: Option<String>, omissions: Vec<String>, source: String) -> Self {
        Caption { number: number(seeds), tests: tests.into_iter().collect(), omissions, source }
    }

    /// Returns those of a run or a comparison.
    pub(crate) fn of(data: &Dataset, comparison: Option<&Comparison>) -> Self {
        let (Some(comparison), source) = (comparison, source(&data.provenance())) else {
            return Caption::new(&data.seeds(), None, vec![], source(&data.provenance()));
        };
        let mut omissions = wording::censored_lines(comparison);
        omissions.extend(comparison.missing_lines());
        omissions.extend(comparison.machine_bound_line());
        let metrics: BTreeSet<&str> =
            comparison.shown(false).into_iter().map(|workload| comparison.main_metric_of(workload)).collect();
        let titles = metrics.into_iter().filter_map(Metric::named).map(|metric| metric.title).collect();
        let tests = wording::tests_line(comparison).map(|tests| format!("Main metric ({}): {tests}", list(titles)));
        let mut caption = Caption::new(&comparison.compared_seeds, tests, omissions, source);
        caption.tests.extend(wording::sequential_line(comparison).map(|line| capital(&line)));
        caption
    }

    /// Returns the whole caption as sentences.
    pub(crate) fn text(&self, figure: &Figure) -> String {
        let mut own = vec![figure.title.clone(), figure.caption.clone(), self.number.clone()];
        own.extend(figure.caption.contains("confidence interval").then(|| INTERVALS.to_string()));
        own.extend(figure.caption.contains("share a letter").then(|| format!("Letters: {LETTERS}")));
        let sentences = own.iter().chain(&self.tests).chain(&self.omissions).chain([&self.source]);
        let ended = |text: &String| {
            let text = text.trim();
            if text.is_empty() || text.ends_with('.') { text.to_string() } else { format!("{text}.") }
        };
        let sentences: Vec<String> = sentences.map(ended).filter(|text| !text.is_empty()).collect();
        sentences.join(" ")
    }

    pub(crate) fn file(&self, figure: &Figure, layout: &Layout) -> String {
        let text = textwrap::fill(&self.text(figure), 100);
        format!("{text}\n\nDrawn for {}. Numbers: ../{}.csv\n", layout.fits, figure.file)
    }
}

/// Fingerprints would outweigh a caption; the manifest has them.
fn source(provenance: &str) -> String {
    let text = provenance.split("; fingerprints").next().unwrap_or(provenance);
    format!("Source: {}", text.trim_end_matches('.'))
}
