//! Structured entropy values (STEV) of MRC on the wire: one half in the IPv6 flow label, the other in the UDP source port.
//! Each value of a profile is a label.

use crate::Label;
use anabranch_lb::registry::HostParameters;
use anabranch_random::Stream;
use anabranch_settings::{InvalidValue, Raw, SetError, Setting, choices};
use std::{fmt, net::SocketAddr};

choices! {
    /// Which halves of structured entropy values the IPv6 flow label and the UDP source port carry.
    pub enum Stev {
        /// Packets carry none.
        Off = "off",
        /// The flow label has the upper 16 bits, the port the lower.
        LabelFirst = "label-first",
        /// The port has the upper 16 bits, the flow label the lower.
        PortFirst = "port-first",
    }
}

/// Structured values of a profile, left-justified, each with its port (from 1) if it has one.
pub type StructuredValues = Vec<(u32, Option<u32>)>;

/// What the packets of a label carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Low 16 bits of the IPv6 flow label, whose upper four are zero; `None`: over IPv4.
    pub flow_label: Option<u16>,
    /// UDP source port; `None`: no value has bits there, and the kernel chooses it.
    pub port: Option<u16>,
}

/// The keys of a profile, which are of no use where labels are its values.
const PROFILE: [(&str, Raw); 3] =
    [("format", Raw::List(vec![])), ("fields", Raw::List(vec![])), ("explicit", Raw::List(vec![]))];

fn wrong(key: impl Into<String>, found: impl fmt::Display, expected: impl Into<String>) -> SetError {
    let wrong = InvalidValue { found: found.to_string(), expected: expected.into(), reason: None, nearest: None };
    SetError::InvalidValue { key: key.into(), wrong }
}

impl Stev {
    /// Takes the values of a profile from a scheme, which has all paths then.
    /// Fails if the scheme has no values to carry, or some that nothing carries.
    pub(crate) fn take_values(self, scheme: &mut HostParameters) -> Result<StructuredValues, SetError> {
        let values = scheme.capabilities().stated_values();
        match (self, values.is_empty()) {
            (Stev::Off, true) => return Ok(values),
            (Stev::Off, false) => {
                let found = format!("\"off\" with the {} values of load_balancer.{}", values.len(), scheme.name());
                return Err(wrong(
                    "stev",
                    found,
                    "no such values, or \"label-first\" or \"port-first\", with which `send` carries them",
                ));
            }
            (_, true) => {
                let found = format!("{} without values of {}", self.write(), scheme.name());
                return Err(wrong("stev", found, "load_balancer.mrc.fields or load_balancer.mrc.explicit, or \"off\""));
            }
            (_, false) => {}
        }
        for (key, value) in &PROFILE {
            scheme.parameters_mut().set(key, value)?;
        }
        Ok(values)
    }

