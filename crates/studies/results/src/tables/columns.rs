use super::{
    At, Column, Context, Table, Value,
    declare::{columns, integer, link_name, name, picoseconds, text},
    jobs::{JOB_FLOWS, JOB_RANKS, JOB_STEPS, JOBS},
    schemes,
};
use crate::past_warmup;
use anabranch_outcome::{
    FlowDelays, FlowRow, FlowSample, GpuRow, LinkRow, PortSample, RunResult, SchemeSample, TraceEvent, TraceRow,
    UplinkCount,
};
use anabranch_settings::external::OfRegistries;
use anabranch_units::Time;

#[inline]
fn flow<'r>(c: &Context<'r>, at: At) -> &'r FlowRow {
    &c.result.flows[at.0]
}

#[inline]
fn link<'r>(c: &Context<'r>, at: At) -> &'r LinkRow {
    &c.result.links[at.0]
}

/// Declares the columns of flows; those of the metrics are declared in [`anabranch_outcome::FlowMetrics`].
macro_rules! flow_columns {
    ($($metric:ident: $how:ident, $unit:literal, $meaning:literal $(, fingerprint $place:literal)?;)*) => {
        columns! { flow =>
            flow_id: Integer, "", "number of the flow in the flow set", .flow_id;
            src: Integer, "", "sending host", .src;
            dst: Integer, "", "receiving host", .dst;
            size_bytes: Integer, "bytes", "payload", .size_bytes;
            start_ps: Integer optional, "ps", "start, from the start of the run; empty if it never started", .start;
            fct_rx_ps: Integer optional, "ps", "first packet sent to last packet received; empty if incomplete",
                .fct_rx;
            fct_ack_ps: Integer optional, "ps", "start to last acknowledgement at the sender; empty without one",
                .fct_ack;
            ideal_rx_ps: Integer, "ps", "fct_rx_ps of the same flow alone on the network", .ideal_rx;
            ideal_ack_ps: Integer, "ps", "fct_ack_ps of the same flow alone on the network", .ideal_ack;
            slowdown: Real optional, "", "completion time (of the kind fct_kind) over the ideal one",
                |c, at| c.meta.slowdown(flow(c, at)).into();
            status: Text, "", "finished; received (all bytes received, last acknowledgement missing); unfinished; not-started",
                |c, at| text(flow(c, at).status.word());
            workload: Text, "", "name of its workload", |c, at| Value::Text(c.meta.workload(flow(c, at).workload));
            scheme: Text, "", "load balancer of the flow",
                |c, at| name(&c.meta.load_balancers, flow(c, at).load_balancer.into());
            class: Text, "", "data class of the fabric", |c, at| name(&c.meta.classes, flow(c, at).class.into());
            $($metric: Integer optional, $unit, $meaning, |c, at| flow(c, at).metrics.$metric.into();)*
            measured: Flag, "", "true if it is in the statistics once finished: measured workload, past the warm-up",
                |c, at| Value::Flag(c.meta.is_measured(flow(c, at)) && past_warmup(flow(c, at), c.counted_from));
            seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
            wait_predecessor_ps: Integer optional, "ps",
                "from the first start in its workload to its own, for a flow that waits for others; before its completion time",
                |c, at| part(c, at, |delays| delays.predecessor);
            wait_start_ps: Integer optional, "ps", "start to first packet, while the link of its host was busy or paused; in fct_ack_ps",
                |c, at| part(c, at, |delays| delays.start);
            wait_queue_ps: Integer optional, "ps", "waiting in queues of its host and of switches; in fct_rx_ps and fct_ack_ps",
                |c, at| part(c, at, |delays| delays.queue);
            wait_pause_ps: Integer optional, "ps", "paused by PFC; in both times", |c, at| part(c, at, |delays| delays.pause);
            wait_timeout_ps: Integer optional, "ps", "nothing to send before a retransmission timeout; in both times",
                |c, at| part(c, at, |delays| delays.timeout);
            wait_nack_ps: Integer optional, "ps", "nothing to send before the notice of a trimmed or lost packet; in both times",
                |c, at| part(c, at, |delays| delays.nack);
            wait_sender_ps: Integer optional, "ps", "held back by window, rate or load balancer; in both times",
                |c, at| part(c, at, |delays| delays.sender);
            serialisation_ps: Integer optional, "ps", "its own packets on the link of its host, retransmissions included; with several planes without those that waited at a busy port; in both times",
                |c, at| part(c, at, |delays| delays.serialisation);
            flight_ps: Integer optional, "ps",
                "propagation, switches and serialisation behind the host, after its last packet had left; in both times",
                |c, at| part(c, at, |delays| delays.flight);
            ack_return_ps: Integer optional, "ps", "last packet received to last acknowledgement at the sender; in fct_ack_ps",
                |c, at| picoseconds(flow(c, at).delays.and_then(|delays| delays.ack));
            wait_link: Text, "", "link whose queue accounts for most of wait_queue_ps, such as leaf0->spine3; empty where nothing waited",
                |c, at| wait_link(c, at);
            wait_link_ps: Integer optional, "ps", "part of wait_queue_ps at that link, at least",
                |c, at| picoseconds(flow(c, at).delays.and_then(|delays| delays.longest).map(|longest| longest.1));
            medium: Text, "", "network, or scale-up: the network between the GPUs of a server, without packets",
                |c, at| text(if flow(c, at).is_scale_up { "scale-up" } else { "network" });
            src_gpu: Integer optional, "", "sending GPU; empty without [servers]",
                |c, at| flow(c, at).gpus.map(|gpus| u64::from(gpus.0)).into();
            dst_gpu: Integer optional, "", "receiving GPU; empty without [servers]",
                |c, at| flow(c, at).gpus.map(|gpus| u64::from(gpus.1)).into();
            nic_wait_ps: Integer optional, "ps", "start to first packet sent, which fct_rx_ps leaves out; empty if none was sent",
                .nic_wait;
        }
    };
}

