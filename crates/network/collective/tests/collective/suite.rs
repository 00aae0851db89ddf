//! The contract of `ncclNet` against our plugin, a plugin over TCP, and variants of it with a bug.

use crate::common::{NEVER, Test, own_name, plugin};
use anabranch_collective::suite::{self, CaseResult, Settings, Verdict};
use std::{path::PathBuf, time::Duration};

fn settings(plugin: PathBuf, only: &[&str], limit: u64) -> Settings {
    Settings {
        command: vec![own_name(), "case".into()],
        plugin,
        abi: None,
        only: only.iter().map(|name| (*name).into()).collect(),
        largest: 64 << 20,
        limit: Duration::from_secs(limit),
    }
}

fn socket_net() -> PathBuf {
    let path = plugin().with_file_name("../examples/libsocket_net.so");
    assert!(path.exists(), "{}: build it with `cargo build --examples -p anabranch-collective`", path.display());
    path
}

/// Runs cases with variables, which only this process and its children have.
fn results(settings: &Settings, variables: &[(&str, &str)]) -> Vec<CaseResult> {
    let words = variables.iter().map(|(name, value)| format!("{name}={value}"));
    let command = std::iter::once("env".into()).chain(words).chain(settings.command.clone()).collect();
    let settings = Settings { command, ..settings.clone() };
    let (_, results) = suite::run(&settings, &NEVER, |_| ()).expect("a plugin").expect("not stopped");
    results
}

const OURS: [(&str, &str); 4] =
    [("ANABRANCH_IFNAME", "=lo"), ("ANABRANCH_PATHS", "4"), ("ANABRANCH_RATE", "20Gbps"), ("ANABRANCH_STATS", "off")];

/// Every case passes, but for a message to a closed peer and one of a later tag, which wait or are an error by the contract,
/// and messages larger than this test allows.
fn our_plugin_fulfils_the_contract() {
    let results = results(&settings(plugin(), &[], 20), &OURS);
    let of = |verdict| results.iter().filter(move |of| of.verdict == verdict).map(|of| of.case.as_str());
    let failed: Vec<&CaseResult> = results.iter().filter(|of| of.verdict == Verdict::Fail).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(of(Verdict::Refused).collect::<Vec<_>>(), ["later-tag", "send-after-close"]);
    assert_eq!(of(Verdict::Skipped).collect::<Vec<_>>(), ["fused", "1GiB", "2GiB-1", "4GiB"]);
    for result in results.iter().filter(|of| of.verdict != Verdict::Pass) {
        assert!(
            !result.why.is_empty() && (result.verdict == Verdict::Skipped || !result.call.is_empty()),
            "{result:?}"
        );
    }
    assert_eq!(results.len(), suite::cases().count());
}

/// Two interfaces in a namespace, which no other process has.
fn two_interfaces_fuse() {
    let script = "ip link set lo up && ip link add rail0 type veth peer name rail1 && ip link set rail0 up && \
        ip link set rail1 up && ip address add 10.77.0.1/24 dev rail0 && ip address add 10.78.0.1/24 dev rail1 || exit 77; \
        exec \"$0\" \"$@\"";
    let run = |script: &str, words: &[&str]| {
        let words = ["unshare", "-Urn", "sh", "-c", script].into_iter().chain(words.iter().copied());
        words.map(str::to_string).collect::<Vec<String>>()
    };
    let trial = run(script, &["true"]);
    if !std::process::Command::new(&trial[0]).args(&trial[1..]).status().is_ok_and(|status| status.success()) {
        return anabranch_testkit::skip(
            "two interfaces need a network namespace",
            "allow user namespaces, install iproute2",
        );
    }
    let own = own_name();
    for (abi, variables, verdict, word) in [
        (12, &[][..], Verdict::Pass, ""),
        (9, &[], Verdict::Pass, ""),
        (8, &[], Verdict::Skipped, "no makeVDevice"),
        (12, &[("ANABRANCH_PATHS", "3")], Verdict::Refused, "ANABRANCH_PATHS=3, expected a multiple of 2"),
    ] {
        let of = settings(plugin(), &["fused"], 20);
        let of = Settings { command: run(script, &[&own, "case"]), abi: Some(abi), ..of };
        let fixed = [("ANABRANCH_IFNAME", "=rail0,rail1"), ("ANABRANCH_STATS", "off"), ("NCCL_DEBUG", "INFO")];
        let results = results(&of, &[&fixed, variables].concat());
        assert_eq!(results[0].verdict, verdict, "version {abi}: {results:?}");
        assert!(results[0].why.contains(word), "{results:?}");
    }
}

fn sockets_fulfil_the_contract() {
    let results = results(&settings(socket_net(), &[], 20), &[]);
    let failed: Vec<&CaseResult> = results.iter().filter(|of| of.verdict == Verdict::Fail).collect();
    assert!(failed.is_empty(), "{failed:?}");
    // Its table has no contexts, and its receivers take messages of the oldest receive alone.
    let contexts = results.iter().find(|of| of.case == "contexts").expect("the case");
    assert_eq!(contexts.verdict, Verdict::Skipped);
}

/// Each bug is found by the case that is about it, and cases that it does not concern pass.
fn bugs_are_found() {
    for (bug, finds, word, passes) in [
        ("last-byte", "sizes", "byte 0 is wrong", "properties"),
        ("early", "sizes", "is wrong", "reconnect"),
        ("tags", "grouped", "", "sizes"),
        ("tags", "later-tag", "tags are not heeded", "depth"),
        ("close", "close-order", "hung", "properties"),
    ] {
        let results = results(&settings(socket_net(), &[finds, passes], 3), &[("SOCKET_NET_BREAK", bug)]);
        let of = |name: &str| results.iter().find(|of| of.case == name).expect("a result");
        assert_eq!(of(finds).verdict, Verdict::Fail, "{bug}: {:?}", of(finds));
        assert!(of(finds).why.contains(word), "{bug}: {:?}", of(finds));
        assert!(!of(finds).call.is_empty());
        assert_eq!(of(passes).verdict, Verdict::Pass, "{bug}: {:?}", of(passes));
    }
}

fn crashes_and_missing_plugins_are_verdicts() {
    let crashed = results(&settings(socket_net(), &["depth"], 10), &[("SOCKET_NET_BREAK", "crash")]);
    assert_eq!((crashed[0].verdict, crashed[0].call.as_str()), (Verdict::Fail, "irecv"), "{crashed:?}");
    assert!(crashed[0].why.starts_with("crashed (SIG"), "{crashed:?}");
    let error = suite::run(&settings("/no/such.so".into(), &[], 5), &NEVER, |_| ()).expect_err("no plugin");
    assert!(error.contains("no/such.so"), "{error}");
}

pub(crate) const TESTS: &[Test] = &[
    ("suite::our_plugin_fulfils_the_contract", false, our_plugin_fulfils_the_contract),
    ("suite::two_interfaces_fuse", false, two_interfaces_fuse),
    ("suite::sockets_fulfil_the_contract", false, sockets_fulfil_the_contract),
    ("suite::bugs_are_found", false, bugs_are_found),
    ("suite::crashes_and_missing_plugins_are_verdicts", false, crashes_and_missing_plugins_are_verdicts),
];
