//! `scheme_NAME.csv` suffices to repeat the choices of a scheme.

use anabranch_lb::{
    CallEvent, Decision,
    registry::{HostParameters, TagKind},
    replay,
};
use anabranch_results::{csv_tables, read_calls};
use anabranch_scenario::{SIMULATOR, load};
use anabranch_study::results::run;
use anabranch_testkit::folder;

#[test]
fn a_file_repeats_its_choices() {
    for scheme in HostParameters::ALL.iter().map(|about| about.name).filter(|name| *name != "ecmp") {
        let parameters = HostParameters::named(scheme).unwrap();
        let guided = ["flicr", "spritz-scout", "spritz-spray", "spritz-coarse"].contains(&scheme);
        let mut changes = vec![format!("load_balancer.host={scheme}"), "workload.0.size=300kB".into()];
        changes.extend(["measure.trace_flows=[\"*\"]", "measure.trace_scheme=true"].map(String::from));
        changes.push(match parameters.capabilities().tags() {
            TagKind::Entropy if scheme == "hf2t" => "load_balancer.switch=letflow".into(),
            TagKind::Entropy => "load_balancer.switch=ecmp".into(),
            TagKind::MultiPart => "load_balancer.switch=ev-index".into(),
            TagKind::Guided => "load_balancer.switch=source-guided".into(),
            TagKind::Category => "load_balancer.switch=coarse-guided".into(),
        });
        if guided {
            let dragonfly = "topology={ kind = \"dragonfly\", p = 2, a = 4, h = 2 }";
            changes.extend([dragonfly.to_string(), "transport.congestion_control=smartt".into()]);
        }
        let scenario = load("tiny", &changes, Some(3)).unwrap_or_else(|error| panic!("{scheme}: {error}"));
        let setup = scenario.setup(3).unwrap();
        let ran = run(&scenario, &SIMULATOR, 1, &|_| Ok(()), &mut |_| true).unwrap();
        let name = format!("scheme_{}", scheme.replace('-', "_"));
        let (_, text) = csv_tables(&ran.result, &ran.meta).into_iter().find(|(table, _)| *table == name).unwrap();
        let dir = folder();
        std::fs::write(dir.join(format!("{name}.csv")), &text).unwrap();
        let calls = read_calls(&dir, &parameters).unwrap().unwrap();
        // Calls that the file has, with their flows and hosts.
        let all = &ran.result.watched.schemes;
        let is_own = |at: &usize| {
            let is_written = all[*at].is_written(at.checked_sub(1).map(|before| &all[before]));
            all[*at].call.scheme == scheme && is_written
        };
        let written: Vec<_> = (0..all.len()).filter(is_own).map(|at| all[at].call.clone()).collect();
        let mut expected = written.clone();
        for call in &mut expected {
            // Of no bits the file has no position.
            if let CallEvent::Ack(feedback) = &mut call.event
                && feedback.selective == 0
            {
                feedback.selective_from = 0;
            }
        }
        assert_eq!(calls, expected, "{scheme}");
        for (read, call) in calls.iter().zip(&written) {
            assert_eq!(read.passed(), call.passed(), "{scheme}: every property of a flow");
        }
        let build = |_, host| setup.load_balancers[0].host.build(setup.seed, host);
        assert_eq!(replay(&calls, build), Ok(()), "{scheme}");
        // The file is heeded: with another tag in it the replay differs.
        let mut other = calls;
        let sent = other.iter_mut().rev().find_map(|call| match &mut call.event {
            CallEvent::Select(_, Decision::Send(tag) | Decision::SendWithAckRequest(tag)) => Some(tag),
            _ => None,
        });
        *sent.unwrap() ^= 1;
        assert!(replay(&other, build).is_err(), "{scheme}");
    }
}
