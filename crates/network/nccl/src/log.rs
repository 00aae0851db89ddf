//! Log lines, through NCCL's own logger: it adds host, process and rank, and `NCCL_DEBUG` selects what is shown.

#![allow(unsafe_code)]

use crate::abi::{LOG_INFO, LOG_NET, LOG_TRACE, LOG_WARN, Logger};
use anabranch_random::name_key;
use std::{
    ffi::{CString, c_int},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Warn,
    /// Selected options, and connections that open and close.
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
    max: Level,
    /// Hash of the last line, which is not repeated. A hash, since no memory could be freed when the library is unloaded.
    last: u64,
}

static LOG: Mutex<Log> = Mutex::new(Log { logger: None, max: Level::Info, last: 0 });

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets NCCL's logger; `None`: nothing is logged.
pub(crate) fn to(logger: Option<Logger>) {
    let mut log = log();
    (log.logger, log.last) = (logger, 0);
}

pub(crate) fn at_most(level: Level) {
    log().max = level;
}

pub(crate) fn say(level: Level, message: &str) {
    let mut log = log();
    let hash = name_key(message);
    let Some(logger) = log.logger.filter(|_| level <= log.max && log.last != hash) else { return };
    log.last = hash;
    drop(log);
    // A NUL in a message would be a bug of the plugin; the line is logged without it.
    let Ok(line) = CString::new(format!("NET/Anabranch: {}", message.replace('\0', " "))) else { return };
    // SAFETY: the logger is a printf of NCCL's that outlives every call into this library; the format takes one string.
    unsafe { logger(level.number(), LOG_NET, c"anabranch".as_ptr(), 0, c"%s".as_ptr(), line.as_ptr()) }
}
