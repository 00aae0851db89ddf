//! Event types of a fabric, and the order of events that happen at the same time.
//!
//! The order is that of the variants, then of the entity: a link by its rank, a host or a switch by its number. Ranks
//! come from stable names and, for links into one node, from a seeded permutation: never from an index in memory.
//! Events of one kind, entity and time are ordered by their payload. Arrivals are ordered by a draw before their rank
//! ([`Ties`]): no sender is always first.

use crate::ids::{FlowId, HostId, PacketId, PortId, SwitchId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Activated,
    /// Its processor is free: its delay begins.
    Begins,
    Fires,
}

/// Step of a message over a scale-up network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Its first byte reaches the receiver.
    FirstByte,
    /// Its last byte is received.
    LastByte,
    /// Its acknowledgement reaches the sender.
    Acknowledged,
}

/// An event. The variants are in the order in which events of the same time are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A port advances its transmissions; no other event can observe whether it has already done so.
    Service {
        /// Rank of its link.
        rank: u32,
        port: PortId,
    },
    /// A pause expires; `queue` is the number of the port and class in the pauses' table.
    PauseEnds {
        rank: u32,
        queue: u32,
    },
    /// A packet arrives over the link of this rank.
    Arrival {
        rank: u32,
        packet: PacketId,
    },
    SchemeTimer {
        switch: SwitchId,
        balancer: u8,
        number: u32,
    },
    /// A timer of a flow, at its sender or its receiver.
    FlowTimer {
        host: HostId,
        flow: FlowId,
    },
    /// A message over a scale-up network takes a step, at its sender or its receiver.
    ScaleUp {
        host: HostId,
        flow: FlowId,
        step: Step,
    },
    /// A trigger changes its stage, at its home.
    Trigger {
        home: HostId,
        trigger: u32,
        stage: Stage,
    },
    Start {
        host: HostId,
        flow: FlowId,
    },
}

/// Low bits of an order that hold the entity; the kind is above them.
const ENTITY_BITS: u32 = 29;
pub(crate) const MAX_ENTITIES: u32 = 1 << ENTITY_BITS;
/// Triggers, or flows over scale-up, that a payload can hold; the stage or step is above the number.
pub(crate) const MAX_STAGED: u32 = 1 << STAGE_SHIFT;
const STAGE_SHIFT: u32 = 30;
/// Timers of a scheme that a payload can hold; the load balancer is above the number.
pub(crate) const MAX_SCHEME_TIMERS: u32 = 1 << BALANCER_SHIFT;
const BALANCER_SHIFT: u32 = 26;

const SERVICE: u32 = 0;
const PAUSE_ENDS: u32 = 1;
const ARRIVAL: u32 = 2;
const SCHEME_TIMER: u32 = 3;
const FLOW_TIMER: u32 = 4;
const SCALE_UP: u32 = 5;
const TRIGGER: u32 = 6;
const START: u32 = 7;

pub(crate) const fn arrival_order(rank: u32) -> u32 {
    ARRIVAL << ENTITY_BITS | rank
}

/// Order of arrivals at one instant: drawn for each packet, except in recorded models, which keep that of the ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ties {
    /// Bits of an arrival's order that are drawn: those between kind and rank.
    drawn: u32,
    ranks: u32,
}

impl Ties {
    /// Returns the order of the arrivals over `links` links, drawn or not.
    pub(crate) fn new(links: usize, draws: bool) -> Self {
        let ranks = (links as u32).next_power_of_two().clamp(1, MAX_ENTITIES) - 1;
        let drawn = if draws { (MAX_ENTITIES - 1) & !ranks } else { 0 };
        Ties { drawn, ranks }
    }

    /// Adds a draw to the order of a link, for the packet with this number on it. `salt` is the link's own.
    #[inline(always)]
    pub(crate) fn order(&self, order: u32, salt: u64, number: u64) -> u32 {
        // Squared: multiples of successive numbers are in a line.
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt;
        let draw = mixed.wrapping_mul(mixed) >> (u64::BITS - ENTITY_BITS);
        order | draw as u32 & self.drawn
    }

    #[inline]
    pub(crate) fn rank(&self, order: u32) -> u32 {
        order & self.ranks
    }
}

#[inline]
pub(crate) fn is_arrival(order: u32) -> bool {
    order >> ENTITY_BITS == ARRIVAL
}

impl Event {
    #[inline]
    pub(crate) fn at(self, time: u64) -> anabranch_engine::Event {
        let (kind, entity, payload) = match self {
            Event::Service { rank, port } => (SERVICE, rank, port.0),
            Event::PauseEnds { rank, queue } => (PAUSE_ENDS, rank, queue),
            Event::Arrival { rank, packet } => (ARRIVAL, rank, packet.0),
            Event::SchemeTimer { switch, balancer, number } => {
                debug_assert!(number < MAX_SCHEME_TIMERS);
                (SCHEME_TIMER, switch.0, u32::from(balancer) << BALANCER_SHIFT | number)
            }
            Event::FlowTimer { host, flow } => (FLOW_TIMER, host.0, flow.0),
            Event::Trigger { home, trigger, stage } => (TRIGGER, home.0, (stage as u32) << STAGE_SHIFT | trigger),
            Event::Start { host, flow } => (START, host.0, flow.0),
            Event::ScaleUp { host, flow, step } => (SCALE_UP, host.0, (step as u32) << STAGE_SHIFT | flow.0),
        };
        anabranch_engine::Event { time, order: kind << ENTITY_BITS | entity, payload }
    }

