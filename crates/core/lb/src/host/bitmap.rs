//! The bitmap of Ultra Ethernet's reference model, the nearest public form of STrack's path selection (specification
//! 6.2).
//!
//! A random mask changes the order of the round robin at every wrap. Penalties do not decay with time.

use super::Slots;
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, State, Tag,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "bitmap",
    summary: "masked round robin that passes over paths with a penalty count (STrack-like)",
    source: "specification 6.2; Ultra Ethernet reference model; STrack",
    description: "Entropy values are tried in turn. ECN marks, NACKs and timeouts add to a value's penalty, at most \
        15; a penalised value is skipped, and each packet decrements the first penalty it skips.",
};

state! {
    /// Penalty count of the path chosen or reported on.
    penalty: "";
    /// Paths with a penalty.
    penalised_paths: "paths";
}

const MAX_PENALTY: u32 = 15;
const MAX_PATHS: u32 = 1 << 16;

parameters! {
    /// The bitmap of Ultra Ethernet's reference model.
    pub struct BitmapParameters {
        /// Number of paths (low bits of the entropy value), a power of two.
        paths: u32 = 64, source "ours", Expert;
        /// Penalty of an ECN mark.
        ecn: u32 = 1, source "Ultra Ethernet reference model (specification 6.2)", Expert;
        /// Penalty of a NACK.
        nack: u32 = 4, source "Ultra Ethernet reference model (specification 6.2)", Expert;
        /// Penalty of a timeout.
        timeout: u32 = 15, source "Ultra Ethernet reference model (specification 6.2)", Expert;
    }
}

impl SchemeCapabilities for BitmapParameters {
    fn check(&self) -> Result<(), Invalid> {
        let fits = self.paths.is_power_of_two() && (2..=MAX_PATHS).contains(&self.paths);
        Invalid::unless(fits, "paths", self.paths, "a power of two from 2 to 65536")?;
        for (name, value) in [("ecn", self.ecn), ("nack", self.nack), ("timeout", self.timeout)] {
            Invalid::unless(value <= MAX_PENALTY, name, value, "0 to 15")?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Penalties {
    stream: Stream,
    counter: u32,
    mask: Tag,
    /// Bits above the path, constant for the flow.
    upper: Tag,
    of: Box<[u8]>,
}

impl Penalties {
    pub(crate) fn new(paths: u32, mut stream: Stream) -> Self {
        let paths = paths.clamp(2, MAX_PATHS).next_power_of_two();
        let bits = stream.bits();
        let (upper, mask) = ((bits >> 32) as Tag & !(paths - 1), bits as Tag & (paths - 1));
        Penalties { stream, counter: 0, mask, upper, of: vec![0; paths as usize].into() }
    }

    /// Returns the next path in turn without penalty; after as many rejections as there are paths, the current one.
    #[inline]
    pub(crate) fn select(&mut self) -> Tag {
        let wrap = self.of.len() as u32 - 1;
        let mut rejected = 0;
        loop {
            let path = self.counter ^ self.mask;
            let penalty = &mut self.of[path as usize];
            if *penalty > 0 && rejected <= wrap {
                *penalty -= u8::from(rejected == 0);
                rejected += 1;
            } else {
                rejected = u32::MAX;
            }
            self.counter = (self.counter + 1) & wrap;
            if self.counter == 0 {
                self.mask = self.stream.bits() as Tag & wrap;
            }
            if rejected == u32::MAX {
                return self.upper | path;
            }
        }
    }

    /// Returns the penalty of a tag's path and the number of paths with one.
    pub(crate) fn state(&self, tag: Option<Tag>) -> (f64, f64) {
        let penalty = tag.map_or(f64::NAN, |tag| f64::from(self.of[tag as usize & (self.of.len() - 1)]));
        (penalty, self.of.iter().filter(|penalty| **penalty > 0).count() as f64)
    }

    #[inline]
    pub(crate) fn penalise(&mut self, tag: Tag, by: u32) {
        let index = tag as usize & (self.of.len() - 1);
        self.of[index] = (u32::from(self.of[index]) + by.min(MAX_PENALTY)).min(MAX_PENALTY) as u8;
    }
}

#[derive(Debug)]
pub struct Bitmap {
    parameters: BitmapParameters,
    host_key: u64,
    flows: Slots<Penalties>,
}

impl Bitmap {
    pub fn new(parameters: BitmapParameters, seed: u64, host_key: u64) -> Self {
        Bitmap { parameters, host_key: key(seed, host_key, "bitmap"), flows: Slots::new() }
    }

    fn penalise(&mut self, slot: u32, tag: Tag, by: u32) {
        if let Some(flow) = self.flows.get(slot) {
            flow.penalise(tag, by);
        }
    }
}

impl HostScheme for Bitmap {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let stream = Stream::keyed(self.host_key, flow.key, "bitmap");
        self.flows.put(slot, Penalties::new(self.parameters.paths, stream));
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        Decision::Send(self.flows.get(slot).map_or(0, Penalties::select))
    }
    #[inline]
    fn on_ack(&mut self, _now: Time, slot: u32, feedback: &Feedback) {
        if feedback.ecn {
            self.penalise(slot, feedback.tag, self.parameters.ecn);
        }
    }
    fn on_nack(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, self.parameters.nack);
    }
    fn on_timeout(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, self.parameters.timeout);
    }

    fn state(&self, _now: Time, slot: u32, tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        let (penalty, penalised_paths) = flow.state(tag);
        Columns { penalty, penalised_paths }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, mark, send};

    fn bitmap(paths: u32) -> Bitmap {
        let mut s = Bitmap::new(BitmapParameters { paths, ..Default::default() }, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        s
    }

    #[test]
    fn a_worked_trace() {
        // 8 paths; the first tag of a pass is its mask m, then m^1, m^2, ...
        let mut s = bitmap(8);
        let upper = send(&mut s) & !7;
        for _ in 1..8 {
            send(&mut s);
        }
        // Positions 1 and 2 of a new pass get penalties 2 (two marks) and 4 (NACK).
        let m = send(&mut s);
        assert_eq!(m & !7, upper, "the upper bits stay");
        mark(&mut s, m ^ 1);
        mark(&mut s, m ^ 1);
        s.on_nack(Time::ZERO, 0, m ^ 2);
        // The next packet skips 1 (2 -> 1), then 2, which remains at 4, and takes 3. The rest follows in turn.
        let rest: Vec<Tag> = (0..5).map(|_| send(&mut s)).collect();
        assert_eq!(rest, [m ^ 3, m ^ 4, m ^ 5, m ^ 6, m ^ 7]);
        let of = &s.flows.get(0).unwrap().of;
        assert_eq!((of[(m ^ 1) as usize & 7], of[(m ^ 2) as usize & 7]), (1, 4));
        s.on_timeout(Time::ZERO, 0, m ^ 2);
        assert_eq!(s.flows.get(0).unwrap().of[(m ^ 2) as usize & 7], 15);
    }

    #[test]
    fn search_ends_after_as_many_rejections_as_paths() {
        // All 4 paths at 15: each packet rejects 4 candidates, decrements the first, and uses the fifth.
        let mut s = bitmap(4);
        for tag in 0..4 {
            s.on_timeout(Time::ZERO, 0, tag);
        }
        for sent in 1..=20 {
            send(&mut s);
            let total: u32 = s.flows.get(0).unwrap().of.iter().map(|&p| u32::from(p)).sum();
            assert_eq!(total, 60 - sent);
        }
    }
}
