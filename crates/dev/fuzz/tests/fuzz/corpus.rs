//! The corpus and mutations of it on stable Rust: seconds here, longer as a slow test.

use anabranch_fuzz::{TARGETS, mutate};
use anabranch_random::Stream;
use std::{
    env, fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const FEW: u64 = 400;
/// On a busy machine.
const SLOWEST: Duration = Duration::from_secs(20);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn read_all(folder: &Path, ending: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file() && file.to_string_lossy().ends_with(ending));
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

const PAPERS: [&str; 5] = ["hopper", "hf2t", "prime", "spritz", "mrc"];

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut seeds = read_all(&folder().join(name), "");
    match name {
        "scenario" => {
            seeds.extend(read_all(&root.join("scenarios"), ".toml"));
            PAPERS.iter().for_each(|paper| {
                seeds.extend(read_all(&root.join("claims").join(paper).join("scenarios"), ".toml"));
            });
        }
        "claims" => PAPERS.iter().for_each(|paper| seeds.extend(read_all(&root.join("claims").join(paper), ".toml"))),
        _ => {}
    }
    seeds
}

/// Runs one input; if it panics or hangs it is kept, and the test fails with its path.
fn run(name: &str, target: fn(&[u8]), input: &[u8]) {
    let began = Instant::now();
    let done = catch_unwind(|| target(input));
    let took = began.elapsed();
    if done.is_ok() && took < SLOWEST {
        return;
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    input.iter().for_each(|byte| hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{hash:016x}"));
    fs::write(&kept, input).unwrap();
    let what = if done.is_err() { "panicked".to_string() } else { format!("took {took:?}") };
    panic!(
        "{name} {what}; the input is {}: once mended, it belongs into {}",
        kept.display(),
        folder().join(name).display()
    );
}

/// Runs while `goes_on` returns `true`; returns the number of mutations.
fn mutations(name: &str, target: fn(&[u8]), seed: u64, goes_on: impl Fn(u64) -> bool) -> u64 {
    let (seeds, mut draws) = (seeds(name), Stream::keyed(seed, 0, name));
    let mut count = 0;
    while goes_on(count) {
        let pick = |draws: &mut Stream| draws.pick(&seeds).cloned().unwrap_or_default();
        let (one, other) = (pick(&mut draws), pick(&mut draws));
        run(name, target, &mutate(&one, &other, &mut draws));
        count += 1;
    }
    count
}

#[test]
fn corpus_and_mutations_break_no_reader() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "corpus/{name} is empty");
        run(name, *target, &[]);
        seeds.iter().for_each(|seed| run(name, *target, seed));
        mutations(name, *target, 1, |count| count < FEW);
    }
}

/// `ANABRANCH_FUZZ_SECONDS` (60) for each target, or those of `ANABRANCH_FUZZ_TARGETS`, from `ANABRANCH_FUZZ_SEED` (2) on.
#[test]
#[ignore = "slow: a minute for each of the targets; ANABRANCH_FUZZ_SECONDS"]
fn mutations_for_a_minute_each() {
    let number = |name: &str, usual| env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (seconds, seed) = (number("ANABRANCH_FUZZ_SECONDS", 60), number("ANABRANCH_FUZZ_SEED", 2));
    let wanted = env::var("ANABRANCH_FUZZ_TARGETS").unwrap_or_default();
    for (name, target) in TARGETS {
        if wanted.is_empty() || wanted.split(',').any(|of| of == *name) {
            let until = Instant::now() + Duration::from_secs(seconds);
            let count = mutations(name, *target, seed, |_| Instant::now() < until);
            println!("{name}: {count} inputs in {seconds} s");
        }
    }
}

