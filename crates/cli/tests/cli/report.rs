//! The command `report`: contents of the page, and damaged results.

use crate::common::{Folder, stderr, stdout};
use std::fs;

const SCENARIO: &str = r#"
name = "two workloads"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[[workload]]
kind = "permutation"
name = "bulk"
size = "256KiB"
[[workload]]
kind = "incast"
name = "burst"
senders = 3
receivers = 1
size = "16KiB"
[[fault]]
kind = "link-down"
links = ["leaf0-spine1"]
detect_after = "0us"
"#;

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("two.toml", SCENARIO);
    folder
}

fn succeeds(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.ok(arguments);
    stdout(&output)
}

#[test]
fn page_shows_scenario_and_results() {
    let folder = folder("page");
    let table = succeeds(&folder, &["compare", "two.toml", "--schemes", "ecmp,ops", "--seeds", "2", "--out", "out"]);
    assert!(table.contains("workload bulk") && table.contains("workload burst"), "{table}");
    assert!(table.contains("too few seeds to compare schemes"), "{table}");
    let page = || folder.read("out/report.html").replace("&#x2f;", "/");
    for message in [
        "anabranch compare two.toml --schemes ecmp,ops --seeds 2 --out out",
        "8 hosts, 2 leaves and 2 spines, leaves oversubscribed 2:1, 24 directed links",
        "leaves are oversubscribed 2:1 and 1 cable fails",
        "seed 1: leaf0–spine1 (down at 0us)",
        "bulk: permutation",
        "burst: incast",
        "Too few seeds to rank the schemes",
    ] {
        assert!(page().contains(message), "{message}");
    }
    assert!(!page().contains("pooled"));
    let rows = folder.read("out/runs/ecmp/seed1/links.csv");
    assert_eq!(rows.lines().filter(|line| line.contains("down at 0us")).count(), 2);
    succeeds(&folder, &["report", "out", "--all-flows"]);
    assert!(page().contains("all 2 workloads pooled"));
    succeeds(&folder, &["report", "out"]);
    assert!(!page().contains("pooled"));
}

#[test]
fn figures_of_a_style_are_drawn_beside_the_page() {
    let folder = folder("style");
    succeeds(&folder, &["compare", "two.toml", "--schemes", "ecmp,ops", "--seeds", "3", "--out", "out"]);
    let page = folder.bytes("out/report.html");
    let shown = succeeds(&folder, &["report", "out", "--style", "paper"]);
    for directory in ["acm-column", "acm-text", "ieee-column", "ieee-text"] {
        assert!(shown.contains(&format!("out/figures/{directory}\n")), "{shown}");
        // A figure per workload, as on the page.
        assert!(folder.0.join(format!("out/figures/{directory}/fct_ratio-burst.pdf")).exists(), "{directory}");
    }
    assert_eq!(folder.bytes("out/report.html"), page, "the page is the same");
    succeeds(&folder, &["verify", "out"]);
    let swept =
        ["sweep", "two.toml", "--over", "topology.link_delay=1us,2us", "--schemes", "ecmp,ops", "--out", "swept"];
    succeeds(&folder, &swept);
    succeeds(&folder, &["report", "swept", "--style", "slides"]);
    assert!(folder.exists("swept/figures/slide/sweep_curves.svg"));
}

