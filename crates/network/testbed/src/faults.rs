//! Faults of a run, applied by a separate thread. They are prepared before the run: at its time a fault takes only a
//! few writes to pipes and maps.

use crate::{
    Fabric, Harm, TestbedError,
    batch::{Batch, Program},
    counters::Note,
    delay::Times,
    harm,
    host::be_real_time,
    link_program::{Chances, Settings},
    port_program::Speed,
};
use anabranch_backend::Setup;
use anabranch_topology::{FaultAction, LinkId};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

const ALWAYS: u64 = 1_000_000_000;

/// Returns the impairment of packets that a fault causes; `None` if the fault changes the link itself.
pub(crate) fn harm(action: FaultAction) -> Option<Harm> {
    match action {
        FaultAction::Down | FaultAction::Up | FaultAction::Deny | FaultAction::Allow | FaultAction::Degrade(_) => None,
        FaultAction::Loss { per_billion } => Some(Harm::Lose(per_billion)),
        FaultAction::Corrupt { per_billion } => Some(Harm::Corrupt(per_billion)),
        FaultAction::Duplicate { per_billion } => Some(Harm::Duplicate(per_billion)),
        FaultAction::Delay { delay, jitter } => Some(Harm::Delay(delay.ps(), jitter.ps())),
    }
}

pub(crate) fn is_unidirectional(links: &[LinkId]) -> bool {
    links.iter().any(|link| !links.contains(&link.reverse()))
}

#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    is_down: bool,
    /// Shares only.
    chances: Chances,
    delay: Option<[Time; 2]>,
}

#[derive(Debug)]
enum Act {
    /// Commands for a batch.
    Lines((Program, usize), String),
    Chances(LinkId, Chances),
    Times(Arc<Times>, [Time; 2]),
    Speed(LinkId, u64),
}

/// Fault at its time, in stages: the operations of a stage run at once, after those of the previous stage.
#[derive(Debug)]
struct Step {
    /// Index of the fault in the setup.
    fault: usize,
    at: Time,
    stages: Vec<Vec<Act>>,
}

/// Index of a fault in the setup, and the time at which it took effect.
pub(crate) type Effect = (usize, Time);

/// Message to the fault thread, which ends when the channel is closed.
#[derive(Debug)]
pub(crate) enum Go {
    Begin,
    Clock(Instant),
}

/// Prepares the faults, applies those of time zero, then the others at their times. Reports by `reports` when it is
/// prepared and when it has begun, with the faults that took effect. Returns those that took effect later, and calls
/// `failed` if one of them cannot be applied.
pub(crate) fn live(
    setup: &Setup,
    fabric: &Fabric,
    go: &Receiver<Go>,
    reports: &Sender<Result<Vec<Effect>, TestbedError>>,
    failed: impl FnOnce(TestbedError),
) -> Vec<Effect> {
    let mut faults = match Faults::prepare(setup, fabric) {
        Ok(faults) => faults,
        Err(error) => {
            let _ = reports.send(Err(error));
            return Vec::new();
        }
    };
    let _ = reports.send(Ok(Vec::new()));
    let Ok(Go::Begin) = go.recv() else { return Vec::new() };
    let _ = reports.send(faults.begin());
    let Ok(Go::Clock(start)) = go.recv() else { return Vec::new() };
    let (effects, error) = faults.run(start, go);
    if let Some(error) = error {
        failed(error);
    }
    effects
}

#[derive(Debug)]
struct Faults<'a> {
    setup: &'a Setup,
    fabric: &'a Fabric,
    /// In order of time.
    steps: Vec<Step>,
    next: usize,
    batches: BTreeMap<(Program, usize), Batch>,
    settings: BTreeMap<LinkId, Settings>,
    speeds: BTreeMap<LinkId, Speed>,
    delays: BTreeMap<LinkId, (Arc<Times>, u32)>,
}

