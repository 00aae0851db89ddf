//! Distribution of queue lengths: the share of time with at least a number of packets waiting, per tier.

use super::{Axis, Figure, Grid, Key, Panels, Scale, Sheet, View, column, names, percent, plain, seeds};
use crate::SchemeRuns;
use anabranch_results::capital;
use std::collections::BTreeMap;

fn complementary_shares(scheme: &SchemeRuns, group: &str) -> Vec<(u64, f64)> {
    let mut times: BTreeMap<u64, u128> = BTreeMap::new();
    for run in &scheme.runs {
        let mut own = 0;
        for entry in run.occupancy.iter().filter(|entry| entry.group == group) {
            *times.entry(entry.packets).or_default() += u128::from(entry.time_ps);
            own += u128::from(entry.time_ps);
        }
        // From its end to that of the longest run of its seed, queues are empty.
        let longer = if run.summary.simulated_s > 0.0 { run.common_s / run.summary.simulated_s - 1.0 } else { 0.0 };
        *times.entry(0).or_default() += (own as f64 * longer.max(0.0)) as u128;
    }
    let total: u128 = times.values().sum();
    let mut left = total;
    let mut shares = vec![];
    for (packets, time) in times {
        shares.push((packets, left as f64 / total as f64));
        left -= time;
    }
    shares
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let measured = |group: &String| {
        data.schemes.iter().flat_map(|s| &s.runs).any(|run| run.occupancy.iter().any(|o| o.group == *group))
    };
    let groups: Vec<String> = data.link_groups().into_iter().filter(measured).collect();
    if groups.is_empty() {
        return Ok(None);
    }
    let names = names(data);
    let drawn = groups.len().min(6);
    let grid = Grid::new(view.layout, &Panels::pairs(drawn, 240.0), &Key::Schemes(&names));
    let subtitle = format!(
        "All ports of a tier, {}, over {}; further left and lower is better",
        seeds(data, "", ""),
        data.queue_words()
    );
    let mut sheet = Sheet::new("Share of time with at least this many packets waiting", &subtitle, &grid, &names);
    sheet.canvas.show_schemes(&names);
    let mut rows = vec![];
    let all: Vec<Vec<Vec<(u64, f64)>>> = groups
        .iter()
        .map(|group| data.schemes.iter().map(|scheme| complementary_shares(scheme, group)).collect())
        .collect();
    let points = || all.iter().flatten().flatten();
    let max_packets = points().map(|point| point.0).max().unwrap_or(1) as f64;
    let min_share = points().map(|point| point.1).filter(|share| *share > 0.0).fold(0.1, f64::min).max(1e-6);
    for (panel, (group, curves)) in groups.iter().zip(&all).enumerate() {
        for (name, curve) in names.iter().zip(curves) {
            let row = |(n, share): &(u64, f64)| vec![group.clone(), name.clone(), n.to_string(), share.to_string()];
            rows.extend(curve.iter().map(row));
        }
        if panel >= drawn {
            continue;
        }
        let x_axis = Axis { scale: Scale::linear(0.0, max_packets), title: "Waiting packets", format: plain };
        let y_axis = Axis { scale: Scale::logarithmic(min_share, 1.0), title: "Share of time", format: percent };
        let area = grid.panel(panel, x_axis, y_axis);
        area.frame(&mut sheet.canvas, &capital(group));
        for (series, curve) in curves.iter().enumerate() {
            let points: Vec<(f64, f64)> =
                curve.iter().filter(|point| point.1 >= min_share).map(|&(n, share)| (n as f64, share)).collect();
            area.line(&mut sheet.canvas, &points, series, false);
            for &(packets, share) in &points {
                let words = format!("{}: {} of the time {packets} packets or more", names[series], percent(share));
                sheet.canvas.hit(area.at((packets, share)), Some(series), words);
            }
        }
    }
    sheet.legend(&grid, &names.iter().cloned().zip(0..).collect::<Vec<_>>(), false);
    let columns = vec![
        column("links", "text", "", "tier and direction"),
        column("scheme", "text", "", "load balancer"),
        column("packets", "integer", "packets", "waiting data packets"),
        column("share_of_time", "real", "", "share of time with at least this many, over ports and seeds"),
    ];
    Ok(Some(sheet.finish(view, columns, rows)))
}
