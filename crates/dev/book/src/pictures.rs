use crate::{
    fan::Fan,
    groups::Groups,
    svg::{FLOWS, Svg},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Picture of one side of a scheme. Without a scene: three tiers that use the parts of a multi-part entropy value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Picture {
    says: String,
    /// Two leaves with four paths between them.
    fan: Option<Fan>,
    /// Groups of a low-diameter network.
    groups: Option<Groups>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Hosts, which write tags.
    Host,
    /// Switches, which choose next hops.
    Switch,
}

impl Side {
    /// Word in file names and headings.
    pub fn word(self) -> &'static str {
        match self {
            Side::Host => "host",
            Side::Switch => "switch",
        }
    }
}

/// Returns description and drawing (SVG) of a scheme, from `pictures.toml`; `None` if it has none.
///
/// # Panics
/// If `pictures.toml` is invalid.
pub fn picture(side: Side, name: &str) -> Option<(String, String)> {
    let mut all: BTreeMap<String, BTreeMap<String, Picture>> =
        toml::from_str(include_str!("../pictures.toml")).unwrap_or_else(|error| panic!("pictures.toml: {error}"));
    let Picture { says, fan, groups } = all.get_mut(side.word())?.remove(name)?;
    let title = format!("{name} ({} side)", side.word());
    let drawing = match (fan, groups) {
        (Some(fan), _) => fan.draw(&title, &says),
        (_, Some(groups)) => groups.draw(&title, &says),
        _ => parts(&title, &says),
    };
    Some((says, drawing))
}

/// Draws a leaf, its four aggregation switches, and the cores above the one that part 0 selects.
fn parts(title: &str, says: &str) -> String {
    let mut svg = Svg::new(760, 316);
    let row = |i: usize, y: f64| (290.0 + 110.0 * i as f64, y);
    let (leaf, leaf_y, agg_y, core_y) = ((455.0, 262.0), 262.0, 168.0, 74.0);
    let (part0, part1) = (2, 1);
    for i in 0..4 {
        svg.line("link", "", &[leaf, row(i, agg_y)], false);
        svg.line("link", "", &[row(part0, agg_y), row(i, core_y)], false);
    }
    svg.line("route", FLOWS[0], &[leaf, row(part0, agg_y), row(part1, core_y)], false);
    let mut switches = |count: usize, y: f64, name: &str, taken: Option<usize>| {
        for i in 0..count {
            let (x, y) = if count == 1 { leaf } else { row(i, y) };
            svg.rect("box", (x - 32.0, y - 14.0), (64.0, 28.0));
            if taken == Some(i) {
                svg.rect("pick", (x - 32.0, y - 14.0), (64.0, 28.0));
            }
            let text = if count == 1 { name.to_string() } else { format!("{name} {i}") };
            svg.text("b", "middle", (x, y + 4.0), &text);
        }
    };
    switches(4, core_y, "core", Some(part1));
    switches(4, agg_y, "agg", Some(part0));
    switches(1, leaf_y, "leaf", None);
    svg.text("s b", "start", (20.0, 40.0), "tag of the packet");
    for (i, (text, class)) in [("part 1 = 1", "cell"), ("part 0 = 2", "cell")].into_iter().enumerate() {
        svg.rect(class, (20.0 + 84.0 * i as f64, 50.0), (80.0, 24.0));
        svg.text("s", "middle", (60.0 + 84.0 * i as f64, 66.0), text);
    }
    for (y, text) in [(leaf_y, "the leaf reads part 0: uplink 2"), (agg_y, "agg 2 reads part 1: uplink 1")] {
        svg.text("s", "start", (20.0, y + 4.0), text);
    }
    svg.finish(title, says)
}