impl<'a> Faults<'a> {
    /// Prepares the faults of `setup`. The calling thread and the processes that it starts join the real-time class if
    /// permitted.
    fn prepare(setup: &'a Setup, fabric: &'a Fabric) -> Result<Self, TestbedError> {
        let mut faults = Faults {
            setup,
            fabric,
            steps: Vec::new(),
            next: 0,
            batches: BTreeMap::new(),
            settings: BTreeMap::new(),
            speeds: BTreeMap::new(),
            delays: BTreeMap::new(),
        };
        if setup.faults.is_empty() {
            return Ok(faults);
        }
        // Without the privilege faults are late on a busy machine; the times in the results show it.
        let _ = be_real_time();
        let mut order: Vec<usize> = (0..setup.faults.len()).collect();
        order.sort_by_key(|fault| setup.faults[*fault].at);
        let mut directions = vec![Direction::default(); setup.topology.links.len()];
        for fault in order {
            let stages = faults.stages(fault, &mut directions)?;
            faults.steps.push(Step { fault, at: setup.faults[fault].at, stages });
        }
        Ok(faults)
    }

    fn ends(&self, link: LinkId) -> (usize, usize) {
        let link = self.setup.topology.link(link);
        (link.from.0 as usize, link.to.0 as usize)
    }

