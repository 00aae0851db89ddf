//! Limits of shared buffers: dynamic thresholds at the egress, and PFC accounting at the ingress (specification 7.2,
//! specification 17.4).
//!
//! **With PFC nothing is dropped**, at any fan-in (apart from the peculiarities of the reference model). Let L be the bytes
//! that all ingresses may hold before they use their headroom, and H the bytes that the switch holds. A packet that joins while
//! H > L counts as headroom of its ingress (per class). Its sender receives a pause, and no resume before all of that headroom
//! is free again. So the headroom in use of an ingress is at most that packet and the bytes that arrive before the pause takes
//! effect: [`min_headroom`]. Every packet that joined after H last was L or less is counted there. Hence H <= L + the sum of
//! all headroom, which is the whole buffer less the minimum of the queues. This requires that the egress threshold does not
//! act, pause frames do not wait behind other control packets, and pauses do not expire.

use super::LinkPlan;
use anabranch_backend::FabricParameters;
use anabranch_settings::{Auto, Never};
use anabranch_topology::{LinkId, NodeId, Topology};
use anabranch_units::Time;

/// The limits of one switch's buffer, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) total: u64,
    /// Bytes that all ingresses may hold before they use their headroom.
    pub(crate) ingress_limit: u64,
    /// Bytes that all egress queues may hold beyond their minimum.
    pub(crate) egress_limit: u64,
}

/// Thresholds of the switches' shared buffers, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct SharedBuffer {
    pub(crate) size: u64,
    /// Per switch.
    pub(crate) pools: Vec<Pool>,
    /// Per directed link into a switch: bytes reserved for it beyond the thresholds.
    pub(crate) headroom: Vec<u64>,
    /// Bytes that an egress queue holds before it draws on the pool.
    pub(crate) queue_minimum: u32,
    /// Bytes that an ingress holds before it draws on the pool.
    pub(crate) ingress_minimum: u64,
    /// `None`: no threshold at the egress, since PFC keeps the buffer from overflowing.
    pub(crate) alpha_egress: Option<f64>,
    pub(crate) alpha_ingress: f64,
    /// Follows the peculiarities of the reference model.
    pub(crate) recorded: bool,
}

/// Queues per port in the reference model; each has a full packet of its own.
pub(crate) const QUEUES: u64 = 8;
/// Headroom in bytes of a switch's first port in the reference model, less two full packets; regardless of its link.
const FIRST_PORT: u64 = 12_500;

/// Returns the bytes of one class that can join a switch over `link` from the packet that triggers a pause until the
/// pause takes effect, that packet included. Packets have `full` bytes and pause frames `frame` bytes. The frame waits
/// for a packet in transmission, travels, and waits for another packet in transmission; then the link drains.
fn min_headroom(topology: &Topology, link: LinkId, full: u64, frame: u64) -> u64 {
    let delay = |link: LinkId| {
        let to_switch = topology.link(link).to.0 >= topology.hosts;
        topology.link(link).delay + if to_switch { topology.switch_latency } else { Time::ZERO }
    };
    let back = topology.link(link.reverse()).rate;
    let until_paused = back.wire_time(full) + back.wire_time(frame) + delay(link.reverse()) + delay(link);
    // Rounded up: the trigger, the packet in transmission when the pause arrives, and the fraction of a byte.
    topology.link(link).rate.bytes_in(until_paused) + 2 * full + 1
}

