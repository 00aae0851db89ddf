//! The commands `testbed` and `paths`.

use crate::common::{
    assert_output, code, json, stderr, stdout,
    testbed::{Bed, has_no_testbed},
};
use anabranch_testkit::turn;
use std::{
    path::Path,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

const SMALL: &str = r#"
name = "small"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 1
link_rate = "100Mbps"
[fabric]
queue_limit = "300kB"
ecn_kmin = "60kB"
ecn_kmax = "180kB"
trimming = false
[[workload]]
kind = "permutation"
size = "1MB"
"#;

fn bed(name: &str) -> Bed {
    Bed::new(name, &[("small.toml", SMALL)])
}

/// Labels over the same spine are one path, for `send` and for flows of both directions, of which one label suffices.
#[test]
fn paths_are_traced_before_sending() {
    let _turn = turn();
    let beds = bed("testbed-paths");
    if beds.up("small.toml", &[]).is_none() {
        return;
    }
    let anabranch = env!("CARGO_BIN_EXE_anabranch");
    let serve = ["testbed", "exec", "host1", "--", anabranch, "serve", "small.toml", "--at", "10.2.1.2:7000", "--once"];
    let mut serve = beds.command(&serve).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let send = ["send", "small.toml", "--to", "10.2.1.2:7000", "--bytes", "200kB", "--set", "wire.find_labels=paths"];
    let json = ["--format", "json"];
    let sent = beds.run(&[&["testbed", "exec", "host0", "--", anabranch][..], &send, &json].concat());
    assert_output(&sent, 0, &["of 8 labels lead over 2 paths"]);
    let sent: serde_json::Value = serde_json::from_str(&stdout(&sent)).unwrap();
    assert_eq!(sent["paths"].as_array().map(Vec::len), Some(2), "{sent}");
    assert_eq!(serve.wait().unwrap().code(), Some(0));
    assert_output(&beds.run(&["testbed", "down"]), 0, &[]);
    let both =
        "[[workload]]\nkind = \"all-to-all\"\nsize = \"200kB\"\n[wire]\nfind_labels = \"paths\"\nrate = \"90Mbps\"\n";
    let scenario = SMALL.split("[[workload]]").next().unwrap().to_string() + both;
    beds.folder.file("both.toml", &scenario);
    for labels in ["wire.labels=1", "wire.labels=16"] {
        let words =
            ["testbed", "run", "both.toml", "--set", labels, "--set", "load_balancer.scheme=prime", "--out", "out"];
        assert_output(&beds.run(&[&words[..], &["--replace", "--progress", "never"]].concat()), 0, &[]);
        let summary = beds.folder.json_file("out/summary.json");
        assert_eq!(summary["flows"]["finished"].as_u64(), Some(2), "{labels}");
    }
}

/// Hosts have an interface in each plane, whose values take turns; without a port the other plane carries the rest.
#[test]
fn planes_are_networks_of_their_own() {
    let _turn = turn();
    let beds = bed("testbed-planes");
    let scenario = SMALL.replace("100Mbps", "200Mbps").replace("1MB", "4MB") + "[load_balancer]\nscheme = \"mrc\"\n";
    let scenario = scenario.replace("[fabric]", "planes = 2\n[fabric]");
    beds.folder.file("planes.toml", &scenario);
    let cut = "[[fault]]\nkind = \"link-down\"\nlinks = [\"host0-p1.leaf0\"]\nat = \"50ms\"\n";
    beds.folder.file("cut.toml", &(scenario + cut));
    let run = |scenario: &str, set: &str| {
        let words = ["testbed", "run", scenario, "--set", set, "--out", "out", "--replace", "--progress", "never"];
        beds.run(&words)
    };
    let bytes = || {
        let rows = beds.folder.rows("out/links.csv");
        let of = |name: &str| rows.iter().find(|row| format!("{}->{}", row["from"], row["to"]) == name).unwrap();
        [0, 1].map(|plane| of(&format!("host0->p{plane}.leaf0"))["bytes"].parse::<u64>().unwrap())
    };
    let ran = run("planes.toml", "wire.labels=16");
    if has_no_testbed(&ran) {
        return;
    }
    assert_output(&ran, 0, &[]);
    // 4 MB in packets of 4096 B with 106 B of headers, and acknowledgements of as much from the other host.
    let whole = bytes();
    assert!(whole.iter().all(|bytes| *bytes > 1_700_000), "{whole:?}");
    assert_output(&run("planes.toml", "wire.find_labels=paths"), 0, &[]);
    assert_output(&run("cut.toml", "wire.labels=16"), 0, &["no message", "port_detect"]);
    assert_eq!(beds.folder.json_file("out/summary.json")["flows"]["finished"].as_u64(), Some(2));
    // 50 ms at 100 Mbit/s, 0.6 MB, have left by the port that is cut.
    let cut = bytes();
    assert!(cut[1] < 1_000_000 && cut[0] > 3_000_000, "{cut:?}");
    // Ranks of NCCL's plugin have both interfaces as one device: two rounds and one before of 2 x 1/2 of a MiB.
    let nccl = beds
        .folder
        .read("planes.toml")
        .replace("\"permutation\"\nsize = \"4MB\"", "\"nccl\"\nsize = \"1MiB\"\nrounds = 2");
    beds.folder.file("nccl.toml", &nccl);
    assert_output(&run("nccl.toml", "wire.labels=16"), 0, &[]);
    let ranks = bytes();
    assert!(ranks.iter().all(|bytes| *bytes > 1_300_000), "{ranks:?}");
    let words = ["found 5 labels for 2 planes", "such as 6"];
    assert_output(&run("planes.toml", "wire.labels=5"), 2, &words);
}

/// A fresh scheme repeats the choices of an endpoint, from its results alone; another scheme differs.
#[test]
fn a_run_of_real_packets_is_replayed() {
    let _turn = turn();
    let beds = bed("testbed-replay");
    let trace = "measure.trace_flows=[0]";
    let run = |out: &str, more: &[&str]| {
        let words =
            ["testbed", "run", "small.toml", "--set", trace, "--set", "measure.trace_scheme=true", "--out", out];
        beds.run(&[&words[..], more, &["--progress", "never"]].concat())
    };
    let ran = run("prime", &["--set", "load_balancer.scheme=prime"]);
    if has_no_testbed(&ran) {
        return;
    }
    assert_output(&ran, 0, &["`trace_flows` names the flows of `trace_scheme` alone"]);
    let replayed = beds.run(&["replay", "prime", "--flow", "0", "--format", "json"]);
    assert_output(&replayed, 0, &["as recorded in all", "of a run of real packets"]);
    let replayed: serde_json::Value = serde_json::from_str(&stdout(&replayed)).unwrap();
    // 1 MB in packets of 4096 B.
    assert!(replayed["choices"].as_u64() >= Some(245) && replayed["backend"] == "testbed", "{}", replayed["choices"]);
    let times: Vec<u64> =
        replayed["calls"].as_array().unwrap().iter().map(|call| call["time_ps"].as_u64().unwrap()).collect();
    let summary = beds.folder.json_file("prime/summary.json");
    let last = *times.last().unwrap() as f64 / 1e6;
    assert!(times.is_sorted() && last <= summary["simulated_s"].as_f64().unwrap() * 1e6, "{last} us: {summary}");
    let acks = replayed["calls"].as_array().unwrap().iter().filter(|call| call["recorded"]["event"] == "ack").count();
    assert!(acks > 0, "feedback is recorded");
    assert_output(
        &beds.run(&["replay", "prime", "--flow", "0", "--scheme", "rr-host"]),
        1,
        &["choices differ from those of `prime`"],
    );
    assert_output(&beds.run(&["replay", "prime", "--flow", "1"]), 2, &["flow 1 was not traced; those traced are 0"]);
    assert_output(
        &run("cut", &["--set", "load_balancer.scheme=reps", "--set", "measure.trace_limit=50"]),
        0,
        &["`measure.trace_limit` rows"],
    );
    assert_output(&beds.run(&["replay", "cut", "--flow", "0"]), 0, &["the record ends at", "trace_limit"]);
}

/// Waits for the end of a process, whose namespaces the kernel removes first.
fn assert_ends(process: i64) {
    let limit = Instant::now() + Duration::from_secs(20);
    while lives(process) {
        assert!(Instant::now() < limit, "process {process} does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lives(process: i64) -> bool {
    // A zombie counts as ended.
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// The state folder is trusted, including the process to kill, so it must belong to the user.
#[test]
fn state_folder_of_another_user_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let beds = bed("testbed-squatted");
    let own = std::fs::metadata(&beds.folder.0).unwrap().uid();
    let (folder, foreign) = (beds.folder.0.join(format!("anabranch-testbeds-{own}")), beds.folder.0.join("theirs"));
    std::fs::create_dir(&foreign).unwrap();
    std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o700)).unwrap();
    symlink(&foreign, &folder).unwrap();
    assert_output(
        &beds.run(&["testbed", "status"]),
        2,
        &["anabranch-testbeds-", "not a folder of yours", "XDG_RUNTIME_DIR"],
    );
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    assert_output(&beds.run(&["testbed", "status"]), 2, &["not a folder of yours with mode 700"]);
    std::fs::remove_dir(&folder).unwrap();
    // A run-time folder that others may write to is not used.
    std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o777)).unwrap();
    let mut status = beds.folder.command(&["testbed", "status"]);
    let output = status.env("TMPDIR", &beds.folder.0).env("XDG_RUNTIME_DIR", &foreign).output().unwrap();
    assert_output(&output, 2, &["no testbed `default` is up"]);
    assert!(folder.is_dir() && std::fs::read_dir(&foreign).unwrap().next().is_none());
}

