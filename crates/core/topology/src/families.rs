//! Names of nodes in short, for messages: `leaf0 to leaf7, spine0 to spine3`.

use crate::graph::Node;

/// Maximum number of families, and of single names of one, that are listed.
const MAX_LISTED: usize = 6;

/// Returns the names of `nodes` in short: families of names that differ in their number, each from first to last.
pub(crate) fn families<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> String {
    let mut families: Vec<(&str, Vec<&Node>)> = Vec::new();
    for node in nodes {
        let stem = node.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let known = families.iter().position(|(known, _)| *known == stem);
        match known {
            Some(index) => families[index].1.push(node),
            // With too many to be listed, only the first and the last one count.
            None if families.len() > MAX_LISTED => families[MAX_LISTED] = (stem, vec![node]),
            None => families.push((stem, vec![node])),
        }
    }
    if families.is_empty() {
        return "none".into();
    }
    if families.len() > MAX_LISTED {
        let ends = [families.first(), families.last()].map(|family| family.map_or("", |(_, nodes)| &nodes[0].name));
        return format!("{} to {}", ends[0], ends[1]);
    }
    families.iter().map(|(stem, members)| family(stem, members)).collect::<Vec<_>>().join(", ")
}

fn family(stem: &str, members: &[&Node]) -> String {
    let numbers: Vec<Option<usize>> = members.iter().map(|node| node.name[stem.len()..].parse().ok()).collect();
    let is_run = numbers.windows(2).all(|pair| matches!(pair, [Some(a), Some(b)] if *b == a + 1));
    let (first, last) = (&members[0].name, &members[members.len() - 1].name);
    match members.len() {
        1 => first.clone(),
        _ if is_run => format!("{first} to {last}"),
        few if few <= MAX_LISTED => members.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", "),
        _ => format!("{first}, {}, ... {last}", members[1].name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeKind;

    #[test]
    fn names_in_short() {
        let short = |names: &[&str]| {
            let node = |name: &&str| Node { name: (*name).into(), kind: NodeKind::Host };
            families(&names.iter().map(node).collect::<Vec<_>>())
        };
        assert_eq!(short(&["leaf0", "leaf1", "leaf2", "spine0"]), "leaf0 to leaf2, spine0");
        assert_eq!(short(&["agg0", "agg4", "agg8"]), "agg0, agg4, agg8");
        assert_eq!(short(&["a0", "a2", "a4", "a6", "a8", "a10", "a12"]), "a0, a2, ... a12");
        assert_eq!(short(&["tor-x", "tor-y"]), "tor-x, tor-y");
        let groups = ["sw0.0", "sw0.1", "sw1.0", "sw2.0", "sw3.0", "sw4.0", "sw5.0", "sw6.0", "sw7.0"];
        assert_eq!(short(&groups), "sw0.0 to sw7.0");
        assert_eq!(short(&[]), "none");
    }
}
