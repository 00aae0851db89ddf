//! Flows in a CSV file: `src, dst, size_bytes, start_ps` and, optional, `workload`, `class`; a header line is required, the
//! columns may come in any order. Lines that are empty or begin with `#` are skipped.

use super::Source;
use crate::{
    Start, WorkloadError,
    error::hint,
    flow::{NO_CLASS, plain},
    traffic::{Label, Traffic},
};
use anabranch_settings::nearest;
use csv::{ReaderBuilder, StringRecord};
use std::collections::BTreeMap;

/// The first four are required.
const COLUMNS: [&str; 6] = ["src", "dst", "size_bytes", "start_ps", "workload", "class"];

fn columns(source: &Source<'_>, line: usize, header: &StringRecord) -> Result<[Option<usize>; 6], WorkloadError> {
    let mut at = [None; 6];
    for (position, name) in header.iter().map(str::trim).enumerate() {
        let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
            let near = hint(nearest(name, COLUMNS));
            let message = format!("unknown column `{name}`; allowed are {}{near}", COLUMNS.join(", "));
            return Err(source.wrong(line, message));
        };
        if at[column].replace(position).is_some() {
            return Err(source.wrong(line, format!("the column `{name}` comes twice")));
        }
    }
    match (0..4).find(|&column| at[column].is_none()) {
        Some(missing) => Err(source.wrong(
            line,
            format!("the header lacks the column `{}`; required are {}", COLUMNS[missing], COLUMNS[..4].join(", ")),
        )),
        None => Ok(at),
    }
}

pub(super) fn read(source: &Source<'_>) -> Result<Traffic, WorkloadError> {
    let text = source.text()?;
    // The reader receives only lines that count, so its line numbers are mapped back to those of the file.
    let mut kept = String::with_capacity(text.len() + 1);
    let mut lines = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            kept.push_str(line);
            kept.push('\n');
            lines.push(number + 1);
        }
    }
    let line_of = |record: &StringRecord| {
        let line = record.position().map_or(1, |position| position.line());
        lines.get((line as usize).saturating_sub(1)).copied().unwrap_or(1)
    };
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(kept.as_bytes());
    let mut record = StringRecord::new();
    let mut next = |record: &mut StringRecord| {
        reader.read_record(record).map_err(|why| source.wrong(line_of(record), why.to_string()))
    };
    if !next(&mut record)? {
        return Err(source.wrong(1, format!("found no header line, expected {}", COLUMNS.join(", "))));
    }
    let at = columns(source, line_of(&record), &record)?;
    let width = record.len();

    let mut traffic = Traffic::default();
    // Label 0 is the workload's own name, which is unknown here.
    traffic.labels.push(Label::default());
    let mut labels: BTreeMap<String, u16> = BTreeMap::new();
    while next(&mut record)? {
        let line = line_of(&record);
        if record.len() != width {
            return Err(source.wrong(line, format!("found {} fields, the header has {width}", record.len())));
        }
        let field = |column: usize| at[column].and_then(|position| record.get(position)).unwrap_or_default().trim();
        let (src, dst) = (source.host(line, "src", field(0))?, source.host(line, "dst", field(1))?);
        source.pair(line, src, dst)?;
        let mut flow = plain(src, dst, source.size(line, field(2))?, Start::At(source.start(line, field(3))?));
        flow.workload = match field(4) {
            "" => 0,
            name => match labels.get(name) {
                Some(&label) => label,
                None => {
                    if let Some(wrong) = crate::names::wrong_workload_name(name) {
                        return Err(source.wrong(line, format!("workload: {wrong}")));
                    }
                    let label = u16::try_from(traffic.labels.len())
                        .map_err(|_| source.wrong(line, "more than 65535 workloads in one file"))?;
                    traffic.labels.push(Label::named(name));
                    labels.insert(name.to_string(), label);
                    label
                }
            },
        };
        flow.class = match field(5) {
            "" => NO_CLASS,
            name => match source.classes.iter().position(|class| class == name) {
                Some(class) if class < usize::from(NO_CLASS) => class as u8,
                _ => {
                    let near = hint(nearest(name, source.classes.iter().map(String::as_str)));
                    let message = format!("class: found `{name}`; the fabric has {}{near}", source.classes.join(", "));
                    return Err(source.wrong(line, message));
                }
            },
        };
        traffic.flows.push(flow);
    }
    Ok(traffic)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{read_text, refused, refused_texts};
    use crate::{FileFormat::Csv, Start, flow::NO_CLASS, kinds::testing::rows};
    use anabranch_units::Time;

    #[test]
    fn reads_flows_in_any_column_order() {
        let text = "\u{feff}# flows\r\nworkload, start_ps ,src,dst,class,size_bytes\r\n\r\nweb,5,0,1,bulk,100\r\n\
                    ,1000000000000000000, 2,3,,7\r\n\"web\",0,4,5,data,1";
        let made = read_text(Csv, text).unwrap();
        assert_eq!(made.labels[1..].iter().map(|label| label.name.as_str()).collect::<Vec<_>>(), ["web"]);
        let seen: Vec<_> = made.flows.iter().map(|f| (f.src, f.dst, f.size, f.start, f.workload, f.class)).collect();
        let at = |ps| Start::At(Time::from_ps(ps));
        assert_eq!(
            seen,
            [(0, 1, 100, at(5), 1, 1), (2, 3, 7, Start::At(Time::LONGEST), 0, NO_CLASS), (4, 5, 1, at(0), 1, 0)]
        );
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        let head = "src,dst,size_bytes,start_ps\n";
        let with = |row: &str| format!("# a comment\n\n{head}0,1,5,0\n\n{row}\n");
        refused_texts(Csv, "csv:");
        for [row, part] in rows("csv rows") {
            refused(Csv, &[(&with(&row), 6, &part)]);
        }
    }
}
