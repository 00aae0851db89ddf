//! Cases of what a connection carries: sizes, places, order, tags.

use super::{
    bench::{Bench, DEPTH, Message, Pair, Patience, until},
    verdict::{Case, End, Order, Run, case, fail, joined, loaded, refusal, refused, skipped},
};
use crate::plugin::{MAX_GROUP, Opaque};
use std::{ffi::c_int, time::Duration};

const KIB: usize = 1 << 10;
/// Of a message of NCCL's and twice that, in steps of which a plugin may cut it.
const BOUNDARIES: [usize; 7] = [KIB, 4 * KIB, 64 * KIB, 128 * KIB, 512 * KIB, 1024 * KIB, 4096 * KIB];

pub(super) const CASES: &[Case] = &[
    paired("sizes", "0, 1 and odd bytes to 4 MiB, each side of the usual boundaries, arrive with their size", sizes),
    case("64MiB", LARGE, Run::Large(64 << 20)),
    case("1GiB", LARGE, Run::Large(1 << 30)),
    case("2GiB-1", LARGE, Run::Large((1 << 31) - 1)),
    case("4GiB", LARGE, Run::Large(4 << 30)),
    paired("alignment", "buffers may begin at any byte", alignment),
    paired("depth", "32 receives and sends are open at once, tested in any order", depth),
    paired("order", "4,000 small messages keep their order", order),
    paired("send-first", "a send before its receive waits or is taken", send_first),
    paired("shorter", "a receive may be larger than its message", shorter),
    paired("longer", "a message larger than its receive is an error, and no byte beyond is written", longer),
    paired("grouped", "tags sort the messages of a grouped receive, sent in reverse and in other orders", grouped),
    paired("one-tag", "messages of one tag fill the buffers of a group in turn", one_tag),
    paired("later-tag", "a message of a later receive's tag does not enter an earlier receive", later_tag),
    paired("optional", "a receive whose completion is optional has a request", optional),
    paired("flush", "a flush is done at once or has a request that is done", flush),
    paired("no-sizes", "`test` works without space for sizes", no_sizes),
    paired("idle", "a connection works after two idle seconds", idle),
    paired("both-ways", "two connections carry messages in opposite directions at once", both_ways),
];

const LARGE: &str = "it arrives";

const fn paired(name: &'static str, about: &'static str, run: fn(&Bench, Pair) -> Result<(), End>) -> Case {
    case(name, about, Run::Paired(run))
}

fn sizes(bench: &Bench, pair: Pair) -> Result<(), End> {
    let near = BOUNDARIES.into_iter().flat_map(|of| [of - 1, of, of + 1]);
    for size in [0, 1, 2, 3, 7, 63, 64, 65, 1399, 1471, 1473, 8999].into_iter().chain(near) {
        bench.exchange(pair, &mut [Message::new(size, size, 7)], 1)?;
    }
    Ok(())
}

/// Memory that the kernel could give now, in bytes.
fn available() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.map_or(usize::MAX, |kib| kib * KIB)
}

pub(super) fn large(order: &Order, size: usize) -> Result<(), End> {
    if size > order.largest {
        return Err(skipped(format!("it is larger than --bytes, {} B", order.largest)));
    }
    // Two buffers, and what the plugin keeps.
    let (needed, available) = (2 * size + (256 << 20), available());
    if available < needed {
        return Err(skipped(format!("it needs {needed} B of memory, and {available} B are available")));
    }
    loaded(order, |bench| {
        if bench.plugin.version() == 8 && c_int::try_from(size).is_err() {
            return Err(skipped("sizes of version 8 are of type int"));
        }
        bench.with_pair(|bench, pair| bench.exchange(pair, &mut [Message::new(size, size, 7)], 1))
    })
}

fn alignment(bench: &Bench, pair: Pair) -> Result<(), End> {
    let offsets = [0, 1, 2, 3, 4, 7, 8, 15, 31, 33];
    let all = offsets.into_iter().flat_map(|from| offsets.map(|to| [from, to]));
    let mut messages: Vec<Message> = all.flat_map(|of| [1, 4097].map(|size| Message::at(size, size, 7, of))).collect();
    messages.extend([[1, 2], [2, 1], [3, 0]].map(|of| Message::at(128 * KIB + 1, 128 * KIB + 1, 7, of)));
    bench.exchange(pair, &mut messages, 8)
}

