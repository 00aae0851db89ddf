//! Named testbeds. A process holds each testbed, and its state is in a file beside its lock.

use crate::{
    Fabric, Harm, PortCount, TestbedError, TestbedPlan, foreground, programs,
    space::{self, Privileges},
};
use fs4::FileExt;
use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningTestbed {
    pub name: String,
    /// Process identifier of the holder.
    pub holder: i32,
    /// Privileges with which it was built.
    pub privileges: Privileges,
    pub plan: TestbedPlan,
    /// Features that this machine lacks.
    pub missing: Vec<String>,
    /// Build time in seconds.
    pub took_s: f64,
    prefix: String,
}

/// Operation on the network of a running testbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Count,
    /// Take these cables down.
    Cut(Vec<usize>),
    /// Restore these cables.
    Mend(Vec<usize>),
    /// Set the rate of these cables, in bits per second.
    Slow(Vec<usize>, u64),
    /// Impair these links, each from one node to another.
    Harm(Vec<(usize, usize)>, Harm),
}

#[derive(Serialize, Deserialize)]
struct Order {
    name: String,
    folder: PathBuf,
    privileges: Privileges,
    plan: TestbedPlan,
    /// The holder ends when its standard input is closed.
    tied: bool,
}

#[derive(Serialize, Deserialize)]
struct Task {
    standing: RunningTestbed,
    action: Action,
}

/// Reply of a process inside: the reason where it has failed.
type Reply<T> = Result<T, String>;

/// Returns the folder of this user's testbeds. Its files are trusted, so only this user may write to it.
fn folder() -> Result<PathBuf, TestbedError> {
    let user = rustix::process::geteuid();
    // Under `sudo -E` the variable names a folder of the calling user.
    let is_own = |folder: &PathBuf| {
        fs::metadata(folder).is_ok_and(|of| of.is_dir() && of.uid() == user.as_raw() && of.mode() & 0o022 == 0)
    };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(is_own);
    // Any user can take a name in /tmp, so root uses /run, where only root can create folders.
    let system = user.is_root() && std::env::var_os("TMPDIR").is_none();
    let folder = match runtime.or_else(|| Some(PathBuf::from("/run")).filter(|run| system && is_own(run))) {
        Some(runtime) => runtime.join("anabranch-testbeds"),
        None => std::env::temp_dir().join(format!("anabranch-testbeds-{}", user.as_raw())),
    };
    let failed = |error| TestbedError::system(format!("the folder {}", folder.display()), error);
    // A symbolic link that another user has placed there is neither followed nor replaced.
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let owner = fs::symlink_metadata(&folder).map_err(failed)?;
    if !owner.is_dir() || owner.uid() != user.as_raw() || owner.mode() & 0o077 != 0 {
        return Err(TestbedError::Input(format!(
            "{} is not a folder of yours with mode 700, so what it says of testbeds cannot be trusted: remove it, or set \
             XDG_RUNTIME_DIR to a folder of yours",
            folder.display()
        )));
    }
    Ok(folder)
}

fn check_name(name: &str) -> Result<(), TestbedError> {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.len() <= 32 && name.chars().all(fit) {
        true => Ok(()),
        false => {
            Err(TestbedError::Input(format!("found the name `{name}`, expected up to 32 letters, digits, `-` and `_`")))
        }
    }
}

/// Takes the lock of a name; `None` if its testbed is up.
fn try_lock(name: &str) -> Result<Option<File>, TestbedError> {
    try_lock_in(&folder()?, name)
}

