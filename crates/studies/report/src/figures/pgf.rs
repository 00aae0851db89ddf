//! Drawings for LaTeX, in the document's own font: `\input` places them in a column as they are.

use resvg::{
    tiny_skia::{PathSegment, Transform},
    usvg::{FillRule, Group, LineCap, LineJoin, Node, Paint, Path, Text, TextAnchor, Tree},
};
use std::fmt::Write;

/// Points of PDF per pixel of a drawing.
const POINTS: f32 = 0.75;

/// Returns the drawing as a `pgfpicture`, with `caption` in comments before it.
pub(crate) fn to_pgf(tree: &Tree, caption: &str) -> String {
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut pgf = Pgf { text: String::new(), height };
    pgf.text.push_str("% Needs \\usepackage{pgf}; scripts other than Latin need LuaLaTeX or XeLaTeX. Caption:\n");
    for line in textwrap::wrap(&escaped(caption), 96) {
        pgf.line(&format!("% {line}"));
    }
    pgf.line("\\begingroup\\begin{pgfpicture}");
    pgf.line(&format!(
        "\\pgfpathrectangle{{\\pgfpointorigin}}{{{}}}\\pgfusepath{{use as bounding box}}",
        point(width, height)
    ));
    pgf.group(tree.root());
    pgf.line("\\end{pgfpicture}\\endgroup%");
    pgf.text
}

struct Pgf {
    text: String,
    height: f32,
}

/// Formats with at most two decimals.
fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

fn point(x: f32, y: f32) -> String {
    format!("\\pgfpoint{{{}bp}}{{{}bp}}", number(x), number(y))
}

/// Length of a unit vector after a transform without shear.
fn scale(transform: Transform) -> f32 {
    (transform.sx * transform.sx + transform.ky * transform.ky).sqrt()
}

impl Pgf {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn group(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group),
                Node::Path(path) if path.is_visible() => self.path(path),
                Node::Text(text) => self.label(text),
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    /// Coordinates of PGF: points from the lower left corner.
    fn at(&self, transform: Transform, x: f32, y: f32) -> String {
        let (sx, sy) =
            (transform.sx * x + transform.kx * y + transform.tx, transform.ky * x + transform.sy * y + transform.ty);
        point(sx * POINTS, self.height - sy * POINTS)
    }

    fn path(&mut self, path: &Path) {
        let transform = path.abs_transform();
        let mut used = vec![];
        let mut code = String::from("\\begin{pgfscope}");
        if let Some((colour, fill)) = path.fill().and_then(|fill| Some((colour(fill.paint())?, fill))) {
            let _ = write!(code, "\\definecolor{{c}}{{HTML}}{{{colour}}}\\pgfsetfillcolor{{c}}");
            if fill.opacity().get() < 1.0 {
                let _ = write!(code, "\\pgfsetfillopacity{{{}}}", number(fill.opacity().get()));
            }
            if fill.rule() == FillRule::EvenOdd {
                code.push_str("\\pgfseteorule");
            }
            used.push("fill");
        }
        if let Some((colour, stroke)) = path.stroke().and_then(|stroke| Some((colour(stroke.paint())?, stroke))) {
            let factor = scale(transform) * POINTS;
            let _ = write!(code, "\\definecolor{{d}}{{HTML}}{{{colour}}}\\pgfsetstrokecolor{{d}}");
            let _ = write!(code, "\\pgfsetlinewidth{{{}bp}}", number(stroke.width().get() * factor));
            if stroke.opacity().get() < 1.0 {
                let _ = write!(code, "\\pgfsetstrokeopacity{{{}}}", number(stroke.opacity().get()));
            }
            code.push_str(match stroke.linecap() {
                LineCap::Butt => "",
                LineCap::Round => "\\pgfsetroundcap",
                LineCap::Square => "\\pgfsetrectcap",
            });
            if stroke.linejoin() == LineJoin::Round {
                code.push_str("\\pgfsetroundjoin");
            }
            if let Some(dashes) = stroke.dasharray() {
                let lengths: String = dashes.iter().map(|dash| format!("{{{}bp}}", number(dash * factor))).collect();
                let _ = write!(code, "\\pgfsetdash{{{lengths}}}{{{}bp}}", number(stroke.dashoffset() * factor));
            }
            used.push("stroke");
        }
        if used.is_empty() {
            return;
        }
        self.line(&code);
        let mut last = (0.0, 0.0);
        for segment in path.data().segments() {
            let at = |x: f32, y: f32| self.at(transform, x, y);
            let line = match segment {
                PathSegment::MoveTo(p) => {
                    last = (p.x, p.y);
                    format!("\\pgfpathmoveto{{{}}}", at(p.x, p.y))
                }
                PathSegment::LineTo(p) => {
                    last = (p.x, p.y);
                    format!("\\pgfpathlineto{{{}}}", at(p.x, p.y))
                }
                PathSegment::QuadTo(c, p) => {
                    // A quadratic curve as a cubic one.
                    let handle =
                        |end: (f32, f32)| at(end.0 + (c.x - end.0) * 2.0 / 3.0, end.1 + (c.y - end.1) * 2.0 / 3.0);
                    let code =
                        format!("\\pgfpathcurveto{{{}}}{{{}}}{{{}}}", handle(last), handle((p.x, p.y)), at(p.x, p.y));
                    last = (p.x, p.y);
                    code
                }
                PathSegment::CubicTo(a, b, p) => {
                    last = (p.x, p.y);
                    format!("\\pgfpathcurveto{{{}}}{{{}}}{{{}}}", at(a.x, a.y), at(b.x, b.y), at(p.x, p.y))
                }
                PathSegment::Close => "\\pgfpathclose".to_string(),
            };
            self.line(&line);
        }
        self.line(&format!("\\pgfusepath{{{}}}\\end{{pgfscope}}", used.join(",")));
    }