#[test]
fn testbed_is_built_and_removed_completely() {
    let _turn = turn();
    let beds = bed("testbed-stands");
    let Some(up) = beds.up("small.toml", &[]) else { return };
    assert_eq!(up["nodes"].as_array().unwrap().len(), 6);
    assert_output(
        &beds.run(&["testbed", "up", "--fabric", "small.toml"]),
        2,
        &["`default` is up already", "testbed down", "--name"],
    );
    let wide = ["testbed", "up", "--fabric", "hopper-testbed-small", "--name", "wide"];
    let wide = beds.command(&wide).env("COLUMNS", "80").output().unwrap();
    let long: Vec<_> = stdout(&wide).lines().filter(|line| line.chars().count() > 80).map(String::from).collect();
    assert!(code(&wide) == 0 && long.is_empty(), "{long:#?}{}", stderr(&wide));
    // What it proposes works.
    let hints = stderr(&wide).replace("CMD", "true").replace('\n', " ");
    let hints: Vec<Vec<&str>> = hints
        .split('`')
        .filter_map(|hint| Some(hint.strip_prefix("anabranch ")?.split_whitespace().collect()))
        .collect();
    assert_eq!(hints.iter().map(|hint| hint[1]).collect::<Vec<_>>(), ["exec", "down"]);
    hints.iter().for_each(|hint| assert_output(&beds.run(hint), 0, &[]));
    assert!(beds.up("small.toml", &["--name", "other"]).is_some());

    let pinged = beds.run(&["testbed", "exec", "host0", "--", "cat", "/proc/sys/net/ipv4/ip_forward"]);
    assert_eq!((code(&pinged), stdout(&pinged).trim()), (0, "1"));
    let here = beds.run(&["testbed", "exec", "leaf0", "--", "pwd"]);
    assert_eq!(stdout(&here).trim(), beds.folder.0.to_string_lossy());
    let failed = beds.run(&["testbed", "exec", "host0", "--", "sh", "-c", "exit 7"]);
    assert_eq!(code(&failed), 7, "the command's own end");
    assert_output(&beds.run(&["testbed", "exec", "host9", "--", "true"]), 2, &["host9", "host1", "spine1"]);

    let address = up["nodes"][1]["address"].as_str().unwrap();
    let anabranch = env!("CARGO_BIN_EXE_anabranch");
    let line = format!(
        "testbed exec host0 -- {anabranch} paths --to {address}:7000 --labels 32 --patience 2000 --format json"
    );
    let path_arguments = anabranch_testkit::words(&line);
    let paths = beds.run(&path_arguments);
    assert_eq!(code(&paths), 0, "{}", stderr(&paths));
    let paths = json(&paths);
    // Leaf, spine, leaf; two spines, so two paths.
    let switches: Vec<usize> =
        paths["paths"].as_array().unwrap().iter().map(|path| path["switches"].as_array().unwrap().len()).collect();
    assert_eq!(switches, [3, 3], "{paths}");
    assert!(paths["paths"][0]["to_end_us"].as_f64().unwrap() > 0.0);

    let rates = || {
        let status = json(&beds.run(&["testbed", "status", "--format", "json"]));
        let ports = status["ports"].as_array().unwrap().clone();
        ["leaf0->spine0", "spine1->leaf0"].map(|name| {
            let port = ports.iter().find(|port| port["port"] == name).unwrap();
            (port["rate_bps"].as_u64().unwrap(), port["counters"]["rate"].as_u64().unwrap())
        })
    };
    let [full_rate, other] = rates();
    assert!(full_rate.0 == full_rate.1 && full_rate == other, "as it was planned: {full_rate:?}, {other:?}");
    assert_output(&beds.run(&["testbed", "fault", "slow", "leaf0-spine1", "20Mbps"]), 0, &[]);
    assert_eq!(rates(), [full_rate, (full_rate.0, 20_000_000)]);
    assert_output(&beds.run(&["testbed", "fault", "cut", "spine1"]), 0, &[]);
    assert_eq!(rates(), [full_rate, (full_rate.0, 0)], "down");
    let paths = json(&beds.run(&path_arguments));
    assert_eq!(paths["paths"].as_array().unwrap().len(), 1, "one spine is left: {paths}");
    assert_output(&beds.run(&["testbed", "fault", "mend", "spine1"]), 0, &[]);
    assert_eq!(json(&beds.run(&path_arguments))["paths"].as_array().unwrap().len(), 2);
    assert_eq!(rates(), [full_rate, full_rate], "a cable that is mended has its rate back");
    assert_output(&beds.run(&["testbed", "fault", "cut", "leaf0-spine7"]), 2, &["leaf0-spine7", "leaf0-spine0"]);
    assert_output(&beds.run(&["testbed", "fault", "slow", "leaf0-spine1"]), 2, &["RATE"]);
    for rate in ["2Gbps", "999kbps"] {
        let slow = ["testbed", "fault", "slow", "leaf0-spine1", rate];
        assert_output(&beds.run(&slow), 2, &["RATE", rate, "from 1Mbps to 1Gbps"]);
    }
    // Behind a cut: packets without a route at spine 0 count as drops of the port that was cut; with two cuts they are unknown.
    let drops = |port: &str| {
        let status = json(&beds.run(&["testbed", "status", "--format", "json"]));
        let ports = status["ports"].as_array().unwrap().clone();
        ports.into_iter().find(|of| of["port"] == port).unwrap()["counters"]["drops"].clone()
    };
    assert_output(&beds.run(&["testbed", "fault", "cut", "leaf1-spine0"]), 0, &[]);
    let is_counted = up["privileges"] != "user-namespace";
    let nothing = if is_counted { 0.into() } else { serde_json::Value::Null };
    assert_eq!(
        (drops("spine0->leaf1"), drops("spine0->leaf0")),
        (nothing, 0.into()),
        "without its program a port cannot know"
    );
    // About 8 of 16 ports lead over it; a datagram each.
    let sends = "for p in $(seq 9000 9031); do echo > /dev/udp/10.2.1.2/$p; done";
    assert_output(&beds.run(&["testbed", "exec", "host0", "--", "bash", "-c", sends]), 0, &[]);
    let lost = drops("spine0->leaf1").as_u64();
    assert!(lost.is_some_and(|lost| (4..=32).contains(&lost)) || !is_counted, "{lost:?}");
    assert_output(&beds.run(&["testbed", "fault", "mend", "leaf1-spine0"]), 0, &[]);
    assert_eq!(drops("spine0->leaf1").as_u64(), lost, "a count stays");
    assert_output(&beds.run(&["testbed", "fault", "cut", "spine0"]), 0, &[]);
    assert_output(&beds.run(&["testbed", "fault", "mend", "spine0"]), 0, &[]);
    let both = ["spine0->leaf0", "spine0->leaf1"].map(&drops);
    assert!(both.iter().all(serde_json::Value::is_null), "whose they are is not known: {both:?}");
    assert_output(&beds.run(&["testbed", "capture", "leaf0", "--out", "x.pcapng"]), 2, &["leaf0->spine0"]);

    let status = json(&beds.run(&["testbed", "status", "--format", "json"]));
    let port = status["ports"].as_array().unwrap().iter().find(|port| port["port"] == "leaf0->spine0").unwrap();
    assert!(port["counters"]["packets"].as_u64().unwrap() > 0, "{port}");

    // Killing the holder ends all processes in the testbed.
    let holder = up["holder"].as_i64().unwrap();
    let mut inside = beds.folder.command(&["testbed", "exec", "host0", "--", "sleep", "600"]);
    let mut inside = inside.env("TMPDIR", &beds.folder.0).env_remove("XDG_RUNTIME_DIR").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    anabranch_testkit::send_signal(holder as u32, "KILL");
    let ended = inside.wait().unwrap();
    assert!(!ended.success(), "killed with its namespaces");
    assert_ends(holder);
    assert_output(&beds.run(&["testbed", "status"]), 2, &["no testbed `default`", "other"]);
    assert!(beds.up("small.toml", &[]).is_some());
    for name in ["default", "other"] {
        assert_output(&beds.run(&["testbed", "down", "--name", name]), 0, &[]);
    }
    assert_output(&beds.run(&["testbed", "down"]), 2, &["no testbed `default`"]);
    let folders = std::fs::read_dir(&beds.folder.0).unwrap().flatten();
    let left: Vec<_> =
        folders.flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten().flatten()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Runs as [`Beds::run`], as an unprivileged user that owns the folder; a second user if this is root.
fn as_user(beds: &Bed, is_root: bool, words: &[&str]) -> Output {
    let program = beds.folder.0.join("anabranch");
    let mut command = std::process::Command::new(if is_root { Path::new("setpriv") } else { &program });
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    }
    command.args(words);
    command.current_dir(&beds.folder.0).env("TMPDIR", &beds.folder.0).env_remove("XDG_RUNTIME_DIR");
    command.stdin(std::process::Stdio::null());
    loop {
        match command.output() {
            // A process of another test may have the copy of the program open.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            output => return output.unwrap(),
        }
    }
}

