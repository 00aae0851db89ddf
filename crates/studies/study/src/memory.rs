//! Memory: what the machine has left, and what this process holds.

use std::fs;

/// Bytes that can still be taken, and all there are: of the machine, or of the group of processes that this one belongs
/// to where that allows less. `None` where the system does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Still to be had.
    pub available: u64,
    /// In all.
    pub total: u64,
}

/// What there is now.
pub fn memory() -> Option<Memory> {
    let machine = of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Control groups, version 2; a group without a limit says `max`.
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    Some(within(machine, group))
}

fn of_machine(meminfo: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some(Memory { available: field("MemAvailable:")?, total: field("MemTotal:")? })
}

fn within(machine: Memory, group: Option<(u64, u64)>) -> Memory {
    match group {
        Some((limit, used)) if limit < machine.total => {
            Memory { available: limit.saturating_sub(used).min(machine.available), total: limit }
        }
        _ => machine,
    }
}

/// What this process holds now, in bytes.
pub fn resident() -> Option<u64> {
    // The second number of `statm` counts pages, of 4 KiB on the machines that Linux runs on.
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_or_its_group() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    500 kB\n";
        let machine = of_machine(text).unwrap();
        assert_eq!(machine, Memory { available: 500 * 1024, total: 1000 * 1024 });
        assert_eq!(within(machine, None), machine);
        assert_eq!(within(machine, Some((u64::MAX, 5))), machine, "a limit above the machine is none");
        let limited = Memory { available: 100 * 1024, total: 400 * 1024 };
        assert_eq!(within(machine, Some((400 * 1024, 300 * 1024))), limited);
        assert_eq!(of_machine("MemTotal: 3 kB\n"), None);
    }

    #[test]
    fn a_process_holds_something() {
        assert!(resident().is_none_or(|bytes| bytes > 1 << 16));
    }
}
