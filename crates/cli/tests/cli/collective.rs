//! The commands `collective`, `nccl` and `explain nccl`.

use std::{
    path::Path,
    process::{Command, Output},
};

fn anabranch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(arguments)
        .env("ANABRANCH_IFNAME", "=lo")
        .env("ANABRANCH_PATHS", "2")
        .env("ANABRANCH_RATE", "2Gbps")
        .output()
        .expect("the command")
}

fn assert_output(arguments: &[&str], code: i32, words: &[&str]) {
    let output = anabranch(arguments);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{text}");
    anabranch_testkit::assert_contains(&text, words);
}

#[test]
fn ring_is_correct_and_writes_rows() {
    let rows = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows.csv");
    let rows = rows.to_str().expect("a path");
    let ring = ["collective", "ring", "--ranks", "3", "--bytes", "300KB", "--rounds", "2"];
    let arguments =
        [&ring[..], &["--abi", "v9", "--type", "int", "--rows", rows, "--replace", "--format", "json"]].concat();
    assert_output(&arguments, 0, &["\"abi\": 9", "\"wrong_elements\": 0", "\"closed\": 3"]);
    let text = std::fs::read_to_string(rows).expect("rows");
    // Two rounds, two channels, three ranks, four steps of one chunk, sender and receiver; and the header.
    assert_eq!(text.lines().count(), 1 + 2 * 2 * 3 * 4 * 2);
    assert!(text.starts_with(
        "round,rank,channel,peer,direction,step,bytes,start_ns,end_ns,packets,retransmitted,moves,paths\n"
    ));
}

#[test]
fn ranks_have_separate_variables() {
    let pairs = ["collective", "pairs", "--bytes", "4KB", "--rounds", "1", "--ranks", "2", "--each"];
    // Loopback reports no speed, so it has that of `ANABRANCH_RATE`.
    let words = ["all correct", "device lo (2000 Mbit/s)"];
    assert_output(&[&pairs[..], &["ANABRANCH_SCHEME=reps;hopper"]].concat(), 0, &words);
    // Packets of different sizes: both ranks report it.
    assert_output(
        &[&pairs[..], &["ANABRANCH_MTU=1000B;1400B"]].concat(),
        2,
        &["ncclInvalidUsage", "give both the same ANABRANCH_MTU"],
    );
}

/// Paths are traced only over a network, which ranks of one machine lack.
#[cfg(target_os = "linux")]
#[test]
fn impossible_networks_are_refused() {
    let pairs = ["collective", "pairs", "--bytes", "4KB", "--rounds", "1", "--ranks", "2", "--each"];
    assert_output(
        &[&pairs[..], &["ANABRANCH_SET=wire.find_labels=paths"]].concat(),
        2,
        &[
            "ncclInvalidUsage",
            "[wire]: find_labels: found \"paths\": 127.0.0.1 is this machine, and no switch lies in between; expected \"all\"",
        ],
    );
    assert_output(&["collective", "ring", "--at", "nowhere"], 2, &["nowhere", "testbed up"]);
}

#[test]
fn suite_reports_each_case() {
    let words =
        ["\"verdict\": \"pass\"", "\"verdict\": \"refused\"", "\"verdict\": \"skipped\"", "it is larger than --bytes"];
    assert_output(&["collective", "--suite=grouped,later-tag,4GiB", "--format", "json"], 0, &words);
    let words = ["ncclNetPlugin_v9", "depth", "1 cases: 1 pass, 0 refused, 0 skipped, 0 fail"];
    assert_output(&["collective", "--suite=depth", "--abi", "v9"], 0, &words);
    assert_output(&["collective", "--suite=dept"], 2, &["--suite", "did you mean `depth`?"]);
    assert_output(&["collective", "ring", "--suite"], 2, &["cannot be used with"]);
    assert_output(&["collective", "--suite", "--plugin", "/dev/null"], 2, &["/dev/null"]);
}

