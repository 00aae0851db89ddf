//! Collectives over the plugin for NCCL on a testbed of namespaces: correct over slow spines, steered by the scheme, and shown on the
//! statistics page.

use crate::common::{
    Folder, code, json, stderr, stdout,
    testbed::{AT_200_MBPS, Bed, has_no_testbed},
};
use anabranch_testkit::turn;
use serde_json::Value;
use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Two leaves with hosts of 200 Mbit/s, paced just below, and `spines` spines of 200 Mbit/s, some of them slow.
fn network(hosts_per_leaf: u32, spines: u32, slow: &[u32]) -> String {
    let cables: String = slow
        .iter()
        .flat_map(|spine| [0, 1].map(|leaf| (leaf, spine)))
        .map(|(leaf, spine)| format!("[[topology.link]]\nlink = \"leaf{leaf}-spine{spine}\"\nrate = \"20Mbps\"\n"))
        .collect();
    format!(
        r#"
name = "two leaves"
[topology]
kind = "leaf-spine"
leaves = 2
spines = {spines}
hosts_per_leaf = {hosts_per_leaf}
link_rate = "200Mbps"
{cables}
{AT_200_MBPS}[load_balancer]
scheme = "reps"
[wire]
labels = 16
rate = "195Mbps"
rtt_floor = "1ms"
rtt_window = "60s"
least_timeout = "20ms"
give_up = "30s"
[[workload]]
kind = "permutation"
size = "1MB"
"#
    )
}

struct Standing(Bed);

impl Standing {
    fn up(name: &str, scenario: &str) -> Option<Self> {
        let bed = Bed::new(name, &[("net.toml", scenario)]);
        bed.up("net.toml", &[])?;
        Some(Standing(bed))
    }

    fn command(&self, words: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = self.0.command(&[words, &["--at", "default"]].concat());
        command.env("ANABRANCH_CONFIG", self.0.folder.0.join("net.toml")).envs(variables.iter().copied());
        command
    }

    fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(&[words, &["--format", "json"]].concat(), variables).output().expect("the command")
    }

    fn begin(&self, words: &[&str], variables: &[(&str, &str)]) -> Child {
        self.command(words, variables).stdout(Stdio::null()).spawn().expect("the command")
    }

    fn uplinks(&self) -> Vec<u64> {
        let status = json(&self.0.run(&["testbed", "status", "--format", "json"]));
        let ports = status["ports"].as_array().expect("ports").iter();
        let up = ports.filter(|port| port["port"].as_str().is_some_and(|name| name.starts_with("leaf0->spine")));
        up.map(|port| port["counters"]["bytes"].as_u64().expect("bytes")).collect()
    }
}

fn bandwidth(value: &Value) -> f64 {
    value["bus_bandwidth_bps"].as_f64().expect("a number") / 1e6
}

const KINDS: [&str; 6] = ["ring", "tree", "reduce-scatter", "all-gather", "all-to-all", "pairs"];
const ABIS: [&str; 5] = ["v8", "v9", "v10", "v11", "v12"];
const RANKS: [&str; 5] = ["2", "3", "4", "5", "8"];

fn correct(standing: &Standing, runs: impl Iterator<Item = (usize, usize)>) {
    for (kind, at) in runs {
        let (abi, ranks) = (ABIS[at], RANKS[(kind + at) % 5]);
        let words = ["collective", KINDS[kind], "--abi", abi, "--ranks", ranks, "--bytes", "512KiB", "--rounds", "1"];
        let outcome = json(&standing.run(&words, &[]));
        assert_eq!(outcome["wrong_elements"], 0, "{} {abi} {ranks}", KINDS[kind]);
        assert_eq!(outcome["closed"].as_u64().map(|n| n.to_string()).as_deref(), Some(ranks));
    }
}

#[test]
fn collectives_are_correct_with_two_slow_spines() {
    let _turn = turn();
    let Some(standing) = Standing::up("collective-slow", &network(4, 6, &[4, 5])) else { return };
    correct(&standing, (0..6).map(|kind| (kind, kind % 5)));
}

#[test]
#[ignore = "a minute or two on a testbed"]
fn every_collective_of_every_version_with_two_slow_spines() {
    let _turn = turn();
    let Some(standing) = Standing::up("collective-every", &network(4, 6, &[4, 5])) else { return };
    correct(&standing, (0..6).flat_map(|kind| (0..5).map(move |at| (kind, at))));
}

