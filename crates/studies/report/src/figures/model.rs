//! What a figure is, and what it is drawn from.

use super::canvas::Hit;
use crate::{
    comparison::{ALL, Comparison},
    dataset::{Dataset, FlowPoint, RunRows},
    manifest::{ColumnEntry, FileEntry},
    rows,
};

/// A figure and the rows it shows.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What kind of figure it is.
    pub name: &'static str,
    /// Name of its files, without the extension.
    pub file: String,
    /// The workload it is about, where there are several.
    pub workload: Option<String>,
    /// What it shows.
    pub title: String,
    /// What a reader should know of it.
    pub caption: String,
    /// The drawing.
    pub svg: String,
    /// Columns of the rows it shows.
    pub columns: Vec<ColumnEntry>,
    /// The rows it shows.
    pub rows: Vec<Vec<String>>,
    /// Points that the page tells about.
    pub(crate) hits: Vec<Hit>,
}

impl Figure {
    /// The rows as CSV.
    pub fn to_csv(&self) -> String {
        rows::to_csv(&self.columns, &self.rows)
    }

    /// The entries of its files.
    pub(crate) fn entries(&self) -> impl Iterator<Item = FileEntry> {
        [("svg", vec![]), ("pdf", vec![]), ("png", vec![]), ("csv", self.columns.clone())].into_iter().map(
            |(extension, columns)| FileEntry::new(format!("figures/{}.{extension}", self.file), &self.title, columns),
        )
    }
}

/// What a figure is drawn from: the rows, and which workload it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'d> {
    pub(crate) data: &'d Dataset,
    pub(crate) comparison: Option<&'d Comparison>,
    /// Number and name of the workload; `None`: all that count.
    pub(crate) workload: Option<(u16, &'d str)>,
}

impl View<'_> {
    /// The flows of a run that the figure is about.
    pub(crate) fn flows<'r>(&self, run: &'r RunRows) -> impl Iterator<Item = &'r FlowPoint> + use<'r> {
        let workload = self.workload.map(|(number, _)| number);
        run.flows.iter().filter(move |flow| workload.is_none_or(|number| flow.workload == number))
    }
    /// Its name in the rows of the comparison.
    pub(crate) fn key(&self) -> &str {
        self.workload.map_or(ALL, |(_, name)| name)
    }
    /// `title`, with the workload's name where there are several.
    pub(crate) fn titled(&self, title: &str) -> String {
        self.workload.map_or_else(|| title.to_string(), |(_, name)| format!("{title} · {name}"))
    }
}

/// Draws a figure; `Ok(None)` where the data has nothing to show for it, an error with the reason where it is left out
/// although one would look for it.
type Draw = fn(&View<'_>) -> Result<Option<Figure>, String>;

/// A kind of figure.
pub(crate) struct Kind {
    /// Name of its files.
    pub(crate) name: &'static str,
    pub(crate) draw: Draw,
    /// Whether there is one per workload.
    pub(crate) of_flows: bool,
    /// Table and columns it is drawn from.
    pub(crate) needs: (&'static str, &'static [&'static str]),
}
