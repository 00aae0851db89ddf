//! Testbeds that stand by name: a process holds each, and what is known of it lies in a file beside its lock.

use crate::{
    Fabric, Harm, Plan, PortCount, TestbedError, foreground, programs,
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
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

/// How long the end of a testbed may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A testbed that stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// The process that holds it.
    pub holder: i32,
    /// How it was made.
    pub privileges: Privileges,
    /// What it is.
    pub plan: Plan,
    /// What this machine lacks.
    pub missing: Vec<String>,
    /// Seconds that it took to build.
    pub took_s: f64,
    prefix: String,
}

/// What is to be done with the network of a testbed that stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Read the counters.
    Count,
    /// Cut these cables.
    Cut(Vec<usize>),
    /// Mend these cables.
    Mend(Vec<usize>),
    /// Give these cables another rate, bits per second.
    Slow(Vec<usize>, u64),
    /// Make these links, from one node to another, do that to packets.
    Harm(Vec<(usize, usize)>, Harm),
}

#[derive(Serialize, Deserialize)]
struct Order {
    name: String,
    /// Where its lock lies.
    folder: PathBuf,
    privileges: Privileges,
    plan: Plan,
    /// It ends when nobody holds the other end of its standard input any more.
    tied: bool,
}

#[derive(Serialize, Deserialize)]
struct Task {
    standing: Standing,
    action: Action,
}

/// What the other process says: what it did, or why it did not.
#[derive(Serialize, Deserialize)]
enum Answer<T> {
    Done(T),
    Failed(String),
}

/// The folder of this user's testbeds: one that he alone may write to, since what lies there is believed.
fn folder() -> Result<PathBuf, TestbedError> {
    let user = rustix::process::geteuid();
    // Under `sudo -E` the variable names a folder of the user who called it.
    let is_own = |folder: &PathBuf| {
        fs::metadata(folder).is_ok_and(|of| of.is_dir() && of.uid() == user.as_raw() && of.mode() & 0o022 == 0)
    };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(is_own);
    // Names in /tmp are anybody's to take; root has a folder where only root makes any.
    let system = user.is_root() && std::env::var_os("TMPDIR").is_none();
    let folder = match runtime.or_else(|| Some(PathBuf::from("/run")).filter(|run| system && is_own(run))) {
        Some(runtime) => runtime.join("anabranch-testbeds"),
        None => std::env::temp_dir().join(format!("anabranch-testbeds-{}", user.as_raw())),
    };
    let failed = |error| TestbedError::system(format!("the folder {}", folder.display()), error);
    // A link that somebody has put there is neither followed nor replaced.
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

/// The lock of a name; `None` where its testbed stands.
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

/// Endings of the files of a testbed in its user's folder: what is known of it, what else belongs to it, its lock.
const FILES: [&str; 3] = ["json", "toml", "lock"];

fn remove_files(folder: &Path, name: &str) {
    for ending in FILES {
        let _ = fs::remove_file(folder.join(format!("{name}.{ending}")));
    }
}

/// A testbed that goes with the process that made it, however that ends.
#[derive(Debug)]
pub struct Tied {
    standing: Standing,
    /// A text that lies in a file for as long.
    pub text_at: PathBuf,
    _tie: Option<ChildStdin>,
}

impl std::ops::Deref for Tied {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        &self.standing
    }
}

impl Drop for Tied {
    fn drop(&mut self) {
        // Its holder ends by itself where it cannot be ended.
        let _ = self.standing.down();
    }
}

/// Builds a testbed that goes with this process, and writes `text` to a file that goes with it too.
///
/// # Errors
/// As [`up`].
pub fn up_tied(name: &str, plan: &Plan, text: &str) -> Result<Tied, TestbedError> {
    let (standing, tie) = build_apart(name, plan, true)?;
    let text_at = folder()?.join(format!("{name}.toml"));
    let tied = Tied { standing, text_at, _tie: tie };
    let failed = |error| TestbedError::system(format!("writing {}", tied.text_at.display()), error);
    fs::write(&tied.text_at, text).map_err(failed)?;
    Ok(tied)
}

