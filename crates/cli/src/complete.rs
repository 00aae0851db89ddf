//! Completions of values: scenarios, load balancers, keys, metrics, papers. The shell requests them from the program.

use anabranch_scenario::{CatalogueKind, explain};
use anabranch_settings::{Level, ValueSchema};
use clap::{Command, builder::StyledStr};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter},
};
use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
};

/// Environment variable by which a shell requests completions.
const VARIABLE: &str = "ANABRANCH_COMPLETE";

/// Serves a shell that requests completions of `command`; returns `true` if one did.
pub(crate) fn answer(words: &[OsString], command: impl Fn() -> Command) -> bool {
    let here = std::env::current_dir().ok();
    let request = CompleteEnv::with_factory(command).var(VARIABLE);
    request.try_complete(words.to_vec(), here.as_deref()).unwrap_or_else(|error| error.exit())
}

/// Writes the text by which a shell requests completions from this program.
pub(crate) fn registration(shell: &str, to: &mut Vec<u8>) -> std::io::Result<()> {
    let shells = clap_complete::env::Shells::builtins();
    let shell = shells.completer(shell).expect("a shell of clap_complete");
    shell.write_registration(VARIABLE, "anabranch", "anabranch", "anabranch", to)
}

fn candidate(name: impl Into<OsString>, meaning: &str) -> CompletionCandidate {
    let line = meaning.split(". ").next().unwrap_or_default().replace('\n', " ");
    CompletionCandidate::new(name).help(Some(StyledStr::from(line)))
}

fn catalogue(kind: CatalogueKind) -> impl Iterator<Item = CompletionCandidate> {
    explain::catalogue(kind).into_iter().map(|entry| candidate(entry.name, &entry.meaning))
}

fn that_begin(current: &OsStr, candidates: impl Iterator<Item = CompletionCandidate>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let mut known = BTreeSet::new();
    // A pair and its host side may share a name.
    let is_new = |candidate: &CompletionCandidate| {
        candidate.get_value().to_string_lossy().starts_with(&*current) && known.insert(candidate.get_value().to_owned())
    };
    candidates.filter(is_new).collect()
}

fn all_ready_made(current: &OsStr) -> Vec<CompletionCandidate> {
    let kinds = [CatalogueKind::Scenarios, CatalogueKind::PaperScenarios];
    that_begin(current, kinds.into_iter().flat_map(catalogue))
}

/// Names of ready-made scenarios, and files.
pub(crate) fn scenarios() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        all_ready_made(current).into_iter().chain(PathCompleter::any().complete(current)).collect()
    })
}

/// Names of ready-made scenarios.
pub(crate) fn ready_made() -> ArgValueCompleter {
    ArgValueCompleter::new(all_ready_made)
}

/// Names of load balancers.
pub(crate) fn schemes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| that_begin(current, catalogue(CatalogueKind::Schemes)))
}

/// Names of metrics.
pub(crate) fn metrics() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let metrics = anabranch_study::explain::result_terms(true).into_iter();
        that_begin(current, metrics.map(|metric| candidate(metric.name, &metric.meaning)))
    })
}

/// Names of papers.
pub(crate) fn papers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let papers = anabranch_claims::PAPERS.iter().map(|paper| CompletionCandidate::new(paper.name));
        that_begin(current, papers.chain([CompletionCandidate::new("all")]))
    })
}

/// Names that `explain` finds.
pub(crate) fn terms() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        that_begin(current, anabranch_study::explain::names().into_iter().map(CompletionCandidate::new))
    })
}

/// Keys of a scenario with `=`, then the words that a key takes.
pub(crate) fn keys() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let text = current.to_string_lossy();
        let Some((key, _)) = text.split_once('=') else {
            let of = |level| {
                let keys = explain::keys().into_iter().filter(move |(_, key)| key.level <= level);
                that_begin(current, keys.map(|(path, key)| candidate(format!("{path}="), key.meaning)))
            };
            let users = of(Level::User);
            return if users.is_empty() { of(Level::Reading) } else { users };
        };
        if key == "load_balancer.scheme" {
            let schemes = explain::catalogue(CatalogueKind::Schemes).into_iter();
            return that_begin(
                current,
                schemes.map(|entry| candidate(format!("{key}={}", entry.name), &entry.meaning)),
            );
        }
        let words = explain::keys().into_iter().filter(|(path, _)| path == key).flat_map(|(_, key)| words(&key.schema));
        that_begin(current, words.map(|word| CompletionCandidate::new(format!("{key}={word}"))))
    })
}

fn words(schema: &ValueSchema) -> Vec<&'static str> {
    match schema {
        ValueSchema::Bool => vec!["true", "false"],
        ValueSchema::Words(words) => words.clone(),
        ValueSchema::Either(schemas) => schemas.iter().flat_map(words).collect(),
        _ => vec![],
    }
}
