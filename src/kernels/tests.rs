//! Every kernel of every instruction set here against the naive twin.

use super::reference;
use super::{Cpu, Reducer};
use crate::dtype::{Dtype, Op};
use crate::memory::Region;
use proptest::prelude::*;

/// Long enough for several blocks and an odd end, of bytes too.
pub(super) const MAX_COUNT: usize = 200;
pub(super) const MAX_SHIFT: usize = 7;
/// What lies around a buffer and must not change.
const GUARD: u8 = 0xa5;

/// Every kernel that this machine runs.
fn reducers() -> impl Iterator<Item = (Dtype, Op, Reducer)> {
    Cpu::detect().flat_map(|cpu| {
        Dtype::ALL.iter().flat_map(move |&dtype| {
            Op::ALL.iter().filter_map(move |&op| Some((dtype, op, Reducer::on(cpu, dtype, op)?)))
        })
    })
}

/// Bytes that start `shift` bytes off an address that 8 divides.
pub(super) struct Shifted {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Shifted {
    pub(super) fn new(bytes: &[u8], shift: usize) -> Shifted {
        let mut memory = vec![GUARD; bytes.len() + 32];
        let start = 8 + memory.as_ptr().align_offset(8) + shift;
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        Shifted { memory, start, len: bytes.len() }
    }

    pub(super) fn region(&mut self) -> Region<'_> {
        Region::from_slice(&mut self.memory[self.start..self.start + self.len])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        let (before, rest) = self.memory.split_at(self.start);
        let (bytes, after) = rest.split_at(self.len);
        assert!(before.iter().chain(after).all(|&byte| byte == GUARD), "wrote outside its buffer");
        bytes
    }
}

/// Runs one step apart and in place and compares both with the twin.
fn check(reducer: &Reducer, op: Op, own: &[u8], received: &[u8], shifts: [usize; 3]) {
    let dtype = reducer.dtype;
    let expected = reference::reduce(dtype, op, own, received);
    let mut other = Shifted::new(received, shifts[0]);
    let mut mine = Shifted::new(own, shifts[1]);
    let mut dst = Shifted::new(&vec![0x3c; own.len()], shifts[2]);
    reducer.reduce(dst.region(), mine.region(), other.region());
    assert_same(dtype, op, dst.bytes(), &expected);
    assert_eq!((mine.bytes(), other.bytes()), (own, received), "an operand was written");

    let in_place = mine.region();
    reducer.reduce(in_place, in_place, other.region());
    assert_same(dtype, op, mine.bytes(), &expected);
    assert_eq!(other.bytes(), received, "an operand was written");
}

fn assert_same(dtype: Dtype, op: Op, found: &[u8], expected: &[u8]) {
    assert!(
        reference::same(dtype, found, expected),
        "{} {}: {found:x?} is not {expected:x?}",
        dtype.name(),
        op.name()
    );
}

/// The values at which a kernel could go wrong, each as the low bytes of a word.
pub(super) fn specials(dtype: Dtype) -> Vec<u64> {
    // Zero, one, the least subnormal, the greatest subnormal, the least normal, the greatest number,
    // infinity, and NaNs: quiet, signalling, and with every bit set.
    let float = |one: u64, infinity: u64, mantissa: u32, sign: u64| -> Vec<u64> {
        let least_normal = 1u64 << mantissa;
        let quiet = infinity | (1 << (mantissa - 1));
        let magnitudes = [
            0,
            1,
            least_normal - 1,
            least_normal,
            one,
            one + 1,
            infinity - 1,
            infinity,
            quiet,
            infinity | 1,
            sign - 1,
        ];
        magnitudes.iter().flat_map(|&m| [m, m | sign]).collect()
    };
    let single = || float(0x3f80_0000, 0x7f80_0000, 23, 1 << 31);
    match dtype {
        Dtype::Bool => vec![0, 1, 2, 0x80, 0xff],
        Dtype::Float16 => float(0x3c00, 0x7c00, 10, 1 << 15),
        Dtype::Bfloat16 => float(0x3f80, 0x7f80, 7, 1 << 15),
        Dtype::Float32 => single(),
        Dtype::Float64 => float(0x3ff0 << 48, 0x7ff0 << 48, 52, 1 << 63),
        Dtype::Complex64 => {
            single().into_iter().flat_map(|re| single().into_iter().map(move |im| re << 32 | im)).collect()
        }
        _ => {
            let top = 1u64 << (dtype.size() * 8 - 1);
            vec![0, 1, 2, 3, top - 1, top, top + 1, u64::MAX, u64::MAX - 1]
        }
    }
}

