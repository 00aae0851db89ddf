use std::fmt::Write;

/// The second colour of each pair is for dark pages.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:var(--ink)}\
    .s{font-size:11px;fill:var(--soft)}.b{font-weight:600}.n{font-size:11px;fill:#fff;font-weight:600}\
    .box{fill:var(--box);stroke:var(--ink);stroke-width:1.3}.cell{fill:var(--paper);stroke:var(--soft)}\
    .good{fill:#2f9e5a33;stroke:#2f9e5a}.bad{fill:#d4483b33;stroke:#d4483b}.pick{fill:#e8a20055;stroke:#c07f00;stroke-width:2}\
    .link{fill:none;stroke:var(--line);stroke-width:2.5}.slow{stroke:#d4483b;stroke-dasharray:7 4}\
    .back{fill:none;stroke:var(--soft);stroke-width:1.4;stroke-dasharray:4 3}.route{fill:none;stroke-width:4;opacity:.85}\
    .mark{fill:none;stroke:#d4483b;stroke-width:2.4}.soft{fill:var(--soft)}.red{stroke:#d4483b;stroke-width:1.4}\
    svg{--ink:#22303c;--soft:#5d6b78;--line:#b9c4ce;--box:#eef2f6;--paper:#fff}\
    @media(prefers-color-scheme:dark){svg{--ink:#e3e9ef;--soft:#a5b2be;--line:#53616e;--box:#2a3540;--paper:#1b232b}}";

/// Colours of flows A, B, C, D and of probes.
pub(crate) const FLOWS: [&str; 5] = ["#2a6fdb", "#2f8f57", "#9a4fc4", "#b8681a", "#6b7785"];

#[derive(Debug)]
pub(crate) struct Svg {
    body: String,
    width: u32,
    height: u32,
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Svg {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Svg { body: String::new(), width, height }
    }

    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        self.shape("class", class, at, size);
    }

    pub(crate) fn filled(&mut self, colour: &str, at: (f64, f64), size: (f64, f64)) {
        self.shape("fill", colour, at, size);
    }

    fn shape(&mut self, key: &str, value: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let size = format!("width=\"{width}\" height=\"{height}\"");
        let _ = writeln!(self.body, "<rect {key}=\"{value}\" x=\"{x}\" y=\"{y}\" {size} rx=\"3\"/>");
    }

    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), r: f64) {
        let _ = writeln!(self.body, "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{r}\"/>", at.0, at.1);
    }

    /// `colour` counts if the class has none.
    pub(crate) fn line(&mut self, class: &str, colour: &str, points: &[(f64, f64)], arrow: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let stroke = if colour.is_empty() { String::new() } else { format!(" stroke=\"{colour}\"") };
        let head = if arrow { " marker-end=\"url(#a)\"" } else { "" };
        let _ = writeln!(self.body, "<polyline class=\"{class}\"{stroke}{head} points=\"{}\"/>", points.join(" "));
    }

    /// `anchor` is start, middle or end.
    pub(crate) fn text(&mut self, class: &str, anchor: &str, at: (f64, f64), text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{}\" y=\"{}\">{}</text>",
            at.0,
            at.1,
            escaped(text)
        );
    }

    /// `says` is the text for screen readers.
    pub(crate) fn finish(&self, title: &str, says: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
             role=\"img\"><title>{}</title><desc>{}</desc><style>{STYLE}</style><defs><marker id=\"a\" viewBox=\"0 0 8 8\" \
             refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"soft\" d=\"M0 0L8 4L0 8z\"/>\
             </marker></defs>\n{}</svg>\n",
            escaped(title),
            escaped(says),
            self.body,
            w = self.width,
            h = self.height
        )
    }
}
