//! GOAL schedules (specification 14.5): sends, receives and computations of ranks, and their dependencies.
//!
//! Its flows are between ranks. A send is a flow; it starts when all that it requires is done, and is done when it is acknowledged. A
//! receive is done when all that it requires is done and its message has arrived: the k-th receive of the file from a rank
//! with a tag takes the k-th send of the file to it. A computation occupies its processor (`cpu`); sends and receives take no
//! time there. The simulated network replaces LogGOPS's L, g and G; o is zero and S has no meaning. Schedules that could
//! never complete are refused.

use super::{
    Source, goal_binary,
    goal_job::Graph,
    goal_ops::{Edge, Op, OperationKind, Rank},
    goal_text,
};
use crate::{
    Flow, Start, Trigger, TriggerId, TriggerKind, WorkloadError,
    flow::plain,
    jobs::job::{Barrier, GroupedJob},
    traffic::Traffic,
};
use anabranch_units::Time;

/// Maximum number of operations, so that their triggers can be numbered.
const MAX_OPERATIONS: usize = 1 << 28;

pub(super) fn read(source: &Source<'_>) -> Result<Traffic, WorkloadError> {
    let binary = goal_binary::is_one(source.content);
    let ranks = if binary { goal_binary::read(source)? } else { goal_text::read(source)? };
    let number = ranks.len() as u32;
    let other_nic = (0..).zip(&ranks).find_map(|(rank, of)| Some((rank, of.other_nic?)));
    let mut traffic = Schedule::new(source, binary, ranks)?.compile(number)?;
    traffic.notes.extend(other_nic.map(|(rank, (at, nic)): (u32, _)| {
        let place = if binary { format!("operation {at} of rank {rank}") } else { format!("line {at}") };
        let path = source.path;
        format!("{path}: {place}: `nic` {nic} has no effect: a host has one NIC, which sends the messages of all of the rank's NICs")
    }));
    Ok(traffic)
}

/// Operations count through all ranks.
struct Schedule<'a> {
    source: &'a Source<'a>,
    binary: bool,
    ops: Vec<Op>,
    rank_of: Vec<u32>,
    edges: Vec<Edge>,
    /// First edge of each operation as a cause; one more entry follows the last.
    first_edge: Vec<u32>,
    /// The other side of each operation's message, or the operation itself.
    partner: Vec<u32>,
}

impl<'a> Schedule<'a> {
    fn new(source: &'a Source<'a>, binary: bool, ranks: Vec<Rank>) -> Result<Self, WorkloadError> {
        let total: usize = ranks.iter().map(|rank| rank.ops.len()).sum();
        let waits: usize = ranks.iter().map(|rank| rank.edges.len()).sum();
        if total > MAX_OPERATIONS || waits > MAX_OPERATIONS {
            let found = format!("{total} operations and {waits} `requires`");
            return Err(WorkloadError::new(format!(
                "found {found} in {}, at most {MAX_OPERATIONS} each fit",
                source.path
            )));
        }
        let (mut ops, mut rank_of) = (Vec::with_capacity(total), Vec::with_capacity(total));
        let mut edges = Vec::with_capacity(waits);
        for (number, rank) in (0..).zip(ranks) {
            let first = ops.len() as u32;
            let beyond = |edge: &Edge| Edge { cause: first + edge.cause, waiter: first + edge.waiter, ..*edge };
            edges.extend(rank.edges.iter().map(beyond));
            rank_of.resize(ops.len() + rank.ops.len(), number);
            ops.extend(rank.ops);
        }
        edges.sort_unstable();
        let mut first_edge = vec![0; ops.len() + 1];
        edges.iter().for_each(|edge| first_edge[edge.cause as usize + 1] += 1);
        (1..first_edge.len()).for_each(|op| first_edge[op] += first_edge[op - 1]);
        let partner = (0..ops.len() as u32).collect();
        Ok(Schedule { source, binary, ops, rank_of, edges, first_edge, partner })
    }

    fn waiting(&self, op: u32) -> &[Edge] {
        &self.edges[self.first_edge[op as usize] as usize..self.first_edge[op as usize + 1] as usize]
    }

    fn place(&self, op: u32) -> String {
        let (at, rank) = (self.ops[op as usize].at, self.rank_of[op as usize]);
        if self.binary {
            format!("{}: rank {rank}, operation {at}", self.source.path)
        } else {
            format!("{}:{at}", self.source.path)
        }
    }

    /// Returns the place for the middle of a message.
    fn named(&self, op: u32) -> String {
        let (at, rank) = (self.ops[op as usize].at, self.rank_of[op as usize]);
        if self.binary { format!("operation {at} of rank {rank}") } else { format!("line {at}") }
    }

