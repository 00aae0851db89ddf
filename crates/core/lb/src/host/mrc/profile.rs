//! Entropy-value profiles of MRC: which values a flow may use, and the meaning of their fields.

use super::MrcParameters;
use crate::registry::Invalid;

/// Bits of a structured entropy value.
const BITS: u32 = 32;

/// A field of a GENERATED profile. The bits of a number within `min..=max` fill the ones of `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    width: u32,
    init: u32,
    mask: u32,
    min: u32,
    max: u32,
}

/// The values of a profile; empty: all paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// Bits of each field, the most significant first.
    widths: Vec<u32>,
    /// Values, left-justified, with the port (from 1) of those that have one.
    values: Vec<(u32, Option<u32>)>,
    /// The key that states them.
    key: &'static str,
    /// Number of fields of a GENERATED profile.
    fields: Option<usize>,
}

fn number(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

const FORM: &str = "\"width init mask min..max\", such as \"8 0 0x1f 0..23\"";

impl Field {
    fn read(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("fields", format!("{text:?}"), FORM);
        let words: Vec<&str> = text.split_whitespace().collect();
        let [width, init, mask, range] = words[..] else { return Err(wrong()) };
        let (min, max) = range.split_once("..").ok_or_else(wrong)?;
        let [width, init, mask, min, max] = [width, init, mask, min, max].map(number);
        let field =
            (|| Some(Field { width: width?, init: init?, mask: mask?, min: min?, max: max? }))().ok_or_else(wrong)?;
        let most = (1u64 << field.mask.count_ones()) - 1;
        let limits = [
            ((1..=BITS).contains(&field.width), format!("a width from 1 to {BITS}")),
            (u64::from(field.init) >> field.width.min(BITS) == 0, format!("an init of at most {} bits", field.width)),
            (u64::from(field.mask) >> field.width.min(BITS) == 0, format!("a mask of at most {} bits", field.width)),
            (
                u64::from(field.max) <= most,
                format!("a maximum of at most {most}: the mask has {} ones", field.mask.count_ones()),
            ),
            (field.min <= field.max, "a minimum up to the maximum".to_string()),
        ];
        let broken = limits.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(field), |(_, allowed)| Err(Invalid::new("fields", format!("{text:?}"), allowed)))
    }

    /// Returns the field whose compact value is `compact`: its bits, from the most significant down, go where the mask is 1.
    fn expand(&self, compact: u32) -> u32 {
        let (mut value, mut left) = (self.init, self.mask.count_ones());
        for bit in (0..self.width).rev().filter(|bit| self.mask >> bit & 1 == 1) {
            left -= 1;
            value = value & !(1 << bit) | (compact >> left & 1) << bit;
        }
        value
    }
}

