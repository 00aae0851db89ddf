//! Help that finds: `explain`, `list`, `check` with several errors, completions.

use crate::common::{Folder, code, json, stderr, stdout};
use regex_lite::Regex;

#[test]
fn words_of_the_field_lead_to_names() {
    let folder = Folder::new("words");
    for (word, name) in [
        ("allreduce", "anabranch explain collective"),
        ("AllReduce", "anabranch explain collective"),
        ("oversubscription", "hosts_per_leaf"),
        ("incast", "testbed-incast"),
        ("bdp", "transport.window"),
        ("fct", "fct_rx_ps"),
        ("spray", "anabranch explain ops"),
        ("load", "workload.load_reference"),
        ("hosts", "topology.radix"),
        ("slowdown_p99", "metric of comparisons and sweeps"),
        ("fct_rx_ps", "first packet sent to last packet received"),
        ("flows.slowdown", "column of flows.csv"),
        ("max_queue", "bytes"),
        ("Topology", "[[topology.link]]"),
        ("[[workload]]", "poisson: "),
        ("DCTCP", "[transport.dctcp]"),
        ("ecn_kmin", "[fabric]"),
        ("load_balancer.prime.p_ecn", "p_ecn = \"0.25bdp\""),
        ("workload.0.load", "[[workload]] with kind = \"poisson\""),
    ] {
        folder.prints(&["explain", word], 0, &[name]);
    }
    let key = folder.json("explain workload.load");
    assert_eq!(key["parts"][0]["parameters"][0]["key"], "workload.0.load");
}

/// A fat tree of radix k in three tiers has k^3/4 hosts, 500 and 864 twice oversubscribed for k = 10 and 12 (x 2).
#[test]
fn fabrics_that_can_be_built_are_proposed() {
    let folder = Folder::new("propose");
    let arguments = ["topology", "--hosts", "512", "--tiers", "3", "--oversubscription", "2", "--format", "json"];
    let output = folder.ends(&arguments, 0, &["no fabric has exactly 512 hosts"]);
    let found = json(&output);
    let found = found["proposals"].as_array().unwrap();
    let of = |radix: u64| {
        let own = found.iter().find(|of| of["keys"]["radix"] == radix && of["oversubscription"] == 2.0);
        own.map(|of| of["hosts"].as_u64().unwrap())
    };
    assert_eq!((of(10), of(12)), (Some(2 * 1000 / 4), Some(2 * 1728 / 4)));
}

#[test]
fn list_alone_lists_the_catalogues() {
    let folder = Folder::new("list");
    let all = folder.json("list");
    let catalogues = all["catalogues"].as_array().unwrap();
    assert!(catalogues.len() >= 7, "{all:#}");
    for catalogue in catalogues {
        let name = catalogue["name"].as_str().unwrap();
        let listed = folder.json(&["list", name]);
        assert_eq!(listed[name].as_array().unwrap().len() as u64, catalogue["entries"].as_u64().unwrap(), "{name}");
    }
    assert!(stdout(&folder.line("list")).contains("schemes"));
}

/// Requests completions as a shell does, by the words of a line of which the last is completed.
fn completed(folder: &Folder, words: &[&str]) -> Vec<String> {
    let mut command = folder.command(&[&["--", "anabranch"], words].concat());
    let output = command.env("ANABRANCH_COMPLETE", "fish").output().expect("the program runs");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let candidates = stdout(&output);
    candidates.lines().map(|line| line.split('\t').next().unwrap_or_default().to_string()).collect()
}

#[test]
fn completions_know_scenarios_schemes_keys_metrics_and_files() {
    let folder = Folder::new("complete");
    std::fs::write(folder.0.join("tiny-of-mine.toml"), "").unwrap();
    for (words, expected) in [
        (&["comp"][..], &["compare", "completions"][..]),
        (&["run", "tiny"], &["tiny", "tiny-of-mine.toml"]),
        (&["compare", "tiny", "--schemes", "ecmp,pri"], &["ecmp,prime", "ecmp,prime-guided"]),
        (&["compare", "tiny", "--baseline", "hf2"], &["hf2t"]),
        (&["run", "tiny", "--set", "topology.link_r"], &["topology.link_rate="]),
        (&["run", "tiny", "--set", "workload.0.senders"], &["workload.0.senders="]),
        (&["run", "tiny", "--set", "fabric.trimming="], &["fabric.trimming=true", "fabric.trimming=false"]),
        (&["run", "tiny", "--set", "load_balancer.scheme=dril"], &["load_balancer.scheme=drill"]),
        (&["sweep", "tiny", "--over", "run.unt"], &["run.until="]),
        (&["agree", "tiny", "--metric", "slowdown_p95"], &["slowdown_p95"]),
        (&["explain", "allred"], &["allreduce", "allreduce-64x8"]),
        (&["reproduce", "hop"], &["hopper"]),
        (&["init", "--from", "tin"], &["tiny"]),
    ] {
        assert_eq!(completed(&folder, words), expected, "{words:?}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = stdout(&folder.run(&["completions", shell]));
        assert!(text.contains("ANABRANCH_COMPLETE"), "{shell}: {text}");
    }
}

/// Every word of a heading, an axis or a unit that a comparison, a run or a sweep shows is explained.
#[test]
fn words_on_the_screen_are_explained() {
    let folder = Folder::new("screen");
    folder.ok("compare tiny --schemes ecmp,prime --seeds 3 --bound --out compared");
    folder.ok("run tiny --out run");
    folder.ok("sweep tiny --over topology.link_delay=1us,2us --schemes ecmp,prime --seeds 2 --out swept");
    let tags = Regex::new("<[^>]*>").unwrap();
    let mut words = std::collections::BTreeSet::new();
    for page in ["compared", "run", "swept"] {
        let page = folder.read(format!("{page}/report.html")).replace("<br>", " ").replace("&#x2f;", "/");
        for pattern in
            [r"<th[ >](?:[^<]|<[^/]|</[^t])*</th>", r"<text [^>]*>[^<]*</text>", r#"<span class="unit">[^<]*"#]
        {
            for found in Regex::new(pattern).unwrap().find_iter(&page) {
                let text = tags.replace_all(found.as_str(), " ");
                let text = text.trim().trim_matches(['[', ']']).trim();
                // Sentences, numbers, names of nodes, and values of the axes are no terms.
                let is_term = text.split_whitespace().count() <= 4
                    && !text.contains(|c: char| c.is_ascii_digit() || ":;=.\u{2013}\u{b7}".contains(c));
                if is_term && text.len() > 1 {
                    words.insert(text.to_lowercase());
                }
            }
        }
    }
    words.extend(
        anabranch_report::METRICS
            .iter()
            .filter_map(|metric| anabranch_report::heading(metric.name))
            .map(|heading| heading.replace('\n', " ")),
    );
    words.extend(
        ["entropy value", "queue pair", "percentile", "asymmetric", "95 % CI", "over reference", "99th percentile"]
            .map(String::from),
    );
    assert!(words.len() > 40, "{words:?}");
    let unknown: Vec<&String> = words.iter().filter(|word| anabranch_study::explain::explain(word).is_err()).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let ecn = stdout(&folder.line("explain ecn"));
    assert!(ecn.lines().take(4).any(|line| line.contains("Explicit congestion notification")), "{ecn}");
}
