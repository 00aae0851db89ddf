//! Enums whose variants have a word each.

/// Declares an enum with the word of each variant, which `word` returns.
#[macro_export]
macro_rules! worded {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        pub enum $name {
            $($(#[$about])* $variant,)+
        }
        impl $name {
            /// Returns its word in tables, files and messages.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
