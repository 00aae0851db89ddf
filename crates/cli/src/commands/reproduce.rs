//! `reproduce`.

use crate::{
    arguments::{Format, Reproduce},
    failure::Failure,
    printing::{print, print_json, table},
};
use anabranch_study::claims::{Book, Scale, books};
use serde_json::{Value, json};

/// `anabranch reproduce`.
pub(crate) fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    let books = books(&arguments.paper)?;
    if arguments.list {
        return list(&books, arguments);
    }
    Err(Failure::input("only --list is there yet"))
}

/// What there is: every study with its runs, every figure and claim. Everything is checked on the way.
fn list(books: &[Book], arguments: &Reproduce) -> Result<(), Failure> {
    let mut studies = vec![];
    for book in books {
        let (quick, full) = (book.plans(Scale::Quick)?, book.plans(Scale::Full)?);
        let runs = |plans: &std::collections::BTreeMap<String, anabranch_study::claims::Plan>, id: &str| {
            plans.get(id).map(|plan| plan.sweep.order().len())
        };
        for study in &book.studies {
            studies.push((book.paper.name, study, runs(&quick, &study.id), runs(&full, &study.id)));
        }
    }
    if arguments.options.format == Format::Json {
        let studies: Vec<Value> = studies
            .iter()
            .map(|(paper, study, quick, full)| {
                json!({ "paper": paper, "study": study.id, "scenario": study.scenario, "quick_runs": quick, "full_runs": full })
            })
            .collect();
        let of = |book: &Book| -> Vec<Value> {
            let claim = |claim: &anabranch_study::claims::Claim| {
                json!({ "paper": book.paper.name, "claim": claim.id, "figure": claim.figure, "section": claim.section,
                        "says": claim.says, "studies": claim.studies, "metric": claim.metric.name(), "ours": claim.ours })
            };
            book.claims.iter().map(claim).collect()
        };
        let figures: Vec<Value> = books
            .iter()
            .flat_map(|book| {
                book.figures.iter().map(|figure| {
                    json!({ "paper": book.paper.name, "figure": figure.id, "title": figure.title, "studies": figure.studies })
                })
            })
            .collect();
        let claims: Vec<Value> = books.iter().flat_map(of).collect();
        print_json(&json!({ "studies": studies, "figures": figures, "claims": claims }));
        return Ok(());
    }
    let number = |runs: &Option<usize>| runs.map_or("-".to_string(), |runs| runs.to_string());
    let rows: Vec<Vec<String>> = studies
        .iter()
        .map(|(paper, study, quick, full)| {
            vec![(*paper).to_string(), study.id.clone(), study.scenario.clone(), number(quick), number(full)]
        })
        .collect();
    print(&format!("{}\n", table(&["paper", "study", "scenario", "quick runs", "full runs"], &rows)));
    let figures: Vec<Vec<String>> = books
        .iter()
        .flat_map(|book| {
            book.figures.iter().map(|figure| vec![book.paper.name.to_string(), figure.id.clone(), figure.title.clone()])
        })
        .collect();
    print(&format!("{}\n", table(&["paper", "figure", "title"], &figures)));
    let claims: Vec<Vec<String>> = books
        .iter()
        .flat_map(|book| {
            book.claims
                .iter()
                .map(|claim| vec![book.paper.name.to_string(), claim.id.clone(), claim.source(), claim.says.clone()])
        })
        .collect();
    print(&table(&["paper", "claim", "where", "says"], &claims));
    Ok(())
}
