use crate::CommonParameters;
use anabranch_input::wrong_name;
use std::collections::{BTreeMap, HashSet};

const ALL: &str = "all";

pub(crate) fn wrong_workload_name(name: &str) -> Option<String> {
    let is_taken = name == ALL;
    let taken = || format!("found `{ALL}`, by which results mean all workloads together; expected another name");
    is_taken.then(taken).or_else(|| wrong_name(name))
}

/// Returns the name of each workload: its own, or its kind, with `-2`, `-3`, ... if that is taken.
pub fn names(list: &[(&str, &CommonParameters)]) -> Vec<String> {
    let taken: HashSet<&str> = list.iter().filter_map(|(_, common)| common.name.as_deref()).collect();
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    let mut free = |kind| {
        let number = next.entry(kind).or_insert(1);
        loop {
            let name = if *number == 1 { kind.to_string() } else { format!("{kind}-{number}") };
            *number += 1;
            if !taken.contains(name.as_str()) {
                return name;
            }
        }
    };
    list.iter().map(|(kind, common)| common.name.clone().unwrap_or_else(|| free(*kind))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_names_are_generated() {
        let (none, own) = (
            CommonParameters::default(),
            CommonParameters { name: Some("permutation-2".into()), ..Default::default() },
        );
        let list = [("permutation", &none), ("incast", &none), ("permutation", &none), ("permutation", &own)];
        assert_eq!(names(&list), ["permutation", "incast", "permutation-3", "permutation-2"]);
    }
}
