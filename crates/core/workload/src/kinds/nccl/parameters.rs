//! `[[workload]]` of kind `nccl`.

use super::plan;
use crate::kinds::ranks::Ranks;
use anabranch_settings::{Auto, choices, parameters};
use anabranch_units::{Bytes, Time};

choices! {
    /// A version of NCCL's interface of network plugins.
    pub enum Abi {
        /// NCCL 2.20 to 2.23.
        V8 = "v8",
        /// NCCL 2.24 and 2.25.
        V9 = "v9",
        /// NCCL 2.26 and 2.27.
        V10 = "v10",
        /// NCCL 2.28 and 2.29.
        V11 = "v11",
        /// NCCL 2.30.
        V12 = "v12",
    }
}

impl Abi {
    pub fn number(self) -> u32 {
        8 + self as u32
    }
}

choices! {
    /// Element type of buffers.
    pub enum Element {
        /// 32-bit floating point.
        Float = "float",
        /// 32-bit integers.
        Int = "int",
    }
}

parameters! {
    /// A collective over NCCL's network plugin.
    pub struct NcclParameters {
        /// The collective: ring and tree are all-reduces; in pairs each rank sends to the next.
        collective: plan::CollectiveKind = plan::CollectiveKind::Ring, source "ours", Expert;
        /// Number of ranks, each a process at a host.
        ranks: Ranks = Ranks::All, source "ours";
        /// Host of each rank, by number; empty: ring neighbours are below different leaves.
        hosts: Vec<u32> = vec![], source "ours";
        /// Bytes of each rank's buffer: whole words of 4 B, at most 4GiB.
        size: Bytes = Bytes(4 << 20), source "ours";
        /// Measured rounds, after one warm-up round.
        rounds: u32 = 5, source "ours";
        /// Channels, each with a share of the buffer and its own connections.
        channels: u32 = 2, source "ours", Expert;
        /// Element type of buffers.
        element: Element = Element::Float, source "ours", Expert;
        /// Version of NCCL's interface; auto: the newest that the plugin supports.
        abi: Auto<Abi> = Auto::Auto, source "ours", Expert;
        /// Start time of the ranks.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}
