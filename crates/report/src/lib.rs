//! From rows to statistics, tables, figures and a page.
//!
//! [`write_run`] keeps a run's rows, [`write_comparison`] what several runs say together, and [`report`] draws figures
//! and a page from the rows of a directory, at once or years later. Nothing here reads a clock or the machine.

mod claims;
mod comparison;
mod comparison_text;
mod dataset;
mod directory;
mod error;
mod figures;
mod headline;
mod load;
mod manifest;
mod medians;
mod meta;
mod numbers;
mod page;
mod perfetto;
mod ranking;
mod staging;
mod statistics;
mod summary;
mod sweep;
mod tables;
mod view;

pub use claims::{ClaimFigure, ClaimLine, ClaimMark, ClaimPage, ClaimPanel, ClaimShape, write_claims};
pub use comparison::{ALL, Comparison, ComparisonRow, Coverage, METRICS, Metric};
pub use directory::{
    Formats, gather_runs, read_comparison, read_summary, report, report_pooled, run_directory, write_comparison,
    write_run,
};
pub use error::ReportError;
pub use figures::Figure;
pub use headline::Headline;
pub use load::OfferedLoad;
pub use manifest::{ColumnEntry, FileEntry, Manifest, Provenance};
pub use medians::{median, sign_test};
pub use meta::{FctKind, LinkFault, RunMeta, WorkloadMeta};
pub use numbers::significant_digits;
pub use perfetto::{PerfettoCounts, export_perfetto};
pub use statistics::{
    CONFIDENCE, Distribution, Estimate, FEWEST_PAIRS, PairedDifference, SIGNIFICANCE, Test, holm, mean, quantile,
    slowdown, standard_deviation,
};
pub use summary::{
    BalanceSummary, CollectiveSummary, ConservationSummary, CounterSummary, FlowCounts, FlowSummary, QueueSummary,
    RunStatus, SizeRange, Summary,
};
pub use sweep::{
    Attempt, FailedRun, SWEEP, Sweep, SweepAxis, SweepPlan, SweepRun, failed_file, is_whole, report_sweep,
    store_directory,
};
pub use tables::{
    At, Bits, Column, Context, Filling, Frame, Kind, Label, Member, TABLES, Table, Validity, Value, Words, csv_tables,
    gather,
};
pub use view::{viewed_runs, write_view, write_view_into};
