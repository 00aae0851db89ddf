//! Tables that fit the terminal: long text is wrapped, then the least important columns are hidden and listed.

use crate::{width, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table as Drawing, TableStyle};

/// Only the header is underlined.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

const MIN_TEXT_COLUMNS: usize = 24;

/// Table whose numeric columns are aligned to the right.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<String>,
    /// The header, wrapped where the table is too wide.
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    text: Option<usize>,
    least: Vec<String>,
    elsewhere: &'static str,
}

impl Table {
    pub(crate) fn new<H: ToString>(header: &[H], rows: Vec<Vec<String>>) -> Self {
        let header: Vec<String> = header.iter().map(ToString::to_string).collect();
        Table { headings: header.clone(), header, rows, text: None, least: Vec::new(), elsewhere: "--format json" }
    }

    /// Allows the last column to be wrapped.
    pub(crate) fn wrap_last(mut self) -> Self {
        self.text = self.header.len().checked_sub(1);
        self
    }

    /// Names the columns to hide where the table is too wide, the least important first.
    pub(crate) fn hide_first(mut self, headers: &[&str]) -> Self {
        self.least = headers.iter().map(|header| (*header).to_string()).collect();
        self
    }

    /// Names the file or option that shows hidden columns.
    pub(crate) fn full_table_in(mut self, place: &'static str) -> Self {
        self.elsewhere = place;
        self
    }

    pub(crate) fn draw(self) -> String {
        let columns = width();
        self.draw_in(columns)
    }

    fn draw_in(mut self, columns: usize) -> String {
        let fits = |lines: &str| lines.lines().all(|line| line.chars().count() <= columns);
        if !fits(&self.lines(columns)) {
            self.headings = self.header.iter().enumerate().map(|(i, text)| self.heading(i, text)).collect();
        }
        let mut hidden = Vec::new();
        for least in std::mem::take(&mut self.least) {
            if fits(&self.lines(columns)) {
                break;
            }
            let Some(index) = self.header.iter().position(|header| *header == least) else { continue };
            self.header.remove(index);
            self.headings.remove(index);
            self.rows.iter_mut().filter(|row| index < row.len()).for_each(|row| drop(row.remove(index)));
            self.text = self.text.map(|text| text - usize::from(index < text));
            hidden.push(least);
        }
        let mut out = self.lines(columns);
        if !hidden.is_empty() {
            hidden.reverse();
            let note = format!("columns hidden (narrow terminal), see {}: {}", self.elsewhere, hidden.join(", "));
            out += &(wrapped(&note, columns) + "\n");
        }
        out
    }

    fn widest(&self, index: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Wraps a header to the width of its column where possible; dotted keys break after dots.
    fn heading(&self, index: usize, text: &str) -> String {
        wrapped(&text.replace('.', ". "), self.widest(index).max(1)).replace(". ", ".")
    }

    /// Returns the rows, with the text wrapped to the width that the other columns leave.
    fn wrapped_rows(&self, columns: usize) -> Vec<Vec<String>> {
        let mut rows = self.rows.clone();
        let Some(text) = self.text else { return rows };
        let of = |index: usize| self.widest(index).max(self.headings[index].lines().map(str::len).max().unwrap_or(0));
        let others: usize = (0..text).map(|index| of(index) + 2).sum();
        let text_columns = columns.saturating_sub(others).max(MIN_TEXT_COLUMNS);
        rows.iter_mut().filter_map(|row| row.get_mut(text)).for_each(|cell| *cell = wrapped(cell, text_columns));
        rows
    }

    fn lines(&self, columns: usize) -> String {
        let mut drawing = Drawing::new();
        drawing.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
        drawing.set_header(&self.headings).add_rows(self.wrapped_rows(columns));
        let number = |cell: &str| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        for (index, column) in drawing.column_iter_mut().enumerate() {
            // Pads for the column separator, which this style lacks.
            column.set_padding((0, if index + 1 == self.header.len() { 0 } else { 1 }));
            if !self.rows.is_empty() && self.rows.iter().filter_map(|row| row.get(index)).all(|cell| number(cell)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        drawing.trim_fmt() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |name: &str, p99: &str, meaning: &str| vec![name.into(), p99.into(), meaning.into()];
        vec![row("prime", "1.25", "passes over congested paths"), row("ecmp", "10.00", "one path per flow, by hash")]
    }

    #[test]
    fn tables_align() {
        let rows: Vec<Vec<String>> = rows().iter().map(|row| row[..2].to_vec()).collect();
        let drawn = Table::new(&["scheme", "p99"], rows).draw_in(80);
        assert_eq!(drawn, "scheme    p99\n-------------\nprime    1.25\necmp    10.00\n");
    }

    #[test]
    fn text_is_wrapped_before_columns_are_hidden() {
        let table = || Table::new(&["scheme", "p99", "meaning"], rows()).wrap_last().hide_first(&["p99"]);
        let wide = table().draw_in(80);
        assert!(wide.contains("prime    1.25  passes over congested paths\n"), "{wide}");
        let narrow = table().draw_in(40);
        assert!(
            narrow.contains("prime    1.25  passes over congested\n                     paths\n")
                || narrow.contains("p99"),
            "{narrow}"
        );
        let narrower = table().draw_in(34);
        assert!(
            !narrower.contains("1.25")
                && narrower.ends_with("columns hidden (narrow terminal),\nsee --format json: p99\n"),
            "{narrower}"
        );
        for (columns, drawn) in [(80, wide), (40, narrow), (34, narrower)] {
            assert!(drawn.lines().all(|line| line.chars().count() <= columns), "{columns}\n{drawn}");
        }
    }
}
