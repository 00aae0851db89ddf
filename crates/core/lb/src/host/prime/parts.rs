//! Congestion history per part of the multi-part value, `history = "part"` (PRIME §III-C): a path may be used while
//! none of the values in it is penalised.
//!
//! A penalty costs O(paths with the value); a packet that finds all paths penalised O(paths).

use crate::host::{
    history::{History, Signal},
    mp_ev::{Generator, PathEncoding, Pick},
};
use smallvec::SmallVec;

/// The history of each part, and the dead paths.
#[derive(Debug)]
pub(super) struct PartHistory {
    shape: PathEncoding,
    histories: Vec<History>,
    /// Per path; empty: none is dead.
    dead: Vec<bool>,
    /// Path at which the search for the least penalised one begins: equal ones take turns.
    next: u16,
}

impl PartHistory {
    /// Creates the state without penalties; `history` creates that of a part, given its number of values.
    pub(super) fn new(shape: PathEncoding, history: impl Fn(u16) -> History) -> Self {
        let histories = (0..shape.parts()).map(|part| history(shape.size(part))).collect();
        PartHistory { shape, histories, dead: Vec::new(), next: 0 }
    }

    pub(super) fn clock(&self) -> u32 {
        self.histories[0].clock()
    }

    /// Returns the number of the value of a path's part among the values of all parts.
    #[inline]
    pub(super) fn item(&self, path: u16, part: usize) -> usize {
        let before: usize = (0..part).map(|part| usize::from(self.shape.size(part))).sum();
        before + usize::from(self.shape.value(path, part))
    }

    pub(super) fn heeds_mark(&self, path: u16, part: usize) -> bool {
        self.histories[part].heeds_mark(self.shape.value(path, part))
    }

    fn is_dead(&self, path: u16) -> bool {
        self.dead.get(usize::from(path)).copied().unwrap_or(false)
    }

    fn waits(&self, path: u16) -> bool {
        self.histories.iter().enumerate().any(|(part, history)| history.waits(self.shape.value(path, part)))
    }

    fn paths(&self, part: usize, value: u16) -> impl Iterator<Item = u16> + use<> {
        let stride: u16 = (0..part).map(|part| self.shape.size(part)).product();
        let (block, paths) = (stride * self.shape.size(part), self.shape.paths() as u16);
        (0..paths / block).flat_map(move |high| (0..stride).map(move |low| high * block + value * stride + low))
    }

    /// Penalises a value of a path; its paths leave the permutation if `heeded`.
    pub(super) fn penalise(
        &mut self,
        path: u16,
        part: usize,
        (signal, penalty): (Signal, u32),
        generator: &mut Generator,
        heeded: bool,
    ) {
        let value = self.shape.value(path, part);
        if self.histories[part].penalise(value, signal, penalty) && heeded {
            self.paths(part, value).for_each(|path| generator.set(path, false));
        }
    }

    /// Decays all penalties; paths without one return to the permutation if `heeded`.
    pub(super) fn tick(&mut self, decay: u32, generator: &mut Generator, heeded: bool) {
        for part in 0..self.histories.len() {
            let mut freed = SmallVec::<[u16; 8]>::new();
            self.histories[part].tick(decay, |value| freed.push(value));
            for value in freed.into_iter().filter(|_| heeded) {
                for path in self.paths(part, value) {
                    if !self.is_dead(path) && !self.waits(path) {
                        generator.set(path, true);
                    }
                }
            }
        }
    }

    /// Returns the penalty of the most penalised value of a path.
    pub(super) fn penalty(&self, path: u16) -> u32 {
        let values = self.histories.iter().enumerate();
        values.map(|(part, history)| history.penalty(self.shape.value(path, part))).max().unwrap_or(0)
    }

    pub(super) fn listed(&self) -> u32 {
        self.histories.iter().map(|history| u32::from(history.listed())).sum()
    }

    /// Sets the permutation to the paths that are alive and, if `heeded`, without penalty.
    pub(super) fn apply(&self, generator: &mut Generator, heeded: bool) {
        for path in 0..self.shape.paths() as u16 {
            let is_usable = !heeded || !self.waits(path);
            generator.set(path, is_usable && !self.is_dead(path));
        }
    }

    pub(super) fn set_dead(&mut self, dead: &[bool], generator: &mut Generator, heeded: bool) {
        let paths = self.shape.paths() as usize;
        let all = dead.len() >= paths && dead[..paths].iter().all(|&dead| dead);
        self.dead = if all { Vec::new() } else { dead.to_vec() };
        self.apply(generator, heeded);
    }

    /// Selects the next path without penalty in the permutation, or the least penalised.
    pub(super) fn select(&mut self, decay: u32, generator: &mut Generator) -> Pick {
        let pick = generator.generate().unwrap_or_else(|| self.least());
        self.tick(decay, generator, true);
        pick
    }

    /// As `select`, but steps over penalised paths, each of which lets penalties decay.
    pub(super) fn select_walking(&mut self, decay: u32, generator: &mut Generator) -> Pick {
        // A value that is free may have dead paths alone: two passes without a free path find out.
        for _ in 0..2 * self.shape.paths() {
            if self.histories.iter().any(History::all_wait) {
                break;
            }
            let Some(pick) = generator.generate() else { break };
            let waits = self.waits(pick.path);
            self.tick(decay, generator, false);
            if !waits {
                return pick;
            }
        }
        let pick = self.least();
        self.tick(decay, generator, false);
        pick
    }

    /// Returns the live path whose most penalised value is least penalised; equal ones take turns.
    #[cold]
    fn least(&mut self) -> Pick {
        let paths = self.shape.paths() as u16;
        let order = (self.next..paths).chain(0..self.next).filter(|&path| !self.is_dead(path));
        let path = order.min_by_key(|&path| self.penalty(path)).unwrap_or(0);
        self.next = (path + 1) % paths;
        Pick { path, tag: self.shape.tag(path) }
    }
}
