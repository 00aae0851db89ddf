//! Every kind of workload, by name.
//!
//! To add a kind, write one file in `kinds/` with `pub(crate) const ABOUT: About`, parameters declared with
//! `parameters!` and `impl Kind` for them, and add one line here.

use crate::{
    WorkloadError,
    error::hint,
    kinds::{self, Kind},
    view::{Context, Traffic},
};
use anabranch_settings::{Parameters, nearest, parameters};
use std::collections::{BTreeMap, HashSet};
use thiserror::Error;

/// What the registry says about a kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name scenarios use.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// A few sentences for `explain`.
    pub description: &'static str,
}

/// No kind of workload has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is not a kind of workload; there are {}{}", allowed.join(", "), hint(nearest.clone()))]
pub struct UnknownWorkload {
    /// The name as found.
    pub found: String,
    /// All names.
    pub allowed: Vec<&'static str>,
    /// What may have been meant.
    pub nearest: Option<String>,
}

macro_rules! kinds {
    ($($module:ident $kind:ident $parameters:ident,)*) => {
        /// Every kind of workload.
        pub const WORKLOAD_KINDS: &[About] = &[$(kinds::$module::ABOUT,)*];

        /// A kind of workload and its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum WorkloadParameters {
            $(
                #[doc = concat!("See [`crate::", stringify!($parameters), "`].")]
                $kind(kinds::$module::$parameters),
            )*
        }

        impl WorkloadParameters {
            /// The kind of this name with its default parameters.
            ///
            /// # Errors
            /// [`UnknownWorkload`] names the nearest one.
            pub fn named(kind: &str) -> Result<Self, UnknownWorkload> {
                $(
                    if kind == kinds::$module::ABOUT.name {
                        return Ok(Self::$kind(Default::default()));
                    }
                )*
                let allowed: Vec<_> = WORKLOAD_KINDS.iter().map(|about| about.name).collect();
                let nearest = nearest(kind, allowed.iter().copied());
                Err(UnknownWorkload { found: kind.to_string(), allowed, nearest })
            }

            /// What the registry says about the kind.
            pub fn about(&self) -> &'static About {
                match self {
                    $(Self::$kind(_) => const { &kinds::$module::ABOUT },)*
                }
            }

            /// The parameters.
            pub fn parameters(&self) -> &dyn Parameters {
                match self {
                    $(Self::$kind(parameters) => parameters,)*
                }
            }

            /// The parameters, to be set.
            pub fn parameters_mut(&mut self) -> &mut dyn Parameters {
                match self {
                    $(Self::$kind(parameters) => parameters,)*
                }
            }

            /// Whether every parameter is within its limits, as far as hosts and files are not needed to tell.
            ///
            /// # Errors
            /// [`WorkloadError`] names the first that is not.
            pub fn check(&self) -> Result<(), WorkloadError> {
                match self {
                    $(Self::$kind(parameters) => parameters.check(),)*
                }
            }

            /// Makes the flows.
            pub(crate) fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
                self.check()?;
                match self {
                    $(Self::$kind(parameters) => parameters.generate(context),)*
                }
            }
        }
    };
}

kinds! {
    poisson Poisson PoissonParameters,
    permutation Permutation PermutationParameters,
    incast Incast IncastParameters,
    adversarial Adversarial AdversarialParameters,
    microbenchmark Microbenchmark MicrobenchmarkParameters,
    all_to_all AllToAll AllToAllParameters,
    collective Collective CollectiveParameters,
    training_rounds TrainingRounds TrainingRoundsParameters,
    file File FileParameters,
    nccl Nccl NcclParameters,
}

