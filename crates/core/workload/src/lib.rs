//! Traffic of a run: flow-size distributions, arrival processes, patterns and flow files.
//!
//! [`generate()`] creates one [`FlowSet`] of all workloads ([`WorkloadParameters::named`]), a function of (the workloads, the
//! hosts, the seed) alone. Random draws are keyed by the workload's name and the host's stable key, so adding a workload
//! changes no other's flows.

mod common;
mod error;
mod files;
mod flow;
mod flow_set;
mod generate;
mod jobs;
mod kinds;
mod names;
mod pairs;
mod servers;
mod sizes;
mod traffic;
mod view;

pub use common::CommonParameters;
pub use error::WorkloadError;
pub use files::{FileFormat, StartAt, StartUnit};
pub use flow::{CollectiveInfo, Flow, MAX_NUMBER, Medium, Start, Trigger, TriggerId, TriggerKind, WorkloadInfo};
pub use flow_set::{FlowSet, NO_MESSAGE};
pub use generate::{Generated, MAX_WORKLOADS, generate, generate_all};
pub use jobs::{
    job::{Barrier, FlowLabel, GroupedJob},
    schedule::{Dependency, Done, MessageWindow, Operation, Schedule, Work},
    template::{GroupTemplate, TemplatePlace, TriggerView},
    times::{JobWalk, MessageTimes, RankTimes, RepetitionTimes, StepTimes},
};
pub use kinds::{
    WorkloadParameters,
    adversarial::AdversarialParameters,
    all_to_all::{AllToAllParameters, Order},
    collective::{Algorithm, CollectiveParameters, TriggeredBy},
    file::FileParameters,
    host_set::HostSet,
    incast::IncastParameters,
    microbenchmark::{Background, MicrobenchmarkParameters, Part},
    nccl::{Abi, Element, Message, NcclJob, NcclParameters, plan},
    permutation::PermutationParameters,
    placement::Placement,
    poisson::{LoadReference, PoissonParameters},
    ranks::Ranks,
    training_rounds::{Exchange, TrainingRoundsParameters},
    training_step::TrainingStepParameters,
};
pub use names::names;
pub use pairs::Scope;
pub use servers::{CrossRail, ServerParameters};
pub use sizes::{SIZE_DISTRIBUTIONS, SizeDistribution, SizesAbout};
pub use traffic::{FailedSwitch, FileFailure};
pub use view::{FLOW_MEMORY, GeneratedAs, HostView, LowDiameter, Members, ReadFile};
