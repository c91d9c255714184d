//! The kernels of wide accumulation against the naive twin, and against the sums that round at each step.

use super::reference;
use super::tests::{MAX_COUNT, MAX_SHIFT, Shifted, array, element, specials};
use super::{Cpu, Reducer, WideReducer};
use crate::dtype::{Dtype, Op};
use crate::memory::Region;
use proptest::prelude::*;

const NARROW: [Dtype; 2] = [Dtype::Float16, Dtype::Bfloat16];

/// Every kernel that this machine runs.
fn reducers() -> impl Iterator<Item = (Dtype, Op, WideReducer)> {
    Cpu::detect().flat_map(|cpu| {
        NARROW.into_iter().flat_map(move |dtype| {
            [Op::Sum, Op::Mean]
                .into_iter()
                .map(move |op| (dtype, op, WideReducer::on(cpu, dtype, op).expect("a reducer")))
        })
    })
}

/// Bytes of f32.
fn singles(bits: impl IntoIterator<Item = u32>) -> Vec<u8> {
    bits.into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn assert_same(dtype: Dtype, found: &[u8], expected: &[u8]) {
    assert!(reference::same(dtype, found, expected), "{}: {found:x?} is not {expected:x?}", dtype.name());
}

/// A first step, and a later one in place and apart.
fn check_steps(dtype: Dtype, reducer: &WideReducer, [own, other, sum]: [&[u8]; 3], shifts: [usize; 3]) {
    let [mut own, mut other, mut sum] =
        [(own, shifts[0]), (other, shifts[1]), (sum, shifts[2])].map(|(bytes, by)| Shifted::new(bytes, by));
    let operands = [own.bytes().to_vec(), other.bytes().to_vec(), sum.bytes().to_vec()];
    let mut dst = Shifted::new(&vec![0x3c; operands[2].len()], shifts[0]);

    reducer.start(dst.region(), own.region(), other.region());
    let both = reference::wide_sum(
        &reference::widened(dtype, &operands[0]),
        &reference::widened(dtype, &operands[1]),
    );
    assert_same(Dtype::Float32, dst.bytes(), &both);

    reducer.step(dst.region(), own.region(), sum.region());
    let expected = reference::wide_sum(&reference::widened(dtype, &operands[0]), &operands[2]);
    assert_same(Dtype::Float32, dst.bytes(), &expected);
    assert_eq!([own.bytes(), other.bytes(), sum.bytes()], [&*operands[0], &operands[1], &operands[2]]);

    let in_place = sum.region();
    reducer.step(in_place, own.region(), in_place);
    assert_same(Dtype::Float32, sum.bytes(), &expected);
    assert_eq!(own.bytes(), operands[0], "an operand was written");
}

/// The end of a chain, apart and where the sum begins.
fn check_finish(dtype: Dtype, op: Op, reducer: &WideReducer, sum: &[u8], ranks: usize, shifts: [usize; 2]) {
    let expected = reference::narrowed(dtype, sum, if op == Op::Mean { ranks } else { 1 });
    let mut sums = Shifted::new(sum, shifts[0]);
    let mut dst = Shifted::new(&vec![0x3c; sum.len() / 2], shifts[1]);
    reducer.finish(dst.region(), sums.region(), ranks);
    assert_same(dtype, dst.bytes(), &expected);
    assert_eq!(sums.bytes(), sum, "the sum was written");

    let region = sums.region();
    reducer.finish(region.part(0, sum.len() / 2), region, ranks);
    assert_same(dtype, &sums.bytes()[..sum.len() / 2], &expected);
}

proptest! {
    #[test]
    fn steps_equal_the_twin(
        draws in prop::collection::vec(any::<[(u64, u16); 3]>(), 0..=MAX_COUNT),
        shifts in prop::array::uniform3(0..=MAX_SHIFT),
    ) {
        for (dtype, _, reducer) in reducers() {
            let column = |dtype, i: usize| array(dtype, &draws.iter().map(|draw| draw[i]).collect::<Vec<_>>());
            let [own, other, sum] = [column(dtype, 0), column(dtype, 1), column(Dtype::Float32, 2)];
            check_steps(dtype, &reducer, [&own, &other, &sum], shifts);
        }
    }

    #[test]
    fn ends_of_chains_equal_the_twin(
        draws in prop::collection::vec(any::<(u64, u16)>(), 0..=MAX_COUNT),
        shifts in prop::array::uniform2(0..=MAX_SHIFT),
        ranks in 1usize..=100,
    ) {
        for (dtype, op, reducer) in reducers() {
            check_finish(dtype, op, &reducer, &array(Dtype::Float32, &draws), ranks, shifts);
        }
    }
}

#[test]
fn every_16_bit_float_meets_a_handful() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    for (dtype, op, reducer) in reducers() {
        if op == Op::Mean {
            continue;
        }
        for word in specials(dtype).into_iter().chain([0x3555, 0xb555, 0x7801, 0x0155]) {
            let handful = element(dtype, word).repeat(1 << 16);
            check_steps(dtype, &reducer, [&all, &handful, &reference::widened(dtype, &handful)], [0; 3]);
        }
        for word in specials(Dtype::Float32) {
            let handful = element(Dtype::Float32, word).repeat(1 << 16);
            check_steps(dtype, &reducer, [&all, &all, &handful], [0; 3]);
        }
    }
}

