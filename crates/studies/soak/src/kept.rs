//! Failing cases on disk: the shrunk scenario, the drawn one, and the commands that reproduce the failure.

use super::{
    Draft, FailureKind,
    check::{Failure, REFERENCE, RunMode, Verdict},
    draft::{REPORT, SCENARIO},
    shrink::shrink,
};
use anabranch_scenario::{COMMIT, ScenarioError, VERSION, quoted};
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

#[derive(Clone, Debug)]
pub struct Failed {
    /// Number of the case, if drawn.
    pub case: Option<u64>,
    pub kind: FailureKind,
    /// Mode that failed or differs, such as `3 threads, lazy ports`.
    pub mode: String,
    /// Description, a few lines.
    pub text: String,
    /// Directory where it is kept, or the scenario that was checked again.
    pub at: Option<PathBuf>,
    /// Commands that reproduce it, those of `anabranch run` first.
    pub commands: Vec<String>,
}

impl Failed {
    pub(super) fn new(
        case: Option<u64>,
        failure: &Failure,
        at: Option<PathBuf>,
        captures: &[String],
        again: String,
    ) -> Self {
        let scenario = at.as_deref().map(|at| if at.is_dir() { at.join(SCENARIO) } else { at.to_path_buf() });
        let mut commands = scenario.map_or_else(Vec::new, |scenario| runs(&scenario, failure, captures));
        commands.push(again);
        Failed { case, kind: failure.kind, mode: failure.mode.to_string(), text: failure.text.clone(), at, commands }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "case": self.case,
            "kind": self.kind.name(),
            "way": self.mode,
            "text": self.text,
            "path": self.at.as_ref().map(|at| at.to_string_lossy()),
            "commands": self.commands,
        })
    }
}

/// Returns commands of `anabranch run` that reproduce the failure; none if `run` does not use that mode.
fn runs(scenario: &Path, failure: &Failure, captures: &[String]) -> Vec<String> {
    let scenario = quoted(&scenario.to_string_lossy());
    let run = |threads: usize, out: &str| {
        let pcap =
            |(number, link): (usize, &String)| format!(" --pcap {}", quoted(&format!("{link}={out}-{number}.pcapng")));
        let pcaps: String = captures.iter().enumerate().map(pcap).collect();
        format!("anabranch run {scenario} --threads {threads} --out {out}{pcaps}")
    };
    let mode = failure.mode;
    match mode.is_used_by_run() && !mode.measured_otherwise {
        false => vec![],
        true if mode == REFERENCE => vec![run(1, "one-thread")],
        true => vec![run(1, "one-thread"), run(mode.how.threads, &format!("{}-threads", mode.how.threads))],
    }
}

/// Directory of failing cases.
pub(super) struct FailureStore(PathBuf);

impl FailureStore {
    /// Takes a missing or empty directory, created when the first case fails.
    pub(super) fn new(directory: &Path) -> Result<Self, ScenarioError> {
        let wrong = |what: String| {
            Err(ScenarioError::new(format!("`--out {}`: {what}", directory.display()))
                .help("give an empty or new directory; failing cases are not mixed with other files"))
        };
        match fs::read_dir(directory) {
            Ok(mut entries) => match entries.next() {
                Some(_) => wrong("the directory is not empty".into()),
                None => Ok(FailureStore(directory.to_path_buf())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FailureStore(directory.to_path_buf())),
            Err(error) => wrong(error.to_string()),
        }
    }

    /// Writes a case as drawn, shrinks it while `check` finds the same kind of failure, and writes the result.
    pub(super) fn keep(
        &self,
        number: u64,
        draft: &Draft,
        failure: Failure,
        again: &str,
        scratch: &tempfile::TempDir,
        check: &mut dyn FnMut(&Draft, RunMode) -> Verdict,
    ) -> Result<Failed, ScenarioError> {
        let folder = self.0.join(format!("case-{number}"));
        let wrong = |error: io::Error| ScenarioError::new(format!("{}: {error}", folder.display()));
        let preface = |failure: &Failure, commands: &[String]| {
            let (mode, text) = (failure.mode, &failure.text);
            let commands: String = commands.iter().map(|command| format!("  {command}\n")).collect();
            format!("Version {VERSION}, commit {COMMIT}. {mode}: {text}\n\nTo reproduce:\n{commands}\n")
        };
        fs::create_dir_all(&self.0).and_then(|()| fs::create_dir(&folder)).map_err(wrong)?;
        // The drawn case is on disk before shrinking starts.
        let drawn = preface(&failure, &[again.to_string()]);
        draft.write(&folder.join("as-drawn"), &drawn).map_err(wrong)?;
        let (smaller, failure) = shrink(draft, failure, scratch.path(), super::SHRINKING, check);
        let command = format!("anabranch soak --again {}", quoted(&folder.to_string_lossy()));
        let failed = Failed::new(Some(number), &failure, Some(folder.clone()), &smaller.captures, command);
        let mut text = preface(&failure, &failed.commands);
        smaller.write_into(&folder, &text).map_err(wrong)?;
        text += &format!("As it was drawn: {again}\n");
        fs::write(folder.join(REPORT), text).map_err(wrong)?;
        Ok(failed)
    }
}
