use super::WorkloadKind;
use crate::{
    FileFormat, Start, StartAt, StartUnit, WorkloadError,
    files::{Source, read, unit_of},
    traffic::Traffic,
    view::Context,
};
use anabranch_settings::{About, Auto, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "file",
    summary: "the flows of a file: CSV, ConWeave's, htsim's or GOAL",
    source: "specification 14.1, 14.3 and 14.5",
    description: "Reads flows, with their start times exactly. csv: columns src, dst, size_bytes, start_ps and, \
        optional, workload and class. conweave: ConWeave's flow file. htsim-cm: htsim's connection matrix with its \
        triggers. goal: a GOAL schedule, as text or binary: each send is a flow that starts when what it requires is \
        done; computations take their time on their processor; rank i is host i.",
};

parameters! {
    /// Flows from a file.
    pub struct FileParameters {
        /// The file; a relative path is relative to the scenario's folder.
        path: String = String::new(), source "no default: must be given";
        /// Format of the file; auto: by its extension, `.csv`, `.cm` or `.goal`.
        format: Auto<FileFormat> = Auto::Auto, source "ours";
        /// Unit of start times; auto: seconds in ConWeave's files, nanoseconds in GOAL schedules, picoseconds in the
        /// others.
        start_unit: Auto<StartUnit> = Auto::Auto, source "specification 14.1, 14.3, 14.5";
        /// Start of the flows: as in the file, or the first at this time; auto: ConWeave's at zero, others as in the
        /// file.
        start_at: StartAt = StartAt::Auto, source "ours";
    }
}

impl FileParameters {
    fn format(&self) -> Result<FileFormat, WorkloadError> {
        match self.format {
            Auto::Value(format) => Ok(format),
            Auto::Auto if self.path.ends_with(".csv") => Ok(FileFormat::Csv),
            Auto::Auto if self.path.ends_with(".cm") => Ok(FileFormat::HtsimCm),
            Auto::Auto if self.path.ends_with(".goal") => Ok(FileFormat::Goal),
            Auto::Auto => {
                let message = format!("`{}` ends neither in .csv nor in .cm nor in .goal: say which", self.path);
                let formats = "\"csv\", \"conweave\", \"htsim-cm\", \"goal\"";
                Err(WorkloadError::of_key("format", format!("{message} of {formats} it is")))
            }
        }
    }
}

impl WorkloadKind for FileParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(!self.path.is_empty(), "path", "nothing", "the path of a flow file")?;
        unit_of(self.format()?, self.start_unit).map(|_| ())
    }

    /// A GOAL schedule is the work of a job.
    fn is_job(&self) -> bool {
        self.format().is_ok_and(|format| format == FileFormat::Goal)
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let format = self.format()?;
        let unit = unit_of(format, self.start_unit)?;
        let content = (context.read_file)(&self.path)
            .map_err(|why| WorkloadError::of_key("path", format!("`{}` could not be read: {why}", self.path)))?;
        let view = context.view;
        // In the text formats a flow has a line of its own.
        let lines = content.iter().filter(|&&byte| byte == b'\n').count();
        context.check_memory(lines as u128, "path")?;
        let source = Source { path: &self.path, content: &content, hosts: view.hosts, classes: &view.classes, unit };
        let mut traffic = read(format, &source).map_err(|error| error.with_key("path"))?;
        let first = match (self.start_at, format) {
            (StartAt::First(time), _) => time,
            (StartAt::Auto, FileFormat::Conweave) => Time::ZERO,
            _ => return Ok(traffic),
        };
        shift(&mut traffic, first)?;
        Ok(traffic)
    }
}

fn shift(traffic: &mut Traffic, first: Time) -> Result<(), WorkloadError> {
    let starts = traffic.flows.iter_mut().filter_map(|flow| match &mut flow.start {
        Start::At(time) => Some(time),
        Start::On(_) => None,
    });
    let by_time = traffic.triggers.iter_mut().filter_map(|trigger| trigger.at.as_mut());
    let starts: Vec<&mut Time> = starts.chain(by_time).collect();
    let Some(earliest) = starts.iter().map(|time| **time).min() else { return Ok(()) };
    for time in starts {
        let moved = (*time - earliest).ps().checked_add(first.ps());
        *time = moved.map(Time::from_ps).ok_or_else(|| {
            WorkloadError::of_key("start_at", format!("found {first}, which moves the last flow past 213 days"))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{traffic, view};

    fn starts(p: &FileParameters, text: &str) -> Vec<u64> {
        let flows = traffic(p, &view(8, 4, 1), text).unwrap().flows;
        flows.iter().map(|f| if let Start::At(time) = f.start { time.ps() } else { 0 }).collect()
    }

    #[test]
    fn the_formats_and_their_times() {
        let of = |path: &str| FileParameters { path: path.into(), ..Default::default() };
        let csv = "src,dst,size_bytes,start_ps\n0,1,5,7\n1,2,5,3\n";
        assert_eq!(starts(&of("a.csv"), csv), [7, 3]);
        let from_1_us = StartAt::First(Time::from_us(1));
        assert_eq!(starts(&FileParameters { start_at: from_1_us, ..of("a.csv") }, csv), [1_000_004, 1_000_000]);
        let conweave = "2\n0 1 3 5 2.000005\n0 1 3 5 2.000006\n";
        let as_conweave = FileParameters { format: Auto::Value(FileFormat::Conweave), ..of("flow.txt") };
        // Truncated to nanoseconds: 2,000,004,999 and 2,000,005,999 ns (both doubles are slightly below).
        assert_eq!(starts(&as_conweave, conweave), [0, 1_000_000]);
        let kept = FileParameters { start_at: StartAt::File, ..as_conweave.clone() };
        assert_eq!(starts(&kept, conweave), [2_000_004_999_000, 2_000_005_999_000]);
        let in_us = FileParameters { start_unit: Auto::Value(StartUnit::Us), ..of("a.cm") };
        assert_eq!(starts(&in_us, "Nodes 8\nConnections 1\n0->1 start 2.5 size 5\n"), [2_500_000]);
    }

    #[test]
    fn errors_are_reported() {
        let base = || FileParameters { path: "a.csv".into(), ..Default::default() };
        for (p, key, part) in [
            (FileParameters::default(), "path", "path of a flow file"),
            (FileParameters { path: "a.txt".into(), ..base() }, "format", "say which"),
            (FileParameters { start_unit: Auto::Value(StartUnit::Us), ..base() }, "start_unit", "start_ps"),
            (FileParameters { start_at: StartAt::First(Time::MAX), ..base() }, "start_at", "213 days"),
        ] {
            let error = traffic(&p, &view(8, 4, 1), "src,dst,size_bytes,start_ps\n0,1,5,7\n0,1,5,9\n").unwrap_err();
            assert_eq!(error.key.as_deref(), Some(key), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
        let error = traffic(&base(), &view(8, 4, 1), "src,dst,size_bytes,start_ps\n0,8,5,7\n").unwrap_err();
        assert_eq!((error.key.as_deref(), error.place.as_deref()), (Some("path"), Some("a.csv:2")));
    }
}
