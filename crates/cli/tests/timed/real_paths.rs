//! Networks that do not pass what is sent: an MTU that shrinks while a transfer or a collective runs, errors of the kernel,
//! addresses without a reply.

use crate::{
    apart::apart,
    common::{Folder, assert_contains, code, json, stderr, stdout},
};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Hosts `a` and `b` at a router `r`, whose ICMP errors are dropped.
const NETWORK: &str = "
    for n in a b r; do ip netns add $n; ip -n $n link set lo up; done
    for n in a b; do
        ip link add eth0 netns $n type veth peer name to$n netns r
        ip -n $n link set eth0 up; ip -n r link set to$n up
    done
    ip -n a address add 10.7.1.2/24 dev eth0; ip -n r address add 10.7.1.1/24 dev toa
    ip -n b address add 10.7.2.2/24 dev eth0; ip -n r address add 10.7.2.1/24 dev tob
    ip -n a route add default via 10.7.1.1; ip -n b route add default via 10.7.2.1
    ip netns exec r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    ip -n r rule add pref 10 iif lo to 10.7.1.2 blackhole
";

fn shell(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", stderr(&output));
}

fn within(folder: &Folder, namespace: &str, words: &[&str]) -> Child {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_anabranch")]).args(words);
    command.current_dir(&folder.0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends 20 MB (3.2 s) from `a` to `b`; after a second the router's link to `b` gets `mtu`. Returns the outputs of sender and
/// receiver, and the time until the sender's end.
fn transfer(folder: &Folder, mtu: u32) -> (Output, Output, Duration) {
    let set = ["--set", "wire.give_up=3s", "--set", "wire.rate=50Mbps", "--format", "json"];
    let mut server = within(folder, "b", &[&["serve", "--at", "10.7.2.2:7000", "--once"], &set[..]].concat());
    let mut log = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let began = Instant::now();
    let sender = within(folder, "a", &[&["send", "--to", "10.7.2.2:7000", "--bytes", "20MB"], &set[..]].concat());
    thread::sleep(Duration::from_secs(1));
    shell(&format!("ip -n r link set tob mtu {mtu}"));
    let sent = sender.wait_with_output().unwrap();
    let took = began.elapsed();
    if code(&sent) != 0 {
        thread::sleep(Duration::from_millis(500));
        server.kill().unwrap();
    }
    let mut served = server.wait_with_output().unwrap();
    log.read_to_end(&mut served.stderr).unwrap();
    shell("ip -n r link set tob mtu 1500");
    (sent, served, took)
}

#[test]
fn shrinking_mtu_is_survived_or_named() {
    apart("real_paths::shrinking_mtu_is_survived_or_named", || {
        shell(NETWORK);
        let folder = Folder::new("path-mtu");
        // Packets of 1344 B with a header of 64 B, 28 B of IPv4 and UDP: halves pass 1000 B.
        let (sent, served, took) = transfer(&folder, 1000);
        assert_eq!((code(&sent), code(&served)), (0, 0), "{}{}", stderr(&sent), stderr(&served));
        assert_eq!(json(&sent)["fragmented"], serde_json::json!({ "passes": 64 + 672, "fails": 64 + 1344 }));
        assert!(stderr(&sent).contains("fragments") && stderr(&sent).contains("1436 B"), "{}", stderr(&sent));
        assert!(took < Duration::from_secs(8), "{took:?}");
        // Sixteenths do not pass 150 B, and probes and acknowledgements do.
        let (sent, served, took) = transfer(&folder, 150);
        assert_eq!((code(&sent), stdout(&sent)), (2, String::new()), "{}", stderr(&sent));
        for (output, words) in
            [(&sent, "10.7.2.2:7000 is connected but acknowledges no data"), (&served, "lost: 10.7.1.2:")]
        {
            assert_contains(&stderr(output), &[words, "datagrams of 28 B", "148 B", "large packets"]);
        }
        assert!(took < Duration::from_secs(6), "a second, the timeout and its last retransmission: {took:?}");
        // A path that never passed full packets.
        shell("ip -n r link set tob mtu 1000");
        let mut server = within(&folder, "b", &["serve", "--at", "10.7.2.2:7000", "--once"]);
        let sent = within(&folder, "a", &["send", "--to", "10.7.2.2:7000", "--bytes", "1MB", "--format", "json"]);
        let sent = sent.wait_with_output().unwrap();
        assert_eq!(code(&sent), 0, "{}", stderr(&sent));
        assert_eq!(json(&sent)["fragmented"]["passes"], 64 + 672);
        assert!(server.wait().unwrap().success());
    });
}

/// The path back is cut in mid-transfer: `give_up` of the sender passes, and its BYE reaches `serve`.
#[test]
fn sender_that_gives_up_says_bye() {
    apart("real_paths::sender_that_gives_up_says_bye", || {
        shell(NETWORK);
        let folder = Folder::new("path-back");
        let server = within(&folder, "b", &["serve", "--at", "10.7.2.2:7000"]);
        thread::sleep(Duration::from_millis(500));
        let set = ["--set", "wire.give_up=2s", "--set", "wire.rate=100Mbps"];
        let sender = within(&folder, "a", &[&["send", "--to", "10.7.2.2:7000"], &set[..]].concat());
        thread::sleep(Duration::from_secs(1));
        shell("ip -n r rule add pref 5 iif tob blackhole");
        let sent = sender.wait_with_output().unwrap();
        assert!(stderr(&sent).contains("nothing more for 2s (wire.give_up)"), "{}", stderr(&sent));
        thread::sleep(Duration::from_millis(500));
        anabranch_testkit::send_signal(server.id(), "TERM");
        let served = stderr(&server.wait_with_output().unwrap());
        for words in
            ["lost: 10.7.1.2:", "received no acknowledgement", "path back to it drops packets", "were received"]
        {
            assert!(served.contains(words), "no `{words}` in {served}");
        }
    });
}

/// A router that drops by the size of all segments of a datagram (GSO): packets of 1436 B pass one by one, or none do.
#[test]
fn segmented_datagrams_may_be_what_is_dropped() {
    if Command::new("nft").arg("--version").output().is_err() {
        return anabranch_testkit::skip("running nft", "install nftables");
    }
    apart("real_paths::segmented_datagrams_may_be_what_is_dropped", || {
        shell(NETWORK);
        let folder = Folder::new("path-gso");
        let filter = "ip netns exec r nft -f - <<E\nadd table inet x\nadd chain inet x f { type filter hook forward priority 0; }\n";
        for (least, fragments) in [(1_000, true), (1_501, false)] {
            shell(&format!("{filter}flush chain inet x f\nadd rule inet x f meta length {least}-65535 drop\nE"));
            let mut server = within(&folder, "b", &["serve", "--at", "10.7.2.2:7000", "--once"]);
            thread::sleep(Duration::from_millis(300));
            let set = ["--set", "wire.run_length=16", "--set", "wire.give_up=5s"];
            let words = ["send", "--to", "10.7.2.2:7000", "--bytes", "4MiB", "--format", "json"];
            let sent = within(&folder, "a", &[&words[..], &set].concat()).wait_with_output().unwrap();
            if code(&sent) != 0 {
                server.kill().unwrap();
            }
            assert_eq!((code(&sent), server.wait().unwrap().success()), (0, true), "{}", stderr(&sent));
            assert_eq!(json(&sent)["fragmented"].is_null(), !fragments, "{}", stdout(&sent));
            let took = json(&sent)["took_ps"].as_u64().unwrap();
            assert!(took < 2_000_000_000_000, "{took} ps");
        }
    });
}

/// Two ranks over a loopback interface whose MTU shrinks.
#[test]
fn collectives_survive_a_shrinking_mtu_or_end() {
    apart("real_paths::collectives_survive_a_shrinking_mtu_or_end", || {
        let folder = Folder::new("path-mtu-nccl");
        let run = |mtu: u32| {
            shell("ip link set lo up; ip link set lo mtu 65536");
            let began = Instant::now();
            let job = folder
                .command(&["collective", "pairs", "--ranks", "2", "--bytes", "1MiB", "--rounds", "300"])
                .envs([("ANABRANCH_IFNAME", "=lo"), ("ANABRANCH_RATE", "1Gbps"), ("ANABRANCH_GIVE_UP", "3s")])
                .envs([("NCCL_DEBUG", "WARN")])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_secs(1));
            shell(&format!("ip link set lo mtu {mtu}"));
            (job.wait_with_output().unwrap(), began.elapsed())
        };
        let (output, _) = run(1500);
        assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains("are sent in fragments: datagrams of"), "{}", stderr(&output));
        // A sixteenth of 8888 B is 556 B.
        let (output, took) = run(300);
        assert_ne!(code(&output), 0, "{}", stdout(&output));
        let said = format!("{}{}", stdout(&output), stderr(&output));
        // The job ends with its first rank; either names the sizes.
        assert!(
            said.contains("acknowledged no data for 3 s")
                || said.contains("received no acknowledgement from this rank"),
            "{said}"
        );
        assert!(said.contains("datagrams of 28 B have replies and those of 620 B have none"), "{said}");
        assert!(took < Duration::from_secs(8), "{took:?}");
    });
}

