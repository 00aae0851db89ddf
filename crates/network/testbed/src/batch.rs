//! `ip` and `tc` processes in a namespace, started in advance, so that a later command costs no process start.

use crate::{TestbedError, programs};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    Ip,
    Tc,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Ip => "ip",
            Program::Tc => "tc",
        }
    }

    fn shows(self) -> &'static str {
        match self {
            Program::Ip => "link show dev lo\n",
            Program::Tc => "qdisc show dev lo\n",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Batch {
    program: Program,
    namespace: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Batch {
    /// Starts a process and waits until it reads commands.
    pub(crate) fn start(program: Program, namespace: &str) -> Result<Self, TestbedError> {
        let mut command = programs::command(program.name())?;
        if program == Program::Ip {
            // `-o` prints one line per interface, as `tc` does per queue.
            command.arg("-o");
        }
        command.args(["-n", namespace, "-batch", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error| TestbedError::system(format!("running `{}`", program.name()), error);
        let mut child = command.spawn().map_err(failed)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        let (stdout, namespace) = (BufReader::new(stdout), namespace.to_string());
        let mut batch = Batch { program, namespace, child, stdin, stdout };
        batch.write("")?;
        batch.wait()?;
        Ok(batch)
    }

    pub(crate) fn write(&mut self, lines: &str) -> Result<(), TestbedError> {
        // Commands that change state print nothing: the line of the last command confirms all before it.
        let text = format!("{lines}{}", self.program.shows());
        if self.stdin.write_all(text.as_bytes()).is_err() { Err(self.ended()) } else { Ok(()) }
    }

    pub(crate) fn wait(&mut self) -> Result<(), TestbedError> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(1..) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> TestbedError {
        let mut output = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut output);
        }
        let command = format!("{} -n {} -batch -", self.program.name(), self.namespace);
        TestbedError::Program { command, message: output.trim().to_string() }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // The process is idle, so killing it loses nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
