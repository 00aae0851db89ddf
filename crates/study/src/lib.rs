//! See the crate's description; under construction.
