//! The table of contents: `docs/SUMMARY.md`, whose list of schemes follows from the registry.

/// Returns the table of contents with the pages of these schemes; the rest stays as it was.
pub(crate) fn summary(before: &str, names: &[&str]) -> String {
    let pages: String = names.iter().map(|name| format!("  - [{name}](schemes/{name}.md)\n")).collect();
    let lines = before.lines().filter(|line| !line.starts_with("  - [") || !line.contains("](schemes/"));
    lines.map(|line| format!("{line}\n{}", if line.ends_with("](schemes/README.md)") { &pages } else { "" })).collect()
}
