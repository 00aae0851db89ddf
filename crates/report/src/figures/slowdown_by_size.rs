//! Slowdown against flow size: median and 99th percentile in bins of about as many flows each.

use super::{
    Figure,
    palette::Paint,
    panel::{Axis, Panel, end_labels},
    scale::{Scale, plain},
    seeds,
    sheet::{Grid, Sheet, column, names},
};
use crate::{
    dataset::{Dataset, FlowPoint},
    numbers::bytes,
    statistics::{mean, quantile},
};

/// Name of its files.
pub(crate) const NAME: &str = "slowdown_by_size";

/// Bins where flows have many sizes.
const BINS: usize = 20;
/// Up to so many different sizes each is a bin of its own.
const DISTINCT: usize = 24;

/// Smallest and largest size of a bin, and the median size of its flows, where its point stands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    from: u64,
    to: u64,
    at: u64,
}

/// Bins over the sizes of `flows`, with no size in two bins.
fn bins(mut sizes: Vec<u64>) -> Vec<Bin> {
    sizes.sort_unstable();
    let distinct = sizes.chunk_by(|a, b| a == b).count();
    let target = if distinct <= DISTINCT { 1 } else { sizes.len().div_ceil(BINS) };
    let mut bins = vec![];
    let mut from = 0;
    while from < sizes.len() {
        let last = sizes[(from + target - 1).min(sizes.len() - 1)];
        let mut to = from + sizes[from..].partition_point(|size| *size <= last);
        // What would be less than half a bin goes with the one before it.
        if target > 1 && sizes.len() - to < target / 2 {
            to = sizes.len();
        }
        bins.push(Bin { from: sizes[from], to: sizes[to - 1], at: sizes[(from + to - 1) / 2] });
        from = to;
    }
    bins
}

/// Slowdowns per bin, ascending.
fn binned<'f>(bins: &[Bin], flows: impl Iterator<Item = &'f FlowPoint>) -> Vec<Vec<f64>> {
    let mut slowdowns = vec![vec![]; bins.len()];
    for flow in flows {
        let bin = bins.partition_point(|bin| bin.to < flow.size_bytes);
        if let Some(bin) = slowdowns.get_mut(bin) {
            bin.push(flow.slowdown);
        }
    }
    for bin in &mut slowdowns {
        bin.sort_unstable_by(f64::total_cmp);
    }
    slowdowns
}

/// `None` where there are fewer than two sizes: there is then nothing to plot against.
pub(crate) fn draw(data: &Dataset) -> Option<Figure> {
    // Schemes run the same flows, but not all finish them; the bins are those of the scheme that finished most.
    let most = data.schemes.iter().max_by_key(|scheme| scheme.flows().count())?;
    let bins = bins(most.flows().map(|flow| flow.size_bytes).collect());
    if bins.len() < 2 {
        return None;
    }
    let mut rows = vec![];
    let mut panels = [vec![], vec![]];
    for (series, scheme) in data.schemes.iter().enumerate() {
        let mut lines = [vec![], vec![]];
        for (bin, slowdowns) in bins.iter().zip(binned(&bins, scheme.flows())) {
            let (Some(mean), Some(p50), Some(p99)) =
                (mean(&slowdowns), quantile(&slowdowns, 0.5), quantile(&slowdowns, 0.99))
            else {
                continue;
            };
            lines[0].push((bin.at as f64, p50));
            lines[1].push((bin.at as f64, p99));
            let sizes = [bin.from, bin.to, bin.at].map(|size| size.to_string());
            let values = [mean, p50, p99].map(|value| value.to_string());
            let number = [slowdowns.len().to_string()];
            rows.push([std::slice::from_ref(&scheme.name), &sizes, &number, &values].concat());
        }
        for (panel, line) in panels.iter_mut().zip(lines) {
            panel.push((series, line));
        }
    }
    let many = bins.len() > DISTINCT || bins.iter().any(|bin| bin.from != bin.to);
    let subtitle = format!(
        "{}, flows of {}; less is better, 1 is a flow alone on the network",
        if many {
            format!("{} bins of about as many flows each", bins.len())
        } else {
            "one point per size".to_string()
        },
        seeds(data, "", " together")
    );
    let grid = Grid::pairs(2, 300.0);
    let names = names(data);
    let mut sheet = Sheet::new("FCT slowdown by flow size: median and tail", &subtitle, &grid, &names);
    let x = Scale::fitting(bins[0].at as f64, bins[bins.len() - 1].at as f64, 5.0);
    for (panel, (heading, lines)) in ["Median", "99th percentile"].into_iter().zip(&panels).enumerate() {
        let largest = lines.iter().flat_map(|line| &line.1).map(|point| point.1).fold(1.0, f64::max);
        let (left, top) = grid.place(panel);
        let area = Panel {
            left,
            top,
            width: grid.width,
            height: grid.height,
            x: Axis { scale: x, title: "Flow size", format: bytes },
            y: Axis { scale: Scale::fitting(1.0, largest, 6.0), title: "FCT slowdown", format: plain },
        };
        area.frame(&mut sheet.canvas, heading);
        let mut ends = vec![];
        for (series, line) in lines {
            area.line(&mut sheet.canvas, line, *series, true);
            if let Some(&(_, last)) = line.last() {
                ends.push((area.at_y(last), names[*series].clone(), *series));
            }
        }
        if panel == 1 && ends.len() > 1 {
            end_labels(&mut sheet.canvas, grid.right(), (top, top + grid.height), ends);
        }
        sheet.canvas.line((left, top), (left, top + grid.height), Paint::Grid, 1.0);
    }
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("size_from_bytes", "integer", "bytes", "smallest flow of the bin"),
        column("size_to_bytes", "integer", "bytes", "largest flow of the bin"),
        column("size_median_bytes", "integer", "bytes", "median flow of the bin, where its point stands"),
        column("flows", "integer", "flows", "flows of the scheme in the bin, all seeds"),
        column("slowdown_mean", "real", "", "mean slowdown"),
        column("slowdown_p50", "real", "", "median slowdown"),
        column("slowdown_p99", "real", "", "99th percentile of the slowdown"),
    ];
    Some(sheet.finish(NAME, data, columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_are_bins_of_their_own() {
        let found = bins(vec![10, 20, 10, 30, 20]);
        let at = |size| Bin { from: size, to: size, at: size };
        assert_eq!(found, [at(10), at(20), at(30)]);
    }

    #[test]
    fn many_sizes_fall_into_equal_bins_without_overlap() {
        // 1000 different sizes into 20 bins: 50 flows each, the first from 1 to 50.
        let found = bins((1..=1000).rev().collect());
        assert_eq!(found.len(), 20);
        assert_eq!((found[0].from, found[0].to, found[19].to), (1, 50, 1000));
        assert!(found.windows(2).all(|pair| pair[0].to < pair[1].from));
    }

    #[test]
    fn a_flow_falls_into_the_bin_of_its_size() {
        let flow = |size_bytes, slowdown| FlowPoint { size_bytes, slowdown };
        let flows = [flow(10, 2.0), flow(20, 3.0), flow(10, 1.0), flow(99, 9.0)];
        assert_eq!(binned(&bins(vec![10, 20]), flows.iter()), [vec![1.0, 2.0], vec![3.0]]);
    }
}