#[test]
fn unprivileged_user_gets_testbed_without_marks() {
    let _turn = turn();
    let beds = bed("testbed-user");
    let (folder, program) = (&beds.folder.0, beds.folder.0.join("anabranch"));
    std::fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    if is_root {
        std::os::unix::fs::chown(folder, Some(65534), Some(65534)).unwrap();
    }
    let run = |words: &[&str]| as_user(&beds, is_root, words);
    // Ports that should trim, and cannot, change their rates like others.
    let up = ["testbed", "up", "--fabric", "small.toml", "--set", "wire.trimming=true", "--format", "json"];
    let up = run(&up);
    if has_no_testbed(&up) {
        return;
    }
    assert_eq!(code(&up), 0, "{}", stderr(&up));
    let up = json(&up);
    assert_eq!(up["privileges"], "user-namespace");
    let missing = up["missing"].to_string();
    assert!(missing.contains("marking and trimming: only root may load BPF programs"), "{missing}");

    let paths = ["testbed", "exec", "host0", "--", "./anabranch", "paths", "--to", "10.2.1.2:7000", "--format", "json"];
    assert_eq!(json(&run(&paths))["paths"].as_array().unwrap().len(), 2);
    assert_output(&run(&["testbed", "fault", "cut", "spine1"]), 0, &[]);
    assert_eq!(json(&run(&paths))["paths"].as_array().unwrap().len(), 1);
    assert_output(&run(&["testbed", "fault", "mend", "spine1"]), 0, &[]);
    assert_output(&run(&["testbed", "fault", "slow", "leaf0-spine1", "20Mbps"]), 0, &[]);
    let status = json(&run(&["testbed", "status", "--format", "json"]));
    let port = status["ports"].as_array().unwrap().iter().find(|port| port["port"] == "leaf0->spine0").unwrap();
    assert!(port["counters"]["packets"].as_u64().unwrap() > 0, "{port}");
    assert_output(&run(&["testbed", "down"]), 0, &[]);
    assert_output(&run(&["testbed", "status"]), 2, &["no testbed `default`"]);
    assert_ends(up["holder"].as_i64().unwrap());

    let ran = run(&["testbed", "run", "small.toml", "--set", "wire.labels=16", "--out", "out", "--progress", "never"]);
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let summary = beds.folder.json_file("out/summary.json");
    assert_eq!(summary["flows"]["finished"].as_u64(), Some(2));
    // The scenario requests marks, which are impossible here: unknown, with a finding. Trimming is not requested.
    assert_eq!(summary["counters"]["ecn_marked"], serde_json::Value::Null);
    let message = stderr(&ran);
    assert!(
        message.contains("Missing on this machine: marking and trimming: only root")
            && message.contains("run it as root"),
        "{message}"
    );
    // `check` and `run` refuse faults that need root, in one message.
    let fault = ["--set", "fault.0.kind=packet-loss", "--set", "fault.0.loss=0.1", "--set", "fault.0.count=1"];
    for command in
        [&["check", "small.toml", "--backend", "testbed"][..], &["testbed", "run", "small.toml", "--out", "faulty"]]
    {
        let refused = run(&[command, &fault].concat());
        assert_output(&refused, 2, &["`kind`", "only root may load those", "needs root"]);
        assert!(!stderr(&refused).contains("tc -"), "{}", stderr(&refused));
    }
}

