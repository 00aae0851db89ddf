//! Flow-size distributions (specification 12.1): piecewise linear cumulative distributions of bytes.

mod read;
mod tables;

pub use tables::{SIZE_DISTRIBUTIONS, SizesAbout};

use crate::{ReadFile, WorkloadError, error::hint};
use anabranch_random::Stream;
use anabranch_settings::nearest;
use anabranch_units::Bytes;

/// A distribution of flow sizes in bytes.
///
/// Between the points of its table the cumulative distribution F is linear. A size is drawn by inversion and rounded *up*, so
/// that P(size <= k) is exactly F(k) for every whole k >= 1; size 0 becomes 1 byte.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// Size in bytes and cumulative probability, from 0 to 1, both non-decreasing.
    points: Vec<(f64, f64)>,
}

impl SizeDistribution {
    /// Reads a name of [`SIZE_DISTRIBUTIONS`], one fixed size such as `"64KiB"`, or the path of a file.
    /// Errors: a text that is none of these, or an invalid file, with file and line.
    pub fn named(text: &str, read_file: &ReadFile<'_>) -> Result<Self, WorkloadError> {
        if let Some(table) = SIZE_DISTRIBUTIONS.iter().find(|table| table.name == text) {
            return Self::parse(table.text, table.name);
        }
        if let Ok(Bytes(size)) = text.parse::<Bytes>() {
            return Self::fixed(size);
        }
        let not_text = |_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not text (UTF-8)");
        match read_file(text).and_then(|content| String::from_utf8(content).map_err(not_text)) {
            Ok(content) => Self::parse(&content, text),
            Err(why) => {
                let names = || SIZE_DISTRIBUTIONS.iter().map(|table| table.name);
                let (listed, near) = (names().collect::<Vec<_>>().join(", "), hint(nearest(text, names())));
                let expected = format!("one of {listed}, one size such as \"64KiB\", or the path of a file{near}");
                Err(WorkloadError::new(format!(
                    "found {text:?}, expected {expected}; no such file could be read: {why}"
                )))
            }
        }
    }

    /// Creates a distribution in which every flow has `size` bytes.
    /// Errors: a size of zero, or above 2^53 B.
    pub fn fixed(size: u64) -> Result<Self, WorkloadError> {
        if !(1..=LARGEST).contains(&size) {
            return Err(WorkloadError::new(format!("found {size} B, expected a size from 1 B to {LARGEST} B")));
        }
        Ok(SizeDistribution { points: vec![(size as f64, 0.0), (size as f64, 1.0)] })
    }

    /// Returns the exact mean in bytes, before sizes are rounded.
    pub fn mean(&self) -> f64 {
        self.points.windows(2).map(|pair| (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0).sum()
    }

    /// Returns the largest size, in bytes.
    pub fn largest(&self) -> u64 {
        self.points.iter().rev().take_while(|point| point.1 == 1.0).last().map_or(1, |point| whole(point.0))
    }

    /// Returns P(size <= `size`).
    pub fn cdf(&self, size: u64) -> f64 {
        if size == 0 {
            return 0.0;
        }
        let size = size as f64;
        match self.points.partition_point(|point| point.0 <= size) {
            0 => 0.0,
            next => match self.points.get(next) {
                None => 1.0,
                Some(&(to_size, to)) => {
                    let (from_size, from) = self.points[next - 1];
                    from + (to - from) * ((size - from_size) / (to_size - from_size))
                }
            },
        }
    }

    /// Draws a size in bytes, at least 1.
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        let u = stream.unit();
        // The first point above u: points on a flat step have no mass and are skipped.
        let next = self.points.partition_point(|point| point.1 <= u).min(self.points.len() - 1);
        let ((from_size, from), (to_size, to)) = (self.points[next - 1], self.points[next]);
        whole((from_size + (u - from) / (to - from) * (to_size - from_size)).min(to_size))
    }
}

/// Below 2^53 every whole number is exact in floating point.
const LARGEST: u64 = 1 << 53;

