//! Process groups for `torch.distributed`: a rank of a group over this process' network plugin.

use anabranch_collective::group::{self, Block, DTYPES, GroupError, Job, KINDS, Listening, REDUCTIONS};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Interval of checks for signals while a caller waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Address and bytes of a tensor.
type Memory = (usize, usize);

fn blocks(of: Vec<Memory>) -> Vec<Block> {
    of.into_iter().map(|(at, len)| Block { at, len }).collect()
}

fn wrong(error: GroupError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

fn named<T: Copy>(what: &str, name: &str, all: &[(&'static str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(of, _)| *of).collect();
        PyValueError::new_err(format!("{what} {name}: allowed are {}", names.join(", ")))
    })
}

enum Stage {
    Listening(Listening),
    Joined(Arc<group::Group>),
    Closed,
}

/// A rank of a process group.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Group(Mutex<Stage>);

/// An operation of a group.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Work(group::Work, Arc<group::Group>);

impl Group {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    /// Calls `with` without a lock: callbacks of operations that are done may start others.
    fn begin(
        &self,
        py: Python<'_>,
        with: impl Send + FnOnce(&group::Group) -> Result<group::Work, GroupError>,
    ) -> PyResult<Work> {
        let joined = match &*self.stage() {
            Stage::Joined(joined) => Arc::clone(joined),
            _ => return Err(PyRuntimeError::new_err("this group is not connected, or closed")),
        };
        let work = py.detach(|| with(&joined)).map_err(wrong)?;
        Ok(Work(work, joined))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        Python::attach(|py| self.close(py));
    }
}

#[pymethods]
impl Group {
    /// Reads the variables and listens.
    #[new]
    fn new(py: Python<'_>, rank: usize, size: usize) -> PyResult<Self> {
        let listening = py.detach(|| Listening::begin(rank, size)).map_err(wrong)?;
        Ok(Group(Mutex::new(Stage::Listening(listening))))
    }

    /// Returns the address for the other ranks.
    fn address<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match &*self.stage() {
            Stage::Listening(listening) => Ok(PyBytes::new(py, &listening.address())),
            _ => Err(PyRuntimeError::new_err("this group is connected already, or closed")),
        }
    }

    /// Connects to all others, by their addresses in the order of ranks.
    fn connect(&self, py: Python<'_>, addresses: Vec<Vec<u8>>, timeout_s: f64) -> PyResult<()> {
        let mut stage = self.stage();
        let Stage::Listening(listening) = std::mem::replace(&mut *stage, Stage::Closed) else {
            return Err(PyRuntimeError::new_err("this group is connected already, or closed"));
        };
        let joined = py.detach(|| listening.connect(&addresses, seconds(timeout_s)));
        *stage = Stage::Joined(Arc::new(joined.map_err(wrong)?));
        Ok(())
    }

    /// Starts a collective over memory that `keep` owns.
    #[expect(clippy::too_many_arguments, reason = "a collective has as many")]
    fn start(
        &self,
        py: Python<'_>,
        kind: &str,
        dtype: &str,
        reduction: &str,
        root: usize,
        inputs: Vec<Memory>,
        outputs: Vec<Memory>,
        keep: Py<PyAny>,
        timeout_s: f64,
    ) -> PyResult<Work> {
        let (kind, dtype) = (named("collective", kind, KINDS)?, named("type", dtype, DTYPES)?);
        let reduction = named("reduction", reduction, REDUCTIONS)?;
        let job = Job { kind, dtype, reduction, root, inputs: blocks(inputs), outputs: blocks(outputs) };
        // SAFETY: the package passes tensors of the processor with their sizes; `keep` owns them until the work is done, and
        // PyTorch's contract forbids access to them meanwhile.
        #[expect(unsafe_code)]
        self.begin(py, |group| unsafe { group.start(job, Box::new(keep), seconds(timeout_s)) })
    }

    /// Starts to send a message.
    fn send(
        &self,
        py: Python<'_>,
        to: usize,
        tag: u32,
        memory: Memory,
        keep: Py<PyAny>,
        timeout_s: f64,
    ) -> PyResult<Work> {
        let block = Block { at: memory.0, len: memory.1 };
        // SAFETY: as in `start`.
        #[expect(unsafe_code)]
        self.begin(py, |group| unsafe { group.send(to, tag, block, Box::new(keep), seconds(timeout_s)) })
    }

    /// Starts to receive a message; `None`: from any rank.
    fn receive(
        &self,
        py: Python<'_>,
        of: Option<usize>,
        tag: u32,
        memory: Memory,
        keep: Py<PyAny>,
        timeout_s: f64,
    ) -> PyResult<Work> {
        let block = Block { at: memory.0, len: memory.1 };
        // SAFETY: as in `start`.
        #[expect(unsafe_code)]
        self.begin(py, |group| unsafe { group.receive(of, tag, block, Box::new(keep), seconds(timeout_s)) })
    }

    /// Ends the group.
    fn close(&self, py: Python<'_>) {
        let stage = std::mem::replace(&mut *self.stage(), Stage::Closed);
        py.detach(move || {
            if let Stage::Joined(joined) = stage {
                joined.close();
            }
        });
    }
}

fn seconds(of: f64) -> Duration {
    Duration::try_from_secs_f64(of).unwrap_or(Duration::from_secs(86_400 * 365))
}

#[pymethods]
impl Work {
    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Returns the error of the operation; `None`: it is in progress, or has none.
    fn error(&self) -> Option<String> {
        self.0.result()?.err()
    }

    /// Waits until it is done and returns the rank that sent the message of a receive.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<usize> {
        let begin = Instant::now();
        let max = seconds(timeout_s);
        loop {
            if let Some(result) = self.0.result() {
                return result.map_err(PyRuntimeError::new_err);
            }
            if begin.elapsed() >= max {
                return Err(PyRuntimeError::new_err(format!("the operation is not done after {timeout_s} s")));
            }
            let left = max.saturating_sub(begin.elapsed()).min(POLL_INTERVAL);
            py.detach(|| self.1.wait(&self.0, left));
            py.check_signals()?;
        }
    }

    /// Calls `callback` when the operation is done, in any thread.
    fn on_done(&self, callback: Py<PyAny>) {
        self.0.on_done(move || {
            // The interpreter may be ending; an error of the callback has no other receiver.
            let _ = Python::try_attach(|py| callback.call0(py).map_err(|error| error.write_unraisable(py, None)));
        });
    }
}
