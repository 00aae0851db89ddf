//! Columns in memory while they are filled, in the layout of Arrow: contiguous cells, dictionary of texts, validity bitmap.

use super::{At, ColumnKind, Context, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A column that is being filled.
#[derive(Clone, Debug)]
pub enum Filling<'r> {
    /// Cells of a [`ColumnKind::Integer`] column; 0 if empty.
    Integer(Vec<i64>, Validity),
    /// Cells of a [`ColumnKind::Unsigned`] column; 0 if empty.
    Unsigned(Vec<u64>, Validity),
    /// Cells of a [`ColumnKind::Real`] column; 0 if empty.
    Real(Vec<f64>, Validity),
    /// Cells of a [`ColumnKind::Text`] column.
    Text(Words<'r>),
    /// Cells of a [`ColumnKind::Flag`] column; unset if empty.
    Flag(Bits, Validity),
}

/// A bitmap, least significant bit first.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    /// The bytes of the bitmap.
    pub bytes: Vec<u8>,
    pub len: usize,
}

impl Bits {
    fn with_capacity(bits: usize) -> Self {
        Bits { bytes: Vec::with_capacity(bits.div_ceil(8)), len: 0 }
    }
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (index % 8) & 1 == 1
    }
    fn push(&mut self, set: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(byte) = self.bytes.last_mut() {
            *byte |= u8::from(set) << (self.len % 8);
        }
        self.len += 1;
    }
}

/// Validity of cells; the bitmap is created at the first empty cell.
#[derive(Clone, Debug, Default)]
pub struct Validity {
    /// A set bit per cell that is not empty; `None` if no cell is empty.
    pub bits: Option<Bits>,
}

impl Validity {
    /// Returns `true` if the cell is not empty.
    #[inline]
    pub fn has(&self, cell: usize) -> bool {
        self.bits.as_ref().is_none_or(|bits| bits.get(cell))
    }
    /// `empty` is `true` for each empty cell; `before` other cells precede them.
    fn extend(&mut self, before: usize, any_empty: bool, empty: impl Iterator<Item = bool>) {
        if any_empty || self.bits.is_some() {
            let bits = self.bits.get_or_insert_with(|| {
                let mut bits = Bits::with_capacity(before);
                (0..before).for_each(|_| bits.push(true));
                bits
            });
            empty.for_each(|empty| bits.push(!empty));
        }
    }
    fn push(&mut self, before: usize, empty: bool) {
        self.extend(before, empty, std::iter::once(empty));
    }
}

/// Dictionary-encoded texts.
#[derive(Clone, Debug, Default)]
pub struct Words<'r> {
    /// Index into `words` per cell; 0 if empty.
    pub keys: Vec<i32>,
    /// The different texts, in the order of their first cells.
    pub words: Vec<String>,
    pub validity: Validity,
    indices: FxHashMap<String, i32>,
    /// Last text and its index: most cells are equal to the one above.
    last: Option<(&'r str, i32)>,
}

impl<'r> Words<'r> {
    /// Creates a column of `cells` equal texts.
    pub fn all(word: &str, cells: usize) -> Self {
        Words { keys: vec![0; cells], words: vec![word.to_string()], ..Words::default() }
    }
    fn key_of(&mut self, word: &str) -> i32 {
        self.indices.get(word).copied().unwrap_or_else(|| {
            let key = self.words.len() as i32;
            self.words.push(word.to_string());
            self.indices.insert(word.to_string(), key);
            key
        })
    }
    #[inline]
    fn push(&mut self, word: Option<Cow<'r, str>>) {
        let key = match word {
            Some(Cow::Borrowed(word)) => match self.last {
                Some((last, key)) if std::ptr::eq(last, word) || last == word => key,
                _ => {
                    let key = self.key_of(word);
                    self.last = Some((word, key));
                    key
                }
            },
            Some(Cow::Owned(word)) => self.key_of(&word),
            None => 0,
        };
        self.keys.push(key);
    }
}

impl<'r> Filling<'r> {
    /// Creates an empty column with capacity for `rows` cells.
    pub fn new(kind: ColumnKind, rows: usize) -> Self {
        match kind {
            ColumnKind::Integer => Filling::Integer(Vec::with_capacity(rows), Validity::default()),
            ColumnKind::Unsigned => Filling::Unsigned(Vec::with_capacity(rows), Validity::default()),
            ColumnKind::Real => Filling::Real(Vec::with_capacity(rows), Validity::default()),
            ColumnKind::Text => Filling::Text(Words { keys: Vec::with_capacity(rows), ..Words::default() }),
            ColumnKind::Flag => Filling::Flag(Bits::with_capacity(rows), Validity::default()),
        }
    }

    /// Removes all cells, but keeps their memory.
    pub fn clear(&mut self) {
        let (Filling::Integer(.., validity)
        | Filling::Unsigned(.., validity)
        | Filling::Real(.., validity)
        | Filling::Flag(.., validity)
        | Filling::Text(Words { validity, .. })) = self;
        validity.bits = None;
        match self {
            Filling::Integer(cells, _) => cells.clear(),
            Filling::Unsigned(cells, _) => cells.clear(),
            Filling::Real(cells, _) => cells.clear(),
            Filling::Flag(bits, _) => {
                bits.bytes.clear();
                bits.len = 0;
            }
            Filling::Text(words) => words.keys.clear(),
        }
    }

