//! Steering of a run by an agent outside it, a learning one for instance.

use anabranch_lb::PathReading;
use anabranch_units::Time;
use anabranch_workload::FlowSet;
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

/// A connection that an agent steers, at its sending host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its number in the run ([`anabranch_lb::FlowInfo::connection`]).
    pub key: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Workload, an index into [`FlowSet::workloads`].
    pub workload: u16,
}

impl Connection {
    /// Returns the connections of listed flows, by sender, receiver and first flow. `per_message`: each flow is one of its own.
    pub fn of(flows: &FlowSet, per_message: bool) -> Vec<Connection> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for flow in flows.flows.iter().filter(|flow| flow.src != flow.dst) {
            let key = if per_message { flow.key } else { flow.connection };
            if seen.insert((flow.src, key)) {
                all.push(Connection { key, src: flow.src, dst: flow.dst, workload: flow.workload });
            }
        }
        all.sort_by_key(|of| (of.src, of.dst));
        all
    }
}

/// State of a run at a turn of its agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// Simulated time.
    pub now: Time,
    /// Readings since the start, for each connection in turn, by tag.
    pub readings: Vec<PathReading>,
    /// Flows finished since the start.
    pub finished: u64,
    /// Sum over all flows of the time since the last turn in which they were open, from their start to their last byte.
    pub open_time: Time,
    /// The run is over, and the reply is not read.
    pub is_last: bool,
}

/// Reply of an agent: a weight per connection and tag, as [`Turn::readings`], or `None` to end the run.
pub type Answer = Option<Vec<f32>>;

/// The agent of a run. It has the first turn before the first event, then one after each interval while events are left.
#[derive(Clone)]
pub struct Steering {
    /// Simulated time between two turns.
    pub interval: Time,
    /// Number of tags per connection.
    pub tags: usize,
    /// The connections that it steers.
    pub connections: Vec<Connection>,
    /// Takes a turn.
    pub agent: Arc<Mutex<dyn FnMut(Turn) -> Answer + Send>>,
}

impl fmt::Debug for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steering").field("interval", &self.interval).field("tags", &self.tags).finish_non_exhaustive()
    }
}
