//! Sizes of figures: on the page, in a column of a paper, on a slide.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FigureStyle {
    /// The page `report.html` and its files: with title and subtitle.
    #[default]
    Page,
    /// Columns and pages of ACM and IEEE papers: letters of 8 to 9 points, without titles.
    Paper,
    /// Slides of 13.3 by 7.5 inches (16:9): letters of 16 to 18 points, without titles.
    Slides,
}

impl FigureStyle {
    /// Returns the layouts of its files besides those of the page.
    pub(crate) fn layouts(self) -> &'static [Layout] {
        match self {
            FigureStyle::Page => &[],
            FigureStyle::Paper => &PAPER,
            FigureStyle::Slides => &SLIDES,
        }
    }
}

/// Points of PDF (1/72 inch) in a point of TeX (1/72.27 inch).
const TEX: f64 = 72.0 / 72.27;

/// Size of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    /// Directory of its files below `figures/`; empty: `figures/` itself.
    pub(crate) folder: &'static str,
    /// What it fits, for the manifest and captions.
    pub(crate) fits: &'static str,
    /// Width in points of PDF; `None`: that of the panels.
    width: Option<f64>,
    /// Largest height in points of PDF, where panels adapt theirs to it.
    height: Option<f64>,
    /// Height of a plot over its width, and its largest height in pixels.
    plot: (f64, f64),
    /// Points of PDF per pixel of a drawing. Labels have 12 pixels, ticks 11.
    points: f64,
    pub(crate) extensions: &'static [&'static str],
}

pub(crate) const PAGE: Layout = Layout {
    folder: "",
    fits: "",
    width: None,
    height: None,
    plot: (1.0, f64::INFINITY),
    points: 0.75,
    extensions: &["svg", "pdf", "png", "csv"],
};

const fn paper(folder: &'static str, fits: &'static str, tex_points: f64) -> Layout {
    let (width, height) = (Some(tex_points * TEX), Some(PAPER_HEIGHT));
    let plot = (0.62, 170.0);
    Layout { folder, fits, width, height, plot, points: 0.75, extensions: &["svg", "pdf", "txt"] }
}

/// 8.2 of the 9 inches of a column, which leave a caption of a few lines.
const PAPER_HEIGHT: f64 = 8.2 * 72.0;

/// Widths as `\the\columnwidth` and `\the\textwidth` print them.
const PAPER: [Layout; 4] = [
    paper("acm-column", "a column of ACM's `acmart` (sigconf)", 241.14749),
    paper("acm-text", "both columns of ACM's `acmart` (sigconf)", 506.295),
    paper("ieee-column", "a column of `IEEEtran`", 252.0),
    paper("ieee-text", "both columns of `IEEEtran`", 516.0),
];

const SLIDES: [Layout; 1] = [Layout {
    folder: "slide",
    fits: "a slide of 13.3 by 7.5 inches below its title",
    width: Some(12.2 * 72.0),
    height: Some(5.6 * 72.0),
    plot: (1.0, f64::INFINITY),
    points: 1.5,
    extensions: &["svg", "pdf", "png", "txt"],
}];

/// Returns the directory below `figures/` of a file in the directory of results, if it is that of a style.
pub(crate) fn style_folder(name: &str) -> Option<&str> {
    let (folder, _) = name.strip_prefix("figures/")?.split_once('/')?;
    let mut all = [FigureStyle::Paper, FigureStyle::Slides].into_iter().flat_map(FigureStyle::layouts);
    all.any(|layout| layout.folder == folder).then_some(folder)
}

impl Layout {
    /// Returns `true` if the drawing has title and subtitle, and is as wide as its panels.
    pub(crate) fn is_page(&self) -> bool {
        self.width.is_none()
    }
    /// Width of the drawing in its pixels, unless its panels decide.
    pub(crate) fn width(&self) -> Option<f64> {
        self.width.map(|width| width / self.points)
    }
    /// Largest height in pixels, where there is one.
    pub(crate) fn height(&self) -> Option<f64> {
        self.height.map(|height| height / self.points)
    }
    /// Returns the height of a plot of this width in pixels.
    pub(crate) fn proportion(&self, width: f64) -> f64 {
        (width * self.plot.0).min(self.plot.1)
    }
    /// Returns a length in pixels as an attribute of SVG.
    pub(crate) fn attribute(&self, pixels: f64) -> String {
        if self.is_page() { format!("{pixels}") } else { format!("{:.2}pt", pixels * self.points) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_styles_are_known() {
        assert_eq!(style_folder("figures/acm-column/a.pdf"), Some("acm-column"));
        assert_eq!(style_folder("figures/slide/a.svg"), Some("slide"));
        for name in ["figures/a.svg", "figures/mine/a.svg", "acm-column/a.pdf"] {
            assert_eq!(style_folder(name), None, "{name}");
        }
    }

    #[test]
    fn plots_are_no_higher_than_the_medium_allows() {
        // 150 pixels of width, 93 of height; 170 at most in a paper.
        assert!((PAPER[0].proportion(150.0) - 93.0).abs() < 1e-9 && PAPER[0].proportion(600.0) == 170.0);
        assert!(PAPER.iter().all(|layout| layout.height().unwrap() * 0.75 <= 8.5 * 72.0));
    }

    /// The column of `acmart` is 3.337 inches wide, that of `IEEEtran` 3.487.
    #[test]
    fn columns_have_the_width_of_the_classes() {
        for (layout, inches) in PAPER.iter().zip([3.337, 7.006, 3.487, 7.140]) {
            assert!((layout.width.unwrap() / 72.0 - inches).abs() < 0.001, "{}", layout.folder);
            // 12 and 11 pixels.
            assert_eq!((12.0 * layout.points, 11.0 * layout.points), (9.0, 8.25));
        }
    }
}
