//! Valiant routing on a Dragonfly or a Slim Fly (Spritz §II-A and V-A, specification 8.6).
//!
//! On Dragonfly a global first hop reaches the intermediate group; after a local one the second switch draws a global
//! link. On Slim Fly the first two hops are random neighbours.

use crate::{
    GuidedSwitch, GuidedTopology, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    registry::{PacketScope, SchemeCapabilities},
    state::state,
    switch::course::Course,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "valiant",
    summary: "over a random intermediate group (Dragonfly) or switch (Slim Fly), then minimal",
    source: "Spritz §II-A, §V-A; specification 8.6",
    description: "Each of the first two switches draws its next hop by itself, packet by packet. With first_hop = \
        \"port\" every port of the first switch is equally likely, so that its own global links are taken more often \
        than those of its neighbours; with \"switch\" all global links of the group are.",
};

state! {}

choices! {
    /// Draw of the first switch of a Dragonfly for a packet that leaves its group.
    pub enum FirstHop {
        /// Its ports.
        Port = "port",
        /// The switches of its group; itself represents one of its own global links.
        Switch = "switch",
    }
}

parameters! {
    pub struct ValiantParameters {
        /// Draw of the first switch of a Dragonfly for a packet that leaves its group.
        first_hop: FirstHop = FirstHop::Port, source "Spritz §V-A: direct global links have a higher probability; `switch` is the artifact's", Reading;
    }
}

impl SchemeCapabilities for ValiantParameters {
    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }
}

/// Draws the ports of a Valiant path at the first and the second switch; `None` if the first hop leaves no choice.
pub(crate) fn draw<G: GuidedSwitch>(first_hop: FirstHop, stream: &mut Stream, at: &G) -> (u32, Option<u32>) {
    let (here, to) = (at.here(), at.destination());
    let ports = at.ports(here);
    if at.topology() == GuidedTopology::SlimFly {
        let first = stream.below(u64::from(ports)) as u32;
        let second = at.peer(here, first);
        let beyond = (second != to).then(|| stream.below(u64::from(at.ports(second))) as u32);
        return (first, beyond);
    }
    let nth = |switch: u32, local: bool, n: u64| {
        (0..at.ports(switch)).filter(|&p| at.is_local(switch, p) == local).nth(n as usize)
    };
    let count =
        |switch: u32, local: bool| (0..at.ports(switch)).filter(|&p| at.is_local(switch, p) == local).count() as u64;
    if at.group(here) == at.group(to) {
        let others = (0..ports).filter(|&p| at.is_local(here, p) && at.peer(here, p) != to);
        let number = others.clone().count() as u64;
        let first = if number == 0 { None } else { others.clone().nth(stream.below(number) as usize) };
        return (first.unwrap_or_else(|| at.minimal(here)), None);
    }
    let (locals, globals) = (count(here, true), count(here, false));
    let first = match first_hop {
        _ if globals == 0 => nth(here, true, stream.below(locals.max(1))),
        FirstHop::Port => Some(stream.below(u64::from(ports)) as u32),
        FirstHop::Switch => match stream.below(locals + 1) {
            own if own == locals => nth(here, false, stream.below(globals)),
            other => nth(here, true, other),
        },
    };
    let first = first.unwrap_or_else(|| at.minimal(here));
    if !at.is_local(here, first) {
        return (first, None);
    }
    let second = at.peer(here, first);
    let globals = count(second, false);
    (first, (globals > 0).then(|| nth(second, false, stream.below(globals))).flatten())
}

pub(crate) fn onward<G: GuidedSwitch>(stream: &mut Stream, at: &G) -> u32 {
    let here = at.here();
    let any = at.topology() == GuidedTopology::SlimFly;
    let ports = (0..at.ports(here)).filter(|&p| any || !at.is_local(here, p));
    let number = ports.clone().count() as u64;
    let drawn = if number == 0 { None } else { ports.clone().nth(stream.below(number) as usize) };
    drawn.unwrap_or_else(|| at.minimal(here))
}

pub(crate) fn ev((first, second): (u32, Option<u32>)) -> u16 {
    (first as u16) << 8 | second.unwrap_or(0) as u16 & 0xff
}

#[derive(Debug)]
pub struct Valiant {
    first_hop: FirstHop,
    stream: Stream,
}