#[test]
fn impossible_testbeds_are_refused_in_one_message() {
    let beds = bed("testbed-wrong");
    let up = |scenario: &str, more: &[&str], words: &[&str]| {
        let output = beds.run(&[&["testbed", "up", "--fabric", scenario], more].concat());
        assert_output(&output, 2, words);
        assert!(stderr(&output).contains("64 hosts"), "says what can be built: {}", stderr(&output));
    };
    up("spritz-permutation-dragonfly", &[], &["groups of switches"]);
    up("hopper-testbed", &[], &["Gbps", "1000 Mbit/s"]);
    up("hopper-testbed-small", &["--set", "topology.hosts_per_leaf=5000"], &["10000 hosts"]);
    assert_output(&beds.run(&["testbed", "up", "--name", "a/b"]), 2, &["a/b", "letters"]);
    assert_output(&beds.run(&["testbed", "up", "--set", "wire.datapath=uc"]), 2, &["[wire]", "datapath", "\"udp\""]);
    assert_output(&beds.run(&["testbed", "status", "--name", "rack2"]), 2, &["rack2", "testbed up"]);
    assert_output(&beds.run(&["paths", "--to", "nowhere"]), 2, &["--to", "nowhere", "10.0.0.2:7000"]);
    assert_output(&beds.run(&["paths", "--to", "127.0.0.1:65530"]), 2, &["65535"]);
    let empty = beds.folder.0.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output =
        beds.folder.command(&["testbed", "up", "--fabric", "small.toml"]).env("ANABRANCH_PROGRAMS", &empty).output();
    assert_output(&output.unwrap(), 2, &["`ip` is missing", "apt-get install iproute2"]);
    // The probe of namespaces needs `mount`; without it, permissions are not mentioned.
    for program in ["ip", "tc", "unshare", "nsenter", "chrt"] {
        let Some(found) = anabranch_testbed::find(program) else {
            return anabranch_testkit::skip(
                format!("the program `{program}` is missing"),
                "install iproute2 and util-linux",
            );
        };
        std::os::unix::fs::symlink(found, empty.join(program)).unwrap();
    }
    let output =
        beds.folder.command(&["testbed", "up", "--fabric", "small.toml"]).env("ANABRANCH_PROGRAMS", &empty).output();
    assert_output(&output.unwrap(), 2, &["`mount` is missing", "apt-get install mount"]);
}

