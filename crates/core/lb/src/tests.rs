//! Broken schemes, PRIME against a naive model, round robin.

mod broken;
mod prime_reference;
mod prime_theorem;
mod round_robin;
mod state;

#[global_allocator]
static ALLOCATOR: crate::checks::CountingAllocator = crate::checks::CountingAllocator;
