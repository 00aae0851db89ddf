//! `scheme_NAME.csv` suffices to repeat the choices of a scheme.

#[path = "../../../../network/wire/tests/wire/common/mod.rs"]
mod wire;

use anabranch_endpoint::{Settings, header};
use anabranch_lb::{
    Call, CallEvent, Decision, Record,
    registry::{Host, HostParameters, TagKind},
    replay,
};
use anabranch_outcome::{Measures, RunResult, RunRows, SchemeRow, Watched};
use anabranch_random::Stream;
use anabranch_results::{RunMeta, csv_tables, read_calls};
use anabranch_scenario::{SIMULATOR, load};
use anabranch_study::results::{Ran, run};
use anabranch_testkit::folder;
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;

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
        repeats(&ran.result, &ran.meta, &parameters, &|host| setup.load_balancers[0].host.build(setup.seed, host));
    }
}

/// The file of a scheme has its calls, and a scheme that `build` creates repeats them.
fn repeats(result: &RunResult, meta: &RunMeta, parameters: &HostParameters, build: &dyn Fn(u64) -> Host) {
    let scheme = parameters.name();
    let name = format!("scheme_{}", scheme.replace('-', "_"));
    let (_, text) = csv_tables(result, meta).into_iter().find(|(table, _)| *table == name).unwrap();
    let dir = folder();
    std::fs::write(dir.join(format!("{name}.csv")), &text).unwrap();
    let calls = read_calls(&dir, parameters).unwrap().unwrap();
    // Calls that the file has, with their flows and hosts.
    let all = &result.watched.schemes;
    let is_own = |at: &usize| {
        let is_written = all[*at].is_written(at.checked_sub(1).map(|before| &all[before]));
        all[*at].call.scheme == scheme && is_written
    };
    let written: Vec<Call> = (0..all.len()).filter(is_own).map(|at| all[at].call.clone()).collect();
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
    let build = |_, host| build(host);
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

/// Two streams over a network in memory, whose links delay, mark and lose as drawn, and of which one is cut for a while. The run
/// starts when the clock of the endpoint shows more than 0, and flows have numbers of their own.
#[test]
fn a_file_of_endpoints_repeats_its_choices() {
    let scenario = load("tiny", &["load_balancer.scheme=ops".into()], Some(3)).unwrap();
    let Ran { result, meta, .. } = run(&scenario, &SIMULATOR, 1, &|_| Ok(()), &mut |_| true).unwrap();
    let header = header::DATA_HEADER + 42;
    let keys = format!("mtu=1000B rto_rule=measured early_loss=50us header={header}B congestion_control=dctcp");
    let schemes = HostParameters::each().into_iter().filter(|host| !host.capabilities().leaves_choice_to_switches());
    for (case, scheme) in schemes.enumerate() {
        for draw in 0..3 {
            let mut draws = Stream::keyed(draw, case as u64, "network in memory");
            let mut link = Link::new(Rate::gbps(1 + draws.below(8)), Time::from_us(1 + draws.below(80)));
            (link.queue, link.mark_above, link.loss) =
                (20_000 + draws.below(40_000), 10_000, draws.below(20_000) as u32);
            let settings = Settings {
                transport: wire::uet(&keys),
                scheme: scheme.clone(),
                seed: draws.bits(),
                host_key: draws.bits(),
                rate: Rate::gbps(10),
                ..Settings::default()
            };
            let mut pair = wire::Pair::new(draws.bits(), &link, [settings.clone(), settings.clone()]);
            let cut = Time::from_us(200 + draws.below(2_000));
            let cuts = vec![(cut, cut + Time::from_us(draws.below(3_000)))];
            pair.network.set(0, 1, 3, Link { cuts, ..link });
            let record = Record::of([]);
            pair.hosts[0].endpoint().0.record(&record);
            pair.open();
            let zero = pair.network.now();
            for (stream, flow) in [(0, 7), (1, 2)] {
                record.follow(pair.hosts[0].endpoint().0.stream_key(0, stream), flow);
                pair.send(0, stream, vec![3u8; 100_000 + draws.below(200_000) as usize]);
            }
            let name = scheme.name();
            assert!(pair.run(Time::from_us(20_000_000), &mut |pair| pair.sent[0].len() == 2), "{name} {draw}");
            let row = |call: Call| SchemeRow { link: 0, call: Call { zero, ..call } };
            let schemes: Vec<SchemeRow> = record.take().into_iter().map(row).collect();
            let choices =
                |flow: u32| schemes.iter().filter(|row| row.call.flow == flow && row.call.is_choice()).count();
            assert!(choices(7) >= 100 && choices(2) >= 100, "{name} {draw}: at least 100 packets each");
            assert!(schemes.iter().all(|row| row.call.time >= zero), "{name} {draw}");
            let watched = Watched { schemes, ..Watched::default() };
            let rows = RunRows { links: result.links.clone(), watched, ..RunRows::default() };
            let of_endpoints =
                RunResult::new(rows, &Measures { links: Measures::ALL.links, schemes: true, ..Measures::TIMES });
            repeats(&of_endpoints, &meta, &scheme, &|host| settings.scheme.build(settings.seed, host));
        }
    }
}
