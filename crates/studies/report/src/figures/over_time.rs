//! Charts over simulated time, with marks at the times of faults.

use super::{
    Anchor, Axis, Figure, Format, Grid, Key, Paint, Panel, Panels, Scale, Sheet, TICK, View, column, names, plain,
};
use anabranch_results::significant_digits_trimmed;

const POINTS: usize = 400;

/// Aggregation of points that share a position on the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    Mean,
    Largest,
}

/// Pairs of microseconds and value.
pub(super) type Points = Vec<(f64, f64)>;

#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) series: usize,
    pub(super) points: Points,
}

#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) heading: String,
    pub(super) title: &'static str,
    pub(super) format: Format,
    pub(super) merge: Merge,
    /// Name of the metric in the rows of the figure.
    pub(super) metric: &'static str,
    pub(super) unit: &'static str,
    pub(super) curves: Vec<Curve>,
}

impl Chart {
    /// Creates the chart of a metric with its unit.
    pub(super) fn new(
        heading: impl Into<String>,
        title: &'static str,
        format: Format,
        (metric, unit): (&'static str, &'static str),
        curves: Vec<Curve>,
    ) -> Self {
        Chart { heading: heading.into(), title, format, merge: Merge::Mean, metric, unit, curves }
    }

    fn largest(&self) -> f64 {
        self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max)
    }

    pub(super) fn shows(&self) -> bool {
        self.largest() > 0.0
    }
}

/// Returns at most [`POINTS`] points, each for an equal number of them.
fn thinned(points: &[(f64, f64)], merge: Merge) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(POINTS).max(1);
    let of_part = |part: &[(f64, f64)]| {
        let values = part.iter().map(|point| point.1);
        let value = match merge {
            Merge::Mean => values.sum::<f64>() / part.len() as f64,
            Merge::Largest => values.fold(f64::NEG_INFINITY, f64::max),
        };
        (part[part.len() - 1].0, value)
    };
    points.chunks(each).map(of_part).collect()
}

/// Draws those of `charts` that show something, about series of these names.
pub(super) fn draw(
    view: &View<'_>,
    title: &str,
    subtitle: &str,
    series: &[String],
    charts: impl IntoIterator<Item = Chart>,
) -> Option<Figure> {
    let charts: Vec<Chart> = charts.into_iter().filter(Chart::shows).collect();
    let ends = charts.iter().flat_map(|c| &c.curves).filter_map(|c| c.points.last()).map(|point| point.0);
    let last = ends.fold(0.0, f64::max);
    if charts.is_empty() || last <= 0.0 {
        return None;
    }
    let grid = Grid::new(view.layout, &Panels::pairs(charts.len(), 190.0), &Key::Schemes(series));
    let shown: Vec<&(u64, String)> =
        view.data.schemes[0].runs[0].series.faults.iter().filter(|fault| fault.0 as f64 / 1e6 <= last).collect();
    let about_faults = if shown.is_empty() { "" } else { "; dashed: a fault begins or ends" };
    let subtitle = format!("{subtitle}{about_faults}");
    let mut sheet = Sheet::new(&view.titled(title), &subtitle, &grid, series);
    // Curves of single flows have no scheme's style.
    if series == names(view.data) {
        sheet.canvas.show_schemes(series);
    }
    let mut rows = vec![];
    for (panel, chart) in charts.iter().enumerate() {
        let x_axis = Axis { scale: Scale::linear(0.0, last), title: "Simulated time, us", format: plain };
        let y_axis = Axis { scale: Scale::linear(0.0, chart.largest()), title: chart.title, format: chart.format };
        let area = grid.panel(panel, x_axis, y_axis);
        area.frame(&mut sheet.canvas, &chart.heading);
        mark_faults(&mut sheet, &area, &shown);
        for curve in &chart.curves {
            let points = thinned(&curve.points, chart.merge);
            area.line(&mut sheet.canvas, &points, curve.series, false);
            let name = &series[curve.series];
            // A part of the points suffices to find the nearest.
            for &(time, value) in points.iter().step_by(1 + points.len() / 80) {
                let words = format!("{name}: {} at {} us", (chart.format)(value), significant_digits_trimmed(time, 5));
                sheet.canvas.hit(area.at((time, value)), Some(curve.series), words);
            }
            rows.extend(points.iter().map(|(time, value)| {
                let texts = [chart.heading.as_str(), chart.metric, chart.unit, name.as_str()];
                let numbers = [time.to_string(), value.to_string()];
                texts.map(str::to_string).into_iter().chain(numbers).collect::<Vec<_>>()
            }));
        }
    }
    let entries: Vec<(String, usize)> = series.iter().cloned().zip(0..).collect();
    sheet.legend(&grid, &entries, false);
    let columns = vec![
        column("panel", "text", "", "heading of the panel"),
        column("metric", "text", "", "quantity of the figure"),
        column("unit", "text", "", "unit of the value"),
        column("name", "text", "", "load balancer or flow"),
        column("time_us", "real", "us", "end of the part of simulated time that the value is of"),
        column("value", "real", "as in the column unit", "the value"),
    ];
    Some(sheet.finish(view, columns, rows))
}

fn mark_faults(sheet: &mut Sheet, area: &Panel<'_>, faults: &[&(u64, String)]) {
    let mut free_from = f64::NEG_INFINITY;
    for (at, what) in faults {
        let x = area.at_x(*at as f64 / 1e6);
        sheet.canvas.dashed_line((x, area.top), (x, area.top + area.height), Paint::Muted, 1.2, "4 3");
        let words = format!("{what} at {} us", significant_digits_trimmed(*at as f64 / 1e6, 5));
        sheet.canvas.hit((x, area.top + 6.0), None, words);
        let width = TICK.width(what);
        if x > free_from && x + 4.0 + width < area.left + area.width {
            sheet.canvas.text((x + 4.0, area.top + 10.0), what, TICK.anchor(Anchor::Start));
            free_from = x + 8.0 + width;
        }
    }
}

/// Differences of a count, per microsecond: (microseconds at the end, value).
pub(super) fn rates(samples: impl Iterator<Item = (u64, u64)>) -> Vec<(f64, f64)> {
    let samples: Vec<(u64, u64)> = samples.collect();
    let between = |pair: &[(u64, u64)]| {
        let span = (pair[1].0 - pair[0].0) as f64 / 1e6;
        (span > 0.0).then(|| (pair[1].0 as f64 / 1e6, (pair[1].1 - pair[0].1.min(pair[1].1)) as f64 / span))
    };
    samples.windows(2).filter_map(between).collect()
}

pub(super) fn gigabits(value: f64) -> String {
    format!("{} Gb/s", significant_digits_trimmed(value, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rates() {
        // 50 kB in the first microsecond, nothing in the second, 25 kB in the following half.
        let samples = [(0, 0), (1_000_000, 50_000), (2_000_000, 50_000), (2_500_000, 75_000)];
        assert_eq!(rates(samples.into_iter()), [(1.0, 50_000.0), (2.0, 0.0), (2.5, 50_000.0)]);
    }

    #[test]
    fn many_points_become_few() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i), f64::from(i % 3))).collect();
        let mean = thinned(&points, Merge::Mean);
        assert_eq!((mean.len(), mean[0]), (334, (2.0, 1.0)));
        assert!(thinned(&points, Merge::Largest).iter().take(333).all(|point| point.1 == 2.0));
        assert_eq!(thinned(&points[..3], Merge::Mean), &points[..3]);
    }
}
