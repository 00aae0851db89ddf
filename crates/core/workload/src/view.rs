use crate::{ServerParameters, WorkloadError, traffic::Traffic};
use anabranch_random::name_key;
use anabranch_settings::choices;
use anabranch_units::{Bytes, Rate};
use std::{fmt::Debug, sync::Arc};

/// Reads a file; the caller resolves relative paths.
pub type ReadFile<'a> = dyn Fn(&str) -> std::io::Result<Vec<u8>> + 'a;

/// Memory per flow to its row in the results: the peak of runs of 128,000 and 512,000 small flows differs by 896 B per flow
/// of a permutation, and by 1,142 B per flow of a repeated collective.
pub const FLOW_MEMORY: u64 = 1150;

/// Topology of a Dragonfly or a Slim Fly.
pub trait LowDiameter: Debug + Send + Sync {
    /// Returns `true` for a Dragonfly, `false` for a Slim Fly.
    fn is_dragonfly(&self) -> bool;
    /// Returns the number of groups, numbered from 0 as in [`HostView::group_of`].
    fn groups(&self) -> u32;
    /// Returns pairs (source, destination) of hosts that load single links when all traffic takes default paths.
    fn adversarial_pairs(&self, seed: u64) -> Vec<(u32, u32)>;
    /// Returns the leaf, as in [`HostView::leaf_of`], of the global link between two groups of a Dragonfly.
    fn gateway_leaf(&self, from_group: u32, to_group: u32) -> Option<u32>;
}

/// View of the hosts; every list has an entry per host.
#[derive(Clone, Debug)]
pub struct HostView {
    pub hosts: u32,
    /// Leaf switch of each host, any numbering.
    pub leaf_of: Vec<u32>,
    /// Group (pod) of each host, any numbering.
    pub group_of: Vec<u32>,
    /// Stable key of each host for random streams.
    pub host_key: Vec<u64>,
    pub nic_rate: Vec<Rate>,
    /// Host capacity below a leaf over uplink capacity above it; 1 without oversubscription.
    pub oversubscription: f64,
    /// The fabric's data classes by name; a flow's class is an index into them.
    pub classes: Vec<String>,
    /// Memory that flows may take, in bytes; see [`FLOW_MEMORY`].
    pub flow_memory: u64,
    /// Properties of a Dragonfly or a Slim Fly; `None` for other topologies.
    pub low_diameter: Option<Arc<dyn LowDiameter>>,
    /// Servers, where hosts are GPUs of servers; `None`: a host is a server with one NIC.
    pub servers: Option<ServerParameters>,
    /// Jobs are made as templates where they can be ([`crate::GroupTemplate`]): the run keeps no rows of their flows.
    pub templates: bool,
}

choices! {
    /// Participating hosts.
    pub enum Members {
        /// Every host.
        All = "all",
        /// Hosts that neither send nor receive in the workloads before this one in the scenario.
        Rest = "rest",
    }
}

/// Labels of the flows of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedAs {
    /// The workload's name; its random draws are keyed by it.
    pub name: String,
    /// The traffic class, an index into [`HostView::classes`].
    pub class: u8,
    /// The load balancer, an index into the setup's list.
    pub load_balancer: u16,
    /// `true` if the flows count in the statistics.
    pub measured: bool,
    /// A random share (0 to 1) of the flows gets another label, rounded to the nearest number of flows.
    pub split: Option<(f64, Box<GeneratedAs>)>,
}

pub(crate) struct Context<'a> {
    pub(crate) view: &'a HostView,
    pub(crate) seed: u64,
    pub(crate) name: &'a str,
    /// `true` for each host that sends or receives in an earlier workload.
    pub(crate) used: &'a [bool],
    pub(crate) room: u64,
    /// Jobs are made as templates.
    pub(crate) templates: bool,
    pub(crate) read_file: &'a ReadFile<'a>,
}

impl Context<'_> {
    pub(crate) fn key(&self) -> u64 {
        name_key(self.name)
    }

    /// Returns the participating hosts, in order, at least two.
    pub(crate) fn members(&self, members: Members) -> Result<Vec<u32>, WorkloadError> {
        self.needs_a_pair()?;
        let takes_part = |&host: &u32| members == Members::All || !self.used[host as usize];
        let hosts: Vec<u32> = (0..self.view.hosts).filter(takes_part).collect();
        if hosts.len() < 2 {
            let (left, all) = (hosts.len(), self.view.hosts);
            let message = format!("found \"rest\", but the workloads before this one leave {left} of {all} hosts free");
            return Err(WorkloadError::of_key("hosts", format!("{message}, expected two or more free hosts")));
        }
        Ok(hosts)
    }

    pub(crate) fn check_room(&self, flows: u128, max_flows: u64, key: &str) -> Result<(), WorkloadError> {
        Traffic::check_room(flows, max_flows, key)?;
        self.check_memory(flows, key)
    }

    /// As [`Context::check_room`], for a job that may become a template, whose flows take no memory before they start.
    pub(crate) fn check_room_of_job(&self, flows: u128, max_flows: u64, key: &str) -> Result<(), WorkloadError> {
        if self.templates { Traffic::check_room(flows, max_flows, key) } else { self.check_room(flows, max_flows, key) }
    }

    pub(crate) fn check_memory(&self, flows: u128, key: &str) -> Result<(), WorkloadError> {
        if flows <= u128::from(self.room) {
            return Ok(());
        }
        let size = |flows: f64| Bytes((flows * FLOW_MEMORY as f64) as u64).rounded();
        let (needed, left) = (size(flows as f64), size(self.room as f64));
        let message = format!(
            "this makes {flows} flows, which take about {needed} of memory, and {left} are left of the \
             memory limit (`memory_limit` of [run], else this machine, its control group or `ulimit -v`)"
        );
        Err(WorkloadError::of_key(key, message))
    }

    /// `only` names the supported topologies.
    pub(crate) fn low_diameter(&self, kind: &str, only: &str) -> Result<&dyn LowDiameter, WorkloadError> {
        self.view.low_diameter.as_deref().ok_or_else(|| {
            let message =
                format!("found \"{kind}\", which this topology does not support, expected a [topology] of kind {only}");
            WorkloadError::of_key("kind", message)
        })
    }

    pub(crate) fn needs_a_pair(&self) -> Result<(), WorkloadError> {
        match self.view.hosts {
            0 | 1 => {
                Err(WorkloadError::new(format!("the topology has {} host(s), and a flow needs two", self.view.hosts)))
            }
            _ => Ok(()),
        }
    }
}
