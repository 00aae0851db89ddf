//! Tests of `anabranch-topology`: one program, with a module for each subject.

mod common;

mod adversarial;
mod counts;
mod faults;
mod files;
mod grouped;
mod guided;
mod guided_switches;
mod pairs;
mod planes;
mod rails;
mod routes;
mod scale;
mod tables;
mod times;