#[test]
fn namespace_run_writes_results_like_a_simulation() {
    let _turn = turn();
    let beds = bed("testbed-run");
    if beds.up("small.toml", &[]).is_none() {
        return;
    }
    assert_output(&beds.run(&["testbed", "down"]), 0, &[]);
    let rounds = "[[workload]]\nkind = \"training-rounds\"\nrounds = 3\nranks = 2\nsizes = \"500kB\"\n\
                  [wire]\nlabels = 16\nfind_labels = \"paths\"\nrate = \"90Mbps\"\n";
    beds.folder.file("rounds.toml", &(SMALL.split("[[workload]]").next().unwrap().to_string() + rounds));
    let words =
        ["testbed", "compare", "rounds.toml", "--schemes", "ops,ecmp,spritz-scout", "--seeds", "1", "--out", "out"];
    let compared = beds.run(&[&words[..], &["--format", "json", "--progress", "never"]].concat());
    assert_eq!(code(&compared), 0, "{}", stderr(&compared));
    for scheme in ["ops", "ecmp", "spritz-scout"] {
        let run = format!("out/runs/{scheme}/seed1");
        let summary = beds.folder.json_file(&format!("{run}/summary.json"));
        assert_eq!((summary["flows"]["finished"].as_u64(), summary["flows"]["total"].as_u64()), (Some(3), Some(3)));
        let manifest = beds.folder.json_file(&format!("{run}/manifest.json"));
        assert!(manifest["datapath"].as_str().unwrap().contains("namespaces"));
        assert!(manifest["longest_pause_s"].as_f64().unwrap() > 0.0);
        let load = &summary["machine_load"];
        assert!(load["bound"].is_boolean(), "{load}");
        for share in ["offered_share", "late_share", "idle_share"] {
            assert!((0.0..=1.0).contains(&load[share].as_f64().unwrap()), "{load}");
        }
        // Three messages of 500 kB over the only sending leaf, in packets with 106 B of headers per 4096 B, and HELLOs.
        let links = beds.folder.rows(&format!("{run}/links.csv"));
        let up = links.iter().filter(|row| row["from"] == "leaf0" && row["to"].starts_with("spine"));
        let up: u64 = up.map(|row| row["bytes"].parse::<u64>().unwrap()).sum();
        assert!((1_500_000..2_500_000).contains(&up), "{scheme}: {up}");
        // OPS uses about 14 labels for 123 packets each, ECMP keeps its path.
        let flows = beds.folder.rows(&format!("{run}/flows.csv"));
        for switches in flows.iter().map(|row| row["path_switches"].parse::<u64>().unwrap()) {
            match scheme {
                "ops" => assert!((80..=200).contains(&switches), "{switches}"),
                "ecmp" => assert_eq!(switches, 0),
                _ => {}
            }
        }
    }
    // Quantities that a testbed does not measure are unknown: neither 0 nor drawn.
    let run = "out/runs/ops/seed1";
    let rows = |table: &str| {
        let rows = beds.folder.rows(&format!("{run}/{table}.csv"));
        move |name: &str| -> Vec<String> { rows.iter().map(|row| row[name].clone()).collect() }
    };
    let (flows, links) = (rows("flows"), rows("links"));
    for unknown in ["out_of_order_packets", "max_reorder_bytes", "out_of_sequence_packets"] {
        assert_eq!(flows(unknown), [""; 3], "{unknown}");
    }
    assert!(flows("retransmitted_packets").iter().all(|cell| cell.parse::<u64>().is_ok()));
    for unknown in ["queue_mean_bytes", "queue_p99_packets", "pauses"] {
        assert!(links(unknown).iter().all(String::is_empty), "{unknown}");
    }
    assert!(links("drops").iter().all(|cell| cell.parse::<u64>().is_ok()));
    let summary = beds.folder.json_file(&format!("{run}/summary.json"));
    for unknown in
        ["/fingerprint", "/events", "/conservation", "/counters/acks", "/counters/out_of_order", "/queues/mean_bytes"]
    {
        assert_eq!(summary.pointer(unknown), Some(&serde_json::Value::Null), "{unknown}");
    }
    assert!(summary.pointer("/counters/data_packets").unwrap().as_u64().unwrap() >= 3 * 123);
    assert_eq!(summary["backend"], "testbed");
    let page = std::fs::read_to_string(beds.folder.0.join("out/report.html")).unwrap();
    assert!(
        page.contains("Not drawn: <code>queue_depth</code>: the rows of <code>links</code> have no values of"),
        "no empty figure"
    );
    // They cannot be re-run bit by bit, and no simulation replaces them.
    assert_output(&beds.run(&["rerun", "out"]), 2, &["real"]);
    assert_output(
        &beds.run(&["testbed", "run", "rounds.toml", "--pcap", "leaf0->spine0=x.pcapng"]),
        2,
        &["--pcap", "capture"],
    );
}

