//! Targets: input from the network, or from memory that others may write to.

use anabranch_endpoint::{Arrival, Endpoint, Settings, header::Packet};
use anabranch_transport::TransportParameters;
use anabranch_units::Time;
use nccl_net_anabranch::{abi::HANDLE_BYTES, handle::Handle, message, page};

pub(crate) fn header(bytes: &[u8]) {
    let _ = Packet::decode(bytes);
    // Input that passes the check.
    let mut sealed = bytes.to_vec();
    anabranch_endpoint::header::reseal(&mut sealed);
    let _ = Packet::open(&sealed);
}

fn peer() -> Endpoint {
    let mut transport = TransportParameters::named("uet").expect("the transport");
    let mtu = anabranch_settings::Raw::Text("1000B".into());
    let _ = transport.parameters_mut().set("mtu", &mtu);
    Endpoint::new(Settings {
        transport,
        calibrations: 1,
        span: 128,
        max_message: 10_000,
        max_held: 50_000,
        max_streams: 3,
        max_peers: 2,
        ..Settings::default()
    })
}

fn change(datagram: &mut Vec<u8>, script: &mut &[u8]) {
    let Some((&[at, value], rest)) = script.split_first_chunk() else { return };
    *script = rest;
    let place = usize::from(at) % datagram.len().max(1);
    match value % 4 {
        _ if datagram.is_empty() => {}
        0 => datagram.truncate(place),
        1 => datagram[place] ^= value,
        2 => datagram[place..].iter_mut().take(4).for_each(|byte| *byte = value),
        _ => {
            let count = usize::from(value).min(script.len()).min(datagram.len() - place);
            datagram[place..place + count].copy_from_slice(&script[..count]);
            *script = &script[count..];
        }
    }
    anabranch_endpoint::header::reseal(datagram);
}

/// Runs two connected endpoints; the input defines which datagrams are lost, duplicated or modified with a valid check.
pub(crate) fn endpoint(bytes: &[u8]) {
    let (mut script, mut now, mut out) = (bytes, Time::ZERO, Vec::new());
    let mut ends = [peer(), peer()];
    ends[0].connect(now, 0);
    for turn in 0..400 {
        now += Time::from_us(if turn % 50 == 49 { 20_000 } else { 3 });
        let from = turn % 2;
        ends[from].handle_timeout(now);
        while ends[from].poll_event().is_some() {}
        while ends[from].poll_released().is_some() {}
        if turn % 7 == 0 {
            let _ = ends[from].send(now, 0, turn as u32 % 4, vec![7; 3000].into());
        }
        let Some(sent) = ends[from].poll_transmit(now, &mut out) else { continue };
        let mut datagram = [&out[..], &sent.payload].concat();
        let Some((fate, rest)) = script.split_first() else { break };
        script = rest;
        let copies = match fate % 8 {
            0..4 => 1,
            4 => 0,
            5 => 2,
            _ => {
                change(&mut datagram, &mut script);
                1
            }
        };
        for _ in 0..copies {
            let arrival = Arrival {
                peer: Some(0),
                from: None,
                label: u32::from(fate >> 4),
                at: now,
                ecn: fate & 8 != 0,
                bytes: &datagram,
            };
            ends[1 - from].handle(now, &arrival);
        }
    }
    for end in &ends {
        let (held, _) = end.held();
        assert!(held <= 200_000, "{held} B are held");
    }
}

pub(crate) fn transfer(bytes: &[u8]) {
    anabranch_wire::transfer::fuzz(bytes);
}

/// Decodes a frame of the TCP connection that exchanges queue pairs.
pub(crate) fn verbs_frame(bytes: &[u8]) {
    anabranch_wire::verbs::fuzz(bytes);
}

pub(crate) fn nccl_handle(bytes: &[u8]) {
    let mut handle = [0; HANDLE_BYTES];
    handle.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    if let Ok(read) = Handle::read(&handle) {
        let again = Handle::read(&read.write());
        assert!(again.is_ok(), "{again:?}");
    }
}

pub(crate) fn nccl_message(bytes: &[u8]) {
    let _ = message::Control::read(bytes);
    let _ = message::PieceHeader::read(bytes);
}

pub(crate) fn statistics_page(bytes: &[u8]) {
    let _ = page::parse(bytes);
}
