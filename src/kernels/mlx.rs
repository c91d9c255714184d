//! max and min as stock MLX computes them, for its wire: which operand stays where they are equal, zeros of
//! different signs, or not comparable is seen in the result's bits.

use super::elementwise::{Cpu, Kernel, Plain};
use super::steps::{Complex, Step};
use crate::dtype::{Dtype, Op};

/// `own < received ? received : own`.
struct Larger;
/// `received < own ? received : own`.
struct Smaller;

/// `<` of C++: false beside a NaN and between zeros.
trait Less: Plain {
    fn less(self, other: Self) -> bool;
}

// The choice is no `if`, for the reason that `extremes!` gives.
impl<T: Less> Step<T> for Larger {
    #[inline(always)]
    fn step(own: T, received: T) -> T {
        std::hint::select_unpredictable(own.less(received), received, own)
    }
}

impl<T: Less> Step<T> for Smaller {
    #[inline(always)]
    fn step(own: T, received: T) -> T {
        std::hint::select_unpredictable(received.less(own), received, own)
    }
}

impl Less for f32 {
    #[inline(always)]
    fn less(self, other: f32) -> bool {
        self < other
    }
}

impl Less for f64 {
    #[inline(always)]
    fn less(self, other: f64) -> bool {
        self < other
    }
}

impl Less for Complex {
    #[inline(always)]
    fn less(self, other: Complex) -> bool {
        Complex::less(self, other)
    }
}

/// A 16-bit float by its bits, of which infinity's tell the format. Compared as an integer, since
/// conversions would cost more.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Short<const INFINITY: i16>(i16);

type Float16 = Short<0x7c00>;
type Bfloat16 = Short<0x7f80>;

// SAFETY: 16 bits.
#[allow(unsafe_code)]
unsafe impl<const INFINITY: i16> Plain for Short<INFINITY> {}

impl<const INFINITY: i16> Short<INFINITY> {
    #[inline(always)]
    fn magnitude(self) -> i16 {
        self.0 & i16::MAX
    }

    /// Ascends as the numbers do; 0 for both zeros.
    #[inline(always)]
    fn ascending(self) -> i16 {
        let sign = self.0 >> (i16::BITS - 1);
        (self.magnitude() ^ sign) - sign
    }
}

impl<const INFINITY: i16> Less for Short<INFINITY> {
    #[inline(always)]
    fn less(self, other: Short<INFINITY>) -> bool {
        let comparable = self.magnitude().max(other.magnitude()) <= INFINITY;
        comparable & (self.ascending() < other.ascending())
    }
}

/// The kernel of max or min where it is another one than IEEE 754's.
pub(super) fn extreme(cpu: Cpu, dtype: Dtype, op: Op) -> Option<Kernel> {
    match dtype {
        Dtype::Float16 => choice::<Float16>(cpu, op),
        Dtype::Bfloat16 => choice::<Bfloat16>(cpu, op),
        Dtype::Float32 => choice::<f32>(cpu, op),
        Dtype::Float64 => choice::<f64>(cpu, op),
        Dtype::Complex64 => choice::<Complex>(cpu, op),
        _ => None,
    }
}

fn choice<T: Less>(cpu: Cpu, op: Op) -> Option<Kernel> {
    match op {
        Op::Max => Some(cpu.kernel::<T, Larger>()),
        Op::Min => Some(cpu.kernel::<T, Smaller>()),
        _ => None,
    }
}
