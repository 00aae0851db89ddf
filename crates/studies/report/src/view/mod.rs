//! `view.html`: the fabric of one or two runs over time, on a page that opens offline. [`pack`] writes one block of
//! data per run into the page; its scripts draw it (`page/*.js`).

mod fabric;
mod jobs;
mod layout;
mod pack;
mod page;
mod schemes;
mod series;
mod trace;

use crate::colours;
use anabranch_results::{
    ColumnKind, FileEntry, Frame, Manifest, OutputDir, OutputFile, PAGE, Plan, ReportError, SUMMARY, Staging, Summary,
    TABLES, VIEW, read_summary,
};
use fabric::Fabric;
use pack::Pack;
use serde_json::{Map, Value, json};
use series::Series;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use trace::Trace;

/// Returns the runs that a view of `dir` shows: the run itself, or at most `most` of a comparison under `schemes`
/// (default: its first ones) with `seed` (default: the lowest that all of them have).
///
/// # Errors
/// [`ReportError`] if there is no such run.
pub fn viewed_runs(
    dir: &Path,
    schemes: &[String],
    seed: Option<u64>,
    most: usize,
) -> Result<Vec<PathBuf>, ReportError> {
    let wrong = |found: String, remedy: &str| ReportError::content(dir, found, remedy);
    if dir.join(SUMMARY).exists() {
        let own = read_summary(dir)?.map(|summary| (summary.scheme, summary.seed));
        let (scheme, number) = own.ok_or_else(|| ReportError::NoResults { path: dir.to_path_buf() })?;
        let is_own = schemes.iter().all(|other| *other == scheme) && seed.is_none_or(|other| other == number);
        return match is_own {
            true => Ok(vec![dir.to_path_buf()]),
            false => Err(wrong(
                format!("this is a single run, of `{scheme}` with seed {number}"),
                "`--schemes` and `--seed` choose among those of a comparison",
            )),
        };
    }
    let Some(plan) = Plan::read(dir)? else { return Err(ReportError::NoResults { path: dir.to_path_buf() }) };
    if !plan.is_comparison() {
        return Err(wrong("this is a sweep".into(), "give one or two of its runs, DIR/runs/HASH; runs.csv lists them"));
    }
    let (known, seeds) = (&plan.entries, &plan.seeds);
    let mut chosen = if schemes.is_empty() { known.clone() } else { schemes.to_vec() };
    chosen.truncate(most);
    if let Some(scheme) = chosen.iter().find(|scheme| !known.contains(scheme)) {
        return Err(wrong(format!("it has no `{scheme}`"), &format!("it compares {}", known.join(", "))));
    }
    let place = |scheme: &str, seed: u64| plan.directory(dir, scheme, seed).filter(|run| run.join(SUMMARY).exists());
    let finished = |scheme: &str, seed: u64| place(scheme, seed).is_some();
    let all_have = |seed: u64| chosen.iter().all(|scheme| finished(scheme, seed));
    let Some(seed) = seed.or_else(|| seeds.iter().copied().find(|&seed| all_have(seed))) else {
        return Err(wrong(
            format!("no seed is finished for {}", chosen.join(" and ")),
            "repeat the comparison; it continues where it stopped",
        ));
    };
    if let Some(scheme) = chosen.iter().find(|scheme| !finished(scheme, seed)) {
        let seeds: Vec<String> = seeds.iter().filter(|&&seed| finished(scheme, seed)).map(u64::to_string).collect();
        return Err(wrong(
            format!("`{scheme}` has no finished run with seed {seed}"),
            &format!("its seeds are {}", seeds.join(", ")),
        ));
    }
    Ok(chosen.iter().filter_map(|scheme| place(scheme, seed)).collect())
}

/// Writes the view of `runs` (directories of one or two runs) into `out`.
///
/// # Errors
/// [`ReportError`] if rows are missing or cannot be read, or the file cannot be written; no file is written in that case.
pub fn write_view(runs: &[PathBuf], out: &OutputFile) -> Result<(), ReportError> {
    out.write_all(view(runs)?.as_bytes())
}

fn view(runs: &[PathBuf]) -> Result<String, ReportError> {
    let read = |dir: &PathBuf| read_summary(dir)?.ok_or_else(|| ReportError::NoResults { path: dir.clone() });
    let summaries = runs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let schemes: Vec<&str> = summaries.iter().map(|summary| summary.scheme.as_str()).collect();
    let each = runs.iter().zip(&summaries).zip(colours(&schemes));
    let blocks = each.map(|((dir, summary), colour)| block(dir, summary, colour)).collect::<Result<Vec<_>, _>>()?;
    page::render(summaries.last().map_or("", |summary| &summary.scenario), &blocks)
}

