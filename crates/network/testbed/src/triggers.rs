//! Starts of flows: at a time, or after other flows.

use anabranch_units::Time;
use anabranch_workload::{FlowSet, Start, TriggerId, TriggerKind};
use std::{cmp::Reverse, collections::BinaryHeap};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Flow(u32),
    Activation(u32),
    Firing(u32),
}

#[derive(Debug)]
pub(crate) struct Triggers<'a> {
    set: &'a FlowSet,
    activations: Vec<u32>,
    /// Next target of each multishot trigger.
    next_target: Vec<usize>,
    due: BinaryHeap<Reverse<(Time, Due)>>,
}

impl<'a> Triggers<'a> {
    pub(crate) fn new(set: &'a FlowSet) -> Self {
        let mut due = BinaryHeap::new();
        for (number, flow) in set.flows.iter().enumerate() {
            if let Start::At(at) = flow.start {
                due.push(Reverse((at, Due::Flow(number as u32))));
            }
        }
        for (number, trigger) in set.triggers.iter().enumerate() {
            due.extend(trigger.at.map(|at| Reverse((at, Due::Activation(number as u32)))));
        }
        let triggers = set.triggers.len();
        Triggers { set, activations: vec![0; triggers], next_target: vec![0; triggers], due }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn activate(&mut self, trigger: Option<TriggerId>, now: Time) {
        let Some(TriggerId(number)) = trigger else { return };
        let trigger = &self.set.triggers[number as usize];
        let activations = &mut self.activations[number as usize];
        *activations += 1;
        let begins = match trigger.kind {
            TriggerKind::Oneshot => *activations == 1,
            TriggerKind::Multishot => true,
            TriggerKind::Barrier(wanted) => *activations == wanted,
        };
        if begins {
            trigger.begun.iter().for_each(|begun| self.activate(Some(*begun), now));
            self.due.push(Reverse((now + trigger.delay, Due::Firing(number))));
        }
    }

    pub(crate) fn starting(&mut self, now: Time) -> Vec<u32> {
        let mut starting = Vec::new();
        while let Some(&Reverse((at, due))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            match due {
                Due::Flow(flow) => starting.push(flow),
                Due::Activation(trigger) => self.activate(Some(TriggerId(trigger)), at),
                Due::Firing(number) => {
                    let trigger = &self.set.triggers[number as usize];
                    if trigger.kind == TriggerKind::Multishot {
                        let next = &mut self.next_target[number as usize];
                        starting.extend(trigger.targets.get(*next));
                        *next += 1;
                    } else {
                        starting.extend(&trigger.targets);
                    }
                    trigger.next.iter().for_each(|next| self.activate(Some(*next), at));
                }
            }
        }
        starting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_workload::{Flow, Trigger};

    fn flow(start: Start, on_received: Option<TriggerId>) -> Flow {
        Flow {
            src: 0,
            dst: 1,
            gpus: None,
            medium: anabranch_workload::Medium::Network,
            size: 1,
            start,
            workload: 0,
            class: 0,
            key: 0,
            connection: 0,
            listed: 0,
            on_sent: None,
            on_received,
        }
    }

    #[test]
    fn a_round_begins_when_the_one_before_it_has_been_received() {
        let (barrier, us) = (TriggerId(0), Time::from_us);
        let first = || flow(Start::At(us(5)), Some(barrier));
        let mut set = FlowSet { flows: vec![first(), first(), flow(Start::On(barrier), None)], ..FlowSet::default() };
        set.triggers = vec![Trigger { delay: us(3), ..Trigger::new(TriggerKind::Barrier(2), vec![2]) }];
        let mut triggers = Triggers::new(&set);
        assert_eq!((triggers.next(), triggers.starting(us(4))), (Some(us(5)), vec![]));
        assert_eq!(triggers.starting(us(6)), [0, 1]);
        triggers.activate(set.flows[0].on_received, us(10));
        assert_eq!(triggers.next(), None);
        triggers.activate(set.flows[1].on_received, us(20));
        assert_eq!((triggers.starting(us(22)), triggers.next()), (vec![], Some(us(23))));
        assert_eq!(triggers.starting(us(30)), [2]);
    }

    #[test]
    fn a_multishot_starts_one_at_a_time() {
        let shot = TriggerId(0);
        let mut set = FlowSet { flows: (0..2).map(|_| flow(Start::On(shot), None)).collect(), ..FlowSet::default() };
        set.triggers = vec![Trigger::new(TriggerKind::Multishot, vec![1, 0])];
        let mut triggers = Triggers::new(&set);
        let mut shots = |now| {
            triggers.activate(Some(shot), now);
            triggers.starting(now)
        };
        assert_eq!(
            (shots(Time::from_us(1)), shots(Time::from_us(2)), shots(Time::from_us(3))),
            (vec![1], vec![0], vec![])
        );
    }
}
