//! Tests of `anabranch-endpoint`: one program, with a module for each subject.

mod common;

mod auth;
mod calibration;
mod echoes;
mod hostile;
mod large_packets;
mod shares;
mod unknown;
