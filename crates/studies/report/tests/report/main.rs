//! Tests of `anabranch-report`: one program, with a module for each subject.

mod common;

mod agreement;
mod assertion;
mod browser;
mod censored;
mod comparison;
mod families;
mod honest;
mod perfetto;
mod report;
mod statistics;
mod styles;
mod summary;
mod tables;
mod view;
