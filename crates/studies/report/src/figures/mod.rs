//! Figures, each in files of its own: SVG, PDF, PNG and the rows that it shows.

mod canvas;
mod caption;
mod distribution;
mod fct_ratio;
mod files;
mod job_completion;
mod layout;
mod link_heat;
mod link_utilisation;
mod model;
mod over_time;
mod palette;
mod panel;
mod pdf;
mod png;
mod queue_depth;
mod queue_occupancy;
mod scale;
mod series_flows;
mod series_links;
mod series_scheme;
mod sheet;
mod slowdown_by_size;
mod slowdown_cdf;

pub(crate) use canvas::escape;
pub use layout::FigureStyle;
pub use model::Figure;

pub(crate) use canvas::{Anchor, Canvas, LABEL, PANEL, SUBTITLE, TICK, TITLE};
pub(crate) use caption::Caption;
pub(crate) use files::{BOLD, FigureFiles, REGULAR, stage_style};
pub(crate) use layout::{Layout, PAGE as PAGE_LAYOUT, style_folder};
pub(crate) use model::{Draw, FigureKind, Rows, View};
pub use palette::{LineStyle, line_styles};
pub(crate) use palette::{Paint, colours, heat, with_series};
pub(crate) use panel::{Axis, BELOW, BESIDE, Panel, banded, horizontal, labels, legend, legend_width, vertical};
pub(crate) use scale::{Format, Scale, percent, places, plain};
pub(crate) use sheet::{Grid, Key, Panels, Sheet, column, names, seeds};

use crate::{Comparison, Dataset};
use std::collections::{BTreeMap, BTreeSet};

/// Every figure: its name, whether there is one per workload, and the table and columns that it requires.
const FIGURES: &[FigureKind] = &[
    figure("fct_ratio", true, "flows", "", fct_ratio::draw),
    figure("slowdown_by_size", true, "flows", "size_bytes slowdown measured", slowdown_by_size::draw),
    figure("slowdown_cdf", true, "flows", "size_bytes slowdown measured", slowdown_cdf::draw),
    figure("job_completion", true, "jobs", "workload completion_ps", job_completion::draw),
    figure("link_heat", false, "links", "from to tier direction utilisation", link_heat::draw),
    figure("link_utilisation", false, "links", "from to tier direction utilisation", link_utilisation::draw),
    figure(
        "queue_depth",
        false,
        "links",
        "tier direction queue_mean_bytes queue_p99_bytes queue_max_bytes",
        queue_depth::draw,
    ),
    figure("queue_occupancy", false, "occupancy", "tier direction queue_packets time_ps", queue_occupancy::draw),
    figure("series_links", false, "series", "from to time_ps queue_bytes sent_bytes", series_links::draw),
    figure("series_flows", false, "series_flows", "flow_id time_ps received_bytes in_flight_bytes", series_flows::draw),
    figure("series_scheme", false, "series_scheme", "time_ps open_flows", series_scheme::draw),
];

const fn figure(
    name: &'static str,
    of_flows: bool,
    table: &'static str,
    columns: &'static str,
    draw: Draw,
) -> FigureKind {
    FigureKind { name, draw, of_flows, table, columns }
}

#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) figures: Vec<Figure>,
    pub(crate) skipped: Vec<String>,
}

/// Maximum number of workloads that have figures; each has a picture of a quarter of a megabyte and more.
const MAX_DRAWN: usize = 16;

/// Draws the figures of flows of the first workloads (with `with_all` also over all together), then those of the network.
pub(crate) fn draw_all(data: &Dataset, comparison: Option<&Comparison>, with_all: bool, layout: Layout) -> Drawn {
    let mut drawn = Drawn { figures: vec![], skipped: vec![] };
    let mut measured = data.measured_workloads();
    if measured.len() > MAX_DRAWN {
        let (all, first) = (measured.len(), &measured[MAX_DRAWN].1);
        drawn.skipped.push(format!("figures of {} of {all} workloads, from {first} on", all - MAX_DRAWN));
        measured.truncate(MAX_DRAWN);
    }
    let mut views: Vec<Option<(u16, &str)>> = match measured.as_slice() {
        [] | [_] => vec![None],
        several => several.iter().map(|(number, name)| Some((*number, name.as_str()))).collect(),
    };
    if with_all && measured.len() > 1 {
        views.push(None);
    }
    let parts = file_parts(&views);
    for kind in FIGURES {
        let workload = (kind.of_flows && measured.len() > 1).then_some("workload");
        let lacks = kind.columns.split_whitespace().chain(workload).filter(|column| data.lacks(kind.table, column));
        let lacks: Vec<&str> = lacks.collect();
        if !lacks.is_empty() {
            drawn.skipped.push(format!(
                "`{}`: the rows of `{}` have no values of {}",
                kind.name,
                kind.table,
                quoted(&lacks)
            ));
            continue;
        }
        for workload in if kind.of_flows { views.as_slice() } else { &[None] } {
            match (kind.draw)(&View { name: kind.name, data, comparison, workload: *workload, layout }) {
                Ok(figure) => drawn.figures.extend(figure.map(|figure| match workload {
                    Some((number, _)) => Figure { file: format!("{}-{}", figure.name, parts[number]), ..figure },
                    None => figure,
                })),
                Err(reason) => {
                    let of = workload.map_or(String::new(), |(_, name)| format!(" of {name}"));
                    drawn.skipped.push(format!("`{}`{of}: {reason}", kind.name));
                }
            }
        }
    }
    drawn
}

/// Maximum bytes of the part of a file name that identifies the workload.
const MAX_PART: usize = 80;

/// Returns that part by number of the workload: letters and digits of any script, the rest as `_`. A suffix `-2`, `-3`
/// and so on distinguishes equal parts.
fn file_parts(views: &[Option<(u16, &str)>]) -> BTreeMap<u16, String> {
    let safe = |c: char| if c.is_alphanumeric() || "+-_.".contains(c) { c } else { '_' };
    let (mut parts, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for &(number, name) in views.iter().flatten() {
        let mut part: String = name.chars().map(safe).collect();
        while part.len() > MAX_PART {
            part.pop();
        }
        // Some file systems do not distinguish upper and lower case.
        let numbered = |n: u32| if n == 1 { part.clone() } else { format!("{part}-{n}") };
        let free = (1..).map(numbered).find(|part| taken.insert(part.to_lowercase()));
        parts.extend(free.map(|part| (number, part)));
    }
    parts
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_figure_is_known_to_results() {
        let names: Vec<&str> = super::FIGURES.iter().map(|kind| kind.name).collect();
        assert_eq!(names, anabranch_results::names::FIGURES);
    }
}
