//! htsim's descriptions of Dragonfly (`p`, `a`, `h`) and Slim Fly (`p`, `q`), a key and its value per line (specification
//! 14.2). Missing keys take this crate's defaults. The global links of a Dragonfly have the arrangement of htsim, relative.

use super::text::{at_line, lines, number};
use crate::{Arrangement, DragonflyParameters, SlimFlyParameters, TopologyError, graph::Graph, kinds::Kind};
use anabranch_settings::{Auto, nearest};
use anabranch_units::{Rate, Time};

const SIZES: [&str; 4] = ["p", "a", "h", "q"];
const SPEEDS: [&str; 3] = ["link_speed_host_gbps", "link_speed_local_gbps", "link_speed_global_gbps"];
const LATENCIES: [&str; 4] =
    ["link_latency_host_ns", "link_latency_local_ns", "link_latency_global_ns", "switch_latency_ns"];

pub(crate) fn is_one(text: &str) -> bool {
    lines(text)
        .filter_map(|(_, text)| text.split_whitespace().next())
        .any(|key| SIZES.contains(&key.to_lowercase().as_str()))
}

pub(crate) fn parse(text: &str) -> Result<Graph, TopologyError> {
    let (mut sizes, mut speeds, mut latencies) = ([None; 4], [None; 3], [None; 4]);
    for (line, text) in lines(text) {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [key, value] = fields[..] else {
            return Err(at_line(line, format!("{} values; a key and its value are needed", fields.len())));
        };
        let value = number(line, &format!("`{key}`"), value)?;
        let lower = key.to_lowercase();
        let place = |keys: &[&str]| keys.iter().position(|k| *k == lower);
        let bounded = |range: std::ops::RangeInclusive<u64>| match range.contains(&value) {
            true => Ok(value),
            false => {
                let message = format!("`{key}` is {value}; {} to {} are allowed", range.start(), range.end());
                Err(at_line(line, message))
            }
        };
        let before = if let Some(index) = place(&SIZES) {
            sizes[index].replace(value).is_some()
        } else if let Some(index) = place(&SPEEDS) {
            speeds[index].replace(Rate::gbps(bounded(1..=1_000_000)?)).is_some()
        } else if let Some(index) = place(&LATENCIES) {
            latencies[index].replace(Time::from_ns(bounded(0..=1_000_000_000)?)).is_some()
        } else {
            let all = SIZES.iter().chain(&SPEEDS).chain(&LATENCIES).copied();
            let hint = nearest(&lower, all).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
            return Err(at_line(line, format!("`{key}` is not a key of a Dragonfly or a Slim Fly{hint}")));
        };
        if before {
            return Err(at_line(line, format!("`{key}` is given twice")));
        }
    }
    let size = |index: usize| sizes[index].ok_or_else(|| TopologyError::new(format!("`{}` is missing", SIZES[index])));
    let [_, a, h, q] = sizes;
    if q.is_some() && (a.is_some() || h.is_some()) {
        return Err(TopologyError::new("both `q`, of a Slim Fly, and `a` or `h`, of a Dragonfly, are given"));
    }
    let read = |_: &str| Err(std::io::Error::other("no further file is read"));
    if q.is_some() {
        let d = SlimFlyParameters::default();
        let parameters = SlimFlyParameters {
            p: size(0)?,
            q: size(3)?,
            link_rate: d.link_rate,
            host_link_rate: speeds[0],
            local_link_rate: speeds[1],
            global_link_rate: speeds[2],
            host_link_delay: latencies[0].unwrap_or(d.host_link_delay),
            local_link_delay: latencies[1].unwrap_or(d.local_link_delay),
            global_link_delay: latencies[2].unwrap_or(d.global_link_delay),
            switch_latency: latencies[3].unwrap_or(d.switch_latency),
        };
        return parameters.build(&read);
    }
    let d = DragonflyParameters::default();
    let parameters = DragonflyParameters {
        p: size(0)?,
        a: size(1)?,
        h: size(2)?,
        groups: Auto::Auto,
        arrangement: Arrangement::Relative,
        link_rate: d.link_rate,
        host_link_rate: speeds[0],
        local_link_rate: speeds[1],
        global_link_rate: speeds[2],
        host_link_delay: latencies[0].unwrap_or(d.host_link_delay),
        local_link_delay: latencies[1].unwrap_or(d.local_link_delay),
        global_link_delay: latencies[2].unwrap_or(d.global_link_delay),
        switch_latency: latencies[3].unwrap_or(d.switch_latency),
    };
    parameters.build(&read)
}
