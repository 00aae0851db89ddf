//! Lists of the ports that have more to send than they have been advanced to.

use crate::ids::PortId;

#[derive(Debug)]
pub(crate) struct Lists {
    running: Vec<PortId>,
    parked: Vec<Vec<PortId>>,
}

impl Lists {
    pub(super) fn new(cells: usize) -> Self {
        Lists { running: Vec::new(), parked: vec![Vec::new(); cells] }
    }

    /// Adds a port of the running cell that is not in the list.
    #[inline]
    pub(super) fn push(&mut self, port: PortId) {
        self.running.push(port);
    }

    pub(crate) fn open(&mut self, cell: u32) {
        debug_assert!(self.running.is_empty());
        std::mem::swap(&mut self.running, &mut self.parked[cell as usize]);
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<PortId> {
        self.running.get(index).copied()
    }

    pub(crate) fn take(&mut self) -> Vec<PortId> {
        std::mem::take(&mut self.running)
    }

    pub(crate) fn park(&mut self, cell: u32, mut list: Vec<PortId>) {
        std::mem::swap(&mut self.parked[cell as usize], &mut list);
        self.running = list;
        debug_assert!(self.running.is_empty());
    }
}
