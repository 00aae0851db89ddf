//! Output fits the terminal: the least important columns are hidden and listed.

use crate::common::{Folder, code, stderr, stdout};

fn printed(folder: &Folder, columns: usize, arguments: &[&str]) -> String {
    let output = folder.command(arguments).env("COLUMNS", columns.to_string()).output().unwrap();
    assert!([0, 2].contains(&code(&output)), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn fits(columns: usize, text: &str, what: &str) {
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > columns).collect();
    assert!(wide.is_empty(), "{what} in {columns} columns:\n{}", wide.join("\n"));
}

#[test]
fn tables_fit_80_and_more_columns() {
    let folder = Folder::new("width");
    let compare = ["compare", "tiny", "--schemes", "ecmp,packet-random,prime", "--seeds", "3", "--out", "compared"];
    let sweep =
        ["sweep", "tiny", "--over", "workload.0.size=16KiB,64KiB", "--over", "topology.link_rate=100Gbps,400Gbps"];
    let sweep = [&sweep[..], &["--schemes", "ecmp,packet-random", "--seeds", "2", "--out", "swept"]].concat();
    let commands: &[&[&str]] = &[
        &["run", "tiny", "--out", "ran"],
        &compare,
        &sweep,
        &[&sweep[..], &["--list"]].concat(),
        &[&sweep[..], &["--dry-run"]].concat(),
        &["rerun", "compared"],
        &["list", "schemes"],
        &["list", "topologies"],
        &["list", "transports"],
        &["list", "workloads"],
        &["list", "scenarios"],
        &["topology", "first-run", "--paths", "0", "100"],
        &["topology", "spritz-permutation-dragonfly", "--paths", "0", "900"],
        &["bench", "--small", "--repetitions", "1"],
        &["--help"],
    ];
    for columns in [80, 120] {
        for command in commands {
            let text = printed(&folder, columns, command);
            assert!(!text.is_empty(), "{command:?}");
            fits(columns, &text, &command.join(" "));
        }
    }
    let help = printed(&folder, 80, &["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' ')) {
        let command = command.split(' ').next().unwrap();
        fits(80, &printed(&folder, 80, &[command, "--help"]), &format!("{command} --help"));
    }
    for kind in ["schemes", "topologies", "transports", "workloads", "scenarios", "paper-scenarios"] {
        for thing in folder.json(&["list", kind])[kind].as_array().unwrap() {
            let name = thing["name"].as_str().unwrap();
            fits(80, &printed(&folder, 80, &["explain", name]), &format!("explain {name}"));
        }
    }
}

#[test]
fn hidden_columns_are_listed_and_wide_terminals_show_them() {
    let folder = Folder::new("columns");
    let arguments = ["run", "tiny", "--out", "out"];
    let of = |columns| printed(&folder, columns, &arguments);
    let (narrow, usual, wide) = (of(60), of(80), of(200));
    fits(60, &narrow, "run");
    for (text, goes) in [(&narrow, true), (&usual, true), (&wide, false)] {
        assert_eq!(text.contains("columns hidden (narrow terminal), see summary.json:"), goes, "{text}");
        // The tail is hidden last.
        assert!(text.contains("slowdown") && text.contains("p99") && text.contains("finished"), "{text}");
    }
    assert!(wide.contains("FCT (us) p50") && wide.contains("slowdown max"), "{wide}");
    assert!(narrow.lines().count() >= usual.lines().count());
}
