//! Common layout of figures: title, subtitle, panels in a grid, legend on the right.

use super::{
    canvas::{Canvas, SUBTITLE, TITLE},
    model::{Figure, Rows, View},
    panel::{ABOVE, Axis, BELOW, BESIDE, Panel, legend, legend_width},
};
use crate::{dataset::Dataset, manifest::ColumnEntry};

/// Height of title and a subtitle of up to two lines.
const HEAD: f64 = 72.0;
const EDGE: f64 = 16.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) columns: usize,
    /// Width of a panel's plot area.
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Space to the left of each plot area.
    pub(crate) beside: f64,
    pub(crate) below: f64,
    pub(crate) panels: usize,
}

impl Grid {
    /// Returns a grid with two panels per row.
    pub(crate) fn pairs(panels: usize, height: f64) -> Self {
        let columns = panels.clamp(1, 2);
        let width = if columns == 1 { 560.0 } else { 346.0 };
        Grid { columns, width, height, beside: BESIDE, below: BELOW, panels }
    }
    /// Upper left corner of a panel's plot area.
    pub(crate) fn place(&self, panel: usize) -> (f64, f64) {
        let (row, column) = (panel / self.columns, panel % self.columns);
        let left = EDGE + self.beside + column as f64 * (self.width + self.beside + 12.0);
        (left, HEAD + ABOVE + row as f64 * (self.height + ABOVE + self.below + 6.0))
    }
    pub(crate) fn panel<'t>(&self, number: usize, x: Axis<'t>, y: Axis<'t>) -> Panel<'t> {
        let (left, top) = self.place(number);
        Panel { left, top, width: self.width, height: self.height, x, y }
    }
    pub(crate) fn right(&self) -> f64 {
        self.place(self.columns - 1).0 + self.width
    }
    fn bottom(&self) -> f64 {
        self.place(self.panels.max(1) - 1).1 + self.height + self.below
    }
}

#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) canvas: Canvas,
    title: String,
    subtitle: String,
}

impl Sheet {
    /// Leaves space for `names` on the right if there are several.
    pub(crate) fn new(title: &str, subtitle: &str, grid: &Grid, names: &[String]) -> Self {
        let side = if names.len() > 1 { legend_width(names.iter().map(String::as_str)) + 14.0 } else { 10.0 };
        let max_width = (grid.right() + side - EDGE).max(TITLE.width(title)).max(420.0);
        let lines = wrap(subtitle, max_width);
        let text = lines.iter().map(|line| SUBTITLE.width(line)).fold(TITLE.width(title), f64::max) + 2.0 * EDGE;
        let width = (grid.right() + side + EDGE).max(text);
        let height = grid.bottom().max(HEAD + ABOVE + 18.0 * names.len() as f64) + 6.0;
        let mut canvas = Canvas::new(width.round(), height.round());
        canvas.text((EDGE, 27.0), title, TITLE);
        for (line, y) in lines.iter().zip([46.0, 62.0]) {
            canvas.text((EDGE, y), line, SUBTITLE);
        }
        Sheet { canvas, title: title.to_string(), subtitle: subtitle.to_string() }
    }

    pub(crate) fn legend(&mut self, grid: &Grid, entries: &[(String, usize)]) {
        if entries.len() > 1 {
            legend(&mut self.canvas, grid.right() + 18.0, HEAD + ABOVE + 8.0, entries);
        }
    }

    pub(crate) fn sized(title: &str, subtitle: &str, (width, height): (f64, f64)) -> Self {
        let mut canvas = Canvas::new(width.round(), height.round());
        canvas.text((EDGE, 27.0), title, TITLE);
        canvas.text((EDGE, 46.0), subtitle, SUBTITLE);
        Sheet { canvas, title: title.to_string(), subtitle: subtitle.to_string() }
    }

    pub(crate) fn finish(
        self,
        name: &'static str,
        view: &View<'_>,
        columns: Vec<ColumnEntry>,
        rows: impl Into<Rows>,
    ) -> Figure {
        let workload = view.workload.map(|(_, name)| name.to_string());
        Figure { workload, ..self.figure(name, &view.data.provenance(), columns, rows) }
    }

    pub(crate) fn figure(
        mut self,
        name: &'static str,
        provenance: &str,
        columns: Vec<ColumnEntry>,
        rows: impl Into<Rows>,
    ) -> Figure {
        let hits = self.canvas.take_hits();
        let svg = self.canvas.into_svg(&self.title, &self.subtitle, provenance);
        let (title, caption, file) = (self.title, self.subtitle, name.to_string());
        Figure { name, file, workload: None, title, caption, svg, columns, rows: rows.into(), hits }
    }
}

/// Breaks `text` into at most two lines, the first at most `max_width` wide.
fn wrap(text: &str, max_width: f64) -> Vec<String> {
    let full = SUBTITLE.width(text);
    if full <= max_width {
        return vec![text.to_string()];
    }
    let breaks = text.match_indices(' ').map(|(at, _)| at).filter(|at| SUBTITLE.width(&text[..*at]) <= max_width);
    let at = breaks.max().unwrap_or(text.len());
    [text[..at].trim(), text[at..].trim()].into_iter().filter(|line| !line.is_empty()).map(str::to_string).collect()
}

pub(crate) fn names(data: &Dataset) -> Vec<String> {
    data.names()
}

pub(crate) fn column(name: &str, kind: &str, unit: &str, meaning: &str) -> ColumnEntry {
    ColumnEntry::new(name, kind, unit, meaning)
}

/// Returns `seed 1`, or `10 seeds` with `before` and `after` around it.
pub(crate) fn seeds(data: &Dataset, before: &str, after: &str) -> String {
    match data.seeds().as_slice() {
        [one] => format!("seed {one}"),
        many => format!("{before}{} seeds{after}", many.len()),
    }
}
