//! A natural logarithm in plain IEEE additions, multiplications and divisions: the same bits on every machine.

/// ln(x) for finite x > 0, to within a few units in the last place.
///
/// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(s), s = (m-1)/(m+1), |s| < 0.1716, by its series.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x > 0.0 && x.is_finite());
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | (1023 << 52));
    if (bits >> 52) & 0x7FF == 0 {
        // Subnormal: scale by 2^54 first.
        let scaled = (x * 18_014_398_509_481_984.0).to_bits();
        exponent = ((scaled >> 52) & 0x7FF) as i64 - 1023 - 54;
        mantissa = f64::from_bits((scaled & 0x000F_FFFF_FFFF_FFFF) | (1023 << 52));
    }
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let (mut sum, mut k) = (0.0, 23);
    while k >= 1 {
        sum = sum * square + 1.0 / f64::from(k);
        k -= 2;
    }
    let e = exponent as f64;
    e * LN2_HIGH + (2.0 * s * sum + e * LN2_LOW)
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_library() {
        let mut x = 1e-300f64;
        while x < 1e300 {
            let (ours, theirs) = (super::ln(x), x.ln());
            assert!((ours - theirs).abs() <= 4.0 * f64::EPSILON * theirs.abs().max(1.0), "{x} {ours} {theirs}");
            x *= 1.37;
        }
        assert_eq!(super::ln(1.0), 0.0);
        assert!((super::ln(5e-324) - 5e-324f64.ln()).abs() < 1e-9);
    }
}
