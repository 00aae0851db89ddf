//! What the schemes of traced flows knew at each call.

use super::pack::Pack;
use anabranch_results::{Column, ColumnKind, Frame, ReportError, TABLES};
use serde_json::{Value, json};
use std::path::Path;

/// Packs the calls of each scheme; returns its name and its columns, with units and meanings.
pub(super) fn pack(dir: &Path, pack: &mut Pack) -> Result<Vec<Value>, ReportError> {
    let mut schemes = vec![];
    for table in TABLES.iter().filter(|table| table.is_scheme()) {
        // Without a state its calls are those of the packets.
        let state: Vec<&Column> = table.columns.iter().filter(|column| column.kind == ColumnKind::Real).collect();
        if state.is_empty() {
            continue;
        }
        let mut columns = vec!["time_ps", "flow_id", "event", "tag"];
        columns.extend(state.iter().map(|column| column.name));
        let Some(frame) = Frame::read(dir, table.name, &columns)?.filter(|frame| frame.rows() > 0) else { continue };
        let name = |of: &str| format!("scheme.{}.{of}", schemes.len());
        for key in ["time_ps", "flow_id", "tag"] {
            pack.real(&name(key), frame.integers(key).iter().map(|cell| cell.map(|cell| cell as f64)));
        }
        pack.text(&name("event"), frame.texts("event").iter().map(String::as_str));
        state.iter().for_each(|column| pack.real(&name(column.name), frame.reals(column.name).iter().copied()));
        let about = |c: &&Column| json!({ "name": c.name, "unit": c.unit, "meaning": c.meaning });
        schemes.push(json!({ "name": table.name, "columns": state.iter().map(about).collect::<Vec<_>>() }));
    }
    Ok(schemes)
}
