//! Helper thread that does what is due where NCCL has not called for a while: late ACKs, retransmissions, final messages. It
//! sleeps while NCCL calls, and ends before the last communicator is closed: NCCL unloads the library then.

use crate::{
    process::Process,
    thread::{self, Thread},
};
use anabranch_units::Time;
use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Time without a call of NCCL's after which the thread works.
const TICK: Duration = Duration::from_micros(500);
/// Sleep time while NCCL calls, or while the network is idle.
const SLEEP: Duration = Duration::from_millis(2);
/// Ticks without activity after which the network counts as idle.
const CALM: u32 = 20;

/// The helper thread, which exists while there are communicators.
#[derive(Debug, Default)]
pub(crate) struct Helper {
    running: Mutex<Running>,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Running {
    communicators: usize,
    thread: Option<Thread>,
}

#[derive(Debug, Default)]
struct Signal {
    stop: Mutex<bool>,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Helper {
    /// Adds a communicator, and starts the thread with the first one.
    pub(crate) fn begin(&self, process: &Arc<Process>) -> io::Result<()> {
        let mut running = lock(&self.running);
        if running.thread.is_none() {
            *lock(&self.signal.stop) = false;
            let (signal, process) = (Arc::clone(&self.signal), Arc::clone(process));
            running.thread = Some(thread::spawn(move || run(&signal, &process))?);
        }
        running.communicators += 1;
        Ok(())
    }

    /// Removes a communicator, and ends the thread with the last one.
    pub(crate) fn end(&self) {
        let mut running = lock(&self.running);
        running.communicators = running.communicators.saturating_sub(1);
        if running.communicators == 0 {
            self.join(&mut running);
        }
    }

    pub(crate) fn stop(&self) {
        let mut running = lock(&self.running);
        running.communicators = 0;
        self.join(&mut running);
    }

    fn join(&self, running: &mut Running) {
        *lock(&self.signal.stop) = true;
        self.signal.changed.notify_all();
        if let Some(thread) = running.thread.take() {
            thread.join();
        }
    }
}

fn run(signal: &Signal, process: &Process) {
    let (mut pause, mut calm) = (TICK, 0);
    let mut stop = lock(&signal.stop);
    while !*stop {
        (stop, _) = signal.changed.wait_timeout(stop, pause).unwrap_or_else(PoisonError::into_inner);
        if *stop {
            return;
        }
        drop(stop);
        let (is_active, called) = process.help(Time::from_us(TICK.as_micros() as u64));
        calm = if is_active || called { 0 } else { calm + 1 };
        pause = if called || calm > CALM { SLEEP } else { TICK };
        stop = lock(&signal.stop);
    }
}
