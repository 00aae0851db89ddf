//! Properties of this build and this machine.

pub use anabranch_input::memory::memory_limit;
use anabranch_input::memory::{group_limit, number, read, status_line};
use std::{ffi::OsString, sync::OnceLock};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Sources from which the command was built: the commit, and where they differ from it (or there is none) 16 hex digits over
/// the sources of everything that decides a result.
pub const COMMIT: &str = env!("ANABRANCH_COMMIT");

/// Returns the peak resident memory of this process in bytes; `None` where the system does not report it.
pub fn peak_rss_bytes() -> Option<u64> {
    status_line(&read("/proc/self/status")?, "VmHWM:")
}

/// Returns the resident memory of this process in bytes; `None` where the system does not report it.
pub fn resident() -> Option<u64> {
    status_line(&read("/proc/self/status")?, "VmRSS:")
}

/// Memory of the machine, or of the control group of this process where that allows less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that can still be allocated.
    pub available: u64,
    /// Total bytes.
    pub total: u64,
}

impl Memory {
    /// Returns the current state; `None` where the system does not report it.
    pub fn now() -> Option<Self> {
        let machine = Memory::of_machine(&read("/proc/meminfo")?)?;
        let used = number("/sys/fs/cgroup/memory.current");
        Some(machine.within(group_limit().zip(used)))
    }

    fn of_machine(meminfo: &str) -> Option<Self> {
        let available = status_line(meminfo, "MemAvailable:")?;
        Some(Memory { available, total: status_line(meminfo, "MemTotal:")? })
    }

    fn within(self, group: Option<(u64, u64)>) -> Self {
        match group {
            Some((limit, used)) if limit < self.total => {
                Memory { available: limit.saturating_sub(used).min(self.available), total: limit }
            }
            _ => self,
        }
    }
}

/// Resets the peak to the present resident memory, where the system supports it.
pub fn reset_peak_rss() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the processor time of all threads of this process in seconds; `None` where the system does not report it.
pub fn cpu_seconds() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// Describes system, processor and number of threads.
pub fn machine() -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, name)| name.trim().to_string())
    });
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{system} {architecture}, {}, {threads} threads", processor.unwrap_or_else(|| "processor unknown".into()))
}

pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+:".contains(c);
    if word.chars().all(plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

static COMMAND: OnceLock<String> = OnceLock::new();

/// Records the command line of this process; its first word is the program.
pub fn note_command(words: &[OsString]) {
    let rest = words.iter().skip(1).map(|word| quoted(&word.to_string_lossy()));
    let line = std::iter::once("anabranch".to_string()).chain(rest).collect::<Vec<_>>().join(" ");
    let _ = COMMAND.set(line);
}

/// Returns the command line of this process, quoted for a shell; empty where the process is not the command.
pub fn command() -> String {
    COMMAND.get().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_passes_with_work() {
        let before = cpu_seconds().unwrap();
        let sum = (0..20_000_000u64).fold(0u64, |sum, n| sum.rotate_left(7) ^ n);
        assert!(cpu_seconds().unwrap() > before, "{sum}");
    }

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(status_line("Name:\tx\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2 << 20));
        assert_eq!(status_line("Name:\tx\n", "VmHWM:"), None);
    }

    #[test]
    fn the_machine_or_its_group() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    500 kB\n";
        let machine = Memory::of_machine(text).unwrap();
        assert_eq!(machine, Memory { available: 500 * 1024, total: 1000 * 1024 });
        assert_eq!(machine.within(None), machine);
        assert_eq!(machine.within(Some((u64::MAX, 5))), machine, "a limit above the machine is none");
        let limited = Memory { available: 100 * 1024, total: 400 * 1024 };
        assert_eq!(machine.within(Some((400 * 1024, 300 * 1024))), limited);
        assert_eq!(Memory::of_machine("MemTotal: 3 kB\n"), None);
        assert!(resident().is_none_or(|bytes| bytes > 1 << 16));
    }
}
