//! A topology from a file.

use super::{Scale, moving, short};
use crate::{Topology, TopologyError, files};
use anabranch_settings::{choices, parameters};
use anabranch_units::{Rate, Time};

choices! {
    /// The format of a topology file.
    pub enum FileFormat {
        /// ConWeave's text: counts, switch ids, a line per cable with rate and delay.
        Conweave = "conweave",
        /// htsim's description of a fat tree, tier by tier, or of a Dragonfly or a Slim Fly.
        HtsimTopo = "htsim-topo",
        /// A line per switch: the switch, then its neighbours with larger numbers.
        Adjacency = "adjacency",
    }
}

parameters! {
    /// A topology from a file. `conweave` and `htsim-topo` say everything; `adjacency` takes hosts, rates and delays
    /// from the keys here.
    pub struct FileParameters {
        /// The file; a relative path is relative to the scenario's folder.
        path: String = String::new(), source "specification 14.2, 14.3";
        /// Its format.
        format: FileFormat = FileFormat::Conweave, source "specification 14.2, 14.3";
        /// Hosts at every switch, for `adjacency`.
        hosts_per_switch: u64 = 1, source "ours";
        /// Rate of every link, for `adjacency`.
        link_rate: Rate = Rate::gbps(400), source "ours";
        /// Delay of every link, for `adjacency`.
        link_delay: Time = Time::from_us(1), source "ours";
        /// Time a packet spends in a switch; `htsim-topo` files say it themselves.
        switch_latency: Time = Time::ZERO, source "ours";
    }
}

impl FileParameters {
    pub(super) fn scale(&self) -> Option<Scale> {
        None
    }

    pub(super) fn build(&self, read: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Topology, TopologyError> {
        if self.path.is_empty() {
            return Err(TopologyError::at("path", "kind = \"file\" needs `path`"));
        }
        let text = read(&self.path)
            .map_err(|error| TopologyError::at("path", format!("cannot read `{}`: {error}", self.path)))?;
        let latency = short("switch_latency", self.switch_latency)?;
        let built = match self.format {
            FileFormat::Conweave => files::conweave::parse(&text, latency),
            FileFormat::HtsimTopo if files::htsim_groups::is_one(&text) => files::htsim_groups::parse(&text),
            FileFormat::HtsimTopo => files::htsim_topo::parse(&text),
            FileFormat::Adjacency => files::adjacency::parse(
                &text,
                &files::adjacency::Rest {
                    hosts_per_switch: self.hosts_per_switch,
                    rate: moving("link_rate", self.link_rate)?,
                    delay: short("link_delay", self.link_delay)?,
                    latency,
                },
            ),
        };
        built.map_err(|error| TopologyError::at("path", format!("{}: {}", self.path, error.message)))
    }
}
