//! `[fabric]` with every size in bytes.

use anabranch_backend::{
    FabricParameters, MarkAt, Marking, MarkingParameters, PortSizes, Scheduling, SlowedLimits, Trim,
};
use anabranch_settings::{ControlOr, Never};
use anabranch_topology::{LinkId, NodeKind, Topology};
use anabranch_units::{BytesOrBdp, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// Limits of a port's data queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PortLimits {
    /// Bytes of a class above which packets are trimmed or dropped.
    pub(crate) queue: u32,
    /// Bytes of trimmed headers that wait for their share.
    pub(crate) trimmed: u32,
    pub(crate) marking: Marking,
    /// Bytes of a queue that do not count for marking.
    pub(crate) unmarked: u32,
    /// [`Marking::floor`] if packets are marked when they leave, else a limit that no queue reaches.
    pub(crate) leaving: u32,
    pub(crate) joining: u32,
}

impl PortLimits {
    /// Returns the limits times `now` over `healthy`, rounded down; the queue holds a packet of `least` bytes.
    pub(crate) fn scaled(&self, now: Rate, healthy: Rate, least: u32) -> Self {
        let scale = |bytes: u32| match bytes {
            u32::MAX => u32::MAX,
            bytes => (u128::from(bytes) * u128::from(now.0) / u128::from(healthy.0.max(1))) as u32,
        };
        PortLimits {
            queue: scale(self.queue).max(least.min(self.queue)),
            trimmed: scale(self.trimmed).max(least.min(self.trimmed)),
            marking: self.marking.scaled(scale),
            unmarked: self.unmarked,
            leaving: scale(self.leaving),
            joining: scale(self.joining),
        }
    }
}

/// Share of a port that trimmed headers have while data waits, as the weights of two classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrimmedShare {
    pub(crate) headers: i64,
    pub(crate) data: i64,
    /// Highest credit of the headers, in bytes times the weight of data: that of one full packet.
    pub(crate) most: i64,
}

impl TrimmedShare {
    /// Weights add up to this.
    const WHOLE: f64 = 1_000_000.0;

    pub(crate) fn new(share: f64, wire_mtu: u32) -> Self {
        // A setup built in code may be out of range.
        let headers = (share.clamp(0.001, 0.5) * TrimmedShare::WHOLE).round() as i64;
        TrimmedShare { headers, data: TrimmedShare::WHOLE as i64 - headers, most: headers * i64::from(wire_mtu) }
    }

