//! The fabric as a reference: the same flows with faster links between switches.

use anabranch_backend::Setup;
use anabranch_topology::{Fault, FaultAction, LinkId};
use anabranch_units::Rate;

/// Factor of the rates between switches.
pub const REFERENCE_FACTOR: u64 = 16;

/// Returns `setup` with links between switches [`REFERENCE_FACTOR`] times as fast, those that faults slow included. Flows,
/// and so the offered load, are the same.
#[must_use]
pub fn reference_setup(setup: &Setup) -> Setup {
    let mut other = setup.clone();
    let hosts = setup.topology.hosts;
    let is_inner = |link: LinkId| {
        let link = setup.topology.link(link);
        link.from.0 >= hosts && link.to.0 >= hosts
    };
    let faster = |rate: Rate| Rate(rate.0.saturating_mul(REFERENCE_FACTOR));
    let links: Vec<LinkId> = setup.topology.link_ids().filter(|link| is_inner(*link)).collect();
    // A topology computes its tables on first use: a fresh one has none of the slower links.
    let mut graph = (*setup.topology).clone();
    links.iter().for_each(|link| {
        let rate = &mut graph.links[link.0 as usize].rate;
        *rate = faster(*rate);
    });
    other.topology = graph.into();
    other.faults = setup.faults.iter().flat_map(|fault| split(fault, &is_inner, &faster)).collect();
    other
}

fn split(fault: &Fault, is_inner: &dyn Fn(LinkId) -> bool, faster: &dyn Fn(Rate) -> Rate) -> Vec<Fault> {
    let FaultAction::Degrade(rate) = fault.action else { return vec![fault.clone()] };
    let (inner, outer): (Vec<LinkId>, Vec<LinkId>) = fault.links.iter().partition(|link| is_inner(**link));
    let of = |links: Vec<LinkId>, rate| Fault { links, action: FaultAction::Degrade(rate), ..fault.clone() };
    [of(inner, faster(rate)), of(outer, rate)].into_iter().filter(|fault| !fault.links.is_empty()).collect()
}
