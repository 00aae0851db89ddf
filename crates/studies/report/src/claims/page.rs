//! The page over a paper's claims: self-contained, like that of a run or comparison.

use super::ClaimFigure;
use crate::{
    error::ReportError,
    figures::FigureFiles,
    manifest::{FileEntry, Manifest},
    names::PAGE,
    output::OutputDir,
    page::parts,
    staging::Staging,
};
use minijinja::{Value, context};
use std::path::Path;

const TEMPLATE: &str = include_str!("../page/claims.html.jinja");

/// A claim as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimLine {
    /// Its name.
    pub id: String,
    /// Where the paper has it.
    pub place: String,
    /// What it says.
    pub says: String,
    /// The number published.
    pub published: String,
    /// Ours.
    pub ours: String,
    /// The verdict.
    pub verdict: String,
    /// What was run.
    pub size: String,
    /// Parameters that the paper leaves open.
    pub open: String,
    /// What to know of it.
    pub note: String,
}

/// What the page over a paper's claims says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPage {
    /// The paper.
    pub title: String,
    /// The scale.
    pub scale: String,
    /// How often each verdict came out.
    pub totals: String,
    /// What to know before the results are trusted.
    pub warnings: Vec<String>,
    /// The claims.
    pub claims: Vec<ClaimLine>,
    /// Version and commit.
    pub version: String,
}

/// Draws `figures` into `dir/figures` (SVG, PDF, PNG and the rows as CSV, each under its name), writes the page over them and
/// the claims, `dir/report.html`, and `tables` (name, meaning, text) beside it.
///
/// # Errors
/// [`ReportError`] where a figure cannot be drawn, a file cannot be written, or one that is not ours is in the way.
pub fn write_claims(
    dir: &Path,
    page: &ClaimPage,
    figures: &[ClaimFigure],
    tables: &[(String, &str, String)],
) -> Result<(), ReportError> {
    let mut staging = Staging::new(OutputDir::open(dir)?)?;
    let mut manifest = Manifest { version: page.version.clone(), name: page.title.clone(), ..Manifest::default() };
    for (name, meaning, text) in tables {
        staging.write_all(name, text)?;
        manifest.files.push(FileEntry::new(name, meaning, vec![]));
    }
    let mut shown = vec![];
    for figure in figures {
        let drawn = figure.drawn();
        let files = FigureFiles::stage(&drawn, &figure.provenance, &mut staging)?;
        manifest.files.extend(drawn.entries());
        shown.push(parts::figure(&drawn, &files));
    }
    staging.write_all(PAGE, render(page, shown)?)?;
    manifest.files.push(FileEntry::page());
    staging.publish(manifest)
}

fn render(page: &ClaimPage, figures: Vec<Value>) -> Result<String, ReportError> {
    let line = |claim: &ClaimLine| {
        context! {
            id => &claim.id, place => &claim.place, says => &claim.says, published => &claim.published,
            ours => &claim.ours, verdict => &claim.verdict, size => &claim.size, open => &claim.open, note => &claim.note,
        }
    };
    let values = context! {
        title => &page.title,
        scale => &page.scale,
        totals => &page.totals,
        warnings => &page.warnings,
        claims => page.claims.iter().map(line).collect::<Vec<_>>(),
        version => &page.version,
        figures => figures,
    };
    parts::render(TEMPLATE, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_every_claim_and_what_it_rests_on() {
        let line = ClaimLine {
            id: "ahead".into(),
            place: "fig1, §4".into(),
            says: "PRIME is ahead <of> ECMP".into(),
            published: "-15 %".into(),
            ours: "-14 ±2 %".into(),
            verdict: "reproduced".into(),
            size: "tiny, 3 seeds".into(),
            open: "load_balancer.prime.p_ecn".into(),
            note: String::new(),
        };
        let page = ClaimPage {
            title: "A paper".into(),
            scale: "quick".into(),
            totals: "1 reproduced".into(),
            warnings: vec!["2 of 6 runs are missing.".into()],
            claims: vec![line],
            version: "0.1.0".into(),
        };
        let html = render(&page, vec![]).unwrap();
        for said in [
            "1 claim: 1 reproduced.",
            "PRIME is ahead &lt;of&gt; ECMP",
            "-14 ±2 %",
            "<strong>reproduced</strong>",
            "tiny, 3 seeds",
            "since the paper does not say: load_balancer.prime.p_ecn.",
            "2 of 6 runs are missing.",
        ] {
            assert!(html.contains(said), "no {said:?}");
        }
    }
}
