//! `anabranch results`: result directories below a directory.

use crate::{Failure, Format, Table, note, print, print_json};
use anabranch_report::{Listed, index_page, is_index_page, list_results};
use anabranch_results::{Inputs, OutputFile, files_of};
use anabranch_scenario::ScenarioError;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Results {
    /// Directory to search, with all below it
    #[arg(default_value = "results")]
    pub(crate) dir: PathBuf,
    /// File of the index page [default: DIR/index.html, unless DIR is a result itself]
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
    /// Replace an existing file that is no index page
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn results(arguments: &Results) -> Result<(), Failure> {
    let dir = &arguments.dir;
    if !dir.is_dir() {
        return Err(ScenarioError::new(format!("directory {} does not exist", dir.display()))
            .help("give a directory that holds results, for example `results`")
            .into());
    }
    let listing = list_results(dir)?;
    for (path, found) in &listing.damaged {
        note(&format!("warning: {}: {found}", dir.join(path).display()));
    }
    if listing.results.is_empty() {
        return Err(ScenarioError::new(format!("no results in {}", dir.display()))
            .help("give a directory that holds --out directories of run, compare or sweep")
            .into());
    }
    // A result directory holds nothing but its own files.
    let is_result = listing.results.iter().any(|result| result.path == Path::new("."));
    let index = arguments.index.clone().or_else(|| (!is_result).then(|| dir.join("index.html")));
    if let Some(index) = &index {
        let replace = arguments.replace || is_index_page(index);
        let read = Inputs::joined(listing.results.iter().map(|result| files_of(&dir.join(&result.path))));
        OutputFile::new(index, replace, &read)?.write_all(index_page(dir, &listing)?.as_bytes())?;
    }
    match arguments.format {
        Format::Json => print_json(&json!({
            "results": listing.results.iter().map(|result| json_of(dir, result)).collect::<Vec<_>>(),
            "damaged": listing.damaged.iter().map(|(path, found)| json!({ "path": path, "found": found })).collect::<Vec<_>>(),
            "index": index,
        })),
        Format::Table => print(&text(dir, &listing.results)),
    }
    if let Some(index) = &index {
        note(&format!("index page in {}", index.display()));
    }
    Ok(())
}

/// Date (UTC) at which the results were written, `2026-11-23`.
fn date(dir: &Path) -> Option<String> {
    let written = std::fs::metadata(dir.join("manifest.json")).and_then(|file| file.modified()).ok()?;
    Some(civil(written.duration_since(UNIX_EPOCH).ok()?.as_secs() / 86_400))
}

/// Returns the date of a day since 1970-01-01, by the proleptic Gregorian calendar (Hinnant, `civil_from_days`).
fn civil(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn json_of(dir: &Path, of: &Listed) -> Value {
    json!({
        "path": of.path, "kind": of.kind.to_string(), "scenario": of.scenario, "schemes": of.schemes, "seeds": of.seeds,
        "backend": of.backend, "date": date(&dir.join(&of.path)), "status": of.status, "version": of.version,
        "commit": of.commit, "headline": of.headline,
    })
}

fn text(dir: &Path, results: &[Listed]) -> String {
    let row = |of: &Listed| {
        vec![
            of.path.display().to_string(),
            of.scenario.clone(),
            of.schemes.join(","),
            of.seeds.len().to_string(),
            date(&dir.join(&of.path)).unwrap_or_else(|| "-".into()),
            of.status.clone(),
            of.version.clone(),
            if of.headline.is_empty() { "-".into() } else { of.headline.clone() },
        ]
    };
    let header = ["directory", "scenario", "schemes", "seeds", "date", "status", "version", "result"];
    let rows = results.iter().map(row).collect();
    Table::new(&header, rows).wrap_last().hide_first(&["version", "seeds", "date", "schemes", "scenario"]).draw()
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        // `date -u -d @$((DAYS * 86400)) +%F`
        for (days, date) in [(0, "1970-01-01"), (11_016, "2000-02-29"), (20_780, "2026-11-23"), (47_541, "2100-03-01")]
        {
            assert_eq!(super::civil(days), date);
        }
    }
}
