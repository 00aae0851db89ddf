//! Every error in a scenario gets one message with its place, the value found, the allowed values and the nearest choice.

use crate::servers::RAILS;
use anabranch_scenario::{SIMULATOR, Scenario, ScenarioError, Tree, scenario::readings::readings};
use std::path::Path;

const GOOD: &str = r#"seed = 1
[topology]
kind = "fat-tree"
tiers = 2
radix = 4
[fabric]
classes = ["data", "bulk"]
[transport]
ack_every = 4
[load_balancer]
scheme = "prime"
[load_balancer.prime]
p_ecn = 10
[[workload]]
kind = "poisson"
sizes = "64KiB"
load = 0.5
duration = "10us"
class = "bulk"
[run]
warmup = "0us"
"#;

fn read(text: &str, changes: &[&str]) -> Result<Scenario, ScenarioError> {
    let mut tree = Tree::parse("test.toml", text)?;
    for change in changes {
        tree.set(change)?;
    }
    Scenario::read(tree, "test", Path::new("."))
}

fn error_of(text: &str, changes: &[&str]) -> ScenarioError {
    match read(text, changes)
        .and_then(|scenario| scenario.setup(1).and_then(|setup| scenario.check(&setup, &SIMULATOR)))
    {
        Ok(_) => panic!("accepted: {changes:?}\n{text}"),
        Err(error) => error,
    }
}

/// The cases of a section of `mistakes.txt`.
fn cases(section: &str) -> Vec<Vec<String>> {
    let all = include_str!("../mistakes.txt").split("\n== ").find(|part| part.starts_with(section)).expect("a section");
    let lines = all.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| line.replace("\\n", "\n").split(" => ").map(String::from).collect()).collect()
}

fn assert_says(error: &ScenarioError, words: &[&str], what: &str) {
    let text = format!("{error} {}", error.remedy().unwrap_or_default());
    for word in words {
        assert!(text.contains(word), "{what}: no {word:?} in: {text}");
    }
}

#[test]
fn the_good_one_is_good() {
    read(GOOD, &[]).and_then(|scenario| scenario.setup(1)).unwrap();
}

/// Each case replaces a line of the file and lists the words of the message; the place is that of the line.
#[test]
fn errors_in_the_file() {
    for (good, case) in [("file", GOOD), ("servers", RAILS)]
        .map(|(name, good)| cases(name).into_iter().map(move |case| (good, case)))
        .into_iter()
        .flatten()
    {
        let [line, replacement, words] = &case[..] else { panic!("{case:?}") };
        assert!(good.contains(line), "{line}");
        let text = good.replacen(line, replacement, 1);
        let error = error_of(&text, &[]);
        assert_says(&error, &words.split(" | ").collect::<Vec<_>>(), replacement);
        let place = error.line_column().unwrap_or_else(|| panic!("{replacement}: no place: {error}"));
        assert_eq!(error.source_name(), Some("test.toml"));
        let first = 1 + good[..good.find(line).unwrap()].matches('\n').count();
        let last = first + replacement.matches('\n').count();
        // A table as a whole is at its header, a parameter table at the table it belongs to.
        let near = (first.saturating_sub(3)..=last).contains(&place.0);
        assert!(near, "{replacement}: at line {} instead of {first}: {error}", place.0);
    }
}

#[test]
fn errors_of_flags_are_located() {
    for (section, text) in [("flags", GOOD), ("roce", ROCE)] {
        read(text, &[]).and_then(|scenario| scenario.setup(1)).unwrap();
        for case in cases(section) {
            let [flags, words] = &case[..] else { panic!("{case:?}") };
            let error = error_of(text, &flags.split(" ; ").collect::<Vec<_>>());
            assert_says(&error, &words.split(" | ").collect::<Vec<_>>(), flags);
            assert!(error.line_column().is_some(), "{flags}: no place: {error}");
            assert!(section == "roce" || error.source_name() == Some("--set"), "{flags}: {error}");
        }
    }
}

