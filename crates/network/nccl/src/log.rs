//! What we say, through NCCL's own logger: it adds host, process and rank, and `NCCL_DEBUG` decides what is shown.

#![allow(unsafe_code)]

use crate::abi::{LOG_INFO, LOG_NET, LOG_TRACE, LOG_WARN, Logger};
use anabranch_random::name_key;
use std::{
    ffi::{CString, c_int},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What is wrong.
    Warn,
    /// What was chosen, and which connections come and go.
    Info,
    /// Every call that changes something.
    Trace,
}

impl Level {
    fn number(self) -> c_int {
        match self {
            Level::Warn => LOG_WARN,
            Level::Info => LOG_INFO,
            Level::Trace => LOG_TRACE,
        }
    }
}

struct Log {
    logger: Option<Logger>,
    most: Level,
    /// What was said last, which is not said twice in a row: a hash of it, since nobody gives memory back when the library goes.
    last: u64,
}

static LOG: Mutex<Log> = Mutex::new(Log { logger: None, most: Level::Info, last: 0 });

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// NCCL's logger from now on; `None`: nothing is said.
pub(crate) fn to(logger: Option<Logger>) {
    log().logger = logger;
}

/// Says no more than `level`.
pub(crate) fn at_most(level: Level) {
    log().most = level;
}

/// Says a line.
pub(crate) fn say(level: Level, message: &str) {
    let mut log = log();
    let hash = name_key(message);
    let Some(logger) = log.logger.filter(|_| level <= log.most && log.last != hash) else { return };
    log.last = hash;
    drop(log);
    // A NUL in a message would be a mistake of ours, and no reason to say nothing.
    let Ok(line) = CString::new(format!("NET/Anabranch: {}", message.replace('\0', " "))) else { return };
    // SAFETY: the logger is a printf of NCCL's that outlives every call into this library; the format takes one string.
    unsafe { logger(level.number(), LOG_NET, c"anabranch".as_ptr(), 0, c"%s".as_ptr(), line.as_ptr()) }
}
