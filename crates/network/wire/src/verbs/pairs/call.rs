//! Non-blocking connection setup to a peer over TCP.

use super::own::Own;
use crate::{
    WireError,
    verbs::{
        control::{self, Control, Frame, Greeting},
        gid,
    },
};
use socket2::{Domain, Socket, Type};
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

pub(super) struct Call {
    pub(super) at: SocketAddr,
    since: Instant,
    stage: Stage,
}

enum Stage {
    Connecting(TcpStream),
    Greeting(Control),
}

pub(super) enum Step {
    Waits(Call),
    Welcomed(Control, Greeting),
}

fn no_reply(at: SocketAddr, source: io::Error) -> WireError {
    WireError::NoReply { at, source }
}

impl Call {
    pub(super) fn begin(at: SocketAddr, from: Option<IpAddr>) -> Result<Self, WireError> {
        let begun = || {
            let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            if let Some(from) = from.filter(|from| !from.is_unspecified()) {
                socket.bind(&SocketAddr::new(from, 0).into())?;
            }
            match socket.connect(&at.into()) {
                Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(error),
                _ => Ok(TcpStream::from(socket)),
            }
        };
        let stream = begun().map_err(|source| no_reply(at, source))?;
        Ok(Call { at, since: Instant::now(), stage: Stage::Connecting(stream) })
    }

    /// Proceeds without blocking.
    pub(super) fn advance(self, own: &Own) -> Result<Step, WireError> {
        let Call { at, since, stage } = self;
        let is_late = since.elapsed() >= own.settings.peer_timeout;
        let waits = |stage| Ok(Step::Waits(Call { at, since, stage }));
        let mut control = match stage {
            Stage::Greeting(control) => control,
            Stage::Connecting(stream) => {
                if let Some(error) = stream.take_error().unwrap_or_else(Some) {
                    return Err(no_reply(at, error));
                }
                match stream.peer_addr() {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotConnected && !is_late => {
                        return waits(Stage::Connecting(stream));
                    }
                    Err(_) => return Err(no_reply(at, io::ErrorKind::TimedOut.into())),
                }
                let mut control = Control::new(stream).map_err(|error| no_reply(at, error))?;
                let index = gid::choose(&own.name, own.settings.gid_index, control.local().map(|at| at.ip()))?;
                control.post(&Frame::Hello(own.greeting(index)?))?;
                control
            }
        };
        control.flush()?;
        match control.poll()? {
            Some(Frame::Welcome(theirs)) if own.fits(&theirs) => Ok(Step::Welcomed(control, theirs)),
            Some(Frame::Welcome(Greeting { labels, largest, .. })) => {
                Err(WireError::Verbs(format!("{at} has {labels} labels and datagrams of {largest} B")))
            }
            Some(Frame::Refused) => Err(control::refused(at)),
            Some(_) => Err(control::unknown(at)),
            None if is_late => Err(control::no_reply(at)),
            None => waits(Stage::Greeting(control)),
        }
    }

    /// Returns the socket to wait for, and `true` while it is still connecting.
    pub(super) fn fd(&self) -> (BorrowedFd<'_>, bool) {
        match &self.stage {
            Stage::Connecting(stream) => (stream.as_fd(), true),
            Stage::Greeting(control) => (control.fd(), false),
        }
    }
}