/// All signs, exponents and mantissas that a result has, with what is dropped at, just below and just above
/// each point where rounding turns.
#[test]
fn every_16_bit_float_is_rounded_to() {
    for (dtype, op, reducer) in reducers() {
        let dropped = if dtype == Dtype::Float16 { 13 } else { 16 };
        let half = 1u32 << (dropped - 1);
        // A subnormal float16 drops more: its ties have low bits that are zero.
        let lows = [0, 1, half - 1, half, half + 1, 2 * half - 1];
        let all = (0..1u32 << (32 - dropped)).flat_map(|high| lows.map(|low| high << dropped | low));
        let sums = singles(all);
        for ranks in if op == Op::Mean { vec![1, 2, 3, 7, 8] } else { vec![3] } {
            check_finish(dtype, op, &reducer, &sums, ranks, [0; 2]);
        }
    }
}

/// Of two ranks, each sum is rounded once either way.
#[test]
fn two_ranks_have_the_sum_of_a_step() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    for (dtype, op, reducer) in reducers() {
        if op == Op::Mean {
            continue;
        }
        // Numbers that are far from own, near, and special, in turns.
        for shift in [1u16, 0x0333, 0x1555, 0x8001, 0x9abc] {
            let mut other: Vec<u8> = (0..=u16::MAX)
                .flat_map(|bits| bits.wrapping_mul(5).wrapping_add(shift).to_ne_bytes())
                .collect();
            let (mut own, mut sum, mut found) = (all.clone(), vec![0; 2 * all.len()], vec![0; all.len()]);
            let [own, other, sum] = [&mut own, &mut other, &mut sum].map(|bytes| Region::from_slice(bytes));
            reducer.start(sum, own, other);
            reducer.finish(Region::from_slice(&mut found), sum, 2);
            Reducer::new(dtype, Op::Sum).unwrap().reduce(own, own, other);
            let mut expected = vec![0; all.len()];
            Region::from_slice(&mut expected).copy_from(own);
            assert_same(dtype, &found, &expected);
        }
    }
}

