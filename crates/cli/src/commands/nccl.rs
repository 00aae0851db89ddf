//! `nccl`: the network plugin for NCCL.

use crate::{Failure, print};
use anabranch_results::{Inputs, OutputFile, disk};
use clap::{Args, Subcommand};
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
