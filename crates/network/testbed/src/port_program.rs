//! BPF program that marks and trims at a switch's port: its settings are written into the compiled object, `tc` loads
//! it, and bpf(2) reads its counters. The object is precompiled, so that building needs neither clang nor headers; a
//! test compiles the source (`port.bpf.c`) and compares.

use crate::{
    Queue, TestbedError,
    bpf::{self, Array},
    plan::burst,
    programs::run,
};
use anabranch_endpoint::header::MAX_HEADER;

pub const OBJECT: &[u8] = include_bytes!("port.bpf.o");
/// First word of the settings.
const MAGIC: u64 = 0x416e_6162_7261_634e;
/// Bytes that remain of a trimmed frame: headers of Ethernet, IPv4, UDP, and the longest protocol header.
const KEEP: u64 = 14 + 20 + 8 + MAX_HEADER as u64;
/// Offset of the counters in the program's state, after lock, padding, time and level.
const COUNTERS: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Packets that arrived at the port, including those dropped later.
    pub(crate) offered: u64,
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) deepest: u64,
}

fn object(template: &[u8], rate: u64, mtu: u32, queue: &Queue) -> Result<Vec<u8>, TestbedError> {
    let marking = queue.marking.map_or([u64::MAX, u64::MAX, 0], |marking| {
        let probability = (marking.probability.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u64;
        [marking.min, marking.max.max(marking.min + 1), probability]
    });
    let [min, max, probability] = marking;
    let trims = u64::from(queue.trimming);
    let settings = [MAGIC, rate, burst(rate, mtu), queue.limit, min, max, probability, trims, KEEP];
    let magic = MAGIC.to_le_bytes();
    let at = template.windows(magic.len()).position(|window| window == magic);
    let at = at.ok_or_else(|| TestbedError::Input("the port program has no settings".into()))?;
    let mut object = template.to_vec();
    for (place, value) in object[at..].chunks_exact_mut(8).zip(settings) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    Ok(object)
}

pub(crate) fn attach(
    template: &[u8],
    namespace: &str,
    port: &str,
    rate: u64,
    mtu: u32,
    queue: &Queue,
) -> Result<(), TestbedError> {
    let object = object(template, rate, mtu, queue)?;
    bpf::prepare(namespace, port)?;
    bpf::load(&object, namespace, port, "egress")
}

/// Rate of the virtual queue of a port, which can change while packets pass.
#[derive(Debug)]
pub(crate) struct Speed {
    array: Array,
    mtu: u32,
}

impl Speed {
    pub(crate) fn open(namespace: &str, port: &str, mtu: u32) -> Result<Self, TestbedError> {
        Ok(Speed { array: Array::at_port(program(namespace, port)?, "speed", namespace, port)?, mtu })
    }

    /// Sets the rate to that of the real queue.
    pub(crate) fn set(&self, rate: u64) -> Result<(), TestbedError> {
        let value = [rate, burst(rate, self.mtu)].map(u64::to_ne_bytes);
        self.array.set_first(value.as_flattened()).map_err(|error| TestbedError::system("the rate of a port", error))
    }
}

pub(crate) fn detach(namespace: &str, port: &str) -> Result<(), TestbedError> {
    run("tc", &["-n", namespace, "qdisc", "del", "dev", port, "clsact"], "").map(drop)
}

fn program(namespace: &str, port: &str) -> Result<u32, TestbedError> {
    bpf::program(namespace, port, "egress")?.ok_or_else(|| bpf::not_there(namespace, port))
}

/// Returns packets, marked, trimmed and deepest queue; in the test's build also the sums of both queues.
/// Fails if there is no program or the system denies access to its state.
pub fn counters(namespace: &str, port: &str) -> Result<[u64; 6], TestbedError> {
    let failed = |error| TestbedError::system(format!("reading the counters of port {port} of {namespace}"), error);
    let words = Array::at_port(program(namespace, port)?, "port", namespace, port)?.words(COUNTERS).map_err(failed)?;
    let counters = words.get(..6).and_then(|words| words.try_into().ok());
    counters.ok_or_else(|| failed(std::io::Error::other(format!("{} words of state", words.len()))))
}

pub(crate) fn counted(namespace: &str, port: &str) -> Result<Counted, TestbedError> {
    let [offered, marked, trimmed, deepest, ..] = counters(namespace, port)?;
    Ok(Counted { offered, marked, trimmed, deepest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Marking;

    #[test]
    fn settings_match_the_layout_of_the_program() {
        let marking = Some(Marking { min: 30_000, max: 90_000, probability: 1.0 });
        let queue = Queue { limit: 300_000, marking, trimming: true };
        let patched = object(OBJECT, 20_000_000, 4180, &queue).unwrap();
        assert_eq!(patched.len(), OBJECT.len());
        let at = patched.windows(8).position(|w| w == MAGIC.to_le_bytes()).unwrap();
        let word = |n: usize| u64::from_le_bytes(patched[at + 8 * n..][..8].try_into().unwrap());
        let expected = [MAGIC, 20_000_000, 15_000, 300_000, 30_000, 90_000, u64::from(u32::MAX), 1, 138];
        assert_eq!((0..9).map(word).collect::<Vec<_>>(), expected);
        let others = patched[at + 8..].windows(8).filter(|w| **w == MAGIC.to_le_bytes()).count();
        assert_eq!(others, 0, "the settings stand once");
    }
}
