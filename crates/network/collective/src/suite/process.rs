//! Cases of the library in its process: tables, loading, contexts, forks.

use super::{
    bench::{Bench, Message},
    verdict::{Case, End, Order, Run, case, fail, loaded, refusal, skipped},
};
use crate::plugin::{Plugin, VERSIONS};
use libloading::{Library, Symbol};
use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

/// Entries of the largest table; empty: it may be null.
const ENTRIES: [&str; 22] = [
    "name",
    "init",
    "devices",
    "getProperties",
    "listen",
    "connect",
    "accept",
    "regMr",
    "",
    "deregMr",
    "isend",
    "irecv",
    "iflush",
    "test",
    "closeSend",
    "closeRecv",
    "closeListen",
    "",
    "",
    "",
    "finalize",
    "",
];

pub(super) const CASES: &[Case] = &[
    case("tables", "no entry is null that must not be, in every version", Run::Bare(tables)),
    case("properties", "every device has a name, a speed, host pointers and limits", Run::Loaded(properties)),
    case("versions", "each exported table carries a message, one after the other in a process", Run::Bare(versions)),
    case("unused", "the library loads and unloads without a call, thrice", Run::Bare(unused)),
    case("reload", "load, connect, close, unload and load again, thrice", Run::Bare(reload)),
    case("contexts", "two contexts work, one of them after the other's end", Run::Bare(contexts)),
    case("fused", "devices of two, listed in another order at each end, carry messages", Run::Loaded(fused)),
    case("fork", "a child that ends changes nothing", Run::Loaded(fork)),
];

fn library(order: &Order) -> Result<Library, End> {
    // SAFETY: the user selects the library to execute.
    unsafe { Library::new(&order.plugin) }.map_err(|error| fail("dlopen", error.to_string()))
}

/// Returns the words of the table of a version, as far as it has them.
fn words(library: &Library, version: u32) -> Option<&[usize]> {
    let count = match version {
        8 => 19,
        9 | 10 => 20,
        _ => 22,
    };
    // SAFETY: the symbol of this name is a table of as many pointers.
    unsafe {
        let symbol: Symbol<'_, *const usize> = library.get(format!("ncclNetPlugin_v{version}")).ok()?;
        (!symbol.is_null()).then(|| std::slice::from_raw_parts(*symbol, count))
    }
}

fn tables(order: &Order) -> Result<(), End> {
    let library = library(order)?;
    for version in VERSIONS {
        let Some(words) = words(&library, *version) else { continue };
        let is_missing = |(name, word): &(&&str, &usize)| !name.is_empty() && **word == 0;
        if let Some((name, _)) = ENTRIES.iter().zip(words).find(is_missing) {
            return Err(fail(name, format!("it is null in ncclNetPlugin_v{version}")));
        }
    }
    Ok(())
}

fn properties(bench: &Bench) -> Result<(), End> {
    for device in 0..bench.plugin.devices()? {
        let of = bench.plugin.properties(device)?;
        let wrong = [
            (of.name.is_empty(), "no name".to_string()),
            (of.limits.speed <= 0, format!("a speed of {} Mbit/s", of.limits.speed)),
            (of.pointers & 1 == 0, format!("ptrSupport is {:#x}, without that of the host", of.pointers)),
            (!(1..=32).contains(&of.limits.max_recvs), format!("maxRecvs is {}", of.limits.max_recvs)),
            (of.limits.max_comms < 2, format!("maxComms is {}", of.limits.max_comms)),
            (!of.limits.latency.is_finite() || of.limits.latency < 0.0, format!("a latency of {}", of.limits.latency)),
        ];
        if let Some((_, why)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(fail("getProperties", format!("device {device}: {why}")));
        }
    }
    Ok(())
}

/// Loads it, carries a message and unloads it.
fn visit(order: &Order) -> Result<(), End> {
    loaded(order, |bench| {
        bench.with_pair(|bench, pair| bench.exchange(pair, &mut [Message::new(70_000, 70_000, 7)], 1))
    })
}

