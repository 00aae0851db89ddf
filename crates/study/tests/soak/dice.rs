//! Random choices of a case.

use anabranch_random::Stream;
use anabranch_settings::{Parameters, Raw};
use std::fmt::Display;

/// The choices of one piece of a case, the same for the same (seed, case, piece).
pub(crate) struct Dice(Stream);

impl Dice {
    pub(crate) fn new(seed: u64, case: u64, piece: &str) -> Self {
        Dice(Stream::keyed(seed, case, piece))
    }

    /// One of `items`, each as likely.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.0.below(items.len() as u64) as usize]
    }

    /// One of `items`, each as likely.
    pub(crate) fn one<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.0.below(items.len() as u64) as usize].clone()
    }

    /// From `low` to `high`, both among them.
    pub(crate) fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.0.chance(1, times)
    }

    /// The numbers below `n`, shuffled.
    pub(crate) fn order(&mut self, n: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..n).collect();
        self.0.shuffle(&mut numbers);
        numbers
    }

    /// Another value for one of `parameters`, made from its default and from what its documentation says it takes;
    /// `None` where there is none to be had.
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
                match number.parse::<f64>() {
                    Ok(value) if !number.is_empty() => {
                        format!("\"{}\"", self.scaled(value, &text[number.len()..]))
                    }
                    _ => self.word(&parameter.expected)?,
                }
            }
            Raw::List(_) => return None,
        };
        Some((parameter.name.to_string(), value))
    }

    /// A multiple of a number; units are whole below a thousandth.
    fn scaled(&mut self, value: f64, unit: &str) -> String {
        let scaled = value * self.one(&[0.25, 0.5, 2.0, 4.0]);
        match unit {
            "" => format!("{scaled:?}"),
            _ => format!("{}{unit}", (scaled * 1000.0).round() / 1000.0),
        }
    }

    /// One of the words in quotation marks that a parameter takes, or one of a few times where it takes a time.
    fn word(&mut self, expected: &str) -> Option<String> {
        let mut words: Vec<String> = expected.split('"').skip(1).step_by(2).map(|w| format!("\"{w}\"")).collect();
        if expected.contains("a time") {
            words = ["2us", "50us", "1ns"].map(|w| format!("\"{w}\"")).to_vec();
        }
        words.retain(|word| word != "\"\"");
        if words.is_empty() { None } else { Some(self.one(&words)) }
    }
}

/// A word in quotation marks.
pub(crate) fn quoted(word: impl Display) -> String {
    format!("\"{word}\"")
}
