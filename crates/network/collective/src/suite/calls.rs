//! Cases of connections: how they open and close, how many there are, who calls them, and what is refused.

use super::{
    bench::{Bench, Message, Pair, until},
    verdict::{Case, End, Run, case, fail, joined, refusal, refused},
};
use crate::plugin::{Piece, PluginError};
use nccl_net_anabranch::abi::HANDLE_BYTES;
use std::time::{Duration, Instant};

pub(super) const CASES: &[Case] = &[
    loaded(
        "quiet-listener",
        "`accept` without a peer has no connection, and `connect` does not wait for `accept`",
        quiet_listener,
    ),
    loaded("close-order", "sender, receiver and listener close in any order", close_order),
    loaded("close-busy", "ends with open requests close, and their memory is free afterwards", close_busy),
    loaded("send-after-close", "a send after the receiver has closed is taken", send_after_close),
    loaded("receive-after-close", "a receive after the sender has closed is never done", receive_after_close),
    loaded("reconnect", "30 connections, one after the other", reconnect),
    loaded("many", "64 connections are open at once", many),
    loaded("threads", "four threads have connections of their own", threads),
    loaded("two-threads", "one thread sends and another one receives over a connection", two_threads),
    loaded("too-many", "a receive of more than maxRecvs buffers is an error", too_many),
    loaded("memory-kind", "memory of a kind that is not in ptrSupport is an error", memory_kind),
    loaded("no-device", "a device that there is not is an error", no_device),
    loaded("foreign-handle", "the handle of another plugin connects to nothing", foreign_handle),
];

const fn loaded(name: &'static str, about: &'static str, run: fn(&Bench) -> Result<(), End>) -> Case {
    case(name, about, Run::Loaded(run))
}

fn quiet_listener(bench: &Bench) -> Result<(), End> {
    let (mut handle, listener) = bench.plugin.listen(0)?;
    for _ in 0..100 {
        if bench.plugin.accept(listener)?.is_some() {
            return Err(fail("accept", "a connection without a peer"));
        }
    }
    let (mut sender, mut receiver) = (None, None);
    for _ in 0..1000 {
        sender = if sender.is_none() { bench.plugin.connect(0, &mut handle)? } else { sender };
    }
    let pair = until("accept", || {
        sender = if sender.is_none() { bench.plugin.connect(0, &mut handle)? } else { sender };
        receiver = if receiver.is_none() { bench.plugin.accept(listener)? } else { receiver };
        Ok(sender.zip(receiver).map(|(sender, receiver)| Pair { sender, receiver }))
    })?;
    bench.exchange(pair, &mut [Message::new(9000, 9000, 7)], 1)?;
    bench.close(pair)?;
    Ok(bench.plugin.close_listener(listener)?)
}

fn close_order(bench: &Bench) -> Result<(), End> {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (handle, listener) = bench.plugin.listen(0)?;
        let pair = bench.connect(handle, listener)?;
        bench.exchange(pair, &mut [Message::new(70_000, 70_000, 7)], 1)?;
        for which in order {
            match which {
                0 => bench.plugin.close_sender(pair.sender)?,
                1 => bench.plugin.close_receiver(pair.receiver)?,
                _ => bench.plugin.close_listener(listener)?,
            }
        }
    }
    Ok(())
}

fn close_busy(bench: &Bench) -> Result<(), End> {
    for is_sender_first in [true, false] {
        let pair = bench.pair()?;
        let mut waits = [Message::new(1 << 20, 1 << 20, 7)];
        let memory = bench.register(pair, &mut waits)?;
        until("irecv", || bench.post(pair, &mut waits, &memory))?;
        // It may be under way as the connection closes.
        bench.send(pair, &mut waits[0], &memory[0])?;
        if is_sender_first {
            bench.plugin.close_sender(pair.sender)?;
            bench.plugin.close_receiver(pair.receiver)?;
        } else {
            bench.plugin.close_receiver(pair.receiver)?;
            bench.plugin.close_sender(pair.sender)?;
        }
        waits[0].from.bytes().fill(0x33);
        waits[0].to.bytes().fill(0x44);
        std::thread::sleep(Duration::from_millis(50));
        if waits[0].to.bytes().iter().any(|byte| *byte != 0x44) {
            return Err(fail("closeRecv", "it writes to a buffer of a closed connection"));
        }
    }
    Ok(())
}

/// The contract does not require a closed peer to take a message: an error is as right as a copy that is never read.
fn send_after_close(bench: &Bench) -> Result<(), End> {
    let pair = bench.pair()?;
    bench.exchange(pair, &mut [Message::new(9000, 9000, 7)], 1)?;
    bench.plugin.close_receiver(pair.receiver)?;
    let mut bytes = vec![1; 100];
    let memory = bench.plugin.register(pair.sender, &mut bytes)?;
    let refusal = |error| refusal(error, "since its receiver has closed");
    let (began, mut request) = (Instant::now(), None);
    while began.elapsed() < Duration::from_secs(2) {
        match request {
            // SAFETY: the bytes outlive this process' use of the plugin.
            None => request = unsafe { bench.plugin.send(pair.sender, &bytes, 7, memory) }.map_err(refusal)?,
            Some(request) if bench.plugin.test_group(request, None).map_err(refusal)? => {
                return Ok(bench.plugin.close_sender(pair.sender)?);
            }
            Some(_) => {}
        }
        std::thread::yield_now();
    }
    std::mem::forget(bytes);
    bench.plugin.close_sender(pair.sender)?;
    Err(match request {
        None => refused("isend", "it waits (a null request), since its receiver has closed"),
        Some(_) => fail("test", "the request is neither done nor an error within 2 s"),
    })
}

