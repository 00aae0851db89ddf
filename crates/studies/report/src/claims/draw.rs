use super::{ClaimFigure, ClaimMark, ClaimPanel, ClaimShape};
use crate::{
    Anchor, BELOW, BESIDE, Canvas, LABEL, PANEL, Paint, SUBTITLE, Scale, Sheet, TICK, TITLE,
    figures::{banded, labels, legend, legend_width, vertical},
    places, plain,
};
use anabranch_results::significant_digits_trimmed;

const HEIGHT: f64 = 220.0;
const TOP: f64 = 92.0;
/// Maximum width of a bar including its spacing.
const BAR: f64 = 16.0;

struct Area<'f> {
    figure: &'f ClaimFigure,
    panel: &'f ClaimPanel,
    left: f64,
    top: f64,
    width: f64,
    x: Vec<f64>,
    y: Scale,
}

pub(super) fn draw(figure: &ClaimFigure) -> Sheet {
    let columns = figure.panels.len().clamp(1, if figure.panels.len() == 4 { 2 } else { 3 });
    let bars = figure.x.len() as f64 * (figure.series.len() as f64 + 1.0) * BAR;
    let labels = figure.x.iter().map(|x| TICK.width(x) + 10.0).sum::<f64>();
    let width = match figure.shape {
        ClaimShape::Bars => bars.max(labels).clamp(250.0, 640.0),
        _ => 330.0,
    };
    let side = legend_width(figure.series.iter().map(String::as_str)) + 14.0;
    let left = |number: usize| 16.0 + BESIDE + (number % columns) as f64 * (width + BESIDE + 12.0);
    let top = |number: usize| TOP + (number / columns) as f64 * (HEIGHT + BELOW + 34.0);
    let has_published =
        figure.panels.iter().flat_map(|p| p.marks.iter().flatten().flatten()).any(|m| m.published.is_some());
    let mut subtitle = figure.subtitle.clone();
    if has_published {
        subtitle += "; diamonds: the paper's values";
    }
    let sheet_width = (left(columns - 1) + width + 16.0 + side)
        .max(SUBTITLE.width(&subtitle) + 32.0)
        .max(TITLE.width(&figure.title) + 32.0);
    let last = figure.panels.len().max(1) - 1;
    let height = (top(last) + HEIGHT + BELOW + 8.0).max(TOP + 18.0 * figure.series.len() as f64 + 24.0);
    let mut sheet = Sheet::sized(&figure.title, &subtitle, (sheet_width, height));
    let canvas = &mut sheet.canvas;
    canvas.show_schemes(&figure.series);
    for (number, panel) in figure.panels.iter().enumerate() {
        let x = positions(figure);
        let y = scale(figure, panel);
        let area = Area { figure, panel, left: left(number), top: top(number), width, x, y };
        area.draw(canvas);
    }
    let entries: Vec<(String, usize)> =
        figure.series.iter().cloned().enumerate().map(|(number, name)| (name, number)).collect();
    legend(canvas, left(columns - 1) + width + 18.0, TOP + 8.0, &entries);
    sheet
}

/// Positions of the x values, from 0 to 1.
fn positions(figure: &ClaimFigure) -> Vec<f64> {
    let count = figure.x.len().max(1) as f64;
    match &figure.shape {
        ClaimShape::Lines { numbers } => places(numbers, figure.x.len()),
        _ => (0..figure.x.len()).map(|at| (at as f64 + 0.5) / count).collect(),
    }
}

fn numbers(mark: &ClaimMark) -> impl Iterator<Item = f64> {
    let interval = mark.interval.map(|(low, high)| [low, high]);
    let ends = interval.into_iter().flatten();
    mark.mean.into_iter().chain(mark.published).chain(ends).filter(|value| value.is_finite())
}

fn scale(figure: &ClaimFigure, panel: &ClaimPanel) -> Scale {
    if let ClaimShape::Cdf { .. } = figure.shape {
        return Scale::exact(0.0, 1.0);
    }
    // Panels of one metric share their scale.
    let same = || figure.panels.iter().filter(|other| other.y_title == panel.y_title);
    let marks = || same().flat_map(|panel| panel.marks.iter().flatten().flatten());
    let (low, high) =
        marks().flat_map(numbers).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    // An interval alone does not extend the axis below zero.
    let is_negative = marks().flat_map(|mark| mark.mean.into_iter().chain(mark.published)).any(|value| value < 0.0);
    let low = if is_negative { low } else { low.max(0.0) };
    match () {
        () if low > high => Scale::linear(0.0, 1.0),
        () if figure.logarithmic && low > 0.0 => Scale::logarithmic(low, high),
        // Bars begin at zero, or at one if all values are close to it.
        () if low >= 0.9 && high < 3.0 && figure.shape == ClaimShape::Bars => Scale::linear(1.0f64.min(low), high),
        () => Scale::linear(low.min(0.0), high.max(0.0)),
    }
}

