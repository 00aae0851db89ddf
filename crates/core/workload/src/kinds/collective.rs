//! Collectives as messages with triggers (specification 12.5): a rank's next message starts when it has received the message
//! of the step before, or when that one is acknowledged.

mod algorithm;

pub use algorithm::Algorithm;

use super::{
    WorkloadKind,
    all_to_all::{AllToAllParameters, Order, Placement, placed},
    ranks::Ranks,
};
use crate::{
    CollectiveInfo, Start, Trigger, TriggerId, TriggerKind, WorkloadError, flow::plain, traffic::Traffic, view::Context,
};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "collective",
    summary: "AllReduce, all-gather, reduce-scatter or all-to-all, message by message",
    source: "specification 12.5; Spritz §V-B",
    description: "`size` is the vector of a rank. Rings send S/n to the next rank in every step: 2(n-1) steps for \
        ring-allreduce, n-1 for ring-all-gather and ring-reduce-scatter. recursive-doubling exchanges S with the ranks \
        at distance 1, 2, 4, ...; halving-doubling S/2, S/4, ... and back. A rank's message of a step waits for the one \
        it receives in the step before. all-to-all sends S/n to every other rank, with a window.",
};

choices! {
    /// Event that completes a message, so that the next one may start.
    pub enum TriggeredBy {
        /// Its receiver has it.
        Received = "received",
        /// Its sender has the last acknowledgement.
        Acknowledged = "acknowledged",
    }
}

parameters! {
    /// A collective.
    pub struct CollectiveParameters {
        /// The schedule of messages ("ring" is short for "ring-allreduce").
        algorithm: Algorithm = Algorithm::RingAllreduce, source "specification 12.5; Spritz §V-B";
        /// Bytes of the vector of every rank.
        size: Bytes = Bytes(64 << 20), source "ours";
        /// Bytes of every message instead; auto: derived from `size`, rounded up.
        message_size: Auto<Bytes> = Auto::Auto, source "ours; Spritz: 4 MiB";
        /// Number of participating hosts.
        ranks: Ranks = Ranks::All, source "ours; Spritz: 128";
        /// Placement of ranks on hosts.
        placement: Placement = Placement::Packed, source "ours; Spritz: random";
        /// Steps in sequence; auto: those of the algorithm. More steps repeat it.
        steps: Auto<u32> = Auto::Auto, source "specification 12.5; Spritz's files: 255 for a ring of 128";
        /// Event that the next message waits for; auto: received, in an all-to-all acknowledged.
        trigger: Auto<TriggeredBy> = Auto::Auto, source "specification 12.5; Spritz's files: acknowledged for the ring";
        /// Parallel copies of the schedule, each with its share of the vector.
        channels: u32 = 1, source "ours";
        /// All-to-all: maximum outstanding messages of a rank; 0: unlimited.
        parallel: u32 = 0, source "ours; Spritz: 4";
        /// All-to-all: order in which a rank serves the others.
        order: Order = Order::Shifted, source "specification 12.5; Spritz's files: random";
        /// Start time of the first messages.
        start: Time = Time::ZERO, source "ours";
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB";
    }
}

impl CollectiveParameters {
    fn check_ranks(&self, ranks: u32, hosts: Option<u32>) -> Result<(), WorkloadError> {
        if !self.algorithm.needs_a_power_of_two() || ranks.is_power_of_two() {
            return Ok(());
        }
        let below = 1u64 << ranks.ilog2();
        let near = match hosts {
            Some(hosts) if 2 * below > u64::from(hosts) => format!("{below}"),
            _ => format!("{below} or {}", 2 * below),
        };
        let (algorithm, found) = (self.algorithm.word(), if hosts.is_some() { "all, " } else { "" });
        let message = format!("found {found}{ranks}, expected a power of two for {algorithm}, such as {near}");
        Err(WorkloadError::of_key("ranks", message))
    }

    /// Refuses a parameter that has no effect with the algorithm.
    fn check_effects(&self) -> Result<(), WorkloadError> {
        let all_to_all = self.algorithm == Algorithm::AllToAll;
        let unused = [
            ("steps", all_to_all && self.steps != Auto::Auto, "auto"),
            ("channels", all_to_all && self.channels != 1, "1"),
            ("parallel", !all_to_all && self.parallel != 0, "0"),
            ("order", !all_to_all && self.order != Order::Shifted, "\"shifted\""),
        ];
        match unused.into_iter().find(|(_, set, _)| *set) {
            Some((key, _, expected)) => {
                let message = format!("has no effect with {}, expected {expected}", self.algorithm.word());
                Err(WorkloadError::of_key(key, message))
            }
            None => Ok(()),
        }
    }