/// A scheme over a dead spine stalls, and it is the baseline: nothing is compared with it, and the reason is no other.
/// Messages of a host wait for each other: the tables and the page of a comparison show it beside slowdowns of 1.
#[test]
fn tables_show_waits_at_the_nic() {
    let folder = folder("nic-waits");
    let flows: String = (0..1_000).map(|_| "0,1,4096,0\n").collect();
    folder.file("messages.csv", &format!("src,dst,size_bytes,start_ps\n{flows}"));
    folder.file(
        "messages.toml",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 1\nspines = 1\nhosts_per_leaf = 2\nlink_rate = \"100Gbps\"\n\
         [[workload]]\nkind = \"file\"\nformat = \"csv\"\npath = \"messages.csv\"\n",
    );
    // 999 packets of 4096 + 64 B at 100 Gb/s: 332.467 us.
    assert!(succeeds(&folder, &["run", "messages.toml", "--out", "one"]).contains("  332.47"));
    let text = succeeds(&folder, &["compare", "messages.toml", "--schemes", "ecmp,ops", "--out", "both"]);
    assert!(text.contains("NIC wait") && text.contains("  332  "), "{text}");
    let page = folder.read("both/report.html");
    assert!(page.contains("wait at the NIC,<br>max") && page.contains(">332<"), "no wait on the page");
    // One message per host waits for nothing.
    let alone = succeeds(&folder, &["run", "tiny", "--out", "alone"]);
    assert!(!alone.contains("NIC wait"), "{alone}");
}

/// NICs of 1.6 Tb/s over uplinks of 400 Gb/s: the ideal is a bound, which `check`, the page and the summary show.
#[test]
fn ideals_that_are_not_exact_are_said() {
    let folder = folder("ideal-note");
    folder.file("narrow.toml", &SCENARIO.replacen("[[workload]]", "host_link_rate = \"1600Gbps\"\n[[workload]]", 1));
    folder.ends("check narrow.toml", 0, &["Ideal times are lower bounds"]);
    succeeds(&folder, &["run", "narrow.toml", "--out", "narrow"]);
    let page = folder.read("narrow/report.html");
    assert!(page.contains("Ideal times are lower bounds"), "no note on the page");
    let note = folder.json_file("narrow/summary.json")["ideal_note"].clone();
    assert!(note.as_str().unwrap().contains("slower than its hosts' links (first: host"), "{note}");
    succeeds(&folder, &["run", "two.toml", "--out", "wide"]);
    assert!(folder.json_file("wide/summary.json")["ideal_note"].is_null());
    let recorded = SCENARIO.replacen("[[workload]]", "[fabric]\nprofile = \"conweave-ns3-irn\"\n[[workload]]", 1);
    folder.file("recorded.toml", &recorded.replace("16KiB", "100B"));
    let output = folder.line("run recorded.toml --out recorded");
    let summary = folder.json_file("recorded/summary.json");
    let page = folder.read("recorded/report.html");
    for text in [stderr(&output), page.clone(), summary["ideal_note"].to_string()] {
        assert!(text.contains("it is no bound, and a slowdown can be below 1"), "{text}");
    }
    assert!(page.contains("times as long as their ideal times") && !page.contains("as long as alone on the network"));
}

#[test]
fn a_stalled_baseline_is_the_reason() {
    let folder = folder("stalled-baseline");
    let dead = SCENARIO.replace("detect_after = \"0us\"", "detect_after = \"never\"");
    folder.file("dead.toml", &dead);
    let arguments = ["compare", "dead.toml", "--schemes", "ecmp,ops,prime", "--seeds", "3", "--out", "dead"];
    let shown = succeeds(&folder, &arguments).replace('\n', " ");
    assert!(shown.contains("! ecmp is not compared:") && shown.contains("it is the baseline"), "{shown}");
    assert!(!shown.contains("too few seeds"), "{shown}");
    // Times have units that can be read.
    let output = folder.ends("run dead.toml --out one", 4, &[]);
    assert!(!stderr(&output).contains("0.0000") && stderr(&output).contains(" µs"), "{}", stderr(&output));
}

