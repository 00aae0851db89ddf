//! Labels that share a path to a rank (`wire.find_labels = "paths"`), traced before that rank is called.

#[cfg(not(target_os = "linux"))]
use crate::{abi::Code, node::Failure};
use anabranch_wire::Label;
#[cfg(target_os = "linux")]
pub(crate) use linux::Tracer;

/// Groups of labels, each a path; no groups: every label is a path.
pub(crate) type Paths = Vec<Vec<Label>>;

#[cfg(target_os = "linux")]
mod linux {
    use super::Paths;
    use crate::{
        abi::Code,
        log::{self, Level},
        node::Failure,
    };
    use anabranch_wire::{
        FindLabels,
        paths::{self, Groups, PathError, Trace},
    };
    use std::{
        collections::BTreeMap,
        net::{IpAddr, SocketAddr, SocketAddrV4},
        time::{Duration, Instant},
    };

    /// Maximum duration of the trace of the labels towards a rank.
    const MAX_DURATION: Duration = Duration::from_secs(5);
    /// Results that are older belong to an attempt that was dropped.
    const MAX_AGE: Duration = Duration::from_secs(60);

    /// Traces of a device, one at a time: all share its sockets.
    #[derive(Debug, Default)]
    pub(crate) struct Tracer {
        running: Option<Running>,
        found: BTreeMap<SocketAddr, (Instant, Paths)>,
    }

    #[derive(Debug)]
    struct Running {
        to: SocketAddr,
        labels: usize,
        trace: Trace,
    }

    fn failure(error: PathError) -> Failure {
        let code = if matches!(error, PathError::Input(_)) { Code::Usage } else { Code::System };
        Failure::new(code, format!("[wire]: {}", FindLabels::refusal(error)))
    }

    fn note(to: SocketAddr, groups: &Groups, labels: usize) {
        let level = if groups.paths.is_empty() || !groups.unknown.is_empty() { Level::Warn } else { Level::Info };
        log::say(level, &format!("the rank at {to}: {}", paths::describe(groups, labels, &to.ip().to_string())));
    }

    impl Tracer {
        /// Continues the trace of `labels` labels from the address `from` to a rank, which `begin` prepares; never waits.
        /// Returns the paths at its end. Fails if paths cannot be traced there.
        pub(crate) fn poll(
            &mut self,
            (from, to): (IpAddr, SocketAddr),
            labels: usize,
            begin: impl FnOnce(SocketAddrV4) -> Result<Trace, PathError>,
        ) -> Result<Option<Paths>, Failure> {
            self.go_on();
            self.found.retain(|_, (since, _)| since.elapsed() < MAX_AGE);
            if let Some((_, paths)) = self.found.remove(&to) {
                return Ok(Some(paths));
            }
            let at = paths::check_network(to.ip()).and_then(|()| paths::address(to)).map_err(failure)?;
            if from == to.ip() {
                // What stays in this machine passes no switch.
                note(to, &Groups::default(), labels);
                return Ok(Some(Paths::new()));
            }
            if self.running.is_none() {
                let mut trace = begin(at).map_err(failure)?;
                trace.end_after(MAX_DURATION);
                self.running = Some(Running { to, labels, trace });
                self.go_on();
            }
            Ok(None)
        }

        /// A trace that fails meanwhile has found nothing, whichever rank it is for.
        fn go_on(&mut self) {
            let Some(Running { to, labels, trace }) = &mut self.running else { return };
            let groups = match trace.poll() {
                Ok(None) => return,
                Ok(Some(traced)) => paths::groups(&traced),
                Err(error) => {
                    log::say(Level::Warn, &format!("the rank at {to}: tracing its paths failed: {error}"));
                    Groups::default()
                }
            };
            note(*to, &groups, *labels);
            self.found.insert(*to, (Instant::now(), groups.paths));
            self.running = None;
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::net::{Ipv4Addr, UdpSocket};

        /// A trace of one label whose packets stay on loopback, where a listening port replies with nothing.
        fn unanswered(to: &UdpSocket) -> Result<Trace, PathError> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = to.local_addr().unwrap().port();
            Trace::new(Ipv4Addr::LOCALHOST, vec![socket], vec![port], 2, Duration::from_millis(5))
        }

        #[test]
        fn unanswered_traces_follow_each_other_and_leave_every_label() {
            let to = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let (from, ranks) =
                (IpAddr::from([10, 0, 0, 1]), [2, 3].map(|host| SocketAddr::from(([10, 0, 0, host], 7000))));
            let mut tracer = Tracer::default();
            let began = Instant::now();
            let mut found = [None, None];
            // As NCCL polls several connections in turn.
            while found.iter().any(Option::is_none) && began.elapsed() < Duration::from_secs(20) {
                for (rank, found) in ranks.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                    *found = tracer.poll((from, *rank), 1, |_| unanswered(&to)).unwrap();
                }
            }
            assert_eq!(found, [Some(Paths::new()), Some(Paths::new())]);
            // Two traces, each of two hops with three probes of 5 ms.
            assert!(began.elapsed() >= Duration::from_millis(60), "{:?}", began.elapsed());
        }

        #[test]
        fn what_cannot_be_traced_is_refused_by_the_key() {
            let refused = |to: &str| {
                let to = to.parse().unwrap();
                let none = |_| -> Result<Trace, PathError> { panic!("nothing is to be traced") };
                Tracer::default().poll((IpAddr::from([10, 0, 0, 1]), to), 4, none)
            };
            for (to, reason) in [("127.0.0.1:7000", "is this machine"), ("[2001:db8::1]:7000", "IPv6")] {
                let failure = refused(to).unwrap_err();
                assert_eq!(failure.code, Code::Usage);
                for word in ["[wire]: find_labels: found \"paths\"", reason, "expected \"all\""] {
                    assert!(failure.message.contains(word), "{failure}");
                }
            }
            assert_eq!(
                refused("10.0.0.1:7000").unwrap(),
                Some(Paths::new()),
                "an address of this machine has no switches"
            );
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn unsupported() -> Failure {
    Failure::new(Code::Usage, format!("[wire]: {}", anabranch_wire::FindLabels::UNSUPPORTED))
}
