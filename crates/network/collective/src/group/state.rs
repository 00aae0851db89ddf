//! Progress of a group's operations: one collective at a time, in the order they were started, and all messages at once.

use super::{
    memory::{Buffer, Registered, bytes},
    message::{ReceiveMessage, SendMessage},
    peer::{Header, MAX_SHORT, MessageKind, Peer, Short, receive, send},
    program::{Action, Block, CHUNK, Job, Program, Step, program},
    reduce::{divide, reduce},
    work::{Finished, Ticket},
};
use crate::plugin::{Opaque, Plugin, PluginError};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Long messages of a connection in flight at once.
pub(super) const DEPTH: usize = 8;
/// Largest scratch memory that is kept for the next collective.
const MAX_SCRATCH: usize = 64 << 20;
const CLOSED: &str = "the group is closed";
/// Maximum time for the reason of a failure to reach the others.
const FAREWELL: Duration = Duration::from_millis(100);

/// Returns `true` if a block goes in a short message, at both ranks.
pub(super) fn is_short(block: Block) -> bool {
    block.len <= MAX_SHORT
}

/// Sends and receives of a collective with one peer, by their position in the program.
#[derive(Debug, Default)]
struct Lines {
    short_sends: VecDeque<u32>,
    short_receives: VecDeque<u32>,
    long_sends: VecDeque<u32>,
    long_receives: VecDeque<u32>,
    sending: VecDeque<(u32, Opaque)>,
    /// Step, request (`None`: received, not yet reduced), and the memory of a reduction.
    receiving: VecDeque<(u32, Option<Opaque>, Option<Buffer>)>,
    /// A header without data precedes long messages.
    awaits_header: bool,
    /// Bytes to the peer, and from it.
    bytes: [u64; 2],
}

#[derive(Debug)]
struct Running {
    job: Job,
    ticket: Ticket,
    number: u32,
    memory: Option<Registered>,
    program: Program,
    done: Vec<bool>,
    left: usize,
    lines: Vec<Lines>,
}

impl Running {
    fn is_ready(&self, step: u32) -> bool {
        self.program.steps[step as usize].after.iter().all(|before| self.done[*before as usize])
    }

    fn set_done(&mut self, step: u32) {
        self.done[step as usize] = true;
        self.left -= 1;
    }

    fn reduce(&self, step: u32, arrived: &mut [u8], rank: usize) {
        let step = &self.program.steps[step as usize];
        let (into, Job { dtype, reduction, .. }) = (bytes(step.block), &self.job);
        let (dtype, reduction) = (*dtype, *reduction);
        // The lower rank is the first operand at both, so that both have the same result.
        if step.peer < rank && step.action == Action::Reduce {
            reduce(dtype, reduction, arrived, into);
            into.copy_from_slice(arrived);
        } else if step.action == Action::Reduce {
            reduce(dtype, reduction, into, arrived);
        } else {
            into.copy_from_slice(arrived);
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rank: usize,
    pub(super) plugin: Arc<Plugin>,
    /// `None` is this rank.
    pub(super) peers: Vec<Option<Peer>>,
    queue: VecDeque<(Job, Ticket)>,
    running: Option<Running>,
    started: u32,
    pub(super) sends: Vec<SendMessage>,
    pub(super) receives: Vec<ReceiveMessage>,
    pub(super) next_message: u32,
    spare: Vec<Buffer>,
    scratch: Vec<u8>,
    pub(super) failed: Option<String>,
    pub(super) finished: Vec<Finished>,
}

impl std::fmt::Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Finished")
    }
}

fn size_text(bytes: u64) -> String {
    format!("{bytes} B")
}

