use super::request::require_directory;
use crate::{Failure, Format, complete, count, note, print, print_json, table};
use anabranch_backend::{Clock, LoadBalancer};
use anabranch_lb::{
    Call, CallEvent, Decision, StateColumn,
    registry::{HostParameters, TagKind, check_host_side, check_pair},
    replay_each,
};
use anabranch_results::{Manifest, check_results, read_calls, read_summary};
use anabranch_scenario::{BackendEntry, Scenario, ScenarioError, Tree};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Directory of a run with `measure.trace_scheme`
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Number of a traced flow
    #[arg(long, value_name = "N")]
    pub(crate) flow: u32,
    /// Load balancer whose host scheme chooses instead of the recorded one
    #[arg(long, value_name = "NAME", add = complete::schemes())]
    pub(crate) scheme: Option<String>,
    /// Another parameter of a scheme
    #[arg(long, value_name = "SCHEME.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Most choices that are printed.
const LISTED: usize = 20;

/// A call for the flow, and what the fresh scheme returned.
struct Step {
    call: Call,
    again: Call,
}

impl Step {
    fn is_choice(&self) -> bool {
        self.call.is_choice() || self.again.is_choice()
    }
    fn differs(&self) -> bool {
        self.is_choice() && self.call.event != self.again.event
    }
}

pub(crate) fn replay(arguments: &Replay, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let Replay { dir, flow, .. } = arguments;
    require_directory(dir, "; give the --out directory of run")?;
    let manifest = Manifest::read(dir)?.filter(|_| dir.join("summary.json").exists()).ok_or_else(|| {
        Failure::Input(
            ScenarioError::new(format!("{} is not the directory of a run", dir.display()))
                .help("give that of `run --out`, or DIR/SCHEME/seedN of a comparison"),
        )
    })?;
    check_results(dir)?;
    let tree = Tree::parse(&format!("{} (scenario)", dir.join("manifest.json").display()), &manifest.scenario)?;
    let scenario = Scenario::read(tree, &manifest.name, Path::new(""))?;
    let setup = scenario.setup(scenario.seed)?;
    let backend = backends.iter().find(|backend| backend.name == manifest.backend).ok_or_else(|| {
        let known: Vec<&str> = backends.iter().map(|backend| backend.name).collect();
        let message = format!("{}: found a run of the backend `{}`", dir.display(), manifest.backend);
        Failure::input(format!("{message}; this program has {}", known.join(", ")))
    })?;
    let backend = (backend.make)(&scenario);
    let cut = read_summary(dir)?.and_then(|summary| summary.trace_cut_s);
    let (recorded, calls) = of_flow(dir, *flow, setup.flows.number_of_flows())?;
    let of_workload = setup
        .flows
        .flows
        .get(*flow as usize)
        .map_or(0, |flow| usize::from(setup.flows.workloads[usize::from(flow.workload)].load_balancer));
    let prefixed = |change: &String| match change.strip_prefix("load_balancer.") {
        Some(_) => change.clone(),
        None => format!("load_balancer.{change}"),
    };
    let mut changed = scenario.changed("--set", &arguments.set.iter().map(prefixed).collect::<Vec<_>>())?;
    if let Some(scheme) = &arguments.scheme {
        changed = changed.with_scheme(scheme)?;
    }
    let at = if arguments.scheme.is_some() { 0 } else { of_workload };
    let LoadBalancer { host, switch: own, .. } = changed.balancers(&setup.topology)?.swap_remove(at);
    let switch = &setup.load_balancers[of_workload].switch;
    let real = !backend.runs_switch_schemes();
    let fits = if real { check_host_side(&host, &own) } else { check_pair(&host, switch) };
    fits.map_err(|error| Failure::input(format!("--scheme: {error}")))?;
    let lists = |of: &HostParameters| of.capabilities().tags() == TagKind::Guided;
    if lists(&host) && !lists(&recorded) {
        let name = (host.name(), recorded.name());
        return Err(Failure::input(format!(
            "--scheme: `{}` chooses from lists of paths, which `{}` was not given",
            name.0, name.1
        )));
    }
    if !real && host.capabilities().holds_for_flowlets() && switch.capabilities().flowlet_timeout().is_none() {
        return Err(Failure::input(format!(
            "--scheme: `{}` holds packets for flowlets of switches; those of this run are `{}`",
            host.name(),
            switch.name()
        )));
    }
    let is_same = arguments.scheme.is_none() && arguments.set.is_empty();
    let source = |of: usize| setup.flows.flows.get(of).map(|flow| flow.src);
    let host = backend
        .host_scheme(&setup, &host, source(*flow as usize).unwrap_or_default())
        .map_err(|error| Failure::input(error.to_string()))?;
    let own: Vec<Call> = share_a_host(calls, *flow);
    let traced: BTreeSet<u32> = own.iter().map(|call| call.flow).collect();
    let mut steps = Vec::new();
    replay_each(
        &own,
        |_, key| host.build(setup.seed, key),
        |call, again| {
            if call.flow == *flow {
                steps.push(Step { call: call.clone(), again });
            }
        },
    );
    let of_host = (0..setup.flows.flows.len()).filter(|other| source(*other) == source(*flow as usize)).count();
    let choices = steps.iter().filter(|step| step.is_choice()).count();
    let differing = steps.iter().filter(|step| step.differs()).count();
    match arguments.format {
        Format::Json => print_json(&json!({
            "flow": flow, "recorded": recorded.name(), "replayed": host.name(), "choices": choices, "differing": differing,
            "backend": manifest.backend, "record_ends_s": cut, "traced_flows_of_host": traced.len(), "flows_of_host": of_host,
            "calls": steps.iter().map(|step| step_json(step, host.state())).collect::<Vec<_>>(),
        })),
        Format::Table => print(&text(&steps, &host, differing > 0)),
    }
    if traced.len() < of_host {
        note(&format!(
            "{} of {of_host} flows of its host are traced: a scheme whose flows share state needs all of them",
            traced.len()
        ));
    }
    if let Some(end) = cut {
        note(&format!("the record ends at {end} s (`measure.trace_limit`): later calls are not repeated"));
    }
    if let (Clock::Machine, Some(Step { call, .. })) = (backend.measures().clock, steps.first()) {
        note(&format!(
            "of a run of real packets the record has what the endpoint passed to the scheme since it opened the flow, at the \
             nanosecond at which it did; times in states count from {} us before the run",
            us(call.zero.ps())
        ));
    }
    let (of, all) = (count(differing as u64), count(choices as u64));
    match differing {
        0 => {
            note(&format!("`{}` chooses as recorded in all {all} choices", host.name()));
            Ok(())
        }
        _ if is_same => Err(Failure::Check(format!("{of} of {all} choices differ from the recorded ones"))),
        _ => Err(Failure::Check(format!(
            "{of} of {all} choices differ from those of `{}`; their feedback is that of the recorded choices",
            recorded.name()
        ))),
    }
}

