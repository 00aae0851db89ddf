//! UGAL, universal globally-adaptive load balancing (Spritz §II-A and V-A, specification 8.6).
//!
//! In its inequality q is the bytes queued and h the switch hops of the minimal path and of a random Valiant path.

use super::valiant::{FirstHop, draw, ev, onward};
use crate::{
    GuidedSwitch, GuidedTopology, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    registry::{PacketScope, SchemeCapabilities},
    state::state,
    switch::course::Course,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "ugal",
    summary: "the minimal path, or a random Valiant path with a shorter queue",
    source: "Spritz §II-A, §V-A; specification 8.6",
    description: "q_min * h_min <= q_val * h_val takes the minimal path, else the Valiant path that was drawn. The aliases \
        are ugal-l (queues of the switch's own ports) and ugal-g (queues along both paths, from snapshots: an oracle).",
};

state! {}

choices! {
    /// Queues that the switch can read.
    pub enum Knowledge {
        /// Its own: UGAL-L.
        Local = "local",
        /// All, as of the last snapshot: UGAL-G.
        Global = "global",
    }
}

choices! {
    /// Switches that may divert a packet.
    pub enum Decide {
        /// The first switch, once.
        Source = "source",
        /// Every switch where it may still be diverted.
        EverySwitch = "every-switch",
    }
}

parameters! {
    pub struct UgalParameters {
        /// Queues that the switch can read.
        knowledge: Knowledge = Knowledge::Local, source "Spritz §V-A: UGAL-L", Expert;
        /// Switches that may divert a packet.
        decide: Decide = Decide::Source, source "ours; every-switch is the artifact's", Reading;
        /// Draw of the first switch of a Dragonfly for the Valiant path.
        first_hop: FirstHop = FirstHop::Port, source "as valiant", Reading;
        /// Time between two snapshots of all queues for `global`; a snapshot takes effect one interval later. auto: the
        /// longest delay between two switches, latency included, which is also its lower bound.
        snapshot_interval: Auto<Time> = Auto::Auto, source "ours: one link delay", Expert;
    }
}

impl SchemeCapabilities for UgalParameters {
    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }

    fn snapshots(&self) -> Option<Auto<Time>> {
        (self.knowledge == Knowledge::Global).then_some(self.snapshot_interval)
    }
}

#[derive(Debug)]
pub struct Ugal {
    parameters: UgalParameters,
    stream: Stream,
}

/// A path that a packet may take: the port here, hops, and the bytes queued along its visible part.
struct Offer {
    port: u32,
    hops: u64,
    queued: u64,
}

impl Ugal {
    pub fn new(parameters: UgalParameters, seed: u64, switch: &SwitchInfo) -> Self {
        Ugal { parameters, stream: Stream::keyed(key(seed, switch.key, "ugal"), 0, "ugal") }
    }

    fn offer<G: GuidedSwitch>(&self, at: &mut G, ports: &[u32]) -> Offer {
        let (mut here, to) = (at.here(), at.destination());
        let global = self.parameters.knowledge == Knowledge::Global;
        let (mut hops, mut queued, mut chosen) = (0, 0, ports.iter().copied());
        while here != to {
            let port = chosen.next().unwrap_or_else(|| at.minimal(here));
            if hops == 0 && !global {
                queued = at.queue(port);
            } else if global {
                queued += at.snapshot(here, port);
            }
            hops += 1;
            here = at.peer(here, port);
        }
        Offer { port: ports.first().copied().unwrap_or_else(|| at.minimal(at.here())), hops, queued }
    }

    fn may_divert<G: GuidedSwitch>(&self, course: Course, at: &G) -> bool {
        match (self.parameters.decide, at.topology()) {
            (_, _) if course.hop() == 0 => true,
            (Decide::Source, _) => false,
            (Decide::EverySwitch, GuidedTopology::SlimFly) => course.hop() < 2,
            (Decide::EverySwitch, GuidedTopology::Dragonfly) => {
                course.hop() == 1 && course.over_local() && at.group(at.here()) != at.group(at.destination())
            }
        }
    }
}

