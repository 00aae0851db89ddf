//! A canvas whose content is kept as SVG.

use super::{
    Layout, Paint,
    palette::{dash, marker, numbers},
};
use std::fmt::Write;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) paint: Paint,
    pub(crate) anchor: Anchor,
    /// The scheme that the text names: a click on it isolates that scheme on the page.
    pub(crate) series: Option<usize>,
}

/// A point of a figure whose values the page shows when the pointer is near.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) at: (f64, f64),
    pub(crate) series: Option<usize>,
    pub(crate) text: String,
}

pub(crate) const TITLE: Style =
    Style { size: 16.0, bold: true, paint: Paint::Ink, anchor: Anchor::Start, series: None };
pub(crate) const SUBTITLE: Style =
    Style { size: 12.0, bold: false, paint: Paint::Muted, anchor: Anchor::Start, series: None };
pub(crate) const PANEL: Style =
    Style { size: 13.0, bold: true, paint: Paint::Ink, anchor: Anchor::Start, series: None };
pub(crate) const LABEL: Style =
    Style { size: 12.0, bold: false, paint: Paint::Ink, anchor: Anchor::Start, series: None };
pub(crate) const TICK: Style =
    Style { size: 11.0, bold: false, paint: Paint::Muted, anchor: Anchor::Middle, series: None };

impl Style {
    pub(crate) fn anchor(self, anchor: Anchor) -> Self {
        Style { anchor, ..self }
    }
    pub(crate) fn paint(self, paint: Paint) -> Self {
        Style { paint, ..self }
    }
    pub(crate) fn bold(self) -> Self {
        Style { bold: true, ..self }
    }
    pub(crate) fn naming(self, series: usize) -> Self {
        Style { series: Some(series), ..self }
    }
    /// Returns the approximate width; layout requires no exact one.
    pub(crate) fn width(&self, text: &str) -> f64 {
        let em: f64 = text.chars().map(advance).sum();
        em * self.size * if self.bold { 1.06 } else { 1.0 }
    }
}

/// Approximate advance in em, as of a grotesque.
fn advance(letter: char) -> f64 {
    match letter {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.28,
        'f' | 't' | 'r' | '(' | ')' | '-' | ' ' | '/' => 0.37,
        'm' | 'w' | 'M' | 'W' | '%' => 0.88,
        'A'..='Z' => 0.69,
        '0'..='9' => 0.62,
        _ => 0.58,
    }
}

#[derive(Debug)]
pub(crate) struct Canvas {
    width: f64,
    height: f64,
    body: String,
    hits: Vec<Hit>,
    /// Line style of each series; a series without one has the style of its number.
    styles: Vec<usize>,
    /// Largest letters.
    max_size: f64,
}

