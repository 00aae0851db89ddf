//! Flow files: our CSV, ConWeave's text, htsim's connection matrix and GOAL schedules (specification 14.1, 14.3, 14.5).

mod conweave;
mod decimal;
mod goal;
mod goal_binary;
mod goal_job;
mod goal_ops;
mod goal_text;
mod htsim;
mod reach;
mod source;
mod table;

pub use source::StartUnit;

pub(crate) use source::Source;

use crate::{WorkloadError, traffic::Traffic};
use anabranch_settings::{Auto, InvalidValue, Raw, Setting, ValueSchema, choices};
use anabranch_units::Time;

choices! {
    /// Format of a flow file.
    pub enum FileFormat {
        /// Columns src, dst, size_bytes, start_ps and, optional, workload and class, with a header line.
        Csv = "csv",
        /// ConWeave's: a count, then lines of src, dst, priority group, size, start in seconds.
        Conweave = "conweave",
        /// htsim's connection matrix, with triggers and failures.
        HtsimCm = "htsim-cm",
        /// A GOAL schedule, as text or binary: sends, receives and computations with dependencies.
        Goal = "goal",
    }
}

/// Start time of a file's flows in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartAt {
    /// ConWeave's files conventionally start at 2 s: their first flow starts at zero. Others: as in the file.
    Auto,
    File,
    /// The first flow starts at this time, the others with the offsets of the file.
    First(Time),
}

impl Setting for StartAt {
    fn expected() -> String {
        "\"auto\", \"file\" or a time such as \"1us\" (ps, ns, us, ms, s)".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Words(vec!["auto", "file"]), Time::schema()])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(word) if word == "auto" => Ok(StartAt::Auto),
            Raw::Text(word) if word == "file" => Ok(StartAt::File),
            _ => match Time::read(raw) {
                Ok(time) => Ok(StartAt::First(time)),
                Err(wrong) => Err(InvalidValue { expected: Self::expected(), ..wrong }.near(["auto", "file"])),
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

pub(crate) fn read(format: FileFormat, source: &Source<'_>) -> Result<Traffic, WorkloadError> {
    match format {
        FileFormat::Csv => table::read(source),
        FileFormat::Conweave => conweave::read(source),
        FileFormat::HtsimCm => htsim::read(source),
        FileFormat::Goal => goal::read(source),
    }
}

#[cfg(test)]
pub(crate) mod testing {

    use super::*;

    /// For 16 hosts and the classes `data` and `bulk`.
    pub(crate) fn read_text(format: FileFormat, text: &str) -> Result<Traffic, WorkloadError> {
        read_bytes(format, text.as_bytes())
    }

    pub(crate) fn read_bytes(format: FileFormat, content: &[u8]) -> Result<Traffic, WorkloadError> {
        let classes = ["data".to_string(), "bulk".to_string()];
        let unit = unit_of(format, Auto::Auto).unwrap();
        read(format, &Source { path: "f", content, hosts: 16, classes: &classes, unit })
    }

    pub(crate) fn refused(format: FileFormat, cases: &[(&str, usize, &str)]) {
        for &(text, line, part) in cases {
            let error = read_text(format, text).expect_err(text);
            assert_eq!(error.place.as_deref(), Some(format!("f:{line}").as_str()), "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }

    pub(crate) fn refused_texts(format: FileFormat, section: &str) {
        for [text, line, part] in crate::kinds::testing::rows(section) {
            refused(format, &[(&text, line.parse().unwrap(), &part)]);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_reported_with_their_line() {
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
