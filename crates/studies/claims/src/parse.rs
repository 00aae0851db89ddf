//! Parser of claim files: checks every key, types every value, and reports errors with their position.

use super::{
    Best, Claim, ClaimKind, Figure, FigureKind, Filter, Metric, MetricError, Operand, Published, Quick, Reading,
    Reduce, SeedStatistic, Study, StudyBound, Take, Target,
};
use anabranch_results::Axis;
use anabranch_scenario::{
    Node, Place, ScenarioError, Section, Tree, did_you_mean,
    document::text,
    tree::{Source, Value},
};
use anabranch_settings::Raw;
use anabranch_study::sweep::{flatten, variants};
use anabranch_units::Bytes;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct SourceFile {
    pub name: String,
    pub text: String,
}

const STUDY: &str = "id label scenario set over mode schemes variants seeds bins bound quick";
const QUICK: &str = "set over schemes seeds";
const FIGURE: &str = "id title study kind metrics metric x series panel where x_title y_title log relative_to across \
     table_rows digits published note";
const CLAIM: &str = "id figure section says study quick_study metric kind a b where a_where b_where each take across \
     published tolerance ours readings tried note better reduce along order strict";
const KINDS: &[&str] = &["change", "factor", "value", "equal", "order", "trend", "shown"];

fn keys(names: &'static str) -> Vec<&'static str> {
    names.split(' ').collect()
}

#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) names: BTreeMap<String, String>,
    pub(crate) studies: Vec<Study>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) readings: Vec<Reading>,
}

pub(crate) fn parse(files: &[SourceFile]) -> Result<Parsed, ScenarioError> {
    let mut parsed = Parsed::default();
    for file in files {
        let tree = Tree::parse(&file.name, &file.text)?;
        let mut root = Section::of(tree.root(), "the claim file")?;
        if let Some(names) = root.table("names")? {
            for (key, node) in names.rest() {
                parsed.names.insert(key.clone(), text_of(node, "[names]", key)?);
            }
        }
        for section in root.tables("study", "study")? {
            parsed.studies.push(study(section)?);
        }
        for section in root.tables("figure", "figure")? {
            parsed.figures.push(figure(section)?);
        }
        for section in root.tables("claim", "claim")? {
            parsed.claims.push(claim(section)?);
        }
        for section in root.tables("reading", "reading")? {
            parsed.readings.push(reading(section)?);
        }
        root.finish(&["names", "study", "figure", "claim", "reading"])?;
    }
    Ok(parsed)
}

struct Table<'t> {
    section: Section<'t>,
    place: Place,
}

impl<'t> Table<'t> {
    fn new(section: Section<'t>) -> Self {
        let nowhere = || Place { source: Source::new("", "", 0), span: 0..0 };
        let place = section.place().unwrap_or_else(nowhere);
        Table { section, place }
    }

    fn error(&self, message: impl std::fmt::Display) -> ScenarioError {
        self.section.error(message)
    }

    fn need(&mut self, key: &str) -> Result<String, ScenarioError> {
        self.section.read::<String>(key)?.ok_or_else(|| self.missing(key))
    }

    fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, ScenarioError> {
        let Some(node) = self.section.take(key) else { return Ok(None) };
        values(node).map(Some).ok_or_else(|| self.unfit(key, node, "a text or a list of texts"))
    }

    fn unfit(&self, key: &str, node: &Node, expected: &str) -> ScenarioError {
        self.error(format!("`{key}`: found {}, expected {expected}", node.describe())).at(node.place.clone())
    }

    /// Reads an integer from 1 to `max`.
    fn count(&mut self, key: &str, max: u64) -> Result<Option<u64>, ScenarioError> {
        let Some(node) = self.section.peek(key) else { return Ok(None) };
        let count = self.section.read::<u64>(key)?;
        if count.is_some_and(|count| (1..=max).contains(&count)) {
            return Ok(count);
        }
        let upper = if max == u64::MAX { "at least 1".to_string() } else { format!("1 to {max}") };
        Err(self.unfit(key, node, &upper))
    }

