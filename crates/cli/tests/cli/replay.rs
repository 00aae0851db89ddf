//! `replay`: the recorded scheme repeats itself, others differ where they must, and what cannot be replayed is refused.

use crate::common::{Folder, assert_contains, code, json, stderr, stdout};
use serde_json::Value;

const TRACED: &str = "--set measure.trace_flows=[0,1] --set measure.trace_scheme=true --seed 3";

fn run(folder: &Folder, scheme: &str, more: &str) {
    folder.ok(format!("run tiny --set load_balancer.scheme={scheme} {TRACED} {more} --out {scheme}").as_str());
}

/// Recorded and replayed tag of every choice.
fn tags(replayed: &Value) -> Vec<(u64, u64)> {
    let calls = replayed["calls"].as_array().unwrap();
    let choices = calls.iter().filter(|call| call["recorded"]["event"] == "send");
    choices.map(|call| (call["recorded"]["tag"].as_u64().unwrap(), call["replayed"]["tag"].as_u64().unwrap())).collect()
}

/// A flow of 100 packets, one of them sent twice at most: round robin over 65,536 values becomes one over 2, whose tags are the last
/// bits of a counter.
#[test]
fn a_scheme_repeats_itself_and_others_differ() {
    let folder = Folder::new("replay");
    run(&folder, "rr-host", "--set workload.0.size=409600B");
    let same = folder.line("replay rr-host --flow 0 --format json");
    assert_eq!(code(&same), 0, "{}", stderr(&same));
    let same = json(&same);
    assert_eq!((same["recorded"].as_str(), same["differing"].as_u64()), (Some("rr"), Some(0)));
    let pairs = tags(&same);
    assert_eq!(pairs.len() as u64, same["choices"].as_u64().unwrap());
    assert!(pairs.len() >= 100 && pairs.iter().all(|(recorded, again)| recorded == again));
    assert!(pairs.windows(2).all(|two| two[1].0 == (two[0].0 + 1) % 65536), "in turn");
    let few = folder.line("replay rr-host --flow 0 --set rr.entropy_values=2 --format json");
    assert_eq!(code(&few), 1);
    let few: Value = serde_json::from_str(&stdout(&few)).unwrap();
    let again = tags(&few);
    assert!(again.windows(2).all(|two| two[0].1 + two[1].1 == 1), "0 and 1 in turn");
    let differing = again.iter().filter(|(recorded, again)| recorded != again).count() as u64;
    assert_eq!(few["differing"].as_u64(), Some(differing));
    let other = folder.line("replay rr-host --flow 1 --scheme ecmp");
    assert_eq!(code(&other), 1);
    let text = stdout(&other);
    assert!(text.contains("recorded") && text.contains("more; --format json has every call"), "{text}");
    assert!(stderr(&other).contains("choices differ from those of `rr`"), "{}", stderr(&other));
}

/// What led to a choice is shown with the state: the first unmarked acknowledgement puts one value into the empty buffer of REPS.
#[test]
fn choices_have_their_reason_and_state() {
    let folder = Folder::new("replay-state");
    run(&folder, "reps", "--set workload.0.size=409600B");
    let shown = stdout(&folder.ok("replay reps --flow 0"));
    assert_contains(&shown, &["after", "open", "fresh_values", "explore_packets"]);
    let replayed = json(&folder.line("replay reps --flow 0 --format json"));
    let calls = replayed["calls"].as_array().unwrap();
    let ack = calls.iter().find(|call| call["recorded"]["event"] == "ack" && call["marked"] == false).unwrap();
    assert_eq!(ack["state"]["fresh_values"].as_f64(), Some(1.0));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let folder = Folder::new("replay-refused");
    run(&folder, "reps", "");
    folder.ok("run tiny --out bare");
    for (words, message) in [
        ("replay bare --flow 0", "measure.trace_scheme=true"),
        ("replay reps --flow 800", "the run has flows 0 to 7"),
        ("replay reps --flow 5", "flow 5 was not traced; those traced are 0, 1"),
        ("replay reps --flow 0 --scheme prime", "writes multi-part entropy values"),
        ("replay reps --flow 0 --scheme hf2t", "holds packets for flowlets"),
        ("replay reps --flow 0 --scheme resp", "did you mean `reps`?"),
        ("replay reps --flow 0 --set reps.bufer=4", "did you mean `buffer`?"),
        ("replay . --flow 0", "is not the directory of a run"),
    ] {
        let output = folder.line(words);
        assert_eq!(code(&output), 2, "{words}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{words}: {}", stderr(&output));
    }
}
