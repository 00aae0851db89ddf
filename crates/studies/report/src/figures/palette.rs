//! Colours of Okabe and Ito (2008), which are distinguishable with every common form of colour vision, with a dash pattern
//! and a marker each, so that lines differ in grey as well. A scheme's name decides them, regardless of what it is compared with.

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

/// Grey replaces Okabe and Ito's yellow, which is too faint on white.
pub(crate) const SERIES: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#8C8C8C"];

const DASHES: [&str; 4] = ["", "6 3", "2 2.5", "8 3 2 3"];
/// Number of markers. The first forms of a colour differ in dash pattern and marker, the next ones in the pair of both.
const FORMS: usize = 4;

/// Line styles of the schemes that papers compare, so that those of one paper differ in colour,
/// and those of one family share it. A style is the colour's number plus
/// eight times its form; schemes that no paper compares may share one.
const KNOWN: &[(&str, usize)] = &[
    ("prime", 0),
    ("hopper", 1),
    ("hf2t", 2),
    ("spritz-scout", 3),
    ("ops", 4),
    ("letflow", 5),
    ("plb", 6),
    ("ecmp", 7),
    ("co-prime", 8),
    ("strack", 9),
    ("reps", 10),
    ("mixed", 11),
    ("rr", 12),
    ("bitmap", 13),
    ("ar", 14),
    ("rps", 15),
    ("conweave", 16),
    ("conga", 17),
    ("flowlet", 18),
    ("flowbender", 19),
    ("drill", 20),
    ("ugal-l", 21),
    ("valiant", 22),
    ("minimal", 23),
    ("spritz-spray", 24),
    ("flicr", 25),
    ("spritz-coarse", 26),
    ("qp-spray", 27),
    ("ops-u", 28),
    ("ugal-g", 29),
    ("packet-random", 30),
    ("rr-host", 31),
    ("spritz-scout-u", 11),
    ("spritz-scout-w", 19),
    ("spritz-spray-u", 16),
    ("spritz-spray-w", 8),
    ("flicr-u", 17),
    ("flicr-w", 9),
    ("ops-w", 20),
    ("nccl", 27),
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
/// The colour follows from a scheme's name alone. Schemes of one colour in one figure differ in dash pattern and marker.
pub fn line_styles<N: AsRef<str>>(names: &[N]) -> Vec<LineStyle> {
    let style = |style| LineStyle { colour: SERIES[style % SERIES.len()], dash: dash(style), marker: marker(style) };
    numbers(names).into_iter().map(style).collect()
}

/// Number of a name's style and `true` if it is of [`KNOWN`]. Letter case and what follows a comma (the values of a sweep's
/// keys) do not count.
fn own_style(name: &str) -> (usize, bool) {
    let name = name.split(", ").next().unwrap_or(name).to_lowercase();
    match KNOWN.iter().find(|(known, _)| *known == name) {
        Some((_, style)) => (*style, true),
        None => {
            let hash = blake3::hash(name.as_bytes());
            let number = u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i]));
            ((number % (SERIES.len() * FORMS) as u64) as usize, false)
        }
    }
}

/// Returns the number of each name's style, no number twice. Known schemes keep theirs.
pub(crate) fn numbers<N: AsRef<str>>(names: &[N]) -> Vec<usize> {
    let own: Vec<(usize, bool)> = names.iter().map(|name| own_style(name.as_ref())).collect();
    let mut numbers = vec![0; own.len()];
    let mut taken = std::collections::BTreeSet::new();
    for known in [true, false] {
        for (place, (style, _)) in own.iter().enumerate().filter(|(_, own)| own.1 == known) {
            let form = style / SERIES.len();
            let forms = (form..FORMS).chain(0..form).chain(FORMS..);
            let free = forms.map(|form| style % SERIES.len() + form * SERIES.len()).find(|style| taken.insert(*style));
            numbers[place] = free.unwrap_or(*style);
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

/// Neighbouring colours share a dash pattern but not a marker, so that all eight differ in grey too.
pub(crate) fn dash(style: usize) -> &'static str {
    let form = style / SERIES.len();
    DASHES[(style % SERIES.len() / 2 + form + form / FORMS) % DASHES.len()]
}

pub(crate) fn marker(style: usize) -> usize {
    (style % SERIES.len() + style / SERIES.len()) % FORMS
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

    #[test]
    fn colour_of_a_scheme_is_the_same_in_every_comparison() {
        let alone = |name: &str| line_styles(&[name])[0].clone();
        for (name, _) in KNOWN {
            for others in [vec!["ecmp", "ops"], vec!["mine", "PRIME", "hopper, load = 0.5"], vec!["a", "b", "c", "d"]] {
                let all: Vec<&str> = others.iter().copied().chain([*name]).collect();
                assert_eq!(line_styles(&all).last().unwrap().colour, alone(name).colour, "{name} beside {others:?}");
            }
        }
        assert_eq!(alone("mine").colour, line_styles(&["ecmp", "mine"])[1].colour);
        assert_eq!(alone("PRIME, load = 0.5"), alone("prime"));
    }

    #[test]
    fn lines_of_one_figure_differ() {
        let names: Vec<String> = (0..32).map(|number| format!("variant {number}")).collect();
        for names in [&names[..12], &["prime".into(), "prime, a = 1".into(), "prime, a = 2".into()]] {
            let styles = line_styles(names);
            for (at, style) in styles.iter().enumerate() {
                assert!(!styles[..at].contains(style), "{}: {style:?}", names[at]);
            }
        }
        let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
        assert_eq!(numbers(&known[..32]), KNOWN[..32].iter().map(|(_, style)| *style).collect::<Vec<_>>());
        // In grey, the first eight still differ.
        let grey: std::collections::BTreeSet<(&str, usize)> =
            (0..8).map(|style| (dash(style), marker(style))).collect();
        assert_eq!(grey.len(), 8);
        // More names than styles still have numbers of their own: a click isolates one of them.
        let many: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
        assert_eq!(numbers(&many).into_iter().collect::<std::collections::BTreeSet<_>>().len(), 100);
    }
}