#[test]
#[ignore = "two minutes on a testbed"]
fn our_plugin_passes_the_faults() {
    let _turn = turn();
    let bed = Bed::new("collective-faults", &[]);
    let seen = json(&bed.run(&["collective", "--suite=tables", "--faults", "--format", "json"]));
    let cases = seen["cases"].as_array().expect("a list");
    assert!(cases.len() > 10 && cases.iter().all(|case| case["verdict"] == "pass"), "{seen}");
}

#[test]
fn one_path_is_one_spine() {
    let _turn = turn();
    let bed = Bed::new("collective-one", &[("net.toml", &network(1, 4, &[]))]);
    let words = ["collective", "pairs", "--ranks", "2", "--channels", "1", "--bytes", "4MiB", "--rounds", "1"];
    let words = [&words[..], &["--testbed", "net.toml", "--format", "json"]].concat();
    let output = bed.command(&words).env("ANABRANCH_PATHS", "1").output().expect("the command");
    if has_no_testbed(&output) {
        return;
    }
    let outcome = json(&output);
    for leaf in ["leaf0", "leaf1"] {
        let ports = outcome["uplinks"].as_array().expect("ports").iter();
        let mut bytes: Vec<u64> = ports
            .filter(|port| port["port"].as_str().is_some_and(|name| name.starts_with(leaf)))
            .map(|port| port["bytes"].as_u64().expect("bytes"))
            .collect();
        bytes.sort_unstable();
        // Two rounds of 4 MiB; other spines may carry ACKs of the other direction, 102 B per 4096 B.
        assert!(bytes[3] > 2 << 22, "{leaf}: {bytes:?}");
        assert!(bytes[..3].iter().sum::<u64>() < (2 << 22) / 20, "{leaf}: {bytes:?}");
    }
}

/// The plugin traces which of 64 labels share a spine before it connects, and PRIME then numbers four paths: each is one
/// label as long as nothing times out.
#[test]
fn labels_over_one_spine_are_one_path() {
    let _turn = turn();
    let Some(standing) = Standing::up("collective-labels", &network(1, 4, &[])) else { return };
    let rows = standing.0.folder.0.join("rows.csv").display().to_string();
    let words = ["collective", "pairs", "--ranks", "2", "--channels", "1", "--bytes", "2MiB", "--rounds", "2"];
    let words = [&words[..], &["--rows", &rows]].concat();
    let of = |find: &str, labels: &str| {
        let set = format!("wire.find_labels={find}");
        let variables = [
            ("ANABRANCH_SET", set.as_str()),
            ("ANABRANCH_PATHS", labels),
            ("ANABRANCH_SCHEME", "prime"),
            ("NCCL_DEBUG", "INFO"),
        ];
        let output = standing.run(&[&words[..], &["--replace"]].concat(), &variables);
        assert_eq!((code(&output), json(&output)["wrong_elements"].as_u64()), (0, Some(0)), "{}", stderr(&output));
        let rows = standing.0.folder.rows("rows.csv");
        let sent = rows.iter().filter(|row| row["direction"] == "send").map(|row| row["paths"].parse::<u32>().unwrap());
        (stderr(&output), sent.collect::<Vec<_>>())
    };
    // The chance that 64 labels miss one of four spines is 4 * 0.75^64 = 4e-8.
    let (log, used) = of("paths", "64");
    for host in ["10.1.1.2", "10.2.1.2"] {
        let line = log.lines().find(|line| line.contains(&format!("the rank at {host}:")) && line.contains("paths"));
        assert!(line.is_some_and(|line| line.ends_with("of 64 labels lead over 4 paths")), "{host}: {log}");
    }
    assert!(!used.is_empty() && used.iter().all(|paths| (2..=8).contains(paths)), "{used:?}");
    // Each of 512 packets of 4096 B has one of 64 paths.
    let (log, used) = of("all", "64");
    assert!(!log.contains("labels lead over") && used.iter().all(|paths| *paths > 16), "{used:?} {log}");
}

