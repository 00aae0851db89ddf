//! Labels whose queue pair has failed: no data until a write has passed, and between writes a pause that grows.

use crate::Label;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Pause before the second trial in a row, and what doubling it leads to at most.
const PAUSE: Duration = Duration::from_millis(10);
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(8);

#[derive(Debug)]
enum Stage {
    Due(Instant),
    Posted,
    Passed,
}

/// Failures of each label since it last carried data.
#[derive(Debug, Default)]
pub(super) struct Trials(BTreeMap<Label, (u32, Stage)>);

impl Trials {
    pub(super) fn on_failure(&mut self, label: Label, now: Instant) {
        let (failures, stage) = self.0.entry(label).or_insert((0, Stage::Passed));
        let pause = failures.checked_sub(1).map_or(Duration::ZERO, |again| PAUSE * (1 << again.min(16)));
        (*failures, *stage) = (failures.saturating_add(1), Stage::Due(now + pause.min(MAX_PAUSE)));
    }

    /// Returns `true` if data may take the label; they are the trial of one that has no queue pair now.
    pub(super) fn allow(&self, label: Label, now: Instant, has_queue: impl FnOnce() -> bool) -> bool {
        match self.0.get(&label) {
            None | Some((_, Stage::Passed)) => true,
            Some((_, Stage::Due(at))) => *at <= now && !has_queue(),
            Some((_, Stage::Posted)) => false,
        }
    }

    pub(super) fn due(&self, now: Instant) -> Vec<Label> {
        let is_due = |stage: &Stage| matches!(stage, Stage::Due(at) if *at <= now);
        self.0.iter().filter(|(_, (_, stage))| is_due(stage)).map(|(label, _)| *label).collect()
    }

    /// Returns the time until the next trial of labels that can be tried: data try the others, or a connection comes first.
    pub(super) fn next(&self, now: Instant, can_try: impl Fn(Label) -> bool) -> Option<Duration> {
        let left = |(label, (_, stage)): (&Label, &(u32, Stage))| match stage {
            Stage::Due(at) if can_try(*label) => Some(at.saturating_duration_since(now)),
            Stage::Due(_) | Stage::Posted | Stage::Passed => None,
        };
        self.0.iter().filter_map(left).min()
    }

    pub(super) fn post(&mut self, label: Label) {
        if let Some((_, stage)) = self.0.get_mut(&label) {
            *stage = Stage::Posted;
        }
    }

    /// A trial, or data, have arrived. Only data end the count: a path may lose large packets alone.
    pub(super) fn on_arrival(&mut self, label: Label, is_trial: bool) {
        match self.0.get_mut(&label) {
            Some((_, stage @ Stage::Posted)) if is_trial => *stage = Stage::Passed,
            Some((_, Stage::Passed)) if !is_trial => drop(self.0.remove(&label)),
            _ => {}
        }
    }
}