/// Formats with at most two decimals.
fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// XML has no control characters, not even as references.
pub(crate) fn escape(text: &str) -> String {
    anabranch_input::escaped(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Canvas {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let mut canvas =
            Canvas { width, height, body: String::new(), hits: vec![], styles: vec![], max_size: f64::INFINITY };
        canvas.rectangle((0.0, 0.0), (width, height), Paint::Paper);
        canvas
    }

    /// Sets headings in letters no larger than labels.
    pub(crate) fn limit_letters(&mut self) {
        self.max_size = LABEL.size;
    }

    /// Gives the series the styles of these schemes.
    pub(crate) fn show_schemes<N: AsRef<str>>(&mut self, names: &[N]) {
        self.styles = numbers(names);
    }

    fn style(&self, series: usize) -> usize {
        self.styles.get(series).copied().unwrap_or(series)
    }

    fn painted(&self, paint: Paint) -> Paint {
        if let Paint::Series(series) = paint { Paint::Series(self.style(series)) } else { paint }
    }

    fn colour(&self, paint: Paint) -> String {
        self.painted(paint).colour()
    }

    fn class(&self, stroke: Paint, fill: Paint) -> String {
        let name = |letter: &str, paint: Paint| self.painted(paint).class().map(|class| format!("{letter}-{class}"));
        let classes: Vec<String> = [name("f", fill), name("l", stroke)].into_iter().flatten().collect();
        let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
        match (stroke, fill) {
            (Paint::Series(series), _) | (_, Paint::Series(series)) => format!("{class} data-s=\"{series}\""),
            _ => class,
        }
    }

    pub(crate) fn hit(&mut self, at: (f64, f64), series: Option<usize>, text: String) {
        self.hits.push(Hit { at, series, text });
    }

    pub(crate) fn take_hits(&mut self) -> Vec<Hit> {
        std::mem::take(&mut self.hits)
    }

    pub(crate) fn into_svg(self, layout: &Layout, title: &str, description: &str, provenance: &str) -> String {
        let (width, height) = (px(self.width), px(self.height));
        let [on_paper_x, on_paper_y] = [self.width, self.height].map(|length| layout.attribute(length));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{on_paper_x}\" height=\"{on_paper_y}\" \
             font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\" role=\"img\" aria-label=\"{}\">\n\
             <desc>{} {}</desc>\n{}</svg>\n",
            escape(title),
            escape(description),
            escape(provenance),
            self.body
        )
    }

    // Writing into a string cannot fail, so the result of `write!` is ignored below.

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint, width: f64) {
        self.dashed_line(from, to, paint, width, "");
    }

    pub(crate) fn dashed_line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint, width: f64, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = writeln!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{dash}{}/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1),
            self.colour(paint),
            px(width),
            self.class(paint, Paint::None)
        );
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], paint: Paint, width: f64, dash: &str) {
        if points.len() < 2 {
            return;
        }
        let points: Vec<String> = points.iter().map(|&(x, y)| format!("{},{}", px(x), px(y))).collect();
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\" \
             stroke-linecap=\"round\"{dash}{}/>",
            points.join(" "),
            self.colour(paint),
            px(width),
            self.class(paint, Paint::None)
        );
    }

    /// Draws the line of a series in its style.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], series: usize, width: f64) {
        self.path(points, Paint::Series(series), width, dash(self.style(series)));
    }

    /// Draws a sample of that line.
    pub(crate) fn sample(&mut self, from: (f64, f64), to: (f64, f64), series: usize) {
        self.dashed_line(from, to, Paint::Series(series), 2.2, dash(self.style(series)));
    }

    /// Draws the marker of a series, in `paint`.
    pub(crate) fn point(&mut self, at: (f64, f64), series: usize, radius: f64, paint: Paint) {
        self.marker(at, marker(self.style(series)), radius, paint);
    }

    pub(crate) fn area(&mut self, outline: &[(f64, f64)], fill: Paint, opacity: f64) {
        if outline.len() < 3 {
            return;
        }
        let points: Vec<String> = outline.iter().map(|&(x, y)| format!("{},{}", px(x), px(y))).collect();
        let _ = writeln!(
            self.body,
            "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{}\" stroke=\"none\"{}/>",
            points.join(" "),
            self.colour(fill),
            px(opacity),
            self.class(Paint::None, fill)
        );
    }

    pub(crate) fn cross(&mut self, (x, y): (f64, f64), radius: f64, paint: Paint) {
        // A light rim keeps it visible on every background.
        for (paint, width) in [(Paint::Paper, 2.8), (paint, 1.6)] {
            for (dx, dy) in [(radius, radius), (radius, -radius)] {
                self.line((x - dx, y - dy), (x + dx, y + dy), paint, width);
            }
        }
    }

    pub(crate) fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), fill: Paint) {
        self.cells(&[at], size, fill);
    }

    /// Draws rectangles as one shape.
    pub(crate) fn cells(&mut self, places: &[(f64, f64)], (width, height): (f64, f64), fill: Paint) {
        if places.is_empty() {
            return;
        }
        let (w, h) = (px(width), px(height));
        let shapes: String = places.iter().map(|&(x, y)| format!("M{} {}h{w}v{h}h-{w}z", px(x), px(y))).collect();
        let _ = writeln!(
            self.body,
            "<path d=\"{shapes}\" fill=\"{}\"{}/>",
            self.colour(fill),
            self.class(Paint::None, fill)
        );
    }

    /// The form follows `shape`, in a cycle: disc, square, triangle, diamond.
    pub(crate) fn marker(&mut self, (x, y): (f64, f64), shape: usize, radius: f64, paint: Paint) {
        let (fill, classes) = (self.colour(paint), self.class(Paint::Paper, paint));
        let outline = format!("fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1\"{classes}", self.colour(Paint::Paper));
        let polygon = |points: &[(f64, f64)]| {
            let points: Vec<String> =
                points.iter().map(|(dx, dy)| format!("{},{}", px(x + dx * radius), px(y + dy * radius))).collect();
            format!("<polygon points=\"{}\" {outline}/>\n", points.join(" "))
        };
        let sign = match shape % 4 {
            0 => format!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {outline}/>\n", px(x), px(y), px(radius)),
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
            _ => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
        };
        self.body.push_str(&sign);
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), text: &str, style: Style) {
        self.turned_text((x, y), text, style, 0.0);
    }

    pub(crate) fn turned_text(&mut self, (x, y): (f64, f64), text: &str, style: Style, degrees: f64) {
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if style.bold { " font-weight=\"600\"" } else { "" };
        let turn = if degrees == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {} {})\"", px(degrees), px(x), px(y))
        };
        let naming = style.series.map_or(String::new(), |series| format!(" data-s=\"{series}\" data-key=\"{series}\""));
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{anchor}{weight}{turn}{}{naming}>{}</text>",
            px(x),
            px(y),
            px(style.size.min(self.max_size)),
            self.colour(style.paint),
            self.class(Paint::None, style.paint),
            escape(text)
        );
    }
}
