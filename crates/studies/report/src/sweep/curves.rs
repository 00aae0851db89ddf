//! Curves over the first key of a sweep: a line per scheme, with its confidence interval as a band.

use super::Sweep;
use crate::{
    Anchor, Canvas, Figure, Grid, Key, LABEL, Layout, Metric, PANEL, Paint, Panels, Scale, Sheet, column,
    figures::{banded, labels, vertical},
    places, plain, wording,
};
use anabranch_results::{capital, cell, significant_digits};

pub(super) const NAME: &str = "sweep_curves";

/// Metrics of small and large flows.
const SIZED: [&str; 2] = ["slowdown_p99_small", "slowdown_p99_large"];
/// Maximum number of panels drawn; all are in the rows.
const MAX_PANELS: usize = 12;
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 210.0;

struct Point {
    /// Index into the values of the first key.
    place: usize,
    mean: f64,
    interval: Option<(f64, f64)>,
    seeds: usize,
    /// `false` if flows did not finish.
    ranks: bool,
}

/// A metric of a workload at fixed values of the other keys.
struct Panel {
    heading: String,
    metric: &'static Metric,
    workload: String,
    others: String,
    curves: Vec<Vec<Point>>,
}

/// The main metric and that of small and of large flows where there are such; else, unless there are `many` panels, others.
fn metrics(sweep: &Sweep, many: bool) -> Vec<&'static Metric> {
    let shown = sweep.shown_metrics();
    let sized = |name: &&str| {
        let rows = sweep.comparisons.iter().flatten().flat_map(|comparison| &comparison.rows);
        rows.clone().any(|row| row.metric == *name && row.mean.is_some())
    };
    let by_size: Vec<&Metric> =
        SIZED.iter().filter(|name| sized(name)).filter_map(|name| Metric::named(name)).collect();
    match () {
        () if !by_size.is_empty() => shown[..1].iter().copied().chain(by_size).collect(),
        () if many => shown[..1].to_vec(),
        () => shown,
    }
}

fn panels(sweep: &Sweep) -> Vec<Panel> {
    let plan = &sweep.plan;
    // In a zip all keys change together; else each combination of the other keys has a panel.
    let others = |point: usize| -> Vec<usize> {
        if plan.zip { vec![] } else { plan.place(point).into_iter().skip(1).collect() }
    };
    let mut slices: Vec<Vec<usize>> = (0..plan.points()).map(others).collect();
    slices.sort();
    slices.dedup();
    let titles = sweep.words();
    let workloads = sweep.workloads();
    let metrics = metrics(sweep, slices.len() * workloads.len() > 2);
    let mut panels = vec![];
    for slice in &slices {
        let values: Vec<String> = slice
            .iter()
            .enumerate()
            .map(|(axis, place)| format!("{} = {}", titles[axis + 1], plan.axes[axis + 1].values[*place]))
            .collect();
        let points: Vec<usize> = (0..plan.points()).filter(|point| others(*point) == *slice).collect();
        for workload in &workloads {
            for metric in &metrics {
                let curve = |entry: &String| -> Vec<Point> {
                    let at = |point: &usize| {
                        let row = sweep.comparisons[*point].as_ref()?.row(workload, entry, metric.name)?;
                        let interval = row.ci95_low.zip(row.ci95_high);
                        let (seeds, ranks) = (row.seeds, row.ranks());
                        Some(Point { place: plan.place(*point)[0], mean: row.mean?, interval, seeds, ranks })
                    };
                    points.iter().filter_map(at).collect()
                };
                let mut heading = vec![];
                if workloads.len() > 1 {
                    heading.push(workload.clone());
                }
                heading.extend(values.iter().cloned());
                heading.extend(metrics.iter().any(|metric| SIZED.contains(&metric.name)).then(|| flows_of(metric)));
                panels.push(Panel {
                    heading: heading.join(", "),
                    metric,
                    workload: workload.clone(),
                    others: values.join(", "),
                    curves: plan.entries.iter().map(curve).collect(),
                });
            }
        }
    }
    panels.retain(|panel| panel.curves.iter().any(|curve| !curve.is_empty()));
    panels
}