    fn label(&mut self, text: &Text) {
        let transform = text.abs_transform();
        for chunk in text.chunks() {
            let (Some(x), Some(y), Some(span)) = (chunk.x(), chunk.y(), chunk.spans().first()) else { continue };
            let Some(colour) = span.fill().and_then(|fill| colour(fill.paint())) else { continue };
            let anchor = match chunk.anchor() {
                TextAnchor::Start => "left,",
                TextAnchor::Middle => "",
                TextAnchor::End => "right,",
            };
            // Whole points: the standard fonts of LaTeX have no others.
            let size = (span.font_size().get() * scale(transform) * POINTS).round();
            let degrees = (-transform.ky).atan2(transform.sx).to_degrees();
            let rotate = if degrees.abs() < 0.01 { String::new() } else { format!(",rotate={}", number(degrees)) };
            let bold = if span.font().weight() >= 600 { "\\bfseries" } else { "" };
            let at = self.at(transform, x, y);
            let words = escaped(chunk.text());
            self.line(&format!(
                "\\definecolor{{c}}{{HTML}}{{{colour}}}\\pgftext[{anchor}base,at={{{at}}}{rotate}]{{\\color{{c}}\\fontsize{{{size}}}{{{}}}\\selectfont{bold} {words}}}",
                number(size * 1.2)
            ));
        }
    }
}

/// Figures use only plain colours.
fn colour(paint: &Paint) -> Option<String> {
    match paint {
        Paint::Color(c) => Some(format!("{:02X}{:02X}{:02X}", c.red, c.green, c.blue)),
        _ => None,
    }
}

/// Text as LaTeX. Letters of any script stay as they are.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\ensuremath{<}"),
            '>' => out.push_str("\\ensuremath{>}"),
            '|' => out.push_str("\\ensuremath{|}"),
            '"' => out.push_str("\\textquotedbl{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => out.extend(['\\', letter]),
            '\u{2212}' => out.push_str("\\ensuremath{-}"),
            '\u{2192}' => out.push_str("\\ensuremath{\\rightarrow}"),
            '\u{2264}' => out.push_str("\\ensuremath{\\leq}"),
            '\u{2265}' => out.push_str("\\ensuremath{\\geq}"),
            '\u{b1}' => out.push_str("\\ensuremath{\\pm}"),
            '\u{d7}' => out.push_str("\\ensuremath{\\times}"),
            '\u{b7}' => out.push_str("\\ensuremath{\\cdot}"),
            '\u{b5}' | '\u{3bc}' => out.push_str("\\ensuremath{\\mu}"),
            '\u{221a}' => out.push_str("\\ensuremath{\\surd}"),
            '\u{2013}' => out.push_str("--"),
            '\u{2014}' => out.push_str("---"),
            '\u{2019}' => out.push('\''),
            '\u{a0}' => out.push('~'),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("50 %_a #1"), "50 \\%\\_a \\#1");
        assert_eq!(escaped("a\\b{c}"), "a\\textbackslash{}b\\{c\\}");
        assert_eq!(
            escaped("\u{2212}2 \u{b5}s, 3 \u{d7}"),
            "\\ensuremath{-}2 \\ensuremath{\\mu}s, 3 \\ensuremath{\\times}"
        );
        assert_eq!(escaped("\u{4e2d}\n"), "\u{4e2d} ");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, 0.5, -0.001, 2.345].map(number), ["1", "0.5", "0", "2.35"].map(str::to_string));
    }
}