    /// Appends a cell. Returns `false` if the value is not of the column's kind, or an integer does not fit 64 signed bits.
    pub fn push(&mut self, value: Value<'r>) -> bool {
        let empty = value == Value::Empty;
        match (self, value) {
            (Filling::Integer(cells, validity), Value::Integer(value)) => {
                validity.push(cells.len(), empty);
                cells.push(value as i64);
                return value <= i64::MAX as u64;
            }
            (Filling::Integer(cells, validity), Value::Empty) => {
                validity.push(cells.len(), empty);
                cells.push(0);
            }
            (Filling::Unsigned(cells, validity), Value::Integer(value)) => {
                validity.push(cells.len(), empty);
                cells.push(value);
            }
            (Filling::Unsigned(cells, validity), Value::Empty) => {
                validity.push(cells.len(), empty);
                cells.push(0);
            }
            (Filling::Real(cells, validity), Value::Real(value)) => {
                validity.push(cells.len(), empty);
                cells.push(value);
            }
            (Filling::Real(cells, validity), Value::Empty) => {
                validity.push(cells.len(), empty);
                cells.push(0.0);
            }
            (Filling::Text(words), Value::Text(word)) => {
                words.validity.push(words.keys.len(), empty);
                words.push(Some(word));
            }
            (Filling::Text(words), Value::Empty) => {
                words.validity.push(words.keys.len(), empty);
                words.push(None);
            }
            (Filling::Flag(cells, validity), Value::Flag(set)) => {
                validity.push(cells.len, empty);
                cells.push(set);
            }
            (Filling::Flag(cells, validity), Value::Empty) => {
                validity.push(cells.len, empty);
                cells.push(false);
            }
            _ => return false,
        }
        true
    }
}

/// Implements `fill` of a [`Column`](super::Column), compiled per `get`, so that no cell is stored as a [`Value`].
pub(crate) fn fill<'r>(
    get: impl Fn(&Context<'r>, At) -> Value<'r>,
    context: &Context<'r>,
    rows: &[At],
    to: &mut Filling<'r>,
) -> bool {
    let (mut fits, mut empty) = (true, false);
    let is_empty = |at: &At| matches!(get(context, *at), Value::Empty);
    macro_rules! extend {
        ($cells:ident, $validity:ident, $value:pat => $cell:expr) => {{
            let before = $cells.len();
            $cells.extend(rows.iter().map(|at| match get(context, *at) {
                $value => $cell,
                other => {
                    empty = true;
                    fits &= matches!(other, Value::Empty);
                    Default::default()
                }
            }));
            $validity.extend(before, empty, rows.iter().map(is_empty));
        }};
    }
    match to {
        Filling::Integer(cells, validity) => extend!(cells, validity, Value::Integer(value) => {
            fits &= value <= i64::MAX as u64;
            value as i64
        }),
        Filling::Unsigned(cells, validity) => extend!(cells, validity, Value::Integer(value) => value),
        Filling::Real(cells, validity) => extend!(cells, validity, Value::Real(value) => value),
        Filling::Text(words) => {
            let before = words.keys.len();
            for at in rows {
                match get(context, *at) {
                    Value::Text(word) => words.push(Some(word)),
                    other => {
                        empty = true;
                        fits &= matches!(other, Value::Empty);
                        words.push(None);
                    }
                }
            }
            words.validity.extend(before, empty, rows.iter().map(is_empty));
        }
        Filling::Flag(cells, validity) => {
            let before = cells.len;
            for at in rows {
                match get(context, *at) {
                    Value::Flag(set) => cells.push(set),
                    other => {
                        empty = true;
                        fits &= matches!(other, Value::Empty);
                        cells.push(false);
                    }
                }
            }
            validity.extend(before, empty, rows.iter().map(is_empty));
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_store_words_and_empty_values() {
        let mut column = Filling::new(ColumnKind::Text, 5);
        let owned = |word: &str| Value::Text(Cow::Owned(word.into()));
        for cell in [Value::Text("a".into()), owned("b"), Value::Empty, owned("a"), Value::Text("b".into())] {
            assert!(column.push(cell));
        }
        assert!(!column.push(Value::Flag(true)), "another kind");
        let Filling::Text(words) = column else { unreachable!() };
        assert_eq!((words.words, words.keys), (vec!["a".to_string(), "b".into()], vec![0, 1, 0, 0, 1]));
        // The third of five is empty: 0b11011.
        assert_eq!(words.validity.bits.map(|bits| (bits.bytes, bits.len)), Some((vec![0b11011], 5)));
    }

    #[test]
    fn whole_numbers_of_64_bits_do_not_fit() {
        let mut column = Filling::new(ColumnKind::Integer, 2);
        assert!(column.push(Value::Integer(i64::MAX as u64)));
        assert!(!column.push(Value::Integer(1 << 63)));
    }

    #[test]
    fn bits_continue_in_next_byte() {
        let mut column = Filling::new(ColumnKind::Flag, 9);
        assert!((0..9).all(|row| column.push(Value::Flag(row == 0 || row == 8))));
        let Filling::Flag(bits, validity) = column else { unreachable!() };
        assert_eq!((bits.bytes, bits.len), (vec![1, 1], 9));
        assert!(validity.bits.is_none(), "none is empty");
    }
}
