//! CO-PRIME, the congestion-oblivious half of PRIME (PRIME §IV and Alg. 2; specification 5.3). Dead paths are excluded.

use super::{
    Slots,
    mp_ev::{Generator, PathEncoding},
};
use crate::{
    Decision, FlowInfo, HostScheme, Outgoing,
    registry::{SchemeCapabilities, TagKind},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "co-prime",
    summary: "PRIME's pseudo-random round robin without its congestion history",
    source: "PRIME §III-D, §IV, Alg. 2",
    description: "Every packet takes the next path of a permutation of all uplinks, tier by tier, that is reshuffled \
        after every pass; congestion signals are ignored. With the same seed a flow sends the same paths as under \
        PRIME until a signal arrives. Needs a switch scheme that reads multi-part entropy values.",
};

state! {}

parameters! {
    pub struct CoPrimeParameters {}
}

impl SchemeCapabilities for CoPrimeParameters {
    fn tags(&self) -> TagKind {
        TagKind::MultiPart
    }
}

#[derive(Debug)]
pub struct CoPrime {
    host_key: u64,
    flows: Slots<Generator>,
}

impl CoPrime {
    pub fn new(_parameters: CoPrimeParameters, seed: u64, host_key: u64) -> Self {
        CoPrime { host_key: key(seed, host_key, "mp-ev"), flows: Slots::new() }
    }
}

fn set_dead(generator: &mut Generator, dead: &[bool]) {
    let is_dead = |path: u32| dead.get(path as usize).copied().unwrap_or(false);
    let paths = generator.encoding().paths();
    let all = (0..paths).all(is_dead);
    for path in 0..paths {
        generator.set(path as u16, all || !is_dead(path));
    }
}

impl HostScheme for CoPrime {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.flows.take(slot);
        let Some(shape) = PathEncoding::new(flow.paths.uplinks) else { return };
        let mut generator = Generator::new(shape, Stream::keyed(self.host_key, flow.key, "mp-ev"));
        if !flow.paths.dead.is_empty() {
            set_dead(&mut generator, flow.paths.dead);
        }
        self.flows.put(slot, generator);
    }

    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }

    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let pick = self.flows.get(slot).and_then(Generator::generate);
        Decision::Send(pick.map_or(0, |pick| pick.tag))
    }

    fn on_paths_changed(&mut self, _now: Time, slot: u32, dead: &[bool]) {
        if let Some(generator) = self.flows.get(slot) {
            set_dead(generator, dead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, mark, send};

    #[test]
    fn a_worked_trace_with_a_dead_uplink() {
        let mut s = CoPrime::new(CoPrimeParameters {}, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[4]));
        let pass = |s: &mut CoPrime, n: usize| {
            let mut tags: Vec<_> = (0..n).map(|_| send(s)).collect();
            tags.sort();
            tags
        };
        assert_eq!(pass(&mut s, 4), [0, 1, 2, 3]);
        mark(&mut s, 2);
        assert_eq!(pass(&mut s, 4), [0, 1, 2, 3]);
        s.on_paths_changed(Time::ZERO, 0, &[false, false, true, false]);
        assert_eq!(pass(&mut s, 3), [0, 1, 3]);
        assert_eq!(pass(&mut s, 3), [0, 1, 3]);
        // The pass without 2 has not been followed by another, so 2 still belongs to it.
        s.on_paths_changed(Time::ZERO, 0, &[]);
        assert_eq!(pass(&mut s, 1), [2]);
        assert_eq!(pass(&mut s, 4), [0, 1, 2, 3]);
        s.on_paths_changed(Time::ZERO, 0, &[true; 4]);
        assert_eq!(pass(&mut s, 4), [0, 1, 2, 3], "all dead: spray over all");
    }

    #[test]
    fn no_choice_sends_tag_0() {
        let mut s = CoPrime::new(CoPrimeParameters {}, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[]));
        assert_eq!([send(&mut s), send(&mut s)], [0, 0]);
    }
}