#[test]
fn errors_of_the_kernel_reach_the_user() {
    apart("real_paths::errors_of_the_kernel_reach_the_user", || {
        shell(NETWORK);
        let folder = Folder::new("path-errors");
        let send = |to: &str, more: &[&str]| {
            let began = Instant::now();
            let words = [&["send", "--to", to, "--bytes", "1kB"], more].concat();
            (within(&folder, "a", &words).wait_with_output().unwrap(), began.elapsed())
        };
        shell(
            "ip -n a route add unreachable 10.8.0.1; ip -n a route add prohibit 10.8.0.2; ip -n a route add blackhole 10.8.0.3
             ip -n a route add throw 10.8.0.4",
        );
        for (to, words) in [
            ("10.8.0.1:7000", "No route to host"),
            ("10.8.0.2:7000", "Permission denied (os error 13); a route or a firewall"),
            ("10.8.0.3:7000", "Invalid argument (os error 22); a route drops them"),
            ("[2001:db8::1]:7000", "Network is unreachable"),
        ] {
            let (output, took) = send(to, &[]);
            assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{}", stderr(&output));
            assert_contains(&stderr(&output), &["cannot be reached", words, to]);
            // A second, in place of the timeout of ten.
            assert!(took < Duration::from_secs(5), "{to}: {took:?}");
        }
        // Replies of `serve` that the kernel refuses.
        shell("ip -n b route add prohibit 10.7.1.2");
        let mut server = within(&folder, "b", &["serve", "--at", "10.7.2.2:7000"]);
        let (output, _) = send("10.7.2.2:7000", &["--set", "wire.give_up=2s"]);
        assert!(
            stderr(&output).contains("no reply from 10.7.2.2:7000 for 2.00 s (wire.give_up)"),
            "{}",
            stderr(&output)
        );
        let mut said = String::new();
        server.kill().unwrap();
        server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        server.wait().unwrap();
        assert_eq!(said.matches("warning: 10.7.1.2:").count(), 1, "{said}");
        assert!(said.contains("cannot be reached: the kernel refuses datagrams to it: Permission denied"), "{said}");
        shell("ip -n b route del prohibit 10.7.1.2");
        // A name with two addresses, of which the first is unused; glibc sorts the one of the own subnet first.
        let hosts = folder.0.join("hosts");
        std::fs::write(&hosts, "10.7.1.77 there\n10.7.2.2 there\n").unwrap();
        shell(&format!("mount --bind {} /etc/hosts", hosts.display()));
        let mut server = within(&folder, "b", &["serve", "--at", "10.7.2.2:7000", "--once"]);
        let (output, _) = send("there:7000", &[]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(
            stderr(&output).contains("10.7.1.77:7000 for 2.00 s")
                && stderr(&output).contains("next address of there:7000")
        );
        assert!(server.wait().unwrap().success());
        // All addresses that were tried are named.
        std::fs::write(&hosts, "10.7.1.77 there\n10.7.1.78 there\n10.7.1.79 there\n").unwrap();
        let (output, _) = send("there:7000", &["--set", "wire.give_up=500ms"]);
        let last = stderr(&output).lines().find(|line| line.contains("tried before")).unwrap_or_default().to_string();
        for host in [77, 78, 79] {
            assert!(last.contains(&format!("10.7.1.{host}:7000")), "{}", stderr(&output));
        }
        // An address of the link alone.
        shell("ip -n a address add fe80::2/64 dev eth0 nodad; ip -n r address add fe80::1/64 dev toa nodad");
        for (at, from) in
            [("[fe80::1%toa]:7000", &[][..]), ("[::]:7000", &[]), ("[::]:7000", &["--from", "fe80::2%eth0"])]
        {
            let mut server = within(&folder, "r", &["serve", "--at", at, "--once"]);
            thread::sleep(Duration::from_millis(300));
            let (output, _) = send("[fe80::1%eth0]:7000", from);
            if code(&output) != 0 {
                server.kill().unwrap();
            }
            assert_eq!((code(&output), server.wait().unwrap().success()), (0, true), "{at}: {}", stderr(&output));
        }
    });
}
