//! `[[topology.link]]`: other rates and delays for single links or for a class of links.

use crate::{
    LinkId, TopologyError,
    graph::Graph,
    kinds::{moving, short},
};
use anabranch_settings::{nearest, parameters};
use anabranch_units::{Rate, Time};

parameters! {
    /// Other rates and delays for single links or for a class of links. Name one link or one class.
    pub struct LinkOverride {
        /// A cable (leaf0-spine3) or one direction of it (leaf0->spine3).
        link: Option<String> = None, source "ours";
        /// A class: host, tier0-1, tier1-2, local, global.
        class: Option<String> = None, source "ours";
        /// The rate; "": as it is.
        rate: Option<Rate> = None, source "ours";
        /// The delay; "": as it is.
        delay: Option<Time> = None, source "ours";
    }
}

pub(crate) fn apply(graph: &mut Graph, change: &LinkOverride) -> Result<usize, TopologyError> {
    let links: Vec<LinkId> = match (&change.link, &change.class) {
        (Some(name), None) => graph.link_named(name).map_err(|e| TopologyError::at("link", e.message))?,
        (None, Some(class)) => links_of_class(graph, class)?,
        (Some(_), Some(_)) => return Err(TopologyError::at("link", "give `link` or `class`, not both")),
        (None, None) => return Err(TopologyError::new("a link override needs `link` or `class`")),
    };
    if change.rate.is_none() && change.delay.is_none() {
        return Err(TopologyError::new("a link override needs `rate` or `delay`"));
    }
    let rate = change.rate.map(|rate| moving("rate", rate)).transpose()?;
    let delay = change.delay.map(|delay| short("delay", delay)).transpose()?;
    for link in &links {
        let link = &mut graph.links[link.0 as usize];
        link.rate = rate.unwrap_or(link.rate);
        link.delay = delay.unwrap_or(link.delay);
    }
    Ok(links.len())
}

fn links_of_class(graph: &Graph, class: &str) -> Result<Vec<LinkId>, TopologyError> {
    let links: Vec<LinkId> = graph.link_ids().filter(|l| graph.link(*l).class.name() == class).collect();
    if !links.is_empty() {
        return Ok(links);
    }
    let classes = graph.classes();
    let hint = nearest(class, classes.iter().map(String::as_str)).map(|n| format!(" (did you mean `{n}`?)"));
    let message =
        format!("this topology has no link class `{class}`; it has {}{}", classes.join(", "), hint.unwrap_or_default());
    Err(TopologyError::at("class", message))
}