    fn message(&self, ranks: u32, step: u32) -> u64 {
        match self.message_size {
            Auto::Value(size) => size.0,
            Auto::Auto => self.algorithm.message(ranks, step, self.size.0).div_ceil(u64::from(self.channels)),
        }
    }

    fn all_to_all(&self, context: &Context<'_>, ranks: u32) -> Result<Traffic, WorkloadError> {
        let messages = AllToAllParameters {
            size: Bytes(self.message(ranks, 0)),
            ranks: Ranks::Number(ranks),
            parallel: self.parallel,
            order: self.order,
            placement: self.placement,
            start: self.start,
            max_flows: self.max_flows,
        };
        let mut traffic = messages.generate(context)?;
        if self.trigger == Auto::Value(TriggeredBy::Received) {
            traffic.flows.iter_mut().for_each(|flow| flow.on_received = flow.on_sent.take());
        }
        Ok(traffic)
    }
}

impl WorkloadKind for CollectiveParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        if let Auto::Value(size) = self.message_size {
            WorkloadError::unless(size.0 > 0, "message_size", size, "1B or more, or \"auto\"")?;
        }
        if let Auto::Value(steps) = self.steps {
            WorkloadError::unless(steps > 0, "steps", steps, "1 or more, or \"auto\"")?;
        }
        WorkloadError::unless(self.channels > 0, "channels", self.channels, "1 or more")?;
        self.check_effects()?;
        match self.ranks {
            Ranks::Number(ranks) => {
                WorkloadError::unless(ranks >= 2, "ranks", ranks, "2 or more")?;
                self.check_ranks(ranks, None)
            }
            Ranks::All => Ok(()),
        }
    }

    fn is_job(&self) -> bool {
        true
    }

    fn collective(&self, hosts: u32) -> Option<CollectiveInfo> {
        let ranks = self.ranks.number(hosts);
        let whole = self.algorithm.steps(ranks);
        let rounds = match self.steps {
            Auto::Auto => Some(1),
            Auto::Value(steps) => steps.is_multiple_of(whole).then(|| steps / whole),
        };
        let bytes = match self.message_size {
            Auto::Auto => Some(self.size.0),
            Auto::Value(message) => self.algorithm.buffer(ranks, message.0.saturating_mul(u64::from(self.channels))),
        };
        let bus_factor = self.algorithm.bus_factor(ranks);
        Some(CollectiveInfo { name: self.algorithm.word(), ranks, bytes, rounds, bus_factor })
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let (ranks, host_of) = placed(self.ranks, self.placement, context)?;
        self.check_ranks(ranks, Some(context.view.hosts))?;
        if self.algorithm == Algorithm::AllToAll {
            return self.all_to_all(context, ranks);
        }
        let steps = match self.steps {
            Auto::Value(steps) => steps,
            Auto::Auto => self.algorithm.steps(ranks),
        };
        let flows = u128::from(ranks) * u128::from(steps) * u128::from(self.channels);
        context.check_room(flows, self.max_flows.min(u64::from(u32::MAX)), "ranks")?;
        // Flows by channel, step and rank; a oneshot trigger for every flow but those of the first steps.
        let mut traffic = Traffic::default();
        traffic.flows.reserve(flows as usize);
        for channel in 0..self.channels {
            let trigger = |step, rank| TriggerId((channel * (steps - 1) + step - 1) * ranks + rank);
            for step in 0..steps {
                let size = self.message(ranks, step);
                for rank in 0..ranks {
                    let start = if step == 0 { Start::At(self.start) } else { Start::On(trigger(step, rank)) };
                    if step > 0 {
                        let targets = vec![traffic.flows.len() as u32];
                        traffic.triggers.push(Trigger::new(TriggerKind::Oneshot, targets));
                    }
                    let receiver = self.algorithm.receiver(ranks, step, rank);
                    let mut flow = plain(host_of[rank as usize], host_of[receiver as usize], size, start);
                    // The receiver's own message of the next step waits for this one.
                    let next = (step + 1 < steps).then(|| trigger(step + 1, receiver));
                    match self.trigger {
                        Auto::Value(TriggeredBy::Acknowledged) => flow.on_sent = next,
                        _ => flow.on_received = next,
                    }
                    traffic.flows.push(flow);
                }
            }
        }
        Ok(traffic)
    }
}

#[cfg(test)]
#[path = "collective/tests.rs"]
mod tests;
