use crate::{
    contents,
    pictures::{Side, picture},
};
use anabranch_lb::registry::{ALIASES, Alias, HostParameters, SwitchParameters};
use anabranch_scenario::explain;
use anabranch_settings::{About, Level, Parameter, Raw};
use std::fmt::Write;

/// Generated file of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Path below `docs/`.
    pub path: String,
    /// Contents.
    pub text: String,
}

/// First line of every generated page.
pub(crate) const WRITTEN: &str =
    "<!-- Written by `cargo run --profile fast -p anabranch-book` from the registry; not to be edited. -->\n\n";

/// Returns all generated pages.
pub fn pages() -> Vec<Page> {
    let sides = sides();
    let mut pages: Vec<Page> =
        sides.iter().map(|name| Page { path: format!("schemes/{name}.md"), text: scheme_page(name) }).collect();
    for (side, abouts) in [(Side::Host, HostParameters::ALL), (Side::Switch, SwitchParameters::ALL)] {
        let drawn = abouts.iter().filter_map(|about| Some((about, picture(side, about.name)?.1)));
        pages.extend(drawn.map(|(about, text)| Page { path: format!("schemes/{}", file(side, about.name)), text }));
    }
    pages.push(Page { path: "schemes/README.md".into(), text: list_page() });
    pages.push(Page { path: "reference/keys.md".into(), text: reference_page() });
    pages.push(Page { path: "reference/keys-expert.md".into(), text: expert_page() });
    pages.push(Page { path: "SUMMARY.md".into(), text: contents::summary(&sides) });
    pages
}

/// Names of the sides of load balancers, each once: every one has a page.
fn sides() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        HostParameters::ALL.iter().chain(SwitchParameters::ALL).map(|about| about.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the side whose page has an alias: that of its name, else the one that distinguishes the pair.
fn page_of(alias: &Alias) -> &'static str {
    match alias {
        alias if sides().contains(&alias.name) => alias.name,
        Alias { host: "ecmp", switch, .. } => switch,
        Alias { host, .. } => host,
    }
}

fn file(side: Side, name: &str) -> String {
    format!("{}-{name}.svg", side.word())
}

