//! Slim Fly: the graphs of McKay, Miller and Širáň, of diameter 2, over the finite field of q elements.
//!
//! Switch (s, x, y), s in {0, 1}, has number s*q^2 + x*q + y; a group is one (s, x). Linked are switches of a group that
//! differ by an element of X (s = 0) or X' (s = 1), and (0, x, y) and (1, m, c) where y = m*x + c (specification 10.1).

use super::grouped::{self, Cabling};
use super::kind::{Kind, Scale, not_too_many, positive};
use crate::{
    Guidance, TopologyError,
    gf::{Field, prime_power},
    graph::Graph,
};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

/// 22,898 switches; the next q would exceed the limit on forwarding tables.
const MAX_Q: u64 = 107;

pub(crate) const ABOUT: About = About {
    name: "slim-fly",
    summary: "switches at most two hops apart, over a finite field",
    source: "Spritz §V-A; specification 10",
    description: "",
};

parameters! {
    /// Slim Fly: 2 * q^2 switches in 2 * q groups, any two of them at most two hops apart.
    pub struct SlimFlyParameters {
        /// Size of the field, a prime power from 3 to 107: switches in a group.
        q: u64 = 9, source "Spritz §V-A; specification 10.2";
        /// Hosts at each switch.
        p: u64 = 7, source "Spritz §V-A; specification 10.2";
        /// Rate of every link.
        link_rate: Rate = Rate::gbps(400), source "Spritz §V-A";
        /// Rate of links to hosts; "": as `link_rate`.
        host_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Rate of links inside a group; "": as `link_rate`.
        local_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Rate of links between groups; "": as `link_rate`.
        global_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Delay of links to hosts.
        host_link_delay: Time = Time::from_ns(25), source "specification 9.5: what Spritz Table II follows from", Expert;
        /// Delay of links inside a group.
        local_link_delay: Time = Time::from_ns(25), source "Spritz Table I; specification 9.4, 10.3", Expert;
        /// Delay of links between groups.
        global_link_delay: Time = Time::from_ns(500), source "Spritz Table I; specification 9.4, 10.3", Expert;
        /// Time a packet spends in a switch before it reaches its output port.
        switch_latency: Time = Time::from_ns(500), source "specification 9.5", Expert;
    }
}

fn is_possible(q: u64) -> bool {
    (3..=MAX_Q).contains(&q) && prime_power(q as u32).is_some()
}

/// Returns the exponents of the primitive element (0 to q - 2) of X and X' (specification 10.1).
fn exponents(q: usize) -> [Vec<usize>; 2] {
    let steps = |from: usize, to: usize| (from..=to).step_by(2).map(|e| e % (q - 1));
    match q % 4 {
        1 => [steps(0, q - 3).collect(), steps(1, q - 2).collect()],
        // q = 4w - 1.
        3 => {
            let w = q.div_ceil(4);
            let x = steps(0, 2 * w - 2).chain(steps(2 * w - 1, 4 * w - 3)).collect();
            [x, steps(1, 2 * w - 1).chain(steps(2 * w, 4 * w - 2)).collect()]
        }
        _ => [steps(0, q - 2).collect(), steps(1, q - 1).collect()],
    }
}

struct Shape {
    q: u32,
    p: u32,
    hosts: u64,
    switches: u64,
    /// Exponents of X and X', the differences between linked switches of a group.
    exponents: [Vec<usize>; 2],
}

impl Shape {
    fn cables(&self) -> u64 {
        let q = u64::from(self.q);
        let [x, y] = self.exponents.each_ref().map(|set| set.len() as u64);
        // q groups of q switches in either half, each switch with a link per element; q^3 links between the halves.
        q * q * x / 2 + q * q * y / 2 + q.pow(3)
    }

    fn scale(&self) -> Scale {
        let Shape { hosts, switches, .. } = *self;
        let guide_bytes = Guidance::SlimFly.table_bytes(switches, 2 * u64::from(self.q));
        Scale { hosts, switches, leaves: switches, cables: hosts + self.cables(), guide_bytes }
    }
}

