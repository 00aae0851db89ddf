//! `nccl`: the network plugin for NCCL.

use crate::{Failure, Format, print, print_json, table};
use anabranch_results::{Inputs, OutputFile, disk};
use clap::{Args, Subcommand};
use nccl_net_anabranch::check::{self, Finding};
use serde_json::json;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

const BUILT: &str = "libnccl_net_anabranch.so";
const OWN: &str = "examples/libplugin.so";
/// File names that NCCL searches: the first for `NCCL_NET_PLUGIN=anabranch`, the second by default.
const INSTALLED: [&str; 2] = ["libnccl-net-anabranch.so", "libnccl-net.so"];

#[derive(Debug, Args)]
pub(crate) struct Nccl {
    #[command(subcommand)]
    command: NcclCommand,
}

#[derive(Debug, Subcommand)]
enum NcclCommand {
    /// Install the plugin into a directory under the names that NCCL searches
    Install(Install),
    /// Print what the plugin would choose on this host and what is missing; exits with 1 if it could not run
    Check {
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

#[derive(Debug, Args)]
struct Install {
    /// Directory, created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Shared object of the plugin [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    plugin: Option<PathBuf>,
    /// Replace other plugins of these names
    #[arg(long)]
    replace: bool,
}

/// Returns the shared object: `given`, else that beside this program or in target/release.
pub(crate) fn plugin(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return match path.is_file() {
            true => Ok(path.to_path_buf()),
            false => Err(Failure::input(format!("--plugin: {} does not exist", path.display()))),
        };
    }
    let exe = std::env::current_exe().ok();
    let beside = exe.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let places = [beside.clone(), beside.map(|folder| folder.join("deps")), Some("target/release".into())];
    // A program with schemes of its own has a plugin with them.
    let (file, how) = match anabranch_settings::external::is_used() {
        true => (OWN, "--example plugin"),
        false => (BUILT, "-p anabranch-nccl"),
    };
    let mut found = places.into_iter().flatten().map(|folder| folder.join(file));
    found.find(|path| path.is_file()).ok_or_else(|| {
        Failure::input(format!(
                        "{file} is neither beside this program nor in target/release: build it with `cargo build --release {how}` or name it \
             with --plugin"
        ))
    })
}

pub(crate) fn nccl(arguments: &Nccl) -> Result<(), Failure> {
    match &arguments.command {
        NcclCommand::Install(arguments) => install(arguments),
        NcclCommand::Check { format } => check(*format),
    }
}

fn check(format: Format) -> Result<(), Failure> {
    let mut findings = check::check(&std::env::vars_os().collect::<Vec<_>>());
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&folders).flat_map(|folder| INSTALLED.map(|name| folder.join(name)));
    let installed = files.find(|file| file.is_file());
    findings.push(Finding {
        what: "shared object".into(),
        found: installed.as_ref().map_or_else(|| "none in LD_LIBRARY_PATH".into(), |file| file.display().to_string()),
        remedy: installed.is_none().then(|| "`anabranch nccl install DIR`, and LD_LIBRARY_PATH=DIR in the job".into()),
        is_fatal: false,
    });
    let state = |of: &Finding| match (of.is_fatal, &of.remedy) {
        (true, _) => "MISSING",
        (false, Some(_)) => "note",
        (false, None) => "ok",
    };
    let remedy = |of: &Finding| of.remedy.clone().unwrap_or_default();
    match format {
        Format::Json => {
            let one = |of: &Finding| json!({ "what": of.what, "state": state(of).to_lowercase(), "found": of.found, "remedy": of.remedy });
            print_json(&json!({ "findings": findings.iter().map(one).collect::<Vec<_>>() }));
        }
        Format::Table => {
            let row = |of: &Finding| vec![of.what.clone(), state(of).into(), of.found.clone(), remedy(of)];
            print(&table(&["what", "state", "found", "remedy"], &findings.iter().map(row).collect::<Vec<_>>()));
        }
    }
    match findings.iter().find(|of| of.is_fatal) {
        Some(of) => Err(Failure::Check(format!("the plugin could not run: {}: {}", of.what, of.found))),
        None => Ok(()),
    }
}

fn install(arguments: &Install) -> Result<(), Failure> {
    let from = plugin(arguments.plugin.as_deref())?;
    let folder = &arguments.folder;
    let failed = |what: &Path, error: std::io::Error| Failure::input(format!("{}: {error}", what.display()));
    disk::make_directories(folder).map_err(|error| failed(folder, error))?;
    let plugin = fs::read(&from).map_err(|error| failed(&from, error))?;
    let inputs = Inputs::of([from.clone()]);
    // An identical plugin is kept; others are replaced with --replace only.
    let is_there = |path: &PathBuf| path.is_file() && fs::read(path).is_ok_and(|there| there == plugin);
    let missing = INSTALLED.iter().map(|name| folder.join(name)).filter(|path| !is_there(path));
    let files =
        missing.map(|path| OutputFile::new(&path, arguments.replace, &inputs)).collect::<Result<Vec<_>, _>>()?;
    for file in files {
        // A job may have the old file mapped: a new file takes the name, the old contents stay.
        let (pending, ()) = file.write(|to| to.write_all(&plugin))?;
        pending.make_executable().map_err(|error| failed(file.path(), error))?;
        pending.publish()?;
    }
    let names = INSTALLED.join(" and ");
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
    print(&format!(
        "{names} are in {folder}\nto use it with NCCL: LD_LIBRARY_PATH={folder} NCCL_NET_PLUGIN=anabranch\n",
        folder = folder.display()
    ));
    Ok(())
}
