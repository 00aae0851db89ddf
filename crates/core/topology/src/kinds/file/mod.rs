mod adjacency;
mod conweave;
mod htsim_groups;
mod htsim_topo;
mod text;

use super::kind::{Kind, Scale, moving, short};
use crate::{TopologyError, graph::Graph};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "file",
    summary: "a graph from a file: ConWeave's text, htsim's .topo, an adjacency list",
    source: "specification 14.2, 14.3",
    description: "",
};

choices! {
    /// The format of a topology file.
    pub enum FileFormat {
        /// ConWeave's text: counts, switch ids, a line per cable with rate and delay.
        Conweave = "conweave",
        /// htsim's description of a fat tree, tier by tier, or of a Dragonfly or a Slim Fly.
        HtsimTopo = "htsim-topo",
        /// A line per switch: the switch, then neighbours; each link once, in the list of one of its two nodes, in any order.
        Adjacency = "adjacency",
    }
}

impl FileFormat {
    /// Returns the format of a text: keys with values are htsim's, whole numbers alone an adjacency list, counts before
    /// cables with units ConWeave's.
    pub fn of(text: &str) -> Option<Self> {
        let mut lines = text::lines(text).map(|(_, line)| line.split_whitespace().collect::<Vec<_>>());
        let numbers = |line: &[&str]| line.iter().all(|word| word.parse::<u64>().is_ok());
        let first = lines.next()?;
        let numbers_alone = numbers(&first) && lines.all(|line| numbers(&line));
        match first[..] {
            [key, value] if key.starts_with(|c: char| c.is_ascii_alphabetic()) && value.parse::<f64>().is_ok() => {
                Some(FileFormat::HtsimTopo)
            }
            _ if numbers_alone => Some(FileFormat::Adjacency),
            [_, _, _] if numbers(&first) => Some(FileFormat::Conweave),
            _ => None,
        }
    }
}

parameters! {
    /// A topology from a file. `conweave` and `htsim-topo` contain everything; `adjacency` takes hosts, rates and delays
    /// from the keys here.
    pub struct FileParameters {
        /// The file; a relative path is relative to the scenario's folder.
        path: String = String::new(), source "specification 14.2, 14.3";
        /// Its format; auto: an adjacency list where the name ends in `.adjlist`, else by its content.
        format: Auto<FileFormat> = Auto::Auto, source "specification 14.2, 14.3", Expert;
        /// Hosts at every switch, for `adjacency`.
        hosts_per_switch: u64 = 1, source "ours", Expert;
        /// Paths by two free hops and a table, which Spritz and `prime-guided` need, for `adjacency`: no two switches are more
        /// than three links apart.
        guided: bool = false, source "Spritz §VI; the default path is ours: a shortest one", Expert;
        /// Rate of every link, for `adjacency`.
        link_rate: Rate = Rate::gbps(400), source "ours";
        /// Delay of every link, for `adjacency`.
        link_delay: Time = Time::from_us(1), source "ours";
        /// Time a packet spends in a switch; `htsim-topo` files contain it themselves.
        switch_latency: Time = Time::ZERO, source "ours", Expert;
    }
}

impl Kind for FileParameters {
    fn scale(&self) -> Option<Scale> {
        None
    }

    fn build(&self, read: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        if self.path.is_empty() {
            return Err(TopologyError::at("path", "kind = \"file\" needs `path`"));
        }
        let text = read(&self.path)
            .map_err(|error| TopologyError::at("path", format!("cannot read `{}`: {error}", self.path)))?;
        let latency = short("switch_latency", self.switch_latency)?;
        let format = match self.format {
            Auto::Value(format) => format,
            // A wrong word in a list is an error of its line.
            Auto::Auto if self.path.ends_with(".adjlist") => FileFormat::Adjacency,
            Auto::Auto => FileFormat::of(&text).ok_or_else(|| {
                let formats = "\"conweave\", \"htsim-topo\", \"adjacency\"";
                TopologyError::at("format", format!("`{}` looks like none of {formats}: say which it is", self.path))
            })?,
        };
        if self.guided && format != FileFormat::Adjacency {
            return Err(TopologyError::at(
                "guided",
                "`guided` is for adjacency lists; other formats have paths of their own",
            ));
        }
        let built = match format {
            FileFormat::Conweave => conweave::parse(&text, latency),
            FileFormat::HtsimTopo if htsim_groups::is_one(&text) => htsim_groups::parse(&text),
            FileFormat::HtsimTopo => htsim_topo::parse(&text),
            FileFormat::Adjacency => adjacency::parse(
                &text,
                &adjacency::Rest {
                    hosts_per_switch: self.hosts_per_switch,
                    guided: self.guided,
                    link: (moving("link_rate", self.link_rate)?, short("link_delay", self.link_delay)?),
                    latency,
                },
            ),
        };
        built.map_err(|error| TopologyError::at("path", format!("{}: {}", self.path, error.message)))
    }
}
