//! Schemes of another crate, which builds a plugin of its own.

use anabranch_settings::{Addition, external};
use std::sync::OnceLock;

static MISTAKES: OnceLock<String> = OnceLock::new();

/// Adds schemes. Called by [`plugin!`](crate::plugin) while the library is loaded; errors are reported at `init`.
pub fn add(additions: Vec<Addition>) {
    if let Err(mistakes) = external::add(additions) {
        let _ = MISTAKES.set(mistakes);
    }
}

/// Returns the errors of [`add`].
pub(crate) fn check() -> Result<(), String> {
    MISTAKES.get().map_or(Ok(()), |mistakes| Err(mistakes.clone()))
}

/// Makes of a crate of type `cdylib` a plugin with these schemes, a `Vec<Addition>`.
#[macro_export]
macro_rules! plugin {
    ($schemes:expr) => {
        extern "C" fn add_schemes() {
            $crate::add($schemes);
        }

        #[used]
        #[unsafe(link_section = ".init_array")]
        static ADD_SCHEMES: extern "C" fn() = add_schemes;
    };
}
