use super::{
    Anchor, Axis, Figure, Grid, Key, LABEL, PANEL, Paint, Panels, SUBTITLE, Scale, Sheet, View, column, horizontal,
    names, seeds,
};
use crate::{LinkPoint, SchemeRuns};
use anabranch_results::{bytes, capital};
use anabranch_statistics::mean;

/// Mean over ports of the mean, largest 99th percentile, largest maximum; each the mean over seeds, in bytes.
fn depths(scheme: &SchemeRuns, group: &str) -> Option<[f64; 3]> {
    let mut per_seed: [Vec<f64>; 3] = Default::default();
    for run in &scheme.runs {
        let links: Vec<&LinkPoint> = run.links.iter().filter(|link| *link.group == *group).collect();
        if links.is_empty() {
            continue;
        }
        let largest =
            |get: fn(&LinkPoint) -> Option<f64>| links.iter().filter_map(|link| get(link)).fold(0.0, f64::max);
        per_seed[0].extend(mean(&links.iter().filter_map(|link| link.queue_mean_bytes).collect::<Vec<_>>()));
        per_seed[1].push(largest(|link| link.queue_p99_bytes));
        per_seed[2].push(largest(|link| link.queue_max_bytes));
    }
    let [average, p99, max] = per_seed.map(|values| mean(&values));
    Some([average?, p99?, max?])
}

/// Height of a scheme's row, and the same in a paper or on a slide.
const ROW: f64 = 20.0;
const NARROW_ROW: f64 = 14.0;

/// At most one in this many values may be below the axis.
const CUT: usize = 6;

/// Returns the least value on the axis. If a decade or more is empty and few values are below it, these are drawn at the edge.
fn min_shown(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    let gap = |pair: &[f64]| pair[1].log10().floor() < pair[0].log10().floor() - 1.0;
    let below = |at: &usize| (values.len() - at - 1) * CUT <= values.len();
    let cut = (0..values.len().saturating_sub(1)).find(|at| gap(&values[*at..at + 2]) && below(at));
    cut.map(|at| values[at]).or(values.last().copied())
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let groups = data.link_groups();
    let names = names(data);
    let depths: Vec<Vec<Option<[f64; 3]>>> = groups
        .iter()
        .map(|group| data.schemes.iter().map(|scheme| depths(scheme, group)).collect::<Vec<_>>())
        .collect();
    let mut waiting: Vec<f64> = depths.iter().flatten().flatten().flatten().copied().filter(|d| *d > 0.0).collect();
    let several = data.schemes.len() > 1;
    let Some(least) = min_shown(&mut waiting) else { return Ok(None) };
    let scale = Scale::logarithmic(least, waiting[0]);
    let edge = scale.ends().0;
    let cut = depths.iter().flatten().flatten().flatten().any(|depth| *depth < edge * 0.999);
    let beside = names.iter().map(|name| LABEL.width(name)).fold(40.0, f64::max) + 16.0;
    let row_height = if view.layout.is_page() { ROW } else { NARROW_ROW };
    let panels = Panels {
        width: if groups.len() < 2 { 620.0 } else { 330.0 },
        flexible: false,
        beside,
        ..Panels::pairs(groups.len(), row_height * names.len() as f64 + 8.0)
    };
    let grid = Grid::new(view.layout, &panels, &Key::Row);
    let (width, height) = (grid.width, grid.height);
    let subtitle = format!(
        "Waiting data per switch port, {}; less is better. Means are over {}. The axis is logarithmic{}",
        seeds(data, "mean over ", ""),
        data.queue_words(),
        if cut { format!("; signs at its left edge are less than {}", bytes(edge)) } else { String::new() }
    );
    let mut sheet = Sheet::new("Queue depth at switch ports", &subtitle, &grid, &[]);
    sheet.canvas.show_schemes(&names);
    let mut rows = vec![];
    for (panel, (group, depths)) in groups.iter().zip(&depths).enumerate() {
        let (left, top) = grid.place(panel);
        let canvas = &mut sheet.canvas;
        let at = |value: f64| left + scale.share(value) * width;
        canvas.text((left, top - 10.0), &capital(group), PANEL);
        let axis = Axis { scale, title: "Waiting data per port", format: bytes };
        horizontal(canvas, (left, top), (width, height), &axis);
        for (series, (name, depth)) in names.iter().zip(depths).enumerate() {
            let y = top + 4.0 + row_height * (series as f64 + 0.5);
            canvas.text((left - 10.0, y + 4.0), name, LABEL.anchor(Anchor::End).naming(series));
            let Some([mean, p99, max]) = *depth else { continue };
            let paint = Paint::Series(series);
            canvas.line((at(mean), y), (at(max), y), paint, 2.0);
            for (value, shape, what) in [(max, 1, "most"), (p99, 3, "99th percentile"), (mean, 0, "mean of ports")] {
                // A percentile over time is of a scheme's own run, so it does not compare.
                if several && shape == 3 {
                    continue;
                }
                canvas.marker((at(value), y), shape, 4.6, paint);
                canvas.hit((at(value), y), Some(series), format!("{name}: {what} {}", bytes(value)));
            }
            let values = [mean, p99, max].map(|value| value.to_string());
            rows.push([&[group.clone(), name.clone()], &values[..]].concat());
        }
    }
    let (mut x, y) = if view.layout.is_page() { ((grid.right() - 340.0).max(230.0), 23.0) } else { (10.0, 9.0) };
    for (shape, name) in [(0, "mean of ports"), (3, "99th percentile"), (1, "max (worst port)")] {
        if several && shape == 3 {
            continue;
        }
        sheet.canvas.marker((x, y), shape, 4.6, Paint::Muted);
        sheet.canvas.text((x + 9.0, y + 4.0), name, SUBTITLE);
        x += SUBTITLE.width(name) + 28.0;
    }
    let columns = vec![
        column("links", "text", "", "tier and direction"),
        column("scheme", "text", "", "load balancer"),
        column(
            "queue_mean_bytes",
            "real",
            "bytes",
            &format!("waiting data, mean over time, ports and seeds; over {}", data.queue_words()),
        ),
        column(
            "queue_p99_bytes",
            "real",
            "bytes",
            "99th percentile over the time of the scheme's own run, of the worst port, mean over seeds",
        ),
        column("queue_max_bytes", "real", "bytes", "most at the worst port, mean over seeds"),
    ];
    Ok(Some(sheet.finish(view, columns, rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_decades_are_cut() {
        // 12 B is three decades below the next value, alone among seven: the axis begins at 30 kB.
        assert_eq!(min_shown(&mut [30e3, 200e3, 12.0, 4e5, 5e4, 6e4, 9e4]), Some(30e3));
        // Neighbouring decades are kept, and so is a gap with a third of the values below it.
        assert_eq!(min_shown(&mut [15.0, 900.0, 3e3]), Some(15.0));
        assert_eq!(min_shown(&mut [15.0, 1e5, 3e5]), Some(15.0));
        assert_eq!(min_shown(&mut []), None);
    }
}