    #[inline]
    pub(crate) fn of(event: anabranch_engine::Event) -> Self {
        let (entity, payload) = (event.order & (MAX_ENTITIES - 1), event.payload);
        match event.order >> ENTITY_BITS {
            ARRIVAL => Event::Arrival { rank: entity, packet: PacketId(payload) },
            SERVICE => Event::Service { rank: entity, port: PortId(payload) },
            PAUSE_ENDS => Event::PauseEnds { rank: entity, queue: payload },
            SCHEME_TIMER => Event::SchemeTimer {
                switch: SwitchId(entity),
                balancer: (payload >> BALANCER_SHIFT) as u8,
                number: payload & (MAX_SCHEME_TIMERS - 1),
            },
            FLOW_TIMER => Event::FlowTimer { host: HostId(entity), flow: FlowId(payload) },
            TRIGGER => {
                let stage = [Stage::Activated, Stage::Begins, Stage::Fires][(payload >> STAGE_SHIFT) as usize];
                Event::Trigger { home: HostId(entity), trigger: payload & (MAX_STAGED - 1), stage }
            }
            SCALE_UP => {
                let step = [Step::FirstByte, Step::LastByte, Step::Acknowledged][(payload >> STAGE_SHIFT) as usize];
                Event::ScaleUp { host: HostId(entity), flow: FlowId(payload & (MAX_STAGED - 1)), step }
            }
            _ => Event::Start { host: HostId(entity), flow: FlowId(payload) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One event of each kind, at the limits of entities and payloads.
    fn every() -> Vec<Event> {
        let last = MAX_ENTITIES - 1;
        let mut all = Vec::new();
        for entity in [0, 5, last] {
            let (host, switch) = (HostId(entity), SwitchId(entity));
            for payload in [0, 7, u32::MAX] {
                let (flow, packet, port) = (FlowId(payload), PacketId(payload), PortId(payload));
                all.push(Event::Service { rank: entity, port });
                all.push(Event::PauseEnds { rank: entity, queue: payload });
                all.push(Event::Arrival { rank: entity, packet });
                all.push(Event::FlowTimer { host, flow });
                all.push(Event::Start { host, flow });
            }
            let (trigger, flow) = (MAX_STAGED - 1, FlowId(MAX_STAGED - 1));
            let stages = [Stage::Activated, Stage::Begins, Stage::Fires];
            all.extend(stages.map(|stage| Event::Trigger { home: host, trigger, stage }));
            let steps = [Step::FirstByte, Step::LastByte, Step::Acknowledged];
            all.extend(steps.map(|step| Event::ScaleUp { host, flow, step }));
            all.extend([0, 63].map(|balancer| Event::SchemeTimer { switch, balancer, number: MAX_SCHEME_TIMERS - 1 }));
        }
        all
    }

    #[test]
    fn packets_are_conserved() {
        for event in every() {
            assert_eq!(Event::of(event.at(9)), event);
        }
    }

    #[test]
    fn the_order_of_the_variants_is_the_order_of_events() {
        for a in every() {
            for b in every() {
                // The engine orders the stages of one trigger and the steps of one message, not the variants.
                let is_staged = matches!(a, Event::Trigger { .. } | Event::ScaleUp { .. });
                if is_staged && std::mem::discriminant(&a) == std::mem::discriminant(&b) {
                    continue;
                }
                assert_eq!(a.cmp(&b), a.at(9).cmp(&b.at(9)), "{a:?} and {b:?}");
            }
        }
    }

    /// Links whose packets arrive at the same instants: each is first equally often, within five deviations of a binomial
    /// variable, and successive instants are independent. Their numbers differ by what went before.
    #[test]
    fn no_link_is_always_first() {
        const INSTANTS: u64 = 20_000;
        for (case, before) in (0..200).zip([0, 1, 77, 1 << 33].iter().cycle()) {
            let ties = Ties::new(65_536, true);
            let links = [2, 3, 8, 64][case as usize % 4];
            let salts: Vec<u64> = (0..links).map(|link| anabranch_random::key(case, link, "ties")).collect();
            let mut first = vec![0u64; salts.len()];
            let (mut again, mut last) = (0u64, usize::MAX);
            for instant in 0..INSTANTS {
                let order = |link: &usize| {
                    ties.order(arrival_order(*link as u32), salts[*link], instant + *link as u64 % 3 * before)
                };
                let winner = (0..salts.len()).min_by_key(order).unwrap();
                first[winner] += 1;
                again += u64::from(winner == last);
                last = winner;
            }
            let share = INSTANTS as f64 / salts.len() as f64;
            let allowed = 5.0 * (share * (1.0 - 1.0 / salts.len() as f64)).sqrt();
            for count in first.into_iter().chain([again]) {
                assert!((count as f64 - share).abs() < allowed, "{count}, not {share} give or take {allowed}");
            }
        }
    }

    /// A draw changes neither kind nor rank, with any number of links; recorded models have none.
    #[test]
    fn draws_leave_kind_and_rank() {
        for links in [1, 2, 3, 1 << 20, MAX_ENTITIES as usize - 1] {
            for rank in [0, links as u32 / 2, links as u32 - 1] {
                for number in [0, 83_840, u64::MAX] {
                    let (drawn, ranked) = (Ties::new(links, true), Ties::new(links, false));
                    let order = drawn.order(arrival_order(rank), 7, number);
                    assert!(is_arrival(order) && drawn.rank(order) == rank, "{links} {rank} {number}");
                    assert_eq!(ranked.order(arrival_order(rank), 7, number), arrival_order(rank));
                }
            }
        }
    }

    #[test]
    fn arrivals_are_known_by_their_order() {
        assert_eq!(arrival_order(77), Event::Arrival { rank: 77, packet: PacketId(1) }.at(0).order);
        assert!(is_arrival(arrival_order(MAX_ENTITIES - 1)) && !is_arrival(SCHEME_TIMER << ENTITY_BITS));
    }
}
