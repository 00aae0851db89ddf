//! `ip` and `tc` in a namespace, started beforehand: what they are to do costs no start of a program then.

use crate::{TestbedError, programs};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

/// Which program does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// Interfaces and routes.
    Ip,
    /// Queues.
    Tc,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Ip => "ip",
            Program::Tc => "tc",
        }
    }

    /// A command that prints one line.
    fn shows(self) -> &'static str {
        match self {
            Program::Ip => "link show dev lo\n",
            Program::Tc => "qdisc show dev lo\n",
        }
    }
}

/// One of them, which reads what to do from a pipe.
#[derive(Debug)]
pub(crate) struct Batch {
    program: Program,
    namespace: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Batch {
    /// Starts one and waits until it reads.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn start(program: Program, namespace: &str) -> Result<Self, TestbedError> {
        let mut command = programs::command(program.name())?;
        if program == Program::Ip {
            // A line for an interface; a queue has one as it is.
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

    /// Hands over lines that it is to do.
    ///
    /// # Errors
    /// Where it has ended.
    pub(crate) fn write(&mut self, lines: &str) -> Result<(), TestbedError> {
        // Nothing that changes something prints: what does says that all before it is done.
        let text = format!("{lines}{}", self.program.shows());
        if self.stdin.write_all(text.as_bytes()).is_err() { Err(self.ended()) } else { Ok(()) }
    }

    /// Waits until what was handed over is done.
    ///
    /// # Errors
    /// Where it could not be done.
    pub(crate) fn wait(&mut self) -> Result<(), TestbedError> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(1..) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Why it has ended.
    fn ended(&mut self) -> TestbedError {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let command = format!("{} -n {} -batch -", self.program.name(), self.namespace);
        TestbedError::Program { command, said: said.trim().to_string() }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // It has nothing to do: it ends at once.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
