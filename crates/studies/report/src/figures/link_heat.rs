//! Heat map of utilisation: a cell per link, a row per sending switch, so that hot, failed and uneven links are visible.

use super::{
    Anchor, Canvas, Figure, Grid, Key, PANEL, Paint, Panels, Rows, SUBTITLE, Scale, Sheet, TICK, View, column, heat,
    names,
};
use crate::{LinkPoint, dataset::Load};
use anabranch_results::capital;

/// Maximum rows and columns; beyond them neighbours share a cell, which shows the busiest.
const MAX_CELLS: (usize, usize) = (40, 64);
/// Number of distinct colours; cells of one colour are one shape, which keeps the file small.
const LEVELS: usize = 40;

/// Rows are sending nodes; each row's links are in their order.
fn matrix<'l>(links: &'l [LinkPoint], group: &str) -> Vec<(&'l str, Vec<&'l LinkPoint>)> {
    let mut rows: Vec<(&str, Vec<&LinkPoint>)> = vec![];
    let mut places: std::collections::BTreeMap<&str, usize> = Default::default();
    for link in links.iter().filter(|link| *link.group == *group) {
        let place = *places.entry(&link.from).or_insert_with(|| {
            rows.push((&link.from, vec![]));
            rows.len() - 1
        });
        rows[place].1.push(link);
    }
    rows
}

#[derive(Clone, Debug, PartialEq)]
struct Content {
    load: f64,
    faulty: bool,
    /// Text of the busiest link and its fault.
    words: String,
    links: usize,
}

/// Busiest link of each cell; `None` without a link.
fn cells(matrix: &[(&str, Vec<&LinkPoint>)], rows: usize, columns: usize, measure: Load) -> Vec<Vec<Option<Content>>> {
    let widest = matrix.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let (high, wide) = (matrix.len().min(rows), widest.min(columns));
    let mut cells = vec![vec![None; wide]; high];
    for (i, (_, links)) in matrix.iter().enumerate() {
        for (j, link) in links.iter().enumerate() {
            let cell: &mut Option<Content> = &mut cells[i * high / matrix.len()][j * wide / widest];
            let words = || {
                let fault = if link.fault.is_empty() { String::new() } else { format!(" ({})", link.fault) };
                format!("{} \u{2192} {}: {}{fault}", link.from, link.to_port(), measure.text(link.load))
            };
            let (links, faulty) = cell.as_ref().map_or((0, false), |cell| (cell.links, cell.faulty));
            match cell {
                Some(cell) if cell.load >= link.load => {
                    cell.links += 1;
                    cell.faulty |= link.has_fault();
                }
                cell => {
                    let faulty = faulty || link.has_fault();
                    *cell = Some(Content { load: link.load, faulty, words: words(), links: links + 1 });
                }
            }
        }
    }
    cells
}

fn senders(links: &[LinkPoint], group: &str) -> String {
    let rows = matrix(links, group);
    match (rows.first(), rows.last()) {
        (Some(first), Some(last)) if rows.len() > 1 => format!("{} to {}", first.0, last.0),
        (Some(only), _) => only.0.to_string(),
        _ => "no links".to_string(),
    }
}

fn block(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    width: f64,
    height: f64,
    cells: &[Vec<Option<Content>>],
    scale: Scale,
) {
    // Above this number of cells, their values would outweigh the page.
    const MAX_LABELLED_CELLS: usize = 4000;
    let columns = cells.first().map_or(1, Vec::len).max(1);
    let (w, h) = (width / columns as f64, height / cells.len().max(1) as f64);
    let gap = if w.min(h) > 5.0 { 1.0 } else { 0.0 };
    let mut levels: Vec<Vec<(f64, f64)>> = vec![vec![]; LEVELS + 1];
    let mut failed = vec![];
    for (i, row) in cells.iter().enumerate() {
        for (j, content) in row.iter().enumerate() {
            let Some(content) = content else { continue };
            let (x, y) = (left + j as f64 * w, top + i as f64 * h);
            levels[(scale.share(content.load) * LEVELS as f64).round() as usize].push((x, y));
            let middle = (x + (w - gap) / 2.0, y + (h - gap) / 2.0);
            if content.faulty {
                failed.push(middle);
            }
            if cells.len() * columns <= MAX_LABELLED_CELLS {
                let others = match content.links {
                    1 => String::new(),
                    links => format!("; busiest of {links}"),
                };
                canvas.hit(middle, None, format!("{}{others}", content.words));
            }
        }
    }
    for (level, places) in levels.iter().enumerate() {
        canvas.cells(places, (w - gap, h - gap), heat(level as f64 / LEVELS as f64));
    }
    for place in failed {
        canvas.cross(place, (w.min(h) * 0.32).clamp(2.0, 5.0), Paint::Fixed([226, 35, 26]));
    }
}

