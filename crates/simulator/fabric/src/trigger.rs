//! Triggers: flows that wait for others. One host stores a trigger's state; reaching another host takes time.
//!
//! A trigger that was activated often enough begins, and fires after its delay. Delays on one processor of a host
//! follow each other in the order of the activations.

use crate::{
    context::Ctx,
    event::{Event, Stage},
    flow_table::FlowTable,
    ids::{FlowId, HostId},
    plan::{Plan, activations},
};
use anabranch_workload::{GroupTemplate, TriggerKind};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TriggerState {
    activated: u32,
    fired: u32,
}

#[derive(Debug)]
pub(crate) struct Triggers {
    pub(crate) states: FlowTable<TriggerState>,
    /// Per endpoint (host or GPU) and processor number: time at which it is free.
    processors: BTreeMap<(u32, u8), u64>,
}

impl Triggers {
    /// Schedules the first events of triggers with an activation time.
    pub(crate) fn new(cx: &mut Ctx<'_>) -> Self {
        let plan = cx.plan;
        let templates = plan.flows.templates.iter();
        let of_templates =
            templates.flat_map(|template| template.timed_triggers(&plan.flows.grouped[template.job as usize]));
        for trigger in (0..plan.flows.triggers.len() as u32).chain(of_templates) {
            let (home, at) = (plan.home(trigger), plan.flows.trigger(trigger).at());
            if let Some(at) = at
                && plan.owner_of_host(home.0) == cx.me
            {
                cx.plan_event(at.ps(), home, Event::Trigger { home, trigger, stage: Stage::Activated });
            }
        }
        let states = FlowTable::of_triggers(plan.flows, TriggerState::default());
        Triggers { states, processors: BTreeMap::new() }
    }

    /// Returns the template and the group that end here because `trigger` starts a rank of the group that takes over their
    /// hosts, the first one here.
    #[inline]
    pub(crate) fn ended_by(&self, plan: &Plan<'_>, trigger: u32) -> Option<(usize, u32)> {
        if (trigger as usize) < plan.flows.triggers.len() { None } else { self.before(plan, trigger) }
    }

    fn before(&self, plan: &Plan<'_>, trigger: u32) -> Option<(usize, u32)> {
        let place = plan.flows.trigger_place(trigger).filter(|place| place.number != GroupTemplate::ALL)?;
        let job = &plan.flows.grouped[plan.flows.templates[place.template].job as usize];
        let group = place.group.checked_sub(job.concurrent)?;
        self.states.is_open(place.template, group).then_some((place.template, group))
    }

    pub(crate) fn on_event(&mut self, cx: &mut Ctx<'_>, trigger: u32, stage: Stage) {
        match stage {
            Stage::Activated => self.activated(cx, trigger),
            Stage::Begins => begin(cx, trigger),
            Stage::Fires => self.fire(cx, trigger),
        }
    }

    fn activated(&mut self, cx: &mut Ctx<'_>, trigger: u32) {
        let kind = cx.plan.flows.trigger(trigger).kind();
        let state = self.states.at_mut(trigger);
        let before = state.activated;
        state.activated += 1;
        match activations(kind) {
            None => self.schedule(cx, trigger),
            Some(wanted) if before + 1 == wanted => self.schedule(cx, trigger),
            Some(_) if before > 0 && kind == TriggerKind::Oneshot => {
                cx.mistake(format!("oneshot trigger {trigger} is activated a second time"));
            }
            Some(_) => {}
        }
    }

    fn schedule(&mut self, cx: &mut Ctx<'_>, trigger: u32) {
        let (now, definition) = (cx.now, cx.plan.flows.trigger(trigger));
        let home = cx.plan.home(trigger);
        let delay = definition.delay().ps();
        let mut begins = now;
        if let Some(cpu) = definition.cpu() {
            let free = self.processors.entry((cx.plan.endpoint_of(trigger), cpu)).or_default();
            begins = begins.max(*free);
            *free = begins.saturating_add(delay);
        }
        let fires = begins.saturating_add(delay);
        let event = |stage| Event::Trigger { home, trigger, stage };
        match begins == now {
            true => begin(cx, trigger),
            false if definition.begun() == 0 => {}
            false => cx.plan_event(begins, home, event(Stage::Begins)),
        }
        if fires == now { self.fire(cx, trigger) } else { cx.plan_event(fires, home, event(Stage::Fires)) }
    }

    fn fire(&mut self, cx: &mut Ctx<'_>, trigger: u32) {
        let (plan, home) = (cx.plan, cx.plan.home(trigger));
        let definition = plan.flows.trigger(trigger);
        let state = self.states.at_mut(trigger);
        let before = state.fired as usize;
        state.fired += 1;
        let targets = match definition.kind() {
            TriggerKind::Multishot => before..before + 1,
            TriggerKind::Oneshot | TriggerKind::Barrier(_) => 0..definition.targets(),
        };
        for flow in targets.filter_map(|index| definition.target(index)).map(FlowId) {
            let host = HostId(plan.flow(flow).src);
            cx.cause(home, host, Event::Start { host, flow });
        }
        for after in (0..definition.next()).filter_map(|index| definition.next_at(index)) {
            cx.activate(after, home);
        }
    }
}

fn begin(cx: &mut Ctx<'_>, trigger: u32) {
    let (plan, home) = (cx.plan, cx.plan.home(trigger));
    let definition = plan.flows.trigger(trigger);
    for after in (0..definition.begun()).filter_map(|index| definition.begun_at(index)) {
        cx.activate(after, home);
    }
}
