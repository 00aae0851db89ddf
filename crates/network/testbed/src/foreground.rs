//! Foreground command: it receives the signals of this process, which ends with its exit code.
#![allow(unsafe_code)]

use nix::{
    sys::{
        signal::{SigSet, Signal, killpg, raise},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpgrp},
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::{io, os::unix::process::CommandExt, process::Command};

const PASSED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Runs a command in a process group of its own and forwards signals to it. Returns its exit code, or 128 plus the
/// number of the signal that ended it. The calling process must have no other threads.
pub(crate) fn run(command: &mut Command) -> io::Result<i32> {
    let mut awaited: SigSet = PASSED.into_iter().collect();
    awaited.add(Signal::SIGCHLD);
    let mut blocked = awaited;
    // A process that takes its terminal back is not in the foreground and would receive SIGTTOU.
    blocked.add(Signal::SIGTTOU);
    blocked.thread_block()?;
    let unblock = move || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec it makes one system call that is async-signal-safe, and takes no memory and no
    // lock.
    let child = unsafe { command.process_group(0).pre_exec(unblock) }.spawn()?;
    let group = Pid::from_raw(child.id() as i32);
    let terminal = Terminal::ours();
    terminal.give(group);
    let code = loop {
        match awaited.wait()? {
            Signal::SIGCHLD => {
                if let Some(code) = supervise(group, &terminal)? {
                    break code;
                }
            }
            // The command may have just ended.
            signal => drop(killpg(group, signal)),
        }
    };
    terminal.give(getpgrp());
    Ok(code)
}

/// Returns the exit code if the command has ended.
fn supervise(group: Pid, terminal: &Terminal) -> io::Result<Option<i32>> {
    loop {
        match waitpid(group, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED))? {
            WaitStatus::Exited(_, code) => return Ok(Some(code)),
            WaitStatus::Signaled(_, signal, _) => return Ok(Some(128 + signal as i32)),
            WaitStatus::Stopped(_, signal) => {
                let requested_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
                if !(requested_terminal && terminal.is_ours) {
                    // This process stops with the command, so that a shell shows its prompt again.
                    terminal.give(getpgrp());
                    raise(Signal::SIGSTOP)?;
                }
                terminal.give(group);
                killpg(group, Signal::SIGCONT)?;
            }
            _ => return Ok(None),
        }
    }
}

struct Terminal {
    is_ours: bool,
}

impl Terminal {
    fn ours() -> Self {
        let own = rustix::process::getpgrp();
        Terminal { is_ours: tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == own) }
    }

    fn give(&self, group: Pid) {
        if let Some(group) = rustix::process::Pid::from_raw(group.as_raw()).filter(|_| self.is_ours) {
            // The terminal may be gone.
            let _ = tcsetpgrp(io::stdin(), group);
        }
    }
}
