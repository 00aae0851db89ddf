use super::{
    WorkloadKind,
    host_set::HostSet,
    placement::{Groups, Placement},
    ranks::Ranks,
};
use crate::{
    FileFormat, Flow, Start, StartAt, StartUnit, Trigger, TriggerId, WorkloadError,
    files::{Source, read, unit_of},
    jobs::job::GroupedJob,
    traffic::Traffic,
    view::Context,
};
use anabranch_settings::{About, Auto, Setting, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "file",
    summary: "the flows of a file: CSV, ConWeave's, htsim's or GOAL",
    source: "specification 14.1, 14.3 and 14.5",
    description: "Reads flows, with their start times exactly. csv: columns src, dst, size_bytes, start_ps and, \
        optional, workload and class. conweave: ConWeave's flow file. htsim-cm: htsim's connection matrix with its \
        triggers. goal: a GOAL schedule, as text or binary: each send is a flow that starts when what it requires is \
        done; computations take their time on their processor; `hosts` and `placement` map ranks to hosts, by default \
        rank i to host i; `groups` groups of ranks run the schedule at the same time.",
};

parameters! {
    /// Flows from a file.
    pub struct FileParameters {
        /// The file; a relative path is relative to the scenario's folder.
        path: String = String::new(), source "no default: must be given";
        /// Format of the file; auto: by its extension, `.csv`, `.cm` or `.goal`.
        format: Auto<FileFormat> = Auto::Auto, source "ours", Expert;
        /// Unit of start times; auto: seconds in ConWeave's files, nanoseconds in GOAL schedules, picoseconds in the
        /// others.
        start_unit: Auto<StartUnit> = Auto::Auto, source "specification 14.1, 14.3, 14.5", Expert;
        /// Start of the flows: as in the file, or the first at this time; auto: ConWeave's at zero, others as in the
        /// file.
        start_at: StartAt = StartAt::Auto, source "ours", Expert;
        /// GOAL: number of groups, each of which runs the schedule.
        groups: u32 = 1, source "ours";
        /// GOAL: hosts on which ranks may run.
        hosts: HostSet = HostSet::All, source "ours";
        /// GOAL: placement of ranks on hosts, as in `collective`.
        placement: Placement = Placement::Packed, source "ours";
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

impl FileParameters {
    /// Refuses keys of jobs where the file has hosts.
    fn check_placement(&self, format: FileFormat) -> Result<(), WorkloadError> {
        if format == FileFormat::Goal {
            return WorkloadError::unless(self.groups > 0, "groups", self.groups, "1 or more");
        }
        let set = [
            ("groups", self.groups != 1, "1"),
            ("hosts", self.hosts != HostSet::All, "\"all\""),
            ("placement", self.placement != Placement::Packed, "\"packed\""),
        ];
        match set.into_iter().find(|(_, set, _)| *set) {
            Some((key, _, expected)) => {
                let found = format.write();
                let message = format!("has no effect with format = {found}, which names hosts; expected {expected}");
                Err(WorkloadError::of_key(key, message))
            }
            None => Ok(()),
        }
    }

    /// Returns the traffic of `groups` groups on their hosts, of that of one group whose hosts are its ranks.
    fn placed(&self, one: Traffic, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let Some(job) = &one.grouped else { return Ok(one) };
        let ranks = job.ranks;
        if !self.placement.is_file() {
            let hosts = self.hosts.hosts(context)?.len();
            let needed = u64::from(ranks) * u64::from(self.groups);
            if needed > hosts as u64 {
                let message = format!(
                    "{} group(s) of the {ranks} ranks of {} take {needed} of {hosts} hosts; expected more `hosts`, or fewer \
                     `groups`",
                    self.groups, self.path
                );
                return Err(WorkloadError::of_key(if self.groups > 1 { "groups" } else { "hosts" }, message));
            }
        }
        let groups = Groups {
            groups: self.groups,
            ranks: Ranks::Number(ranks),
            concurrent: Auto::Auto,
            hosts: &self.hosts,
            placement: &self.placement,
        };
        let placed = groups.place(context)?;
        context.check_memory(one.flows.len() as u128 * u128::from(self.groups), "groups")?;
        Ok(on_hosts(&one, job, placed.hosts))
    }
}

/// Returns the traffic of a group for each part of `hosts`.
fn on_hosts(one: &Traffic, job: &GroupedJob, hosts: Vec<u32>) -> Traffic {
    let mut all = Traffic { notes: one.notes.clone(), ..Traffic::default() };
    let mut groups = 0;
    for hosts in hosts.chunks(job.ranks as usize) {
        let (first_flow, first_trigger) = (all.flows.len() as u32, all.triggers.len() as u32);
        let beyond = |TriggerId(trigger)| TriggerId(first_trigger + trigger);
        let host = |rank: u32| hosts[rank as usize];
        all.flows.extend(one.flows.iter().map(|flow| Flow {
            src: host(flow.src),
            dst: host(flow.dst),
            start: match flow.start {
                Start::On(trigger) => Start::On(beyond(trigger)),
                at => at,
            },
            on_sent: flow.on_sent.map(beyond),
            on_received: flow.on_received.map(beyond),
            ..*flow
        }));
        all.triggers.extend(one.triggers.iter().map(|trigger| Trigger {
            home: trigger.home.map(host),
            targets: trigger.targets.iter().map(|flow| first_flow + flow).collect(),
            begun: trigger.begun.iter().copied().map(beyond).collect(),
            next: trigger.next.iter().copied().map(beyond).collect(),
            ..trigger.clone()
        }));
        groups += 1;
    }
    all.grouped = Some(GroupedJob { groups, concurrent: groups, hosts, ..job.clone() });
    all
}

impl WorkloadKind for FileParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(!self.path.is_empty(), "path", "nothing", "the path of a flow file")?;
        let format = self.format()?;
        self.check_placement(format)?;
        unit_of(format, self.start_unit).map(|_| ())
    }

    /// A GOAL schedule is the work of a job.
    fn is_job(&self) -> bool {
        self.format().is_ok_and(|format| format == FileFormat::Goal)
    }

    fn listed_because(&self) -> Option<&'static str> {
        self.is_job().then_some("the operations of a GOAL schedule are read in advance")
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
        let traffic = read(format, &source).map_err(|error| error.with_key("path"))?;
        let mut traffic = self.placed(traffic, context)?;
        let first = match (self.start_at, format) {
            (StartAt::First(time), _) => time,
            (StartAt::Auto, FileFormat::Conweave) => Time::ZERO,
            _ => return Ok(traffic),
        };
        shift(&mut traffic, first)?;
        if let Some(job) = &mut traffic.grouped {
            job.start = first;
        }
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
    use crate::kinds::testing::{assert_refused, of, traffic, view};

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

    const GOAL: &str =
        "num_ranks 2\nrank 0 {\nc: calc 5\ns: send 9b to 1\ns requires c\n}\nrank 1 {\nrecv 9b from 0\n}\n";

    #[test]
    fn ranks_of_goal_run_where_they_are_placed() {
        let of = |groups, hosts, placement| {
            let path = "a.goal".into();
            let p = FileParameters { path, groups, hosts, placement, ..Default::default() };
            traffic(&p, &view(8, 4, 1), GOAL).unwrap()
        };
        let made = of(1, HostSet::All, Placement::Packed);
        assert_eq!((made.flows.len(), made.flows[0].src, made.flows[0].dst, made.triggers[0].home), (1, 0, 1, Some(0)));
        let made = of(3, HostSet::Slice { from: 1, to: 8, step: 1 }, Placement::Strided);
        let pairs: Vec<_> = made.flows.iter().map(|flow| (flow.src, flow.dst, flow.start)).collect();
        // Of each group the computation has a trigger, and what the message waits for.
        let start = |trigger| Start::On(TriggerId(trigger));
        assert_eq!(pairs, [(1, 4, start(1)), (2, 5, start(3)), (3, 6, start(5))]);
        for (group, triggers) in (0..).zip(made.triggers.chunks(2)) {
            let [calc, send] = triggers else { panic!("{} triggers", triggers.len()) };
            assert_eq!(
                (calc.home, calc.at, &calc.next[..]),
                (Some(1 + group), Some(Time::ZERO), &[TriggerId(2 * group + 1)][..])
            );
            assert_eq!((send.home, &send.targets[..]), (Some(1 + group), &[group][..]));
        }
        let job = made.grouped.unwrap();
        assert_eq!((job.groups, job.concurrent, job.ranks, job.messages()), (3, 3, 2, 3));
        assert_eq!(
            (job.hosts_of(2), job.computation(1, 0), job.computation(1, 1)),
            (&[3, 6][..], Time::from_ns(5), Time::ZERO)
        );
    }

    #[test]
    fn groups_of_goal_that_do_not_fit_are_refused() {
        assert_refused::<FileParameters>(&view(8, 4, 1), GOAL, "file of GOAL");
    }

    #[test]
    fn errors_are_reported() {
        assert_refused::<FileParameters>(&view(8, 4, 1), "src,dst,size_bytes,start_ps\n0,1,5,7\n0,1,5,9\n", "file");
        let beyond = "src,dst,size_bytes,start_ps\n0,8,5,7\n";
        let error = traffic(&of::<FileParameters>("path=a.csv"), &view(8, 4, 1), beyond).unwrap_err();
        assert_eq!((error.key.as_deref(), error.place.as_deref()), (Some("path"), Some("a.csv:2")));
    }
}
