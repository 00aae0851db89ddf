//! `check` names the flows that can never finish, before a run.

use anabranch_backend::RunOptions;
use anabranch_scenario::{SIMULATOR, Scenario, Tree};

fn warnings(text: &str) -> (Vec<String>, usize) {
    let tree = Tree::parse("dead.toml", text).expect("TOML");
    let scenario = Scenario::read(tree, "dead", ".".as_ref()).expect("a scenario");
    let setup = scenario.setup(scenario.seed).expect("a setup");
    let warnings = scenario.foresight(&setup, &SIMULATOR);
    let backend = (SIMULATOR.make)(&scenario);
    let result =
        anabranch_backend::run(backend.as_ref(), &setup, RunOptions { threads: 1 }, &mut |_| true).expect("a run");
    (warnings, result.flows.iter().filter(|flow| flow.fct_rx.is_none()).count())
}

/// 16 hosts, 4 cores; `fault` is about core0.
fn scenario(scheme: &str, fault: &str) -> String {
    format!(
        "[topology]\nkind = \"fat-tree\"\ntiers = 3\nradix = 4\n[load_balancer]\nscheme = \"{scheme}\"\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"64KiB\"\n\
         [[fault]]\nkind = \"switch-down\"\nswitches = [\"core0\"]\n{fault}\n[run]\ntime_limit = \"100ms\"\n"
    )
}

#[test]
fn flows_over_a_dead_core_are_named() {
    let (warnings, unfinished) = warnings(&scenario("ecmp", ""));
    let dead: Vec<&String> = warnings.iter().filter(|warning| warning.contains("never finish")).collect();
    assert!(unfinished > 0 && dead.len() == 1, "{warnings:?}");
    // As many as do not finish in the run itself, which is stalled.
    assert!(
        dead[0].starts_with(&format!("{unfinished} of 16 flows never finish: ECMP hashes them over core0")),
        "{dead:?}"
    );
    assert!(dead[0].contains("`fault[0].detect_after`"), "{dead:?}");
}

#[test]
fn no_warning_where_every_flow_can_finish() {
    for (scheme, fault) in [("ecmp", "detect_after = \"1ms\""), ("reps", "")] {
        let (warnings, unfinished) = warnings(&scenario(scheme, fault));
        assert_eq!(
            (unfinished, warnings.iter().filter(|w| w.contains("never finish")).count()),
            (0, 0),
            "{warnings:?}"
        );
    }
    let repaired = "[[fault]]\nkind = \"link-up\"\nat = \"1ms\"\nlinks = [\"agg0-core0\", \"agg2-core0\", \"agg4-core0\", \"agg6-core0\"]\n";
    let (warnings, unfinished) = warnings(&scenario("ecmp", repaired));
    assert_eq!((unfinished, warnings.len()), (0, 0), "{warnings:?}");
}

#[test]
fn later_faults_and_flows_that_wait_are_mentioned() {
    let rounds = scenario("ecmp", "").replace("size = ", "rounds = 4\nsize = ");
    for (text, words) in [
        (rounds, "and flows that wait for them never start"),
        (scenario("ecmp", "at = \"50us\""), "never finish unless they finish before 50us"),
    ] {
        let (warnings, _) = warnings(&text);
        assert!(warnings.iter().any(|warning| warning.contains(words)), "{warnings:?}");
    }
}