/// Of parallel cables, exactly those that a fault names are marked, in rows and on the page, if the fault took effect.
#[test]
fn a_fault_marks_one_of_parallel_cables() {
    for (cables, down, slow) in [(1, 0, 0), (2, 1, 0), (4, 2, 3), (5, 0, 4)] {
        let folder = folder("parallel");
        let name = |cable: u32| if cable == 0 { String::new() } else { format!("#{cable}") };
        let scenario = format!(
            "name = \"parallel\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
             links_per_spine = {cables}\n[load_balancer]\nscheme = \"ops\"\n[[workload]]\nkind = \"permutation\"\n\
             size = \"64KiB\"\n[measure]\nuplink_counts = true\n\
             [[fault]]\nkind = \"link-down\"\nlinks = [\"leaf0-spine1{}\"]\nat = \"1us\"\n\
             [[fault]]\nkind = \"link-degrade\"\nlinks = [\"leaf1->spine0{}\"]\nrate = \"10Gbps\"\nat = \"1us\"\n\
             [[fault]]\nkind = \"link-down\"\nlinks = [\"leaf0-spine0\"]\nat = \"900ms\"\n",
            name(down),
            name(slow)
        );
        fs::write(folder.0.join("parallel.toml"), scenario).unwrap();
        succeeds(&folder, &["run", "parallel.toml", "--out", "out"]);
        let faulty: Vec<_> = folder
            .rows("out/links.csv")
            .into_iter()
            .filter(|row| !row["fault"].is_empty())
            .map(|row| ["from", "to", "parallel", "fault"].map(|key| row[key].clone()))
            .collect();
        let expected = [
            ["leaf0", "spine1", &down.to_string(), "down at 1us"],
            ["spine1", "leaf0", &down.to_string(), "down at 1us"],
            ["leaf1", "spine0", &slow.to_string(), "10Gbps at 1us"],
        ];
        let mut expected = expected.map(|row| row.map(str::to_string)).to_vec();
        expected.sort();
        let mut found = faulty;
        found.sort();
        assert_eq!(found, expected);
        let page = folder.read("out/report.html");
        for shown in [
            format!("leaf0\u{2013}spine1{} (down at 1us)", name(down)),
            format!("leaf1\u{2013}spine0{} (10Gbps at 1us)", name(slow)),
        ] {
            assert_eq!(page.matches(&shown).count(), 1, "{shown}");
        }
        assert!(page.contains("Failed links") && page.contains("Degraded links"));
        assert!(page.contains("failed or degraded"));
        assert!(page.contains("Faults after the end") && page.contains("link-down at 900ms, links leaf0-spine0"));
        let heat = folder.rows("out/figures/link_heat.csv");
        let at = heat.iter().find(|row| row["from"] == "leaf1" && !row["fault"].is_empty()).unwrap();
        assert_eq!(at["to"], format!("spine0{}", name(slow)));
        let shown = succeeds(&folder, &["topology", "parallel.toml", "--paths", "0", "2"]);
        let found = (0..cables).filter(|cable| shown.contains(&format!("leaf0 spine1{} leaf1 host2", name(*cable))));
        assert_eq!(found.count() as u32, cables, "{shown}");
    }
}

