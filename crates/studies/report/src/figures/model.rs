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
    /// Name of the kind of figure.
    pub name: &'static str,
    /// Name of the files, without the extension.
    pub file: String,
    /// The workload that the figure shows, if there are several.
    pub workload: Option<String>,
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// The drawing as SVG.
    pub svg: String,
    /// Columns of the rows.
    pub columns: Vec<ColumnEntry>,
    /// Rows that the figure shows.
    pub rows: Vec<Vec<String>>,
    /// Points whose values the page shows.
    pub(crate) hits: Vec<Hit>,
}

impl Figure {
    /// Returns the rows as CSV.
    pub fn to_csv(&self) -> String {
        rows::to_csv(&self.columns, &self.rows)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = FileEntry> {
        [("svg", vec![]), ("pdf", vec![]), ("png", vec![]), ("csv", self.columns.clone())].into_iter().map(
            |(extension, columns)| FileEntry::new(format!("figures/{}.{extension}", self.file), &self.title, columns),
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'d> {
    pub(crate) data: &'d Dataset,
    pub(crate) comparison: Option<&'d Comparison>,
    /// Number and name of the workload; `None` for all measured workloads.
    pub(crate) workload: Option<(u16, &'d str)>,
}

impl View<'_> {
    pub(crate) fn flows<'r>(&self, run: &'r RunRows) -> impl Iterator<Item = &'r FlowPoint> + use<'r> {
        let workload = self.workload.map(|(number, _)| number);
        run.flows.iter().filter(move |flow| workload.is_none_or(|number| flow.workload == number))
    }
    /// Name of the workload in the rows of the comparison.
    pub(crate) fn key(&self) -> &str {
        self.workload.map_or(ALL, |(_, name)| name)
    }
    pub(crate) fn titled(&self, title: &str) -> String {
        self.workload.map_or_else(|| title.to_string(), |(_, name)| format!("{title} · {name}"))
    }
}

/// Returns `Ok(None)` if the data has nothing to show, and an error with the reason if an expected figure is omitted.
type Draw = fn(&View<'_>) -> Result<Option<Figure>, String>;

pub(crate) struct FigureKind {
    /// Name of the files.
    pub(crate) name: &'static str,
    pub(crate) draw: Draw,
    /// `true` if there is a figure per workload.
    pub(crate) of_flows: bool,
    /// Table and columns that the figure requires.
    pub(crate) needs: (&'static str, &'static [&'static str]),
}
