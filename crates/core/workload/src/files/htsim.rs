//! htsim's connection matrix (specification 14.1): counts, flows with start times or triggers, triggers, failures.
//!
//! A `multishot` trigger starts its flows one by one in the order of the file. Messages marked `msg` may share an `id`: a
//! connection, whose messages follow one another in the order of the file. `prio` is the number of a class. Triggers that could never work are refused:
//! those that start no flow, or whose activations are too few (or, for `oneshot`, too many) to start each of their flows
//! once.

use super::{Source, reach};
use crate::{
    FailedSwitch, FileFailure, Flow, Start, Trigger, TriggerId, TriggerKind, WorkloadError, error::hint, flow::plain,
    traffic::Traffic,
};
use anabranch_settings::nearest;
use std::collections::BTreeMap;

const HEADER: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];
const OF_A_FLOW: [&str; 8] =
    ["id", "start", "trigger", "size", "msg", "send_done_trigger", "recv_done_trigger", "prio"];
const OF_A_TRIGGER: [&str; 5] = ["id", "oneshot", "multishot", "barrier", "count"];
const OF_A_FAILURE: [&str; 3] = ["switch_type", "switch_id", "link_id"];

type Words<'t> = std::iter::Peekable<std::str::SplitWhitespace<'t>>;

struct Seen {
    line: usize,
    /// Message numbers under the id; `None` for a flow without `msg`.
    msgs: Vec<Option<u32>>,
    flows: Vec<u32>,
    pair: (u32, u32),
}

#[derive(Default)]
struct Pending {
    stated: Option<(usize, TriggerKind)>,
    used: usize,
    targets: Vec<u32>,
    activations: u64,
}

struct Reader<'a> {
    source: &'a Source<'a>,
    header: [Option<(usize, u32)>; 4],
    ids: BTreeMap<u32, Seen>,
    triggers: BTreeMap<u32, Pending>,
    stated: u32,
    traffic: Traffic,
    /// Line of the first `prio` that is no class, and its value.
    no_class: Option<(usize, u32)>,
}

pub(super) fn read(source: &Source<'_>) -> Result<Traffic, WorkloadError> {
    let mut reader = Reader {
        source,
        header: [None; 4],
        ids: BTreeMap::new(),
        triggers: BTreeMap::new(),
        stated: 0,
        traffic: Traffic::default(),
        no_class: None,
    };
    for (line, text) in source.text()?.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        let mut words = text.split('#').next().unwrap_or_default().split_whitespace().peekable();
        if let Some(first) = words.next() {
            reader.line(line, first, words)?;
        }
    }
    reader.check_counts()?;
    reader.number_triggers()
}

