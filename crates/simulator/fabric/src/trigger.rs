//! Triggers: flows that wait for others. A trigger keeps its state at one host; reaching another takes time.
//!
//! A trigger that was activated often enough begins, and fires after its delay. The delays of one host and processor
//! follow each other in the order of the activations.

use crate::{
    event::{Event, Stage},
    ids::{FlowId, HostId},
    message::Message,
    partition::Partition,
    plan::{Plan, activations},
};
use anabranch_workload::{TriggerId, TriggerKind};
use std::collections::BTreeMap;

/// How far a trigger is.
#[derive(Clone, Copy, Debug, Default)]
struct TriggerState {
    activated: u32,
    fired: u32,
}

/// The triggers of a partition.
#[derive(Debug)]
pub(crate) struct Triggers {
    states: Vec<TriggerState>,
    /// When each processor that triggers used is free again, by host and number.
    processors: BTreeMap<(HostId, u8), u64>,
}

impl Triggers {
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        Triggers { states: vec![TriggerState::default(); plan.flows.triggers.len()], processors: BTreeMap::new() }
    }
}

impl Partition<'_> {
    /// First events of the triggers that are activated by themselves.
    pub(crate) fn activate_by_time(&mut self) {
        for (trigger, definition) in (0..).zip(&self.plan.flows.triggers) {
            if let Some(at) = definition.at
                && self.plan.owner_of_host(self.plan.trigger_home[trigger as usize]) == self.me
            {
                self.activate_at(trigger, at.ps());
            }
        }
    }

    fn home(&self, trigger: u32) -> HostId {
        HostId(self.plan.trigger_home[trigger as usize])
    }

    /// A trigger of this partition is activated at `time`.
    pub(crate) fn activate_at(&mut self, trigger: u32, time: u64) {
        let home = self.home(trigger);
        self.host_event(time, home, Event::Trigger { home, trigger, stage: Stage::Activated });
    }

    /// Something at `host` activates `trigger`.
    pub(crate) fn activate(&mut self, trigger: u32, host: HostId, now: u64) {
        let home = self.home(trigger);
        let time = if home == host { now } else { now + self.plan.trigger_latency };
        let owner = self.plan.owner_of_host(home.0);
        if owner == self.me {
            self.activate_at(trigger, time);
        } else {
            self.ports.outbox[usize::from(owner)].push(Message::Activate { time, trigger });
        }
    }

    /// Something happens to a trigger at its home.
    pub(crate) fn trigger_event(&mut self, trigger: u32, stage: Stage, now: u64) {
        match stage {
            Stage::Activated => self.activated(trigger, now),
            Stage::Begins => self.begin(trigger, now),
            Stage::Fires => self.fire(trigger, now),
        }
    }

    /// An activation reaches the trigger's home.
    fn activated(&mut self, trigger: u32, now: u64) {
        let definition = &self.plan.flows.triggers[trigger as usize];
        let state = &mut self.triggers.states[trigger as usize];
        let before = state.activated;
        state.activated += 1;
        match activations(definition.kind) {
            None => self.schedule(trigger, now),
            Some(wanted) if before + 1 == wanted => self.schedule(trigger, now),
            Some(_) if before > 0 && definition.kind == TriggerKind::Oneshot => {
                self.mistake(now, format!("oneshot trigger {trigger} is activated a second time"));
            }
            Some(_) => {}
        }
    }

    /// Lets a trigger begin as soon as its processor is free, and fire after its delay.
    fn schedule(&mut self, trigger: u32, now: u64) {
        let definition = &self.plan.flows.triggers[trigger as usize];
        let home = self.home(trigger);
        let delay = definition.delay.ps();
        let mut begins = now;
        if let Some(cpu) = definition.cpu {
            let free = self.triggers.processors.entry((home, cpu)).or_default();
            begins = begins.max(*free);
            *free = begins.saturating_add(delay);
        }
        let fires = begins.saturating_add(delay);
        let event = |stage| Event::Trigger { home, trigger, stage };
        match begins == now {
            true => self.begin(trigger, now),
            false if definition.begun.is_empty() => {}
            false => self.host_event(begins, home, event(Stage::Begins)),
        }
        match fires == now {
            true => self.fire(trigger, now),
            false => self.host_event(fires, home, event(Stage::Fires)),
        }
    }

    fn begin(&mut self, trigger: u32, now: u64) {
        let (plan, home) = (self.plan, self.home(trigger));
        for &TriggerId(after) in &plan.flows.triggers[trigger as usize].begun {
            self.activate(after, home, now);
        }
    }

    fn fire(&mut self, trigger: u32, now: u64) {
        let (plan, home) = (self.plan, self.home(trigger));
        let definition = &plan.flows.triggers[trigger as usize];
        let state = &mut self.triggers.states[trigger as usize];
        let before = state.fired as usize;
        state.fired += 1;
        let targets = match definition.kind {
            TriggerKind::Multishot => definition.targets.get(before..=before).unwrap_or_default(),
            TriggerKind::Oneshot | TriggerKind::Barrier(_) => &definition.targets,
        };
        for &flow in targets {
            self.start_from(home, FlowId(flow), now);
        }
        for &TriggerId(after) in &definition.next {
            self.activate(after, home, now);
        }
    }

    fn start_from(&mut self, home: HostId, flow: FlowId, now: u64) {
        let host = HostId(self.plan.flows.flows[flow.at()].src);
        let time = if host == home { now } else { now + self.plan.trigger_latency };
        let owner = self.plan.owner_of_host(host.0);
        if owner == self.me {
            self.host_event(time, host, Event::Start { host, flow });
        } else {
            self.ports.outbox[usize::from(owner)].push(Message::Start { time, flow });
        }
    }
}
