use anabranch_results::significant_digits_trimmed;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    min: f64,
    max: f64,
    logarithmic: bool,
}

impl Scale {
    /// Linear scale, widened to end on ticks.
    pub(crate) fn linear(min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + if min == 0.0 { 1.0 } else { min.abs() * 0.1 } };
        let step = step(max - min, 5.0);
        Scale { min: (min / step).floor() * step, max: (max / step - 1e-9).ceil() * step, logarithmic: false }
    }

    pub(crate) fn exact(min: f64, max: f64) -> Self {
        Scale { min, max, logarithmic: false }
    }

    /// Logarithmic scale, widened to round multiples of a power of ten. `min` and `max` must be positive.
    pub(crate) fn logarithmic(min: f64, max: f64) -> Self {
        let (min, max) = (nice_below(min), nice_above(max));
        let max = if max > min { max } else { min * 2.0 };
        Scale { min, max, logarithmic: true }
    }

    /// Logarithmic if the values span more than a factor of `factor`, else linear.
    pub(crate) fn fitting(min: f64, max: f64, factor: f64) -> Self {
        if min > 0.0 && max / min > factor { Scale::logarithmic(min, max) } else { Scale::linear(min, max) }
    }

    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// Position of `value` from 0 to 1; values outside are put on the edge.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.min) / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        };
        share.clamp(0.0, 1.0)
    }

    pub(crate) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.max - self.min, 5.0);
            let first = (self.min / step - 1e-9).ceil() as i64;
            let last = (self.max / step + 1e-9).floor() as i64;
            return (first..=last).map(|i| i as f64 * step).collect();
        }
        let decades = (self.max / self.min).log10();
        let factors: &[f64] = match decades {
            d if d <= 0.7 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d <= 1.3 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            d if d <= 3.2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let (first, last) = (self.min.log10().floor() as i32, self.max.log10().ceil() as i32);
        let every = if decades > 7.5 { 2 } else { 1 };
        (first..=last)
            .filter(|decade| decade.rem_euclid(every) == 0)
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .filter(|tick| *tick >= self.min * 0.999_999 && *tick <= self.max * 1.000_001)
            .collect()
    }
}

/// Returns 1, 2, 2.5 or 5 times a power of ten that divides `range` into about `parts`.
fn step(range: f64, parts: f64) -> f64 {
    let rough = range / parts;
    let magnitude = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|f| f * magnitude >= rough * 0.999_999).unwrap_or(10.0);
    factor * magnitude
}

fn nice_below(value: f64) -> f64 {
    let magnitude = 10f64.powf(value.log10().floor());
    let factor = [5.0, 3.0, 2.0, 1.5, 1.0].into_iter().find(|f| f * magnitude <= value * 1.000_001).unwrap_or(1.0);
    factor * magnitude
}

fn nice_above(value: f64) -> f64 {
    let magnitude = 10f64.powf(value.log10().floor());
    let factors = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0];
    factors.into_iter().find(|f| f * magnitude >= value * 0.999_999).unwrap_or(10.0) * magnitude
}

pub(crate) type Format = fn(f64) -> String;

pub(crate) fn plain(value: f64) -> String {
    significant_digits_trimmed(value, 4)
}

pub(crate) fn percent(value: f64) -> String {
    format!("{} %", significant_digits_trimmed(value * 100.0, 3))
}

/// Positions of the x values from 0 to 1: proportional if all are `numbers`, else in equal steps.
pub(crate) fn places(numbers: &[f64], values: usize) -> Vec<f64> {
    let ends =
        numbers.iter().copied().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if numbers.len() != values || values < 2 || ends.1 <= ends.0 {
        let last = values.saturating_sub(1).max(1) as f64;
        return (0..values).map(|i| if values == 1 { 0.5 } else { i as f64 / last }).collect();
    }
    // Above a ratio of 30, equal ratios are equal steps.
    let logarithmic = ends.0 > 0.0 && ends.1 / ends.0 > 30.0;
    let to = |x: f64| if logarithmic { x.ln() } else { x };
    numbers.iter().map(|x| (to(*x) - to(ends.0)) / (to(ends.1) - to(ends.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round() {
        let scale = Scale::linear(0.0, 0.93);
        assert_eq!(scale.ends(), (0.0, 1.0));
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), 6);
        for (tick, expected) in ticks.iter().zip([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]) {
            assert!((tick - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn logarithmic_ticks_are_one_two_five() {
        let scale = Scale::logarithmic(1.0, 47.0);
        assert_eq!(scale.ends(), (1.0, 50.0));
        assert_eq!(scale.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(scale.share(1.0), 0.0);
        assert!((scale.share(50f64.sqrt()) - 0.5).abs() < 1e-12);
        assert_eq!(scale.share(0.0), 0.0);
    }

    #[test]
    fn equal_limits_give_an_axis() {
        for scale in [Scale::linear(0.0, 0.0), Scale::linear(3.0, 3.0), Scale::logarithmic(3.0, 3.0)] {
            let (min, max) = scale.ends();
            assert!(max > min, "{scale:?}");
            assert!(scale.share(min).is_finite());
        }
    }

    #[test]
    fn values_map_to_positions() {
        assert_eq!(places(&[0.2, 0.4, 0.6], 3), [0.0, (0.4 - 0.2) / (0.6 - 0.2), 1.0]);
        // 1, 10, 100 are equal ratios.
        let decades = places(&[1.0, 10.0, 100.0], 3);
        assert!((decades[1] - 0.5).abs() < 1e-12);
        // Values without numbers are in equal steps.
        assert_eq!(places(&[], 3), [0.0, 0.5, 1.0]);
        assert_eq!(places(&[7.0], 1), [0.5]);
        assert_eq!(places(&[7.0, 7.0], 2), [0.0, 1.0]);
    }
}