/// The rules that the twin might share a mistake about, by hand.
#[test]
fn a_chain_is_rounded_once() {
    let chain = |dtype, op, values: &[f32]| {
        let reducer = WideReducer::new(dtype, op).unwrap();
        let mut narrow: Vec<Vec<u8>> =
            values.iter().map(|value| reference::narrowed(dtype, &singles([value.to_bits()]), 1)).collect();
        let (mut sum, mut result) = ([0; 4], [0; 2]);
        let sum = Region::from_slice(&mut sum);
        let (first, rest) = narrow.split_at_mut(2);
        let [first, second] = first else { unreachable!() };
        reducer.start(sum, Region::from_slice(second), Region::from_slice(first));
        for own in rest {
            reducer.step(sum, Region::from_slice(own), sum);
        }
        reducer.finish(Region::from_slice(&mut result), sum, values.len());
        f32::from_ne_bytes(reference::widened(dtype, &result).try_into().unwrap())
    };
    // A step to 257 would round back to 256 each time.
    assert_eq!(chain(Dtype::Bfloat16, Op::Sum, &[256.0, 1.0, 1.0, 1.0, 1.0]), 260.0);
    // A tie goes to the even 2048; the second half makes it more than a tie.
    assert_eq!(chain(Dtype::Float16, Op::Sum, &[2048.0, 1.0]), 2048.0);
    assert_eq!(chain(Dtype::Float16, Op::Sum, &[2048.0, 0.5, 0.5, 0.5]), 2050.0);
    // The sum is past float16's numbers, and its mean is none the worse.
    assert_eq!(chain(Dtype::Float16, Op::Mean, &[60000.0, 60000.0, 60000.0, 0.0]), 44992.0);
    assert_eq!(chain(Dtype::Float16, Op::Sum, &[60000.0, 60000.0, 60000.0]), f32::INFINITY);
    assert_eq!(chain(Dtype::Float16, Op::Sum, &[60000.0, 60000.0, -60000.0]), 60000.0);
    assert!(chain(Dtype::Bfloat16, Op::Mean, &[f32::INFINITY, f32::NEG_INFINITY, 1.0]).is_nan());
    assert!(chain(Dtype::Float16, Op::Sum, &[-0.0, -0.0, -0.0]).is_sign_negative());
}

#[test]
fn only_sums_and_means_of_16_bit_floats_are_wide() {
    for &dtype in Dtype::ALL {
        for &op in Op::ALL {
            let is_wide = NARROW.contains(&dtype) && matches!(op, Op::Sum | Op::Mean);
            assert_eq!(WideReducer::new(dtype, op).is_some(), is_wide, "{dtype:?} {op:?}");
        }
    }
}

#[test]
#[should_panic(expected = "different lengths")]
fn lengths_that_differ_panic() {
    let (mut narrow, mut wide) = ([0; 8], [0; 8]);
    let sum = Region::from_slice(&mut wide);
    WideReducer::new(Dtype::Float16, Op::Sum).unwrap().step(sum, Region::from_slice(&mut narrow), sum);
}

#[test]
#[should_panic(expected = "within an element")]
fn half_an_element_panics() {
    let (mut narrow, mut wide) = ([0; 3], [0; 6]);
    let sum = Region::from_slice(&mut wide);
    WideReducer::new(Dtype::Float16, Op::Sum).unwrap().finish(Region::from_slice(&mut narrow), sum, 2);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_hosts_float_mode_changes_no_result() {
    use crate::kernels::float_mode::{FloatMode, IEEE, read, write};
    /// Flush-to-zero, denormals-are-zero, rounding towards zero, over the default.
    const HOSTS: u32 = IEEE | 1 << 15 | 1 << 6 | 0b11 << 13;

    for (dtype, op, reducer) in reducers() {
        let words = specials(dtype);
        let own: Vec<u8> = words.iter().flat_map(|&word| element(dtype, word)).collect();
        let sum: Vec<u8> = (0..words.len())
            .map(|i| specials(Dtype::Float32)[i * 5 % words.len()] ^ 0x0015_5555)
            .flat_map(|word| element(Dtype::Float32, word))
            .collect();
        let total = reference::wide_sum(&reference::widened(dtype, &own), &sum);
        let ended = reference::narrowed(dtype, &total, if op == Op::Mean { 3 } else { 1 });
        let (mut mine, mut sums, mut found) = (own.clone(), sum, vec![0; own.len()]);
        let [mine, sums, end] = [&mut mine, &mut sums, &mut found].map(|bytes| Region::from_slice(bytes));
        let before = read();
        write(HOSTS);
        {
            let _mode = FloatMode::ieee();
            reducer.step(sums, mine, sums);
            reducer.finish(end, sums, 3);
        }
        write(before);
        assert_same(dtype, &found, &ended);
    }
}
