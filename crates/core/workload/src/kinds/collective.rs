//! Collectives as messages with triggers (specification 12.5): a rank's next message starts when it has received the message
//! of the step before, or when that one is acknowledged.

mod pattern;
mod patterns;
mod trees;

pub use patterns::Algorithm;

use super::{
    WorkloadKind,
    all_to_all::Order,
    host_set::HostSet,
    placement::{Groups, Placed, Placement},
    ranks::Ranks,
};
use crate::{
    CollectiveInfo, WorkloadError,
    jobs::{
        compile::{compile, compile_alike},
        job::GroupedJob,
        schedule::Done,
    },
    traffic::Traffic,
    view::Context,
};
use anabranch_settings::{About, Auto, Parameters, choices, parameters};
use anabranch_units::{Bytes, Time};
use pattern::Group;

pub(crate) const ABOUT: About = About {
    name: "collective",
    summary: "AllReduce, all-gather, reduce-scatter, all-to-all or a pipeline, message by message, in groups",
    source: "specification 12.5; Spritz §V-B",
    description: "`size` is the vector of a rank. Rings send S/n to the next rank in every step: 2(n-1) steps for \
        ring-allreduce, n-1 for ring-all-gather and ring-reduce-scatter. recursive-doubling exchanges S with the ranks \
        at distance 1, 2, 4, ...; halving-doubling S/2, S/4, ... and back. A rank's message of a step waits for the one \
        it receives in the step before. all-to-all sends S/n to every other rank, with a window. tree and \
        double-binary-tree sum on the way to the root and send the result back. hierarchical reduces in the server, \
        across servers and in the server again. expert-all-to-all sends tokens to experts by their popularity, and back. \
        pipeline sends microbatches through all ranks, and back. Several groups of ranks run the same collective, each \
        `repetitions` times.",
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
        algorithm: Algorithm = Algorithm::default(), source "specification 12.5; Spritz §V-B";
        /// Bytes of the vector of every rank.
        size: Bytes = Bytes(64 << 20), source "ours";
        /// Bytes of every message instead; auto: derived from `size`, rounded up.
        message_size: Auto<Bytes> = Auto::Auto, source "ours; Spritz: 4 MiB", Expert;
        /// Number of groups, each of which runs the collective.
        groups: u32 = 1, source "ours";
        /// Number of participating hosts of a group; all: the hosts, divided among the groups that run at a time.
        ranks: Ranks = Ranks::All, source "ours; Spritz: 128";
        /// Hosts on which groups may run.
        hosts: HostSet = HostSet::All, source "ours";
        /// Groups that run at a time; when one ends, the next starts on its hosts. auto: all.
        concurrent: Auto<u32> = Auto::Auto, source "ours", Expert;
        /// Placement of ranks on hosts: packed (consecutive), random, strided (groups in turn), across-racks (the first hosts of
        /// all racks, then the second ones), rail (GPUs of one number in consecutive servers), or a file with the hosts of
        /// each group in a line.
        placement: Placement = Placement::Packed, source "ours; Spritz: random";
        /// Number of times that every group runs the collective.
        repetitions: u32 = 1, source "ours", Expert;
        /// Time between the end of a repetition and the begin of the next, per rank.
        gap: Time = Time::ZERO, source "ours", Expert;
        /// Computation of every rank at the begin of a repetition, before its first message.
        compute: Time = Time::ZERO, source "ours", Expert;
        /// Steps in sequence; auto: those of the algorithm. More steps repeat it.
        steps: Auto<u32> = Auto::Auto, source "specification 12.5; Spritz's files: 255 for a ring of 128", Expert;
        /// Event that the next message waits for; auto: received, in an all-to-all acknowledged.
        trigger: Auto<TriggeredBy> = Auto::Auto, source "specification 12.5; Spritz's files: acknowledged for the ring", Expert;
        /// Parallel copies of the schedule, each with its share of the vector.
        channels: u32 = 1, source "ours", Expert;
        /// Trees: chunks of the vector that follow each other, at most two outstanding per link; pipeline: microbatches. auto:
        /// 1 in trees, 8 in a pipeline.
        chunks: Auto<u32> = Auto::Auto, source "ours; GPipe (Huang et al. 2019): microbatches", Expert;
        /// Hierarchical: ranks of a group in one server; auto: those that [servers] and the placement put there.
        server_ranks: Auto<u32> = Auto::Auto, source "ours", Expert;
        /// Expert-all-to-all: Zipf exponent of the popularity of experts; 0: all are equally popular.
        skew: f64 = 0.0, source "ours", Expert;
        /// All-to-all: maximum outstanding messages of a rank; 0: unlimited.
        parallel: u32 = 0, source "ours; Spritz: 4";
        /// All-to-all: order in which a rank serves the others.
        order: Order = Order::Shifted, source "specification 12.5; Spritz's files: random", Expert;
        /// Start time of the first messages.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

impl CollectiveParameters {
    fn placement(&self) -> Groups<'_> {
        Groups {
            groups: self.groups,
            ranks: self.ranks,
            concurrent: self.concurrent,
            hosts: &self.hosts,
            placement: &self.placement,
        }
    }

    fn check_ranks(&self, ranks: u32, hosts: Option<u32>) -> Result<(), WorkloadError> {
        if !self.algorithm.pattern().needs_a_power_of_two || ranks.is_power_of_two() {
            return Ok(());
        }
        let below = 1u64 << ranks.ilog2();
        let near = match hosts {
            Some(hosts) if 2 * below > u64::from(hosts) => format!("{below}"),
            _ => format!("{below} or {}", 2 * below),
        };
        let (algorithm, found) = (self.algorithm.name(), if hosts.is_some() { "all, " } else { "" });
        let message = format!("found {found}{ranks}, expected a power of two for {algorithm}, such as {near}");
        Err(WorkloadError::of_key("ranks", message))
    }

    /// Refuses a key that only other patterns read.
    fn check_effects(&self) -> Result<(), WorkloadError> {
        let read = self.algorithm.pattern().keys;
        let others = Algorithm::each().flat_map(|one| one.pattern().keys).filter(|key| !read.contains(key));
        let (set, defaults) = (self.entries(), CollectiveParameters::default().entries());
        for key in others {
            if let Some((_, default)) = defaults.iter().find(|entry| entry.0 == *key && !set.contains(entry)) {
                let message = format!("has no effect with {}, expected {default}", self.algorithm.name());
                return Err(WorkloadError::of_key(key, message));
            }
        }
        Ok(())
    }

    /// Returns the ranks of a group in each server, which are consecutive.
    fn local_ranks(&self, placed: &Placed, context: &Context<'_>) -> Result<u32, WorkloadError> {
        let ranks = placed.ranks;
        let servers = context.view.servers.as_ref();
        let local = match (self.server_ranks, servers) {
            (Auto::Value(local), _) => local,
            (Auto::Auto, None) => 1,
            (Auto::Auto, Some(servers)) => {
                let first = servers.server_of(placed.hosts[0]);
                let of_first =
                    placed.hosts[..ranks as usize].iter().take_while(|host| servers.server_of(**host) == first);
                of_first.count() as u32
            }
        };
        let expected = format!("a divisor of the {ranks} ranks of a group");
        WorkloadError::unless(ranks.is_multiple_of(local), "server_ranks", local, &expected)?;
        let Some(servers) = servers else { return Ok(local) };
        for (number, hosts) in placed.hosts.chunks(local as usize).enumerate() {
            let server = servers.server_of(hosts[0]);
            if let Some(other) = hosts.iter().find(|host| servers.server_of(**host) != server) {
                let (of, first) = (u32::try_from(number).unwrap_or(u32::MAX), servers.server_of(*other));
                let message = format!(
                    "the {local} ranks from {} on of group {} are in the servers {server} and {first}, expected one \
                     server for each {local} ranks; choose `ranks` that fill servers, or another placement",
                    of * local % ranks,
                    of * local / ranks
                );
                return Err(WorkloadError::of_key("server_ranks", message));
            }
        }
        Ok(local)
    }

    fn group<'a>(&self, context: &'a Context<'_>, hosts: &'a [u32], local: u32) -> Group<'a> {
        Group {
            context,
            hosts,
            ranks: hosts.len() as u32,
            local,
            size: self.size.0,
            message_size: self.message_size.value().map(|size| size.0),
            steps: self.steps.value().unwrap_or_else(|| (self.algorithm.pattern().steps)(hosts.len() as u32)),
            trigger: self.trigger.value().map(|trigger| match trigger {
                TriggeredBy::Received => Done::Received,
                TriggeredBy::Acknowledged => Done::Acknowledged,
            }),
            channels: self.channels,
            chunks: self.chunks.value(),
            skew: self.skew,
            parallel: self.parallel,
            order: self.order,
        }
    }

    /// Returns one repetition among `ranks` ranks as NCCL measures it.
    pub(super) fn info(&self, ranks: u32) -> CollectiveInfo {
        let pattern = self.algorithm.pattern();
        let whole = (pattern.steps)(ranks);
        let rounds = match self.steps {
            Auto::Auto => Some(1),
            Auto::Value(steps) => steps.is_multiple_of(whole).then(|| steps / whole),
        };
        let message = self.message_size.value().map(|message| message.0.saturating_mul(u64::from(self.channels)));
        let bytes = (pattern.buffer)(ranks, self.size.0, message);
        // Bytes over each rank's link per byte of the buffer (nccl-tests, PERFORMANCE.md).
        let bus_factor = f64::from(ranks - 1) / f64::from(ranks) * if pattern.is_all_reduce { 2.0 } else { 1.0 };
        CollectiveInfo { name: pattern.name, ranks, bytes, rounds, bus_factor }
    }
}