/// Root's testbeds are described in `/run`, which a file system covers for the ranks where `/run/netns` does not exist.
#[test]
fn collective_runs_where_no_namespace_has_a_name() {
    let _turn = turn();
    let bed = Bed::new("collective-run", &[("net.toml", &network(1, 2, &[]))]);
    let words = ["collective", "pairs", "--ranks", "2", "--bytes", "64KiB", "--rounds", "1", "--testbed", "net.toml"];
    let command = bed.command(&[&words[..], &["--format", "json"]].concat());
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    let user: &[&str] = if is_root { &[] } else { &["--user", "--map-root-user"] };
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "--propagation", "private"]).args(user).args(["sh", "-c"]);
    apart.arg("mount -t tmpfs -o mode=755 tmpfs /run && echo covered >&2 && exec \"$@\"").arg("sh");
    apart.arg(command.get_program()).args(command.get_args()).current_dir(&bed.folder.0);
    for (name, value) in command.get_envs().filter(|(name, _)| *name != "TMPDIR") {
        match value {
            Some(value) => apart.env(name, value),
            None => apart.env_remove(name),
        };
    }
    let output = apart.env_remove("TMPDIR").output().expect("unshare");
    if !stderr(&output).contains("covered") {
        return anabranch_testkit::skip("no mount namespaces here", "allow user namespaces or run as root");
    }
    if has_no_testbed(&output) {
        return;
    }
    assert_eq!((code(&output), json(&output)["wrong_elements"].as_u64()), (0, Some(0)), "{}", stderr(&output));
}

