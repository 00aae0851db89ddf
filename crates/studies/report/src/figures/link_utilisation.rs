//! Utilisation of links per tier and direction, busiest first: how evenly a scheme spreads the load.

use super::{Axis, Figure, Grid, Key, Paint, Panels, Rows, Scale, Sheet, View, column, names, percent, seeds};
use crate::{LinkPoint, SchemeRuns, dataset::Load};
use anabranch_results::capital;

/// Maximum number of panels drawn; further tiers are in the rows.
const PANELS: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rank {
    load: f64,
    /// Number of seeds in which a fault affected the link of this rank.
    failed: usize,
}

/// Load of the links of `group`, descending; each rank is the mean over seeds.
fn descending(scheme: &SchemeRuns, group: &str) -> Vec<Rank> {
    let mut sums: Vec<Rank> = vec![];
    for run in &scheme.runs {
        let links = run.links.iter().filter(|link| *link.group == *group);
        let mut of_run: Vec<(f64, bool)> = links.map(|link| (link.load, link.has_fault())).collect();
        // Of equally idle links, the faulty ones are last.
        of_run.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        sums.resize(sums.len().max(of_run.len()), Rank::default());
        for (sum, (load, failed)) in sums.iter_mut().zip(of_run) {
            sum.load += load / scheme.runs.len() as f64;
            sum.failed += usize::from(failed);
        }
    }
    sums
}

const POINTS: usize = 250;
/// Maximum number of links whose points have markers.
const MAX_MARKED: usize = 12;

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let all = data.link_groups();
    // The traffic alone determines the use of switch-to-host links, so they are omitted if there are others.
    let between: Vec<&String> = all.iter().filter(|group| *group != "switch to host").collect();
    let groups: Vec<&String> = if between.is_empty() { all.iter().collect() } else { between };
    if groups.is_empty() {
        return Ok(None);
    }
    let names = names(data);
    let mut rows = Rows::default();
    let curves: Vec<Vec<Vec<Rank>>> = groups
        .iter()
        .map(|group| data.schemes.iter().map(|scheme| descending(scheme, group)).collect::<Vec<_>>())
        .collect();
    for (group, curves) in groups.iter().zip(&curves) {
        for (name, curve) in names.iter().zip(curves) {
            for (i, rank) in curve.iter().enumerate() {
                let [place, load, failed] = [(i + 1).to_string(), rank.load.to_string(), rank.failed.to_string()];
                rows.push([group.as_str(), name, &place, &load, &failed]);
            }
        }
    }
    let drawn = groups.len().min(PANELS);
    let panels = Panels::pairs(drawn, if drawn > 2 { 220.0 } else { 280.0 });
    let grid = Grid::new(view.layout, &panels, &Key::Schemes(&names));
    let runs = data.schemes.iter().flat_map(|scheme| &scheme.runs);
    let faulty = LinkPoint::fault_words(
        runs.flat_map(|run| &run.links).filter(|link| groups.iter().any(|group| **group == *link.group)),
    );
    let subtitle = format!(
        "Links of a tier sorted by {}, {}; a flat line is an even load{}",
        data.load_words(),
        seeds(data, "mean over ", ""),
        faulty.map_or(String::new(), |faulty| format!("; a cross marks {faulty} links"))
    );
    let mut sheet = Sheet::new("Load of links, busiest link first", &subtitle, &grid, &names);
    sheet.canvas.show_schemes(&names);
    let largest = curves.iter().take(drawn).flatten().flatten().map(|rank| rank.load).fold(0.01, f64::max);
    let y = Scale::linear(0.0, largest);
    for (panel, (group, curves)) in groups.iter().zip(&curves).take(drawn).enumerate() {
        let links = curves.iter().map(Vec::len).max().unwrap_or(0);
        let x_axis = Axis { scale: Scale::exact(0.0, 1.0), title: "Links, busiest first", format: percent };
        let y_axis = Axis {
            scale: y,
            title: if data.load == Load::EvenSplit { "Bytes over even split" } else { "Utilisation" },
            format: data.load.tick(),
        };
        let area = grid.panel(panel, x_axis, y_axis);
        area.frame(&mut sheet.canvas, &format!("{} ({links} links)", capital(group)));
        for (series, curve) in curves.iter().enumerate() {
            let last = curve.len().saturating_sub(1).max(1) as f64;
            let every = curve.len().div_ceil(POINTS).max(1);
            let points: Vec<(f64, f64)> = curve
                .iter()
                .enumerate()
                .filter(|(i, _)| i % every == 0 || i + 1 == curve.len())
                .map(|(i, rank)| (i as f64 / last, rank.load))
                .collect();
            area.line(&mut sheet.canvas, &points, series, curve.len() <= MAX_MARKED);
            for (i, rank) in curve.iter().enumerate() {
                let place = area.at((i as f64 / last, rank.load));
                if rank.failed > 0 {
                    sheet.canvas.cross(place, 3.5, Paint::Series(series));
                }
                if i % every == 0 || rank.failed > 0 {
                    let name = &names[series];
                    let fault = match rank.failed {
                        0 => String::new(),
                        seeds => format!(", with a fault in {seeds} seed{}", if seeds == 1 { "" } else { "s" }),
                    };
                    let words =
                        format!("{name}: link {} of {}, {}{fault}", i + 1, curve.len(), data.load.text(rank.load));
                    sheet.canvas.hit(place, Some(series), words);
                }
            }
        }
    }
    let markers = curves.iter().take(drawn).flatten().any(|curve| !curve.is_empty() && curve.len() <= MAX_MARKED);
    sheet.legend(&grid, &names.iter().cloned().zip(0..).collect::<Vec<_>>(), markers);
    let columns = vec![
        column("links", "text", "", "tier and direction"),
        column("scheme", "text", "", "load balancer"),
        column("rank", "integer", "", "1 is the busiest link"),
        column(
            data.load.column(),
            "real",
            "",
            &format!("{}, mean over seeds of the links of this rank", data.load_words()),
        ),
        column("fault_seeds", "integer", "", "seeds in which a fault affected the link of this rank"),
    ];
    Ok(Some(sheet.finish(view, columns, rows)))
}
