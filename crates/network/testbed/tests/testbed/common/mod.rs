//! Helpers of tests that need namespaces of their own: each test runs itself again inside.

mod apart;

pub(crate) use apart::apart;

use anabranch_settings::Raw;
use anabranch_testbed::{Fabric, Queue, TestbedError, TestbedPlan};
use anabranch_testkit::has_no_testbed;
use anabranch_topology::TopologyParameters;
use nix::sys::socket::{
    setsockopt,
    sockopt::{RcvBuf, RcvBufForce},
};
use std::{
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    time::Duration,
};

pub(crate) fn plan(spines: i64, hosts: i64, rate: &str, mtu: u32, queue: Queue) -> TestbedPlan {
    let mut parameters = TopologyParameters::named("leaf-spine").unwrap();
    let text = |value: &str| Raw::Text(value.into());
    let numbers = [("leaves", 2), ("spines", spines), ("hosts_per_leaf", hosts)];
    for (key, value) in
        numbers.map(|(key, value)| (key, Raw::Int(value))).into_iter().chain([("link_rate", text(rate))])
    {
        parameters.parameters_mut().set(key, &value).unwrap();
    }
    let topology = parameters.build(&|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    TestbedPlan::new(&topology, mtu, queue, 7).unwrap()
}

/// Queues that neither mark nor trim.
pub(crate) fn plain() -> Queue {
    Queue { limit: 300_000, marking: None, trimming: false }
}

pub(crate) fn build(plan: TestbedPlan) -> Fabric {
    match Fabric::build(plan) {
        Ok(fabric) => fabric,
        Err(error @ TestbedError::MissingProgram { .. }) if has_no_testbed(&error.to_string()) => {
            std::process::exit(0);
        }
        Err(error) => panic!("{error}"),
    }
}

/// A socket at a host, with a large buffer, so that packets that crossed the network are not lost there.
pub(crate) fn socket(fabric: &Fabric, host: &str, port: u16) -> UdpSocket {
    let node = fabric.plan().node(host).unwrap();
    let socket = fabric.within(node, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap()).unwrap();
    let large = 8 << 20;
    setsockopt(&socket, RcvBufForce, &large).or_else(|_| setsockopt(&socket, RcvBuf, &large)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

pub(crate) fn address(fabric: &Fabric, host: &str, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(fabric.plan().nodes[fabric.plan().node(host).unwrap()].address, port)
}

/// Repeats a measurement that other load may disturb up to three times, until one attempt succeeds.
pub(crate) fn best_of_three(mut attempt: impl FnMut() -> Result<(), String>) {
    let said: Vec<String> = (0..3).map_while(|_| attempt().err()).collect();
    assert!(said.len() < 3, "three times: {said:?}");
}
