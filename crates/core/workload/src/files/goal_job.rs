//! A GOAL schedule as the work of a job, for the rows of its ranks and steps.

use super::goal_ops::{Edge, Op, OperationKind};
use crate::jobs::schedule::{Dependency, Schedule};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// Operations of all ranks, and what waits for what.
pub(super) struct Graph<'a> {
    pub(super) ops: &'a [Op],
    pub(super) rank_of: &'a [u32],
    pub(super) edges: &'a [Edge],
    /// The other side of each operation's message, or the operation itself.
    pub(super) partner: &'a [u32],
    /// Receives on which nothing depends are not needed.
    pub(super) needed: &'a [bool],
    /// The operations in an order in which each comes after those that it waits for.
    pub(super) order: &'a [u32],
}

/// Operations of the schedule that a receive is.
#[derive(Clone, Copy)]
enum Place {
    /// This one; a send or a computation.
    One(u32),
    /// It waits for nothing but its message.
    Message,
    /// Its start, where something waits for it, and its end.
    Receive(Option<u32>, u32),
    /// Nothing depends on it.
    None,
}

/// Edges of each operation that waits.
struct Causes {
    edges: Vec<u32>,
    first: Vec<u32>,
}

impl Causes {
    fn new(graph: &Graph<'_>) -> Self {
        let mut first = vec![0u32; graph.ops.len() + 1];
        graph.edges.iter().for_each(|edge| first[edge.waiter as usize + 1] += 1);
        (1..first.len()).for_each(|op| first[op] += first[op - 1]);
        let (mut next, mut edges) = (first.clone(), vec![0u32; graph.edges.len()]);
        for (number, edge) in (0..).zip(graph.edges) {
            let place = &mut next[edge.waiter as usize];
            edges[*place as usize] = number;
            *place += 1;
        }
        Causes { edges, first }
    }

    fn of<'a>(&'a self, graph: &'a Graph<'_>, op: u32) -> impl Iterator<Item = Edge> + 'a {
        let own = &self.edges[self.first[op as usize] as usize..self.first[op as usize + 1] as usize];
        own.iter().map(|edge| graph.edges[*edge as usize])
    }
}

impl Graph<'_> {
    fn kind(&self, op: u32) -> OperationKind {
        self.ops[op as usize].what
    }

    /// Returns the step of each operation: the messages of the longest chain before its start.
    fn steps(&self, causes: &Causes) -> Vec<u32> {
        let mut steps = vec![0u32; self.ops.len()];
        for &op in self.order {
            let after = |edge: Edge| {
                let started = steps[edge.cause as usize];
                match self.kind(edge.cause) {
                    _ if edge.of_start => started,
                    OperationKind::Calc { .. } => started,
                    OperationKind::Send { .. } => started + 1,
                    OperationKind::Receive { .. } => started.max(steps[self.partner[edge.cause as usize] as usize] + 1),
                }
            };
            steps[op as usize] = causes.of(self, op).map(after).max().unwrap_or(0);
        }
        steps
    }

    /// Numbers the operations of the schedule, in the order of the file.
    fn places(&self, causes: &Causes) -> Vec<Place> {
        let mut waited_start = vec![false; self.ops.len()];
        self.edges.iter().filter(|edge| edge.of_start).for_each(|edge| waited_start[edge.cause as usize] = true);
        let mut next = 0;
        let mut number = || {
            next += 1;
            next - 1
        };
        let place = |op: u32| match self.kind(op) {
            OperationKind::Send { .. } | OperationKind::Calc { .. } => Place::One(number()),
            _ if !self.needed[op as usize] => Place::None,
            _ if causes.of(self, op).next().is_none() => Place::Message,
            _ => {
                let start = waited_start[op as usize].then(&mut number);
                Place::Receive(start, number())
            }
        };
        (0..self.ops.len() as u32).map(place).collect()
    }

    /// Returns the schedule. Its messages are the sends, in the order of the file.
    pub(super) fn schedule(&self) -> Schedule {
        let causes = Causes::new(self);
        let (steps, places) = (self.steps(&causes), self.places(&causes));
        let sender = |receive: u32| match places[self.partner[receive as usize] as usize] {
            Place::One(send) => Dependency::received(send),
            _ => unreachable!("the partner of a receive is a send"),
        };
        // What a waiter of the edge waits for; nothing, if that starts with the workload.
        let on = |edge: Edge| match (places[edge.cause as usize], self.kind(edge.cause), edge.of_start) {
            (Place::One(op), _, true) => Some(Dependency::started(op)),
            (Place::One(op), OperationKind::Send { .. }, false) => Some(Dependency::acknowledged(op)),
            (Place::One(op), _, false) => Some(Dependency::computed(op)),
            (Place::Receive(Some(start), _), _, true) => Some(Dependency::computed(start)),
            (Place::Receive(_, end), _, false) => Some(Dependency::computed(end)),
            (Place::Message, _, false) => Some(sender(edge.cause)),
            (Place::Message | Place::None | Place::Receive(None, _), ..) => None,
        };
        let mut schedule = Schedule::default();
        schedule.is_unordered = true;
        let mut busy: BTreeMap<(u32, u8), Time> = BTreeMap::new();
        let at_once = (Time::ZERO, None);
        for op in 0..self.ops.len() as u32 {
            let (rank, step) = (self.rank_of[op as usize], steps[op as usize]);
            let mut after: Vec<Dependency> = causes.of(self, op).filter_map(on).collect();
            match (self.kind(op), places[op as usize]) {
                (OperationKind::Send { to, bytes, .. }, _) => {
                    schedule.send(rank, to, bytes.max(1), step, &after);
                }
                (OperationKind::Calc { delay, cpu }, _) => {
                    schedule.compute_on(rank, (delay, Some(cpu)), step, &after);
                    let of = busy.entry((rank, cpu)).or_default();
                    *of = of.saturating_add(delay);
                }
                (_, Place::Receive(start, _)) => {
                    if start.is_some() {
                        after = vec![Dependency::computed(schedule.compute_on(rank, at_once, step, &after))];
                    }
                    after.push(sender(op));
                    schedule.compute_on(rank, at_once, step, &after);
                }
                _ => {}
            }
        }
        let ranks = self.rank_of.last().map_or(0, |last| last + 1);
        let mut computations = vec![Time::ZERO; ranks as usize];
        for ((rank, _), time) in busy {
            let of = &mut computations[rank as usize];
            *of = time.max(*of);
        }
        schedule.compute = computations;
        schedule
    }
}
