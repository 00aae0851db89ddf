use super::{Anchor, Canvas, Format, LABEL, PANEL, Paint, Scale, TICK};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis<'t> {
    pub(crate) scale: Scale,
    pub(crate) title: &'t str,
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<'t> {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) x: Axis<'t>,
    pub(crate) y: Axis<'t>,
    /// Least distance of the title of the vertical axis.
    pub(crate) title_at: f64,
}

/// Space around a panel for tick labels, titles of axes and the heading.
pub(crate) const BELOW: f64 = 48.0;
pub(crate) const BESIDE: f64 = 64.0;
pub(crate) const ABOVE: f64 = 26.0;

impl Panel<'_> {
    pub(crate) fn frame(&self, canvas: &mut Canvas, heading: &str) {
        canvas.text((self.left, self.top - 10.0), heading, PANEL);
        let widest = vertical(canvas, (self.left, self.top), (self.width, self.height), self.y.scale, self.y.format);
        horizontal(canvas, (self.left, self.top), (self.width, self.height), &self.x);
        let middle = (self.left - (widest + 13.0).clamp(self.title_at, 200.0), self.top + self.height / 2.0);
        canvas.turned_text(middle, self.y.title, LABEL.anchor(Anchor::Middle), -90.0);
    }

    pub(crate) fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.scale.share(value) * self.width
    }

    pub(crate) fn at_y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.scale.share(value)) * self.height
    }

    pub(crate) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.at_x(x), self.at_y(y))
    }

    pub(crate) fn line(&self, canvas: &mut Canvas, points: &[(f64, f64)], series: usize, markers: bool) {
        let points: Vec<(f64, f64)> = points.iter().map(|&point| self.at(point)).collect();
        canvas.curve(&points, series, 1.8);
        if markers {
            for &point in &points {
                canvas.point(point, series, 3.4, Paint::Series(series));
            }
        }
    }
}

/// Draws the ticks of a vertical axis, and returns the width of their widest label.
pub(crate) fn vertical(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    (width, height): (f64, f64),
    scale: Scale,
    format: Format,
) -> f64 {
    let mut widest = 0.0f64;
    for tick in scale.ticks() {
        let (y, text) = (top + (1.0 - scale.share(tick)) * height, format(tick));
        canvas.line((left, y), (left + width, y), Paint::Grid, 1.0);
        canvas.text((left - 7.0, y + 4.0), &text, TICK.anchor(Anchor::End));
        widest = widest.max(TICK.width(&text));
    }
    widest
}

/// Draws labels at places below a panel, left to right, `apart` from each other: those without space are hidden.
pub(crate) fn labels<'t>(
    canvas: &mut Canvas,
    bottom: f64,
    apart: f64,
    labels: impl IntoIterator<Item = (f64, &'t String)>,
) {
    let mut free_from = f64::NEG_INFINITY;
    for (x, text) in labels {
        let half = TICK.width(text) / 2.0;
        if x - half > free_from {
            canvas.line((x, bottom), (x, bottom + 4.0), Paint::Muted, 1.0);
            canvas.text((x, bottom + 17.0), text, TICK);
            free_from = x + half + apart;
        }
    }
}

/// Draws a line of `means` with markers, over the band of its `ends`: lower and upper.
pub(crate) fn banded(canvas: &mut Canvas, [low, high]: [Vec<(f64, f64)>; 2], means: &[(f64, f64)], series: usize) {
    let outline: Vec<(f64, f64)> = high.into_iter().chain(low.into_iter().rev()).collect();
    canvas.area(&outline, Paint::Series(series), 0.16);
    canvas.curve(means, series, 1.8);
    for point in means {
        canvas.point(*point, series, 3.2, Paint::Series(series));
    }
}

pub(crate) fn horizontal(canvas: &mut Canvas, (left, top): (f64, f64), (width, height): (f64, f64), axis: &Axis<'_>) {
    let bottom = top + height;
    let mut free_from = f64::NEG_INFINITY;
    for tick in axis.scale.ticks() {
        let x = left + axis.scale.share(tick) * width;
        canvas.line((x, top), (x, bottom), Paint::Grid, 1.0);
        let text = (axis.format)(tick);
        let half = TICK.width(&text) / 2.0;
        if x - half > free_from {
            canvas.line((x, bottom), (x, bottom + 4.0), Paint::Muted, 1.0);
            canvas.text((x, bottom + 17.0), &text, TICK);
            free_from = x + half + 6.0;
        }
    }
    canvas.line((left, bottom), (left + width, bottom), Paint::Muted, 1.0);
    canvas.text((left + width / 2.0, bottom + 37.0), axis.title, LABEL.anchor(Anchor::Middle));
}

