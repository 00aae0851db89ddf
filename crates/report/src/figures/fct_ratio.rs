//! Schemes side by side: max FCT over ideal, tail and mean slowdown, each with its confidence interval.

use super::{
    Figure,
    canvas::{Anchor, LABEL, PANEL, TICK},
    palette::Paint,
    scale::{Scale, plain},
    sheet::{Grid, Sheet, column, names},
};
use crate::{
    comparison::{ALL, Metric},
    dataset::{Dataset, SchemeRuns},
    numbers::significant_digits,
    statistics::Estimate,
    summary::Summary,
};

/// Name of its files.
pub(crate) const NAME: &str = "fct_ratio";

const PANELS: [(&str, &str); 3] = [
    ("fct_ratio_max", "Max FCT over ideal"),
    ("slowdown_p99", "99th-percentile slowdown"),
    ("slowdown_mean", "Mean slowdown"),
];

const ROW: f64 = 24.0;

fn estimate(scheme: &SchemeRuns, metric: &str) -> Option<Estimate> {
    let metric = Metric::named(metric)?;
    let value = |summary: &Summary| metric.value(summary, ALL);
    Estimate::of(&scheme.runs.iter().filter_map(|run| value(&run.summary)).collect::<Vec<_>>())
}

/// `None` where there is only one scheme, or no flow counts.
pub(crate) fn draw(data: &Dataset) -> Option<Figure> {
    let shown: Vec<(&str, &str, Vec<Option<Estimate>>)> = PANELS
        .iter()
        .map(|(metric, heading)| (*metric, *heading, data.schemes.iter().map(|s| estimate(s, metric)).collect()))
        .filter(|(_, _, estimates): &(_, _, Vec<_>)| estimates.iter().any(Option::is_some))
        .collect();
    if data.schemes.len() < 2 || shown.is_empty() {
        return None;
    }
    let names = names(data);
    let beside = names.iter().map(|name| LABEL.width(name)).fold(40.0, f64::max) + 16.0;
    let height = ROW * names.len() as f64 + 8.0;
    let grid = Grid { columns: shown.len(), width: 226.0, height, beside, below: 26.0, panels: shown.len() };
    let many = data.seeds().len();
    let interval = match many {
        1 => "one seed, so no confidence interval".to_string(),
        _ => format!("mean over {many} seeds with its 95 % confidence interval"),
    };
    let subtitle = format!("Distance from the ideal (1), {interval}; less is better");
    let mut sheet = Sheet::new("How far from ideal: slowest flow, tail and mean", &subtitle, &grid, &[]);
    let mut rows = vec![];
    for (panel, (metric, heading, estimates)) in shown.iter().enumerate() {
        let (left, top) = grid.place(panel);
        let canvas = &mut sheet.canvas;
        let upper = |e: &Estimate| e.mean + e.half_width.unwrap_or(0.0);
        let largest = estimates.iter().flatten().map(upper).fold(1.0, f64::max);
        // Values stand right of their marks, so the marks leave room.
        let scale = Scale::exact(1.0, 1.0 + (largest - 1.0).max(0.01) * 1.22);
        let at = |value: f64| left + scale.share(value) * grid.width;
        canvas.text((left, top - 10.0), heading, PANEL);
        let ticks = scale.ticks();
        let first = (!ticks.contains(&1.0)).then_some(1.0);
        for tick in first.into_iter().chain(ticks) {
            canvas.line((at(tick), top), (at(tick), top + height), Paint::Grid, 1.0);
            canvas.text((at(tick), top + height + 16.0), &plain(tick), TICK);
        }
        canvas.line((left, top), (left, top + height), Paint::Muted, 1.0);
        let best = estimates.iter().flatten().map(|e| e.mean).fold(f64::INFINITY, f64::min);
        for (series, (name, estimate)) in names.iter().zip(estimates).enumerate() {
            let y = top + 4.0 + ROW * (series as f64 + 0.5);
            canvas.text((left - 10.0, y + 4.0), name, LABEL.anchor(Anchor::End));
            let Some(e) = estimate else {
                canvas.text((left + 6.0, y + 4.0), "n/a: not all flows finished", TICK.anchor(Anchor::Start));
                continue;
            };
            canvas.rectangle((left, y - 5.0), (at(e.mean) - left, 10.0), Paint::Series(series));
            if let Some((low, high)) = e.interval() {
                // A light rim keeps the interval visible on a dark bar.
                for (paint, width) in [(Paint::Paper, 3.6), (Paint::Ink, 1.4)] {
                    canvas.line((at(low), y), (at(high), y), paint, width);
                    for end in [low, high] {
                        canvas.line((at(end), y - 4.0), (at(end), y + 4.0), paint, width);
                    }
                }
            }
            let style = LABEL.paint(if e.mean == best { Paint::Ink } else { Paint::Muted });
            let style = if e.mean == best { style.bold() } else { style };
            canvas.text((at(upper(e)) + 9.0, y + 4.0), &significant_digits(e.mean, 3), style);
            let end = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
            rows.push(vec![
                metric.to_string(),
                name.clone(),
                e.mean.to_string(),
                end(e.interval().map(|i| i.0)),
                end(e.interval().map(|i| i.1)),
                e.seeds.to_string(),
            ]);
        }
    }
    let columns = vec![
        column("metric", "text", "", "what is shown"),
        column("scheme", "text", "", "load balancer"),
        column("mean", "real", "", "mean over seeds"),
        column("ci95_low", "real", "", "lower end of its 95 % confidence interval; empty below two seeds"),
        column("ci95_high", "real", "", "upper end"),
        column("seeds", "integer", "", "seeds with a value"),
    ];
    Some(sheet.finish(NAME, data, columns, rows))
}