#[test]
fn this_host_is_checked() {
    assert_output(
        &["nccl", "check"],
        0,
        &["device 0, lo", "127.0.0.1 by UDP at 2000 Mbit/s", "2 labels", "ANABRANCH_PATHS"],
    );
    let check = |name: &str, value: &str, words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
            .args(["nccl", "check", "--format", "json"])
            .envs([("ANABRANCH_IFNAME", "=lo"), (name, value)])
            .output()
            .expect("the command");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        output.status.code()
    };
    assert_eq!(check("NCCL_NET", "Socket", &["\"state\": \"missing\"", "NCCL_NET=Anabranch"]), Some(1));
    assert_eq!(check("ANABRANCH_SCHEME", "hoper", &["\"state\": \"missing\"", "hopper"]), Some(1));
    assert_eq!(check("NCCL_IB_HCA", "mlx5_0", &["mlx5_0, not heeded"]), Some(0));
}

#[test]
fn plugin_is_installed_and_explained() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    assert_output(
        &["nccl", "install", "--replace", folder.to_str().expect("a path")],
        0,
        &["libnccl-net.so", "NCCL_NET_PLUGIN=anabranch"],
    );
    let plugin = folder.join("libnccl-net-anabranch.so");
    let arguments = ["collective", "pairs", "--ranks", "2", "--bytes", "4KB", "--plugin"];
    assert_output(
        &[&arguments[..], &[plugin.to_str().expect("a path")]].concat(),
        0,
        &["all correct", "ncclNetPlugin_v12"],
    );
    assert_output(&["explain", "nccl"], 0, &["ANABRANCH_SCHEME", "ANABRANCH_GIVE_UP"]);
}

/// Runs a Python tool of the repository; `None`, a skip, without Python.
fn python(tool: &str, arguments: &[&str]) -> Option<Output> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(tool);
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(&python);
    match command.arg(tool).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1").output() {
        Ok(output) => Some(output),
        Err(error) => {
            anabranch_testkit::skip(format!("running {python}: {error}"), "install python3");
            None
        }
    }
}