/// Writes `view.html` into `dir`, lists it in the manifest, links to it from the report, and returns the page's path.
///
/// # Errors
/// Those of [`write_view`], and if a file that no manifest lists exists at its path.
pub fn write_view_into(dir: &Path, runs: &[PathBuf]) -> Result<PathBuf, ReportError> {
    let target = OutputDir::open(dir)?;
    target.admit([VIEW])?;
    let page = view(runs)?;
    let mut staging = Staging::new(target)?;
    let mut manifest = staging.target().manifest().cloned().unwrap_or_default();
    manifest.files.retain(|file| file.name != VIEW);
    manifest.files.push(FileEntry::new(VIEW, "the fabric over time, on a page that opens offline", vec![]));
    staging.write_all(VIEW, page)?;
    if manifest.file(PAGE).is_some_and(|page| page.content().is_some())
        && let Ok(report) = anabranch_input::read_text(&dir.join(PAGE), anabranch_input::MAX_JSON)
    {
        staging.write_all(PAGE, with_link(&report))?;
    }
    staging.publish(manifest)?;
    Ok(dir.join(VIEW))
}

pub(crate) fn with_link(report: &str) -> String {
    report.replacen(page::NO_LINK, page::LINK, 1).replace(page::HIDDEN, page::SHOWN)
}

fn block(dir: &Path, summary: &Summary, colour: usize) -> Result<String, ReportError> {
    let Some(table) = TABLES.iter().find(|table| table.name == "links") else { return Ok(String::new()) };
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let links = Frame::read(dir, "links", &names)?.filter(|links| links.rows() > 0);
    let Some(links) = links else {
        return Err(ReportError::content(dir, "there are no rows of `links`", "repeat the run; nothing was written"));
    };
    let fabric = Fabric::of(dir, &links)?;
    let mut pack = Pack::default();
    nodes(&mut pack, &fabric);
    pack.whole("link.from", fabric.links.iter().map(|link| link.from.into()));
    pack.whole("link.to", fabric.links.iter().map(|link| link.to.into()));
    pack.whole("link.class", fabric.links.iter().map(|link| link.class.into()));
    pack.whole("link.parallel", fabric.links.iter().map(|link| link.parallel.into()));
    let there = |name: &str| !links.missing().iter().any(|missing| missing == name);
    for column in
        table.columns.iter().filter(|column| there(column.name) && !["seed", "parallel"].contains(&column.name))
    {
        let name = format!("link.{}", column.name);
        match column.kind {
            ColumnKind::Integer | ColumnKind::Unsigned => {
                let cells = links.integers(column.name);
                match cells.iter().copied().collect::<Option<Vec<u64>>>() {
                    Some(cells) => pack.whole(&name, cells.into_iter()),
                    // Integers cannot represent cells that were not measured.
                    None => pack.real(&name, cells.iter().map(|cell| cell.map(|cell| cell as f64))),
                }
            }
            ColumnKind::Real => pack.real(&name, links.reals(column.name).iter().copied()),
            ColumnKind::Text if ["direction", "fault"].contains(&column.name) => {
                pack.text(&name, links.texts(column.name).iter().map(String::as_str));
            }
            ColumnKind::Text | ColumnKind::Flag => {}
        }
    }
    let flows =
        Frame::read(dir, "flows", &["flow_id", "src", "dst", "size_bytes", "slowdown", "start_ps", "fct_ack_ps"])?;
    if let Some(flows) = &flows {
        hosts(&mut pack, flows, &fabric);
    }
    let mut facts = facts(dir, summary, colour, &fabric)?;
    if let (Some(trace), Some(flows)) = (Trace::read(dir, &fabric)?, &flows) {
        facts.insert("trace".into(), trace.pack(&mut pack, flows));
        facts.insert("schemes".into(), schemes::pack(dir, &mut pack)?.into());
    }
    if let Some(jobs) = jobs::pack(dir, &fabric, flows.as_ref(), &mut pack)? {
        facts.insert("jobs".into(), jobs);
    }
    if jobs::servers(dir, &fabric, &mut pack)? {
        facts.insert("servers".into(), true.into());
    }
    if let Some(series) = Series::read(dir, &fabric)? {
        pack.whole("series.link", series.links.iter().map(|&link| link.into()));
        let counts: Vec<&str> =
            series.columns.iter().map(|(name, _)| *name).filter(|name| Series::counts(name)).collect();
        facts.insert(
            "series".into(),
            json!({
                "start_ps": series.start,
                "interval_ps": series.interval,
                "samples": series.samples,
                "links": series.links.len(),
                "columns": series.columns.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                "counts": counts,
            }),
        );
        for (name, cells) in &series.columns {
            pack.steps(&format!("series.{name}"), series.samples, cells);
        }
    }
    pack.finish(facts).map_err(|error| ReportError::drawing(VIEW, error))
}