    /// Returns the operations of a fault in stages, and updates `directions`.
    fn stages(&mut self, fault: usize, directions: &mut [Direction]) -> Result<Vec<Vec<Act>>, TestbedError> {
        let fault = &self.setup.faults[fault];
        let before = directions.to_vec();
        for link in &fault.links {
            let own = &mut directions[link.0 as usize];
            let chances = &mut own.chances;
            match fault.action {
                FaultAction::Down => own.is_down = true,
                // A restored link has no impairments.
                FaultAction::Up => *own = Direction::default(),
                FaultAction::Degrade(_) | FaultAction::Deny | FaultAction::Allow => {}
                FaultAction::Loss { per_billion } => chances.loses = per_billion,
                FaultAction::Corrupt { per_billion } => chances.damages = per_billion,
                FaultAction::Duplicate { per_billion } => chances.repeats = per_billion,
                FaultAction::Delay { delay, jitter } => own.delay = Some([delay, jitter]),
            }
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        if let FaultAction::Degrade(rate) = fault.action {
            for link in &fault.links {
                let (node, other) = self.ends(*link);
                first.extend(self.prepare_speed(*link)?.then_some(Act::Speed(*link, rate.0)));
                let batch = self.batch(Program::Tc, node)?;
                first.push(Act::Lines(batch, self.fabric.rate_lines(node, other, rate.0)));
            }
            return Ok(vec![first]);
        }
        let is_cut = |directions: &[Direction], link: LinkId| {
            directions[link.0 as usize].is_down && directions[link.reverse().0 as usize].is_down
        };
        // A change of one direction may change how the other one is taken down.
        let both: BTreeSet<LinkId> = fault.links.iter().flat_map(|link| [*link, link.reverse()]).collect();
        let mut restored = BTreeSet::new();
        for link in both {
            let ((node, other), cut) = (self.ends(link), is_cut(directions, link));
            if cut != is_cut(&before, link) {
                let line = match cut {
                    true => self.fabric.down_line(other, Note { was_cut: true, ..Note::default() }),
                    false => format!("link set {} up\n", self.fabric.name(other)),
                };
                first.push(Act::Lines(self.batch(Program::Ip, node)?, line));
                restored.extend((!cut).then_some(node));
            }
            let (was, is) = (before[link.0 as usize], directions[link.0 as usize]);
            if let Some(times) = is.delay.filter(|_| is.delay != was.delay) {
                let (own, _) = self.delay(link, times)?;
                first.push(Act::Times(own, times));
            }
            let chances = |of: Direction, is_cut: bool, detour: u32| Chances {
                loses: if of.is_down && !is_cut { ALWAYS } else { of.chances.loses },
                detour: if of.delay.is_some() { detour } else { 0 },
                ..of.chances
            };
            let detour = self.delays.get(&link).map_or(0, |(_, index)| *index);
            let now = chances(is, cut, detour);
            if now != chances(was, is_cut(&before, link), detour) {
                self.prepare_settings(link)?;
                first.push(Act::Chances(link, now));
            }
        }
        for node in restored {
            // The kernel removed the routes when the ports went down.
            let out = self.setup.topology.links.iter().enumerate().filter(|(_, link)| link.from.0 as usize == node);
            let up = out.filter(|(number, _)| !is_cut(directions, LinkId(*number as u32)));
            let up: Vec<usize> = up.map(|(_, link)| link.to.0 as usize).collect();
            second.push(Act::Lines(self.batch(Program::Ip, node)?, self.fabric.routes(node, &up)));
        }
        Ok(vec![first, second])
    }

    fn batch(&mut self, program: Program, node: usize) -> Result<(Program, usize), TestbedError> {
        if let Entry::Vacant(vacant) = self.batches.entry((program, node)) {
            vacant.insert(Batch::start(program, &self.fabric.namespace(node))?);
        }
        Ok((program, node))
    }

    fn prepare_settings(&mut self, link: LinkId) -> Result<(), TestbedError> {
        let (from, to) = self.ends(link);
        if let Entry::Vacant(vacant) = self.settings.entry(link) {
            vacant.insert(harm::prepare(&self.fabric.net, from, to)?);
        }
        Ok(())
    }

    /// Returns `false` if the link has no virtual queue.
    fn prepare_speed(&mut self, link: LinkId) -> Result<bool, TestbedError> {
        let (node, other) = self.ends(link);
        let Entry::Vacant(vacant) = self.speeds.entry(link) else { return Ok(true) };
        let speed = self.fabric.speed(node, other)?;
        Ok(speed.map(|speed| vacant.insert(speed)).is_some())
    }

    fn delay(&mut self, link: LinkId, times: [Time; 2]) -> Result<(Arc<Times>, u32), TestbedError> {
        if let Some(delay) = self.delays.get(&link) {
            return Ok(delay.clone());
        }
        let ((from, to), own) = (self.ends(link), Arc::new(Times::new(times)));
        let index = self.fabric.harms.prepare_delay(&self.fabric.net, from, to, own.clone())?;
        self.delays.insert(link, (own.clone(), index));
        Ok((own, index))
    }

    /// Applies the faults of time zero, before the clock of the run starts.
    fn begin(&mut self) -> Result<Vec<Effect>, TestbedError> {
        let mut effects = Vec::new();
        while self.steps.get(self.next).is_some_and(|step| step.at == Time::ZERO) {
            effects.push((self.make()?, Time::ZERO));
        }
        Ok(effects)
    }

    /// Applies the other faults until `stop` is closed. Returns when they took effect, and the error of one that failed.
    fn run(mut self, start: Instant, stop: &Receiver<Go>) -> (Vec<Effect>, Option<TestbedError>) {
        let mut effects = Vec::new();
        while let Some(step) = self.steps.get(self.next) {
            let due = start + Duration::from_nanos(step.at.ps() / 1000);
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                match stop.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => continue,
                    _ => break,
                }
            }
            match self.make() {
                Ok(fault) => {
                    let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000);
                    effects.push((fault, Time::from_ns(nanoseconds)));
                }
                Err(error) => return (effects, Some(error)),
            }
        }
        (effects, None)
    }

    fn make(&mut self) -> Result<usize, TestbedError> {
        let step = &self.steps[self.next];
        self.next += 1;
        let missing = || TestbedError::Input("a fault was not prepared".into());
        for stage in &step.stages {
            let mut busy = BTreeSet::new();
            for act in stage {
                match act {
                    Act::Lines(batch, lines) => {
                        // A batch confirms every write with one line, so each write requires a wait before the next one.
                        let of = self.batches.get_mut(batch).ok_or_else(missing)?;
                        if !busy.insert(*batch) {
                            of.wait()?;
                        }
                        of.write(lines)?;
                    }
                    Act::Chances(link, chances) => self.settings[link].set(*chances)?,
                    Act::Times(own, times) => own.set(*times),
                    Act::Speed(link, rate) => self.speeds[link].set(*rate)?,
                }
            }
            for batch in busy {
                self.batches.get_mut(&batch).ok_or_else(missing)?.wait()?;
            }
        }
        Ok(step.fault)
    }
}
