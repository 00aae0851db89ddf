//! Colours that are distinguishable with every common form of colour vision, with a dash pattern each, so that lines differ in
//! grey as well. A scheme's name decides them where no other of the figure has them.

/// On the page a style sheet replaces all colours but [`Paint::Fixed`], so that figures follow a dark theme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Paint {
    /// Titles and labels.
    Ink,
    Muted,
    Grid,
    Paper,
    Series(usize),
    Fixed([u8; 3]),
    None,
}

/// Colours of series on white, and on the dark page: twelve, of which any two differ by 0.07 in Oklab with every form of colour
/// vision (`colours_differ_with_every_form_of_colour_vision`). The first seven are those of Okabe and Ito but their yellow, which is too
/// faint on white; a search over all colours found the others.
pub(crate) const SERIES: [&str; 12] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#965A4B", "#3C00E1", "#5A0096",
    "#96003C", "#F00FFF",
];
const DARK_SERIES: [&str; SERIES.len()] = [
    "#69A5D2", "#F07800", "#1ED296", "#C38796", "#F0B42D", "#A5D2E1", "#F0F0F0", "#C3694B", "#695AFF", "#A54BC3",
    "#D21E78", "#B478FF",
];

/// A pattern for each colour, since lines differ by it alone in grey.
const DASHES: [&str; SERIES.len()] = [
    "",
    "6 3",
    "2 2.5",
    "8 3 2 3",
    "12 4",
    "4 1.5",
    "1 4",
    "8 2 1 2 1 2",
    "14 3 4 3",
    "5 6",
    "10 2 2 2 2 2 2 2",
    "2 2 5 2",
];
const MARKERS: usize = 4;

/// Colours of the schemes that papers compare, so that those of one paper differ. Others have one by a hash of their name.
const KNOWN: &[(&str, usize)] = &[
    ("prime", 0),
    ("conweave", 0),
    ("spritz-spray", 0),
    ("hopper", 1),
    ("ar", 1),
    ("minimal", 1),
    ("reps", 2),
    ("conga", 2),
    ("spritz-scout", 3),
    ("flowbender", 3),
    ("strack", 3),
    ("ops", 4),
    ("qp-spray", 4),
    ("nccl", 4),
    ("letflow", 5),
    ("co-prime", 5),
    ("ugal-l", 5),
    ("ecmp", 6),
    ("rr", 7),
    ("drill", 7),
    ("valiant", 7),
    ("bitmap", 8),
    ("flowlet", 8),
    ("flicr", 8),
    ("hf2t", 9),
    ("mixed", 9),
    ("spritz-coarse", 9),
    ("plb", 10),
    ("rr-host", 10),
    ("rps", 11),
    ("packet-random", 11),
    ("ugal-g", 11),
];

/// Colour, dash pattern and marker of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStyle {
    /// Colour as `#rrggbb`.
    pub colour: &'static str,
    /// Lengths of dashes and gaps in pixels, separated by spaces; empty for a continuous line.
    pub dash: &'static str,
    /// 0 is a disc, 1 a square, 2 a triangle, 3 a diamond.
    pub marker: usize,
}

/// Returns the styles of the schemes of a figure, in their order.
///
/// Up to twelve have a colour and a dash pattern each; of more, any two differ in one of the two at least. A scheme of the literature
/// has its colour in every figure in which no earlier one has it.
pub fn line_styles<N: AsRef<str>>(names: &[N]) -> Vec<LineStyle> {
    let style = |style| LineStyle { colour: SERIES[style % SERIES.len()], dash: dash(style), marker: marker(style) };
    numbers(names).into_iter().map(style).collect()
}

/// Preferred colour of a name, and `true` if it is of [`KNOWN`]. Letter case and what follows a comma (the values of a sweep's
/// keys) do not count.
fn preferred(name: &str) -> (usize, bool) {
    let name = name.split(", ").next().unwrap_or(name).to_lowercase();
    match KNOWN.iter().find(|(known, _)| *known == name) {
        Some((_, colour)) => (*colour, true),
        None => (usize::from(blake3::hash(name.as_bytes()).as_bytes()[0]) % SERIES.len(), false),
    }
}

