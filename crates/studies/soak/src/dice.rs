//! Random choices of a case.

use anabranch_random::Stream;
use anabranch_settings::{Parameters, Raw, ValueSchema};
use std::fmt::Display;

/// Random choices for one piece of a case, determined by (seed, case, piece).
pub(crate) struct Dice(Stream);

impl Dice {
    pub(crate) fn new(seed: u64, case: u64, piece: &str) -> Self {
        Dice(Stream::keyed(seed, case, piece))
    }

    /// Returns one of `items`, uniformly.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.0.below(items.len() as u64) as usize]
    }

    pub(crate) fn one<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.0.below(items.len() as u64) as usize].clone()
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub(crate) fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// Returns `true` with probability 1 / `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.0.chance(1, times)
    }

    /// Returns the numbers below `n`, shuffled.
    pub(crate) fn order(&mut self, n: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..n).collect();
        self.0.shuffle(&mut numbers);
        numbers
    }

    /// A value other than the default for one of `parameters`; `None` where its shape has no random values.
    pub(crate) fn other_value(&mut self, parameters: &dyn Parameters) -> Option<(String, String)> {
        let all = parameters.documentation();
        if all.is_empty() {
            return None;
        }
        let parameter = &all[self.0.below(all.len() as u64) as usize];
        let value = match &parameter.default {
            Raw::Bool(value) => (!value).to_string(),
            Raw::Int(value) => {
                let value = u64::try_from(*value).ok()?;
                self.one(&[value / 4, value / 2, value.saturating_mul(2), 1, 2, 7]).to_string()
            }
            Raw::Float(value) => self.scaled(*value, ""),
            Raw::Text(text) => {
                let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let other_shape = matches!(&parameter.schema, ValueSchema::Either(_)) && self.once_in(3);
                match number.parse::<f64>() {
                    Ok(value) if !number.is_empty() && !other_shape => {
                        quoted(self.scaled(value, &text[number.len()..]))
                    }
                    _ => self.of_shape(&parameter.schema)?,
                }
            }
            Raw::List(_) => return None,
        };
        Some((parameter.name.to_string(), value))
    }

    /// Returns a random multiple of `value`; numbers with units have at most three decimals.
    fn scaled(&mut self, value: f64, unit: &str) -> String {
        let scaled = value * self.one(&[0.25, 0.5, 2.0, 4.0]);
        match unit {
            "" => format!("{scaled:?}"),
            _ => format!("{}{unit}", (scaled * 1000.0).round() / 1000.0),
        }
    }

    fn of_shape(&mut self, shape: &ValueSchema) -> Option<String> {
        match shape {
            ValueSchema::Bool => Some(self.once_in(2).to_string()),
            ValueSchema::Whole => Some(self.number(1, 8).to_string()),
            ValueSchema::Number => Some(self.pick(&["0.1", "0.5", "2.0"]).to_string()),
            ValueSchema::Words(words) if !words.is_empty() => Some(quoted(self.one(words))),
            ValueSchema::Quantity(units) if units.contains(&"us") => Some(quoted(self.pick(&["2us", "50us", "1ns"]))),
            ValueSchema::Quantity(units) if units.contains(&"Gbps") => Some(quoted(self.pick(&["10Gbps", "100Gbps"]))),
            ValueSchema::Quantity(units) if units.contains(&"kB") => Some(quoted(self.pick(&["5kB", "50kB", "1MB"]))),
            ValueSchema::Quantity(units) if units.contains(&"passes") => {
                Some(quoted(self.pick(&["1pass", "0.25passes", "3passes"])))
            }
            ValueSchema::Quantity(units) if units.contains(&"bdp") => Some(quoted(self.pick(&["0.1bdp", "2bdp"]))),
            ValueSchema::Either(shapes) if !shapes.is_empty() => {
                let shape = self.one(shapes);
                self.of_shape(&shape)
            }
            _ => None,
        }
    }
}

pub(crate) fn quoted(word: impl Display) -> String {
    format!("\"{word}\"")
}
