//! Load balancers over time.

use super::{
    Figure, View, names,
    over_time::{Chart, Curve, Points, draw as draw_charts, rates},
    plain,
};
use crate::dataset::SchemeAt;
use anabranch_results::{bytes, significant_digits_trimmed};

fn ratio(value: f64) -> String {
    significant_digits_trimmed(value, 3)
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let curves = |points: &dyn Fn(&[SchemeAt]) -> Points| -> Vec<Curve> {
        let runs = data.schemes.iter().enumerate();
        runs.map(|(series, scheme)| Curve { series, points: points(&scheme.runs[0].series.scheme) }).collect()
    };
    let each = |samples: &[SchemeAt], get: &dyn Fn(&SchemeAt) -> Option<f64>| -> Points {
        samples.iter().filter_map(|sample| Some((sample.time_ps as f64 / 1e6, get(sample)?))).collect()
    };
    let open = curves(&|samples| each(samples, &|sample| Some(sample.open_flows as f64)));
    let in_flight = curves(&|samples| each(samples, &|sample| Some(sample.in_flight_bytes as f64)));
    let switches = curves(&|samples| rates(samples.iter().map(|sample| (sample.time_ps, sample.path_switches))));
    let imbalance = curves(&|samples| each(samples, &|sample| sample.imbalance));
    let charts = [
        Chart::new("Open flows", "Flows", plain, ("open_flows", "flows"), open),
        Chart::new("In flight", "Bytes", bytes, ("in_flight", "bytes"), in_flight),
        Chart::new("Changes of path", "Packets per us", ratio, ("path_switches", "packets/us"), switches),
        Chart::new(
            "Busiest uplink over the mean of its switch",
            "Ratio (1 is even)",
            ratio,
            ("uplink_imbalance", ""),
            imbalance,
        ),
    ];
    let subtitle = format!("Sampled over the whole run, seed {}", data.schemes[0].runs[0].summary.seed);
    Ok(draw_charts(view, "Load balancers over time", &subtitle, &names(data), charts))
}
