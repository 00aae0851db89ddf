//! Conversion of panics of the Parquet library into errors: it panics on some damaged files.

use parquet::errors::{ParquetError, Result};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library; a panic becomes an error and is not printed.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                previous(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(before);
    result.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(ParquetError::General(message.unwrap_or("it is damaged").to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_error() {
        let error = guarded(|| -> Result<()> { panic!("no {}", "dictionary") }).unwrap_err();
        assert!(error.to_string().contains("no dictionary"), "{error}");
        assert_eq!(guarded(|| Ok(3)).unwrap(), 3);
        assert!(!GUARDED.get());
    }
}
