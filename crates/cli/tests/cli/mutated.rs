//! Mutated inputs through the whole program give a documented exit code and a message, never a panic.

use crate::common::Folder;
use anabranch_fuzz::mutate;
use anabranch_random::Stream;
use std::{
    collections::BTreeMap,
    env, fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Timeout of a run, since mutated scenarios may be large.
const MAX_DURATION: Duration = Duration::from_secs(10);
/// Done, a requested check failed, invalid input, and a run that ended in a deadlock (docs of the command).
const CODES: [i32; 4] = [0, 1, 2, 4];

/// Limits of the address space, in kB.
const LIMITS: [u64; 10] = [48_000, 56_000, 64_000, 80_000, 100_000, 150_000, 250_000, 500_000, 2_000_000, 8_000_000];

fn run(folder: &Folder, words: &[&str], limit: u64) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v $0; exec \"$@\"", &limit.to_string(), env!("CARGO_BIN_EXE_anabranch")]);
    command.args(words).current_dir(&folder.0).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).env("NO_COLOR", "1").spawn().unwrap();
    let mut pipe = child.stderr.take().unwrap();
    let message = std::thread::spawn(move || {
        let mut message = Vec::new();
        let _ = pipe.read_to_end(&mut message);
        String::from_utf8_lossy(&message).into_owned()
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status.code().unwrap_or(-1)),
            None if began.elapsed() > MAX_DURATION => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    (status, message.join().unwrap())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

/// Small files that scenarios name, each with a scenario that names it.
fn named() -> Vec<(Vec<u8>, String)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/fuzz/corpus");
    let sized = "[[workload]]\nkind = \"permutation\"\nsize = \"20kB\"\n";
    let mut named = Vec::new();
    for kind in ["topology", "flow_conweave", "flow_csv", "flow_goal", "flow_htsim_cm"] {
        let of_file = "kind = \"file\"\npath = \"named.txt\"\n";
        let text = match kind {
            "topology" => format!("[topology]\n{of_file}{sized}"),
            _ => format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n[[workload]]\n{of_file}"
            ),
        };
        named.extend(files(&corpus.join(kind)).iter().map(|file| (fs::read(file).unwrap(), text.clone())));
    }
    named
}

/// Of four `inputs` two are ready-made scenarios (`check`, `run`), one a file of flows or of a topology (`run`), and one a
/// result (`report`, `view`, `trace`). Each command runs under one of [`LIMITS`].
fn mutated(name: &str, seed: u64, inputs: u64) {
    let folder = Folder::new(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios: Vec<Vec<u8>> = files(&root).iter().map(|file| fs::read(file).unwrap()).collect();
    let small = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[[workload]]\n\
                 kind = \"permutation\"\nsize = \"20kB\"\n[measure]\nseries_links = [\"*\"]\ntrace_flows = [\"first:2\"]\n";
    folder.file("small.toml", small);
    folder.ok("run small.toml --out result");
    let whole: Vec<(PathBuf, Vec<u8>)> = files(&folder.0.join("result"))
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ending| ending != "html"))
        .map(|file| (file.clone(), fs::read(&file).unwrap()))
        .collect();
    let mut draws = Stream::keyed(seed, 0, "mutated inputs");
    let (mut counts, named): (BTreeMap<String, u64>, _) = (BTreeMap::new(), named());
    for number in 0..inputs {
        let run_words =
            ["run", "mutated.toml", "--replace", "--out", "out", "--set", "run.until=20us", "--set", MEMORY];
        let (input, words): (Vec<u8>, &[&str]) = if number % 4 == 2 {
            let (one, text) = draws.pick(&named).unwrap();
            let input = mutate(one, &draws.pick(&named).unwrap().0, &mut draws);
            fs::write(folder.0.join("mutated.toml"), text).unwrap();
            fs::write(folder.0.join("named.txt"), &input).unwrap();
            (input, &run_words)
        } else if number % 4 < 2 {
            let one = draws.pick(&scenarios).unwrap().clone();
            let input = mutate(&one, draws.pick(&scenarios).unwrap().clone().as_slice(), &mut draws);
            fs::write(folder.0.join("mutated.toml"), &input).unwrap();
            (input, if number % 4 == 0 { &["check", "mutated.toml"] } else { &run_words })
        } else {
            for (file, bytes) in &whole {
                fs::write(file, bytes).unwrap();
            }
            let (file, bytes) = draws.pick(&whole).unwrap();
            let input = mutate(bytes, &whole[0].1, &mut draws);
            fs::write(file, &input).unwrap();
            let commands: [&[&str]; 3] =
                [&["report", "result"], &["view", "result"], &["trace", "result", "--perfetto", "trace.pftrace"]];
            (input, commands[draws.below(3) as usize])
        };
        let (code, message) = run(&folder, words, *draws.pick(&LIMITS).unwrap());
        let is_fine = code.is_none_or(|code| CODES.contains(&code)) && !message.contains("panicked");
        if !is_fine {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutated-{seed}-{number}"));
            fs::write(&kept, &input).unwrap();
            panic!("{words:?} ended with {code:?}; the input is {}\n{message}", kept.display());
        }
        let ended = code.map_or("stopped after 10 s".into(), |code| format!("exit {code}"));
        *counts.entry(format!("{}: {ended}", words[0])).or_default() += 1;
    }
    println!("{inputs} inputs: {counts:#?}");
}

const MEMORY: &str = "run.memory_limit=512MiB";

#[test]
fn some_mutated_inputs_end_with_a_message() {
    mutated("mutated", 1, 40);
}

/// `ANABRANCH_MUTATIONS` inputs (10,000) from `ANABRANCH_FUZZ_SEED` on (2).
#[test]
#[ignore = "slow: 10,000 runs of the command, half an hour; ANABRANCH_MUTATIONS"]
fn ten_thousand_mutated_inputs_end_with_a_message() {
    let number = |name: &str, usual| env::var(name).map_or(usual, |text| text.parse().unwrap());
    mutated("mutated-many", number("ANABRANCH_FUZZ_SEED", 2), number("ANABRANCH_MUTATIONS", 10_000));
}
