use super::catalogue::levels;
use crate::{Failure, complete, note, print};
use anabranch_results::{Inputs, OutputFile, disk};
use anabranch_scenario::{ScenarioError, init, library::READY_MADE};
use anabranch_settings::nearest_few;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// File to write; `-` for standard output [default: scenario.toml]
    pub(crate) file: Option<PathBuf>,
    /// Write the keys of users with their meanings and defaults
    #[arg(long, conflicts_with = "from")]
    pub(crate) all: bool,
    /// Write keys for experts too: constants of algorithms, models and datapaths
    #[arg(long, requires = "all")]
    pub(crate) expert: bool,
    /// Write keys too that only try readings of a paper
    #[arg(long, requires = "all")]
    pub(crate) readings: bool,
    /// Write a ready-made scenario (`anabranch list scenarios`)
    #[arg(long, value_name = "NAME", add = complete::ready_made())]
    pub(crate) from: Option<String>,
    /// Write a crate with a scheme of your own to the directory NAME: scheme, tests, command, plugin
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "all", "from"])]
    pub(crate) scheme: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Files of a crate with a scheme, which have `my-scheme` for its name.
const CRATE: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("own_scheme/manifest.toml")),
    ("README.md", include_str!("own_scheme/README.md")),
    ("src/lib.rs", include_str!("own_scheme/lib.rs")),
    ("src/main.rs", include_str!("own_scheme/main.rs")),
    ("examples/plugin.rs", include_str!("own_scheme/plugin.rs")),
    ("tests/kit.rs", include_str!("own_scheme/kit.rs")),
];

pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    if let Some(name) = &arguments.scheme {
        return own_scheme(name, arguments.replace);
    }
    let text = match &arguments.from {
        Some(name) => ready_made(name)?.to_string(),
        None if arguments.all => init::every_key(&levels(arguments.expert, arguments.readings)),
        None => init::FIRST.to_string(),
    };
    let file = arguments.file.as_deref().unwrap_or(Path::new("scenario.toml"));
    if file == Path::new("-") {
        print(&text);
        return Ok(());
    }
    OutputFile::new(file, arguments.replace, &Inputs::default())?.write_all(text.as_bytes())?;
    let name = file.display();
    note(&format!("{name} written; next: anabranch check {name}, anabranch compare {name}"));
    Ok(())
}

fn own_scheme(name: &str, replace: bool) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let has_words = name.split('-').all(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    if !name.chars().all(is_plain) || !has_words || name.len() > 64 {
        let expected = "words of a to z and 0 to 9 that begin with a letter, with `-` between, at most 64 characters";
        return Err(Failure::input(format!("--scheme: found `{name}`, expected {expected}")));
    }
    if anabranch_scenario::explain::names().iter().any(|known| known == name) || name == "anabranch" {
        return Err(Failure::input(format!("--scheme: found `{name}`, a name of anabranch; take another")));
    }
    let capitalised = |word: &str| word[..1].to_uppercase() + &word[1..];
    let of_type: String = name.split('-').map(capitalised).collect();
    let filled = |text: &str| {
        let named = text.replace("my-scheme", name).replace("my_scheme", &name.replace('-', "_"));
        let named = named.replace("MyScheme", &of_type).replace("VERSION", env!("CARGO_PKG_VERSION"));
        named.replace("REPOSITORY", env!("CARGO_PKG_REPOSITORY"))
    };
    let path = |file: &str| Path::new(name).join(file);
    for folder in ["src", "examples", "tests"].map(path) {
        disk::make_directories(&folder).map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    }
    let files: Vec<_> = CRATE
        .iter()
        .map(|(file, text)| Ok((OutputFile::new(&path(file), replace, &Inputs::default())?, filled(text))))
        .collect::<Result<_, Failure>>()?;
    for (file, text) in files {
        file.write_all(text.as_bytes())?;
    }
    note(&format!("{name}/ written; next: cd {name}, cargo test, cargo run --release -- explain {name}"));
    Ok(())
}

fn ready_made(name: &str) -> Result<&'static str, ScenarioError> {
    let found = READY_MADE.iter().find(|ready| ready.name == name).map(|ready| ready.text);
    found.ok_or_else(|| {
        let near = nearest_few(name, READY_MADE.iter().map(|ready| ready.name), 3).join(", ");
        ScenarioError::new(format!("--from: unknown ready-made scenario `{name}`; the nearest are {near}"))
            .help("`anabranch list scenarios` shows all")
    })
}
