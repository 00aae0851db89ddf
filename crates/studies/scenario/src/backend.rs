//! The backends that a study can use, by name.

use crate::{Scenario, ScenarioError};
use anabranch_backend::{Backend, Clock};
use anabranch_sim::Simulator;
use std::fmt;

/// A backend by name. A new one is a crate that implements [`Backend`] and an entry in the command's list.
#[derive(Clone, Copy)]
pub struct BackendEntry {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// Short description.
    pub about: &'static str,
    pub make: fn(&Scenario) -> Box<dyn Backend>,
    /// Restarts the command in an environment in which it can run, and returns once inside. `None`: any will do.
    pub enter: Option<fn() -> Result<(), ScenarioError>>,
}

pub static SIMULATOR: BackendEntry = BackendEntry {
    name: "sim",
    about: "the packet-level simulator",
    make: |_| Box::new(Simulator::default()),
    enter: None,
};

impl BackendEntry {
    pub fn clock(&self, scenario: &Scenario) -> Clock {
        (self.make)(scenario).measures().clock
    }

    /// Returns the number of threads, out of `offered`. Runs on the machine's clock must not run side by side.
    pub fn threads(&self, scenario: &Scenario, offered: usize) -> usize {
        match self.clock(scenario) {
            Clock::Simulated => offered,
            Clock::Machine => 1,
        }
    }
}

impl Default for &'static BackendEntry {
    fn default() -> Self {
        &SIMULATOR
    }
}

impl fmt::Debug for BackendEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for BackendEntry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for BackendEntry {}
