//! Flow files: our CSV, ConWeave's text, htsim's connection matrix and GOAL schedules (specification 14.1, 14.3, 14.5).

mod conweave;
mod decimal;
mod goal;
mod goal_binary;
mod goal_ops;
mod goal_text;
mod htsim;
mod reach;
mod table;

use crate::{WorkloadError, view::Traffic};
use anabranch_settings::{Auto, Raw, Setting, Shape, Wrong, choices};
use anabranch_units::Time;

choices! {
    /// What a flow file looks like.
    pub enum FileFormat {
        /// Columns src, dst, size_bytes, start_ps and, optional, workload and class, with a header line.
        Csv = "csv",
        /// ConWeave's: a count, then lines of src, dst, priority group, size, start in seconds.
        Conweave = "conweave",
        /// htsim's connection matrix, with triggers and failures.
        HtsimCm = "htsim-cm",
        /// A GOAL schedule, as text or binary: sends, receives and computations that wait for each other.
        Goal = "goal",
    }
}

choices! {
    /// The unit of a file's start times.
    pub enum StartUnit {
        /// Picoseconds.
        Ps = "ps",
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
        /// Milliseconds.
        Ms = "ms",
        /// Seconds.
        S = "s",
    }
}

impl StartUnit {
    /// Picoseconds in the unit.
    fn ps(self) -> u64 {
        match self {
            StartUnit::Ps => 1,
            StartUnit::Ns => 1_000,
            StartUnit::Us => 1_000_000,
            StartUnit::Ms => 1_000_000_000,
            StartUnit::S => 1_000_000_000_000,
        }
    }
}

/// When the flows of a file start in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartAt {
    /// ConWeave's files start at 2 s by custom: their first flow starts at zero. Others: as in the file.
    Auto,
    /// As in the file.
    File,
    /// The first flow starts at this time, the others as long after it as in the file.
    First(Time),
}

impl Setting for StartAt {
    fn expected() -> String {
        "\"auto\", \"file\" or a time such as \"1us\" (ps, ns, us, ms, s)".into()
    }
    fn shape() -> Shape {
        Shape::Either(vec![Shape::Words(vec!["auto", "file"]), Time::shape()])
    }
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        match raw {
            Raw::Text(word) if word == "auto" => Ok(StartAt::Auto),
            Raw::Text(word) if word == "file" => Ok(StartAt::File),
            _ => match Time::read(raw) {
                Ok(time) => Ok(StartAt::First(time)),
                Err(wrong) => Err(Wrong { expected: Self::expected(), ..wrong }.near(["auto", "file"])),
            },
        }
    }
    fn write(&self) -> Raw {
        match self {
            StartAt::Auto => Raw::Text("auto".into()),
            StartAt::File => Raw::Text("file".into()),
            StartAt::First(time) => time.write(),
        }
    }
}

/// The tier of a switch in a failure line of a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedSwitch {
    /// `TOR`: a leaf.
    Tor,
    /// `AGG`: an aggregation switch.
    Agg,
    /// `CORE`: a core switch.
    Core,
}

/// A failed link that a flow file names (a `failure` line of htsim's connection matrix).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFailure {
    /// The tier of the switch.
    pub switch_type: FailedSwitch,
    /// The switch's number within its tier.
    pub switch_id: u32,
    /// The number of its uplink.
    pub link_id: u32,
    /// File and line.
    pub place: String,
}

/// A file to read, and what its fields may refer to.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) content: &'a [u8],
    pub(crate) hosts: u32,
    /// The fabric's data classes.
    pub(crate) classes: &'a [String],
    /// The unit of start times.
    pub(crate) unit: StartUnit,
}

/// The unit that start times have in files of `format`; a CSV's header names it.
pub(crate) fn unit_of(format: FileFormat, unit: Auto<StartUnit>) -> Result<StartUnit, WorkloadError> {
    match (format, unit) {
        (FileFormat::Csv, Auto::Value(unit)) if unit != StartUnit::Ps => {
            let message = "found another unit, expected \"auto\" or \"ps\": the column of a CSV is called `start_ps`";
            Err(WorkloadError::of_key("start_unit", message))
        }
        (FileFormat::Goal, Auto::Value(unit)) if unit != StartUnit::Ns => {
            let message = "found another unit, expected \"auto\" or \"ns\": a GOAL schedule counts in nanoseconds";
            Err(WorkloadError::of_key("start_unit", message))
        }
        (_, Auto::Value(unit)) => Ok(unit),
        (FileFormat::Goal, Auto::Auto) => Ok(StartUnit::Ns),
        (FileFormat::Conweave, Auto::Auto) => Ok(StartUnit::S),
        (FileFormat::Csv | FileFormat::HtsimCm, Auto::Auto) => Ok(StartUnit::Ps),
    }
}

