//! State of schemes, for traces and real runs: the columns that a scheme declares beside its parameters, and their values.

use anabranch_units::Time;

/// A column of a scheme's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateColumn {
    /// Name; one of times ends in `_ps`.
    pub name: &'static str,
    /// Unit; empty if it has none.
    pub unit: &'static str,
    /// Meaning.
    pub meaning: &'static str,
}

/// Maximum number of columns of a scheme.
pub const MAX_STATE: usize = 12;

/// Values of a scheme's columns, in order; NaN: none.
#[derive(Clone, Copy, Debug)]
pub struct State([f64; MAX_STATE]);

impl Default for State {
    fn default() -> Self {
        State([f64::NAN; MAX_STATE])
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        self.0.iter().zip(&other.0).all(same)
    }
}

impl Eq for State {}

impl State {
    /// Creates the state with these first values.
    pub fn of(values: &[f64]) -> Self {
        let mut state = State::default();
        state.0.iter_mut().zip(values).for_each(|(place, value)| *place = *value);
        state
    }

    /// Returns the value of a column, by number; `None`: it has none.
    pub fn get(&self, column: usize) -> Option<f64> {
        self.0.get(column).copied().filter(|value| !value.is_nan())
    }
}

/// Returns a time in picoseconds; the latest is none.
pub(crate) fn ps(time: Time) -> f64 {
    if time == Time::MAX { f64::NAN } else { time.ps() as f64 }
}

/// Declares the columns of a scheme's state as `STATE`, and `Columns`, their values by name. `state! {}`: it keeps none.
macro_rules! state {
    () => {
        pub(crate) const STATE: &[crate::StateColumn] = &[];
    };
    ($($(#[doc = $meaning:literal])+ $name:ident: $unit:literal;)+) => {
        pub(crate) const STATE: &[crate::StateColumn] = &[$(crate::StateColumn {
            name: stringify!($name),
            unit: $unit,
            meaning: concat!($($meaning),+).trim_ascii(),
        },)+];

        struct Columns {
            $($name: f64,)+
        }

        impl From<Columns> for crate::State {
            fn from(columns: Columns) -> Self {
                const { assert!(STATE.len() <= crate::MAX_STATE) };
                crate::State::of(&[$(columns.$name),+])
            }
        }
    };
}
pub(crate) use state;
