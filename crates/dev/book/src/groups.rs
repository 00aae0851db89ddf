use crate::svg::{FLOWS, Svg};
use serde::Deserialize;

/// `a` to `c` in the source's group, `d` to `f` in the intermediate one, `x` to `z` in the destination's; the sender is on
/// `a`, the receiver on `z`.
const SWITCHES: [(char, f64, f64); 9] = [
    ('a', 96.0, 190.0),
    ('b', 160.0, 152.0),
    ('c', 160.0, 240.0),
    ('d', 318.0, 76.0),
    ('e', 402.0, 76.0),
    ('f', 360.0, 118.0),
    ('x', 560.0, 152.0),
    ('y', 560.0, 240.0),
    ('z', 624.0, 190.0),
];

/// Cables between the groups.
const GLOBAL: [(char, char); 4] = [('b', 'd'), ('e', 'x'), ('c', 'y'), ('b', 'x')];

/// Route: its switches, its colour among the flows', its text and position.
type Route = (String, usize, String, (f64, f64));

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Groups {
    routes: Vec<Route>,
    /// Texts at positions, for example the inputs of a switch.
    #[serde(default)]
    notes: Vec<(String, (f64, f64))>,
}

fn place(letter: char) -> (f64, f64) {
    SWITCHES.iter().find(|(name, ..)| *name == letter).map_or((0.0, 0.0), |(_, x, y)| (*x, *y))
}

impl Groups {
    pub(crate) fn draw(&self, title: &str, says: &str) -> String {
        let mut svg = Svg::new(760, 316);
        for (x, y, r, name) in [
            (140.0, 196.0, 78.0, "source's group"),
            (360.0, 90.0, 56.0, "another group"),
            (580.0, 196.0, 78.0, "destination's group"),
        ] {
            svg.circle("cell", (x, y), r);
            svg.text("s b", "middle", (x, y - r - 6.0), name);
        }
        for group in ["abc", "def", "xyz"] {
            let corners: Vec<(f64, f64)> = group.chars().chain(group.chars().take(1)).map(place).collect();
            svg.line("link", "", &corners, false);
        }
        for (from, to) in GLOBAL {
            svg.line("link", "", &[place(from), place(to)], false);
        }
        svg.line("link", "", &[(46.0, 190.0), place('a')], false);
        svg.line("link", "", &[place('z'), (712.0, 190.0)], false);
        for (number, (route, colour, says, at)) in self.routes.iter().enumerate() {
            let off = 4.0 * number as f64;
            let points: Vec<(f64, f64)> = route.chars().map(place).map(|(x, y)| (x, y - off)).collect();
            svg.line("route", FLOWS[*colour], &points, false);
            svg.filled(FLOWS[*colour], (at.0, at.1 - 9.0), (10.0, 10.0));
            svg.text("s", "start", (at.0 + 15.0, at.1), says);
        }
        for (letter, x, y) in SWITCHES {
            svg.circle("box", (x, y), 9.0);
            svg.text("s", "middle", (x, y + 4.0), &letter.to_string());
        }
        for (x, name) in [(8.0, "sender"), (700.0, "receiver")] {
            svg.rect("box", (x, 176.0), (54.0, 28.0));
            svg.text("s b", "middle", (x + 27.0, 194.0), name);
        }
        for (note, at) in &self.notes {
            svg.text("s", "start", *at, note);
        }
        svg.finish(title, says)
    }
}
