use super::ClaimFigure;
use crate::{FigureFiles, figures::PAGE_LAYOUT, page::parts};
use anabranch_results::{FileEntry, Manifest, OutputDir, PAGE, ReportError, Staging};
use minijinja::{Value, context};
use std::path::Path;

const TEMPLATE: &str = include_str!("../page/claims.html.jinja");

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRow {
    pub id: String,
    /// Section or figure of the paper that makes the claim.
    pub place: String,
    pub says: String,
    pub published: String,
    pub ours: String,
    pub verdict: String,
    /// Size and seeds of the runs.
    pub size: String,
    /// Parameters that the paper does not specify.
    pub open: String,
    /// A remark on the result.
    pub note: String,
}

/// Content of the page of a paper's claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPage {
    pub title: String,
    pub scale: String,
    /// Number of claims per verdict.
    pub totals: String,
    /// Limitations of the results.
    pub warnings: Vec<String>,
    pub claims: Vec<ClaimRow>,
    pub version: String,
}

/// Writes the page of the claims, `dir/report.html`, with `figures` in `dir/figures` (SVG, PDF, PNG, rows as CSV) and
/// `tables` (name, meaning, text) beside it.
///
/// Fails if a figure cannot be drawn, a file cannot be written, or exists and this crate did not write it.
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
        manifest.files.extend(drawn.entries(&PAGE_LAYOUT));
        shown.push(parts::figure(&drawn, &files));
    }
    staging.write_all(PAGE, render(page, shown)?)?;
    manifest.files.push(FileEntry::page());
    staging.publish(manifest)
}

fn render(page: &ClaimPage, figures: Vec<Value>) -> Result<String, ReportError> {
    let line = |claim: &ClaimRow| {
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
    fn page_lists_every_claim_with_its_sources() {
        let line = ClaimRow {
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
            "Not given in the paper: load_balancer.prime.p_ecn.",
            "2 of 6 runs are missing.",
        ] {
            assert!(html.contains(said), "no {said:?}");
        }
    }
}
