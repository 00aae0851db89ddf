use crate::{
    fan::{Cell, Fan, Memory},
    pictures::{Picture, fan},
};

fn plain(texts: &'static [&'static str]) -> Vec<Cell> {
    texts.iter().map(|text| (*text, "")).collect()
}

fn cells(title: &'static str, rows: Vec<(&'static str, Vec<Cell>)>) -> Option<Memory> {
    Some(Memory::Cells(title, rows))
}

const HASH: &str = "hash(flow, tag)";

/// Leaf of schemes whose switches hash.
fn hashing() -> Option<Memory> {
    cells("switch", vec![("", vec![(HASH, ""), ("→ path", "")])])
}

#[allow(clippy::too_many_lines)]
pub(crate) fn of(name: &str) -> Option<Picture> {
    Some(match name {
        "ecmp" => fan(
            "Three flows, each with one tag and therefore one path: A and B share path 1 while 0 and 2 stay empty.",
            Fan {
                sent: "A1 B1 C3 A1 B1 C3 A1 B1",
                host: cells("one tag per flow", vec![("", vec![("A 7", ""), ("B 4", ""), ("C 9", "")])]),
                leaf: hashing(),
                ..Fan::default()
            },
        ),
        "ops" => fan(
            "A fresh random value for every packet: all paths are used, a congested one as often as the others.",
            Fan {
                sent: "A3 A0 A1! A0 A2 A1 A3 A2",
                host: cells("a random value per packet", vec![("", plain(&["9", "2", "5", "2", "7", "8", "1", "4"]))]),
                leaf: hashing(),
                congested: 0b10,
                ..Fan::default()
            },
        ),
        "rr" => fan(
            "Values in turn from a random start. None repeats before all were used once, but two may hash to one path.",
            Fan {
                sent: "A1 A3 A1 A0 A2 A0 A3 A2",
                host: cells(
                    "values in turn, from a random start",
                    vec![(
                        "",
                        vec![
                            ("0", ""),
                            ("1", ""),
                            ("2", ""),
                            ("3", ""),
                            ("4", ""),
                            ("5", "pick"),
                            ("6", ""),
                            ("7", ""),
                        ],
                    )],
                ),
                leaf: hashing(),
                ..Fan::default()
            },
        ),
        "reps" => fan(
            "A1 to A3 explored random values. Those of A1 and A3 came back unmarked and are used once more, oldest first; 7, whose \
             packet was marked, is forgotten.",
            Fan {
                sent: "A0 A2! A1 A0 A1 A3",
                host: cells(
                    "values of unmarked ACKs, 8 at most",
                    vec![
                        ("", vec![("5", "good"), ("9", "good"), (" ", ""), (" ", "")]),
                        ("forgotten", vec![("7", "bad")]),
                    ],
                ),
                leaf: hashing(),
                congested: 0b100,
                feedback: "ACKs: 5 and 9 unmarked, 7 marked",
                ..Fan::default()
            },
        ),
        "bitmap" => fan(
            "Values are tried in turn. 2 has a penalty and is skipped, which lowers the penalty by one.",
            Fan {
                sent: "A0 A1 A2! A3 A0 A1 A3 A0",
                host: cells(
                    "penalty of each value",
                    vec![
                        ("value  ", plain(&["0", "1", "2", "3"])),
                        ("penalty", vec![("0", "good"), ("0", "good"), ("4", "bad"), ("0", "good")]),
                    ],
                ),
                leaf: hashing(),
                congested: 0b100,
                feedback: "mark +1, NACK +4, timeout +15",
                ..Fan::default()
            },
        ),
        "mixed" => fan(
            "Values of clean ACKs are used first, oldest first; while none is queued, a bitmap with penalties picks the next value.",
            Fan {
                sent: "A0 A1 A2! A3 A0 A3 A1 A3",
                host: cells(
                    "clean values first, else the bitmap",
                    vec![
                        ("queue", vec![("1", "pick"), ("3", "good")]),
                        ("penalties", vec![("0", ""), ("0", ""), ("1", "bad"), ("0", "")]),
                    ],
                ),
                leaf: hashing(),
                congested: 0b100,
                feedback: "clean: into the queue; mark, NACK: a penalty",
                ..Fan::default()
            },
        ),
        "plb" => fan(
            "After more than n round trips in a row with more than the share k of bytes marked, the whole flow draws a new value.",
            Fan {
                sent: "A1 A1! A1! A1! A3 A3 A3 A3",
                host: Some(Memory::Bars(
                    "marked bytes per round trip",
                    vec![("1", 0.12), ("2", 0.62), ("3", 0.74), ("4", 0.1)],
                    vec![("k", 0.25)],
                )),
                leaf: hashing(),
                congested: 0b10,
                feedback: "ACKs with marks",
                ..Fan::default()
            },
        ),
        "flowbender" => fan(
            "After one congested round trip the tag moves to the next value: here to a congested path again, then \
             on.",
            Fan {
                sent: "A1! A1! A2! A2! A3 A3 A3 A3",
                host: Some(Memory::Bars(
                    "marked ACKs per round trip",
                    vec![("tag 1", 0.8), ("tag 2", 0.6), ("tag 3", 0.02)],
                    vec![("t", 0.1)],
                )),
                leaf: hashing(),
                congested: 0b110,
                feedback: "ACKs with marks",
                ..Fan::default()
            },
        ),
        "flowlet" => fan(
            "The sender itself paused for longer than the gap: only then does the flow draw a new value.",
            Fan {
                sent: "A1 A1 A1 _ A3 A3 A3 _ A0",
                host: cells("a new value after a pause > gap", vec![("", vec![("7", ""), ("2", ""), ("4", "pick")])]),
                leaf: hashing(),
                ..Fan::default()
            },
        ),
        "co-prime" => fan(
            "Each pass uses every uplink once, in a new random order. Feedback is ignored.",
            Fan {
                sent: "A2! A0 A3 A1 A1 A3 A2! A0",
                host: cells(
                    "order of the uplinks",
                    vec![("pass 1", plain(&["2", "0", "3", "1"])), ("pass 2", plain(&["1", "3", "2", "0"]))],
                ),
                leaf: cells("switch", vec![("", vec![("part 0 = port", "")])]),
                congested: 0b100,
                ..Fan::default()
            },
        ),
        "prime" => fan(
            "The same round robin, but path 2, marked in the first pass, has a penalty and is passed over in the second; every \
             packet sent lowers it.",
            Fan {
                sent: "A2! A0 A3 A1 A1 A3 A0 A3",
                host: cells(
                    "order of the uplinks, penalties",
                    vec![
                        ("pass 2", vec![("1", ""), ("3", ""), ("2", "bad"), ("0", "")]),
                        ("path 2", vec![("p_ecn - packets sent", "bad")]),
                    ],
                ),
                leaf: cells("switch", vec![("", vec![("part 0 = port", "")])]),
                congested: 0b100,
                feedback: "ACK of A1: marked on path 2",
                ..Fan::default()
            },
        ),
        "hopper" => fan(
            "The round trip passes th_probe: two random paths are probed (P). It passes th_cong: the flow moves to the better of the \
             two, path 3.",
            Fan {
                sent: "A1 A1 P0 P3 A1 A1 A3 A3",
                host: Some(Memory::Bars(
                    "round trip / base",
                    vec![("1", 0.33), ("2", 0.4), ("3", 0.58), ("4", 0.86), ("5", 0.4)],
                    vec![("th_probe", 0.5), ("th_cong", 0.8)],
                )),
                leaf: hashing(),
                congested: 0b10,
                labels: ["probed: 1.8 base RTT", "", "", "probed: 1.2 base RTT"],
                feedback: "round trips of packets and probes",
                ..Fan::default()
            },
        ),
        "hf2t" => fan(
            "A packet whose gap is nearly a flowlet timeout is held until it is one; the LetFlow switch then may move the flow. The \
             host changes no path itself.",
            Fan {
                sent: "A1 A1 A1 h A3 A3 h A0 A0",
                host: Some(Memory::Bars(
                    "gaps of the host's flows",
                    vec![("", 0.95), ("", 0.6), ("", 0.34), ("", 0.2), ("≥T", 0.1)],
                    vec![],
                )),
                leaf: cells("flowlet switch", vec![("", vec![("gap > timeout", ""), ("→ new path", "")])]),
                ..Fan::default()
            },
        ),
        "qp-spray" => fan(
            "Chunk k goes over queue pair k mod 4, each with a fixed tag. Here two pairs hash to path 1 for the whole \
             flow.",
            Fan {
                sent: "A1 A1 B3 B3 C1 C1 D0 D0",
                host: cells(
                    "chunks A to D over 4 queue pairs",
                    vec![("", vec![("A tag 7", ""), ("B tag 3", ""), ("C tag 4", ""), ("D tag 8", "")])],
                ),
                leaf: hashing(),
                ..Fan::default()
            },
        ),
        "flicr" => fan(
            "A path drawn by weight is kept. After one round trip of grace, a share of marked ACKs above ecn_share \
             makes the next packet draw another.",
            Fan {
                sent: "A1 A1! A1! A1! A2 A2 A2 A2",
                host: cells(
                    "the pair's paths, by weight",
                    vec![
                        ("", vec![("0 .4", ""), ("1 .3", "bad"), ("2 .2", "pick"), ("3 .1", "")]),
                        ("marked", vec![("75 % > ecn_share", "bad")]),
                    ],
                ),
                congested: 0b10,
                labels: ["path 0, short", "path 1, short", "path 2, longer", "path 3, longest"],
                feedback: "ACKs with marks",
                ..Fan::default()
            },
        ),
        "spritz-scout" => fan(
            "A1 to A3 explored by weight. Paths 0 and 2 came back clean; the faster one carries packet after packet, and now and then one \
             explores (A8).",
            Fan {
                sent: "A2 A1! A0 A0 A0 A0 A0 A3",
                host: cells(
                    "good paths, fastest first",
                    vec![
                        ("", vec![("0", "pick"), ("2", "good"), (" ", ""), (" ", "")]),
                        ("out", vec![("1: marks > ecn_threshold", "bad")]),
                    ],
                ),
                congested: 0b10,
                labels: ["path 0, 1.3 us", "path 1, 1.3 us", "path 2, 1.9 us", "path 3, 2.5 us"],
                feedback: "clean ACK: into the buffer",
                ..Fan::default()
            },
        ),
        "spritz-spray" => fan(
            "Each path that came back clean is used once, first in, first out; with none queued a packet draws by weight (A1, A2, A3, \
             A7).",
            Fan {
                sent: "A0 A2 A1! A0 A2 A0 A3 A2",
                host: cells(
                    "clean paths, each used once",
                    vec![
                        ("", vec![("0", "pick"), ("3", "good"), ("2", "good"), (" ", "")]),
                        ("not kept", vec![("1: marked", "bad")]),
                    ],
                ),
                congested: 0b10,
                labels: ["path 0, 1.3 us", "path 1, 1.3 us", "path 2, 1.9 us", "path 3, 2.5 us"],
                feedback: "clean ACK: to the end of the queue",
                ..Fan::default()
            },
        ),
        "spritz-coarse" => fan(
            "The host sees categories of paths, each a VLAN tag. It keeps the fastest good category, and the switch \
             picks a path of it.",
            Fan {
                sent: "A0! A0! A1 A1 A1 A1 A1 A3",
                host: cells(
                    "categories, fastest good one first",
                    vec![("", vec![("1", "pick"), ("3", "good")]), ("out", vec![("0: marked too often", "bad")])],
                ),
                leaf: cells("switch", vec![("", vec![("any path of the category", "")])]),
                congested: 0b1,
                labels: ["0: minimal", "1: one local link more", "2: one group more", "3: Valiant"],
                feedback: "ACKs per category",
                ..Fan::default()
            },
        ),
        _ => return None,
    })
}
