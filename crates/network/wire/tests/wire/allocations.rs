//! Sending and receiving a packet allocates no memory.

use crate::common::driver;
use anabranch_endpoint::{Event, Settings};
use anabranch_lb::{checks::CountingAllocator, registry::HostParameters};
use anabranch_units::Time;
use anabranch_wire::{Datapath, Driver, WireParameters, udp::UdpPath};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

fn until_sent(ends: &mut [Driver<UdpPath>; 2]) {
    loop {
        for end in 0..2 {
            let next = ends[end].work().unwrap();
            let (endpoint, now) = ends[end].endpoint();
            assert!(now < Time::from_us(60_000_000), "nothing arrives");
            let mut sent = false;
            while let Some(event) = endpoint.poll_event() {
                assert!(!matches!(event, Event::Lost { .. }), "{event:?}");
                sent |= matches!(event, Event::Sent { .. });
            }
            if sent {
                return;
            }
            if end == 0 {
                ends[0].wait(next.unwrap_or(now).min(now + Time::from_us(200))).unwrap();
            }
        }
    }
}

#[test]
fn a_packet_costs_no_allocation() {
    for scheme in HostParameters::ALL {
        let mut transport = anabranch_transport::TransportParameters::named("uet").unwrap();
        transport.parameters_mut().set("mtu", &anabranch_settings::Raw::Text("1000B".into())).unwrap();
        let host = HostParameters::named(scheme.name).unwrap();
        let wire = WireParameters::default();
        let settings = wire.settings(&transport, host, anabranch_units::Rate::gbps(2), 1).unwrap();
        let mut ends = [driver(settings.clone()), driver(Settings { seed: 2, ..settings })];
        let at = ends[1].datapath().at();
        let peer = ends[0].datapath().peer(at, &[]).unwrap();
        let (endpoint, now) = ends[0].endpoint();
        endpoint.connect(now, peer);
        // Rings and queues grow with the first messages.
        let message: anabranch_endpoint::Bytes = vec![7u8; 1_000_000].into();
        let mut counts = Vec::new();
        for _ in 0..4 {
            let (endpoint, now) = ends[0].endpoint();
            endpoint.send(now, peer, 0, message.clone()).unwrap();
            let before = CountingAllocator::allocations();
            until_sent(&mut ends);
            counts.push(CountingAllocator::allocations() - before);
        }
        // The receiver allocates memory for the message itself.
        let least = counts.iter().min().unwrap();
        assert!(*least < 30, "{}: {counts:?} allocations for 1000 packets", scheme.name);
    }
}
