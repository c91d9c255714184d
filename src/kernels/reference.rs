//! The naive twin that tests hold the kernels against: one element at a time, written apart from
//! them, 16-bit conversions by the `half` crate.

use crate::dtype::{Dtype, Op};
use half::{bf16, f16};
use std::cmp::Ordering;

/// `own op received` for spans of whole elements.
pub(super) fn reduce(dtype: Dtype, op: Op, own: &[u8], received: &[u8]) -> Vec<u8> {
    let size = dtype.size();
    own.chunks(size).zip(received.chunks(size)).flat_map(|(a, b)| element(dtype, op, a, b)).collect()
}

/// A sum divided by the number of ranks.
pub(super) fn divide(dtype: Dtype, sum: &[u8], ranks: usize) -> Vec<u8> {
    let by_f32 = |part: &[u8]| (f32(part) / ranks as f32).to_ne_bytes().to_vec();
    sum.chunks(dtype.size())
        .flat_map(|e| match dtype {
            Dtype::Float16 => f16::from_f32(half(e).to_f32() / ranks as f32).to_ne_bytes().to_vec(),
            Dtype::Bfloat16 => bf16::from_f32(brain(e).to_f32() / ranks as f32).to_ne_bytes().to_vec(),
            Dtype::Float32 => by_f32(e),
            Dtype::Float64 => (f64(e) / ranks as f64).to_ne_bytes().to_vec(),
            Dtype::Complex64 => [by_f32(&e[..4]), by_f32(&e[4..])].concat(),
            _ => unreachable!("no mean"),
        })
        .collect()
}

/// 16-bit values as f32.
pub(super) fn widened(dtype: Dtype, values: &[u8]) -> Vec<u8> {
    values.chunks(dtype.size()).flat_map(|e| (number(dtype, e) as f32).to_ne_bytes()).collect()
}

/// The sum of two spans of f32.
pub(super) fn wide_sum(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.chunks(4).zip(right.chunks(4)).flat_map(|(a, b)| (f32(a) + f32(b)).to_ne_bytes()).collect()
}

/// Sums in f32, divided and rounded to 16 bits.
pub(super) fn narrowed(dtype: Dtype, sums: &[u8], ranks: usize) -> Vec<u8> {
    sums.chunks(4)
        .map(|sum| f32(sum) / ranks as f32)
        .flat_map(|value| match dtype {
            Dtype::Float16 => f16::from_f32(value).to_ne_bytes(),
            _ => bf16::from_f32(value).to_ne_bytes(),
        })
        .collect()
}

/// Whether two spans hold the same results: bits, but any NaN for a NaN.
pub(super) fn same(dtype: Dtype, left: &[u8], right: &[u8]) -> bool {
    let part = if dtype == Dtype::Complex64 { Dtype::Float32 } else { dtype };
    left.len() == right.len()
        && left.chunks(part.size()).zip(right.chunks(part.size())).all(|(a, b)| {
            a == b || part.is_floating() && number(part, a).is_nan() && number(part, b).is_nan()
        })
}

fn element(dtype: Dtype, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    match dtype {
        Dtype::Bool => {
            let (a, b) = (a[0] != 0, b[0] != 0);
            let result = match op {
                Op::Sum | Op::Max | Op::Bor => a || b,
                Op::Prod | Op::Min | Op::Band => a && b,
                Op::Bxor => a != b,
                Op::Mean => unreachable!("no mean"),
            };
            vec![if result { 1 } else { 0 }]
        }
        Dtype::Complex64 => complex(op, a, b),
        _ if dtype.is_floating() => float(dtype, op, a, b),
        _ => integer(dtype, op, a, b),
    }
}

/// In 128 bits, of which the result keeps the lowest: that is what wrapping means.
fn integer(dtype: Dtype, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    let wide = |e: &[u8]| -> i128 {
        match dtype {
            Dtype::Uint8 => e[0].into(),
            Dtype::Uint16 => u16::from_ne_bytes(e.try_into().unwrap()).into(),
            Dtype::Uint32 => u32::from_ne_bytes(e.try_into().unwrap()).into(),
            Dtype::Uint64 => u64::from_ne_bytes(e.try_into().unwrap()).into(),
            Dtype::Int8 => i8::from_ne_bytes(e.try_into().unwrap()).into(),
            Dtype::Int16 => i16::from_ne_bytes(e.try_into().unwrap()).into(),
            Dtype::Int32 => i32::from_ne_bytes(e.try_into().unwrap()).into(),
            Dtype::Int64 => i64::from_ne_bytes(e.try_into().unwrap()).into(),
            _ => unreachable!("no integer"),
        }
    };
    let (x, y) = (wide(a), wide(b));
    let result = match op {
        Op::Sum => x + y,
        Op::Prod => x.wrapping_mul(y),
        Op::Max => std::cmp::max(x, y),
        Op::Min => std::cmp::min(x, y),
        Op::Band => x & y,
        Op::Bor => x | y,
        Op::Bxor => x ^ y,
        Op::Mean => unreachable!("no mean"),
    };
    match dtype.size() {
        1 => (result as u8).to_ne_bytes().to_vec(),
        2 => (result as u16).to_ne_bytes().to_vec(),
        4 => (result as u32).to_ne_bytes().to_vec(),
        _ => (result as u64).to_ne_bytes().to_vec(),
    }
}

