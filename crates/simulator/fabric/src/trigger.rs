//! Triggers: flows that wait for others. One host stores a trigger's state; reaching another host takes time.
//!
//! A trigger that was activated often enough begins, and fires after its delay. Delays on one processor of a host
//! follow each other in the order of the activations.

use crate::{
    context::Ctx,
    event::{Event, Stage},
    ids::{FlowId, HostId},
    plan::activations,
};
use anabranch_workload::TriggerKind;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct TriggerState {
    activated: u32,
    fired: u32,
}

#[derive(Debug)]
pub(crate) struct Triggers {
    states: Vec<TriggerState>,
    /// Per endpoint (host or GPU) and processor number: time at which it is free.
    processors: BTreeMap<(u32, u8), u64>,
}

impl Triggers {
    /// Schedules the first events of triggers with an activation time.
    pub(crate) fn new(cx: &mut Ctx<'_>) -> Self {
        let plan = cx.plan;
        for (trigger, definition) in (0..).zip(&plan.flows.triggers) {
            let home = plan.home(trigger);
            if let Some(at) = definition.at
                && plan.owner_of_host(home.0) == cx.me
            {
                cx.plan_event(at.ps(), home, Event::Trigger { home, trigger, stage: Stage::Activated });
            }
        }
        Triggers { states: vec![TriggerState::default(); plan.flows.triggers.len()], processors: BTreeMap::new() }
    }

    pub(crate) fn on_event(&mut self, cx: &mut Ctx<'_>, trigger: u32, stage: Stage) {
        match stage {
            Stage::Activated => self.activated(cx, trigger),
            Stage::Begins => begin(cx, trigger),
            Stage::Fires => self.fire(cx, trigger),
        }
    }

    fn activated(&mut self, cx: &mut Ctx<'_>, trigger: u32) {
        let definition = &cx.plan.flows.triggers[trigger as usize];
        let state = &mut self.states[trigger as usize];
        let before = state.activated;
        state.activated += 1;
        match activations(definition.kind) {
            None => self.schedule(cx, trigger),
            Some(wanted) if before + 1 == wanted => self.schedule(cx, trigger),
            Some(_) if before > 0 && definition.kind == TriggerKind::Oneshot => {
                cx.mistake(format!("oneshot trigger {trigger} is activated a second time"));
            }
            Some(_) => {}
        }
    }

    fn schedule(&mut self, cx: &mut Ctx<'_>, trigger: u32) {
        let (now, definition) = (cx.now, &cx.plan.flows.triggers[trigger as usize]);
        let home = cx.plan.home(trigger);
        let delay = definition.delay.ps();
        let mut begins = now;
        if let Some(cpu) = definition.cpu {
            let free = self.processors.entry((cx.plan.endpoint_of(trigger), cpu)).or_default();
            begins = begins.max(*free);
            *free = begins.saturating_add(delay);
        }
        let fires = begins.saturating_add(delay);
        let event = |stage| Event::Trigger { home, trigger, stage };
        match begins == now {
            true => begin(cx, trigger),
            false if definition.begun.is_empty() => {}
            false => cx.plan_event(begins, home, event(Stage::Begins)),
        }
        match fires == now {
            true => self.fire(cx, trigger),
            false => cx.plan_event(fires, home, event(Stage::Fires)),
        }
    }

    fn fire(&mut self, cx: &mut Ctx<'_>, trigger: u32) {
        let (plan, home) = (cx.plan, cx.plan.home(trigger));
        let definition = &plan.flows.triggers[trigger as usize];
        let state = &mut self.states[trigger as usize];
        let before = state.fired as usize;
        state.fired += 1;
        let targets = match definition.kind {
            TriggerKind::Multishot => definition.targets.get(before..=before).unwrap_or_default(),
            TriggerKind::Oneshot | TriggerKind::Barrier(_) => &definition.targets,
        };
        for &flow in targets {
            let (host, flow) = (HostId(plan.flows.flows[flow as usize].src), FlowId(flow));
            cx.cause(home, host, Event::Start { host, flow });
        }
        for &after in &definition.next {
            cx.activate(after, home);
        }
    }
}

fn begin(cx: &mut Ctx<'_>, trigger: u32) {
    let (plan, home) = (cx.plan, cx.plan.home(trigger));
    for &after in &plan.flows.triggers[trigger as usize].begun {
        cx.activate(after, home);
    }
}
