use crate::{LinkId, NodeId, NodeKind, TopologyError, graph::Graph};
use anabranch_settings::nearest;

/// Returns `true` if `name` matches `pattern`, in which `*` matches any text and `?` one character.
pub fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut in_pattern) = (0, 0);
    // Position of the last star in the pattern, and the end of the text that it covers.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(in_pattern) {
            Some('*') => {
                star = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(&c) if c == '?' || c == name[at] => (at, in_pattern) = (at + 1, in_pattern + 1),
            _ => {
                let Some((place, covered)) = &mut star else { return false };
                *covered += 1;
                (at, in_pattern) = (*covered, *place + 1);
            }
        }
    }
    pattern[in_pattern..].iter().all(|c| *c == '*')
}

pub(crate) fn links_like(graph: &Graph, what: &str) -> Result<Vec<LinkId>, TopologyError> {
    let what = what.trim();
    let of_class: Vec<LinkId> = graph.link_ids().filter(|l| graph.link(*l).class.name() == what).collect();
    if !of_class.is_empty() {
        return Ok(of_class);
    }
    if !what.contains(['*', '?']) {
        return graph.link_named(what).map_err(|mut error| {
            error.message += &format!("; classes of links are {}", graph.classes().join(", "));
            error
        });
    }
    let directed = what.contains("->");
    let name = |link: LinkId| if directed { graph.link_name(link) } else { graph.cable_name(link) };
    let found: Vec<LinkId> = graph.link_ids().filter(|link| is_like(&name(*link), what)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let names: Vec<String> = graph.link_ids().step_by(if directed { 1 } else { 2 }).map(name).collect();
    let near = nearest(what, names.iter().map(String::as_str)).map(|n| format!(" (did you mean `{n}`?)"));
    let (first, last) = (names.first().map_or("", |n| n), names.last().map_or("", |n| n));
    Err(TopologyError::new(format!(
        "no link is like `{what}`; links run from `{first}` to `{last}`, classes are {}{}",
        graph.classes().join(", "),
        near.unwrap_or_default()
    )))
}

pub(crate) fn hosts_like(graph: &Graph, pattern: &str) -> Result<Vec<u32>, TopologyError> {
    let pattern = pattern.trim();
    let like = |host: &u32| is_like(&graph.node(NodeId(*host)).name, pattern);
    let found: Vec<u32> = (0..graph.hosts).filter(like).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).map(|node| node.name.as_str());
    let near = nearest(pattern, hosts).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
    let last = graph.hosts.saturating_sub(1);
    Err(TopologyError::new(format!(
        "no host is like `{pattern}`; hosts are {} to {}{near}",
        graph.node(NodeId(0)).name,
        graph.node(NodeId(last)).name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Topology, TopologyParameters};
    use anabranch_settings::Raw;
    use proptest::prelude::*;

    /// A fabric of 4 leaves with 2 hosts each, and 2 spines.
    fn topology() -> Topology {
        let mut parameters = TopologyParameters::named("fat-tree").expect("a topology");
        for (key, value) in [("tiers", Raw::Int(2)), ("radix", Raw::Int(4))] {
            parameters.parameters_mut().set(key, &value).expect("a parameter");
        }
        parameters.build(&|path| Err(std::io::Error::other(path.to_string()))).expect("a topology")
    }

    fn names(what: &str) -> Vec<String> {
        let topology = topology();
        topology.links_like(what).expect("links").into_iter().map(|link| topology.link_name(link)).collect()
    }

    #[test]
    fn names_patterns_and_classes() {
        assert_eq!(names("leaf1->spine0"), ["leaf1->spine0"]);
        assert_eq!(names("leaf0-spine1"), ["leaf0->spine1", "spine1->leaf0"]);
        assert_eq!(names("leaf0-*"), ["leaf0->spine0", "spine0->leaf0", "leaf0->spine1", "spine1->leaf0"]);
        assert_eq!(names("leaf?->spine1"), ["leaf0->spine1", "leaf1->spine1", "leaf2->spine1", "leaf3->spine1"]);
        assert_eq!(names("*->host3"), ["leaf1->host3"]);
        // Eight cables between the tiers, two directions each; eight hosts.
        assert_eq!((names("tier0-1").len(), names("host").len(), names("*").len()), (16, 16, 32));
        assert_eq!(topology().hosts_like("host?").unwrap(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn unknown_names_list_the_nearest() {
        let wrong = |what: &str| topology().links_like(what).unwrap_err().message;
        assert!(wrong("leaf0-spin1").contains("did you mean `leaf0-spine1`?"), "{}", wrong("leaf0-spin1"));
        assert!(wrong("tier1-2").contains("classes of links are host, tier0-1"), "{}", wrong("tier1-2"));
        assert!(wrong("leaf9-*").contains("links run from `host0-leaf0` to `leaf3-spine1`"), "{}", wrong("leaf9-*"));
        let host = topology().hosts_like("hots3").unwrap_err().message;
        assert!(host.contains("did you mean `host3`?"), "{host}");
    }

    proptest! {
        #[test]
        fn patterns_as_defined(name in "[ab]{0,8}", pattern in "[ab*?]{0,6}") {
            fn like(name: &[u8], pattern: &[u8]) -> bool {
                match (name, pattern) {
                    ([], []) => true,
                    (_, [b'*', rest @ ..]) => (0..=name.len()).any(|skipped| like(&name[skipped..], rest)),
                    ([_, name @ ..], [b'?', rest @ ..]) => like(name, rest),
                    ([a, name @ ..], [b, rest @ ..]) => a == b && like(name, rest),
                    _ => false,
                }
            }
            prop_assert_eq!(is_like(&name, &pattern), like(name.as_bytes(), pattern.as_bytes()));
        }
    }
}