/// Returns a part of a flow's completion time.
fn part(c: &Context<'_>, at: At, part: impl Fn(&FlowDelays) -> Time) -> Value<'static> {
    picoseconds(flow(c, at).delays.as_ref().map(part))
}

fn wait_link<'r>(c: &Context<'r>, at: At) -> Value<'r> {
    let longest = flow(c, at).delays.and_then(|delays| delays.longest);
    link_name(c, longest.map(|longest| longest.0))
}

const FLOWS: &[Column] = anabranch_outcome::flow_metrics!(flow_columns);

const LINKS: &[Column] = columns! { link =>
    from: Text, "", "sending node", |c, at| text(&link(c, at).from);
    to: Text, "", "receiving node", |c, at| text(&link(c, at).to);
    parallel: Integer, "", "number among parallel cables between these nodes, from 0; 1 is named leaf0->spine0#1",
        .parallel;
    tier: Text, "", "host, tier0-1 and so on, local, global", |c, at| text(&link(c, at).tier);
    direction: Text, "", "up, down or flat", .direction;
    rate_bps: Integer, "bit/s", "rate at the start of the run", .rate_bps;
    bytes: Integer, "bytes", "sent", .bytes;
    packets: Integer, "packets", "sent", .packets;
    utilisation: Real, "", "bytes sent until the end of the run over those that the rate of the link allowed: at most 1", .utilisation;
    queue_mean_bytes: Real optional, "bytes", "waiting data, mean over time", .queue.mean_bytes;
    queue_p99_bytes: Integer optional, "bytes", "waiting data, 99th percentile over time", .queue.p99_bytes;
    queue_max_bytes: Integer optional, "bytes", "waiting data, maximum", .queue.max_bytes;
    queue_mean_packets: Real optional, "packets", "waiting data packets, mean over time", .queue.mean_packets;
    queue_p99_packets: Integer optional, "packets", "waiting data packets, 99th percentile over time",
        .queue.p99_packets;
    queue_max_packets: Integer optional, "packets", "waiting data packets, maximum", .queue.max_packets;
    ecn_marks: Integer optional, "packets", "marked here", .ecn_marks;
    trims: Integer optional, "packets", "data packets cut to their header here", .trims;
    drops: Integer optional, "packets", "dropped in the queue or lost on the link", .drops;
    pauses: Integer optional, "frames", "PFC pause frames received", .pauses;
    window_utilisation: Real optional, "",
        "bytes sent in the window (window_from_s to window_to_s of the summary) over rate times its length; empty without one",
        |c, at| c.result.window_utilisation(at.0).into();
    fault: Text, "", "effects of faults on the link, such as down at 20us; empty without any",
        |c, at| Value::Text(c.meta.faults_of(link(c, at), c.result.simulated).into());
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

fn uplink<'r>(c: &Context<'r>, at: At) -> &'r UplinkCount {
    &c.result.uplink_counts[at.0]
}

