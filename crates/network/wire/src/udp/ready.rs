use super::MAX_SOCKETS;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{self, Errno},
    time::Timespec,
};
use std::{net::UdpSocket, time::Duration};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readable([u64; MAX_SOCKETS / 64]);

impl Readable {
    fn add(&mut self, socket: usize) {
        self.0[socket / 64] |= 1 << (socket % 64);
    }

    pub(super) fn has(&self, socket: usize) -> bool {
        self.0[socket / 64] >> (socket % 64) & 1 == 1
    }
}

/// The kernel keeps the list of sockets if it can (epoll), so that idle ones cost nothing.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    #[cfg(target_os = "linux")]
    epoll: Option<std::sync::Arc<rustix::fd::OwnedFd>>,
}

impl Waiter {
    pub(super) fn new<'a>(sockets: impl Iterator<Item = &'a UdpSocket>) -> Self {
        #[cfg(target_os = "linux")]
        {
            use rustix::event::epoll;
            let listed = || {
                let list = epoll::create(epoll::CreateFlags::CLOEXEC)?;
                for (at, socket) in sockets.enumerate() {
                    epoll::add(&list, socket, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
                }
                Ok::<_, Errno>(list)
            };
            Waiter { epoll: listed().ok().map(std::sync::Arc::new) }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = sockets;
            Waiter {}
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn list(&self) -> Option<std::sync::Arc<rustix::fd::OwnedFd>> {
        self.epoll.clone()
    }

    pub(super) fn wait<'a>(
        &mut self,
        sockets: impl Iterator<Item = &'a UdpSocket>,
        timeout: Duration,
    ) -> io::Result<Readable> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        #[cfg(target_os = "linux")]
        if let Some(list) = &self.epoll {
            match listed(list, &timeout) {
                // Linux before 5.11 has no timeouts below a millisecond here.
                Err(Errno::NOSYS) => self.epoll = None,
                done => return done,
            }
        }
        polled(sockets, &timeout)
    }
}

#[cfg(target_os = "linux")]
fn listed(list: &rustix::fd::OwnedFd, timeout: &Timespec) -> io::Result<Readable> {
    use rustix::event::epoll;
    let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 32];
    let mut readable = Readable::default();
    match epoll::wait(list, &mut events[..], Some(timeout)) {
        Ok((events, _)) => events.iter().for_each(|event| readable.add(event.data.u64() as usize)),
        Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    Ok(readable)
}

fn polled<'a>(sockets: impl Iterator<Item = &'a UdpSocket>, timeout: &Timespec) -> io::Result<Readable> {
    let mut readable = Readable::default();
    let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    match poll(&mut fds, Some(timeout)) {
        Ok(_) => {
            let ready = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::IN);
            fds.iter().enumerate().filter(|(_, fd)| ready(fd)).for_each(|(at, _)| readable.add(at));
        }
        Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    Ok(readable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Epoll and poll both report the socket with data, and return when the timeout expires.
    #[test]
    fn readable_sockets_are_reported() {
        let sockets: Vec<UdpSocket> = (0..20).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let waiters = [Waiter::new(sockets.iter()), Waiter::default()];
        for mut waiter in waiters {
            let none = waiter.wait(sockets.iter(), Duration::from_micros(300)).unwrap();
            assert!((0..20).all(|at| !none.has(at)));
            sockets[0].send_to(b"x", sockets[17].local_addr().unwrap()).unwrap();
            let one = waiter.wait(sockets.iter(), Duration::from_secs(5)).unwrap();
            assert!((0..20).all(|at| one.has(at) == (at == 17)));
            sockets[17].recv(&mut [0; 8]).unwrap();
        }
    }
}
