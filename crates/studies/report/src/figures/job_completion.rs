//! Distribution of the completion time of the groups of a job. A curve is the mean over seeds of their quantiles.

use super::{
    Axis, Figure, Grid, Key, Panels, Scale, Sheet, View, column, distribution::Distributions, names, percent, plain,
    seeds,
};
use crate::dataset::RunRows;
use anabranch_results::{significant_digits, thousands};

/// Shares of the curves.
const SHARES: i32 = 200;

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let names = names(view.data);
    // With the groups that are not complete.
    let of_run = |run: &RunRows| {
        let times: Vec<f64> = view.groups(run).map(|group| group.completion_us).collect();
        let all = view.all_groups(run).max(times.len());
        (times, all)
    };
    let shares = |_| (0..=SHARES).map(|share| f64::from(share) / f64::from(SHARES)).collect();
    let found = Distributions::new(view, of_run, shares);
    let most = found.counts.iter().map(|counts| counts.1).max().unwrap_or(0);
    // The time of one group is in the summary.
    if most < 2 || found.are_empty() {
        return Ok(None);
    }
    let entries = found.entries(view, &names, " µs");
    let labels: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    let grid = Grid::new(view.layout, &Panels::pairs(1, 300.0), &Key::Schemes(&labels));
    let subtitle = format!(
        "Share of up to {} groups times repetitions at or below, {}; a group is complete when its last rank is{}",
        thousands(&most.to_string()),
        seeds(view.data, "mean over ", ""),
        if found.ends_early { ". A curve ends at the share that is complete" } else { "" }
    );
    let mut sheet = Sheet::new(&view.titled("Completion of groups"), &subtitle, &grid, &labels);
    sheet.canvas.show_schemes(&names);
    let x_axis = Axis { scale: Scale::fitting(0.0, found.largest, 5.0), title: "Completion time [µs]", format: plain };
    let y_axis = Axis { scale: Scale::exact(0.0, 1.0), title: "Share at or below", format: percent };
    let area = grid.panel(0, x_axis, y_axis);
    area.frame(&mut sheet.canvas, "");
    for (series, points, _) in &found.curves {
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
    Ok(Some(sheet.finish(view, columns, found.rows)))
}
