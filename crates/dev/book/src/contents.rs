//! The table of contents: pages by kind.

use crate::pages::WRITTEN;
use std::fmt::Write as _;

pub(crate) struct Part {
    pub title: &'static str,
    /// Titles and paths below `docs/`, in reading order.
    pub pages: &'static [(&'static str, &'static str)],
}

/// The pages of schemes follow it.
const SCHEMES: &str = "schemes/README.md";
/// The specification's pages follow it.
const SPECIFICATION_INDEX: &str = "specification.md";

pub(crate) const PARTS: &[Part] = &[
    Part {
        title: "Tutorials",
        pages: &[
            ("First result", "tutorials/first-result.md"),
            ("Your own scenario", "tutorials/own-scenario.md"),
            ("Your own scheme", "tutorials/own-scheme.md"),
            ("Real packets on one machine", "tutorials/real-packets.md"),
            ("A study with Python", "tutorials/python-study.md"),
        ],
    },
    Part {
        title: "How-to",
        pages: &[
            ("Choose a scheme", "schemes.md"),
            ("Draw a load curve", "how-to/load-curve.md"),
            ("Sweep parameters", "how-to/sweeps.md"),
            ("Run a study on Slurm", "how-to/slurm.md"),
            ("Find out why a flow is slow", "how-to/slow-flow.md"),
            ("Inspect a run", "how-to/inspect.md"),
            ("View the fabric", "how-to/fabric-view.md"),
            ("Draw figures for a paper", "how-to/figures.md"),
            ("Reproduce a paper", "how-to/reproduce.md"),
            ("Coming from htsim, from ns-3", "how-to/coming-from.md"),
            ("Use htsim files", "how-to/htsim.md"),
            ("Simulate an AllReduce in groups", "how-to/allreduce-groups.md"),
            ("How many queue pairs", "how-to/queue-pairs.md"),
            ("Use Python", "how-to/python.md"),
            ("Add a column to the results", "how-to/add-a-column.md"),
            ("Tune parameters", "how-to/tuning.md"),
            ("Send between two machines", "how-to/real-networks.md"),
            ("Use RDMA devices", "how-to/verbs.md"),
            ("Run under NCCL", "how-to/nccl.md"),
            ("Run on a testbed", "how-to/testbed.md"),
            ("Compare simulator and testbed", "how-to/backends.md"),
            ("Test with random scenarios", "how-to/soak.md"),
        ],
    },
    Part {
        title: "Reference",
        pages: &[
            ("Glossary", "reference/glossary.md"),
            ("Scenario files", "reference/scenarios.md"),
            ("Keys of a scenario", "reference/keys.md"),
            ("Topologies", "reference/topologies.md"),
            ("Workloads", "reference/workloads.md"),
            ("Schemes", SCHEMES),
            ("Results and stores", "reference/results.md"),
            ("Claims of papers", "reference/claims.md"),
            ("Commands", "reference/commands.md"),
            ("Python package", "reference/python.md"),
            ("Captures", "reference/captures.md"),
            ("Wire format and endpoints", "reference/wire.md"),
            ("RDMA verbs", "reference/verbs.md"),
            ("NCCL plugin", "reference/nccl.md"),
            ("Testbed", "reference/testbed.md"),
            ("Specification", SPECIFICATION_INDEX),
        ],
    },
    Part {
        title: "Explanation",
        pages: &[
            ("Engine", "explanation/engine.md"),
            ("Servers and rails", "explanation/servers.md"),
            ("RoCE", "explanation/roce.md"),
            ("How schemes differ", "explanation/load-balancing.md"),
            ("Statistics", "explanation/statistics.md"),
            ("How many seeds?", "explanation/seeds.md"),
            ("Bounds", "explanation/bounds.md"),
            ("Skip the steady state", "explanation/skip.md"),
            ("Where a flow's time goes", "explanation/delays.md"),
        ],
    },
    Part {
        title: "Evidence",
        pages: &[
            ("Validation", "evidence/validation.md"),
            ("Limits", "evidence/limits.md"),
            ("Hopper", "evidence/hopper.md"),
            ("HF2T", "evidence/hf2t.md"),
            ("PRIME", "evidence/prime.md"),
            ("Spritz", "evidence/spritz.md"),
            ("Testbed", "evidence/testbed.md"),
            ("Simulator and testbed", "evidence/backends.md"),
            ("Beside other simulators", "evidence/simulators.md"),
            ("Ready-made scenarios and tuned thresholds", "evidence/scenarios.md"),
            ("Performance", "evidence/performance.md"),
            ("Wire", "evidence/wire.md"),
            ("NCCL plugin", "evidence/nccl.md"),
            ("RDMA verbs", "evidence/verbs.md"),
        ],
    },
];

const SPECIFICATION: &[(&str, &str)] = &[
    ("Definitions", "definitions"),
    ("Hopper", "hopper"),
    ("Host schemes", "host-schemes"),
    ("Switch schemes", "switch-schemes"),
    ("PRIME", "prime"),
    ("REPS, bitmap, mixed", "reps"),
    ("Transports", "transports"),
    ("Spritz", "spritz"),
    ("Dragonfly", "dragonfly"),
    ("Slim Fly", "slim-fly"),
    ("HF2T", "hf2t"),
    ("Traffic", "traffic"),
    ("Reference numbers of Spritz", "reference-numbers"),
    ("File formats", "formats"),
    ("Open points", "open-points"),
    ("The recorded model", "recorded-model"),
];

/// Returns `SUMMARY.md`, from which mdBook builds the site.
pub(crate) fn summary(names: &[&str]) -> String {
    let mut text = format!("{WRITTEN}# Anabranch\n\n[Anabranch](README.md)\n\n");
    for part in PARTS {
        let _ = write!(text, "# {}\n\n", part.title);
        for (title, path) in part.pages {
            let _ = writeln!(text, "- [{title}]({path})");
            match *path {
                SCHEMES => names.iter().for_each(|name| {
                    let _ = writeln!(text, "  - [{name}](schemes/{name}.md)");
                }),
                SPECIFICATION_INDEX => SPECIFICATION.iter().for_each(|(title, file)| {
                    let _ = writeln!(text, "  - [{title}](specification/{file}.md)");
                }),
                _ => {}
            }
        }
        text.push('\n');
    }
    text
}