fn try_lock_in(folder: &Path, name: &str) -> Result<Option<File>, TestbedError> {
    let path = folder.join(format!("{name}.lock"));
    let failed = |error| TestbedError::system(format!("the lock {}", path.display()), error);
    let mut options = OpenOptions::new();
    let file = anabranch_input::open_own(&path, options.create(true).truncate(false).write(true)).map_err(failed)?;
    match FileExt::try_lock(&file) {
        Ok(()) => Ok(Some(file)),
        Err(fs4::TryLockError::WouldBlock) => Ok(None),
        Err(fs4::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// File endings in the user's folder: state of the testbed, text that accompanies it, lock.
const FILES: [&str; 3] = ["json", "toml", "lock"];

fn remove_files(folder: &Path, name: &str) {
    for ending in FILES {
        let _ = fs::remove_file(folder.join(format!("{name}.{ending}")));
    }
}

/// Testbed that ends with the process that built it, however that process ends.
#[derive(Debug)]
pub struct Tied {
    standing: RunningTestbed,
    /// File with the accompanying text, removed with the testbed.
    pub text_at: PathBuf,
    _tie: Option<ChildStdin>,
}

impl std::ops::Deref for Tied {
    type Target = RunningTestbed;

    fn deref(&self) -> &RunningTestbed {
        &self.standing
    }
}

impl Drop for Tied {
    fn drop(&mut self) {
        // If the holder cannot be killed, it ends when its standard input closes.
        let _ = self.standing.down();
    }
}

/// Builds a testbed that ends with this process, and writes `text` to a file that is removed with it.
pub fn up_tied(name: &str, plan: &TestbedPlan, text: &str) -> Result<Tied, TestbedError> {
    let (standing, tie) = build_apart(name, plan, true)?;
    let text_at = folder()?.join(format!("{name}.toml"));
    let tied = Tied { standing, text_at, _tie: tie };
    let failed = |error| TestbedError::system(format!("writing {}", tied.text_at.display()), error);
    fs::write(&tied.text_at, text).map_err(failed)?;
    Ok(tied)
}

/// Builds a testbed that runs until it is taken down or its holder is killed.
/// Fails if a testbed of that name is up, or if the build fails; a failed build leaves nothing behind.
pub fn up(name: &str, plan: &TestbedPlan) -> Result<RunningTestbed, TestbedError> {
    build_apart(name, plan, false).map(|(standing, _)| standing)
}

/// Starts the holder of a testbed. If `tied`, also returns the write end of the holder's standard input.
fn build_apart(
    name: &str,
    plan: &TestbedPlan,
    tied: bool,
) -> Result<(RunningTestbed, Option<ChildStdin>), TestbedError> {
    check_name(name)?;
    ["ip", "tc"].into_iter().try_for_each(|program| programs::command(program).map(drop))?;
    if try_lock(name)?.is_none() {
        return Err(TestbedError::Input(format!(
            "a testbed `{name}` is up already: `anabranch testbed down --name {name}` takes it down, --name makes another"
        )));
    }
    let arguments = ["testbed", "hold"].map(OsString::from);
    // The holder outlives this process and must not keep its parents' files open.
    crate::inherited::close_on_exec();
    let (mut command, privileges) = space::apart(&arguments)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| TestbedError::system("running `unshare`", error))?;
    // Inside a user namespace the process is root and would use another folder.
    let order = Order { name: name.into(), folder: folder()?, privileges, plan: plan.clone(), tied };
    let mut tie = child.stdin.take();
    if let Some(stdin) = &mut tie {
        // If the holder stops reading early, its reply gives the reason.
        let _ = writeln!(stdin, "{}", serde_json::to_string(&order).unwrap_or_default());
    }
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let standing: RunningTestbed = read_reply(&line)?;
    let path = folder()?.join(format!("{name}.json"));
    let text = serde_json::to_string(&standing).unwrap_or_default();
    fs::write(&path, text).map_err(|error| TestbedError::system(format!("writing {}", path.display()), error))?;
    Ok((standing, tie.filter(|_| tied)))
}

fn read_reply<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, TestbedError> {
    match serde_json::from_str::<Reply<T>>(text) {
        Ok(reply) => reply.map_err(TestbedError::Input),
        Err(error) => Err(TestbedError::Input(format!("the process inside the testbed ended early: {error}"))),
    }
}

fn write_reply<T: Serialize>(done: Result<T, TestbedError>) {
    let mut out = std::io::stdout();
    let reply: Reply<T> = done.map_err(|error| error.to_string());
    let _ = writeln!(out, "{}", serde_json::to_string(&reply).unwrap_or_default());
    let _ = out.flush();
}

/// Reads what to do, one line.
fn read_input<T: for<'a> Deserialize<'a>>() -> Result<T, TestbedError> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| TestbedError::system("reading what to do", error))?;
    serde_json::from_str(&line).map_err(|error| TestbedError::Input(format!("what to do: {error}")))
}