    /// Returns the time in which a class of headers of `bytes` leaves beside data, in picoseconds.
    pub(crate) fn drain(&self, bytes: u32, rate: Rate) -> u128 {
        u128::from(rate.wire_time(u64::from(bytes)).ps()) * (self.headers + self.data) as u128 / self.headers as u128
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Limits of the ports of most links.
    pub(crate) usual: PortLimits,
    /// Those of the ports of links with another rate or of another tier, where they differ.
    others: Vec<((Rate, u8), PortLimits)>,
    /// Per link, the tier of its port among those of `fabric`'s lists by tier; empty where there are none.
    tiers: Vec<u8>,
    last_tier: u8,
    /// Bytes of a data queue that senders keep to: its limit, or where ports share a buffer the marking threshold.
    kept: Option<u32>,
    pub(crate) control_limit: u32,
    /// `None`: trimmed headers precede data, as control packets do.
    pub(crate) trimmed_share: Option<TrimmedShare>,
    /// The limits of a slowed link fall with its rate.
    pub(crate) slowed_scale: bool,
    pub(crate) trimming: bool,
    pub(crate) marks_last_hop: bool,
    pub(crate) trim: Trim,
    pub(crate) classes: usize,
    pub(crate) scheduling: Scheduling,
    pub(crate) quanta: Vec<i32>,
    pub(crate) pfc: bool,
    /// Picoseconds; `None`: until it is lifted.
    pub(crate) pfc_pause: Option<u64>,
    pub(crate) pfc_frame: u16,
    /// Wire times are truncated to whole nanoseconds.
    pub(crate) whole_nanoseconds: bool,
    /// A packet that arrives exactly when a port becomes free joins before the port chooses.
    pub(crate) arrivals_first: bool,
}

impl Limits {
    /// Resolves `fabric` for packets of `wire_mtu` bytes and the ports of `topology`; `bdp` returns the bandwidth-delay product of
    /// a port by its rate. Fails if a size in bytes does not fit into 32 bits; one in
    /// products is cut there.
    pub(crate) fn new(
        fabric: &FabricParameters,
        marking: &MarkingParameters,
        bdp: &dyn Fn(Rate) -> u64,
        topology: &Topology,
        wire_mtu: u32,
    ) -> Result<Self, String> {
        let rates = common_rates(topology);
        let bytes = |name: &str, size: BytesOrBdp, rate: Rate| match size {
            BytesOrBdp::Bytes(value) => {
                u32::try_from(value).map_err(|_| format!("fabric.{name} is {value} B; at most {} B fit", u32::MAX))
            }
            BytesOrBdp::Bdp(_) => Ok(size.bytes(bdp(rate)).min(u64::from(u32::MAX)) as u32),
        };
        let port = |rate: Rate, tier: u8| -> Result<PortLimits, String> {
            let fabric = &fabric.at_tier(usize::from(tier));
            let queue = bytes("queue_limit", fabric.queue_limit, rate)?;
            let trimmed =
                fabric.trimmed_limit.value().map_or(Ok(queue), |limit| bytes("trimmed_limit", limit, rate))?;
            let kmin = bytes("ecn_kmin", fabric.ecn_kmin, rate)?;
            let kmax = bytes("ecn_kmax", fabric.ecn_kmax, rate)?;
            let sizes = PortSizes { bdp: bdp(rate), rate, kmin, kmax, pmax: fabric.ecn_pmax };
            let marking = Marking::new(marking, &sizes);
            let marks = |at| if fabric.ecn && fabric.ecn_mark_at == at { marking.floor() } else { u32::MAX };
            let unmarked = if fabric.recorded { wire_mtu + 1 } else { 0 };
            let (leaving, joining) = (marks(MarkAt::Dequeue), marks(MarkAt::Enqueue));
            Ok(PortLimits { queue, trimmed, marking, unmarked, leaving, joining })
        };
        let most = rates.first().copied().unwrap_or(Rate(1));
        let last_tier = (fabric.tiers() - 1).min(usize::from(u8::MAX)) as u8;
        let tiers = if last_tier > 0 { tiers(topology, last_tier) } else { Vec::new() };
        // Most ports lead to switches.
        let usual = port(most, 1)?;
        let kinds = rates.iter().flat_map(|rate| (0..=last_tier).map(move |tier| (*rate, tier)));
        let others = kinds.map(|kind| Ok((kind, port(kind.0, kind.1)?))).collect::<Result<Vec<_>, String>>()?;
        let weights =
            if fabric.class_weights.is_empty() { vec![1; fabric.classes.len()] } else { fabric.class_weights.clone() };
        let kept = (fabric.shared_buffer.0 > 0).then(|| {
            let half = u32::try_from(fabric.shared_buffer.0 / 2).unwrap_or(u32::MAX);
            usual.marking.ceiling().filter(|_| fabric.ecn).map_or(half, |ceiling| ceiling.min(half))
        });
        Ok(Limits {
            usual,
            others: others.into_iter().filter(|(_, limits)| *limits != usual).collect(),
            tiers,
            last_tier,
            kept,
            control_limit: bytes("control_limit", fabric.control_limit, rates.iter().copied().max().unwrap_or(most))?,
            trimmed_share: match fabric.trimmed_class {
                ControlOr::Control => None,
                ControlOr::Value(share) => Some(TrimmedShare::new(share, wire_mtu)),
            }
            .filter(|_| fabric.trimming),
            slowed_scale: fabric.slowed_limits == SlowedLimits::Scale,
            trimming: fabric.trimming,
            marks_last_hop: fabric.mark_last_hop_trims,
            trim: fabric.trim,
            classes: fabric.classes.len().max(1),
            scheduling: fabric.scheduling,
            quanta: quanta(&weights, wire_mtu),
            pfc: fabric.pfc,
            pfc_pause: match fabric.pfc_pause {
                Never::Never => None,
                Never::Value(time) => Some(time.ps()),
            },
            pfc_frame: fabric.pfc_frame(),
            whole_nanoseconds: fabric.recorded,
            arrivals_first: fabric.recorded,
        })
    }

    /// Returns the limits of the port of a link with this healthy rate.
    #[inline]
    pub(crate) fn at(&self, link: u32, rate: Rate) -> &PortLimits {
        self.of(rate, self.tiers.get(link as usize).copied().unwrap_or(0))
    }