impl WorkloadKind for CollectiveParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        if let Auto::Value(size) = self.message_size {
            WorkloadError::unless(size.0 > 0, "message_size", size, "1B or more, or \"auto\"")?;
        }
        for (key, value) in [("steps", self.steps), ("chunks", self.chunks), ("server_ranks", self.server_ranks)] {
            if let Auto::Value(value) = value {
                WorkloadError::unless(value > 0, key, value, "1 or more, or \"auto\"")?;
            }
        }
        WorkloadError::unless(self.channels > 0, "channels", self.channels, "1 or more")?;
        WorkloadError::unless(self.repetitions > 0, "repetitions", self.repetitions, "1 or more")?;
        let skew = self.skew;
        WorkloadError::unless((0.0..=10.0).contains(&skew), "skew", skew, "an exponent from 0 to 10")?;
        self.check_effects()?;
        self.placement().check()?;
        match self.ranks {
            Ranks::Number(ranks) => self.check_ranks(ranks, None),
            Ranks::All => Ok(()),
        }
    }

    fn is_job(&self) -> bool {
        true
    }

    fn listed_because(&self) -> Option<&'static str> {
        if self.skew != 0.0 {
            Some("with `skew` each group and repetition has message sizes of its own")
        } else {
            (self.order == Order::Random).then_some("with `order = \"random\"` each group has an order of its own")
        }
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let placed = self.placement().place(context)?;
        let ranks = placed.ranks;
        self.check_ranks(ranks, Some(context.view.hosts))?;
        let pattern = self.algorithm.pattern();
        let local = if pattern.keys.contains(&"server_ranks") { self.local_ranks(&placed, context)? } else { 1 };
        let runs = u128::from(self.groups) * u128::from(self.repetitions);
        let first = self.group(context, &placed.hosts[..ranks as usize], local);
        let flows = (pattern.messages)(&first) * runs;
        let key = if self.groups > 1 { "groups" } else { "ranks" };
        let differ = self.order == Order::Random;
        let max_flows = self.max_flows.min(u64::from(u32::MAX));
        match self.listed_because() {
            None => context.check_room_of_job(flows, max_flows, key)?,
            Some(_) => context.check_room(flows, max_flows, key)?,
        }
        let schedules = placed.hosts.chunks(ranks as usize).cycle().take(if differ { self.groups as usize } else { 1 });
        let schedules = schedules.map(|hosts| (pattern.schedule)(&self.group(context, hosts, local))).collect();
        let sizes = (pattern.sizes)(&first, self.groups, self.repetitions);
        let job = GroupedJob {
            repetitions: self.repetitions,
            gap: self.gap,
            compute: self.compute,
            collective: Some(self.info(ranks)),
            ..placed.job(self.groups, self.start, schedules)
        };
        Ok(match sizes {
            None => compile_alike(job, context),
            Some(size) => compile(job, &*size),
        })
    }
}

#[cfg(test)]
#[path = "collective/tests.rs"]
mod tests;
