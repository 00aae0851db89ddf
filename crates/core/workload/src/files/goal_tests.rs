use super::super::testing::{read_bytes, read_text, refused, refused_texts};
use crate::kinds::testing::rows;
use crate::{FileFormat::Goal, MessageTimes, Start, TriggerId, TriggerKind, traffic::Traffic};
use anabranch_units::Time;
use proptest::prelude::*;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// `after` and `irequires` are operations that this one waits for.
#[derive(Clone, Debug, Default)]
struct Node {
    kind: u8,
    peer: u32,
    size: u64,
    tag: u32,
    cpu: u8,
    requires: Vec<u32>,
    irequires: Vec<u32>,
}

fn send(peer: u32, size: u64, tag: u32) -> Node {
    Node { kind: 1, peer, size, tag, ..Node::default() }
}

fn recv(peer: u32, size: u64, tag: u32) -> Node {
    Node { kind: 2, peer, size, tag, ..Node::default() }
}

fn calc(size: u64, cpu: u8) -> Node {
    Node { kind: 3, size, cpu, ..Node::default() }
}

impl Node {
    fn requires(mut self, ops: &[u32]) -> Self {
        self.requires.extend(ops);
        self
    }
    fn irequires(mut self, ops: &[u32]) -> Self {
        self.irequires.extend(ops);
        self
    }
}

fn encode_rank(nodes: &[Node]) -> Vec<u8> {
    let waiting = |op: u32, of: fn(&Node) -> &[u32]| -> Vec<u32> {
        let times = |node: &Node| of(node).iter().filter(|&&cause| cause == op).count();
        (0..).zip(nodes).flat_map(|(n, node)| std::iter::repeat_n(n, times(node))).collect()
    };
    let roots: Vec<u32> =
        (0..).zip(nodes).filter(|(_, n)| n.requires.len() + n.irequires.len() == 0).map(|(n, _)| n).collect();
    let mut out = Vec::new();
    out.extend((nodes.len() as u32).to_le_bytes());
    out.extend((roots.len() as u32).to_le_bytes());
    roots.iter().for_each(|root| out.extend(root.to_le_bytes()));
    let mut appendix: Vec<u32> = Vec::new();
    for (number, node) in (0..).zip(nodes) {
        out.extend(((node.requires.len() + node.irequires.len()) as u32).to_le_bytes());
        out.push(node.kind);
        out.extend(node.peer.to_le_bytes());
        out.extend(node.size.to_le_bytes());
        out.extend(node.tag.to_le_bytes());
        out.extend([node.cpu, 0]);
        for waiting in [waiting(number, |n| &n.requires), waiting(number, |n| &n.irequires)] {
            out.extend((waiting.len() as u32).to_le_bytes());
            out.extend((appendix.len() as u32).to_le_bytes());
            appendix.extend(waiting);
        }
    }
    appendix.iter().for_each(|op| out.extend(op.to_le_bytes()));
    out
}

fn encode(ranks: &[Vec<Node>]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = ranks.iter().map(|nodes| encode_rank(nodes)).collect();
    let mut out = 4223u64.to_le_bytes().to_vec();
    out.extend((ranks.len() as u32).to_le_bytes());
    out.extend([1, 1]);
    let mut at = 6 + 16 * ranks.len() as u64;
    for part in &parts {
        out.extend(at.to_le_bytes());
        at += part.len() as u64;
        out.extend(at.to_le_bytes());
    }
    out.extend(parts.concat());
    out
}

fn write(ranks: &[Vec<Node>]) -> String {
    let mut out = format!("num_ranks {}\n", ranks.len());
    for (rank, nodes) in ranks.iter().enumerate() {
        out += &format!("rank {rank} {{\n");
        for (n, Node { kind, peer, size, tag, cpu, .. }) in nodes.iter().enumerate() {
            out += &match kind {
                1 => format!("l{n}: send {size}b to {peer} tag {tag} cpu {cpu} nic 0\n"),
                2 => format!("l{n}: recv {size}b from {peer} tag {tag} cpu {cpu} nic 0\n"),
                _ => format!("l{n}: calc {size} cpu {cpu}\n"),
            };
        }
        for (n, node) in nodes.iter().enumerate() {
            node.requires.iter().for_each(|cause| out += &format!("l{n} requires l{cause}\n"));
            node.irequires.iter().for_each(|cause| out += &format!("l{n} irequires l{cause}\n"));
        }
        out += "}\n";
    }
    out
}

