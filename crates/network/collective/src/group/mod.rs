//! A group of ranks in different processes that share collectives and messages over this process' plugin: what
//! `torch.distributed` calls a process group. Ranks exchange addresses elsewhere.
//!
//! A thread per group works while operations are open and no caller waits for them; a caller that waits works itself.

mod memory;
mod message;
mod peer;
mod program;
mod reduce;
mod state;
mod work;

pub use program::{Block, Job, KINDS, Kind};
pub use reduce::{DTYPES, Dtype, REDUCTIONS, Reduction};
pub use work::{Keep, Work};

use crate::plugin::{self, Handle, Opaque, Plugin, PluginError};
use peer::{LANES, Lane, Peer};
use state::State;
use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use work::Ticket;

/// Device of all groups.
const DEVICE: u8 = 0;
/// Time without progress before a thread waits for packets: a wake-up takes as long.
const SPIN: Duration = Duration::from_micros(50);
/// Longest wait for packets: another group's thread may receive them.
const WAIT: Duration = Duration::from_micros(200);
/// Time without operations after which a group's thread sleeps until there is one.
const CALM: Duration = Duration::from_millis(2);

/// Errors of joining a group or of starting an operation.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("{0}")]
    Text(String),
}

/// The plugin of this process while groups use it.
fn shared_plugin() -> Result<Arc<Plugin>, PluginError> {
    static SHARED: Mutex<Weak<Plugin>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plugin) = shared.upgrade() {
        return Ok(plugin);
    }
    let plugin = Arc::new(Plugin::linked()?);
    *shared = Arc::downgrade(&plugin);
    Ok(plugin)
}

/// A rank that listens for the others of its group.
#[derive(Debug)]
pub struct Listening {
    plugin: Arc<Plugin>,
    rank: usize,
    ranks: usize,
    /// Of each other rank, for each lane.
    listeners: Vec<Vec<(Handle, Opaque)>>,
}

/// Beginning of an address, before the settings.
const MAGIC: &str = "anabranch group";

impl Listening {
    /// Reads the variables, opens the device if no group has, and listens.
    pub fn begin(rank: usize, ranks: usize) -> Result<Self, GroupError> {
        if ranks == 0 || rank >= ranks {
            return Err(GroupError::Text(format!("rank {rank} of {ranks}: allowed are ranks below the size")));
        }
        plugin::keep_log();
        let plugin = shared_plugin()?;
        let mut listeners = Vec::with_capacity(ranks);
        for of in 0..ranks {
            let lanes = if of == rank { 0 } else { LANES };
            let of = (0..lanes).map(|_| plugin.listen(DEVICE.into())).collect::<Result<_, _>>()?;
            listeners.push(of);
        }
        Ok(Listening { plugin, rank, ranks, listeners })
    }

    fn settings(&self) -> String {
        let settings = nccl_net_anabranch::settings().unwrap_or_default();
        format!("{MAGIC} of {} ranks, {settings}", self.ranks)
    }

    /// Returns the address of this rank, which every other passes to [`Listening::connect`].
    pub fn address(&self) -> Vec<u8> {
        let mut out = self.settings().into_bytes();
        out.push(0);
        self.listeners.iter().flatten().for_each(|(handle, _)| out.extend_from_slice(handle));
        out
    }

    /// Returns the handles for this rank in the address of another.
    fn handles(&self, from: usize, address: &[u8]) -> Result<[Handle; LANES], GroupError> {
        let ours = self.settings();
        let end = address.iter().position(|byte| *byte == 0).unwrap_or(address.len());
        let theirs = String::from_utf8_lossy(&address[..end]);
        if theirs != ours {
            let (theirs, ours) = (theirs.trim_start_matches(MAGIC), ours.trim_start_matches(MAGIC));
            let rank = self.rank;
            return Err(GroupError::Text(format!(
                "rank {from} is{theirs}; rank {rank} is{ours}; give all ranks the same package, ANABRANCH_* variables and world size"
            )));
        }
        let size = size_of::<Handle>();
        let first = if self.rank > from { self.rank - 1 } else { self.rank } * LANES;
        let handle = |lane: usize| address.get(end + 1 + (first + lane) * size..)?.first_chunk().copied();
        let all = [handle(0), handle(1), handle(2)];
        match all {
            [Some(a), Some(b), Some(c)] => Ok([a, b, c]),
            _ => {
                Err(GroupError::Text(format!("the address of rank {from} is too short: another store key, or damaged")))
            }
        }
    }

    /// Connects to all others, by their addresses in the order of ranks.
    pub fn connect(self, addresses: &[Vec<u8>], timeout: Duration) -> Result<Group, GroupError> {
        plugin::keep_log();
        let lanes = self.try_connect(addresses, timeout);
        for (_, listener) in self.listeners.iter().flatten() {
            let _ = self.plugin.close_listener(*listener);
        }
        let peers = lanes?.into_iter().enumerate().map(|(of, lanes)| (of != self.rank).then(|| Peer::new(lanes)));
        Group::new(State::new(Arc::clone(&self.plugin), self.rank, peers.collect()), self.ranks)
    }