/// Returns the recorded scheme of a flow and all calls of that scheme.
fn of_flow(dir: &Path, flow: u32, flows: usize) -> Result<(HostParameters, Vec<Call>), Failure> {
    let mut traced = BTreeSet::new();
    for scheme in HostParameters::each() {
        let Some(calls) = read_calls(dir, &scheme)? else { continue };
        if calls.iter().any(|call| call.flow == flow) {
            return Ok((scheme, calls));
        }
        traced.extend(calls.iter().map(|call| call.flow));
    }
    let there: Vec<String> = traced.iter().take(LISTED).map(ToString::to_string).collect();
    let (message, help) = match () {
        () if flow as usize >= flows => (
            format!("--flow: found {flow}; the run has flows 0 to {}", flows.saturating_sub(1)),
            "`flow_id` in flows.csv is the number of a flow".to_string(),
        ),
        () if traced.is_empty() => (
            format!("{}: the calls of host schemes were not recorded", dir.display()),
            format!("run it with --set measure.trace_flows=[{flow}] --set measure.trace_scheme=true"),
        ),
        () => (
            format!("--flow: flow {flow} was not traced; those traced are {}", there.join(", ")),
            format!("add {flow} to measure.trace_flows and run again"),
        ),
    };
    Err(Failure::Input(ScenarioError::new(message).help(help)))
}

