//! Earliest starts of flows that wait for others: each flow takes the least time of a flow alone.

use crate::Demand;
use anabranch_backend::Setup;
use anabranch_workload::{Start, TriggerKind};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Maximum number of starts, activations and firings that are followed.
const MAX_EVENTS: u64 = 50_000_000;

/// Activations of a trigger so far.
#[derive(Clone, Copy, Default)]
struct State {
    activations: u32,
    /// Targets started by a `Multishot`.
    started: usize,
}

/// Fills in [`Demand::earliest`] of flows that wait for a trigger.
///
/// Triggers fire in the order of their times. Every start is a monotone function of the ends of other flows, so that with
/// the least times of all flows no start is later than in any run. A flow that never starts remains at infinity.
pub(crate) fn earliest(setup: &Setup, demands: &mut [Demand]) {
    let (flows, triggers) = (&setup.flows.flows, &setup.flows.triggers);
    if triggers.is_empty() {
        return;
    }
    let mut states = vec![State::default(); triggers.len()];
    let mut has_begun = vec![false; flows.len()];
    let mut left = MAX_EVENTS;
    // Times are whole picoseconds, rounded down: never late.
    let mut events: BinaryHeap<Reverse<(u64, Step)>> = BinaryHeap::new();
    for (number, trigger) in triggers.iter().enumerate() {
        events.extend(trigger.at.map(|at| Reverse((at.ps(), Step::Activate(number as u32)))));
    }
    for (number, flow) in flows.iter().enumerate() {
        if let Start::At(time) = flow.start {
            events.push(Reverse((time.ps(), Step::Begin(number as u32))));
        }
    }
    while let Some(Reverse((now, step))) = events.pop() {
        left -= 1;
        if left == 0 {
            // Triggers that activate each other without end: nothing is known of their flows.
            let unknown = demands.iter_mut().filter(|demand| demand.start.is_none());
            unknown.for_each(|demand| demand.earliest = demand.earliest.min(0.0));
            return;
        }
        match step {
            Step::Begin(number) => {
                // A flow that several triggers start begins with the first.
                if std::mem::replace(&mut has_begun[number as usize], true) {
                    continue;
                }
                let demand = &mut demands[number as usize];
                demand.earliest = now as f64;
                let (received, sent) = (demand.alone(), demand.alone() + demand.back);
                let flow = &flows[number as usize];
                for (trigger, after) in [(flow.on_received, received), (flow.on_sent, sent)] {
                    let trigger = trigger.filter(|_| after.is_finite());
                    events.extend(trigger.map(|of| Reverse((now + after as u64, Step::Activate(of.0)))));
                }
            }
            Step::Activate(number) => {
                let (trigger, state) = (&triggers[number as usize], &mut states[number as usize]);
                state.activations += 1;
                let begins = match trigger.kind {
                    TriggerKind::Oneshot => state.activations == 1,
                    TriggerKind::Multishot => true,
                    TriggerKind::Barrier(count) => state.activations == count.max(1),
                };
                if begins {
                    trigger.begun.iter().for_each(|next| events.push(Reverse((now, Step::Activate(next.0)))));
                    events.push(Reverse((now.saturating_add(trigger.delay.ps()), Step::Fire(number))));
                }
            }
            Step::Fire(number) => {
                let (trigger, state) = (&triggers[number as usize], &mut states[number as usize]);
                let targets: &[u32] = match trigger.kind {
                    TriggerKind::Multishot => {
                        let next = trigger.targets.get(state.started..=state.started).unwrap_or_default();
                        state.started += 1;
                        next
                    }
                    _ => &trigger.targets,
                };
                targets.iter().for_each(|target| events.push(Reverse((now, Step::Begin(*target)))));
                trigger.next.iter().for_each(|next| events.push(Reverse((now, Step::Activate(next.0)))));
            }
        }
    }
}

/// Step at a time, activations first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Activate(u32),
    Fire(u32),
    Begin(u32),
}