    fn metric(&mut self, key: &str) -> Result<Option<Metric>, ScenarioError> {
        let Some(node) = self.section.take(key) else { return Ok(None) };
        let Some(Raw::Text(text)) = node.raw() else { return Err(self.unfit(key, node, "the name of a metric")) };
        self.metric_of(key, &text, node).map(Some)
    }

    fn metric_of(&self, key: &str, text: &str, node: &Node) -> Result<Metric, ScenarioError> {
        Metric::read(text).map_err(|error| self.wrong_metric(key, error, node))
    }

    fn wrong_metric(&self, key: &str, error: MetricError, node: &Node) -> ScenarioError {
        let placed = self.error(format!("`{key}`: {}", error.message)).at(node.place.clone());
        did_you_mean(placed, error.nearest)
    }

    fn filter(&mut self, key: &str) -> Result<Filter, ScenarioError> {
        let Some(node) = self.section.take(key) else { return Ok(Filter::default()) };
        self.filter_of(key, node)
    }

    fn filter_of(&self, key: &str, node: &Node) -> Result<Filter, ScenarioError> {
        let Value::Table(entries) = &node.value else {
            return Err(self.unfit(key, node, "a table of dimensions and their values"));
        };
        let one = |(name, node): &(String, Node)| match values(node) {
            Some(values) if !values.is_empty() => Ok((name.clone(), values)),
            _ => {
                let error = self.unfit(key, node, "a value or a list of values");
                Err(error.help(format!("keys with dots need quotes: {key} = {{ \"workload.0.load\" = 0.5 }}")))
            }
        };
        entries.iter().map(one).collect::<Result<_, _>>().map(Filter)
    }

    fn missing(&self, key: &str) -> ScenarioError {
        self.error(format!("`{key}` is missing"))
    }

    fn id(&mut self) -> Result<String, ScenarioError> {
        let id = self.need("id")?;
        let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if id.is_empty() || !id.chars().all(fit) || id.starts_with(['-', '.']) {
            return Err(self.error(format!("`id`: found \"{id}\", expected lower case letters, digits, `-` and `.`")));
        }
        Ok(id)
    }
}

fn values(node: &Node) -> Option<Vec<String>> {
    match node.raw()? {
        Raw::List(items) => Some(items.iter().map(text).collect()),
        raw => Some(vec![text(&raw)]),
    }
}

fn text_of(node: &Node, title: &str, key: &str) -> Result<String, ScenarioError> {
    match node.raw() {
        Some(Raw::Text(text)) => Ok(text),
        _ => {
            let message = format!("{title}: `{key}`: found {}, expected text", node.describe());
            Err(ScenarioError::new(message).at(node.place.clone()))
        }
    }
}

fn axes(table: &mut Section<'_>) -> Result<Option<Vec<Axis>>, ScenarioError> {
    let Some(node) = table.take("over") else { return Ok(None) };
    let mut axes = vec![];
    flatten("", node, &mut axes)?;
    Ok(Some(axes))
}

