//! Groups of jobs: their ranks and flows, for the page to light up.

use super::{fabric::Fabric, pack::Pack};
use anabranch_results::{Frame, ReportError};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};

/// Maximum number of flows whose times a page has; beyond it, only groups and ranks are on it.
const MAX_FLOWS: usize = 300_000;

/// A group in a repetition: workload, group, repetition.
type Key<'a> = (&'a str, u64, u64);

fn keys<'a>(frame: &'a Frame) -> impl Iterator<Item = Option<Key<'a>>> {
    let [groups, repetitions] = ["group", "repetition"].map(|name| frame.integers(name));
    let numbers = groups.iter().zip(repetitions);
    frame
        .texts("workload")
        .iter()
        .zip(numbers)
        .map(|(name, (group, repetition))| Some((name.as_str(), (*group)?, (*repetition)?)))
}

/// Puts the jobs of a run into `pack` and returns the facts of them; `None`: there are none.
pub(super) fn pack(
    dir: &Path,
    fabric: &Fabric,
    flows: Option<&Frame>,
    pack: &mut Pack,
) -> Result<Option<Value>, ReportError> {
    let columns = [
        "workload",
        "group",
        "repetition",
        "start_ps",
        "completion_ps",
        "slowdown",
        "last_rank",
        "last_flow",
        "last_link",
        "last_link_ps",
        "critical_messages",
        "critical_link",
        "critical_link_ps",
    ];
    let Some(jobs) = Frame::read(dir, "jobs", &columns)?.filter(|jobs| jobs.rows() > 0) else { return Ok(None) };
    let numbers: BTreeMap<Key<'_>, u64> = keys(&jobs).zip(0..).filter_map(|(key, row)| Some((key?, row))).collect();
    for name in ["workload", "last_link", "critical_link"] {
        pack.text(&format!("job.{name}"), jobs.texts(name).iter().map(String::as_str));
    }
    for name in ["group", "repetition"] {
        pack.whole(&format!("job.{name}"), jobs.integers(name).iter().map(|cell| cell.unwrap_or_default()));
    }
    for name in
        ["start_ps", "completion_ps", "last_rank", "last_flow", "last_link_ps", "critical_messages", "critical_link_ps"]
    {
        let real = |cell: &Option<u64>| cell.map(|cell| cell as f64);
        pack.real(&format!("job.{name}"), jobs.integers(name).iter().map(real));
    }
    pack.real("job.slowdown", jobs.reals("slowdown").iter().copied());
    ranks(dir, fabric, &numbers, pack)?;
    let has_flows = match flows {
        Some(flows) => own_flows(dir, fabric, flows, &numbers, pack)?,
        None => false,
    };
    Ok(Some(json!({ "groups": jobs.rows(), "flows": has_flows })))
}

fn ranks(dir: &Path, fabric: &Fabric, jobs: &BTreeMap<Key<'_>, u64>, pack: &mut Pack) -> Result<(), ReportError> {
    let Some(ranks) = Frame::read(dir, "job_ranks", &["workload", "group", "repetition", "host"])? else {
        return Ok(());
    };
    let nodes = fabric.hosts();
    let row = |(key, host): (Option<Key<'_>>, &Option<u64>)| Some((*jobs.get(&key?)?, *nodes.get(&(*host)?)?));
    let rows: Vec<(u64, u64)> = keys(&ranks).zip(ranks.integers("host")).filter_map(row).collect();
    pack.whole("rank.job", rows.iter().map(|row| row.0));
    pack.whole("rank.node", rows.iter().map(|row| row.1));
    Ok(())
}

/// Returns `true` if the flows are on the page.
fn own_flows(
    dir: &Path,
    fabric: &Fabric,
    flows: &Frame,
    jobs: &BTreeMap<Key<'_>, u64>,
    pack: &mut Pack,
) -> Result<bool, ReportError> {
    let Some(places) = Frame::read(dir, "job_flows", &["flow_id", "workload", "group", "repetition"])? else {
        return Ok(false);
    };
    if places.rows() > MAX_FLOWS {
        return Ok(false);
    }
    let nodes = fabric.hosts();
    let at: BTreeMap<u64, usize> =
        flows.integers("flow_id").iter().zip(0..).filter_map(|(id, row)| Some(((*id)?, row))).collect();
    let node = |column: &str, row: usize| nodes.get(&flows.integers(column).get(row).copied().flatten()?).copied();
    let row = |(key, id): (Option<Key<'_>>, &Option<u64>)| {
        let row = *at.get(&(*id)?)?;
        let time = |column: &str| flows.integers(column).get(row).copied().flatten();
        Some((*jobs.get(&key?)?, node("src", row)?, node("dst", row)?, time("start_ps"), time("fct_ack_ps")))
    };
    let rows: Vec<_> = keys(&places).zip(places.integers("flow_id")).filter_map(row).collect();
    pack.whole("job_flow.job", rows.iter().map(|row| row.0));
    pack.whole("job_flow.from", rows.iter().map(|row| row.1));
    pack.whole("job_flow.to", rows.iter().map(|row| row.2));
    pack.real("job_flow.start_ps", rows.iter().map(|row| row.3.map(|time| time as f64)));
    pack.real("job_flow.took_ps", rows.iter().map(|row| row.4.map(|time| time as f64)));
    Ok(true)
}

/// Puts the server of every host that is a NIC into `pack`; returns `false` without servers.
pub(super) fn servers(dir: &Path, fabric: &Fabric, pack: &mut Pack) -> Result<bool, ReportError> {
    let Some(gpus) = Frame::read(dir, "gpus", &["gpu", "server", "host"])?.filter(|gpus| gpus.rows() > 0) else {
        return Ok(false);
    };
    let nodes = fabric.hosts();
    let [gpu, server, host] = ["gpu", "server", "host"].map(|name| gpus.integers(name));
    let row = |at: usize| Some(((gpu[at])?, (server[at])?, *nodes.get(&(host[at])?)?));
    let rows: Vec<(u64, u64, u64)> = (0..gpus.rows()).filter_map(row).collect();
    pack.whole("gpu.number", rows.iter().map(|row| row.0));
    pack.whole("gpu.server", rows.iter().map(|row| row.1));
    pack.whole("gpu.node", rows.iter().map(|row| row.2));
    Ok(true)
}
