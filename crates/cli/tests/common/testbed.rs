//! Shared by tests that build testbeds of namespaces.

use super::{Folder, assert_output, code, json, stderr};
use serde_json::Value;
use std::process::{Command, Output};

/// Ports and endpoints of testbeds with links of 200 Mbit/s: queues of 12 ms that mark from 60 kB on, windows of less than half of one.
pub(crate) const AT_200_MBPS: &str = r#"
[fabric]
queue_limit = "300kB"
ecn_kmin = "60kB"
ecn_kmax = "180kB"
trimming = false
[transport]
mtu = "4096B"
header = "98B"
congestion_control = "dctcp"
window = "131072B"
ack_every = 1
"#;

/// The flows of `flows.csv` over two leaves with links of 200 Mbit/s, paced at 180: sections of ports and endpoints, and more keys of
/// `[wire]`.
pub(crate) fn scenario(spines: u32, hosts_per_leaf: u32, sections: &str, wire: &str) -> String {
    format!(
        r#"
name = "two leaves"
[topology]
kind = "leaf-spine"
leaves = 2
spines = {spines}
hosts_per_leaf = {hosts_per_leaf}
link_rate = "200Mbps"
{sections}
[load_balancer]
scheme = "reps"
[wire]
rate = "180Mbps"
rtt_floor = "1ms"
{wire}
[[workload]]
kind = "file"
path = "flows.csv"
[run]
time_limit = "60s"
"#
    )
}

/// A folder whose testbeds no other test sees; they are taken down at its end.
pub(crate) struct Bed {
    pub(crate) folder: Folder,
    /// Processor ticks when the test began: those that the hypervisor took, and all.
    ticks: (u64, u64),
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Testbeds that are still up after a failure.
        for folder in self.folder.entries("").into_iter().filter(|name| name.starts_with("anabranch-testbeds-")) {
            for name in self.folder.entries(&folder).iter().filter_map(|file| file.strip_suffix(".json")) {
                let _ = self.run(&["testbed", "down", "--name", name]);
            }
        }
    }
}

impl Bed {
    /// A folder with these files.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = Folder::new(name);
        files.iter().for_each(|(name, text)| drop(folder.file(name, text)));
        Bed { folder, ticks: processor_ticks() }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.folder.command(words);
        command.env("TMPDIR", &self.folder.0).env_remove("XDG_RUNTIME_DIR");
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs what must succeed.
    pub(crate) fn done(&self, words: &[&str]) -> Output {
        let output = self.run(words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        output
    }

    /// Builds a testbed of a scenario; `None`, a skip, where that is impossible.
    pub(crate) fn up(&self, scenario: &str, more: &[&str]) -> Option<Value> {
        let output = self.run(&[&["testbed", "up", "--fabric", scenario, "--format", "json"], more].concat());
        (!has_no_testbed(&output)).then(|| json(&output))
    }

    /// Runs a command on a testbed, with links that harm packets if it requires them; `None`, a skip, where that is
    /// impossible.
    pub(crate) fn run_real(&self, words: &[&str]) -> Option<Output> {
        let output = self.run(words);
        (!has_no_testbed(&output) && can_harm(&output)).then_some(output)
    }

    /// Reports that every try of a test was machine-bound. Without the real-time class, which only root has, other work delays
    /// endpoints; and so does a hypervisor that runs other VMs.
    pub(crate) fn skip_machine_bound(&self) {
        let (stolen, all) = processor_ticks();
        let share = (stolen - self.ticks.0) as f64 / (all - self.ticks.1).max(1) as f64;
        if share > 0.02 {
            return anabranch_testkit::skip_stolen(share);
        }
        anabranch_testkit::skip("every run was machine-bound", "run as root, on a machine without other work");
    }
}

/// Ticks of all processors since the machine started, from `/proc/stat`: those that the hypervisor took, and all.
fn processor_ticks() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<u64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|tick| tick.parse().unwrap()).collect();
    (ticks.get(7).copied().unwrap_or(0), ticks.iter().take(8).sum())
}

/// Returns `true`, having reported the skip, if the command found that there can be no testbed of namespaces here.
pub(crate) fn has_no_testbed(output: &Output) -> bool {
    code(output) == 2 && anabranch_testkit::has_no_testbed(&stderr(output))
}

/// Returns `false`, having reported the skip, if links cannot harm packets here.
pub(crate) fn can_harm(output: &Output) -> bool {
    let text = stderr(output);
    let cannot = text.contains("only root may load those") || text.contains("needs root");
    if cannot {
        anabranch_testkit::skip("links harm packets by a BPF program", "run as root");
    }
    !cannot
}

/// A command was refused with these words.
pub(crate) fn refused(output: &Output, words: &[&str]) {
    assert_output(output, 2, words);
}
