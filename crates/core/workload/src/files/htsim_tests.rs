use super::super::testing::{read_text, refused};
use super::super::{Source, StartUnit, read as read_file};
use crate::kinds::testing::rows;
use crate::{FailedSwitch, FileFormat::HtsimCm, Start, Trigger, TriggerId, TriggerKind};
use anabranch_units::Time;

const CHAIN: &str = "\
Nodes 16
Connections 4
Triggers 2
Failures 1
# a chain
0->1 id 928 start 0 size 4194304 send_done_trigger 7
trigger id 9 oneshot
1->2 id 929 trigger 7 size 4194304 send_done_trigger 9 prio 3
2->3 id 930 trigger 9 size 100 # the end
4->5 id 931 start 16777217 size 7
trigger id 7 oneshot
failure switch_type AGG switch_id 3 link_id 2
";

#[test]
fn the_example_of_the_specification() {
    // Specification 14.1, with the lines required around its two.
    let text = "Nodes 1056\nConnections 3\nTriggers 2\n\
        248->405 id 928 start 0 size 4194304 send_done_trigger 1\n\
        405->823 id 929 trigger 1 size 4194304 send_done_trigger 2\n\
        823->7 id 930 trigger 2 size 4194304\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let made = read_file(
        HtsimCm,
        &Source { path: "f", content: text.as_bytes(), hosts: 1056, classes: &[], unit: StartUnit::Ps },
    )
    .unwrap();
    let first = &made.flows[0];
    assert_eq!((first.src, first.dst, first.size, first.start), (248, 405, 4_194_304, Start::At(Time::ZERO)));
    assert_eq!((first.on_sent, first.on_received), (Some(TriggerId(0)), None));
    let second = &made.flows[1];
    assert_eq!((second.src, second.dst, second.start), (405, 823, Start::On(TriggerId(0))));
    assert_eq!(second.on_sent, Some(TriggerId(1)));
    assert_eq!(made.triggers[0], Trigger::new(TriggerKind::Oneshot, vec![1]));
    assert_eq!(made.triggers[1], Trigger::new(TriggerKind::Oneshot, vec![2]));
}

#[test]
fn triggers_before_and_after_their_use() {
    let made = read_text(HtsimCm, CHAIN).unwrap();
    let waits: Vec<_> = made.flows.iter().map(|f| f.start).collect();
    let at = |ps| Start::At(Time::from_ps(ps));
    // 16,777,217 is not a 32-bit float.
    assert_eq!(waits, [at(0), Start::On(TriggerId(0)), Start::On(TriggerId(1)), at(16_777_217)]);
    assert_eq!(made.failures.len(), 1);
    let failure = &made.failures[0];
    assert_eq!((failure.switch_type, failure.switch_id, failure.link_id), (FailedSwitch::Agg, 3, 2));
    assert_eq!(failure.place, "f:12");
}

#[test]
fn words_without_effect_are_noted() {
    let again = "failure switch_type AGG switch_id 3 link_id 2\n";
    let text = CHAIN
        .replace(" prio 3", "")
        .replace("Failures 1", "Failures 2")
        .replace("trigger id 9 oneshot", "trigger id 9 oneshot count 1")
        + again;
    let notes = read_text(HtsimCm, &text).unwrap().notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("f:7: `count` of a oneshot trigger"), "{notes:?}");
    assert!(notes[1].starts_with("f:13: this failure has no further effect: f:12"), "{notes:?}");
}