/// The lowest `dtype.size()` bytes of a word.
pub(super) fn element(dtype: Dtype, word: u64) -> Vec<u8> {
    match dtype.size() {
        1 => vec![word as u8],
        2 => (word as u16).to_ne_bytes().to_vec(),
        4 => (word as u32).to_ne_bytes().to_vec(),
        _ => word.to_ne_bytes().to_vec(),
    }
}

/// An array of random bits with a special value at about every second place.
pub(super) fn array(dtype: Dtype, draws: &[(u64, u16)]) -> Vec<u8> {
    let specials = specials(dtype);
    let pick = |&(word, choice): &(u64, u16)| {
        if choice % 2 == 0 { word } else { specials[usize::from(choice) / 2 % specials.len()] }
    };
    draws.iter().flat_map(|draw| element(dtype, pick(draw))).collect()
}

proptest! {
    #[test]
    fn steps_equal_the_twin(
        draws in prop::collection::vec(any::<[(u64, u16); 2]>(), 0..=MAX_COUNT),
        shifts in prop::array::uniform3(0..=MAX_SHIFT),
    ) {
        let (own, received): (Vec<_>, Vec<_>) = draws.iter().map(|&[own, received]| (own, received)).unzip();
        for (dtype, op, reducer) in reducers() {
            check(&reducer, op, &array(dtype, &own), &array(dtype, &received), shifts);
        }
    }

    #[test]
    fn ends_of_chains_equal_the_twin(
        draws in prop::collection::vec(any::<(u64, u16)>(), 0..=MAX_COUNT),
        shift in 0..=MAX_SHIFT,
        ranks in 1usize..=100,
    ) {
        for (dtype, op, reducer) in reducers() {
            let sum = array(dtype, &draws);
            let expected = if op == Op::Mean { reference::divide(dtype, &sum, ranks) } else { sum.clone() };
            let mut dst = Shifted::new(&sum, shift);
            reducer.finish(dst.region(), ranks);
            assert_same(dtype, op, dst.bytes(), &expected);
        }
    }

    #[test]
    fn a_group_of_one_has_its_own_values(
        draws in prop::collection::vec(any::<(u64, u16)>(), 0..=MAX_COUNT),
        shifts in prop::array::uniform2(0..=MAX_SHIFT),
    ) {
        for (dtype, _, reducer) in reducers() {
            let own = array(dtype, &draws);
            let expected: Vec<u8> = match dtype {
                Dtype::Bool => own.iter().map(|&byte| if byte == 0 { 0 } else { 1 }).collect(),
                _ => own.clone(),
            };
            let mut mine = Shifted::new(&own, shifts[0]);
            let mut dst = Shifted::new(&vec![0x3c; own.len()], shifts[1]);
            reducer.copy(dst.region(), mine.region());
            assert_eq!((dst.bytes(), mine.bytes()), (&*expected, &*own));
            let in_place = mine.region();
            reducer.copy(in_place, in_place);
            assert_eq!(mine.bytes(), expected);
        }
    }
}

#[test]
fn special_values_meet_each_other() {
    for (dtype, op, reducer) in reducers() {
        let specials = specials(dtype);
        // Complex has too many for all pairs; a stride that is no divisor mixes them.
        let stride = if dtype == Dtype::Complex64 { 7 } else { 1 };
        let pairs = specials.iter().flat_map(|&a| specials.iter().step_by(stride).map(move |&b| [a, b]));
        let (own, received): (Vec<_>, Vec<_>) =
            pairs.map(|[a, b]| (element(dtype, a), element(dtype, b))).unzip();
        check(&reducer, op, &own.concat(), &received.concat(), [0; 3]);
    }
}