fn of_port<'r>(c: &Context<'r>, at: At) -> &'r PortSample {
    &c.result.series[at.0].samples[at.1]
}

fn of_flow<'r>(c: &Context<'r>, at: At) -> &'r FlowSample {
    &c.result.flow_series[at.0].samples[at.1]
}

fn of_scheme<'r>(c: &Context<'r>, at: At) -> &'r SchemeSample {
    &c.result.scheme_series[at.0].samples[at.1]
}

const SERIES: &[Column] = columns! { of_port =>
    from: Text, "", "sending node", |c, at| text(&c.result.series[at.0].from);
    to: Text, "", "receiving node", |c, at| text(&c.result.series[at.0].to);
    time_ps: Integer, "ps", "from the start of the run", .time;
    queue_bytes: Integer, "bytes", "waiting data", .queue_bytes;
    queue_packets: Integer, "packets", "waiting data packets", .queue_packets;
    sent_bytes: Integer, "bytes", "sent so far", .sent_bytes;
    sent_packets: Integer, "packets", "sent so far", .sent_packets;
    ecn_marks: Integer, "packets", "marked here so far", .ecn_marks;
    trims: Integer, "packets", "data packets cut to their header here so far", .trims;
    drops: Integer, "packets", "dropped in the queue or lost on the link so far", .drops;
    pauses: Integer, "frames", "PFC pause frames received so far", .pauses;
    paused: Flag, "", "true if some of its data is paused", .paused;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

const SERIES_FLOWS: &[Column] = columns! { of_flow =>
    flow_id: Integer, "", "number of the flow", |c, at| integer(c.result.flow_series[at.0].flow_id.into());
    time_ps: Integer, "ps", "from the start of the run; the last row of a flow is that of its last acknowledgement",
        .time;
    sent_packets: Integer, "packets", "data packets sent so far, retransmissions included", .sent_packets;
    received_bytes: Integer, "bytes", "payload received so far, each byte counted once", .received_bytes;
    in_flight_bytes: Integer, "bytes", "neither acknowledged nor lost (uet: on the wire, roce: payload)",
        .in_flight_bytes;
    window_bytes: Integer optional, "bytes", "window of the congestion control, in the same unit; empty without one",
        .window_bytes;
    rate_bps: Integer optional, "bit/s", "rate of the congestion control; empty without pacing", .rate_bps;
    retransmitted_packets: Integer, "packets", "data packets retransmitted so far", .retransmitted_packets;
    out_of_order_packets: Integer, "packets", "arrivals out of order so far", .out_of_order_packets;
    marked_acks: Integer, "packets", "acknowledgements with a congestion mark received so far", .marked_acks;
    trim_notices: Integer, "packets", "notices of trimmed packets received so far", .trim_notices;
    path_tag: Integer optional, "", "path tag of the last packet sent; empty before the first", .path_tag;
    path_switches: Integer, "packets", "sent so far with another path tag than the packet before", .path_switches;
    paths: Integer, "", "different path tags since the row before", .paths;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

const SERIES_SCHEME: &[Column] = columns! { of_scheme =>
    scheme: Text, "", "load balancer",
        |c, at| name(&c.meta.load_balancers, c.result.scheme_series[at.0].load_balancer.into());
    time_ps: Integer, "ps", "from the start of the run", .time;
    open_flows: Integer, "flows", "started, and waiting for acknowledgements", .open_flows;
    finished_flows: Integer, "flows", "with all acknowledgements so far", .finished_flows;
    in_flight_bytes: Integer, "bytes", "in flight, all open flows together", .in_flight_bytes;
    window_bytes: Integer, "bytes", "windows of all open flows together", .window_bytes;
    retransmitted_packets: Integer, "packets", "data packets retransmitted so far", .retransmitted_packets;
    path_switches: Integer, "packets", "sent so far with another path tag than the flow's packet before",
        .path_switches;
    flowlets: Integer, "flowlets", "seen by switches so far", .flowlets;
    created_flowlets: Integer, "flowlets", "made by hosts so far (HF2T)", .created_flowlets;
    added_delay_ns: Integer, "ns", "total delay that hosts added to packets so far (HF2T)",
        |c, at| integer(of_scheme(c, at).added_delay.ps() / 1000);
    reroutes: Integer, "", "flows moved by switches so far (ConWeave)", .reroutes;
    reordered_packets: Integer, "packets", "that have waited in a reordering queue so far (ConWeave)",
        .reordered_packets;
    uplink_imbalance: Real optional, "",
        "of all traffic since the row before: bytes over the busiest uplink of each switch over those of its mean uplink; 1 is even",
        .uplink_imbalance;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

const UPLINKS: &[Column] = columns! { uplink =>
    flow_id: Integer, "", "number of the flow", .flow_id;
    from: Text, "", "sending switch", |c, at| text(&uplink(c, at).from);
    to: Text, "", "receiving switch", |c, at| text(&uplink(c, at).to);
    parallel: Integer, "", "number among parallel cables between these switches, from 0", .parallel;
    packets: Integer, "packets", "data packets of the flow on this link", .packets;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

fn gpu<'r>(c: &Context<'r>, at: At) -> &'r GpuRow {
    &c.result.gpus[at.0]
}

const GPUS: &[Column] = columns! { gpu =>
    gpu: Integer, "", "number of the GPU", .gpu;
    server: Integer, "", "its server", .server;
    host: Integer, "", "its NIC: a host of the topology", .host;
    rate_bps: Integer, "bit/s", "rate of its port to the scale-up network, per direction", .rate_bps;
    sent_bytes: Integer, "bytes", "messages to send over scale-up, together", .egress.bytes;
    sent_messages: Integer, "", "their number", .egress.messages;
    sent_utilisation: Real, "", "share of the run in which it sent", .egress.utilisation;
    sent_wait_max_ps: Integer, "ps", "longest time for which a message waited for those before it",
        .egress.longest_wait;
    received_bytes: Integer, "bytes", "messages whose first byte has arrived over scale-up, together", .ingress.bytes;
    received_messages: Integer, "", "their number", .ingress.messages;
    received_utilisation: Real, "", "share of the run in which it received", .ingress.utilisation;
    received_wait_max_ps: Integer, "ps", "longest time for which a message waited for those before it",
        .ingress.longest_wait;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

const OCCUPANCY: &[Column] = columns! { link =>
    from: Text, "", "sending node", |c, at| text(&link(c, at).from);
    to: Text, "", "receiving node", |c, at| text(&link(c, at).to);
    tier: Text, "", "as in links", |c, at| text(&link(c, at).tier);
    direction: Text, "", "up, down or flat", .direction;
    queue_packets: Integer, "packets", "waiting data packets", |c, at| integer(link(c, at).queue.occupancy[at.1].0);
    time_ps: Integer, "ps", "time with this many waiting", |c, at| integer(link(c, at).queue.occupancy[at.1].1);
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

fn trace<'r>(c: &Context<'r>, at: At) -> &'r TraceRow {
    &c.result.watched.trace[at.0]
}

fn traced_link<'r>(c: &Context<'r>, at: At) -> &'r LinkRow {
    &c.result.links[trace(c, at).link as usize]
}