/// Returns the number of each name's style, no number twice: its colour plus the number of colours times the round in which it
/// was chosen. Each round gives every colour once, first to known schemes.
pub(crate) fn numbers<N: AsRef<str>>(names: &[N]) -> Vec<usize> {
    let own: Vec<(usize, bool)> = names.iter().map(|name| preferred(name.as_ref())).collect();
    let mut order: Vec<usize> = (0..own.len()).collect();
    order.sort_by_key(|place| !own[*place].1);
    let mut numbers = vec![0; own.len()];
    for (round, chosen) in order.chunks(SERIES.len()).enumerate() {
        let mut taken = [false; SERIES.len()];
        // Preferences before the rest, so that none is taken by a name whose own was.
        let mut later = vec![];
        let mut give = |place: usize, colour: usize, taken: &mut [bool]| {
            taken[colour] = true;
            numbers[place] = colour + round * SERIES.len();
        };
        for &place in chosen {
            if taken[own[place].0] { later.push(place) } else { give(place, own[place].0, &mut taken) }
        }
        for place in later {
            let free =
                (0..SERIES.len()).map(|step| (own[place].0 + step) % SERIES.len()).find(|colour| !taken[*colour]);
            give(place, free.unwrap_or(own[place].0), &mut taken);
        }
    }
    numbers
}

/// Returns the number of each name's colour.
pub(crate) fn colours<N: AsRef<str>>(names: &[N]) -> Vec<usize> {
    numbers(names).into_iter().map(|style| style % SERIES.len()).collect()
}

impl Paint {
    pub(crate) fn colour(self) -> String {
        match self {
            Paint::Ink => "#1b1f24".to_string(),
            Paint::Muted => "#5b6370".to_string(),
            Paint::Grid => "#e3e6ea".to_string(),
            Paint::Paper => "#ffffff".to_string(),
            Paint::Series(i) => SERIES[i % SERIES.len()].to_string(),
            Paint::Fixed([r, g, b]) => format!("#{r:02x}{g:02x}{b:02x}"),
            Paint::None => "none".to_string(),
        }
    }
    /// CSS class on the page.
    pub(crate) fn class(self) -> Option<String> {
        match self {
            Paint::Ink => Some("ink".to_string()),
            Paint::Muted => Some("muted".to_string()),
            Paint::Grid => Some("grid".to_string()),
            Paint::Paper => Some("paper".to_string()),
            Paint::Series(i) => Some(format!("s{}", i % SERIES.len())),
            Paint::Fixed(_) | Paint::None => None,
        }
    }
}

pub(crate) fn dash(style: usize) -> &'static str {
    DASHES[(style + style / SERIES.len()) % DASHES.len()]
}

pub(crate) fn marker(style: usize) -> usize {
    (style + style / SERIES.len()) % MARKERS
}

/// Returns a style sheet with the colours of the series as variables (`--s0` for the prefix `s`) and classes.
pub(crate) fn with_series(sheet: &str, prefix: &str) -> String {
    let variables = |colours: &[&str]| {
        let each = colours.iter().enumerate().map(|(number, colour)| format!("--{prefix}{number}: {colour};"));
        each.collect::<Vec<_>>().join(" ")
    };
    let classes = |number| {
        format!(
            ".dot{number} {{ background: var(--s{number}); }} .f-s{number} {{ fill: var(--s{number}); }} .l-s{number} {{ stroke: var(--s{number}); }}\n"
        )
    };
    sheet
        .replace("/*light series*/", &variables(&SERIES))
        .replace("/*dark series*/", &variables(&DARK_SERIES))
        .replace("/*series*/\n", &(0..SERIES.len()).map(classes).collect::<String>())
}

/// Viridis (Smith and van der Walt, 2015): perceptually uniform, also in greyscale.
const VIRIDIS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 45, 123],
    [59, 82, 139],
    [44, 114, 142],
    [33, 145, 140],
    [40, 174, 128],
    [94, 201, 98],
    [173, 220, 48],
    [253, 231, 37],
];