/// Returns the start times of the flows if a message takes `ahead` to the receiver and its acknowledgement `back` after that.
fn play(traffic: &Traffic, ahead: u64, back: u64) -> Vec<Option<u64>> {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Does {
        Activate(u32),
        Begin(u32),
        Fire(u32),
        Start(u32),
    }
    let mut starts = vec![None; traffic.flows.len()];
    let mut activated = vec![0u32; traffic.triggers.len()];
    let mut free: BTreeMap<(u32, u8), u64> = BTreeMap::new();
    let mut heap: BinaryHeap<Reverse<(u64, Does)>> = BinaryHeap::new();
    for (number, flow) in (0..).zip(&traffic.flows) {
        if let Start::At(at) = flow.start {
            heap.push(Reverse((at.ps(), Does::Start(number))));
        }
    }
    for (number, trigger) in (0..).zip(&traffic.triggers) {
        heap.extend(trigger.at.map(|at| Reverse((at.ps(), Does::Activate(number)))));
    }
    while let Some(Reverse((now, does))) = heap.pop() {
        let mut pull = |at: u64, list: &mut dyn Iterator<Item = TriggerId>| {
            heap.extend(list.map(|TriggerId(trigger)| Reverse((at, Does::Activate(trigger)))));
        };
        match does {
            Does::Start(flow) => {
                assert_eq!(starts[flow as usize].replace(now), None);
                let flow = &traffic.flows[flow as usize];
                pull(now.saturating_add(ahead), &mut flow.on_received.into_iter());
                pull(now.saturating_add(ahead + back), &mut flow.on_sent.into_iter());
            }
            Does::Activate(number) => {
                let trigger = &traffic.triggers[number as usize];
                activated[number as usize] += 1;
                let wanted = if let TriggerKind::Barrier(count) = trigger.kind { count } else { 1 };
                assert!(activated[number as usize] <= wanted, "too many activations");
                if activated[number as usize] == wanted {
                    let mut begins = now;
                    if let Some(cpu) = trigger.cpu {
                        let free = free.entry((trigger.home.unwrap(), cpu)).or_default();
                        begins = begins.max(*free);
                        *free = begins.saturating_add(trigger.delay.ps());
                    }
                    heap.push(Reverse((begins, Does::Begin(number))));
                    heap.push(Reverse((begins.saturating_add(trigger.delay.ps()), Does::Fire(number))));
                }
            }
            Does::Begin(number) => pull(now, &mut traffic.triggers[number as usize].begun.iter().copied()),
            Does::Fire(number) => {
                let trigger = &traffic.triggers[number as usize];
                pull(now, &mut trigger.next.iter().copied());
                heap.extend(trigger.targets.iter().map(|&flow| Reverse((now, Does::Start(flow)))));
            }
        }
    }
    starts
}

const PING_PONG: &str = "\
// a ping-pong
num_ranks 2

rank 0 {
l1: send 10b to 1 tag 0 cpu 0 nic 0
l2: recv 20b from 1 tag 7
}
rank 1 {
  a: recv 10b from 0   # tag 0
  b: calc 100 cpu 1
  c: send 20b to 0 tag 7
  b requires a
  /* b takes
     100 ns */ c requires b
}
";

#[test]
fn a_ping_pong_is_two_flows_and_a_computation() {
    let made = read_text(Goal, PING_PONG).unwrap();
    let seen: Vec<_> = made.flows.iter().map(|f| (f.src, f.dst, f.size, f.start)).collect();
    // Trigger 0 is the computation, trigger 1 the send; operations without dependents have none.
    assert_eq!(seen, [(0, 1, 10, Start::At(Time::ZERO)), (1, 0, 20, Start::On(TriggerId(1)))]);
    let hooks: Vec<_> = made.flows.iter().map(|f| (f.on_sent, f.on_received)).collect();
    assert_eq!(hooks, [(None, Some(TriggerId(0))), (None, None)]);
    assert_eq!(made.triggers.len(), 2);
    let calc = &made.triggers[0];
    assert_eq!((calc.kind, calc.home, calc.at), (TriggerKind::Oneshot, Some(1), None));
    assert_eq!((calc.delay, calc.cpu, &calc.next), (Time::from_ps(100_000), Some(1), &vec![TriggerId(1)]));
    assert_eq!((made.triggers[1].home, &made.triggers[1].targets), (Some(1), &vec![1]));
    // 50 ns there, then 100 ns of computation.
    assert_eq!(play(&made, 50_000, 50_000), [Some(0), Some(150_000)]);
}

