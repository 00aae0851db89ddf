//! Queue depth at switch ports per tier and scheme: mean, 99th percentile, largest.

use super::{
    Figure,
    canvas::{Anchor, LABEL, PANEL, SUBTITLE, TICK},
    link_utilisation::capital,
    palette::Paint,
    scale::Scale,
    seeds,
    sheet::{Grid, Sheet, column, names},
};
use crate::{
    dataset::{Dataset, LinkPoint, SchemeRuns},
    numbers::bytes,
    statistics::mean,
};

/// Name of its files.
pub(crate) const NAME: &str = "queue_depth";

/// Mean over ports of the mean, largest 99th percentile, largest maximum; each the mean over seeds. In bytes.
fn depths(scheme: &SchemeRuns, group: &str) -> Option<[f64; 3]> {
    let mut per_seed: [Vec<f64>; 3] = Default::default();
    for run in &scheme.runs {
        let links: Vec<&LinkPoint> = run.links.iter().filter(|link| link.group() == group).collect();
        if links.is_empty() {
            continue;
        }
        let largest = |get: fn(&LinkPoint) -> f64| links.iter().map(|link| get(link)).fold(0.0, f64::max);
        per_seed[0].extend(mean(&links.iter().map(|link| link.queue_mean_bytes).collect::<Vec<_>>()));
        per_seed[1].push(largest(|link| link.queue_p99_bytes));
        per_seed[2].push(largest(|link| link.queue_max_bytes));
    }
    let [average, p99, max] = per_seed.map(|values| mean(&values));
    Some([average?, p99?, max?])
}

const ROW: f64 = 20.0;

/// `None` where there are no switch ports or no packet ever waited.
pub(crate) fn draw(data: &Dataset) -> Option<Figure> {
    let groups = data.link_groups();
    let names = names(data);
    let depths: Vec<Vec<Option<[f64; 3]>>> = groups
        .iter()
        .map(|group| data.schemes.iter().map(|scheme| depths(scheme, group)).collect::<Vec<_>>())
        .collect();
    let waiting: Vec<f64> = depths.iter().flatten().flatten().flatten().copied().filter(|d| *d > 0.0).collect();
    let largest = waiting.iter().copied().reduce(f64::max)?;
    let least = waiting.iter().copied().fold(largest, f64::min).max(largest / 1e6).max(1.0).min(largest);
    let scale = Scale::logarithmic(least, largest);
    let beside = names.iter().map(|name| LABEL.width(name)).fold(40.0, f64::max) + 16.0;
    let (columns, height) = (groups.len().clamp(1, 2), ROW * names.len() as f64 + 8.0);
    let width = if columns == 1 { 620.0 } else { 330.0 };
    let grid = Grid { columns, width, height, beside, below: 26.0, panels: groups.len() };
    let subtitle =
        format!("Waiting data per port, {}; less is better. The axis is logarithmic", seeds(data, "mean over ", ""));
    let mut sheet = Sheet::new("Queue depth at switch ports", &subtitle, &grid, &[]);
    let mut rows = vec![];
    for (panel, (group, depths)) in groups.iter().zip(&depths).enumerate() {
        let (left, top) = grid.place(panel);
        let canvas = &mut sheet.canvas;
        let at = |value: f64| left + scale.share(value) * width;
        canvas.text((left, top - 10.0), &capital(group), PANEL);
        let mut free_from = f64::NEG_INFINITY;
        for tick in scale.ticks() {
            let (x, text) = (at(tick), bytes(tick));
            canvas.line((x, top), (x, top + height), Paint::Grid, 1.0);
            let half = TICK.width(&text) / 2.0;
            if x - half > free_from {
                canvas.text((x, top + height + 16.0), &text, TICK);
                free_from = x + half + 8.0;
            }
        }
        canvas.line((left, top + height), (left + width, top + height), Paint::Muted, 1.0);
        for (series, (name, depth)) in names.iter().zip(depths).enumerate() {
            let y = top + 4.0 + ROW * (series as f64 + 0.5);
            canvas.text((left - 10.0, y + 4.0), name, LABEL.anchor(Anchor::End));
            let Some([mean, p99, max]) = *depth else { continue };
            let paint = Paint::Series(series);
            canvas.line((at(mean), y), (at(max), y), paint, 2.0);
            for (value, shape) in [(max, 1), (p99, 3), (mean, 0)] {
                canvas.marker((at(value), y), shape, 4.6, paint);
            }
            let values = [mean, p99, max].map(|value| value.to_string());
            rows.push([&[group.clone(), name.clone()], &values[..]].concat());
        }
    }
    let mut x = (grid.right() - 330.0).max(16.0);
    for (shape, name) in [(0, "mean of ports"), (3, "99th percentile"), (1, "max (worst port)")] {
        sheet.canvas.marker((x, 23.0), shape, 4.6, Paint::Muted);
        sheet.canvas.text((x + 9.0, 27.0), name, SUBTITLE);
        x += SUBTITLE.width(name) + 28.0;
    }
    let columns = vec![
        column("links", "text", "", "tier and direction"),
        column("scheme", "text", "", "load balancer"),
        column("queue_mean_bytes", "real", "bytes", "waiting data, mean over time, ports and seeds"),
        column("queue_p99_bytes", "real", "bytes", "99th percentile over time of the worst port, mean over seeds"),
        column("queue_max_bytes", "real", "bytes", "most at the worst port, mean over seeds"),
    ];
    Some(sheet.finish(NAME, data, columns, rows))
}
