use crate::Label;
use anabranch_lb::registry::{HostParameters, SchemeError};
use anabranch_settings::Raw;
use anabranch_units::Time;

/// Configuration of a [`crate::chunks::ChunkDriver`].
#[derive(Clone, Debug)]
pub struct ChunkSettings {
    /// Scheme that chooses paths, configured for chunks ([`chunk_scheme`]).
    pub scheme: HostParameters,
    /// Seed of the scheme's draws.
    pub seed: u64,
    /// Labels to choose from, at least one.
    pub labels: Vec<Label>,
    /// Queues per stream. With more labels than queues, idle queues are relabelled.
    pub max_queues: u32,
    /// Maximum bytes of a chunk. Messages are cut evenly.
    pub chunk: u32,
    /// Maximum chunks of a stream under way.
    pub window: u32,
    /// Bytes of a probe.
    pub probe: u32,
    /// Offset in the receiver's memory to which probes are written.
    pub probe_to: u64,
    /// Probes that measure the base round trip, over the path on which the first was fastest.
    pub calibrations: u32,
    /// Whole chunks that measure it, over the same path.
    pub chunk_calibrations: u32,
    /// Minimum noise floor: round trips up to this much above the base count as uncongested.
    pub rtt_floor: Time,
    /// A chunk that the hardware fails to deliver makes a scheme leave the path it keeps; otherwise the scheme's own
    /// `on_timeout` applies.
    pub moves_on_timeout: bool,
    /// Transmissions of a chunk before its stream is lost.
    pub tries: u32,
}

impl ChunkSettings {
    /// Returns the defaults for a scheme: eight labels and queues, chunks of 1 MB and probes of 10 kB (Hopper §4.2).
    pub fn new(scheme: HostParameters) -> Self {
        ChunkSettings {
            scheme,
            seed: 1,
            labels: (1..=8).collect(),
            max_queues: 8,
            chunk: 1_000_000,
            window: 1,
            probe: 10_000,
            probe_to: 0,
            calibrations: 16,
            chunk_calibrations: 4,
            rtt_floor: Time::ZERO,
            moves_on_timeout: true,
            tries: 8,
        }
    }

    /// Configures the scheme with labels, chunk size and window.
    pub fn configure_scheme(&mut self) -> Result<(), SchemeError> {
        let labels = self.labels.len() as u32;
        if self.moves_on_timeout {
            // Schemes without this key handle timeouts themselves.
            let _ = self.scheme.parameters_mut().set("on_timeout", &Raw::Text("move".into()));
        }
        chunk_scheme(&mut self.scheme, labels, self.chunk, self.window, self.probe)
    }
}

/// Sets the parameters for chunks that a scheme has: granularity, chunk size, chunks under way, one tag per label.
/// `flowbender` uses round trips, since there are no marks.
///
/// Fails if the scheme cannot work with this number of labels.
pub fn chunk_scheme(
    scheme: &mut HostParameters,
    labels: u32,
    chunk: u32,
    window: u32,
    probe: u32,
) -> Result<(), SchemeError> {
    let number = |n: u32| Raw::Int(i64::from(n));
    let bytes = |n: u32| Raw::Text(format!("{n}B"));
    let pending = [
        ("granularity", Raw::Text("chunk".into())),
        ("variant", Raw::Text("rtt".into())),
        ("chunk", bytes(chunk)),
        ("probe_size", bytes(probe)),
        ("outstanding", number(window)),
        ("values", number(labels)),
        ("entropy_values", number(labels)),
        ("range", number(labels)),
    ];
    for (key, value) in &pending {
        // Most schemes have few of these keys.
        let _ = scheme.parameters_mut().set(key, value);
    }
    scheme.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_learn_of_chunks_and_labels() {
        let entry = |scheme: &HostParameters, key: &str| {
            let all = scheme.parameters().entries();
            all.iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_string()).unwrap_or_default()
        };
        let mut hopper = HostParameters::named("hopper").unwrap();
        chunk_scheme(&mut hopper, 6, 1_000_000, 2, 10_000).unwrap();
        let entries = ["granularity", "chunk", "outstanding", "values", "probe_size"].map(|key| entry(&hopper, key));
        assert_eq!(entries, ["\"chunk\"", "\"1MB\"", "2", "6", "\"10kB\""]);
        assert!(chunk_scheme(&mut hopper, 1, 1, 1, 1).is_err(), "one label leaves nothing to choose");
        let mut flowbender = HostParameters::named("flowbender").unwrap();
        chunk_scheme(&mut flowbender, 6, 1_000_000, 1, 10_000).unwrap();
        assert_eq!(["variant", "range"].map(|key| entry(&flowbender, key)), ["\"rtt\"", "6"]);
    }
}
