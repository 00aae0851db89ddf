//! Figure of a paper drawn from rows: panels with our values and the paper's, and the same as a table.

use super::{
    ALL, ClaimSet, Coordinate, Figure, FigureKind, Filter, Metric, Rows, Scale, SeedStatistic, StudyBound, StudyPlan,
    at, check_names, coordinates, judge::ratio, matrix, rows::BOUND, sig,
};
use anabranch_report::{ClaimFigure, ClaimMark, ClaimPanel, ClaimShape};
use anabranch_scenario::{ScenarioError, did_you_mean, list};
use anabranch_settings::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Figure with its results.
#[derive(Clone, Debug)]
pub struct Shown {
    pub figure: ClaimFigure,
    /// Tables in Markdown, each with a heading if there are several.
    pub tables: String,
    pub csv: String,
    /// Minimum and maximum number of seeds of a mark.
    pub seeds: Option<(usize, usize)>,
}

pub(crate) struct Layout<'l> {
    figure: &'l Figure,
    plans: Vec<&'l StudyPlan>,
    /// Coordinates that its rows must contain.
    pub(crate) coordinates: Vec<Coordinate>,
}

impl<'l> Layout<'l> {
    pub(crate) fn new(figure: &'l Figure, plans: &'l BTreeMap<String, StudyPlan>) -> Option<Self> {
        let plans: Vec<&StudyPlan> = figure.studies.iter().filter_map(|id| plans.get(id)).collect();
        let open: Vec<String> = figure.dimensions().iter().map(ToString::to_string).collect();
        let coordinates = coordinates(&plans, &figure.filter, &open);
        (!plans.is_empty()).then_some(Layout { figure, plans, coordinates })
    }

    /// All names must exist, and every dimension must be fixed or drawn.
    pub(crate) fn check(&self, scale: Scale) -> Result<(), ScenarioError> {
        let figure = self.figure;
        self.check_parts(scale).map_err(|error| {
            error.of(&format!("figure `{}`, {} scale", figure.id, scale.word())).at(figure.place.clone())
        })
    }

    fn check_parts(&self, scale: Scale) -> Result<(), ScenarioError> {
        let figure = self.figure;
        let mut dimensions = figure.dimensions();
        let twice = dimensions.iter().enumerate().find(|(i, name)| dimensions[..*i].contains(name));
        if let Some((_, name)) = twice {
            return Err(ScenarioError::new(format!("`{name}` is used for two of x, series and panel")));
        }
        if !dimensions.contains(&"scheme") && figure.filter.values("scheme").is_none_or(|schemes| schemes.len() != 1) {
            let message = "neither x, series nor panel is `scheme`: fix one load balancer in `where`";
            return Err(ScenarioError::new(message));
        }
        if let Some(base) = &figure.relative_to {
            let entries: Vec<&str> =
                self.plans.iter().flat_map(|plan| &plan.sweep.plan.entries).map(String::as_str).collect();
            let bounds = base == BOUND && self.plans.iter().all(|plan| plan.study.bound != StudyBound::No);
            if !bounds && !entries.contains(&base.as_str()) {
                let message = format!("`relative_to`: no load balancer `{base}` here; there are {}", list(&entries));
                return Err(did_you_mean(ScenarioError::new(message), nearest(base, entries)));
            }
        }
        dimensions.retain(|name| *name != "metric");
        let mut filters: Vec<&Filter> = figure.published.iter().map(|target| &target.at).collect();
        let published = filters
            .iter()
            .map(|filter| Filter(filter.0.iter().filter(|(name, _)| name != "metric").cloned().collect()));
        let published: Vec<Filter> = published.collect();
        filters = published.iter().chain([&figure.filter]).collect();
        check_names(&self.plans, &filters, &dimensions, scale == Scale::Full)?;
        let found = &self.coordinates;
        let Some(first) = found.first() else {
            return Err(ScenarioError::new("no row of its studies matches `where`"));
        };
        for (name, value) in found.iter().flatten() {
            let other = first.iter().find(|(first, _)| first == name).map_or(ALL, |(_, value)| value.as_str());
            if other != value && !dimensions.contains(&name.as_str()) {
                let message = format!(
                    "`{name}` has several values ({other} and {value}): fix it in `where`, or use it as x, series or panel"
                );
                return Err(ScenarioError::new(message));
            }
        }
        let bins = found.iter().flatten().any(|(name, value)| name == "bin" && value != ALL);
        let workloads = found.iter().flatten().any(|(name, value)| name == "workload" && value != ALL);
        for metric in &figure.metrics {
            if (bins && !metric.is_per_bin()) || (workloads && !metric.is_per_workload()) {
                let message =
                    format!("`{metric}` is not kept per {}", if bins { "bin of flow sizes" } else { "workload" });
                return Err(ScenarioError::new(message));
            }
        }
        Ok(())
    }

