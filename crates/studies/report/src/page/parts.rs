use crate::{
    Figure, FigureFiles,
    figures::{BOLD, REGULAR, with_series},
};
use anabranch_results::{PAGE, ReportError};
use base64::{Engine, prelude::BASE64_STANDARD};
use minijinja::{AutoEscape, Environment, Value, context};

const STYLE: &str = include_str!("style.css");
const SORT: &str = include_str!("sort.js");
const FIGURES: &str = include_str!("figures.js");

/// Files larger than this, in bytes, are named on the page but not embedded.
const LARGEST: usize = 600_000;

pub(crate) fn render(template: &str, values: Value) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let shared = context! {
        style => Value::from_safe_string(with_series(STYLE, "s")),
        script => Value::from_safe_string(format!("{SORT}\n{FIGURES}")),
        fonts => fonts(),
    };
    let page = environment.render_named_str(PAGE, template, context! { ..shared, ..values });
    page.map(|page| with_code(&page)).map_err(|error| ReportError::drawing(PAGE, error))
}

/// Sets what sentences have between backticks as code: they are written for terminals too.
fn with_code(page: &str) -> String {
    /// Elements whose text is no prose.
    const KEPT: [&str; 5] = ["script", "style", "pre", "code", "svg"];
    let (mut out, mut rest) = (String::with_capacity(page.len()), page);
    while let Some(at) = rest.find('<') {
        out.push_str(&of_text(&rest[..at]));
        rest = &rest[at..];
        let name = rest[1..].split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let end = if KEPT.contains(&name) { rest.find(&format!("</{name}")) } else { rest.find('>') };
        let (tag, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        out.push_str(tag);
        rest = after;
    }
    out.push_str(&of_text(rest));
    out
}

fn of_text(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    match parts.len() % 2 {
        // One without its pair is no code.
        0 => text.to_string(),
        _ => parts
            .chunks(2)
            .map(|part| match part {
                [plain, code] => format!("{plain}<code>{code}</code>"),
                _ => part.concat(),
            })
            .collect(),
    }
}

pub(crate) fn fonts() -> [Value; 2] {
    // Escaping would change the slashes of a data URL, so the font is marked as safe.
    let font =
        |font: &[u8]| Value::from_safe_string(format!("data:font/woff2;base64,{}", BASE64_STANDARD.encode(font)));
    [(REGULAR, 400), (BOLD, 600)].map(|(bytes, weight)| context! { weight => weight, url => font(bytes) })
}

/// Embeds files and points in the page.
pub(crate) fn figure(figure: &Figure, files: &FigureFiles) -> Value {
    let name = &figure.file;
    let url = |kind: &str, bytes: &[u8]| {
        (bytes.len() <= LARGEST)
            .then(|| Value::from_safe_string(format!("data:{kind};base64,{}", BASE64_STANDARD.encode(bytes))))
    };
    let downloads: Vec<Value> = [
        ("SVG", "svg", url("image/svg+xml", files.svg.as_bytes())),
        ("PDF", "pdf", url("application/pdf", &files.pdf)),
        ("PNG", "png", url("image/png", &files.png)),
        ("rows (CSV)", "csv", url("text/csv;charset=utf-8", files.csv.as_bytes())),
    ]
    .into_iter()
    .map(|(label, extension, url)| context! { label => label, file => format!("{name}.{extension}"), url => url })
    .collect();
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    let hits: Vec<serde_json::Value> = figure
        .hits
        .iter()
        .map(|hit| serde_json::json!([tenth(hit.at.0), tenth(hit.at.1), hit.series, hit.text]))
        .collect();
    // Text inside a script must not end it.
    let hits = serde_json::Value::from(hits).to_string().replace('<', "\\u003c");
    context! {
        name => name,
        title => &figure.title,
        caption => &figure.caption,
        svg => Value::from_safe_string(figure.svg.clone()),
        hits => Value::from_safe_string(hits),
        downloads => downloads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_in_prose_are_code() {
        let page =
            "<p title=\"`a`\">set `k = 1` or `b`</p><pre>`x`</pre><script>if (a < b) `c`</script>one ` alone<b>`d`</b>";
        let shown = "<p title=\"`a`\">set <code>k = 1</code> or <code>b</code></p><pre>`x`</pre><script>if (a < b) `c`</script>one ` alone<b><code>d</code></b>";
        assert_eq!(with_code(page), shown);
    }
}
