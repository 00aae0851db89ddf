//! The distribution of the slowdown: its body as shares of flows below, its tail as shares above on a logarithmic axis.

use super::{
    Figure,
    panel::{Axis, Panel},
    scale::{Scale, percent, plain},
    seeds,
    sheet::{Grid, Sheet, column, names},
};
use crate::{
    dataset::Dataset,
    numbers::{significant_digits, thousands},
    statistics::quantile,
};

/// Name of its files.
pub(crate) const NAME: &str = "slowdown_cdf";

/// Shares of flows at which a curve is drawn: even steps in the body, even steps of the logarithm in the tail.
fn shares(flows: usize) -> Vec<f64> {
    let mut shares: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    shares.extend((20..).map(|i| 1.0 - 10f64.powf(-f64::from(i) / 20.0)).take_while(|s| 1.0 - s > 1.0 / flows as f64));
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    shares
}

/// `None` where no flow counts.
pub(crate) fn draw(data: &Dataset) -> Option<Figure> {
    let mut curves = vec![];
    let mut rows = vec![];
    let (mut largest, mut most, mut body) = (1.0f64, 0, 1.0f64);
    for (series, scheme) in data.schemes.iter().enumerate() {
        let mut slowdowns: Vec<f64> = scheme.flows().map(|flow| flow.slowdown).collect();
        slowdowns.sort_unstable_by(f64::total_cmp);
        let Some(p99) = quantile(&slowdowns, 0.99) else { continue };
        let at = |share: f64| quantile(&slowdowns, share).map(|slowdown| (slowdown, share));
        let points: Vec<(f64, f64)> = shares(slowdowns.len()).into_iter().filter_map(at).collect();
        rows.extend(points.iter().map(|(x, share)| vec![scheme.name.clone(), share.to_string(), x.to_string()]));
        largest = largest.max(quantile(&slowdowns, 1.0).unwrap_or(1.0));
        body = body.max(p99);
        most = most.max(slowdowns.len());
        curves.push((series, points, p99));
    }
    if curves.is_empty() {
        return None;
    }
    let grid = Grid::pairs(2, 300.0);
    let names = names(data);
    let mut entries: Vec<(String, usize, f64)> = curves
        .iter()
        .map(|(series, _, p99)| (format!("{} · p99 {}", names[*series], significant_digits(*p99, 3)), *series, *p99))
        .collect();
    entries.sort_by(|a, b| b.2.total_cmp(&a.2));
    let entries: Vec<(String, usize)> = entries.into_iter().map(|(name, series, _)| (name, series)).collect();
    let labels: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    let number = thousands(&most.to_string());
    let subtitle = format!(
        "Flows of {}, up to {number} per scheme; left: share of flows at or below; right: share above, to the slowest flow",
        seeds(data, "", " together")
    );
    let mut sheet = Sheet::new("Distribution of the FCT slowdown: body and tail", &subtitle, &grid, &labels);
    let least = (1.0 / most as f64).clamp(1e-6, 0.1);
    let tail: fn(f64) -> String = percent;
    let panels = [
        ("Share of flows at or below", Scale::fitting(1.0, body, 6.0), Scale::exact(0.0, 1.0)),
        ("Share of flows above (tail)", Scale::fitting(1.0, largest, 6.0), Scale::logarithmic(least, 1.0)),
    ];
    for (panel, (heading, x, y)) in panels.into_iter().enumerate() {
        let (left, top) = grid.place(panel);
        let area = Panel {
            left,
            top,
            width: grid.width,
            height: grid.height,
            x: Axis { scale: x, title: "FCT slowdown", format: plain },
            y: Axis { scale: y, title: "Share of flows", format: tail },
        };
        area.frame(&mut sheet.canvas, heading);
        for (series, points, _) in &curves {
            let shown: Vec<(f64, f64)> = match panel {
                0 => points.iter().copied().filter(|point| point.0 <= x.ends().1).collect(),
                _ => points
                    .iter()
                    .map(|&(slowdown, share)| (slowdown, 1.0 - share))
                    .filter(|point| point.1 >= least * 0.999)
                    .collect(),
            };
            area.line(&mut sheet.canvas, &shown, *series, false);
        }
    }
    sheet.legend(&grid, &entries);
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("share", "real", "", "share of flows at or below"),
        column("slowdown", "real", "", "slowdown that this share does not exceed"),
    ];
    Some(sheet.finish(NAME, data, columns, rows))
}