    pub(crate) fn plans(&self) -> &[&'l StudyPlan] {
        &self.plans
    }

    /// Returns the letters of schemes by study, for a matrix.
    fn letters(&self, rows: &BTreeMap<String, Rows>) -> BTreeMap<(String, String), String> {
        let of = |plan: &&StudyPlan| {
            let id = plan.study.id.clone();
            let letters = rows.get(&id).map(|rows| matrix::letters(self.figure, plan, rows)).unwrap_or_default();
            letters.into_iter().map(move |(scheme, letters)| ((id.clone(), scheme), letters))
        };
        if self.figure.kind == FigureKind::Matrix { self.plans.iter().flat_map(of).collect() } else { BTreeMap::new() }
    }

    /// Returns the values of a dimension, in the order they are drawn.
    fn values(&self, dimension: &str) -> Vec<String> {
        match dimension {
            "metric" => self.figure.metrics.iter().map(|metric| metric.name().to_string()).collect(),
            "scheme" => {
                let mut there: Vec<String> = vec![];
                for entry in self.plans.iter().filter_map(|plan| plan.values("scheme")).flatten() {
                    if !there.contains(&entry) {
                        there.push(entry);
                    }
                }
                match self.figure.filter.values("scheme") {
                    Some(required) => required.iter().filter(|value| there.contains(value)).cloned().collect(),
                    None => there.into_iter().filter(|entry| entry != BOUND).collect(),
                }
            }
            _ => {
                let mut there: Vec<String> = vec![];
                for coordinate in &self.coordinates {
                    if let Some(value) = at(coordinate, dimension)
                        && !there.iter().any(|known| known == value)
                    {
                        there.push(value.to_string());
                    }
                }
                there
            }
        }
    }