    fn wrong(&self, op: u32, message: String) -> WorkloadError {
        WorkloadError { place: Some(self.place(op)), ..WorkloadError::new(message) }
    }

    /// Returns the flows of a job of one group, whose ranks are the hosts.
    fn compile(mut self, ranks: u32) -> Result<Traffic, WorkloadError> {
        self.pair()?;
        let order = self.order()?;
        if !self.ops.iter().any(|op| matches!(op.what, OperationKind::Send { .. })) {
            let message = format!("{} sends nothing, expected one `send` at least", self.source.path);
            return Err(WorkloadError::new(message));
        }
        let needed = self.needed(&order);
        let waits = self.waits(&order, &needed);
        let graph = Graph {
            ops: &self.ops,
            rank_of: &self.rank_of,
            edges: &self.edges,
            partner: &self.partner,
            needed: &needed,
            order: &order,
        };
        let job = GroupedJob {
            workload: 0,
            first: 0,
            groups: 1,
            ranks,
            repetitions: 1,
            concurrent: 1,
            start: Time::ZERO,
            gap: Time::ZERO,
            compute: Time::ZERO,
            barrier: Barrier::Rank,
            hosts: (0..ranks).collect(),
            schedules: vec![graph.schedule()],
            collective: None,
        };
        Ok(Traffic { grouped: Some(job), ..Builder::new(&self, needed, waits).build() })
    }

    fn pair(&mut self) -> Result<(), WorkloadError> {
        // (source, destination, tag, operation): the k-th of each side belong together.
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (number, (op, &rank)) in (0..).zip(self.ops.iter().zip(&self.rank_of)) {
            match op.what {
                OperationKind::Send { to, tag, .. } => sends.push((rank, to, tag, number)),
                OperationKind::Receive { from, tag, .. } => receives.push((from, rank, tag, number)),
                OperationKind::Calc { .. } => {}
            }
        }
        sends.sort_unstable();
        receives.sort_unstable();
        let channel = |&(src, dst, tag, _): &(u32, u32, u32, u32)| (src, dst, tag);
        let (mut sent, mut received) = (sends.iter().peekable(), receives.iter().peekable());
        loop {
            let (send, receive) = match (sent.peek(), received.peek()) {
                (None, None) => return Ok(()),
                (Some(send), Some(receive)) if channel(send) == channel(receive) => (send.3, receive.3),
                (Some(send), None) => return Err(self.alone(**send, &sends, &receives)),
                (None, Some(receive)) => return Err(self.alone(**receive, &sends, &receives)),
                (Some(send), Some(receive)) => {
                    let first = if channel(send) < channel(receive) { **send } else { **receive };
                    return Err(self.alone(first, &sends, &receives));
                }
            };
            if let (OperationKind::Send { bytes, .. }, OperationKind::Receive { from, bytes: expected, tag }) =
                (self.ops[send as usize].what, self.ops[receive as usize].what)
                && bytes != expected
            {
                let message = format!("receives {expected} B from rank {from} with tag {tag}");
                let meets = format!("the send that it meets ({}) has {bytes} B", self.named(send));
                return Err(self.wrong(receive, format!("{message}, and {meets}: sizes must be the same")));
            }
            (self.partner[send as usize], self.partner[receive as usize]) = (receive, send);
            sent.next();
            received.next();
        }
    }

    fn alone(
        &self,
        (src, dst, tag, op): (u32, u32, u32, u32),
        sends: &[(u32, u32, u32, u32)],
        receives: &[(u32, u32, u32, u32)],
    ) -> WorkloadError {
        let count = |list: &[(u32, u32, u32, u32)]| {
            let after = |last: u32| list.partition_point(|&(a, b, c, d)| (a, b, c, d) < (src, dst, tag, last));
            after(u32::MAX) - after(0)
        };
        let (sends, receives) = (count(sends), count(receives));
        let problem = match self.ops[op as usize].what {
            OperationKind::Send { .. } => "this send has no receive",
            _ => "this receive has no send",
        };
        let counts = format!("rank {src} sends {sends} to rank {dst} with tag {tag}, which receives {receives}");
        self.wrong(op, format!("{problem}: {counts}"))
    }

