//! One file per command.

mod against;
mod agree;
mod bench;
pub(crate) mod bench_nccl;
mod bench_wire;
mod bound;
mod catalogue;
mod check;
pub(crate) mod collective;
#[cfg(target_os = "linux")]
mod collective_testbed;
mod compare;
mod init;
pub(crate) mod nccl;
#[cfg(target_os = "linux")]
pub(crate) mod paths;
mod plan_runs;
mod record;
mod report;
mod reproduce;
pub(crate) mod request;
mod rerun;
mod results;
mod run;
mod shell;
mod soak;
pub(crate) mod stats;
mod sweep;
#[cfg(target_os = "linux")]
pub(crate) mod testbed;
mod topology;
mod trace;
mod until_decided;
mod verbs;
mod verify;
mod view;
mod wire;

pub use topology::topology_of;

use crate::{
    arguments::{Arguments, Command},
    failure::Failure,
    printing::print_json,
};
use anabranch_scenario::{backend::BackendEntry, schema};

pub(crate) fn execute(arguments: Arguments, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments, backends),
        Command::Compare(arguments) => compare::compare(&arguments, backends),
        Command::Agree(arguments) => agree::agree(&arguments, backends),
        Command::Sweep(arguments) => sweep::sweep(&arguments, backends),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Bound(arguments) => bound::bound(&arguments),
        Command::Rerun(arguments) => rerun::rerun(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::View(arguments) => view::view(&arguments),
        Command::Results(arguments) => results::results(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::List(arguments) => catalogue::list(&arguments),
        Command::Explain(arguments) => catalogue::explain(&arguments),
        Command::Check(arguments) => check::check(&arguments, backends),
        Command::Topology(arguments) => topology::topology(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Schema => {
            print_json(&schema::schema());
            Ok(())
        }
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Soak(arguments) => soak::soak(&arguments),
        Command::Serve(arguments) => wire::serve(&arguments),
        Command::Send(arguments) => wire::send(&arguments),
        Command::Collective(arguments) => collective::collective(&arguments),
        Command::CollectiveRank => collective::serve(),
        Command::BenchPart(arguments) => bench_nccl::part(&arguments),
        Command::Nccl(arguments) => nccl::nccl(&arguments),
        Command::Stats(arguments) => stats::stats(&arguments),
        #[cfg(target_os = "linux")]
        Command::Paths(arguments) => paths::paths(&arguments),
        #[cfg(target_os = "linux")]
        Command::Testbed(arguments) => testbed::testbed(arguments, backends),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    }
}
