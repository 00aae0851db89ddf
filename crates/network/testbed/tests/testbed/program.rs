//! The port program: the shipped object matches its source, and its virtual queue matches the real one.

use crate::common::{address, apart, build, plan, socket};
use anabranch_testbed::{Queue, link_program, port_program};
use anabranch_testkit::skip;
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// Compiler version whose output is compared to the byte: that of Debian 12.
const CLANG: &str = "clang version 14.";

/// Compiles the source; prints a note and returns `None` if that is not possible here.
fn compile(source: &str, name: &str, more: &[&str]) -> Option<Vec<u8>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(source);
    let object = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let headers = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new("clang");
    command.args(["-O2", "-g", "-target", "bpf", &headers]).args(more).arg("-c").arg(source).arg("-o").arg(&object);
    let compiled = command.output();
    match compiled {
        Ok(output) if output.status.success() => Some(std::fs::read(object).unwrap()),
        Ok(output) => {
            skip(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default(), "install libbpf-dev");
            None
        }
        Err(error) => {
            skip(format!("running clang: {error}"), "install clang");
            None
        }
    }
}

/// Returns a section of an object of 64-bit ELF, little endian.
fn section<'a>(object: &'a [u8], name: &str) -> &'a [u8] {
    let word = |at: usize| u64::from_le_bytes(object[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| u16::from_le_bytes(object[at..at + 2].try_into().unwrap()) as usize;
    let (headers, size, count, names) = (word(0x28), half(0x3a), half(0x3c), half(0x3e));
    let body = |section: usize| {
        let header = headers + section * size;
        &object[word(header + 0x18)..][..word(header + 0x20)]
    };
    let named = |section: &usize| {
        let at = u32::from_le_bytes(object[headers + section * size..][..4].try_into().unwrap()) as usize;
        body(names)[at..].split(|byte| *byte == 0).next() == Some(name.as_bytes())
    };
    body((0..count).find(named).unwrap_or_else(|| panic!("no section {name}")))
}

#[test]
fn shipped_objects_match_their_sources() {
    let version =
        Command::new("clang").arg("--version").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    // Sections compared: instructions, settings, maps and licence. The names for debuggers are stripped.
    let programs: [(&str, &[u8], &[&str]); 2] = [
        ("port.bpf", port_program::OBJECT, &["classifier", ".rodata", ".maps", "license"]),
        ("link.bpf", link_program::OBJECT, &["classifier", ".maps", "license"]),
    ];
    for (name, shipped, sections) in programs {
        let Some(compiled) = compile(&format!("{name}.c"), &format!("{name}.o"), &[]) else { return };
        if !version.as_ref().is_ok_and(|version| version.contains(CLANG)) {
            return skip(format!("the shipped bytes are those of {CLANG}x, this is {version:?}"), "install clang-14");
        }
        for part in sections {
            assert_eq!(section(shipped, part), section(&compiled, part), "section {part} of {name}: compile it anew");
        }
    }
}

#[test]
fn the_virtual_queue_is_the_real_one() {
    apart("program::the_virtual_queue_is_the_real_one", || {
        let Some(object) = compile("port.bpf.c", "port-compare.bpf.o", &["-DCOMPARE"]) else { return };
        let queue = Queue { limit: 200_000, marking: None, trimming: false };
        let fabric = build(plan(1, 1, "100Mbps", 1500, queue));
        let plan = fabric.plan().clone();
        let (leaf, spine) = plan.port("leaf0->spine0").unwrap();
        let cable = plan.cable_named("leaf0-spine0").unwrap();
        fabric.slow(cable, Some(40_000_000)).unwrap();
        if let Err(error) = fabric.replace_program(leaf, spine, 40_000_000, &object) {
            return skip(error, "run as root on a kernel with BTF");
        }
        let (socket, to) = (socket(&fabric, "host0", 9000), address(&fabric, "host1", 9000));
        // Bursts of 120 kB every 30 ms: 32 Mbit/s on 40, so that the queue fills and empties.
        let (began, payload) = (Instant::now(), [1; 1400]);
        for burst in 0..50u32 {
            while began.elapsed() < burst * Duration::from_millis(30) {
                std::thread::sleep(Duration::from_micros(200));
            }
            (0..84).for_each(|_| drop(socket.send_to(&payload, to)));
        }
        std::thread::sleep(Duration::from_millis(200));
        let [packets, .., virtual_sum, real_sum] = port_program::counters(&fabric.namespace(leaf), "spine0").unwrap();
        assert!(packets > 4000, "{packets}");
        let (modelled, real) = (virtual_sum as f64 / packets as f64, real_sum as f64 / packets as f64);
        println!("mean queue over {packets} packets: virtual {modelled:.0} B, real {real:.0} B");
        assert!(real > 20_000.0, "the queue was not used: {real}");
        // The error is within 2 % on an idle machine; the limit here is five times that.
        assert!((modelled / real - 1.0).abs() < 0.1, "virtual {modelled:.0} B, real {real:.0} B");
    });
}