/// Runs the holder: builds what standard input specifies, reports on standard output, and stays until it is killed.
pub fn hold() {
    let lock = match build() {
        Ok((standing, fabric, lock)) => {
            write_reply(Ok(standing));
            (fabric, lock)
        }
        Err(error) => return write_reply::<RunningTestbed>(Err(error)),
    };
    loop {
        // The first process of a process namespace is the parent of its orphans.
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(status) if status.pid().is_some() => {}
            _ => std::thread::sleep(Duration::from_millis(500)),
        }
        let _ = &lock;
    }
}

fn build() -> Result<(RunningTestbed, Fabric, File), TestbedError> {
    let Order { name, folder, privileges, plan, tied } = read_input()?;
    let began = Instant::now();
    // Process identifier as seen from outside: /proc is still that of the outer namespace.
    let holder = fs::read_link("/proc/self").ok().and_then(|link| link.to_string_lossy().parse().ok());
    let holder = holder.ok_or_else(|| TestbedError::Input("/proc is not mounted".into()))?;
    let lock = try_lock_in(&folder, &name)?;
    let lock = lock.ok_or_else(|| TestbedError::Input(format!("a testbed `{name}` is being made already")))?;
    if tied {
        // Later a file system over /run hides this folder, so its descriptor is opened now.
        let folder = File::open(&folder).map_err(|error| TestbedError::system(folder.display().to_string(), error))?;
        let name = name.clone();
        std::thread::spawn(move || {
            // The input ends when the builder ends.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            for ending in FILES {
                let _ = rustix::fs::unlinkat(&folder, format!("{name}.{ending}"), rustix::fs::AtFlags::empty());
            }
            std::process::exit(0);
        });
    }
    space::settle()?;
    let fabric = Fabric::build(plan)?;
    let standing = RunningTestbed {
        name,
        holder,
        privileges,
        plan: fabric.plan().clone(),
        missing: fabric.missing().clone(),
        took_s: began.elapsed().as_secs_f64(),
        prefix: fabric.net.prefix.clone(),
    };
    Ok((standing, fabric, lock))
}

