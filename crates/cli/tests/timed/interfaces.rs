//! Two interfaces of a host in one subnet: packets leave by the interface of their source address.

use crate::{
    apart::apart,
    common::{Folder, code, json, stderr},
};
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Command, Output, Stdio},
};

/// Host `a` has two interfaces in the subnet of host `b`, whose cables share a bridge. `arp_ignore` lets an interface
/// reply for its own address only, so packets to an address arrive on its interface.
const NETWORK: &str = "
    ip netns add a; ip netns add b; ip -n b link add name bridge0 type bridge
    for i in 0 1; do
        ip link add eth$i netns a type veth peer name p$i netns b
        ip -n b link set p$i master bridge0 up
        ip -n a link set eth$i up
        ip -n a address add 10.9.0.$((i + 1))/24 dev eth$i
        ip -n a address add fd00:9::$((i + 1))/64 dev eth$i nodad
    done
    ip -n b link set bridge0 up; ip -n b address add 10.9.0.9/24 dev bridge0; ip -n b address add fd00:9::9/64 dev bridge0 nodad
    ip netns exec a sh -c 'cd /proc/sys/net/ipv4/conf; echo 1 >all/arp_ignore; echo 2 >all/arp_announce; echo 0 >all/rp_filter'
";

/// Our longest header: with it and IPv6's, packets of the default size must fit the interfaces' 1500 B.
const WIRE: [&str; 4] = ["--set", "wire.key=key", "--set", "wire.authenticate=all"];

/// A folder with the key of [`WIRE`].
fn keyed(name: &str) -> Folder {
    let folder = Folder::new(name);
    let key = folder.0.join("key");
    fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    folder
}

fn sent() -> [u64; 2] {
    ["eth0", "eth1"].map(|name| {
        let output = Command::new("ip").args(["-n", "a", "-s", "-j", "link", "show", "dev", name]).output().unwrap();
        let message: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        message[0]["stats64"]["tx"]["bytes"].as_u64().unwrap()
    })
}

/// Transfers 5 MB from one namespace to another; returns the bytes sent on each interface of `a`.
fn transfer(folder: &Folder, receiver: &str, to: &str, sender: &str, more: &[&str]) -> [u64; 2] {
    let before = sent();
    serve_and_send(folder, (receiver, to), (sender, to), more);
    let after = sent();
    [after[0] - before[0], after[1] - before[1]]
}

