//! The kernels of the MLX wire against the naive twin, bit by bit.

use super::reference;
use super::tests::{MAX_COUNT, MAX_SHIFT, Shifted, array, element, specials};
use super::{Cpu, Reducer};
use crate::dtype::{Dtype, Op};
use crate::memory::Region;
use proptest::prelude::*;

/// Every max and min that this machine runs.
fn extremes() -> impl Iterator<Item = (Dtype, Op, Reducer)> {
    Cpu::detect().flat_map(|cpu| {
        Dtype::ALL.iter().flat_map(move |&dtype| {
            [Op::Max, Op::Min]
                .into_iter()
                .map(move |op| (dtype, op, Reducer::mlx_on(cpu, dtype, op).expect("a reducer")))
        })
    })
}

/// Runs one step apart and in place and compares both with the twin.
fn check(reducer: &Reducer, op: Op, own: &[u8], received: &[u8], shifts: [usize; 3]) {
    let expected = reference::mlx_extreme(reducer.dtype, op, own, received);
    let mut other = Shifted::new(received, shifts[0]);
    let mut mine = Shifted::new(own, shifts[1]);
    let mut dst = Shifted::new(&vec![0x3c; own.len()], shifts[2]);
    reducer.reduce(dst.region(), mine.region(), other.region());
    assert_equal(reducer.dtype, op, dst.bytes(), &expected);
    assert_eq!((mine.bytes(), other.bytes()), (own, received), "an operand was written");

    let in_place = mine.region();
    reducer.reduce(in_place, in_place, other.region());
    reducer.finish(in_place, 3);
    assert_equal(reducer.dtype, op, mine.bytes(), &expected);
    assert_eq!(other.bytes(), received, "an operand was written");
}

fn assert_equal(dtype: Dtype, op: Op, found: &[u8], expected: &[u8]) {
    assert!(found == expected, "{} {}: {found:x?} is not {expected:x?}", dtype.name(), op.name());
}

proptest! {
    #[test]
    fn steps_equal_the_twin(
        draws in prop::collection::vec(any::<[(u64, u16); 2]>(), 0..=MAX_COUNT),
        shifts in prop::array::uniform3(0..=MAX_SHIFT),
    ) {
        let (own, received): (Vec<_>, Vec<_>) = draws.iter().map(|&[own, received]| (own, received)).unzip();
        for (dtype, op, reducer) in extremes() {
            check(&reducer, op, &array(dtype, &own), &array(dtype, &received), shifts);
        }
    }
}

/// All pairs, of complex numbers, too: which part is a NaN, or a zero of which sign, makes the difference.
#[test]
fn special_values_meet_each_other() {
    for (dtype, op, reducer) in extremes() {
        let specials = specials(dtype);
        let all = specials.iter().flat_map(|&word| element(dtype, word)).collect::<Vec<_>>();
        for &word in &specials {
            check(&reducer, op, &all, &element(dtype, word).repeat(specials.len()), [0; 3]);
        }
    }
}

#[test]
fn every_16_bit_float_meets_a_handful() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    for (dtype, op, reducer) in extremes() {
        if !matches!(dtype, Dtype::Float16 | Dtype::Bfloat16) {
            continue;
        }
        for word in specials(dtype).into_iter().chain([0x3555, 0xb555, 0x7801, 0x0155]) {
            let handful = element(dtype, word).repeat(1 << 16);
            check(&reducer, op, &all, &handful, [0; 3]);
            check(&reducer, op, &handful, &all, [0; 3]);
        }
    }
}

