//! Servers: GPUs with NICs and a scale-up network. Workloads send messages between GPUs; [`ServerParameters::route`] maps
//! each to one or two flows.

use crate::{
    Flow, FlowSet, Medium, Start, Trigger, TriggerId, TriggerKind, WorkloadError, generate::MAX_TRIGGERS,
    view::FLOW_MEMORY,
};
use anabranch_random::mix;
use anabranch_settings::{choices, parameters};
use anabranch_units::{Rate, Time};

/// Maximum number of flows with servers: an event keeps two bits of their number.
const MAX_FLOWS: usize = 1 << 30;
/// Distinguishes the key of a message's part in its server from that of its part in the network.
const PART: u64 = 0x5CA1_E0B0;

choices! {
    /// Path of messages between GPUs of different servers and rails.
    pub enum CrossRail {
        /// Over the scale-up network to the GPU of the destination's rail, then over that rail.
        Pxn = "pxn",
        /// Over the network, from rail to rail.
        Network = "network",
    }
}

parameters! {
    /// Servers: groups of hosts (NICs) with GPUs, the endpoints of the traffic, and a scale-up network between the GPUs.
    pub struct ServerParameters {
        /// GPUs of a server. GPU g is in server g / gpus.
        gpus: u32 = 8, within 1..=1 << 16, source "NVIDIA DGX H100 (RA-11333-001)";
        /// NICs of a server, a divisor of `gpus`. NIC r of server s is host s * nics + r of the topology and is on rail r.
        nics: u32 = 8, within 1..=1 << 16, source "NVIDIA DGX H100 (RA-11333-001)";
        /// Rate of the port of a GPU to the scale-up network, in each direction.
        scale_up_rate: Rate = Rate::gbps(3600), within Rate(1_000_000)..=Rate::LARGEST, source "NVLink 4: 900 GB/s of a GPU in both directions together", Expert;
        /// Time from the first byte sent to the first byte received between two GPUs of a server, and of an acknowledgement back.
        scale_up_latency: Time = Time::from_us(1), within Time::ZERO..=Time::from_ms(1000), source "ours", Expert;
        /// Path of messages between GPUs of different servers and rails.
        cross_rail: CrossRail = CrossRail::Pxn, source "NCCL 2.12: PXN", Expert;
    }
}