fn versions(order: &Order) -> Result<(), End> {
    for version in VERSIONS {
        let exported = words(&library(order)?, *version).is_some();
        let of = Order { plugin: order.plugin.clone(), case: String::new(), abi: Some(*version), ..*order };
        if exported {
            visit(&of).map_err(|end| End { why: format!("ncclNetPlugin_v{version}: {}", end.why), ..end })?;
        }
    }
    Ok(())
}

fn unused(order: &Order) -> Result<(), End> {
    for _ in 0..3 {
        drop(library(order)?);
    }
    visit(order)
}

fn reload(order: &Order) -> Result<(), End> {
    (0..3).try_for_each(|_| visit(order))
}

fn contexts(order: &Order) -> Result<(), End> {
    let first = Bench::open(order)?;
    if first.plugin.version() < 11 {
        return Err(skipped("contexts are of version 11 and later"));
    }
    let second = Plugin::load(&order.plugin, order.abi)?;
    let pair = first.pair()?;
    let (_, listener) = second.listen(0)?;
    second.close_listener(listener)?;
    drop(second);
    first.exchange(pair, &mut [Message::new(70_000, 70_000, 7)], 1)?;
    first.close(pair)
}

fn fused(bench: &Bench) -> Result<(), End> {
    let count = bench.plugin.devices()?;
    if count < 2 {
        return Err(skipped("there is one device alone"));
    }
    let members = [bench.plugin.properties(0)?, bench.plugin.properties(1)?];
    // As a user requests it: NCCL by itself takes the ports of a PCI card.
    // SAFETY: the other thread of this process sleeps until the limit.
    unsafe { std::env::set_var("NCCL_NET_FORCE_MERGE", members.each_ref().map(|of| of.name.clone()).join(",")) };
    let mut made = Vec::new();
    for (list, expected) in [[0, 1], [1, 0]].iter().zip(count..) {
        let device = match bench.plugin.fuse(list) {
            None => return Err(skipped("there is no makeVDevice")),
            Some(device) => device.map_err(|error| refusal(error, "of devices 0 and 1"))?,
        };
        let now = bench.plugin.devices()?;
        if (device, now) != (expected, expected + 1) {
            return Err(fail(
                "makeVDevice",
                format!("device {device} of {now}, expected {expected} of {}", expected + 1),
            ));
        }
        let of = bench.plugin.properties(device)?;
        let has_all = of.members.len() == 2 && list.iter().all(|member| of.members.contains(member));
        let least = members.iter().map(|of| of.limits.speed).max().unwrap_or(0);
        if !has_all || of.limits.speed < least || of.name.is_empty() {
            let found = format!("`{}` of devices {:?} with {} Mbit/s", of.name, of.members, of.limits.speed);
            return Err(fail("getProperties", format!("device {device} is {found}")));
        }
        made.push(device);
    }
    for ends in [[made[0], made[1]], [made[1], made[0]]] {
        let pair = bench.pair_of(ends)?;
        let mut messages: Vec<Message> = (0..20).map(|at| Message::new(200_000 + at, 1 << 18, 7)).collect();
        bench.exchange(pair, &mut messages, 8)?;
        bench.close(pair)?;
    }
    for list in [&[][..], &[0, made[1] + 70]] {
        if let Some(Ok(device)) = bench.plugin.fuse(list) {
            return Err(fail("makeVDevice", format!("device {device} of devices {list:?}")));
        }
    }
    Ok(())
}

fn fork(bench: &Bench) -> Result<(), End> {
    let pair = bench.pair()?;
    // SAFETY: the child only ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: with the destructors of all libraries, as programs end.
        unsafe { libc::exit(0) };
    }
    let (began, mut status): (_, c_int) = (Instant::now(), 0);
    // SAFETY: it waits for the child.
    while child > 0 && unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if began.elapsed() > Duration::from_secs(5) {
            // SAFETY: it is our child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return Err(fail("fork", "the child does not end within 5 s"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if child < 0 || status != 0 {
        return Err(fail("fork", format!("the child ended with status {status}")));
    }
    bench.exchange(pair, &mut [Message::new(70_000, 70_000, 7)], 1)?;
    bench.close(pair)
}
