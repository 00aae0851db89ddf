//! An exponential function in plain IEEE additions, multiplications and divisions: the same bits on every machine.

/// e^x for finite x, to within a few units in the last place; infinite or 0 beyond the range of doubles.
///
/// x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its series, times 2^k.
pub fn exp(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    if x > 709.78 {
        return f64::INFINITY;
    }
    if x < -708.0 {
        return 0.0;
    }
    let k = (x / std::f64::consts::LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    let r = (x - k as f64 * LN2_HIGH) - k as f64 * LN2_LOW;
    let (mut sum, mut n) = (1.0, 20);
    while n >= 1 {
        sum = 1.0 + r / f64::from(n) * sum;
        n -= 1;
    }
    // 2^1024 is no double.
    let half = f64::from_bits(((k / 2 + 1023) as u64) << 52);
    let rest = f64::from_bits(((k - k / 2 + 1023) as u64) << 52);
    sum * half * rest
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_library() {
        for step in -70_000..70_900 {
            let x = f64::from(step) / 100.0;
            let (ours, theirs) = (super::exp(x), x.exp());
            assert!((ours / theirs - 1.0).abs() < 1e-15 * 8.0, "{x}: {ours} {theirs}");
        }
        assert_eq!((super::exp(0.0), super::exp(-1e9), super::exp(1e9)), (1.0, 0.0, f64::INFINITY));
    }
}
