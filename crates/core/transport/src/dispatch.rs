//! Static dispatch over a list of kinds: enums whose variants have the same names.

/// Defines three macros for the kinds of a list. `of!(value, Enum(it) => result)` evaluates `result` for the value's
/// kind. `made!(value, Enum(it) => Other(result))` builds another enum of the same kind. `both!(value, config: Enum(it,
/// constants) => result)` matches a value and the constants of its run, which have one kind.
macro_rules! dispatch {
    ($dollar:tt $constants:ident: $($kind:ident)*) => {
        #[allow(unused_macros)]
        macro_rules! of {
            ($dollar value:expr, $dollar from:ident($dollar it:pat) => $dollar result:expr) => {
                match $dollar value { $($dollar from::$kind($dollar it) => $dollar result,)* }
            };
        }
        macro_rules! made {
            ($dollar value:expr, $dollar from:ident($dollar it:ident) => $dollar to:ident($dollar result:expr)) => {
                match $dollar value { $($dollar from::$kind($dollar it) => $dollar to::$kind($dollar result),)* }
            };
        }
        macro_rules! both {
            ($dollar value:expr, $dollar config:ident: $dollar from:ident($dollar it:ident, $dollar of:ident) => $dollar result:expr) => {
                match ($dollar value, $dollar config) {
                    $(($dollar from::$kind($dollar it), $constants::$kind($dollar of)) => $dollar result,)*
                    _ => unreachable!("one kind per run"),
                }
            };
        }
    };
}
pub(crate) use dispatch;

/// Defines methods of an enum that call those of a trait for its kind, with the constants of the run, `config`.
macro_rules! calls {
    ($seen:vis $type:ident, $trait:ident, $config:ident, $me:ident: $(
        $([$mut:tt])? fn $name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)?;
    )*) => {
        impl $type {
            $(
                #[doc = concat!("See [`", stringify!($trait), "::", stringify!($name), "`].")]
                #[inline]
                $seen fn $name(&$($mut)? $me, config: &$config, $($arg: $kind),*) $(-> $result)? {
                    both!($me, config: $type(it, constants) => $trait::$name(it, constants, $($arg),*))
                }
            )*
        }
    };
}
pub(crate) use calls;
