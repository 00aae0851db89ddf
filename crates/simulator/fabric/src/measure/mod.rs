//! Counters and timers that ports, hosts and switches update.

mod gaps;
mod histogram;
mod queue;
mod series;
mod tally;
mod timeline;
mod waits;
mod watch;
mod window;

pub(crate) use gaps::Gaps;
pub(crate) use histogram::Histograms;
pub(crate) use queue::QueueAccount;
pub use series::series_bytes;
pub(crate) use series::{
    BalancerSamples, Counted, FlowSamples, SampledBalancer, SampledPort, SampledReceiver, SampledSender, Series, Spread,
};
pub(crate) use tally::{Balances, Family, Tally};
pub(crate) use timeline::{Cause, Record, Timeline};
pub(crate) use waits::{PausedTimes, Waits};
pub(crate) use watch::{Spot, Watch};
pub(crate) use window::Window;