impl Profile {
    /// Reads the profile of `parameters`.
    pub(super) fn read(parameters: &MrcParameters) -> Result<Self, Invalid> {
        let MrcParameters { format, fields, explicit, .. } = parameters;
        if !fields.is_empty() && !explicit.is_empty() {
            return Err(Invalid::new("explicit", "values beside `fields`", "one of the two profiles"));
        }
        let fields = fields.iter().map(|text| Field::read(text)).collect::<Result<Vec<_>, _>>()?;
        let widths: Vec<u32> = match format[..] {
            [] => fields.iter().map(|field| field.width).collect(),
            _ => format.iter().map(|bits| u32::try_from(*bits).unwrap_or(u32::MAX)).collect(),
        };
        let bits = widths.iter().fold(0u64, |sum, width| sum + u64::from(*width));
        let is_used = format.is_empty() || !fields.is_empty() || !explicit.is_empty();
        Invalid::unless(is_used, "format", format!("{widths:?} alone"), "`fields` or `explicit` beside it")?;
        let is_sound = bits <= u64::from(BITS) && !widths.contains(&0);
        Invalid::unless(is_sound, "format", format!("{widths:?}"), format!("fields of 1 bit or more, {BITS} in all"))?;
        if fields.len() > widths.len() {
            return Err(Invalid::new("fields", fields.len(), format!("at most the {} of `format`", widths.len())));
        }
        if let Some((field, width)) = fields.iter().zip(&widths).find(|(field, width)| field.width > **width) {
            return Err(Invalid::new(
                "fields",
                format!("a width of {}", field.width),
                format!("at most {width}, as `format` has it"),
            ));
        }
        let mut values = vec![0u64];
        let mut shift = u64::from(BITS);
        for (field, width) in fields.iter().zip(&widths) {
            shift -= u64::from(*width);
            let count = u64::from(field.max - field.min) + 1;
            if values.len() as u64 * count > MOST {
                return Err(Invalid::new("fields", format!("over {MOST} values"), format!("at most {MOST}")));
            }
            let with = |value: u64| {
                (field.min..=field.max).map(move |compact| value | u64::from(field.expand(compact)) << shift)
            };
            values = values.into_iter().flat_map(with).collect();
        }
        let values = values.into_iter().map(|value| (value as u32, None));
        let stated = (!fields.is_empty()).then_some(fields.len());
        let values = if fields.is_empty() { vec![] } else { values.collect() };
        let mut profile = Profile { widths, values, key: "fields", fields: stated };
        if !explicit.is_empty() {
            if profile.widths.is_empty() {
                return Err(Invalid::new("format", "none", "the bits of each field, for the values of `explicit`"));
            }
            (profile.values, profile.key) =
                (explicit.iter().map(|text| read_value(text)).collect::<Result<_, _>>()?, "explicit");
            let unused = (1u64 << (u64::from(BITS) - bits)) - 1;
            for (number, (value, port)) in profile.values.iter().enumerate() {
                let wrong = |allowed: String| Err(Invalid::new("explicit", format!("{value:#010x}"), allowed));
                if u64::from(*value) & unused != 0 {
                    return wrong(format!(
                        "values whose {} lowest bits are 0: fields are left-justified",
                        u64::from(BITS) - bits
                    ));
                }
                if profile.values[..number].contains(&(*value, *port)) {
                    return wrong("each value once".into());
                }
            }
        }
        Ok(profile)
    }

    pub(super) fn into_values(self) -> Vec<(u32, Option<u32>)> {
        self.values
    }

    /// Checks that each value names an uplink of every tier, and a port where it has one.
    pub(super) fn check(&self, uplinks: &[u32], planes: u32) -> Result<(), Invalid> {
        if self.values.is_empty() {
            return Ok(());
        }
        let wide = |what: String, allowed: String| Err(Invalid::new(self.key, what, allowed));
        if self.widths.len() < uplinks.len() {
            return wide(
                format!("{} fields", self.widths.len()),
                format!("one per tier of switches with uplinks, {}", uplinks.len()),
            );
        }
        if let Some(fields) = self.fields.filter(|fields| *fields < uplinks.len()) {
            return wide(
                format!("{fields} fields"),
                format!("one per tier of switches with uplinks, {}", uplinks.len()),
            );
        }
        for &(value, port) in &self.values {
            if let Some(port) = port.filter(|port| !(1..=planes).contains(port)) {
                return wide(format!("port {port} of {value:#010x}"), format!("ports 1 to {planes}"));
            }
            let beyond = self.parts(value).zip(uplinks).enumerate().find(|(_, (part, uplinks))| part >= uplinks);
            if let Some((tier, (part, uplinks))) = beyond {
                let what = format!("{value:#010x}, whose field {tier} is {part}");
                return wide(what, format!("0 to {}: a switch of tier {tier} has {uplinks} uplinks", uplinks - 1));
            }
        }
        let of_plane =
            |plane: u32| self.values.iter().filter(|(_, port)| port.is_none_or(|port| port == plane + 1)).count();
        let counts: Vec<usize> = (0..planes).map(of_plane).collect();
        if let Some(plane) = (1..planes).find(|plane| counts[*plane as usize] != counts[0]) {
            return wide(
                format!("{} values of port 1 and {} of port {}", counts[0], counts[plane as usize], plane + 1),
                "as many of every port: planes are used equally".into(),
            );
        }
        Ok(())
    }

