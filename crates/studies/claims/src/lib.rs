//! Claims of papers as data: studies, figures, and the rule for a verdict. The files in `claims/` are embedded.

mod claim;
mod claim_set;
mod docs;
mod every;
mod figure;
mod judge;
mod matrix;
mod model;
mod open;
mod paper_plan;
mod parse;
mod plan;
mod rows;
mod run;
#[cfg(test)]
mod run_tests;
mod select;
mod stored_rows;
#[cfg(test)]
mod tests;
mod text;
mod verdict;
mod words;

pub use anabranch_report::metric::{Metric, MetricError};
pub(crate) use anabranch_report::{ALL, metric::RunData};
pub use claim::{Best, Claim, ClaimKind, Operand, Published, Reduce, Take};
pub use claim_set::{ClaimSet, PAPERS, Paper, claim_sets};
pub use docs::{Page, pages};
pub use figure::Shown;
pub use judge::Judged;
pub use model::{Figure, FigureKind, Filter, Quick, Scale, SeedStatistic, Study, StudyBound, Target};
pub use open::Reading;
pub(crate) use paper_plan::plans;
pub use paper_plan::{PaperPlan, PaperResult, ReproductionOutcome};
pub use parse::SourceFile;
pub use plan::{Coordinate, StudyPlan};
pub(crate) use plan::{at, check_names, coordinates};
pub(crate) use rows::csv;
pub use rows::{Row, Rows};
pub use run::{Reproduction, ReproductionSettings};
pub(crate) use select::Selected;
pub use stored_rows::{Cost, StoredRows};
pub use text::summary_text;
pub use verdict::Verdict;
pub use words::Detail;
pub(crate) use words::sig;
