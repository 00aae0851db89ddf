//! A check of schemes on real sockets: the choices of a scheme follow from its inputs and seed alone, as in the simulator.

use crate::{Datapath, Driver, udp::UdpPath};
use anabranch_endpoint::{Endpoint, Event, Settings};
use anabranch_lb::{Record, registry::HostParameters, replay};
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};
use std::net::SocketAddr;

/// Sends 1 MB over UDP on the loopback interface, and repeats every call to the scheme on a fresh one with the same seed.
/// Returns the number of calls that returned something.
///
/// # Errors
/// The transfer does not end within a minute, a socket fails, or the fresh scheme returns something else.
pub fn over_udp(scheme: &HostParameters, transport: &TransportParameters) -> Result<usize, String> {
    let settings = Settings {
        transport: transport.clone(),
        scheme: scheme.clone(),
        host_key: 77,
        rate: Rate::gbps(1),
        ..Settings::default()
    };
    let failed = |error: crate::WireError| format!("{}: {error}", scheme.name());
    let record = Record::default();
    let driver = |settings: &Settings| {
        let path = UdpPath::open(SocketAddr::from(([127, 0, 0, 1], 0)), settings.labels, 8).map_err(failed)?;
        Ok::<_, String>(Driver::new(Endpoint::new(settings.clone()), path))
    };
    let mut ends = [driver(&settings)?, driver(&settings)?];
    ends[0].endpoint().0.record(&record);
    let at = ends[1].datapath().at();
    let peer = ends[0].datapath().peer(at, &[]).map_err(failed)?;
    let (endpoint, now) = ends[0].endpoint();
    endpoint.connect(now, peer);
    endpoint.send(now, peer, 0, vec![5u8; 1_000_000].into()).map_err(|error| format!("{error:?}"))?;
    loop {
        let mut next = None;
        for end in &mut ends {
            next = end.work().map_err(failed)?;
            let (endpoint, now) = end.endpoint();
            if now > Time::from_us(60_000_000) {
                return Err(format!("{}: 1 MB did not arrive within a minute", scheme.name()));
            }
            while let Some(event) = endpoint.poll_event() {
                if matches!(event, Event::Sent { .. }) {
                    let calls = record.take();
                    replay(&calls, |_, host| settings.scheme.build(settings.seed, host))?;
                    return Ok(calls.len());
                }
            }
        }
        let now = ends[0].datapath().now();
        ends[0].wait(next.unwrap_or(now).min(now + Time::from_us(100))).map_err(failed)?;
    }
}
