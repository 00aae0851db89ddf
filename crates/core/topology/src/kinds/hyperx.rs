//! HyperX of two dimensions: switches in a grid, each linked to all others of its row and of its column.

use super::{
    grouped::{self, Cabling, MAX_SWITCHES},
    kind::{Kind, Scale, counts, few_cables, not_too_many},
};
use crate::{Guidance, TopologyError, graph::Graph};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "hyperx",
    summary: "HyperX of two dimensions, every switch linked to all of its row and its column",
    source: "Ahn et al., HyperX, SC 2009",
    description: "Any two switches are at most two links apart. Guided paths have two free hops, as on a Slim Fly.",
};

parameters! {
    /// A HyperX of two dimensions.
    pub struct HyperxParameters {
        /// Rows, the groups.
        rows: u64 = 8, source "ours";
        /// Switches of a row.
        columns: u64 = 8, source "ours";
        /// Hosts at every switch.
        p: u64 = 8, source "ours: half of the links to each dimension";
        /// Rate of the links that have none of their own.
        link_rate: Rate = Rate::gbps(400), source "Spritz §V-A";
        /// Rate of host links.
        host_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Rate of links within a row.
        local_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Rate of links within a column.
        global_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Delay of host links.
        host_link_delay: Time = Time::from_ns(25), source "as on a Dragonfly", Expert;
        /// Delay of links within a row.
        local_link_delay: Time = Time::from_ns(25), source "as on a Dragonfly", Expert;
        /// Delay of links within a column.
        global_link_delay: Time = Time::from_ns(500), source "as on a Dragonfly", Expert;
        /// Time a packet spends in a switch before it reaches its output port.
        switch_latency: Time = Time::from_ns(500), source "as on a Dragonfly", Expert;
    }
}

struct Shape {
    rows: u32,
    columns: u32,
    p: u32,
    scale: Scale,
}

impl HyperxParameters {
    fn shape(&self) -> Result<Shape, TopologyError> {
        let (rows, columns) = (self.rows, self.columns);
        counts(&[("rows", rows), ("columns", columns), ("p", self.p)])?;
        let switches = rows * columns;
        if switches > MAX_SWITCHES {
            let message = format!("`rows` makes {switches} switches; at most {MAX_SWITCHES} are allowed");
            return Err(TopologyError::at("rows", message));
        }
        let hosts = u64::from(not_too_many("p", switches * self.p)?);
        let cables = switches * (rows + columns - 2) / 2;
        few_cables("rows", cables)?;
        let guide_bytes = Guidance::SlimFly.table_bytes(switches, rows);
        let scale = Scale { hosts, switches, leaves: switches, cables: hosts + cables, guide_bytes };
        let [rows, columns, p] = [rows, columns, self.p].map(|count| count as u32);
        Ok(Shape { rows, columns, p, scale })
    }
}

impl Kind for HyperxParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.shape().ok()?.scale)
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let Shape { rows, columns, p, .. } = self.shape()?;
        let cabling = Cabling::checked(
            self.link_rate,
            [self.host_link_rate, self.local_link_rate, self.global_link_rate],
            [self.host_link_delay, self.local_link_delay, self.global_link_delay],
            self.switch_latency,
        )?;
        let switches = rows * columns;
        let of_row = move |s: u32| (s + 1..s - s % columns + columns).map(move |other| (s, other));
        let of_column = move |s: u32| (s + columns..switches).step_by(columns as usize).map(move |other| (s, other));
        let edges = (0..switches).flat_map(|s| of_row(s).chain(of_column(s))).collect();
        grouped::build(rows, columns, p, edges, &cabling, Guidance::SlimFly)
    }
}
