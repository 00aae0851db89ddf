use crate::{ALL, Comparison, ComparisonRow, INTERVAL, LETTERS, undecided, wording};
use anabranch_results::{FctKind, letters, percent_change, significant_digits, significant_digits_trimmed};
use anabranch_statistics::Method;
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use textwrap::WordSplitter::NoHyphenation;

/// Metrics with their headings, the most important first. `true`: with interval and change, always shown; `false`: the
/// mean, unless it is zero throughout.
const SHOWN: &[(&str, &str, bool)] = &[
    ("completion", "whole\n[us]", true),
    ("slowdown_p99", "slowdown\np99", true),
    ("slowdown_p50", "slowdown\nmedian", true),
    ("fct_ratio_max", "max FCT\nover ideal", true),
    ("nic_wait_max", "NIC wait\n[us] max", false),
    ("fct_mean", "FCT [us]\nmean", true),
];

const NETWORK: &[(&str, &str, bool)] = &[
    ("trimmed", "packets\ntrimmed", false),
    ("dropped", "packets\ndropped", false),
    ("retransmitted", "packets\nretransmitted", false),
    ("out_of_order_share", "share out\nof order", false),
    ("packets_per_ack", "packets\nper ACK", false),
];

/// Returns the heading of a metric in tables of a terminal.
pub fn heading(metric: &str) -> Option<&'static str> {
    SHOWN.iter().chain(NETWORK).find(|(name, ..)| *name == metric).map(|(_, heading, _)| *heading)
}

/// Columns of `--bound`, hidden last because a flag requests them.
const OVER_LIMITS: &str = "over bound or reference";

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('\u{2500}').junction('\u{2500}'));

/// A column: metric, heading, alignment, cells.
type Shown<'c> = (&'c str, String, CellAlignment, Vec<String>);

impl Comparison {
    /// Returns the comparison as tables of the main metrics, one per workload, at most `width` columns wide, with a legend of
    /// their marks.
    pub fn to_text(&self, width: usize) -> String {
        let mut text = String::new();
        let mut hidden: Vec<&str> = vec![];
        let shown = self.shown(false);
        for workload in &shown {
            let main = self.main_metric_of(workload);
            let mut wanted: Vec<&(&str, &str, bool)> = SHOWN
                .iter()
                .filter(|(metric, ..)| match *metric {
                    "completion" => main == "completion",
                    "fct_ratio_max" => main != "completion",
                    _ => true,
                })
                .collect();
            wanted.sort_by_key(|(metric, ..)| *metric != main);
            let mut columns = self.columns_of(workload, &wanted);
            let Some(at) = columns.iter().position(|column| column.0 == main) else { continue };
            let mut place = at + 1;
            if let Some(groups) = self.groups(workload, main) {
                columns.insert(place, ("group", "group".to_string(), CellAlignment::Left, groups));
                place += 1;
            }
            for (title, values) in self.over_limits(workload).into_iter().rev() {
                let text = |value: Option<f64>| value.map_or("n/a".to_string(), |value| significant_digits(value, 4));
                let cells = values.into_iter().map(text).collect();
                columns.insert(place, (OVER_LIMITS, title.replace("over ", "over\n"), CellAlignment::Right, cells));
            }
            if shown.len() > 1 {
                let counts = self.measured.iter().any(|m| m == workload);
                let note = if counts { "" } else { " (not measured)" };
                text.push_str(&format!("\nworkload {}{note}\n", self.label(workload)));
            }
            text.push_str(&self.table(columns, width, &mut hidden));
        }
        let network = self.columns_of(ALL, &NETWORK.iter().collect::<Vec<_>>());
        if !network.is_empty() {
            text.push_str("\nwhole network, means\n");
            text.push_str(&self.table(network, width, &mut hidden));
        }
        text.push('\n');
        text.push_str(&self.notes(&hidden, width));
        text
    }

