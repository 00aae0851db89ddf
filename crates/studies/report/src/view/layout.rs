//! Layout of the nodes: tiers one above the other, or groups in a circle. Positions depend on the links alone.

use super::fabric::Fabric;
use std::{cmp::Ordering, collections::BTreeMap, f64::consts::TAU};

/// A position; y grows downwards.
pub(crate) type Point = (f64, f64);

const CELL: f64 = 10.0;
/// Width above which the hosts of a leaf are drawn in several rows.
const WIDE: f64 = 2400.0;
/// Maximum number of rows of hosts below a leaf.
const MAX_ROWS: usize = 4;

pub(crate) fn positions(fabric: &Fabric) -> Vec<Point> {
    if fabric.is_grouped() { groups(fabric) } else { tiers(fabric) }
}

/// Returns the hosts of every switch, by their indices among the nodes; those of several planes at the switch of the first.
fn hosts_of(fabric: &Fabric) -> Vec<Vec<u32>> {
    let mut hosts = vec![vec![]; fabric.nodes.len()];
    let mut leaf_of: BTreeMap<u32, u32> = BTreeMap::new();
    let name = |node: u32| &fabric.nodes[node as usize].name;
    for link in fabric.links.iter().filter(|link| fabric.nodes[link.from as usize].height == 0) {
        let known = leaf_of.entry(link.from).or_insert(link.to);
        if by_name(name(link.to), name(*known)).is_lt() {
            *known = link.to;
        }
    }
    for link in &fabric.links {
        if leaf_of.get(&link.from) == Some(&link.to) && !hosts[link.to as usize].contains(&link.from) {
            hosts[link.to as usize].push(link.from);
        }
    }
    hosts
}

/// Compares names so that `leaf10` is after `leaf9`.
fn by_name(a: &str, b: &str) -> Ordering {
    let split = |name: &str| {
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        (name[..digits].to_string(), name[digits..].parse::<u64>().unwrap_or_default())
    };
    split(a).cmp(&split(b))
}

fn tiers(fabric: &Fabric) -> Vec<Point> {
    let nodes = &fabric.nodes;
    let top = nodes.iter().map(|node| node.height).max().unwrap_or_default();
    let of_height = |height: u32| (0..nodes.len()).filter(move |&node| nodes[node].height == height);
    let names = |a: &usize, b: &usize| by_name(&nodes[*a].name, &nodes[*b].name);
    // Leaves of a pod, which the links below the top tier connect, are neighbours.
    let pods = fabric.parts(|link| {
        let heights = [link.from, link.to].map(|node| nodes[node as usize].height);
        top < 3 || heights.iter().all(|&height| height < top)
    });
    let mut leaves: Vec<usize> = of_height(1).collect();
    leaves.sort_by(names);
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    for (place, &leaf) in leaves.iter().enumerate() {
        first.entry(pods[leaf]).or_insert(place);
    }
    leaves.sort_by_key(|&leaf| first[&pods[leaf]]);
    let hosts = hosts_of(fabric);
    let most = leaves.iter().map(|&leaf| hosts[leaf].len()).max().unwrap_or_default().max(1);
    let columns_of = |rows: usize| most.div_ceil(rows).max(2.min(most));
    let width = |rows: usize| (columns_of(rows) + 1) as f64 * CELL * leaves.len() as f64;
    let rows = (1..=MAX_ROWS).find(|&rows| width(rows) <= WIDE).unwrap_or(MAX_ROWS);
    let slot = (columns_of(rows) + 1) as f64 * CELL;
    let mut places = vec![(0.0, 0.0); nodes.len()];
    let mut x = 0.0;
    let mut before = None;
    for &leaf in &leaves {
        if before.is_some_and(|pod| pod != pods[leaf]) {
            x += 0.6 * slot;
        }
        before = Some(pods[leaf]);
        places[leaf].0 = x + slot / 2.0;
        x += slot;
    }
    let whole = x.max(CELL);
    let step = whole * if top > 2 { 0.2 } else { 0.3 };
    let y_of = |height: u32| f64::from(top.saturating_sub(height)) * step;
    let below = y_of(1) + (0.045 * whole).max(3.0 * CELL);
    for &leaf in &leaves {
        places[leaf].1 = y_of(1);
        let columns = columns_of(rows).min(hosts[leaf].len());
        for (number, &host) in hosts[leaf].iter().enumerate() {
            let (row, column) = (number / columns, number % columns);
            // Rows are shifted, so that no link crosses another host.
            let shift = (row as f64 + 0.5) / rows as f64 - 0.5;
            let across = (column as f64 - (columns as f64 - 1.0) / 2.0 + shift) * CELL;
            places[host as usize] = (places[leaf].0 + across, below + row as f64 * CELL);
        }
    }
    // Hosts of several planes are below the leaves of the first: they are spread below those of all.
    let of_first = leaves.iter().filter(|&&leaf| !hosts[leaf].is_empty());
    let uplinks = fabric.links.iter().filter(|link| nodes[link.from as usize].height == 0).count();
    if uplinks > of_height(0).count()
        && let Some(last) = of_first.map(|&leaf| places[leaf].0 + slot / 2.0).reduce(f64::max)
    {
        of_height(0).for_each(|host| places[host].0 *= whole / last);
    }
    for height in 2..=top {
        // Each switch is ordered by the mean position of its neighbours below.
        let mut sums = vec![(0.0, 0u32); nodes.len()];
        for link in &fabric.links {
            let (from, to) = (link.from as usize, link.to as usize);
            if nodes[to].height == height && nodes[from].height == height - 1 {
                sums[to].0 += places[from].0;
                sums[to].1 += 1;
            }
        }
        let mean = |node: usize| sums[node].0 / f64::from(sums[node].1.max(1));
        let mut row: Vec<usize> = of_height(height).collect();
        row.sort_by(|a, b| {
            // Differences far below a unit are rounding.
            let near = (mean(*a) * 1e3).round().total_cmp(&(mean(*b) * 1e3).round());
            near.then_with(|| names(a, b))
        });
        let space = whole / row.len().max(1) as f64;
        for (place, &node) in row.iter().enumerate() {
            places[node] = ((place as f64 + 0.5) * space, y_of(height));
        }
        // If there are as many switches as leaves, those of a pod are above its leaves.
        if row.len() == leaves.len() {
            for (&node, &leaf) in row.iter().zip(&leaves) {
                places[node].0 = places[leaf].0;
            }
        }
    }
    places
}

