//! Distribution of the completion time of the groups of a job. A curve is the mean over seeds of their quantiles.

use super::{
    Figure, FigureKind, View,
    panel::Axis,
    scale::{Scale, percent, plain},
    sheet::{Grid, Key, Panels, Sheet, column, names, seeds},
};
use crate::{
    numbers::{significant_digits, thousands},
    statistics::{mean, quantile},
};

pub(crate) const KIND: FigureKind =
    FigureKind { name: "job_completion", draw, of_flows: true, needs: ("jobs", &["workload", "completion_ps"]) };

/// Shares of the curves.
const SHARES: i32 = 200;

fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let (mut curves, mut rows, mut most) = (vec![], vec![], 0);
    let mut largest = 0.0f64;
    let names = names(view.data);
    for (series, scheme) in view.data.schemes.iter().enumerate() {
        let mut per_seed: Vec<Vec<f64>> =
            scheme.runs.iter().map(|run| view.groups(run).map(|group| group.completion_us).collect()).collect();
        per_seed.retain(|times| !times.is_empty());
        per_seed.iter_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
        let at = |share: f64| mean(&per_seed.iter().filter_map(|of| quantile(of, share)).collect::<Vec<_>>());
        let (Some(p99), Some(number)) = (at(0.99), per_seed.iter().map(Vec::len).max()) else { continue };
        let shares = (0..=SHARES).map(|share| f64::from(share) / f64::from(SHARES));
        let points: Vec<(f64, f64)> = shares.filter_map(|share| Some((at(share)?, share))).collect();
        rows.extend(points.iter().map(|(x, share)| vec![scheme.name.clone(), share.to_string(), x.to_string()]));
        largest = largest.max(at(1.0).unwrap_or(0.0));
        most = most.max(number);
        curves.push((series, points, p99));
    }
    // The time of one group is in the summary.
    if most < 2 {
        return Ok(None);
    }
    let entries: Vec<(String, usize)> = curves
        .iter()
        .map(|(series, _, p99)| {
            // The legend of a paper has no space for numbers, which its table states.
            let number = if view.layout.is_page() {
                format!(" · p99 {} µs", significant_digits(*p99, 3))
            } else {
                String::new()
            };
            (format!("{}{number}", names[*series]), *series)
        })
        .collect();
    let labels: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    let grid = Grid::new(view.layout, &Panels::pairs(1, 300.0), &Key::Schemes(&labels));
    let subtitle = format!(
        "Share of up to {} groups times repetitions at or below, {}; a group is complete when its last rank is",
        thousands(&most.to_string()),
        seeds(view.data, "mean over ", "")
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
