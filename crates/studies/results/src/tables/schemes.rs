//! Tables of the calls of schemes: what each received, what it returned, and the state that it had then. A scheme declares the
//! columns of its state in its own file.

use super::{
    At, Column, ColumnKind, Context, Frame, REPEAT_RUN, Table, Value,
    columns::plain,
    declare::{columns, integer, picoseconds, text},
    filling::fill,
};
use crate::ReportError;
use anabranch_lb::{
    Call, CallEvent, Decision, Feedback, LinkSignal, Loss, MAX_STATE, Outgoing, Probe, State, StateColumn,
    registry::{HostParameters, SwitchParameters},
};
use anabranch_outcome::{LinkRow, RunResult};
use anabranch_units::Time;
use std::{collections::BTreeMap, path::Path, sync::Arc};

fn call<'r>(c: &Context<'r>, at: At) -> &'r Call {
    &c.result.watched.schemes[at.0].call
}

/// A time of the clock of a call, in picoseconds from the start of the run.
fn since_start(call: &Call, time: Time) -> u64 {
    time.saturating_sub(call.zero).ps()
}

fn link<'r>(c: &Context<'r>, at: At) -> &'r LinkRow {
    &c.result.links[c.result.watched.schemes[at.0].link as usize]
}

/// Columns before those of the state: with the flows, which the scenario has, all that a scheme receives and returns.
const CALLS: &[Column] = columns! { call =>
    time_ps: Integer, "ps", "from the start of the run", |c, at| integer(call(c, at).at().ps());
    event: Text, "",
        "choice: send, send-ack-request (at once, and the flow waits for it), hold (until `until_ps`), wait (for an ACK), probe; of a \
         switch: forward. What the scheme is told: open, ack, signal (CSIG, before its ack), trimmed, trimmed-last-hop, gap (a later packet came), refused (no memory), \
         timeout, paths (dead ones changed), ports, reply, probe-lost (-resume: a held flow goes on), close; no-probe: asked at its timer",
        |c, at| text(call(c, at).word());
    flow_id: Integer, "", "number of the flow", .flow;
    psn: Integer optional, "", "packet sequence number; of ack, that of the packet it acknowledges", |c, at| call(c, at).psn().into();
    tag: Integer optional, "", "path tag chosen, or reported on", |c, at| call(c, at).tag().map(u64::from).into();
    from: Text, "", "node of the scheme", |c, at| text(&link(c, at).from);
    to: Text, "", "of forward: next node", |c, at| match call(c, at).event {
        CallEvent::Forward(..) => text(&link(c, at).to),
        _ => text(""),
    };
    until_ps: Integer optional, "ps", "of hold: end of it", |c, at| match call(c, at).event {
        CallEvent::Select(_, Decision::Hold(until)) => integer(since_start(call(c, at), until)),
        _ => Value::Empty,
    };
    eligible_ps: Integer optional, "ps", "of a choice: time at which window and pacing first allowed the packet",
        |c, at| call(c, at).packet().map(|packet| since_start(call(c, at), packet.eligible_at)).into();
    free_ports: Integer optional, "", "of a choice: ports of the NIC with space, one bit each; empty: all",
        |c, at| call(c, at).packet().map(|packet| packet.free_ports).filter(|ports| *ports < u32::MAX).map(u64::from).into();
    port_free_ps: Integer optional, "ps", "of a choice: time at which another port has space; empty: any has",
        |c, at| call(c, at).packet().filter(|packet| packet.port_free_at > Time::ZERO)
            .map(|packet| since_start(call(c, at), packet.port_free_at)).into();
    retransmission: Flag, "", "of a choice: the packet was sent before",
        |c, at| Value::Flag(call(c, at).packet().is_some_and(|packet| packet.retransmission));
    bytes: Integer optional, "bytes", "payload of the packet or probe; of ack: newly acknowledged", |c, at| call(c, at).bytes().into();
    rtt_ps: Integer optional, "ps", "of ack and reply: round trip", |c, at| picoseconds(call(c, at).rtt());
    marked: Flag, "", "of ack and reply: the packet had an ECN mark", |c, at| Value::Flag(call(c, at).is_marked());
    packets: Integer optional, "packets", "of ack: newly acknowledged",
        |c, at| call(c, at).feedback().map(|feedback| u64::from(feedback.packets)).into();
    acked_below: Integer optional, "", "of ack: every PSN below it has arrived",
        |c, at| call(c, at).feedback().map(|feedback| feedback.cumulative).into();
    next_psn: Integer optional, "", "of ack: next new PSN", |c, at| call(c, at).feedback().map(|feedback| feedback.next_psn).into();
    selective: Unsigned optional, "", "of ack: packets that have arrived, a bit each from `selective_from` on",
        |c, at| call(c, at).feedback().map(|feedback| feedback.selective).filter(|bits| *bits > 0).into();
    selective_from: Integer optional, "", "of ack: PSN of the lowest bit of `selective`",
        |c, at| call(c, at).feedback().filter(|feedback| feedback.selective > 0).map(|feedback| feedback.selective_from).into();
    signal: Integer optional, "", "of signal: the field of the packet: 32 times its level, 16 if that is a utilisation, 8 if the link leads to hosts, and its tier. \
         Level L of a delay, in units of 8.192 ns: L below 64, (64 + L mod 64) 2^(L / 64 - 1) from there, divided to whole numbers; of a \
         utilisation: its share of 2047, 2046 at most; of a packet trimmed there: 2047", |c, at| match call(c, at).event {
        CallEvent::Signal(_, signal) => integer(signal.0.into()),
        _ => Value::Empty,
    };
    passed: Text, "", "of open: key of the host, on real networks its clock at the start of the run (`zero_ps`), from which times in states count less than from 0, and properties of the flow; of paths: a digit per path, 1 if dead; of ports: those \
         down at sender and receiver, one bit each. For `replay`",
        |c, at| Value::Text(call(c, at).passed().map_or("".into(), Into::into));
    seed: Unsigned, "", "seed of the run", |c, _| integer(c.meta.seed);
};