fn study(section: Section<'_>) -> Result<Study, ScenarioError> {
    let mut table = Table::new(section);
    let id = table.id()?;
    let label = table.section.read("label")?.unwrap_or_else(|| id.clone());
    let scenario = table.need("scenario")?;
    let set = table.section.read("set")?.unwrap_or_default();
    let over = axes(&mut table.section)?.unwrap_or_default();
    let zip = table.section.word("mode", &["grid", "zip"])? == Some("zip");
    let schemes = table.section.read::<Vec<String>>("schemes")?.unwrap_or_default();
    let variants = variants(&mut table.section)?;
    let seeds = table.section.read("seeds")?;
    let mut edges: Vec<(u64, String)> = vec![];
    if let Some(node) = table.section.take("bins") {
        let unfit = || table.unfit("bins", node, "sizes in ascending order, such as [\"2kB\", \"49kB\"]");
        for name in values(node).ok_or_else(unfit)? {
            let bytes = name.parse::<Bytes>().map_err(|_| unfit())?.0;
            if edges.last().is_some_and(|(last, _)| *last >= bytes) {
                return Err(unfit());
            }
            edges.push((bytes, name));
        }
    }
    let bound = match table.section.take("bound") {
        None => StudyBound::No,
        Some(node) => match node.raw() {
            Some(Raw::Bool(false)) => StudyBound::No,
            Some(Raw::Bool(true)) => StudyBound::All,
            Some(Raw::Text(word)) if word == "links" => StudyBound::Links,
            _ => return Err(table.unfit("bound", node, "true, false or \"links\"")),
        },
    };
    let quick = match table.section.peek("quick").map(Node::raw) {
        Some(Some(Raw::Bool(false))) => {
            table.section.take("quick");
            None
        }
        _ => match table.section.table("quick")? {
            None => Some(Quick::default()),
            Some(mut quick) => {
                let read = Quick {
                    set: quick.read("set")?.unwrap_or_default(),
                    over: axes(&mut quick)?,
                    schemes: quick.read("schemes")?,
                    seeds: quick.read("seeds")?,
                };
                quick.finish(&keys(QUICK))?;
                Some(read)
            }
        },
    };
    table.section.finish(&keys(STUDY))?;
    let place = table.place;
    Ok(Study { id, label, scenario, set, over, zip, schemes, variants, seeds, edges, bound, quick, place })
}

fn reading(section: Section<'_>) -> Result<Reading, ScenarioError> {
    let mut table = Table::new(section);
    let id = table.id()?;
    let (why, section) = (table.need("why")?, table.section.read("section")?);
    let entries = table.filter("entries")?;
    let pair = |(own, others): &(String, Vec<String>)| match others.as_slice() {
        [other] => Ok((own.clone(), other.clone())),
        _ => Err(table.error(format!("`entries`: `{own}` has several entries, expected one"))),
    };
    let entries: Vec<(String, String)> = entries.0.iter().map(pair).collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Err(table
            .error("`entries` is missing: entries of the studies that have the reading, by those that they replace")
            .help("a reading without them cannot be judged: describe it in `note` of the claim"));
    }
    let claims = table.texts("claims")?.unwrap_or_default();
    table.section.finish(&["id", "section", "why", "entries", "claims"])?;
    Ok(Reading { id, section, why, entries, claims, place: table.place })
}

fn figure(section: Section<'_>) -> Result<Figure, ScenarioError> {
    let mut table = Table::new(section);
    let id = table.id()?;
    let title = table.need("title")?;
    let studies = table.texts("study")?.ok_or_else(|| table.missing("study"))?;
    let kinds = [
        ("bars", FigureKind::Bars),
        ("lines", FigureKind::Lines),
        ("cdf", FigureKind::Cdf),
        ("matrix", FigureKind::Matrix),
    ];
    let kind = table.section.choice("kind", &kinds)?.unwrap_or(FigureKind::Bars);
    let metrics = if kind == FigureKind::Cdf {
        distribution(&mut table)?
    } else {
        let one = table.metric("metric")?;
        let several = match table.section.take("metrics") {
            None => vec![],
            Some(node) => {
                let names = values(node).ok_or_else(|| table.unfit("metrics", node, "names of metrics"))?;
                names.iter().map(|name| table.metric_of("metrics", name, node)).collect::<Result<_, _>>()?
            }
        };
        let all: Vec<Metric> = one.into_iter().chain(several).collect();
        if all.is_empty() {
            return Err(table.missing("metrics"));
        }
        all
    };
    let x = match kind {
        FigureKind::Cdf => {
            table.section.word("x", &["metric"])?;
            "metric".to_string()
        }
        _ => table.need("x")?,
    };
    let figure = Figure {
        id,
        title,
        studies,
        kind,
        metrics,
        x,
        series: table.section.read("series")?.unwrap_or_else(|| "scheme".into()),
        panel: table.section.read("panel")?,
        filter: table.filter("where")?,
        x_title: table.section.read("x_title")?,
        y_title: table.section.read("y_title")?,
        log: table.section.read("log")?.unwrap_or(false),
        across: across(&mut table)?,
        relative_to: table.section.read("relative_to")?,
        rows_are_x: table.section.word("table_rows", &["series", "x"])? == Some("x"),
        digits: table.count("digits", 9)?.unwrap_or(3) as usize,
        published: targets(&mut table)?,
        note: table.section.read("note")?,
        place: table.place.clone(),
    };
    table.section.finish(&keys(FIGURE))?;
    Ok(figure)
}