pub(crate) fn code(side: Side, name: &str) -> String {
    let file = if name == "rr" { "round_robin".to_string() } else { name.replace('-', "_") };
    format!("crates/core/lb/src/{}/{file}.rs", side.word())
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn scheme_page(name: &str) -> String {
    let mut text = format!("{WRITTEN}# {name}\n\n");
    let mut sides: Vec<(Side, &About)> = Vec::new();
    let mut own: Vec<&Alias> = ALIASES.iter().filter(|alias| page_of(alias) == name).collect();
    own.sort_by_key(|alias| alias.name != name);
    if let Some(alias) = own.first().filter(|alias| alias.name == name) {
        sides
            .extend(HostParameters::ALL.iter().find(|about| about.name == alias.host).map(|about| (Side::Host, about)));
        sides.extend(
            SwitchParameters::ALL.iter().find(|about| about.name == alias.switch).map(|about| (Side::Switch, about)),
        );
    }
    for alias in own {
        text += &pair_text(alias);
    }
    let host = HostParameters::ALL.iter().find(|about| about.name == name);
    let switch = SwitchParameters::ALL.iter().find(|about| about.name == name);
    for (side, about) in [(Side::Host, host), (Side::Switch, switch)] {
        if let Some(about) = about.filter(|about| !sides.contains(&(side, about))) {
            sides.push((side, about));
        }
    }
    // The side that distinguishes a pair comes first. The other has a page of its own.
    sides.sort_by_key(|(_, about)| about.name != name);
    for (side, about) in sides {
        if about.name == name {
            side_text(&mut text, side, about);
        } else {
            let _ = write!(text, "The {} side is [{1}]({1}.md).\n\n", side.word(), about.name);
        }
    }
    text += "All schemes: [the list](README.md). [Which to take](../schemes.md), [how they differ](../explanation/load-balancing.md).\n";
    text
}

fn pair_text(alias: &Alias) -> String {
    let mut text = format!(
        "`{}`: {}. A pair: host side `{}`, switch side `{}`.",
        alias.name, alias.summary, alias.host, alias.switch
    );
    for (key, word) in alias.fixed {
        let _ = write!(text, " The name sets `{key} = \"{word}\"`, regardless of the default below.");
    }
    text + "\n\n"
}

fn side_text(text: &mut String, side: Side, about: &About) {
    let name = about.name;
    let _ = write!(text, "## {} side: {name}\n\n", if side == Side::Host { "Host" } else { "Switch" });
    let does = if about.description.is_empty() { sentence(about.summary) } else { about.description.to_string() };
    let _ = write!(text, "{does}\n\n");
    if let Some((says, _)) = picture(side, name) {
        let _ = write!(text, "![{says}]({})\n\n*{says}*\n\n", file(side, name));
    }
    let _ = write!(text, "Source: {}. Code: `{}`.\n\n", about.source, code(side, name));
    let parameters = match side {
        Side::Host => HostParameters::named(name).ok().map(|scheme| scheme.parameters().documentation()),
        Side::Switch => SwitchParameters::named(name).ok().map(|scheme| scheme.parameters().documentation()),
    };
    match parameters.filter(|all| !all.is_empty()) {
        Some(all) => {
            let (users, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|key| key.level == Level::User);
            if !users.is_empty() {
                let _ = write!(text, "Parameters, in `[load_balancer.{name}]`:\n\n");
                parameter_table(text, &users);
            }
            if !others.is_empty() {
                let names: Vec<String> = others.iter().map(|key| format!("`{}`", key.name)).collect();
                let _ = write!(
                    text,
                    "[Keys for experts and readings](../reference/keys-expert.md): {}.\n\n",
                    names.join(", ")
                );
            }
        }
        None => *text += "It has no parameters.\n\n",
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Appends a table of the keys, with their levels if they are not of users.
fn parameter_table(text: &mut String, parameters: &[Parameter]) {
    let is_expert = parameters.iter().any(|key| key.level != Level::User);
    *text += match is_expert {
        true => "| key | level | default | takes | meaning | default from |\n|---|---|---|---|---|---|\n",
        false => "| key | default | takes | meaning | default from |\n|---|---|---|---|---|\n",
    };
    for p in parameters {
        let level = if is_expert { format!(" {} |", p.level.word()) } else { String::new() };
        let default = match &p.default {
            Raw::Text(word) if word.is_empty() => "none".to_string(),
            raw => format!("`{raw}`"),
        };
        let _ = writeln!(
            text,
            "| `{}` |{level} {} | {} | {} | {} |",
            p.name,
            cell(&default),
            cell(&p.expected),
            cell(p.meaning),
            cell(p.source)
        );
    }
    text.push('\n');
}

fn list_page() -> String {
    let mut text = format!(
        "{WRITTEN}# Every scheme\n\nA load balancer is a pair: hosts write a tag into every packet, and switches choose next hops with or \
         without it ([how schemes differ](../explanation/load-balancing.md)). Every side has a page \
         with a picture of its mechanism, and a scenario takes the names below: `scheme = \"prime\"`. In the pictures, packets are numbered per flow in the order of sending. The packet sent last \
         is on the left, and a red frame means a congestion mark.\n\n| name | pair | what it does |\n|---|---|---|\n"
    );
    for alias in ALIASES {
        let (name, page, summary) = (alias.name, page_of(alias), cell(alias.summary));
        let _ = writeln!(text, "| [{name}]({page}.md) | `{}+{}` | {summary} |", alias.host, alias.switch);
    }
    for about in HostParameters::ALL.iter().chain(SwitchParameters::ALL) {
        if !ALIASES.iter().any(|alias| page_of(alias) == about.name) {
            let _ = writeln!(text, "| [{0}]({0}.md) | one side | {1} |", about.name, cell(about.summary));
        }
    }
    text
}

fn reference_page() -> String {
    let mut text = format!(
        "{WRITTEN}# Keys of a scenario\n\nThe keys of users, from the declarations that read them. [Scenario files](scenarios.md) \
         shows how they combine. `anabranch explain KEY` shows one of them, `anabranch schema` prints all as a JSON Schema for \
         editors. [Further keys](keys-expert.md) are for experts and for readings of papers.\n\n"
    );
    key_tables(&mut text, |level| level == Level::User);
    text
}

fn expert_page() -> String {
    let mut text = format!(
        "{WRITTEN}# Keys for experts and readings\n\nKeys of two further levels; a scenario sets them as it sets \
         [those of users](keys.md). *Expert* keys are constants of algorithms, models and datapaths (`anabranch explain \
         NAME --expert`). *Reading* keys only try readings of a paper, or its artifact (`--readings`): `check`, the manifest \
         and the page of a result name those that are set.\n\n"
    );
    key_tables(&mut text, |level| level != Level::User);
    text
}

fn key_tables(text: &mut String, is_shown: impl Fn(Level) -> bool) {
    for mut part in explain::reference() {
        part.parameters.retain(|key| is_shown(key.level));
        if part.parameters.is_empty() {
            continue;
        }
        let _ = write!(text, "## {}\n\n", part.table.replace('<', "&lt;"));
        let meaning: Vec<&str> = part.meaning.lines().take_while(|line| !line.starts_with("  ")).collect();
        if !meaning.is_empty() {
            let _ = write!(text, "{}\n\n", meaning.join(" ").replace('<', "&lt;"));
        }
        parameter_table(text, &part.parameters);
    }
}
