//! `[wire]`: settings of real networks.

use crate::{error::ScenarioError, section::Section, tree::Tree};
use anabranch_settings::{Raw, SetError};
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

/// Returns a warning if the datapath has its old name.
pub(crate) fn warning(tree: &Tree) -> Option<String> {
    let node = tree.find("wire.datapath")?;
    let warning =
        "[wire]: datapath: \"verbs\" is now \"rc\" (reliable queue pairs); the next version refuses the old name";
    (node.raw() == Some(Raw::Text("verbs".into()))).then(|| warning.into())
}

pub(crate) fn wrong(error: &SetError, tree: &Tree) -> ScenarioError {
    let (SetError::UnknownKey { key, .. } | SetError::InvalidValue { key, .. }) = error;
    let own = tree.find(&format!("wire.{key}")).map(|node| node.place.clone());
    let section = || tree.find("wire").map(|node| node.key.clone());
    ScenarioError::new(format!("[wire]: {error}")).maybe_at(own.or_else(section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Setting;
    use anabranch_wire::DatapathKind;

    #[test]
    fn verbs_is_an_alias_of_rc_with_a_warning() {
        let of = |word: &str| {
            let tree = Tree::parse("test", &format!("[wire]\ndatapath = \"{word}\"\n")).unwrap();
            let section = Section::of(tree.root(), "test").unwrap().table("wire").unwrap();
            let read = read(section, &TransportParameters::named("uet").unwrap(), &tree).unwrap();
            (read.datapath, warning(&tree))
        };
        let (kind, warning) = of("verbs");
        assert_eq!((kind, kind.write()), (DatapathKind::Rc, Raw::Text("rc".into())));
        assert!(warning.unwrap().contains("\"verbs\" is now \"rc\""));
        assert_eq!([of("rc"), of("udp")], [(DatapathKind::Rc, None), (DatapathKind::Udp, None)]);
    }
}