/// Metrics of a figure of kind `cdf`.
fn distribution(table: &mut Table<'_>) -> Result<Vec<Metric>, ScenarioError> {
    let found = match table.section.peek("metric").map(|node| (node, node.raw())) {
        Some((node, Some(Raw::Text(text)))) if text.starts_with("links.") => {
            table.section.take("metric");
            let found = Metric::distribution_over_links(&text);
            found.map_err(|error| table.wrong_metric("metric", error, node))?
        }
        _ => Metric::distribution(table.section.word("metric", &["slowdown", "fct"])?.unwrap_or("slowdown")),
    };
    Ok(found.into_iter().map(|(_, metric)| metric).collect())
}

fn targets(table: &mut Table<'_>) -> Result<Vec<Target>, ScenarioError> {
    let mut targets = vec![];
    for mut entry in table.section.tables("published", "figure.published")?.into_iter().map(Table::new) {
        let at = entry.filter("where")?;
        let value = entry.section.read("value")?.ok_or_else(|| entry.missing("value"))?;
        entry.section.finish(&["where", "value"])?;
        targets.push(Target { at, value });
    }
    Ok(targets)
}

fn claim(section: Section<'_>) -> Result<Claim, ScenarioError> {
    let mut table = Table::new(section);
    let id = table.id()?;
    let (figure, section) = (table.section.read("figure")?, table.section.read("section")?);
    if figure.is_none() && section.is_none() {
        return Err(table.error("`figure` or `section` is missing: give its place in the paper"));
    }
    let says = table.need("says")?;
    let studies = table.texts("study")?.ok_or_else(|| table.missing("study"))?;
    let quick_studies = table.texts("quick_study")?.unwrap_or_else(|| studies.clone());
    let metric = table.metric("metric")?.ok_or_else(|| table.missing("metric"))?;
    let missing = table.error(format!("`kind` is missing; allowed are {}", KINDS.join(", ")));
    let kind_word = table.section.word("kind", KINDS)?.ok_or(missing)?;
    let along: Option<String> = table.section.read("along")?;
    let kind = kind(&mut table, kind_word, along.as_ref(), &metric)?;
    let reductions = [("max", Reduce::Max), ("min", Reduce::Min), ("mean", Reduce::Mean), ("spread", Reduce::Spread)];
    let reduce = table.section.choice("reduce", &reductions)?;
    if kind_word != "trend" && along.is_some() != reduce.is_some() {
        return Err(table.error("`along` and `reduce` go together: a key of `over`, and max, min, mean or spread"));
    }
    let takes = [("every", Take::Every), ("most", Take::Largest), ("mean", Take::Mean)];
    let take = table.section.choice("take", &takes)?.unwrap_or(Take::Every);
    let usual = if matches!(kind_word, "equal" | "order" | "trend") { 0.02 } else { 0.25 };
    let tolerance_node = table.section.peek("tolerance");
    let claim = Claim {
        id,
        figure,
        section,
        says,
        studies,
        quick_studies,
        metric,
        kind,
        filter: table.filter("where")?,
        a_filter: table.filter("a_where")?,
        b_filter: table.filter("b_where")?,
        each: table.texts("each")?.unwrap_or_default(),
        take,
        across: across(&mut table)?,
        tolerance: table.section.read("tolerance")?.unwrap_or(usual),
        better: (table.section.choice("better", &[("lower", Best::Lower), ("higher", Best::Higher)])?)
            .unwrap_or(Best::Lower),
        along,
        reduce,
        ours: table.texts("ours")?.unwrap_or_default(),
        readings: table.texts("readings")?.unwrap_or_default(),
        tried: table.count("tried", u64::MAX)?,
        note: table.section.read("note")?,
        place: table.place.clone(),
    };
    table.section.finish(&keys(CLAIM))?;
    for (key, filter) in [("where", &claim.filter), ("a_where", &claim.a_filter), ("b_where", &claim.b_filter)] {
        if filter.values("scheme").is_some() {
            let message = format!("claim `{}`: `{key}`: `scheme` is not fixed there", claim.id);
            return Err(ScenarioError::new(message)
                .at(claim.place.clone())
                .help("name the load balancers in `a`, `b` or `order`"));
        }
    }
    if let ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) = &claim.kind
        && claim.a_filter == claim.b_filter
        && let (Operand::Schemes(a), Operand::Schemes(b)) = (a, b)
        && let Some(both) = a.iter().find(|scheme| b.contains(scheme))
    {
        let message = format!("claim `{}`: `b`: found {both}, which `a` names too", claim.id);
        return Err(ScenarioError::new(message)
            .at(claim.place.clone())
            .help("a_where and b_where may tell them apart"));
    }
    if !(0.0..=1.0).contains(&claim.tolerance) {
        let message =
            format!("claim `{}`: `tolerance`: found {}, expected a share from 0 to 1", claim.id, claim.tolerance);
        let place = tolerance_node.map_or(claim.place.clone(), |node| node.place.clone());
        return Err(ScenarioError::new(message).at(place));
    }
    Ok(claim)
}

