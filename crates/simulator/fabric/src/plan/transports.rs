//! The transport of each flow: that of the run, or that of its workload with a congestion control of its own.

use super::Plan;
use anabranch_transport::{Network, Transport, TransportParameters};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// The transports of a run. They differ by their congestion control alone.
#[derive(Clone, Debug)]
pub(crate) struct FlowTransports {
    main: Transport,
    /// Per workload that has its own.
    own: BTreeMap<u32, Transport>,
}

impl FlowTransports {
    /// Resolves the transports against the network; fails if one cannot work on it.
    pub(crate) fn new(
        main: &TransportParameters,
        own: &BTreeMap<u32, TransportParameters>,
        network: &Network,
    ) -> Result<Self, String> {
        let resolve = |parameters: &TransportParameters| {
            let transport = Transport::new(parameters, network);
            transport.check(network).map(|()| transport)
        };
        let own = own.iter().map(|(workload, parameters)| Ok((*workload, resolve(parameters)?)));
        Ok(FlowTransports { main: resolve(main)?, own: own.collect::<Result<_, String>>()? })
    }

    fn all(&self) -> impl Iterator<Item = &Transport> {
        std::iter::once(&self.main).chain(self.own.values())
    }

    /// Returns what does not depend on the congestion control.
    pub(crate) fn main(&self) -> &Transport {
        &self.main
    }

    pub(crate) fn max_timeout(&self) -> Option<Time> {
        self.all().filter_map(Transport::max_timeout).max()
    }

    pub(crate) fn min_timeout(&self) -> Option<Time> {
        self.all().filter_map(Transport::min_timeout).min()
    }

    pub(crate) fn window_packets(&self) -> u64 {
        self.all().map(Transport::window_packets).max().unwrap_or(1)
    }
}

impl Plan<'_> {
    /// Returns the transport of a flow, by its number.
    #[inline]
    pub(crate) fn transport_of(&self, flow: u32) -> &Transport {
        if self.transports.own.is_empty() { &self.transports.main } else { self.own_transport(flow) }
    }

    #[cold]
    fn own_transport(&self, flow: u32) -> &Transport {
        let workload = self.flows.flow(flow).workload;
        self.transports.own.get(&u32::from(workload)).unwrap_or(&self.transports.main)
    }
}
