//! One round robin with its congestion history: that of a flow, or of several that share it.

use super::{parts::PartHistory, tuning::Tuner};
use crate::{
    Tag,
    host::{
        history::{History, MAX_PENALTY, Signal},
        mp_ev::{Generator, Pick},
    },
};
use anabranch_units::Time;

/// Penalties in packets over a set of alternatives, and the length of a pass over them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalties {
    pub(super) mark: u32,
    pub(super) loss: u32,
    pub(super) timeout: u32,
    /// Alternatives: packets of a pass.
    pub(super) pass: u32,
    /// Limit of a mark that tunes itself.
    pub(super) limit: u32,
}

impl Penalties {
    /// Returns the signal with the largest penalty; `Timeout` only where it has one of its own.
    fn larger(&self) -> Signal {
        if self.timeout > self.loss {
            Signal::Timeout
        } else if self.mark > self.loss {
            Signal::Mark
        } else {
            Signal::Loss
        }
    }

    fn of(&self, signal: Signal) -> u32 {
        match signal {
            Signal::Mark => self.mark,
            Signal::Loss => self.loss,
            Signal::Timeout => self.timeout,
        }
    }
}

/// Rules that all contexts of a host share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) decay: u32,
    /// Penalised paths stay in the permutation and are stepped over, each letting penalties decay.
    pub(super) walks: bool,
    /// `decay` counts packet times, not packets.
    pub(super) by_time: bool,
    /// The history is kept per part.
    pub(super) by_part: bool,
    /// A NACK leaves the penalty of a mark as it is.
    pub(super) keeps_marks: bool,
    /// Neither walks, nor by part, nor tuned: the short path of `select`.
    pub(super) plain: bool,
}

#[derive(Debug)]
pub(super) struct Context {
    pub(super) generator: Generator,
    /// Unused with `parts`.
    history: History,
    parts: Option<Box<PartHistory>>,
    tuner: Option<Box<Tuner>>,
    /// Packets left to send before the history takes effect.
    blind: u64,
    /// Of a path, or of the values of each part.
    penalties: Box<[Penalties]>,
    packet_time: Time,
    /// Delay at a link from which on its signal penalises its paths.
    pub(super) least_delay: Time,
    /// Time up to which penalties have decayed.
    decayed_until: Time,
}

impl Context {
    /// Creates the context of a generator. `penalties` are those over a number of alternatives; `settle`: marks tune
    /// themselves, at most once in that time.
    pub(super) fn new(
        generator: Generator,
        rules: &Rules,
        penalties: impl Fn(u32) -> Penalties,
        blind: u64,
        settle: Option<u32>,
        packet_time: Time,
        least_delay: Time,
    ) -> Self {
        let shape = *generator.encoding();
        let history = |values: u16| {
            let larger = penalties(u32::from(values)).larger();
            History::new(values, larger, rules.keeps_marks)
        };
        // A value of one part is a path.
        let by_part = rules.by_part && shape.parts() > 1;
        let parts = by_part.then(|| Box::new(PartHistory::new(shape, history)));
        let sizes: Vec<u32> = match by_part {
            true => (0..shape.parts()).map(|part| u32::from(shape.size(part))).collect(),
            false => vec![shape.paths()],
        };
        let items = sizes.iter().sum::<u32>() as usize;
        Context {
            history: history(shape.paths() as u16),
            parts,
            tuner: settle.map(|settle| Box::new(Tuner::new(items, settle))),
            blind,
            penalties: sizes.into_iter().map(penalties).collect(),
            generator,
            packet_time,
            least_delay,
            decayed_until: Time::ZERO,
        }
    }

    /// Returns the decay of the full packet times since the last packet; what is left of one counts next time.
    pub(super) fn drained(&mut self, now: Time, decay: u32) -> u32 {
        let packet = self.packet_time.ps().max(1);
        let packets = now.saturating_sub(self.decayed_until).ps() / packet;
        self.decayed_until = self.decayed_until.saturating_add(Time::from_ps(packets * packet));
        packets.saturating_mul(u64::from(decay)).min(u64::from(MAX_PENALTY)) as u32
    }

    /// Selects the path of a packet.
    #[inline]
    pub(super) fn select(&mut self, rules: &Rules) -> Tag {
        if self.blind > 0 {
            return self.select_blind(rules);
        }
        if rules.plain { self.select_plain(rules.decay).tag } else { self.select_otherwise(rules) }
    }

    #[inline]
    fn select_blind(&mut self, rules: &Rules) -> Tag {
        let pick = self.generator.generate().unwrap_or(Pick { path: 0, tag: 0 });
        let (sent, ends) = (!rules.walks, self.blind == 1);
        self.blind -= 1;
        if let Some(parts) = &mut self.parts {
            parts.tick(rules.decay, &mut self.generator, false);
            if ends && sent {
                parts.apply(&mut self.generator, true);
            }
        } else {
            self.history.tick(rules.decay, |_| ());
            if ends && sent {
                for path in self.history.waiting() {
                    self.generator.set(path, false);
                }
            }
        }
        if self.tuner.is_some() {
            self.note_sent(pick.path);
        }
        pick.tag
    }

