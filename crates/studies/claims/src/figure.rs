//! A figure of a paper made from rows: its panels with our values, the paper's beside them, and the same as a table.

use super::{
    Book, Coordinate, Plan,
    judge::sig,
    metric::ALL,
    model::{Across, Figure, FigureKind, Filter},
    plan::{at, coordinates},
    rows::Rows,
};
use anabranch_report::{ClaimFigure, ClaimMark, ClaimPanel, ClaimShape};
use std::collections::{BTreeMap, BTreeSet};

/// A figure with what came out.
#[derive(Clone, Debug)]
pub struct Shown {
    /// As it is drawn.
    pub figure: ClaimFigure,
    /// As tables in Markdown, a heading each where there are several.
    pub tables: String,
    /// As rows.
    pub csv: String,
    /// Seeds: fewest and most of a mark.
    pub seeds: Option<(usize, usize)>,
}

impl Figure {
    /// The values of a dimension, in the order they are drawn.
    fn values(&self, dimension: &str, plans: &[&Plan], found: &[Coordinate]) -> Vec<String> {
        match dimension {
            "metric" => self.metrics.iter().map(|metric| metric.name().to_string()).collect(),
            "scheme" => {
                let mut there: Vec<String> = vec![];
                for entry in plans.iter().flat_map(|plan| &plan.sweep.plan.entries) {
                    if !there.contains(entry) {
                        there.push(entry.clone());
                    }
                }
                match self.filter.values("scheme") {
                    Some(wanted) => wanted.iter().filter(|value| there.contains(value)).cloned().collect(),
                    None => there,
                }
            }
            _ => {
                let mut there: Vec<String> = vec![];
                for coordinate in found {
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

    /// What its rows must hold.
    pub(crate) fn coordinates(&self, plans: &[&Plan]) -> Vec<Coordinate> {
        let open: Vec<String> = self.dimensions().iter().map(ToString::to_string).collect();
        coordinates(plans, &self.filter, &open)
    }

    /// Made from `rows`; `None` where none of its runs is there. `note` says what a reader should know: scale, sizes.
    pub fn show(
        &self,
        book: &Book,
        plans: &BTreeMap<String, Plan>,
        rows: &BTreeMap<String, Rows>,
        note: &str,
    ) -> Option<Shown> {
        let own: Vec<&Plan> = self.studies.iter().filter_map(|id| plans.get(id)).collect();
        let found = self.coordinates(&own);
        let dimensions = self.dimensions();
        let metric_is_free = !dimensions.contains(&"metric");
        let written = |dimension: &str, value: &str| match dimension {
            "study" => book.study(value).map_or(value, |study| &study.label).to_string(),
            _ => book.written(value).to_string(),
        };
        let x_values = self.values(&self.x, &own, &found);
        let series = self.values(&self.series, &own, &found);
        let panel_values = match &self.panel {
            Some(panel) => self.values(panel, &own, &found),
            None => vec![String::new()],
        };
        let mut cells = Cells { figure: self, rows, found: &found, schemes: self.values("scheme", &own, &found) };
        let mut panels = vec![];
        for panel in &panel_values {
            let metrics: Vec<Option<&str>> = match metric_is_free {
                true => self.metrics.iter().map(|metric| Some(metric.name())).collect(),
                false => vec![None],
            };
            for metric in metrics {
                let mark = |x: &String, one: &String| {
                    let mut fixed = vec![(self.x.clone(), x.clone()), (self.series.clone(), one.clone())];
                    fixed.extend(self.panel.iter().map(|name| (name.clone(), panel.clone())));
                    fixed.extend(metric.map(|metric| ("metric".to_string(), metric.to_string())));
                    cells.mark(&fixed)
                };
                let marks: Vec<Vec<Option<ClaimMark>>> =
                    series.iter().map(|one| x_values.iter().map(|x| mark(x, one)).collect()).collect();
                let mut heading: Vec<String> = self.panel.iter().map(|name| written(name, panel)).collect();
                if metric_is_free && self.metrics.len() > 1 {
                    heading.extend(metric.map(|metric| book.written(metric).to_string()));
                }
                let title = metric.map_or_else(
                    || self.metrics[0].title(),
                    |name| self.metrics.iter().find(|metric| metric.name() == name).map_or(name.into(), |m| m.title()),
                );
                panels.push(ClaimPanel {
                    heading: heading.join(", "),
                    y_title: self.y_title.clone().unwrap_or(match &self.relative_to {
                        Some(scheme) => format!("{title}, over {}", book.written(scheme)),
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
            self.studies.iter().filter_map(|id| rows.get(id)).flat_map(|rows| rows.commits()).collect();
        let commits = commits.into_iter().collect::<Vec<_>>().join(", ");
        let seeds_words = match seeds {
            Some((1, 1)) => "one seed".to_string(),
            Some((least, most)) if least == most => format!("{least} seeds, 95 % intervals"),
            Some((least, most)) => format!("{least} to {most} seeds, 95 % intervals"),
            None => String::new(),
        };
        let across = if self.across == Across::Median { "medians of " } else { "" };
        let subtitle = format!("{note}; {across}{seeds_words}");
        let x_names: Vec<String> = x_values.iter().map(|value| written(&self.x, value)).collect();
        let numbers: Vec<f64> = match own.iter().flat_map(|plan| &plan.sweep.plan.axes).find(|axis| axis.key == self.x)
        {
            Some(axis) if !axis.numbers.is_empty() => x_values
                .iter()
                .filter_map(|value| {
                    axis.values.iter().position(|v| v == value).and_then(|at| axis.numbers.get(at).copied())
                })
                .collect(),
            _ => vec![],
        };
        let shape = match self.kind {
            FigureKind::Bars => ClaimShape::Bars,
            FigureKind::Lines => {
                ClaimShape::Lines { numbers: if numbers.len() == x_values.len() { numbers } else { vec![] } }
            }
            FigureKind::Cdf => ClaimShape::Cdf {
                shares: super::Metric::distribution("slowdown").into_iter().map(|(share, _)| share).collect(),
            },
        };
        let figure = ClaimFigure {
            name: self.id.clone(),
            title: self.title.clone(),
            subtitle: subtitle.clone(),
            shape,
            x_title: self
                .x_title
                .clone()
                .unwrap_or_else(|| self.x.rsplit('.').next().unwrap_or_default().replace('_', " ")),
            x: x_names.clone(),
            series: series.iter().map(|value| written(&self.series, value)).collect(),
            logarithmic: self.log,
            panels,
            provenance: format!("Anabranch {}; commit {commits}; {}", anabranch_scenario::machine::VERSION, subtitle),
        };
        let tables = self.tables(book, &figure, &panel_values, metric_is_free, &commits);
        let csv = figure.to_csv();
        Some(Shown { figure, tables, csv, seeds })
    }

    /// The tables: one per value of the panel's dimension; several metrics stand in one cell.
    fn tables(
        &self,
        book: &Book,
        figure: &ClaimFigure,
        panel_values: &[String],
        joined: bool,
        commits: &str,
    ) -> String {
        let per_panel = if joined { self.metrics.len() } else { 1 };
        let shown: Vec<usize> = match self.kind {
            // Of a distribution the median and the tail.
            FigureKind::Cdf => {
                let wanted = [0.5, 0.95, 0.99, 1.0];
                let shares = super::Metric::distribution("slowdown");
                (0..shares.len()).filter(|at| wanted.contains(&shares[*at].0)).collect()
            }
            _ => (0..figure.x.len()).collect(),
        };
        let cell = |number: usize, series: usize, x: usize| -> String {
            let parts: Vec<String> = (0..per_panel)
                .map(|metric| match &figure.panels[number * per_panel + metric].marks[series][x] {
                    Some(mark) => mark_words(mark, self.digits),
                    None => "-".into(),
                })
                .collect();
            if parts.iter().all(|part| part == "-") { "-".into() } else { parts.join(" / ") }
        };
        let mut text = String::new();
        for number in 0..panel_values.len() {
            if panel_values.len() > 1 {
                let heading = self.panel.as_ref().map_or(String::new(), |panel| match panel.as_str() {
                    "study" => book.study(&panel_values[number]).map_or(String::new(), |study| study.label.clone()),
                    _ => book.written(&panel_values[number]).to_string(),
                });
                text += &format!("**{heading}**\n\n");
            }
            let (rows, columns): (Vec<usize>, Vec<usize>) = match self.rows_are_x {
                true => (shown.clone(), (0..figure.series.len()).collect()),
                false => ((0..figure.series.len()).collect(), shown.clone()),
            };
            let name = |of_x: bool, at: usize| if of_x { figure.x[at].clone() } else { figure.series[at].clone() };
            let heads: Vec<String> = columns.iter().map(|at| name(!self.rows_are_x, *at)).collect();
            text += &format!("| | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
            for row in rows {
                let cells: Vec<String> = columns
                    .iter()
                    .map(|column| if self.rows_are_x { cell(number, *column, row) } else { cell(number, row, *column) })
                    .collect();
                if cells.iter().any(|cell| cell != "-") {
                    text += &format!("| {} | {} |\n", name(self.rows_are_x, row), cells.join(" | "));
                }
            }
            text.push('\n');
        }
        let metrics = match self.kind {
            FigureKind::Cdf => String::new(),
            _ if joined => {
                let names: Vec<String> =
                    self.metrics.iter().map(|metric| book.written(metric.name()).to_string()).collect();
                let relative = self
                    .relative_to
                    .as_ref()
                    .map_or(String::new(), |scheme| format!(" over that of {}", book.written(scheme)));
                format!("{}{relative}; ", names.join(" / "))
            }
            _ => String::new(),
        };
        let published = if self.published.is_empty() { "" } else { "; in brackets what the paper has" };
        text += &format!("{}: {metrics}{}{published}; commit {commits}.\n", self.title, figure.subtitle);
        if let Some(note) = &self.note {
            text += &format!("{note}\n");
        }
        text
    }
}

/// Looks values up.
struct Cells<'c> {
    figure: &'c Figure,
    rows: &'c BTreeMap<String, Rows>,
    found: &'c [Coordinate],
    schemes: Vec<String>,
}

impl Cells<'_> {
    /// What is drawn where these dimensions have these values.
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
                        own.iter().filter_map(|(seed, value)| Some(value / base.get(seed)?)).collect()
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
                values.iter().any(|wanted| wanted == value)
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

/// `1.38 ±0.01`, `never ends`, in brackets the paper's.
fn mark_words(mark: &ClaimMark, digits: usize) -> String {
    let ours = match mark.mean {
        None => "-".to_string(),
        Some(mean) if mean.is_infinite() => "never ends".to_string(),
        Some(mean) => {
            let text = sig(mean, digits);
            let half = mark.interval.map(|(low, high)| (high - low) / 2.0);
            match (half, mark.interval) {
                (None, _) => text,
                // A median rarely lies in the middle.
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