impl State {
    pub(super) fn new(plugin: Arc<Plugin>, rank: usize, peers: Vec<Option<Peer>>) -> Self {
        State {
            rank,
            plugin,
            peers,
            queue: VecDeque::new(),
            running: None,
            started: 0,
            sends: Vec::new(),
            receives: Vec::new(),
            next_message: 0,
            spare: Vec::new(),
            scratch: Vec::new(),
            failed: None,
            finished: Vec::new(),
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        let is_open =
            self.running.is_some() || !(self.queue.is_empty() && self.sends.is_empty() && self.receives.is_empty());
        // Short messages that no buffer was posted for leave later; those that have left are the plugin's.
        is_open || self.peers.iter().flatten().any(Peer::is_unsent)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.peers.iter().flatten().all(Peer::is_quiet)
    }

    pub(super) fn start(&mut self, job: Job, ticket: Ticket) {
        self.queue.push_back((job, ticket));
    }

    /// Does what is possible; returns `true` if there was something.
    pub(super) fn progress(&mut self) -> bool {
        if self.failed.is_some() {
            return false;
        }
        let mut moved = self.poll_peers();
        moved |= self.messages();
        loop {
            if self.running.is_none() && self.failed.is_none() {
                let Some((job, ticket)) = self.queue.pop_front() else { break };
                self.begin(job, ticket);
                moved = true;
            }
            let Some(mut running) = self.running.take() else { break };
            let result = self.run(&mut running);
            moved |= matches!(result, Ok(true));
            let is_done = running.left == 0 && running.lines.iter().all(|of| !of.awaits_header);
            match result {
                Ok(_) if is_done => self.end(running),
                Ok(_) => {
                    self.running = Some(running);
                    break;
                }
                Err(reason) => {
                    self.running = Some(running);
                    self.fail(reason);
                    break;
                }
            }
        }
        if !moved {
            self.check_time();
        }
        moved
    }

    fn poll_peers(&mut self) -> bool {
        let (plugin, mut moved) = (Arc::clone(&self.plugin), false);
        for from in 0..self.peers.len() {
            let mut taken: Vec<Short> = Vec::new();
            let Some(peer) = &mut self.peers[from] else { continue };
            moved |= peer.poll(&plugin, &mut |short| taken.push(short));
            for short in taken {
                match short.header.kind {
                    MessageKind::Collective => {
                        self.check(from, &short.header);
                        if let Some(peer) = &mut self.peers[from] {
                            peer.arrived.push_back(short);
                        }
                    }
                    MessageKind::Message => self.on_message(from, short),
                    MessageKind::Go => {
                        let number = short.header.number;
                        if let Some(at) = self.sends.iter().position(|of| of.peer == from && of.number == number) {
                            // Long messages are sent in the order in which they are called.
                            let mut of = self.sends.remove(at);
                            of.is_called = true;
                            self.sends.push(of);
                        }
                    }
                    MessageKind::Abort => {
                        let reason = String::from_utf8_lossy(short.data()).into_owned();
                        self.fail(reason);
                    }
                }
            }
        }
        moved
    }

    /// Fails if a rank has started another collective, or this one with other arguments.
    fn check(&mut self, from: usize, header: &Header) {
        let Some(running) = &self.running else { return };
        let Running { job, number, lines, .. } = running;
        if header.number.wrapping_sub(*number) as i32 > 0 {
            return;
        }
        let Header { what, root, bytes, .. } = *header;
        let ours = ([job.kind as u8, job.dtype as u8, job.reduction as u8], job.root as u32, lines[from].bytes[1]);
        if (what, root, bytes) != ours || header.number != *number {
            let text = |(what, root, bytes): ([u8; 3], u32, u64)| {
                let name = super::program::KINDS.get(usize::from(what[0])).map_or("?", |(name, _)| name);
                let dtype = super::reduce::DTYPES.get(usize::from(what[1])).map_or("?", |(name, _)| name);
                let reduction = super::reduce::REDUCTIONS.get(usize::from(what[2])).map_or("?", |(name, _)| name);
                format!("{name} of {} of {dtype}, {reduction}, root {root}", size_text(bytes))
            };
            self.fail(format!(
                "ranks differ in collective {number}: rank {from} has {}; rank {} has {}; give all ranks the same",
                text((what, root, bytes)),
                self.rank,
                text(ours)
            ));
        }
    }

    fn begin(&mut self, job: Job, ticket: Ticket) {
        let ranks = self.peers.len();
        let program = program(&job, self.rank, ranks, std::mem::take(&mut self.scratch));
        program.copies.iter().for_each(|(from, to)| bytes(*to).copy_from_slice(bytes(*from)));
        let mut lines: Vec<Lines> = (0..ranks).map(|_| Lines::default()).collect();
        for (at, step) in program.steps.iter().enumerate() {
            let of = &mut lines[step.peer];
            let is_send = step.action == Action::Send;
            of.bytes[usize::from(!is_send)] += step.block.len as u64;
            of.awaits_header |= !is_send && !is_short(step.block);
            match (is_send, is_short(step.block)) {
                (true, true) => &mut of.short_sends,
                (true, false) => &mut of.long_sends,
                (false, true) => &mut of.short_receives,
                (false, false) => &mut of.long_receives,
            }
            .push_back(at as u32);
        }
        // What ranks must agree on: the bytes between two of them where these differ, otherwise those of a block.
        if let Some(block) = agreed(&job) {
            lines.iter_mut().for_each(|of| of.bytes = [block; 2]);
        }
        let (number, done, left) = (self.started, vec![false; program.steps.len()], program.steps.len());
        self.started = number.wrapping_add(1);
        let ticket = Ticket { deadline: Instant::now() + ticket.timeout, ..ticket };
        let blocks = job.inputs.iter().chain(&job.outputs).copied().chain([program.scratch_block()]).collect();
        let connection = self.peers.iter().flatten().next().map(|peer| peer.lanes[1].sender);
        let memory = connection.map(|connection| Registered::new(&self.plugin, connection, blocks)).transpose();
        let reason = memory.as_ref().err().map(|error| format!("{} {number}: {error}", job.kind.name()));
        let memory = memory.ok().flatten();
        let running = Running { job, ticket, number, memory, program, done, left, lines };
        if let Some(reason) = reason {
            self.running = Some(running);
            return self.fail(reason);
        }
        for (to, of) in running.lines.iter().enumerate() {
            if !of.long_sends.is_empty()
                && let Some(peer) = &mut self.peers[to]
            {
                peer.say(header(&running, to).message(&[]));
            }
        }
        self.running = Some(running);
        for from in 0..ranks {
            if let Some(header) = self.peers[from].as_ref().and_then(|peer| peer.arrived.front()).map(|of| of.header) {
                self.check(from, &header);
            }
        }
    }

    /// Returns `true` if a step was done; fails if a rank is gone that it needs.
    fn run(&mut self, running: &mut Running) -> Result<bool, String> {
        let State { plugin, peers, rank, spare, .. } = self;
        let mut moved = false;
        for (to, peer) in peers.iter_mut().enumerate() {
            let Some(peer) = peer else { continue };
            let lines = &running.lines[to];
            let is_needed = lines.awaits_header
                || !(lines.short_sends.is_empty()
                    && lines.short_receives.is_empty()
                    && lines.long_sends.is_empty()
                    && lines.long_receives.is_empty()
                    && lines.sending.is_empty()
                    && lines.receiving.is_empty());
            if !is_needed {
                continue;
            }
            moved |= short_steps(running, to, peer, *rank)?;
            let result = long_steps(running, to, peer, *rank, plugin, spare);
            let is_open = running.lines[to].awaits_header || !running.lines[to].short_receives.is_empty();
            let result = match &peer.failed {
                Some(reason) if is_open && peer.arrived.is_empty() => Err(reason.clone()),
                // The plugin gives a reason once.
                Some(reason) if matches!(result, Err(PluginError::Call { .. })) => Err(reason.clone()),
                _ => result.map_err(|error| error.to_string()),
            };
            let name = || format!("{} {}", running.job.kind.name(), running.number);
            moved |= result.map_err(|reason| format!("{}: rank {to} is lost: {reason}", name()))?;
        }
        Ok(moved)
    }

    fn end(&mut self, running: Running) {
        let Running { job, program, ticket, memory, .. } = running;
        drop(memory);
        if let Some((first, others)) = program.fold.split_first() {
            others.iter().for_each(|of| reduce(job.dtype, job.reduction, bytes(*first), bytes(*of)));
        }
        if let Some((from, to)) = program.result {
            bytes(to).copy_from_slice(bytes(from));
        }
        if let Some(block) = program.reduced.filter(|_| job.reduction == super::reduce::Reduction::Avg) {
            divide(job.dtype, bytes(block), self.peers.len());
        }
        // Fresh memory costs a page fault per page.
        self.scratch = program.scratch;
        if self.scratch.len() > MAX_SCRATCH {
            self.scratch = Vec::new();
        }
        self.finished.push(ticket.finish(Ok(0)));
    }

    fn check_time(&mut self) {
        let now = Instant::now();
        let late = |ticket: &Ticket| (now >= ticket.deadline).then_some(ticket.timeout.as_secs_f64());
        let rank = self.rank;
        let collective = self.running.as_ref().and_then(|running| {
            let seconds = late(&running.ticket)?;
            let is_open = |(_, of): &(usize, &Lines)| {
                of.awaits_header
                    || !of.short_receives.is_empty()
                    || !of.long_receives.is_empty()
                    || !of.receiving.is_empty()
            };
            let mut open: Vec<String> =
                running.lines.iter().enumerate().filter(is_open).map(|(of, _)| of.to_string()).collect();
            if open.is_empty() {
                let sends = |(_, of): &(usize, &Lines)| !of.long_sends.is_empty() || !of.sending.is_empty();
                open = running.lines.iter().enumerate().filter(sends).map(|(of, _)| of.to_string()).collect();
            }
            let (name, number) = (running.job.kind.name(), running.number);
            Some(format!(
                "{name} {number} timed out at rank {rank} after {seconds} s: it waits for rank {}",
                open.join(", ")
            ))
        });
        let send = || {
            let of = self.sends.iter().find(|of| late(&of.ticket).is_some())?;
            let (to, tag, seconds) = (of.peer, of.tag, of.ticket.timeout.as_secs_f64());
            Some(format!("send of rank {rank} with tag {tag} timed out after {seconds} s: rank {to} does not receive"))
        };
        let receive = || {
            let of = self.receives.iter().find(|of| late(&of.ticket).is_some())?;
            let from = of.peer.map_or_else(|| "any rank".into(), |peer| format!("rank {peer}"));
            let (tag, seconds) = (of.tag, of.ticket.timeout.as_secs_f64());
            Some(format!("receive of rank {rank} with tag {tag} timed out after {seconds} s: {from} does not send"))
        };
        if let Some(reason) = collective.or_else(send).or_else(receive) {
            self.fail(reason);
        }
    }

    /// Ends all operations with an error, after the others have its reason.
    pub(super) fn fail(&mut self, reason: String) {
        if self.failed.is_some() {
            return;
        }
        self.failed = Some(reason.clone());
        let data = &reason.as_bytes()[..reason.len().min(MAX_SHORT)];
        let header = Header { kind: MessageKind::Abort, what: [0; 3], root: 0, number: 0, bytes: 0 };
        self.peers.iter_mut().flatten().for_each(|peer| peer.say(header.message(data)));
        self.flush(FAREWELL);
        self.end_all(&reason);
    }

    /// Ends all operations, after no connection can touch their memory.
    fn end_all(&mut self, reason: &str) {
        let plugin = Arc::clone(&self.plugin);
        self.peers.iter_mut().flatten().for_each(|peer| peer.close(&plugin));
        let tickets = (self.running.take().map(|of| of.ticket).into_iter())
            .chain(self.queue.drain(..).map(|(_, ticket)| ticket))
            .chain(self.sends.drain(..).map(|of| of.ticket))
            .chain(self.receives.drain(..).map(|of| of.ticket));
        self.finished.extend(tickets.map(|ticket| ticket.finish(Err(reason.into()))));
    }

    /// Waits until short messages have arrived.
    fn flush(&mut self, max: Duration) {
        let until = Instant::now() + max;
        while !self.is_quiet() && Instant::now() < until {
            let plugin = &self.plugin;
            if !self.peers.iter_mut().flatten().fold(false, |moved, peer| peer.poll(plugin, &mut |_| ()) | moved) {
                std::thread::yield_now();
            }
        }
    }

    /// Closes all connections after the last messages have arrived; the group has failed afterwards.
    pub(super) fn close(&mut self) {
        if self.failed.is_none() {
            self.flush(Duration::from_secs(1));
            self.failed = Some(CLOSED.into());
            self.end_all(CLOSED);
        }
    }
}

/// Returns the bytes that all ranks of a collective must name; `None`: they differ by pairs.
fn agreed(job: &Job) -> Option<u64> {
    use super::program::Kind;
    let block = match job.kind {
        Kind::AllToAll => return None,
        Kind::AllReduce | Kind::Broadcast | Kind::Reduce | Kind::ReduceScatter | Kind::Scatter => job.outputs.first(),
        Kind::AllGather | Kind::Gather => job.inputs.first(),
        Kind::Barrier => None,
    };
    Some(block.map_or(0, |block| block.len as u64))
}

fn header(running: &Running, to: usize) -> Header {
    let Running { job, number, lines, .. } = running;
    let what = [job.kind as u8, job.dtype as u8, job.reduction as u8];
    let (kind, root) = (MessageKind::Collective, job.root as u32);
    Header { kind, what, root, number: *number, bytes: lines[to].bytes[0] }
}

/// Sends and receives the short messages of a collective with a peer; returns `true` if there were any.
fn short_steps(running: &mut Running, to: usize, peer: &mut Peer, rank: usize) -> Result<bool, String> {
    let mut moved = false;
    loop {
        let mut some = false;
        if let Some(&step) = running.lines[to].short_sends.front()
            && running.is_ready(step)
        {
            let block = running.program.steps[step as usize].block;
            peer.say(header(running, to).message(bytes(block)));
            running.lines[to].short_sends.pop_front();
            running.set_done(step);
            some = true;
        }
        let is_its = peer.arrived.front().is_some_and(|short| short.header.number == running.number);
        let next = running.lines[to].short_receives.front().copied().filter(|step| running.is_ready(*step));
        let awaits_header = running.lines[to].awaits_header;
        if is_its
            && (awaits_header || next.is_some())
            && let Some(mut short) = peer.arrived.pop_front()
        {
            some = true;
            if awaits_header {
                running.lines[to].awaits_header = false;
            } else if let Some(step) = next {
                let len = running.program.steps[step as usize].block.len;
                if short.data().len() != len {
                    let found = short.data().len();
                    return Err(format!(
                        "rank {to} sends {found} B in collective {}, expected {len} B",
                        running.number
                    ));
                }
                running.reduce(step, short.data_mut(), rank);
                running.lines[to].short_receives.pop_front();
                running.set_done(step);
            }
            peer.give_back(short);
        }
        if !some {
            return Ok(moved);
        }
        moved = true;
    }
}

/// Does the same for long messages.
#[expect(unsafe_code)]
fn long_steps(
    running: &mut Running,
    to: usize,
    peer: &Peer,
    rank: usize,
    plugin: &Arc<Plugin>,
    spare: &mut Vec<Buffer>,
) -> Result<bool, PluginError> {
    let (mut moved, lane) = (false, peer.lanes[1]);
    while running.lines[to].receiving.len() < DEPTH
        && let Some(&step) = running.lines[to].long_receives.front()
    {
        let Step { block, action, .. } = running.program.steps[step as usize];
        let mut memory = match action {
            Action::Reduce => Some(spare.pop().map_or_else(|| Buffer::new(plugin, lane.sender, *CHUNK.end()), Ok)?),
            _ if !running.is_ready(step) => break,
            _ => None,
        };
        let at = memory.as_mut().map_or(block.at, Buffer::at);
        // SAFETY: the operation owns its block, and `receiving` the memory, until the message has arrived or the connection closed.
        let Some(request) = (unsafe { receive(plugin, lane.receiver, at, block.len)? }) else {
            spare.extend(memory);
            break;
        };
        running.lines[to].receiving.push_back((step, Some(request), memory));
        running.lines[to].long_receives.pop_front();
        moved = true;
    }
    while running.lines[to].sending.len() < DEPTH
        && let Some(&step) = running.lines[to].long_sends.front()
        && running.is_ready(step)
    {
        let block = running.program.steps[step as usize].block;
        // SAFETY: as above; a step that changes these bytes waits until this one is done.
        let Some(request) = (unsafe { send(plugin, lane.sender, block.at, block.len)? }) else { break };
        running.lines[to].sending.push_back((step, request));
        running.lines[to].long_sends.pop_front();
        moved = true;
    }
    while let Some(&(step, request)) = running.lines[to].sending.front()
        && plugin.test(request)?.is_some()
    {
        running.lines[to].sending.pop_front();
        running.set_done(step);
        moved = true;
    }
    while let Some((step, request, _)) = running.lines[to].receiving.front_mut() {
        let step = *step;
        if let Some(open) = *request {
            if plugin.test(open)?.is_none() {
                break;
            }
            *request = None;
            moved = true;
        }
        if !running.is_ready(step) {
            break;
        }
        if let Some((_, _, Some(mut memory))) = running.lines[to].receiving.pop_front() {
            let len = running.program.steps[step as usize].block.len;
            running.reduce(step, &mut memory.bytes[..len], rank);
            spare.push(memory);
        }
        running.set_done(step);
        moved = true;
    }
    Ok(moved)
}