pub(crate) fn heat(share: f64) -> Paint {
    let position = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (position.floor() as usize).min(VIRIDIS.len() - 2);
    let part = position - below as f64;
    let mix = |i: usize| {
        let (a, b) = (f64::from(VIRIDIS[below][i]), f64::from(VIRIDIS[below + 1][i]));
        (a + part * (b - a)).round() as u8
    };
    Paint::Fixed([mix(0), mix(1), mix(2)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Views of Machado, Oliveira and Fernandes (2009, severity 1): normal, protanopia, deuteranopia, tritanopia.
    const VIEWS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];
    type Triple = [f64; 3];

    fn times(matrix: &[Triple; 3], of: Triple) -> Triple {
        matrix.map(|row| row.iter().zip(of).map(|(a, b)| a * b).sum())
    }

    /// Linear light of a colour.
    fn linear(colour: &str) -> Triple {
        std::array::from_fn(|i| {
            let value = f64::from(u8::from_str_radix(&colour[1 + 2 * i..3 + 2 * i], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Ottosson (2020).
    fn oklab(light: Triple) -> Triple {
        let cones = [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ];
        let opponents = [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ];
        times(&opponents, times(&cones, light).map(f64::cbrt))
    }

    /// Least distance of two colours over all forms of vision.
    fn distance(a: &str, b: &str) -> f64 {
        let seen = |view, colour| oklab(times(view, linear(colour)).map(|light| light.clamp(0.0, 1.0)));
        let far = |view| seen(view, a).iter().zip(seen(view, b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        VIEWS.iter().map(far).fold(f64::INFINITY, f64::min)
    }

    /// Contrast as WCAG 2.2 defines it.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |colour| linear(colour).iter().zip([0.2126, 0.7152, 0.0722]).map(|(a, b)| a * b).sum::<f64>();
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn colours_differ_with_every_form_of_colour_vision() {
        for (series, paper) in [(SERIES, "#ffffff"), (DARK_SERIES, "#161a20")] {
            for (at, colour) in series.iter().enumerate() {
                // Okabe and Ito's orange has 2.25 on white.
                assert!(contrast(colour, paper) > 2.2, "{colour} on {paper}: {}", contrast(colour, paper));
                for other in &series[..at] {
                    assert!(distance(colour, other) > 0.07, "{colour} and {other}: {}", distance(colour, other));
                }
            }
        }
    }

    fn names() -> impl Strategy<Value = Vec<String>> {
        let known = prop::sample::select(KNOWN).prop_map(|(name, _)| name.to_string());
        let name = prop_oneof![known.clone(), "[a-z]{1,6}", known.prop_map(|name| format!("{name}, load = 0.5"))];
        prop::collection::vec(name, 1..60)
    }

    proptest! {
        /// Any figure: no two of up to twelve series share a colour or a dash pattern, and no two of more share both.
        #[test]
        fn series_of_one_figure_differ(names in names()) {
            let styles = line_styles(&names);
            for (at, one) in styles.iter().enumerate() {
                for (other, name) in styles[..at].iter().zip(&names) {
                    let (colour, dash) = (one.colour == other.colour, one.dash == other.dash);
                    prop_assert!(!(colour && dash), "{} and {name}: {one:?}", names[at]);
                    prop_assert!(names.len() > SERIES.len() || !(colour || dash), "{} and {name}: {one:?}", names[at]);
                }
            }
        }
    }

    #[test]
    fn schemes_of_one_paper_keep_their_colours() {
        for paper in [
            "prime reps ops ecmp ar co-prime plb rr bitmap mixed strack rps",
            "hopper conweave flowbender conga letflow ecmp flowlet qp-spray plb drill",
            "hf2t conweave conga letflow ecmp drill",
            "spritz-scout spritz-spray minimal valiant ugal-l ugal-g ecmp ops flicr reps spritz-coarse",
        ] {
            let names: Vec<&str> = paper.split(' ').collect();
            assert_eq!(colours(&names), names.iter().map(|name| preferred(name).0).collect::<Vec<_>>(), "{paper}");
        }
        assert_eq!(line_styles(&["PRIME, load = 0.5"]), line_styles(&["prime"]));
    }
}
