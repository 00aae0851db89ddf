//! To add a kind of workload, write a file with `pub(crate) const ABOUT: About`, parameters declared with `parameters!` and
//! `impl WorkloadKind` for them, and add its `mod` and one line to the list.

pub(crate) mod adversarial;
pub(crate) mod all_to_all;
pub(crate) mod collective;
pub(crate) mod file;
pub(crate) mod host_set;
pub(crate) mod incast;
mod kind;
pub(crate) mod microbenchmark;
pub(crate) mod nccl;
pub(crate) mod permutation;
pub(crate) mod placement;
pub(crate) mod poisson;
pub(crate) mod ranks;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod training_rounds;
pub(crate) mod training_step;

pub(crate) use kind::WorkloadKind;

use crate::{WorkloadError, traffic::Traffic, view::Context};
use anabranch_settings::registry;

registry! {
    /// A kind of workload and its parameters.
    pub enum WorkloadParameters("kind of workload"): pub(crate) dyn WorkloadKind in self {
        poisson Poisson PoissonParameters,
        permutation Permutation PermutationParameters,
        incast Incast IncastParameters,
        adversarial Adversarial AdversarialParameters,
        microbenchmark Microbenchmark MicrobenchmarkParameters,
        all_to_all AllToAll AllToAllParameters,
        collective Collective CollectiveParameters,
        training_rounds TrainingRounds TrainingRoundsParameters,
        training_step TrainingStep TrainingStepParameters,
        file File FileParameters,
        nccl Nccl NcclParameters,
    }
}

impl WorkloadParameters {
    /// Checks the limits of every parameter, as far as possible without hosts and files.
    /// Errors: [`WorkloadError`] for the first invalid parameter.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.capabilities().check()
    }

    /// Returns `true` if the work is done when its last flow is, even where no flow waits for another: collectives and
    /// rounds of a training job.
    pub fn is_job(&self) -> bool {
        self.capabilities().is_job()
    }

    /// Returns why the groups of a job differ, so that its flows have rows also where a run keeps none of jobs
    /// ([`crate::HostView::templates`]); `None`: they are alike, or it is no job.
    pub fn listed_because(&self) -> Option<&'static str> {
        self.capabilities().listed_because()
    }

    pub(crate) fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        self.check()?;
        self.capabilities().generate(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommonParameters;
    use anabranch_settings::Parameters;

    #[test]
    fn every_kind_is_found_and_its_parameters_can_be_set_again() {
        for about in WorkloadParameters::ALL {
            let kind = WorkloadParameters::named(about.name).unwrap();
            assert_eq!(kind.about(), about);
            let mut copy = kind.clone();
            for (key, value) in kind.parameters().entries() {
                copy.parameters_mut().set(key, &value).unwrap();
            }
            assert_eq!(copy, kind);
            // A key of the kind must not hide a common one.
            let common = CommonParameters::default();
            for (key, _) in common.entries() {
                assert!(kind.parameters().entries().iter().all(|(own, _)| *own != key), "{key}");
            }
        }
    }

    #[test]
    fn unknown_kinds_report_the_nearest() {
        let error = WorkloadParameters::named("all_toall").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("all-to-all"));
        assert!(error.to_string().contains("poisson, permutation, incast"), "{error}");
    }
}
