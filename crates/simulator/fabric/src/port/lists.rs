//! Which ports have more to send than has been worked out.

use crate::ids::PortId;

/// The list of the running cell, and those of the others.
#[derive(Debug)]
pub(crate) struct Lists {
    running: Vec<PortId>,
    parked: Vec<Vec<PortId>>,
}

impl Lists {
    /// Empty lists of so many cells.
    pub(super) fn new(cells: usize) -> Self {
        Lists { running: Vec::new(), parked: vec![Vec::new(); cells] }
    }

    /// A port of the running cell that is not in the list.
    #[inline]
    pub(super) fn push(&mut self, port: PortId) {
        self.running.push(port);
    }

    /// The cell's turn begins.
    pub(crate) fn open(&mut self, cell: u32) {
        debug_assert!(self.running.is_empty());
        std::mem::swap(&mut self.running, &mut self.parked[cell as usize]);
    }

    /// The ports in the order in which they were listed.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<PortId> {
        self.running.get(index).copied()
    }

    /// The list, at the end of the cell's turn.
    pub(crate) fn take(&mut self) -> Vec<PortId> {
        std::mem::take(&mut self.running)
    }

    /// What is left of the list waits for the cell's next turn.
    pub(crate) fn park(&mut self, cell: u32, mut list: Vec<PortId>) {
        std::mem::swap(&mut self.parked[cell as usize], &mut list);
        self.running = list;
        debug_assert!(self.running.is_empty());
    }
}