/// Names of running testbeds of this user, whose home is the folder.
fn processes_in(bed: &Bed) -> Vec<String> {
    let testbeds = bed.folder.entries("").into_iter().filter(|name| name.starts_with("anabranch-testbeds"));
    testbeds.flat_map(|folder| bed.folder.entries(&folder)).collect()
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// However a job ends, it leaves no testbed, ranks or files.
#[test]
fn ended_job_leaves_no_testbed() {
    let _turn = turn();
    let bed = Bed::new("collective-ended", &[("net.toml", &network(1, 2, &[]))]);
    let words = ["collective", "ring", "--ranks", "2", "--bytes", "64MiB", "--rounds", "100", "--testbed", "net.toml"];
    if bed.up("net.toml", &[]).is_none() {
        return;
    }
    bed.done(&["testbed", "down"]);
    let ranks = || {
        // Where `nsenter` has ended, ranks are not our children: their environment identifies them.
        let mark = format!("ANABRANCH_CONFIG={}", bed.folder.0.display());
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes
            .filter(|of| has(&std::fs::read(of.path().join("environ")).unwrap_or_default(), mark.as_bytes()))
            .count()
    };
    for signal in ["INT", "TERM", "KILL"] {
        let mut job = bed.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command");
        until("two ranks", || ranks() >= 2);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!processes_in(&bed).is_empty(), "a testbed stands");
        anabranch_testkit::send_signal(job.id(), signal);
        let status = job.wait().expect("its end");
        if signal == "INT" {
            assert_eq!(status.code(), Some(130));
        }
        until(signal, || processes_in(&bed).is_empty() && ranks() == 0);
    }
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[test]
fn killed_rank_on_a_host_is_reported() {
    let _turn = turn();
    let bed = Bed::new("collective-killed", &[("net.toml", &network(2, 2, &[]))]);
    let words = ["collective", "ring", "--ranks", "3", "--bytes", "16MiB", "--rounds", "3", "--kill", "1@300ms"];
    let words = [&words[..], &["--testbed", "net.toml", "--set", "wire.give_up=2s", "--format", "json"]].concat();
    let Some(output) = bed.run_real(&words) else { return };
    let outcome = json(&output);
    assert_eq!(outcome["closed"], 2, "{outcome}");
    let failures = outcome["failures"].as_array().expect("a list");
    assert_eq!(failures.len(), 2, "{outcome}");
    for failure in failures {
        assert_ne!(failure["rank"], 1);
        assert!(failure["why"].as_str().is_some_and(|reason| reason.contains("ncclRemoteError")), "{failure}");
        assert!(failure["after_ns"].as_u64() < Some(10_000_000_000), "{failure}");
    }
}

/// Rows of ranks beside flows of endpoints, and the bus bandwidth. The command line's scheme outranks a variable.
#[test]
fn rank_workload_writes_rows() {
    let _turn = turn();
    let folder = Folder::new("collective-workload");
    let job = "[[workload]]\nkind = \"nccl\"\nranks = 4\nsize = \"1MiB\"\nrounds = 2\nchannels = 1\nabi = \"v9\"\n\
               start = \"100ms\"\n[run]\ntime_limit = \"60s\"\n";
    folder.file("net.toml", &(network(2, 4, &[]) + job));
    let words = ["testbed", "run", "net.toml", "--out", "out", "--format", "json"];
    let output = folder.command(&words).env("ANABRANCH_SCHEME", "nonsense").output().expect("the command");
    if has_no_testbed(&output) {
        return;
    }
    let summary = json(&output);
    let of = &summary["collectives"][0];
    assert_eq!((&of["workload"], &of["collective"], &of["abi"]), (&"nccl".into(), &"ring".into(), &9.into()), "{of}");
    assert_eq!((of["ranks"].as_u64(), of["rounds"].as_u64()), (Some(4), Some(2)));
    // NCCL's factor of a ring of four is 2 (n - 1) / n = 1.5.
    let (seconds, bandwidth) = (of["median_round_s"].as_f64().unwrap(), of["bus_bandwidth_bps"].as_f64().unwrap());
    assert!((bandwidth * seconds / (1.5 * 8.0 * f64::from(1 << 20)) - 1.0).abs() < 1e-9 && bandwidth < 200e6, "{of}");
    // Four flows of 1 MB; six messages of 256 KiB a rank and round.
    assert_eq!(summary["workloads"]["permutation"]["flows"]["finished"], 4, "{summary}");
    let flows = &summary["workloads"]["nccl"]["flows"];
    assert_eq!((flows["total"].as_u64(), flows["finished"].as_u64()), (Some(48), Some(48)), "{summary}");
    let (mut count, mut hosts) = (0, std::collections::BTreeSet::new());
    for row in folder.rows("out/flows.csv").iter().filter(|row| row["workload"] == "nccl") {
        let number = |name: &str| row[name].parse::<u64>().unwrap_or_else(|_| panic!("{name}: {row:?}"));
        assert_eq!((number("size_bytes"), row["status"].as_str()), (256 << 10, "finished"));
        assert!(number("start_ps") >= 100_000_000_000, "ranks begin at 100 ms: {row:?}");
        // Links carry 200 Mbit/s, plus a burst of a few packets.
        assert!(number("fct_rx_ps") <= number("fct_ack_ps") && number("fct_ack_ps") > 9_000_000_000, "{row:?}");
        assert!(number("retransmitted_packets") < 64, "{row:?}");
        hosts.insert((number("src"), number("dst")));
        count += 1;
    }
    // Hosts 0 and 1 are on one leaf, 2 and 3 on the other.
    assert_eq!((count, hosts), (48, [(0, 2), (2, 1), (1, 3), (3, 0)].into()));
}

/// A scenario is data: no command lets it name code to load.
#[test]
fn scenario_cannot_name_plugin() {
    let folder = Folder::new("collective-evil");
    let text = network(1, 2, &[]).replace("kind = \"permutation\"\nsize", "kind = \"nccl\"\nsize");
    folder.file("bed.toml", &text);
    folder.file("evil.toml", &text.replace("kind = \"nccl\"", "kind = \"nccl\"\nplugin = \"evil.so\""));
    folder.file("evil.so", "not code");
    let set = ["bed.toml", "--set", "workload.0.plugin=evil.so"];
    for (words, place) in [
        (&["check", "evil.toml"][..], "evil.toml"),
        (&["testbed", "run", "evil.toml"], "evil.toml"),
        (&["testbed", "compare", "evil.toml"], "evil.toml"),
        (&["testbed", "up", "--fabric", "evil.toml"], "evil.toml"),
        (&[&["check"], &set[..]].concat(), "--set"),
        (&[&["testbed", "run"], &set[..]].concat(), "--set"),
    ] {
        let output = folder.run(words);
        let message = stderr(&output);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{words:?}: {message}");
        for word in [place, "`plugin`", "does not name code", "testbed run SCENARIO --plugin PATH"] {
            assert!(message.contains(word), "{words:?}: no {word:?} in {message}");
        }
    }
}

/// Hopper moves a connection off a spine that becomes slow, and the statistics page shows it before the counters do.
#[test]
#[ignore = "times on a testbed: a machine that is not overloaded"]
fn hopper_avoids_slowed_spine() {
    let _turn = turn();
    let Some(standing) = Standing::up("collective-hopper", &network(1, 2, &[])) else { return };
    let folder = &standing.0.folder;
    let words = ["collective", "pairs", "--ranks", "2", "--channels", "1", "--bytes", "8MiB", "--rounds", "30"];
    let pages = folder.0.to_str().expect("a path").to_string();
    let variables =
        [("ANABRANCH_SCHEME", "hopper"), ("ANABRANCH_RATE", "150Mbps"), ("ANABRANCH_STATS", pages.as_str())];
    let mut job = standing.begin(&words, &variables);
    // The sender on leaf 0 is the one whose peer is host 1 of leaf 2.
    let snapshot = || {
        let seen = json(&folder.run(&["stats", "--folder", &pages, "--format", "json"]));
        let all = seen["processes"].as_array().expect("a list").iter();
        let paths: Vec<Value> = all.flat_map(|of| of["paths"].as_array().expect("a list").clone()).collect();
        let mine = paths.into_iter().filter(|path| path["peer"].as_str().is_some_and(|at| at.starts_with("10.2.1.2:")));
        let (mut moves, mut last) = (0, (0, 0.0));
        for path in mine {
            moves += path["moves"].as_u64().unwrap_or(0);
            let slowness =
                path["rtt_mean_ns"].as_f64().unwrap_or(0.0) / path["rtt_least_ns"].as_f64().unwrap_or(1.0).max(1.0);
            last = if path["used_at_ns"].as_u64() > Some(last.0) {
                (path["used_at_ns"].as_u64().unwrap_or(0), slowness)
            } else {
                last
            };
        }
        (moves, last.1)
    };
    std::thread::sleep(Duration::from_secs(4));
    let before = standing.uplinks();
    std::thread::sleep(Duration::from_millis(500));
    let after = standing.uplinks();
    let used = usize::from(after[1] - before[1] > after[0] - before[0]);
    let cable = format!("leaf0-spine{used}");
    let moves = snapshot().0;
    assert_eq!(code(&standing.0.run(&["testbed", "fault", "slow", &cable, "20Mbps"])), 0);
    let faulted_at = Instant::now();
    let (mut page, mut counters, mut last) = (None, None, standing.uplinks());
    while faulted_at.elapsed() < Duration::from_secs(10) && (page.is_none() || counters.is_none()) {
        let (moved, slowness) = snapshot();
        if page.is_none() && (moved > moves || slowness > 2.0) {
            page = Some(faulted_at.elapsed());
        }
        let now = standing.uplinks();
        let (there, elsewhere) = (now[used] - last[used], now[1 - used] - last[1 - used]);
        if counters.is_none() && elsewhere > 4 * there.max(10_000) {
            counters = Some(faulted_at.elapsed());
        }
        last = now;
    }
    println!("after the spine became slow: the page says so after {page:?}, the counters after {counters:?}");
    job.kill().expect("a signal");
    job.wait().expect("its end");
    let (page, counters) = (page.expect("the page says so"), counters.expect("the connection leaves the spine"));
    assert!(page <= counters, "{page:?} {counters:?}");
}

/// Bus bandwidth with equal spines is at least 0.7 of a link; with two slow ones Hopper or REPS doubles that of ECMP.
#[test]
#[ignore = "times on a testbed: a machine that is not overloaded"]
fn bus_bandwidth() {
    let _turn = turn();
    let ring = ["collective", "ring", "--ranks", "4", "--bytes", "4MiB", "--rounds", "5"];
    let mut seen = Vec::new();
    for (what, slow) in [("symmetric", &[][..]), ("two slow spines", &[2, 3])] {
        let Some(standing) = Standing::up("collective-bandwidth", &network(2, 4, slow)) else { return };
        for scheme in ["ecmp", "hopper", "reps"] {
            let outcome = json(&standing.run(&ring, &[("ANABRANCH_SCHEME", scheme)]));
            println!("{what}, {scheme}: {:.0} Mbit/s", bandwidth(&outcome));
            seen.push(bandwidth(&outcome));
        }
    }
    assert!(seen[1].max(seen[2]) >= 0.7 * 200.0, "{seen:?}");
    assert!(seen[4].max(seen[5]) >= 2.0 * seen[3], "{seen:?}");
}

/// Installs MPICH, and returns the words that run a rank of our program on each host, neighbours on different leaves.
fn mpich(folder: &Folder) -> Vec<String> {
    let done = |command: &mut Command| {
        let output = command.output().expect("a program");
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    };
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpich");
    let program = |name: &str| place.join("bin").join(name).display().to_string();
    if !place.join("bin/mpicc").exists() {
        done(Command::new("python3").args(["-m", "venv"]).arg(&place));
        done(Command::new(program("pip")).args(["install", "--quiet", "mpich==5.0.2"]));
    }
    let ranks = folder.0.join("allreduce").display().to_string();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpich_allreduce.c");
    done(Command::new(program("mpicc")).args(["-O2", "-o", &ranks, source]));
    // Names and addresses as in `Plan`, for two leaves of two hosts.
    let hosts = [("host0", "10.1.1.2"), ("host2", "10.2.1.2"), ("host1", "10.1.2.2"), ("host3", "10.2.2.2")];
    let cases: String = hosts.iter().map(|(name, address)| format!("{address}) host={name} ;;\n")).collect();
    let script = format!(
        "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\ncase $1 in\n{cases}esac\nshift\n\
         exec ip netns exec \"$(ip netns list | cut -d' ' -f1 | grep -e \"-$host\\$\")\" sh -c \"$*\"\n"
    );
    folder.file("launch", &script);
    let launch = folder.0.join("launch");
    done(Command::new("chmod").arg("+x").arg(&launch));
    let addresses: Vec<&str> = hosts.iter().map(|(_, address)| *address).collect();
    // Over TCP, without shared memory between ranks of this machine.
    let words = ["env", "UCX_TLS=tcp,self", "MPIR_CVAR_NOLOCAL=1"].map(String::from).into_iter();
    let words = words.chain([program("mpiexec")]);
    let flags = ["-launcher", "ssh", "-launcher-exec", &launch.display().to_string(), "-localhost", addresses[0]]
        .map(String::from);
    let flags = flags.into_iter().chain(["-hosts", &addresses.join(","), "-n", "4", "-ppn", "1"].map(String::from));
    words.chain(flags).chain([ranks]).collect()
}

/// Medians of three interleaved runs: not slower with equal spines, twice as fast with two slow spines of four.
#[test]
#[ignore = "fetches MPICH (13 MB); times on a testbed: a machine that is not overloaded"]
fn no_slower_than_mpich() {
    let _turn = turn();
    let ring = ["collective", "ring", "--ranks", "4", "--bytes", "4MiB", "--rounds", "5"];
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for (what, slow, wanted) in [("symmetric", &[][..], 1.0), ("two slow spines", &[2, 3], 2.0)] {
        let Some(standing) = Standing::up("collective-mpich", &network(2, 4, slow)) else { return };
        let words = mpich(&standing.0.folder);
        let theirs = || {
            let at = ["testbed", "exec", "host0", "--"].map(String::from);
            let words: Vec<String> = at.into_iter().chain(words.iter().cloned()).collect();
            let output = standing.0.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let message = stdout(&output);
            assert!(message.contains("ranks 4 wrong 0"), "{message}{}", stderr(&output));
            let seconds: f64 = message.split_whitespace().last().and_then(|word| word.parse().ok()).expect("seconds");
            // NCCL's factor of four ranks is 1.5.
            1.5 * 8.0 * f64::from(4 << 20) / seconds / 1e6
        };
        let (mut mpich, mut ours) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..3 {
            mpich.push(theirs());
            for (seen, scheme) in ours.iter_mut().zip(["hopper", "reps"]) {
                seen.push(bandwidth(&json(&standing.run(&ring, &[("ANABRANCH_SCHEME", scheme)]))));
            }
        }
        let (mpich, [hopper, reps]) = (median(mpich), ours.map(median));
        println!("{what}: MPICH {mpich:.0} Mbit/s, Hopper {hopper:.0}, REPS {reps:.0}");
        assert!(hopper.max(reps) >= wanted * mpich, "{what}");
    }
}

/// Eight ranks with one path each finish; two concurrent jobs share the fabric within a factor of two.
#[test]
#[ignore = "times on a testbed: a machine that is not overloaded"]
fn jobs_share_a_fabric() {
    let _turn = turn();
    let Some(standing) = Standing::up("collective-share", &network(4, 4, &[])) else { return };
    let words = ["collective", "ring", "--ranks", "8", "--bytes", "1MiB", "--rounds", "1"];
    let outcome = json(&standing.run(&words, &[("ANABRANCH_PATHS", "1")]));
    assert_eq!(outcome["closed"], 8);
    let words = ["collective", "ring", "--ranks", "4", "--bytes", "4MiB", "--rounds", "8"];
    let seen: Vec<f64> = std::thread::scope(|scope| {
        let jobs = [(); 2].map(|()| scope.spawn(|| bandwidth(&json(&standing.run(&words, &[])))));
        jobs.into_iter().map(|job| job.join().expect("a job")).collect()
    });
    println!("two jobs at the same hosts: {seen:.0?} Mbit/s");
    assert!(seen[0] <= 2.0 * seen[1] && seen[1] <= 2.0 * seen[0], "{seen:?}");
}
