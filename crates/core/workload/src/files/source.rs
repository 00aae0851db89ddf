use super::decimal;
use crate::{MAX_NUMBER, WorkloadError};
use anabranch_settings::choices;
use anabranch_units::Time;

choices! {
    /// Unit of a file's start times.
    pub enum StartUnit {
        /// Picoseconds.
        Ps = "ps",
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
        /// Milliseconds.
        Ms = "ms",
        /// Seconds.
        S = "s",
    }
}

impl StartUnit {
    fn ps(self) -> u64 {
        1000u64.pow(self as u32)
    }
}

/// A file to read, and the hosts and classes that its fields may refer to.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) content: &'a [u8],
    pub(crate) hosts: u32,
    pub(crate) classes: &'a [String],
    pub(crate) unit: StartUnit,
}

impl Source<'_> {
    pub(super) fn wrong(&self, line: usize, message: impl Into<String>) -> WorkloadError {
        WorkloadError::in_line(self.path, line, message)
    }

    pub(super) fn text(&self) -> Result<&str, WorkloadError> {
        std::str::from_utf8(self.content).map_err(|why| {
            let line = self.content[..why.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
            self.wrong(line, "found bytes that are not text (UTF-8)")
        })
    }

    pub(super) fn host(&self, line: usize, what: &str, text: &str) -> Result<u32, WorkloadError> {
        match text.parse::<u32>() {
            Ok(host) if host < self.hosts => Ok(host),
            Ok(host) => {
                let message = format!("{what}: host {host} does not exist; hosts are 0 to {}", self.hosts.max(1) - 1);
                Err(self.wrong(line, message))
            }
            Err(_) => Err(self.wrong(line, format!("{what}: found `{text}`, expected a host's number"))),
        }
    }

    pub(super) fn pair(&self, line: usize, src: u32, dst: u32) -> Result<(), WorkloadError> {
        if src == dst { Err(self.wrong(line, format!("host {src} sends to itself"))) } else { Ok(()) }
    }

    pub(super) fn size(&self, line: usize, text: &str) -> Result<u64, WorkloadError> {
        match text.parse::<u64>() {
            Ok(size) if (1..=MAX_NUMBER).contains(&size) => Ok(size),
            _ => {
                let expected = format!("expected a whole number of bytes from 1 to {MAX_NUMBER}");
                Err(self.wrong(line, format!("size: found `{text}`, {expected}")))
            }
        }
    }

    pub(super) fn start(&self, line: usize, text: &str) -> Result<Time, WorkloadError> {
        let start = decimal::read(text, self.unit.ps())
            .map_err(|why| self.wrong(line, format!("start: found `{text}`, expected {why}")))?;
        let start = Time::from_ps(start);
        if start > Time::LONGEST {
            let most = Time::LONGEST.ps();
            return Err(self.wrong(line, format!("start: found `{text}`, expected at most 1000000s, {most} ps")));
        }
        Ok(start)
    }

    pub(super) fn whole(&self, line: usize, what: &str, text: &str) -> Result<u32, WorkloadError> {
        text.parse().map_err(|_| self.wrong(line, format!("{what}: found `{text}`, expected a whole number")))
    }
}
