//! A comparison as a table for the terminal.

use crate::{
    FctKind,
    comparison::{ALL, Comparison, ComparisonRow},
    numbers::{percent_change, significant_digits, significant_digits_trimmed},
};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Metrics that a terminal has room for and what stands above them. `true`: with interval and change, shown always;
/// `false`: the mean alone, shown where it is not zero throughout.
const SHOWN: &[(&str, &str, bool)] = &[
    ("slowdown_p50", "slowdown\nmedian", true),
    ("slowdown_p99", "slowdown\np99", true),
    ("fct_ratio_max", "max FCT\nover ideal", true),
    ("completion", "whole\n[us]", true),
    ("fct_mean", "FCT [us]\nmean", true),
    ("trimmed", "packets\ntrimmed", false),
    ("dropped", "packets\ndropped", false),
    ("out_of_order_share", "share out\nof order", false),
    ("packets_per_ack", "packets\nper ACK", false),
];

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('\u{2500}').junction('\u{2500}'));

impl Comparison {
    /// The comparison as a table of the main metrics, a block per workload, with what its marks mean.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for workload in self.workloads() {
            let columns: Vec<(&str, CellAlignment, Vec<String>)> = SHOWN
                .iter()
                .filter(|(metric, ..)| match *metric {
                    "completion" => self.main_metric == "completion",
                    "fct_ratio_max" => self.main_metric != "completion",
                    _ => true,
                })
                .filter_map(|&(metric, heading, full)| {
                    // The parts of full cells are aligned among themselves.
                    let alignment = if full { CellAlignment::Left } else { CellAlignment::Right };
                    Some((heading, alignment, self.column(workload, metric, full)?))
                })
                .collect();
            if columns.is_empty() {
                continue;
            }
            let mut table = Table::new();
            table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
            let heads = columns.iter().map(|(heading, alignment, _)| Cell::new(heading).set_alignment(*alignment));
            table.set_header(std::iter::once(Cell::new("scheme")).chain(heads));
            for (i, scheme) in self.schemes.iter().enumerate() {
                let mark = if *scheme == self.baseline { " (baseline)" } else { "" };
                let cells = columns.iter().map(|(_, alignment, cells)| Cell::new(&cells[i]).set_alignment(*alignment));
                table.add_row(std::iter::once(Cell::new(format!("{scheme}{mark}"))).chain(cells));
            }
            if workload != ALL {
                text.push_str(&format!("\nworkload {workload}\n"));
            }
            for line in table.lines() {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text.push_str(&match self.seeds.len() {
            1 => format!("one seed: confidence interval and test n/a; change against {}; * best\n", self.baseline),
            seeds => format!(
                "mean of {seeds} seeds ± half of the 95 % confidence interval; change against {}; * best; \
                 ~ not significant (paired t-test, 5 %)\n",
                self.baseline
            ),
        });
        text.push_str(match self.fct_kind {
            Some(FctKind::Rx) => "completion times: first packet sent to last packet received (fct_kind = \"rx\")\n",
            Some(FctKind::Ack) => {
                "completion times: start to last acknowledgement at the sender (fct_kind = \"ack\")\n"
            }
            None => "",
        });
        if self.rows.iter().any(|row| row.unfinished_flows > 0) {
            text.push_str("! flows that count did not finish: the scheme looks better than it is and is never best\n");
        }
        text
    }

    /// The cells of a metric, scheme by scheme; `None` where there is nothing to show.
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
    let half = row.ci95_half_width.map_or(String::new(), |half| format!("±{}", significant_digits(half, 2)));
    let change = match (row.ratio_to_baseline, row.difference) {
        (Some(ratio), Some(_)) => percent_change(ratio),
        _ => String::new(),
    };
    let marks = [(row.best, '*'), (row.significant == Some(false), '~'), (row.unfinished_flows > 0, '!')];
    let marks: String = marks.into_iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
    [significant_digits(mean, 4), half, change, marks]
}
