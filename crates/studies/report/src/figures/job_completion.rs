//! Distribution of the completion time of the groups of a job. A curve is the mean over seeds of their quantiles.

use super::{
    Figure, FigureKind, View,
    panel::Axis,
    scale::{Scale, percent, plain},
    sheet::{Grid, Key, Panels, Sheet, column, names, seeds},
};
use anabranch_results::numbers::{significant_digits, thousands};
use anabranch_statistics::statistics::{censored_quantile, mean};

pub(crate) const KIND: FigureKind =
    FigureKind { name: "job_completion", draw, of_flows: true, needs: ("jobs", &["workload", "completion_ps"]) };

/// Shares of the curves.
const SHARES: i32 = 200;

fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let (mut curves, mut rows, mut most, mut ends_early) = (vec![], vec![], 0, false);
    let mut largest = 0.0f64;
    let names = names(view.data);
    for (series, scheme) in view.data.schemes.iter().enumerate() {
        // Times of a seed, and its number of groups, those that are not complete included.
        let mut per_seed: Vec<(Vec<f64>, usize)> = vec![];
        for run in &scheme.runs {
            let mut times: Vec<f64> = view.groups(run).map(|group| group.completion_us).collect();
            times.sort_unstable_by(f64::total_cmp);
            let all = view.all_groups(run).max(times.len());
            per_seed.extend((all > 0).then_some((times, all)));
        }
        let at = |share: f64| {
            let quantiles = per_seed.iter().map(|(known, all)| censored_quantile(known, *all, share));
            mean(&quantiles.collect::<Option<Vec<f64>>>()?)
        };
        let Some(number) = per_seed.iter().map(|(_, all)| *all).max() else { continue };
        let shares = (0..=SHARES).map(|share| f64::from(share) / f64::from(SHARES));
        let points: Vec<(f64, f64)> = shares.filter_map(|share| Some((at(share)?, share))).collect();
        rows.extend(points.iter().map(|(x, share)| vec![scheme.name.clone(), share.to_string(), x.to_string()]));
        largest = largest.max(points.last().map_or(0.0, |point| point.0));
        most = most.max(number);
        ends_early |= per_seed.iter().any(|(known, all)| known.len() < *all);
        curves.push((series, points, at(0.99)));
    }
    // The time of one group is in the summary.
    if most < 2 || curves.iter().all(|(_, points, _)| points.is_empty()) {
        return Ok(None);
    }
    let entries: Vec<(String, usize)> = curves
        .iter()
        .map(|(series, _, p99)| {
            // The legend of a paper has no space for numbers, which its table states.
            let p99_text =
                p99.map_or_else(|| "not reached".to_string(), |p99| format!("{} µs", significant_digits(p99, 3)));
            let number = if view.layout.is_page() { format!(" · p99 {p99_text}") } else { String::new() };
            (format!("{}{number}", names[*series]), *series)
        })
        .collect();
    let labels: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    let grid = Grid::new(view.layout, &Panels::pairs(1, 300.0), &Key::Schemes(&labels));
    let subtitle = format!(
        "Share of up to {} groups times repetitions at or below, {}; a group is complete when its last rank is{}",
        thousands(&most.to_string()),
        seeds(view.data, "mean over ", ""),
        if ends_early { ". A curve ends at the share that is complete" } else { "" }
    );
    let mut sheet = Sheet::new(&view.titled("Completion of groups"), &subtitle, &grid, &labels);
    sheet.canvas.show_schemes(&names);
    let x_axis = Axis { scale: Scale::fitting(0.0, largest, 5.0), title: "Completion time [µs]", format: plain };
    let y_axis = Axis { scale: Scale::exact(0.0, 1.0), title: "Share at or below", format: percent };
    let area = grid.panel(0, x_axis, y_axis);
    area.frame(&mut sheet.canvas, "");
    for (series, points, _) in &curves {
        area.line(&mut sheet.canvas, points, *series, false);
        for &point in points.iter().step_by(5) {
            let (time, share) = (significant_digits(point.0, 4), percent(point.1));
            let words = format!("{}: {share} of groups within {time} µs", names[*series]);
            sheet.canvas.hit(area.at(point), Some(*series), words);
        }
    }
    sheet.legend(&grid, &entries, false);
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("share", "real", "", "share of groups at or below"),
        column("completion_us", "real", "us", "completion time that this share does not exceed, mean over seeds"),
    ];
    Ok(Some(sheet.finish(KIND.name, view, columns, rows)))
}
