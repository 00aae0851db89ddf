use crate::{
    fan::{Cell, Fan, Memory},
    groups::Groups,
    pictures::{Picture, Scene, fan},
};

fn cells(title: &'static str, rows: Vec<(&'static str, Vec<Cell>)>) -> Option<Memory> {
    Some(Memory::Cells(title, rows))
}

fn groups(says: &'static str, scene: Groups) -> Picture {
    Picture { says, scene: Scene::Groups(scene) }
}

#[allow(clippy::too_many_lines)]
pub(crate) fn of(name: &str) -> Option<Picture> {
    Some(match name {
        "ecmp" => fan(
            "The switch hashes flow and tag with its own seed: packets of one tag take one path, and two flows may \
             share it.",
            Fan {
                sent: "A1 B1 C3 A1 B1 C3 A1 B1",
                leaf: cells(
                    "hash(flow, tag, switch) mod 4",
                    vec![("", vec![("A → 1", "pick"), ("B → 1", "pick"), ("C → 3", "")])],
                ),
                ..Fan::default()
            },
        ),
        "random" => fan(
            "A random next hop for every packet, all equally likely, regardless of its flow.",
            Fan {
                sent: "A2 B0 A2 C3 B1 A0 C3 A1",
                leaf: cells("each packet: one of", vec![("", vec![("0", ""), ("1", ""), ("2", ""), ("3", "")])]),
                ..Fan::default()
            },
        ),
        "rr" => fan(
            "One pointer for all packets that share these next hops: they take them in turn, regardless of their flow.",
            Fan {
                sent: "A2 B3 A0 C1 C2 B3 A0 B1",
                leaf: cells(
                    "next in turn",
                    vec![("", vec![("0", ""), ("1", ""), ("2", "pick"), ("3", ""), ("↺", "")])],
                ),
                ..Fan::default()
            },
        ),
        "ar" => fan(
            "The switch compares all its queues and takes the shortest. It cannot detect that path 2 is congested \
             further on.",
            Fan {
                sent: "A0 B1 A3 B0 A1 A3 B2 A2!",
                leaf: cells("shortest of all queues", vec![("", vec![("3", ""), ("2", ""), ("0", "pick"), ("3", "")])]),
                queues: [3, 2, 0, 3],
                looked_at: 0b1111,
                taken: Some(2),
                congested: 0b100,
                ..Fan::default()
            },
        ),
        "drill" => fan(
            "The switch compares d random queues (0 and 3) and the remembered one (1), and takes the shortest. It did \
             not sample queue 2, which is empty.",
            Fan {
                sent: "A0 B1 A3 B0 A1 A3 B1 A1",
                leaf: cells(
                    "shortest of a sample",
                    vec![("random", vec![("0", ""), ("3", "")]), ("best of last time", vec![("1", "pick")])],
                ),
                queues: [3, 1, 0, 4],
                looked_at: 0b1011,
                taken: Some(1),
                ..Fan::default()
            },
        ),
        "letflow" => fan(
            "The sender's leaf keeps a flow's path until a pause longer than the timeout; the next flowlet gets any path, congested or \
             not.",
            Fan {
                sent: "A1 A1 A1 _ A3 A3 _ A2 A2",
                leaf: cells("flow: path, last packet", vec![("A", vec![("path 2", "pick"), ("0.1 us ago", "")])]),
                ..Fan::default()
            },
        ),
        "conga" => fan(
            "Loads gathered on the way come back from the other leaf. A new flowlet takes the path whose larger load, its own uplink's \
             or the reported one, is least.",
            Fan {
                sent: "A1 A1! A1! _ A3 A3 A3 A3",
                leaf: cells(
                    "load: own uplink, reported, larger",
                    vec![
                        ("own", vec![("5", ""), ("2", ""), ("3", ""), ("1", "")]),
                        ("reported", vec![("1", ""), ("6", "bad"), ("4", ""), ("2", "pick")]),
                    ],
                ),
                congested: 0b10,
                labels: ["path 0: 5", "path 1: 6", "path 2: 4", "path 3: 2"],
                feedback: "largest load on each path",
                ..Fan::default()
            },
        ),
        "conweave" => fan(
            "No reply in time on path 1: the leaf moves the running flow to path 3. The other leaf holds A4 and A5 \
             until A3, the tail of the old path, has passed.",
            Fan {
                sent: "A1! A1! A1! A3 A3 A3",
                leaf: cells("round trip asked for", vec![("A", vec![("late", "bad"), ("→ path 3", "pick")])]),
                held: cells("held", vec![("", vec![("A4", ""), ("A5", "")]), ("until", vec![("tail A3", "pick")])]),
                congested: 0b10,
                feedback: "replies, and marks reported",
                ..Fan::default()
            },
        ),
        "ev-index" => Picture {
            says: "Each tier reads its own part of the tag as the number of its uplink, without a hash: part 0 at the leaf, part 1 above \
                   it.",
            scene: Scene::Parts,
        },
        "source-guided" => groups(
            "The endpoint's value names two ports: EV1 at the first switch, EV2 at the second. From there the default tables lead on.",
            Groups {
                routes: vec![("abdexz", 0, "EV1 = to b, EV2 = to d, then default", (250.0, 300.0))],
                notes: vec![
                    ("reads EV1", (66.0, 222.0)),
                    ("reads EV2", (172.0, 170.0)),
                    ("d, e, x: default tables", (304.0, 172.0)),
                ],
            },
        ),
        "coarse-guided" => groups(
            "The tag names a category. Of its paths, here those over another group, the first switch takes one by hash of flow and \
             value.",
            Groups {
                routes: vec![
                    ("abdexz", 0, "category: over another group, one path", (250.0, 280.0)),
                    ("acyz", 2, "category: minimal", (250.0, 300.0)),
                ],
                notes: vec![("reads the category", (16.0, 286.0))],
            },
        ),
        "minimal" => groups(
            "Default tables throughout: to the switch with the cable to the destination's group, over it, and on to the destination. Never \
             over a third group.",
            Groups { routes: vec![("abxz", 0, "local, global, local", (300.0, 280.0))], notes: vec![] },
        ),
        "valiant" => groups(
            "First to a random other group (or switch, on a Slim Fly), then minimally to the destination: longer, but \
             spread evenly.",
            Groups {
                routes: vec![("abdexz", 1, "over a random group, then minimal", (270.0, 280.0))],
                notes: vec![("drawn at random", (318.0, 172.0))],
            },
        ),
        "ugal" => groups(
            "The first switch compares queue times hops of the minimal path with those of a random Valiant path: 9 · 3 > 2 · 5, so \
             the packet goes round.",
            Groups {
                routes: vec![
                    ("abxz", 0, "minimal: queue 9, 3 hops → 27", (250.0, 274.0)),
                    ("abdexz", 1, "Valiant: queue 2, 5 hops → 10: taken", (250.0, 300.0)),
                ],
                notes: vec![("compares", (70.0, 222.0))],
            },
        ),
        _ => return None,
    })
}
