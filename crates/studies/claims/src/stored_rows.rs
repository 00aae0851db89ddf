//! Rows kept in the repository, from which the tables of the docs are written.

use super::{Rows, Scale, csv};
use anabranch_results::{Inputs, OutputFile};
use anabranch_scenario::ScenarioError;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Stored data of one paper: rows in `claims/rows/PAPER/STUDY.SCALE.csv`, and the cost of studies without runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredRows {
    rows: BTreeMap<(String, &'static str), Rows>,
    /// Missing runs and their CPU hours, by study and scale.
    costs: BTreeMap<(String, &'static str), (usize, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    pub paper: &'static str,
    pub study: String,
    /// Number of runs that no earlier study contains.
    pub runs: usize,
    /// Number of runs that are not finished.
    pub missing: usize,
    /// CPU seconds of the missing runs.
    pub seconds: f64,
}

const SCALES: [Scale; 2] = [Scale::Quick, Scale::Full];
const COSTS: &str = "not-run.csv";

fn folder(root: &Path, paper: &str) -> PathBuf {
    root.join("claims").join("rows").join(paper)
}

impl StoredRows {
    /// Reads the stored data of `paper` in the repository at `root`.
    pub fn read(root: &Path, paper: &str) -> Result<Self, ScenarioError> {
        let folder = folder(root, paper);
        let mut stored_rows = StoredRows::default();
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let unreadable = |error: io::Error| ScenarioError::new(format!("{}: {error}", path.display()));
            let text = || anabranch_input::read_text(&path, anabranch_input::MAX_TEXT).map_err(unreadable);
            if name == COSTS {
                for cells in csv::Reader::from_reader(text()?.as_bytes()).records().flatten() {
                    let scale = SCALES.into_iter().find(|scale| Some(scale.word()) == cells.get(1));
                    let number = |at: usize| cells.get(at)?.parse::<f64>().ok();
                    if let (Some(study), Some(scale), Some(runs), Some(hours)) =
                        (cells.get(0), scale, number(2), number(3))
                    {
                        stored_rows.costs.insert((study.to_string(), scale.word()), (runs as usize, hours));
                    }
                }
                continue;
            }
            for scale in SCALES {
                if let Some(study) = name.strip_suffix(&format!(".{}.csv", scale.word())) {
                    let rows = Rows::from_csv(&path.display().to_string(), &text()?)?;
                    stored_rows.rows.insert((study.to_string(), scale.word()), rows);
                }
            }
        }
        Ok(stored_rows)
    }

    pub fn rows(&self, study: &str, scale: Scale) -> Option<&Rows> {
        self.rows.get(&(study.to_string(), scale.word()))
    }

    /// Returns the number of missing runs of a study, and their CPU hours.
    pub fn cost(&self, study: &str, scale: Scale) -> Option<(usize, f64)> {
        self.costs.get(&(study.to_string(), scale.word())).copied()
    }

    /// Stores the rows of a study, unless rows of more runs are stored. Returns `true` if it does.
    pub fn put(&mut self, study: &str, scale: Scale, rows: Rows) -> bool {
        let key = (study.to_string(), scale.word());
        if self.rows.get(&key).is_some_and(|there| there.runs() > rows.runs()) {
            return false;
        }
        self.rows.insert(key, rows);
        true
    }

    /// Stores the cost of a study, or removes it if no run is missing.
    pub fn put_cost(&mut self, scale: Scale, cost: &Cost) {
        let key = (cost.study.clone(), scale.word());
        if cost.missing == 0 {
            self.costs.remove(&key);
        } else {
            let hours = cost.seconds / 3600.0;
            let hours = format!("{hours:.2}").parse().unwrap_or(hours);
            self.costs.insert(key, (cost.missing, hours));
        }
    }

    /// Writes the data into the repository at `root`.
    pub fn write(&self, root: &Path, paper: &str) -> io::Result<()> {
        let folder = folder(root, paper);
        fs::create_dir_all(&folder)?;
        let put = |name: &str, text: &str| {
            let file = OutputFile::new(&folder.join(name), true, &Inputs::default()).map_err(io::Error::other)?;
            file.write_all(text.as_bytes()).map_err(io::Error::other)
        };
        for ((study, scale), rows) in &self.rows {
            put(&format!("{study}.{scale}.csv"), &rows.to_csv())?;
        }
        let costs = self.costs.iter().map(|((study, scale), (runs, hours))| {
            vec![study.clone(), scale.to_string(), runs.to_string(), hours.to_string()]
        });
        put(COSTS, &csv(["study", "scale", "runs", "cpu_hours"].into_iter(), costs))
    }
}
