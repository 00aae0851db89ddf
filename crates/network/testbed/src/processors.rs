//! Idle share of the machine's processors.

/// Ticks of all processors since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Processors {
    idle: u64,
    all: u64,
}

impl Processors {
    /// Returns the current times; `None` if `/proc/stat` cannot be read.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Returns the share of idle time since `self`; `None` if `/proc/stat` cannot be read or no tick has passed.
    pub(crate) fn idle_share_since(self) -> Option<f64> {
        self.idle_share(Self::now()?)
    }

    fn idle_share(self, later: Processors) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        Some(later.idle.saturating_sub(self.idle) as f64 / all as f64)
    }

    /// Parses the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Later columns are
    /// part of user.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or(0);
        Some(Processors { idle, all: ticks.iter().sum() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_includes_waiting_for_disks() {
        let before = Processors::parse("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!(before, Processors { idle: 850, all: 1000 });
        let later = Processors::parse("cpu  160 0 60 810 60 5 5 0 9 0\n").unwrap();
        assert_eq!(before.idle_share(later), Some(0.2));
        assert_eq!(before.idle_share(before), None);
        assert_eq!(Processors::parse("intr 5\n"), None);
    }
}
