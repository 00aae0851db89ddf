//! Figures in the style of a paper, with our results beside the paper's values.

mod draw;
mod page;

pub use page::{ClaimPage, ClaimRow, write_claims};

use crate::{Figure, column};
use anabranch_results::cell;

#[derive(Clone, Debug, PartialEq)]
pub struct ClaimMark {
    /// Mean over seeds; infinite if flows never ended, `None` if the runs are missing.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean.
    pub interval: Option<(f64, f64)>,
    pub seeds: usize,
    /// The paper's value.
    pub published: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClaimPanel {
    /// Heading of the panel; empty if it is the only one.
    pub heading: String,
    /// Title of the y axis, with its unit.
    pub y_title: String,
    /// Per series and value of x.
    pub marks: Vec<Vec<Option<ClaimMark>>>,
}

/// Shape in which the marks are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimShape {
    /// Bars, a group per value of x.
    Bars,
    /// A line per series.
    Lines {
        /// The values of x where they are numbers; empty: equal steps.
        numbers: Vec<f64>,
    },
    /// The marks along x are quantiles of a distribution, which is drawn as a line per series.
    Cdf {
        /// Shares of the quantiles, ascending.
        shares: Vec<f64>,
    },
}

/// A figure in the style of a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimFigure {
    pub name: String,
    pub title: String,
    /// Scale and seeds of the results.
    pub subtitle: String,
    /// Bars, lines or a distribution.
    pub shape: ClaimShape,
    pub x_title: String,
    pub x: Vec<String>,
    pub series: Vec<String>,
    /// `true` if the y axis is logarithmic.
    pub logarithmic: bool,
    pub panels: Vec<ClaimPanel>,
    /// Version and commit of the results.
    pub provenance: String,
}

impl ClaimFigure {
    pub fn to_csv(&self) -> String {
        self.drawn().to_csv()
    }

    fn drawn(&self) -> Figure {
        let columns = vec![
            column("panel", "text", "", "panel"),
            column("x", "text", "", &self.x_title),
            column("series", "text", "", "load balancer or other series"),
            column("mean", "real", "", "mean over seeds; `inf`: unfinished flows"),
            column("ci95_low", "real", "", "lower end of its 95 % confidence interval"),
            column("ci95_high", "real", "", "upper end"),
            column("seeds", "integer", "", "seeds"),
            column("published", "real", "", "the paper's value"),
        ];
        let mut rows = vec![];
        for panel in &self.panels {
            let heading = if panel.heading.is_empty() { &panel.y_title } else { &panel.heading };
            for (marks, series) in panel.marks.iter().zip(&self.series) {
                for (mark, x) in marks.iter().zip(&self.x) {
                    let Some(mark) = mark else { continue };
                    rows.push(vec![
                        heading.clone(),
                        x.clone(),
                        series.clone(),
                        cell(mark.mean),
                        cell(mark.interval.map(|interval| interval.0)),
                        cell(mark.interval.map(|interval| interval.1)),
                        mark.seeds.to_string(),
                        cell(mark.published),
                    ]);
                }
            }
        }
        let figure = draw::draw(self).figure("claim", &self.provenance, columns, rows);
        Figure { file: self.name.clone(), caption: self.subtitle.clone(), ..figure }
    }
}