impl Reader<'_> {
    fn line(&mut self, line: usize, first: &str, words: Words<'_>) -> Result<(), WorkloadError> {
        if let Some((src, dst)) = first.split_once("->") {
            return self.flow(line, src, dst, words);
        }
        match first {
            "trigger" => self.trigger(line, words),
            "failure" => self.failure(line, words),
            _ => match HEADER.iter().position(|word| *word == first) {
                Some(which) => self.count(line, which, words),
                None => {
                    let near = hint(nearest(first, HEADER.into_iter().chain(["trigger", "failure"])));
                    let expected = format!("`src->dst`, trigger, failure, {}", HEADER.join(", "));
                    Err(self.source.wrong(line, format!("found `{first}`, expected {expected}{near}")))
                }
            },
        }
    }

    fn value<'t>(&self, line: usize, key: &str, words: &mut Words<'t>) -> Result<&'t str, WorkloadError> {
        words.next().ok_or_else(|| self.source.wrong(line, format!("`{key}` has no value")))
    }

    fn id(&self, line: usize, key: &str, words: &mut Words<'_>) -> Result<u32, WorkloadError> {
        match self.source.whole(line, key, self.value(line, key, words)?)? {
            0 => {
                Err(self.source.wrong(line, format!("{key}: found 0, which htsim keeps for \"none\"; ids start at 1")))
            }
            id => Ok(id),
        }
    }

    fn once<T>(&self, line: usize, key: &str, slot: &mut Option<T>, value: T) -> Result<(), WorkloadError> {
        slot.replace(value).map_or(Ok(()), |_| Err(self.source.wrong(line, format!("`{key}` comes twice"))))
    }

    fn unknown(&self, line: usize, found: &str, allowed: &[&'static str]) -> WorkloadError {
        let near = hint(nearest(found, allowed.iter().copied()));
        self.source.wrong(line, format!("unknown word `{found}`; allowed are {}{near}", allowed.join(", ")))
    }

    fn count(&mut self, line: usize, which: usize, mut words: Words<'_>) -> Result<(), WorkloadError> {
        let key = HEADER[which];
        let value = self.source.whole(line, key, self.value(line, key, &mut words)?)?;
        if let Some(more) = words.next() {
            return Err(self.source.wrong(line, format!("found `{more}` after `{key} {value}`, expected nothing")));
        }
        if which == 0 && value > self.source.hosts {
            let message = format!("the file is for {value} hosts, and the topology has {}", self.source.hosts);
            return Err(self.source.wrong(line, message));
        }
        if let Some((before, _)) = self.header[which].replace((line, value)) {
            return Err(self.source.wrong(line, format!("`{key}` was given before, in line {before}")));
        }
        Ok(())
    }

    fn flow(&mut self, line: usize, src: &str, dst: &str, mut words: Words<'_>) -> Result<(), WorkloadError> {
        let source = self.source;
        let (src, dst) = (source.host(line, "source", src)?, source.host(line, "destination", dst)?);
        source.pair(line, src, dst)?;
        if let Some((_, nodes)) = self.header[0]
            && src.max(dst) >= nodes
        {
            let message = format!("host {} does not exist in a file for {nodes} hosts (`Nodes`)", src.max(dst));
            return Err(source.wrong(line, message));
        }
        let (mut id, mut start, mut trigger, mut size, mut msg) = (None, None, None, None, None);
        let (mut on_sent, mut on_received, mut prio) = (None, None, None);
        while let Some(key) = words.next() {
            match key {
                "id" => self.once(line, key, &mut id, self.id(line, key, &mut words)?)?,
                "start" => {
                    let text = self.value(line, key, &mut words)?;
                    self.once(line, key, &mut start, source.start(line, text)?)?;
                }
                "size" => {
                    let text = self.value(line, key, &mut words)?;
                    self.once(line, key, &mut size, source.size(line, text)?)?;
                }
                "trigger" => self.once(line, key, &mut trigger, self.id(line, key, &mut words)?)?,
                "send_done_trigger" => self.once(line, key, &mut on_sent, self.id(line, key, &mut words)?)?,
                "recv_done_trigger" => self.once(line, key, &mut on_received, self.id(line, key, &mut words)?)?,
                "msg" => match words.peek().map(|word| word.parse::<u32>()) {
                    Some(Ok(0)) => return Err(source.wrong(line, "msg: found 0, numbers start at 1")),
                    Some(Ok(number)) => {
                        words.next();
                        self.once(line, key, &mut msg, number)?;
                    }
                    _ => self.once(line, key, &mut msg, 0)?,
                },
                "prio" => {
                    let text = self.value(line, key, &mut words)?;
                    self.once(line, key, &mut prio, source.whole(line, key, text)?)?;
                }
                _ => return Err(self.unknown(line, key, &OF_A_FLOW)),
            }
        }
        let size = size.ok_or_else(|| source.wrong(line, "the flow has no `size`"))?;
        if let Some(id) = id {
            self.check_id(line, id, msg, (src, dst))?;
        }
        let start = match (start, trigger) {
            (Some(at), None) => Start::At(at),
            (None, Some(trigger)) => {
                let target = self.traffic.flows.len() as u32;
                self.used(trigger, line).targets.push(target);
                Start::On(TriggerId(trigger))
            }
            (None, None) => return Err(source.wrong(line, "the flow has neither `start` nor `trigger`")),
            (Some(_), Some(_)) => return Err(source.wrong(line, "the flow has both `start` and `trigger`")),
        };
        for trigger in [on_sent, on_received].into_iter().flatten() {
            self.used(trigger, line).activations += 1;
        }
        let mut flow = plain(src, dst, size, start);
        match prio {
            Some(prio) if (prio as usize) < source.classes.len().min(usize::from(u8::MAX)) => flow.class = prio as u8,
            Some(prio) => drop(self.no_class.get_or_insert((line, prio))),
            None => {}
        }
        self.traffic.flows.push(Flow {
            on_sent: on_sent.map(TriggerId),
            on_received: on_received.map(TriggerId),
            ..flow
        });
        Ok(())
    }

    /// An id is used once, or by messages with different numbers between the same two hosts.
    fn check_id(&mut self, line: usize, id: u32, msg: Option<u32>, pair: (u32, u32)) -> Result<(), WorkloadError> {
        let seen = self.ids.entry(id).or_insert_with(|| Seen { line, msgs: Vec::new(), flows: Vec::new(), pair });
        let first = seen.line;
        let clash = match msg {
            _ if seen.msgs.is_empty() => None,
            Some(number) if !seen.msgs.contains(&None) && (number == 0 || !seen.msgs.contains(&msg)) => {
                (seen.pair != pair).then(|| format!("the messages of id {id} lead elsewhere in line {first}"))
            }
            Some(number) => Some(format!("the id {id} with msg {number} is that of a flow above (line {first})")),
            None => Some(format!("the id {id} is that of the flow in line {first}")),
        };
        seen.msgs.push(msg);
        seen.flows.push(self.traffic.flows.len() as u32);
        clash.map_or(Ok(()), |message| Err(self.source.wrong(line, message)))
    }

    fn used(&mut self, trigger: u32, line: usize) -> &mut Pending {
        let pending = self.triggers.entry(trigger).or_default();
        if pending.used == 0 {
            pending.used = line;
        }
        pending
    }

    fn trigger(&mut self, line: usize, mut words: Words<'_>) -> Result<(), WorkloadError> {
        let source = self.source;
        let (mut id, mut word, mut count) = (None, None, None);
        while let Some(key) = words.next() {
            match key {
                "id" => self.once(line, key, &mut id, self.id(line, key, &mut words)?)?,
                "count" => {
                    let text = self.value(line, key, &mut words)?;
                    self.once(line, key, &mut count, source.whole(line, key, text)?)?;
                }
                "oneshot" | "multishot" | "barrier" => {
                    if let Some(before) = word.replace(key) {
                        let message = format!("found `{key}` after `{before}`, expected one kind of trigger");
                        return Err(source.wrong(line, message));
                    }
                }
                _ => return Err(self.unknown(line, key, &OF_A_TRIGGER)),
            }
        }
        let id = id.ok_or_else(|| source.wrong(line, "the trigger has no `id`"))?;
        let kind = match (word, count) {
            (None, _) => return Err(source.wrong(line, "the trigger is neither oneshot, multishot nor barrier")),
            (Some(word @ ("oneshot" | "multishot")), count) => {
                if count.is_some() {
                    let path = source.path;
                    self.traffic
                        .notes
                        .push(format!("{path}:{line}: `count` of a {word} trigger has no effect: barriers count"));
                }
                if word == "oneshot" { TriggerKind::Oneshot } else { TriggerKind::Multishot }
            }
            (Some(_), Some(count)) if count > 0 => TriggerKind::Barrier(count),
            (Some(_), _) => return Err(source.wrong(line, "a barrier needs `count` with 1 or more activations")),
        };
        let pending = self.triggers.entry(id).or_default();
        if let Some((before, _)) = pending.stated.replace((line, kind)) {
            return Err(source.wrong(line, format!("the trigger {id} was given before, in line {before}")));
        }
        self.stated += 1;
        Ok(())
    }

    fn failure(&mut self, line: usize, mut words: Words<'_>) -> Result<(), WorkloadError> {
        let source = self.source;
        let (mut switch_type, mut switch_id, mut link_id) = (None, None, None);
        while let Some(key) = words.next() {
            let text = match OF_A_FAILURE.contains(&key) {
                true => self.value(line, key, &mut words)?,
                false => return Err(self.unknown(line, key, &OF_A_FAILURE)),
            };
            match key {
                "switch_type" => {
                    let tier = match text {
                        "TOR" => FailedSwitch::Tor,
                        "AGG" => FailedSwitch::Agg,
                        "CORE" => FailedSwitch::Core,
                        _ => {
                            let near = hint(nearest(text, ["TOR", "AGG", "CORE"]));
                            let message = format!("switch_type: found `{text}`, expected TOR, AGG or CORE{near}");
                            return Err(source.wrong(line, message));
                        }
                    };
                    self.once(line, key, &mut switch_type, tier)?;
                }
                "switch_id" => self.once(line, key, &mut switch_id, source.whole(line, key, text)?)?,
                _ => self.once(line, key, &mut link_id, source.whole(line, key, text)?)?,
            }
        }
        let lacks = |key: &str| source.wrong(line, format!("the failure has no `{key}`"));
        let failure = FileFailure {
            switch_type: switch_type.ok_or_else(|| lacks("switch_type"))?,
            switch_id: switch_id.ok_or_else(|| lacks("switch_id"))?,
            link_id: link_id.ok_or_else(|| lacks("link_id"))?,
            place: format!("{}:{line}", source.path),
        };
        let link = |of: &FileFailure| (of.switch_type, of.switch_id, of.link_id);
        if let Some(same) = self.traffic.failures.iter().find(|other| link(other) == link(&failure)) {
            let note =
                format!("{}: this failure has no further effect: {} has the same link", failure.place, same.place);
            self.traffic.notes.push(note);
        }
        self.traffic.failures.push(failure);
        Ok(())
    }

    /// `Triggers` and `Failures` are optional if there are none.
    fn check_counts(&self) -> Result<(), WorkloadError> {
        if let Some(missing) = (0..2).find(|&which| self.header[which].is_none()) {
            return Err(self.source.wrong(1, format!("the file lacks the line `{} N`", HEADER[missing])));
        }
        let found = [self.traffic.flows.len(), self.stated as usize, self.traffic.failures.len()];
        for (which, found) in (1..).zip(found) {
            let (line, announced) = self.header[which].unwrap_or((1, 0));
            if announced as usize != found {
                let message = format!("`{} {announced}` is announced, and {found} follow", HEADER[which]);
                return Err(self.source.wrong(line, message));
            }
        }
        Ok(())
    }

    /// Numbers the triggers from 0, in the order of their ids.
    fn number_triggers(mut self) -> Result<Traffic, WorkloadError> {
        let mut number: BTreeMap<u32, u32> = BTreeMap::new();
        let mut stated = Vec::new();
        for (id, pending) in std::mem::take(&mut self.triggers) {
            let (targets, activations) = (pending.targets.len() as u64, pending.activations);
            let Some((line, kind)) = pending.stated else {
                let message = format!("there is no line `trigger id {id} ...`");
                return Err(self.source.wrong(pending.used, message));
            };
            let problem = match kind {
                _ if targets == 0 => Some("starts no flow".to_string()),
                _ if activations == 0 => Some("is never activated: no flow has it as its done trigger".to_string()),
                TriggerKind::Oneshot if activations > 1 => {
                    Some(format!("is oneshot and is activated by {activations} flows, expected one"))
                }
                TriggerKind::Multishot if activations < targets => {
                    Some(format!("has {targets} flows to start one by one, but only {activations} flows activate it"))
                }
                TriggerKind::Barrier(count) if activations < u64::from(count) => {
                    Some(format!("waits for {count} activations, but only {activations} flows activate it"))
                }
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(self.source.wrong(line, format!("the trigger {id} {problem}")));
            }
            stated.push((line, id));
            number.insert(id, self.traffic.triggers.len() as u32);
            self.traffic.triggers.push(Trigger::new(kind, pending.targets));
        }
        let renumber = |id: TriggerId| TriggerId(number.get(&id.0).copied().unwrap_or_default());
        for flow in &mut self.traffic.flows {
            if let Start::On(id) = flow.start {
                flow.start = Start::On(renumber(id));
            }
            flow.on_sent = flow.on_sent.map(renumber);
            flow.on_received = flow.on_received.map(renumber);
        }
        self.chain_messages();
        if let Some(TriggerId(stuck)) = reach::stuck(&self.traffic.flows, &self.traffic.triggers) {
            let Some(&(line, id)) = stated.get(stuck as usize) else {
                let message =
                    "a message of a connection never starts: it waits for the message before it, or that for it";
                return Err(self.source.wrong(1, message));
            };
            let message = format!("the trigger {id} waits for flows that never start: triggers wait in a circle");
            return Err(self.source.wrong(line, message));
        }
        if let Some((line, prio)) = self.no_class {
            let (path, classes) = (self.source.path, self.source.classes);
            self.traffic.notes.push(format!(
                "{path}:{line}: `prio` {prio} has no effect: fabric.classes has {} ({}), numbered from 0; the flow has the workload's class",
                classes.len(),
                classes.join(", ")
            ));
        }
        Ok(self.traffic)
    }

    /// Lets each message of a connection wait for the acknowledgement of the one before it, besides its own start.
    fn chain_messages(&mut self) {
        let Traffic { flows, triggers, notes, .. } = &mut self.traffic;
        for (id, seen) in &self.ids {
            for pair in seen.flows.windows(2) {
                let [before, next] = [pair[0], pair[1]];
                flows[next as usize].connection = u64::from(seen.flows[0]);
                let own = TriggerId(triggers.len() as u32);
                let mut wait = Trigger::new(TriggerKind::Barrier(2), vec![next]);
                wait.home = Some(seen.pair.0);
                match flows[next as usize].start {
                    Start::At(at) => wait.at = Some(at),
                    Start::On(TriggerId(by)) if triggers[by as usize].kind == TriggerKind::Multishot => {
                        let path = self.source.path;
                        notes.push(format!(
                            "{path}:{}: a message of id {id} starts by a multishot trigger and does not wait for the message before it",
                            seen.line
                        ));
                        continue;
                    }
                    Start::On(TriggerId(by)) => {
                        let by = &mut triggers[by as usize];
                        by.targets.retain(|target| *target != next);
                        by.next.push(own);
                        if by.home.is_none() {
                            by.home = Some(seen.pair.0);
                        }
                    }
                }
                triggers.push(wait);
                flows[next as usize].start = Start::On(own);
                let sent = &mut flows[before as usize].on_sent;
                *sent = Some(match *sent {
                    None => own,
                    Some(other) => {
                        triggers.push(Trigger {
                            home: Some(seen.pair.0),
                            next: vec![other, own],
                            ..Trigger::new(TriggerKind::Oneshot, vec![])
                        });
                        TriggerId(triggers.len() as u32 - 1)
                    }
                });
            }
        }
    }
}

#[cfg(test)]
#[path = "htsim_tests.rs"]
mod tests;
