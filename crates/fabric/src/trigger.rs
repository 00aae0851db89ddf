//! Triggers: flows that wait for others. A trigger keeps its state at one host; reaching another takes time.

use crate::{
    order,
    partition::Partition,
    plan::{Message, activations},
};
use anabranch_workload::TriggerKind;

/// How often a trigger was activated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TriggerState {
    activated: u32,
}

impl Partition<'_> {
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

    /// An activation reaches the trigger's home.
    pub(crate) fn activate(&mut self, trigger: u32, now: u64) {
        let plan = self.plan;
        let definition = &plan.flows.triggers[trigger as usize];
        let state = &mut self.triggers[trigger as usize];
        let before = state.activated;
        state.activated += 1;
        match activations(definition.kind) {
            None => {
                if let Some(&flow) = definition.targets.get(before as usize) {
                    self.start_from(trigger, flow, now);
                }
            }
            Some(wanted) if before + 1 == wanted => {
                for &flow in &definition.targets {
                    self.start_from(trigger, flow, now);
                }
            }
            Some(_) if before > 0 && definition.kind == TriggerKind::Oneshot => {
                self.mistake(format!("oneshot trigger {trigger} is activated a second time"));
            }
            Some(_) => {}
        }
    }

    fn start_from(&mut self, trigger: u32, flow: u32, now: u64) {
        let home = self.plan.trigger_home[trigger as usize];
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