pub(super) fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    let all = data.link_groups();
    let between: Vec<&String> = all.iter().filter(|group| *group != "switch to host").collect();
    let groups: Vec<&String> = if between.is_empty() { all.iter().collect() } else { between };
    let first_runs: Vec<&Vec<LinkPoint>> = data.schemes.iter().filter_map(|s| Some(&s.runs.first()?.links)).collect();
    let largest = first_runs
        .iter()
        .flat_map(|links| links.iter().filter(|link| groups.iter().any(|group| **group == *link.group)))
        .map(|link| link.load)
        .fold(0.0, f64::max);
    if groups.is_empty() || largest <= 0.0 {
        return Ok(None);
    }
    let scale = Scale::exact(0.0, Scale::linear(0.0, largest).ends().1);
    let names = names(data);
    let matrices: Vec<Vec<Vec<Vec<Option<Content>>>>> = first_runs
        .iter()
        .map(|links| {
            groups.iter().map(|group| cells(&matrix(links, group), MAX_CELLS.0, MAX_CELLS.1, data.load)).collect()
        })
        .collect();
    // The height of a block follows its number of switches and is the same for all schemes.
    let heights: Vec<f64> = (0..groups.len())
        .map(|group| matrices.iter().map(|m| m[group].len()).max().unwrap_or(1))
        .map(|rows| {
            if view.layout.is_page() {
                (rows as f64 * 11.0).clamp(22.0, 200.0)
            } else {
                (rows as f64 * 5.0).clamp(14.0, 70.0)
            }
        })
        .collect();
    let height: f64 = heights.iter().sum::<f64>() + 22.0 * groups.len() as f64 - 12.0;
    let faulty = LinkPoint::fault_words(first_runs.iter().flat_map(|links| links.iter()));
    let columns = names.len().clamp(1, 3);
    let panels = Panels {
        panels: names.len(),
        columns,
        width: [720.0, 400.0, 290.0][columns - 1],
        min_width: 130.0,
        height,
        flexible: false,
        beside: 14.0,
        below: 30.0,
    };
    let grid = Grid::new(view.layout, &panels, &Key::Row);
    let width = grid.width;
    let shown = cells_shown(&first_runs, &groups);
    let subtitle = format!(
        "{}, seed {}. {shown}. Equal colours are an even load, dark links carry little or nothing{}",
        capital(&data.load_words()),
        data.schemes[0].runs[0].summary.seed,
        faulty.map_or(String::new(), |faulty| format!("; a red cross marks a {faulty} link"))
    );
    let mut sheet = Sheet::new("Where the load is: every link", &subtitle, &grid, &[]);
    for (panel, ((name, blocks), links)) in names.iter().zip(&matrices).zip(&first_runs).enumerate() {
        let (left, mut top) = grid.place(panel);
        sheet.canvas.text((left, top - 10.0), name, PANEL.naming(panel));
        let axes = (left + width / 2.0, top + height + 20.0);
        sheet.canvas.text(axes, "links of a switch, in order", TICK);
        let turned = (left - 5.0, top + height / 2.0);
        sheet.canvas.turned_text(turned, "sending switches", TICK, -90.0);
        for ((group, cells), height) in groups.iter().zip(blocks).zip(&heights) {
            let words = match view.layout.is_page() {
                true => format!("{}: {}", capital(group), senders(links, group)),
                false => capital(group),
            };
            sheet.canvas.text((left, top + 8.0), &words, TICK.anchor(Anchor::Start));
            block(&mut sheet.canvas, (left, top + 14.0), width, *height, cells, scale);
            top += height + 22.0;
        }
    }
    colour_bar(&mut sheet.canvas, (grid.right(), if view.layout.is_page() { 19.0 } else { 5.0 }), scale, data.load);
    let mut rows = Rows::default();
    for (name, links) in names.iter().zip(&first_runs) {
        for link in links.iter().filter(|link| groups.iter().any(|group| **group == *link.group)) {
            rows.push([name, &*link.group, &link.from, &link.to_port(), &link.load.to_string(), &link.fault]);
        }
    }
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("links", "text", "", "tier and direction"),
        column("from", "text", "", "sending switch"),
        column("to", "text", "", "receiving switch, with the number of a parallel cable: spine0#1"),
        column(data.load.column(), "real", "", &format!("{}, of the first seed", data.load_words())),
        column("fault", "text", "", "effects of faults on the link; empty without any or where not recorded"),
    ];
    Ok(Some(sheet.finish(view, columns, rows)))
}