const TRACE: &[Column] = columns! { trace =>
    time_ps: Integer, "ps", "from the start of the run; of send and hop the beginning of the transmission", .time;
    event: Text, "",
        "path-change, mark, trim, send (by a NIC), hop (by a switch), receive (at a host), drop (queue or buffer full), \
         loss (on a faulty link), no-way (the switch had no route); value-good, -skipped, -withdrawn, -denied: state of the entropy \
         value `tag` at its sender (mrc)",
        |c, at| text(trace(c, at).event.word());
    flow_id: Integer, "", "number of the flow", .flow_id;
    psn: Integer optional, "", "packet sequence number; of a reply, that of the packet it acknowledges; empty for other packets",
        .psn;
    packet: Text, "", "data, header (of a trimmed packet), ack, nack, probe, probe-reply, switch-control, grant (of credit)",
        |c, at| text(trace(c, at).packet.word());
    tag: Integer, "", "path tag", .tag;
    from: Text, "", "sending node of the link or port of the event", |c, at| text(&traced_link(c, at).from);
    to: Text, "", "receiving node of the link; empty for no-way", |c, at| match trace(c, at).event {
        TraceEvent::NoRoute => text(""),
        _ => text(&traced_link(c, at).to),
    };
    joined_ps: Integer optional, "ps", "time it joined the port; empty at a NIC, on receive and no-way", .joined;
    queue_bytes: Integer optional, "bytes",
        "waiting in its class (data) or as control when it joined, without the packet in transmission; of mark, the bytes that caused it",
        .queue_bytes;
    size_bytes: Integer, "bytes", "on the wire", .size_bytes;
    acked_below: Integer optional, "", "of ack and nack: every PSN below it has arrived", .acked_below;
    marked: Flag, "", "carries an ECN mark; of a reply: echoes one", .marked;
    cnp: Flag, "", "of ack and nack: carries a congestion notification (roce)", .notification;
    retransmission: Flag, "", "was sent before", .retransmission;
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

pub(super) fn plain(number: usize) -> Vec<At> {
    (0..number).map(|row| (row, 0)).collect()
}

fn nested(parts: impl Iterator<Item = usize>) -> Vec<At> {
    parts.enumerate().flat_map(|(row, number)| (0..number).map(move |part| (row, part))).collect()
}

/// All tables of a run.
pub static TABLES: OfRegistries<Vec<Table>> =
    OfRegistries::new(|| FIXED.iter().copied().chain(schemes::tables()).collect());

const fn table(
    name: &'static str,
    meaning: &'static str,
    columns: &'static [Column],
    rows: fn(&Table, &RunResult) -> Vec<At>,
) -> Table {
    Table { name, meaning, always: false, columns, rows }
}

const FIXED: &[Table] = &[
    Table { always: true, ..table("flows", "a row per flow", FLOWS, |_, result| plain(result.flows.len())) },
    table("jobs", "a row per job, group and repetition", JOBS, |_, result| plain(result.jobs.groups.len())),
    table("job_ranks", "a row per job, group, repetition and rank", JOB_RANKS, |_, result| {
        plain(result.jobs.ranks.len())
    }),
    table("job_steps", "a row per job, group, repetition and step", JOB_STEPS, |_, result| {
        plain(result.jobs.steps.len())
    }),
    table("job_flows", "a row per flow of a job: its place in the job", JOB_FLOWS, |_, result| {
        plain(result.jobs.flows.len())
    }),
    Table {
        always: true,
        ..table("links", "a row per directed link, with the queue of the port that feeds it", LINKS, |_, result| {
            plain(result.links.len())
        })
    },
    table("series", "a row per port and sampling time", SERIES, |_, result| {
        nested(result.series.iter().map(|port| port.samples.len()))
    }),
    table(
        "series_flows",
        "a row per flow and sampling time while it is open, and one when it is done",
        SERIES_FLOWS,
        |_, result| nested(result.flow_series.iter().map(|flow| flow.samples.len())),
    ),
    table("series_scheme", "a row per load balancer and sampling time", SERIES_SCHEME, |_, result| {
        nested(result.scheme_series.iter().map(|scheme| scheme.samples.len()))
    }),
    table("uplinks", "a row per flow and uplink it used", UPLINKS, |_, result| plain(result.uplink_counts.len())),
    table("gpus", "a row per GPU of the servers, with its port to the scale-up network", GPUS, |_, result| {
        plain(result.gpus.len())
    }),
    table("occupancy", "a row per port and number of waiting packets", OCCUPANCY, |_, result| {
        nested(result.links.iter().map(|link| link.queue.occupancy.len()))
    }),
    table(
        "trace",
        "a row per thing that happened to a packet of a traced flow, by time, flow and PSN",
        TRACE,
        |_, result| plain(result.watched.trace.len()),
    ),
];
