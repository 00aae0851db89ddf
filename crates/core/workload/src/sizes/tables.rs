//! Built-in distributions, each a file in `cdf/` with its source at the top.

use anabranch_settings::About;

/// A built-in flow-size distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizesAbout {
    pub name: &'static str,
    pub summary: &'static str,
    pub source: &'static str,
    /// The table: a line per point, size in bytes and cumulative probability.
    pub text: &'static str,
}

impl SizesAbout {
    /// Returns its registry entry.
    pub const fn about(&self) -> About {
        About { name: self.name, summary: self.summary, source: self.source, description: "" }
    }
}

macro_rules! tables {
    ($($name:literal: $summary:literal, $source:literal;)*) => {
        /// All built-in flow-size distributions.
        pub const SIZE_DISTRIBUTIONS: &[SizesAbout] = &[$(SizesAbout {
            name: $name,
            summary: $summary,
            source: $source,
            text: include_str!(concat!("../../cdf/", $name, ".txt")),
        },)*];
    };
}

tables! {
    "web-search": "web search (DCTCP), mean 1.71 MB, largest 30 MB", "specification 12.1 (a); ConWeave's DCTCP_CDF";
    "web-search-reps": "web search with a longer tail, mean 2.79 MB, largest 40 MB",
        "specification 12.1 (b); REPS artifact";
    "ali-storage": "Alibaba's storage of 2019, mean 40.9 kB, largest 2 MB", "specification 12.1; AliStorage2019";
    "hadoop": "Facebook's Hadoop cluster, mean 122 kB, largest 10 MB", "specification 12.1; FbHdp2015";
    "hadoop-coarse": "the same in 20 points, mean 120 kB, largest 10 MB", "specification 12.1; HPCC";
    "solar": "Alibaba's Solar storage, mean 39.4 kB, largest 256 KiB", "specification 12.1; Solar2022";
    "google-rpc": "RPCs of Google, mean 2.97 kB, largest 15.2 MB", "specification 12.1; GoogleRPC2008";
    "data-mining": "data mining (VL2), mean 7.49 MB, largest 1 GB", "specification 12.1; VL2";
    "gpt3-data-parallel": "data-parallel training of GPT-3 175B on 128 GPUs, mean 12.9 MB, largest 28.3 MB",
        "ours: specification 2.7, from public descriptions";
    "ml-training-assumed": "an assumed stand-in for training collectives, mean 59 MB, largest 256 MB",
        "ours: specification 2.7, no table was published";
    "ml-training-assumed-16": "the same sizes divided by 16, mean 3.71 MB, largest 16 MB",
        "ours: specification 2.7, no table was published";
    "ml-training-assumed-64": "the same sizes divided by 64, mean 927 kB, largest 4 MB",
        "ours: specification 2.7, no table was published";
}
