//! Memory that hardware may read and write, registered while a message may use it: `torch` does not report freed tensors, so only
//! the group's own memory stays registered between operations.

use super::program::Block;
use crate::plugin::{Opaque, Plugin, PluginError};
use std::sync::Arc;

#[expect(unsafe_code)]
pub(super) fn bytes<'a>(block: Block) -> &'a mut [u8] {
    if block.len == 0 {
        return &mut [];
    }
    // SAFETY: the operation owns its blocks until it is done; steps that touch the same bytes wait for each other.
    unsafe { std::slice::from_raw_parts_mut(block.at as *mut u8, block.len) }
}

/// Registrations, which end when it is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    plugin: Arc<Plugin>,
    all: Vec<Opaque>,
}

impl Registered {
    /// Registers blocks with the device of a connection; adjacent ones at once.
    pub(super) fn new(plugin: &Arc<Plugin>, connection: Opaque, mut blocks: Vec<Block>) -> Result<Self, PluginError> {
        let mut this = Registered { plugin: Arc::clone(plugin), all: Vec::new() };
        blocks.retain(|block| block.len > 0);
        blocks.sort_by_key(|block| block.at);
        blocks.dedup_by(|next, block| {
            let touches = next.at <= block.at + block.len;
            if touches {
                block.len = block.len.max(next.at + next.len - block.at);
            }
            touches
        });
        for block in blocks {
            this.all.push(plugin.register(connection, bytes(block))?);
        }
        Ok(this)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        for memory in &self.all {
            // Of a plugin that has failed there is no one to report to.
            let _ = self.plugin.deregister(Opaque::NULL, *memory);
        }
    }
}

/// Registered memory of the group's own.
#[derive(Debug)]
pub(super) struct Buffer {
    #[expect(dead_code, reason = "dropped before the memory")]
    registered: Registered,
    pub(super) bytes: Vec<u8>,
}

impl Buffer {
    pub(super) fn new(plugin: &Arc<Plugin>, connection: Opaque, len: usize) -> Result<Self, PluginError> {
        let bytes = vec![0; len];
        let block = Block { at: bytes.as_ptr() as usize, len };
        Ok(Buffer { registered: Registered::new(plugin, connection, vec![block])?, bytes })
    }

    pub(super) fn at(&mut self) -> usize {
        self.bytes.as_mut_ptr() as usize
    }
}