/// Keeps the calls of the host of a flow.
fn share_a_host(calls: Vec<Call>, flow: u32) -> Vec<Call> {
    let host = calls.iter().find(|call| call.flow == flow).map(|call| call.host);
    calls.into_iter().filter(|call| Some(call.host) == host).collect()
}

fn us(ps: u64) -> String {
    format!("{:.3}", ps as f64 / 1e6)
}

/// Returns what a call chose or reported: word, path, round trip, mark.
fn told(call: &Call) -> String {
    let mut text = call.word().to_string();
    if let Some(tag) = call.tag() {
        text += &format!(" {tag}");
    }
    if let CallEvent::Select(_, Decision::Hold(until)) = call.event {
        text += &format!(" until {}", us(until.saturating_sub(call.zero).ps()));
    }
    if let Some(rtt) = call.rtt() {
        text += &format!(", {} us", us(rtt.ps()));
    }
    if call.is_marked() {
        text += ", marked";
    }
    text
}

/// Returns the values of a state by name; times in microseconds.
fn named<'s>(call: &'s Call, columns: &'s [StateColumn]) -> impl Iterator<Item = (&'static str, f64)> + 's {
    columns.iter().enumerate().filter_map(|(at, column)| Some((column.name, call.state.get(at)?)))
}

/// Returns the choices that differ; without any, those that differ from the choice before.
fn text(steps: &[Step], host: &HostParameters, any_differs: bool) -> String {
    let mut rows: Vec<(Vec<String>, BTreeMap<String, String>)> = Vec::new();
    let (mut after, mut last, mut more) = (None, None, 0);
    for step in steps {
        let Step { call, again } = step;
        if !step.is_choice() {
            after = Some(told(call));
            continue;
        }
        let chosen = told(again);
        let is_listed = if any_differs { step.differs() } else { last.as_ref() != Some(&chosen) };
        last = Some(chosen.clone());
        if !is_listed {
            continue;
        }
        if rows.len() == LISTED {
            more += 1;
            continue;
        }
        let mut row = vec![us(call.at().ps()), call.psn().map_or_else(String::new, |psn| psn.to_string())];
        row.extend(any_differs.then(|| told(call)));
        row.extend([chosen, after.clone().unwrap_or_default()]);
        let value = |(name, value): (&str, f64)| match name.strip_suffix("_ps") {
            Some(name) => (format!("{name} us"), format!("{:.3}", value / 1e6)),
            None => (name.to_string(), format!("{value}")),
        };
        rows.push((row, named(again, host.state()).map(value).collect()));
    }
    let known: BTreeSet<&String> = rows.iter().flat_map(|(_, state)| state.keys()).collect();
    let chosen: &[&str] = if any_differs { &["recorded", host.name()] } else { &[host.name()] };
    let header: Vec<&str> = [&["us", "psn"], chosen, &["after"]]
        .concat()
        .into_iter()
        .chain(known.iter().map(|name| name.as_str()))
        .collect();
    let cell = |state: &BTreeMap<String, String>, name: &String| state.get(name).cloned().unwrap_or_default();
    let all = rows
        .iter()
        .map(|(row, state)| row.iter().cloned().chain(known.iter().map(|name| cell(state, name))).collect::<Vec<_>>());
    let mut text = table(&header, &all.collect::<Vec<_>>());
    if more > 0 {
        text += &format!("{} more; --format json has every call\n", count(more));
    }
    text
}

fn step_json(step: &Step, columns: &[StateColumn]) -> Value {
    let Step { call, again } = step;
    let of = |call: &Call| {
        let until = match call.event {
            CallEvent::Select(_, Decision::Hold(until)) => Some(until.saturating_sub(call.zero).ps()),
            _ => None,
        };
        json!({ "event": call.word(), "tag": call.tag(), "until_ps": until })
    };
    let mut row = json!({
        "time_ps": call.at().ps(), "psn": call.psn(), "rtt_ps": call.rtt().map(|rtt| rtt.ps()), "marked": call.is_marked(),
        "recorded": of(call), "state": named(again, columns).map(|(name, value)| (name.into(), value.into())).collect::<Map<_, _>>(),
    });
    if step.is_choice() {
        (row["replayed"], row["differs"]) = (of(again), step.differs().into());
    }
    row
}
