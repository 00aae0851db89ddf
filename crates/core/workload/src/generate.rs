//! Merges the flows of all workloads: splits, numbers, sorts.

use crate::{
    FileFailure, Flow, FlowSet, GeneratedAs, GroupedJob, HostView, MAX_NUMBER, NO_MESSAGE, NcclJob, ReadFile, Start,
    TriggerId, WorkloadError, WorkloadInfo, WorkloadParameters,
    flow::{NO_CLASS, OWN_CONNECTION},
    names::wrong_workload_name,
    traffic::Traffic,
    view::{Context, FLOW_MEMORY},
};
use anabranch_random::{Stream, mix, name_key};
use anabranch_units::Time;
use std::collections::HashSet;

/// The fabric needs two bits of their number.
pub(crate) const MAX_TRIGGERS: usize = 1 << 30;

/// Maximum number of workloads, with their splits and the parts of flow files.
pub const MAX_WORKLOADS: usize = 1 << 16;

/// Output of a list of workloads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// The flows, triggers and workloads.
    pub flows: FlowSet,
    /// Failed links of flow files, for the caller to apply or refuse.
    pub failures: Vec<FileFailure>,
}

/// Generates the flows of all workloads of `list`.
///
/// Flows with a start time come first, sorted by (start, source, destination) and then as in `list`; flows that wait for a
/// trigger follow, as in `list`. A flow's key comes from its workload's name and its number within it, so that neither
/// another workload nor a split changes it.
/// Errors: [`WorkloadError`]: a parameter out of its limits, an invalid file, two workloads of one name, or failed links in
/// a flow file.
pub fn generate(
    list: &[(WorkloadParameters, GeneratedAs)],
    view: &HostView,
    seed: u64,
    read_file: &ReadFile<'_>,
) -> Result<FlowSet, WorkloadError> {
    let made = generate_all(list, view, seed, read_file)?;
    match made.failures.first() {
        Some(failure) => Err(WorkloadError {
            place: Some(failure.place.clone()),
            ..WorkloadError::new("`failure` lines are not taken from flow files; write a [[fault]] in the scenario")
        }),
        None => Ok(made.flows),
    }
}

/// Generates as [`generate()`], but returns the failed links of flow files.
/// Fails as [`generate()`], except for failed links.
pub fn generate_all(
    list: &[(WorkloadParameters, GeneratedAs)],
    view: &HostView,
    seed: u64,
    read_file: &ReadFile<'_>,
) -> Result<Generated, WorkloadError> {
    let mut merge = Merge { used: vec![false; view.hosts as usize], ..Merge::default() };
    for (number, (_, sent_as)) in list.iter().enumerate() {
        merge.reserve_names(sent_as).map_err(|error| error.of_workload(number))?;
    }
    for (number, (kind, sent_as)) in list.iter().enumerate() {
        let room = (view.flow_memory / FLOW_MEMORY).saturating_sub(merge.made.flows.flows.len() as u64);
        let templates = view.templates && view.servers.is_none() && sent_as.split.is_none();
        let context = Context { view, seed, name: &sent_as.name, used: &merge.used, room, templates, read_file };
        let made = kind.generate(&context);
        let made = made.and_then(|traffic| check_numbers(&traffic, kind).map(|()| traffic));
        let first = merge.made.flows.workloads.len();
        made.and_then(|traffic| merge.add(traffic, sent_as, seed)).map_err(|error| error.of_workload(number))?;
        let of = merge.made.flows.grouped.last().filter(|job| usize::from(job.workload) == first);
        let collective = of.filter(|job| job.groups == 1 && job.repetitions == 1 && job.compute == Time::ZERO);
        let collective = collective.and_then(|job| job.collective.clone());
        let own = &mut merge.made.flows.workloads[first..];
        own.iter_mut().for_each(|workload| workload.is_job = kind.is_job());
        if let [only] = own {
            only.collective = collective;
        }
    }
    Ok(merge.finish())
}

/// Refuses sizes and starts that results cannot store.
fn check_numbers(traffic: &Traffic, kind: &WorkloadParameters) -> Result<(), WorkloadError> {
    let refuse = |key: &str, flow: &Flow, found: String| {
        let message = format!(
            "found {found} for a flow from host {} to host {}, expected {MAX_NUMBER} or less: tables hold no more",
            flow.src, flow.dst
        );
        let has_key = kind.parameters().entries().iter().any(|(own, _)| *own == key);
        Err(if has_key { WorkloadError::of_key(key, message) } else { WorkloadError::new(format!("{key}: {message}")) })
    };
    for flow in &traffic.flows {
        if flow.size > MAX_NUMBER {
            return refuse("size", flow, format!("{} B", flow.size));
        }
        if let Start::At(start) = flow.start
            && start.ps() > MAX_NUMBER
        {
            return refuse("start", flow, format!("{} ps", start.ps()));
        }
    }
    Ok(())
}

