//! The data block of the page: concatenated columns of numbers and texts, compressed, as text.
//!
//! Base64 of a zlib stream of: the length of the head in 4 bytes (little endian), the head, the columns. The head is JSON: facts,
//! and per column `name`, `kind`, `rows` and `bytes`. A column's kind is `text` (UTF-8, a line per row), `whole` (LEB128), `real`
//! (8 bytes little endian, NaN for empty), `near` (4 bytes, else as `real`) or `steps` (LEB128 of the zigzag difference from the
//! row before it; the first of every `period` rows is the difference from 0).

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Map, Value, json};
use std::io::Write;

#[derive(Debug, Default)]
pub(crate) struct Pack {
    columns: Vec<Value>,
    body: Vec<u8>,
}

impl Pack {
    fn close(&mut self, name: &str, kind: &str, rows: usize, from: usize) {
        self.columns.push(json!({ "name": name, "kind": kind, "rows": rows, "bytes": self.body.len() - from }));
    }

    /// Line breaks become spaces.
    pub(crate) fn text<'t>(&mut self, name: &str, cells: impl Iterator<Item = &'t str>) {
        let (from, mut rows) = (self.body.len(), 0);
        for cell in cells {
            if rows > 0 {
                self.body.push(b'\n');
            }
            self.body.extend(cell.replace('\n', " ").bytes());
            rows += 1;
        }
        self.close(name, "text", rows, from);
    }

    pub(crate) fn whole(&mut self, name: &str, cells: impl Iterator<Item = u64>) {
        let (from, mut rows) = (self.body.len(), 0);
        for cell in cells {
            self.leb128(cell);
            rows += 1;
        }
        self.close(name, "whole", rows, from);
    }

    /// Empty cells are NaN.
    pub(crate) fn real(&mut self, name: &str, cells: impl Iterator<Item = Option<f64>>) {
        let (from, mut rows) = (self.body.len(), 0);
        for cell in cells {
            self.body.extend(cell.unwrap_or(f64::NAN).to_le_bytes());
            rows += 1;
        }
        self.close(name, "real", rows, from);
    }

    /// Numbers in single precision, such as positions.
    pub(crate) fn near(&mut self, name: &str, cells: impl Iterator<Item = f64>) {
        let (from, mut rows) = (self.body.len(), 0);
        for cell in cells {
            self.body.extend((cell as f32).to_le_bytes());
            rows += 1;
        }
        self.close(name, "near", rows, from);
    }

    /// Integers with small differences between neighbours, in parts of `period` rows.
    pub(crate) fn steps(&mut self, name: &str, period: usize, cells: &[u64]) {
        let from = self.body.len();
        for stretch in cells.chunks(period.max(1)) {
            let mut before = 0u64;
            for &cell in stretch {
                let step = cell.wrapping_sub(before) as i64;
                self.leb128(((step << 1) ^ (step >> 63)) as u64);
                before = cell;
            }
        }
        self.close(name, "steps", cells.len(), from);
        if let Some(Value::Object(column)) = self.columns.last_mut() {
            column.insert("period".into(), period.into());
        }
    }

    fn leb128(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.body.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.body.push(value as u8);
    }

    pub(crate) fn finish(self, mut facts: Map<String, Value>) -> std::io::Result<String> {
        facts.insert("columns".into(), self.columns.into());
        let head = Value::Object(facts).to_string();
        let mut encoder = ZlibEncoder::new(vec![], Compression::new(7));
        encoder.write_all(&(head.len() as u32).to_le_bytes())?;
        encoder.write_all(head.as_bytes())?;
        encoder.write_all(&self.body)?;
        Ok(BASE64_STANDARD.encode(encoder.finish()?))
    }
}
