//! `[wire]`: settings of real networks.

use crate::{ScenarioError, Section, Tree};
use anabranch_settings::SetError;
use anabranch_transport::TransportParameters;
use anabranch_wire::WireParameters;

/// Packets must fit into those of the wire where the section is given; a simulated scenario may have any size.
pub(crate) fn read(
    section: Option<Section<'_>>,
    transport: &TransportParameters,
    tree: &Tree,
) -> Result<WireParameters, ScenarioError> {
    let mut wire = WireParameters::default();
    let Some(section) = section else { return Ok(wire) };
    section.fill(&mut wire, &[])?;
    wire.check().and_then(|()| wire.payload_of(transport).map(|_| ())).map_err(|error| wrong(&error, tree))?;
    Ok(wire)
}

pub(crate) fn wrong(error: &SetError, tree: &Tree) -> ScenarioError {
    let (SetError::UnknownKey { key, .. } | SetError::InvalidValue { key, .. }) = error;
    let own = tree.find(&format!("wire.{key}")).map(|node| node.place.clone());
    let section = || tree.find("wire").map(|node| node.key.clone());
    ScenarioError::new(format!("[wire]: {error}")).maybe_at(own.or_else(section))
}
