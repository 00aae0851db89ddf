//! `scheme_NAME.csv` suffices to repeat the choices of a scheme, with the flows, which the scenario gives.

use anabranch_lb::{
    Call, CallEvent, Decision, Feedback, LinkSignal, Loss, Outgoing, Probe,
    registry::{HostParameters, TagKind},
    replay,
};
use anabranch_results::csv_tables;
use anabranch_scenario::{SIMULATOR, load};
use anabranch_study::results::run;
use anabranch_units::Time;
use std::collections::HashMap;

type Row = HashMap<String, String>;

/// Returns the call of a row of the file; `None`: the scenario has what it passes, or switches.
fn event(row: &Row) -> Option<CallEvent> {
    let number = |name: &str| row[name].parse::<u64>().ok();
    let time = |name: &str| number(name).map(Time::from_ps);
    let tag = number("tag").map(|tag| tag as u32);
    let packet = || Outgoing {
        psn: number("psn").unwrap(),
        bytes: number("bytes").unwrap() as u32,
        retransmission: row["retransmission"] == "true",
        eligible_at: time("eligible_ps").unwrap(),
        free_ports: number("free_ports").map_or(u32::MAX, |ports| ports as u32),
        port_free_at: time("port_free_ps").unwrap_or(Time::ZERO),
    };
    let marked = row["marked"] == "true";
    let event = row["event"].as_str();
    Some(match event {
        "send" => CallEvent::Select(packet(), Decision::Send(tag?)),
        "send-ack-request" => CallEvent::Select(packet(), Decision::SendWithAckRequest(tag?)),
        "hold" => CallEvent::Select(packet(), Decision::Hold(time("until_ps")?)),
        "wait" => CallEvent::Select(packet(), Decision::Wait),
        "ack" => CallEvent::Ack(Feedback {
            tag: tag?,
            ecn: marked,
            rtt: time("rtt_ps"),
            psn: number("psn")?,
            packets: number("packets")? as u32,
            bytes: number("bytes")?,
            cumulative: number("acked_below")?,
            next_psn: number("next_psn")?,
            selective: number("selective").unwrap_or(0),
            selective_from: number("selective_from").unwrap_or(0),
        }),
        "trimmed" => CallEvent::Loss(tag?, Loss::Trimmed),
        "trimmed-last-hop" => CallEvent::Loss(tag?, Loss::TrimmedAtLastHop),
        "gap" => CallEvent::Loss(tag?, Loss::Gap),
        "refused" => CallEvent::Loss(tag?, Loss::Refused),
        "signal" => CallEvent::Signal(tag?, LinkSignal(number("signal")? as u16)),
        "timeout" => CallEvent::Timeout(tag?),
        "probe" => CallEvent::PollProbe(Some(Probe { tag: tag?, bytes: number("bytes")? as u32 })),
        "no-probe" => CallEvent::PollProbe(None),
        "reply" | "reply-resume" => CallEvent::ProbeReply(tag?, time("rtt_ps")?, marked, event == "reply-resume"),
        "probe-lost" | "probe-lost-resume" => CallEvent::ProbeReply(tag?, Time::MAX, marked, event != "probe-lost"),
        "close" => CallEvent::Close,
        _ => return None,
    })
}

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
        let rows: Vec<Row> = csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect();
        // Rows that the file has, with their flows and hosts.
        let all = &ran.result.watched.schemes;
        let is_own = |at: &usize| {
            let is_written = all[*at].is_written(at.checked_sub(1).map(|before| &all[before]));
            all[*at].call.scheme == scheme && is_written
        };
        let written = (0..all.len()).filter(is_own);
        let calls: Vec<Call> = written
            .zip(&rows)
            .map(|(at, row)| {
                let known = &all[at].call;
                let event = event(row).unwrap_or_else(|| known.event.clone());
                Call { time: Time::from_ps(row["time_ps"].parse().unwrap()), event, ..known.clone() }
            })
            .collect();
        assert_eq!(calls.len(), rows.len(), "{scheme}");
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
