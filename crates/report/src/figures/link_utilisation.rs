//! Utilisation of links, busiest first, per tier and direction: how evenly a scheme spreads the load.

use super::{
    Figure,
    panel::{Axis, Panel},
    scale::{Scale, percent},
    seeds,
    sheet::{Grid, Sheet, column, names},
};
use crate::dataset::{Dataset, SchemeRuns};

/// Name of its files.
pub(crate) const NAME: &str = "link_utilisation";

/// Panels drawn at most; further tiers are in the rows.
const PANELS: usize = 6;

/// Utilisation of the links of `group`, descending, place by place the mean over seeds.
fn descending(scheme: &SchemeRuns, group: &str) -> Vec<f64> {
    let mut sums: Vec<f64> = vec![];
    for run in &scheme.runs {
        let mut of_run: Vec<f64> = run.links.iter().filter(|l| l.group() == group).map(|l| l.utilisation).collect();
        of_run.sort_unstable_by(|a, b| b.total_cmp(a));
        sums.resize(sums.len().max(of_run.len()), 0.0);
        for (sum, utilisation) in sums.iter_mut().zip(of_run) {
            *sum += utilisation;
        }
    }
    sums.iter().map(|sum| sum / scheme.runs.len() as f64).collect()
}

/// At most about this many points of a curve are drawn.
const POINTS: usize = 250;

/// `None` where there are no links.
pub(crate) fn draw(data: &Dataset) -> Option<Figure> {
    let all = data.link_groups();
    // How switch-to-host links are used is the traffic's matter, not the load balancer's, where there are others.
    let between: Vec<&String> = all.iter().filter(|group| *group != "switch to host").collect();
    let groups: Vec<&String> = if between.is_empty() { all.iter().collect() } else { between };
    if groups.is_empty() {
        return None;
    }
    let names = names(data);
    let mut rows = vec![];
    let curves: Vec<Vec<Vec<f64>>> = groups
        .iter()
        .map(|group| data.schemes.iter().map(|scheme| descending(scheme, group)).collect::<Vec<_>>())
        .collect();
    for (group, curves) in groups.iter().zip(&curves) {
        for (name, curve) in names.iter().zip(curves) {
            let row = |(i, u): (usize, &f64)| vec![group.to_string(), name.clone(), (i + 1).to_string(), u.to_string()];
            rows.extend(curve.iter().enumerate().map(row));
        }
    }
    let drawn = groups.len().min(PANELS);
    let grid = Grid::pairs(drawn, if drawn > 2 { 220.0 } else { 280.0 });
    let subtitle = format!(
        "Links of a tier sorted by bytes sent over rate times time, {}; a flat line is an even load",
        seeds(data, "mean over ", "")
    );
    let mut sheet = Sheet::new("Link utilisation, busiest link first", &subtitle, &grid, &names);
    for (panel, (group, curves)) in groups.iter().zip(&curves).take(drawn).enumerate() {
        let links = curves.iter().map(Vec::len).max().unwrap_or(0);
        let largest = curves.iter().flatten().copied().fold(0.0, f64::max);
        let (left, top) = grid.place(panel);
        let area = Panel {
            left,
            top,
            width: grid.width,
            height: grid.height,
            x: Axis { scale: Scale::exact(0.0, 1.0), title: "Links, busiest first", format: percent },
            y: Axis { scale: Scale::linear(0.0, largest.max(0.01)), title: "Utilisation", format: percent },
        };
        area.frame(&mut sheet.canvas, &format!("{} ({links} links)", capital(group)));
        for (series, curve) in curves.iter().enumerate() {
            let last = curve.len().saturating_sub(1).max(1) as f64;
            let every = curve.len().div_ceil(POINTS).max(1);
            let points: Vec<(f64, f64)> = curve
                .iter()
                .enumerate()
                .filter(|(i, _)| i % every == 0 || i + 1 == curve.len())
                .map(|(i, utilisation)| (i as f64 / last, *utilisation))
                .collect();
            area.line(&mut sheet.canvas, &points, series, curve.len() <= 12);
        }
    }
    sheet.legend(&grid, &names.iter().cloned().zip(0..).collect::<Vec<_>>());
    let columns = vec![
        column("links", "text", "", "tier and direction"),
        column("scheme", "text", "", "load balancer"),
        column("rank", "integer", "", "1 is the busiest link"),
        column("utilisation", "real", "", "bytes sent over rate times time, mean over seeds of the links of this rank"),
    ];
    Some(sheet.finish(NAME, data, columns, rows))
}

/// The first letter large.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