#[test]
fn every_kind_of_trigger_and_unit() {
    let text = "Nodes 4\nConnections 7\nTriggers 2\n\
        0->1 start 1.5 size 1 send_done_trigger 1 recv_done_trigger 2\n\
        0->2 start 2 size 1 send_done_trigger 1 recv_done_trigger 2\n\
        0->3 trigger 1 size 1\n1->0 trigger 1 size 1\n\
        2->1 trigger 2 size 1\n2->3 trigger 2 size 1\n3->2 id 5 start 0 size 9 msg 1\n\
        trigger id 1 multishot\ntrigger id 2 barrier count 2\n";
    let made = read_file(
        HtsimCm,
        &Source { path: "f", content: text.as_bytes(), hosts: 4, classes: &[], unit: StartUnit::Us },
    )
    .unwrap();
    assert_eq!(made.flows[0].start, Start::At(Time::from_ps(1_500_000)));
    assert_eq!((made.flows[1].on_sent, made.flows[1].on_received), (Some(TriggerId(0)), Some(TriggerId(1))));
    let trigger = |kind, targets: [u32; 2]| Trigger::new(kind, targets.to_vec());
    assert_eq!(made.triggers, [trigger(TriggerKind::Multishot, [2, 3]), trigger(TriggerKind::Barrier(2), [4, 5])]);
}

#[test]
fn messages_may_share_an_id() {
    let flows = |second: &str| format!("Nodes 4\nConnections 2\n0->1 id 3 msg 1 start 0 size 5\n{second}\n");
    assert!(read_text(HtsimCm, &flows("0->1 id 3 msg 2 start 0 size 5")).is_ok());
    assert!(read_text(HtsimCm, &flows("0->1 id 3 msg start 0 size 5")).is_ok());
    refused(
        HtsimCm,
        &[
            (&flows("0->1 id 3 start 0 size 5"), 4, "is that of the flow in line 3"),
            (&flows("0->1 id 3 msg 1 start 0 size 5"), 4, "msg 1 is that of a flow above"),
            (&flows("0->2 id 3 msg 2 start 0 size 5"), 4, "lead elsewhere"),
            (&flows("0->1 id 4 msg 0 start 0 size 5"), 4, "numbers start at 1"),
        ],
    );
}

#[test]
fn errors_in_flows_are_reported_with_their_line() {
    let with = |row: &str| format!("Nodes 16\nConnections 2\n0->1 id 1 start 0 size 5\n\n{row}\n");
    for [row, part] in rows("htsim flows") {
        refused(HtsimCm, &[(&with(&row), 5, &part)]);
    }
}

#[test]
fn wrong_counts_are_named() {
    refused(
        HtsimCm,
        &[
            ("", 1, "lacks the line `Nodes N`"),
            ("Nodes 4\n", 1, "lacks the line `Connections N`"),
            ("Nodes 17\n", 1, "for 17 hosts, and the topology has 16"),
            ("Nodes 4\nConnections 2\n0->1 start 0 size 5\n", 2, "`Connections 2` is announced, and 1 follow"),
            (&CHAIN.replace("Triggers 2", "Triggers 3"), 3, "`Triggers 3` is announced, and 2 follow"),
            (&CHAIN.replace("Triggers 2", ""), 1, "`Triggers 0` is announced, and 2 follow"),
            (&CHAIN.replace("Failures 1", "Failures 0"), 4, "`Failures 0` is announced, and 1 follow"),
        ],
    );
}

