//! Packet delays by a forwarder in user space, since not every kernel has netem.
//!
//! The program at the receiving port of a link redirects packets to a TAP interface beside the port. The forwarder reads them
//! there, holds them and writes them back. The program at that interface passes them to the port, as if they had just arrived.

use crate::{
    TestbedError, link_program,
    net::enter,
    programs::{json, run},
};
use anabranch_units::Time;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    io::Errno,
    time::Timespec,
};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

const FRAME: usize = 1 << 16;
/// Maximum number of bytes held; packets beyond it are dropped.
const MAX_WAITING: usize = 512 << 20;
/// Packets that may wait for the forwarder to be scheduled.
const QUEUE: &str = "10000";

/// Returns the interface that delays a port's packets, by the sending node's number: names may be too long for a prefix.
pub(crate) fn interface(from: usize) -> String {
    format!("delay{from}")
}

/// Delay and jitter of a link, which may change while packets pass.
#[derive(Debug, Default)]
pub(crate) struct Times([AtomicU64; 2]);

impl Times {
    pub(crate) fn new(times: [Time; 2]) -> Self {
        let own = Times::default();
        own.set(times);
        own
    }

    pub(crate) fn set(&self, times: [Time; 2]) {
        self.0.iter().zip(times).for_each(|(own, time)| own.store(time.ps() / 1000, Ordering::Relaxed));
    }

    fn get(&self) -> [Duration; 2] {
        [0, 1].map(|n| Duration::from_nanos(self.0[n].load(Ordering::Relaxed)))
    }
}

#[derive(Debug)]
pub(crate) struct Delay {
    tap: OwnedFd,
    times: Arc<Times>,
    pub(crate) index: u32,
}

impl Delay {
    /// Creates the interface `name` beside `port` of `namespace`, from which packets return to the port; nothing is
    /// redirected yet. The calling thread enters the namespace. On an error nothing is left behind.
    pub(crate) fn open(namespace: &str, port: &str, name: &str, times: Arc<Times>) -> Result<Self, TestbedError> {
        enter(namespace)?;
        let tap = open_tap(name).map_err(|error| TestbedError::system("opening /dev/net/tun", error))?;
        let up = format!("link set {name} txqueuelen {QUEUE} mtu 65000 up\n");
        run("ip", &["-n", namespace, "-batch", "-"], &up)?;
        let (index, other) = (index(namespace, name)?, index(namespace, port)?);
        link_program::change(namespace, name, |chances| chances.back = other)?;
        Ok(Delay { tap, times, index })
    }

    /// Holds packets for the delay until the interface is removed.
    pub(crate) fn run(self) {
        // The result has no receiver: with the interface the detour has ended.
        let _ = self.forward();
    }

    fn forward(&self) -> io::Result<()> {
        let mut waiting: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>> = BinaryHeap::new();
        let (mut bytes, mut number) = (0, 0u64);
        let (mut frame, mut word) = (vec![0; FRAME], 0x9e37_79b9_7f4a_7c15u64);
        loop {
            let now = Instant::now();
            while let Some(Reverse((due, _, _))) = waiting.peek()
                && *due <= now
            {
                let Some(Reverse((_, _, frame))) = waiting.pop() else { break };
                bytes -= frame.len();
                match rustix::io::write(&self.tap, &frame) {
                    Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INVAL) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let timeout = waiting.peek().map(|Reverse((due, _, _))| due.saturating_duration_since(Instant::now()));
            let timeout =
                timeout.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) });
            let mut fds = [PollFd::new(&self.tap, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
                return Ok(());
            }
            loop {
                match rustix::io::read(&self.tap, &mut frame[..]) {
                    Ok(length) if bytes + length <= MAX_WAITING => {
                        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let [delay, jitter] = self.times.get();
                        // Uniform from 0 to twice the jitter.
                        let spread = (u128::from(word >> 32) * (2 * jitter.as_nanos() + 1)) >> 32;
                        let due = Instant::now() + delay + Duration::from_nanos(spread as u64) - jitter;
                        waiting.push(Reverse((due, number, frame[..length].to_vec())));
                        (bytes, number) = (bytes + length, number + 1);
                    }
                    Ok(_) => {}
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

/// Ends a delay; packets that wait are lost.
pub(crate) fn end(namespace: &str, port: &str, name: &str) -> Result<(), TestbedError> {
    let before = link_program::change(namespace, port, |chances| chances.detour = 0)?;
    if before.detour != 0 { remove(namespace, name) } else { Ok(()) }
}

/// Removes the interface `name`, which ends any delay there.
pub(crate) fn remove(namespace: &str, name: &str) -> Result<(), TestbedError> {
    run("ip", &["-n", namespace, "link", "del", name], "").map(drop)
}

fn index(namespace: &str, name: &str) -> Result<u32, TestbedError> {
    let links = json("ip", &["-n", namespace, "-j", "link", "show", "dev", name])?;
    let index = links.first().and_then(|link| link["ifindex"].as_u64()).and_then(|index| u32::try_from(index).ok());
    index.ok_or_else(|| TestbedError::Input(format!("{namespace} has no interface {name}")))
}

/// Opens a TAP interface in the namespace of the calling thread. It is removed when the file is closed.
fn open_tap(name: &str) -> io::Result<OwnedFd> {
    let file = rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    crate::tap::set_interface(&file, name)?;
    Ok(file)
}
