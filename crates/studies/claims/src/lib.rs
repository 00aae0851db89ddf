//! Claims of papers as data: studies, figures, and the rule for a verdict. The files in `claims/` are embedded.

mod book;
mod claim;
mod docs;
mod figure;
mod judge;
mod kept;
mod metric;
mod model;
mod parse;
mod plan;
mod rows;
mod run;
#[cfg(test)]
mod run_tests;
mod select;
mod shelf;
#[cfg(test)]
mod tests;
mod text;
mod verdict;
mod words;

pub use book::{Book, PAPERS, Paper, books};
pub use claim::{Best, Claim, ClaimKind, Operand, Published, Reduce, Take};
pub use docs::{Page, pages};
pub use figure::Shown;
pub use judge::Judged;
pub use kept::{Cost, Kept};
pub use metric::{Metric, MetricError};
pub use model::{Across, Figure, FigureKind, Filter, Quick, Scale, Study, Target};
pub use parse::SourceFile;
pub use plan::{Coordinate, Plan};
pub use rows::{Row, Rows};
pub use run::{Reproduction, Settings};
pub use shelf::{Outcome, PaperResult, Shelf};
pub use text::summary_text;
pub use verdict::Verdict;
pub use words::Detail;