impl SlimFlyParameters {
    fn shape(&self) -> Result<Shape, TopologyError> {
        if !is_possible(self.q) {
            let from = self.q.clamp(3, MAX_Q);
            let nearest = (0..MAX_Q).flat_map(|d| [from.saturating_sub(d), from + d]).find(|q| is_possible(*q));
            let message = format!(
                "`q` is {}; a prime power from 3 to {MAX_Q} is needed, for example {}",
                self.q,
                nearest.unwrap_or(9)
            );
            return Err(TopologyError::at("q", message));
        }
        positive("p", self.p)?;
        let switches = 2 * self.q * self.q;
        let hosts = not_too_many("p", switches.saturating_mul(self.p))?.into();
        Ok(Shape { q: self.q as u32, p: self.p as u32, hosts, switches, exponents: exponents(self.q as usize) })
    }
}

impl Kind for SlimFlyParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.shape().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let shape = self.shape()?;
        let cabling = Cabling::checked(
            self.link_rate,
            [self.host_link_rate, self.local_link_rate, self.global_link_rate],
            [self.host_link_delay, self.local_link_delay, self.global_link_delay],
            self.switch_latency,
        )?;
        grouped::build(2 * shape.q, shape.q, shape.p, edges(&shape), &cabling, Guidance::SlimFly)
    }
}

fn edges(shape: &Shape) -> Vec<(u32, u32)> {
    let q = shape.q;
    let field = Field::new(q).expect("a prime power");
    let powers = field.powers();
    let switch = |s: u32, x: u32, y: u32| s * q * q + x * q + y;
    let mut edges = Vec::with_capacity(shape.cables() as usize);
    for (s, exponents) in (0..).zip(&shape.exponents) {
        let differences: Vec<u32> = exponents.iter().map(|exponent| powers[*exponent]).collect();
        for (x, y) in (0..q).flat_map(|x| (0..q).map(move |y| (x, y))) {
            // A set contains the negative of each element: the other switch yields the same link.
            let others = differences.iter().map(|difference| field.add(y, *difference)).filter(|other| y < *other);
            edges.extend(others.map(|other| (switch(s, x, y), switch(s, x, other))));
        }
    }
    for (x, m, c) in (0..q).flat_map(|x| (0..q).flat_map(move |m| (0..q).map(move |c| (x, m, c)))) {
        edges.push((switch(0, x, field.add(field.multiply(m, x), c)), switch(1, m, c)));
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// X = -X and X' = -X' for every q, or links would have one direction only; |X| = |X'| = (q - delta) / 2.
    #[test]
    fn generators_hold_their_negatives() {
        for q in (3..=MAX_Q).filter(|q| is_possible(*q)) {
            let field = Field::new(q as u32).unwrap();
            let powers = field.powers();
            let size = match q % 4 {
                1 => (q - 1) / 2,
                3 => q.div_ceil(2),
                _ => q / 2,
            };
            for set in exponents(q as usize) {
                let set: BTreeSet<u32> = set.into_iter().map(|e| powers[e]).collect();
                assert_eq!(set.len() as u64, size, "q = {q}");
                for a in &set {
                    assert!(set.iter().any(|b| field.add(*a, *b) == 0), "q = {q}");
                }
            }
        }
    }

    /// Specification 10.2: X = {1, 2, x, 2x}, X' = {x+1, x+2, 2x+1, 2x+2}, x being number 3.
    #[test]
    fn generators_of_nine() {
        let powers = Field::new(9).unwrap().powers();
        let sets = exponents(9).map(|set| set.into_iter().map(|e| powers[e]).collect::<BTreeSet<u32>>());
        assert_eq!(sets, [BTreeSet::from([1, 2, 3, 6]), BTreeSet::from([4, 5, 7, 8])]);
    }
}