/// Draws names right of lines, spread so that they do not overlap.
pub(crate) fn end_labels(
    canvas: &mut Canvas,
    right: f64,
    (top, bottom): (f64, f64),
    mut ends: Vec<(f64, String, usize)>,
) {
    let height = (((bottom - top) + 20.0) / ends.len().max(1) as f64).min(16.0);
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut places: Vec<f64> = ends.iter().map(|end| end.0).collect();
    spread(&mut places, height, top - 6.0, bottom + 6.0);
    for ((y, name, series), place) in ends.iter().zip(places) {
        canvas.line((right + 3.0, *y), (right + 16.0, place), Paint::Series(*series), 1.0);
        canvas.text((right + 20.0, place + 4.0), name, LABEL.paint(Paint::Ink).naming(*series));
    }
}

/// Moves ascending `places` as little as possible, so that neighbours are `gap` apart and all are from `low` to `high`.
fn spread(places: &mut [f64], gap: f64, low: f64, high: f64) {
    let mut free = low;
    for place in places.iter_mut() {
        *place = place.max(free);
        free = *place + gap;
    }
    let mut free = high;
    for place in places.iter_mut().rev() {
        *place = place.min(free);
        free = *place - gap;
    }
}

pub(crate) fn legend(canvas: &mut Canvas, left: f64, top: f64, entries: &[(String, usize)]) {
    for (i, (name, series)) in entries.iter().enumerate() {
        let y = top + 18.0 * i as f64;
        canvas.sample((left, y), (left + 22.0, y), *series);
        canvas.text((left + 29.0, y + 4.0), name, LABEL.naming(*series));
    }
}

/// Space of a line's sample, and behind an entry.
const SAMPLE: f64 = 28.0;
const BEHIND: f64 = 14.0;

/// Returns the indices of the entries in each row of a legend `width` wide.
pub(crate) fn rows_of_legend(names: &[String], width: f64) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = vec![vec![]];
    let mut used = 0.0;
    for (index, name) in names.iter().enumerate() {
        let entry = SAMPLE + LABEL.width(name);
        match rows.last_mut() {
            Some(row) if row.is_empty() || used + entry <= width => row.push(index),
            _ => {
                rows.push(vec![index]);
                used = 0.0;
            }
        }
        used += entry + BEHIND;
    }
    rows
}

/// Draws a legend in rows, `height` apart.
pub(crate) fn legend_rows(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    width: f64,
    height: f64,
    entries: &[(String, usize)],
    markers: bool,
) {
    let names: Vec<String> = entries.iter().map(|entry| entry.0.clone()).collect();
    for (row, indices) in rows_of_legend(&names, width).iter().enumerate() {
        let (mut x, y) = (left, top + height * row as f64);
        for (name, series) in indices.iter().map(|index| &entries[*index]) {
            canvas.sample((x, y), (x + 22.0, y), *series);
            if markers {
                canvas.point((x + 11.0, y), *series, 3.4, Paint::Series(*series));
            }
            canvas.text((x + SAMPLE, y + 4.0), name, LABEL.naming(*series));
            x += SAMPLE + LABEL.width(name) + BEHIND;
        }
    }
}

pub(crate) fn legend_width<'n>(names: impl Iterator<Item = &'n str>) -> f64 {
    names.map(|name| LABEL.width(name)).fold(0.0, f64::max) + 40.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legends_break_into_rows() {
        let names: Vec<String> = (0..6).map(|i| format!("scheme {i}")).collect();
        // Each entry takes 28 for its sample, some 45 for its name, and 14 behind it.
        let entry = SAMPLE + LABEL.width("scheme 1");
        assert_eq!(rows_of_legend(&names, 3.0 * entry + 2.0 * BEHIND), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(rows_of_legend(&names, 10.0).len(), 6);
        assert_eq!(rows_of_legend(&names, 10_000.0), [[0, 1, 2, 3, 4, 5]]);
    }

    #[test]
    fn labels_do_not_overlap_and_stay_inside() {
        let mut places = vec![10.0, 11.0, 12.0, 95.0, 99.0];
        spread(&mut places, 10.0, 0.0, 100.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{places:?}");
        assert!(places[0] >= 0.0 && places[4] <= 100.0);
    }
}
