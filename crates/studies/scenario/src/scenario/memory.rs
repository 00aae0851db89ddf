//! Estimate of a run's memory before anything is built: a refusal with figures instead of an abort.

use super::RunParameters;
use crate::{ScenarioError, machine::memory_limit};
use anabranch_settings::Auto;
use anabranch_topology::Scale;
use anabranch_units::Bytes;

/// Bytes per directed link, with its ports, its rows and its share of the hosts and switches. It is the largest value measured on
/// fat trees of three tiers with a radix of 32, 48 and 64 (the command `run`, one packet per host, `ops`), without the memory of an
/// empty run, of the tables and of the flows.
const LINK: u64 = 1230;

/// Bytes of an entry of a forwarding table.
const ENTRY: u64 = 4;

/// Bytes of a run of two hosts with its page, the resident part of the program among them (39 MB measured).
const BASE_BYTES: u64 = 42_000_000;

/// Multiple of a flow file's size that is in memory while it is read: its bytes, the lines that count, a record, a message.
const FILE: u64 = 5;

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limit: u64,
    /// Origin of the limit, with its verb.
    whose: String,
    taken: u64,
}

fn size(bytes: u64) -> String {
    Bytes(bytes).rounded()
}

impl Budget {
    pub(crate) fn new(run: &RunParameters) -> Self {
        let (limit, whose) = match (run.memory_limit, memory_limit()) {
            (Auto::Value(bytes), _) => (bytes.0, "`memory_limit` of [run] allows".to_string()),
            (Auto::Auto, Some((bytes, whose))) => (bytes, format!("{whose} allows")),
            (Auto::Auto, None) => (u64::MAX, String::new()),
        };
        Budget { limit, whose, taken: 0 }
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }

    /// Takes the memory of a fabric whose forwarding tables change `changes` times.
    pub(crate) fn take_topology(&mut self, scale: &Scale, changes: u64) -> Result<(), ScenarioError> {
        let tables = scale.table_entries().saturating_mul(ENTRY).saturating_mul(1 + changes);
        let links = scale.cables.saturating_mul(2 * LINK);
        let needed = BASE_BYTES.saturating_add(links).saturating_add(tables).saturating_add(scale.guide_bytes);
        self.taken = self.taken.saturating_add(needed);
        if self.taken <= self.limit {
            return Ok(());
        }
        let times = if changes > 0 { format!(" and {} forwarding tables", 1 + changes) } else { String::new() };
        Err(self.refused(format!(
            "[topology]: {} hosts, {} switches, {} cables{times} take about {} of memory",
            scale.hosts,
            scale.switches,
            scale.cables,
            size(needed)
        )))
    }

    pub(crate) fn max_file(&self) -> u64 {
        self.left() / FILE
    }

    pub(crate) fn take(&mut self, bytes: u64, what: &str) -> Result<(), ScenarioError> {
        self.taken = self.taken.saturating_add(bytes);
        if bytes == 0 || self.taken <= self.limit {
            return Ok(());
        }
        let others = match self.taken - bytes.min(self.taken) {
            0 => String::new(),
            _ => format!(", {} with the topology and what was counted before", size(self.taken)),
        };
        Err(self.refused(format!("{what} take about {} of memory{others}", size(bytes))))
    }

    pub(crate) fn check_file(&self, bytes: u64) -> Result<(), String> {
        let needed = bytes.saturating_mul(FILE);
        if needed <= self.left() {
            return Ok(());
        }
        Err(format!(
            "a file of {} takes up to {} of memory while it is read, and {} {} for the whole run",
            size(bytes),
            size(needed),
            self.whose,
            size(self.limit)
        ))
    }

    fn refused(&self, message: String) -> ScenarioError {
        let limit = size(self.limit);
        let set = if self.whose.contains("[run]") { "give a larger" } else { "raise that limit, or set a" };
        ScenarioError::new(format!("{message}, and {} {limit}", self.whose))
            .help(format!("make it smaller, or {set} `memory_limit` in [run] if the estimate is too high"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: u64) -> Budget {
        Budget::new(&RunParameters { memory_limit: Auto::Value(Bytes(bytes)), ..RunParameters::default() })
    }

    /// 2 * 1230 B * 1000 cables + 4 B * 20 * 10 entries * 3 tables + 42 MB = 44,462,400 B.
    #[test]
    fn the_parts_add_up() {
        let scale = Scale { hosts: 100, switches: 20, leaves: 10, cables: 1000, guide_bytes: 0 };
        assert!(budget(44_462_400).take_topology(&scale, 2).is_ok());
        let error = budget(44_462_399).take_topology(&scale, 2).unwrap_err().to_string();
        assert!(error.contains("100 hosts") && error.contains("3 forwarding tables"), "{error}");
        let mut some = budget(45_000_000);
        some.take_topology(&scale, 2).unwrap();
        assert_eq!(some.left(), 537_600);
        assert!(some.check_file(107_520).is_ok() && some.check_file(107_521).is_err(), "five times the file");
        // 44,462,400 B and 537,601 B.
        let error = some.take(537_601, "rows").unwrap_err().to_string();
        assert!(error.contains("about 537.6 kB") && error.contains("45.0 MB with the topology"), "{error}");
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let most = u64::MAX;
        let scale = Scale { hosts: most, switches: most, leaves: most, cables: most, guide_bytes: most };
        assert!(budget(most - 1).take_topology(&scale, most - 1).is_err());
        assert!(budget(most - 1).check_file(most).is_err());
    }
}
