//! Tests of `anabranch`: what happens to files. A program apart from `cli`, since `power_cuts` watches all file operations of its
//! process, and `.ci/bare` leaves it out.

#[path = "../common/mod.rs"]
mod common;

mod files;
mod power_cuts;
