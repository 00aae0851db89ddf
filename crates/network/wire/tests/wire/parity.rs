//! The choices of a scheme follow from its inputs and seed alone: a fresh scheme ([`replay`]) makes the same choices.

use crate::common::{Pair, uet};
use anabranch_endpoint::{Settings, header};
use anabranch_lb::{Record, registry::HostParameters, replay};
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;

const MTU: u64 = 1000;

fn settings(scheme: &str) -> Settings {
    let header = header::DATA_HEADER + 42;
    let keys = format!("mtu={MTU}B rto_rule=measured early_loss=50us header={header}B congestion_control=dctcp");
    Settings {
        transport: uet(&keys),
        scheme: HostParameters::named(scheme).unwrap(),
        host_key: 77,
        rate: Rate::gbps(10),
        ..Settings::default()
    }
}

#[test]
fn over_memory() {
    for scheme in HostParameters::ALL {
        let settings = settings(scheme.name);
        let record = Record::default();
        let mut link = Link::new(Rate::gbps(2), Time::from_us(5));
        (link.queue, link.mark_above, link.loss) = (30_000, 10_000, 2_000);
        let mut pair = Pair::new(1, &link, [settings.clone(), settings.clone()]);
        pair.hosts[0].endpoint().0.record(&record);
        let cut = (Time::from_us(1_000), Time::from_us(4_000));
        pair.network.set(0, 1, 3, Link { cuts: vec![cut], trim_to: Some(header::DATA_HEADER), ..link });
        for _ in 0..4 {
            pair.send(0, 0, vec![3u8; 500_000]);
        }
        assert!(pair.run(Time::from_us(10_000_000), &mut |pair| pair.sent[0].len() == 4), "{}", scheme.name);
        let calls = record.take();
        assert!(calls.len() >= 2000, "{}: {} calls for 2000 packets", scheme.name, calls.len());
        assert_eq!(replay(&calls, |_, host| settings.scheme.build(settings.seed, host)), Ok(()));
    }
}

#[test]
fn over_udp() {
    for scheme in HostParameters::each() {
        let answers = anabranch_wire::parity::over_udp(&scheme, &settings(scheme.name()).transport).unwrap();
        assert!(answers >= 1000, "{}: {answers} answers for 1000 packets", scheme.name());
    }
}
