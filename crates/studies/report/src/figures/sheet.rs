//! Common layout of figures: title, subtitle, panels in a grid, legend on the right.

use super::{
    Axis, BELOW, BESIDE, Canvas, Figure, Layout, Panel, Rows, SUBTITLE, TITLE, View, legend, legend_width,
    panel::{ABOVE, legend_rows, rows_of_legend},
};
use crate::Dataset;
use anabranch_results::ColumnEntry;

/// Height of title and a subtitle of up to two lines.
const HEAD: f64 = 72.0;
const EDGE: f64 = 16.0;
/// The same without titles.
const BARE_EDGE: f64 = 3.0;
/// Width and height below which a plot shows nothing.
const MIN_PLOT: (f64, f64) = (80.0, 60.0);
/// Space between panels.
const GAP: f64 = 12.0;

/// Panels as the page has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    pub(crate) panels: usize,
    pub(crate) columns: usize,
    /// Width of a plot area on the page.
    pub(crate) width: f64,
    /// Least width of a plot area elsewhere.
    pub(crate) min_width: f64,
    pub(crate) height: f64,
    /// `true` if the height does not follow from the content.
    pub(crate) flexible: bool,
    /// Space to the left of each plot area.
    pub(crate) beside: f64,
    pub(crate) below: f64,
}

impl Panels {
    /// Returns plots, two per row.
    pub(crate) fn pairs(panels: usize, height: f64) -> Self {
        let columns = panels.clamp(1, 2);
        let width = if columns == 1 { 560.0 } else { 346.0 };
        Panels { panels, columns, width, min_width: 150.0, height, flexible: true, beside: BESIDE, below: BELOW }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) layout: Layout,
    pub(crate) columns: usize,
    /// Width of a panel's plot area.
    pub(crate) width: f64,
    pub(crate) height: f64,
    beside: f64,
    below: f64,
    pub(crate) panels: usize,
    /// Height above the panels: titles, or a legend.
    pub(crate) head: f64,
    edge: f64,
}

impl Grid {
    /// Arranges `panels`. `key`: what is above them where there is no title.
    pub(crate) fn new(layout: Layout, panels: &Panels, key: &Key<'_>) -> Self {
        let Panels { panels, columns, width, min_width, height, flexible, beside, below } = *panels;
        let Some(full) = layout.width() else {
            return Grid { layout, columns, width, height, beside, below, panels, head: HEAD, edge: EDGE };
        };
        let beside = if flexible { beside - 8.0 } else { beside };
        let below = below - 6.0;
        // Ticks of the last column reach beyond its plot area.
        let free = full - 2.0 * BARE_EDGE - 16.0;
        let width_of = |columns: usize| (free - (columns - 1) as f64 * GAP - columns as f64 * beside) / columns as f64;
        let head = match key {
            Key::Schemes(names) if names.len() > 1 => {
                rows_of_legend(names, full - 2.0 * BARE_EDGE).len() as f64 * LEGEND_ROW + 4.0
            }
            Key::Schemes(_) => 0.0,
            Key::Row => LEGEND_ROW + 6.0,
        };
        let around = ABOVE + below + 6.0;
        let height_of = |columns: usize| {
            (layout.height().unwrap_or(f64::INFINITY) - head) / panels.max(1).div_ceil(columns) as f64 - around
        };
        let mut columns = (1..=panels.clamp(1, 3)).rev().find(|columns| width_of(*columns) >= min_width).unwrap_or(1);
        while flexible && columns < panels && height_of(columns) < MIN_PLOT.1 && width_of(columns + 1) >= MIN_PLOT.0 {
            columns += 1;
        }
        let width = width_of(columns);
        let height = if flexible { layout.proportion(width).min(height_of(columns)).max(MIN_PLOT.1) } else { height };
        Grid { layout, columns, width, height, beside, below, panels, head, edge: BARE_EDGE }
    }
    /// Upper left corner of a panel's plot area.
    pub(crate) fn place(&self, panel: usize) -> (f64, f64) {
        let (row, column) = (panel / self.columns, panel % self.columns);
        let left = self.edge + self.beside + column as f64 * (self.width + self.beside + GAP);
        (left, self.head + ABOVE + row as f64 * (self.height + ABOVE + self.below + 6.0))
    }
    pub(crate) fn panel<'t>(&self, number: usize, x: Axis<'t>, y: Axis<'t>) -> Panel<'t> {
        let (left, top) = self.place(number);
        let title_at = if self.layout.is_page() { 48.0 } else { 40.0 };
        Panel { left, top, width: self.width, height: self.height, x, y, title_at }
    }
    pub(crate) fn right(&self) -> f64 {
        self.place(self.columns - 1).0 + self.width
    }
    pub(crate) fn bottom(&self) -> f64 {
        self.place(self.panels.max(1) - 1).1 + self.height + self.below
    }
}

/// Content above the panels of a drawing without title.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key<'n> {
    /// Lines and markers of these schemes.
    Schemes(&'n [String]),
    /// A row that the figure draws itself.
    Row,
}

/// Height of a row of a legend above the panels.
const LEGEND_ROW: f64 = 16.0;

#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) canvas: Canvas,
    layout: Layout,
    title: String,
    subtitle: String,
}

impl Sheet {
    /// Leaves space for `names` on the right if there are several.
    pub(crate) fn new(title: &str, subtitle: &str, grid: &Grid, names: &[String]) -> Self {
        let layout = grid.layout;
        if let Some(width) = layout.width() {
            let mut canvas = Canvas::new(width, grid.bottom() + 2.0);
            canvas.limit_letters();
            return Sheet { canvas, layout, title: title.to_string(), subtitle: subtitle.to_string() };
        }
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
        Sheet { canvas, layout, title: title.to_string(), subtitle: subtitle.to_string() }
    }

    /// Draws the legend: right of the panels, or above them where there is no title. `markers`: lines have markers.
    pub(crate) fn legend(&mut self, grid: &Grid, entries: &[(String, usize)], markers: bool) {
        if entries.len() < 2 {
            return;
        }
        match self.layout.width() {
            None => legend(&mut self.canvas, grid.right() + 18.0, HEAD + ABOVE + 8.0, entries),
            Some(width) => {
                let width = width - 2.0 * BARE_EDGE;
                legend_rows(&mut self.canvas, (BARE_EDGE, 8.0), width, LEGEND_ROW, entries, markers);
            }
        }
    }

    pub(crate) fn sized(title: &str, subtitle: &str, (width, height): (f64, f64)) -> Self {
        let mut canvas = Canvas::new(width.round(), height.round());
        canvas.text((EDGE, 27.0), title, TITLE);
        canvas.text((EDGE, 46.0), subtitle, SUBTITLE);
        Sheet { canvas, layout: super::layout::PAGE, title: title.to_string(), subtitle: subtitle.to_string() }
    }

    pub(crate) fn finish(self, view: &View<'_>, columns: Vec<ColumnEntry>, rows: impl Into<Rows>) -> Figure {
        let workload = view.workload.map(|(_, name)| name.to_string());
        Figure { workload, ..self.figure(view.name, &view.data.provenance(), columns, rows) }
    }

    pub(crate) fn figure(
        mut self,
        name: &'static str,
        provenance: &str,
        columns: Vec<ColumnEntry>,
        rows: impl Into<Rows>,
    ) -> Figure {
        let hits = self.canvas.take_hits();
        let svg = self.canvas.into_svg(&self.layout, &self.title, &self.subtitle, provenance);
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