    /// Returns the fields of a value, the first tier's first.
    fn parts(&self, value: u32) -> impl Iterator<Item = u32> {
        self.widths.iter().scan(u64::from(value) << BITS, |rest, width| {
            let part = *rest >> (2 * BITS - width);
            *rest <<= width;
            Some(part as u32)
        })
    }

    /// Returns the paths of the values over these uplinks (the port first, if there are planes), ascending: part 0 + U0 * (part 1 +
    /// ...); `None`: all paths.
    pub(super) fn paths(&self, uplinks: &[u32], planes: u32) -> Option<Vec<u32>> {
        if self.values.is_empty() {
            return None;
        }
        let tiers = if planes > 1 { &uplinks[1..] } else { uplinks };
        let mut paths = Vec::new();
        for &(value, port) in &self.values {
            let parts: Vec<u32> = self.parts(value).take(tiers.len()).collect();
            let is_there = parts.len() == tiers.len() && parts.iter().zip(tiers).all(|(part, uplinks)| part < uplinks);
            let path = parts.iter().zip(tiers).rev().fold(0, |path, (part, uplinks)| path * uplinks + part);
            let of_port = (0..planes).filter(|plane| port.is_none_or(|port| port == plane + 1));
            paths.extend(of_port.filter(|_| is_there).map(|plane| plane + planes * path));
        }
        paths.sort_unstable();
        paths.dedup();
        Some(paths)
    }
}

/// Values of a profile.
const MOST: u64 = 1 << 16;

