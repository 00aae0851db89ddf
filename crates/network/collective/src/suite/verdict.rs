//! A case, its order and its verdict.

use super::bench::{Bench, KEEPS, Pair};
use crate::plugin::{self, PluginError};
use serde::{Deserialize, Serialize};
use std::{mem::ManuallyDrop, path::PathBuf, sync::atomic::Ordering, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    Fail,
    /// An error or a wait that the contract allows.
    Refused,
    /// It cannot be tried here.
    Skipped,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Refused => "refused",
            Verdict::Skipped => "skipped",
        }
    }
}

/// Verdict on a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseResult {
    pub case: String,
    pub verdict: Verdict,
    /// Entry of the table that decided it.
    pub call: String,
    pub why: String,
}

/// Result of a case that does not pass.
pub(crate) type End = CaseResult;

pub(crate) fn end(verdict: Verdict, call: &str, why: impl Into<String>) -> End {
    KEEPS.store(true, Ordering::Relaxed);
    CaseResult { case: String::new(), verdict, call: call.into(), why: why.into() }
}

pub(crate) fn fail(call: &str, why: impl Into<String>) -> End {
    end(Verdict::Fail, call, why)
}

pub(crate) fn refused(call: &str, why: impl Into<String>) -> End {
    end(Verdict::Refused, call, why)
}

/// An error that the contract allows.
pub(crate) fn refusal(error: PluginError, why: &str) -> End {
    let End { call, why: code, .. } = error.into();
    refused(&call, format!("{code}, {why}"))
}

pub(crate) fn skipped(why: impl Into<String>) -> End {
    end(Verdict::Skipped, "", why)
}

impl From<PluginError> for End {
    fn from(error: PluginError) -> Self {
        match error {
            PluginError::Call { entry, code } => fail(entry, code),
            other => fail("dlopen", other.to_string()),
        }
    }
}

/// The process of a case.
pub(super) enum Run {
    /// Loads the plugin by itself.
    Bare(fn(&Order) -> Result<(), End>),
    Loaded(fn(&Bench) -> Result<(), End>),
    /// With a connection, which is closed afterwards.
    Paired(fn(&Bench, Pair) -> Result<(), End>),
    /// The same for a message of this many bytes.
    Large(usize),
}

pub struct Case {
    pub name: &'static str,
    /// What it requires, as the reason of a pass.
    pub about: &'static str,
    pub(super) run: Run,
}

pub(super) const fn case(name: &'static str, about: &'static str, run: Run) -> Case {
    Case { name, about, run }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) plugin: PathBuf,
    pub(crate) abi: Option<u32>,
    /// Name of the case; empty: describe the plugin.
    pub(crate) case: String,
    pub(crate) largest: usize,
    pub(crate) limit: Duration,
}

/// Unloads the plugin after a case that passes; another one leaves connections open.
pub(super) fn loaded(order: &Order, run: impl FnOnce(&Bench) -> Result<(), End>) -> Result<(), End> {
    let bench = ManuallyDrop::new(Bench::open(order)?);
    run(&bench)?;
    drop(ManuallyDrop::into_inner(bench));
    Ok(())
}

/// Returns the result of a thread of a case.
pub(super) fn joined<T>(result: std::thread::Result<Result<T, End>>) -> Result<T, End> {
    result.unwrap_or_else(|_| Err(fail(plugin::last_call(), "a thread of the case panicked")))
}