/// Transfers 5 MB to a namespace that serves at an address.
fn serve_and_send(folder: &Folder, (receiver, at): (&str, &str), (sender, to): (&str, &str), more: &[&str]) -> Output {
    let within = |namespace: &str, words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_anabranch")]).args(words);
        command.current_dir(&folder.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut server = within(receiver, &[&["serve", "--at", at, "--once"], &WIRE[..]].concat()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening at "), "{line}");
    let words = [&["send", "--to", to, "--bytes", "5MB", "--format", "json"], &WIRE[..], more].concat();
    let output = within(sender, &words).output().unwrap();
    if code(&output) != 0 {
        // It would wait forever.
        server.kill().unwrap();
    }
    let served = server.wait_with_output().unwrap();
    assert_eq!((code(&output), code(&served)), (0, 0), "{}{}", stderr(&output), stderr(&served));
    assert_eq!(json(&output)["bytes"].as_u64(), Some(5_000_000));
    output
}

#[test]
fn address_selects_interface() {
    apart("interfaces::address_selects_interface", addresses);
}

fn addresses() {
    let built = Command::new("sh").args(["-ec", NETWORK]).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    let folder = keyed("interfaces");
    // Neighbour discovery may use the other interface too.
    const LITTLE: u64 = 20_000;
    for (from, interface) in [("10.9.0.1", 0), ("10.9.0.2", 1)] {
        let sent = transfer(&folder, "b", "10.9.0.9:7000", "a", &["--from", from]);
        assert!(sent[interface] > 5_000_000 && sent[1 - interface] < LITTLE, "from {from}: {sent:?}");
    }
    for (from, interface) in [("fd00:9::1", 0), ("fd00:9::2", 1)] {
        let sent = transfer(&folder, "b", "[fd00:9::9]:7000", "a", &["--from", from]);
        assert!(sent[interface] > 5_000_000 && sent[1 - interface] < LITTLE, "from {from}: {sent:?}");
    }
    // Acknowledgements of 5 MB in packets of 4 kB at most.
    for (at, interface) in [("10.9.0.1:7000", 0), ("10.9.0.2:7000", 1)] {
        let sent = transfer(&folder, "a", at, "b", &[]);
        assert!(sent[interface] > 3 * LITTLE && sent[1 - interface] < LITTLE, "at {at}: {sent:?}");
    }
}

/// An interface with two addresses, of which the kernel takes the first to reply.
const ADDRESSED: &str = "
    ip netns add a; ip netns add b
    ip link add eth0 netns a type veth peer name eth0 netns b
    for host in a b; do ip -n $host link set eth0 up; done
    for last in 1 2; do
        ip -n a address add 10.9.0.$last/24 dev eth0
        ip -n a address add fd00:9::$last/64 dev eth0 nodad
    done
    ip -n b address add 10.9.0.9/24 dev eth0; ip -n b address add fd00:9::9/64 dev eth0 nodad
";

#[test]
fn every_address_of_a_host_serves() {
    apart("interfaces::every_address_of_a_host_serves", || {
        let built = Command::new("sh").args(["-ec", ADDRESSED]).output().unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
        let folder = keyed("addressed");
        for to in ["10.9.0.1:7000", "10.9.0.2:7000", "[fd00:9::1]:7000", "[fd00:9::2]:7000"] {
            serve_and_send(
                &folder,
                ("a", if to.starts_with('[') { "[::]:7000" } else { "0.0.0.0:7000" }),
                ("b", to),
                &[],
            );
        }
    });
}

/// A firewall of host `a` that passes one of its ports, and drops what it cannot route.
const FIREWALL: &str = "
    ip -n a rule add pref 20 lookup local; ip -n a rule del pref 0
    ip -n a rule add pref 10 ipproto udp dport 7001-7007 blackhole
";

#[test]
fn open_ports_suffice() {
    apart("interfaces::open_ports_suffice", || {
        let built = Command::new("sh").args(["-ec", &[ADDRESSED, FIREWALL].concat()]).output().unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
        let folder = keyed("firewall");
        let output = serve_and_send(&folder, ("a", "10.9.0.1:7000"), ("b", "10.9.0.1:7000"), &["--scheme", "ops"]);
        let result = json(&output);
        assert_eq!(result["silent_labels"], serde_json::json!([1, 2, 3, 4, 5, 6, 7]));
        let counts: Vec<u64> = serde_json::from_value(result["packets_per_label"].clone()).unwrap();
        assert!(counts[0] > 3_000 && counts[1..].iter().all(|count| *count == 0), "{counts:?}");
        let message = stderr(&output);
        assert!(message.contains("no reply over UDP ports 7001-7007 of 10.9.0.1 (firewall or NAT?)"), "{message}");
    });
}

#[test]
fn strict_reverse_path_filter_is_named() {
    apart("interfaces::strict_reverse_path_filter_is_named", || {
        let built = Command::new("sh").args(["-ec", NETWORK]).output().unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
        let folder = Folder::new("rp-filter");
        // Routes to the subnet lead over eth0.
        for (filter, from, is_warned) in
            [(0, "10.9.0.2", false), (1, "10.9.0.1", false), (1, "10.9.0.2", true), (2, "10.9.0.2", false)]
        {
            let set = format!("echo {filter} >/proc/sys/net/ipv4/conf/all/rp_filter; exec \"$0\" \"$@\"");
            let mut command = Command::new("ip");
            command.args(["netns", "exec", "a", "sh", "-c", &set, env!("CARGO_BIN_EXE_anabranch")]);
            command.args(["send", "--to", "10.9.0.9:7000", "--from", from, "--set", "wire.give_up=200ms"]);
            let output = command.current_dir(&folder.0).output().unwrap();
            assert_eq!(code(&output), 2, "{}", stderr(&output));
            let warned = stderr(&output).contains("net.ipv4.conf.eth1.rp_filter = 1");
            assert_eq!(warned, is_warned, "rp_filter {filter} from {from}: {}", stderr(&output));
        }
    });
}

/// Addresses of one interface, of which the kernel's first that lasts is the one by which others reach it: below it in number are an
/// alias and an address of its own network; the IPv6 ones are temporary in effect (deprecated) and lasting.
const ADDRESSES: &str = "
    ip link set lo up; ip link add eth0 type veth peer name p0; ip link set p0 up; ip link set eth0 up
    ip address add 10.0.0.9/24 dev eth0
    ip address add 10.0.0.1/24 dev eth0 label eth0:1
    ip address add 10.0.0.2/32 dev eth0
    ip address add fd00::9/64 dev eth0 nodad
    ip address add fd00::5/64 dev eth0 nodad preferred_lft 0
    ip address add 10.255.0.1/32 dev lo
";

#[test]
fn ranks_take_the_address_that_others_know() {
    apart("interfaces::ranks_take_the_address_that_others_know", known_addresses);
}

fn known_addresses() {
    let built = Command::new("sh").args(["-ec", ADDRESSES]).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    let folder = Folder::new("addresses");
    let log = |variables: &[(&str, &str)]| {
        let output = folder
            .command(&["collective", "ring", "--ranks", "2", "--bytes", "64KiB"])
            .envs([("NCCL_DEBUG", "INFO")])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(code(&output), 0, "{variables:?}: {}", stderr(&output));
        stderr(&output)
    };
    for (variables, device) in [
        (&[("ANABRANCH_IFNAME", "=eth0")][..], "eth0 (10.0.0.9,"),
        // An address of host scope is of no use to others.
        (&[("ANABRANCH_IFNAME", "=lo")], "lo (10.255.0.1,"),
        (&[("ANABRANCH_IFNAME", "=eth0"), ("NCCL_SOCKET_FAMILY", "AF_INET6")], "eth0 (fd00::9,"),
        (&[("ANABRANCH_ADDRESS", "10.9.0.0/16,10.0.0.1")], "eth0 (10.0.0.1,"),
        (&[("NCCL_SOCKET_IFNAME", "=ib7,eth0")], "NCCL_SOCKET_IFNAME: no interface that is up is called `ib7`"),
    ] {
        let log = log(variables);
        assert!(log.contains(device), "{variables:?}: {log}");
    }
}

/// Two hosts with an interface in each of two networks that share nothing.
const PLANES: &str = "
    ip netns add a; ip netns add b
    for i in 0 1; do
        ip link add eth$i netns a type veth peer name eth$i netns b
        for host in a b; do ip -n $host link set eth$i up; done
        ip -n a address add 10.$i.0.1/24 dev eth$i; ip -n b address add 10.$i.0.2/24 dev eth$i
        ip -n a address add fd00:$i::1/64 dev eth$i nodad; ip -n b address add fd00:$i::2/64 dev eth$i nodad
    done
";

#[test]
fn two_interfaces_are_two_planes() {
    apart("interfaces::two_interfaces_are_two_planes", || {
        let built = Command::new("sh").args(["-ec", PLANES]).output().unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
        let folder = keyed("planes");
        let both = |to: &str, more: &[&str]| {
            let before = sent();
            let more = [&["--scheme", "mrc"], more].concat();
            let result = json(&serve_and_send(&folder, ("b", to), ("a", to), &more));
            let after = sent();
            ([after[0] - before[0], after[1] - before[1]], result)
        };
        let (v4, v6) = ("10.0.0.2:7000,10.1.0.2:7100", "[fd00:0::2]:7000,[fd00:1::2]:7000");
        for (to, more) in [(v4, &[][..]), (v4, &["--from", "10.0.0.1,10.1.0.1"]), (v6, &[])] {
            let (sent, result) = both(to, more);
            // Half of 5 MB on each: values that are withdrawn for a while leave the other plane more.
            assert!(sent.iter().all(|bytes| *bytes > 2_000_000), "{to} {more:?}: {sent:?}");
            assert_eq!((result["planes"].as_u64(), &result["silent_labels"]), (Some(2), &serde_json::json!([])));
        }
        // Without a plane everything takes the other, the first call as well.
        for plane in [1, 0] {
            let set = |state: &str| {
                let words = ["-n", "b", "link", "set", &format!("eth{plane}"), state];
                assert!(Command::new("ip").args(words).status().unwrap().success());
            };
            set("down");
            let (sent, result) = both(v4, &[]);
            assert!(sent[1 - plane] > 5_000_000 && sent[plane] < 100_000, "{sent:?}");
            let silent: Vec<usize> = (plane..8).step_by(2).collect();
            assert_eq!(result["silent_labels"], serde_json::json!(silent));
            set("up");
        }
    });
}
