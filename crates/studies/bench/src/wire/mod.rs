//! `anabranch bench --wire`: what packets cost. Goodput per second of CPU time, both ends counted, of our endpoints beside plain
//! sockets of the same datagrams in the same program, all over the loopback interface; and nanoseconds per packet without any
//! socket.

mod carried;
mod iperf;
mod per_packet;
mod shared;

pub use carried::{Carried, Way, measure as carry};
pub use per_packet::{Check, Part, PerPacket};

use anabranch_wire::WireError;

/// A ratio that should be at least `target`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// What is compared.
    pub of: Way,
    /// With what.
    pub to: Way,
    /// The ratio that is wanted.
    pub target: f64,
    /// The median of the ratios of all repetitions; `None`: one of them could not be measured.
    pub median: Option<f64>,
}

/// What has been measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Per repetition what each way carried.
    pub carried: Vec<Vec<Carried>>,
    /// Costs without sockets, the median of the repetitions.
    pub per_packet: Vec<PerPacket>,
    /// The ratios, each within one repetition.
    pub ratios: Vec<Ratio>,
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

impl Measured {
    /// Goodput per second of CPU time of a way, in bytes: the median of the repetitions.
    pub fn bytes_per_cpu_second(&self, way: Way) -> Option<f64> {
        median(self.carried.iter().flatten().filter(|of| of.way == way).map(Carried::bytes_per_cpu_second).collect())
    }
}

/// What should be reached (goodput per second of CPU time).
const WANTED: [(Way, Way, f64); 9] = [
    (Way::Spray, Way::Plain, 0.9),
    (Way::Spray, Way::IperfUdp, 1.0),
    (Way::SprayRuns, Way::Spray, 2.0),
    (Way::OnePath, Way::PlainRuns, 0.75),
    (Way::OnePath, Way::IperfTcp, 0.8),
    (Way::Spray, Way::SprayUnchecked, 0.97),
    (Way::OnePath, Way::OnePathUnchecked, 0.97),
    (Way::OnePathControl, Way::OnePathUnchecked, 0.85),
    (Way::OnePathAll, Way::OnePathUnchecked, 0.3),
];

/// Measures everything `repetitions` times, `bytes` bytes a way; `say` is told what is being done.
///
/// # Errors
/// Where sockets cannot be opened or carry nothing.
pub fn measure(repetitions: usize, bytes: u64, say: &mut dyn FnMut(&str)) -> Result<Measured, WireError> {
    let mut measured = Measured::default();
    let mut costs: Vec<Vec<PerPacket>> = Vec::new();
    for repetition in 0..repetitions.max(1) {
        say(&format!("repetition {} of {repetitions}: sockets, endpoints, memory", repetition + 1));
        let mut round = Vec::new();
        for way in Way::ALL {
            round.extend(carried::measure(*way, bytes)?);
        }
        measured.carried.push(round);
        costs.push(per_packet::measure());
    }
    measured.per_packet = (0..costs[0].len())
        .map(|at| {
            let all = costs.iter().map(|round| round[at].nanoseconds).collect();
            PerPacket { nanoseconds: median(all).unwrap_or_default(), ..costs[0][at].clone() }
        })
        .collect();
    measured.ratios = WANTED
        .iter()
        .map(|&(of, to, target)| {
            let one =
                |round: &Vec<Carried>, way| round.iter().find(|of| of.way == way).map(Carried::bytes_per_cpu_second);
            let ratios = measured.carried.iter().filter_map(|round| Some(one(round, of)? / one(round, to)?)).collect();
            Ratio { of, to, target, median: median(ratios) }
        })
        .collect();
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_of_everything() {
        let measured = measure(1, 4 << 20, &mut |_| ()).unwrap();
        for way in [Way::Plain, Way::PlainRuns, Way::Spray, Way::SprayRuns, Way::OnePath] {
            assert!(measured.bytes_per_cpu_second(way).is_some_and(|rate| rate > 1e6), "{way:?}");
        }
        assert!(measured.per_packet.iter().all(|cost| cost.nanoseconds > 1.0 && cost.nanoseconds < 1e6));
        assert!(measured.ratios[0].median.is_some());
    }

    #[test]
    fn medians() {
        assert_eq!((median(vec![]), median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (None, Some(2.0), Some(2.5)));
    }
}