fn depth(bench: &Bench, pair: Pair) -> Result<(), End> {
    let size = |number: usize| [1, 700, 9000, 70_000][number % 4] + number;
    let mut messages: Vec<Message> = (0..4 * DEPTH).map(|at| Message::new(size(at), size(at), 7)).collect();
    bench.exchange(pair, &mut messages, DEPTH)
}

fn order(bench: &Bench, pair: Pair) -> Result<(), End> {
    // The seed of a message's bytes is its tag.
    for round in 0..20 {
        let mut messages: Vec<Message> = (0..200).map(|at| Message::new(8, 8, round * 200 + at)).collect();
        bench.exchange(pair, &mut messages, DEPTH)?;
    }
    Ok(())
}

/// Tests requests in turn until all are done.
pub(super) fn finish_all(bench: &Bench, mut requests: Vec<Opaque>) -> Result<(), End> {
    let mut patience = Patience::new("test");
    while !requests.is_empty() {
        let mut left = Vec::new();
        for request in &requests {
            if !bench.plugin.test_group(*request, None)? {
                left.push(*request);
            }
        }
        patience.after(left.len() < requests.len())?;
        requests = left;
    }
    Ok(())
}

fn send_first(bench: &Bench, pair: Pair) -> Result<(), End> {
    for size in [1, 70_000, 1 << 20] {
        let mut messages = [Message::new(size, size, 7)];
        let memory = bench.register(pair, &mut messages)?;
        let mut sending = None;
        for _ in 0..100 {
            if sending.is_none() {
                sending = bench.send(pair, &mut messages[0], &memory[0])?;
            }
        }
        let receiving = until("irecv", || bench.post(pair, &mut messages, &memory))?;
        let sending = match sending {
            Some(request) => request,
            None => until("isend", || bench.send(pair, &mut messages[0], &memory[0]))?,
        };
        finish_all(bench, vec![sending, receiving])?;
        messages[0].check(size as c_int)?;
        bench.deregister(pair, &memory)?;
    }
    Ok(())
}

fn shorter(bench: &Bench, pair: Pair) -> Result<(), End> {
    let sizes = [(0, 1), (0, 9000), (1, 2), (1, 1 << 20), (70_000, 70_001), (512 * KIB, 4096 * KIB)];
    let mut messages: Vec<Message> = sizes.into_iter().map(|(size, room)| Message::new(size, room, 7)).collect();
    bench.exchange(pair, &mut messages, 3)
}

/// Fails at the sender, the receiver, or both; the connection is of no use afterwards.
fn longer(bench: &Bench, pair: Pair) -> Result<(), End> {
    let mut messages = [Message::new(70_000, 1000, 7)];
    let result = bench.exchange_once(pair, &mut messages);
    let is_intact = messages[0].to.is_intact_after(1000);
    match result {
        Ok(()) => Err(fail("test", "a message of 70,000 B fits a receive of 1,000 B")),
        Err(_) if !is_intact => Err(fail("irecv", "it writes beyond the receive")),
        Err(end) if end.why.starts_with("nccl") => Ok(()),
        Err(end) => Err(end),
    }
}

fn grouped(bench: &Bench, pair: Pair) -> Result<(), End> {
    let group = bench.group;
    if group == 1 {
        return Err(skipped("maxRecvs is 1"));
    }
    // Every rotation of both directions.
    let order = |k: usize| {
        let mut order: Vec<usize> = (0..group).rev().collect();
        order.rotate_left(k % group);
        if k >= group {
            order.reverse();
        }
        order
    };
    let size = |at: usize| [10, 4000, 1, 70_001][at % 4] + at;
    let mut messages: Vec<Message> =
        (0..2 * group * group).map(|at| Message::new(size(at), size(at) + 9, (at % group) as c_int + 1)).collect();
    bench.carry(pair, &mut messages, (group, 4), order)
}

fn one_tag(bench: &Bench, pair: Pair) -> Result<(), End> {
    let group = bench.group;
    if group == 1 {
        return Err(skipped("maxRecvs is 1"));
    }
    let mut messages: Vec<Message> = (0..4 * group).map(|at| Message::new(100 + at, 100 + at, 7)).collect();
    bench.carry(pair, &mut messages, (group, 2), |_| (0..group).collect())
}

