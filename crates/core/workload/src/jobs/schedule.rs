//! The dependency graph of one repetition of a job.

use anabranch_units::Time;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Send {
        /// Receiving rank.
        to: u32,
        /// Payload bytes.
        bytes: u64,
    },
    Compute {
        time: Time,
        /// Processor of the rank that it occupies, in the order in which its computations become ready; `None`: none.
        cpu: Option<u8>,
    },
}

/// Event that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The receiver of a message has its last byte.
    Received,
    /// The sender of a message has the last acknowledgement.
    Acknowledged,
    Computed,
    /// A message or a computation has started. Only in schedules that are not in order.
    Started,
}

/// Event that an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub operation: u32,
    pub done: Done,
}

impl Dependency {
    pub(crate) fn received(operation: u32) -> Self {
        Dependency { operation, done: Done::Received }
    }
    pub(crate) fn acknowledged(operation: u32) -> Self {
        Dependency { operation, done: Done::Acknowledged }
    }
    pub(crate) fn computed(operation: u32) -> Self {
        Dependency { operation, done: Done::Computed }
    }
    pub(crate) fn started(operation: u32) -> Self {
        Dependency { operation, done: Done::Started }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Sending or computing rank.
    pub rank: u32,
    /// Step of the schedule, from 0.
    pub step: u32,
    pub work: Work,
    /// Number of dependencies up to and with this operation.
    dependencies: u32,
}

/// Limit on the outstanding messages of each rank that wait for no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageWindow {
    /// Maximum outstanding messages, at least 1.
    pub messages: u32,
    /// Event after which a message is no longer outstanding.
    pub done: Done,
}

/// One repetition of a job: operations, each after those that it waits for, or in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    operations: Vec<Operation>,
    dependencies: Vec<Dependency>,
    /// Operation of each message, where some operations are computations; else empty.
    messages: Vec<u32>,
    number_of_messages: u32,
    /// Computation of each rank that computes within the schedule.
    pub(crate) compute: Vec<Time>,
    pub(crate) window: Option<MessageWindow>,
    /// First message of each channel but the first.
    channels: Vec<u32>,
    /// Operations may come before those that they wait for.
    pub(crate) is_unordered: bool,
}

impl Schedule {
    /// Begins a channel: the messages that follow use connections of their own.
    pub(crate) fn begin_channel(&mut self) {
        self.channels.push(self.number_of_messages);
    }

    /// Returns the first message of each message's connection: of the same sender, receiver and channel.
    pub(crate) fn connections(&self) -> Vec<u32> {
        let mut first = HashMap::new();
        let connection = |message| {
            let Operation { rank, work: Work::Send { to, .. }, .. } = *self.message(message) else { return message };
            let channel = self.channels.partition_point(|&begin| begin <= message);
            *first.entry((rank, to, channel)).or_insert(message)
        };
        (0..self.number_of_messages).map(connection).collect()
    }

    /// Appends a message and returns its operation.
    pub(crate) fn send(&mut self, rank: u32, to: u32, bytes: u64, step: u32, after: &[Dependency]) -> u32 {
        let number = self.push(rank, step, Work::Send { to, bytes }, after);
        if self.number_of_messages != number {
            if self.messages.is_empty() {
                self.messages = (0..self.number_of_messages).collect();
            }
            self.messages.push(number);
        }
        self.number_of_messages += 1;
        number
    }

    /// Appends a computation and returns its operation.
    pub(crate) fn compute(&mut self, rank: u32, time: Time, step: u32, after: &[Dependency]) -> u32 {
        if self.compute.len() <= rank as usize {
            self.compute.resize(rank as usize + 1, Time::ZERO);
        }
        let of_rank = &mut self.compute[rank as usize];
        *of_rank = of_rank.saturating_add(time);
        self.compute_on(rank, (time, None), step, after)
    }

    /// Appends a computation on a processor, which [`Schedule::computation`] does not include, and returns its operation.
    pub(crate) fn compute_on(
        &mut self,
        rank: u32,
        (time, cpu): (Time, Option<u8>),
        step: u32,
        after: &[Dependency],
    ) -> u32 {
        if self.messages.is_empty() {
            self.messages = (0..self.number_of_messages).collect();
        }
        self.push(rank, step, Work::Compute { time, cpu }, after)
    }

    fn push(&mut self, rank: u32, step: u32, work: Work, after: &[Dependency]) -> u32 {
        let number = self.operations.len() as u32;
        let is_before = |on: &Dependency| on.operation < number && on.done != Done::Started;
        debug_assert!(self.is_unordered || after.iter().all(is_before), "{after:?} are not before {number}");
        self.dependencies.extend_from_slice(after);
        self.operations.push(Operation { rank, step, work, dependencies: self.dependencies.len() as u32 });
        number
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns the events that operation `number` waits for.
    pub fn after(&self, number: usize) -> &[Dependency] {
        let from = number.checked_sub(1).map_or(0, |before| self.operations[before].dependencies);
        &self.dependencies[from as usize..self.operations[number].dependencies as usize]
    }

    /// Returns the number of steps: that of the last one and one.
    pub fn steps(&self) -> u32 {
        let of_message = |number| self.message(number).step + 1;
        (0..self.number_of_messages).map(of_message).max().unwrap_or(0)
    }

    /// Returns the limit on outstanding messages.
    pub fn window(&self) -> Option<MessageWindow> {
        self.window
    }

    pub fn messages(&self) -> u32 {
        self.number_of_messages
    }

    pub fn message(&self, number: u32) -> &Operation {
        let at = self.messages.get(number as usize).copied().unwrap_or(number);
        &self.operations[at as usize]
    }

    pub(crate) fn operation_of(&self, message: u32) -> u32 {
        self.messages.get(message as usize).copied().unwrap_or(message)
    }

    /// Returns the message of an operation; `None`: it computes.
    pub(crate) fn message_of(&self, operation: u32) -> Option<u32> {
        if self.messages.is_empty() {
            return Some(operation);
        }
        self.messages.binary_search(&operation).ok().map(|number| number as u32)
    }

    /// Returns the time that `rank` computes within the schedule.
    pub fn computation(&self, rank: u32) -> Time {
        self.compute.get(rank as usize).copied().unwrap_or(Time::ZERO)
    }

    /// Returns the rank at which the event of a dependency happens.
    pub(crate) fn place(&self, on: Dependency) -> u32 {
        let operation = &self.operations[on.operation as usize];
        match (on.done, operation.work) {
            (Done::Received, Work::Send { to, .. }) => to,
            _ => operation.rank,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_numbered_without_computations() {
        let mut schedule = Schedule::default();
        let first = schedule.send(0, 1, 10, 0, &[]);
        let compute = schedule.compute(1, Time::from_ns(5), 1, &[Dependency::received(first)]);
        let second = schedule.send(1, 0, 20, 2, &[Dependency::computed(compute)]);
        assert_eq!((first, compute, second, schedule.messages()), (0, 1, 2, 2));
        let steps: Vec<u32> = (0..2).map(|message| schedule.message(message).step).collect();
        assert_eq!(steps, [0, 2]);
        assert_eq!((schedule.computation(0), schedule.computation(1)), (Time::ZERO, Time::from_ns(5)));
        assert_eq!(schedule.after(2), [Dependency::computed(1)]);
        assert_eq!([schedule.place(schedule.after(1)[0]), schedule.place(Dependency::acknowledged(0))], [1, 0]);
    }
}
