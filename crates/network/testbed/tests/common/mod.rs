//! Tests that need namespaces of their own: each starts itself again inside.

#![allow(dead_code)]

use anabranch_settings::Raw;
use anabranch_testbed::{Fabric, Plan, Queue, TestbedError, space};
use anabranch_testkit::has_no_testbed;
use anabranch_topology::TopologyParameters;
use std::{
    ffi::OsString,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// One at a time: what they measure needs the machine.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `test`, the test of this name, in namespaces of its own. Where there cannot be any it is skipped.
pub(crate) fn apart(name: &str, test: impl FnOnce()) {
    if space::is_inside() {
        space::settle().unwrap();
        return test();
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let arguments = [name, "--exact", "--nocapture", "--test-threads=1"].map(OsString::from);
    let mut command = match space::apart(&arguments) {
        Ok((command, _)) => command,
        Err(error) if has_no_testbed(&error.to_string()) => return,
        Err(error) => panic!("{error}"),
    };
    let status = command.status().unwrap();
    assert!(status.success(), "{name} failed inside its namespaces");
}

/// Two leaves with so many hosts each, and so many spines.
pub(crate) fn plan(spines: i64, hosts: i64, rate: &str, mtu: u32, queue: Queue) -> Plan {
    let mut parameters = TopologyParameters::named("leaf-spine").unwrap();
    let text = |value: &str| Raw::Text(value.into());
    let numbers = [("leaves", 2), ("spines", spines), ("hosts_per_leaf", hosts)];
    for (key, value) in
        numbers.map(|(key, value)| (key, Raw::Int(value))).into_iter().chain([("link_rate", text(rate))])
    {
        parameters.parameters_mut().set(key, &value).unwrap();
    }
    let topology = parameters.build(&|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    Plan::new(&topology, mtu, queue, 7).unwrap()
}

/// Queues that only hold.
pub(crate) fn plain() -> Queue {
    Queue { limit: 300_000, marking: None, trimming: false }
}

pub(crate) fn build(plan: Plan) -> Fabric {
    match Fabric::build(plan) {
        Ok(fabric) => fabric,
        Err(error @ TestbedError::MissingProgram { .. }) if has_no_testbed(&error.to_string()) => {
            std::process::exit(0);
        }
        Err(error) => panic!("{error}"),
    }
}

/// The best of three tries of something that other work on the machine may disturb.
pub(crate) fn best_of_three(mut attempt: impl FnMut() -> Result<(), String>) {
    let said: Vec<String> = (0..3).map_while(|_| attempt().err()).collect();
    assert!(said.len() < 3, "three times: {said:?}");
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what} does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}
