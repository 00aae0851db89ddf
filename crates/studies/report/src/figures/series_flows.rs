//! Flows over time. Few flows of one load balancer are drawn individually; else they are aggregated.

use super::{
    Figure, View, names,
    over_time::{Chart, Curve, Points, draw as draw_charts, gigabits, rates},
    plain,
};
use crate::dataset::FlowAt;
use anabranch_results::bytes;
use std::collections::BTreeMap;

/// Maximum number of flows that are drawn individually.
const FEW: usize = 8;

fn microseconds(time_ps: u64) -> f64 {
    time_ps as f64 / 1e6
}

/// Curves in the order of the charts: throughput (bytes per microsecond), window, rate, in flight, paths.
type Drawn = [Points; 5];

fn of_flow(samples: &[FlowAt]) -> Drawn {
    let each = |get: &dyn Fn(&FlowAt) -> Option<u64>| -> Points {
        samples.iter().filter_map(|sample| Some((microseconds(sample.time_ps), get(sample)? as f64))).collect()
    };
    [
        rates(samples.iter().map(|sample| (sample.time_ps, sample.received_bytes))),
        each(&|sample| sample.window_bytes),
        each(&|sample| sample.rate_bps),
        each(&|sample| Some(sample.in_flight_bytes)),
        each(&|sample| Some(sample.paths)),
    ]
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Every row of a flow but its last is at a multiple of the interval.
fn interval(flows: &BTreeMap<u64, Vec<FlowAt>>) -> u64 {
    let times = flows.values().flat_map(|samples| &samples[..samples.len().saturating_sub(1)]);
    times.fold(0, |step, sample| gcd(step, sample.time_ps))
}

/// Curves of all flows: total throughput, mean window and rate, total bytes in flight, mean number of paths.
fn together(flows: &BTreeMap<u64, Vec<FlowAt>>) -> Drawn {
    let step = interval(flows);
    if step == 0 {
        return Drawn::default();
    }
    #[derive(Default)]
    struct Sum {
        received: u64,
        open: u64,
        window: (u64, u64),
        rate: (u64, u64),
        in_flight: u64,
        paths: u64,
    }
    let mut sums: BTreeMap<u64, Sum> = BTreeMap::new();
    for samples in flows.values() {
        let mut before = 0;
        for sample in samples {
            let sum = sums.entry(sample.time_ps.div_ceil(step)).or_default();
            sum.received += sample.received_bytes.saturating_sub(before);
            before = sample.received_bytes;
            if sample.time_ps % step == 0 {
                sum.open += 1;
                sum.in_flight += sample.in_flight_bytes;
                sum.paths += sample.paths;
                for (to, value) in [(&mut sum.window, sample.window_bytes), (&mut sum.rate, sample.rate_bps)] {
                    if let Some(value) = value {
                        *to = (to.0 + value, to.1 + 1);
                    }
                }
            }
        }
    }
    // Times without samples have a throughput of zero.
    let last = sums.keys().max().copied().unwrap_or(0);
    (0..=last).for_each(|number| {
        sums.entry(number).or_default();
    });
    let each = |get: &dyn Fn(&Sum) -> Option<f64>| -> Points {
        sums.iter().filter_map(|(number, sum)| Some((microseconds(number * step), get(sum)?))).collect()
    };
    let mean = |(sum, count): (u64, u64)| (count > 0).then(|| sum as f64 / count as f64);
    [
        each(&|sum| Some(sum.received as f64 / microseconds(step))),
        each(&|sum| mean(sum.window)),
        each(&|sum| mean(sum.rate)),
        each(&|sum| Some(sum.in_flight as f64)),
        each(&|sum| mean((sum.paths, sum.open))),
    ]
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let first = |scheme: usize| &data.schemes[scheme].runs[0].series;
    let alone = data.schemes.len() == 1 && first(0).flows.len() <= FEW;
    let (names, drawn): (Vec<String>, Vec<Drawn>) = if alone {
        first(0).flows.iter().map(|(id, samples)| (format!("flow {id}"), of_flow(samples))).unzip()
    } else {
        names(data).into_iter().zip((0..data.schemes.len()).map(|scheme| together(&first(scheme).flows))).unzip()
    };
    let flows = (0..data.schemes.len()).map(|scheme| first(scheme).flows.len()).max().unwrap_or(0);
    if flows == 0 {
        return Ok(None);
    }
    let scaled = |which: usize, factor: f64| -> Vec<Curve> {
        let points = |of: &Drawn| of[which].iter().map(|(time, value)| (*time, value * factor)).collect();
        drawn.iter().enumerate().map(|(series, of)| Curve { series, points: points(of) }).collect()
    };
    let (all, mean) = if alone { ("", "") } else { (", all together", ", mean of open flows") };
    let charts = [
        Chart::new(format!("Received{all}"), "Payload", gigabits, ("received", "Gb/s"), scaled(0, 8.0 / 1e3)),
        Chart::new(format!("Window{mean}"), "Window", bytes, ("window", "bytes"), scaled(1, 1.0)),
        Chart::new(format!("Rate{mean}"), "Rate", gigabits, ("rate", "Gb/s"), scaled(2, 1e-9)),
        Chart::new(format!("In flight{all}"), "Bytes", bytes, ("in_flight", "bytes"), scaled(3, 1.0)),
        Chart::new(format!("Paths since the row before{mean}"), "Paths", plain, ("paths", ""), scaled(4, 1.0)),
    ];
    let seed = data.schemes[0].runs[0].summary.seed;
    let subtitle = format!("{flows} flow{} with a series, seed {seed}", if flows == 1 { "" } else { "s" });
    Ok(draw_charts(view, "Flows over time", &subtitle, &names, charts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_sums_flows() {
        let at = |time_ps, received_bytes, window| FlowAt {
            time_ps,
            received_bytes,
            window_bytes: Some(window),
            paths: 2,
            ..FlowAt::default()
        };
        // Samples every 10 ps; the second flow ends at 35 ps.
        let flows = BTreeMap::from([
            (3, vec![at(10, 100, 7), at(20, 300, 9), at(30, 600, 9), at(40, 600, 9)]),
            (4, vec![at(20, 50, 5), at(30, 150, 5), at(35, 250, 5)]),
        ]);
        assert_eq!(interval(&flows), 10);
        let [received, window, ..] = together(&flows);
        let per_microsecond = |bytes: f64| bytes / 1e-5;
        let expected = [0.0, 100.0, 250.0, 400.0, 100.0].map(per_microsecond);
        let close = |(a, b): (&(f64, f64), f64)| (a.1 - b).abs() < 1e-3;
        assert!(received.iter().zip(expected).all(close), "{received:?}");
        assert_eq!(window.iter().map(|point| point.1).collect::<Vec<_>>(), [7.0, 7.0, 7.0, 9.0]);
    }
}
