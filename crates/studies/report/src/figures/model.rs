use super::{Layout, canvas::Hit};
use crate::{ALL, Comparison, Dataset, GroupPoint, RunRows, SchemeRuns, dataset::FlowPoint};
use anabranch_results::{ColumnEntry, FileEntry, rows};

/// Rows of a figure as lines of CSV: those of a large fabric are millions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows(String);

impl Rows {
    pub(crate) fn push<'c>(&mut self, cells: impl IntoIterator<Item = &'c str>) {
        for (number, cell) in cells.into_iter().enumerate() {
            if number > 0 {
                self.0.push(',');
            }
            rows::push_cell(&mut self.0, cell);
        }
        self.0.push('\n');
    }
}

impl From<Vec<Vec<String>>> for Rows {
    fn from(given: Vec<Vec<String>>) -> Self {
        let mut rows = Rows::default();
        given.iter().for_each(|row| rows.push(row.iter().map(String::as_str)));
        rows
    }
}

#[derive(Clone, Debug)]
pub struct Figure {
    pub name: &'static str,
    /// Name of the files, without the extension.
    pub file: String,
    /// The workload that the figure shows, if there are several.
    pub workload: Option<String>,
    pub title: String,
    pub caption: String,
    pub svg: String,
    pub columns: Vec<ColumnEntry>,
    pub(crate) rows: Rows,
    /// Points whose values the page shows.
    pub(crate) hits: Vec<Hit>,
}

impl Figure {
    pub fn to_csv(&self) -> String {
        rows::to_csv(&self.columns, std::iter::empty::<[&str; 0]>()) + &self.rows.0
    }

    /// Returns the entries of its files in the manifest.
    pub(crate) fn entries(&self, layout: &Layout) -> Vec<FileEntry> {
        let meaning = match layout.fits {
            "" => self.title.clone(),
            fits => format!("{}, for {fits}", self.title),
        };
        let entry = |extension: &&str| {
            let columns = if *extension == "csv" { self.columns.clone() } else { vec![] };
            FileEntry::new(self.path(layout, extension), &meaning, columns)
        };
        layout.extensions.iter().map(entry).collect()
    }

    /// Returns the name of a file of the figure in the directory of the results.
    pub(crate) fn path(&self, layout: &Layout, extension: &str) -> String {
        match layout.folder {
            "" => format!("figures/{}.{extension}", self.file),
            folder => format!("figures/{folder}/{}.{extension}", self.file),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'d> {
    /// Name of the figure.
    pub(crate) name: &'static str,
    pub(crate) data: &'d Dataset,
    pub(crate) comparison: Option<&'d Comparison>,
    /// Number and name of the workload; `None` for all measured workloads.
    pub(crate) workload: Option<(u16, &'d str)>,
    pub(crate) layout: Layout,
}

impl View<'_> {
    pub(crate) fn flows<'r>(&self, run: &'r RunRows) -> impl Iterator<Item = &'r FlowPoint> + use<'r> {
        let workload = self.workload.map(|(number, _)| number);
        run.flows.iter().filter(move |flow| workload.is_none_or(|number| flow.workload == number))
    }
    /// Returns the number of flows that count and did not finish.
    pub(crate) fn unfinished(&self, run: &RunRows) -> usize {
        run.unfinished(self.workload.map(|(_, name)| name))
    }
    /// Returns the number of groups, complete or not.
    pub(crate) fn all_groups(&self, run: &RunRows) -> usize {
        let own = |name: &str| self.workload.is_none_or(|(_, workload)| workload == name);
        let workloads = run.summary.workloads.iter().filter(|(name, of)| of.measured && own(name));
        workloads.filter_map(|(_, of)| of.groups.as_ref()).map(|groups| groups.total as usize).sum()
    }
    /// Returns names for legends: `!` marks schemes whose flows did not all finish.
    pub(crate) fn marked_names(&self) -> Vec<String> {
        let unfinished = |scheme: &SchemeRuns| scheme.runs.iter().any(|run| self.unfinished(run) > 0);
        let name = |scheme: &SchemeRuns| format!("{}{}", scheme.name, if unfinished(scheme) { " !" } else { "" });
        self.data.schemes.iter().map(name).collect()
    }
    pub(crate) fn groups<'r>(&self, run: &'r RunRows) -> impl Iterator<Item = &'r GroupPoint> + use<'r> {
        let workload = self.workload.map(|(number, _)| number);
        run.groups.iter().filter(move |group| workload.is_none_or(|number| group.workload == number))
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
pub(crate) type Draw = fn(&View<'_>) -> Result<Option<Figure>, String>;

pub(crate) struct FigureKind {
    pub(crate) name: &'static str,
    pub(crate) draw: Draw,
    /// `true` if there is a figure per workload.
    pub(crate) of_flows: bool,
    /// Table that the figure requires.
    pub(crate) table: &'static str,
    /// Columns of it.
    pub(crate) columns: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_the_writer_of_other_tables_writes_them() {
        let rows = [
            vec!["a", "b, c", "say \"no\""],
            vec!["", "two\nlines", "1.5"],
            vec!["cr\r", "#x", "-3"],
            vec![" lead", "'s", "\u{2013}"],
        ];
        let mut own = Rows::default();
        rows.iter().for_each(|row| own.push(row.iter().copied()));
        let columns = ["x", "y", "z"].map(|name| ColumnEntry::new(name, "text", "", ""));
        assert_eq!(format!("x,y,z\n{}", own.0), anabranch_results::rows::to_csv(&columns, rows));
    }
}