/// Flows and triggers are numbered through the whole set, in the order of `list`.
#[derive(Default)]
struct Merge {
    names: HashSet<String>,
    /// `true` for each host that sends or receives so far.
    used: Vec<bool>,
    made: Generated,
}

impl Merge {
    /// No other workload may have the names of a workload and its splits.
    fn reserve_names(&mut self, sent_as: &GeneratedAs) -> Result<(), WorkloadError> {
        self.reserve(&sent_as.name)?;
        match &sent_as.split {
            Some((share, rest)) => {
                WorkloadError::unless((0.0..=1.0).contains(share), "split_share", share, "a share from 0 to 1")?;
                self.reserve_names(rest)
            }
            None => Ok(()),
        }
    }

    fn reserve(&mut self, name: &str) -> Result<(), WorkloadError> {
        if let Some(wrong) = wrong_workload_name(name) {
            return Err(WorkloadError::of_key("name", wrong));
        }
        if !self.names.insert(name.to_string()) {
            let message =
                format!("two workloads are called `{name}`, expected a name for each: it keys its random draws");
            return Err(WorkloadError::of_key("name", message));
        }
        Ok(())
    }

    fn workload(&mut self, name: &str, measured: bool, sent_as: &GeneratedAs) -> Result<u16, WorkloadError> {
        let workloads = &mut self.made.flows.workloads;
        let number = u16::try_from(workloads.len())
            .map_err(|_| WorkloadError::new(format!("more than {MAX_WORKLOADS} workloads")))?;
        workloads.push(WorkloadInfo {
            name: name.to_string(),
            measured: measured && sent_as.measured,
            load_balancer: sent_as.load_balancer,
            is_job: false,
            collective: None,
        });
        Ok(number)
    }

    fn add(&mut self, mut traffic: Traffic, sent_as: &GeneratedAs, seed: u64) -> Result<(), WorkloadError> {
        let first_flow = self.made.flows.flows.len();
        let first_trigger = self.made.flows.triggers.len() as u32;
        let template = traffic.template.take().zip(traffic.grouped.as_ref());
        let template = template.map(|(template, job)| {
            template.labelled(
                self.made.flows.workloads.len() as u16,
                sent_as.class,
                name_key(&sent_as.name),
                job.groups,
            )
        });
        let [more_flows, more_triggers] =
            template.as_ref().map_or([0; 2], |template| [template.flows(), template.triggers()].map(|n| n as usize));
        // The last 32-bit number is reserved for "none".
        if self.made.flows.number_of_flows() + traffic.flows.len() + more_flows >= u32::MAX as usize {
            return Err(WorkloadError::new(format!("more than {} flows in all", u32::MAX - 1)));
        }
        if self.made.flows.number_of_triggers() + traffic.triggers.len() + more_triggers > MAX_TRIGGERS {
            return Err(WorkloadError::new(format!("more than {MAX_TRIGGERS} triggers in all")));
        }
        let mut workload_of = vec![self.workload(&sent_as.name, true, sent_as)?];
        for label in traffic.labels.iter().skip(1) {
            if label.name == sent_as.name {
                workload_of.push(workload_of[0]);
                continue;
            }
            let name = &label.name;
            self.reserve(name).map_err(|_| {
                WorkloadError::new(format!("a part of the flows is a workload named `{name}`; that name is taken"))
            })?;
            workload_of.push(self.workload(name, label.measured, sent_as)?);
        }

        for flow in &traffic.flows {
            self.used[flow.src as usize] = true;
            self.used[flow.dst as usize] = true;
        }
        if let (Some(_), Some(job)) = (&template, &traffic.grouped) {
            job.hosts.iter().for_each(|host| self.used[*host as usize] = true);
        }
        // An unmeasured part is excluded from the split, which might be measured.
        let is_split = |flow: &Flow| flow.workload == 0 || traffic.labels[usize::from(flow.workload)].measured;
        let all =
            (first_flow as u32..).zip(&traffic.flows).filter(|(_, flow)| is_split(flow)).map(|(number, _)| number);
        let all: Vec<u32> = all.collect();
        let entity = name_key(&sent_as.name);
        let key = |ordinal: u64| mix(entity ^ mix(ordinal + 1));
        if let Some(job) = traffic.grouped.as_ref().filter(|_| !traffic.flows.is_empty()) {
            let of_groups = (0..job.groups).flat_map(|group| {
                let first = job.first_of(group, 0) - job.first;
                job.connections(group).map(move |message| first + message)
            });
            for (flow, connection) in traffic.flows.iter_mut().zip(of_groups) {
                flow.connection = u64::from(connection);
            }
        }
        let beyond = |TriggerId(trigger)| TriggerId(first_trigger + trigger);
        self.made.flows.flows.extend(traffic.flows.into_iter().enumerate().map(|(ordinal, flow)| Flow {
            workload: workload_of[usize::from(flow.workload)],
            class: if flow.class == NO_CLASS { sent_as.class } else { flow.class },
            key: key(ordinal as u64),
            connection: key(if flow.connection == OWN_CONNECTION { ordinal as u64 } else { flow.connection }),
            listed: (first_flow + ordinal) as u32,
            start: match flow.start {
                Start::On(trigger) => Start::On(beyond(trigger)),
                at => at,
            },
            on_sent: flow.on_sent.map(beyond),
            on_received: flow.on_received.map(beyond),
            ..flow
        }));
        self.made.flows.triggers.extend(traffic.triggers.into_iter().map(|mut trigger| {
            trigger.targets.iter_mut().for_each(|target| *target += first_flow as u32);
            trigger.begun.iter_mut().chain(&mut trigger.next).for_each(|after| *after = beyond(*after));
            trigger
        }));
        self.made.failures.extend(traffic.failures);
        self.made.flows.notes.extend(traffic.notes);
        let job = traffic.job.map(|job| NcclJob { workload: workload_of[0], first: first_flow as u32, ..job });
        self.made.flows.jobs.extend(job);
        let grouped =
            traffic.grouped.map(|job| GroupedJob { workload: workload_of[0], first: first_flow as u32, ..job });
        let job = self.made.flows.grouped.len() as u32;
        self.made.flows.templates.extend(template.into_iter().map(|mut template| {
            template.job = job;
            template
        }));
        self.made.flows.grouped.extend(grouped);
        self.split(all, sent_as, seed)
    }