    fn try_connect(&self, addresses: &[Vec<u8>], timeout: Duration) -> Result<Vec<[Lane; LANES]>, GroupError> {
        if addresses.len() != self.ranks {
            let count = addresses.len();
            return Err(GroupError::Text(format!("{count} addresses for a group of {}", self.ranks)));
        }
        let lanes = self.ranks * LANES;
        let mut handles: Vec<Option<Handle>> = vec![None; lanes];
        for (of, address) in addresses.iter().enumerate().filter(|(of, _)| *of != self.rank) {
            let found = self.handles(of, address)?;
            found.into_iter().enumerate().for_each(|(lane, handle)| handles[of * LANES + lane] = Some(handle));
        }
        let (mut senders, mut receivers): (Vec<Option<Opaque>>, Vec<Option<Opaque>>) =
            (vec![None; lanes], vec![None; lanes]);
        let until = Instant::now() + timeout;
        loop {
            let mut missing = None;
            for at in 0..lanes {
                let (of, lane) = (at / LANES, at % LANES);
                let Some(handle) = &mut handles[at] else { continue };
                if senders[at].is_none() {
                    senders[at] = self.plugin.connect(DEVICE.into(), handle)?;
                }
                if receivers[at].is_none() {
                    receivers[at] = self.plugin.accept(self.listeners[of][lane].1)?;
                }
                if senders[at].is_none() || receivers[at].is_none() {
                    missing = missing.or(Some(of));
                }
            }
            let Some(missing) = missing else { break };
            if Instant::now() > until {
                let (rank, seconds) = (self.rank, timeout.as_secs_f64());
                return Err(GroupError::Text(format!(
                    "rank {rank} has no connection with rank {missing} after {seconds} s: its address must be reachable by UDP at all its ports"
                )));
            }
            nccl_net_anabranch::wait(DEVICE, WAIT);
        }
        let lane = |at: usize| match (senders[at], receivers[at]) {
            (Some(sender), Some(receiver)) => Lane { sender, receiver },
            // Of this rank itself: nothing uses it.
            _ => Lane { sender: Opaque::NULL, receiver: Opaque::NULL },
        };
        Ok((0..self.ranks).map(|of| std::array::from_fn(|at| lane(of * LANES + at))).collect())
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    ranks: usize,
    /// Callers that wait, and work meanwhile.
    waiters: AtomicUsize,
    is_asleep: AtomicBool,
    is_closed: AtomicBool,
    wake: Condvar,
    lock: Mutex<()>,
}

/// A rank's part of a group.
#[derive(Debug)]
pub struct Group {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `with` and works; returns `true` if something moved, and if operations are open.
    fn turn(&self, with: impl FnOnce(&mut State)) -> (bool, bool) {
        plugin::keep_log();
        let mut state = self.state();
        with(&mut state);
        let moved = state.progress();
        let is_busy = state.is_busy();
        let finished = std::mem::take(&mut state.finished);
        drop(state);
        // Callbacks may need a lock of the caller's, such as the interpreter's.
        finished.into_iter().for_each(work::Finished::deliver);
        (moved, is_busy)
    }

    /// Works until `is_over`, which is called with `true` while operations are open.
    fn work(&self, mut is_over: impl FnMut(bool) -> bool) {
        let mut last = Instant::now();
        loop {
            let (moved, is_busy) = self.turn(|_| ());
            if is_over(is_busy) {
                return;
            }
            if moved {
                last = Instant::now();
            } else if last.elapsed() < SPIN {
                std::thread::yield_now();
            } else {
                nccl_net_anabranch::wait(DEVICE, WAIT);
            }
        }
    }

    fn serve(&self) {
        let mut last = Instant::now();
        while !self.is_closed.load(Ordering::Acquire) {
            if self.waiters.load(Ordering::Acquire) == 0 {
                self.work(|is_busy| {
                    last = if is_busy { Instant::now() } else { last };
                    !is_busy || self.waiters.load(Ordering::Acquire) > 0
                });
            } else {
                last = Instant::now();
            }
            let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() < CALM {
                let nap = if self.waiters.load(Ordering::Acquire) > 0 { CALM } else { WAIT };
                let _ = self.wake.wait_timeout(lock, nap);
                continue;
            }
            self.is_asleep.store(true, Ordering::SeqCst);
            if !self.state().is_busy() && !self.is_closed.load(Ordering::Acquire) {
                // Packets of operations that this rank has not started are received by the plugin's thread.
                drop(self.wake.wait(lock));
            }
            self.is_asleep.store(false, Ordering::SeqCst);
            last = Instant::now();
        }
    }

    fn wake(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }
}

impl Group {
    fn new(state: State, ranks: usize) -> Result<Self, GroupError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            ranks,
            waiters: AtomicUsize::new(0),
            is_asleep: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            wake: Condvar::new(),
            lock: Mutex::new(()),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("anabranch group".into()).spawn(move || theirs.serve());
        let thread = thread.map_err(|error| GroupError::Text(format!("no thread: {error}")))?;
        Ok(Group { shared, thread: Mutex::new(Some(thread)) })
    }