/// Rerun it after a change of format.
#[test]
#[ignore = "writes crates/dev/fuzz/corpus"]
fn write_binary_seeds() {
    use anabranch_endpoint::header::{self, Data, Greeting, ProbeHeader, Protection};
    use anabranch_units::Time;
    use nccl_net_anabranch::{
        handle::{Authentication, Carrier, Handle},
        message::{Control, End, PieceHeader, PostedBuffer, Window},
    };
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = folder().join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    };
    let (mut out, time) = (Vec::new(), Time::from_us(7));
    let greeting = Greeting {
        connection: 77,
        nonce: 5,
        own_nonce: 6,
        protection: Protection::Off,
        mtu: 1000,
        labels: 2,
        planes: 1,
        span: 128,
        max_message: 10_000,
    };
    header::hello(&mut out, &greeting, &[3; header::COOKIE_BYTES], 120);
    write("header", "hello", &out);
    header::retry(&mut out, 77, 5, &[3; header::COOKIE_BYTES]);
    write("header", "retry", &out);
    header::welcome(&mut out, 9, &greeting);
    write("header", "welcome", &out);
    let data = Data {
        stream: 1,
        payload: 4,
        psn: 3,
        tag: 2,
        message: 1,
        length: 1000,
        checksum: Some(header::crc32c(b"abcd")),
        steering: 1,
        transmission: 7,
        ack_request: true,
        ..Data::default()
    };
    header::data(&mut out, 9, &data);
    write("header", "data", &[&out[..], b"abcd"].concat());
    let probe = ProbeHeader { stream: 1, tag: 3, transmission: 4, held: time, ecn: true };
    header::probe(&mut out, 9, &probe, 64);
    write("header", "probe", &out);
    header::echo(&mut out, 9, &probe);
    write("header", "echo", &out);
    header::bye(&mut out, 9, 5, None);
    write("header", "bye", &out);
    let mut draws = Stream::keyed(1, 0, "scripts");
    for number in 0..3 {
        let script: Vec<u8> = (0..600).map(|_| draws.bits() as u8 & if number == 0 { 0xf3 } else { 0xff }).collect();
        write("endpoint", &format!("script{number}"), &script);
    }
    write("transfer", "sent", &[&[1][..], &[0, 0, 0, 0, 0, 1, 2, 3], &[9, 8, 7, 6]].concat());
    write("transfer", "received", &[&[2][..], &[0, 0, 0, 0, 0, 1, 2, 3], &[9, 8, 7, 6]].concat());
    let handle = Handle {
        carrier: Carrier::Udp,
        at: "10.0.0.1:7000".parse().unwrap(),
        others: [None; 7],
        labels: 8,
        payload: 1408,
        key: 7,
        authentication: Authentication::Job([2; 32]),
    };
    write("nccl_handle", "udp", &handle.write());
    let window = Some(Window { at: 1 << 40, key: 7, number: 3 });
    let entries = vec![PostedBuffer { size: 1000, tag: 3, window }, PostedBuffer { size: 0, tag: -1, window }];
    for (name, said) in [
        ("connect", Control::Connect { connection: 3, key: 5 }),
        ("connected", Control::Connected { connection: 3 }),
        ("grant", Control::Grant { connection: 3, number: 4, entries }),
        ("close", Control::Close { connection: 3, end: End::Sender, completed: 9 }),
        ("ping", Control::Ping),
    ] {
        write("nccl_message", name, &said.write());
    }
    let piece = PieceHeader { connection: 3, number: 4, index: 0, offset: 5, size: 6 };
    write("nccl_message", "piece", &[&piece.write()[..], b"abcdef"].concat());
    let mut page = vec![0; 2048 + 4 * 144];
    page[..8].copy_from_slice(b"ANABPATH");
    for (at, number) in [(8, 1), (12, 2048), (24, 144), (28, 4), (32, 2), (36, 4711), (2048, 1), (2192, 2)] {
        page[at..at + 4].copy_from_slice(&u32::to_le_bytes(number));
    }
    page[64..70].copy_from_slice(b"hopper");
    write("statistics_page", "two_paths", &page);
}