/// `stats` while a job runs, the Python reader with equal figures, a tuner that changes a threshold, and refusals.
#[test]
fn stats_shows_paths_and_sets_parameters_of_a_running_job() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = folder.to_str().expect("a path");
    // Hostile entries in /dev/shm: neither the job nor `stats` blocks on them or follows them.
    let foreign = ["anabranch-0-fifo", "anabranch-0-link"].map(|name| folder.join(name));
    let made = Command::new("mkfifo").arg(&foreign[0]).status().expect("mkfifo, of coreutils");
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", &foreign[1]).expect("a link");
    let job = ["collective", "pairs", "--ranks", "2", "--bytes", "8MiB", "--rounds", "200"];
    let mut job = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(job)
        .envs([("ANABRANCH_IFNAME", "=lo"), ("ANABRANCH_PATHS", "4"), ("ANABRANCH_RATE", "500Mbps")])
        .envs([("ANABRANCH_SCHEME", "hopper"), ("ANABRANCH_STATS", at)])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the command");
    let snapshot = || {
        let output = anabranch(&["stats", "--folder", at, "--format", "json"]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let sum = |value: &serde_json::Value, name: &str| {
        let processes = value["processes"].as_array().expect("a list");
        let paths = processes.iter().flat_map(|of| of["paths"].as_array().expect("a list"));
        (processes.len(), paths.map(|path| path[name].as_u64().expect("a number")).sum::<u64>())
    };
    let began = std::time::Instant::now();
    let seen = loop {
        let seen = snapshot();
        let (processes, answers) = sum(&seen, "answers");
        let paths =
            seen["processes"].as_array().expect("a list").iter().map(|of| of["paths"].as_array().map_or(0, Vec::len));
        if processes == 2 && answers > 100 && paths.min() > Some(0) {
            break seen;
        }
        assert!(began.elapsed().as_secs() < 60, "{seen}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let one = &seen["processes"][0];
    assert_eq!((one["scheme"].as_str(), one["connections_without_room"].as_u64()), (Some("hopper"), Some(0)));
    // Two channels, four paths each.
    assert_eq!(one["paths"].as_array().expect("a list").len(), 8);
    let words = ["scheme hopper", "127.0.0.1", "open", "moves", "anabranch-0-fifo (it is no regular file), and 1 more"];
    assert_output(&["stats", "--folder", at], 0, &words);
    assert_eq!(seen["skipped"].as_array().map(Vec::len), Some(2));
    assert_output(&["stats", "--folder", at, "--pid", "1"], 2, &["--pid", "process 1"]);
    if let Some(output) = python("paths.py", &[at]) {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 16, "{text}");
        let bytes: u64 = lines.iter().map(|path| path["bytes"].as_u64().expect("a number")).sum();
        // The second reader samples between our two samples.
        assert!(sum(&seen, "bytes").1 <= bytes && bytes <= sum(&snapshot(), "bytes").1);
        let tuned = python("tuner.py", &[at, "1.2"]).expect("Python");
        assert!(tuned.status.success(), "{}", String::from_utf8_lossy(&tuned.stderr));
    }
    // The same paths for Prometheus, twice; no other file is replaced.
    let readings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("anabranch.prom");
    let file = readings.to_str().expect("a path");
    let _ = std::fs::remove_file(&readings);
    for _ in 0..2 {
        assert_output(&["stats", "--folder", at, "--prometheus", file], 0, &[]);
        let text = std::fs::read_to_string(&readings).expect("the readings");
        let bytes = text.lines().filter(|line| line.starts_with("anabranch_path_sent_bytes_total{"));
        assert_eq!(bytes.count(), 16, "{text}");
    }
    std::fs::write(&readings, "up 1\n").expect("a file");
    assert_output(&["stats", "--folder", at, "--prometheus", file], 2, &["--prometheus", "expected a new file"]);
    // Without a selection several processes are a list, and none is changed.
    let pids: Vec<String> =
        seen["processes"].as_array().expect("a list").iter().map(|of| of["pid"].to_string()).collect();
    let connection = format!("{}.{}", one["paths"][0]["device"], one["paths"][0]["connection"]);
    let state = |connection: &str, by: &[&str], code, words: &[&str]| {
        assert_output(&[&["stats", "--folder", at, "--state", connection], by].concat(), code, words);
    };
    state(&connection, &["--pid", &pids[0]], 0, &["average_ps", "move_above_ps", "open_probes"]);
    state(&connection, &[], 2, &["2 processes", "--pid"]);
    state("0.99", &["--pid", &pids[0]], 2, &["0.99", "no such connection"]);
    state("99", &["--pid", &pids[0]], 2, &["99", "such as 0.1"]);
    let set = ["stats", "--folder", at, "--set", "load_balancer.scheme=prime"];
    assert_output(&set, 2, &["--all", "--pid", &pids[0], &pids[1], "scheme hopper, to 127.0.0.1:"]);
    assert_eq!(snapshot()["processes"][1]["scheme"], "hopper");
    let set = |value: &str, by: &[&str], code, words: &[&str]| {
        assert_output(&[&["stats", "--folder", at, "--set", value], by].concat(), code, words);
    };
    set("load_balancer.hopper.th_cong=3", &["--all"], 0, &["2 processes", "th_cong=3"]);
    set("load_balancer.hopper.th_kong=3", &["--all"], 2, &["--set", "th_cong"]);
    set("load_balancer.scheme=ar", &["--pid", &pids[0]], 2, &["`ar`", "switches choose", "`reps`"]);
    set("load_balancer.scheme=reps", &["--pid", &pids.join(",")], 0, &["2 processes"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(snapshot()["processes"][1]["scheme"], "reps");
    // The next `stats` removes the pages of a killed job.
    job.kill().expect("a signal");
    job.wait().expect("its end");
    let began = std::time::Instant::now();
    while !snapshot()["processes"].as_array().expect("a list").is_empty() {
        assert!(began.elapsed().as_secs() < 30, "ranks end when their parent is gone");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), foreign.len(), "what is not ours stays");
    assert_output(&["stats", "--folder", at], 0, &["no process on this machine"]);
    assert_output(&["stats", "--folder", "/no/such/folder"], 2, &["/no/such/folder"]);
}
