//! Tests of `anabranch`: one program, with a module for each subject.

#[path = "../common/mod.rs"]
mod common;

mod backends;
mod bounds;
mod checks;
mod collective;
mod columns;
mod command;
mod commands_page;
mod dependencies;
mod ends;
mod find;
mod htsim;
mod inputs;
mod jobs;
mod messages;
mod mutated;
mod own_scheme;
mod pages;
mod pictures;
mod replay;
mod report;
mod reproduce;
mod results;
mod seal;
mod soak;
mod sweep;
mod until_decided;
mod width;
mod wire;
