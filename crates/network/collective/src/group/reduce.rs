//! Reductions of received elements, element by element.

use half::{bf16, f16, slice::HalfFloatSliceExt};

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Uint8,
    Int8,
    Int32,
    Int64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Bool,
    Int16,
    /// Bytes that are moved and never reduced.
    Opaque,
}

/// Names of the types as in `torch`, in the order of their numbers.
pub const DTYPES: &[(&str, Dtype)] = &[
    ("uint8", Dtype::Uint8),
    ("int8", Dtype::Int8),
    ("int32", Dtype::Int32),
    ("int64", Dtype::Int64),
    ("float16", Dtype::Float16),
    ("float32", Dtype::Float32),
    ("float64", Dtype::Float64),
    ("bfloat16", Dtype::Bfloat16),
    ("bool", Dtype::Bool),
    ("int16", Dtype::Int16),
    ("opaque", Dtype::Opaque),
];

impl Dtype {
    /// Returns the bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Dtype::Uint8 | Dtype::Int8 | Dtype::Bool | Dtype::Opaque => 1,
            Dtype::Float16 | Dtype::Bfloat16 | Dtype::Int16 => 2,
            Dtype::Int32 | Dtype::Float32 => 4,
            Dtype::Int64 | Dtype::Float64 => 8,
        }
    }

    pub fn name(self) -> &'static str {
        DTYPES[self as usize].0
    }
}

/// How elements of ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Sum,
    /// The sum, divided by the number of ranks at the end; integers towards zero.
    Avg,
    Product,
    /// A NaN wins, as it does in `torch`.
    Min,
    Max,
}

pub const REDUCTIONS: &[(&str, Reduction)] = &[
    ("sum", Reduction::Sum),
    ("avg", Reduction::Avg),
    ("product", Reduction::Product),
    ("min", Reduction::Min),
    ("max", Reduction::Max),
];

impl Reduction {
    pub fn name(self) -> &'static str {
        REDUCTIONS[self as usize].0
    }
}

fn each<const N: usize>(into: &mut [u8], from: &[u8], op: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    for (into, from) in into.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<N>().0) {
        *into = op(*into, *from);
    }
}

macro_rules! integers {
    ($kind:ty, $reduction:expr, $into:expr, $from:expr) => {{
        let of = <$kind>::from_ne_bytes;
        match $reduction {
            Reduction::Sum | Reduction::Avg => each($into, $from, |a, b| of(a).wrapping_add(of(b)).to_ne_bytes()),
            Reduction::Product => each($into, $from, |a, b| of(a).wrapping_mul(of(b)).to_ne_bytes()),
            Reduction::Min => each($into, $from, |a, b| of(a).min(of(b)).to_ne_bytes()),
            Reduction::Max => each($into, $from, |a, b| of(a).max(of(b)).to_ne_bytes()),
        }
    }};
}

macro_rules! floats {
    ($kind:ty, $reduction:expr, $into:expr, $from:expr) => {{
        let of = <$kind>::from_ne_bytes;
        // The first operand is kept where both are equal: zeros of both signs are, so the order of operands matters.
        match $reduction {
            Reduction::Sum | Reduction::Avg => each($into, $from, |a, b| (of(a) + of(b)).to_ne_bytes()),
            Reduction::Product => each($into, $from, |a, b| (of(a) * of(b)).to_ne_bytes()),
            Reduction::Min => each($into, $from, |a, b| if of(b) < of(a) || of(b).is_nan() { b } else { a }),
            Reduction::Max => each($into, $from, |a, b| if of(b) > of(a) || of(b).is_nan() { b } else { a }),
        }
    }};
}

/// Elements of 16 bits that are converted at once.
const BLOCK: usize = 512;

