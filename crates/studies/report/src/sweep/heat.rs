//! Heat maps over two keys: a map per scheme, a cell per point.

use super::Sweep;
use crate::{
    Anchor, Canvas, Figure, Grid, Key, LABEL, Layout, Metric, PANEL, Paint, Panels, SUBTITLE, Scale, Sheet, TICK,
    TITLE, column, figures::heat, plain,
};
use anabranch_results::{capital, cell, significant_digits};

pub(super) const NAME: &str = "sweep_heat";

/// Maximum number of maps drawn; all are in the rows.
const MAX_MAPS: usize = 12;
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 240.0;
const BESIDE: f64 = 84.0;
const BELOW: f64 = 52.0;

/// `None` unless there are exactly two keys in a full grid.
pub(super) fn draw(sweep: &Sweep, layout: Layout) -> Option<Figure> {
    let plan = &sweep.plan;
    let [across, up] = plan.axes.as_slice() else { return None };
    if plan.zip || across.values.len() < 2 || up.values.len() < 2 {
        return None;
    }
    let metric = Metric::named(sweep.main_metric())?;
    let workloads = sweep.workloads();
    let maps: Vec<(&String, &String)> =
        workloads.iter().flat_map(|workload| plan.entries.iter().map(move |entry| (workload, entry))).collect();
    let mean = |point: usize, (workload, entry): (&String, &String)| {
        sweep.comparisons[point].as_ref()?.row(workload, entry, metric.name)?.mean
    };
    let means: Vec<Vec<Option<f64>>> =
        maps.iter().map(|map| (0..plan.points()).map(|point| mean(point, *map)).collect()).collect();
    let ends = means
        .iter()
        .flatten()
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    if ends.0 > ends.1 {
        return None;
    }
    // Exactly from minimum to maximum, so that small differences are visible.
    let scale = Scale::exact(ends.0, if ends.1 > ends.0 { ends.1 } else { ends.0 + 1.0 });
    let shown = maps.len().min(MAX_MAPS);
    let panels = Panels {
        columns: shown.min(3),
        width: WIDTH,
        min_width: 120.0,
        beside: BESIDE,
        below: BELOW,
        ..Panels::pairs(shown, HEIGHT)
    };
    let grid = Grid::new(layout, &panels, &Key::Row);
    let titles = sweep.words();
    let heading = format!("{} by {} and {}", capital(metric.title), titles[0], titles[1]);
    let mut subtitle = match plan.seeds.len() {
        1 => "One seed. Light is high, dark is low; less is better".to_string(),
        seeds => format!("Mean of {seeds} seeds. Light is high, dark is low; less is better"),
    };
    if maps.len() > shown {
        subtitle.push_str(&format!("; {shown} of {} maps, the rest in the CSV beside", maps.len()));
    }
    let mut sheet;
    if layout.is_page() {
        let width = (grid.right() + 24.0).max(SUBTITLE.width(&subtitle) + 250.0).max(TITLE.width(&heading) + 250.0);
        sheet = Sheet::sized(&heading, &subtitle, (width, grid.bottom() + 6.0));
        bar(&mut sheet.canvas, (width - 24.0, 16.0), scale);
    } else {
        sheet = Sheet::new(&heading, &subtitle, &grid, &[]);
        bar(&mut sheet.canvas, (grid.right(), 4.0), scale);
    }
    let canvas = &mut sheet.canvas;
    let (cell_width, cell_height) = (grid.width / across.values.len() as f64, grid.height / up.values.len() as f64);
    for (number, (map, means)) in maps.iter().zip(&means).enumerate().take(shown) {
        let (left, top) = grid.place(number);
        let name = if workloads.len() > 1 { format!("{}, {}", map.1, map.0) } else { map.1.clone() };
        canvas.text((left, top - 10.0), &name, PANEL);
        for (point, mean) in means.iter().enumerate() {
            let place = plan.place(point);
            let at = (left + place[0] as f64 * cell_width, top + grid.height - (place[1] + 1) as f64 * cell_height);
            let Some(mean) = mean else {
                let middle = (at.0 + cell_width / 2.0, at.1 + cell_height / 2.0);
                canvas.text((middle.0, middle.1 + 4.0), "no runs", TICK);
                let series = plan.entries.iter().position(|entry| entry == map.1);
                canvas.hit(middle, series, format!("{name}, {}: no finished run", plan.values(point).join(", ")));
                continue;
            };
            let share = scale.share(*mean);
            canvas.cells(&[at], (cell_width - 1.0, cell_height - 1.0), heat(share));
            let text = significant_digits(*mean, 3);
            let series = plan.entries.iter().position(|entry| entry == map.1);
            let middle = (at.0 + cell_width / 2.0, at.1 + cell_height / 2.0);
            canvas.hit(middle, series, format!("{name}, {}: {text}", plan.values(point).join(", ")));
            if TICK.width(&text) + 6.0 < cell_width && cell_height > 14.0 {
                let paint = if share > 0.6 { Paint::Fixed([27, 31, 36]) } else { Paint::Fixed([255, 255, 255]) };
                canvas.text((middle.0, middle.1 + 4.0), &text, TICK.paint(paint));
            }
        }
        let mut free_from = f64::NEG_INFINITY;
        for (i, value) in across.ticks().iter().enumerate() {
            let (x, half) = (left + (i as f64 + 0.5) * cell_width, TICK.width(value) / 2.0);
            if x - half > free_from {
                canvas.text((x, top + grid.height + 16.0), value, TICK);
                free_from = x + half + 6.0;
            }
        }
        let mut free_below = f64::INFINITY;
        for (i, value) in up.ticks().iter().enumerate() {
            let y = top + grid.height - (i as f64 + 0.5) * cell_height;
            if y + 6.0 < free_below {
                canvas.text((left - 7.0, y + 4.0), value, TICK.anchor(Anchor::End));
                free_below = y - 7.0;
            }
        }
        canvas.text(
            (left + grid.width / 2.0, top + grid.height + 37.0),
            &across.title(|title| LABEL.width(title) < grid.width + 40.0),
            LABEL.anchor(Anchor::Middle),
        );
        canvas.turned_text(
            (left - 66.0, top + grid.height / 2.0),
            &up.title(|title| LABEL.width(title) < grid.height + 20.0),
            LABEL.anchor(Anchor::Middle),
            -90.0,
        );
    }
    let columns = vec![
        column(&across.key, "text", "", "value of the first key"),
        column(&up.key, "text", "", "value of the second key"),
        column("workload", "text", "", "workload; `all`: the measured ones together"),
        column("scheme", "text", "", "load balancer or variant"),
        column(metric.name, "real", metric.unit, "mean over seeds"),
    ];
    let mut rows = vec![];
    for (map, means) in maps.iter().zip(&means) {
        for (point, mean) in means.iter().enumerate() {
            let mut row: Vec<String> = plan.values(point).into_iter().map(str::to_string).collect();
            row.extend([map.0.clone(), map.1.clone(), cell(*mean)]);
            rows.push(row);
        }
    }
    Some(sheet.figure(NAME, &sweep.provenance(), columns, rows))
}

fn bar(canvas: &mut Canvas, (right, top): (f64, f64), scale: Scale) {
    const STEPS: usize = 40;
    let (low, high) = scale.ends();
    let high = plain(high);
    let width = 130.0;
    let left = right - width - SUBTITLE.width(&high) - 6.0;
    for i in 0..STEPS {
        let x = left + width * i as f64 / STEPS as f64;
        canvas.cells(&[(x, top)], (width / STEPS as f64 + 0.3, 9.0), heat((i as f64 + 0.5) / STEPS as f64));
    }
    canvas.text((left - 6.0, top + 8.5), &plain(low), SUBTITLE.anchor(Anchor::End));
    canvas.text((left + width + 6.0, top + 8.5), &high, SUBTITLE);
}
