//! Ports over time, per tier and direction.

use super::{
    Figure, View, names,
    over_time::{Chart, Curve, Merge, Points, draw as draw_charts, gigabits, rates},
    percent,
};
use crate::dataset::LinksAt;
use anabranch_results::{bytes, capital, significant_digits_trimmed};

fn per_microsecond(value: f64) -> String {
    significant_digits_trimmed(value, 3)
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let first = |scheme: usize| &data.schemes[scheme].runs[0].series;
    let mut groups: Vec<&String> = (0..data.schemes.len()).flat_map(|scheme| first(scheme).links.keys()).collect();
    groups.sort();
    groups.dedup();
    let Some(ports) = (0..data.schemes.len()).find_map(|s| first(s).links.values().next()?.first()) else {
        return Ok(None);
    };
    let curves = |group: &str, points: &dyn Fn(&[LinksAt]) -> Points| -> Vec<Curve> {
        let of =
            |series: usize| first(series).links.get(group).map(|samples| Curve { series, points: points(samples) });
        (0..data.schemes.len()).filter_map(of).collect()
    };
    let microseconds = |sample: &LinksAt| sample.time_ps as f64 / 1e6;
    let sent = |samples: &[LinksAt]| {
        let ports = samples.first().map_or(1, |sample| sample.ports).max(1) as f64;
        let rates = rates(samples.iter().map(|sample| (sample.time_ps, sample.sent_bytes)));
        rates.into_iter().map(|(time, bytes)| (time, bytes * 8.0 / 1e3 / ports)).collect()
    };
    let deepest = |samples: &[LinksAt]| samples.iter().map(|at| (microseconds(at), at.deepest_bytes as f64)).collect();
    let marks = |samples: &[LinksAt]| rates(samples.iter().map(|sample| (sample.time_ps, sample.marks)));
    let losses = |samples: &[LinksAt]| rates(samples.iter().map(|sample| (sample.time_ps, sample.losses)));
    let paused = |samples: &[LinksAt]| {
        samples.iter().map(|at| (microseconds(at), at.paused as f64 / at.ports.max(1) as f64)).collect()
    };
    let charts = groups.into_iter().flat_map(|group| {
        let heading = |what: &str| format!("{}: {what}", capital(group));
        let events = |what: &str, metric, points: &dyn Fn(&[LinksAt]) -> Points| {
            let metric = (metric, "packets/us");
            Chart::new(heading(what), "Packets per us", per_microsecond, metric, curves(group, points))
        };
        let queue = ("deepest_queue", "bytes");
        [
            Chart::new(heading("throughput"), "Per port", gigabits, ("throughput", "Gb/s"), curves(group, &sent)),
            Chart {
                merge: Merge::Largest,
                ..Chart::new(heading("deepest queue"), "Waiting data", bytes, queue, curves(group, &deepest))
            },
            events("ECN marks", "marks", &marks),
            events("trims and drops", "losses", &losses),
            Chart::new(heading("paused ports"), "Share of ports", percent, ("paused", ""), curves(group, &paused)),
        ]
    });
    let subtitle = format!(
        "Ports with a series, seed {}; throughput is the mean of {} ports, the queue that of the deepest",
        data.schemes[0].runs[0].summary.seed,
        if ports.ports == 1 { "1".to_string() } else { format!("up to {}", max_ports(view)) }
    );
    Ok(draw_charts(view, "Links over time", &subtitle, &names(data), charts))
}

fn max_ports(view: &View<'_>) -> u64 {
    let runs = view.data.schemes.iter().filter_map(|scheme| scheme.runs.first());
    runs.flat_map(|run| run.series.links.values())
        .filter_map(|samples| samples.first())
        .map(|s| s.ports)
        .max()
        .unwrap_or(0)
}
