//! Which metrics a backend fills in. A result has the others as unknown, whatever the backend wrote there.

use crate::{CounterMeasures, FlowMeasures, LinkMeasures};

/// Declares three structs with the same fields: metrics (`Option` each), counters (`u64` each) and which of them a backend
/// measures (`bool` each).
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
            /// Returns the counts; `None` where one is unknown.
            pub fn complete(&self) -> Option<$counters> {
                Some($counters { $($name: self.$name?,)* })
            }

            /// Forgets what is not among `measures`.
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

/// What the times of a run are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The simulated clock: the same run takes the same time.
    Simulated,
    /// The clock of the machine: no two runs are alike, and what else the machine does shows.
    Machine,
}

/// What a backend fills in of a result beyond the times of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measures {
    /// What its times are on. A fingerprint exists on the simulated clock alone.
    pub clock: Clock,
    /// Per flow.
    pub flows: FlowMeasures,
    /// Per directed link; `None`: it has no rows of links.
    pub links: Option<LinkMeasures>,
    /// Of the whole run.
    pub counters: CounterMeasures,
    /// Which balances of packets and bytes it checks.
    pub conservation: bool,
    /// Whether it counts packets that left a port.
    pub packet_hops: bool,
    /// Whether it keeps time series, traces, captures and counts per uplink where the setup asks for them.
    pub samples: bool,
}

impl Measures {
    /// All there is.
    pub const ALL: Self = Measures {
        clock: Clock::Simulated,
        flows: FlowMeasures::ALL,
        links: Some(LinkMeasures::ALL),
        counters: CounterMeasures::ALL,
        conservation: true,
        packet_hops: true,
        samples: true,
    };
    /// The times of flows alone, on the clock of the machine.
    pub const TIMES: Self = Measures {
        clock: Clock::Machine,
        flows: FlowMeasures::NONE,
        links: None,
        counters: CounterMeasures::NONE,
        conservation: false,
        packet_hops: false,
        samples: false,
    };
}