fn float(dtype: Dtype, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    if matches!(op, Op::Max | Op::Min) {
        return extreme(dtype, op, a, b).to_vec();
    }
    let sum = op != Op::Prod;
    let in_f32 = |x: f32, y: f32| if sum { x + y } else { x * y };
    match dtype {
        Dtype::Float16 => f16::from_f32(in_f32(half(a).to_f32(), half(b).to_f32())).to_ne_bytes().to_vec(),
        Dtype::Bfloat16 => {
            bf16::from_f32(in_f32(brain(a).to_f32(), brain(b).to_f32())).to_ne_bytes().to_vec()
        }
        Dtype::Float32 => in_f32(f32(a), f32(b)).to_ne_bytes().to_vec(),
        _ => {
            let (x, y) = (f64(a), f64(b));
            (if sum { x + y } else { x * y }).to_ne_bytes().to_vec()
        }
    }
}

/// IEEE 754-2019 maximum and minimum, as a choice between the two.
fn extreme<'a>(dtype: Dtype, op: Op, a: &'a [u8], b: &'a [u8]) -> &'a [u8] {
    let (x, y) = (number(dtype, a), number(dtype, b));
    let below = match x.partial_cmp(&y) {
        None => return if x.is_nan() { a } else { b },
        Some(Ordering::Equal) => x.is_sign_negative() && y.is_sign_positive(),
        Some(order) => order == Ordering::Less,
    };
    match (op, below) {
        (Op::Max, true) | (Op::Min, false) => b,
        _ => a,
    }
}

/// MLX's max and min: own stays unless it is less, or the other one is.
pub(super) fn mlx_extreme(dtype: Dtype, op: Op, own: &[u8], received: &[u8]) -> Vec<u8> {
    let size = dtype.size();
    let choose = |(a, b)| {
        let order = match dtype {
            Dtype::Complex64 => {
                let parts = |e: &[u8]| [f32(&e[..4]), f32(&e[4..])];
                parts(a).partial_cmp(&parts(b))
            }
            _ if dtype.is_floating() => number(dtype, a).partial_cmp(&number(dtype, b)),
            _ => return element(dtype, op, a, b),
        };
        let lost = if op == Op::Max { Ordering::Less } else { Ordering::Greater };
        if order == Some(lost) { b.to_vec() } else { a.to_vec() }
    };
    own.chunks(size).zip(received.chunks(size)).flat_map(choose).collect()
}

fn complex(op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    let ((ar, ai), (br, bi)) = ((f32(&a[..4]), f32(&a[4..])), (f32(&b[..4]), f32(&b[4..])));
    let pair = |re: f32, im: f32| [re.to_ne_bytes(), im.to_ne_bytes()].concat();
    match op {
        Op::Sum | Op::Mean => pair(ar + br, ai + bi),
        Op::Prod => {
            let (rr, ii, ri, ir) = (ar * br, ai * bi, ar * bi, ai * br);
            pair(rr - ii, ri + ir)
        }
        _ if ar.is_nan() || ai.is_nan() => a.to_vec(),
        _ if br.is_nan() || bi.is_nan() => b.to_vec(),
        Op::Max if ar < br || ar == br && ai < bi => b.to_vec(),
        Op::Min if br < ar || br == ar && bi < ai => b.to_vec(),
        _ => a.to_vec(),
    }
}

/// Any float without a part, exactly.
fn number(dtype: Dtype, e: &[u8]) -> f64 {
    match dtype {
        Dtype::Float16 => half(e).to_f64(),
        Dtype::Bfloat16 => brain(e).to_f64(),
        Dtype::Float32 => f32(e).into(),
        _ => f64(e),
    }
}

fn half(e: &[u8]) -> f16 {
    f16::from_ne_bytes(e.try_into().unwrap())
}

fn brain(e: &[u8]) -> bf16 {
    bf16::from_ne_bytes(e.try_into().unwrap())
}

fn f32(e: &[u8]) -> f32 {
    f32::from_ne_bytes(e.try_into().unwrap())
}

fn f64(e: &[u8]) -> f64 {
    f64::from_ne_bytes(e.try_into().unwrap())
}