impl ServerParameters {
    /// Checks what depends on several keys.
    /// Errors: [`WorkloadError`] with the key at fault.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let (gpus, nics) = (self.gpus, self.nics);
        WorkloadError::unless(gpus >= nics, "gpus", gpus, &format!("{nics} (`nics`) or more: every NIC has a GPU"))?;
        let near = (1..=nics).rev().find(|near| gpus.is_multiple_of(*near)).unwrap_or(1);
        let expected = format!("a divisor of the {gpus} `gpus`, such as {near}: every NIC has as many of them");
        WorkloadError::unless(gpus.is_multiple_of(nics), "nics", nics, &expected)
    }

    /// Checks that `hosts` NICs, on `rails` rails where the fabric is wired by rails, are those of servers.
    /// Errors: [`WorkloadError`] with the key at fault.
    pub fn check_hosts(&self, hosts: u32, rails: Option<u32>) -> Result<(), WorkloadError> {
        let nics = self.nics;
        if let Some(rails) = rails
            && rails != nics
        {
            let expected = format!("{rails}: the topology has {rails} rails, and NIC r of a server is on rail r");
            return WorkloadError::unless(false, "nics", nics, &expected);
        }
        let expected = format!("a divisor of the {hosts} hosts of the topology, each of which is a NIC");
        WorkloadError::unless(hosts.is_multiple_of(nics), "nics", nics, &expected)?;
        let gpus = u64::from(hosts / nics) * u64::from(self.gpus);
        let expected = format!("fewer: {} servers have {gpus} GPUs, and at most {} are allowed", hosts / nics, 1 << 24);
        WorkloadError::unless(gpus <= 1 << 24, "gpus", self.gpus, &expected)
    }

    /// Returns the number of GPUs of servers with `hosts` NICs in all.
    pub fn endpoints(&self, hosts: u32) -> u32 {
        hosts / self.nics * self.gpus
    }

    pub fn server_of(&self, gpu: u32) -> u32 {
        gpu / self.gpus
    }

    /// Returns the rail of a GPU: the number of its NIC in its server.
    pub fn rail_of(&self, gpu: u32) -> u32 {
        gpu % self.gpus / (self.gpus / self.nics)
    }

    /// Returns the NIC of a GPU: a host of the topology.
    pub fn nic_of(&self, gpu: u32) -> u32 {
        self.server_of(gpu) * self.nics + self.rail_of(gpu)
    }

    /// Returns the first GPU of a NIC.
    pub fn gpu_of(&self, host: u32) -> u32 {
        host / self.nics * self.gpus + host % self.nics * (self.gpus / self.nics)
    }

    /// Returns the time from the first byte sent to the last byte received of a message alone in its server.
    pub fn scale_up_time(&self, bytes: u64) -> Time {
        self.scale_up_rate.wire_time(bytes) + self.scale_up_latency
    }

    /// Maps the messages of `set`, which are between GPUs, to flows between hosts, and adds the servers to the set.
    ///
    /// A message inside a server is a flow over scale-up, one between GPUs of a rail a flow over the network. Between rails
    /// it is a flow over the network, or with PXN a flow over scale-up, and one over the network that starts when the first
    /// is received. The first has the message's number and start; the second its key, `on_sent` and `on_received`, and
    /// follows after all flows of the set. Homes of triggers remain GPUs. `memory` is that which flows may take.
    /// Fails if there are too many flows.
    pub fn route(&self, set: &mut FlowSet, memory: u64) -> Result<(), WorkloadError> {
        let relayed = |flow: &Flow| self.relay(flow.src, flow.dst).is_some();
        let more = set.flows.iter().filter(|flow| relayed(flow)).count();
        let flows = set.flows.len() + more;
        let max = MAX_FLOWS.min(usize::try_from(memory / FLOW_MEMORY).unwrap_or(usize::MAX));
        if flows > max || set.triggers.len() + more > MAX_TRIGGERS {
            let message = format!(
                "found \"pxn\", with which {more} messages between rails are two flows each: {flows} in all, at most {max} fit"
            );
            return Err(WorkloadError::of_key("cross_rail", message));
        }
        set.flows.reserve_exact(more);
        set.triggers.reserve_exact(more);
        for number in 0..set.flows.len() {
            let flow = &mut set.flows[number];
            let (src, dst) = (flow.src, flow.dst);
            let relay = self.relay(src, dst);
            let first_dst = relay.unwrap_or(dst);
            let is_inside = self.server_of(src) == self.server_of(first_dst);
            (flow.src, flow.dst) = (self.nic_of(src), self.nic_of(first_dst));
            flow.gpus = Some((src, first_dst));
            flow.medium = if is_inside { Medium::ScaleUp } else { Medium::Network };
            let Some(relay) = relay else { continue };
            let trigger = TriggerId(set.triggers.len() as u32);
            let second = Flow {
                src: self.nic_of(relay),
                dst: self.nic_of(dst),
                gpus: Some((relay, dst)),
                medium: Medium::Network,
                start: Start::On(trigger),
                ..*flow
            };
            (flow.key, flow.connection) = (mix(flow.key ^ PART), mix(flow.connection ^ PART));
            (flow.on_sent, flow.on_received) = (None, Some(trigger));
            let target = set.flows.len() as u32;
            set.triggers.push(Trigger { home: Some(relay), ..Trigger::new(TriggerKind::Oneshot, vec![target]) });
            set.flows.push(second);
            // Both carry the message, where it belongs to a job.
            set.messages.extend(set.messages.get(number).copied());
        }
        set.servers = Some(self.clone());
        Ok(())
    }

    /// Returns the GPU in the source's server that passes a message on over the rail of its destination, with PXN.
    fn relay(&self, src: u32, dst: u32) -> Option<u32> {
        let server = self.server_of(src);
        let is_needed = self.cross_rail == CrossRail::Pxn
            && server != self.server_of(dst)
            && self.rail_of(src) != self.rail_of(dst);
        is_needed.then(|| server * self.gpus + dst % self.gpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::plain;
    use anabranch_settings::{Parameters, Raw};

    fn servers(gpus: u32, nics: u32, cross_rail: CrossRail) -> ServerParameters {
        ServerParameters { gpus, nics, cross_rail, ..Default::default() }
    }

    fn set(messages: &[(u32, u32)]) -> FlowSet {
        let flow = |(number, (src, dst)): (usize, &(u32, u32))| {
            let number = number as u32;
            let flow = plain(*src, *dst, 100, Start::At(Time::from_ns(number.into())));
            let [on_sent, on_received] = [Some(TriggerId(0)), Some(TriggerId(1))];
            Flow { listed: number, key: 7 + u64::from(number), on_sent, on_received, ..flow }
        };
        let trigger = || Trigger::new(TriggerKind::Barrier(9), vec![]);
        FlowSet {
            flows: messages.iter().enumerate().map(flow).collect(),
            triggers: vec![trigger(), trigger()],
            ..FlowSet::default()
        }
    }

    #[test]
    fn gpus_share_the_nics_of_their_server_in_order() {
        // 8 GPUs and 4 NICs: GPUs 0 and 1 on NIC 0, 2 and 3 on NIC 1; server 1 has GPUs 8 to 15 and hosts 4 to 7.
        let of = servers(8, 4, CrossRail::Pxn);
        assert_eq!([0, 1, 2, 7, 8, 13].map(|gpu| of.nic_of(gpu)), [0, 0, 1, 3, 4, 6]);
        assert_eq!([0, 1, 2, 7, 8, 13].map(|gpu| of.rail_of(gpu)), [0, 0, 1, 3, 0, 2]);
        assert_eq!([0, 3, 4, 6].map(|host| of.gpu_of(host)), [0, 6, 8, 12]);
        assert_eq!(of.endpoints(8), 16);
        assert!(
            (0..16)
                .all(|gpu| of.gpu_of(of.nic_of(gpu)) <= gpu && of.nic_of(of.gpu_of(of.nic_of(gpu))) == of.nic_of(gpu))
        );
    }

    #[test]
    fn messages_take_the_path_of_their_rail() {
        // 4 GPUs and NICs per server: 0 to 3 inside, 1 to 5 on rail 1, 2 to 7 from rail 2 to rail 3.
        let mut made = set(&[(0, 3), (1, 5), (2, 7)]);
        servers(4, 4, CrossRail::Pxn).route(&mut made, u64::MAX).unwrap();
        let of = |flow: &Flow| (flow.src, flow.dst, flow.medium, flow.gpus);
        assert_eq!(
            made.flows.iter().map(of).collect::<Vec<_>>(),
            [
                (0, 3, Medium::ScaleUp, Some((0, 3))),
                (1, 5, Medium::Network, Some((1, 5))),
                // To GPU 3, which is on rail 3, of the same server.
                (2, 3, Medium::ScaleUp, Some((2, 3))),
                (3, 7, Medium::Network, Some((3, 7))),
            ]
        );
        let (first, second) = (&made.flows[2], &made.flows[3]);
        assert_eq!(
            (first.start, first.on_sent, first.on_received),
            (Start::At(Time::from_ns(2)), None, Some(TriggerId(2)))
        );
        assert_eq!(
            (second.start, second.on_sent, second.on_received),
            (Start::On(TriggerId(2)), Some(TriggerId(0)), Some(TriggerId(1)))
        );
        assert_eq!((second.key, second.size), (9, 100));
        assert_ne!(first.key, 9);
        assert_eq!(made.triggers[2], Trigger { home: Some(3), ..Trigger::new(TriggerKind::Oneshot, vec![3]) });
    }

    #[test]
    fn the_network_can_carry_messages_between_rails() {
        let mut made = set(&[(0, 3), (2, 7)]);
        servers(4, 4, CrossRail::Network).route(&mut made, u64::MAX).unwrap();
        assert_eq!(
            made.flows.iter().map(|f| (f.src, f.dst, f.medium)).collect::<Vec<_>>(),
            [(0, 3, Medium::ScaleUp), (2, 7, Medium::Network)]
        );
        assert_eq!(made.triggers.len(), 2);
    }

    /// With two GPUs per NIC, the relay has the place of the destination in its server.
    #[test]
    fn relays_share_the_nic_of_the_destination_rail() {
        let of = servers(4, 2, CrossRail::Pxn);
        // GPUs 0 and 1 are on rail 0, 2 and 3 on rail 1.
        assert_eq!(
            [(0, 5), (0, 6), (1, 7), (3, 4), (0, 3)].map(|(src, dst)| of.relay(src, dst)),
            [None, Some(2), Some(3), Some(0), None]
        );
    }

    #[test]
    fn memory_limits_the_second_flows() {
        let error = servers(4, 4, CrossRail::Pxn).route(&mut set(&[(2, 7)]), FLOW_MEMORY).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("cross_rail"));
        assert!(error.message.contains("2 in all, at most 1 fit"), "{error}");
    }

    #[test]
    fn impossible_servers_name_the_key() {
        let base = ServerParameters::default;
        for (wrong, key) in [
            (ServerParameters { gpus: 4, nics: 8, ..base() }, "gpus"),
            (ServerParameters { gpus: 8, nics: 3, ..base() }, "nics"),
        ] {
            assert_eq!(wrong.check().unwrap_err().key.as_deref(), Some(key));
        }
        let text = |text: &str| Raw::Text(text.into());
        for (key, value) in [
            ("gpus", Raw::Int(0)),
            ("nics", Raw::Int(65_537)),
            ("scale_up_rate", text("999999bps")),
            ("scale_up_latency", text("1001ms")),
        ] {
            assert!(base().set(key, &value).unwrap_err().to_string().contains("from "), "{key}");
        }
        assert!(servers(8, 3, CrossRail::Pxn).check().unwrap_err().message.contains("such as 2"));
        assert!(
            base().check().is_ok() && base().check_hosts(64, Some(8)).is_ok() && base().check_hosts(64, None).is_ok()
        );
        let wrong = |hosts, rails| base().check_hosts(hosts, rails).unwrap_err().to_string();
        assert!(wrong(64, Some(4)).contains("the topology has 4 rails"), "{}", wrong(64, Some(4)));
        assert!(wrong(60, None).contains("a divisor of the 60 hosts"), "{}", wrong(60, None));
        let many = servers(1 << 16, 1, CrossRail::Pxn).check_hosts(1024, None).unwrap_err();
        assert_eq!(many.key.as_deref(), Some("gpus"));
    }

    /// 4000 B at 400 Gb/s (20 ps per byte) are 80 ns, and 700 ns of latency.
    #[test]
    fn a_message_alone_takes_its_bytes_and_the_latency() {
        let of = ServerParameters {
            scale_up_rate: Rate::gbps(400),
            scale_up_latency: Time::from_ns(700),
            ..Default::default()
        };
        assert_eq!(of.scale_up_time(4000), Time::from_ns(780));
    }
}
