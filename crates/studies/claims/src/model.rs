//! Studies and figures of a claim file, typed.

use super::Metric;
use anabranch_report::{Estimate, SweepAxis, median};
use anabranch_scenario::tree::Place;

/// Values that dimensions may have, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub Vec<(String, Vec<String>)>);

impl Filter {
    /// The values of a dimension; `None` where it is not named.
    pub fn values(&self, dimension: &str) -> Option<&[String]> {
        self.0.iter().find(|(name, _)| name == dimension).map(|(_, values)| values.as_slice())
    }

    /// With the dimensions of `other`, which replace those of the same name.
    #[must_use]
    pub fn with(&self, other: &Filter) -> Filter {
        let mut all: Vec<_> = self.0.iter().filter(|(name, _)| other.values(name).is_none()).cloned().collect();
        all.extend(other.0.iter().cloned());
        Filter(all)
    }
}

/// How large the studies are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Every claim in minutes, at sizes that each study states.
    #[default]
    Quick,
    /// The papers' sizes.
    Full,
}

impl Scale {
    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Full => "full",
        }
    }
}

/// What the quick scale changes of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quick {
    /// Changes on top of the study's.
    pub set: Vec<String>,
    /// Keys and values instead of the study's.
    pub over: Option<Vec<SweepAxis>>,
    /// Load balancers instead of the study's.
    pub schemes: Option<Vec<String>>,
    /// Seeds instead of the study's.
    pub seeds: Option<u64>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its name within the paper.
    pub id: String,
    /// What panels and tables call it.
    pub label: String,
    /// A ready-made scenario, or a file.
    pub scenario: String,
    /// Changes, as `--set`.
    pub set: Vec<String>,
    /// The keys that are swept, and their values.
    pub over: Vec<SweepAxis>,
    /// Whether values go together, instead of each with each.
    pub zip: bool,
    /// The load balancers; empty: those of the scenario's `[compare]`.
    pub schemes: Vec<String>,
    /// Variants, as `--variant`.
    pub variants: Vec<String>,
    /// Seeds; `None`: those of the scenario's `[compare]`.
    pub seeds: Option<u64>,
    /// Edges between bins of flow sizes, in bytes, ascending, with the names that the bins have.
    pub edges: Vec<(u64, String)>,
    /// The quick scale; `None` where the study is too large for it.
    pub quick: Option<Quick>,
    /// Where it stands.
    pub place: Place,
}

impl Study {
    /// Names of the bins of flow sizes, without `all`.
    pub fn bins(&self) -> Vec<String> {
        let Some((_, first)) = self.edges.first() else { return vec![] };
        let between = self.edges.windows(2).map(|pair| format!("{}-{}", pair[0].1, pair[1].1));
        let last = &self.edges[self.edges.len() - 1].1;
        [format!("<{first}")].into_iter().chain(between).chain([format!(">={last}")]).collect()
    }

    /// The sizes of a bin, from the first to below the second.
    pub fn bounds(&self, bin: &str) -> Option<(u64, u64)> {
        let at = self.bins().iter().position(|name| name == bin)?;
        let edge = |at: usize| self.edges.get(at).map(|(bytes, _)| *bytes);
        Some((if at == 0 { 0 } else { edge(at - 1)? }, edge(at).unwrap_or(u64::MAX)))
    }
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Groups of bars.
    Bars,
    /// A line per series over numbers.
    Lines,
    /// Shares of flows up to a value.
    Cdf,
}

/// A number of the paper's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Which.
    pub at: Filter,
    /// The number.
    pub value: f64,
}

/// How the paper draws what was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What the command and the docs call it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The studies it is drawn from.
    pub studies: Vec<String>,
    /// Bars, lines or a distribution.
    pub kind: FigureKind,
    /// What is drawn.
    pub metrics: Vec<Metric>,
    /// Dimension along x.
    pub x: String,
    /// Dimension of colours.
    pub series: String,
    /// Dimension of panels.
    pub panel: Option<String>,
    /// What is drawn of the studies.
    pub filter: Filter,
    /// Title of the x axis.
    pub x_title: Option<String>,
    /// Title of the y axis.
    pub y_title: Option<String>,
    /// Whether y is logarithmic.
    pub log: bool,
    /// What of the seeds is drawn.
    pub across: Across,
    /// The scheme whose value everything is divided by.
    pub relative_to: Option<String>,
    /// Whether the rows of the table are the values of x, instead of the series.
    pub rows_are_x: bool,
    /// Significant digits in the table.
    pub digits: usize,
    /// The paper's numbers.
    pub published: Vec<Target>,
    /// What to know of it.
    pub note: Option<String>,
    /// Where it stands.
    pub place: Place,
}

impl Figure {
    /// Dimensions that the figure tells apart.
    pub(crate) fn dimensions(&self) -> Vec<&str> {
        [&self.x, &self.series].into_iter().chain(&self.panel).map(String::as_str).collect()
    }
}

/// What of several seeds counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Across {
    /// The mean.
    #[default]
    Mean,
    /// The median, where one seed in several is far off.
    Median,
}

impl Across {
    /// The mean or median of a value per seed, with its 95 % interval; `None` where there are no values.
    pub(crate) fn centre(self, values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
        match self {
            Across::Median => median(values),
            Across::Mean if values.iter().any(|value| value.is_infinite()) => Some((f64::INFINITY, None)),
            Across::Mean => Estimate::of(values).map(|estimate| (estimate.mean, estimate.interval())),
        }
    }
}