/// The rule that the twin might share a mistake about, by hand.
#[test]
fn own_stays_unless_it_is_less() {
    fn one<const N: usize>(dtype: Dtype, op: Op, own: [u8; N], received: [u8; N]) -> [u8; N] {
        let (mut own, mut received) = (own, received);
        let dst = Region::from_slice(&mut own);
        Reducer::mlx(dtype, op).unwrap().reduce(dst, dst, Region::from_slice(&mut received));
        own
    }
    /// By its bits: zero, one, quiet NaNs of both signs, one that signals.
    fn check(dtype: Dtype, sign: u64, one_bits: u64, nans: [u64; 3]) {
        let negative = |word: u64| word | sign;
        let result = |op, own: u64, received: u64| {
            let size = dtype.size();
            let bytes =
                |word| <[u8; 8]>::try_from([element(dtype, word), vec![0; 8 - size]].concat()).unwrap();
            let padded = one(dtype, op, bytes(own), bytes(received));
            u64::from_ne_bytes(padded) & (u64::MAX >> (64 - 8 * size))
        };
        for op in [Op::Max, Op::Min] {
            // Neither zero is less than the other.
            assert_eq!(result(op, 0, negative(0)), 0);
            assert_eq!(result(op, negative(0), 0), negative(0));
            for nan in nans {
                assert_eq!(result(op, nan, one_bits), nan, "own is a NaN");
                assert_eq!(result(op, one_bits, nan), one_bits, "a NaN was received");
                assert_eq!(result(op, nan, nans[0]), nan, "both are");
            }
        }
        assert_eq!(result(Op::Max, negative(one_bits), one_bits), one_bits);
        assert_eq!(result(Op::Min, negative(one_bits), one_bits), negative(one_bits));
        assert_eq!(result(Op::Max, negative(one_bits + 1), negative(one_bits)), negative(one_bits));
        assert_eq!(result(Op::Min, 0, negative(1)), negative(1), "the least subnormal is less than zero");
    }
    check(Dtype::Float16, 1 << 15, 0x3c00, [0x7e00, 0xfe00, 0x7c01]);
    check(Dtype::Bfloat16, 1 << 15, 0x3f80, [0x7fc0, 0xffc0, 0x7f81]);
    check(Dtype::Float32, 1 << 31, 0x3f80_0000, [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001]);
    check(Dtype::Float64, 1 << 63, 0x3ff0 << 48, [0x7ff8 << 48, 0xfff8 << 48, (0x7ff0 << 48) + 1]);

    let complexes = |op, own: [f32; 2], received: [f32; 2]| -> [f32; 2] {
        let bytes = |z: [f32; 2]| -> [u8; 8] { z.map(f32::to_ne_bytes).concat().try_into().unwrap() };
        let result = one(Dtype::Complex64, op, bytes(own), bytes(received));
        [0, 4].map(|at| f32::from_ne_bytes(result[at..at + 4].try_into().unwrap()))
    };
    assert_eq!(complexes(Op::Max, [1.0, 9.0], [2.0, 0.0]), [2.0, 0.0]);
    assert_eq!(complexes(Op::Min, [1.0, 9.0], [1.0, 8.0]), [1.0, 8.0]);
    assert_eq!(complexes(Op::Max, [-0.0, 1.0], [0.0, 2.0])[1], 2.0, "zeros are equal: imaginary parts count");
    assert!(complexes(Op::Max, [-0.0, 1.0], [0.0, 1.0])[0].is_sign_negative());
    // Real parts decide before a NaN among the imaginary ones is seen.
    assert_eq!(complexes(Op::Max, [1.0, f32::NAN], [2.0, 5.0]), [2.0, 5.0]);
    assert_eq!(complexes(Op::Max, [1.0, 5.0], [1.0, f32::NAN]), [1.0, 5.0]);
    assert_eq!(complexes(Op::Min, [1.0, 5.0], [f32::NAN, 0.0]), [1.0, 5.0]);
}

#[test]
fn only_what_mlx_has_and_means_have_a_reducer() {
    for &dtype in Dtype::ALL {
        for &op in Op::ALL {
            let carried = matches!(op, Op::Sum | Op::Max | Op::Min | Op::Mean) && dtype.supports(op);
            assert_eq!(Reducer::mlx(dtype, op).is_some(), carried, "{dtype:?} {op:?}");
        }
    }
}

/// Sums and means are those of the native wire.
#[test]
fn sums_are_sums() {
    for cpu in Cpu::detect() {
        for &dtype in Dtype::ALL {
            for op in [Op::Sum, Op::Mean] {
                let (mlx, native) = (Reducer::mlx_on(cpu, dtype, op), Reducer::on(cpu, dtype, op));
                let (Some(mlx), Some(native)) = (mlx, native) else { continue };
                let specials = specials(dtype);
                let own: Vec<u8> = specials.iter().flat_map(|&word| element(dtype, word)).collect();
                let results = [mlx, native].map(|reducer| {
                    let (mut dst, mut received) = (own.clone(), own.clone());
                    received.rotate_left(dtype.size());
                    let in_place = Region::from_slice(&mut dst);
                    reducer.reduce(in_place, in_place, Region::from_slice(&mut received));
                    reducer.finish(in_place, 3);
                    dst
                });
                assert!(reference::same(dtype, &results[0], &results[1]), "{dtype:?} {op:?}");
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_hosts_float_mode_changes_no_result() {
    use crate::kernels::float_mode::{FloatMode, IEEE, read, write};
    /// Denormals-are-zero: those of either sign would be equal.
    const HOSTS: u32 = IEEE | 1 << 6;

    for (dtype, op, reducer) in extremes() {
        let specials = specials(dtype);
        let own: Vec<u8> = specials.iter().flat_map(|&word| element(dtype, word)).collect();
        let mut received = own.clone();
        received.rotate_left(dtype.size());
        let expected = reference::mlx_extreme(dtype, op, &own, &received);
        let (mut dst, mut other) = (own, received);
        let [in_place, other] = [&mut dst, &mut other].map(|bytes| Region::from_slice(bytes));
        let before = read();
        write(HOSTS);
        {
            let _mode = FloatMode::ieee();
            reducer.reduce(in_place, in_place, other);
        }
        write(before);
        assert_equal(dtype, op, &dst, &expected);
    }
}
