//! A flow, a packet and a switch.

use anabranch_lb::{
    Decision, FlowInfo, HostScheme, Outgoing, PacketView, PathSpace, SwitchInfo, Tag, registry::TagKind,
};
use anabranch_settings::{Raw, Registry};
use anabranch_units::{Rate, Time};

pub(crate) fn flow(key: u64, bdp_packets: u64, paths: PathSpace<'_>) -> FlowInfo<'_> {
    FlowInfo {
        key,
        connection: key,
        src: 0,
        dst: 1,
        size: 1 << 20,
        packets: 256,
        bdp_packets,
        base_rtt: Time::from_us(8),
        probe_rtt: Time::from_us(8),
        rate: Rate(400_000_000_000),
        full_packet: 4160,
        early_packets: 0,
        paths,
    }
}

pub(crate) fn send(host: &mut impl HostScheme) -> Tag {
    let packet = Outgoing { psn: 0, bytes: 4096, retransmission: false, eligible_at: Time::ZERO };
    match host.select(Time::ZERO, 0, &packet) {
        Decision::Send(tag) => tag,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn switch(uplinks: &[u32]) -> SwitchInfo {
    SwitchInfo {
        key: 3,
        tier: 0,
        groups: 3,
        widest: 8,
        part_shift: 0,
        part_size: 8,
        number: 0,
        switches: 16,
        ports: 8,
        uplinks: uplinks.to_vec(),
        murmur3: None,
        udp_ports: false,
        hop_delay: Time::from_us(1),
        queue_limit: 400_000,
        lossless: false,
        tags: TagKind::Entropy,
    }
}

pub(crate) fn packet((src, dst): (u32, u32), (src_leaf, dst_leaf): (u32, u32), flow: u64, tag: Tag) -> PacketView {
    PacketView { src, dst, src_leaf, dst_leaf, flow, tag, bytes: 4160, control: false, marked: false }
}

/// The scheme with its defaults, and with each choice parameter at each of its values.
pub(crate) fn variants<Scheme: Registry>(name: &str) -> Vec<Scheme> {
    let mut all = vec![Scheme::named(name).unwrap()];
    for parameter in all[0].parameters().documentation() {
        let Raw::Text(_) = parameter.default else { continue };
        for word in parameter.expected.split('"').skip(1).step_by(2) {
            let mut other = Scheme::named(name).unwrap();
            if other.parameters_mut().set(parameter.name, &Raw::Text(word.into())).is_ok() {
                all.push(other);
            }
        }
    }
    all
}