    /// Selects the next path without penalty, or the least penalised. Penalised paths are outside the permutation.
    #[inline]
    fn select_plain(&mut self, decay: u32) -> Pick {
        let Context { generator, history, .. } = self;
        if history.all_wait() {
            history.release(|path| generator.set(path, true));
        }
        let pick = generator.generate().unwrap_or(Pick { path: 0, tag: 0 });
        history.tick(decay, |path| generator.set(path, true));
        pick
    }

    fn select_otherwise(&mut self, rules: &Rules) -> Tag {
        let pick = match &mut self.parts {
            Some(parts) if rules.walks => parts.select_walking(rules.decay, &mut self.generator),
            Some(parts) => parts.select(rules.decay, &mut self.generator),
            None if rules.walks => self.select_walking(rules.decay),
            None => self.select_plain(rules.decay),
        };
        self.note_sent(pick.path);
        pick.tag
    }

    /// As `select_plain`, but steps over penalised paths, each of which lets penalties decay.
    fn select_walking(&mut self, decay: u32) -> Pick {
        loop {
            if self.history.all_wait() {
                self.history.release(|_| ());
            }
            let Some(pick) = self.generator.generate() else { return Pick { path: 0, tag: 0 } };
            let waits = self.history.waits(pick.path);
            self.history.tick(decay, |_| ());
            if !waits {
                return pick;
            }
        }
    }

    /// Returns the penalty that is left on a path; with a history per part, the largest of its parts.
    pub(super) fn penalty(&self, tag: Tag) -> Option<u32> {
        let path = self.generator.encoding().path(tag)?;
        Some(self.parts.as_ref().map_or_else(|| self.history.penalty(path), |parts| parts.penalty(path)))
    }

    /// Returns the number of paths, or of values of parts, that are passed over; none before the history takes effect.
    pub(super) fn skipped(&self) -> u32 {
        match &self.parts {
            _ if self.blind > 0 => 0,
            Some(parts) => parts.listed(),
            None => self.history.listed().into(),
        }
    }

    pub(super) fn blind(&self) -> u64 {
        self.blind
    }

    fn note_sent(&mut self, path: u16) {
        match (&mut self.tuner, &self.parts) {
            (Some(tuner), Some(parts)) => {
                (0..self.penalties.len()).for_each(|part| tuner.note_sent(parts.item(path, part)));
            }
            (Some(tuner), None) => tuner.note_sent(usize::from(path)),
            (None, _) => {}
        }
    }

    /// Penalises the path of a tag, or all over the link that its first `parts` name: none if all paths have it in common.
    pub(super) fn penalise(&mut self, tag: Tag, parts: Option<usize>, signal: Signal, rules: &Rules) {
        let encoding = *self.generator.encoding();
        let Some(path) = encoding.path(tag) else { return };
        match parts {
            None => self.penalise_path(path, signal, rules),
            Some(0) => {}
            Some(parts) => encoding.alike(path, parts).for_each(|path| self.penalise_path(path, signal, rules)),
        }
    }

    fn penalise_path(&mut self, path: u16, signal: Signal, rules: &Rules) {
        let heeded = !rules.walks && self.blind == 0;
        if self.parts.is_some() {
            (0..self.penalties.len()).for_each(|part| self.penalise_part(path, part, signal, heeded));
            return;
        }
        let penalties = &self.penalties[0];
        let penalty = match &mut self.tuner {
            Some(tuner) if signal == Signal::Mark && self.history.heeds_mark(path) => {
                tuner.penalty(usize::from(path), self.history.clock(), penalties.pass, penalties.limit)
            }
            _ => penalties.of(signal),
        };
        if self.history.penalise(path, signal, penalty) && heeded {
            self.generator.set(path, false);
        }
    }

    fn penalise_part(&mut self, path: u16, part: usize, signal: Signal, heeded: bool) {
        let (Some(parts), penalties) = (&mut self.parts, &self.penalties[part]) else { return };
        let penalty = match &mut self.tuner {
            Some(tuner) if signal == Signal::Mark && parts.heeds_mark(path, part) => {
                tuner.penalty(parts.item(path, part), parts.clock(), penalties.pass, penalties.limit)
            }
            _ => penalties.of(signal),
        };
        parts.penalise(path, part, (signal, penalty), &mut self.generator, heeded);
    }

    pub(super) fn set_dead(&mut self, dead: &[bool], rules: &Rules) {
        let heeded = !rules.walks && self.blind == 0;
        let Context { generator, history, parts, .. } = self;
        if let Some(parts) = parts {
            parts.set_dead(dead, generator, heeded);
            return;
        }
        let mut dead_now = Vec::new();
        history.set_dead(dead, |path, usable| dead_now.push((path, usable)));
        for (path, usable) in dead_now {
            generator.set(path, usable || !heeded && history.waits(path));
        }
    }
}
