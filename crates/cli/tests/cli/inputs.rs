//! Hostile input: every command ends quickly with one message that names it.

use crate::common::{Folder, code, stderr, stdout};
use std::{
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

fn scenario(more: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[load_balancer]\nscheme = \"ops\"\n{more}"
    )
}

/// Runs a command that may take two minutes on a loaded machine; one that blocks fails.
fn run_in_time(folder: &Folder, words: &[&str]) -> Output {
    let mut command = folder.command(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("{words:?} blocks");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn assert_refused(output: &Output, words: &[&str], what: &str) {
    let message = stderr(output);
    assert_eq!((code(output), stdout(output).as_str()), (2, ""), "{what}: {message}");
    for word in words {
        assert!(message.contains(word), "{what}: no {word:?} in {message}");
    }
}

/// FIFOs without a writer, devices, directories and files of the kernel are refused by name, also through a link.
#[test]
#[cfg(target_os = "linux")]
fn only_regular_files_are_read() {
    let folder = Folder::new("inputs-kinds");
    assert!(Command::new("mkfifo").arg(folder.0.join("fifo")).status().unwrap().success());
    std::fs::create_dir(folder.0.join("dir")).unwrap();
    std::os::unix::fs::symlink("fifo", folder.0.join("link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.0.join("endless")).unwrap();
    let kinds = [
        ("fifo", "a pipe (FIFO)"),
        ("link", "a pipe (FIFO)"),
        ("endless", "a character device"),
        ("/dev/stdin", "a character device"),
        ("dir", "a directory"),
        ("/proc/self/status", "a file of /proc"),
    ];
    let permutation = "[[workload]]\nkind = \"permutation\"\nsize = \"8KiB\"\n";
    for (path, what) in kinds {
        for words in [&["run", path][..], &["check", path], &["compare", path], &["sweep", path], &["topology", path]] {
            assert_refused(&run_in_time(&folder, words), &[path, what], &format!("{words:?}"));
        }
        for format in ["csv", "conweave", "htsim-cm", "goal"] {
            let text = format!("[[workload]]\nkind = \"file\"\npath = \"{path}\"\nformat = \"{format}\"\n");
            folder.file("flows.toml", &scenario(&text));
            assert_refused(&run_in_time(&folder, &["check", "flows.toml"]), &["flows.toml", path, what], format);
        }
        let sizes = format!("[[workload]]\nkind = \"poisson\"\nsizes = \"{path}\"\nload = 0.5\nduration = \"1us\"\n");
        folder.file("sizes.toml", &scenario(&sizes));
        assert_refused(&run_in_time(&folder, &["run", "sizes.toml"]), &["sizes.toml", path, what], "sizes");
        folder.file("graph.toml", &format!("[topology]\nkind = \"file\"\npath = \"{path}\"\n{permutation}"));
        assert_refused(&run_in_time(&folder, &["run", "graph.toml"]), &["graph.toml", path, what], "topology");
        let over = "[sweep.over]\n\"workload.0.size\" = [\"1KiB\"]\n";
        folder.file("over.toml", &format!("[sweep]\nscenario = \"{path}\"\nschemes = [\"ops\"]\n{over}"));
        assert_refused(&run_in_time(&folder, &["sweep", "over.toml"]), &[path, what], "sweep");
    }
    assert!(folder.entries("results").is_empty(), "nothing is left");
    folder.file("good.toml", &scenario(permutation));
    for file in ["manifest.json", "summary.json", "flows.parquet", "links.parquet"] {
        let _ = std::fs::remove_dir_all(folder.0.join("out"));
        folder.ok("run good.toml --out out");
        std::fs::remove_file(folder.0.join("out").join(file)).unwrap();
        std::os::unix::fs::symlink("../fifo", folder.0.join("out").join(file)).unwrap();
        assert_refused(&run_in_time(&folder, &["report", "out"]), &[file, "a pipe (FIFO)"], file);
    }
}

/// User files have a size limit, and a sparse file beyond it costs nothing.
#[test]
fn huge_files_are_refused() {
    let folder = Folder::new("inputs-huge");
    for name in ["huge.toml", "flows.csv"] {
        std::fs::File::create(folder.0.join(name)).unwrap().set_len(8 << 40).unwrap();
    }
    let output = run_in_time(&folder, &["run", "huge.toml"]);
    assert_refused(&output, &["huge.toml", "8796093022208 B", "at most 16777216 B"], "a scenario");
    folder.file("flows.toml", &scenario("[[workload]]\nkind = \"file\"\npath = \"flows.csv\"\n"));
    assert_refused(&run_in_time(&folder, &["run", "flows.toml"]), &["flows.csv", "8796.1 GB", "memory"], "flows");
}

/// All 64 bits of a seed are kept in text, JSON, CSV, Parquet and the scenario that `check` prints.
#[test]
fn seeds_have_64_bits() {
    let folder = Folder::new("inputs-seeds");
    let permutation = "[[workload]]\nkind = \"permutation\"\nsize = \"8KiB\"\n";
    folder.file("plain.toml", &scenario(permutation));
    const LARGEST: u64 = u64::MAX;
    let text = LARGEST.to_string();
    folder.file("named.toml", &format!("seed = \"{text}\"\n{}", scenario(permutation)));
    let mut hashes = Vec::new();
    for words in [&["check", "named.toml"][..], &["check", "plain.toml", "--seed", &text]] {
        let output = folder.ok(words);
        let printed = stdout(&output);
        assert!(printed.contains(&format!("seed = \"{text}\"")), "{printed}");
        folder.file("printed.toml", &printed);
        assert_eq!(stdout(&folder.line("check printed.toml")).lines().next(), printed.lines().next(), "the same hash");
        hashes.push(printed.lines().next().unwrap().to_string());
    }
    let set = format!("seed={text}");
    hashes.push(stdout(&folder.run(&["check", "plain.toml", "--set", &set])).lines().next().unwrap().to_string());
    let printed = stdout(&folder.line("check named.toml --set seed=18446744073709551614"));
    assert_ne!(printed.lines().next().unwrap(), hashes[0], "the last bit counts");
    folder.file("plain.toml", &scenario(permutation).replace("[topology]", "name = \"named\"\n[topology]"));
    let output = folder.ok(&["run", "plain.toml", "--seed", &text, "--out", "run", "--format", "json"]);
    assert!(stdout(&output).contains(&format!("\"seed\": {text},")), "{}", stdout(&output));
    for (file, mark) in [("summary.json", format!("\"seed\": {text},")), ("manifest.json", format!("ops/seed{text}"))] {
        assert!(std::fs::read_to_string(folder.0.join("run").join(file)).unwrap().contains(&mark), "{file}");
    }
    // The CSV file has it; removing that file makes readers use Parquet.
    assert_eq!(folder.rows("run/flows.csv")[0]["seed"], text);
    for part in [&["report", "run"][..], &["view", "run"], &["rerun", "run"]] {
        folder.ok(part);
    }
    // Two seeds below the maximum fit, three do not.
    let compare = |seeds: &str| {
        let words = "compare plain.toml --seed 18446744073709551614 --schemes ops,ecmp --out two --seeds";
        folder.line(&format!("{words} {seeds}"))
    };
    assert_refused(&compare("3"), &["3 seeds from 18446744073709551614", &text], "three seeds");
    assert_eq!(code(&compare("2")), 0);
    assert!(folder.entries("two/runs/ops").contains(&format!("seed{text}")));
    for words in [
        &["check", "plain.toml", "--seed", "18446744073709551616"][..],
        &["check", "plain.toml", "--set", "seed=18446744073709551616"],
        &["check", "plain.toml", "--set", "seed=-1"],
        &["check", "plain.toml", "--set", "seed=1e3"],
        &["check", "plain.toml", "--set", "seed=\"+1\""],
    ] {
        assert_refused(&folder.run(words), &["seed"], &format!("{words:?}"));
    }
    folder.file("bare.toml", &format!("seed = {text}\n{}", scenario(permutation)));
    let text = format!("\"{text}\"");
    assert_refused(&folder.line("run bare.toml"), &["bare.toml:1:8", "written as text", &text], "bare");
}

fn two(first: &str, second: &str) -> String {
    let one = |name: &str| format!("[[workload]]\nkind = \"permutation\"\nsize = \"8KiB\"\nname = \"{name}\"\n");
    scenario(&(one(first) + &one(second)))
}

/// Any printable text can be a name: every figure has its own file, with a name that file systems accept.
#[test]
fn every_name_has_separate_figures() {
    let folder = Folder::new("inputs-names");
    let long = "x".repeat(300);
    let (one, other) = (format!("{long}1"), format!("{long}2"));
    for (first, second) in
        [("训练", "推理"), ("a b", "a_b"), ("A", "a"), (one.as_str(), other.as_str()), ("../up", "..")]
    {
        folder.file("names.toml", &two(first, second));
        folder.ok("check names.toml");
        folder.ok("run names.toml --out out --replace");
        let cdf: Vec<String> =
            folder.entries("out/figures").into_iter().filter(|file| file.starts_with("slowdown_cdf")).collect();
        assert_eq!(cdf.iter().filter(|file| file.ends_with(".svg")).count(), 2, "{first}: {cdf:?}");
        assert!(cdf.iter().all(|file| file.len() < 150), "{cdf:?}");
        let listed = folder.read("out/manifest.json");
        assert!(cdf.iter().all(|file| listed.contains(&format!("figures/{file}"))), "{first}: {listed}");
    }
    folder.file("names.toml", &two("训练", "推理"));
    folder.ok("run names.toml --out out --replace");
    assert!(folder.entries("out/figures").contains(&"slowdown_cdf-训练.svg".to_string()), "the name is kept");
    // Names have a maximum length, in every place.
    let endless = "x".repeat(1001);
    for text in [
        two(&endless, "b"),
        format!("name = \"{endless}\"\n{}", two("a", "b")),
        format!("[fabric]\nclasses = [\"{endless}\"]\n{}", two("a", "b")),
    ] {
        folder.file("endless.toml", &text);
        for command in ["check", "run"] {
            let output = folder.run(&[command, "endless.toml"]);
            assert_refused(&output, &["endless.toml", "1001 characters", "1000"], command);
        }
    }
}

/// Results have a row `all` for all workloads, so no workload may have that name.
#[test]
fn workload_name_all_is_refused() {
    let folder = Folder::new("inputs-all");
    folder.file("all.toml", &two("a", "all"));
    folder.file("flows.csv", "src,dst,size_bytes,start_ps,workload\n0,1,5,0,a\n0,2,5,0,all\n");
    folder.file("flows.toml", &scenario("[[workload]]\nkind = \"file\"\npath = \"flows.csv\"\n"));
    for command in ["check", "run"] {
        assert_refused(&folder.run(&[command, "all.toml"]), &["`name`", "`all`", "another name"], command);
        assert_refused(&folder.run(&[command, "flows.toml"]), &["flows.csv:3:", "`all`", "another name"], command);
    }
    folder.file("overall.toml", &two("a", "overall"));
    folder.ok("check overall.toml");
}

/// A result of others, sealed, with characters that neither a terminal nor XML takes in every string: shown as escapes,
/// or refused with code 2.
#[test]
fn control_characters_in_a_result_end_no_report() {
    let folder = Folder::new("inputs-result");
    folder.file("good.toml", &two("a", "b"));
    folder.ok("run good.toml --out made");
    for hostile in ["\\u0001", "\\u001b[31m", "\\u007f", "\\uffff", "\\u202e"] {
        for file in ["manifest.json", "summary.json"] {
            let made = std::fs::read_to_string(folder.0.join("made").join(file)).unwrap();
            for field in ["name", "load_balancer", "workload", "kind", "commit"] {
                let Some(at) = made.find(&format!("\"{field}\": \"")) else { continue };
                let text = format!("{}{hostile}{}", &made[..at + field.len() + 5], &made[at + field.len() + 5..]);
                let manifest = folder.read("made/manifest.json");
                folder.file(&format!("made/{file}"), &text);
                folder.reseal("made", &|_| {});
                let output = folder.line("report made");
                assert!([0, 2].contains(&code(&output)), "{hostile} {file} {field}: {}", stderr(&output));
                folder.file(&format!("made/{file}"), &made);
                folder.file("made/manifest.json", &manifest);
            }
        }
    }
}

/// Refused with their place, and printed as escapes: in values, keys, rows of files, options and file names.
#[test]
fn control_characters_reach_no_terminal() {
    let folder = Folder::new("inputs-control");
    const ESC: char = '\u{1b}';
    let plain = |output: &Output, what: &str| {
        for text in [stdout(output), stderr(output)] {
            let hostile = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
            assert_eq!(hostile, None, "{what}: {text:?}");
        }
    };
    let good = two("a", "b");
    let bad = "\\u001b[31mred";
    for (text, key, line) in [
        (format!("name = \"{bad}\"\n{good}"), "`name`", 1),
        (good.replace("name = \"a\"", &format!("name = \"{bad}\"")), "`name`", 11),
        (good.replace("name = \"a\"", "name = \"a\\nb\""), "`name`", 11),
        (good.replace("name = \"a\"", "name = \"a\\u202Eb\""), "`name`", 11),
        (good.replace("name = \"a\"", &format!("class = \"{bad}\"")), "`class`", 11),
        (good.replace("[load_balancer]", &format!("[fabric]\nclasses = [\"{bad}\"]\n[load_balancer]")), "`classes`", 7),
        (good.replace("name = \"a\"", &format!("\"{bad}\" = 1")), "a key", 11),
        (good.replace("scheme = \"ops\"", &format!("scheme = \"{bad}\"")), "`scheme`", 7),
    ] {
        folder.file("bad.toml", &text);
        for command in ["check", "run"] {
            let output = folder.run(&[command, "bad.toml"]);
            assert_refused(&output, &[key, "control character U+", &format!("bad.toml:{line}:")], command);
            plain(&output, &text);
        }
    }
    // A raw one is invalid TOML; its line is printed all the same.
    folder.file("raw.toml", &good.replace("name = \"a\"", &format!("name = \"a{ESC}[31m\r\"")));
    let output = folder.line("run raw.toml");
    assert_refused(&output, &["raw.toml:11:"], "raw");
    plain(&output, "a raw one");
    folder.file("good.toml", &good);
    for words in [
        vec!["run", "good.toml", "--set", "name=\u{1b}[2Jgone"],
        vec!["run", "good.toml", "--set", "na\u{1b}me=gone"],
        vec!["run", "no\u{1b}[2Jfile.toml"],
        vec!["report", "no\u{1b}[2Jdirectory"],
        vec!["explain", "no\u{1b}[2Jthing"],
        vec!["no\u{1b}[2Jcommand"],
        vec!["run", "--no\u{1b}[2Jflag"],
        vec!["list", "no\u{1b}[2Jthings"],
        vec!["compare", "good.toml", "--schemes", "op\u{1b}[2Js"],
        vec!["compare", "good.toml", "--schemes", "ops", "--variant", "a\u{1b}=seed=1"],
        vec!["sweep", "good.toml", "--over", "workload.0.size=1KiB,\u{1b}[2J"],
    ] {
        let output = folder.ends(&words, 2, &[]);
        plain(&output, &format!("{words:?}"));
    }
    // Names of workloads in a table of flows have their line; the file may have any name.
    let flows = "fl\u{1b}ows.csv";
    folder.file(flows, "src,dst,size_bytes,start_ps,workload\n0,1,5,0,a\n0,2,5,0,b\u{7f}\n");
    folder.file("flows.toml", &scenario("[[workload]]\nkind = \"file\"\npath = \"plain.csv\"\n"));
    folder.file("plain.csv", &folder.read(flows));
    let output = folder.line("run flows.toml");
    assert_refused(&output, &["plain.csv", "plain.csv:3:", "U+007F"], "a row");
    plain(&output, "a row");
    folder.ok("run good.toml --out out");
    let path = folder.0.join("out/summary.json");
    let summary = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, summary.replace("\"scenario\": \"good\"", "\"scenario\": \"\\u001b[2Jgood\"")).unwrap();
    for words in [vec!["report", "out"], vec!["rerun", "out"], vec!["report", "out", "--format", "json"]] {
        plain(&folder.run(&words), &format!("{words:?}"));
    }
}

#[test]
fn names_are_text_on_pages() {
    let folder = Folder::new("inputs-pages");
    let tag = "<script>alert(1)</script>&\\\"'";
    folder.file(
        "page.toml",
        &format!(
            "name = \"{tag}n\"\n[fabric]\nclasses = [\"{tag}c\"]\n[measure]\nseries_scheme = true\n\
             series_links = [\"leaf0-*\"]\n{}",
            two(&format!("{tag}a"), &format!("{tag}b"))
        ),
    );
    folder.ok("run page.toml --out run");
    folder.ok("compare page.toml --schemes ops,ecmp --out compare");
    for words in [["view", "run"], ["view", "compare"], ["report", "compare"]] {
        folder.ok(&words);
    }
    let mut seen = 0;
    for place in ["run", "run/figures", "compare", "compare/figures"] {
        for file in folder.entries(place).iter().filter(|file| file.ends_with(".html") || file.ends_with(".svg")) {
            let page = std::fs::read_to_string(folder.0.join(place).join(file)).unwrap();
            assert!(!page.contains("<script>alert"), "{place}/{file}");
            seen += usize::from(page.contains("alert(1)"));
        }
    }
    assert!(seen >= 4, "the names are there, as text: {seen}");
}

/// Output of a command, and its peak memory in bytes.
#[cfg(target_os = "linux")]
fn run_and_watch(folder: &Folder, words: &[&str]) -> (Output, u64) {
    let mut child = folder.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let held: u64 = line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
        peak = peak.max(held * 1024);
        std::thread::sleep(Duration::from_millis(2));
    }
    (child.wait_with_output().unwrap(), peak)
}

/// Measurements are refused in advance with a value that fits, and stop a run that takes longer than predictable.
#[test]
#[cfg(target_os = "linux")]
fn series_stay_within_the_memory_limit() {
    let folder = Folder::new("inputs-memory");
    // 4 MiB at 100 Gb/s take 335.5 us; 16 directed links, at 1 ns and 400 B a sample: 2.15 GB.
    let with = |interval: &str, limit: &str| {
        let text = scenario("[[workload]]\nkind = \"permutation\"\nsize = \"4MiB\"\n");
        let measure = format!("[measure]\nseries_links = [\"host\", \"tier0-1\"]\nseries_interval = \"{interval}\"\n");
        folder.file("series.toml", &format!("{text}{measure}[run]\nmemory_limit = \"{limit}\"\n"));
    };
    with("1ns", "334MB");
    for command in ["check", "run"] {
        // At 20 ns it is 107 MB; at 10 ns 215 MB, too much for a run that takes twice the time.
        let words = ["series.toml:", "`series_interval`", "2.1 GB", "334.0 MB", "`series_interval = \"20ns\"`"];
        assert_refused(&folder.run(&[command, "series.toml"]), &words, command);
    }
    assert!(folder.entries("results").is_empty());
    with("20ns", "334MB");
    let (output, peak) = run_and_watch(&folder, &["run", "series.toml", "--out", "out"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(peak < 334_000_000, "{peak} B");
    // The time that a schedule computes shows only in the run: 5 ms at 10 ns are 500,000 samples of 16 links.
    folder.file(
        "long.goal",
        "num_ranks 2\nrank 0 {\nl1: calc 5000000\nl2: send 1024b to 1 tag 0\nl2 requires l1\n}\nrank 1 {\nl1: recv 1024b from 0 tag 0\n}\n",
    );
    let text = scenario("[[workload]]\nkind = \"file\"\npath = \"long.goal\"\nformat = \"goal\"\n");
    let measure = "[measure]\nseries_links = [\"host\", \"tier0-1\"]\nseries_interval = \"10ns\"\n[run]\nmemory_limit = \"600MB\"\n";
    folder.file("chain.toml", &format!("{text}{measure}"));
    folder.ok("check chain.toml");
    let (output, peak) = run_and_watch(&folder, &["run", "chain.toml", "--out", "chain"]);
    assert_refused(&output, &["chain.toml:", "`series_interval`", "`memory_limit`"], "a schedule");
    assert!(peak < 600_000_000, "{peak} B");
    assert!(folder.entries("chain").is_empty(), "nothing half-written");
    // Other measurements by their counts: a trace of at least 2 * 4 * 1,024 packets, at 250 B a row.
    folder.file("trace.toml", &scenario("[[workload]]\nkind = \"permutation\"\nsize = \"4MiB\"\n[measure]\ntrace_flows = [\"first:4\"]\n[run]\nmemory_limit = \"43MB\"\n"));
    assert_refused(&folder.line("check trace.toml"), &["trace.toml:", "`trace_flows`", "`trace_limit = "], "a trace");
}

#[test]
fn removed_result_directory_is_an_error() {
    let folder = Folder::new("inputs-gone");
    folder.file("long.toml", &scenario("[[workload]]\nkind = \"permutation\"\nsize = \"512MiB\"\n"));
    for words in [
        &["run", "long.toml", "--out", "gone"][..],
        &["compare", "long.toml", "--schemes", "ops,ecmp", "--out", "gone"],
    ] {
        let mut child = folder.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !folder.exists("gone/plan.json") && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(50));
        std::fs::remove_dir_all(folder.0.join("gone")).unwrap();
        let output = child.wait_with_output().unwrap();
        let message = stderr(&output);
        assert_eq!(code(&output), 2, "{words:?}: {message}");
        assert!(message.contains("was moved or removed") && !message.contains("panicked"), "{words:?}: {message}");
    }
}

/// Static tables ignore a detection, other tables do not; a denylist needs values that name paths; what goes up was down.
#[test]
fn faults_that_no_load_balancer_heeds_are_named() {
    let folder = Folder::new("inputs-unheeded");
    for (scheme, fault, expected) in [
        ("mrc", "kind = \"link-down\"\ndetect_after = \"1us\"", Some("these switches keep their tables")),
        ("mrc", "kind = \"link-down\"", None),
        ("prime", "kind = \"link-down\"\ndetect_after = \"1us\"", None),
        ("prime", "kind = \"link-degrade\"\nfactor = 0.5\ndetect_after = \"1us\"", Some("reads the rates of paths")),
        ("reps", "kind = \"path-deny\"", Some("no host here can deny a path")),
        ("mrc", "kind = \"path-deny\"", None),
        ("prime", "kind = \"path-deny\"", None),
        ("ops", "kind = \"link-up\"\nat = \"1us\"", Some("leaf0->spine1, spine1->leaf0 did not go down before")),
        ("ops", "kind = \"link-down\"\n[[fault]]\nlinks = [\"leaf0-spine1\"]\nkind = \"link-up\"\nat = \"1us\"", None),
    ] {
        let text = format!(
            "[[workload]]\nkind = \"permutation\"\nsize = \"8KiB\"\n[[fault]]\nlinks = [\"leaf0-spine1\"]\n{fault}\n"
        );
        folder.file("f.toml", &scenario(&text).replace("scheme = \"ops\"", &format!("scheme = \"{scheme}\"")));
        let output = stderr(&folder.ok(&["check", "f.toml"]));
        match expected {
            Some(words) => assert!(output.contains(words), "{scheme}, {fault}: {output}"),
            None => assert!(!output.contains("[[fault]] 1"), "{scheme}, {fault}: {output}"),
        }
    }
}

#[test]
fn unwritable_standard_output_is_an_error() {
    let folder = Folder::new("inputs-full");
    folder.ok("run tiny --out out --progress never");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in [
        &["schema"][..],
        &["completions", "bash"],
        &["list", "schemes"],
        &["explain", "prime"],
        &["check", "tiny"],
        &["topology", "tiny"],
        &["init", "-"],
        &["verify", "out"],
        &["rerun", "out", "--format", "json"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        let output = command.args(words).current_dir(&folder.0).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("standard output could not be written: No space left"), "{words:?}");
    }
    // A reader that closes the pipe is not an error.
    let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch")).arg("schema").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn export_in_result_directory_is_replaced_on_request() {
    let folder = Folder::new("inputs-replaced");
    let traced = ["run", "tiny", "--set", "measure.trace_flows=[\"first:2\"]", "--out", "out", "--progress", "never"];
    folder.ok(&traced);
    let draw = ["trace", "out", "--perfetto", "out/mine.pftrace"];
    folder.ok(&draw);
    folder.refused(&draw, &["--replace"]);
    folder.ok(&[&draw[..], &["--replace"]].concat());
    folder.refused("trace out --perfetto out/flows.csv --replace", &["which is read"]);
}

/// Failures of a flow file that leave a host of a flow without a path are refused with the pair; one link less runs.
#[test]
fn failures_that_cut_off_a_host_name_the_pair() {
    for spines in 1..4 {
        let folder = Folder::new("cut off");
        let file = |failed: u32| {
            let lines = (0..failed).map(|link| format!("failure switch_type TOR switch_id 0 link_id {link}\n"));
            let lines: String = lines.collect();
            format!("Nodes 4\nConnections 1\nFailures {failed}\n1->3 start 0 size 50000\n{lines}")
        };
        let scenario = format!(
            "name = \"cut\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 2\n\
             [load_balancer]\nscheme = \"ops\"\n[[workload]]\nkind = \"file\"\npath = \"f.cm\"\nformat = \"htsim-cm\"\n"
        );
        folder.file("cut.toml", &scenario);
        folder.file("f.cm", &file(spines - 1));
        folder.ok("run cut.toml --out out");
        folder.file("f.cm", &file(spines));
        folder.refused("check cut.toml", &["no path from host1 to host3"]);
    }
}

/// Under `ulimit -v` a run ends well or with exit code 2, need and limit: never in a panic, an abort or exit code 3.
#[test]
#[cfg(target_os = "linux")]
fn limits_of_the_address_space_are_kept() {
    let folder = Folder::new("inputs-ulimit");
    let text = |kind: &str, more: &str| {
        format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = 4\nhosts_per_leaf = 8\n[transport]\nkind = \"{kind}\"\n\
             [measure]\nattribution = true\n[[workload]]\nkind = \"permutation\"\nsize = \"4MiB\"\n{more}[run]\nuntil = \"100us\"\n"
        )
    };
    folder.file("pfc.toml", &text("roce", ""));
    folder.file("all.toml", &text("uet", "[[workload]]\nkind = \"all-to-all\"\nsize = \"1MiB\"\n"));
    // Below its own size and that of libc the program does not begin.
    let own = std::fs::metadata(env!("CARGO_BIN_EXE_anabranch")).unwrap().len() / 1000 + 3_000;
    let (mut done, mut refused) = (0, 0);
    for scenario in ["pfc.toml", "all.toml"] {
        for kilobytes in
            [own, own + 2_000, own + 6_000, 60_000, 80_000, 120_000, 200_000, 500_000, 2_000_000, 6_000_000]
        {
            let program = env!("CARGO_BIN_EXE_anabranch");
            let run = format!(
                "ulimit -v {kilobytes}; exec {program} run {scenario} --threads 2 --out out --replace --progress never"
            );
            let output = Command::new("sh").args(["-c", &run]).current_dir(&folder.0).output().unwrap();
            let message = stderr(&output);
            assert!(!message.contains("panicked"), "{scenario}, {kilobytes}: {message}");
            match output.status.code() {
                Some(0) => done += 1,
                Some(2) => {
                    refused += 1;
                    let is_named = message.contains("memory") && message.contains("limit");
                    assert!(is_named, "{scenario}, {kilobytes}: {message}");
                }
                _ => panic!("{scenario}, {kilobytes}: {:?}: {message}", output.status),
            }
        }
    }
    assert!(done > 4 && refused > 2, "{done} done, {refused} refused");
}

/// Packets under way are held to `run.memory_limit`: 64 windows of 64 MiB at links of half a millisecond.
#[test]
fn packets_under_way_are_held_to_the_memory_limit() {
    let folder = Folder::new("inputs-under-way");
    folder.file(
        "way.toml",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = 2\nhosts_per_leaf = 16\nlink_delay = \"500us\"\n[fabric]\n\
         queue_limit = \"1GiB\"\ntrimming = false\n[transport]\nwindow = \"64MiB\"\n[[workload]]\nkind = \"permutation\"\n\
         size = \"64MiB\"\n[run]\nuntil = \"60ms\"\nmemory_limit = \"64MiB\"\n",
    );
    let output = folder.line("run way.toml --out out --progress never");
    assert_refused(&output, &["way.toml:", "packets are under way", "MB of memory", "`memory_limit`"], "under way");
    assert!(folder.entries("out").is_empty(), "nothing half-written");
}

/// Windows take memory as they fill: 4 of a million packets are 64 MB in senders alone.
#[test]
#[cfg(target_os = "linux")]
fn windows_take_memory_as_they_fill() {
    let folder = Folder::new("inputs-windows");
    let text = "[transport]\nwindow = \"1024TiB\"\n[[workload]]\nkind = \"permutation\"\nsize = \"4GiB\"\n";
    folder.file("windows.toml", &scenario(&format!("{text}[run]\nuntil = \"20us\"\nmemory_limit = \"48MiB\"\n")));
    let (output, peak) = run_and_watch(&folder, &["run", "windows.toml", "--out", "out", "--progress", "never"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(peak < 48 << 20, "{peak} B");
}

/// Series of a run whose length is known take what was estimated: 16 links, 30,000 samples of 400 B are 192 MB.
#[test]
#[cfg(target_os = "linux")]
fn series_count_once() {
    let folder = Folder::new("inputs-series");
    let text = scenario("[[workload]]\nkind = \"permutation\"\nsize = \"4MiB\"\n[measure]\nseries_links = [\"*\"]\n");
    let run = "[run]\nuntil = \"300us\"\nmemory_limit = \"260MB\"\n";
    folder.file("series.toml", &format!("{text}series_interval = \"10ns\"\n{run}"));
    let (output, peak) = run_and_watch(&folder, &["run", "series.toml", "--out", "out", "--progress", "never"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(peak < 260_000_000, "{peak} B");
}

/// 128,000 flows in 0.8 MB of Parquet: what they take is reckoned from the footer, before they are decoded.
#[test]
#[cfg(target_os = "linux")]
fn tables_are_reckoned_before_they_are_read() {
    let folder = Folder::new("inputs-parquet");
    let many = "[[workload]]\nkind = \"permutation\"\nsize = \"1B\"\nrounds = 32000\n";
    folder.file("many.toml", &scenario(many));
    folder.ok("run many.toml --out out --progress never");
    let rows = folder.read("out/flows.csv").lines().count() - 1;
    let mut seen = 0;
    let report_under = |kilobytes: u32| {
        let report = format!("ulimit -v {kilobytes}; exec {} report out", env!("CARGO_BIN_EXE_anabranch"));
        Command::new("sh").args(["-c", &report]).current_dir(&folder.0).output().unwrap()
    };
    for kilobytes in [50_000, 60_000, 70_000, 90_000, 400_000] {
        let output = report_under(kilobytes);
        let message = stderr(&output);
        assert!([Some(0), Some(2)].contains(&output.status.code()), "{kilobytes}: {:?}: {message}", output.status);
        seen += u32::from(message.contains(&format!("flows.parquet: its {rows} rows take")));
        assert!(kilobytes < 400_000 || code(&output) == 0, "{message}");
    }
    assert!(seen > 0, "refused by the footer");
    // A name of 900 characters is once in a dictionary, and 128,000 times in memory: 115 MB.
    let long = format!("{many}name = \"{}\"\n", "n".repeat(900));
    folder.file("many.toml", &scenario(&long));
    folder.ok("run many.toml --out out --replace --progress never");
    let output = report_under(100_000);
    assert_refused(&output, &["flows.parquet", "the cells of a column take 115.2 MB"], "copies of a name");
}

/// Of many workloads the first have figures, and the page states the number of others.
#[test]
fn pages_of_many_workloads_are_bounded() {
    let folder = Folder::new("inputs-workloads");
    folder.file("many.toml", &scenario(&"[[workload]]\nkind = \"permutation\"\nsize = \"4kB\"\n".repeat(200)));
    folder.ok("run many.toml --out out --progress never");
    let page = folder.read("out/report.html");
    assert!(page.len() < 32_000_000, "{} bytes", page.len());
    assert!(page.contains("figures of 184 of 200 workloads"));
}

/// A collective that repeats is refused, or stays within `run.memory_limit`: 120,000 flows took three times their estimate.
#[test]
#[cfg(target_os = "linux")]
fn repeated_collectives_stay_within_the_memory_limit() {
    let folder = Folder::new("inputs-repeated");
    let collective =
        "[[workload]]\nkind = \"collective\"\nsize = \"4kB\"\nrepetitions = 5000\n[run]\ntime_limit = \"100s\"\n";
    folder.file("repeated.toml", &scenario(collective));
    for limit in [100_000_000u64, 190_000_000] {
        let set = format!("run.memory_limit={limit}B");
        let words = ["run", "repeated.toml", "--out", "out", "--replace", "--progress", "never", "--set", &set];
        let (output, peak) = run_and_watch(&folder, &words);
        assert!(code(&output) == 2 || code(&output) == 0 && peak < limit, "{limit}: {peak} B, {}", stderr(&output));
        // 42 MB and 120,000 * 1,150 B are 180 MB.
        assert_eq!(code(&output) == 0, limit > 185_000_000, "{}", stderr(&output));
    }
}