fn read_state(path: &Path) -> Option<RunningTestbed> {
    let text = anabranch_input::read_own_text(path, anabranch_input::MAX_TEXT).ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns the testbed of this name.
/// Fails if no testbed of this name is up.
pub fn find(name: &str) -> Result<RunningTestbed, TestbedError> {
    check_name(name)?;
    let path = folder()?.join(format!("{name}.json"));
    let stands = path.exists() && try_lock(name)?.is_none();
    let standing = if stands { read_state(&path) } else { None };
    standing.ok_or_else(|| {
        let names: Vec<String> = list().unwrap_or_default().into_iter().map(|standing| standing.name).collect();
        let others = if names.is_empty() { "none is".to_string() } else { format!("up: {}", names.join(", ")) };
        TestbedError::Input(format!(
            "no testbed `{name}` is up ({others}); `anabranch testbed up --name {name}` makes it"
        ))
    })
}

/// Returns this user's testbeds, sorted by name.
pub fn list() -> Result<Vec<RunningTestbed>, TestbedError> {
    let folder = folder()?;
    let entries = fs::read_dir(&folder).map_err(|error| TestbedError::system(folder.display().to_string(), error))?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"))
    {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if check_name(&name).is_err() {
            continue;
        }
        match try_lock(&name)? {
            // The lock is free, so the holder was killed.
            Some(_lock) => remove_files(&folder, &name),
            None => found.extend(read_state(&path)),
        }
    }
    found.sort_by(|a: &RunningTestbed, b: &RunningTestbed| a.name.cmp(&b.name));
    Ok(found)
}

impl RunningTestbed {
    /// Takes the testbed down: kills its holder, which ends its processes, namespaces and programs.
    pub fn down(&self) -> Result<(), TestbedError> {
        match kill(Pid::from_raw(self.holder), Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(TestbedError::system(format!("ending process {}", self.holder), error)),
        }
        let began = Instant::now();
        loop {
            if let Some(_lock) = try_lock(&self.name)? {
                remove_files(&folder()?, &self.name);
                return Ok(());
            }
            if began.elapsed() > TIMEOUT {
                return Err(TestbedError::Input(format!("process {} does not end", self.holder)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns a command in the namespace of a node, with the current working directory.
    pub fn exec(&self, node: &str, words: &[OsString]) -> Result<Command, TestbedError> {
        let mut command = space::beside(self.holder, self.privileges)?;
        command.arg("ip");
        self.add_words(&mut command, node, words)?;
        Ok(command)
    }

    /// Appends the words after `ip` of a command in the namespace of a node, with the current working directory.
    fn add_words(&self, command: &mut Command, node: &str, words: &[OsString]) -> Result<(), TestbedError> {
        self.plan.node(node)?;
        command.args(["netns", "exec", &format!("{}{node}", self.prefix)]);
        if let Ok(here) = std::env::current_dir() {
            command.arg("env").arg("-C").arg(here);
        }
        command.args(words);
        Ok(())
    }

    /// Runs a command in the namespace of a node, with the current working directory, and forwards signals to it. Returns its
    /// exit code, or 128 plus the number of the signal. This process stays in the testbed's mount namespace.
    pub fn run(&self, node: &str, words: &[OsString]) -> Result<i32, TestbedError> {
        let mut command = programs::command("ip")?;
        self.add_words(command.env(space::INSIDE, "1"), node, words)?;
        space::join(self.holder, self.privileges)?;
        foreground::run(&mut command).map_err(|error| TestbedError::system("running `ip`", error))
    }

    /// Performs an operation on the network. [`Action::Count`] returns the counters of all ports in the order of the
    /// scenario's directed links.
    pub fn act(&self, action: Action) -> Result<Vec<PortCount>, TestbedError> {
        let program = std::env::current_exe().map_err(|error| TestbedError::system("finding this program", error))?;
        let mut command = space::beside(self.holder, self.privileges)?;
        command.arg(program).args(["testbed", "act"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let failed = |error| TestbedError::system("running `nsenter`", error);
        let mut child = command.spawn().map_err(failed)?;
        if let Some(stdin) = child.stdin.take() {
            let _ = serde_json::to_writer(stdin, &Task { standing: self.clone(), action });
        }
        let output = child.wait_with_output().map_err(failed)?;
        read_reply(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Runs the operation that standard input specifies, in a process inside a testbed.
pub fn act() {
    write_reply(read_input().and_then(|Task { standing, action }| {
        let fabric = Fabric::of_another(standing.plan, standing.prefix, standing.missing);
        perform(&fabric, &action)
    }));
}

fn perform(fabric: &Fabric, action: &Action) -> Result<Vec<PortCount>, TestbedError> {
    match action {
        Action::Count => return fabric.counters(),
        Action::Cut(cables) => cables.iter().try_for_each(|cable| fabric.cut(*cable))?,
        Action::Mend(cables) => cables.iter().try_for_each(|cable| fabric.mend(*cable))?,
        Action::Slow(cables, rate) => cables.iter().try_for_each(|cable| fabric.slow(*cable, Some(*rate)))?,
        Action::Harm(links, harm) => links.iter().try_for_each(|(from, to)| fabric.harm(*from, *to, *harm))?,
    }
    Ok(Vec::new())
}