fn nodes(pack: &mut Pack, fabric: &Fabric) {
    let places = layout::positions(fabric);
    pack.text("node.name", fabric.nodes.iter().map(|node| &*node.name));
    pack.whole("node.height", fabric.nodes.iter().map(|node| node.height.into()));
    // 0 means no group.
    pack.whole("node.group", fabric.nodes.iter().map(|node| node.group.map_or(0, |group| u64::from(group) + 1)));
    pack.near("node.x", places.iter().map(|place| place.0));
    pack.near("node.y", places.iter().map(|place| place.1));
}

/// Totals of flows per node; those of switches are zero.
fn hosts(pack: &mut Pack, flows: &Frame, fabric: &Fabric) {
    #[derive(Clone, Default)]
    struct Host {
        sent: [u64; 2],
        received: [u64; 2],
        unfinished: u64,
        slowest: Option<f64>,
    }
    let numbers: BTreeMap<&str, usize> =
        fabric.nodes.iter().enumerate().map(|(number, node)| (&*node.name, number)).collect();
    let node = |host: Option<&Option<u64>>| numbers.get(&*format!("host{}", (*host?)?)).copied();
    let mut hosts = vec![Host::default(); fabric.nodes.len()];
    for row in 0..flows.rows() {
        let size = flows.integers("size_bytes").get(row).copied().flatten().unwrap_or_default();
        if let Some(src) = node(flows.integers("src").get(row)) {
            let host = &mut hosts[src];
            host.sent = [host.sent[0] + 1, host.sent[1] + size];
            match flows.reals("slowdown").get(row).copied().flatten() {
                Some(slowdown) => host.slowest = Some(host.slowest.unwrap_or_default().max(slowdown)),
                None => host.unfinished += 1,
            }
        }
        if let Some(dst) = node(flows.integers("dst").get(row)) {
            let host = &mut hosts[dst];
            host.received = [host.received[0] + 1, host.received[1] + size];
        }
    }
    pack.whole("node.flows_sent", hosts.iter().map(|host| host.sent[0]));
    pack.whole("node.bytes_sent", hosts.iter().map(|host| host.sent[1]));
    pack.whole("node.flows_received", hosts.iter().map(|host| host.received[0]));
    pack.whole("node.bytes_received", hosts.iter().map(|host| host.received[1]));
    pack.whole("node.unfinished", hosts.iter().map(|host| host.unfinished));
    pack.real("node.slowdown_max", hosts.iter().map(|host| host.slowest));
}

fn facts(dir: &Path, summary: &Summary, colour: usize, fabric: &Fabric) -> Result<Map<String, Value>, ReportError> {
    let manifest = Manifest::read(dir)?.unwrap_or_default();
    let faults = fabric.faults.iter().map(|f| json!({ "at_ps": f.at.ps(), "what": f.what, "links": f.links }));
    let facts = json!({
        "scenario": summary.scenario,
        "scheme": summary.scheme,
        "colour": colour,
        // As text: numbers in JavaScript are exact up to 2^53.
        "seed": summary.seed.to_string(),
        "version": summary.version,
        "commit": summary.commit,
        "fingerprint": summary.fingerprint,
        "simulated_ps": (summary.simulated_s * 1e12).round() as u64,
        "interrupted": summary.interrupted,
        "command": manifest.command,
        "hosts": fabric.nodes.iter().filter(|node| node.height == 0).count(),
        "switches": fabric.nodes.iter().filter(|node| node.height > 0).count(),
        "links": fabric.links.len(),
        "classes": fabric.classes,
        "grouped": fabric.is_grouped(),
        "faults": faults.collect::<Vec<_>>(),
    });
    match facts {
        Value::Object(facts) => Ok(facts),
        _ => Ok(Map::new()),
    }
}
