//! The ready-made scenarios, and the search for a scenario by name.

use crate::{Scenario, ScenarioError, Tree, did_you_mean, foreign};
use anabranch_settings::{nearest, nearest_few};
use std::path::Path;

/// A scenario that comes with the command.
#[derive(Clone, Copy, Debug)]
pub struct ReadyMade {
    pub name: &'static str,
    pub text: &'static str,
    /// Folder of its file in the repository.
    pub folder: &'static str,
}

impl ReadyMade {
    /// Returns `true` if it belongs to the claims of a paper.
    pub fn is_of_paper(&self) -> bool {
        self.folder != "scenarios"
    }

    /// Returns its title: the first of its comments, in one line.
    pub fn title(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        let title = line.trim_start_matches('#').trim();
        title.split_once(": ").map_or(title, |(_, rest)| rest)
    }

    /// Returns its description: its leading comments.
    pub fn shows(&self) -> String {
        let comments = self.text.lines().take_while(|line| line.starts_with('#'));
        comments.map(|line| line.trim_start_matches('#').trim()).collect::<Vec<_>>().join("\n")
    }
}

macro_rules! ready_made {
    ($($folder:literal: $($name:literal)*;)*) => {
        /// All ready-made scenarios, those for beginners first and those of papers last.
        pub const READY_MADE: &[ReadyMade] = &[$($(ReadyMade {
            name: $name,
            text: include_str!(concat!("../", $folder, "/", $name, ".toml")),
            folder: $folder,
        },)*)*];
    };
}

ready_made! {
    "scenarios":
        "first-run" "web-search-128" "tiny" "incast" "all-to-all" "allreduce-64x8" "two-jobs-storage"
        "permutation-128" "permutation-1024" "permutation-8192" "permutation-roce" "mrc-permutation" "rail-superpod"
        "rail-moe" "rail-moe-skew" "rail-meta" "rail-hpn" "rail-only" "testbed-incast" "testbed-all-to-all"
        "testbed-faults";
    "claims/prime/scenarios":
        "prime-permutation-128" "prime-permutation-1024" "prime-motivation" "prime-queue-depth"
        "prime-link-failure-transient" "prime-link-failure-steady" "prime-degraded-links" "prime-mixed-strict"
        "prime-mixed-wrr50" "prime-mixed-wrr70" "prime-mixed-wrr90";
    "claims/hopper/scenarios":
        "hopper-hadoop" "hopper-alicloud" "hopper-ml-training" "hopper-testbed" "hopper-testbed-small";
    "claims/hf2t/scenarios":
        "hf2t-hadoop" "hf2t-web-search";
    "claims/spritz/scenarios":
        "spritz-permutation-dragonfly" "spritz-permutation-slim-fly" "spritz-adversarial-dragonfly"
        "spritz-adversarial-slim-fly" "spritz-microbenchmark" "spritz-40k-dragonfly" "spritz-40k-slim-fly"
        "spritz-bystanders" "spritz-all-to-all-dragonfly" "spritz-all-to-all-slim-fly"
        "spritz-allreduce-butterfly-dragonfly" "spritz-allreduce-butterfly-slim-fly" "spritz-allreduce-ring-dragonfly"
        "spritz-allreduce-ring-slim-fly" "spritz-web-search-dragonfly" "spritz-web-search-slim-fly";
    "claims/mrc/scenarios":
        "mrc-incast" "mrc-ring" "mrc-pair";
}

/// Loads the scenario `name` (a file, or the name of a ready-made one), changed by `KEY=VALUE` texts and a seed.
/// Fails where there is no such scenario, or the scenario or a change is wrong.
pub fn load(name: &str, changes: &[String], seed: Option<u64>) -> Result<Scenario, ScenarioError> {
    let (tree, stem, folder) = find(name)?;
    change(tree, &stem, &folder, changes, seed)
}

fn change(
    mut tree: Tree,
    stem: &str,
    folder: &Path,
    changes: &[String],
    seed: Option<u64>,
) -> Result<Scenario, ScenarioError> {
    for change in changes {
        tree.set(change)?;
    }
    if let Some(seed) = seed {
        tree.set_from("--seed", &format!("seed={seed}"))?;
    }
    Scenario::read(tree, stem, folder)
}

const TWO_MACHINES: &str = include_str!("wire.toml");

/// Loads the scenario of a transfer between real machines as [`load`] does; `None`: two machines with eight paths.
pub fn load_for_wire(name: Option<&str>, changes: &[String], seed: Option<u64>) -> Result<Scenario, ScenarioError> {
    match name {
        Some(name) => load(name, changes, seed),
        None => {
            change(Tree::parse("two machines (ready-made)", TWO_MACHINES)?, "two-machines", "".as_ref(), changes, seed)
        }
    }
}

/// Returns the tree of a scenario, its name in file names, and its folder.
pub fn find(name: &str) -> Result<(Tree, String, std::path::PathBuf), ScenarioError> {
    let path = Path::new(name);
    if path.exists() && !path.is_dir() {
        let bytes = anabranch_input::read(path, anabranch_input::MAX_TEXT)
            .map_err(|error| ScenarioError::new(format!("the scenario {name} cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            if let Some(other) = foreign::named(name, error.as_bytes()) {
                return other;
            }
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
            ScenarioError::new(format!("the scenario {name} is not text: line {line} is not UTF-8"))
        })?;
        let stem = path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let tree = Tree::parse(name, &text);
        return Ok((tree.map_err(|error| foreign::named(name, text.as_bytes()).unwrap_or(error))?, stem, folder));
    }
    if let Some(ready) = READY_MADE.iter().find(|r| r.name == name) {
        return Ok((Tree::parse(&format!("{name} (ready-made)"), ready.text)?, name.into(), "".into()));
    }
    let names: Vec<&str> = READY_MADE.iter().map(|r| r.name).collect();
    if path.is_dir() {
        return Err(ScenarioError::new(format!("{name} is a directory, not a scenario"))
            .help("name a scenario file, or one that `anabranch list scenarios` shows"));
    }
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    let Some(near) = nearest(stem, names.iter().copied()) else {
        let message = format!("no scenario `{name}`: no such file, and no ready-made one resembles it");
        return Err(ScenarioError::new(message).help("`anabranch list scenarios` shows them"));
    };
    let few = nearest_few(stem, names.iter().copied(), 3).join(", ");
    let message =
        format!("no scenario `{name}`: no such file, and the nearest of {} ready-made are {few}", names.len());
    Err(did_you_mean(ScenarioError::new(message), Some(near)))
}

/// Returns the place of `item` among the values of a flag that takes a list.
pub fn in_list(flag: &str, values: &[String], item: &str) -> Option<crate::tree::Place> {
    let text = values.join(",");
    let start = values.iter().take_while(|value| value.trim() != item).map(|value| value.len() + 1).sum::<usize>();
    let value = values.iter().find(|value| value.trim() == item)?;
    let span = start..start + value.len();
    let source = crate::tree::Source::new(flag, text, 1);
    Some(crate::tree::Place { source, span })
}
