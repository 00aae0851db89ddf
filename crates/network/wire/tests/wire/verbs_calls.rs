//! Connection setup of unreliable queue pairs does not block and reports failures. Needs a C compiler and Debian's
//! libibverbs-dev.

use crate::fake::with_library;
use anabranch_units::Time;
use anabranch_wire::{
    Datapath, Inbound, Outbound, PeerId, To, WireError,
    verbs::{Dimensions, VerbsPath, VerbsSettings},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// For a non-blocking call, in which queue pairs and their memory may be created.
const AT_ONCE: Duration = Duration::from_millis(100);

fn open(listens: bool, peer_timeout: Duration) -> (VerbsPath, Arc<Mutex<Vec<String>>>) {
    open_for(listens, peer_timeout, 8)
}

fn open_for(listens: bool, peer_timeout: Duration, max_peers: u32) -> (VerbsPath, Arc<Mutex<Vec<String>>>) {
    let settings = VerbsSettings { gid_index: Some(0), peer_timeout, ..VerbsSettings::default() };
    let at: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let dimensions = Dimensions { labels: 4, peers: max_peers, datagram: 1000, probe: 0 };
    let mut path = VerbsPath::open(listens.then_some(at), settings, dimensions, 3).unwrap();
    let messages = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&messages);
    path.on_error(move |reason| sink.lock().unwrap().push(reason.to_string()));
    (path, messages)
}

fn within<T>(most: Duration, what: &str, body: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = body();
    assert!(began.elapsed() < most, "{what} took {:?}", began.elapsed());
    done
}

fn datagram(peer: PeerId, label: u32, payload: &[u8]) -> Outbound<'_> {
    Outbound { to: To::Peer(peer), label, ecn: false, class: 0, head: b"head", payload, write: None }
}