fn groups(fabric: &Fabric) -> Vec<Point> {
    let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (number, node) in fabric.nodes.iter().enumerate() {
        if node.height > 0 {
            groups.entry(node.group.unwrap_or_default()).or_default().push(number);
        }
    }
    let hosts = hosts_of(fabric);
    let switches = groups.values().map(Vec::len).max().unwrap_or_default().max(1);
    let most = hosts.iter().map(Vec::len).max().unwrap_or_default();
    let inner = (switches as f64 * 1.5 * CELL / TAU).max(1.6 * CELL);
    let ring = inner + 1.3 * CELL;
    // Number of rows that keeps hosts half a cell apart.
    let around = switches as f64 * most as f64 * 0.55 * CELL;
    let rows = (around / (TAU * ring)).ceil().max(1.0) as usize;
    let outer = ring + rows as f64 * 0.7 * CELL;
    let number = groups.len();
    let radius = if number < 2 { 0.0 } else { (1.1 * outer / (TAU / 2.0 / number as f64).sin()).max(2.2 * outer) };
    let on_circle =
        |centre: Point, radius: f64, angle: f64| (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin());
    let mut places = vec![(0.0, 0.0); fabric.nodes.len()];
    for (place, members) in groups.values_mut().enumerate() {
        members.sort_by(|a, b| by_name(&fabric.nodes[*a].name, &fabric.nodes[*b].name));
        let towards = TAU * (place as f64 / number as f64 - 0.25);
        let centre = on_circle((0.0, 0.0), radius, towards);
        for (member, &switch) in members.iter().enumerate() {
            let angle = towards + TAU * member as f64 / members.len() as f64;
            places[switch] = on_circle(centre, inner, angle);
            let columns = hosts[switch].len().div_ceil(rows).max(1);
            for (number, &host) in hosts[switch].iter().enumerate() {
                let (row, column) = (number / columns, number % columns);
                let share = (column as f64 + 0.5 + (row as f64 / rows as f64 - 0.5) * 0.5) / columns as f64 - 0.5;
                let angle = angle + 0.86 * share * TAU / members.len() as f64;
                places[host as usize] = on_circle(centre, ring + row as f64 * 0.7 * CELL, angle);
            }
        }
    }
    places
}