    fn order(&self) -> Result<Vec<u32>, WorkloadError> {
        // Two nodes per operation: 2 * op is its start, 2 * op + 1 its completion.
        let is = |op: u32, send: bool| match self.ops[op as usize].what {
            OperationKind::Send { .. } => send,
            OperationKind::Receive { .. } => !send,
            OperationKind::Calc { .. } => false,
        };
        let mut open = vec![0u32; 2 * self.ops.len()];
        for op in 0..self.ops.len() as u32 {
            open[2 * op as usize + 1] = 1 + u32::from(is(op, false));
        }
        self.edges.iter().for_each(|edge| open[2 * edge.waiter as usize] += 1);
        let mut ready: Vec<u32> = (0..open.len() as u32).rev().filter(|&node| open[node as usize] == 0).collect();
        let mut order = Vec::with_capacity(self.ops.len());
        let mut seen = 0;
        while let Some(node) = ready.pop() {
            seen += 1;
            let (op, start) = (node / 2, node % 2 == 0);
            let mut release = |node: u32| {
                open[node as usize] -= 1;
                if open[node as usize] == 0 {
                    ready.push(node);
                }
            };
            if start {
                order.push(op);
                release(node + 1);
                if is(op, true) {
                    release(2 * self.partner[op as usize] + 1);
                }
            }
            self.waiting(op).iter().filter(|edge| edge.of_start == start).for_each(|edge| release(2 * edge.waiter));
        }
        if seen == open.len() { Ok(order) } else { Err(self.circle(&open)) }
    }

    fn circle(&self, open: &[u32]) -> WorkloadError {
        // One open cause of each open node; following them reaches a circle.
        let mut cause = vec![u32::MAX; open.len()];
        let mut note = |of: u32, by: u32| {
            if open[of as usize] > 0 && open[by as usize] > 0 {
                cause[of as usize] = by;
            }
        };
        for op in 0..self.ops.len() as u32 {
            note(2 * op + 1, 2 * op);
            if matches!(self.ops[op as usize].what, OperationKind::Receive { .. }) {
                note(2 * op + 1, 2 * self.partner[op as usize]);
            }
        }
        self.edges.iter().for_each(|edge| note(2 * edge.waiter, 2 * edge.cause + u32::from(!edge.of_start)));
        let mut node = open.iter().position(|&open| open > 0).unwrap_or_default() as u32;
        for _ in 0..open.len() {
            node = cause[node as usize];
        }
        let (first, mut ops) = (node, vec![node / 2]);
        loop {
            node = cause[node as usize];
            if node == first {
                break;
            }
            if ops.last() != Some(&(node / 2)) {
                ops.push(node / 2);
            }
        }
        if ops.len() > 1 && ops.first() == ops.last() {
            ops.pop();
        }
        // Begin with the first of the file.
        let least = (0..ops.len()).min_by_key(|&at| ops[at]).unwrap_or_default();
        ops.rotate_left(least);
        let mut names: Vec<String> = ops.iter().skip(1).take(8).map(|&op| self.named(op)).collect();
        if ops.len() > 9 {
            names.push(format!("{} more", ops.len() - 9));
        }
        names.push(self.named(ops[0]));
        let chain = names.join(", that for ");
        self.wrong(ops[0], format!("operations wait in a circle: {} waits for {chain}", self.named(ops[0])))
    }

    /// A receive without dependents is not needed.
    fn needed(&self, order: &[u32]) -> Vec<bool> {
        let mut needed: Vec<bool> =
            self.ops.iter().map(|op| !matches!(op.what, OperationKind::Receive { .. })).collect();
        for &op in order.iter().rev() {
            needed[op as usize] |= self.waiting(op).iter().any(|edge| needed[edge.waiter as usize]);
        }
        needed
    }

    /// Returns the number of activations that each needed operation waits for. A send or receive without dependencies starts
    /// with the workload, so no operation waits for its start.
    fn waits(&self, order: &[u32], needed: &[bool]) -> Vec<u32> {
        let mut waits = vec![0; self.ops.len()];
        for &op in order.iter().filter(|&&op| needed[op as usize]) {
            let at_once = waits[op as usize] == 0 && !matches!(self.ops[op as usize].what, OperationKind::Calc { .. });
            let counts = |edge: &&Edge| needed[edge.waiter as usize] && !(edge.of_start && at_once);
            self.waiting(op).iter().filter(counts).for_each(|edge| waits[edge.waiter as usize] += 1);
        }
        waits
    }
}

struct Builder<'a> {
    schedule: &'a Schedule<'a>,
    needed: Vec<bool>,
    waits: Vec<u32>,
    /// Trigger of each operation with dependencies, activated by them.
    entry: Vec<Option<TriggerId>>,
    traffic: Traffic,
}