#[test]
fn statements_may_share_a_line() {
    let text = "num_ranks 2 rank 0 { l1: send 10 b to 1; calc 5 }\nrank 1\n{ recv 10b from 0 nic 1 cpu 2 tag 0 }";
    let made = read_text(Goal, text).unwrap();
    assert_eq!((made.flows.len(), made.triggers.len()), (1, 1));
    assert_eq!((made.triggers[0].at, made.triggers[0].delay), (Some(Time::ZERO), Time::from_ps(5000)));
}

#[test]
fn messages_match_in_the_order_of_the_file() {
    // Two of tag 1 and one of tag 2: the second receive of tag 1 takes the second send of tag 1.
    let text = |second: u32| {
        format!(
            "num_ranks 2\nrank 0 {{\nsend 1b to 1 tag 1\nsend 2b to 1 tag 2\nsend 3b to 1 tag 1\n}}\n\
             rank 1 {{\nx: recv 2b from 0 tag 2\nrecv 1b from 0 tag 1\ny: recv {second}b from 0 tag 1\n\
             s: send 9b to 0\ns requires y\n}}\n"
        )
    };
    let text = |second| text(second).replacen("tag 1\n}", "tag 1\nrecv 9b from 1\n}", 1);
    let made = read_text(Goal, &text(3)).unwrap();
    let hooks: Vec<_> = made.flows.iter().map(|f| f.on_received).collect();
    assert_eq!(hooks, [None, None, Some(TriggerId(0)), None]);
    assert_eq!(made.triggers[0].targets, [3]);
    refused(
        Goal,
        &[(&text(4), 11, "receives 4 B from rank 0 with tag 1, and the send that it meets (line 5) has 3 B")],
    );
}

#[test]
fn a_message_of_no_bytes_is_a_flow_of_one() {
    let made = read_text(Goal, "num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n").unwrap();
    assert_eq!(made.flows[0].size, 1);
}

#[test]
fn both_halves_of_an_exchange_may_wait_for_each_others_start() {
    // As MPI_Sendrecv: the sends wait for the receives to be posted, not for their messages.
    let exchange = |word: &str| {
        let rank = |own: u32, peer: u32| {
            format!("rank {own} {{\nr: recv 8b from {peer}\ns: send 8b to {peer}\ns {word} r\n}}\n")
        };
        format!("num_ranks 2\n{}{}", rank(0, 1), rank(1, 0))
    };
    let made = read_text(Goal, &exchange("irequires")).unwrap();
    assert_eq!(play(&made, 1, 1), [Some(0), Some(0)]);
    assert!(made.triggers.is_empty());
    refused(
        Goal,
        &[(&exchange("requires"), 3, "wait in a circle: line 3 waits for line 9, that for line 8, that for line 4")],
    );
}

fn mixed() -> Vec<Vec<Node>> {
    vec![
        vec![
            send(1, 10, 0),
            calc(100, 0).irequires(&[0]),
            recv(1, 20, 3),
            recv(2, 30, 0).requires(&[2, 1]),
            send(2, 5, 9).requires(&[3]).irequires(&[1]),
            calc(7, 1).requires(&[3, 3]),
        ],
        vec![recv(0, 10, 0), send(0, 20, 3).requires(&[0]), calc(9, 0), send(2, 1, 1).requires(&[2, 0])],
        vec![send(0, 30, 0), recv(1, 1, 1), recv(0, 5, 9).requires(&[1]), calc(1, 0).requires(&[2]).irequires(&[2])],
    ]
}

#[test]
fn errors_in_a_text_are_reported_with_their_line() {
    let with = |row: &str| {
        format!("num_ranks 3\nrank 0 {{\na: send 10b to 1\n{row}\n}}\nrank 1 {{\nrecv 10b from 0\n}}\nrank 2 {{ }}\n")
    };
    assert!(read_text(Goal, &with("")).is_ok());
    for [row, part] in rows("goal rows") {
        refused(Goal, &[(&with(&row), 4, &part)]);
    }
    refused(Goal, &[(&with("a requires a"), 3, "operations wait in a circle: line 3 waits for line 3")]);
    let circle = with("b: calc 1\nc: calc 2\nb irequires c\nc requires b");
    refused(Goal, &[(&circle, 4, "operations wait in a circle: line 4 waits for line 5, that for line 4")]);
    refused_texts(Goal, "goal:");
    let error = read_text(Goal, "num_ranks 1\nrank 0 {\ncalc 5\n}").unwrap_err();
    assert!(error.message.contains("f sends nothing"), "{error}");
}

