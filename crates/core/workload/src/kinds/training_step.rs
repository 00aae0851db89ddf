//! Training steps of a model that is split by data, tensor and pipeline parallelism.

mod schedule;

use super::{
    WorkloadKind,
    host_set::HostSet,
    placement::{Groups, Placement},
    ranks::Ranks,
};
use crate::{
    WorkloadError,
    jobs::{compile::compile_alike, job::GroupedJob},
    traffic::Traffic,
    view::Context,
};
use anabranch_settings::{About, Auto, parameters};
use anabranch_units::{Bytes, Time};
use schedule::Step;

pub(crate) const ABOUT: About = About {
    name: "training-step",
    summary: "steps of training with data, tensor and pipeline parallelism together",
    source: "Megatron-LM: Shoeybi et al. 2019, section 3; Narayanan et al. 2021, sections 2.2 and 3",
    description: "A group has dp * tp * pp ranks: rank (p * dp + d) * tp + t is part t of stage p of replica d. Each stage has \
        layers/pp layers and runs the microbatches one forward, one backward (1F1B). Each layer of a microbatch reduces its \
        activations among the tp ranks twice forward and twice backward, by rings. Stages send activations forward and \
        their gradients back. At the end each rank reduces its gradients among the replicas by a ring, in `buckets` parts \
        of which all but the last overlap with the last backward computation.",
};

parameters! {
    /// Training steps.
    pub struct TrainingStepParameters {
        /// Layers of the model; a multiple of `pp`.
        layers: u32 = 8, source "ours";
        /// Replicas of the model (data parallelism).
        dp: u32 = 2, source "ours";
        /// Ranks that share each layer (tensor parallelism).
        tp: u32 = 2, source "ours";
        /// Stages of consecutive layers (pipeline parallelism).
        pp: u32 = 2, source "ours";
        /// Microbatches of a replica per step.
        microbatches: u32 = 4, source "ours";
        /// Bytes of the activations of a microbatch between two layers: batch x sequence x hidden size x bytes per value.
        activations: Bytes = Bytes(4 << 20), source "ours";
        /// Bytes of the gradients of a layer, over all its `tp` ranks.
        gradients: Bytes = Bytes(32 << 20), source "ours";
        /// Forward computation of a layer and microbatch on each of its ranks.
        forward: Time = Time::from_us(50), source "ours", Expert;
        /// Backward computation; auto: twice the forward one.
        backward: Auto<Time> = Auto::Auto, source "Narayanan et al. 2021, section 2.2", Expert;
        /// Layers of a stage that compute, and reduce their activations, together: fewer messages of the same bytes.
        fused_layers: u32 = 1, source "ours", Expert;
        /// Parts of the gradients that are reduced one after the other, each when its layers have computed; 1: at the end.
        buckets: u32 = 1, source "ours", Expert;
        /// Number of groups, each of which trains a model of its own.
        groups: u32 = 1, source "ours";
        /// Number of participating hosts of a group: dp x tp x pp; all: the hosts, divided among the groups.
        ranks: Ranks = Ranks::All, source "ours", Expert;
        /// Hosts on which groups may run.
        hosts: HostSet = HostSet::All, source "ours";
        /// Groups that run at a time; when one ends, the next starts on its hosts. auto: all.
        concurrent: Auto<u32> = Auto::Auto, source "ours", Expert;
        /// Placement of ranks on hosts, as in `collective`.
        placement: Placement = Placement::Packed, source "ours";
        /// Number of steps.
        repetitions: u32 = 1, source "ours", Expert;
        /// Time between the end of a step and the begin of the next, per rank.
        gap: Time = Time::ZERO, source "ours", Expert;
        /// Start time of the first step.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

impl TrainingStepParameters {
    fn placement(&self) -> Groups<'_> {
        Groups {
            groups: self.groups,
            ranks: self.ranks,
            concurrent: self.concurrent,
            hosts: &self.hosts,
            placement: &self.placement,
        }
    }

    fn product(&self) -> u64 {
        [self.dp, self.tp, self.pp].into_iter().fold(1, |product, degree| product * u64::from(degree))
    }

    fn check_product(&self, ranks: u32, found: &str) -> Result<(), WorkloadError> {
        let (dp, tp, pp, product) = (self.dp, self.tp, self.pp, self.product());
        if product == u64::from(ranks) {
            return Ok(());
        }
        let message = format!(
            "found {found}{ranks}, but dp x tp x pp = {dp} x {tp} x {pp} = {product}; expected `ranks = {product}`, or other \
             degrees"
        );
        Err(WorkloadError::of_key("ranks", message))
    }

    fn step(&self) -> Step {
        Step {
            degrees: [self.dp, self.tp, self.pp],
            layers: self.layers / self.pp,
            fused: self.fused_layers,
            microbatches: self.microbatches,
            activations: self.activations.0,
            gradients: self.gradients.0,
            times: [self.forward, self.backward.value().unwrap_or(self.forward.saturating_mul(2))],
            buckets: self.buckets,
        }
    }
}

impl WorkloadKind for TrainingStepParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        for (key, value) in [
            ("layers", self.layers),
            ("dp", self.dp),
            ("tp", self.tp),
            ("pp", self.pp),
            ("microbatches", self.microbatches),
            ("fused_layers", self.fused_layers),
            ("buckets", self.buckets),
            ("repetitions", self.repetitions),
        ] {
            WorkloadError::unless(value > 0, key, value, "1 or more")?;
        }
        for (key, size) in [("activations", self.activations), ("gradients", self.gradients)] {
            WorkloadError::unless(size.0 > 0, key, size, "1B or more")?;
        }
        let (layers, pp) = (self.layers, self.pp);
        WorkloadError::unless(layers.is_multiple_of(pp), "layers", layers, &format!("a multiple of pp = {pp}"))?;
        let (of_stage, fused) = (layers / pp, self.fused_layers);
        let expected = format!("a divisor of the {of_stage} layers of a stage");
        WorkloadError::unless(of_stage.is_multiple_of(fused), "fused_layers", fused, &expected)?;
        let parts = of_stage / fused;
        let expected = format!("a divisor of the {parts} parts of a stage (layers / pp / fused_layers)");
        WorkloadError::unless(parts.is_multiple_of(self.buckets), "buckets", self.buckets, &expected)?;
        if self.dp == 1 {
            WorkloadError::unless(self.buckets == 1, "buckets", self.buckets, "1, since dp = 1: nothing is reduced")?;
        }
        self.placement().check()?;
        match self.ranks {
            Ranks::Number(ranks) => self.check_product(ranks, ""),
            Ranks::All => Ok(()),
        }
    }

    fn is_job(&self) -> bool {
        true
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let placed = self.placement().place(context)?;
        self.check_product(placed.ranks, "all, ")?;
        let step = self.step();
        let runs = u128::from(self.groups) * u128::from(self.repetitions);
        context.check_room_of_job(step.messages() * runs, self.max_flows.min(u64::from(u32::MAX)), "layers")?;
        let job = placed.job(self.groups, self.start, vec![step.schedule()]);
        let job = GroupedJob { repetitions: self.repetitions, gap: self.gap, ..job };
        Ok(compile_alike(job, context))
    }
}

#[cfg(test)]
#[path = "training_step/tests.rs"]
mod tests;