    /// Returns what each of `labels` labels carries to a peer with these addresses, one in each plane: values of its plane, drawn by
    /// `seed` if there are more.
    ///
    /// Fails if there are too few values, or if their halves cannot be carried.
    pub fn carried(
        self,
        values: &[(u32, Option<u32>)],
        labels: u32,
        to: &[SocketAddr],
        seed: u64,
    ) -> Result<Vec<Carried>, SetError> {
        let planes = to.len() as u32;
        let mut drawn = Vec::new();
        for plane in 0..planes {
            let of_plane = values.iter().filter(|(_, port)| port.is_none_or(|port| port == plane + 1));
            let mut own: Vec<u32> = of_plane.map(|(value, _)| *value).collect();
            if (own.len() as u32) < labels / planes {
                let expected =
                    format!("at most {}, as many as there are values in each plane", own.len() as u32 * planes);
                return Err(wrong("labels", labels, expected));
            }
            Stream::keyed(seed, u64::from(plane), "stev").shuffle(&mut own);
            drawn.push(own);
        }
        let value = |label: Label| drawn[(label % planes) as usize][(label / planes) as usize];
        let halves = |label: Label| {
            let (upper, lower) = ((value(label) >> 16) as u16, value(label) as u16);
            if self == Stev::LabelFirst { (upper, lower) } else { (lower, upper) }
        };
        let all: Vec<(u16, u16)> = (0..labels).map(halves).collect();
        let text = |label: usize| format!("the value {:#010x}", value(label as Label));
        let is_v6 = to[0].is_ipv6();
        if let Some(label) = all.iter().position(|(flow_label, _)| !is_v6 && *flow_label > 0) {
            let expected = "IPv6 addresses: IPv4 has no flow label, which carries half of it";
            return Err(wrong("stev", text(label), expected));
        }
        let uses_ports = all.iter().any(|(_, port)| *port > 0);
        if let Some(label) = all.iter().position(|(_, port)| uses_ports && *port == 0) {
            let expected =
                "values whose half in the UDP source port is nowhere 0, which is no port of a socket, or everywhere";
            return Err(wrong("stev", text(label), expected));
        }
        let carried = |(flow_label, port): (u16, u16)| Carried {
            flow_label: is_v6.then_some(flow_label),
            port: uses_ports.then_some(port),
        };
        Ok(all.into_iter().map(carried).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three values of MRC's worked example, and one whose fields reach into the lower half.
    #[test]
    fn halves_are_carried_where_the_formats_put_them() {
        let (v4, v6): (SocketAddr, SocketAddr) = ("10.0.0.1:7".parse().unwrap(), "[::1]:7".parse().unwrap());
        let of = |stev: Stev, values: &[u32], to: SocketAddr| {
            let values: Vec<_> = values.iter().map(|value| (*value, None)).collect();
            let mut all = stev.carried(&values, values.len() as u32, &[to], 1)?;
            all.sort_by_key(|one| (one.flow_label, one.port));
            Ok::<_, SetError>(all.into_iter().map(|one| (one.flow_label, one.port)).collect::<Vec<_>>())
        };
        let example = [0x0090_0000, 0x13d0_0000, 0x17b0_0000];
        let labels = [(Some(0x0090), None), (Some(0x13d0), None), (Some(0x17b0), None)];
        assert_eq!(of(Stev::LabelFirst, &example, v6).unwrap(), labels);
        assert_eq!(of(Stev::LabelFirst, &[0x8172_2400], v6).unwrap(), [(Some(0x8172), Some(0x2400))]);
        assert_eq!(of(Stev::PortFirst, &[0x8172_2400], v6).unwrap(), [(Some(0x2400), Some(0x8172))]);
        assert_eq!(
            of(Stev::PortFirst, &example, v4).unwrap(),
            [(None, Some(0x90)), (None, Some(0x13d0)), (None, Some(0x17b0))]
        );
        let refused = |stev, values: &[u32], to, words: &str| {
            let error = of(stev, values, to).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        refused(Stev::LabelFirst, &example, v4, "IPv4 has no flow label");
        refused(Stev::PortFirst, &[0x8172_2400], v4, "0x81722400");
        refused(Stev::LabelFirst, &[0x8172_0000, 0x8172_2400], v6, "nowhere 0");
    }

    #[test]
    fn values_are_of_their_plane() {
        let to: Vec<SocketAddr> = vec!["[::1]:7".parse().unwrap(), "[::2]:7".parse().unwrap()];
        let values = [(0x0001_0000, Some(1)), (0x0002_0000, Some(2)), (0x0003_0000, None)];
        let of = |labels| Stev::LabelFirst.carried(&values, labels, &to, 1);
        let all: Vec<u16> = of(4).unwrap().into_iter().filter_map(|one| one.flow_label).collect();
        for (plane, values) in [(0, [1, 3]), (1, [2, 3])] {
            let mut own: Vec<u16> = all.iter().skip(plane).step_by(2).copied().collect();
            own.sort_unstable();
            assert_eq!(own, values, "{all:?}");
        }
        assert!(of(6).unwrap_err().to_string().contains("at most 4"));
    }

    #[test]
    fn profiles_are_carried_or_refused() {
        let mut mrc = HostParameters::named("mrc").unwrap();
        let error = Stev::LabelFirst.take_values(&mut mrc).unwrap_err().to_string();
        assert!(
            error.contains("\"label-first\" without values of mrc") && error.contains("load_balancer.mrc.fields"),
            "{error}"
        );
        mrc.parameters_mut().set("fields", &Raw::List(vec![Raw::Text("8 0 0x7 0..7".into())])).unwrap();
        let error = Stev::Off.take_values(&mut mrc).unwrap_err().to_string();
        assert!(
            error.contains("\"off\" with the 8 values of load_balancer.mrc") && error.contains("`send` carries them"),
            "{error}"
        );
        assert_eq!(Stev::LabelFirst.take_values(&mut mrc).unwrap().len(), 8);
        assert!(Stev::Off.take_values(&mut mrc).unwrap().is_empty(), "the scheme has all paths");
    }
}