#[test]
fn errors_in_a_binary_are_reported_with_rank_and_operation() {
    let refused = |content: &[u8], place: &str, part: &str| {
        let error = read_bytes(Goal, content).expect_err(part);
        assert_eq!(error.place.as_deref(), Some(place), "{error}");
        assert!(error.message.contains(part), "{part:?}: {error}");
    };
    let good = encode(&mixed());
    let changed = |at: usize, with: &[u8]| {
        let mut content = good.clone();
        content[at..at + with.len()].copy_from_slice(with);
        content
    };
    // Rank 0 begins after 8 B of magic number, 6 B of header and 48 B of table; its only root is operation 0 and 2.
    let rank_0 = 8 + 6 + 48;
    let node = |number: usize| rank_0 + 8 + 8 + 39 * number;
    refused(&changed(0, &2342u64.to_le_bytes()), "f", "begins with 4223, not 2342");
    refused(&good[..8], "f", "ends after 0 B of its header");
    refused(&good[..30], "f", "within the table of its 3 ranks");
    refused(&changed(8, &17u32.to_le_bytes()), "f", "for 17 ranks, and the topology has 16 hosts");
    refused(&changed(8, &0u32.to_le_bytes()), "f", "for 0 ranks");
    refused(&good[..good.len() - 1], "f: rank 2", "expected some between 54 and");
    refused(&changed(14, &10u64.to_le_bytes()), "f: rank 0", "found the bytes 10 to");
    refused(&changed(rank_0, &100_000u32.to_le_bytes()), "f: rank 0", "100000 operations and 2 roots need");
    refused(&changed(node(0) + 4, &[9]), "f: rank 0, operation 0", "type: found 9");
    refused(&changed(node(4) + 5, &3u32.to_le_bytes()), "f: rank 0, operation 4", "no such rank");
    refused(&changed(node(4) + 5, &[0]), "f: rank 0, operation 4", "the rank itself");
    refused(&changed(node(3) + 5, &[255; 4]), "f: rank 0, operation 3", "any rank; not supported");
    refused(&changed(node(3) + 17, &[255; 4]), "f: rank 0, operation 3", "any tag; not supported");
    refused(&changed(node(1) + 9, &[255; 8]), "f: rank 0, operation 1", "time below 213 days");
    refused(&changed(node(0) + 31, &[200]), "f: rank 0, operation 0", "of the appendix, which has 7");
    refused(&changed(node(1) + 23, &[6]), "f: rank 0, operation 1", "lists overlap");
    refused(&changed(node(6), &[6]), "f: rank 0, operation 0", "found operation 6; operations are 0 to 5");
    refused(&changed(node(1), &[2]), "f: rank 0, operation 1", "waits for 2 operations by its count, and 1 name");
    refused(&changed(rank_0 + 8, &[6]), "f: rank 0", "roots: found operation 6, and the rank has 6");
    refused(&changed(rank_0 + 8, &[1]), "f: rank 0", "roots: operation 1 waits for 1 others");
    refused(&changed(rank_0 + 8, &[2]), "f: rank 0", "roots: operation 2 comes twice");
    let mut fewer = mixed();
    fewer[0].truncate(4);
    refused(&encode(&fewer), "f: rank 2, operation 2", "this receive has no send");
    let mut larger = mixed();
    larger[0][4].size = 6;
    refused(&encode(&larger), "f: rank 2, operation 2", "meets (operation 4 of rank 0) has 6 B");
    let mut circle = mixed();
    circle[2][0].requires.push(2);
    let part = "operation 3 of rank 0 waits for operation 0 of rank 2, that for operation 2 of rank 2, that for";
    refused(&encode(&circle), "f: rank 0, operation 3", part);
    // Two ranks of the table with each other's bytes are read accordingly.
    let twice = [&good[..14], &good[30..46], &good[30..]].concat();
    assert!(read_bytes(Goal, &twice).is_err());
}