fn receive(path: &mut VerbsPath) -> Vec<(PeerId, u32, Vec<u8>)> {
    let mut all = Vec::new();
    let mut take = |of: Inbound<'_>| all.push((of.peer.unwrap(), of.label, of.bytes.to_vec()));
    within(AT_ONCE, "receive", || path.receive(64, &mut take)).unwrap();
    all
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn both_endpoints_connect_without_blocking() {
    with_library("verbs_calls::both_endpoints_connect_without_blocking", "", || {
        let peer_timeout = Duration::from_secs(10);
        let ((mut one, _), (mut other, _)) = (open(true, peer_timeout), open(true, peer_timeout));
        let peer = within(AT_ONCE, "peer", || one.peer(other.at().unwrap(), &[])).unwrap();
        // A blocking call would never return.
        let (began, mut sent) = (Instant::now(), 0);
        let arrived = loop {
            assert!(began.elapsed() < Duration::from_secs(5));
            sent += within(AT_ONCE, "send", || one.send(&[datagram(peer, 2, b"payload")])).unwrap();
            assert_eq!(receive(&mut one), []);
            let arrived = receive(&mut other);
            if !arrived.is_empty() {
                break arrived;
            }
        };
        // Datagrams sent before the connection are lost.
        assert!(one.refused() > 0 && one.refused() < sent as u64, "{} of {sent}", one.refused());
        let (back, label, bytes) = arrived[0].clone();
        assert_eq!((label, &bytes[..]), (2, &b"headpayload"[..]));
        assert_eq!(one.peer(other.at().unwrap(), &[]).unwrap(), peer, "the same peer");
        assert_eq!(other.send(&[datagram(back, 3, b"answer")]).unwrap(), 1);
        let answer = loop {
            assert!(began.elapsed() < Duration::from_secs(5));
            if let Some(answer) = receive(&mut one).pop() {
                break answer;
            }
        };
        assert_eq!(answer, (peer, 3, b"headanswer".to_vec()));
        within(AT_ONCE, "release", || one.release(peer));
        assert_eq!(one.peer_at(peer), None);
        let again = within(AT_ONCE, "peer", || one.peer(other.at().unwrap(), &[])).unwrap();
        assert_eq!(again, peer);
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn unresponsive_peer_delays_no_others() {
    with_library("verbs_calls::unresponsive_peer_delays_no_others", "", || {
        let peer_timeout = Duration::from_millis(700);
        // One listener accepts the connection and is silent; the backlog of the other is full.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let full_at = full.local_addr().unwrap().as_socket().unwrap();
        let _before = TcpStream::connect(full_at).unwrap();
        for (at, reason) in [(silent.local_addr().unwrap(), "did not reply"), (full_at, "no reply from")] {
            let (mut path, messages) = open(true, peer_timeout);
            let began = Instant::now();
            let peer = within(AT_ONCE, "peer", || path.peer(at, &[])).unwrap();
            while began.elapsed() < 2 * peer_timeout {
                assert_eq!(within(AT_ONCE, "send", || path.send(&[datagram(peer, 0, b"x")])).unwrap(), 1);
                assert_eq!(receive(&mut path), []);
                let until = path.now() + Time::from_ms(5);
                within(AT_ONCE, "wait", || path.wait(until)).unwrap();
                let message = messages.lock().unwrap().clone();
                assert!(message.is_empty() || began.elapsed() >= peer_timeout, "{message:?}");
            }
            let message = messages.lock().unwrap().clone();
            assert_eq!(message.len(), 1, "told once: {message:?}");
            assert!(message[0].contains(reason) && message[0].contains(&at.to_string()), "{message:?}");
            assert_eq!(path.peer_at(peer), Some(at), "its owner forgets it");
            path.release(peer);
            assert_eq!(path.peer_at(peer), None);
        }
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn reach_reports_unreachable_peers() {
    with_library("verbs_calls::reach_reports_unreachable_peers", "", || {
        let (mut path, _) = open(false, Duration::from_millis(700));
        let unreachable = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let error = within(AT_ONCE, "reach", || path.reach(unreachable)).unwrap_err();
        assert!(matches!(error, WireError::NoReply { at, .. } if at == unreachable), "{error}");
        // The listeners reply with a refusal, another version's welcome, and another protocol.
        let mut welcome = vec![2];
        welcome.extend(b"ABCV\x00\x02");
        welcome.extend([0; 33]);
        let cases: [(&[u8], &str); 3] = [
            (&[8], "refused the connection"),
            (&welcome, "unknown control message"),
            (b"HTTP/1.1 400", "unknown control message"),
        ];
        for (says, word) in cases {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            let says = says.to_vec();
            let other = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut hello = [0; 40];
                stream.read_exact(&mut hello).unwrap();
                stream.write_all(&says).unwrap();
                // Until the caller has disconnected.
                let _ = stream.read(&mut hello);
            });
            let error = path.reach(at).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(&at.to_string()), "{error}");
            other.join().unwrap();
        }
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = path.reach(silent.local_addr().unwrap()).unwrap_err().to_string();
        assert!(error.contains("did not reply"), "{error}");
        let (mut other, _) = open(true, Duration::from_secs(5));
        let at = other.at().unwrap();
        let serves = thread::spawn(move || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(2) {
                other.wait(other.now() + Time::from_ms(10)).unwrap();
            }
        });
        assert_eq!(path.reach(at).unwrap(), 0, "the first number again");
        serves.join().unwrap();
    });
}

/// More callers than may be pending at once, some of which are silent.
#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn idle_connections_delay_no_callers() {
    with_library("verbs_calls::idle_connections_delay_no_callers", "", || {
        let (mut path, _) = open(true, Duration::from_secs(20));
        let at = path.at().unwrap();
        let _strangers: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(at).unwrap()).collect();
        let (mut caller, _) = open(false, Duration::from_secs(20));
        let (began, peer) = (Instant::now(), caller.peer(at, &[]).unwrap());
        while receive(&mut path).is_empty() {
            // Silent callers give way after a second.
            assert!(began.elapsed() < Duration::from_secs(5));
            caller.send(&[datagram(peer, 0, b"x")]).unwrap();
            receive(&mut caller);
            thread::sleep(Duration::from_millis(1));
        }
        // Eight peers at most in total: the ninth is refused.
        let mut callers: Vec<_> = (0..8).map(|_| open(false, Duration::from_secs(20))).collect();
        let began = Instant::now();
        for (caller, _) in &mut callers {
            caller.peer(at, &[]).unwrap();
        }
        let refused = loop {
            assert!(began.elapsed() < Duration::from_secs(5));
            receive(&mut path);
            callers.iter_mut().for_each(|(caller, _)| drop(receive(caller)));
            let messages: Vec<String> =
                callers.iter().flat_map(|(_, messages)| messages.lock().unwrap().clone()).collect();
            if !messages.is_empty() {
                break messages;
            }
        };
        assert!(refused.len() == 1 && refused[0].contains("refused the connection"), "{refused:?}");
    });
}

/// With its reported errors, and its peer.
type Caller = (VerbsPath, Arc<Mutex<Vec<String>>>, PeerId);

/// Callers that send nothing take local memory, so one address may have 32 of them; one that sends no longer counts.
#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn unproven_callers_per_address_are_limited() {
    with_library("verbs_calls::unproven_callers_per_address_are_limited", "", || {
        let patience = Duration::from_secs(20);
        let (mut path, messages) = open_for(true, patience, 100);
        let at = path.at().unwrap();
        let call = || {
            let (mut caller, messages) = open(false, patience);
            let peer = caller.peer(at, &[]).unwrap();
            (caller, messages, peer)
        };
        let mut callers: Vec<_> = (0..32).map(|_| call()).collect();
        let began = Instant::now();
        let attend = |path: &mut VerbsPath, callers: &mut Vec<Caller>, time: u64| {
            let until = Instant::now() + Duration::from_millis(time);
            let mut arrived = 0;
            while Instant::now() < until {
                arrived += receive(path).len();
                callers.iter_mut().for_each(|(caller, ..)| drop(receive(caller)));
            }
            arrived
        };
        attend(&mut path, &mut callers, 2000);
        assert_eq!(*messages.lock().unwrap(), [] as [&str; 0], "32 may");
        callers.push(call());
        while messages.lock().unwrap().is_empty() || callers[32].1.lock().unwrap().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(15));
            attend(&mut path, &mut callers, 20);
        }
        assert!(messages.lock().unwrap()[0].contains("has 32 connections that have sent nothing"));
        assert!(callers[32].1.lock().unwrap()[0].contains("refused the connection"));
        let mut arrived = 0;
        while arrived == 0 {
            assert!(began.elapsed() < Duration::from_secs(15));
            let (caller, _, peer) = &mut callers[0];
            caller.send(&[datagram(*peer, 0, b"x")]).unwrap();
            arrived = attend(&mut path, &mut callers, 20);
        }
        callers.push(call());
        attend(&mut path, &mut callers, 2000);
        assert_eq!((messages.lock().unwrap().len(), callers[33].1.lock().unwrap().len()), (1, 0));
    });
}
