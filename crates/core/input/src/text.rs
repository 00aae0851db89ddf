//! Foreign text for terminals, pages and file names.

use std::{borrow::Cow, fmt::Write};

/// Maximum characters of a name.
pub const MAX_NAME: usize = 1000;

/// Returns `true` if a terminal executes the character, it changes the direction of its line, or XML cannot hold it.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns `true` if `text` contains no terminal control characters except line breaks and tabs.
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| is_control(c) && !matches!(c, '\n' | '\t'))
}

/// Returns the problem of `name` as a name, if any: a control character, or too many characters.
pub fn wrong_name(name: &str) -> Option<String> {
    if let Some(c) = name.chars().find(|c| is_control(*c)) {
        return Some(format!("found the control character U+{:04X}, expected text that can be shown", u32::from(c)));
    }
    let found = name.chars().count();
    (found > MAX_NAME).then(|| format!("found {found} characters, expected at most {MAX_NAME}"))
}

/// Returns `text` with control characters as escapes such as `\u{1b}`, for messages. Line breaks and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            // Writing to a string cannot fail.
            c if is_control(c) => drop(write!(out, "{}", c.escape_unicode())),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns `text` with control characters replaced by others of the same length in bytes, which preserves offsets.
pub fn masked(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mask = |c: char| match c {
        '\n' | '\t' => c,
        '\r' => ' ',
        c if is_control(c) => ['?', '\u{bf}', '\u{fffd}'][c.len_utf8() - 1],
        c => c,
    };
    Cow::Owned(text.chars().map(mask).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[31m\r\u{7f}\u{9b}\u{202e}\tb\n";

    #[test]
    fn escaped_text_has_no_control_characters() {
        assert_eq!(escaped(HOSTILE), "a\\u{1b}[31m\\u{d}\\u{7f}\\u{9b}\\u{202e}\tb\n");
        assert_eq!(masked(HOSTILE), "a?[31m ?\u{bf}\u{fffd}\tb\n");
        assert_eq!(masked(HOSTILE).len(), HOSTILE.len(), "places stay");
        assert!(is_plain(&escaped(HOSTILE)) && is_plain(&masked(HOSTILE)) && !is_plain(HOSTILE));
        assert!(matches!(escaped("训练 \u{fc}\n"), Cow::Borrowed(_)));
    }

    /// XML 1.0, section 2.2: `Char`. Characters from U+10000 on are all allowed.
    #[test]
    fn escaped_text_is_of_xml() {
        for c in '\0'..='\u{ffff}' {
            let is_char = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}');
            assert!(escaped(&c.to_string()).chars().all(is_char), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn valid_names_are_printable_and_bounded() {
        assert_eq!(wrong_name("训练 <script> =1+1"), None);
        assert!(wrong_name("a\nb").unwrap().contains("U+000A"));
        assert!(wrong_name(&"x".repeat(MAX_NAME)).is_none());
        assert!(wrong_name(&"x".repeat(MAX_NAME + 1)).unwrap().contains("found 1001"));
    }
}