fn cells_shown(runs: &[&Vec<LinkPoint>], groups: &[&String]) -> String {
    let over = |group: &&&String| {
        runs.iter().any(|links| {
            let matrix = matrix(links, group);
            matrix.len() > MAX_CELLS.0 || matrix.iter().any(|row| row.1.len() > MAX_CELLS.1)
        })
    };
    match groups.iter().any(|group| over(&group)) {
        true => "A row per sending switch, a cell per link; where they are too many, neighbours share a cell with the value of the busiest".to_string(),
        false => "A row per sending switch, a cell per link".to_string(),
    }
}

fn colour_bar(canvas: &mut Canvas, (right, top): (f64, f64), scale: Scale, measure: Load) {
    let title = SUBTITLE.width(measure.title()) + SUBTITLE.width("100 %") + 12.0;
    let width = (right - 44.0 - title).clamp(40.0, 140.0);
    let left = right - width - 44.0;
    canvas.text((left - 6.0 - SUBTITLE.width("100 %"), top + 8.5), measure.title(), SUBTITLE.anchor(Anchor::End));
    for i in 0..LEVELS {
        let x = left + width * i as f64 / LEVELS as f64;
        canvas.cells(&[(x, top)], (width / LEVELS as f64 + 0.3, 9.0), heat((i as f64 + 0.5) / LEVELS as f64));
    }
    let (low, high) = scale.ends();
    canvas.text((left - 6.0, top + 8.5), &measure.tick()(low), SUBTITLE.anchor(Anchor::End));
    canvas.text((left + width + 6.0, top + 8.5), &measure.tick()(high), SUBTITLE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: &str, utilisation: f64) -> LinkPoint {
        LinkPoint {
            from: from.to_string(),
            to: "spine".to_string(),
            group: "tier 0\u{2013}1, up".into(),
            load: utilisation,
            ..LinkPoint::default()
        }
    }

    #[test]
    fn rows_are_senders_and_shared_cells_show_the_busiest() {
        let links = [link("a", 0.1), link("b", 0.3), link("a", 0.2), link("b", 0.4), link("a", 0.9)];
        let rows = matrix(&links, "tier 0\u{2013}1, up");
        assert_eq!(rows.iter().map(|row| (row.0, row.1.len())).collect::<Vec<_>>(), [("a", 3), ("b", 2)]);
        let shown = |cells: Vec<Vec<Option<Content>>>| -> Vec<Vec<Option<f64>>> {
            cells.into_iter().map(|row| row.into_iter().map(|cell| cell.map(|c| c.load)).collect()).collect()
        };
        assert_eq!(
            shown(cells(&rows, 9, 9, Load::Run)),
            [vec![Some(0.1), Some(0.2), Some(0.9)], vec![Some(0.3), Some(0.4), None]]
        );
        assert_eq!(shown(cells(&rows, 1, 1, Load::Run)), [vec![Some(0.9)]]);
        // A failed link marks the cell that it shares with busier ones.
        let mut links = links;
        links[0].fault = "down at 0us".to_string();
        let all = cells(&matrix(&links, "tier 0\u{2013}1, up"), 1, 1, Load::Run);
        assert_eq!(all[0][0].as_ref().map(|cell| (cell.faulty, cell.links)), Some((true, 5)));
    }
}