    fn columns_of<'c>(&self, workload: &str, wanted: &[&(&'c str, &str, bool)]) -> Vec<Shown<'c>> {
        let column = |&&(metric, heading, full): &&(&'c str, &str, bool)| {
            let alignment = if full { CellAlignment::Left } else { CellAlignment::Right };
            Some((metric, heading.to_string(), alignment, self.column(workload, metric, full)?))
        };
        wanted.iter().filter_map(column).collect()
    }

    /// Letters of the groups that tie; `None` if the seeds are too few for a test.
    fn groups(&self, workload: &str, metric: &str) -> Option<Vec<String>> {
        let of = |scheme: &String| self.row(workload, scheme, metric).map_or(String::new(), |row| letters(&row.group));
        let groups: Vec<String> = self.schemes.iter().map(of).collect();
        groups.iter().any(|group| !group.is_empty()).then_some(groups)
    }

    /// Hides the last columns if the terminal is too narrow; the first, and those that a flag requested, remain longest.
    fn table<'c>(&self, mut columns: Vec<Shown<'c>>, width: usize, hidden: &mut Vec<&'c str>) -> String {
        loop {
            let mut table = Table::new();
            table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
            let heads = columns.iter().map(|(_, heading, alignment, _)| Cell::new(heading).set_alignment(*alignment));
            table.set_header(std::iter::once(Cell::new("scheme")).chain(heads));
            for (i, scheme) in self.schemes.iter().enumerate() {
                let mark = if *scheme == self.baseline { " (baseline)" } else { "" };
                let cells =
                    columns.iter().map(|(_, _, alignment, cells)| Cell::new(&cells[i]).set_alignment(*alignment));
                table.add_row(std::iter::once(Cell::new(format!("{scheme}{mark}"))).chain(cells));
            }
            let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_string()).collect();
            if columns.len() <= 2 || lines.iter().all(|line| line.chars().count() <= width) {
                return lines.join("\n") + "\n";
            }
            let place = (1..columns.len()).rev().find(|place| columns[*place].0 != OVER_LIMITS);
            let (metric, ..) = columns.remove(place.unwrap_or(columns.len() - 1));
            if !hidden.contains(&metric) {
                hidden.push(metric);
            }
        }
    }

    fn notes(&self, hidden: &[&str], width: usize) -> String {
        let seeds = self.compared_seeds.len();
        let mut notes = vec![match seeds {
            1 => format!("one seed: confidence interval and test n/a; change against {}", self.baseline),
            _ => format!("mean of {seeds} seeds, {INTERVAL}; change against {}", self.baseline),
        }];
        let rows = wording::main_rows(self);
        if rows.iter().any(|row| row.significant.is_some() || row.leads()) {
            notes.push("* lowest, or not significantly different; ~ not significant against the baseline".to_string());
        }
        notes.extend(wording::tests_line(self));
        match wording::has_letters(self) {
            true => notes.push(format!("group: {LETTERS}")),
            false if rows.iter().filter(|row| row.ranks()).count() > 1 => notes.push(undecided(&rows)),
            false => {}
        }
        notes.extend(wording::needed_line(self));
        notes.extend(self.limit_lines());
        notes.extend(wording::sequential_line(self));
        if self.seeds_change_nothing {
            notes.push("every seed gave the same flow times: there is no variance to test against".to_string());
        }
        notes.extend(self.alike.iter().cloned());
        notes.extend(wording::censored_lines(self).into_iter().map(|line| format!("! {line}")));
        if let Some((over, schemes)) = self.missing_lines().split_last() {
            notes.extend(schemes.iter().map(|line| format!("MISSING {line}")));
            notes.push(over.clone());
        }
        notes.extend(self.machine_bound_line());
        match self.fct_kind {
            Some(FctKind::Rx) => {
                notes.push(
                    "completion times: first packet sent to last packet received\n       (fct_kind = \"rx\")"
                        .to_string(),
                );
            }
            Some(FctKind::Ack) => {
                notes.push(
                    "completion times: start to last acknowledgement at the sender\n       (fct_kind = \"ack\")"
                        .to_string(),
                );
            }
            None => {}
        }
        if !hidden.is_empty() {
            notes.push(format!("columns hidden (narrow terminal), see comparison.csv: {}", hidden.join(", ")));
        }
        let options = textwrap::Options::new(width).break_words(false).word_splitter(NoHyphenation);
        notes.iter().map(|note| textwrap::fill(note, &options) + "\n").collect()
    }

    pub(crate) fn machine_bound_line(&self) -> Option<String> {
        let is_bound = |seed: &u64| self.machine_bound.iter().any(|run| run.ends_with(&format!("/seed{seed}")));
        let treatment = match self.compared_seeds.iter().any(is_bound) {
            true => "compared nevertheless, because no other seed would remain",
            false => "their seeds are not compared",
        };
        let runs = self.machine_bound.join(", ");
        (!runs.is_empty()).then(|| format!("MACHINE-BOUND {runs}: {treatment}"))
    }

    /// Returns the missing seeds, a line per scheme, and last the seeds compared.
    pub(crate) fn missing_lines(&self) -> Vec<String> {
        let text = |seeds: &[u64]| seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let mut lines: Vec<String> = self
            .missing()
            .into_iter()
            .map(|(scheme, seeds)| {
                let of = self.seeds.len();
                let has = of - seeds.len();
                format!("{scheme}: {has} of {of} seeds; not run: seed {}", text(&seeds))
            })
            .collect();
        if !lines.is_empty() {
            lines.push(match self.compared_seeds.as_slice() {
                [] => "No seed has been run under every scheme: schemes are compared over different seeds".to_string(),
                compared => format!("Compared over the seeds of every scheme: seed {}", text(compared)),
            });
        }
        lines
    }

    fn column(&self, workload: &str, metric: &str, full: bool) -> Option<Vec<String>> {
        let rows: Vec<Option<&ComparisonRow>> =
            self.schemes.iter().map(|scheme| self.row(workload, scheme, metric)).collect();
        let means: Vec<f64> = rows.iter().filter_map(|row| row.and_then(|row| row.mean)).collect();
        if means.is_empty() || !full && means.iter().all(|mean| *mean == 0.0) {
            return None;
        }
        if !full {
            let mean = |row: &Option<&ComparisonRow>| row.and_then(|row| row.mean);
            return Some(
                rows.iter()
                    .map(|row| mean(row).map_or("n/a".to_string(), |m| significant_digits_trimmed(m, 3)))
                    .collect(),
            );
        }
        let parts: Vec<[String; 4]> = rows.iter().map(|row| row.map(parts).unwrap_or_default()).collect();
        let width = |part: usize| parts.iter().map(|p| p[part].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        let line = |p: &[String; 4]| {
            let [mean, half, change, mark] = p;
            let [a, b, c, d] = widths;
            let half = if b > 0 { format!(" {half:<b$}") } else { String::new() };
            let change = if c > 0 { format!(" {change:>c$}") } else { String::new() };
            format!("{mean:>a$}{half}{change}{mark:<d$}")
        };
        Some(parts.iter().map(line).collect())
    }
}

/// Mean, interval, change and marks, such as `3.21`, `±0.04`, `−12 %`, `*`.
fn parts(row: &ComparisonRow) -> [String; 4] {
    let Some(mean) = row.mean else { return ["n/a".to_string(), String::new(), String::new(), String::new()] };
    let half = row.spread(|half| significant_digits(half, 2)).unwrap_or_default();
    let change = match (row.ratio_to_baseline, row.difference) {
        (Some(ratio), Some(_)) => percent_change(ratio),
        _ => String::new(),
    };
    let leading = row.leads() && row.test != Some(Method::Censored);
    let marks = [(leading, '*'), (row.significant == Some(false), '~'), (!row.ranks(), '!')];
    let marks: String = marks.into_iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
    [significant_digits(mean, 4), half, change, marks]
}