#[test]
fn missing_parts_are_named() {
    let without = |from: &str, to: &str| {
        let (start, end) = (GOOD.find(from).unwrap(), GOOD.find(to).unwrap());
        format!("{}{}", &GOOD[..start], &GOOD[end..])
    };
    assert_says(&error_of(&without("[topology]", "[fabric]"), &[]), &["no [topology]", "fat-tree"], "topology");
    assert_says(&error_of(&without("[[workload]]", "[run]"), &[]), &["no [[workload]]", "poisson"], "workload");
    let text = GOOD.replace("kind = \"poisson\"\n", "");
    assert_says(&error_of(&text, &[]), &["[[workload]] 1", "`kind` is missing", "poisson"], "kind");
    let text = GOOD.replace("kind = \"fat-tree\"\n", "");
    assert_says(&error_of(&text, &[]), &["[topology]", "`kind` is missing", "fat-tree"], "kind");
}

#[test]
fn what_is_doubtful_is_a_warning() {
    for (change, word) in [("workload.0.load=1.2", "1.2"), ("fabric.class_weights=[1, 2]", "wrr")] {
        let warnings = read(GOOD, &[change]).unwrap().warnings();
        assert!(warnings.iter().any(|warning| warning.contains(word)), "{warnings:?}");
    }
    assert!(read(GOOD, &[]).unwrap().warnings().is_empty());
}

const ROCE: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[fabric]
profile = "roce-irn"
[transport]
kind = "roce"
[load_balancer]
scheme = "hopper"
[[workload]]
kind = "permutation"
size = "64KiB"
"#;

#[test]
fn keys_without_effect_are_named() {
    let warnings = |changes: &[&str]| read(ROCE, changes).unwrap().warnings().join("\n");
    assert_eq!(warnings(&["load_balancer.hopper.kappa=2"]), "");
    let chunks = warnings(&["load_balancer.hopper.kappa=2", "load_balancer.hopper.granularity=chunk"]);
    assert_eq!(chunks, "[load_balancer.hopper]: `kappa` has no effect with granularity = \"chunk\"");
    for (key, why) in [("values=4", "ports=profiled"), ("hold_beyond=20", "delay=continue")] {
        let found =
            warnings(&[key, why].map(|set| format!("load_balancer.hopper.{set}")).each_ref().map(String::as_str));
        let (key, (name, value)) = (key.split_once('=').unwrap().0, why.split_once('=').unwrap());
        assert_eq!(found, format!("[load_balancer.hopper]: `{key}` has no effect with {name} = \"{value}\""));
    }
    let static_t = ["load_balancer.scheme=hf2t", "load_balancer.hf2t.dynamic=false", "load_balancer.hf2t.l_target=4kB"];
    assert!(warnings(&static_t).contains("`l_target` has no effect with dynamic = false"));
    // `weights` is of schemes that hash; it counts where any that runs does.
    let weights = |scheme: &str, of_workload: &str| {
        let file = "topology={kind='slim-fly', q=5}\nload_balancer.source-guided.weights='latency'\n";
        let workload = format!("workload=[{{kind='permutation', size='64KiB', load_balancer='{of_workload}'}}]");
        let file = format!("{file}load_balancer.scheme='{scheme}'\n{workload}\n");
        read(&file, &[]).unwrap().warnings().join("\n")
    };
    let reason = "[load_balancer.source-guided]: `weights` has no effect with a host scheme that selects the path";
    assert_eq!(weights("spritz-scout", "spritz-scout"), reason);
    assert!(!weights("ops+source-guided", "ops+source-guided").contains("weights"));
    assert!(!weights("spritz-scout", "ops+source-guided").contains("weights"));
    let marks = warnings(&[
        "fabric.marking=pi",
        "fabric.pi.integral=1.0",
        "fabric.ecn_kmin=90kB",
        "fabric.ecn_mark_at=enqueue",
    ]);
    assert_eq!(marks, "[fabric]: `ecn_kmin` has no effect with marking = \"pi\"");
    assert_eq!(warnings(&["fabric.pi.integral=1.0"]), "[fabric]: `pi` has no effect with marking = \"red\"");
    let uet = |changes: &[&str]| read(GOOD, changes).unwrap().warnings().join("\n");
    assert_eq!(
        uet(&["transport.rto_linear=3"]),
        "[transport]: `rto_linear` has no effect without rto_rule = \"doubling\""
    );
    assert_eq!(uet(&["transport.rto_linear=3", "transport.rto_rule=doubling"]), "");
    for key in ["p_ecn_max=9", "p_ecn_settle=9"] {
        let set = [format!("load_balancer.prime.{key}")];
        let found = uet(&[&set[0]]);
        assert!(found.contains("has no effect with a p_ecn that is not \"auto\""), "{found}");
        assert_eq!(uet(&[&set[0], "load_balancer.prime.p_ecn=auto"]), "");
    }
    let window = uet(&["load_balancer.scheme=mp-rdma"]);
    assert!(window.contains("`mp-rdma` runs without its own window") && window.contains("\"dctcp\""), "{window}");
    assert_eq!(uet(&["load_balancer.scheme=mp-rdma", "transport.congestion_control=dctcp"]), "");
    let lists = uet(&["fabric.queue_limit=2bdp", "fabric.queue_limit_by_tier=[\"3bdp\"]"]);
    assert_eq!(lists, "[fabric]: `queue_limit` has no effect with queue_limit_by_tier");
    let unread = uet(&["fabric.csig=delay"]);
    assert!(unread.starts_with("[fabric]: `csig` has no effect") && unread.contains("prime.signal"), "{unread}");
    let read_by_prime = ["fabric.csig=delay", "load_balancer.prime.signal=csig"];
    assert_eq!(uet(&read_by_prime), "");
    let window = uet(&[&read_by_prime[..], &["fabric.csig_window=5us"]].concat());
    assert_eq!(window, "[fabric]: `csig_window` has no effect without csig = \"utilisation\"");
    assert!(uet(&["load_balancer.prime.csig_least=2.0"]).contains("`csig_least` has no effect with signal"));
    // One value for all replaces the list of a profile.
    let one = read(GOOD, &["fabric.profile=mrc", "fabric.queue_limit=2bdp"]).unwrap();
    assert!(one.warnings().is_empty() && one.fabric.queue_limit_by_tier.is_empty());
    // A scenario with every default filled in has no warnings.
    for changes in
        [["load_balancer.hopper.granularity=chunk", "seed=2"], ["fabric.marking=pi", "fabric.pi.reference=50kB"]]
    {
        let whole = read(ROCE, &changes).unwrap().to_toml();
        assert_eq!(read(&whole, &[]).unwrap().warnings().join("\n"), "");
        assert_eq!(read(&whole, &[]).unwrap().to_toml(), whole);
    }
    // Parameters of other schemes wait for a comparison.
    assert_eq!(warnings(&["load_balancer.flowbender.chunk=2MB"]), "");
}

