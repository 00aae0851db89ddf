//! Recognition of files that a scenario names but that were given in place of a scenario, and the scenario to write for them.

use crate::ScenarioError;
use anabranch_topology::FileFormat;
use anabranch_workload::SizeDistribution;
use std::path::Path;

struct Foreign {
    what: &'static str,
    sections: String,
}

/// Returns the error for the file `name` where its content is not a scenario but a file that a scenario names.
pub(crate) fn named(name: &str, content: &[u8]) -> Option<ScenarioError> {
    let file = Path::new(name).file_name()?.to_string_lossy();
    let Foreign { what, sections } = recognised(&file, content)?;
    let beside = Path::new(name).with_extension("toml");
    let message = format!("{name} is {what}, not a scenario");
    let help = format!(
        "write a scenario that names it, for example {}:\n\n{sections}\n[load_balancer]\nscheme = \"ops\"",
        beside.display()
    );
    Some(ScenarioError::new(message).help(help))
}

fn recognised(file: &str, content: &[u8]) -> Option<Foreign> {
    let Ok(text) = std::str::from_utf8(content) else {
        return file.ends_with(".goal").then(|| flows("a binary GOAL schedule", file, "goal", None));
    };
    let lines = || {
        let bare = text.lines().map(|line| line.split(['#', '/']).next().unwrap_or_default().trim());
        bare.filter(|line| !line.is_empty())
    };
    let first = lines().next()?;
    let after = |key: &str| lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    if after("Connections").is_some() {
        return Some(flows("a connection matrix of htsim", file, "htsim-cm", after("Nodes")));
    }
    if let Some(ranks) = after("num_ranks") {
        return Some(flows("a GOAL schedule", file, "goal", Some(ranks)));
    }
    if first.contains("size_bytes") && first.contains(',') {
        return Some(flows("a table of flows", file, "csv", None));
    }
    if SizeDistribution::parse(text, file).is_ok() {
        let workload =
            format!("[[workload]]\nkind = \"poisson\"\nsizes = \"{file}\"\nload = 0.5\nduration = \"1ms\"\n");
        return Some(Foreign { what: "a distribution of flow sizes", sections: leaf_spine(None) + &workload });
    }
    let second: Vec<&str> = lines().nth(1).unwrap_or_default().split_whitespace().collect();
    if first.parse::<u64>().is_ok() && second.len() == 5 && second[4].contains('.') {
        let ends = lines().skip(1).flat_map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
        let largest = ends.filter_map(|end| end.parse::<u64>().ok()).max();
        return Some(flows("a flow file of ConWeave", file, "conweave", largest.map(|host| host + 1)));
    }
    let what = match FileFormat::of(text)? {
        FileFormat::Conweave => "a topology of ConWeave",
        FileFormat::HtsimTopo => "a topology of htsim",
        FileFormat::Adjacency => "a graph as an adjacency list",
    };
    let sections = format!(
        "[topology]\nkind = \"file\"\npath = \"{file}\"\n\n[[workload]]\nkind = \"permutation\"\nsize = \"1MiB\"\n"
    );
    Some(Foreign { what, sections })
}

fn flows(what: &'static str, file: &str, format: &str, hosts: Option<u64>) -> Foreign {
    let workload = format!("[[workload]]\nkind = \"file\"\npath = \"{file}\"\nformat = \"{format}\"\n");
    Foreign { what, sections: leaf_spine(hosts) + &workload }
}

/// Describes a leaf-spine of this many hosts, as near to a square as they allow.
fn leaf_spine(hosts: Option<u64>) -> String {
    let hosts = hosts.filter(|hosts| (2..=1 << 20).contains(hosts)).unwrap_or(128);
    let per_leaf = (1..=hosts / 2).take_while(|n| n * n <= hosts).filter(|n| hosts.is_multiple_of(*n)).max();
    let per_leaf = per_leaf.unwrap_or(1);
    let leaves = hosts / per_leaf;
    format!(
        "[topology]               # {hosts} hosts\nkind = \"leaf-spine\"\nleaves = {leaves}\nhosts_per_leaf = \
         {per_leaf}\nspines = {}\n\n",
        per_leaf.max(2)
    )
}
