//! A transfer whose labels carry structured entropy values.

use crate::common::{drawn, served, uet};
use anabranch_endpoint::Endpoint;
use anabranch_lb::registry::HostParameters;
use anabranch_settings::Raw;
use anabranch_units::{Rate, Time};
use anabranch_wire::{Driver, Stev, WireParameters, transfer, udp::UdpPath};
use std::net::{Ipv6Addr, SocketAddr};

#[test]
fn mrc_sends_over_its_values() {
    let wire = WireParameters { stev: Stev::LabelFirst, rtt_floor: Time::from_us(1_000), ..WireParameters::default() };
    let mut mrc = HostParameters::named("mrc").unwrap();
    // Sixteen uplinks of a leaf, of which a host with eight labels draws eight.
    mrc.parameters_mut().set("fields", &Raw::List(vec![Raw::Text("8 0x40 0xf 0..15".into())])).unwrap();
    let transport = uet("mtu=1400B");
    let error = wire.settings(&transport, mrc.clone(), Rate::gbps(1), 1).unwrap_err().to_string();
    assert!(error.contains("stev") && error.contains("only `send`"), "{error}");
    let (settings, values) = wire.settings_with_values(&transport, mrc, Rate::gbps(1), 1).unwrap();
    assert_eq!(values.iter().map(|(value, _)| value >> 24).collect::<Vec<_>>(), (0x40..0x50).collect::<Vec<_>>());
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let serve = || {
        let path = UdpPath::open(any, settings.labels, 8).unwrap();
        let at = path.at();
        (Driver::new(Endpoint::new(settings.clone()), path), at)
    };
    let (sent, received) = served(serve, |at| {
        let carried = wire.stev.carried(&values, settings.labels, &[at], 1).unwrap();
        let path = UdpPath::calling_with(&[any], &carried, 8).unwrap();
        let mut driver = Driver::new(Endpoint::new(settings.clone()), path);
        transfer::send(&mut driver, &at.into(), 1_000_000, &mut drawn(1), &mut |_, _| true).unwrap()
    });
    assert_eq!((received.len(), received[0].summary), (1, sent.record.summary));
    assert!(sent.silent.is_empty() && sent.record.per_label.iter().all(|packets| *packets > 20), "{sent:?}");
}
