//! Comparison of schemes: max FCT over ideal, tail and mean slowdown.

use super::{
    Anchor, Axis, Figure, Grid, Key, LABEL, PANEL, Paint, Panels, Scale, Sheet, TICK, View, column, horizontal, names,
    plain,
};
use crate::{ComparisonRow, wording};
use anabranch_results::{cell, letters, significant_digits};

const PANELS: [(&str, &str); 3] = [
    ("fct_ratio_max", "Max FCT over ideal"),
    ("slowdown_p99", "99th-percentile slowdown"),
    ("slowdown_mean", "Mean slowdown"),
];

/// Height of a scheme's row, and the same in a paper or on a slide.
const ROW: f64 = 24.0;
const NARROW_ROW: f64 = 15.0;

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let Some(comparison) = view.comparison else { return Ok(None) };
    let names = names(view.data);
    let of = |metric: &str| names.iter().map(|name| comparison.row(view.key(), name, metric)).collect::<Vec<_>>();
    let shown: Vec<(&str, &str, Vec<Option<&ComparisonRow>>)> = PANELS
        .iter()
        .map(|(metric, heading)| (*metric, *heading, of(metric)))
        .filter(|(_, _, rows)| rows.iter().flatten().any(|row| row.mean.is_some()))
        .collect();
    if names.len() < 2 || shown.is_empty() {
        return Ok(None);
    }
    let beside = names.iter().map(|name| LABEL.width(name)).fold(40.0, f64::max) + 16.0;
    let row_height = if view.layout.is_page() { ROW } else { NARROW_ROW };
    let panels = Panels {
        columns: shown.len(),
        width: 226.0,
        min_width: 110.0,
        flexible: false,
        beside,
        ..Panels::pairs(shown.len(), row_height * names.len() as f64 + 8.0)
    };
    let grid = Grid::new(view.layout, &panels, &Key::Schemes(&[]));
    let height = grid.height;
    let many = view.data.seeds().len();
    let tested = shown.iter().flat_map(|(_, _, rows)| rows).flatten().any(|row| !row.group.is_empty());
    let subtitle = match (many, tested) {
        (1, _) => {
            "Distance from the ideal (1); one seed, so no confidence interval and no test. Less is better".to_string()
        }
        (_, false) => format!(
            "Distance from the ideal (1), mean over {many} seeds with its 95 % confidence interval; no two schemes differ significantly. Less is better"
        ),
        (_, true) => format!(
            "Distance from the ideal (1), mean over {many} seeds with its 95 % confidence interval; schemes that share a letter do not differ significantly. Less is better"
        ),
    };
    let censored = shown.iter().flat_map(|(_, _, rows)| rows).flatten().any(|row| row.mean.is_some() && !row.ranks());
    let subtitle = format!("{subtitle}{}", if censored { "; !: of finished flows alone, too good" } else { "" });
    let mut sheet = Sheet::new(&view.titled("How far from ideal: slowest flow, tail and mean"), &subtitle, &grid, &[]);
    sheet.canvas.show_schemes(&names);
    let upper = |row: &ComparisonRow| row.ci95_high.or(row.mean).unwrap_or(1.0);
    let lower = |row: &ComparisonRow| row.ci95_low.or(row.mean).unwrap_or(1.0);
    let all = || shown.iter().flat_map(|(_, _, rows)| rows).flatten().filter(|row| row.mean.is_some());
    // An interval of few seeds can be longer than all means together: the axis shows at most three times the largest.
    let most = all().filter_map(|row| row.mean).fold(1.0, f64::max);
    let largest = all().map(|row| upper(row)).fold(1.0, f64::max).min(1.0 + 3.0 * (most - 1.0).max(0.01));
    let lower_bound = all().map(|row| lower(row)).fold(1.0, f64::min).max(0.5);
    let scale = Scale::fitting(lower_bound, 1.0 + (largest - 1.0).max(0.01) * 1.05, 5.0);
    let mut rows = vec![];
    for (panel, (metric, heading, cells)) in shown.iter().enumerate() {
        let (left, top) = grid.place(panel);
        let canvas = &mut sheet.canvas;
        let at = |value: f64| left + scale.share(value) * grid.width;
        canvas.text((left, top - 10.0), heading, PANEL);
        let axis = Axis { scale, title: "times the ideal", format: plain };
        horizontal(canvas, (left, top), (grid.width, height), &axis);
        canvas.line((at(1.0), top), (at(1.0), top + height), Paint::Muted, 1.0);
        for (series, (name, row)) in names.iter().zip(cells).enumerate() {
            let y = top + 4.0 + row_height * (series as f64 + 0.5);
            canvas.text((left - 10.0, y + 4.0), name, LABEL.anchor(Anchor::End).naming(series));
            let Some((row, mean)) = row.and_then(|row| Some((row, row.mean?))) else {
                canvas.text((left + 6.0, y + 4.0), "n/a: not all flows finished", TICK.anchor(Anchor::Start));
                continue;
            };
            let paint = Paint::Series(series);
            let ranks = row.ranks();
            canvas.line((at(lower(row)), y), (at(upper(row)), y), paint, 2.0);
            if row.ci95_low.is_some() {
                for end in [lower(row), upper(row)] {
                    canvas.line((at(end), y - 4.0), (at(end), y + 4.0), paint, 2.0);
                }
            }
            canvas.point((at(mean), y), series, 4.6, paint);
            let number = significant_digits(mean, 3);
            let label =
                if row.group.is_empty() { number.clone() } else { format!("{number}  {}", letters(&row.group)) };
            let label = if ranks { label } else { format!("{label} !") };
            let style = LABEL.paint(if row.leads() { Paint::Ink } else { Paint::Muted });
            let style = if row.leads() { style.bold() } else { style };
            // Right of the interval, or left of it if the panel has no space there.
            let right = at(upper(row)) + 9.0;
            match right + style.width(&label) > left + grid.width + 10.0 {
                false => canvas.text((right, y + 4.0), &label, style),
                true => canvas.text((at(lower(row)) - 9.0, y + 4.0), &label, style.anchor(Anchor::End)),
            }
            let interval = match (row.ci95_low, row.ci95_high) {
                (Some(low), Some(high)) => format!(", {}", wording::interval(low, high)),
                _ => ", no interval".to_string(),
            };
            let group = if row.group.is_empty() { String::new() } else { format!(", group {}", letters(&row.group)) };
            let unfinished = if ranks { "" } else { "; flows did not finish, not ranked" };
            let words = format!("{name}: {heading} {}{interval}{group}{unfinished}", significant_digits(mean, 4));
            canvas.hit((at(mean), y), Some(series), words);
            rows.push(vec![
                metric.to_string(),
                name.clone(),
                mean.to_string(),
                cell(row.ci95_low),
                cell(row.ci95_high),
                row.seeds.to_string(),
                row.group.clone(),
            ]);
        }
    }
    let columns = vec![
        column("metric", "text", "", "quantity of the figure"),
        column("scheme", "text", "", "load balancer"),
        column("mean", "real", "", "mean over seeds"),
        column("ci95_low", "real", "", "lower end of its 95 % confidence interval; empty below two seeds"),
        column("ci95_high", "real", "", "upper end"),
        column("seeds", "integer", "", "seeds with a value"),
        column(
            "group",
            "text",
            "",
            "schemes that share a letter do not differ significantly; empty where no pair does",
        ),
    ];
    Ok(Some(sheet.finish(view, columns, rows)))
}
