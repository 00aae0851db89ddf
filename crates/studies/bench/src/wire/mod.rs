//! `anabranch bench --wire`: goodput per second of CPU time of our endpoints and of plain sockets with equal datagrams
//! over the loopback interface; and nanoseconds per packet without sockets.

mod carried;
mod iperf;
mod per_packet;
mod shared;

pub use carried::{Carried, SendMethod, measure as carry};
pub use per_packet::{Layers, PacketCheck, PerPacket};

use anabranch_wire::WireError;

/// Ratio with its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Numerator.
    pub of: SendMethod,
    /// Denominator.
    pub to: SendMethod,
    /// Minimum to reach.
    pub target: f64,
    /// Median ratio of all repetitions; `None` if one could not be measured.
    pub median: Option<f64>,
}

/// Results of `bench --wire`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WireResult {
    /// Measurements of each repetition.
    pub carried: Vec<Vec<Carried>>,
    /// Costs without sockets, medians of the repetitions.
    pub per_packet: Vec<PerPacket>,
    /// Ratios, each within one repetition.
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

impl WireResult {
    /// Median goodput of a method, in bytes per second of CPU time.
    pub fn bytes_per_cpu_second(&self, method: SendMethod) -> Option<f64> {
        median(
            self.carried.iter().flatten().filter(|of| of.method == method).map(Carried::bytes_per_cpu_second).collect(),
        )
    }
}

const TARGETS: [(SendMethod, SendMethod, f64); 9] = [
    (SendMethod::Spray, SendMethod::Plain, 0.9),
    (SendMethod::Spray, SendMethod::IperfUdp, 1.0),
    (SendMethod::SprayRuns, SendMethod::Spray, 2.0),
    (SendMethod::OnePath, SendMethod::PlainRuns, 0.75),
    (SendMethod::OnePath, SendMethod::IperfTcp, 0.8),
    (SendMethod::Spray, SendMethod::SprayUnchecked, 0.97),
    (SendMethod::OnePath, SendMethod::OnePathUnchecked, 0.97),
    (SendMethod::OnePathControl, SendMethod::OnePathUnchecked, 0.85),
    (SendMethod::OnePathAll, SendMethod::OnePathUnchecked, 0.3),
];

/// Measures every method `repetitions` times with `bytes` bytes; `say` receives progress messages.
pub fn measure(repetitions: usize, bytes: u64, say: &mut dyn FnMut(&str)) -> Result<WireResult, WireError> {
    let mut measured = WireResult::default();
    let mut costs: Vec<Vec<PerPacket>> = Vec::new();
    for repetition in 0..repetitions.max(1) {
        say(&format!("repetition {} of {repetitions}: sockets, endpoints, memory", repetition + 1));
        let mut round = Vec::new();
        for method in SendMethod::ALL {
            round.extend(carried::measure(*method, bytes)?);
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
    measured.ratios = TARGETS
        .iter()
        .map(|&(of, to, target)| {
            let one = |round: &Vec<Carried>, method| {
                round.iter().find(|of| of.method == method).map(Carried::bytes_per_cpu_second)
            };
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
    fn every_measurement_returns_a_number() {
        let measured = measure(1, 4 << 20, &mut |_| ()).unwrap();
        for method in
            [SendMethod::Plain, SendMethod::PlainRuns, SendMethod::Spray, SendMethod::SprayRuns, SendMethod::OnePath]
        {
            assert!(measured.bytes_per_cpu_second(method).is_some_and(|rate| rate > 1e6), "{method:?}");
        }
        assert!(measured.per_packet.iter().all(|cost| cost.nanoseconds > 1.0 && cost.nanoseconds < 1e6));
        assert!(measured.ratios[0].median.is_some());
    }

    #[test]
    fn medians() {
        assert_eq!((median(vec![]), median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (None, Some(2.0), Some(2.5)));
    }
}
