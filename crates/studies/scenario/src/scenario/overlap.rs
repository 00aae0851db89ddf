//! Jobs that share hosts without a request.

use super::Workload;
use crate::Tree;
use anabranch_backend::Setup;
use std::collections::BTreeSet;

/// Returns a warning per pair of jobs on common hosts of which the later one does not have `overlap = true`.
pub(crate) fn warnings(workloads: &[Workload], setup: &Setup, tree: &Tree) -> Vec<String> {
    let is_job = |workload: &Workload| workload.kind.is_job();
    if workloads.iter().filter(|workload| is_job(workload)).count() < 2 {
        return vec![];
    }
    let hosts = hosts_of(workloads, setup);
    let mut warnings = vec![];
    for (number, later) in workloads.iter().enumerate().filter(|(_, later)| is_job(later) && !later.common.overlap) {
        for (before, earlier) in workloads[..number].iter().enumerate().filter(|(_, earlier)| is_job(earlier)) {
            let common: Vec<u32> = hosts[before].intersection(&hosts[number]).copied().collect();
            if common.is_empty() {
                continue;
            }
            warnings.push(format!(
                "{}[[workload]] {}: the jobs `{}` and `{}` both run on {}, so that each slows the other; give it other \
                 hosts (`hosts = \"rest\"`), or `overlap = true` if that is meant",
                tree.line_of(&format!("workload[{number}]")),
                number + 1,
                earlier.name,
                later.name,
                named(&common)
            ));
        }
    }
    warnings
}

/// Returns the hosts that send or receive in each workload.
fn hosts_of(workloads: &[Workload], setup: &Setup) -> Vec<BTreeSet<u32>> {
    let owner = |name: &String| workloads.iter().position(|workload| workload.names().any(|own| own == *name));
    // Parts of flow files have names of their own.
    let file = workloads.iter().position(|workload| workload.kind.name() == "file");
    let of: Vec<Option<usize>> = setup.flows.workloads.iter().map(|workload| owner(&workload.name).or(file)).collect();
    let mut hosts = vec![BTreeSet::new(); workloads.len()];
    for flow in setup.flows.all_flows() {
        if let Some(workload) = of[usize::from(flow.workload)] {
            hosts[workload].extend([flow.src, flow.dst]);
        }
    }
    hosts
}

/// Lists hosts as `8 hosts (0 to 7)` or `3 hosts (0, 4, 9)`.
fn named(hosts: &[u32]) -> String {
    const NAMED: usize = 6;
    let (first, last) = (hosts[0], hosts[hosts.len() - 1]);
    let list = match hosts {
        [only] => return format!("host {only}"),
        _ if last - first + 1 == hosts.len() as u32 => format!("{first} to {last}"),
        _ => {
            let names: Vec<String> = hosts.iter().take(NAMED).map(u32::to_string).collect();
            let more = if hosts.len() > NAMED { ", ..." } else { "" };
            format!("{}{more}", names.join(", "))
        }
    };
    format!("{} hosts ({list})", hosts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_briefly() {
        assert_eq!(named(&[4]), "host 4");
        assert_eq!(named(&[0, 1, 2]), "3 hosts (0 to 2)");
        assert_eq!(named(&[0, 4, 9]), "3 hosts (0, 4, 9)");
        assert_eq!(named(&[0, 2, 4, 6, 8, 10, 12]), "7 hosts (0, 2, 4, 6, 8, 10, ...)");
    }
}
