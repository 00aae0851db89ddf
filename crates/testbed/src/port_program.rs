//! The program at a switch's port that marks and trims: settings written into the compiled object, loaded by `tc`, counters
//! read by `bpftool`.
//!
//! The object comes compiled, so that neither clang nor headers are needed to build a testbed; a test compiles the source
//! beside it (`port.bpf.c`) and compares.

use crate::{Queue, TestbedError, fabric::burst, programs::run};
use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

/// The compiled program.
pub const OBJECT: &[u8] = include_bytes!("port.bpf.o");
/// What its settings begin with.
const MAGIC: u64 = 0x416e_6162_7261_634e;
/// Bytes that stay of a trimmed frame: headers of Ethernet, IPv4 and UDP and our own data header.
const KEEP: u64 = 14 + 20 + 8 + 64;
/// Where the counters stand in the program's state: after lock, padding, time and level.
const COUNTERS: usize = 24;

/// Object files that this process has written.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// What a port's program has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) deepest: u64,
}

/// The object with the settings of a port.
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

/// Puts the program at a port, in place of one that is there, and then changes the port as `change` says (a line for `tc`): at once,
/// since what comes in between is in one of the two queues and not in the other, and there it stays while they do not run empty.
pub(crate) fn attach(
    template: &[u8],
    namespace: &str,
    port: &str,
    rate: u64,
    mtu: u32,
    queue: &Queue,
    change: &str,
) -> Result<(), TestbedError> {
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("anabranch-port-{}-{number}.o", std::process::id()));
    let object = object(template, rate, mtu, queue)?;
    fs::write(&file, object).map_err(|error| TestbedError::system(format!("writing {}", file.display()), error))?;
    let path = file.to_string_lossy();
    let attached = run("tc", &["-n", namespace, "qdisc", "replace", "dev", port, "clsact"], "").and_then(|_| {
        let filter =
            format!("filter replace dev {port} egress prio 1 handle 1 bpf da obj \"{path}\" sec classifier\n{change}");
        run("tc", &["-n", namespace, "-batch", "-"], &filter)
    });
    let _ = fs::remove_file(&file);
    attached.map(drop)
}

/// The state of the program at a port, as it lies in the kernel.
fn state(namespace: &str, port: &str) -> Option<Vec<u8>> {
    let json = |program: &str, words: &[&str]| -> Option<serde_json::Value> {
        serde_json::from_str(&run(program, words, "").ok()?).ok()
    };
    let filters = json("tc", &["-n", namespace, "-j", "filter", "show", "dev", port, "egress"])?;
    let id = filters.as_array()?.iter().find_map(|filter| filter["options"]["prog"]["id"].as_u64())?;
    let program = json("bpftool", &["-j", "prog", "show", "id", &id.to_string()])?;
    let maps = program["map_ids"].as_array()?.iter().filter_map(serde_json::Value::as_u64);
    for map in maps {
        let map = map.to_string();
        let shown = json("bpftool", &["-j", "map", "show", "id", &map])?;
        if shown["name"].as_str() != Some("port") {
            continue;
        }
        let dump = json("bpftool", &["-j", "map", "dump", "id", &map])?;
        let bytes = dump.as_array()?.first()?["value"].as_array()?;
        let byte = |value: &serde_json::Value| {
            let text = value.as_str()?;
            u8::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        };
        return bytes.iter().map(byte).collect();
    }
    None
}

/// What the program at a port has counted.
pub(crate) fn counted(namespace: &str, port: &str) -> Option<Counted> {
    let [_packets, marked, trimmed, deepest, ..] = counters(namespace, port)?;
    Some(Counted { marked, trimmed, deepest })
}

/// Packets, marked, trimmed, deepest queue, and with the test's build the sums of virtual and real queue.
pub fn counters(namespace: &str, port: &str) -> Option<[u64; 6]> {
    let state = state(namespace, port)?;
    let mut words =
        state.get(COUNTERS..)?.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or([0; 8])));
    let words: Option<Vec<u64>> = (0..6).map(|_| words.next()).collect();
    words?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Marking;

    #[test]
    fn settings_are_written_where_the_program_reads_them() {
        let marking = Some(Marking { min: 30_000, max: 90_000, probability: 1.0 });
        let queue = Queue { limit: 300_000, marking, trimming: true };
        let patched = object(OBJECT, 20_000_000, 4180, &queue).unwrap();
        assert_eq!(patched.len(), OBJECT.len());
        let at = patched.windows(8).position(|w| w == MAGIC.to_le_bytes()).unwrap();
        let word = |n: usize| u64::from_le_bytes(patched[at + 8 * n..][..8].try_into().unwrap());
        let expected = [MAGIC, 20_000_000, 15_000, 300_000, 30_000, 90_000, u64::from(u32::MAX), 1, 106];
        assert_eq!((0..9).map(word).collect::<Vec<_>>(), expected);
        let others = patched[at + 8..].windows(8).filter(|w| **w == MAGIC.to_le_bytes()).count();
        assert_eq!(others, 0, "the settings stand once");
    }
}
