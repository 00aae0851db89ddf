//! Tests of `anabranch-lb`: one program, with a module for each subject.

mod common;
mod every_guided_scheme;
mod every_scheme;
mod prime_reference;
mod prime_theorem;
mod round_robin;
