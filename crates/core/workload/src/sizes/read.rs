use super::{LARGEST, SizeDistribution};
use crate::WorkloadError;

impl SizeDistribution {
    /// Reads a table: a line per point with size in bytes and cumulative probability, `#` starts a comment (specification
    /// 12.1). Probabilities are in percent or fractions, by the last value, 100 or 1; the first is 0; both columns are
    /// non-decreasing. A flat step has no mass; two lines of one size are an atom. `path` is for messages.
    ///
    /// Errors: a broken rule, with file and line.
    pub fn parse(text: &str, path: &str) -> Result<Self, WorkloadError> {
        let wrong = |line: usize, message: String| WorkloadError::in_line(path, line, message);
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 1;
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
            let content = line.split('#').next().unwrap_or_default();
            let columns: Vec<&str> = content.split_whitespace().collect();
            let (size, probability) = match columns[..] {
                [] => continue,
                [size, probability] => (size, probability),
                _ => {
                    let found = columns.len();
                    return Err(wrong(number, format!("found {found} columns, expected two: size and probability")));
                }
            };
            let value = |what: &str, text: &str| match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
                _ => Err(wrong(number, format!("{what}: found `{text}`, expected a number, zero or more"))),
            };
            let point = (value("size", size)?, value("probability", probability)?);
            if point.0 > LARGEST as f64 {
                return Err(wrong(number, format!("size: found `{size}`, expected at most {LARGEST} B")));
            }
            match points.last() {
                None if point.1 != 0.0 => {
                    return Err(wrong(number, format!("the first probability is `{probability}`, expected 0")));
                }
                Some(before) if point.0 < before.0 => {
                    let message = format!("size `{size}` is below that of the line before, {}", before.0);
                    return Err(wrong(number, format!("{message}; sizes must not decrease")));
                }
                Some(before) if point.1 < before.1 => {
                    let message = format!("probability `{probability}` is below that of the line before, {}", before.1);
                    return Err(wrong(number, format!("{message}; probabilities must not decrease")));
                }
                _ => points.push(point),
            }
            last_line = number;
        }
        let Some(&(largest, total)) = points.last() else {
            return Err(wrong(1, "found no points, expected lines of size and cumulative probability".into()));
        };
        if total != 1.0 && total != 100.0 {
            return Err(wrong(last_line, format!("the last probability is {total}, expected 100 (percent) or 1")));
        }
        if largest <= 0.0 {
            return Err(wrong(last_line, "every size is 0, expected some of 1 B or more".into()));
        }
        points.iter_mut().for_each(|point| point.1 /= total);
        Ok(SizeDistribution { points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percent_and_fractions_are_the_same() {
        let percent = SizeDistribution::parse("# a comment\n0 0\n\n100 25 # here too\n200 100.0\n", "p").unwrap();
        let fraction = SizeDistribution::parse("0 0\n100 0.25\n200 1\n", "f").unwrap();
        assert_eq!(percent, fraction);
        // 0.25 * 50 + 0.75 * 150
        assert_eq!(percent.mean(), 125.0);
    }

    #[test]
    fn broken_rules_are_named_with_their_line() {
        for [text, line, part] in crate::kinds::testing::rows("sizes") {
            let error = SizeDistribution::parse(&text, "sizes.txt").unwrap_err();
            assert_eq!(error.place, Some(format!("sizes.txt:{line}")), "{text:?}");
            assert!(error.message.contains(&part), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_can_be_drawn_from(text in "([0-9]{1,4} (0|1|100|[0-9]{1,2})(\\.[0-9])?\n){1,6}", seed: u64) {
            if let Ok(distribution) = SizeDistribution::parse(&text, "fuzz") {
                let mut stream = anabranch_random::Stream::keyed(seed, 0, "fuzz");
                for _ in 0..20 {
                    let size = distribution.sample(&mut stream);
                    prop_assert!(size >= 1 && size <= distribution.largest());
                    prop_assert!(distribution.cdf(size) > 0.0);
                }
            }
        }
    }
}
