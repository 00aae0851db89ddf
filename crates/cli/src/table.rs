//! Tables for people, as wide as the terminal: long text is wrapped, and where that is not enough the least important
//! columns are left out and named.

use crate::printing::{width, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table as Drawing, TableStyle};

/// A line under the header, nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// Columns that a text is not wrapped below.
const LEAST_TEXT: usize = 24;

/// Columns with a header; columns whose cells are all numbers are aligned to the right.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<String>,
    /// The same in as many lines as are needed.
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    text: Option<usize>,
    least: Vec<String>,
    elsewhere: &'static str,
}

impl Table {
    /// With all columns as wide as they are.
    pub(crate) fn new<H: ToString>(header: &[H], rows: Vec<Vec<String>>) -> Self {
        let header: Vec<String> = header.iter().map(ToString::to_string).collect();
        Table { headings: header.clone(), header, rows, text: None, least: Vec::new(), elsewhere: "--format json" }
    }

    /// Its last column is text, which may be wrapped.
    pub(crate) fn wrap_last(mut self) -> Self {
        self.text = self.header.len().checked_sub(1);
        self
    }

    /// The columns that go where there is no room, the least important first.
    pub(crate) fn least(mut self, headers: &[&str]) -> Self {
        self.least = headers.iter().map(|header| (*header).to_string()).collect();
        self
    }

    /// Where columns that were left out can be read.
    pub(crate) fn in_full_in(mut self, place: &'static str) -> Self {
        self.elsewhere = place;
        self
    }

    /// The table for this terminal.
    pub(crate) fn draw(self) -> String {
        let columns = width();
        self.draw_in(columns)
    }

    fn draw_in(mut self, columns: usize) -> String {
        let fits = |lines: &str| lines.lines().all(|line| line.chars().count() <= columns);
        if !fits(&self.lines(columns)) {
            self.headings = self.header.iter().enumerate().map(|(i, text)| self.heading(i, text)).collect();
        }
        let mut left_out = Vec::new();
        for least in std::mem::take(&mut self.least) {
            if fits(&self.lines(columns)) {
                break;
            }
            let Some(index) = self.header.iter().position(|header| *header == least) else { continue };
            self.header.remove(index);
            self.headings.remove(index);
            self.rows.iter_mut().filter(|row| index < row.len()).for_each(|row| drop(row.remove(index)));
            self.text = self.text.map(|text| text - usize::from(index < text));
            left_out.push(least);
        }
        let mut out = self.lines(columns);
        if !left_out.is_empty() {
            left_out.reverse();
            let note = format!("left out for width, see {}: {}", self.elsewhere, left_out.join(", "));
            out += &(wrapped(&note, columns) + "\n");
        }
        out
    }

    /// Columns of the widest cell.
    fn widest(&self, index: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// A header no wider than its column, where its words allow; dotted keys break after their dots.
    fn heading(&self, index: usize, text: &str) -> String {
        wrapped(&text.replace('.', ". "), self.widest(index).max(1)).replace(". ", ".")
    }

    /// The rows, with the text in as many lines as it needs in the room that the other columns leave.
    fn wrapped_rows(&self, columns: usize) -> Vec<Vec<String>> {
        let mut rows = self.rows.clone();
        let Some(text) = self.text else { return rows };
        let of = |index: usize| self.widest(index).max(self.headings[index].lines().map(str::len).max().unwrap_or(0));
        let others: usize = (0..text).map(|index| of(index) + 2).sum();
        let room = columns.saturating_sub(others).max(LEAST_TEXT);
        rows.iter_mut().filter_map(|row| row.get_mut(text)).for_each(|cell| *cell = wrapped(cell, room));
        rows
    }

    fn lines(&self, columns: usize) -> String {
        let mut drawing = Drawing::new();
        drawing.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
        drawing.set_header(&self.headings).add_rows(self.wrapped_rows(columns));
        let number = |cell: &str| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        for (index, column) in drawing.column_iter_mut().enumerate() {
            // Between two columns stands one blank more, where other styles have their line.
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
    fn text_is_wrapped_before_a_column_goes() {
        let table = || Table::new(&["scheme", "p99", "meaning"], rows()).wrap_last().least(&["p99"]);
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
            !narrower.contains("1.25") && narrower.ends_with("left out for width, see --format\njson: p99\n"),
            "{narrower}"
        );
        for (columns, drawn) in [(80, wide), (40, narrow), (34, narrower)] {
            assert!(drawn.lines().all(|line| line.chars().count() <= columns), "{columns}\n{drawn}");
        }
    }
}
