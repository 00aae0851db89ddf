//! Private namespaces: mounts, network and processes of a testbed are invisible outside and end with the process that
//! holds them, however it ends.

use crate::{TestbedError, programs};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns},
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use rustix::process::set_parent_process_death_signal;
use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::AsRawFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicI32, Ordering},
};

/// Folder of named namespaces, which is invisible outside and ends with the private mount namespace.
pub const PRIVATE: &str = "/run/netns";

/// Environment variable that marks a process inside private namespaces.
pub(crate) const INSIDE: &str = "ANABRANCH_TESTBED_INSIDE";

/// Options of `unshare` for private namespaces. Killing `unshare` kills the processes that it started.
const APART: &[&str] = &["--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"];
/// Additional options for a user without privileges, who is root inside the user namespace.
const AS_USER: &[&str] = &["--user", "--map-root-user"];

/// Privileges with which this user gets namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Privileges {
    Root,
    /// User namespace, in which no BPF program can be loaded.
    UserNamespace,
}

/// Determines by trial how this user gets namespaces.
/// Errors: [`TestbedError::NoNamespaces`] with the system's message, or a missing program.
pub fn privileges() -> Result<Privileges, TestbedError> {
    let mut stderr = String::new();
    let mount = programs::command("mount")?;
    let methods = [(Privileges::Root, &[][..]), (Privileges::UserNamespace, AS_USER)];
    for (privileges, more) in methods {
        let mut command = programs::command("unshare")?;
        // A mount also tests privileges that sandboxes deny although they allow namespaces.
        let tried = command
            .args(APART)
            .args(more)
            .arg(mount.get_program())
            .args(["-t", "tmpfs", "tmpfs", "/run"])
            .stdin(Stdio::null())
            .output();
        let tried = tried.map_err(|error| TestbedError::system("running `unshare`", error))?;
        if tried.status.success() {
            return Ok(privileges);
        }
        stderr = String::from_utf8_lossy(&tried.stderr).trim().to_string();
    }
    Err(TestbedError::NoNamespaces(stderr))
}

/// Returns a command that runs this program with other arguments, in private namespaces.
pub fn apart(arguments: &[OsString]) -> Result<(Command, Privileges), TestbedError> {
    let privileges = privileges()?;
    let program = std::env::current_exe().map_err(|error| TestbedError::system("finding this program", error))?;
    let mut command = programs::command("unshare")?;
    command.args(APART);
    if privileges == Privileges::UserNamespace {
        command.args(AS_USER);
    }
    command.arg("--").arg(program).args(arguments).env(INSIDE, "1");
    Ok((command, privileges))
}

/// Process group of this command line in private namespaces; 0 if there is none.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// Runs this command line in private namespaces, to completion. Returns its exit code, or 128 plus the number of the
/// signal that ended it. It ends with this process, however that ends.
pub fn go_inside() -> Result<i32, TestbedError> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (mut command, _) = apart(&arguments)?;
    let failed = |error| TestbedError::system("running `unshare`", error);
    let die_with_us = || set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).map_err(io::Error::from);
    // A separate group, so that signals to this process are forwarded once (`interrupt_inside`).
    // SAFETY: between fork and exec it makes one system call that is async-signal-safe, and takes no memory and no
    // lock.
    #[allow(unsafe_code)]
    let mut child = unsafe { command.process_group(0).pre_exec(die_with_us) }.spawn().map_err(failed)?;
    GROUP.store(child.id() as i32, Ordering::SeqCst);
    let status = child.wait().map_err(failed)?;
    GROUP.store(0, Ordering::SeqCst);
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// Interrupts this command line in private namespaces ([`go_inside`]). Returns `false` if there is none.
pub fn interrupt_inside() -> bool {
    let group = GROUP.load(Ordering::SeqCst);
    group != 0 && killpg(Pid::from_raw(group), Signal::SIGINT).is_ok()
}

/// Returns `true` if this process runs in private namespaces.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Bits of `CapEff` (capabilities(7)) that permit loading programs: `SYS_ADMIN`, or `BPF` and `NET_ADMIN`.
const SYS_ADMIN: u64 = 1 << 21;
const NET_ADMIN: u64 = 1 << 12;
const BPF: u64 = 1 << 39;

/// Returns `true` if this process may load BPF programs: with root's capabilities in the initial user namespace.
pub fn may_load_programs() -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    // Capabilities of a user namespace are valid only inside it.
    let is_first = read("uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
    let capabilities = read("status")
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
        .unwrap_or(0);
    is_first && (capabilities & SYS_ADMIN != 0 || capabilities & (BPF | NET_ADMIN) == BPF | NET_ADMIN)
}

/// Mounts a private folder for named namespaces. This is the first step inside. Where it does not exist, a file system
/// covers `/run`, whose folders remain visible: those of testbeds are there.
pub fn settle() -> Result<(), TestbedError> {
    let (folder, run) = (Path::new(PRIVATE), Path::new("/run"));
    let over = if folder.is_dir() { folder } else { run };
    let failed = |error| TestbedError::system(format!("mounting a file system at {}", over.display()), error);
    let covered = File::open(over).map_err(failed)?;
    let names: Vec<OsString> = if over == run { folders(run) } else { Vec::new() };
    let tmpfs = mount(Some("tmpfs"), over, Some("tmpfs"), MsFlags::empty(), None::<&str>);
    tmpfs.map_err(|error| failed(error.into()))?;
    if over == run {
        std::fs::create_dir(folder).map_err(failed)?;
    }
    for name in names {
        let (from, to) =
            (Path::new("/proc/self/fd").join(covered.as_raw_fd().to_string()).join(&name), run.join(&name));
        let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
        // A folder that may not be bound is empty here.
        if std::fs::create_dir(&to).is_ok() {
            let _ = mount(Some(&from), &to, None::<&str>, bind, None::<&str>);
        }
    }
    Ok(())
}

fn folders(of: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.file_name()).collect()
}

/// Returns a command that runs in the namespaces of the process `holder`.
pub(crate) fn beside(holder: i32, privileges: Privileges) -> Result<Command, TestbedError> {
    let mut command = programs::command("nsenter")?;
    command.args(["--target", &holder.to_string(), "--mount", "--net", "--pid"]);
    if privileges == Privileges::UserNamespace {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.arg("--").env(INSIDE, "1");
    Ok(command)
}

/// Enters the mount and process namespaces of the process `holder`, in which processes started later run. The process
/// must have no other threads. Its working directory becomes `/`.
pub(crate) fn join(holder: i32, privileges: Privileges) -> Result<(), TestbedError> {
    let failed = |error| TestbedError::system(format!("entering the namespaces of process {holder}"), error);
    let user = (privileges == Privileges::UserNamespace).then_some(("user", CloneFlags::CLONE_NEWUSER));
    // The user namespace comes first, since its root may enter the others. All files are opened before: mounts may hide /proc.
    let kinds = user.into_iter().chain([("pid", CloneFlags::CLONE_NEWPID), ("mnt", CloneFlags::CLONE_NEWNS)]);
    let open = |(name, flag)| Ok((File::open(format!("/proc/{holder}/ns/{name}")).map_err(failed)?, flag));
    let opened: Vec<(File, CloneFlags)> = kinds.map(open).collect::<Result<_, TestbedError>>()?;
    opened.into_iter().try_for_each(|(file, flag)| setns(file, flag).map_err(|error| failed(error.into())))
}
