//! Reductions by a function of the host program's.

use std::slice;
use std::sync::{Mutex, PoisonError};

use crate::memory::{Plain, Region};

/// What aligns the function's operands at most.
const MAX_ALIGNMENT: usize = 16;
/// Operands that lie elsewhere are brought to aligned memory so many bytes at a time, or one element.
const STAGE_BYTES: usize = 64 << 10;

/// `acc[i] = acc[i] op in[i]` over whole elements: what is called with acc, in and the count.
pub type ReduceElements<'a> = dyn Fn(*mut u8, *const u8, usize) + Send + Sync + 'a;

/// A function over slices, as the library calls it.
pub fn over_slices<'a, T: Plain>(
    function: impl Fn(&mut [T], &[T]) + Send + Sync + 'a,
) -> Box<ReduceElements<'a>> {
    const { assert!(align_of::<T>() <= MAX_ALIGNMENT) };
    Box::new(move |acc, input, count| {
        // SAFETY: both are so many elements, aligned as far as these may ask for, of which any bits are a value;
        // they are apart and nobody else's for the length of the call.
        let (acc, input) = unsafe {
            (slice::from_raw_parts_mut(acc.cast(), count), slice::from_raw_parts(input.cast(), count))
        };
        function(acc, input);
    })
}

/// A function over elements of its own.
pub struct Custom<'a> {
    /// Bytes of an element.
    element: usize,
    function: Box<ReduceElements<'a>>,
    /// Aligned memory for both operands; empty until it is needed.
    stage: Mutex<Vec<u128>>,
}

impl<'a> Custom<'a> {
    /// The function gets operands that are aligned to min(16, the largest power of two that divides
    /// `element`) and apart from each other.
    pub fn new(element: usize, function: Box<ReduceElements<'a>>) -> Custom<'a> {
        Custom { element, function, stage: Mutex::default() }
    }

    /// Gets the memory to align two elements where these are large; None where there is none.
    pub fn reserve(&mut self) -> Option<()> {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.element > STAGE_BYTES {
            stage.try_reserve_exact(2 * self.element.div_ceil(MAX_ALIGNMENT)).ok()?;
        }
        Some(())
    }

    /// One step: `dst[i] = own[i] op received[i]`. `dst` and `own` are the same memory or apart, `received` is
    /// apart from `dst`.
    pub fn reduce(&self, dst: Region<'_>, own: Region<'_>, received: Region<'_>) {
        if dst.as_ptr() != own.as_ptr() {
            dst.copy_from(own);
        }
        if self.is_aligned(dst) && self.is_aligned(received) {
            return self.call(dst, received);
        }
        let step = (STAGE_BYTES / self.element).max(1) * self.element;
        let half = step.min(dst.len()).div_ceil(MAX_ALIGNMENT);
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.len() < 2 * half {
            stage.resize(2 * half, 0);
        }
        let (acc, input) = stage.split_at_mut(half);
        for start in (0..dst.len()).step_by(step) {
            let bytes = step.min(dst.len() - start);
            let (acc, input) = (Region::from_words(acc, bytes), Region::from_words(input, bytes));
            acc.copy_from(dst.part(start, bytes));
            input.copy_from(received.part(start, bytes));
            self.call(acc, input);
            dst.part(start, bytes).copy_from(acc);
        }
    }

    fn is_aligned(&self, region: Region<'_>) -> bool {
        let alignment = MAX_ALIGNMENT.min(1 << self.element.trailing_zeros().min(8));
        (region.as_ptr() as usize).is_multiple_of(alignment)
    }

    fn call(&self, acc: Region<'_>, input: Region<'_>) {
        let count = acc.len() / self.element;
        if count > 0 {
            (self.function)(acc.as_ptr(), input.as_ptr(), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_no_memory_holds_are_refused() {
        let reserve = |element| Custom::new(element, Box::new(|_, _, _| {})).reserve();
        assert_eq!(
            [1, 100_000, isize::MAX as usize, usize::MAX].map(reserve),
            [Some(()), Some(()), None, None]
        );
    }

    #[test]
    fn operands_are_aligned_and_whole_wherever_they_lie() {
        for element in [1usize, 3, 8, 12, 16, 24, 48, 100_000] {
            let alignment = 16.min(1usize << element.trailing_zeros());
            let function = move |acc: *mut u8, input: *const u8, count: usize| {
                assert!(
                    (acc as usize).is_multiple_of(alignment) && (input as usize).is_multiple_of(alignment)
                );
                assert!(count > 0);
                for i in 0..count * element {
                    // SAFETY: whole elements of both.
                    unsafe { *acc.add(i) = (*acc.add(i)).wrapping_mul(3).wrapping_add(*input.add(i)) };
                }
            };
            let custom = Custom::new(element, Box::new(function));
            for count in [0, 1, 5, 9000 / element + 3] {
                for shift in [0, 1, 8] {
                    let bytes = |seed: usize| -> Vec<u8> {
                        (0..shift + count * element).map(|i| (i * seed + seed) as u8).collect()
                    };
                    let (mut own, mut received) = (bytes(7), bytes(13));
                    let mut dst = vec![0; own.len()];
                    let right: Vec<u8> =
                        own.iter().zip(&received).map(|(a, b)| a.wrapping_mul(3).wrapping_add(*b)).collect();
                    let part = |bytes: &mut Vec<u8>| {
                        // SAFETY: the vectors outlive the calls below.
                        unsafe { Region::new(bytes.as_mut_ptr().add(shift), count * element) }
                    };
                    let (to, from, arrived) = (part(&mut dst), part(&mut own), part(&mut received));
                    custom.reduce(to, from, arrived);
                    custom.reduce(from, from, arrived);
                    assert_eq!((&dst[shift..], &own[shift..]), (&right[shift..], &right[shift..]));
                }
            }
        }
    }
}