fn across(table: &mut Table<'_>) -> Result<SeedStatistic, ScenarioError> {
    let statistics = [("mean", SeedStatistic::Mean), ("median", SeedStatistic::Median)];
    Ok(table.section.choice("across", &statistics)?.unwrap_or_default())
}

fn kind(
    table: &mut Table<'_>,
    word: &str,
    along: Option<&String>,
    metric: &Metric,
) -> Result<ClaimKind, ScenarioError> {
    let uses: &[&str] = match word {
        "change" | "factor" => &["a", "b", "published"],
        "value" => &["a", "published"],
        "equal" => &["a", "b"],
        "order" => &["order", "strict"],
        "trend" => &["a", "published", "strict"],
        _ => &["a"],
    };
    for key in ["a", "b", "published", "order", "strict"] {
        if !uses.contains(&key)
            && let Some(node) = table.section.peek(key)
        {
            let message = format!("`{key}` has no meaning with kind = \"{word}\", which takes {}", uses.join(", "));
            return Err(table.error(message).at(node.key.clone()));
        }
    }
    let needed = |table: &Table<'_>, key: &str| table.error(format!("kind = \"{word}\" needs `{key}`"));
    let operand = |table: &mut Table<'_>, key: &str| -> Result<Operand, ScenarioError> {
        let schemes = table.texts(key)?.ok_or_else(|| needed(table, key))?;
        Ok(if schemes == ["others"] { Operand::OtherCommits } else { Operand::Schemes(schemes) })
    };
    Ok(match word {
        "change" | "factor" => {
            let (a, b) = (operand(table, "a")?, operand(table, "b")?);
            if a == Operand::OtherCommits && b == Operand::OtherCommits {
                return Err(table.error("`a` and `b` cannot both be the others"));
            }
            let node = table.section.peek("published");
            let found = published(table, true)?.ok_or_else(|| needed(table, "published"))?;
            let numbers = match found {
                Published::Number(number) | Published::AtMost(number) | Published::AtLeast(number) => vec![number],
                Published::Range(from, to) => vec![from, to],
                Published::Direction(_) => vec![],
            };
            if metric.is_difference() && (word == "factor" || !numbers.is_empty()) {
                let message = format!(
                    "`metric`: found the difference `{metric}`, which may be zero or negative; expected another metric, or kind = \"change\" with published = \"lower\" or \"higher\", since no ratio of it has a meaning"
                );
                return Err(table.error(message));
            }
            let possible = |number: f64| if word == "change" { number >= -100.0 } else { number > 0.0 };
            if let Some(node) = node.filter(|_| !numbers.into_iter().all(possible)) {
                let expected = match word {
                    "change" => "a change in per cent, -100 or more",
                    _ => "a factor, more than 0",
                };
                return Err(table.unfit("published", node, expected));
            }
            if word == "change" { ClaimKind::Change(a, b, found) } else { ClaimKind::Factor(a, b, found) }
        }
        "value" => {
            let a = operand(table, "a")?;
            ClaimKind::Value(a, published(table, false)?.ok_or_else(|| needed(table, "published"))?)
        }
        "equal" => ClaimKind::Equal(operand(table, "a")?, operand(table, "b")?),
        "order" => {
            let node = table.section.take("order").ok_or_else(|| needed(table, "order"))?;
            let unfit = || table.unfit("order", node, "load balancers, best first; equal ones in a nested list");
            let Some(Raw::List(items)) = node.raw() else { return Err(unfit()) };
            let tier = |raw: &Raw| match raw {
                Raw::Text(scheme) => Some(vec![scheme.clone()]),
                Raw::List(items) => {
                    let names =
                        items.iter().map(|raw| if let Raw::Text(text) = raw { Some(text.clone()) } else { None });
                    names.collect()
                }
                _ => None,
            };
            let tiers: Vec<Vec<String>> = items.iter().map(tier).collect::<Option<_>>().ok_or_else(unfit)?;
            if tiers.len() < 2 || tiers.iter().any(Vec::is_empty) {
                return Err(unfit());
            }
            ClaimKind::Order(tiers, table.section.read("strict")?.unwrap_or(true))
        }
        "trend" => {
            if along.is_none() {
                return Err(needed(table, "along"));
            }
            let schemes = table.texts("a")?.ok_or_else(|| needed(table, "a"))?;
            let word =
                table.section.word("published", &["falls", "rises"])?.ok_or_else(|| needed(table, "published"))?;
            let sign = if word == "rises" { 1.0 } else { -1.0 };
            ClaimKind::Trend(schemes, sign, table.section.read("strict")?.unwrap_or(true))
        }
        _ => ClaimKind::Shown(table.texts("a")?.unwrap_or_default()),
    })
}

