//! Fetching ahead: the events of a bucket are known before their turn, and so is much of what they will touch.
//!
//! On a large fabric nearly every access to a packet, a port or a flow misses the processor's caches. The next
//! events are therefore looked at in three steps, each of which finds in the cache what the step before asked for:
//! the packet, then the port it will join or the flow it belongs to, then the packet at the head of that port's queue.
//! None of this changes any state.

use crate::{
    order,
    packet::{Kind, NONE},
    partition::Partition,
    prefetch::{prefetch, prefetch_all},
};
use anabranch_lb::Candidates;

/// How many events ahead packets, ports and heads of queues are fetched.
const PACKET: usize = 18;
const PORT: usize = 11;
const HEAD: usize = 5;

/// Where an arriving packet will go next, as far as it can be told.
enum Next {
    Port(u32),
    Host(u32),
    Unknown,
}

impl Partition<'_> {
    /// Fetches for the events that come up soon.
    #[inline]
    pub(crate) fn fetch_ahead(&self) {
        if self.plan.large {
            self.fetch_packet();
            self.fetch_port();
            self.fetch_head();
        }
    }

    #[inline]
    fn arriving(&self, ahead: usize) -> Option<u32> {
        let event = self.wires.wheel.upcoming(ahead)?;
        (event.order & order::KIND == order::ARRIVAL).then_some(event.payload)
    }

    #[inline]
    fn fetch_packet(&self) {
        let Some(event) = self.wires.wheel.upcoming(PACKET) else { return };
        match event.order & order::KIND {
            order::ARRIVAL => self.wires.packets.prefetch(event.payload),
            order::SERVICE => self.fetch_port_of(event.payload),
            _ => {}
        }
    }

    #[inline]
    fn fetch_port_of(&self, link: u32) {
        prefetch_all(&self.wires.ports[link as usize]);
        self.wires.histograms.prefetch(link);
    }

    #[inline]
    fn fetch_port(&self) {
        let Some(event) = self.wires.wheel.upcoming(PORT) else { return };
        match event.order & order::KIND {
            order::ARRIVAL => match self.next_of(event.payload) {
                Next::Port(link) => self.fetch_port_of(link),
                Next::Host(host) => self.fetch_flow(host, event.payload),
                Next::Unknown => {}
            },
            order::SERVICE => {
                let from = self.plan.links[event.payload as usize].from;
                if let Some(host) = self.hosts.get(from as usize) {
                    prefetch(host);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn fetch_flow(&self, host: u32, id: u32) {
        let packet = &self.wires.packets[id];
        prefetch(&self.hosts[host as usize]);
        if packet.kind == Kind::Data {
            if let Some(receiver) = self.receivers.get(self.receiver_of[packet.flow as usize] as usize) {
                prefetch_all(receiver);
            }
        } else if let Some(flow) = self.senders.get(self.sender_of[packet.flow as usize] as usize) {
            prefetch_all(flow);
            prefetch(&self.wires.ports[self.plan.host_up[host as usize] as usize]);
        }
    }

    #[inline]
    fn fetch_head(&self) {
        let Some(id) = self.arriving(HEAD) else { return };
        match self.next_of(id) {
            Next::Port(link) => {
                let port = &self.wires.ports[link as usize];
                for end in [port.data_head, port.data_tail] {
                    if end != NONE {
                        self.wires.packets.prefetch(end);
                    }
                }
            }
            Next::Host(host) => {
                let packet = &self.wires.packets[id];
                if let Some(balancer) = self.hosts[host as usize].schemes.get(packet.balancer as usize) {
                    prefetch(balancer);
                }
            }
            Next::Unknown => {}
        }
    }

    #[inline]
    fn next_of(&self, id: u32) -> Next {
        let (plan, packet) = (self.plan, &self.wires.packets[id]);
        let to = packet.next;
        if to < plan.hosts {
            return Next::Host(to);
        }
        let edge = plan.edge[packet.dst as usize];
        let Some(switch) = to.checked_sub(plan.hosts).filter(|s| *s < plan.topology.switches()) else {
            return Next::Unknown;
        };
        if edge == switch {
            return Next::Port(plan.host_down[packet.dst as usize]);
        }
        if let Some(guided) = plan.guided.as_ref().filter(|guided| guided.balancer[packet.balancer as usize]) {
            return self.foresee_guided(guided, switch, edge, packet).map_or(Next::Unknown, Next::Port);
        }
        let hops = self.tables.routes.towards(switch, edge);
        match hops.links {
            [] => Next::Unknown,
            [only] => Next::Port(only.0),
            several => {
                let view = packet.view(plan);
                let candidates = Candidates {
                    count: several.len() as u32,
                    group: hops.group,
                    position: hops.positions,
                    port: hops.ports,
                    uplinks: self.switches.uplinks(switch),
                };
                match self.switches.foresee(switch, packet.balancer, &view, &candidates) {
                    Some(index) => Next::Port(several[index as usize].0),
                    None => Next::Unknown,
                }
            }
        }
    }
}