/// Reads a file.
pub(crate) fn read(format: FileFormat, source: &Source<'_>) -> Result<Traffic, WorkloadError> {
    match format {
        FileFormat::Csv => table::read(source),
        FileFormat::Conweave => conweave::read(source),
        FileFormat::HtsimCm => htsim::read(source),
        FileFormat::Goal => goal::read(source),
    }
}

impl Source<'_> {
    fn wrong(&self, line: usize, message: impl Into<String>) -> WorkloadError {
        WorkloadError::in_line(self.path, line, message)
    }

    /// The content as text.
    fn text(&self) -> Result<&str, WorkloadError> {
        std::str::from_utf8(self.content).map_err(|why| {
            let line = self.content[..why.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
            self.wrong(line, "found bytes that are not text (UTF-8)")
        })
    }

    /// A host's number.
    fn host(&self, line: usize, what: &str, text: &str) -> Result<u32, WorkloadError> {
        match text.parse::<u32>() {
            Ok(host) if host < self.hosts => Ok(host),
            Ok(host) => {
                let message = format!("{what}: host {host} does not exist; hosts are 0 to {}", self.hosts.max(1) - 1);
                Err(self.wrong(line, message))
            }
            Err(_) => Err(self.wrong(line, format!("{what}: found `{text}`, expected a host's number"))),
        }
    }

    /// Refuses a flow from a host to itself.
    fn pair(&self, line: usize, src: u32, dst: u32) -> Result<(), WorkloadError> {
        if src == dst { Err(self.wrong(line, format!("host {src} sends to itself"))) } else { Ok(()) }
    }

    /// A size in bytes.
    fn size(&self, line: usize, text: &str) -> Result<u64, WorkloadError> {
        match text.parse::<u64>() {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(self.wrong(line, format!("size: found `{text}`, expected a whole number of bytes, 1 or more"))),
        }
    }

    /// A start time, exactly.
    fn start(&self, line: usize, text: &str) -> Result<Time, WorkloadError> {
        decimal::read(text, self.unit.ps())
            .map(Time::from_ps)
            .map_err(|why| self.wrong(line, format!("start: found `{text}`, expected {why}")))
    }

    /// A whole number.
    fn whole(&self, line: usize, what: &str, text: &str) -> Result<u32, WorkloadError> {
        text.parse().map_err(|_| self.wrong(line, format!("{what}: found `{text}`, expected a whole number")))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Reading text in tests.

    use super::*;

    /// Reads `text` as `f`, for 16 hosts and the classes `data` and `bulk`.
    pub(crate) fn read_text(format: FileFormat, text: &str) -> Result<Traffic, WorkloadError> {
        read_bytes(format, text.as_bytes())
    }

    /// Reads `content` likewise.
    pub(crate) fn read_bytes(format: FileFormat, content: &[u8]) -> Result<Traffic, WorkloadError> {
        let classes = ["data".to_string(), "bulk".to_string()];
        let unit = unit_of(format, Auto::Auto).unwrap();
        read(format, &Source { path: "f", content, hosts: 16, classes: &classes, unit })
    }

    /// That each text is refused, with line and part of the message.
    pub(crate) fn refused(format: FileFormat, cases: &[(&str, usize, &str)]) {
        for &(text, line, part) in cases {
            let error = read_text(format, text).expect_err(text);
            assert_eq!(error.place.as_deref(), Some(format!("f:{line}").as_str()), "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_with_their_line() {
        for format in [FileFormat::Csv, FileFormat::Conweave, FileFormat::HtsimCm, FileFormat::Goal] {
            let error = read_bytes(format, b"# one\n# two\xff\n").unwrap_err();
            assert!(error.place.as_deref() == Some("f:2") && error.message.contains("UTF-8"), "{error}");
        }
    }

    #[test]
    fn start_at_is_a_word_or_a_time() {
        for (text, expected) in
            [("auto", StartAt::Auto), ("file", StartAt::File), ("2us", StartAt::First(Time::from_us(2)))]
        {
            let raw = Raw::Text(text.into());
            assert_eq!(StartAt::read(&raw), Ok(expected));
            assert_eq!(expected.write(), raw);
        }
        assert!(StartAt::read(&Raw::Text("fiel".into())).unwrap_err().to_string().contains("did you mean `file`"));
    }
}
