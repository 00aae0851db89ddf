//! The native module of the Python package `anabranch`: scenarios, runs, comparisons and sweeps of `anabranch-study`, and
//! tables as Arrow. Public types, messages and figures are in Python.
#![cfg(feature = "extension")]

mod catalogue;
mod compare;
mod env;
mod error;
mod live;
mod load;
mod run;
mod scenario;
mod scheme;
mod sweep;
mod table;
mod torch;
mod wait;

use pyo3::prelude::*;

/// The module `anabranch._native`.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::{
        catalogue::{
            catalogue, command, estimate, explain, line_styles, nearest, ready_made, schema, slowdown_by_size, topology,
        },
        compare::{Comparison, compare},
        env::Env,
        live::{Page, pages},
        load::{Loaded, load},
        run::{Outcome, run},
        scenario::Scenario,
        scheme::{Decision, Feedback, Flow, Packet, Random, register_scheme},
        sweep::{Plan, Store},
        table::Table,
        torch::{Group, Work},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", anabranch_scenario::machine::VERSION)?;
        module.add("COMMIT", anabranch_scenario::machine::COMMIT)
    }
}
