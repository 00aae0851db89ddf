//! Slowdown against flow size: median and 99th percentile in bins, each the mean over seeds with its confidence interval.

use super::{Axis, Figure, Grid, Key, Paint, Panels, Scale, Sheet, View, column, panel::end_labels, plain, seeds};
use crate::{
    by_size::{Bin, DISTINCT, MIN_FLOWS, MIN_FLOWS_MEDIAN, binned, bins, interval, over_seeds},
    wording,
};
use anabranch_results::{bytes, cell, significant_digits, thousands};
use anabranch_statistics::{Estimate, mean};

type Points = Vec<(usize, Estimate)>;

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    // Not all schemes finish all flows; the bins are those of the scheme that finished the most.
    let sizes = |scheme: &crate::dataset::SchemeRuns| -> Vec<Vec<u64>> {
        scheme.runs.iter().map(|run| view.flows(run).map(|flow| flow.size_bytes).collect()).collect()
    };
    let most = data.schemes.iter().map(sizes).max_by_key(|seeds| seeds.iter().map(Vec::len).sum::<usize>());
    let Some(most) = most else { return Ok(None) };
    let mut sizes = most.iter().flatten();
    let first = sizes.next();
    if sizes.all(|size| Some(size) == first) {
        return Ok(None);
    }
    let bins = bins(&most);
    if bins.len() < 2 {
        return Err(format!(
            "each seed has too few flows for two sizes ({MIN_FLOWS_MEDIAN} flows a bin are the fewest)"
        ));
    }
    let number = |estimate: Option<Estimate>, get: fn(&Estimate) -> Option<f64>| cell(estimate.as_ref().and_then(get));
    let names = view.marked_names();
    let mut rows = vec![];
    let mut panels: [Vec<(usize, Points)>; 2] = [vec![], vec![]];
    for (series, scheme) in data.schemes.iter().enumerate() {
        let per_seed: Vec<Vec<Vec<f64>>> = scheme
            .runs
            .iter()
            .map(|run| binned(&bins, view.flows(run).map(|flow| (flow.size_bytes, flow.slowdown))))
            .collect();
        let mut lines = [vec![], vec![]];
        for (at, bin) in bins.iter().enumerate() {
            let slowdowns: Vec<f64> = per_seed.iter().flat_map(|bins| bins[at].iter().copied()).collect();
            let estimates = [0.5, 0.99].map(|q| over_seeds(&per_seed, at, q));
            for (line, estimate) in lines.iter_mut().zip(estimates) {
                line.extend(estimate.map(|estimate| (at, estimate)));
            }
            let sizes = [bin.from, bin.to, bin.at].map(|size| size.to_string());
            let [p50, p99] = estimates;
            let means = [cell(mean(&slowdowns)), number(p50, |e| Some(e.mean))];
            let tail = [
                number(p99, |e| Some(e.mean)),
                number(p50, |e| interval(e).map(|i| i.0)),
                number(p50, |e| interval(e).map(|i| i.1)),
                number(p99, |e| interval(e).map(|i| i.0)),
                number(p99, |e| interval(e).map(|i| i.1)),
                scheme.runs.len().to_string(),
            ];
            let count = [slowdowns.len().to_string()];
            rows.push([std::slice::from_ref(&scheme.name), &sizes, &count, &means, &tail].concat());
        }
        for (panel, line) in panels.iter_mut().zip(lines) {
            panel.push((series, line));
        }
    }
    let many = bins.len() > DISTINCT || bins.iter().any(|bin| bin.from != bin.to);
    let shown: Vec<(&str, &Vec<(usize, Points)>)> = ["Median", "99th percentile"]
        .into_iter()
        .zip(&panels)
        .filter(|(_, lines)| lines.iter().any(|line| !line.1.is_empty()))
        .collect();
    if shown.is_empty() {
        return Err(format!("no bin of sizes has {MIN_FLOWS_MEDIAN} flows of every seed"));
    }
    let drawn = |series: usize| panels.iter().flatten().any(|(of, line)| *of == series && !line.is_empty());
    let (marked, absent): (Vec<usize>, Vec<usize>) =
        (0..names.len()).filter(|series| names[*series].ends_with('!')).partition(|series| drawn(*series));
    let absent: Vec<&str> = absent.into_iter().map(|series| names[series].as_str()).collect();
    let note = match (marked.is_empty(), absent.is_empty()) {
        (true, true) => String::new(),
        (_, false) => format!("; too few flows finished: {}", absent.join(", ").replace(" !", "")),
        (false, true) => "; !: of finished flows alone, too good".to_string(),
    };
    let subtitle = format!(
        "{}, {}{}; a 99th percentile is shown where every seed has {MIN_FLOWS} flows or more{}. Less is better, 1 is a flow alone on the network{}",
        if many { format!("{} bins of sizes", bins.len()) } else { "One point per size".to_string() },
        seeds(data, "mean over ", " with its 95 % confidence interval"),
        if data.seeds().len() == 1 { ", so no interval" } else { "" },
        if shown.len() == 1 { " (here nowhere)" } else { "" },
        note,
    );
    let grid = Grid::new(view.layout, &Panels::pairs(shown.len(), 300.0), &Key::Schemes(&names));
    let title = view.titled("FCT slowdown by flow size: median and tail");
    let mut sheet = Sheet::new(&title, &subtitle, &grid, &names);
    sheet.canvas.show_schemes(&data.names());
    let x = Scale::fitting(bins[0].at as f64, bins[bins.len() - 1].at as f64, 5.0);
    let values = || shown.iter().flat_map(|(_, lines)| lines.iter()).flat_map(|line| &line.1).map(|(_, e)| e);
    let largest = values().map(|e| interval(e).map_or(e.mean, |i| i.1).min(e.mean * 3.0)).fold(1.0, f64::max);
    let y = Scale::fitting(1.0, largest, 5.0);
    for (panel, (heading, lines)) in shown.iter().enumerate() {
        let x_axis = Axis { scale: x, title: "Flow size", format: bytes };
        let y_axis = Axis { scale: y, title: "FCT slowdown", format: plain };
        let area = grid.panel(panel, x_axis, y_axis);
        area.frame(&mut sheet.canvas, heading);
        for (series, line) in lines.iter() {
            let intervals: Vec<(f64, (f64, f64))> =
                line.iter().filter_map(|(bin, e)| Some((bins[*bin].at as f64, interval(e)?))).collect();
            let upper = intervals.iter().map(|(x, ends)| area.at((*x, ends.1)));
            let lower = intervals.iter().rev().map(|(x, ends)| area.at((*x, ends.0)));
            let band: Vec<(f64, f64)> = upper.chain(lower).collect();
            sheet.canvas.area(&band, Paint::Series(*series), 0.14);
        }
        let mut ends = vec![];
        for (series, line) in lines.iter() {
            let points: Vec<(f64, f64)> = line.iter().map(|(bin, e)| (bins[*bin].at as f64, e.mean)).collect();
            area.line(&mut sheet.canvas, &points, *series, true);
            for ((bin, estimate), point) in line.iter().zip(&points) {
                let words = words(&names[*series], heading, &bins[*bin], estimate);
                sheet.canvas.hit(area.at(*point), Some(*series), words);
            }
            if let Some(&(_, last)) = points.last() {
                ends.push((area.at_y(last), names[*series].clone(), *series));
            }
        }
        if view.layout.is_page() && panel + 1 == shown.len() && ends.len() > 1 {
            end_labels(&mut sheet.canvas, grid.right(), (area.top, area.top + grid.height), ends);
        }
        sheet.canvas.line((area.left, area.top), (area.left, area.top + grid.height), Paint::Grid, 1.0);
    }
    if !view.layout.is_page() {
        sheet.legend(&grid, &names.iter().cloned().zip(0..).collect::<Vec<_>>(), true);
    }
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("size_from_bytes", "integer", "bytes", "smallest flow of the bin"),
        column("size_to_bytes", "integer", "bytes", "largest flow of the bin"),
        column("size_median_bytes", "integer", "bytes", "median flow of the bin, position of its point"),
        column("flows", "integer", "flows", "flows of the scheme in the bin, all seeds"),
        column("slowdown_mean", "real", "", "mean slowdown of these flows"),
        column("slowdown_p50", "real", "", "median slowdown per seed, mean over seeds; empty below 10 flows of a seed"),
        column(
            "slowdown_p99",
            "real",
            "",
            "99th percentile per seed, mean over seeds; empty below 100 flows of a seed",
        ),
        column("slowdown_p50_ci95_low", "real", "", "lower end of the median's 95 % confidence interval"),
        column("slowdown_p50_ci95_high", "real", "", "upper end"),
        column("slowdown_p99_ci95_low", "real", "", "lower end of the 99th percentile's 95 % confidence interval"),
        column("slowdown_p99_ci95_high", "real", "", "upper end"),
        column("seeds", "integer", "", "seeds"),
    ];
    Ok(Some(sheet.finish(view, columns, rows)))
}

fn words(name: &str, heading: &str, bin: &Bin, estimate: &Estimate) -> String {
    let interval =
        interval(estimate).map_or(String::new(), |(low, high)| format!(" ({})", wording::interval(low, high)));
    let sizes = if bin.from == bin.to {
        format!("{} B", thousands(&bin.at.to_string()))
    } else {
        format!("{} to {}", bytes(bin.from as f64), bytes(bin.to as f64))
    };
    format!("{name}, {sizes}: {} slowdown {}{interval}", heading.to_lowercase(), significant_digits(estimate.mean, 4))
}
