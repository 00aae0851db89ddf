//! Memory that the system allows this process.

/// Returns the memory that a process may use, in bytes, and the origin of that limit. `None` where it is unknown.
pub fn memory_limit() -> Option<(u64, &'static str)> {
    let machine = read("/proc/meminfo").and_then(|text| status_line(&text, "MemTotal:"));
    let space = read("/proc/self/limits").and_then(|text| address_space(&text));
    let limits = [
        (machine, "this machine's memory"),
        (group_limit(), "the control group"),
        (space, "the limit of the address space"),
    ];
    limits.into_iter().filter_map(|(bytes, whose)| Some((bytes?, whose))).min()
}

/// Returns the text of a file of the system, if it can be read.
pub fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns the number that is such a file.
pub fn number(path: &str) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

/// Returns the limit of the control group, of version 2 or 1; a group of version 2 without a limit contains `max`.
pub fn group_limit() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].into_iter().find_map(number)
}

fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Parses a line in KiB, as bytes.
pub fn status_line(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_address_space() {
        let text = |limit: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space         {limit}  unlimited  bytes\n")
        };
        assert_eq!(address_space(&text("1048576")), Some(1 << 20));
        assert_eq!(address_space(&text("unlimited")), None);
    }
}
