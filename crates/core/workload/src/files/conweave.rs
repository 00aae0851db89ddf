//! ConWeave's flow file (specification 14.3): the number of flows, then a line per flow, by start, with source, destination,
//! priority group (checked, without effect), size in bytes and start in seconds.
//!
//! Starts are rounded as in ConWeave's simulator: the seconds as a double, truncated to whole nanoseconds (specification
//! 17.2).

use super::Source;
use crate::{Start, WorkloadError, flow::plain, traffic::Traffic};
use anabranch_units::Time;

pub(super) fn read(source: &Source<'_>) -> Result<Traffic, WorkloadError> {
    let mut lines =
        source.text()?.lines().enumerate().map(|(i, line)| (i + 1, line.trim())).filter(|(_, line)| !line.is_empty());
    let Some((first, count)) = lines.next() else {
        return Err(source.wrong(1, "found an empty file, expected the number of flows"));
    };
    let count: u64 = count
        .parse()
        .map_err(|_| source.wrong(first, format!("found `{count}`, expected the number of flows alone on a line")))?;
    let mut traffic = Traffic::default();
    let mut before = Time::ZERO;
    for (line, text) in lines {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [src, dst, group, size, start] = fields[..] else {
            let expected = "expected 5: source, destination, priority group, size, start";
            return Err(source.wrong(line, format!("found {} columns, {expected}", fields.len())));
        };
        let (src, dst) = (source.host(line, "source", src)?, source.host(line, "destination", dst)?);
        source.pair(line, src, dst)?;
        source.whole(line, "priority group", group)?;
        let (size, at) = (source.size(line, size)?, cut(source.start(line, start)?));
        if at < before {
            let message =
                format!("the start {start} is before that of the flow above; flows are in the order of starts");
            return Err(source.wrong(line, message));
        }
        before = at;
        traffic.flows.push(plain(src, dst, size, Start::At(at)));
    }
    if traffic.flows.len() as u64 != count {
        let message = format!("announces {count} flows, and {} follow", traffic.flows.len());
        return Err(source.wrong(first, message));
    }
    Ok(traffic)
}

/// 2.000005 s is 2,000,004,999 ns.
fn cut(time: Time) -> Time {
    // Both numbers are below 2^53, so the quotient is the double of the text.
    let seconds = time.ps() as f64 / 1e12;
    let (mantissa, exponent) = (seconds.to_bits() & ((1 << 52) - 1) | 1 << 52, (seconds.to_bits() >> 52) as i32 - 1075);
    if seconds < 1e-12 || !(-127..=0).contains(&exponent) {
        return time;
    }
    let nanoseconds = (u128::from(mantissa) * 1_000_000_000) >> -exponent;
    Time::from_ps(nanoseconds as u64 * 1000)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{read_text, refused_texts};
    use crate::{FileFormat::Conweave, Start};
    use anabranch_units::Time;

    #[test]
    fn seconds_are_cut_to_nanoseconds_as_doubles_are() {
        // specification 17.2: 2.000005 s is recorded as 2,000,004,999 ns; 2.002 as 2,001,999,999 ns and 2.004 exactly.
        let text = "5\n0 1 3 1000 0\n0 1 3 1000 2\n0 1 3 1000 2.000005\n\n 7\t5 3 41 2.002 \n0 1 3 9 2.004000000\n";
        let made = read_text(Conweave, text).unwrap();
        let seen: Vec<_> = made.flows.iter().map(|f| f.start).collect();
        let expected = [0, 2_000_000_000, 2_000_004_999, 2_001_999_999, 2_004_000_000];
        assert_eq!(seen, expected.map(|ns| Start::At(Time::from_ps(ns * 1000))));
        assert_eq!((made.flows[3].src, made.flows[3].dst, made.flows[3].size), (7, 5, 41));
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        refused_texts(Conweave, "conweave:");
    }
}
