//! Distribution of the slowdown: body, and tail on a logarithmic axis. A curve is the mean over seeds of their
//! quantiles, so that its 99th percentile equals that of the table. Shares are of all flows that count: a curve ends
//! where a seed has no more flows that finished.

use super::{
    Figure, FigureKind, View,
    panel::Axis,
    scale::{Scale, percent, plain},
    sheet::{Grid, Key, Panels, Sheet, column, names, seeds},
};
use anabranch_results::numbers::{significant_digits, thousands};
use anabranch_statistics::statistics::{censored_quantile, mean};

pub(crate) const KIND: FigureKind = FigureKind {
    name: "slowdown_cdf",
    draw,
    of_flows: true,
    needs: ("flows", &["size_bytes", "slowdown", "measured"]),
};

/// Shares in even steps in the body, in even steps of the logarithm in the tail.
fn shares(flows: usize) -> Vec<f64> {
    let mut shares: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    shares.extend((20..).map(|i| 1.0 - 10f64.powf(-f64::from(i) / 20.0)).take_while(|s| 1.0 - s > 1.0 / flows as f64));
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    shares
}

fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let mut curves = vec![];
    let mut rows = vec![];
    let names = names(view.data);
    let (mut largest, mut most, mut ends_early) = (1.0f64, 0, false);
    for (series, scheme) in view.data.schemes.iter().enumerate() {
        // Slowdowns of a seed, and its number of flows, those that did not finish included.
        let mut per_seed: Vec<(Vec<f64>, usize)> = vec![];
        for run in &scheme.runs {
            let mut slowdowns: Vec<f64> = view.flows(run).map(|flow| flow.slowdown).collect();
            slowdowns.sort_unstable_by(f64::total_cmp);
            let all = slowdowns.len() + view.unfinished(run);
            per_seed.extend((all > 0).then_some((slowdowns, all)));
        }
        let at = |share: f64| {
            let quantiles = per_seed.iter().map(|(known, all)| censored_quantile(known, *all, share));
            mean(&quantiles.collect::<Option<Vec<f64>>>()?)
        };
        let Some(fewest) = per_seed.iter().map(|(_, all)| *all).min() else { continue };
        let points: Vec<(f64, f64)> =
            shares(fewest).into_iter().filter_map(|share| Some((at(share)?, share))).collect();
        rows.extend(points.iter().map(|(x, share)| vec![scheme.name.clone(), share.to_string(), x.to_string()]));
        largest = largest.max(points.last().map_or(1.0, |point| point.0));
        most = most.max(fewest);
        ends_early |= per_seed.iter().any(|(known, all)| known.len() < *all);
        curves.push((series, points, at(0.99)));
    }
    if curves.iter().all(|(_, points, _)| points.is_empty()) {
        return Ok(None);
    }
    let mut entries: Vec<(String, usize, f64)> = curves
        .iter()
        .map(|(series, _, p99)| {
            // The legend of a paper has no space for numbers, which its table states.
            let p99_text = p99.map_or_else(|| "not reached".to_string(), |p99| significant_digits(p99, 3));
            let number = if view.layout.is_page() { format!(" · p99 {p99_text}") } else { String::new() };
            (format!("{}{number}", names[*series]), *series, p99.unwrap_or(f64::INFINITY))
        })
        .collect();
    entries.sort_by(|a, b| b.2.total_cmp(&a.2));
    let entries: Vec<(String, usize)> = entries.into_iter().map(|(name, series, _)| (name, series)).collect();
    let labels: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    let grid = Grid::new(view.layout, &Panels::pairs(2, 300.0), &Key::Schemes(&labels));
    let subtitle = format!(
        "Quantiles per seed of up to {} flows, {}; share of flows at or below, and share above, to the slowest flow{}",
        thousands(&most.to_string()),
        seeds(view.data, "mean over ", ""),
        if ends_early { ". Shares are of all flows: a curve ends at the share that finished" } else { "" }
    );
    let title = view.titled("Distribution of the FCT slowdown: body and tail");
    let mut sheet = Sheet::new(&title, &subtitle, &grid, &labels);
    sheet.canvas.show_schemes(&names);
    let lower_bound = (1.0 / most as f64).clamp(1e-6, 0.1);
    let x = Scale::fitting(1.0, largest, 5.0);
    let panels = [
        ("Share of flows at or below", "Share of flows at or below", Scale::exact(0.0, 1.0)),
        ("Share of flows above (tail)", "Share of flows above", Scale::logarithmic(lower_bound, 1.0)),
    ];
    for (panel, (heading, title, y)) in panels.into_iter().enumerate() {
        let x_axis = Axis { scale: x, title: "FCT slowdown", format: plain };
        let y_axis = Axis { scale: y, title, format: percent };
        let area = grid.panel(panel, x_axis, y_axis);
        area.frame(&mut sheet.canvas, heading);
        for (series, points, _) in &curves {
            let above = |&(slowdown, share): &(f64, f64)| (slowdown, 1.0 - share);
            let shown: Vec<(f64, f64)> = match panel {
                0 => points.clone(),
                _ => points.iter().map(above).filter(|point| point.1 >= lower_bound * 0.999).collect(),
            };
            area.line(&mut sheet.canvas, &shown, *series, false);
            for (at, &point) in shown.iter().enumerate() {
                // Every fifth point is close enough to any position on the curve.
                if at % 5 == 0 {
                    let words = format!(
                        "{}: {} of flows at or below a slowdown of {}",
                        names[*series],
                        percent(if panel == 0 { point.1 } else { 1.0 - point.1 }),
                        significant_digits(point.0, 3)
                    );
                    sheet.canvas.hit(area.at(point), Some(*series), words);
                }
            }
        }
    }
    sheet.legend(&grid, &entries, false);
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("share", "real", "", "share of flows at or below"),
        column("slowdown", "real", "", "slowdown that this share does not exceed, mean over seeds"),
    ];
    Ok(Some(sheet.finish(KIND.name, view, columns, rows)))
}
