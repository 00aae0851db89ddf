//! Ports over time, per tier and direction.

use super::{
    Figure, FigureKind, View, names,
    over_time::{Chart, Curve, Merge, Points, Story, draw as draw_charts, gigabits, rates},
    percent,
};
use crate::dataset::LinksAt;
use anabranch_results::{bytes, capital, significant_digits_trimmed};

pub(crate) const KIND: FigureKind = FigureKind {
    name: "series_links",
    draw,
    of_flows: false,
    needs: ("series", &["from", "to", "time_ps", "queue_bytes", "sent_bytes"]),
};

fn per_microsecond(value: f64) -> String {
    significant_digits_trimmed(value, 3)
}

fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
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
    let mut charts = vec![];
    for group in groups {
        let chart = |what: &str, title, format, merge, metric, unit, points: &dyn Fn(&[LinksAt]) -> Points| Chart {
            heading: format!("{}: {what}", capital(group)),
            title,
            format,
            merge,
            metric,
            unit,
            curves: curves(group, points),
        };
        let each = |samples: &[LinksAt], get: &dyn Fn(&LinksAt) -> f64| -> Points {
            samples.iter().map(|sample| (sample.time_ps as f64 / 1e6, get(sample))).collect()
        };
        let sent = |samples: &[LinksAt]| {
            let ports = samples.first().map_or(1, |sample| sample.ports).max(1) as f64;
            let rates = rates(samples.iter().map(|sample| (sample.time_ps, sample.sent_bytes)));
            rates.into_iter().map(|(time, bytes)| (time, bytes * 8.0 / 1e3 / ports)).collect()
        };
        charts.push(chart("throughput", "Per port", gigabits, Merge::Mean, "throughput", "Gb/s", &sent));
        let deepest = |samples: &[LinksAt]| each(samples, &|sample| sample.deepest_bytes as f64);
        charts.push(chart("deepest queue", "Waiting data", bytes, Merge::Largest, "deepest_queue", "bytes", &deepest));
        let events = "Packets per us";
        let marks = |samples: &[LinksAt]| rates(samples.iter().map(|sample| (sample.time_ps, sample.marks)));
        charts.push(chart("ECN marks", events, per_microsecond, Merge::Mean, "marks", "packets/us", &marks));
        let losses = |samples: &[LinksAt]| rates(samples.iter().map(|sample| (sample.time_ps, sample.losses)));
        charts.push(chart("trims and drops", events, per_microsecond, Merge::Mean, "losses", "packets/us", &losses));
        let paused = |samples: &[LinksAt]| each(samples, &|s| s.paused as f64 / s.ports.max(1) as f64);
        charts.push(chart("paused ports", "Share of ports", percent, Merge::Mean, "paused", "", &paused));
    }
    let names = names(data);
    let subtitle = format!(
        "Ports with a series, seed {}; throughput is the mean of {} ports, the queue that of the deepest",
        data.schemes[0].runs[0].summary.seed,
        if ports.ports == 1 { "1".to_string() } else { format!("up to {}", max_ports(view)) }
    );
    let story = Story {
        name: KIND.name,
        title: "Links over time",
        subtitle: &subtitle,
        names: &names,
        faults: &data.schemes[0].runs[0].series.faults,
    };
    Ok(draw_charts(view, &story, charts))
}

fn max_ports(view: &View<'_>) -> u64 {
    let runs = view.data.schemes.iter().filter_map(|scheme| scheme.runs.first());
    runs.flat_map(|run| run.series.links.values())
        .filter_map(|samples| samples.first())
        .map(|s| s.ports)
        .max()
        .unwrap_or(0)
}