    /// `None` if none of its runs has finished. `note` goes into the subtitle: scale, sizes.
    pub(crate) fn show(&self, claim_set: &ClaimSet, rows: &BTreeMap<String, Rows>, note: &str) -> Option<Shown> {
        let figure = self.figure;
        let metric_is_free = !figure.dimensions().contains(&"metric");
        let display_name = |dimension: &str, value: &str| match dimension {
            "study" => claim_set.study(value).map_or(value, |study| &study.label).to_string(),
            _ => claim_set.display_name(value).to_string(),
        };
        let x_values = self.values(&figure.x);
        let series = self.values(&figure.series);
        let panel_values = match &figure.panel {
            Some(panel) => self.values(panel),
            None => vec![String::new()],
        };
        let mut cells = Cells { figure, rows, found: &self.coordinates, schemes: self.values("scheme") };
        let mut panels = vec![];
        for panel in &panel_values {
            let metrics: Vec<Option<&str>> = match metric_is_free {
                true => figure.metrics.iter().map(|metric| Some(metric.name())).collect(),
                false => vec![None],
            };
            for metric in metrics {
                let mark = |x: &String, one: &String| {
                    let mut fixed = vec![(figure.x.clone(), x.clone()), (figure.series.clone(), one.clone())];
                    fixed.extend(figure.panel.iter().map(|name| (name.clone(), panel.clone())));
                    fixed.extend(metric.map(|metric| ("metric".to_string(), metric.to_string())));
                    cells.mark(&fixed)
                };
                let marks: Vec<Vec<Option<ClaimMark>>> =
                    series.iter().map(|one| x_values.iter().map(|x| mark(x, one)).collect()).collect();
                let mut heading: Vec<String> = figure.panel.iter().map(|name| display_name(name, panel)).collect();
                if metric_is_free && figure.metrics.len() > 1 {
                    heading.extend(metric.map(|metric| claim_set.display_name(metric).to_string()));
                }
                let title = metric.map_or_else(
                    || figure.metrics[0].title(),
                    |name| {
                        figure.metrics.iter().find(|metric| metric.name() == name).map_or(name.into(), |m| m.title())
                    },
                );
                panels.push(ClaimPanel {
                    heading: heading.join(", "),
                    y_title: figure.y_title.clone().unwrap_or(match &figure.relative_to {
                        Some(scheme) => format!("{title}, over {}", claim_set.display_name(scheme)),
                        None => title,
                    }),
                    marks,
                });
            }
        }
        if panels
            .iter()
            .all(|panel| panel.marks.iter().flatten().all(|mark| mark.as_ref().is_none_or(|m| m.mean.is_none())))
        {
            return None;
        }
        cells.schemes.clear();
        let seeds: Vec<usize> = panels
            .iter()
            .flat_map(|panel| panel.marks.iter().flatten().flatten())
            .filter(|m| m.seeds > 0)
            .map(|m| m.seeds)
            .collect();
        let seeds = seeds.iter().min().copied().zip(seeds.iter().max().copied());
        let commits: BTreeSet<&str> =
            figure.studies.iter().filter_map(|id| rows.get(id)).flat_map(|rows| rows.commits()).collect();
        let commits = commits.into_iter().collect::<Vec<_>>().join(", ");
        let seeds_words = match seeds {
            Some((1, 1)) => "one seed".to_string(),
            Some((least, most)) if least == most => format!("{least} seeds, 95 % intervals"),
            Some((least, most)) => format!("{least} to {most} seeds, 95 % intervals"),
            None => String::new(),
        };
        let across = if figure.across == SeedStatistic::Median { "medians of " } else { "" };
        let subtitle = format!("{note}; {across}{seeds_words}");
        let x_names: Vec<String> = x_values.iter().map(|value| display_name(&figure.x, value)).collect();
        let numbers: Vec<f64> =
            match self.plans.iter().flat_map(|plan| &plan.sweep.plan.axes).find(|axis| axis.key == figure.x) {
                Some(axis) if !axis.numbers.is_empty() => x_values
                    .iter()
                    .filter_map(|value| {
                        axis.values.iter().position(|v| v == value).and_then(|at| axis.numbers.get(at).copied())
                    })
                    .collect(),
                _ => vec![],
            };
        let shape = match figure.kind {
            FigureKind::Bars | FigureKind::Matrix => ClaimShape::Bars,
            FigureKind::Lines => {
                ClaimShape::Lines { numbers: if numbers.len() == x_values.len() { numbers } else { vec![] } }
            }
            FigureKind::Cdf => ClaimShape::Cdf {
                shares: Metric::distribution("slowdown").into_iter().map(|(share, _)| share).collect(),
            },
        };
        let drawn = ClaimFigure {
            name: figure.id.clone(),
            title: figure.title.clone(),
            subtitle: subtitle.clone(),
            shape,
            x_title: figure
                .x_title
                .clone()
                .unwrap_or_else(|| figure.x.rsplit('.').next().unwrap_or_default().replace('_', " ")),
            x: x_names.clone(),
            series: series.iter().map(|value| display_name(&figure.series, value)).collect(),
            logarithmic: figure.log,
            panels,
            provenance: format!("Anabranch {}; commit {commits}; {}", anabranch_scenario::machine::VERSION, subtitle),
        };
        let letters = self.letters(rows);
        let letter =
            |series: usize, x: usize| letters.get(&(x_values[x].clone(), self.values(&figure.series)[series].clone()));
        let letter = |series, x| letter(series, x).map_or(String::new(), |letters| format!(" {letters}"));
        let mut tables = tables(figure, claim_set, &drawn, &panel_values, metric_is_free, &commits, &letter);
        if figure.kind == FigureKind::Matrix {
            tables += &matrix::notes(self, rows);
        }
        let csv = drawn.to_csv();
        Some(Shown { figure: drawn, tables, csv, seeds })
    }
}

