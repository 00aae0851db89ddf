//! Numbers as text.

/// Formats `value` with `digits` significant digits, with thousands separators (`12,345`) and no exponent within reason.
pub fn significant_digits(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "n/a".to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude < -5 {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    let rounding = 10f64.powi((magnitude + 1 - digits as i32).max(0));
    let rounded = if rounding > 1.0 { (value / rounding).round() * rounding } else { value };
    let text = format!("{rounded:.decimals$}").replace('-', "\u{2212}");
    thousands(&text)
}

/// Puts commas between groups of three digits.
pub fn thousands(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let sign = whole.chars().take_while(|c| !c.is_ascii_digit()).collect::<String>();
    let digits = &whole[sign.len()..];
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or_else(|| format!("{sign}{grouped}"), |rest| format!("{sign}{grouped}.{rest}"))
}

/// Formats the ratio 0.77 as `−23 %`.
pub fn percent_change(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let decimals = if change.abs() < 9.95 { 1 } else { 0 };
    let text = format!("{change:+.decimals$}");
    if text.trim_matches(['+', '-', '0', '.']).is_empty() {
        return "±0 %".to_string();
    }
    if change >= 1000.0 {
        return format!("×{}", significant_digits(ratio, 3));
    }
    format!("{} %", text.replace('-', "\u{2212}"))
}

/// Formats a time as `2.00 ms`.
pub fn seconds(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    format!("{} {unit}", significant_digits(seconds * scale, 3))
}

/// Formats a time as `2 ms`.
pub fn seconds_trimmed(value: f64) -> String {
    let text = seconds(value);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}

/// Formats bytes as `1.5 MB`, with powers of ten.
pub fn bytes(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1e12 => (1e12, "TB"),
        v if v >= 1e9 => (1e9, "GB"),
        v if v >= 1e6 => (1e6, "MB"),
        v if v >= 1e3 => (1e3, "kB"),
        _ => (1.0, "B"),
    };
    format!("{} {unit}", significant_digits_trimmed(value / scale, 3))
}

/// Formats as [`significant_digits`], without trailing zeros of a fraction.
pub fn significant_digits_trimmed(value: f64, digits: usize) -> String {
    let text = significant_digits(value, digits);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Shortens runs of three and more consecutive letters: `abcdf` is `a\u{2013}df`.
pub fn letters(text: &str) -> String {
    if !text.chars().all(|c| c.is_ascii_lowercase()) {
        return text.to_string();
    }
    let follows = |a: &u8, b: &u8| a + 1 == *b;
    let shown = |run: &[u8]| match run {
        [first, _, .., last] => format!("{}\u{2013}{}", char::from(*first), char::from(*last)),
        few => few.iter().map(|c| char::from(*c)).collect(),
    };
    text.as_bytes().chunk_by(follows).map(shown).collect()
}

/// Returns the text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Joins names: `a, b and c`.
pub fn list(names: Vec<&str>) -> String {
    match names.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_letters() {
        assert_eq!(letters("abcdf"), "a\u{2013}df");
        assert_eq!(letters("ab"), "ab");
        assert_eq!(letters(""), "");
        assert_eq!(letters("za1"), "za1");
    }

    #[test]
    fn digits() {
        assert_eq!(significant_digits(3.21456, 3), "3.21");
        assert_eq!(significant_digits(0.012_345, 3), "0.0123");
        assert_eq!(significant_digits(1_234_567.0, 4), "1,235,000");
        assert_eq!(significant_digits(1234.56, 4), "1235");
        assert_eq!(significant_digits(12_345.6, 4), "12,350");
        assert_eq!(significant_digits(-2.5, 2), "\u{2212}2.5");
        assert_eq!(significant_digits(0.0, 4), "0");
        assert_eq!(significant_digits_trimmed(2.0, 3), "2");
        assert_eq!(significant_digits_trimmed(100.0, 3), "100");
    }

    #[test]
    fn changes() {
        assert_eq!(percent_change(0.77), "\u{2212}23 %");
        assert_eq!(percent_change(1.034), "+3.4 %");
        assert_eq!(percent_change(1.0), "±0 %");
        assert_eq!(percent_change(0.9999), "±0 %");
        assert_eq!(percent_change(21.0), "×21.0");
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes(1_500_000.0), "1.5 MB");
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(bytes(64_000.0), "64 kB");
    }
}
