//! Studies and figures of a claim file, typed.

use super::Metric;
use anabranch_results::Axis;
use anabranch_scenario::Place;
use anabranch_statistics::{Estimate, median};

/// Values that dimensions may have, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub Vec<(String, Vec<String>)>);

impl Filter {
    /// Returns the values of a dimension; `None` if the filter does not name it.
    pub fn values(&self, dimension: &str) -> Option<&[String]> {
        self.0.iter().find(|(name, _)| name == dimension).map(|(_, values)| values.as_slice())
    }

    /// Returns this filter with the dimensions of `other`, which replace those of the same name.
    #[must_use]
    pub fn with(&self, other: &Filter) -> Filter {
        let mut all: Vec<_> = self.0.iter().filter(|(name, _)| other.values(name).is_none()).cloned().collect();
        all.extend(other.0.iter().cloned());
        Filter(all)
    }
}

anabranch_settings::worded! {
    /// Scale of the studies.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Scale {
        /// Sizes that each study specifies, for every claim within minutes.
        #[default]
        Quick = "quick",
        /// The papers' sizes.
        Full = "full",
    }
}

/// Changes of a study at the quick scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quick {
    /// Settings in addition to the study's.
    pub set: Vec<String>,
    /// Keys and values that replace the study's.
    pub over: Option<Vec<Axis>>,
    /// Load balancers that replace the study's.
    pub schemes: Option<Vec<String>>,
    /// Number of seeds that replaces the study's.
    pub seeds: Option<u64>,
}

/// Sweep of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Name, unique within the paper.
    pub id: String,
    /// Name in panels and tables.
    pub label: String,
    /// Scenario: a ready-made one, or a file.
    pub scenario: String,
    /// Settings, as with `--set`.
    pub set: Vec<String>,
    /// Swept keys and their values.
    pub over: Vec<Axis>,
    /// `true` if values are combined in order (zip), `false` for all combinations (grid).
    pub zip: bool,
    /// Load balancers; empty for those of the scenario's `[compare]`.
    pub schemes: Vec<String>,
    /// Variants, as with `--variant`.
    pub variants: Vec<String>,
    /// Number of seeds; `None` for that of the scenario's `[compare]`.
    pub seeds: Option<u64>,
    /// Edges between bins of flow sizes, in bytes, ascending, each with its text as written.
    pub edges: Vec<(u64, String)>,
    /// Limits of its flows that are computed, as the entries `bound` and `reference` of its rows.
    pub bound: StudyBound,
    /// Changes at the quick scale; `None` if the study is too large for it.
    pub quick: Option<Quick>,
    /// Position in the claim file.
    pub place: Place,
}

/// Limits of a study's flows that are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StudyBound {
    #[default]
    No,
    /// Bounds of links, and of the links of a leaf or group together: milliseconds.
    Links,
    /// With those by linear programs, and the reference, which is a run: minutes where thousands of pairs exchange traffic.
    All,
}

impl Study {
    /// Returns the names of the bins of flow sizes, without `all`.
    pub fn bins(&self) -> Vec<String> {
        let Some((_, first)) = self.edges.first() else { return vec![] };
        let between = self.edges.windows(2).map(|pair| format!("{}-{}", pair[0].1, pair[1].1));
        let last = &self.edges[self.edges.len() - 1].1;
        [format!("<{first}")].into_iter().chain(between).chain([format!(">={last}")]).collect()
    }

    /// Returns the sizes of a bin in bytes, from the first to below the second.
    pub fn bounds(&self, bin: &str) -> Option<(u64, u64)> {
        let at = self.bins().iter().position(|name| name == bin)?;
        let edge = |at: usize| self.edges.get(at).map(|(bytes, _)| *bytes);
        Some((if at == 0 { 0 } else { edge(at - 1)? }, edge(at).unwrap_or(u64::MAX)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    Bars,
    /// One line per series over numbers.
    Lines,
    /// Cumulative distribution over flows.
    Cdf,
    /// Bars, and a table of every scheme on every study with letters: those that share one do not differ significantly.
    Matrix,
}

/// Number in the paper's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Position in the figure, by dimension.
    pub at: Filter,
    pub value: f64,
}

/// Figure as the paper draws it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name in the command and the docs.
    pub id: String,
    pub title: String,
    /// Studies that the figure is drawn from.
    pub studies: Vec<String>,
    /// Bars, lines or a distribution.
    pub kind: FigureKind,
    pub metrics: Vec<Metric>,
    /// Dimension along x.
    pub x: String,
    /// Dimension of colours.
    pub series: String,
    /// Dimension of panels.
    pub panel: Option<String>,
    /// Part of the studies that is drawn.
    pub filter: Filter,
    pub x_title: Option<String>,
    pub y_title: Option<String>,
    /// `true` if y is logarithmic.
    pub log: bool,
    pub across: SeedStatistic,
    /// Scheme that all values are divided by.
    pub relative_to: Option<String>,
    /// `true` if the rows of the table are the values of x, `false` if they are the series.
    pub rows_are_x: bool,
    /// Significant digits in the table.
    pub digits: usize,
    /// Numbers in the paper's figure.
    pub published: Vec<Target>,
    /// Remark for the reader.
    pub note: Option<String>,
    /// Position in the claim file.
    pub place: Place,
}

impl Figure {
    pub(crate) fn dimensions(&self) -> Vec<&str> {
        [&self.x, &self.series].into_iter().chain(&self.panel).map(String::as_str).collect()
    }
}

/// Statistic over several seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeedStatistic {
    #[default]
    Mean,
    /// Median, for metrics with outliers among the seeds.
    Median,
}

impl SeedStatistic {
    /// Returns the mean or median of a value per seed, with its 95 % interval; `None` if there are no values.
    pub(crate) fn centre(self, values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
        match self {
            SeedStatistic::Median => median(values),
            SeedStatistic::Mean if values.iter().any(|value| value.is_infinite()) => Some((f64::INFINITY, None)),
            SeedStatistic::Mean => Estimate::of(values).map(|estimate| (estimate.mean, estimate.interval())),
        }
    }
}