/// Builds a testbed that stands until it is taken down or its holder is killed.
///
/// # Errors
/// Where one of that name stands, or it cannot be built; nothing is left then.
pub fn up(name: &str, plan: &Plan) -> Result<Standing, TestbedError> {
    build_apart(name, plan, false).map(|(standing, _)| standing)
}

/// Starts the holder of a testbed; with the end of its standard input that we have.
fn build_apart(name: &str, plan: &Plan, tied: bool) -> Result<(Standing, Option<ChildStdin>), TestbedError> {
    check_name(name)?;
    ["ip", "tc"].into_iter().try_for_each(|program| programs::command(program).map(drop))?;
    if try_lock(name)?.is_none() {
        return Err(TestbedError::Input(format!(
            "a testbed `{name}` is up already: `anabranch testbed down --name {name}` takes it down, --name makes another"
        )));
    }
    let arguments = ["testbed", "hold"].map(OsString::from);
    // The holder stays when this process has gone: it must not keep what others have opened.
    crate::inherited::close_on_exec();
    let (mut command, privileges) = space::apart(&arguments)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| TestbedError::system("running `unshare`", error))?;
    // Inside, who made a user namespace is root of it and would look elsewhere.
    let order = Order { name: name.into(), folder: folder()?, privileges, plan: plan.clone(), tied };
    let mut tie = child.stdin.take();
    if let Some(stdin) = &mut tie {
        // Why it did not read to the end stands in its answer.
        let _ = writeln!(stdin, "{}", serde_json::to_string(&order).unwrap_or_default());
    }
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let standing: Standing = read_answer(&line)?;
    let path = folder()?.join(format!("{name}.json"));
    let text = serde_json::to_string(&standing).unwrap_or_default();
    fs::write(&path, text).map_err(|error| TestbedError::system(format!("writing {}", path.display()), error))?;
    Ok((standing, tie.filter(|_| tied)))
}

fn read_answer<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, TestbedError> {
    match serde_json::from_str(text) {
        Ok(Answer::Done(done)) => Ok(done),
        Ok(Answer::Failed(why)) => Err(TestbedError::Input(why)),
        Err(error) => Err(TestbedError::Input(format!("the process inside the testbed ended early: {error}"))),
    }
}

fn say<T: Serialize>(answer: &Answer<T>) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{}", serde_json::to_string(answer).unwrap_or_default());
    let _ = out.flush();
}

fn read_input<T: for<'a> Deserialize<'a>>() -> Result<T, TestbedError> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| TestbedError::system("reading what to do", error))?;
    serde_json::from_str(&text).map_err(|error| TestbedError::Input(format!("what to do: {error}")))
}

/// What is to be built, a line.
fn read_order() -> Result<Order, TestbedError> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| TestbedError::system("reading what to do", error))?;
    serde_json::from_str(&line).map_err(|error| TestbedError::Input(format!("what to do: {error}")))
}

