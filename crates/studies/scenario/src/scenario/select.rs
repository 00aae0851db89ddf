//! Links named in `[measure]`.

use crate::{Mistakes, ScenarioError, Tree};
use anabranch_topology::{LinkId, Topology};

/// Resolves a list of links in `[measure]`: names, patterns, classes. Ascending, each once.
pub(crate) fn links(
    key: &str,
    names: &[String],
    topology: &Topology,
    tree: &Tree,
) -> Result<Vec<LinkId>, ScenarioError> {
    let (mut links, mut mistakes) = (Vec::new(), Mistakes::default());
    for (number, name) in names.iter().enumerate() {
        let found = topology.links_like(name).map_err(|error| {
            let place = tree.place(&format!("measure.{key}[{number}]"));
            ScenarioError::new(format!("[measure]: `{key}`: {error}")).maybe_at(place)
        });
        links.extend(mistakes.ok(found).unwrap_or_default());
    }
    links.sort_unstable();
    links.dedup();
    mistakes.or(links)
}
