//! `[fabric]` with every size in bytes.

use super::marking::Marking;
use anabranch_backend::{
    FabricParameters, MarkAt, MarkedBytes, Scheduling, Simultaneous, SlowedLimits, Trim, WireTimes,
};
use anabranch_settings::Never;

#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) queue_limit: u32,
    pub(crate) control_limit: u32,
    pub(crate) ecn: bool,
    pub(crate) marking: Marking,
    pub(crate) mark_at: MarkAt,
    /// The limits of a slowed link fall with its rate.
    pub(crate) slowed_scale: bool,
    pub(crate) trimming: bool,
    pub(crate) trim: Trim,
    pub(crate) trimmed_size: u16,
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
    /// Resolves `fabric` for packets of `wire_mtu` bytes; fails if a size does not fit into 32 bits.
    pub(crate) fn new(fabric: &FabricParameters, bdp: u64, wire_mtu: u32) -> Result<Self, String> {
        let bytes = |name: &str, value: u64| {
            u32::try_from(value).map_err(|_| format!("fabric.{name} is {value} B; at most {} B fit", u32::MAX))
        };
        let weights =
            if fabric.class_weights.is_empty() { vec![1; fabric.classes.len()] } else { fabric.class_weights.clone() };
        Ok(Limits {
            queue_limit: bytes("queue_limit", fabric.queue_limit.bytes(bdp))?,
            control_limit: bytes("control_limit", fabric.control_limit.bytes(bdp))?,
            ecn: fabric.ecn,
            marking: Marking {
                kmin: bytes("ecn_kmin", fabric.ecn_kmin.bytes(bdp))?,
                kmax: bytes("ecn_kmax", fabric.ecn_kmax.bytes(bdp))?,
                pmax: fabric.ecn_pmax,
                beyond: match fabric.marked_bytes {
                    MarkedBytes::All => 0,
                    MarkedBytes::BeyondMinimum => wire_mtu + 1,
                },
            },
            mark_at: fabric.ecn_mark_at,
            slowed_scale: fabric.slowed_limits == SlowedLimits::Scale,
            trimming: fabric.trimming,
            trim: fabric.trim,
            trimmed_size: fabric.trimmed_size.0 as u16,
            classes: fabric.classes.len().max(1),
            scheduling: fabric.scheduling,
            quanta: quanta(&weights, wire_mtu),
            pfc: fabric.pfc,
            pfc_pause: match fabric.pfc_pause {
                Never::Never => None,
                Never::Value(time) => Some(time.ps()),
            },
            pfc_frame: fabric.pfc_frame.0 as u16,
            whole_nanoseconds: fabric.wire_times == WireTimes::WholeNanoseconds,
            arrivals_first: fabric.simultaneous == Simultaneous::Arrival,
        })
    }
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