/// What the holder does: builds what standard input says, tells standard output, and stays until it is killed.
pub fn hold() {
    let built = build();
    let lock = match built {
        Ok((standing, fabric, lock)) => {
            say(&Answer::Done(standing));
            (fabric, lock)
        }
        Err(error) => return say(&Answer::<Standing>::Failed(error.to_string())),
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

fn build() -> Result<(Standing, Fabric, File), TestbedError> {
    let Order { name, folder, privileges, plan, tied } = read_order()?;
    let began = Instant::now();
    // Its own number as those outside see it: /proc is still theirs.
    let holder = fs::read_link("/proc/self").ok().and_then(|link| link.to_string_lossy().parse().ok());
    let holder = holder.ok_or_else(|| TestbedError::Input("/proc is not mounted".into()))?;
    let lock = try_lock_in(&folder, &name)?;
    let lock = lock.ok_or_else(|| TestbedError::Input(format!("a testbed `{name}` is being made already")))?;
    if tied {
        // Later another file system lies over /run here, and this folder's path leads there.
        let folder = File::open(&folder).map_err(|error| TestbedError::system(folder.display().to_string(), error))?;
        let name = name.clone();
        std::thread::spawn(move || {
            // Nothing more is said; it ends when its maker does.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            for ending in FILES {
                let _ = rustix::fs::unlinkat(&folder, format!("{name}.{ending}"), rustix::fs::AtFlags::empty());
            }
            std::process::exit(0);
        });
    }
    space::settle()?;
    let fabric = Fabric::build(plan)?;
    let standing = Standing {
        name,
        holder,
        privileges,
        plan: fabric.plan().clone(),
        missing: fabric.missing().clone(),
        took_s: began.elapsed().as_secs_f64(),
        prefix: fabric.prefix().into(),
    };
    Ok((standing, fabric, lock))
}

/// What a file says of a testbed; `None` where it does not.
fn read_state(path: &Path) -> Option<Standing> {
    let text = anabranch_input::read_own_text(path, anabranch_input::MAX_TEXT).ok()?;
    serde_json::from_str(&text).ok()
}

/// The testbed of this name.
///
/// # Errors
/// Where none stands.
pub fn find(name: &str) -> Result<Standing, TestbedError> {
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

/// This user's testbeds, by name.
///
/// # Errors
/// Where their folder cannot be read.
pub fn list() -> Result<Vec<Standing>, TestbedError> {
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
            // Its holder was killed.
            Some(_lock) => {
                remove_files(&folder, &name);
            }
            None => found.extend(read_state(&path)),
        }
    }
    found.sort_by(|a: &Standing, b: &Standing| a.name.cmp(&b.name));
    Ok(found)
}

impl Standing {
    /// Takes it down: its holder is killed, and with it go processes, namespaces and programs.
    ///
    /// # Errors
    /// Where it cannot be killed.
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
            if began.elapsed() > PATIENCE {
                return Err(TestbedError::Input(format!("process {} does not end", self.holder)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A command in the namespace of a node, in the folder where we are.
    ///
    /// # Errors
    /// Where there is no such node.
    pub fn exec(&self, node: &str, words: &[OsString]) -> Result<Command, TestbedError> {
        self.plan.node(node)?;
        let mut command = space::beside(self.holder, self.privileges)?;
        command.arg("ip").args(["netns", "exec", &format!("{}{node}", self.prefix)]);
        if let Ok(here) = std::env::current_dir() {
            command.arg("env").arg("-C").arg(here);
        }
        command.args(words);
        Ok(command)
    }

    /// Runs a command in the namespace of a node, in the folder where we are, and passes signals on to it. Returns its exit
    /// code, or 128 and the number of the signal that ended it. This process stays in the testbed's namespaces of mounts.
    ///
    /// # Errors
    /// Where there is no such node, or the command cannot be started.
    pub fn run(&self, node: &str, words: &[OsString]) -> Result<i32, TestbedError> {
        self.plan.node(node)?;
        let mut command = programs::command("ip")?;
        command.args(["netns", "exec", &format!("{}{node}", self.prefix)]).env(space::INSIDE, "1");
        if let Ok(here) = std::env::current_dir() {
            command.arg("env").arg("-C").arg(here);
        }
        command.args(words);
        space::join(self.holder, self.privileges)?;
        foreground::run(&mut command).map_err(|error| TestbedError::system("running `ip`", error))
    }

    /// Does something with its network; the counters of all ports where those are asked for, in the order of the scenario's
    /// directed links.
    ///
    /// # Errors
    /// Where it cannot be done.
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
        read_answer(&String::from_utf8_lossy(&output.stdout))
    }
}

/// What a process that was sent into a testbed does there: what standard input says.
pub fn act() {
    let done = read_input().and_then(|Task { standing, action }| {
        let fabric = Fabric::of_another(standing.plan, standing.prefix, standing.missing);
        perform(&fabric, &action)
    });
    match done {
        Ok(counts) => say(&Answer::Done(counts)),
        Err(error) => say(&Answer::<Vec<PortCount>>::Failed(error.to_string())),
    }
}

/// Does something; the counters, where those are asked for.
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
