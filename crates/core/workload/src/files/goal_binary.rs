//! Binary form of a GOAL schedule. All of it is checked: one writer in circulation produces broken files.
//!
//! u64 4223; then, offsets counted from here, u32 ranks, u8 processors and u8 NICs at most, per rank u64 start and end.
//! A rank: u32 nodes, u32 roots, the roots; records of 39 B, little-endian and packed: u32 dependencies, u8 type (1
//! send, 2 receive, 3 calc), u32 peer, u64 size, u32 tag, u8 processor, u8 NIC, u32 count and u32 first index of those
//! that depend on the end, the same of those that depend on the start; then the appendix of u32 node numbers.

use super::{
    Source,
    goal_ops::{Edge, Op, OperationKind, Rank, calc, check_peer, check_ranks},
};
use crate::WorkloadError;

const MAGIC: u64 = 4223;
/// Bytes of the magic number, from whose end offsets count.
const BEFORE: usize = 8;
/// Number of ranks, largest processor and largest NIC.
const HEADER: usize = 6;
const NODE: usize = 39;

pub(super) fn is_one(content: &[u8]) -> bool {
    content.starts_with(&MAGIC.to_le_bytes()) || content.get(..BEFORE).is_some_and(|start| start.contains(&0))
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// Returns zeros past the end of the file, which callers rule out.
    fn take<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.take(at))
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.take(at))
    }
}

pub(super) fn read(source: &Source<'_>) -> Result<Vec<Rank>, WorkloadError> {
    let wrong = |message: String| WorkloadError { place: Some(source.path.into()), ..WorkloadError::new(message) };
    let magic = Bytes(source.content).u64(0);
    if magic != MAGIC {
        return Err(wrong(format!(
            "found neither a text nor a binary schedule: that begins with {MAGIC}, not {magic}"
        )));
    }
    let content = &source.content[BEFORE..];
    let length = content.len();
    if length < HEADER {
        return Err(wrong(format!("the file ends after {length} B of its header, expected {HEADER} B")));
    }
    let ranks = check_ranks(u64::from(Bytes(content).u32(0)), source.hosts).map_err(wrong)?;
    let table = HEADER + 16 * ranks as usize;
    if length < table {
        return Err(wrong(format!("the file ends within the table of its {ranks} ranks")));
    }
    let of_rank = |rank: u32| {
        let wrong = |op: Option<u32>, message: String| {
            let op = op.map(|op| format!(", operation {op}")).unwrap_or_default();
            WorkloadError { place: Some(format!("{}: rank {rank}{op}", source.path)), ..WorkloadError::new(message) }
        };
        let entry = HEADER + 16 * rank as usize;
        let (start, end) = (Bytes(content).u64(entry), Bytes(content).u64(entry + 8));
        if start < table as u64 || end < start || end > length as u64 {
            let message = format!("found the bytes {start} to {end}, expected some between {table} and {length}");
            return Err(wrong(None, message));
        }
        read_rank(&content[start as usize..end as usize], rank, ranks, &wrong)
    };
    (0..ranks).map(of_rank).collect()
}

fn read_rank(
    content: &[u8],
    rank: u32,
    ranks: u32,
    wrong: &dyn Fn(Option<u32>, String) -> WorkloadError,
) -> Result<Rank, WorkloadError> {
    let bytes = Bytes(content);
    let (nodes, roots) = (bytes.u32(0), bytes.u32(4));
    let first_node = 8 + 4 * u64::from(roots);
    let nodes_end = first_node + NODE as u64 * u64::from(nodes);
    if content.len() < 8 || nodes_end > content.len() as u64 {
        let message = format!("{nodes} operations and {roots} roots need {nodes_end} B, and the rank has");
        return Err(wrong(None, format!("{message} {} B", content.len())));
    }
    let appendix = nodes_end as usize;
    let entries = ((content.len() - appendix) / 4) as u64;
    let mut made = Rank::default();
    // Dependencies that each operation declares, less the operations that list it as a dependent.
    let mut open = Vec::with_capacity(nodes as usize);
    for number in 0..nodes {
        let at = first_node as usize + NODE * number as usize;
        let here = |message: String| wrong(Some(number), message);
        let (peer, size, tag, cpu) =
            (bytes.u32(at + 5), bytes.u64(at + 9), bytes.u32(at + 17), bytes.take::<1>(at + 21)[0]);
        let what = match bytes.take::<1>(at + 4)[0] {
            1 => OperationKind::Send { to: peer, bytes: size, tag },
            2 => OperationKind::Receive { from: peer, bytes: size, tag },
            3 => calc(size, cpu).map_err(here)?,
            other => return Err(here(format!("type: found {other}, expected 1 (send), 2 (receive) or 3 (calc)"))),
        };
        check_peer(rank, ranks, what).map_err(here)?;
        made.ops.push(Op { what, at: number });
        let nic = bytes.take::<1>(at + 22)[0];
        if nic != 0 {
            made.other_nic.get_or_insert((number, nic));
        }
        open.push(i64::from(bytes.u32(at)));
        for (of_start, at) in [(false, at + 23), (true, at + 31)] {
            let (count, first) = (u64::from(bytes.u32(at)), u64::from(bytes.u32(at + 4)));
            if count > 0 && first + count > entries {
                let message = format!("dependents: found the entries {first} to {}", first + count - 1);
                return Err(here(format!("{message} of the appendix, which has {entries}")));
            }
            if made.edges.len() as u64 + count > entries {
                let message = format!("dependents: more in all than the {entries} entries of the appendix");
                return Err(here(format!("{message}: lists overlap")));
            }
            for entry in first..first + count {
                let waiter = bytes.u32(appendix + 4 * entry as usize);
                if waiter >= nodes {
                    let message = format!("dependents: found operation {waiter}");
                    return Err(here(format!("{message}; operations are 0 to {}", nodes - 1)));
                }
                made.edges.push(Edge { cause: number, of_start, waiter });
            }
        }
    }
    let stated: Vec<i64> = open.clone();
    made.edges.iter().for_each(|edge| open[edge.waiter as usize] -= 1);
    if let Some((number, _)) = (0..).zip(&open).find(|(_, open)| **open != 0) {
        let (says, named) = (stated[number as usize], stated[number as usize] - open[number as usize]);
        let message = format!("waits for {says} operations by its count, and {named} name it as their dependent");
        return Err(wrong(Some(number), message));
    }
    check_roots(&bytes, roots, &stated).map_err(|message| wrong(None, message))?;
    Ok(made)
}

fn check_roots(bytes: &Bytes<'_>, roots: u32, waits: &[i64]) -> Result<(), String> {
    let mut is_root = vec![false; waits.len()];
    for index in 0..roots as usize {
        let root = bytes.u32(8 + 4 * index);
        match waits.get(root as usize) {
            None => return Err(format!("roots: found operation {root}, and the rank has {}", waits.len())),
            Some(0) if !is_root[root as usize] => is_root[root as usize] = true,
            Some(0) => return Err(format!("roots: operation {root} comes twice")),
            Some(waits) => return Err(format!("roots: operation {root} waits for {waits} others")),
        }
    }
    match (0..waits.len()).find(|&op| waits[op] == 0 && !is_root[op]) {
        Some(op) => Err(format!("roots: operation {op} waits for nothing and is not among them")),
        None => Ok(()),
    }
}