/// Returns the reason why a fabric with PFC can lose packets, if any: key, problem and remedy.
pub fn lossless_problem(
    topology: &Topology,
    fabric: &FabricParameters,
    full: u64,
) -> Option<(&'static str, String, String)> {
    if !fabric.pfc || fabric.recorded {
        return None;
    }
    if let Never::Value(pause) = fabric.pfc_pause {
        let message = format!("a pause of {pause} expires while the buffer may still be full, so packets are lost");
        let help = "give pfc_pause = \"never\", or the profile conweave-ns3-lossless, whose pauses expire";
        return Some(("pfc_pause", message, help.into()));
    }
    let Auto::Value(given) = fabric.pfc_headroom else { return None };
    let into_switches =
        (0..topology.links.len() as u32).map(LinkId).filter(|l| topology.link(*l).to.0 >= topology.hosts);
    let (least, link) = into_switches.map(|l| (min_headroom(topology, l, full, fabric.pfc_frame().into()), l)).max()?;
    (given.0 < least).then(|| {
        let name = topology.link_name(link);
        let message = format!(
            "{given} are less than the bytes that arrive over {name} after a pause is sent ({least}B), so packets are lost"
        );
        ("pfc_headroom", message, format!("give pfc_headroom = \"auto\", or {least}B or more"))
    })
}

impl SharedBuffer {
    /// Creates the buffers of switches of `size` bytes each, for packets of `full` bytes; fails if nothing is left to share.
    pub(crate) fn new(
        topology: &Topology,
        links: &[LinkPlan],
        fabric: &FabricParameters,
        full: u64,
    ) -> Result<Self, String> {
        let recorded = fabric.recorded;
        if let Some((key, message, help)) = lossless_problem(topology, fabric, full) {
            return Err(format!("fabric.{key}: {message}; {help}"));
        }
        let size = fabric.shared_buffer.0;
        let needed = |(number, link): (u32, &LinkPlan)| match fabric.pfc_headroom {
            Auto::Value(bytes) => bytes.0,
            Auto::Auto if recorded => 2 * link.rate.bytes_in(Time::from_ps(link.delay)) + 2 * full,
            Auto::Auto => min_headroom(topology, LinkId(number), full, fabric.pfc_frame().into()),
        };
        let headroom: Vec<u64> = (0..).zip(links).map(needed).collect();
        let alpha_egress = (recorded || !fabric.pfc).then_some(fabric.buffer_alpha);
        let mut pools = Vec::new();
        for switch in 0..topology.switches() {
            let node = NodeId(topology.hosts + switch);
            let into: Vec<u64> = topology.out_links(node).iter().map(|l| headroom[l.reverse().0 as usize]).collect();
            let minimum = QUEUES * full * into.len() as u64;
            let kept: u64 = match (recorded, fabric.pfc) {
                // The last port's headroom is not counted, and the first one's is a constant.
                (true, _) => FIRST_PORT + 2 * full + into.iter().rev().skip(1).sum::<u64>(),
                // Every class has its own pauses.
                (false, true) => into.iter().sum::<u64>() * fabric.classes.len().max(1) as u64,
                (false, false) => 0,
            };
            if kept + minimum + full > size {
                let name = &topology.node(node).name;
                return Err(format!(
                    "fabric.shared_buffer: {size} B are too few for {name}: its {} ports need {kept} B of headroom and \
                     {minimum} B of minimum; give {} B or more",
                    into.len(),
                    kept + minimum + full
                ));
            }
            let (ingress_limit, egress_limit) = (size - kept - minimum, size - minimum);
            if alpha_egress.is_some_and(|alpha| full as f64 > alpha * egress_limit as f64) {
                let (name, least) = (&topology.node(node).name, full as f64 / egress_limit as f64);
                return Err(format!(
                    "fabric.buffer_alpha: {} of the {egress_limit} B that {name} shares: no full packet ({full} B) fits into an \
                     empty queue; give {least:.2e} or more",
                    fabric.buffer_alpha
                ));
            }
            pools.push(Pool { total: size, ingress_limit, egress_limit });
        }
        Ok(SharedBuffer {
            size,
            pools,
            headroom,
            queue_minimum: if recorded { full as u32 + 1 } else { full as u32 },
            ingress_minimum: 2 * full,
            alpha_egress,
            alpha_ingress: fabric.pfc_alpha,
            recorded,
        })
    }
}
