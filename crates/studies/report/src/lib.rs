//! Statistics, tables, figures and pages from the rows of runs. [`write_run`] writes a run's rows, [`write_comparison`]
//! the comparison of several runs, [`report`] draws figures and a page from a directory. The crate reads no clock and
//! no properties of the machine.

mod against;
mod agreement;
mod assertion;
mod by_size;
mod claims;
mod comparison;
mod comparison_text;
#[cfg(test)]
mod coverage;
mod dataset;
pub mod disk;
mod error;
mod family;
mod figures;
mod headline;
mod intervals;
mod json;
mod limit_files;
mod limits;
mod listing;
mod load;
mod manifest;
mod medians;
mod meta;
pub mod metric;
mod names;
mod numbers;
mod output;
mod page;
mod perfetto;
mod ranking;
mod read;
mod real_run;
mod redraw;
mod rows;
mod sequential;
mod staging;
mod statistics;
mod store;
mod summary;
mod sweep;
mod tables;
mod terms;
mod verify;
mod view;
mod wording;
mod write;

pub use against::{Change, ChangeRow, Changes};
pub use agreement::{Agreement, AgreementRow, Explanation, Side, Verdict, write_agreement};
pub use anabranch_outcome::Collective;
pub use assertion::{Assertion, Checked};
pub use by_size::{SizePoint, slowdown_by_size};
pub use claims::{ClaimFigure, ClaimMark, ClaimPage, ClaimPanel, ClaimRow, ClaimShape, write_claims};
pub use comparison::{ALL, Comparison, ComparisonRow, Coverage, FLOW_METRICS, METRICS, Metric, below_bound};
pub use dataset::SeriesSums;
pub use disk::Content;
pub use error::ReportError;
pub use family::{Method, Tested};
pub use figures::{Figure, FigureStyle, LineStyle, line_styles};
pub use headline::{Headline, bit_rate, headlines};
pub use intervals::{POWER, Range, seeds_needed};
pub use limit_files::{read_limits, read_limits_file, write_limits, write_limits_file};
pub use limits::{LimitRow, Limits};
pub use listing::{Listed, Listing, index_page, is_index_page, list_results};
pub use load::OfferedLoad;
pub use manifest::{ColumnEntry, FileEntry, InputEntry, Manifest, Provenance, ResultKind, resealed, run_key};
pub use medians::{median, sign_test};
pub use meta::{CollectiveMeta, FctKind, LinkFault, RunMeta, WorkloadMeta};
pub use names::{PLAN, failed_file, is_key, named_run, run_name, store_directory};
pub use numbers::{seconds, significant_digits};
pub use output::{Inputs, OutputDir, OutputFile, PendingFile, files_of};
pub use perfetto::{PerfettoCounts, export_perfetto};
pub use read::{RunPlace, finished_runs, read_runs, read_summary};
pub use real_run::FaultSummary;
pub use redraw::{Redrawn, read_comparison, report, report_pooled, report_run, report_styled};
pub use sequential::Sequential;
pub use statistics::{
    CONFIDENCE, Distribution, Estimate, MIN_PAIRS, PairedDifference, SIGNIFICANCE, Test, holm, mean, quantile,
    slowdown, standard_deviation,
};
pub use store::{
    Attempt, FailedRun, create_store, is_complete_run, replace_attempt, show_run, study_files, write_plan,
};
pub use summary::{
    ConservationSummary, CounterSummary, FlowCounts, FlowSummary, GroupSummary, QueueSummary, RunStatus, SizeRange,
    Summary, differing_summary,
};
pub use sweep::{Axis, Plan, PlannedRun, Sweep, report_sweep};
pub use tables::{
    At, Bits, Column, ColumnKind, Context, Filling, Frame, Label, Member, RowDifference, TABLES, Table, Validity,
    Value, Words, csv_tables, differing_rows,
};
pub use terms::{METRIC, Term, terms};
pub use verify::{
    Finding, FindingKind, Verified, check_files, check_results, check_runs, damage, is_data, is_intact, verify,
};
pub use view::{viewed_runs, write_view, write_view_into};
pub use write::{Formats, gather_runs, write_comparison, write_fresh_run, write_run, write_run_to_draw};