/// Real networks write no signals; the message is at the key.
#[test]
fn signals_are_refused_on_real_networks() {
    let scenario = read(GOOD, &["fabric.csig=delay", "load_balancer.prime.signal=csig"]).unwrap();
    let error = scenario.wire_settings(None, 1).unwrap_err();
    assert_says(&error, &["[load_balancer.prime]: `signal`", "csig", "simulator"], "signal");
    assert!(error.line_column().is_some(), "{error}");
}

/// What a name fixes is checked with what is given, as if it were given too.
#[test]
fn parameters_that_a_name_fixes_are_checked() {
    let csig = ["fabric.csig=delay", "load_balancer.prime.signal=csig"];
    let by_name = read(GOOD, &[&csig[..], &["load_balancer.scheme=prime-guided"]].concat()).unwrap_err();
    let spelled = read(GOOD, &[&csig[..], &["load_balancer.prime.values=guided"]].concat()).unwrap_err();
    for error in [by_name, spelled] {
        assert_says(&error, &["prime: `signal`", "csig", "structured"], "signal");
        assert!(error.line_column().is_some(), "{error}");
    }
    let compared = read(GOOD, &[&csig[..], &["compare.schemes=[\"prime\", \"prime-guided\"]"]].concat()).unwrap_err();
    assert_says(&compared, &["[compare]", "prime: `signal`"], "compare.schemes");
}

