use anabranch_units::{Rate, Time};
use anabranch_workload::{FlowSet, Medium};

#[derive(Debug)]
pub(crate) struct ScaleUpPlan {
    pub(crate) rate: Rate,
    /// Time from first byte sent to first byte received, in picoseconds.
    pub(crate) latency: u64,
    pub(crate) gpus: u32,
    pub(crate) per_server: u32,
    /// Per flow, its number among those over scale-up; `u32::MAX`: it uses the network.
    numbers: Vec<u32>,
    pub(crate) flows: u32,
}

impl ScaleUpPlan {
    /// Creates the plan of `hosts` NICs; `None` without servers.
    pub(crate) fn new(set: &FlowSet, hosts: u32) -> Option<Self> {
        let servers = set.servers.as_ref()?;
        let mut flows = 0;
        let mut number = |medium: Medium| match medium {
            Medium::Network => u32::MAX,
            Medium::ScaleUp => {
                flows += 1;
                flows - 1
            }
        };
        let numbers = set.flows.iter().map(|flow| number(flow.medium)).collect();
        Some(ScaleUpPlan {
            rate: servers.scale_up_rate,
            latency: servers.scale_up_latency.ps(),
            gpus: servers.endpoints(hosts),
            per_server: servers.gpus,
            numbers,
            flows,
        })
    }

    /// Returns the number of a flow among those over scale-up.
    pub(crate) fn number_of(&self, flow: usize) -> Option<usize> {
        let number = *self.numbers.get(flow)?;
        (number != u32::MAX).then_some(number as usize)
    }

    /// Returns the time of a message at a port of a GPU, in picoseconds.
    pub(crate) fn service_time(&self, bytes: u64) -> u64 {
        self.rate.wire_time(bytes).ps()
    }

    /// Returns the time in which a flow at one host affects another; `None` where no flow uses scale-up.
    pub(crate) fn remote_latency(&self) -> Option<Time> {
        (self.flows > 0).then_some(Time::from_ps(self.latency))
    }
}
