//! Statistics pages of running processes (NCCL jobs), and requests to them.

use crate::error;
use nccl_net_anabranch::page::{self, AgentLock, Slot, State};
use pyo3::{prelude::*, types::PyBytes};
use std::{
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The page of a process, locked for one agent.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Page {
    path: PathBuf,
    lock: Mutex<Option<AgentLock>>,
}

/// Process, scheme, time of writing in nanoseconds since 1970; device, number and peer of each connection and whether it is open;
/// labels per connection; packets, bytes, acknowledgements, mean round trip in nanoseconds, marks, losses and moves of each label.
type Reading = (u32, String, u64, Vec<(u32, u32, String, bool)>, usize, Py<PyBytes>);

/// Pages, and files that are none with the reason.
type Pages = (Vec<PathBuf>, Vec<(PathBuf, String)>);

/// Returns the pages in a folder.
#[pyfunction]
pub(crate) fn pages(folder: PathBuf) -> PyResult<Pages> {
    let found = page::pages(&folder)?;
    Ok((found.pages, found.skipped.into_iter().map(|of| (of.path, of.reason)).collect()))
}

#[pymethods]
impl Page {
    /// Locks the page at `path`; `BlockingIOError`: another agent has it.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let lock = Mutex::new(Some(AgentLock::take(&path)?));
        Ok(Page { path, lock })
    }

    /// Reads it.
    fn read(&self, py: Python<'_>) -> PyResult<Reading> {
        let seen = py.detach(|| page::read(&self.path))?;
        let connections: Vec<&[Slot]> =
            seen.slots.chunk_by(|a, b| (a.device, a.connection) == (b.device, b.connection)).collect();
        let labels = connections.iter().map(|slots| slots.len()).max().unwrap_or(0);
        if connections.iter().any(|slots| slots.len() != labels) {
            return Err(error::unexpected("connections of one page have different numbers of labels"));
        }
        let rows = seen.slots.iter().flat_map(|slot| {
            [slot.packets, slot.bytes, slot.answers, slot.rtt_mean, slot.marks, slot.losses, slot.moves]
        });
        let bytes: Vec<u8> = rows.flat_map(u64::to_ne_bytes).collect();
        let names = connections.iter().map(|slots| {
            let Slot { device, connection, state, .. } = slots[0];
            (device, connection, slots[0].peer().to_string(), state != State::Failed as u32)
        });
        let names = names.collect();
        Ok((seen.pid, seen.scheme, seen.written_at, names, labels, PyBytes::new(py, &bytes).unbind()))
    }

    /// Sends a request and returns the response.
    fn request(&self, py: Python<'_>, settings: &str, timeout_ms: u64) -> PyResult<String> {
        py.detach(|| page::request(&self.path, settings, Duration::from_millis(timeout_ms))).map_err(|error| {
            let is_refused = error.kind() == io::ErrorKind::InvalidData;
            if is_refused { pyo3::exceptions::PyValueError::new_err(error.to_string()) } else { error.into() }
        })
    }

    /// Unlocks it.
    fn close(&self) {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
