//! Fabrics for a number of hosts: the sizes that can be built near it.

use crate::{TopologyError, TopologyParameters};
use anabranch_settings::Raw;

/// Radixes that are tried.
const MAX_RADIX: u64 = 1024;
/// Oversubscriptions that are tried where none gives the number of hosts exactly.
const MAX_WHOLE: u64 = 8;
/// Maximum number of leaf-spines.
const MAX_LEAF_SPINES: usize = 3;

/// A fabric that can be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Kind of topology.
    pub kind: &'static str,
    /// Keys of `[topology]` with their values.
    pub keys: Vec<(&'static str, u64)>,
    /// Number of hosts.
    pub hosts: u64,
    /// Number of switches.
    pub switches: u64,
    /// Ports that the largest switch needs.
    pub ports: u64,
    /// Hosts per uplink of a leaf, with equal rates.
    pub oversubscription: f64,
}

fn proposal(kind: &'static str, keys: Vec<(&'static str, u64)>, ports: u64, oversubscription: f64) -> Option<Proposal> {
    let mut parameters = TopologyParameters::named(kind).ok()?;
    for (key, value) in &keys {
        parameters.parameters_mut().set(key, &Raw::Int(*value as i64)).ok()?;
    }
    let scale = parameters.scale()?;
    Some(Proposal { kind, keys, hosts: scale.hosts, switches: scale.switches, ports, oversubscription })
}

fn fat_tree(tiers: u64, radix: u64, oversubscription: u64) -> Option<Proposal> {
    let keys = vec![("tiers", tiers), ("radix", radix), ("oversubscription", oversubscription)];
    // A leaf has radix / 2 uplinks.
    let ports = radix.max(radix / 2 * (1 + oversubscription));
    proposal("fat-tree", keys, ports, oversubscription as f64)
}

/// Returns fat trees with an oversubscription: the one with `hosts`, else the nearest smaller and larger ones.
fn fat_trees(hosts: u64, tiers: u64, oversubscription: u64) -> Vec<Proposal> {
    let (mut below, mut above) = (None, None);
    for radix in (2..=MAX_RADIX).step_by(2) {
        match fat_tree(tiers, radix, oversubscription) {
            Some(found) if found.hosts == hosts => return vec![found],
            Some(found) if found.hosts < hosts => below = Some(found),
            Some(found) => {
                above = Some(found);
                break;
            }
            None => break,
        }
    }
    below.into_iter().chain(above).collect()
}

fn leaf_spines(hosts: u64, oversubscription: f64) -> Vec<Proposal> {
    let mut found: Vec<Proposal> = (1..=hosts.min(MAX_RADIX))
        .filter(|per_leaf| hosts.is_multiple_of(*per_leaf))
        .filter_map(|per_leaf| {
            let spines = per_leaf as f64 / oversubscription;
            let leaves = hosts / per_leaf;
            if spines < 1.0 || spines.fract() != 0.0 || leaves < 2 {
                return None;
            }
            let keys = vec![("leaves", leaves), ("spines", spines as u64), ("hosts_per_leaf", per_leaf)];
            proposal("leaf-spine", keys, leaves.max(per_leaf + spines as u64), oversubscription)
        })
        .collect();
    found.sort_by_key(|proposal| (proposal.ports, proposal.switches));
    found.truncate(MAX_LEAF_SPINES);
    found
}

/// Returns fabrics for `hosts`, those with exactly as many first. `tiers`: 2 or 3; `None`: both.
///
/// # Errors
/// [`TopologyError`] for values that no fabric has.
pub fn propose(hosts: u64, tiers: Option<u64>, oversubscription: f64) -> Result<Vec<Proposal>, TopologyError> {
    if hosts < 2 {
        return Err(TopologyError::at("hosts", format!("found {hosts} hosts, expected 2 or more")));
    }
    if let Some(tiers) = tiers.filter(|tiers| !(2..=3).contains(tiers)) {
        return Err(TopologyError::at("tiers", format!("found {tiers} tiers, expected 2 or 3")));
    }
    if !(1.0..=64.0).contains(&oversubscription) {
        let message = format!("found an oversubscription of {oversubscription}, expected 1 to 64");
        return Err(TopologyError::at("oversubscription", message));
    }
    let is_whole = oversubscription.fract() == 0.0;
    let mut found = Vec::new();
    for tiers in [2, 3].into_iter().filter(|each| tiers.is_none_or(|tiers| tiers == *each)) {
        let own = if is_whole { fat_trees(hosts, tiers, oversubscription as u64) } else { Vec::new() };
        let is_exact = own.iter().any(|proposal| proposal.hosts == hosts);
        found.extend(own);
        if tiers == 2 {
            found.extend(leaf_spines(hosts, oversubscription));
        }
        // The requested number of hosts, with another oversubscription.
        if !is_exact {
            let exact = (1..=MAX_WHOLE).flat_map(|other| fat_trees(hosts, tiers, other));
            let mut exact: Vec<Proposal> = exact.filter(|proposal| proposal.hosts == hosts).collect();
            let apart = |proposal: &Proposal| (proposal.oversubscription - oversubscription).abs();
            exact.sort_by(|a, b| apart(a).total_cmp(&apart(b)));
            found.extend(exact.into_iter().take(1));
        }
    }
    if found.is_empty() {
        return Err(TopologyError::at("hosts", format!("no fabric that can be built has about {hosts} hosts")));
    }
    found.sort_by_key(|proposal| {
        (proposal.oversubscription != oversubscription, proposal.hosts.abs_diff(hosts), proposal.switches)
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(hosts: u64, tiers: Option<u64>, oversubscription: f64) -> Vec<(u64, f64, Vec<u64>)> {
        let found = propose(hosts, tiers, oversubscription).unwrap();
        let values = |proposal: &Proposal| proposal.keys.iter().map(|(_, value)| *value).collect();
        found.iter().map(|p| (p.hosts, p.oversubscription, values(p))).collect()
    }

    /// Three tiers of radix k have k^3 / 4 hosts per unit of oversubscription, two tiers k^2 / 2.
    #[test]
    fn sizes_that_can_be_built() {
        // 10^3 / 2 = 500, 12^3 / 2 = 864; 8^3 / 4 = 128, four times oversubscribed 512.
        let expected = [(500, 2.0, vec![3, 10, 2]), (864, 2.0, vec![3, 12, 2]), (512, 4.0, vec![3, 8, 4])];
        assert_eq!(found(512, Some(3), 2.0), expected);
        // 16^2 / 2 = 128 is exact.
        let two = found(128, Some(2), 1.0);
        assert!(two.contains(&(128, 1.0, vec![2, 16, 1])), "{two:?}");
        // Leaf-spine: 8 hosts and 4 spines per leaf of 64 hosts in 8 leaves, 2:1.
        let two = found(64, Some(2), 2.0);
        assert!(two.contains(&(64, 2.0, vec![8, 4, 8])), "{two:?}");
        // A share that is not whole has leaf-spines only: 6 hosts on 4 spines.
        assert!(found(24, None, 1.5).iter().any(|found| *found == (24, 1.5, vec![4, 4, 6])));
        for (hosts, tiers, over, word) in
            [(1, None, 1.0, "1 hosts"), (8, Some(4), 1.0, "4 tiers"), (8, None, 0.5, "0.5")]
        {
            assert!(propose(hosts, tiers, over).unwrap_err().message.contains(word));
        }
    }
}
