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
mod dataset;
mod figures;
mod headline;
mod junit;
mod listing;
pub mod metric;
mod page;
mod perfetto;
mod redraw;
mod sweep;
mod terms;
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
pub use comparison_text::heading;
pub use dataset::SeriesSums;
pub(crate) use dataset::{Dataset, GroupPoint, LinkPoint, RunRows, SchemeRuns};
pub(crate) use figures::{
    Anchor, BELOW, BESIDE, Canvas, Caption, Drawn, FigureFiles, Grid, Key, LABEL, Layout, PANEL, Paint, Panels,
    SUBTITLE, Scale, Sheet, TICK, TITLE, colours, column, places, plain, stage_style, style_folder,
};
pub use figures::{Figure, FigureStyle, LineStyle, line_styles};
pub use headline::{Headline, bit_rate, headlines};
pub use junit::{JunitCase, junit};
pub use listing::{Listed, Listing, index_page, is_index_page, list_results};
pub use metric::MetricError;
pub(crate) use metric::RunData;
pub use perfetto::{PerfettoCounts, export_perfetto};
pub use redraw::{Redrawn, read_comparison, report, report_pooled, report_run, report_styled};
pub use sweep::{Sweep, report_sweep};
pub use terms::{METRIC, Term, terms};
pub use view::{viewed_runs, write_view, write_view_into};
pub(crate) use wording::{INTERVAL, LETTERS, undecided};
pub use write::write_comparison;