impl SwitchScheme for Ugal {
    fn guide<G: GuidedSwitch>(&mut self, _: Time, _: &PacketView, header: &mut SwitchHeader, at: &mut G) -> u32 {
        let mut course = Course::of(header);
        if self.may_divert(course, at) {
            let again = course.hop() > 0;
            let (first, second) = match again {
                true => (onward(&mut self.stream, at), None),
                false => draw(self.parameters.first_hop, &mut self.stream, at),
            };
            let valiant = match second {
                Some(second) => self.offer(at, &[first, second]),
                None => self.offer(at, &[first]),
            };
            let minimal = self.offer(at, &[]);
            let keeps = minimal.queued * minimal.hops <= valiant.queued * valiant.hops;
            if again {
                // The first part has been used; the second is this switch's port.
                course.clear_ev();
                let port = if keeps { minimal.port } else { valiant.port };
                return course.leave(at, port, header);
            }
            if keeps { course.clear_ev() } else { course.set_ev(ev((first, second))) }
        }
        let port = course.port(at);
        course.leave(at, port, header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, Little, data};

    #[test]
    fn the_inequality_of_the_paper() {
        // Dragonfly (1, 2, 1), switch 0 to the group behind its own global link: one hop to the switch there. The only
        // Valiant path with another first port is local, global, ...
        let mut at = Little::dragonfly(0, 0);
        let across = at.peer(0, 1);
        at.to = across;
        let mut s = Ugal::new(UgalParameters::default(), 1, &LEAF);
        let taken = |s: &mut Ugal, at: &mut Little| {
            (0..200).map(|_| s.guide(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), at)).collect::<Vec<_>>()
        };
        // Empty queues: 0 <= 0 is minimal.
        assert!(taken(&mut s, &mut at).iter().all(|&port| port == 1));
        // 1000 B at the minimal port (1 hop), 100 B at the local one, whose path has three hops (local, global, local)
        // or more: 1000 > 300, so half of the draws, those of the local port, divert.
        at.queues = vec![100, 1000];
        let local = taken(&mut s, &mut at).iter().filter(|&&port| port == 0).count();
        assert!((60..140).contains(&local), "{local}");
        // 290 B against 100 B times at least 3 hops: minimal again.
        at.queues = vec![100, 290];
        assert!(taken(&mut s, &mut at).iter().all(|&port| port == 1));
    }

    #[test]
    fn the_oracle_sees_the_whole_path() {
        let mut at = Little::dragonfly(0, 0);
        at.to = at.peer(0, 1);
        let parameters = UgalParameters { knowledge: Knowledge::Global, ..Default::default() };
        let mut s = Ugal::new(parameters, 1, &LEAF);
        at.queues = vec![0, 1 << 20];
        // The current local queues are not in the snapshot.
        assert_eq!(s.guide(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), &mut at), 1);
        at.snapshots = vec![0, 1 << 20, 0, 0, 0, 0];
        let diverted =
            (0..100).filter(|_| s.guide(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), &mut at) == 0).count();
        assert!(diverted > 20, "{diverted}");
    }

    #[test]
    fn deciding_everywhere_still_arrives() {
        let parameters = UgalParameters { decide: Decide::EverySwitch, ..Default::default() };
        let mut s = Ugal::new(parameters, 1, &LEAF);
        for round in 0..300u64 {
            let (mut here, mut header, mut hops) = (0, SwitchHeader::default(), 0);
            while here != 5 {
                let mut at = Little::dragonfly(here, 5);
                at.queues = vec![round * 7 % 5, round * 3 % 4];
                let port = s.guide(Time::ZERO, &data(1, 0), &mut header, &mut at);
                here = at.peer(here, port);
                hops += 1;
                assert!(hops <= 5);
            }
        }
    }
}
