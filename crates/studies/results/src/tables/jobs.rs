//! Columns of jobs.

use super::{
    At, Column, Context, Value,
    declare::{columns, integer, link_name, picoseconds, text},
};
use anabranch_outcome::{FlowRow, GroupRow, JobFlowRow, RankRow, StepRow, exposed};
use anabranch_statistics::slowdown;
use anabranch_units::Time;

fn group<'r>(c: &Context<'r>, at: At) -> &'r GroupRow {
    &c.result.jobs.groups[at.0]
}

fn rank<'r>(c: &Context<'r>, at: At) -> &'r RankRow {
    &c.result.jobs.ranks[at.0]
}

fn step<'r>(c: &Context<'r>, at: At) -> &'r StepRow {
    &c.result.jobs.steps[at.0]
}

fn flow<'r>(c: &Context<'r>, at: At) -> &'r JobFlowRow {
    &c.result.jobs.flows[at.0]
}

fn ratio(completion: Option<Time>, ideal: Option<Time>) -> Value<'static> {
    completion.zip(ideal).map(|(completion, ideal)| slowdown(completion.ps(), ideal.ps())).into()
}

/// Returns the link whose queue held a flow longest, where delays are measured.
fn longest(c: &Context<'_>, flow: Option<u32>) -> Option<(u32, Time)> {
    let last: &FlowRow = c.result.flows.get(flow? as usize)?;
    last.delays.and_then(|delays| delays.longest)
}

