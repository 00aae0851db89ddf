//! The reader of scenarios never panics, regardless of its input.

use anabranch_scenario::{ScenarioError, scenario::Scenario, tree::Tree};
use proptest::prelude::*;
use std::path::Path;

const SEEDS: &[&str] = &[
    include_str!("../../../../../scenarios/tiny.toml"),
    include_str!("../../../../../scenarios/first-run.toml"),
    include_str!("../../../../../scenarios/web-search-128.toml"),
    include_str!("../../../../../claims/prime/scenarios/prime-mixed-wrr70.toml"),
    include_str!("../../../../../claims/prime/scenarios/prime-degraded-links.toml"),
    include_str!("../../../../../claims/prime/scenarios/prime-motivation.toml"),
    "[topology]\nkind = \"dragonfly\"\n[[workload]]\nkind = \"collective\"\nalgorithm = \"recursive-doubling\"\n\
     ranks = 128\nplacement = \"random\"\nmessage_size = \"4MiB\"\nsteps = 7\ntrigger = \"received\"\nchannels = 1\n\
     parallel = 0\n[[workload]]\nkind = \"permutation\"\nhosts = \"rest\"\n[[workload]]\nkind = \"adversarial\"\n\
     offset = 5\n[[workload]]\nkind = \"microbenchmark\"\nfree_groups = 3\nlead = \"20us\"\nsource_group = \"auto\"\n\
     destination_group = 2\n[[workload]]\nkind = \"poisson\"\nmax_senders = 4\n",
];

fn digest(text: &str, changes: &[String]) -> Result<(), ScenarioError> {
    let mut tree = Tree::parse("fuzz.toml", text)?;
    for change in changes {
        tree.set(change)?;
    }
    let scenario = Scenario::read(tree, "fuzz", Path::new("/nonexistent"))?;
    let text = scenario.to_toml();
    let again = Scenario::read(Tree::parse("again.toml", &text)?, "fuzz", Path::new("/nonexistent"))
        .unwrap_or_else(|error| panic!("does not read back: {error}\n{text}"));
    assert_eq!(again.hash(), scenario.hash(), "{text}");
    Ok(())
}

fn check(text: &str, changes: &[String]) {
    if let Err(error) = digest(text, changes) {
        let _ = (error.line_column(), error.to_string(), error.remedy());
        let rendered = {
            let mut out = String::new();
            let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
            handler.render_report(&mut out, &error).map(|()| out)
        };
        assert!(rendered.is_ok(), "{error}");
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "topology",
            "kind",
            "\"fat-tree\"",
            "\"leaf-spine\"",
            "radix",
            "tiers",
            "link_rate",
            "[[workload]]",
            "[load_balancer.prime]",
            "\"1.5bdp\"",
            "\"0bdp\"",
            "load",
            "sizes",
            "\"web-search\"",
            "scheme",
            "\"prime\"",
            "=",
            "[",
            "]",
            "{",
            "}",
            "\"",
            "\n",
            ",",
            ".",
            "nan",
            "inf",
            "-0.0",
            "9223372036854775807",
            "1e308",
            "\"18446744073709551615ps\"",
            "\"0B\"",
            "true",
            "classes",
            "class_weights",
            "detect_after",
            "fraction",
        ])
        .prop_map(String::from),
        any::<i64>().prop_map(|i| i.to_string()),
        any::<f64>().prop_map(|x| format!("{x:?}")),
        "\\PC{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn any_text(text in "(?s).{0,200}") {
        check(&text, &[]);
    }

    #[test]
    fn words_in_any_order(words in prop::collection::vec(word(), 0..40)) {
        check(&words.join(" "), &[]);
    }

    #[test]
    fn valid_scenarios_with_a_stretch_replaced(
        seed in prop::sample::select(SEEDS), from in 0.0..1.0f64, length in 0usize..30, words in prop::collection::vec(word(), 0..4)
    ) {
        let mut start = (from * seed.len() as f64) as usize;
        let mut end = (start + length).min(seed.len());
        while !seed.is_char_boundary(start) { start -= 1; }
        while !seed.is_char_boundary(end) { end += 1; }
        check(&format!("{}{}{}", &seed[..start], words.join(" "), &seed[end..]), &[]);
    }

    #[test]
    fn valid_scenarios_with_a_value_replaced(seed in prop::sample::select(SEEDS), line in any::<prop::sample::Index>(), value in word()) {
        let lines: Vec<&str> = seed.lines().collect();
        let chosen = line.index(lines.len());
        let mut changed: Vec<String> = lines.iter().map(|l| (*l).to_string()).collect();
        if let Some((key, _)) = lines[chosen].split_once(" = ") {
            changed[chosen] = format!("{key} = {value}");
        }
        check(&changed.join("\n"), &[]);
    }

    #[test]
    fn any_flag(key in "[a-z_.0-9\\[\\]]{0,24}", value in word(), known in prop::sample::select(vec![
        "topology.radix", "topology.link_rate", "fabric.queue_limit", "fabric.classes", "transport.window",
        "load_balancer.scheme", "workload.0.size", "workload[0].name", "fault.0.count", "run.until", "seed",
    ])) {
        check(SEEDS[0], &[format!("{key}={value}")]);
        check(SEEDS[0], &[format!("{known}={value}"), key]);
    }
}
