//! Bounds against times computed by hand, where they are tight.
//!
//! Packets of 4 KiB payload and 64 bytes of headers; at 400 Gb/s a byte takes 20 ps, a full packet 83.2 ns.

use crate::common::setup;
use anabranch_bound::{Bounds, bounds};

const PACKET: f64 = 0.0832;

fn value(bounds: &Bounds, metric: &str) -> f64 {
    bounds.limit("all", metric).unwrap_or_else(|| panic!("no limit of {metric}: {bounds:?}")).value
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-4 * expected, "{found}, expected {expected}");
    assert!(found <= expected * (1.0 + 1e-9), "{found} is above {expected}");
}

#[test]
fn incast_drains_at_the_rate_of_the_receiver() {
    // 32 senders of 1 MiB, 256 packets each. A sender of another leaf is four links away, one of the same leaf two: its first packet
    // reaches the last link after a packet time and 1 us. Then 8192 packets cross it, and 1 us of delay follows.
    let setup = setup("incast", &["topology.link_delay=1us"], 1);
    let bounds = bounds(&setup, false);
    let receiver = setup.flows.flows[0].dst;
    let leaf = setup.topology.edge_switch(receiver);
    let nearest = setup.flows.flows.iter().any(|flow| setup.topology.edge_switch(flow.src) == leaf);
    let links = if nearest { 1.0 } else { 3.0 };
    close(value(&bounds, "fct_max"), links * (PACKET + 1.0) + 8192.0 * PACKET + 1.0);
    // Any order of whole flows ends them after 1/32, 2/32, ... of the drain: 16.5 flows on average.
    let mean = bounds.limit("all", "fct_mean").unwrap().value;
    let drain = 256.0 * PACKET * 16.5;
    assert!(mean >= drain && mean <= drain + 4.0 * (PACKET + 1.0), "{mean} {drain}");
}

/// Messages inside a server take no link of the network, so that no bound of links holds.
#[test]
fn servers_have_no_bounds() {
    let bounds = bounds(&setup("rail-only", &[], 1), true);
    assert!(bounds.limits.is_empty() && bounds.loose[0].contains("[servers]"), "{bounds:?}");
}

#[test]
fn a_permutation_on_a_non_blocking_tree_can_be_ideal() {
    let setup = setup("permutation-128", &[], 1);
    let bounds = bounds(&setup, true);
    // 2048 packets, three more packet times at the other links, four delays: 174.64 us.
    close(value(&bounds, "fct_max"), 2048.0 * PACKET + 3.0 * PACKET + 4.0);
    close(value(&bounds, "fct_mean"), 2048.0 * PACKET + 3.0 * PACKET + 4.0);
    close(value(&bounds, "fct_ratio_max"), 1.0);
    close(value(&bounds, "slowdown_max"), 1.0);
    close(value(&bounds, "slowdown_mean"), 1.0);
    // Eight flows out of each leaf over eight links: the links between switches need as long as those of the hosts.
    let flow = &bounds.max_flow[0];
    close(flow.time_us, 2048.0 * PACKET);
    assert!(flow.gap.is_some_and(|gap| gap < 1e-3), "{flow:?}");
}

/// Four planes at a quarter of the rate: 2048 packets pass the ports of a host together as fast as one of the whole rate;
/// at the three other links of its plane the last one takes four times as long.
#[test]
fn planes_carry_the_rate_of_the_whole_together() {
    let setup = setup("permutation-128", &["topology.planes=4"], 1);
    let bounds = bounds(&setup, true);
    close(value(&bounds, "fct_max"), 2048.0 * PACKET + 3.0 * 4.0 * PACKET + 4.0);
    close(value(&bounds, "fct_ratio_max"), 1.0);
    close(bounds.max_flow[0].time_us, 2048.0 * PACKET);
}

#[test]
fn an_oversubscribed_leaf_takes_as_long_as_its_uplinks() {
    // 8 hosts per leaf and 2 spines at the same rate: 8 flows leave over 2 links, four times the time of one.
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\nlink_rate = \"400Gbps\"\nlink_delay = \"1us\"\n[load_balancer]\nscheme = \"prime\"\n[[workload]]\nkind = \"permutation\"\nsize = \"4MiB\"\nscope = \"other-leaf\"\n";
    let setup = from_text(text);
    let bounds = bounds(&setup, true);
    // The first packet reaches an uplink after a packet time and 1 us; behind the last link between switches follow a packet
    // time and 1 us.
    let (bytes, ends) = (1024.0 * PACKET, 2.0 * (PACKET + 1.0));
    close(value(&bounds, "fct_max"), 4.0 * bytes + ends);
    close(bounds.max_flow[0].time_us, 4.0 * bytes);
    // Mean busy time of half the four, and half the time of a flow alone after it; the delay of the last link, and the way to the
    // uplinks.
    let mean = value(&bounds, "fct_mean");
    close(mean, 2.0 * bytes + bytes / 2.0 + PACKET + 1.0 + 1.0);
}