fn step_slowdown(c: &Context<'_>, at: At) -> Value<'static> {
    ratio(step(c, at).completion.get(), step(c, at).ideal.get())
}

fn last_host(c: &Context<'_>, at: At, of: fn(&FlowRow) -> u32) -> Value<'static> {
    let last = group(c, at).last_flow.and_then(|flow| c.result.flows.get(flow as usize));
    last.map(|flow| u64::from(of(flow))).into()
}

pub(crate) const JOBS: &[Column] = columns! { group =>
    workload: Text, "", "name of the job's workload", |c, at| Value::Text(c.meta.workload(group(c, at).workload));
    group: Integer, "", "group, from 0", .group;
    repetition: Integer, "", "repetition, from 0", .repetition;
    ranks: Integer, "", "number of ranks", .ranks;
    start_ps: Integer optional, "ps", "earliest start of a rank, with its computation; empty if all wait for what did not end",
        .start;
    completion_ps: Integer optional, "ps",
        "earliest start to latest end of its ranks (last message received, last acknowledgement, computation); empty if incomplete",
        .completion;
    ideal_ps: Integer optional, "ps",
        "completion_ps of the same job alone on an idle network: every flow at its ideal time, dependencies followed",
        .ideal;
    slowdown: Real optional, "", "completion_ps over ideal_ps; below 1 where ranks started closer together than alone",
        |c, at| ratio(group(c, at).completion, group(c, at).ideal);
    computation_ps: Integer optional, "ps", "computation of its last rank in the repetition; empty if incomplete",
        |c, at| picoseconds(group(c, at).last_rank.map(|_| group(c, at).computation));
    exposed_ps: Integer optional, "ps", "completion_ps less computation_ps: communication that no computation covers",
        |c, at| picoseconds(exposed(group(c, at).completion, group(c, at).computation));
    bus_bandwidth_bps: Real optional, "bit/s",
        "bytes of a rank's buffer over exposed_ps, times NCCL's factor (2(n-1)/n of an AllReduce); empty where NCCL defines none",
        .bus_bandwidth_bps;
    last_rank: Integer optional, "", "rank that ended last", .last_rank;
    last_flow: Integer optional, "", "flow that ended last there; empty if a computation did", .last_flow;
    last_src: Integer optional, "", "sending host of last_flow", |c, at| last_host(c, at, |flow| flow.src);
    last_dst: Integer optional, "", "receiving host of last_flow", |c, at| last_host(c, at, |flow| flow.dst);
    last_link: Text, "",
        "link whose queue held last_flow longest; empty where nothing waited, and without measure.attribution",
        |c, at| link_name(c, longest(c, group(c, at).last_flow).map(|longest| longest.0));
    last_link_ps: Integer optional, "ps", "wait of last_flow at last_link, at least",
        |c, at| picoseconds(longest(c, group(c, at).last_flow).map(|longest| longest.1));
    critical_messages: Integer optional, "", "messages of the critical path: last_flow, the one that let it start, and so on, within the repetition",
        .critical_messages;
    critical_link: Text, "",
        "link at which the flows of the critical path waited longest, each at the link that held it longest; empty as last_link",
        |c, at| link_name(c, group(c, at).critical_link.map(|link| link.0));
    critical_link_ps: Integer optional, "ps", "their waits there together, at least",
        |c, at| picoseconds(group(c, at).critical_link.map(|link| link.1));
    scheme: Text, "", "load balancer of the run", |c, _| text(&c.meta.scheme);
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

pub(crate) const JOB_RANKS: &[Column] = columns! { rank =>
    workload: Text, "", "name of the job's workload", |c, at| Value::Text(c.meta.workload(rank(c, at).workload));
    group: Integer, "", "group, from 0", .group;
    repetition: Integer, "", "repetition, from 0", .repetition;
    rank: Integer, "", "rank within the group, from 0", .rank;
    host: Integer, "", "its host", .host;
    start_ps: Integer optional, "ps", "begin of its repetition, with its computation; empty if what it waits for did not end",
        .start;
    completion_ps: Integer optional, "ps",
        "start_ps to its last message received, acknowledgement or computation; empty if incomplete",
        .completion;
    ideal_ps: Integer optional, "ps", "completion_ps of the same job alone on an idle network", .ideal;
    slowdown: Real optional, "", "completion_ps over ideal_ps; below 1 where ranks started closer together than alone",
        |c, at| ratio(rank(c, at).completion.get(), rank(c, at).ideal.get());
    computation_ps: Integer, "ps", "its computation in the repetition, done or not", .computation;
    exposed_ps: Integer optional, "ps", "completion_ps less computation_ps",
        |c, at| picoseconds(exposed(rank(c, at).completion.get(), rank(c, at).computation));
    last_flow: Integer optional, "", "flow that ended last; empty if a computation did, or it is incomplete",
        .last_flow;
    scheme: Text, "", "load balancer of the run", |c, _| text(&c.meta.scheme);
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

pub(crate) const JOB_STEPS: &[Column] = columns! { step =>
    workload: Text, "", "name of the job's workload", |c, at| Value::Text(c.meta.workload(step(c, at).workload));
    group: Integer, "", "group, from 0", .group;
    repetition: Integer, "", "repetition, from 0", .repetition;
    step: Integer, "", "step of the schedule, from 0", .step;
    messages: Integer, "", "number of its messages", .messages;
    start_ps: Integer optional, "ps", "earliest start of a message; empty if none had started", .start;
    end_ps: Integer optional, "ps", "time at which its last message was received; empty if one was not",
        |c, at| {
            let (start, completion) = (step(c, at).start.get(), step(c, at).completion.get());
            picoseconds(start.zip(completion).map(|(start, completion)| start.saturating_add(completion)))
        };
    completion_ps: Integer optional, "ps", "end_ps less start_ps", .completion;
    ideal_ps: Integer optional, "ps", "completion_ps of the same job alone on an idle network", .ideal;
    slowdown: Real optional, "", "completion_ps over ideal_ps; below 1 where ranks came to the step closer together than alone",
        |c, at| step_slowdown(c, at);
    last_rank: Integer optional, "", "rank that received the last message", .last_rank;
    last_flow: Integer optional, "", "flow of that message", .last_flow;
    last_link: Text, "", "link whose queue held last_flow longest; empty as in jobs",
        |c, at| link_name(c, longest(c, step(c, at).last_flow.get()).map(|longest| longest.0));
    last_link_ps: Integer optional, "ps", "wait of last_flow at last_link, at least",
        |c, at| picoseconds(longest(c, step(c, at).last_flow.get()).map(|longest| longest.1));
    scheme: Text, "", "load balancer of the run", |c, _| text(&c.meta.scheme);
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

pub(crate) const JOB_FLOWS: &[Column] = columns! { flow =>
    flow_id: Integer, "", "number of the flow, as in flows", .flow_id;
    workload: Text, "", "name of the job's workload", |c, at| Value::Text(c.meta.workload(flow(c, at).workload));
    group: Integer, "", "group, from 0", .group;
    repetition: Integer, "", "repetition, from 0", .repetition;
    step: Integer, "", "step of the schedule, from 0", .step;
    src_rank: Integer, "", "sending rank within the group", .src_rank;
    dst_rank: Integer, "", "receiving rank within the group", .dst_rank;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};