impl<'a> Builder<'a> {
    fn new(schedule: &'a Schedule<'a>, needed: Vec<bool>, waits: Vec<u32>) -> Self {
        let mut traffic = Traffic::default();
        let mut entry = vec![None; schedule.ops.len()];
        for (op, entry) in entry.iter_mut().enumerate().filter(|(op, _)| needed[*op]) {
            let rank = schedule.rank_of[op];
            let trigger = match (schedule.ops[op].what, waits[op]) {
                (OperationKind::Calc { delay, cpu }, 0) => {
                    Trigger { at: Some(Time::ZERO), delay, cpu: Some(cpu), ..after(1, rank) }
                }
                (OperationKind::Calc { delay, cpu }, waits) => Trigger { delay, cpu: Some(cpu), ..after(waits, rank) },
                (_, 0) => continue,
                (_, waits) => after(waits, rank),
            };
            *entry = Some(push(&mut traffic.triggers, trigger));
        }
        Builder { schedule, needed, waits, entry, traffic }
    }

    fn waiting(&self, op: u32, start: bool) -> Vec<TriggerId> {
        let waits = |edge: &&Edge| edge.of_start == start && self.needed[edge.waiter as usize];
        let edges = self.schedule.waiting(op).iter().filter(waits);
        edges.filter_map(|edge| self.entry[edge.waiter as usize]).collect()
    }

    fn one(&mut self, mut list: Vec<TriggerId>, rank: u32) -> Option<TriggerId> {
        match list.len() {
            0 | 1 => list.pop(),
            _ => Some(push(&mut self.traffic.triggers, Trigger { next: list, ..after(1, rank) })),
        }
    }

    fn build(mut self) -> Traffic {
        let schedule = self.schedule;
        // Trigger that the arrival of a message activates, by receive.
        let mut arrived = vec![None; schedule.ops.len()];
        for op in 0..schedule.ops.len() as u32 {
            let (number, rank) = (op as usize, schedule.rank_of[op as usize]);
            if !self.needed[number] {
                continue;
            }
            let waits = self.waits[number];
            let is_calc = matches!(schedule.ops[number].what, OperationKind::Calc { .. });
            let on_start = if waits == 0 && !is_calc { vec![] } else { self.waiting(op, true) };
            match (schedule.ops[number].what, self.entry[number]) {
                (OperationKind::Calc { .. }, Some(TriggerId(own))) => {
                    let next = self.waiting(op, false);
                    let trigger = &mut self.traffic.triggers[own as usize];
                    (trigger.begun, trigger.next) = (on_start, next);
                }
                (OperationKind::Send { .. }, Some(TriggerId(own))) => {
                    self.traffic.triggers[own as usize].next = on_start
                }
                (OperationKind::Receive { .. }, None) => {
                    let next = self.waiting(op, false);
                    arrived[number] = self.one(next, rank);
                }
                // Its dependencies and the message, combined.
                (OperationKind::Receive { .. }, Some(own)) if on_start.is_empty() => {
                    let next = self.waiting(op, false);
                    self.traffic.triggers[own.0 as usize] = Trigger { next, ..after(waits + 1, rank) };
                    arrived[number] = Some(own);
                }
                (OperationKind::Receive { .. }, Some(own)) => {
                    let next = self.waiting(op, false);
                    let done = push(&mut self.traffic.triggers, Trigger { next, ..after(2, rank) });
                    let mut begun = on_start;
                    begun.push(done);
                    self.traffic.triggers[own.0 as usize].next = begun;
                    arrived[number] = Some(done);
                }
                (OperationKind::Send { .. } | OperationKind::Calc { .. }, None) => {}
            }
        }
        for op in 0..schedule.ops.len() as u32 {
            let OperationKind::Send { to, bytes, .. } = schedule.ops[op as usize].what else { continue };
            let rank = schedule.rank_of[op as usize];
            let start = match self.entry[op as usize] {
                None => Start::At(Time::ZERO),
                Some(own) => {
                    self.traffic.triggers[own.0 as usize].targets.push(self.traffic.flows.len() as u32);
                    Start::On(own)
                }
            };
            let done = self.waiting(op, false);
            let on_sent = self.one(done, rank);
            let on_received = arrived[schedule.partner[op as usize] as usize];
            // A flow has at least one byte.
            let flow = plain(rank, to, bytes.max(1), start);
            self.traffic.flows.push(Flow { on_sent, on_received, ..flow });
        }
        self.traffic
    }
}

fn after(activations: u32, rank: u32) -> Trigger {
    let kind = if activations == 1 { TriggerKind::Oneshot } else { TriggerKind::Barrier(activations) };
    Trigger { home: Some(rank), ..Trigger::new(kind, vec![]) }
}

fn push(triggers: &mut Vec<Trigger>, trigger: Trigger) -> TriggerId {
    triggers.push(trigger);
    TriggerId(triggers.len() as u32 - 1)
}

#[cfg(test)]
#[path = "goal_tests.rs"]
mod tests;
