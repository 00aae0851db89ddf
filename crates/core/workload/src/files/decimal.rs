//! Decimal numbers read exactly, without floating point.

/// Reads `text`, such as `2.000005` or `1e-6`, as a multiple of `scale` smallest units. An error is the expected value.
pub(super) fn read(text: &str, scale: u64) -> Result<u64, &'static str> {
    const NUMBER: &str = "a number, zero or more";
    const WHOLE: &str = "a whole number of picoseconds";
    const SMALLER: &str = "a time below 213 days";
    if let Some(value) = short(text) {
        return value.checked_mul(scale).ok_or(SMALLER);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().map_err(|_| NUMBER)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return Err(NUMBER);
    }
    // value = digits * 10^shift; trailing zeros move into the shift, so that insignificant digits fit.
    let zeros = digits().rev().take_while(|&byte| byte == b'0').count();
    let significant = whole.len() + fraction.len() - zeros;
    let shift = i64::from(exponent) - fraction.len() as i64 + zeros as i64;
    let mut value: u128 = 0;
    for byte in digits().take(significant) {
        value = value.checked_mul(10).and_then(|v| v.checked_add(u128::from(byte - b'0'))).ok_or(
            // More than 38 significant digits: finer than a picosecond, or far too large.
            if shift < 0 { WHOLE } else { SMALLER },
        )?;
    }
    if value == 0 {
        return Ok(0);
    }
    let power = u32::try_from(shift.unsigned_abs()).ok().and_then(|power| 10u128.checked_pow(power));
    let scaled = value.checked_mul(u128::from(scale));
    let result = if shift >= 0 {
        scaled.zip(power).and_then(|(scaled, power)| scaled.checked_mul(power)).ok_or(SMALLER)?
    } else {
        let (scaled, power) = (scaled.ok_or(SMALLER)?, power.ok_or(WHOLE)?);
        if !scaled.is_multiple_of(power) {
            return Err(WHOLE);
        }
        scaled / power
    };
    u64::try_from(result).map_err(|_| SMALLER)
}

/// The usual case: up to 19 digits and nothing else.
fn short(text: &str) -> Option<u64> {
    let digits = (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.bytes().fold(0, |value, byte| value * 10 + u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::read;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000_000;

    #[test]
    fn reads_exactly() {
        for (text, scale, ps) in [
            ("2.000005", SECOND, 2_000_005_000_000),
            ("2.000000000001", SECOND, 2_000_000_000_001),
            ("0", SECOND, 0),
            ("0.000", 1, 0),
            ("16777217", 1, 16_777_217),
            ("123.0000000000000000000000000000000000000000000000000000", 1, 123),
            ("0000000000000000000000000000000000000000000000000000012", 1, 12),
            (".5", 1_000, 500),
            ("5.", 1_000, 5_000),
            ("1e-6", SECOND, 1_000_000),
            ("2.5E3", 1, 2_500),
            ("0e999", SECOND, 0),
            ("18446744073709551615", 1, u64::MAX),
        ] {
            assert_eq!(read(text, scale), Ok(ps), "{text}");
        }
        for (text, scale) in [
            ("", 1),
            (".", 1),
            ("-1", 1),
            ("1.2.3", 1),
            ("0.5", 1),
            ("2.0000000000001", SECOND),
            ("18446744073709551616", 1),
            ("1e9", SECOND),
            ("1e99999", 1),
            ("1e", 1),
            ("e5", 1),
            ("nan", 1),
            ("1e-32000", SECOND),
        ] {
            assert!(read(text, scale).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_integers(ps: u64) {
            let text = format!("{}.{:012}", ps / SECOND, ps % SECOND);
            prop_assert_eq!(read(&text, SECOND), Ok(ps));
        }
        #[test]
        fn never_panics(text in "[0-9eE.+-]{0,60}", scale in 0u64..u64::MAX) {
            let _ = read(&text, scale);
        }
    }
}