#[test]
fn every_16_bit_float_meets_a_handful() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    for (dtype, op, reducer) in reducers() {
        if !matches!(dtype, Dtype::Float16 | Dtype::Bfloat16) {
            continue;
        }
        // Beside the specials, an odd number of large and of small size, which make ties and carries.
        for word in specials(dtype).into_iter().chain([0x3555, 0xb555, 0x7801, 0x0155]) {
            let handful = element(dtype, word).repeat(1 << 16);
            check(&reducer, op, &all, &handful, [0; 3]);
            check(&reducer, op, &handful, &all, [0; 3]);
        }
        for ranks in [1, 2, 3, 7, 8] {
            if op == Op::Mean {
                let mut dst = all.clone();
                reducer.finish(Region::from_slice(&mut dst), ranks);
                assert_same(dtype, op, &dst, &reference::divide(dtype, &all, ranks));
            }
        }
    }
}

#[test]
fn pairs_without_a_meaning_have_no_reducer() {
    for &dtype in Dtype::ALL {
        for &op in Op::ALL {
            assert_eq!(Reducer::new(dtype, op).is_some(), dtype.supports(op), "{dtype:?} {op:?}");
        }
    }
}

/// The rules that the twin might share a mistake about, by hand.
#[test]
fn numbers_are_those_of_the_contract() {
    fn one<const N: usize>(dtype: Dtype, op: Op, own: [u8; N], received: [u8; N]) -> [u8; N] {
        let (mut own, mut received) = (own, received);
        let dst = Region::from_slice(&mut own);
        Reducer::new(dtype, op).unwrap().reduce(dst, dst, Region::from_slice(&mut received));
        own
    }
    assert_eq!(one(Dtype::Bool, Op::Sum, [2, 0, 0, 128], [2, 0, 4, 128]), [1, 0, 1, 1]);
    assert_eq!(one(Dtype::Bool, Op::Prod, [2, 1, 0], [1, 0, 3]), [1, 0, 0]);
    assert_eq!(one(Dtype::Bool, Op::Bxor, [2, 1, 0], [1, 0, 0]), [0, 1, 0]);
    assert_eq!(one(Dtype::Int8, Op::Sum, [127, 128], [1, 255]), [128, 127]);

    let f32s = |op, own: f32, received: f32| {
        f32::from_ne_bytes(one(Dtype::Float32, op, own.to_ne_bytes(), received.to_ne_bytes()))
    };
    for (own, received) in [(0.0, -0.0), (-0.0, 0.0)] {
        assert!(f32s(Op::Max, own, received).is_sign_positive());
        assert!(f32s(Op::Min, own, received).is_sign_negative());
    }
    for op in [Op::Max, Op::Min] {
        for nan in [f32::NAN, -f32::NAN] {
            assert!(f32s(op, nan, f32::INFINITY).is_nan() && f32s(op, f32::NEG_INFINITY, nan).is_nan());
        }
    }

    // 1 + 2^-8 lies halfway between two bfloat16 and goes to the even one, 1.
    let (one_bf16, half_step) = (half::bf16::ONE, half::bf16::from_f32(1.0 / 256.0));
    assert_eq!(
        one(Dtype::Bfloat16, Op::Sum, one_bf16.to_ne_bytes(), half_step.to_ne_bytes()),
        one_bf16.to_ne_bytes()
    );

    let complexes = |op, own: [f32; 2], received: [f32; 2]| -> [f32; 2] {
        let bytes = |z: [f32; 2]| -> [u8; 8] { z.map(f32::to_ne_bytes).concat().try_into().unwrap() };
        let result = one(Dtype::Complex64, op, bytes(own), bytes(received));
        [0, 4].map(|at| f32::from_ne_bytes(result[at..at + 4].try_into().unwrap()))
    };
    assert_eq!(complexes(Op::Prod, [1.0, 2.0], [3.0, 4.0]), [-5.0, 10.0]);
    assert_eq!(complexes(Op::Max, [1.0, 9.0], [2.0, 0.0]), [2.0, 0.0]);
    assert_eq!(complexes(Op::Min, [1.0, 9.0], [1.0, 8.0]), [1.0, 8.0]);
    assert!(complexes(Op::Max, [0.0, 1.0], [-0.0, 1.0])[0].is_sign_positive());
    assert!(complexes(Op::Max, [-0.0, 1.0], [0.0, 1.0])[0].is_sign_negative());
    assert_eq!(complexes(Op::Max, [1.0, f32::NAN], [f32::NAN, 5.0])[0], 1.0);
    assert_eq!(complexes(Op::Min, [0.0, 0.0], [f32::NAN, 5.0])[1], 5.0);
}