impl Valiant {
    pub fn new(parameters: ValiantParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let stream = Stream::keyed(key(seed, switch.key, "valiant"), 0, "valiant");
        Valiant { first_hop: parameters.first_hop, stream }
    }
}

impl SwitchScheme for Valiant {
    #[inline]
    fn guide<G: GuidedSwitch>(&mut self, _: Time, _: &PacketView, header: &mut SwitchHeader, at: &mut G) -> u32 {
        let mut course = Course::of(header);
        if course.hop() == 0 {
            course.set_ev(ev(draw(self.first_hop, &mut self.stream, at)));
        }
        let port = course.port(at);
        course.leave(at, port, header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, Little, data};

    fn shares(first_hop: FirstHop) -> Vec<f64> {
        // Dragonfly (1, 2, 1), switch 0 to switch 4: port 0 is local, port 1 global.
        let mut s = Valiant::new(ValiantParameters { first_hop }, 1, &LEAF);
        let mut taken = [0u32; 2];
        for _ in 0..10_000 {
            let mut at = Little::dragonfly(0, 4);
            taken[s.guide(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), &mut at) as usize] += 1;
        }
        taken.iter().map(|&n| f64::from(n) / 10_000.0).collect()
    }

    #[test]
    fn first_hops_are_drawn_evenly() {
        // One local and one global port, or two switches with this one: one half each. 0.0165: 3.3 standard deviations.
        for first_hop in [FirstHop::Port, FirstHop::Switch] {
            assert!((shares(first_hop)[0] - 0.5).abs() < 0.0165);
        }
    }

    #[test]
    fn inside_a_group_of_two_there_is_no_other_switch() {
        let mut s = Valiant::new(ValiantParameters::default(), 1, &LEAF);
        let mut at = Little::dragonfly(0, 1);
        let wanted = at.minimal(0);
        for _ in 0..20 {
            assert_eq!(s.guide(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), &mut at), wanted);
        }
    }

    #[test]
    fn every_packet_arrives() {
        let mut s = Valiant::new(ValiantParameters::default(), 1, &LEAF);
        for _ in 0..500 {
            let (mut here, mut header, mut hops) = (0, SwitchHeader::default(), 0);
            while here != 5 {
                let mut at = Little::dragonfly(here, 5);
                let port = s.guide(Time::ZERO, &data(1, 0), &mut header, &mut at);
                here = at.peer(here, port);
                hops += 1;
            }
            // Local, global, local, global, local.
            assert!(hops <= 5);
        }
    }

    #[test]
    fn the_two_readings_differ_on_a_full_dragonfly() {
        // From switch 2 of group 0 to group 20. By port: 11 equal ports, so each of its own 4 global links has 1/11,
        // and each of the 28 of its neighbours 1/11 * 1/4 = 1/44. By switch: 8 equal switches with 4 links each, 1/32
        // throughout. 176,000 draws: standard deviations are sqrt(n p (1 - p)); 4.5 of them are exceeded by one of 64
        // with 4e-4.
        const DRAWS: u32 = 176_000;
        let at = Little::of((8, 4), 2, 160);
        for (first_hop, own, other) in [(FirstHop::Port, 1.0 / 11.0, 1.0 / 44.0), (FirstHop::Switch, 0.03125, 0.03125)]
        {
            let mut stream = Stream::keyed(1, 2, "test");
            let mut taken = std::collections::BTreeMap::new();
            for _ in 0..DRAWS {
                let (first, second) = draw(first_hop, &mut stream, &at);
                assert_eq!(at.is_local(2, first), second.is_some(), "a second draw after a local hop alone");
                let link = second.map_or((2, first), |port| (at.peer(2, first), port));
                assert!(link.0 < 8 && !at.is_local(link.0, link.1), "{link:?} leaves the group");
                *taken.entry(link).or_insert(0u32) += 1;
            }
            assert_eq!(taken.len(), 32, "{first_hop:?}");
            for (link, count) in taken {
                let p: f64 = if link.0 == 2 { own } else { other };
                let (expected, deviation) = (f64::from(DRAWS) * p, (f64::from(DRAWS) * p * (1.0 - p)).sqrt());
                let off = (f64::from(count) - expected).abs() / deviation;
                assert!(off < 4.5, "{first_hop:?}, {link:?}: {count}, expected {expected}");
            }
        }
    }
}