    fn begin(&self, keep: Keep, timeout: Duration, with: impl FnOnce(&mut State, Ticket)) -> Result<Work, GroupError> {
        let ticket = Ticket::new(keep, timeout);
        let (work, mut failed) = (ticket.work.clone(), None);
        let (_, is_busy) = self.shared.turn(|state| match &state.failed {
            Some(reason) => failed = Some(reason.clone()),
            None => with(state, ticket),
        });
        if let Some(reason) = failed {
            return Err(GroupError::Text(format!("this group has failed before: {reason}; create it anew")));
        }
        if is_busy && self.shared.is_asleep.load(Ordering::SeqCst) {
            self.shared.wake();
        }
        Ok(work)
    }

    /// Starts a collective.
    ///
    /// # Safety
    /// Its blocks must exist until it is done; meanwhile nothing else may write to inputs or access outputs.
    #[expect(unsafe_code)]
    pub unsafe fn start(&self, job: Job, keep: Keep, timeout: Duration) -> Result<Work, GroupError> {
        check(&job, self.shared.ranks, self.shared.state().rank)?;
        self.begin(keep, timeout, |state, ticket| state.start(job, ticket))
    }

    /// Starts to send a message to a rank.
    ///
    /// # Safety
    /// As [`Group::start`].
    #[expect(unsafe_code)]
    pub unsafe fn send(
        &self,
        to: usize,
        tag: u32,
        block: Block,
        keep: Keep,
        timeout: Duration,
    ) -> Result<Work, GroupError> {
        self.is_other(to)?;
        self.begin(keep, timeout, |state, ticket| state.send(to, tag, block, ticket))
    }

    /// Starts to receive a message from a rank, or from any.
    ///
    /// # Safety
    /// As [`Group::start`].
    #[expect(unsafe_code)]
    pub unsafe fn receive(
        &self,
        from: Option<usize>,
        tag: u32,
        block: Block,
        keep: Keep,
        timeout: Duration,
    ) -> Result<Work, GroupError> {
        from.map_or(Ok(()), |from| self.is_other(from))?;
        self.begin(keep, timeout, |state, ticket| state.receive(from, tag, block, ticket))
    }

    fn is_other(&self, rank: usize) -> Result<(), GroupError> {
        let (ranks, own) = (self.shared.ranks, self.shared.state().rank);
        if rank < ranks && rank != own {
            return Ok(());
        }
        Err(GroupError::Text(format!("rank {rank}: allowed are ranks below {ranks} other than this one, {own}")))
    }

    /// Works until the operation is done, at most `max`.
    pub fn wait(&self, work: &Work, max: Duration) {
        let shared = &self.shared;
        let until = Instant::now() + max;
        shared.waiters.fetch_add(1, Ordering::AcqRel);
        shared.work(|_| work.is_done() || Instant::now() >= until);
        let were = shared.waiters.fetch_sub(1, Ordering::AcqRel);
        // Operations that no one waits for any more are the thread's.
        if were == 1 && shared.is_asleep.load(Ordering::SeqCst) && shared.state().is_busy() {
            shared.wake();
        }
    }

    /// Ends the group: open operations fail, and no memory is accessed any more.
    pub fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.wake();
        self.shared.turn(State::close);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.close();
    }
}

/// Checks numbers and sizes of the blocks of a collective, which the steps rely on.
fn check(job: &Job, ranks: usize, rank: usize) -> Result<(), GroupError> {
    let is_root = job.root == rank;
    let (inputs, outputs) = match job.kind {
        Kind::Barrier => (0, 0),
        Kind::AllReduce | Kind::Broadcast | Kind::Reduce => (0, 1),
        Kind::AllGather => (1, ranks),
        Kind::ReduceScatter => (ranks, 1),
        Kind::AllToAll => (ranks, ranks),
        Kind::Gather => (1, if is_root { ranks } else { 0 }),
        Kind::Scatter => (if is_root { ranks } else { 0 }, 1),
    };
    let name = job.kind.name();
    let wrong = |text: String| Err(GroupError::Text(format!("{name}: {text}")));
    if job.root >= ranks {
        return wrong(format!("root {}, allowed are ranks below {ranks}", job.root));
    }
    if (job.inputs.len(), job.outputs.len()) != (inputs, outputs) {
        let found = (job.inputs.len(), job.outputs.len());
        return wrong(format!("{} inputs and {} outputs, expected {inputs} and {outputs}", found.0, found.1));
    }
    let mut blocks = job.inputs.iter().chain(&job.outputs).map(|block| block.len);
    if job.kind != Kind::AllToAll
        && let Some(first) = blocks.next()
        && let Some(other) = blocks.find(|other| *other != first)
    {
        return wrong(format!("tensors of {first} B and {other} B, expected one size"));
    }
    if job.kind == Kind::AllToAll && job.inputs[rank].len != job.outputs[rank].len {
        let (from, to) = (job.inputs[rank].len, job.outputs[rank].len);
        return wrong(format!("rank {rank} sends itself {from} B and expects {to} B"));
    }
    Ok(())
}