macro_rules! halves {
    ($kind:ty, $reduction:expr, $into:expr, $from:expr) => {{
        for (into, from) in $into.chunks_mut(2 * BLOCK).zip($from.chunks(2 * BLOCK)) {
            let count = into.len() / 2;
            let (mut halves, mut a, mut b) = ([<$kind>::ZERO; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
            for (bytes, floats) in [(&*into, &mut a), (from, &mut b)] {
                for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *half = <$kind>::from_ne_bytes(*bytes);
                }
                halves[..count].convert_to_f32_slice(&mut floats[..count]);
            }
            for (a, b) in a.iter_mut().zip(&b) {
                *a = match $reduction {
                    Reduction::Sum | Reduction::Avg => *a + *b,
                    Reduction::Product => *a * *b,
                    Reduction::Min => {
                        if *b < *a || b.is_nan() {
                            *b
                        } else {
                            *a
                        }
                    }
                    Reduction::Max => {
                        if *b > *a || b.is_nan() {
                            *b
                        } else {
                            *a
                        }
                    }
                };
            }
            halves[..count].convert_from_f32_slice(&a[..count]);
            for (half, bytes) in halves.iter().zip(into.as_chunks_mut::<2>().0) {
                *bytes = half.to_ne_bytes();
            }
        }
    }};
}

/// Replaces each element of `into` by its reduction with that of `from`. Whole elements; both are as long.
pub(super) fn reduce(dtype: Dtype, reduction: Reduction, into: &mut [u8], from: &[u8]) {
    match dtype {
        Dtype::Uint8 => integers!(u8, reduction, into, from),
        Dtype::Int8 => integers!(i8, reduction, into, from),
        Dtype::Int16 => integers!(i16, reduction, into, from),
        Dtype::Int32 => integers!(i32, reduction, into, from),
        Dtype::Int64 => integers!(i64, reduction, into, from),
        Dtype::Float32 => floats!(f32, reduction, into, from),
        Dtype::Float64 => floats!(f64, reduction, into, from),
        Dtype::Float16 => halves!(f16, reduction, into, from),
        Dtype::Bfloat16 => halves!(bf16, reduction, into, from),
        // A sum of truth values is true where one is, a product where all are.
        Dtype::Bool | Dtype::Opaque => match reduction {
            Reduction::Sum | Reduction::Avg | Reduction::Max => each(into, from, |[a], [b]| [a | b]),
            Reduction::Product | Reduction::Min => each(into, from, |[a], [b]| [a & b]),
        },
    }
}

/// Divides each element by a number of ranks.
pub(super) fn divide(dtype: Dtype, into: &mut [u8], ranks: usize) {
    macro_rules! all {
        ($kind:ty, $by:expr) => {
            into.as_chunks_mut().0.iter_mut().for_each(|at| *at = (<$kind>::from_ne_bytes(*at) / $by).to_ne_bytes())
        };
    }
    match dtype {
        // Wider than the type: 200 ranks are no divisor of an i8.
        Dtype::Uint8 => into.iter_mut().for_each(|at| *at = (*at as usize / ranks) as u8),
        Dtype::Int8 => into.iter_mut().for_each(|at| *at = (i64::from(*at as i8) / ranks as i64) as u8),
        Dtype::Int16 => all!(i16, ranks as i16),
        Dtype::Int32 => all!(i32, ranks as i32),
        Dtype::Int64 => all!(i64, ranks as i64),
        Dtype::Float32 => all!(f32, ranks as f32),
        Dtype::Float64 => all!(f64, ranks as f64),
        Dtype::Float16 => all!(f16, f16::from_f32(ranks as f32)),
        Dtype::Bfloat16 => all!(bf16, bf16::from_f32(ranks as f32)),
        Dtype::Bool | Dtype::Opaque => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<const N: usize>(dtype: Dtype, reduction: Reduction, a: [u8; N], b: [u8; N]) -> [u8; N] {
        let mut into = a;
        reduce(dtype, reduction, &mut into, &b);
        into
    }

    #[test]
    fn elements_are_reduced_in_their_own_type() {
        let floats = |reduction, a: f32, b: f32| {
            f32::from_ne_bytes(of(Dtype::Float32, reduction, a.to_ne_bytes(), b.to_ne_bytes()))
        };
        assert_eq!(floats(Reduction::Sum, 1.5, 2.0), 3.5);
        assert_eq!(floats(Reduction::Product, 1.5, 2.0), 3.0);
        assert!(floats(Reduction::Max, 1.0, f32::NAN).is_nan() && floats(Reduction::Min, f32::NAN, 1.0).is_nan());
        assert_eq!(of(Dtype::Int8, Reduction::Min, [0xff], [1]), [0xff], "-1 is less than 1");
        assert_eq!(of(Dtype::Uint8, Reduction::Min, [0xff], [1]), [1]);
        assert_eq!(of(Dtype::Uint8, Reduction::Sum, [200], [100]), [44], "it wraps: 300 - 256");
        assert_eq!(of(Dtype::Bool, Reduction::Sum, [1], [1]), [1]);
        // 2048 + 1 has no f16: between 2048 and 2050 the even one holds.
        let half = |x: f32| f16::from_f32(x).to_ne_bytes();
        assert_eq!(of(Dtype::Float16, Reduction::Sum, half(2048.0), half(1.0)), half(2048.0));
        assert_eq!(of(Dtype::Float16, Reduction::Sum, half(2048.0), half(3.0)), half(2052.0));
    }

    #[test]
    fn averages_are_sums_divided() {
        let mut bytes = 7i32.to_ne_bytes();
        divide(Dtype::Int32, &mut bytes, 2);
        assert_eq!(i32::from_ne_bytes(bytes), 3);
        let mut bytes = [-100i8 as u8];
        divide(Dtype::Int8, &mut bytes, 200);
        assert_eq!(bytes, [0]);
    }
}