/// Two schemes, a second of traffic on each backend.
#[test]
fn agree_compares_simulation_and_testbed() {
    let _turn = turn();
    let beds = bed("testbed-agree");
    // Four flows of 1 MB over two cables of 100 Mbit/s, one after the other at each host.
    let more = "[transport]\nmtu = \"4096B\"\nheader = \"98B\"\ncongestion_control = \"dctcp\"\nwindow = \"131072B\"\n\
                [wire]\nlabels = 16\nfind_labels = \"paths\"\nreal_time = true\n";
    beds.folder.file("both.toml", &(SMALL.replace("hosts_per_leaf = 1", "hosts_per_leaf = 2") + more));
    let words = ["agree", "both.toml", "--schemes", "ecmp,reps", "--seeds", "2", "--out", "out", "--progress", "never"];
    let agreed = beds.run(&[&words[..], &["--format", "json"]].concat());
    if has_no_testbed(&agreed) {
        return;
    }
    assert!([0, 1].contains(&code(&agreed)), "{}", stderr(&agreed));
    let result: serde_json::Value = serde_json::from_str(&stdout(&agreed)).unwrap();
    let agreement = &result["agreement"];
    assert_eq!(agreement["backends"], serde_json::json!(["sim", "testbed"]));
    let rows = agreement["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["scheme"].as_str().unwrap()).collect::<Vec<_>>(), ["ecmp", "reps"]);
    let is_apart = rows.iter().any(|row| row["verdict"] == "apart");
    assert_eq!(code(&agreed), i32::from(is_apart), "{}", stderr(&agreed));
    for row in rows {
        let bound = row["machine_bound_seeds"].as_array().unwrap().len();
        assert_eq!(row["seeds"].as_u64().unwrap() as usize + bound, 2, "{row}");
        // The ratio depends on the machine; beyond these limits it is another scenario.
        if let Some(ratio) = row["ratio"].as_f64() {
            assert!((0.3..5.0).contains(&ratio), "{row}");
        }
    }
    let explanations = agreement["explanations"].as_array().unwrap();
    let values = |scheme: &str, quantity: &str| -> Vec<[f64; 2]> {
        let of = explanations.iter().filter(|row| row["scheme"] == scheme && row["quantity"] == quantity);
        of.map(|row| [0, 1].map(|side| row["values"][side].as_f64().unwrap_or_else(|| panic!("{row}")))).collect()
    };
    for scheme in ["ecmp", "reps"] {
        // 245 packets of 4096 B carry 1 MB; each backend sends four of these.
        assert!(values(scheme, "data packets")[0].iter().all(|packets| (980.0..1500.0).contains(packets)));
        assert_eq!(values(scheme, "probe bytes"), [[0.0, 0.0]]);
        let shares = values(scheme, "share of bytes");
        assert_eq!(shares.len(), 2, "two spines");
        for side in [0, 1] {
            assert!((shares.iter().map(|share| share[side]).sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        }
    }
    assert!(values("reps", "path changes")[0].iter().all(|changes| *changes > 0.0));
    assert!(beds.folder.0.join("out/report.html").is_file() && beds.folder.0.join("out/testbed/report.html").is_file());
}