/// (x + xi)^2 has the real part 0; fused, what rounding took from one of the two products remains.
#[test]
fn products_are_rounded_before_they_are_added() {
    let third = 1.0f32 / 3.0;
    assert_ne!(third.mul_add(third, -(third * third)), 0.0, "the data would not show it");
    let own = third.to_ne_bytes().repeat(2 * MAX_COUNT);
    for (dtype, op, reducer) in reducers() {
        if (dtype, op) == (Dtype::Complex64, Op::Prod) {
            let mut dst = own.clone();
            let in_place = Region::from_slice(&mut dst);
            reducer.reduce(in_place, in_place, Region::from_slice(&mut own.clone()));
            assert!(dst.chunks(8).all(|product| product[..4] == [0; 4]));
        }
    }
}

#[test]
#[should_panic(expected = "different lengths")]
fn lengths_that_differ_panic() {
    let (mut four, mut eight) = ([0; 4], [0; 8]);
    let dst = Region::from_slice(&mut eight);
    Reducer::new(Dtype::Float32, Op::Sum).unwrap().reduce(dst, dst, Region::from_slice(&mut four));
}

#[test]
#[should_panic(expected = "within an element")]
fn half_an_element_panics() {
    let (mut own, mut received) = ([0; 6], [0; 6]);
    let dst = Region::from_slice(&mut own);
    Reducer::new(Dtype::Float32, Op::Sum).unwrap().reduce(dst, dst, Region::from_slice(&mut received));
}

#[test]
fn no_bytes_are_no_work() {
    for (_, _, reducer) in reducers() {
        reducer.reduce(Region::empty(), Region::empty(), Region::empty());
        reducer.finish(Region::empty(), 3);
        reducer.copy(Region::empty(), Region::empty());
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_hosts_float_mode_changes_no_result() {
    use crate::kernels::float_mode::{FloatMode, IEEE, read, write};
    /// Flush-to-zero, denormals-are-zero, rounding towards zero, over the default.
    const HOSTS: u32 = IEEE | 1 << 15 | 1 << 6 | 0b11 << 13;

    for (dtype, op, reducer) in reducers() {
        let specials = specials(dtype);
        let draws = 0..specials.len().min(MAX_COUNT);
        let own: Vec<u8> = draws.clone().flat_map(|i| element(dtype, specials[i])).collect();
        // Low bits set, so that subnormals meet numbers that are not whole and results round.
        let received: Vec<u8> = draws
            .flat_map(|i| element(dtype, specials[i * 5 % specials.len()] ^ 0x0015_5555_0155_5555))
            .collect();
        let expected = reference::reduce(dtype, op, &own, &received);
        let ended = if op == Op::Mean { reference::divide(dtype, &expected, 3) } else { expected.clone() };

        let (mut dst, mut mine, mut other) = (own.clone(), own, received);
        let [sum, mine, other] = [&mut dst, &mut mine, &mut other].map(|b| Region::from_slice(b));
        let mut reduced = vec![0; sum.len()];
        let before = read();
        write(HOSTS);
        let within;
        {
            let _mode = FloatMode::ieee();
            reducer.reduce(sum, mine, other);
            Region::from_slice(&mut reduced).copy_from(sum);
            reducer.finish(sum, 3);
            within = read();
        }
        let after = read();
        write(before);
        assert_eq!(after, HOSTS, "the host's mode came back");
        assert_eq!(within & HOSTS & !IEEE, 0, "the default mode was set");
        assert_same(dtype, op, &reduced, &expected);
        assert_same(dtype, op, &dst, &ended);
    }
}
