//! `run --pcap LINK=FILE`: packets that leave over a link, as a capture file for external tools.

use crate::{RunError, input_error};
use anabranch_backend::Setup;
use anabranch_capture::{Encapsulation, Wire, Written};
use anabranch_outcome::RunResult;
use anabranch_results::{Inputs, NewFile, OutputDir, OutputFile, PendingFile, ReportError};
use anabranch_scenario::ScenarioError;
use anabranch_topology::LinkId;
use std::{
    io,
    io::BufWriter,
    path::{Path, PathBuf},
};

/// Maximum number of packets of one link that are kept in memory until the run is over, 64 B each.
pub const MAX_PACKETS: u64 = 4_000_000;

/// Captures requested for a run.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    list: Vec<RequestedCapture>,
}

#[derive(Clone, Debug)]
struct RequestedCapture {
    link: String,
    file: PathBuf,
    output: OutputFile,
}

#[derive(Clone, Debug)]
pub struct Captured {
    pub link: String,
    pub file: PathBuf,
    /// Counts of its frames.
    pub written: Written,
}

impl Captures {
    /// Reads `LINK=FILE` texts. Existing files are replaced only with `replace`; `inputs` and the results in `directory` never.
    ///
    /// Fails where a text has another form, two name one file, or a file cannot be made there.
    pub fn read(
        texts: &[String],
        replace: bool,
        inputs: &Inputs,
        directory: &OutputDir,
    ) -> Result<Self, ScenarioError> {
        let mut list: Vec<RequestedCapture> = Vec::new();
        for text in texts {
            let wrong = |message: String| ScenarioError::new(format!("`--pcap {text}`: {message}"));
            let parts = text.split_once('=').filter(|(link, file)| !link.trim().is_empty() && !file.is_empty());
            let Some((link, file)) = parts else {
                return Err(wrong("expected LINK=FILE".into())
                    .help("in quotes, since > means something to a shell: --pcap 'leaf0->spine0=up.pcapng'"));
            };
            let file = PathBuf::from(file);
            let path = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
            if list.iter().any(|other| std::path::absolute(&other.file).is_ok_and(|other| other == path)) {
                return Err(wrong(format!("{} is given twice", file.display())).help("give each link a separate file"));
            }
            let output = OutputFile::new(&file, replace, inputs).map_err(|error| {
                let error = input_error(error);
                wrong(error.to_string()).help(error.remedy().unwrap_or("give another file").to_string())
            })?;
            if directory.is_result(&file) {
                return Err(wrong(format!("{} is a file of the results in --out", file.display()))
                    .help("give the capture another name, or a separate folder"));
            }
            list.push(RequestedCapture { link: link.trim().into(), file, output });
        }
        Ok(Captures { list })
    }

    /// Makes the run keep the packets of the links.
    /// Fails where a name is unknown, or covers both directions of a cable.
    pub(crate) fn ask(&self, setup: &mut Setup) -> Result<(), ScenarioError> {
        setup.measure.capture_limit = MAX_PACKETS;
        for asked in &self.list {
            let link = asked.resolve(setup)?;
            setup.measure.capture_links.push(link);
        }
        Ok(())
    }

    /// Writes the files under temporary names.
    pub(crate) fn write(&self, setup: &Setup, result: &RunResult) -> Result<Files, RunError> {
        let mut files = Files(Vec::new());
        for asked in &self.list {
            let link = asked.resolve(setup)?;
            let (pending, written) = asked
                .output
                .write(|to| asked.write(link, to, setup, result))
                .map_err(|error| failed(&asked.file, &error))?;
            let name = setup.topology.link_name(link);
            files.0.push((pending, Captured { link: name, file: asked.file.clone(), written }));
        }
        Ok(files)
    }
}

/// Files under temporary names, each with its description, removed on drop without [`Files::publish`].
pub(crate) struct Files(Vec<(PendingFile, Captured)>);

impl Files {
    /// Renames them to their final names.
    pub(crate) fn publish(self) -> Result<Vec<Captured>, RunError> {
        let publish = |(pending, captured): (PendingFile, Captured)| {
            pending.publish().map_err(|error| failed(&captured.file, &error))?;
            Ok(captured)
        };
        self.0.into_iter().map(publish).collect()
    }
}

fn failed(file: &Path, error: &ReportError) -> ScenarioError {
    ScenarioError::new(format!("--pcap: {} cannot be written: {error}", file.display()))
}

impl RequestedCapture {
    fn resolve(&self, setup: &Setup) -> Result<LinkId, ScenarioError> {
        let RequestedCapture { link, .. } = self;
        let found = setup.topology.link_named(link);
        let found = found.map_err(|error| ScenarioError::new(format!("`--pcap {link}=...`: {error}")))?;
        match found[..] {
            [one] => Ok(one),
            _ => {
                let names: Vec<String> = found.iter().map(|link| setup.topology.link_name(*link)).collect();
                let message = format!("`--pcap {link}=...`: {link} has two directions, and a capture has one");
                Err(ScenarioError::new(message).help(format!("name one: {}", names.join(" or "))))
            }
        }
    }

    fn write(&self, link: LinkId, to: &mut NewFile, setup: &Setup, result: &RunResult) -> io::Result<Written> {
        let ends = setup.topology.link(link);
        let mtu = setup.transport.mtu().max(1);
        let captured = result.watched.captures.iter().find(|capture| capture.link == link.0);
        let nothing = anabranch_outcome::Capture::default();
        let known = |flow: &u32| (*flow as usize) < setup.flows.number_of_flows();
        let size = |flow: u32| Some(flow).filter(known).map_or(0, |flow| setup.flows.flow(flow).size);
        let wire = Wire {
            encapsulation: if setup.transport.has_roce_headers() { Encapsulation::Roce } else { Encapsulation::Ours },
            link: &setup.topology.link_name(link),
            from: ends.from.0,
            to: ends.to.0,
            rate_bps: ends.rate.0,
            ecn: setup.fabric.ecn,
            pause: match setup.fabric.pfc_pause {
                anabranch_settings::Never::Value(time) => Some(time),
                anabranch_settings::Never::Never => None,
            },
            packets: &|flow| size(flow).div_ceil(mtu),
            bytes: &size,
        };
        anabranch_capture::write(captured.unwrap_or(&nothing), &wire, BufWriter::new(to))
    }
}
