//! A hint to the processor: on large fabrics most packets lie outside its caches when their event comes up.
//! Measured on 8,192 hosts; see docs/validation.md, "Speed".

/// Asks for the cache line in which `item` begins. Has no effect but on time.
#[inline]
pub(crate) fn prefetch<T>(item: &T) {
    fetch_line(item, 0);
}

/// Asks for every cache line of `item`.
#[inline]
pub(crate) fn prefetch_all<T>(item: &T) {
    for offset in (0..size_of::<T>()).step_by(64) {
        fetch_line(item, offset);
    }
}

#[inline]
fn fetch_line<T>(item: &T, offset: usize) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: the address lies within a live reference's object, and a prefetch neither reads nor writes in the memory
    // model.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast::<i8>().add(offset));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (item, offset);
}