#[test]
fn hf2t_follows_the_timeout_of_its_switches() {
    let timeout = |changes: &[&str]| {
        let text = read(ROCE, &[&["load_balancer.scheme=hf2t"], changes].concat()).unwrap().to_toml();
        let section = text.split("[load_balancer.hf2t]").nth(1).unwrap().to_string();
        section.lines().find_map(|line| line.strip_prefix("flowlet_timeout = ")).unwrap().to_string()
    };
    assert_eq!(timeout(&[]), "\"100us\"", "LetFlow's default");
    assert_eq!(timeout(&["load_balancer.letflow.flowlet_timeout=25us"]), "\"25us\"");
    assert_eq!(timeout(&["load_balancer.hf2t.flowlet_timeout=12us"]), "\"12us\"");
}

/// A slow cable beside fast ones slows no flow that is alone; uplinks that are slower than hosts do.
#[test]
fn inexact_ideals_are_a_warning() {
    let of = |changes: &[&str]| {
        let scenario = read(ROCE, changes).unwrap();
        let setup = scenario.setup(1).unwrap();
        scenario.foresight(&setup, &SIMULATOR).iter().any(|warning| warning.contains("Ideal times"))
    };
    for spine in ["leaf0-spine0", "leaf0-spine1"] {
        assert!(!of(&[&format!("topology.link.0.link={spine}"), "topology.link.0.rate=10Gbps"]), "{spine}");
    }
    assert!(of(&["topology.link_rate=40Gbps", "topology.host_link_rate=100Gbps"]));
}

#[test]
fn shared_buffer_turns_trimming_off() {
    let fabric = |changes: &[&str]| read(GOOD, changes).unwrap().fabric;
    assert!(fabric(&[]).trimming);
    assert!(!fabric(&["fabric.shared_buffer=9MB"]).trimming);
}

#[test]
fn a_transport_brings_its_profile_and_a_profile_its_transport() {
    let without = |line: &str| ROCE.replace(line, "");
    let plain = read(&without("profile = \"roce-irn\""), &[]).unwrap();
    assert_eq!(plain.profile.name, "roce-irn");
    let recorded = read(&without("kind = \"roce\""), &["fabric.profile=conweave-ns3-lossless"]).unwrap();
    let text = recorded.to_toml();
    let lines = ["kind = \"roce\"", "recovery = \"go-back-n\"", "recorded = true", "flow_keys = \"udp-ports\""];
    anabranch_testkit::assert_contains(&text, &lines);
}

#[test]
fn readings_are_reading_keys_unlike_their_defaults() {
    let readings_of = |sets: &[&str]| readings(&read(ROCE, sets).unwrap());
    assert!(readings_of(&[]).is_empty());
    // Experts' keys, keys at their defaults, and what a profile sets are none.
    assert!(readings_of(&["fabric.pfc_alpha=0.5", "transport.dcqcn.clamp_target=false"]).is_empty());
    assert!(readings_of(&["fabric.profile=conweave-ns3-irn"]).is_empty());
    let sets = ["fabric.ideal_fct=transmission", "transport.dcqcn.clamp_target=true", "load_balancer.hopper.kappa=2.0"];
    let found = readings_of(&sets);
    let expected = ["ideal_fct = \"transmission\"", "dcqcn.clamp_target = true", "hopper.kappa = 2.0"];
    assert!(found.len() == 3 && found.iter().zip(expected).all(|(found, end)| found.ends_with(end)), "{found:?}");
    let again = read(&read(ROCE, &sets).unwrap().to_toml(), &[]).unwrap();
    assert_eq!(readings(&again), found, "with every default filled in");
}

#[test]
fn errors_of_the_plan_are_located() {
    let lossless = ROCE.replace("roce-irn", "roce-lossless");
    let text = lossless.replace("[transport]", "shared_buffer = \"50kB\"\n[transport]");
    let error = error_of(&text, &[]);
    let line = 1 + text[..text.find("shared_buffer").unwrap()].matches('\n').count();
    assert_eq!(error.line_column().map(|place| place.0), Some(line), "{error}");
    // A headroom that outgrows the default buffer: the error is in the section.
    let error = error_of(&lossless, &["fabric.pfc_headroom=900MB"]);
    assert_says(&error, &["[fabric]", "`shared_buffer`"], "headroom");
    assert_eq!(error.line_column().map(|place| place.0), Some(7), "{error}");
    let dragonfly =
        GOOD.replace("kind = \"fat-tree\"\ntiers = 2\nradix = 4", "kind = \"dragonfly\"\np = 1\na = 2\nh = 1");
    let error = error_of(&dragonfly, &["load_balancer.scheme=ugal-g", "load_balancer.ugal.snapshot_interval=1ns"]);
    assert_says(&error, &["[load_balancer.ugal]", "`snapshot_interval`", "1ns", "auto"], "ugal");
    assert!(error.line_column().is_some());
}