fn tables(
    figure: &Figure,
    claim_set: &ClaimSet,
    drawn: &ClaimFigure,
    panel_values: &[String],
    joined: bool,
    commits: &str,
    letters: &dyn Fn(usize, usize) -> String,
) -> String {
    let per_panel = if joined { figure.metrics.len() } else { 1 };
    let shown: Vec<usize> = match figure.kind {
        // For a distribution, the table shows the median and the tail.
        FigureKind::Cdf => {
            let required = [0.5, 0.95, 0.99, 1.0];
            let shares = Metric::distribution("slowdown");
            (0..shares.len()).filter(|at| required.contains(&shares[*at].0)).collect()
        }
        _ => (0..drawn.x.len()).collect(),
    };
    let is_matrix = figure.kind == FigureKind::Matrix;
    let cell = |number: usize, series: usize, x: usize| -> String {
        let mut parts: Vec<String> = (0..per_panel)
            .map(|metric| match &drawn.panels[number * per_panel + metric].marks[series][x] {
                // The cells of a matrix are narrow: only the ranked metric has its interval, the rows as CSV have all.
                Some(mark) if is_matrix && metric + 1 < per_panel => {
                    mark_words(&ClaimMark { interval: None, ..mark.clone() }, figure.digits)
                }
                Some(mark) => mark_words(mark, figure.digits),
                None => "-".into(),
            })
            .collect();
        parts.dedup_by(|b, a| a == b && !a.starts_with(|first: char| first.is_ascii_digit()));
        match parts.join(if is_matrix { "/" } else { " / " }) {
            none if none == "-" => none,
            cell if is_matrix => cell.replace(" ±", "±") + &letters(series, x),
            cell => cell + &letters(series, x),
        }
    };
    let mut text = String::new();
    for number in 0..panel_values.len() {
        if panel_values.len() > 1 {
            let heading = figure.panel.as_ref().map_or(String::new(), |panel| match panel.as_str() {
                "study" => claim_set.study(&panel_values[number]).map_or(String::new(), |study| study.label.clone()),
                _ => claim_set.display_name(&panel_values[number]).to_string(),
            });
            text += &format!("**{heading}**\n\n");
        }
        let (rows, columns): (Vec<usize>, Vec<usize>) = match figure.rows_are_x {
            true => (shown.clone(), (0..drawn.series.len()).collect()),
            false => ((0..drawn.series.len()).collect(), shown.clone()),
        };
        let name = |of_x: bool, at: usize| if of_x { drawn.x[at].clone() } else { drawn.series[at].clone() };
        let heads: Vec<String> = columns.iter().map(|at| name(!figure.rows_are_x, *at)).collect();
        text += &format!("| | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
        for row in rows {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| if figure.rows_are_x { cell(number, *column, row) } else { cell(number, row, *column) })
                .collect();
            if cells.iter().any(|cell| cell != "-") {
                text += &format!("| {} | {} |\n", name(figure.rows_are_x, row), cells.join(" | "));
            }
        }
        text.push('\n');
    }
    let metrics = match figure.kind {
        FigureKind::Cdf => String::new(),
        _ if joined => {
            let names: Vec<String> =
                figure.metrics.iter().map(|metric| claim_set.display_name(metric.name()).to_string()).collect();
            let relative = figure
                .relative_to
                .as_ref()
                .map_or(String::new(), |scheme| format!(" over that of {}", claim_set.display_name(scheme)));
            format!("{}{relative}; ", names.join(" / "))
        }
        _ => String::new(),
    };
    let published = if figure.published.is_empty() { "" } else { "; in brackets the paper's value" };
    text += &format!("{}: {metrics}{}{published}; commit {commits}.\n", figure.title, drawn.subtitle);
    if let Some(note) = &figure.note {
        text += &format!("{note}\n");
    }
    text
}