/// Requests match in the order of posting, and tags only sort within a receive: NCCL never sends so.
fn later_tag(bench: &Bench, pair: Pair) -> Result<(), End> {
    let mut messages = [Message::new(100, 100, 1), Message::new(100, 100, 2)];
    let memory = bench.register(pair, &mut messages)?;
    let [first, second] = &mut messages;
    let receiving = until("irecv", || bench.post(pair, std::slice::from_mut(first), &memory[..1]))?;
    let other = until("irecv", || bench.post(pair, std::slice::from_mut(second), &memory[1..]))?;
    let refusal = |error| refusal(error, "since the oldest receive has another tag");
    let mut sending = None;
    for _ in 0..2000 {
        if sending.is_none() {
            sending = bench.send(pair, second, &memory[1]).map_err(refusal)?;
        }
        if bench.plugin.test_group(receiving, None).map_err(refusal)? {
            let why = "tags are not heeded: the message entered the receive of another tag";
            return Err(match bench.group {
                1 => refused("test", format!("{why}, as maxRecvs 1 allows")),
                _ => fail("test", why),
            });
        }
        let mut sizes = [0; MAX_GROUP];
        if bench.plugin.test_group(other, Some(&mut sizes)).map_err(refusal)? {
            return second.check(sizes[0]);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    match sending {
        None => Err(refused("isend", "it waits (a null request) until the tag is that of the oldest receive")),
        Some(_) => Err(refused("test", "it waits until the oldest receive has its message")),
    }
}

fn optional(bench: &Bench, pair: Pair) -> Result<(), End> {
    let mut messages = [Message::new(70_000, 70_000, 7)];
    let memory = bench.register(pair, &mut messages)?;
    let [message] = &mut messages;
    let (tag, at) = (message.tag, memory[0][1]);
    // SAFETY: the buffer outlives the request.
    let receiving = until("irecv", || unsafe { bench.plugin.receive(pair.receiver, message.to.bytes(), tag, at) })?;
    let sending = until("isend", || bench.send(pair, message, &memory[0]))?;
    finish_all(bench, vec![receiving, sending])?;
    message.check(70_000)
}

fn flush(bench: &Bench, pair: Pair) -> Result<(), End> {
    let mut messages = [Message::new(5000, 5000, 7)];
    bench.exchange(pair, &mut messages, 1)?;
    let memory = bench.plugin.register(pair.receiver, messages[0].to.bytes())?;
    let (data, size) = (messages[0].to.bytes().as_mut_ptr(), 5000);
    let piece = crate::plugin::Piece { data, size, tag: 7, memory };
    if let Some(request) = bench.plugin.flush(pair.receiver, &piece)? {
        finish_all(bench, vec![request])?;
    }
    messages[0].check(5000)
}

fn no_sizes(bench: &Bench, pair: Pair) -> Result<(), End> {
    let mut messages = [Message::new(5000, 6000, 7)];
    bench.exchange_once(pair, &mut messages)?;
    messages[0].check(5000)
}

fn idle(bench: &Bench, pair: Pair) -> Result<(), End> {
    bench.exchange(pair, &mut [Message::new(9000, 9000, 7)], 1)?;
    std::thread::sleep(Duration::from_secs(2));
    bench.exchange(pair, &mut [Message::new(9001, 9001, 7)], 1)
}

fn both_ways(bench: &Bench, pair: Pair) -> Result<(), End> {
    let back = bench.pair()?;
    let pairs = [pair, back];
    std::thread::scope(|scope| {
        let carry = |pair: Pair| {
            let mut messages: Vec<Message> = (0..16).map(|at| Message::new((512 << 10) + at, 1 << 20, 7)).collect();
            bench.exchange(pair, &mut messages, 8)
        };
        let threads = pairs.map(|pair| scope.spawn(move || carry(pair)));
        threads.into_iter().try_for_each(|thread| joined(thread.join()))
    })?;
    bench.close(back)
}

impl Bench {
    /// Carries one message, without asking for sizes.
    fn exchange_once(&self, pair: Pair, messages: &mut [Message; 1]) -> Result<(), End> {
        let memory = self.register(pair, messages)?;
        let receiving = until("irecv", || self.post(pair, messages, &memory))?;
        let sending = until("isend", || self.send(pair, &mut messages[0], &memory[0]))?;
        finish_all(self, vec![receiving, sending])?;
        Ok(self.deregister(pair, &memory)?)
    }
}