/// A window of one packet suffices for every transport, regardless of the initial window of the congestion control.
#[test]
fn the_smallest_window_that_works_works() {
    let finishes = |text: &str, changes: &[&str]| {
        let setup = read(text, changes).and_then(|scenario| scenario.setup(1)).unwrap();
        let result =
            anabranch_sim::run(&setup, 1, &mut |_| true).unwrap_or_else(|error| panic!("{changes:?}: {error}"));
        assert!(result.flows.iter().all(|flow| flow.fct_ack.is_some()), "{changes:?}");
    };
    for control in ["dctcp", "smartt", "nscc", "none"] {
        let control = format!("transport.congestion_control={control}");
        finishes(GOOD, &["transport.window=4160B", &control]);
    }
    for control in ["dcqcn", "swift", "none"] {
        let control = format!("transport.congestion_control={control}");
        finishes(ROCE, &["transport.window=1000B", &control]);
    }
    for window in ["1000B", "1500B", "3000B"] {
        let window = format!("transport.window={window}");
        let tcp =
            ["fabric.profile=roce-lossless", "transport.congestion_control=tcp-like", "load_balancer.scheme=ecmp"];
        finishes(ROCE, &[tcp[0], tcp[1], tcp[2], &window]);
    }
}

/// 8,192 hosts of three tiers of radix 32: 24,576 cables of 2460 B, 1280 * 512 entries of 4 B, 42 MB for an empty run, 8192 flows
/// of 1150 B and 250 B for their delays; under PRIME 16 * 16 paths of 4 B each: 124,935,808 B.
#[test]
fn paths_of_open_flows_count() {
    let large = |scheme: &str, limit: &str| {
        let balancer = format!("load_balancer={{ scheme = \"{scheme}\" }}");
        let flows = "workload.0={ kind = \"permutation\", size = \"4KiB\" }";
        let changes = ["topology.tiers=3", "topology.radix=32", flows, &balancer, limit];
        read(GOOD, &changes).and_then(|scenario| scenario.setup(1)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(large("prime", "run.memory_limit=124935808B"), Ok(()));
    let error = large("prime", "run.memory_limit=124935807B").unwrap_err();
    assert!(error.contains("8192 flows at once with 256 paths each"), "{error}");
    assert_eq!(large("ops", "run.memory_limit=124935807B"), Ok(()));
}

#[test]
fn oversized_scenarios_are_refused() {
    // 65,536 hosts, three levels of links: 196,608 cables of 2460 B, 5120 * 2048 entries of 4 B: in all some 530 MB.
    let large = ["topology.tiers=3", "topology.radix=64", "run.memory_limit=100MB"];
    let error = error_of(GOOD, &large);
    assert_says(&error, &["65536 hosts", "MB of memory", "`memory_limit` of [run] allows 100.0 MB"], "fabric");
    assert!(error.line_column().is_some(), "{error}");
    // 2^20 hosts in leaves of 512 under 2 spines.
    let million = GOOD.replace(
        "kind = \"fat-tree\"\ntiers = 2\nradix = 4",
        "kind = \"leaf-spine\"\nleaves = 2048\nhosts_per_leaf = 512\nspines = 2",
    );
    let error = error_of(&million, &["run.memory_limit=1GB"]);
    assert_says(&error, &["1048576 hosts", "2.6 GB of memory", "allows 1.0 GB"], "a million hosts");
    // A million hosts under 2048 spines: 4,194,304 cables more, 10 GB in all. Four million hosts are beyond any run. Both are
    // refused before anything is built: that would take seconds and gigabytes.
    let began = std::time::Instant::now();
    let error = error_of(&million.replace("spines = 2", "spines = 2048"), &["run.memory_limit=8GB"]);
    assert_says(&error, &["1048576 hosts", "13.0 GB of memory", "allows 8.0 GB"], "many spines");
    let error = error_of(&million.replace("leaves = 2048", "leaves = 8192"), &[]);
    assert_says(&error, &["`leaves` makes 4194304 hosts", "at most 1048576"], "four million hosts");
    assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
    // 8 hosts, 2^23 rounds: 67 million flows of 1150 B.
    let flows = [
        "workload.0={ kind = \"permutation\", size = \"1B\", rounds = 8388608, max_flows = 100000000 }",
        "run.memory_limit=16GB",
    ];
    let error = error_of(GOOD, &flows);
    assert_says(&error, &["`rounds`", "67108864 flows", "77.2 GB", "16.0 GB", "memory_limit"], "flows");
    assert!(error.line_column().is_some(), "{error}");
    let twice = format!(
        "{GOOD}[[workload]]\nkind = \"permutation\"\nrounds = 2500\n[[workload]]\nkind = \"permutation\"\nrounds = 2500\n"
    );
    let error = error_of(&twice, &["run.memory_limit=74MB"]);
    assert_says(&error, &["[[workload]] 3", "20000 flows"], "two workloads");
}

/// A flow file of one line without end: neither read where it is too large, nor quoted whole where it is not.
#[test]
fn a_flow_file_of_one_long_line() {
    let folder = anabranch_testkit::folder();
    let path = folder.join("long.csv");
    std::fs::write(&path, "src,".repeat(1 << 20)).unwrap();
    let file = format!("workload.0={{ kind = \"file\", path = \"{}\" }}", path.display());
    let error = error_of(GOOD, &[&file]);
    assert_says(&error, &["long.csv:1"], "quoted");
    assert!(error.to_string().len() < 2000, "{} bytes", error.to_string().len());
    std::fs::write(&path, "x".repeat(4 << 20)).unwrap();
    let error = error_of(GOOD, &[&file]);
    assert!(error.to_string().len() < 2000, "{} bytes", error.to_string().len());
    // 4 MiB, five times: more than the 54 MB less what the fabric takes.
    let error = error_of(GOOD, &[&file, "run.memory_limit=54MB"]);
    assert_says(&error, &["`path`", "memory while it is read", "memory_limit"], "too large");
    assert!(error.line_column().is_some());
}

/// Sizes, starts and times beyond 2^63 - 1 are found before the run, not when results are written.
#[test]
fn numbers_beyond_clocks_and_tables_are_refused() {
    const MAX: &str = "9223372036854775807";
    let permutation = |keys: &str| format!("workload.0={{ kind = \"permutation\", {keys} }}");
    for (keys, most) in [
        ("size = \"1125899906842625B\"", "at most 1024TiB"),
        ("size = \"1B\", start = \"1000000.000000000001s\"", "at most 1000000s"),
    ] {
        let error = error_of(GOOD, &[&permutation(keys)]);
        assert_says(&error, &[most, "[[workload]] 1"], keys);
        assert!(error.line_column().is_some(), "{error}");
    }
    // 1024 TiB at 1 Mbit/s: 9 thousand million s. 1200 GB at 1 Mbit/s: 9.6 million s, and a header of 64 B for each 4096 B.
    for (seconds, changes) in [
        ("s alone on the network", vec![permutation("size = \"1024TiB\""), "topology.link_rate=1Mbps".into()]),
        ("9750", vec![permutation("size = \"1200GB\""), "topology.link_rate=1Mbps".into()]),
    ] {
        let error = error_of(GOOD, &changes.iter().map(String::as_str).collect::<Vec<_>>());
        assert_says(&error, &[seconds, "`size`", "9223372 s"], seconds);
        assert!(error.line_column().is_some(), "{error}");
    }
    for key in ["time_limit", "until"] {
        let error = error_of(GOOD, &[&format!("run.{key}=1000001s")]);
        assert_says(&error, &[&format!("`{key}`"), "1000001s", "1000000s"], key);
        assert!(error.line_column().is_some(), "{error}");
        read(GOOD, &["run.time_limit=1000000s", &format!("run.{key}=1000000s")])
            .and_then(|scenario| scenario.setup(1))
            .unwrap();
    }
    // 8.8 million s, and 1.6 % for headers.
    let long = [&permutation("size = \"1100GB\"")[..], "topology.link_rate=1Mbps"];
    read(GOOD, &long).and_then(|scenario| scenario.setup(1)).unwrap();
    let folder = anabranch_testkit::folder();
    let path = folder.join("flows.csv");
    let file = format!("workload.0={{ kind = \"file\", path = \"{}\" }}", path.display());
    for (row, found, most) in
        [("0,1,9223372036854775808,0", "size", MAX), ("0,1,1,9223372036854775808", "start", "1000000s")]
    {
        std::fs::write(&path, format!("src,dst,size_bytes,start_ps\n0,1,1,0\n{row}\n")).unwrap();
        assert_says(&error_of(GOOD, &[&file]), &["flows.csv:3", found, "9223372036854775808", most], row);
    }
}

#[test]
fn the_memory_limit_is_not_in_the_hash() {
    let of = |changes: &[&str]| read(GOOD, changes).unwrap().hash();
    assert_eq!(of(&[]), of(&["run.memory_limit=64GiB"]));
    assert_ne!(of(&[]), of(&["run.time_limit=2s"]));
    assert!(read(GOOD, &["run.memory_limit=64GiB"]).unwrap().to_toml().contains("memory_limit = \"64GiB\""));
}

#[test]
fn seventy_thousand_workloads() {
    let begun = std::time::Instant::now();
    let of = |count: usize| {
        format!(
            "{}{}",
            GOOD.split("[[workload]]").next().unwrap(),
            "[[workload]]\nkind = \"permutation\"\n".repeat(count)
        )
    };
    let error = error_of(&of(70_000), &[]);
    assert_says(&error, &["[[workload]] 65537", "found 70000 workloads, at most 65536", "file"], "70,000");
    assert!(error.line_column().is_some());
    // Comparing every name with every other would take minutes; this takes some seconds on a busy machine.
    let scenario = read(&of(30_000), &[]).unwrap();
    assert_eq!(scenario.setup(1).unwrap().flows.flows.len(), 30_000 * 8);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    /// Sizes and limits of any magnitude end in a setup or an error, never in a panic or an aborted allocation.
    #[test]
    fn no_size_is_too_large(
        kind in 0usize..4,
        sizes in proptest::array::uniform4(proptest::prop_oneof![1u64..8, proptest::prelude::any::<u64>()]),
        limit in 8_000_000u64..80_000_000,
        size in proptest::prop_oneof![1u64..1 << 20, proptest::prelude::any::<u64>()],
        rounds in proptest::prop_oneof![1u32..4, proptest::prelude::any::<u32>()],
    ) {
        let [a, b, c, d] = sizes.map(|size| size >> 1);
        let topology = match kind {
            0 => format!("kind = \"fat-tree\"\nradix = {}\ntiers = {}", a, 2 + b % 2),
            1 => format!("kind = \"leaf-spine\"\nleaves = {a}\nspines = {b}\nhosts_per_leaf = {c}\nlinks_per_spine = {d}"),
            2 => format!("kind = \"dragonfly\"\np = {a}\na = {b}\nh = {c}"),
            _ => format!("kind = \"slim-fly\"\nq = {a}\np = {b}"),
        };
        let text = format!(
            "[topology]\n{topology}\n[[workload]]\nkind = \"permutation\"\nsize = \"{}B\"\nrounds = {rounds}\n\
             [run]\nmemory_limit = \"{limit}B\"\n",
            size.max(1),
        );
        let _ = read(&text, &[]).and_then(|scenario| scenario.setup(1).map(|setup| scenario.foresight(&setup, &SIMULATOR)));
    }
}

/// A file of 400 kB with 20,000 unknown keys: the first hundred are shown, and the errors share one copy of the file.
#[test]
fn errors_of_a_large_file_are_bounded() {
    let text =
        (0..20_000).map(|key| format!("wrong_key_{key} = 1\n")).fold(GOOD.to_string(), |text, line| text + &line);
    let error = error_of(&text, &[]);
    assert_eq!((error.others().len(), error.more()), (99, 19_900));
    let lines = std::iter::once(&error).chain(error.others()).map(|error| error.line_column().unwrap().0);
    let first = GOOD.lines().count() + 1;
    assert!(lines.eq(first..first + 100), "the first places: {error}");
    let sources = |error: &ScenarioError| error.source_line().unwrap().as_ptr() as usize;
    let all: Vec<usize> = std::iter::once(&error).chain(error.others()).map(sources).collect();
    assert!(all.iter().max().unwrap() - all.iter().min().unwrap() < text.len(), "one copy");
}

/// Of a value over many lines, or in a long one, at most 200 B around the place are quoted, by [`miette`] too.
#[test]
fn quotes_are_short() {
    use miette::Diagnostic;
    let lines = "x\n".repeat(100_000);
    let values =
        [format!("\"\"\"{lines}\"\"\""), format!("\"{}\"", "é".repeat(100_000)), format!("[{}]", "1, ".repeat(9_999))];
    for value in values {
        for text in
            [format!("{GOOD}\nwrong_key = {value}\nmore = 1\n"), GOOD.replace("radix = 4", &format!("radix = {value}"))]
        {
            let error = error_of(&text, &[]);
            let label = error.labels().unwrap().next().unwrap();
            assert!(error.source_line().unwrap().len() <= 200 && label.len() <= 200, "{} B", label.len());
            let line = |at: usize| 1 + text[..at].matches('\n').count();
            for context in [0, 1] {
                let read = error.source_code().unwrap().read_span(label.inner(), context, context).unwrap();
                let (shown, from) = (std::str::from_utf8(read.data()).unwrap(), read.span().offset());
                assert!(shown.len() <= 3 * 200 + 2 && shown.lines().count() <= 3, "{shown}");
                assert_eq!((&text[from..from + shown.len()], read.line() + 1), (shown, line(from)));
                assert!(from <= label.offset() && label.offset() + label.len() <= from + shown.len(), "{shown}");
            }
            let (row, column) = error.line_column().unwrap();
            let header = error.source_code().unwrap().read_span(label.inner(), 0, 0).unwrap();
            assert_eq!((header.line() + 1, header.column() + 1), (row, column));
        }
    }
}

#[test]
fn all_mistakes_of_a_file_are_found_at_once() {
    let text = GOOD
        .replace("radix = 4", "radix = \"four\"\ntires = 2")
        .replace("ack_every = 4", "ack_evry = 4")
        .replace("p_ecn = 10", "p_ecn = \"often\"\np_encn = 2")
        .replace("load = 0.5", "laod = 0.5")
        .replace("warmup = \"0us\"", "warmup = 3\n[[fault]]\nkind = \"link-dwon\"\n[[fault]]\nkin = 1");
    let error = error_of(&text, &[]);
    let all: Vec<(usize, String)> = std::iter::once(&error)
        .chain(error.others())
        .map(|error| (error.line_column().expect("a place").0, error.to_string()))
        .collect();
    // The line of each error, counted from the words of the line.
    let line = |word: &str| 1 + text.lines().position(|line| line.starts_with(word)).expect("a line");
    let words = ["radix", "tires", "ack_evry", "p_ecn", "p_encn", "laod", "warmup", "kind = \"link-dwon", "kin = 1"];
    let lines: Vec<usize> = all.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, words.map(line), "{all:#?}");
    // A misspelt section does not seem absent, and what depends on a wrong one is not called wrong.
    let error = error_of(&GOOD.replace("[[workload]]", "[[workloads]]").replace("classes", "clases"), &[]);
    let all: Vec<String> = std::iter::once(&error).chain(error.others()).map(ToString::to_string).collect();
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(all[0].contains("`clases`") && all[1].contains("`workloads`"), "{all:#?}");
    // Names of links and switches too, beside others.
    let faults = "[[fault]]\nlinks = [\"leaf0-spine9\"]\n[[fault]]\nkind = \"switch-down\"\nswitches = [\"core0\"]\n";
    let error = error_of(&format!("{}{faults}", GOOD.replace("load = 0.5", "laod = 0.5")), &[]);
    let all: Vec<String> = std::iter::once(&error).chain(error.others()).map(ToString::to_string).collect();
    assert!(all.len() == 3 && all[1].contains("leaf0-spine9") && all[2].contains("spine0 to spine1"), "{all:#?}");
    let error = error_of(&format!("{GOOD}{faults}"), &[]);
    assert_eq!(error.others().len(), 1, "{error}");
}
