//! What every scheme must keep. A failure names the check and the seed that shows it.

use anabranch::{
    lb::{checks, registry::HostParameters},
    transport::TransportParameters,
    wire::parity,
};
use my_scheme::MyScheme;
use std::process::Command;

/// Counts the allocations of schemes.
#[global_allocator]
static ALLOCATOR: checks::CountingAllocator = checks::CountingAllocator;

/// Random events in any order, with any tags, late and twice: no panic, paths that are there, the same choices for the same
/// calls, no allocation per packet, no memory kept of closed flows.
#[test]
fn keeps_what_every_scheme_must() {
    for scheme in checks::variants(&HostParameters::external::<MyScheme>()) {
        checks::host(&scheme, 0..300).unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// The choices over UDP are those that a fresh scheme makes of the same calls.
#[test]
fn choices_over_udp_follow_from_the_calls() {
    let transport = TransportParameters::named("uet").unwrap();
    parity::over_udp(&HostParameters::external::<MyScheme>(), &transport).unwrap();
}

#[test]
fn is_explained_and_simulated() {
    let line = ["run", "tiny", "--set", "load_balancer.scheme=my-scheme", "--again", "--format", "json"];
    for words in [&["explain", "my-scheme"][..], &line] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_my-scheme"));
        let output = command.args(words).current_dir(env!("CARGO_TARGET_TMPDIR")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("my-scheme"), "{words:?}: {text}");
    }
}