    /// Moves a random share of the `flows` of `sent_as` to its split, recursively.
    fn split(&mut self, mut flows: Vec<u32>, sent_as: &GeneratedAs, seed: u64) -> Result<(), WorkloadError> {
        let Some((share, rest)) = &sent_as.split else { return Ok(()) };
        let chosen = (share * flows.len() as f64 + 0.5) as usize;
        Stream::keyed(seed, name_key(&sent_as.name), "workload split").shuffle(&mut flows);
        flows.truncate(chosen);
        // Sorted again, so that a split of the split does not depend on this shuffle's order.
        flows.sort_unstable();
        let workload = self.workload(&rest.name, true, rest)?;
        for &flow in &flows {
            let flow = &mut self.made.flows.flows[flow as usize];
            (flow.workload, flow.class) = (workload, rest.class);
        }
        self.split(flows, rest, seed)
    }

    fn finish(mut self) -> Generated {
        let set = &mut self.made.flows;
        // (waits for a trigger, start, source, destination, number so far): all are distinct.
        let mut order: Vec<(bool, u64, u32, u32, u32)> = (0..)
            .zip(&set.flows)
            .map(|(number, flow)| match flow.start {
                Start::At(at) => (false, at.ps(), flow.src, flow.dst, number),
                Start::On(_) => (true, 0, 0, 0, number),
            })
            .collect();
        order.sort_unstable();
        for flow in set.flows.iter().filter(|flow| matches!(flow.start, Start::On(_))) {
            set.workloads[usize::from(flow.workload)].is_job = true;
        }
        for template in &set.templates {
            set.workloads[usize::from(set.grouped[template.job as usize].workload)].is_job = true;
        }
        set.number_templates();
        if set.grouped.len() > set.templates.len() {
            set.messages = vec![NO_MESSAGE; order.len()];
            let end = |job: &GroupedJob| job.first + job.messages() as u32;
            for (place, &(.., number)) in order.iter().enumerate() {
                let job = set.grouped.partition_point(|job| job.first <= number);
                if job > 0 && number < end(&set.grouped[job - 1]) {
                    set.messages[place] = number;
                }
            }
        }
        set.flows = order.iter().map(|&(.., number)| set.flows[number as usize]).collect();
        if !set.triggers.is_empty() {
            let mut now_at = vec![0; order.len()];
            for (place, &(.., number)) in (0..).zip(&order) {
                now_at[number as usize] = place;
            }
            for target in set.triggers.iter_mut().flat_map(|trigger| &mut trigger.targets) {
                *target = now_at[*target as usize];
            }
        }
        self.made
    }
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
