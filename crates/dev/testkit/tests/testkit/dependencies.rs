//! Licences and sources of all dependencies are allowed in `deny.toml`.

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};
use std::{collections::BTreeMap, path::PathBuf, process::Command};
use toml::Table;

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../.."].iter().collect()
}

fn table(file: &str) -> Table {
    std::fs::read_to_string(root().join(file)).unwrap().parse().unwrap()
}

fn allowed(section: &str, key: &str) -> Vec<String> {
    let list = table("deny.toml")[section][key].as_array().unwrap().clone();
    list.iter().map(|entry| entry.as_str().unwrap().to_string()).collect()
}

/// Accepts also the old form with slashes.
fn meets(expression: &str, licences: &[Licensee]) -> bool {
    let expression = Expression::parse_mode(expression, ParseMode::LAX).unwrap_or_else(|error| panic!("{error}"));
    expression.evaluate(|requirement| licences.iter().any(|licence| licence.satisfies(requirement)))
}

/// Reads packages of this machine's build without network access.
fn packages(features: &[&str]) -> Vec<Value> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &host])
        .args(features);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn licences_are_allowed() {
    let names = allowed("licenses", "allow");
    let licences: Vec<Licensee> = names.iter().map(|name| Licensee::parse(name).unwrap()).collect();
    // Continuous integration also builds the Python package.
    let all = std::env::var_os(anabranch_testkit::TEST_ALL).map(|_| "--all-features");
    let packages = packages(all.as_slice());
    assert!(packages.len() > 100, "{}", packages.len());
    let refused: Vec<String> = (packages.iter())
        .filter(|package| !package["license"].as_str().is_some_and(|expression| meets(expression, &licences)))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "licences that deny.toml does not allow: {refused:#?}");
}

/// The lock file has all platforms and features.
#[test]
fn sources_are_allowed() {
    let registries: Vec<String> =
        allowed("sources", "allow-registry").iter().map(|registry| format!("registry+{registry}")).collect();
    assert!(allowed("sources", "allow-git").is_empty());
    let lock = table("Cargo.lock");
    let packages = lock["package"].as_array().unwrap();
    let refused: Vec<String> = (packages.iter())
        // Our own packages have no source.
        .filter_map(|package| Some((package, package.get("source")?.as_str()?)))
        .filter(|(_, source)| !registries.iter().any(|registry| registry == source))
        .map(|(package, source)| format!("{}: {source}", package["name"]))
        .collect();
    assert!(refused.is_empty(), "sources that deny.toml does not allow: {refused:#?}");
}

/// Folders, and those that their crates may depend on besides their own.
const FOLDERS: [(&str, &[&str]); 4] =
    [("core", &[]), ("simulator", &["core"]), ("network", &["core"]), ("studies", &["core", "simulator", "network"])];

#[test]
fn two_products_stand_on_one_core() {
    let packages = packages(&["--no-deps"]);
    let folder = |package: &Value| -> Option<String> {
        let path = package["manifest_path"].as_str()?.rsplit_once("/crates/")?.1;
        Some(path.split('/').next()?.to_string())
    };
    let folders: BTreeMap<&str, String> =
        packages.iter().filter_map(|package| Some((package["name"].as_str()?, folder(package)?))).collect();
    let mut edges = 0;
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        let Some((own, allowed)) =
            FOLDERS.iter().find(|(folder, _)| folders.get(name).is_some_and(|own| own == folder))
        else {
            continue;
        };
        // Tests may use other folders.
        for needed in package["dependencies"].as_array().unwrap().iter().filter(|needed| needed["kind"].is_null()) {
            let Some(theirs) = folders.get(needed["name"].as_str().unwrap()) else { continue };
            edges += 1;
            assert!(
                theirs == own || allowed.contains(&theirs.as_str()),
                "{name} of {own} needs {} of {theirs}",
                needed["name"]
            );
        }
    }
    assert!(edges > 100, "{edges}");
}
