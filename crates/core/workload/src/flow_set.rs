//! The flows and triggers of a run.

use crate::{
    Flow, FlowLabel, GroupTemplate, GroupedJob, NcclJob, ServerParameters, TemplatePlace, Trigger, TriggerView,
    WorkloadInfo,
};

/// All flows of a run; those with a start time are sorted by (start, src, dst).
///
/// Those of `templates` are not listed: their numbers follow those of the listed flows and triggers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSet {
    pub flows: Vec<Flow>,
    pub triggers: Vec<Trigger>,
    /// Jobs whose flows and triggers are made as they are needed.
    pub templates: Vec<GroupTemplate>,
    pub workloads: Vec<WorkloadInfo>,
    /// Collectives that ranks run themselves; some flows represent their messages.
    pub jobs: Vec<NcclJob>,
    /// Jobs of groups that repeat a schedule, in the order of their first messages.
    pub grouped: Vec<GroupedJob>,
    /// Per flow, the number of its message through all jobs; [`NO_MESSAGE`]: it belongs to none. Empty without jobs.
    pub messages: Vec<u32>,
    /// Words of flow files that have no effect in this run: warnings for the user.
    pub notes: Vec<String>,
    /// The servers whose NICs are the hosts ([`ServerParameters::route`]); `None`: a host is an endpoint.
    pub servers: Option<ServerParameters>,
}

/// Number of the message of a flow that belongs to no job.
pub const NO_MESSAGE: u32 = u32::MAX;

impl FlowSet {
    /// Returns the number of flows, listed or not.
    pub fn number_of_flows(&self) -> usize {
        self.flows.len() + self.templates.iter().map(GroupTemplate::flows).sum::<u64>() as usize
    }

    /// Returns the number of triggers, listed or not.
    pub fn number_of_triggers(&self) -> usize {
        self.triggers.len() + self.templates.iter().map(GroupTemplate::triggers).sum::<u64>() as usize
    }

    /// Returns the flow of a number below [`FlowSet::number_of_flows`].
    #[inline]
    pub fn flow(&self, number: u32) -> Flow {
        self.flows.get(number as usize).map_or_else(|| self.flow_of_template(number), |flow| *flow)
    }

    #[cold]
    fn flow_of_template(&self, number: u32) -> Flow {
        let place = self.flow_place(number).expect("a flow of the set");
        let template = &self.templates[place.template];
        template.flow(&self.grouped[template.job as usize], place)
    }

    #[inline]
    pub fn flow_key(&self, number: u32) -> u64 {
        self.flows.get(number as usize).map_or_else(|| self.template_of(number).key(number), |flow| flow.key)
    }

    #[inline]
    pub fn connection_key(&self, number: u32) -> u64 {
        match self.flows.get(number as usize) {
            Some(flow) => flow.connection,
            None => self.template_of(number).connection_key(number),
        }
    }

    #[inline]
    fn template_of(&self, number: u32) -> &GroupTemplate {
        self.templates.iter().rfind(|template| template.first_flow <= number).expect("a flow of the set")
    }

    /// Returns the place of a flow that is not listed; `None`: it is.
    #[inline]
    pub fn flow_place(&self, number: u32) -> Option<TemplatePlace> {
        let (template, of) = self.templates.iter().enumerate().rfind(|(_, of)| of.first_flow <= number)?;
        let (number, per_group) = (number - of.first_flow, of.flows_per_group());
        Some(TemplatePlace { template, group: number / per_group, number: number % per_group })
    }

    /// Returns the place of a trigger that is not listed; `None`: it is.
    #[inline]
    pub fn trigger_place(&self, number: u32) -> Option<TemplatePlace> {
        let (template, of) = self.templates.iter().enumerate().rfind(|(_, of)| of.first_trigger <= number)?;
        let (number, per_group) = (number - of.first_trigger, of.triggers_per_group());
        Some(TemplatePlace { template, group: number / per_group, number: number % per_group })
    }

    /// Returns the trigger of a number below [`FlowSet::number_of_triggers`].
    #[inline]
    pub fn trigger(&self, number: u32) -> TriggerView<'_> {
        if let Some(trigger) = self.triggers.get(number as usize) {
            return TriggerView::listed(trigger);
        }
        let place = self.trigger_place(number).expect("a trigger of the set");
        let template = &self.templates[place.template];
        template.trigger(&self.grouped[template.job as usize], place)
    }

    /// Numbers the flows, messages and triggers of templates after those that are listed, and puts their jobs last.
    pub(crate) fn number_templates(&mut self) {
        let (mut flows, mut triggers) = (self.flows.len() as u32, self.triggers.len() as u32);
        let jobs = std::mem::take(&mut self.grouped);
        let of_template = |job: usize| self.templates.iter().position(|template| template.job as usize == job);
        let (made, listed): (Vec<_>, Vec<_>) =
            jobs.into_iter().enumerate().map(|(job, of)| (of_template(job), of)).partition(|(of, _)| of.is_some());
        self.grouped.extend(listed.into_iter().map(|(_, job)| job));
        for (template, job) in made {
            let template = &mut self.templates[template.expect("a job with a template")];
            template.job = self.grouped.len() as u32;
            (template.first_flow, template.first_trigger) = (flows, triggers);
            self.grouped.push(GroupedJob { first: flows, ..job });
            flows += template.flows() as u32;
            triggers += template.triggers() as u32;
        }
    }

    /// Yields all flows in the order of their numbers, listed or not.
    pub fn all_flows(&self) -> impl Iterator<Item = Flow> + '_ {
        self.flows.iter().copied().chain(self.templates.iter().flat_map(|template| {
            let flows = template.first_flow..template.first_flow + template.flows() as u32;
            flows.map(|number| self.flow(number))
        }))
    }

    /// Lists the flows and triggers of all templates. Numbers stay the same.
    pub fn list_templates(&mut self) {
        let (flows, triggers) = (self.number_of_flows() as u32, self.number_of_triggers() as u32);
        if self.templates.is_empty() {
            return;
        }
        let listed: Vec<Flow> = (self.flows.len() as u32..flows).map(|number| self.flow(number)).collect();
        let trigger = |number: u32| {
            let of = self.trigger(number);
            Trigger {
                kind: of.kind(),
                targets: (0..of.targets()).filter_map(|index| of.target(index)).collect(),
                home: of.home(),
                at: of.at(),
                delay: of.delay(),
                cpu: of.cpu(),
                begun: (0..of.begun()).filter_map(|index| of.begun_at(index)).collect(),
                next: (0..of.next()).filter_map(|index| of.next_at(index)).collect(),
            }
        };
        let of_templates: Vec<Trigger> = (self.triggers.len() as u32..triggers).map(trigger).collect();
        self.messages.resize(self.flows.len(), NO_MESSAGE);
        // The number of a message of a template is that of its flow.
        self.messages.extend(self.flows.len() as u32..flows);
        self.flows.extend(listed);
        self.triggers.extend(of_templates);
        self.templates.clear();
    }

    /// Returns the place of a flow in its job; `None` for a flow of no job.
    pub fn label(&self, flow: usize) -> Option<FlowLabel> {
        if flow >= self.flows.len() {
            let number = u32::try_from(flow).ok()?;
            let job = self.templates[self.flow_place(number)?.template].job;
            return Some(self.grouped[job as usize].label(job, number));
        }
        let message = self.messages.get(flow).copied().filter(|message| *message != NO_MESSAGE)?;
        let job = self.grouped.partition_point(|job| job.first <= message).checked_sub(1)?;
        Some(self.grouped[job].label(job as u32, message))
    }
}
