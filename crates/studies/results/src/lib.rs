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

pub use disk::{Content, NewFile, disk_use};
pub use error::ReportError;
pub use json::{read_json, to_json};
pub use limit_files::{read_limits, read_limits_file, write_limits, write_limits_file};
pub use limits::{LimitRow, Limits};
pub use load::OfferedLoad;
pub use manifest::{ColumnEntry, FileEntry, InputEntry, Manifest, Provenance, ResultKind, resealed, run_key};
pub(crate) use meta::past_warmup;
pub use meta::{CollectiveMeta, FctKind, LinkFault, RunMeta, WorkloadMeta};
pub(crate) use names::LIMITS;
pub use names::{
    ATTEMPT, MANIFEST, PAGE, PLAN, SUMMARY, VIEW, failed_file, is_key, named_run, run_name, store_directory,
};
pub use numbers::{
    bytes, capital, letters, list, percent_change, seconds, seconds_trimmed, significant_digits,
    significant_digits_trimmed, thousands,
};
pub use output::{Inputs, OutputDir, OutputFile, PendingFile, files_of};
pub use plan::{Axis, Plan, PlannedRun};
pub use read::{RunPlace, finished_runs, read_runs, read_summary, runs_of};
pub use real_run::FaultSummary;
pub(crate) use rows::Key;
pub use rows::cell;
pub use staging::Staging;
pub use store::{
    Attempt, FailedRun, create_store, is_complete_run, part_names, plan_entries, replace_attempt, show_run,
    study_files, write_plan,
};
pub use summary::{
    ConservationSummary, CounterSummary, FlowCounts, FlowSummary, GroupSummary, QueueSummary, RunStatus, SizeRange,
    Summary, differing_summary,
};
pub use tables::{
    At, Bits, Column, ColumnKind, Context, Filling, Frame, Label, Member, REPEAT_RUN, RowDifference, TABLES, Table,
    Validity, Value, Words, csv_tables, differing_rows, read_calls, stage_gathered,
};
pub use verify::{
    Finding, FindingKind, Verified, check_files, check_results, check_runs, content_of, damage, is_data, is_intact,
    verify,
};
pub use write::{Formats, gather_runs, parquet_bytes, write_fresh_run, write_run};
