use super::fabric::Fabric;
use anabranch_results::{Column, ColumnKind, Frame, ReportError, TABLES};
use std::{collections::HashMap, path::Path};

/// Columns with the state at the sampling time; all others are counts from the start of the run.
const STATES: [&str; 3] = ["queue_bytes", "queue_packets", "paused"];

/// Series of some links, sampled at the same times.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Time of the first sample, in picoseconds.
    pub(crate) start: u64,
    /// Interval between samples, in picoseconds.
    pub(crate) interval: u64,
    /// Number of samples of each link.
    pub(crate) samples: usize,
    /// Indices of the links, in the order of their samples in the columns.
    pub(crate) links: Vec<u32>,
    /// Name and values per column: the samples of one link after those of another.
    pub(crate) columns: Vec<(&'static str, Vec<u64>)>,
}

impl Series {
    /// Returns `true` if `column` is a count from the start of the run.
    pub(crate) fn counts(column: &str) -> bool {
        !STATES.contains(&column)
    }

    /// `None` if none were recorded.
    ///
    /// # Errors
    /// [`ReportError`] if the file cannot be read, or links are not of the fabric or were sampled at different times.
    pub(crate) fn read(dir: &Path, fabric: &Fabric) -> Result<Option<Self>, ReportError> {
        let Some(table) = TABLES.iter().find(|table| table.name == "series") else { return Ok(None) };
        let shown = |column: &&Column| !["from", "to", "time_ps", "seed"].contains(&column.name);
        let cells =
            table.columns.iter().filter(shown).filter(|c| matches!(c.kind, ColumnKind::Integer | ColumnKind::Flag));
        let names: Vec<&'static str> = cells.map(|column| column.name).collect();
        let wrong =
            |found: String| ReportError::content(&dir.join("series"), found, "repeat the run; nothing was written");
        let by_ends = fabric.by_ends();
        let mut uses: HashMap<(String, String), usize> = HashMap::new();
        let mut links: Vec<u32> = vec![];
        let mut times: Vec<Vec<u64>> = vec![];
        let mut last = (String::new(), String::new());
        let mut columns: Vec<(&'static str, Vec<u64>)> = names.iter().map(|name| (*name, vec![])).collect();
        let requested: Vec<&str> = ["from", "to", "time_ps"].into_iter().chain(names.iter().copied()).collect();
        let mut lacks: Vec<String> = vec![];
        let found = Frame::read_parts(dir, "series", &requested, &mut |part| {
            lacks = part.missing().to_vec();
            if let Some(name) = ["from", "to", "time_ps"].iter().find(|name| lacks.iter().any(|lack| lack == *name)) {
                return Err(wrong(format!("the rows have no column `{name}`")));
            }
            let (from, to, time) = (part.texts("from"), part.texts("to"), part.integers("time_ps"));
            for row in 0..part.rows() {
                let at = time[row].unwrap_or_default();
                let same = last.0 == from[row] && last.1 == to[row];
                // Rows of a link follow each other; those of the next parallel link begin where the time decreases.
                if !same || times.last().and_then(|of| of.last()).is_none_or(|&before| at <= before) {
                    last = (from[row].clone(), to[row].clone());
                    let number = uses.entry(last.clone()).or_default();
                    let link = by_ends.get(&(&*last.0, &*last.1)).and_then(|links| links.get(*number));
                    *number += 1;
                    let Some(&link) = link else {
                        let (from, to) = &last;
                        return Err(wrong(format!(
                            "there are samples of {from}->{to}, which `links` does not name, or not as often"
                        )));
                    };
                    links.push(link);
                    times.push(vec![]);
                }
                if let Some(times) = times.last_mut() {
                    times.push(at);
                }
            }
            for (name, cells) in &mut columns {
                cells.extend(part.integers(name).iter().map(|cell| cell.unwrap_or_default()));
                cells.extend(part.flags(name).iter().map(|flag| u64::from(*flag)));
            }
            Ok(())
        })?;
        let Some(first) = times.first().filter(|_| found) else { return Ok(None) };
        let interval = first.get(1).map_or(0, |second| second - first[0]);
        let even = first.windows(2).all(|pair| pair[1] - pair[0] == interval);
        if !even || times.iter().any(|of| of != first) {
            return Err(wrong("its links were not all sampled at the same, even times".into()));
        }
        columns.retain(|(name, _)| !lacks.iter().any(|lack| lack == name));
        Ok(Some(Series { start: first[0], interval, samples: first.len(), links, columns }))
    }
}