#[test]
fn slow_cables_count_and_dead_ones_do_not() {
    // One leaf of 8 hosts with 8 uplinks, four of them at a quarter: 4 + 4/4 = 5 links' rate instead of 8.
    let base = "[topology]\nkind = \"fat-tree\"\ntiers = 2\nradix = 16\nlink_rate = \"400Gbps\"\nlink_delay = \"1us\"\n[load_balancer]\nscheme = \"prime\"\n[[workload]]\nkind = \"permutation\"\nsize = \"4MiB\"\nscope = \"other-leaf\"\n";
    let cables = "links = [\"leaf0-spine0\", \"leaf0-spine1\", \"leaf0-spine2\", \"leaf0-spine3\"]";
    let slow = format!("{base}[[fault]]\nkind = \"link-degrade\"\nrate = \"100Gbps\"\n{cables}\n");
    let bytes = 1024.0 * PACKET;
    let ends = 2.0 * (PACKET + 1.0);
    close(value(&bounds(&from_text(&slow), true), "fct_max"), bytes * 8.0 / 5.0 + ends);
    let dead = format!("{base}[[fault]]\nkind = \"link-down\"\n{cables}\n");
    close(value(&bounds(&from_text(&dead), true), "fct_max"), bytes * 8.0 / 4.0 + ends);
    // Links that come back may carry everything: the bound assumes the best rate that they ever have.
    let healed = format!("{dead}[[fault]]\nat = \"1us\"\nkind = \"link-up\"\n{cables}\n");
    close(value(&bounds(&from_text(&healed), true), "fct_max"), bytes + 3.0 * PACKET + 4.0);
}

#[test]
fn flows_without_a_path_never_end() {
    let text = "[topology]\nkind = \"slim-fly\"\nq = 4\np = 1\n[load_balancer]\nscheme = \"ecmp\"\n[[workload]]\nkind = \"permutation\"\n\
                size = \"1KiB\"\n[[fault]]\nfraction = 1.0\n";
    let found = bounds(&from_text(text), true);
    assert_eq!(value(&found, "fct_max"), f64::INFINITY);
    assert!(found.max_flow.is_empty(), "{found:?}");
}

/// Both uplinks of leaf1 are down: hosts 2 and 3 neither send to other leaves nor receive from them.
#[test]
fn flows_without_a_path_are_counted_and_named_with_the_cut() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\n[load_balancer]\nscheme = \"ecmp\"\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"64KiB\"\nscope = \"other-leaf\"\n";
    let cables = "[[fault]]\nkind = \"link-down\"\nlinks = [\"leaf1-spine0\", \"leaf1-spine1\"]\n";
    let setup = from_text(&format!("{text}{cables}"));
    let found = bounds(&setup, true);
    let [cut] = found.unreachable.as_slice() else { panic!("{found:?}") };
    // A permutation to other leaves: two flows from leaf1, two to it.
    assert_eq!((cut.workload.as_str(), cut.flows, cut.of), ("all", 4, 8));
    let first = setup.flows.flows.iter().find(|flow| [flow.src, flow.dst].iter().any(|host| host / 2 == 1)).unwrap();
    let pair = &cut.pairs[0];
    assert_eq!((&pair.src, &pair.dst), (&format!("host{}", first.src), &format!("host{}", first.dst)));
    assert_eq!(
        (&pair.src_leaf, &pair.dst_leaf),
        (&format!("leaf{}", first.src / 2), &format!("leaf{}", first.dst / 2))
    );
    let mut down = cut.down.clone();
    down.sort();
    match first.src / 2 {
        1 => assert_eq!(down, ["leaf1->spine0", "leaf1->spine1"]),
        _ => assert_eq!(down, ["spine0->leaf1", "spine1->leaf1"]),
    }
    let [reason] = found.loose.as_slice() else { panic!("{found:?}") };
    assert!(reason.starts_with(&format!("4 of 8 flows have no path, first {} (", pair.src)), "{reason}");
    assert!(reason.ends_with("no bound exists, since they never finish"), "{reason}");
    assert!(found.max_flow.is_empty(), "{found:?}");
    let is_cut = |limit: &anabranch_bound::Limit| limit.value.is_infinite() && limit.by == "flows without a path";
    assert!(found.limits.len() == 6 && found.limits.iter().all(is_cut), "{found:?}");
    // A host's own link.
    let host = bounds(
        &from_text(&format!("{text}{}", cables.replace("\"leaf1-spine0\", \"leaf1-spine1\"", "\"host3-leaf1\""))),
        true,
    );
    let cut = &host.unreachable[0];
    assert_eq!(cut.flows, 2);
    assert!([["host3->leaf1"], ["leaf1->host3"]].iter().any(|link| cut.down == *link), "{cut:?}");
    // A cable that comes back during the traffic is a path.
    let healed = bounds(
        &from_text(&format!("{text}{cables}[[fault]]\nat = \"1us\"\nkind = \"link-up\"\nlinks = [\"leaf1-spine0\"]\n")),
        true,
    );
    assert!(healed.unreachable.is_empty() && value(&healed, "fct_max").is_finite(), "{healed:?}");
}

/// Results have no slowdown below 1, so rounding takes nothing away from the bound 1 of a flow alone.
#[test]
fn no_bound_of_a_slowdown_is_below_one() {
    let bounds = bounds(&setup("permutation-128", &[], 1), true);
    assert_eq!(value(&bounds, "slowdown_mean"), 1.0);
    assert_eq!(value(&bounds, "slowdown_max"), 1.0);
}

fn from_text(text: &str) -> anabranch_backend::Setup {
    use anabranch_scenario::{Scenario, tree::Tree};
    let tree = Tree::parse("test.toml", text).expect("a tree");
    let scenario = Scenario::read(tree, "test", std::path::Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    scenario.setup(1).unwrap_or_else(|error| panic!("{error}"))
}
