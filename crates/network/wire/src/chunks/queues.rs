use super::{ChunkPath, QueueId};
use crate::{Label, WireError};
use anabranch_units::Time;

#[derive(Debug)]
struct Queue {
    id: QueueId,
    label: Label,
    outstanding: u32,
    failed: bool,
    /// Value of `choices` when the queue was last chosen.
    used: u64,
}

/// A label keeps its queue, so that data use the queue that was probed.
#[derive(Debug, Default)]
pub(super) struct Queues {
    max: u32,
    queues: Vec<Queue>,
    choices: u64,
    pub(super) relabelled: u64,
    pub(super) relabel_time: Time,
}

impl Queues {
    pub(super) fn new(max: u32) -> Self {
        Queues { max: max.max(1), ..Queues::default() }
    }

    /// A label without a queue gets a new one or, at the maximum number, the least recently used idle one, except that
    /// of the label `spare`. `None`: no queue is available.
    pub(super) fn of(
        &mut self,
        path: &mut impl ChunkPath,
        label: Label,
        spare: Option<Label>,
    ) -> Result<Option<QueueId>, WireError> {
        self.choices += 1;
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.label == label) {
            if queue.failed {
                return Ok(None);
            }
            queue.used = self.choices;
            return Ok(Some(queue.id));
        }
        if self.queues.len() < self.max as usize {
            let id = path.queue(label)?;
            self.queues.push(Queue { id, label, outstanding: 0, failed: false, used: self.choices });
            return Ok(Some(id));
        }
        let idle = |queue: &&mut Queue| queue.outstanding == 0 && !queue.failed && Some(queue.label) != spare;
        let Some(queue) = self.queues.iter_mut().filter(idle).min_by_key(|queue| queue.used) else { return Ok(None) };
        self.relabel_time += path.relabel(queue.id, label)?;
        self.relabelled += 1;
        (queue.label, queue.used) = (label, self.choices);
        Ok(Some(queue.id))
    }

    pub(super) fn posted(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.id == id) {
            queue.outstanding += 1;
        }
    }

    /// Recovers a failed queue after its last chunk.
    pub(super) fn completed(&mut self, path: &mut impl ChunkPath, id: QueueId, is_done: bool) -> Result<(), WireError> {
        let Some(queue) = self.queues.iter_mut().find(|queue| queue.id == id) else { return Ok(()) };
        queue.outstanding = queue.outstanding.saturating_sub(1);
        queue.failed |= !is_done;
        if queue.failed && queue.outstanding == 0 {
            self.relabel_time += path.relabel(id, queue.label)?;
            queue.failed = false;
        }
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.queues.len()
    }
}
