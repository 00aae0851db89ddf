//! Declaration of the metrics that a backend measures. A result has all others as unknown.

use crate::{CounterMeasures, FlowMeasures, LinkMeasures};

/// Declares three structs with the same fields: metrics (`Option` each), counters (`u64` each), flags of the measured ones.
macro_rules! metrics {
    (
        $(#[$metrics_doc:meta])* $metrics:ident from $(#[$counters_doc:meta])* $counters:ident,
        $(#[$measures_doc:meta])* $measures:ident { $($name:ident: $meaning:expr;)* }
    ) => {
        $(#[$metrics_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $metrics {
            $(#[doc = $meaning] #[doc = " `None`: not measured."] pub $name: Option<u64>,)*
        }

        $(#[$counters_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counters {
            $(#[doc = $meaning] pub $name: u64,)*
        }

        $(#[$measures_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $measures {
            $(#[doc = concat!("`", stringify!($name), "`.")] pub $name: bool,)*
        }

        impl From<$counters> for $metrics {
            fn from(counted: $counters) -> Self {
                $metrics { $($name: Some(counted.$name),)* }
            }
        }

        impl $metrics {
            /// Returns the counts; `None` if one is unknown.
            pub fn complete(&self) -> Option<$counters> {
                Some($counters { $($name: self.$name?,)* })
            }

            /// Removes the metrics not in `measures`.
            pub fn keep(&mut self, measures: &$measures) {
                $(if !measures.$name { self.$name = None; })*
            }
        }

        impl $measures {
            /// All.
            pub const ALL: Self = $measures { $($name: true,)* };
            /// None.
            pub const NONE: Self = $measures { $($name: false,)* };
        }
    };
}
pub(crate) use metrics;

/// Clock of a run's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The simulated clock: times are reproducible.
    Simulated,
    /// The clock of the machine: times vary, and include the effects of other load.
    Machine,
}

/// Metrics that a backend measures in addition to the times of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measures {
    /// Clock of its times. Only the simulated clock has a fingerprint.
    pub clock: Clock,
    /// Metrics per flow.
    pub flows: FlowMeasures,
    /// Metrics per directed link; `None`: it has no rows of links.
    pub links: Option<LinkMeasures>,
    /// Totals of the run.
    pub counters: CounterMeasures,
    /// `true` if it checks the conservation of packets and bytes.
    pub conservation: bool,
    /// `true` if it counts packets that left a port.
    pub packet_hops: bool,
    /// `true` if it records time series, traces, captures and counts per uplink on request.
    pub samples: bool,
    /// `true` if it records the calls of host schemes on request.
    pub schemes: bool,
}

impl Measures {
    /// All metrics.
    pub const ALL: Self = Measures {
        clock: Clock::Simulated,
        flows: FlowMeasures::ALL,
        links: Some(LinkMeasures::ALL),
        counters: CounterMeasures::ALL,
        conservation: true,
        packet_hops: true,
        samples: true,
        schemes: true,
    };
    /// Only the times of flows, on the simulated clock: of a run whose steady state was skipped.
    pub const SKIPPED: Self = Measures { clock: Clock::Simulated, ..Self::TIMES };
    /// Only the times of flows, on the clock of the machine.
    pub const TIMES: Self = Measures {
        clock: Clock::Machine,
        flows: FlowMeasures::NONE,
        links: None,
        counters: CounterMeasures::NONE,
        conservation: false,
        packet_hops: false,
        samples: false,
        schemes: false,
    };
}
