//! A run that Python steers, turn by turn, on a thread of its own.

use crate::{error, run::Outcome, scenario::Scenario};
use anabranch_backend::{Connection, FlowKeys, Setup, Steering, Turn};
use anabranch_scenario::{ScenarioError, backend::SIMULATOR};
use anabranch_study::{
    error::RunError,
    results::{self, Ran},
};
use anabranch_units::Time;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
    mpsc::{Receiver, RecvTimeoutError, Sender, channel},
};

/// Cells of an observation: a connection and a tag each.
const MAX_CELLS: usize = 1 << 22;

enum Message {
    Begins(Begins),
    Turn(Turn),
    Ended(Box<Result<Ran, RunError>>),
}

/// Names of sender and receiver of each connection, and the number of flows.
type Begins = (Vec<(String, String)>, usize);

/// A run in progress. Without its owner it ends.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Env {
    messages: Mutex<Receiver<Message>>,
    answers: Mutex<Option<Sender<Vec<f32>>>>,
    stop: Arc<AtomicBool>,
    scenario: Arc<anabranch_scenario::scenario::Scenario>,
}

/// Simulated time in picoseconds, readings, flows finished, time that flows were open, in picoseconds; results at the end.
type Step = (u64, Py<PyBytes>, u64, u64, Option<Outcome>);

fn steered(setup: &mut Setup, tags: usize, interval: Time) -> Result<Begins, ScenarioError> {
    let mut connections = Connection::of(&setup.flows, setup.fabric.flow_keys != FlowKeys::Connection);
    connections.retain(|of| {
        let workload = &setup.flows.workloads[usize::from(of.workload)];
        setup.load_balancers[usize::from(workload.load_balancer)].host.capabilities().can_be_steered()
    });
    if connections.is_empty() {
        return Err(ScenarioError::new("no connection uses `qp-spray`, whose chunks an agent spreads")
            .help("set load_balancer.scheme and that of each workload to qp-spray"));
    }
    if connections.len().saturating_mul(tags) > MAX_CELLS {
        let found = connections.len();
        return Err(ScenarioError::new(format!(
            "{found} connections with {tags} labels each are too many for an agent; the maximum is {MAX_CELLS} in all"
        )));
    }
    let name = |host: u32| setup.topology.nodes[host as usize].name.clone();
    let names = connections.iter().map(|of| (name(of.src), name(of.dst))).collect();
    setup.steering = Some(Steering { interval, tags, connections, agent: Arc::new(Mutex::new(|_| None)) });
    Ok((names, setup.flows.number_of_flows()))
}

#[pymethods]
impl Env {
    /// Starts a run with `labels` tags per connection and turns each `interval`.
    #[new]
    fn new(scenario: &Scenario, interval: &str, labels: usize) -> PyResult<Self> {
        let interval: Time = interval.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        if interval == Time::ZERO {
            return Err(PyValueError::new_err("expected a time above zero"));
        }
        let (sender, messages) = channel();
        let (answers, theirs) = channel::<Vec<f32>>();
        let stop = Arc::new(AtomicBool::new(false));
        let (scenario, stopped) = (scenario.checked.clone(), stop.clone());
        let checked = scenario.clone();
        let theirs = Arc::new(Mutex::new(theirs));
        let work = move || {
            let turns = sender.clone();
            let prepare = |setup: &mut Setup| {
                let begins = steered(setup, labels, interval)?;
                let (turns, theirs) = (turns.clone(), theirs.clone());
                let _ = turns.send(Message::Begins(begins));
                if let Some(steering) = &mut setup.steering {
                    steering.agent = Arc::new(Mutex::new(move |turn: Turn| {
                        let is_last = turn.is_last;
                        turns.send(Message::Turn(turn)).ok()?;
                        if is_last {
                            return Some(Vec::new());
                        }
                        theirs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
                    }));
                }
                Ok(())
            };
            let go_on = &mut |_: &_| !stopped.load(Ordering::Relaxed);
            let ran = results::run(&checked, &SIMULATOR, 1, &prepare, go_on);
            let _ = sender.send(Message::Ended(Box::new(ran)));
        };
        std::thread::Builder::new().name("anabranch-env".into()).spawn(work).map_err(error::unexpected)?;
        Ok(Env { messages: Mutex::new(messages), answers: Mutex::new(Some(answers)), stop, scenario })
    }

    /// Waits for the beginning of the run; call first.
    fn begins(&self, py: Python<'_>) -> PyResult<Begins> {
        match self.next(py)? {
            Message::Begins(begins) => Ok(begins),
            Message::Ended(ended) => {
                Err(ended.err().map_or_else(|| error::unexpected("the run has ended"), error::run))
            }
            Message::Turn(_) => Err(error::unexpected("a turn before the beginning")),
        }
    }

    /// Replies to the turn before, if any, with weights (32-bit floats) and returns the next.
    fn turn(&self, py: Python<'_>, weights: Option<&[u8]>) -> PyResult<Step> {
        if let Some(weights) = weights {
            let (floats, _) = weights.as_chunks::<4>();
            let weights = floats.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
            let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = answers.as_ref().map(|answers| answers.send(weights));
        }
        let turn = match self.next(py)? {
            Message::Turn(turn) => turn,
            Message::Ended(ended) => {
                return Err(ended.err().map_or_else(|| error::unexpected("the run has ended"), error::run));
            }
            Message::Begins(_) => return Err(error::unexpected("the run begins twice")),
        };
        let ended = match turn.is_last.then(|| self.next(py)).transpose()? {
            Some(Message::Ended(ran)) => Some(Outcome::new(ran.map_err(error::run)?, self.scenario.clone())),
            _ => None,
        };
        let cells = turn
            .readings
            .iter()
            .flat_map(|of| [of.packets, of.bytes, of.samples, of.round_trips.ps(), of.marks, of.losses, of.moves]);
        let bytes: Vec<u8> = cells.flat_map(u64::to_ne_bytes).collect();
        Ok((turn.now.ps(), PyBytes::new(py, &bytes).unbind(), turn.finished, turn.open_time.ps(), ended))
    }

    /// Ends the run.
    fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Env {
    /// Waits for the run, with signals heeded.
    fn next(&self, py: Python<'_>) -> PyResult<Message> {
        loop {
            let next = py.detach(|| {
                let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
                messages.recv_timeout(std::time::Duration::from_millis(50))
            });
            match next {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return Err(error::unexpected("the run has ended")),
            }
        }
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        self.close();
    }
}