struct Cells<'c> {
    figure: &'c Figure,
    rows: &'c BTreeMap<String, Rows>,
    found: &'c [Coordinate],
    schemes: Vec<String>,
}

impl Cells<'_> {
    fn mark(&self, fixed: &[(String, String)]) -> Option<ClaimMark> {
        let named = |dimension: &str| fixed.iter().find(|(name, _)| name == dimension).map(|(_, value)| value.as_str());
        let scheme = named("scheme").or(self.schemes.first().map(String::as_str))?;
        let metric = named("metric").unwrap_or(self.figure.metrics[0].name());
        let fits = |coordinate: &&Coordinate| {
            fixed.iter().all(|(name, value)| {
                name == "scheme" || name == "metric" || at(coordinate, name).unwrap_or(ALL) == value
            })
        };
        let coordinate = self.found.iter().find(fits)?;
        let rows = self.rows.get(at(coordinate, "study")?);
        let values: Vec<f64> = match rows {
            None => vec![],
            Some(rows) => {
                let own = rows.series(coordinate, scheme, metric);
                match &self.figure.relative_to {
                    None => own.into_values().collect(),
                    Some(base) => {
                        let base = rows.series(coordinate, base, metric);
                        own.iter().filter_map(|(seed, value)| Some(ratio(*value, *base.get(seed)?))).collect()
                    }
                }
            }
        };
        let at_all = |filter: &Filter| {
            filter.0.iter().all(|(name, values)| {
                let value = match name.as_str() {
                    "scheme" => scheme,
                    "metric" => metric,
                    name => at(coordinate, name).unwrap_or(ALL),
                };
                values.iter().any(|required| required == value)
            })
        };
        let published = self.figure.published.iter().find(|target| at_all(&target.at)).map(|target| target.value);
        let centre = self.figure.across.centre(&values);
        Some(ClaimMark {
            mean: centre.map(|(mean, _)| mean),
            interval: centre.and_then(|(_, interval)| interval).filter(|(_, high)| high.is_finite()),
            seeds: values.len(),
            published,
        })
    }
}

/// Formats a mark: `1.38 ±0.01` or `never ends`, with the paper's number in brackets.
fn mark_words(mark: &ClaimMark, digits: usize) -> String {
    let ours = match mark.mean {
        None => "-".to_string(),
        Some(mean) if mean.is_infinite() => "never ends".to_string(),
        Some(mean) => {
            let text = sig(mean, digits);
            let half = mark.interval.map(|(low, high)| (high - low) / 2.0);
            match (half, mark.interval) {
                (None, _) => text,
                // A median is rarely in the middle of its interval.
                (Some(half), Some((low, high))) if (mean - low - half).abs() > 1e-9 * half => {
                    format!("{text} [{}, {}]", sig(low, digits), sig(high, digits))
                }
                (Some(half), _) => {
                    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
                    let half =
                        if decimals == 0 && half >= 10_000.0 { sig(half, 3) } else { format!("{half:.decimals$}") };
                    format!("{text} ±{half}")
                }
            }
        }
    };
    match mark.published {
        Some(published) => format!("{ours} ({})", sig(published, 6)),
        None => ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_words() {
        let mark = |mean, half: f64, published| ClaimMark {
            mean: Some(mean),
            interval: Some((mean - half, mean + half)),
            seeds: 5,
            published,
        };
        assert_eq!(mark_words(&mark(1.3794, 0.0123, None), 4), "1.379 ±0.012");
        assert_eq!(mark_words(&mark(12_345.0, 123.0, Some(244.0)), 3), "12,300 ±123 (244)");
        let median = ClaimMark { interval: Some((99.0, 502.0)), ..mark(110.4, 0.0, Some(110.0)) };
        assert_eq!(mark_words(&median, 3), "110 [99.0, 502] (110)");
        assert_eq!(mark_words(&mark(f64::INFINITY, 0.0, None), 3), "never ends");
    }
}
