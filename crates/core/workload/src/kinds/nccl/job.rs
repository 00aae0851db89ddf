use super::{
    NcclParameters,
    plan::{self, Action},
};
use std::collections::BTreeMap;

/// A collective that ranks run themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct NcclJob {
    /// Its workload, an index into [`crate::FlowSet::workloads`].
    pub workload: u16,
    /// [`crate::Flow::listed`] of its first message; the others follow in order.
    pub first: u32,
    /// The host of each rank.
    pub hosts: Vec<u32>,
    pub parameters: NcclParameters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Round, from zero.
    pub round: u32,
    pub channel: usize,
    /// Rank that sends it, and its position in that rank's program.
    pub from: (usize, usize),
    /// Rank that receives it, and its position in that rank's program.
    pub to: (usize, usize),
    pub bytes: u64,
}

pub(super) fn round(of: &NcclParameters, ranks: usize) -> Vec<Message> {
    let (all, channels) = (of.size.0 as usize, of.channels as usize);
    let mut messages = Vec::new();
    for channel in 0..channels {
        let share = plan::part(&(0..all), channel, channels);
        let programs: Vec<_> =
            (0..ranks).map(|rank| plan::operations(of.collective, rank, ranks, share.clone(), all)).collect();
        // Receives of each pair of ranks, which match the sends in order.
        let mut receives: BTreeMap<(usize, usize), std::vec::IntoIter<usize>> = BTreeMap::new();
        for (to, program) in programs.iter().enumerate() {
            let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (place, (what, _)) in program.iter().enumerate() {
                if let Action::Receive(from, _) = what {
                    places.entry(*from).or_default().push(place);
                }
            }
            receives.extend(places.into_iter().map(|(from, places)| ((from, to), places.into_iter())));
        }
        for (from, program) in programs.iter().enumerate() {
            for (place, (what, bytes)) in program.iter().enumerate() {
                if let Action::Send(to) = *what
                    && let Some(there) = receives.get_mut(&(from, to)).and_then(Iterator::next)
                {
                    let (from, to, bytes) = ((from, place), (to, there), bytes.len() as u64);
                    messages.push(Message { round: 0, channel, from, to, bytes });
                }
            }
        }
    }
    messages
}

impl NcclJob {
    /// Returns all messages in the order of the flows: by round, channel, sender and position in the sender's program.
    pub fn messages(&self) -> impl Iterator<Item = Message> {
        let of_round = round(&self.parameters, self.hosts.len());
        (0..self.parameters.rounds)
            .flat_map(move |round| of_round.clone().into_iter().map(move |message| Message { round, ..message }))
    }
}