/// Names the flows of a metric in a heading; the axis names the quantity.
fn flows_of(metric: &Metric) -> String {
    match metric.name {
        "slowdown_p99_small" => "flows up to 100 kB",
        "slowdown_p99_large" => "flows from 10 MB",
        _ => "all flows",
    }
    .to_string()
}

fn title(metric: &Metric) -> String {
    if SIZED.contains(&metric.name) {
        return "slowdown, 99th percentile".to_string();
    }
    let unit = if metric.unit == "us" { "µs" } else { metric.unit };
    if unit.is_empty() { metric.title.to_string() } else { format!("{} ({unit})", metric.title) }
}

/// `None` if there is no key or nothing to show.
pub(super) fn draw(sweep: &Sweep, layout: Layout) -> Option<Figure> {
    let plan = &sweep.plan;
    let axis = plan.axes.first()?;
    let all = panels(sweep);
    let shown = &all[..all.len().min(MAX_PANELS)];
    if shown.is_empty() {
        return None;
    }
    let x = places(&axis.numbers, axis.values.len());
    let names = &plan.entries;
    let panels = Panels { columns: shown.len().min(3), width: WIDTH, ..Panels::pairs(shown.len(), HEIGHT) };
    let grid = Grid::new(layout, &panels, &Key::Schemes(names));
    let heading =
        format!("{} by {}", capital(shown[0].metric.title), sweep.words().join(if plan.zip { " and " } else { ", " }));
    let is_partial = |point: &Point| point.seeds < plan.seeds.len() || !point.ranks;
    let partial = shown.iter().flat_map(|panel| panel.curves.iter().flatten()).any(is_partial);
    let mut subtitle = match plan.seeds.len() {
        1 => "One seed, so no intervals".to_string(),
        seeds => format!("Mean of {seeds} seeds; bands are 95 % confidence intervals"),
    };
    if partial {
        subtitle.push_str("; hollow: seeds missing or flows unfinished");
    }
    if all.len() > shown.len() {
        subtitle.push_str(&format!("; {} of {} panels, the rest in the CSV beside", shown.len(), all.len()));
    }
    let mut sheet = Sheet::new(&heading, &subtitle, &grid, names);
    let canvas = &mut sheet.canvas;
    canvas.show_schemes(names);
    let scale = |metric: &Metric| {
        let points = shown
            .iter()
            .filter(|panel| panel.metric.name == metric.name)
            .flat_map(|panel| panel.curves.iter().flatten());
        let ends = points.flat_map(|point| {
            let end = |pick: fn((f64, f64)) -> f64| point.interval.map_or(point.mean, pick);
            // Few seeds can have an interval longer than all means together.
            [point.mean, end(|i| i.0), end(|i| i.1).min(3.0 * point.mean)]
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
        let low = if low >= 0.0 && low < 0.6 * high { 0.0 } else { low };
        Scale::linear(low, high)
    };
    for (number, panel) in shown.iter().enumerate() {
        let (left, top) = grid.place(number);
        let area = Area { left, top, width: grid.width, height: grid.height, y: scale(panel.metric) };
        let words = axis.title(|title| LABEL.width(title) < grid.width + 40.0);
        area.frame(canvas, panel, &axis.ticks(), &x, &words);
        for (series, curve) in panel.curves.iter().enumerate() {
            area.curve(canvas, curve, series, &x);
            for point in curve {
                let at = area.at((x[point.place], point.mean));
                if is_partial(point) {
                    canvas.point(at, series, 1.7, Paint::Paper);
                }
                let seeds = if point.seeds < plan.seeds.len() {
                    format!("; {} of {} seeds", point.seeds, plan.seeds.len())
                } else {
                    String::new()
                };
                let unfinished = if point.ranks { "" } else { "; flows did not finish, not compared" };
                let interval =
                    point.interval.map_or(String::new(), |(low, high)| format!(", {}", wording::interval(low, high)));
                let value = &axis.values[point.place];
                let mean = significant_digits(point.mean, 4);
                let text =
                    format!("{}, {} = {value}: {mean}{interval}{seeds}{unfinished}", plan.entries[series], axis.key);
                canvas.hit(at, Some(series), text);
            }
        }
    }
    let entries: Vec<(String, usize)> = names.iter().cloned().enumerate().map(|(i, name)| (name, i)).collect();
    sheet.legend(&grid, &entries, true);
    Some(sheet.figure(NAME, &sweep.provenance(), row_columns(&axis.key), rows(sweep, &all)))
}

fn row_columns(key: &str) -> Vec<anabranch_results::manifest::ColumnEntry> {
    vec![
        column(key, "text", "", "value of the first key"),
        column("others", "text", "", "values of the other keys"),
        column("workload", "text", "", "workload; `all`: the measured ones together"),
        column("metric", "text", "", "quantity of the figure"),
        column("scheme", "text", "", "load balancer or variant"),
        column("mean", "real", "", "mean over seeds, in the unit of the metric"),
        column("ci95_low", "real", "", "lower end of its 95 % confidence interval; empty below two seeds"),
        column("ci95_high", "real", "", "upper end"),
        column("seeds", "integer", "", "seeds with a value"),
    ]
}

fn rows(sweep: &Sweep, panels: &[Panel]) -> Vec<Vec<String>> {
    let mut rows = vec![];
    for panel in panels {
        for (entry, curve) in sweep.plan.entries.iter().zip(&panel.curves) {
            for point in curve {
                let value = sweep.plan.axes[0].values[point.place].clone();
                let names =
                    [value, panel.others.clone(), panel.workload.clone(), panel.metric.name.into(), entry.clone()];
                let (low, high) = point.interval.unzip();
                let numbers = [point.mean.to_string(), cell(low), cell(high)];
                rows.push(names.into_iter().chain(numbers).chain([point.seeds.to_string()]).collect());
            }
        }
    }
    rows
}

struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    y: Scale,
}

impl Area {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        // A margin keeps the first and last markers off the edges.
        (self.left + (0.03 + 0.94 * x) * self.width, self.top + (1.0 - self.y.share(y)) * self.height)
    }

    fn frame(&self, canvas: &mut Canvas, panel: &Panel, values: &[String], x: &[f64], key: &str) {
        let (bottom, right) = (self.top + self.height, self.left + self.width);
        canvas.text((self.left, self.top - 10.0), &panel.heading, PANEL);
        vertical(canvas, (self.left, self.top), (self.width, self.height), self.y, plain);
        canvas.line((self.left, bottom), (right, bottom), Paint::Muted, 1.0);
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
        labels(canvas, bottom, 6.0, order.into_iter().map(|i| (self.at((x[i], 0.0)).0, &values[i])));
        canvas.text((self.left + self.width / 2.0, bottom + 37.0), key, LABEL.anchor(Anchor::Middle));
        let middle = (self.left - 48.0, self.top + self.height / 2.0);
        canvas.turned_text(middle, &title(panel.metric), LABEL.anchor(Anchor::Middle), -90.0);
    }

    fn curve(&self, canvas: &mut Canvas, curve: &[Point], series: usize, x: &[f64]) {
        let mut curve: Vec<&Point> = curve.iter().collect();
        curve.sort_by(|a, b| x[a.place].total_cmp(&x[b.place]));
        // A line across a point without results would claim that there are some.
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
        let rank = |point: &Point| order.iter().position(|place| *place == point.place).unwrap_or(0);
        for part in curve.chunk_by(|a, b| rank(a) + 1 == rank(b)) {
            let end = |pick: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
                part.iter().map(|p| self.at((x[p.place], p.interval.map_or(p.mean, pick)))).collect()
            };
            let points: Vec<(f64, f64)> = part.iter().map(|p| self.at((x[p.place], p.mean))).collect();
            banded(canvas, [end(|interval| interval.0), end(|interval| interval.1)], &points, series);
        }
    }
}