impl Area<'_> {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * self.width, self.top + (1.0 - self.y.share(y)) * HEIGHT)
    }

    fn draw(&self, canvas: &mut Canvas) {
        let (bottom, right) = (self.top + HEIGHT, self.left + self.width);
        canvas.text((self.left, self.top - 10.0), &self.panel.heading, PANEL);
        let widest = vertical(canvas, (self.left, self.top), (self.width, HEIGHT), self.y, plain);
        canvas.line((self.left, bottom), (right, bottom), Paint::Muted, 1.0);
        let middle = (self.left - (widest + 13.0).max(48.0), self.top + HEIGHT / 2.0);
        let below = (self.left + self.width / 2.0, bottom + 37.0);
        if let ClaimShape::Cdf { shares } = &self.figure.shape {
            canvas.turned_text(middle, "share of flows", LABEL.anchor(Anchor::Middle), -90.0);
            canvas.text(below, &self.panel.y_title, LABEL.anchor(Anchor::Middle));
            self.distribution(canvas, shares);
            return;
        }
        canvas.turned_text(middle, &self.panel.y_title, LABEL.anchor(Anchor::Middle), -90.0);
        canvas.text(below, &self.figure.x_title, LABEL.anchor(Anchor::Middle));
        labels(canvas, bottom, 4.0, self.x.iter().map(|x| self.at(*x, 0.0).0).zip(&self.figure.x));
        for series in 0..self.panel.marks.len() {
            match self.figure.shape {
                ClaimShape::Bars => self.bars(canvas, series),
                _ => self.line(canvas, series),
            }
        }
    }

    fn bars(&self, canvas: &mut Canvas, series: usize) {
        let group = self.width / self.figure.x.len().max(1) as f64;
        let bar = (group * 0.86 / self.figure.series.len().max(1) as f64).min(2.5 * BAR);
        let begin = (group - bar * self.figure.series.len() as f64) / 2.0;
        for (number, mark) in self.panel.marks[series].iter().enumerate() {
            let Some(mark) = mark else { continue };
            let left = self.left + number as f64 * group + begin + series as f64 * bar;
            let middle = left + bar / 2.0;
            let (bottom, zero) = (self.top + HEIGHT, self.at(0.0, 0.0).1);
            match mark.mean {
                Some(mean) if mean.is_finite() => {
                    let top = self.at(0.0, mean).1;
                    let size = (bar - 2.0, (zero - top).abs());
                    canvas.rectangle((left + 1.0, top.min(zero)), size, Paint::Series(series));
                }
                Some(_) => canvas.cross((middle, bottom - 8.0), 4.0, Paint::Series(series)),
                None => {}
            }
            let at = mark.mean.map_or(bottom, |mean| self.at(0.0, mean).1);
            canvas.hit((middle, at), Some(series), self.words(series, number, mark));
            if let Some((low, high)) = mark.interval {
                let (low, high) = (self.at(0.0, low).1, self.at(0.0, high).1);
                canvas.line((middle, low), (middle, high), Paint::Ink, 1.0);
                for y in [low, high] {
                    canvas.line((middle - 2.5, y), (middle + 2.5, y), Paint::Ink, 1.0);
                }
            }
            if let Some(published) = mark.published {
                canvas.marker((middle, self.at(0.0, published).1), 3, 4.2, Paint::Ink);
            }
        }
    }

    fn words(&self, series: usize, x: usize, mark: &ClaimMark) -> String {
        let number = |value: f64| significant_digits_trimmed(value, 4);
        let ours = match (mark.mean, mark.interval) {
            (Some(mean), _) if mean.is_infinite() => "never ends".to_string(),
            (Some(mean), Some((low, high))) => format!("{} ({} to {})", number(mean), number(low), number(high)),
            (Some(mean), None) => number(mean),
            (None, _) => "not run".to_string(),
        };
        let published = mark.published.map_or(String::new(), |value| format!("; the paper {}", number(value)));
        format!("{}, {}: {ours}{published}", self.figure.series[series], self.figure.x[x])
    }

    fn line(&self, canvas: &mut Canvas, series: usize) {
        let marks: Vec<(f64, &ClaimMark)> = self.panel.marks[series]
            .iter()
            .zip(&self.x)
            .filter_map(|(mark, x)| mark.as_ref().map(|mark| (0.03 + 0.94 * x, mark)))
            .collect();
        let known =
            || marks.iter().filter_map(|(x, mark)| Some((*x, mark.mean.filter(|mean| mean.is_finite())?, *mark)));
        let end = |pick: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
            known().map(|(x, mean, mark)| self.at(x, mark.interval.map_or(mean, pick))).collect()
        };
        let points: Vec<(f64, f64)> = known().map(|(x, mean, _)| self.at(x, mean)).collect();
        banded(canvas, [end(|interval| interval.0), end(|interval| interval.1)], &points, series);
        for (number, (x, mark)) in marks.iter().enumerate() {
            if let Some(mean) = mark.mean.filter(|mean| mean.is_finite()) {
                canvas.hit(self.at(*x, mean), Some(series), self.words(series, number, mark));
            }
        }
        for (x, mark) in &marks {
            if let Some(published) = mark.published {
                canvas.marker(self.at(*x, published), 3, 4.2, Paint::Ink);
            }
        }
    }

    fn distribution(&self, canvas: &mut Canvas, shares: &[f64]) {
        let finite = |mark: &Option<ClaimMark>| mark.as_ref()?.mean.filter(|mean| mean.is_finite());
        let panels = self.figure.panels.iter();
        let values = panels.flat_map(|panel| panel.marks.iter().flatten().filter_map(finite));
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return;
        }
        let x = match low > 0.0 && (self.figure.logarithmic || high / low > 30.0) {
            true => Scale::logarithmic(low, high),
            false => Scale::linear(low, high),
        };
        let bottom = self.top + HEIGHT;
        for tick in x.ticks() {
            let place = self.left + x.share(tick) * self.width;
            canvas.line((place, self.top), (place, bottom), Paint::Grid, 1.0);
            canvas.text((place, bottom + 17.0), &plain(tick), TICK);
        }
        for (series, marks) in self.panel.marks.iter().enumerate() {
            let points = marks.iter().zip(shares);
            let points: Vec<(f64, f64)> = points
                .filter_map(|(mark, share)| {
                    Some((self.left + x.share(finite(mark)?) * self.width, self.at(0.0, *share).1))
                })
                .collect();
            canvas.curve(&points, series, 1.8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;

    fn figure(shape: ClaimShape) -> ClaimFigure {
        let mark = |mean: f64, published| {
            Some(ClaimMark { mean: Some(mean), interval: Some((mean - 0.1, mean + 0.1)), seeds: 3, published })
        };
        let panel = |heading: &str| ClaimPanel {
            heading: heading.into(),
            y_title: "slowdown".into(),
            marks: vec![vec![mark(1.0, Some(1.2)), mark(2.0, None)], vec![mark(f64::INFINITY, None), None]],
        };
        ClaimFigure {
            name: "fig3".into(),
            title: "Fig. 3".into(),
            subtitle: "quick".into(),
            shape,
            x_title: "size".into(),
            x: vec!["small".into(), "large".into()],
            series: vec!["ECMP".into(), "PRIME".into()],
            logarithmic: false,
            panels: vec![panel("50 %"), panel("80 %")],
            provenance: "test".into(),
        }
    }

    #[test]
    fn every_shape_shows_unfinished_and_missing_values() {
        for shape in [
            ClaimShape::Bars,
            ClaimShape::Lines { numbers: vec![1.0, 2.0] },
            ClaimShape::Lines { numbers: vec![] },
            ClaimShape::Cdf { shares: vec![0.5, 1.0] },
        ] {
            let Figure { svg, hits, .. } = figure(shape.clone()).drawn();
            let is_cdf = matches!(shape, ClaimShape::Cdf { .. });
            assert!(
                is_cdf || hits.iter().any(|hit| hit.text == "ECMP, small: 1 (0.9 to 1.1); the paper 1.2"),
                "{hits:?}"
            );
            for word in ["Fig. 3", "50 %", "80 %", "ECMP", "PRIME", "slowdown", "the paper's values"] {
                assert!(svg.contains(&crate::figures::escape(word)), "no {word}");
            }
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn interval_alone_keeps_axis_at_zero() {
        let mut wide = figure(ClaimShape::Bars);
        wide.panels[0].marks[0][0] =
            Some(ClaimMark { mean: Some(5.0), interval: Some((-10.0, 20.0)), seeds: 3, published: None });
        assert_eq!(scale(&wide, &wide.panels[0]).ends().0, 0.0);
        wide.panels[0].marks[0][0] =
            Some(ClaimMark { mean: Some(-5.0), interval: Some((-10.0, 0.0)), seeds: 3, published: None });
        assert_eq!(scale(&wide, &wide.panels[0]).ends().0, -10.0);
    }

    #[test]
    fn rows_of_the_marks() {
        let csv = figure(ClaimShape::Bars).to_csv();
        let lines: Vec<&str> = csv.lines().collect();
        // Two panels with three marks each.
        assert_eq!(lines.len(), 1 + 6);
        assert_eq!(lines[1], "50 %,small,ECMP,1,0.9,1.1,3,1.2");
        assert_eq!(lines[3], "50 %,small,PRIME,inf,inf,inf,3,");
    }
}