    /// Returns the limits of the ports of a tier: 0 leads to hosts, 1 from leaves to switches.
    pub(crate) fn of(&self, rate: Rate, tier: u8) -> &PortLimits {
        let kind = (rate, tier.min(self.last_tier));
        self.others.iter().find(|(other, _)| *other == kind).map_or(&self.usual, |(_, limits)| limits)
    }

    /// Returns the limits of each tier of ports with links of this rate.
    fn each(&self, rate: Rate) -> impl Iterator<Item = &PortLimits> {
        (0..=self.last_tier).map(move |tier| self.of(rate, tier))
    }

    /// Fails if no full packet fits into the queue of a switch port that is not alone on its buffer; `reached`: rates of the
    /// ports that flows can reach.
    pub(crate) fn check(&self, topology: &Topology, reached: &BTreeSet<Rate>, wire_mtu: u64) -> Result<(), String> {
        let limit = |link: &LinkId| self.at(link.0, topology.link(*link).rate).queue;
        let of_switch = topology.link_ids().filter(|link| topology.link(*link).from.0 >= topology.hosts);
        let short = of_switch
            .filter(|link| reached.contains(&topology.link(*link).rate))
            .find(|link| self.kept.is_none() && u64::from(limit(link)) < wire_mtu);
        let Some(link) = short else { return Ok(()) };
        let (port, rate, limit) = (topology.link_name(link), topology.link(link).rate, limit(&link));
        Err(format!(
            "fabric.queue_limit: {limit}B at {port} of {rate}: no full packet ({wire_mtu}B) fits; give \"{wire_mtu}B\" or more"
        ))
    }

    /// Returns the bytes that a full data queue holds, where tiers differ the longest.
    pub(crate) fn held(&self, rate: Rate) -> u32 {
        self.kept.unwrap_or_else(|| self.each(rate).map(|limits| limits.queue).max().unwrap_or(0))
    }

    /// Returns the bytes that the shortest full data queue holds.
    pub(crate) fn least_held(&self, rate: Rate) -> u32 {
        self.kept.unwrap_or_else(|| self.each(rate).map(|limits| limits.queue).min().unwrap_or(0))
    }

    /// Returns the most bytes of trimmed headers that wait for their share.
    pub(crate) fn held_headers(&self, rate: Rate) -> u32 {
        self.each(rate).map(|limits| limits.trimmed).max().unwrap_or(0)
    }

    /// Returns the longest data queue of any port, in bytes.
    pub(crate) fn longest_queue(&self) -> u32 {
        self.others.iter().map(|(_, limits)| limits.queue).fold(self.usual.queue, u32::max)
    }
}

/// Returns the rates of the links, the most common one first.
fn common_rates(topology: &Topology) -> Vec<Rate> {
    let mut counts = BTreeMap::new();
    topology.links.iter().for_each(|link| *counts.entry(link.rate).or_insert(0u64) += 1);
    let mut rates: Vec<_> = counts.into_iter().map(|(rate, count)| (std::cmp::Reverse(count), rate)).collect();
    rates.sort_unstable();
    rates.into_iter().map(|(_, rate)| rate).collect()
}

/// Returns the tier of the port of each link, up to `last`: 0 leads to a host, then by the tier of the sending switch.
fn tiers(topology: &Topology, last: u8) -> Vec<u8> {
    let of = |link: LinkId| match (topology.node(topology.link(link).from).kind, topology.link(link).to) {
        (NodeKind::Switch { tier }, to) if to.0 >= topology.hosts => tier.saturating_add(1).min(last),
        _ => 0,
    };
    topology.link_ids().map(of).collect()
}

/// Returns the bytes per class and turn, in proportion to the weights. The smallest is one full packet, so that every
/// turn sends.
fn quanta(weights: &[u64], full_packet: u32) -> Vec<i32> {
    let least = u128::from(weights.iter().copied().min().unwrap_or(1).max(1));
    let scaled = |weight: u64| u128::from(weight) * u128::from(full_packet) / least;
    weights.iter().map(|&weight| scaled(weight).min(i32::MAX as u128 / 2) as i32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_weight_sends_one_full_packet() {
        assert_eq!(quanta(&[3, 1], 100), [300, 100]);
        assert_eq!(quanta(&[5, 2], 100), [250, 100]);
        assert_eq!(quanta(&[u64::MAX, 1], 100), [i32::MAX / 2, 100]);
    }
}