parameters! {
    /// Keys that every workload takes beside the parameters of its kind.
    pub struct CommonParameters {
        /// Name in the results; random draws are keyed by it. Left out: the kind, numbered from the second one on.
        name: Option<String> = None, source "ours";
        /// Traffic class of the flows. Left out: the fabric's first.
        class: Option<String> = None, source "ours";
        /// Whether the flows count in the statistics.
        measured: bool = true, source "ours";
        /// Load balancer of the flows. Left out: that of the scenario.
        load_balancer: Option<String> = None, source "ours";
        /// Share of the flows (0 to 1, chosen at random) that becomes a second workload: the same flows, sent in another way.
        split_share: f64 = 0.0, source "PRIME §IV-A2: mixed traffic";
        /// Name of the second workload. Left out: the first one's with `-split`.
        split_name: Option<String> = None, source "ours";
        /// Traffic class of the second workload. Left out: that of the first.
        split_class: Option<String> = None, source "ours";
        /// Load balancer of the second workload. Left out: that of the first.
        split_load_balancer: Option<String> = None, source "ours";
    }
}

impl CommonParameters {
    /// Whether every parameter is within its limits and consistent with the others.
    ///
    /// # Errors
    /// [`WorkloadError`] names the first that is not.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let share = self.split_share;
        WorkloadError::unless((0.0..=1.0).contains(&share), "split_share", share, "a share from 0 to 1")?;
        let unused = [
            ("split_name", &self.split_name),
            ("split_class", &self.split_class),
            ("split_load_balancer", &self.split_load_balancer),
        ];
        match unused.into_iter().find(|(_, value)| value.is_some()) {
            Some((key, _)) if share == 0.0 => {
                Err(WorkloadError::of_key(key, "has no effect while `split_share` is 0, expected a share above 0"))
            }
            _ => Ok(()),
        }
    }
}

/// The name of each workload of a list: its own, or its kind, with `-2`, `-3`, ... where that is taken.
pub fn names(list: &[(&WorkloadParameters, &CommonParameters)]) -> Vec<String> {
    let taken: HashSet<&str> = list.iter().filter_map(|(_, common)| common.name.as_deref()).collect();
    // Per kind the number that comes next.
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    let mut free = |kind: &'static str| {
        let number = next.entry(kind).or_insert(1);
        loop {
            let name = if *number == 1 { kind.to_string() } else { format!("{kind}-{number}") };
            *number += 1;
            if !taken.contains(name.as_str()) {
                return name;
            }
        }
    };
    list.iter().map(|(kind, common)| common.name.clone().unwrap_or_else(|| free(kind.about().name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_and_its_parameters_can_be_set_again() {
        for about in WORKLOAD_KINDS {
            let kind = WorkloadParameters::named(about.name).unwrap();
            assert_eq!(kind.about(), about);
            let mut copy = kind.clone();
            for (key, value) in kind.parameters().entries() {
                copy.parameters_mut().set(key, &value).unwrap();
            }
            assert_eq!(copy, kind);
            // A key of the kind must not hide one that every workload has.
            let common = CommonParameters::default();
            for (key, _) in common.entries() {
                assert!(kind.parameters().entries().iter().all(|(own, _)| *own != key), "{key}");
            }
        }
    }

    #[test]
    fn unknown_kinds_are_told_the_nearest() {
        let error = WorkloadParameters::named("all_toall").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("all-to-all"));
        assert!(error.to_string().contains("poisson, permutation, incast"), "{error}");
    }

    #[test]
    fn names_are_given_where_they_are_left_out() {
        let (permutation, incast) =
            (WorkloadParameters::named("permutation").unwrap(), WorkloadParameters::named("incast").unwrap());
        let (none, own) = (
            CommonParameters::default(),
            CommonParameters { name: Some("permutation-2".into()), ..Default::default() },
        );
        let list = [(&permutation, &none), (&incast, &none), (&permutation, &none), (&permutation, &own)];
        assert_eq!(names(&list), ["permutation", "incast", "permutation-3", "permutation-2"]);
    }

    #[test]
    fn splits_must_make_sense() {
        let of = |share, name: Option<&str>| CommonParameters {
            split_share: share,
            split_name: name.map(String::from),
            ..Default::default()
        };
        assert!(of(0.1, Some("rest")).check().is_ok() && of(0.0, None).check().is_ok());
        assert_eq!(of(1.1, None).check().unwrap_err().key.as_deref(), Some("split_share"));
        assert_eq!(of(0.0, Some("rest")).check().unwrap_err().key.as_deref(), Some("split_name"));
    }
}