fn read_value(text: &str) -> Result<(u32, Option<u32>), Invalid> {
    let (value, port) = text.split_once('@').map_or((text, None), |(value, port)| (value, Some(port)));
    let read = || Some((number(value.trim())?, port.map(|port| number(port.trim()).ok_or(())).transpose().ok()?));
    read().ok_or_else(|| {
        Invalid::new("explicit", format!("{text:?}"), "32 bits, such as \"0x00900000\", with a port \"0x00900000@2\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(format: &[u64], fields: &[&str]) -> Result<Profile, Invalid> {
        let fields = fields.iter().map(|field| (*field).to_string()).collect();
        Profile::read(&MrcParameters { format: format.to_vec(), fields, ..MrcParameters::default() })
    }

    /// Format 8,4,4; T0 in 0..=23 by five bits, T1 in 1..=5 by three above a fixed 8, T2 fixed.
    #[test]
    fn the_worked_example() {
        let of = profile(&[8, 4, 4], &["8 0 0x1f 0..23", "4 0x8 0x7 1..5", "4 0 0 0..0"]).unwrap();
        assert_eq!(of.values.len(), 24 * 5);
        let mut different: Vec<u32> = of.values.iter().map(|value| value.0).collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 120);
        // (T0, T1) = (0, 1), (19, 5), (23, 3): T0's bits as they are, T1 = 8 + its number.
        let value = |t0: usize, t1: usize| of.values[t0 * 5 + t1 - 1].0;
        assert_eq!([value(0, 1), value(19, 5), value(23, 3)], [0x0090_0000, 0x13d0_0000, 0x17b0_0000]);
        assert_eq!(of.parts(0x13d0_0000).collect::<Vec<_>>(), [0x13, 0xd, 0]);
    }

    #[test]
    fn masks_may_be_split_and_fields_are_left_justified() {
        let split = profile(&[16, 16], &["16 0x1000 0x0f0f 0xa5..0xa5", "16 0x2000 0x0f0f 0x3c..0x3c"]).unwrap();
        assert_eq!(split.values, [(0x1a05_230c, None)]);
        let wide = profile(&[10, 8, 4], &["10 517 0 0..0", "8 200 0 0..0", "4 9 0 0..0"]).unwrap();
        assert_eq!(wide.values, [(0x8172_2400, None)]);
        // A format field of 8 bits zero-fills a profile field of 4 on the left.
        assert_eq!(profile(&[8, 8], &["4 0xf 0 0..0"]).unwrap().values, [(0x0f00_0000, None)]);
    }

    #[test]
    fn each_rule_refuses() {
        for (format, fields, part) in [
            (&[8u64][..], &["4 0 0xf 0..15", "4 0 0xf 0..15"][..], "found 2, expected at most the 1 of `format`"),
            (&[4], &["8 0 0xf 0..15"], "a width of 8, expected at most 4"),
            (&[20, 20], &["4 0 0xf 0..15"], "32 in all"),
            (&[], &["4 0x1f 0xf 0..15"], "an init of at most 4 bits"),
            (&[], &["4 0 0x1f 0..15"], "a mask of at most 4 bits"),
            (&[], &["4 0 0x7 0..8"], "a maximum of at most 7: the mask has 3 ones"),
            (&[], &["4 0 0x7 5..4"], "a minimum up to the maximum"),
            (&[], &["0 0 0 0..0"], "a width from 1 to 32"),
            (&[], &["4 0 0x7"], "width init mask min..max"),
            (&[], &["16 0 0xffff 0..0xffff", "16 0 0xffff 0..1"], "at most 65536"),
        ] {
            let error = profile(format, fields).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn values_are_paths_of_the_fabric() {
        // Eight uplinks at the leaf, four above: 3 bits and 2.
        let of = profile(&[3, 2], &["3 0 0x7 0..7", "2 0 0x3 1..2"]).unwrap();
        assert_eq!(of.check(&[8, 4], 1), Ok(()));
        assert_eq!(of.paths(&[8, 4], 1).unwrap(), (8..24).collect::<Vec<_>>());
        // Two planes: the port is the first part, all values on either. Below one tier all values are eight.
        assert_eq!(of.paths(&[2, 8, 4], 2).unwrap(), (16..48).collect::<Vec<_>>());
        assert_eq!(of.paths(&[8], 1).unwrap(), (0..8).collect::<Vec<_>>());
        let error = of.check(&[6, 4], 1).unwrap_err().to_string();
        assert!(error.contains("0xc8000000, whose field 0 is 6, expected 0 to 5"), "{error}");
        assert!(of.check(&[8, 4, 2], 1).unwrap_err().to_string().contains("one per tier"));
        let explicit = vec!["0x20000000@2".to_string(), "0x00000000".to_string()];
        let of = Profile::read(&MrcParameters { format: vec![3], explicit, ..MrcParameters::default() }).unwrap();
        // Uplink 1 over port 2 alone, uplink 0 over both.
        assert_eq!(of.paths(&[2, 8], 2).unwrap(), [0, 1, 3]);
        assert!(of.check(&[8], 1).unwrap_err().to_string().contains("ports 1 to 1"));
        assert!(of.check(&[8], 2).unwrap_err().to_string().contains("1 values of port 1 and 2 of port 2"));
        // A field of a GENERATED profile per tier.
        let of = profile(&[3, 2], &["3 0 0x7 0..7"]).unwrap();
        assert!(of.check(&[8, 4], 1).unwrap_err().to_string().contains("found 1 fields, expected one per tier"));
    }

    #[test]
    fn explicit_values_are_left_justified_and_different() {
        let read = |values: &[&str]| {
            let explicit = values.iter().map(|value| (*value).to_string()).collect();
            Profile::read(&MrcParameters { format: vec![8], explicit, ..MrcParameters::default() })
        };
        assert!(read(&["0x01000000@1", "0x01000000@2"]).is_ok());
        assert!(read(&["0x1", "0x2"]).unwrap_err().to_string().contains("whose 24 lowest bits are 0"));
        assert!(read(&["0x01000000", "0x01000000"]).unwrap_err().to_string().contains("each value once"));
        assert!(profile(&[8], &[]).unwrap_err().to_string().contains("`fields` or `explicit` beside it"));
    }
}
