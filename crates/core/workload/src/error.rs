use std::fmt;

/// Invalid parameter of a workload, or invalid content of a file it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadError {
    /// Position in the list given to [`crate::generate()`]; `None` if no single workload is at fault.
    pub workload: Option<usize>,
    /// The parameter, if one is at fault.
    pub key: Option<String>,
    /// File and line, such as `flows.csv:12`.
    pub place: Option<String>,
    /// Value found and values allowed.
    pub message: String,
}

impl WorkloadError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        WorkloadError { message: message.into(), ..Self::default() }
    }
    pub(crate) fn of_key(key: &str, message: impl Into<String>) -> Self {
        WorkloadError { key: Some(key.to_string()), ..Self::new(message) }
    }
    /// `line` counts from 1.
    pub(crate) fn in_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        WorkloadError { place: Some(format!("{path}:{line}")), ..Self::new(shortened(message.into())) }
    }
    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_string());
        self
    }
    /// Sets the workload at fault unless one is set.
    pub(crate) fn of_workload(mut self, number: usize) -> Self {
        self.workload = self.workload.or(Some(number));
        self
    }
    pub(crate) fn unless(valid: bool, key: &str, found: impl fmt::Display, expected: &str) -> Result<(), Self> {
        if valid { Ok(()) } else { Err(Self::of_key(key, format!("found {found}, expected {expected}"))) }
    }
}

/// Characters kept at each side of a long message.
const KEPT: usize = 200;

fn shortened(message: String) -> String {
    if message.len() <= 3 * KEPT {
        return message;
    }
    let head: String = message.chars().take(KEPT).collect();
    let tail: Vec<char> = message.chars().rev().take(KEPT).collect();
    format!("{head} ... {}", tail.into_iter().rev().collect::<String>())
}

pub(crate) fn hint(nearest: Option<String>) -> String {
    nearest.map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default()
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "`{key}`: ")?;
        }
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for WorkloadError {}
