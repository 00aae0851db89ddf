use crate::{figures::with_series, page::parts::fonts};
use anabranch_results::ReportError;
use minijinja::{AutoEscape, Environment, Value, context};

const TEMPLATE: &str = include_str!("page/view.html.jinja");
const STYLE: &str = include_str!("page/view.css");
/// Library for drawing, scales and zoom; see `vendor/README.md`.
const D3: &str = include_str!("../../vendor/d3.min.js");
/// The page's own scripts, in the order of their dependencies.
const SCRIPTS: &[&str] = &[
    include_str!("page/data.js"),
    include_str!("page/measures.js"),
    include_str!("page/panel.js"),
    include_str!("page/timeline.js"),
    include_str!("page/details.js"),
    include_str!("page/packets.js"),
    include_str!("page/schemes.js"),
    include_str!("page/jobs.js"),
    include_str!("page/main.js"),
];
const MARK: &str = "<meta name=\"generator\" content=\"Anabranch fabric view\">";
/// Placeholder in a report for the link to the view.
pub(super) const NO_LINK: &str = "<!--view-->";
/// What links to a flow of the view, hidden in a report without view.
pub(super) const HIDDEN: &str = "<span hidden data-view>";
pub(super) const SHOWN: &str = "<span data-view>";
pub(super) const LINK: &str = "<a href=\"view.html\">fabric view</a>";

/// `blocks` contains one block of data per run.
pub(super) fn render(title: &str, blocks: &[String]) -> Result<String, ReportError> {
    let wrong = |error: minijinja::Error| ReportError::drawing("view.html", error);
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("view.html", TEMPLATE).map_err(wrong)?;
    let page = context! {
        mark => Value::from_safe_string(MARK.to_string()),
        style => Value::from_safe_string(with_series(STYLE, "c")),
        fonts => fonts(),
        title => title,
        blocks => blocks.iter().map(|block| Value::from_safe_string(block.clone())).collect::<Vec<_>>(),
        library => Value::from_safe_string(D3.to_string()),
        script => Value::from_safe_string(SCRIPTS.join("\n")),
    };
    environment.get_template("view.html").and_then(|template| template.render(page)).map_err(wrong)
}
