//! Colours of Okabe and Ito (2008), which are distinguishable with every common form of colour vision; dashes, if there
//! are more schemes than colours.

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

/// Dashes of the first eight series, the next eight, and so on.
const DASHES: [&str; 4] = ["", "6 3", "2 2.5", "8 3 2 3"];

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

pub(crate) fn dash(series: usize) -> &'static str {
    DASHES[(series / SERIES.len()) % DASHES.len()]
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
