//! Figures: each in a file of its own, as SVG, PNG and the rows it shows.

mod canvas;
mod fct_ratio;
mod link_heat;
mod link_utilisation;
mod palette;
mod panel;
mod png;
mod queue_depth;
mod queue_occupancy;
mod scale;
mod sheet;
mod slowdown_by_size;
mod slowdown_cdf;

pub(crate) use canvas::{Anchor, Canvas, LABEL, PANEL, SUBTITLE, TICK, TITLE};
pub(crate) use palette::{Paint, SERIES, dash, heat};
pub(crate) use panel::{BELOW, BESIDE, legend, legend_width};
pub(crate) use png::{BOLD, REGULAR, to_png};
pub(crate) use scale::{Scale, plain};
pub(crate) use sheet::column;

use crate::{dataset::Dataset, manifest::ColumnEntry};

/// A figure and the rows it shows.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of its files, without the extension.
    pub name: &'static str,
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
}

impl Figure {
    /// The rows as CSV.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(vec![]);
        // Writing to memory cannot fail.
        let _ = writer.write_record(self.columns.iter().map(|column| &column.name));
        for row in &self.rows {
            let _ = writer.write_record(row);
        }
        writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// Draws a figure; `None` where the data has nothing to show for it.
type Draw = fn(&Dataset) -> Option<Figure>;

/// Every figure there is: its name and how it is drawn.
const FIGURES: &[(&str, Draw)] = &[
    (fct_ratio::NAME, fct_ratio::draw),
    (slowdown_by_size::NAME, slowdown_by_size::draw),
    (slowdown_cdf::NAME, slowdown_cdf::draw),
    (link_heat::NAME, link_heat::draw),
    (link_utilisation::NAME, link_utilisation::draw),
    (queue_depth::NAME, queue_depth::draw),
    (queue_occupancy::NAME, queue_occupancy::draw),
];

/// Every figure that the data has something to show for.
pub(crate) fn draw_all(data: &Dataset) -> Vec<Figure> {
    FIGURES.iter().filter_map(|(_, draw)| draw(data)).collect()
}

/// Files that figures may have, drawn or not.
pub(crate) fn file_names() -> Vec<String> {
    let extensions = ["svg", "png", "csv"];
    FIGURES.iter().flat_map(|(name, _)| extensions.map(|extension| format!("{name}.{extension}"))).collect()
}

/// `seed 1`, or `10 seeds` after `before` and before `after`.
fn seeds(data: &Dataset, before: &str, after: &str) -> String {
    match data.seeds().as_slice() {
        [one] => format!("seed {one}"),
        many => format!("{before}{} seeds{after}", many.len()),
    }
}
