//! Triggers: flows that wait for others. A trigger keeps its state at one host; reaching another takes time.
//!
//! A trigger that was activated often enough begins, and fires after its delay. The delays of one host and processor
//! follow each other in the order of the activations.

use crate::{
    order::{self, BEGINS, FIRES, TRIGGER_NUMBER},
    partition::Partition,
    plan::{Message, activations},
};
use anabranch_workload::{TriggerId, TriggerKind};

/// How far a trigger is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TriggerState {
    /// How often it was activated.
    activated: u32,
    /// How often it fired.
    fired: u32,
}

impl Partition<'_> {
    /// First events of the triggers that are activated by themselves.
    pub(crate) fn activate_by_time(&mut self) {
        for (trigger, definition) in (0..).zip(&self.plan.flows.triggers) {
            let home = self.plan.trigger_home[trigger as usize];
            if let Some(at) = definition.at
                && self.plan.owner_of_host(home) == self.me
            {
                self.host_event(at.ps(), order::ACTIVATE, home, trigger);
            }
        }
    }

    /// Something at `host` activates `trigger`.
    pub(crate) fn pull(&mut self, trigger: u32, host: u32, now: u64) {
        let home = self.plan.trigger_home[trigger as usize];
        let time = if home == host { now } else { now + self.plan.trigger_latency };
        let owner = self.plan.owner_of_host(home);
        if owner == self.me {
            self.host_event(time, order::ACTIVATE, home, trigger);
        } else {
            self.wires.outbox[owner as usize].push(Message::Activate { time, trigger });
        }
    }

    /// Something happens to a trigger at its home.
    pub(crate) fn trigger_event(&mut self, payload: u32, now: u64) {
        let trigger = payload & TRIGGER_NUMBER;
        match payload & !TRIGGER_NUMBER {
            BEGINS => self.begin(trigger, now),
            FIRES => self.fire(trigger, now),
            _ => self.activate(trigger, now),
        }
    }

    /// An activation reaches the trigger's home.
    fn activate(&mut self, trigger: u32, now: u64) {
        let definition = &self.plan.flows.triggers[trigger as usize];
        let state = &mut self.triggers[trigger as usize];
        let before = state.activated;
        state.activated += 1;
        match activations(definition.kind) {
            None => self.schedule(trigger, now),
            Some(wanted) if before + 1 == wanted => self.schedule(trigger, now),
            Some(_) if before > 0 && definition.kind == TriggerKind::Oneshot => {
                self.mistake(format!("oneshot trigger {trigger} is activated a second time"));
            }
            Some(_) => {}
        }
    }

    /// Lets a trigger begin as soon as its processor is free, and fire after its delay.
    fn schedule(&mut self, trigger: u32, now: u64) {
        let definition = &self.plan.flows.triggers[trigger as usize];
        let home = self.plan.trigger_home[trigger as usize];
        let delay = definition.delay.ps();
        let mut begins = now;
        if let Some(cpu) = definition.cpu {
            let free = self.processors.entry((home, cpu)).or_default();
            begins = begins.max(*free);
            *free = begins.saturating_add(delay);
        }
        let fires = begins.saturating_add(delay);
        match begins == now {
            true => self.begin(trigger, now),
            false if definition.begun.is_empty() => {}
            false => self.host_event(begins, order::ACTIVATE, home, trigger | BEGINS),
        }
        match fires == now {
            true => self.fire(trigger, now),
            false => self.host_event(fires, order::ACTIVATE, home, trigger | FIRES),
        }
    }

    fn begin(&mut self, trigger: u32, now: u64) {
        let (plan, home) = (self.plan, self.plan.trigger_home[trigger as usize]);
        for &TriggerId(after) in &plan.flows.triggers[trigger as usize].begun {
            self.pull(after, home, now);
        }
    }

    fn fire(&mut self, trigger: u32, now: u64) {
        let (plan, home) = (self.plan, self.plan.trigger_home[trigger as usize]);
        let definition = &plan.flows.triggers[trigger as usize];
        let before = self.triggers[trigger as usize].fired as usize;
        self.triggers[trigger as usize].fired += 1;
        let targets = match definition.kind {
            TriggerKind::Multishot => definition.targets.get(before..=before).unwrap_or_default(),
            TriggerKind::Oneshot | TriggerKind::Barrier(_) => &definition.targets,
        };
        for &flow in targets {
            self.start_from(home, flow, now);
        }
        for &TriggerId(after) in &definition.next {
            self.pull(after, home, now);
        }
    }

    fn start_from(&mut self, home: u32, flow: u32, now: u64) {
        let src = self.plan.flows.flows[flow as usize].src;
        let time = if src == home { now } else { now + self.plan.trigger_latency };
        let owner = self.plan.owner_of_host(src);
        if owner == self.me {
            self.host_event(time, order::START, src, flow);
        } else {
            self.wires.outbox[owner as usize].push(Message::Start { time, flow });
        }
    }
}