/// Numbers of switches, parallel cables, pods and oversubscription follow from those of the scenario.
#[test]
fn what_was_run_names_the_fabric() {
    let folder = Folder::new("fabric-words");
    let workload = "[[workload]]\nkind = \"permutation\"\nsize = \"4KiB\"\n";
    let says = |topology: &str, all: &[String]| {
        folder.file("f.toml", &format!("[topology]\nlink_rate = \"100Gbps\"\n{topology}\n{workload}"));
        succeeds(&folder, &["run", "f.toml", "--out", "out", "--replace"]);
        let page = folder.read("out/report.html").replace("&#x2f;", "/");
        let from = page.find("What was run").unwrap();
        let words = &page[from..from + page[from..].find("Workload").unwrap()];
        all.iter().for_each(|text| assert!(words.contains(text.as_str()), "{topology}: {text}: {words}"));
        let limit = page.find("class=\"limit\"").unwrap();
        page[limit..limit + 300].to_string()
    };
    for (leaves, spines, hosts, parallel) in [(2, 3, 3, 1), (3, 2, 4, 1), (2, 2, 6, 2), (4, 1, 5, 2)] {
        let topology = format!(
            "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\nlinks_per_spine = {parallel}"
        );
        let spine = if spines == 1 { "1 spine".to_string() } else { format!("{spines} spines") };
        let mut all = vec![format!("{} hosts, {leaves} leaves and {spine}", leaves * hosts)];
        // Capacity of the hosts over that of the uplinks, whose rates are equal.
        let ratio = f64::from(hosts) / f64::from(spines * parallel);
        if ratio > 1.0 {
            all.push(format!("leaves oversubscribed {ratio}:1"));
        }
        if parallel > 1 {
            all.push(format!("up to {parallel} parallel cables"));
        }
        let limit = says(&topology, &all);
        assert_eq!(limit.contains("Not the load balancer alone"), ratio > 1.0, "{limit}");
    }
    let pods = "kind = \"clos\"\npods = 3\nleaves_per_pod = 2\nspines_per_pod = 2\ncores = 2\nhosts_per_leaf = 2";
    says(pods, &["6 leaves, 6 spines and 2 cores (3 pods)".into(), "spines oversubscribed 2:1".into()]);
    let planes = format!("{pods}\nplanes = 4");
    says(
        &planes,
        &["12 hosts, 4 planes of 6 leaves, 6 spines and 2 cores (3 pods)".into(), "spines oversubscribed 2:1".into()],
    );
    // Bounds need flows that all take links; inside servers they do not.
    let rails =
        "kind = \"rail-optimised\"\nservers = 8\nrails = 2\nservers_per_pod = 4\nspines = 1\nlinks_per_spine = 1";
    for (servers, bounds) in [("", true), ("\n[servers]\ngpus = 2\nnics = 2", false)] {
        let limit = says(&format!("{rails}{servers}"), &["servers 8, rails 2, servers per pod 4".into()]);
        assert!(limit.contains("leaves are oversubscribed 4:1"), "{limit}");
        assert_eq!(limit.contains("--bound"), bounds, "{limit}");
    }
}

/// Groups within a rack leave no scheme a choice, groups over racks do.
#[test]
fn flows_that_cross_no_switch_link_leave_no_choice() {
    let folder = Folder::new("no-choice");
    for (placement, crosses) in [("packed", false), ("strided", true)] {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
             [[workload]]\nkind = \"collective\"\nalgorithm = \"all-to-all\"\nsize = \"64KiB\"\ngroups = 4\nranks = 4\nplacement = \"{placement}\"\n\
             [[fault]]\nkind = \"link-degrade\"\nlinks = [\"leaf0-spine0\"]\nrate = \"10Gbps\"\n"
        );
        folder.file("f.toml", &text);
        let shown = stdout(&folder.ok("compare f.toml --schemes ecmp,ops --seeds 2 --out out --replace"));
        let alike = "ecmp and ops have the same flow times at every seed: they acted alike, or not at all.";
        assert_eq!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(alike), !crosses, "{shown}");
        let page = folder.read("out/report.html");
        assert_eq!(page.contains("No packet crossed a link between switches"), !crosses);
        assert_eq!(page.contains("Not the load balancer alone decides"), crosses);
    }
}

/// 128 hosts at one switch send to all others at once: each flow waits behind the 126 others of its host, which a port of a switch
/// cannot show, and the rest of its waiting is at the one link to its receiver.
#[test]
fn waiting_behind_flows_of_the_same_host_is_named() {
    let folder = Folder::new("own-host");
    folder.file(
        "f.toml",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 1\nspines = 1\nhosts_per_leaf = 128\n\
         [[workload]]\nkind = \"collective\"\nalgorithm = \"all-to-all\"\nsize = \"1MiB\"\n[measure]\nattribution = true\n",
    );
    // With six seeds no host has a twentieth of the slowest flows.
    succeeds(&folder, &["compare", "f.toml", "--schemes", "ecmp,ops", "--seeds", "6", "--out", "out"]);
    let page = folder.read("out/report.html");
    let from = page.find("they were spread.").expect("no link holds the flows of 128 hosts");
    let words = &page[from..from + 400];
    assert!(words.contains("Other flows of their own hosts held them for"), "{words}");
    assert!(words.contains("receivers ("), "{words}");
}
