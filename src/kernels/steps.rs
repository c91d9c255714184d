//! One step of each reduction: pure functions of two values.
#![allow(unsafe_code)]

use super::elementwise::Plain;

/// `own op received` for one T.
pub(super) trait Step<T> {
    fn step(own: T, received: T) -> T;
}

/// The division that ends a mean; the divisor is a number of ranks.
pub(super) trait Divide {
    fn divide(self, divisor: f64) -> Self;
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Max;
pub(super) struct Min;
pub(super) struct And;
pub(super) struct Or;
pub(super) struct Xor;

/// The steps of one type, a row each.
macro_rules! steps {
    ($type:ty: $($step:ident = |$own:ident, $received:ident| $result:expr;)*) => {$(
        impl $crate::kernels::steps::Step<$type> for $crate::kernels::steps::$step {
            #[inline(always)]
            fn step($own: $type, $received: $type) -> $type {
                $result
            }
        }
    )*};
}

/// IEEE 754-2019 maximum and minimum of a floating type, by integers: they need no conversion for
/// 16-bit types, don't see the CPU's floating-point mode, and vectorise everywhere.
///
/// Negative numbers with all bits but the sign flipped ascend as the numbers do, -0 just below +0,
/// with the NaNs of either sign at the two ends. Going round by as many as there are NaNs at one end
/// brings all of them to the other, where they win.
///
/// The choice is no `if`: in place that becomes a store that is made or not, which doesn't vectorise.
macro_rules! extremes {
    ($type:ty, $bits:ident: $infinity:expr, |$value:ident| $to_bits:expr) => {
        const _: () = {
            const NANS_OF_A_SIGN: $bits = $bits::MAX - $infinity;

            #[inline(always)]
            fn ascending($value: $type) -> $bits {
                let bits = $to_bits;
                bits ^ ((bits >> ($bits::BITS - 1)) & $bits::MAX)
            }

            steps! { $type:
                Max = |own, received| {
                    let key = |value| ascending(value).wrapping_sub(NANS_OF_A_SIGN);
                    std::hint::select_unpredictable(key(own) >= key(received), own, received)
                };
                Min = |own, received| {
                    let key = |value| ascending(value).wrapping_add(NANS_OF_A_SIGN);
                    std::hint::select_unpredictable(key(own) <= key(received), own, received)
                };
            }
        };
    };
}

pub(super) use {extremes, steps};

macro_rules! integers {
    ($($type:ty)*) => {$(
        // SAFETY: an integer.
        unsafe impl Plain for $type {}

        steps! { $type:
            Sum = |own, received| own.wrapping_add(received);
            Prod = |own, received| own.wrapping_mul(received);
            Max = |own, received| own.max(received);
            Min = |own, received| own.min(received);
        }
    )*};
}

integers! { u8 u16 u32 u64 i8 i16 i32 i64 }

steps! { u8:
    And = |own, received| own & received;
    Or = |own, received| own | received;
    Xor = |own, received| own ^ received;
}

/// A bool as callers hand it in: any non-zero byte is true.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bool(u8);

impl Bool {
    /// The byte that results have: 0 or 1.
    #[inline(always)]
    pub(super) fn normal(self) -> Bool {
        Bool(u8::from(self.0 != 0))
    }
}

// SAFETY: a byte.
unsafe impl Plain for Bool {}

steps! { Bool:
    And = |own, received| Bool(own.normal().0 & received.normal().0);
    Or = |own, received| Bool(own.0 | received.0).normal();
    Xor = |own, received| Bool(own.normal().0 ^ received.normal().0);
}

macro_rules! floats {
    ($($type:ident, $bits:ident;)*) => {$(
        // SAFETY: a number.
        unsafe impl Plain for $type {}

        steps! { $type:
            Sum = |own, received| own + received;
            Prod = |own, received| own * received;
        }

        extremes! { $type, $bits: $type::INFINITY.to_bits() as $bits, |value| value.to_bits() as $bits }

        impl Divide for $type {
            #[inline(always)]
            fn divide(self, divisor: f64) -> $type {
                self / divisor as $type
            }
        }
    )*};
}

floats! { f32, i32; f64, i64; }

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Complex {
    re: f32,
    im: f32,
}

// SAFETY: two numbers of one size.
unsafe impl Plain for Complex {}

impl Complex {
    /// MLX's order: by real part, then by imaginary part; -0 equals +0.
    #[inline(always)]
    pub(super) fn less(self, other: Complex) -> bool {
        (self.re < other.re) | ((self.re == other.re) & (self.im < other.im))
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.re.is_nan() | self.im.is_nan()
    }
}

// Only a NaN makes own lose no comparison and still not win: own's comes first, then received's.
steps! { Complex:
    Prod = |own, received| Complex {
        re: own.re * received.re - own.im * received.im,
        im: own.re * received.im + own.im * received.re,
    };
    Max = |own, received| {
        let lost = own.less(received) | received.is_nan();
        if lost & !own.is_nan() { received } else { own }
    };
    Min = |own, received| {
        let lost = received.less(own) | received.is_nan();
        if lost & !own.is_nan() { received } else { own }
    };
}