fn receive_after_close(bench: &Bench) -> Result<(), End> {
    let pair = bench.pair()?;
    bench.exchange(pair, &mut [Message::new(9000, 9000, 7)], 1)?;
    bench.plugin.close_sender(pair.sender)?;
    let (mut bytes, mut request) = (vec![0; 100], None);
    let memory = bench.plugin.register(pair.receiver, &mut bytes)?;
    let began = Instant::now();
    let result = loop {
        // SAFETY: the bytes outlive the communicator.
        let step = match request {
            None => unsafe { bench.plugin.receive(pair.receiver, &mut bytes, 7, memory) }.map(|new| (new, false)),
            Some(of) => bench.plugin.test_group(of, None).map(|done| (request, done)),
        };
        match step {
            Err(_) => break Ok(()),
            Ok((_, true)) => break Err(fail("test", "a receive is done without a message")),
            Ok((new, false)) => request = new,
        }
        if began.elapsed() > Duration::from_secs(2) {
            break Err(refused("test", "no error within 2 s: the request waits"));
        }
        std::thread::yield_now();
    };
    bench.plugin.close_receiver(pair.receiver)?;
    result
}

fn reconnect(bench: &Bench) -> Result<(), End> {
    for round in 0..30 {
        let pair = bench.pair()?;
        bench.exchange(pair, &mut [Message::new(3000 + round, 4000, 7)], 1)?;
        bench.close(pair)?;
    }
    Ok(())
}

fn many(bench: &Bench) -> Result<(), End> {
    let count = bench.properties.limits.max_comms.clamp(1, 64) as usize;
    let pairs = (0..count).map(|_| bench.pair()).collect::<Result<Vec<_>, End>>()?;
    for (at, pair) in pairs.iter().enumerate() {
        bench.exchange(*pair, &mut [Message::new(9000 + at, 10_000, 7)], 1)?;
    }
    pairs.into_iter().try_for_each(|pair| bench.close(pair))
}

fn threads(bench: &Bench) -> Result<(), End> {
    let work = |thread: usize| {
        for round in 0..3 {
            let pair = bench.pair()?;
            let size = |at: usize| 64 * 1024 + 1000 * thread + at;
            let mut messages: Vec<Message> = (0..30).map(|at| Message::new(size(at), 1 << 17, round)).collect();
            bench.exchange(pair, &mut messages, 8)?;
            bench.close(pair)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| joined(thread.join()))
    })
}

fn two_threads(bench: &Bench) -> Result<(), End> {
    const SIZE: usize = 100_000;
    let pair = bench.pair()?;
    let send = || {
        let mut messages: Vec<Message> = (0..50).map(|tag| Message::new(SIZE, 0, tag)).collect();
        for message in &mut messages {
            let memory = bench.plugin.register(pair.sender, message.from.bytes())?;
            // The other registration is not used.
            let request = until("isend", || bench.send(pair, message, &[memory; 2]))?;
            until("test", || Ok(bench.plugin.test_group(request, None)?.then_some(())))?;
            bench.plugin.deregister(pair.sender, memory)?;
        }
        Ok(())
    };
    let receive = || {
        for tag in 0..50 {
            let mut message = [Message::new(SIZE, SIZE, tag)];
            let memory = bench.plugin.register(pair.receiver, message[0].to.bytes())?;
            let request = until("irecv", || bench.post(pair, &mut message, &[[memory; 2]]))?;
            let size = until("test", || bench.plugin.test(request))?;
            message[0].check(size as i32)?;
            bench.plugin.deregister(pair.receiver, memory)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(send), scope.spawn(receive)];
        threads.into_iter().try_for_each(|thread| joined(thread.join()))
    })?;
    bench.close(pair)
}

fn is_error<T>(entry: &'static str, result: Result<T, PluginError>) -> Result<(), End> {
    match result {
        Ok(_) => Err(fail(entry, "no error")),
        Err(PluginError::Call { code, .. }) if code.starts_with("nccl") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn too_many(bench: &Bench) -> Result<(), End> {
    let pair = bench.pair()?;
    let count = bench.properties.limits.max_recvs.clamp(1, 15) as usize + 1;
    let mut bytes = vec![0; 16];
    let memory = bench.plugin.register(pair.receiver, &mut bytes)?;
    let pieces = vec![Piece { data: bytes.as_mut_ptr(), size: 16, tag: 7, memory }; count];
    // SAFETY: the buffer outlives the communicator.
    is_error("irecv", unsafe { bench.plugin.receive_group(pair.receiver, &pieces, false) })?;
    bench.close(pair)
}

fn memory_kind(bench: &Bench) -> Result<(), End> {
    let pair = bench.pair()?;
    let mut bytes = vec![0; 16];
    for kind in [2, 4].into_iter().filter(|kind| bench.properties.pointers & kind == 0) {
        is_error("regMr", bench.plugin.register_as(pair.sender, &mut bytes, kind))?;
    }
    bench.close(pair)
}

fn no_device(bench: &Bench) -> Result<(), End> {
    let count = bench.plugin.devices()?;
    for device in [count, count + 70, -1] {
        is_error("getProperties", bench.plugin.properties(device))?;
        is_error("listen", bench.plugin.listen(device))?;
    }
    Ok(())
}

fn foreign_handle(bench: &Bench) -> Result<(), End> {
    for byte in [0, 0x5a, 0xff] {
        let mut handle = [byte; HANDLE_BYTES];
        for _ in 0..20 {
            match bench.plugin.connect(0, &mut handle) {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) => return Err(fail("connect", format!("a handle of bytes {byte:#x} connects"))),
                Err(_) => break,
            }
        }
    }
    Ok(())
}