#[test]
fn errors_in_triggers_and_failures_are_reported() {
    // A flow that activates trigger 1 twice, as sent and as received, and two flows that wait for it; the trigger is
    // line 6.
    let with = |row: &str| {
        format!(
            "Nodes 4\nConnections 3\nTriggers 1\n0->1 start 0 size 5 send_done_trigger 1\n\
             1->2 trigger 1 size 5\n{row}\n2->3 trigger 1 size 5\n"
        )
    };
    assert!(read_text(HtsimCm, &with("trigger id 1 oneshot")).is_ok());
    for [row, part] in rows("htsim triggers") {
        refused(HtsimCm, &[(&with(&row), 6, &part)]);
    }
    let twice = with("trigger id 1 oneshot").replace("1->2 trigger 1", "1->2 start 0 send_done_trigger 1");
    refused(HtsimCm, &[(&twice, 6, "is oneshot and is activated by 2 flows")]);
    let unused = CHAIN.replace("1->2 id 929 trigger 7", "1->2 id 929 start 0");
    refused(HtsimCm, &[(&unused, 11, "the trigger 7 starts no flow")]);
    let never = CHAIN.replace(" send_done_trigger 9", "");
    refused(HtsimCm, &[(&never, 7, "the trigger 9 is never activated")]);
    let circle = CHAIN.replace("0->1 id 928 start 0", "0->1 id 928 trigger 9");
    refused(HtsimCm, &[(&circle, 11, "in a circle")]);
    refused(HtsimCm, &[(&CHAIN.replace("Nodes 16", "Nodes 5"), 10, "host 5 does not exist in a file for 5")]);
    let again = CHAIN.replace("trigger id 9 oneshot\n", "trigger id 9 oneshot\ntrigger id 9 oneshot\n");
    refused(HtsimCm, &[(&again, 8, "was given before, in line 7")]);
}

/// Messages of a connection wait for the acknowledgement of the one before, besides their own start or trigger.
#[test]
fn messages_of_a_connection_follow_one_another() {
    let text = "Nodes 4\nConnections 4\nTriggers 2\n0->1 id 3 msg 1 start 0 size 5 send_done_trigger 1\n\
        0->1 id 3 msg 2 start 7 size 6\n2->3 id 4 trigger 1 size 8 send_done_trigger 2\n0->1 id 3 msg 3 trigger 2 size 9\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let made = read_text(HtsimCm, text).unwrap();
    assert!(made.notes.is_empty());
    let waits = |flow: usize| match made.flows[flow].start {
        Start::On(TriggerId(trigger)) => (trigger, &made.triggers[trigger as usize]),
        at => panic!("{at:?}"),
    };
    // The second message: its time, and the first message, which activates the trigger of the file as well.
    let (own, second) = waits(1);
    assert_eq!((second.kind, second.at, &second.targets), (TriggerKind::Barrier(2), Some(Time::from_ps(7)), &vec![1]));
    let first = made.flows[0].on_sent.unwrap();
    assert_eq!(made.triggers[first.0 as usize].next, [TriggerId(0), TriggerId(own)]);
    // The third: the second message, and the trigger of the file in place of a start by that.
    let (own, third) = waits(3);
    assert_eq!((third.kind, third.at, &third.targets), (TriggerKind::Barrier(2), None, &vec![3]));
    assert_eq!(made.flows[1].on_sent, Some(TriggerId(own)));
    assert_eq!((&made.triggers[1].targets, &made.triggers[1].next), (&vec![], &vec![TriggerId(own)]));
    assert_eq!([0, 1, 3].map(|flow| made.flows[flow].connection)[1..], [0, 0]);
    let circle = "Nodes 4\nConnections 2\nTriggers 1\n0->1 id 3 msg 1 trigger 1 size 5\n\
        0->1 id 3 msg 2 start 0 size 6 send_done_trigger 1\ntrigger id 1 oneshot\n";
    assert!(read_text(HtsimCm, circle).unwrap_err().message.contains("wait"));
}

#[test]
fn a_priority_is_a_class_or_noted() {
    let read =
        |prio: &str| read_text(HtsimCm, &format!("Nodes 4\nConnections 1\n0->1 start 0 size 5 {prio}\n")).unwrap();
    // Classes are `data` and `bulk`.
    assert_eq!(["prio 0", "prio 1"].map(|prio| read(prio).flows[0].class), [0, 1]);
    assert!(read("prio 1").notes.is_empty() && read("").notes.is_empty());
    let beyond = read("prio 2");
    assert_eq!(beyond.flows[0].class, read("").flows[0].class);
    assert!(beyond.notes[0].starts_with("f:3: `prio` 2 has no effect") && beyond.notes[0].contains("data, bulk"));
}
