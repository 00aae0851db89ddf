//! Distribution of the slowdown: body, and tail on a logarithmic axis. A curve is the mean over seeds of their
//! quantiles, so that its 99th percentile equals that of the table. Shares are of all flows that count: a curve ends
//! where a seed has no more flows that finished.

use super::{
    Axis, Figure, Grid, Key, Panels, Scale, Sheet, View, column, distribution::Distributions, names, percent, plain,
    seeds,
};
use crate::dataset::RunRows;
use anabranch_results::{significant_digits, thousands};

/// Shares in even steps in the body, in even steps of the logarithm in the tail.
fn shares(flows: usize) -> Vec<f64> {
    let mut shares: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    shares.extend((20..).map(|i| 1.0 - 10f64.powf(-f64::from(i) / 20.0)).take_while(|s| 1.0 - s > 1.0 / flows as f64));
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    shares
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let names = names(view.data);
    // With the flows that did not finish.
    let of_run = |run: &RunRows| {
        let slowdowns: Vec<f64> = view.flows(run).map(|flow| flow.slowdown).collect();
        let all = slowdowns.len() + view.unfinished(run);
        (slowdowns, all)
    };
    let found = Distributions::new(view, of_run, shares);
    if found.are_empty() {
        return Ok(None);
    }
    let (largest, most) = (found.largest.max(1.0), found.counts.iter().map(|counts| counts.0).max().unwrap_or(0));
    let p99s = found.curves.iter().map(|curve| curve.2.unwrap_or(f64::INFINITY));
    let mut entries: Vec<((String, usize), f64)> = found.entries(view, &names, "").into_iter().zip(p99s).collect();
    entries.sort_by(|a, b| b.1.total_cmp(&a.1));
    let entries: Vec<(String, usize)> = entries.into_iter().map(|(entry, _)| entry).collect();
    let labels: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    let grid = Grid::new(view.layout, &Panels::pairs(2, 300.0), &Key::Schemes(&labels));
    let subtitle = format!(
        "Quantiles per seed of up to {} flows, {}; share of flows at or below, and share above, to the slowest flow{}",
        thousands(&most.to_string()),
        seeds(view.data, "mean over ", ""),
        if found.ends_early { ". Shares are of all flows: a curve ends at the share that finished" } else { "" }
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
        for (series, points, _) in &found.curves {
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
    Ok(Some(sheet.finish(view, columns, found.rows)))
}
