//! Parameters of kinds without rules of their own.

use crate::{Dice, Section};
use anabranch_settings::{Parameters, Raw};

/// Adds values for some parameters of a kind without rules of its own; counts are small.
pub(super) fn unknown(dice: &mut Dice, mut section: Section, parameters: &dyn Parameters) -> Section {
    for parameter in parameters.documentation() {
        if matches!(parameter.default, Raw::Int(_)) && !dice.once_in(3) {
            section = section.raw(parameter.name, dice.number(1, 5));
        }
    }
    for _ in 0..dice.number(0, 2) {
        if let Some((key, value)) = dice.other_value(parameters) {
            section = section.raw(&key, value);
        }
    }
    section
}