/// Messages and computations in an order in which they can be done, each on a processor of its own; and the start of each
/// message, and the end of each rank, if a message takes 1000 ps to the receiver and 500 back.
fn schedules() -> impl Strategy<Value = (Vec<Vec<Node>>, Vec<Vec<u64>>, Vec<u64>)> {
    let step = (0u32..4, 1u32..4, 0u32..2, 0u64..3, any::<u64>(), any::<u64>());
    prop::collection::vec(step, 1..40).prop_map(|steps| {
        let mut ranks: Vec<Vec<Node>> = vec![Vec::new(); 4];
        let mut times: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 4];
        let mut starts: Vec<Vec<u64>> = vec![Vec::new(); 4];
        let mut add = |rank: u32, mut node: Node, chosen: u64, end: &dyn Fn(u64) -> u64| {
            let (nodes, times) = (&mut ranks[rank as usize], &mut times[rank as usize]);
            let mut ready = 0;
            for cause in 0..nodes.len().min(20) as u32 {
                let (start, end) = times[cause as usize];
                match chosen >> (3 * cause) & 7 {
                    0 => {
                        node.requires.push(cause);
                        ready = ready.max(end);
                    }
                    1 => {
                        node.irequires.push(cause);
                        ready = ready.max(start);
                    }
                    _ => {}
                }
            }
            if node.kind == 3 {
                node.cpu = nodes.len() as u8;
            }
            if node.kind == 1 {
                starts[rank as usize].push(ready);
            }
            nodes.push(node);
            times.push((ready, end(ready)));
            ready
        };
        add(0, send(1, 1, 9), 0, &|ready| ready + 1500);
        add(1, recv(0, 1, 9), 0, &|ready| ready.max(1000));
        for (rank, further, tag, kind, first, second) in steps {
            let peer = (rank + further) % 4;
            if kind == 0 {
                add(rank, calc(first % 5, 0), second, &|ready| ready + first % 5 * 1000);
            } else {
                let sent = add(rank, send(peer, 8, tag), first, &|ready| ready + 1500);
                add(peer, recv(rank, 8, tag), second, &|ready| ready.max(sent + 1000));
            }
        }
        let last = |times: &Vec<(u64, u64)>| times.iter().map(|(_, end)| *end).max().unwrap_or(0);
        (ranks, starts, times.iter().map(last).collect())
    })
}

/// Returns the starts of the messages of a job, and the ends of its ranks, if a message takes 1000 ps and 500 back.
fn walk(traffic: &Traffic) -> (Vec<Option<u64>>, Vec<Option<u64>>) {
    let job = traffic.grouped.as_ref().unwrap();
    let mut starts = vec![None; traffic.flows.len()];
    let mut ends = vec![];
    let mut message = |number: u32, ready: Option<Time>| {
        assert_eq!(starts[number as usize].replace(ready.unwrap().ps()), None);
        let after = |time| ready.map(|ready| ready + Time::from_ps(time));
        MessageTimes { started: ready, received: after(1000), acknowledged: after(1500) }
    };
    job.times(Time::from_us(1), &mut message, &mut |times| {
        ends.extend(times.ranks.iter().map(|rank| rank.end.map(Time::ps)));
    });
    (starts, ends)
}

proptest! {
    #[test]
    fn flows_start_when_the_schedule_says((ranks, starts, ends) in schedules()) {
        let text = read_text(Goal, &write(&ranks)).unwrap();
        let binary = read_bytes(Goal, &encode(&ranks)).unwrap();
        prop_assert_eq!((&text.flows, &text.triggers), (&binary.flows, &binary.triggers));
        let expected: Vec<_> = starts.concat().into_iter().map(Some).collect();
        prop_assert_eq!(&play(&text, 1000, 500), &expected);
        // The job of the schedule has the same times, for its rows.
        prop_assert_eq!(walk(&text), (expected, ends.into_iter().map(Some).collect()));
    }
}

#[test]
fn another_nic_is_noted() {
    let text =
        |nic: u32| format!("num_ranks 2\nrank 0 {{\nsend 10b to 1 nic {nic}\n}}\nrank 1 {{\nrecv 10b from 0\n}}\n");
    assert!(read_text(Goal, &text(0)).unwrap().notes.is_empty());
    let noted = read_text(Goal, &text(3)).unwrap().notes;
    assert!(noted.len() == 1 && noted[0].starts_with("f: line 3: `nic` 3 has no effect"), "{noted:?}");
}