fn value<'r, const N: usize>(c: &Context<'r>, at: At) -> Value<'r> {
    call(c, at).state.get(N).into()
}

fn column<const N: usize>(of: &StateColumn) -> Column {
    Column {
        name: of.name,
        unit: of.unit,
        meaning: of.meaning,
        kind: ColumnKind::Real,
        optional: true,
        get: value::<N>,
        fill: |c, rows, to| fill(value::<N>, c, rows, to),
    }
}

const STATE: [fn(&StateColumn) -> Column; MAX_STATE] = [
    column::<0>,
    column::<1>,
    column::<2>,
    column::<3>,
    column::<4>,
    column::<5>,
    column::<6>,
    column::<7>,
    column::<8>,
    column::<9>,
    column::<10>,
    column::<11>,
];

fn rows(table: &Table, result: &RunResult) -> Vec<At> {
    let all = &result.watched.schemes;
    let is_own = |at: &At| {
        name(all[at.0].call.scheme) == table.name
            && all[at.0].is_written(at.0.checked_sub(1).map(|before| &all[before]))
    };
    plain(all.len()).into_iter().filter(is_own).collect()
}

/// Reads the calls of a host scheme from the results in `dir`, in the order in which they are there; `None`: there is no such table.
pub fn read_calls(dir: &Path, scheme: &HostParameters) -> Result<Option<Vec<Call>>, ReportError> {
    let (table, state) = (name(scheme.name()), scheme.state());
    let columns: Vec<&str> = CALLS.iter().map(|column| column.name).chain(state.iter().map(|of| of.name)).collect();
    let Some(frame) = Frame::read(dir, &table, &columns)? else { return Ok(None) };
    let file =
        || ["parquet", "csv"].map(|kind| dir.join(format!("{table}.{kind}"))).into_iter().find(|file| file.exists());
    let wrong = |found: String| ReportError::content(&file().unwrap_or_default(), found, REPEAT_RUN);
    if let [first, ..] = frame.missing() {
        return Err(wrong(format!("it has no column `{first}`: another version wrote it")));
    }
    // Of each flow, the key of its host and the start of the run.
    let mut opened: BTreeMap<u32, (u64, Time)> = BTreeMap::new();
    let call = |row: usize| {
        let number = |name: &str| frame.integers(name)[row];
        let (word, passed) = (frame.texts("event")[row].as_str(), frame.texts("passed")[row].as_str());
        let flow = number("flow_id")? as u32;
        if word == "open" {
            let number = |name: &str| passed.split(' ').find_map(|word| word.strip_prefix(name)?.parse().ok());
            opened.insert(flow, (number("host=")?, Time::from_ps(number("zero_ps=").unwrap_or(0))));
        }
        let (host, zero) = *opened.get(&flow)?;
        let event = match word {
            "open" => CallEvent::Open(Arc::new(passed.parse().ok()?)),
            _ => CallEvent::of_change(word, passed).or_else(|| event(&frame, row, word, zero))?,
        };
        // A column of whole numbers alone is read as such.
        let real = |name: &str| frame.reals(name).get(row).copied().flatten();
        let whole = |name: &str| frame.integers(name).get(row).copied().flatten().map(|n| n as f64);
        let value = |name: &str| real(name).or_else(|| whole(name)).unwrap_or(f64::NAN);
        let values: Vec<f64> = state.iter().map(|of| value(of.name)).collect();
        let time = zero.saturating_add(Time::from_ps(number("time_ps")?));
        Some(Call { time, zero, scheme: scheme.name(), host, flow, event, state: State::of(&values) })
    };
    let mut call = call;
    let read = |row| call(row).ok_or_else(|| wrong(format!("row {}: it is no call of a scheme", row + 1)));
    (0..frame.rows()).map(read).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Returns a call but those of [`Call::passed`].
fn event(frame: &Frame, row: usize, word: &str, zero: Time) -> Option<CallEvent> {
    let number = |name: &str| frame.integers(name)[row];
    let time = |name: &str| number(name).map(|time| zero.saturating_add(Time::from_ps(time)));
    let (tag, marked) = (number("tag").map(|tag| tag as u32), frame.flags("marked")[row]);
    let packet = || {
        Some(Outgoing {
            psn: number("psn")?,
            bytes: number("bytes")? as u32,
            retransmission: frame.flags("retransmission")[row],
            eligible_at: time("eligible_ps")?,
            free_ports: number("free_ports").map_or(u32::MAX, |ports| ports as u32),
            port_free_at: time("port_free_ps").unwrap_or(Time::ZERO),
        })
    };
    Some(match word {
        "send" => CallEvent::Select(packet()?, Decision::Send(tag?)),
        "send-ack-request" => CallEvent::Select(packet()?, Decision::SendWithAckRequest(tag?)),
        "hold" => CallEvent::Select(packet()?, Decision::Hold(time("until_ps")?)),
        "wait" => CallEvent::Select(packet()?, Decision::Wait),
        "ack" => CallEvent::Ack(Feedback {
            tag: tag?,
            ecn: marked,
            rtt: number("rtt_ps").map(Time::from_ps),
            psn: number("psn")?,
            packets: number("packets")? as u32,
            bytes: number("bytes")?,
            cumulative: number("acked_below")?,
            next_psn: number("next_psn")?,
            selective: number("selective").unwrap_or(0),
            selective_from: number("selective_from").unwrap_or(0),
        }),
        "trimmed" => CallEvent::Loss(tag?, Loss::Trimmed),
        "trimmed-last-hop" => CallEvent::Loss(tag?, Loss::TrimmedAtLastHop),
        "gap" => CallEvent::Loss(tag?, Loss::Gap),
        "refused" => CallEvent::Loss(tag?, Loss::Refused),
        "signal" => CallEvent::Signal(tag?, LinkSignal(number("signal")? as u16)),
        "timeout" => CallEvent::Timeout(tag?),
        "probe" => CallEvent::PollProbe(Some(Probe { tag: tag?, bytes: number("bytes")? as u32 })),
        "no-probe" => CallEvent::PollProbe(None),
        "reply" | "reply-resume" => {
            CallEvent::ProbeReply(tag?, Time::from_ps(number("rtt_ps")?), marked, word == "reply-resume")
        }
        "probe-lost" | "probe-lost-resume" => CallEvent::ProbeReply(tag?, Time::MAX, marked, word != "probe-lost"),
        "close" => CallEvent::Close,
        _ => return None,
    })
}

fn name(scheme: &str) -> String {
    format!("scheme_{}", scheme.replace('-', "_"))
}

/// Returns the table of each scheme that chooses paths: of hosts, and of switches with a state.
pub(super) fn tables() -> impl Iterator<Item = Table> {
    let hosts = HostParameters::each().into_iter().filter(|host| !host.capabilities().leaves_choice_to_switches());
    let switches = SwitchParameters::each().into_iter().filter(|switch| !switch.state().is_empty());
    let sides = hosts.map(|host| (host.name(), host.state())).chain(switches.map(|s| (s.name(), s.state())));
    sides.map(|(scheme, state)| {
        let columns = CALLS.iter().copied().chain(state.iter().zip(STATE).map(|(of, make)| make(of)));
        Table {
            name: name(scheme).leak(),
            meaning: "a row per call of this scheme for a traced flow, with its state after it",
            always: false,
            columns: columns.collect::<Vec<_>>().leak(),
            rows,
        }
    })
}
