//! Columns of worked traces, by arithmetic.

use crate::{
    Decision, Feedback, FlowInfo, HostScheme, PathSpace, Record, State,
    host::testing::{feedback, flow, us},
    registry::{Host, HostParameters},
};
use anabranch_settings::Raw;
use anabranch_units::Time;

struct Opened(HostParameters, Host);

impl Opened {
    /// Opens a flow with a base round trip of 8 us and a BDP of 100 packets.
    fn new(name: &str, keys: &[(&str, Raw)], uplinks: &[u32]) -> Self {
        let mut parameters = HostParameters::named(name).unwrap();
        keys.iter().for_each(|(key, value)| parameters.parameters_mut().set(key, value).unwrap());
        let mut host = Record::default().wrap(parameters.build(1, 2), parameters.name(), 2);
        let base_rtt = Time::from_us(8);
        let paths = PathSpace { uplinks, ..PathSpace::default() };
        host.open(Time::ZERO, 0, &FlowInfo { base_rtt, probe_rtt: base_rtt, paths, ..flow(&[]) });
        Opened(parameters, host)
    }
    fn value(&self, state: State, name: &str) -> Option<f64> {
        state.get(self.0.state().iter().position(|column| column.name == name).unwrap())
    }
    fn at(&self, now: f64, name: &str, tag: Option<u32>) -> Option<f64> {
        self.value(self.1.state(us(now), 0, tag), name)
    }
    fn send(&mut self, now: f64, psn: u64) -> Decision {
        self.1.select(us(now), 0, &crate::host::testing::packet(psn, us(now)))
    }
}

/// Base round trip 8 us: probing above 1.5 x 8 = 12 us, moving above 2.5 x 8 = 20 us. With alpha = 0.25 the average of an
/// epoch that begins with 10 us is 10, then 0.25 x 14 + 0.75 x 10 = 11, then 0.25 x 18 + 0.75 x 11 = 12.75, above 12.
#[test]
fn hoppers_average_by_hand() {
    let mut s = Opened::new("hopper", &[("alpha", Raw::Float(0.25))], &[8]);
    let Decision::Send(tag) = s.send(0.0, 0) else { panic!() };
    assert_eq!((s.at(0.0, "average_ps", None), s.at(0.0, "open_probes", None)), (None, Some(0.0)));
    assert_eq!((s.at(0.0, "probe_above_ps", None), s.at(0.0, "move_above_ps", None)), (Some(12e6), Some(20e6)));
    for (now, rtt, average, may_probe, open) in
        [(10.0, 10.0, 10.0, 1.0, 0.0), (11.0, 14.0, 11.0, 1.0, 0.0), (12.0, 18.0, 12.75, 0.0, 2.0)]
    {
        s.1.on_ack(us(now), 0, &Feedback { rtt: Some(us(rtt)), ..feedback(tag, false) });
        assert_eq!(s.at(now, "average_ps", None), Some(average * 1e6));
        assert_eq!((s.at(now, "may_probe", None), s.at(now, "open_probes", None)), (Some(may_probe), Some(open)));
    }
    assert_eq!(s.at(12.0, "epoch_ps", None), Some(10e6));
    // A reply after 9 us is the best; it expires 4 x 8 us after its arrival at 21 us.
    let probed = s.1.poll_probe(us(12.0), 0).unwrap().tag;
    s.1.on_probe_reply(us(21.0), 0, probed, us(9.0), false);
    assert_eq!((s.at(21.0, "best_ps", None), s.at(21.0, "best_tag", None)), (Some(9e6), Some(f64::from(probed))));
    assert_eq!((s.at(21.0, "open_probes", None), s.at(53.0, "best_ps", None)), (Some(1.0), None));
    // 0.25 x 60 + 0.75 x 12.75 = 24.5625 us, above 20; 9 us are below 80 % of it. The line through (0, 10), (1, 14), (2, 18),
    // (3, 60) rises by (4 x (14 + 36 + 180) - 6 x 102) / (4 x 14 - 36) = 15.4 us a packet and is at 25.5 + 1.5 x 15.4 = 48.6 us
    // at the last, below that sample itself, which is taken. Held until 22 + 60 - 9 = 73 us.
    s.1.on_ack(us(22.0), 0, &Feedback { rtt: Some(us(60.0)), ..feedback(tag, false) });
    assert_eq!((s.at(22.0, "average_ps", None), s.at(22.0, "may_move", None)), (Some(24.5625e6), Some(0.0)));
    assert_eq!(s.send(22.0, 1), Decision::Hold(us(73.0)));
    assert_eq!((s.at(22.0, "held_until_ps", None), s.at(73.0, "held_until_ps", None)), (Some(73e6), None));
    assert_eq!(s.send(73.0, 1), Decision::Send(probed));
}

/// Four paths, penalties of 6 (mark) and 10 packets (NACK) that fall by one a packet, heeded from the first packet on.
#[test]
fn primes_penalties_by_hand() {
    let keys = [("p_ecn", Raw::Int(6)), ("p_nack", Raw::Int(10)), ("history_after", Raw::Int(0))];
    let mut s = Opened::new("prime", &keys, &[4]);
    let state = |s: &Opened, tag| (s.at(0.0, "penalty_packets", Some(tag)), s.at(0.0, "skipped_paths", Some(tag)));
    s.1.on_ack(Time::ZERO, 0, &feedback(1, true));
    assert_eq!(state(&s, 1), (Some(6.0), Some(1.0)));
    // A mark does not prolong a penalty; a NACK replaces it by the larger one.
    s.1.on_ack(Time::ZERO, 0, &feedback(1, true));
    assert_eq!(state(&s, 1), (Some(6.0), Some(1.0)));
    s.1.on_loss(Time::ZERO, 0, 2, crate::Loss::Trimmed);
    assert_eq!((state(&s, 2), state(&s, 0)), ((Some(10.0), Some(2.0)), (Some(0.0), Some(2.0))));
    // Of four paths two are left for six packets, then three for four more, then all.
    for sent in 1..=12u64 {
        let Decision::Send(tag) = s.send(0.0, sent) else { panic!() };
        let left = |penalty: u64| penalty.saturating_sub(sent) as f64;
        assert_eq!((state(&s, 1).0, state(&s, 2).0), (Some(left(6)), Some(left(10))), "after {sent} packets");
        assert_eq!(state(&s, 0).1, Some(f64::from(u8::from(sent < 6) + u8::from(sent < 10))));
        assert!(!(sent <= 6 && tag == 1 || sent <= 10 && tag == 2), "packet {sent} over path {tag}");
    }
}
