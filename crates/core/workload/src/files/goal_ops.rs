use anabranch_units::Time;

/// `-1` as source or tag of a receive.
pub(super) const ANY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Send { to: u32, bytes: u64, tag: u32 },
    Receive { from: u32, bytes: u64, tag: u32 },
    Calc { delay: Time, cpu: u8 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) what: OperationKind,
    /// Its line in a text, its number within its rank in a binary file.
    pub(super) at: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) cause: u32,
    pub(super) of_start: bool,
    pub(super) waiter: u32,
}

#[derive(Debug, Default)]
pub(super) struct Rank {
    pub(super) ops: Vec<Op>,
    pub(super) edges: Vec<Edge>,
    /// The first operation on another NIC than 0: as [`Op::at`], and its NIC.
    pub(super) other_nic: Option<(u32, u8)>,
}

pub(super) fn check_ranks(found: u64, hosts: u32) -> Result<u32, String> {
    match u32::try_from(found) {
        Ok(0) => Err("the schedule is for 0 ranks, expected 1 or more".into()),
        Ok(ranks) if ranks <= hosts => Ok(ranks),
        _ => Err(format!(
            "the schedule is for {found} ranks, and the topology has {hosts} hosts: each rank runs on a host of its own"
        )),
    }
}

pub(super) fn check_peer(rank: u32, ranks: u32, what: OperationKind) -> Result<(), String> {
    let (peer, tag, word) = match what {
        OperationKind::Send { to, tag, .. } => (to, tag, "send to"),
        OperationKind::Receive { from, tag, .. } => (from, tag, "receive from"),
        OperationKind::Calc { .. } => return Ok(()),
    };
    match peer {
        ANY => Err(format!("{word} -1: any rank; not supported, expected the rank's number, 0 to {}", ranks - 1)),
        _ if peer == rank => Err(format!("{word} rank {peer}: that is the rank itself, expected another")),
        _ if peer >= ranks => Err(format!("{word} rank {peer}: no such rank; ranks are 0 to {}", ranks - 1)),
        _ if tag == ANY => Err("tag -1: any tag; not supported, expected the tag's number".into()),
        _ => Ok(()),
    }
}

pub(super) fn calc(ns: u64, cpu: u8) -> Result<OperationKind, String> {
    match ns.checked_mul(1000) {
        Some(ps) => Ok(OperationKind::Calc { delay: Time::from_ps(ps), cpu }),
        None => Err(format!("calc: found {ns} ns, expected a time below 213 days")),
    }
}
