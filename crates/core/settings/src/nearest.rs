//! The nearest valid words to one that was found.

/// Distance of `name` from the word `found`: names that begin with it come first, then names that contain it, then others by
/// edit distance. Both are in lower case with `-`.
fn distance(found: &str, name: &str) -> (u8, usize) {
    /// Shorter words are part of too many names.
    const SHORTEST: usize = 3;
    let class = match found.len() >= SHORTEST {
        true if name.starts_with(found) => 0,
        true if name.contains(found) => 1,
        _ => 2,
    };
    (class, strsim::damerau_levenshtein(found, name))
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace('_', "-")
}

/// Returns the `number` names nearest to `found`, regardless of distance, nearest first; each once.
pub fn nearest_few<'a>(found: &str, names: impl IntoIterator<Item = &'a str>, number: usize) -> Vec<String> {
    // A word this long is no typing error, and the time of the distance grows with its length.
    let found: String = plain(found).chars().take(200).collect();
    let mut near: Vec<_> = names.into_iter().map(|name| (distance(&found, &plain(name)), name)).collect();
    near.sort();
    near.dedup();
    near.into_iter().take(number).map(|(_, name)| name.to_string()).collect()
}

/// Returns the nearest of `names` to `found`, if any is close enough: it begins with `found` or contains it, or differs
/// from it in a third of its letters at most.
pub fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if found.len() > 200 {
        return None;
    }
    let found = plain(found);
    names
        .into_iter()
        .map(|name| (distance(&found, &plain(name)), name))
        .filter(|((class, distance), name)| *class < 2 || *distance <= 1 + name.len().max(found.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_string())
}
