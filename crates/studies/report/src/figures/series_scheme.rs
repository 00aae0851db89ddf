//! Load balancers over time.

use super::{
    Figure, FigureKind, Format, View, names,
    over_time::{Chart, Curve, Merge, Points, Story, draw as draw_charts, rates},
    plain,
};
use crate::dataset::SchemeAt;
use anabranch_results::{bytes, significant_digits_trimmed};

pub(crate) const KIND: FigureKind =
    FigureKind { name: "series_scheme", draw, of_flows: false, needs: ("series_scheme", &["time_ps", "open_flows"]) };

fn ratio(value: f64) -> String {
    significant_digits_trimmed(value, 3)
}

fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let curves = |points: &dyn Fn(&[SchemeAt]) -> Points| -> Vec<Curve> {
        let runs = data.schemes.iter().enumerate();
        runs.map(|(series, scheme)| Curve { series, points: points(&scheme.runs[0].series.scheme) }).collect()
    };
    let each = |samples: &[SchemeAt], get: &dyn Fn(&SchemeAt) -> Option<f64>| -> Points {
        samples.iter().filter_map(|sample| Some((sample.time_ps as f64 / 1e6, get(sample)?))).collect()
    };
    let chart = |heading: &str, title, format: Format, metric, unit, curves| Chart {
        heading: heading.to_string(),
        title,
        format,
        merge: Merge::Mean,
        metric,
        unit,
        curves,
    };
    let open = curves(&|samples| each(samples, &|sample| Some(sample.open_flows as f64)));
    let in_flight = curves(&|samples| each(samples, &|sample| Some(sample.in_flight_bytes as f64)));
    let switches = curves(&|samples| rates(samples.iter().map(|sample| (sample.time_ps, sample.path_switches))));
    let imbalance = curves(&|samples| each(samples, &|sample| sample.imbalance));
    let charts = vec![
        chart("Open flows", "Flows", plain, "open_flows", "flows", open),
        chart("In flight", "Bytes", bytes, "in_flight", "bytes", in_flight),
        chart("Changes of path", "Packets per us", ratio, "path_switches", "packets/us", switches),
        chart(
            "Busiest uplink over the mean of its switch",
            "Ratio (1 is even)",
            ratio,
            "uplink_imbalance",
            "",
            imbalance,
        ),
    ];
    let names = names(data);
    let subtitle = format!("Sampled over the whole run, seed {}", data.schemes[0].runs[0].summary.seed);
    let faults = &data.schemes[0].runs[0].series.faults;
    let story =
        Story { name: KIND.name, title: "Load balancers over time", subtitle: &subtitle, names: &names, faults };
    Ok(draw_charts(view, &story, charts))
}
