//! Prefetch hint: on large fabrics most packets are outside the processor's caches when their event is handled
//! (measured on 8,192 hosts; see docs/evidence/performance.md).

/// Prefetches the cache line in which `item` begins.
#[inline]
pub(crate) fn prefetch<T>(item: *const T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch neither reads nor writes in the memory model, and does not fault at any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(item.cast::<i8>());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