fn published(table: &mut Table<'_>, directions: bool) -> Result<Option<Published>, ScenarioError> {
    let Some(node) = table.section.take("published") else { return Ok(None) };
    let expected = match directions {
        true => "a number, [from, to], { at_most = x }, { at_least = x }, \"lower\" or \"higher\"",
        false => "a number, [from, to], { at_most = x } or { at_least = x }",
    };
    let unfit = || table.unfit("published", node, expected);
    let number = |raw: &Raw| match raw {
        Raw::Int(number) => Some(*number as f64),
        Raw::Float(number) if number.is_finite() => Some(*number),
        _ => None,
    };
    if let Value::Table(entries) = &node.value {
        let [(key, value)] = entries.as_slice() else { return Err(unfit()) };
        let bound = value.raw().as_ref().and_then(number).ok_or_else(unfit)?;
        return match key.as_str() {
            "at_most" => Ok(Some(Published::AtMost(bound))),
            "at_least" => Ok(Some(Published::AtLeast(bound))),
            _ => Err(unfit()),
        };
    }
    let found = match node.raw() {
        Some(Raw::Text(word)) if directions && word == "lower" => Published::Direction(-1.0),
        Some(Raw::Text(word)) if directions && word == "higher" => Published::Direction(1.0),
        Some(Raw::List(items)) => match items.iter().map(number).collect::<Option<Vec<_>>>().as_deref() {
            Some([from, to]) if from <= to => Published::Range(*from, *to),
            _ => return Err(unfit()),
        },
        Some(raw) => Published::Number(number(&raw).ok_or_else(unfit)?),
        None => return Err(unfit()),
    };
    if matches!(found, Published::Number(0.0)) {
        return Err(table
            .unfit("published", node, "a number other than zero, because the tolerance is a share of it")
            .help("use kind = \"equal\" for equal sides, published = { at_most = x } for a value near zero"));
    }
    Ok(Some(found))
}
