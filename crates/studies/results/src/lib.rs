//! Results on disk: tables and summary of a run, manifests, the store of runs and its plan, and their verification.

pub mod disk;
pub mod error;
pub mod json;
pub mod limit_files;
pub mod limits;
pub mod load;
pub mod manifest;
pub mod meta;
pub mod names;
pub mod numbers;
pub mod output;
pub mod plan;
pub mod read;
pub mod real_run;
pub mod rows;
pub mod staging;
pub mod store;
pub mod summary;
pub mod tables;
pub mod verify;
pub mod write;

pub use disk::Content;
pub use error::ReportError;
pub use limit_files::{read_limits, read_limits_file, write_limits, write_limits_file};
pub use limits::{LimitRow, Limits};
pub use load::OfferedLoad;
pub use manifest::{ColumnEntry, FileEntry, InputEntry, Manifest, Provenance, ResultKind, resealed, run_key};
pub use meta::{CollectiveMeta, FctKind, LinkFault, RunMeta, WorkloadMeta};
pub use names::{PLAN, failed_file, is_key, named_run, run_name, store_directory};
pub use numbers::{seconds, significant_digits};
pub use output::{Inputs, OutputDir, OutputFile, PendingFile, files_of};
pub use plan::{Axis, Plan, PlannedRun};
pub use read::{RunPlace, finished_runs, read_runs, read_summary};
pub use real_run::FaultSummary;
pub use store::{
    Attempt, FailedRun, create_store, is_complete_run, part_names, replace_attempt, show_run, study_files, write_plan,
};
pub use summary::{
    ConservationSummary, CounterSummary, FlowCounts, FlowSummary, GroupSummary, QueueSummary, RunStatus, SizeRange,
    Summary, differing_summary,
};
pub use tables::{
    At, Bits, Column, ColumnKind, Context, Filling, Frame, Label, Member, RowDifference, TABLES, Table, Validity,
    Value, Words, csv_tables, differing_rows,
};
pub use verify::{
    Finding, FindingKind, Verified, check_files, check_results, check_runs, damage, is_data, is_intact, verify,
};
pub use write::{Formats, gather_runs, parquet_bytes, write_fresh_run, write_run, write_run_to_draw};