fn whole(size: f64) -> u64 {
    (size.ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    fn no_file(_: &str) -> std::io::Result<Vec<u8>> {
        Err(Error::new(ErrorKind::NotFound, "not found"))
    }

    fn named(name: &str) -> SizeDistribution {
        SizeDistribution::named(name, &no_file).unwrap()
    }

    #[test]
    fn means_are_those_of_the_specification() {
        for (name, mean) in [
            ("ali-storage", 40_869.8),
            ("web-search", 1_711_250.0),
            ("hadoop", 121_848.942),
            ("solar", 39_423.504_5),
            ("google-rpc", 2_967.891),
            ("data-mining", 7_487_883.716),
            ("web-search-reps", 2_786_250.0),
            ("hadoop-coarse", 120_421.0),
            // 0.15 + 0.2*4 + 0.25*16 + 0.25*64 + 0.15*256 MB
            ("ml-training-assumed", 59_350_000.0),
            ("ml-training-assumed-16", 59_350_000.0 / 16.0),
            ("ml-training-assumed-64", 59_350_000.0 / 64.0),
            // d^2 / 64 B with d = 12,288 are 2,359,296 B: (2 + 2 * 3 + 4 * 4 + 3 * 12) / 11 of it
            ("gpt3-data-parallel", 12_288.0 * 12_288.0 / 64.0 * 60.0 / 11.0),
            ("64KiB", 65_536.0),
        ] {
            let found = named(name).mean();
            assert!((found - mean).abs() < 5e-5 * mean.max(1e4) / 10.0, "{name}: {found} instead of {mean}");
        }
    }

    #[test]
    fn shares_of_hadoop_are_those_of_the_specification() {
        // Specification 2.7: P(<2 KB) = 67.2 %, P(2-49 KB) = 12.5 %, P(>266 KB) = 5.06 %, largest 10 MB.
        let hadoop = named("hadoop");
        let (small, middle, large) = (hadoop.cdf(2_000), hadoop.cdf(49_000), hadoop.cdf(266_000));
        assert!((small - 0.672).abs() < 5e-4, "{small}");
        assert!((middle - small - 0.125).abs() < 5e-4, "{middle}");
        assert!((1.0 - large - 0.0506).abs() < 5e-5, "{large}");
        assert_eq!(hadoop.largest(), 10_000_000);
    }

    #[test]
    fn samples_follow_their_distribution() {
        // Kolmogorov-Smirnov: 1.95 / sqrt(n) is exceeded with probability 0.001; with atoms less often.
        let n = 100_000;
        for name in SIZE_DISTRIBUTIONS.iter().map(|table| table.name).chain(["4KiB"]) {
            let distribution = named(name);
            let mut stream = Stream::keyed(11, 0, name);
            let mut drawn: Vec<u64> = (0..n).map(|_| distribution.sample(&mut stream)).collect();
            drawn.sort_unstable();
            assert!(drawn[0] >= 1 && drawn[n - 1] <= distribution.largest());
            let mut worst = 0.0f64;
            for i in 0..n {
                let (below, upto) = (i as f64 / n as f64, (i + 1) as f64 / n as f64);
                if i + 1 == n || drawn[i + 1] > drawn[i] {
                    worst = worst.max((upto - distribution.cdf(drawn[i])).abs());
                }
                if i == 0 || drawn[i - 1] < drawn[i] {
                    worst = worst.max((below - distribution.cdf(drawn[i] - 1)).abs());
                }
            }
            assert!(worst < 1.95 / (n as f64).sqrt(), "{name}: {worst}");
        }
    }

    #[test]
    fn atoms_and_flat_steps() {
        // Half of the mass at 100 B, none from 100 to 200 B, the rest uniform from 200 to 300 B.
        let d = SizeDistribution::parse("100 0\n100 50\n200 50\n300 100\n", "test").unwrap();
        assert_eq!((d.cdf(99), d.cdf(100), d.cdf(150), d.cdf(250), d.cdf(300)), (0.0, 0.5, 0.5, 0.75, 1.0));
        assert_eq!(d.mean(), 50.0 + 125.0);
        let mut stream = Stream::keyed(1, 1, "atoms");
        let drawn: Vec<u64> = (0..10_000).map(|_| d.sample(&mut stream)).collect();
        assert!(drawn.iter().all(|&size| size == 100 || (201..=300).contains(&size)));
        assert_eq!(SizeDistribution::fixed(7).unwrap().sample(&mut stream), 7);
    }

    #[test]
    fn unknown_names_report_the_nearest() {
        let error = SizeDistribution::named("web_serch", &no_file).unwrap_err().to_string();
        assert!(error.contains("did you mean `web-search`") && error.contains("ali-storage"), "{error}");
        assert!(SizeDistribution::named("0B", &no_file).is_err());
    }

    #[test]
    fn files_are_read() {
        let read = |path: &str| if path == "a/sizes.txt" { Ok(b"0 0\n10 1\n".to_vec()) } else { no_file(path) };
        assert_eq!(SizeDistribution::named("a/sizes.txt", &read).unwrap().mean(), 5.0);
    }
}
