//! Sums of 16-bit floats that stay f32 from step to step, and are rounded once at the end of a chain.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::Turn;
use super::bfloat16::Bfloat;
use super::elementwise::{BLOCK_BYTES, Block, Cpu, Halves, Plain, block_by_block, prefetch};
use super::float16::Half;
use super::steps::{Divide, Step, Sum};
use crate::dtype::{Dtype, Op};
use crate::memory::Region;

/// A partial sum's element is an f32.
pub const WIDE_BYTES: usize = size_of::<f32>();
const NARROW_BYTES: usize = size_of::<u16>();

/// Elements of a block, whose f32 are [`BLOCK_BYTES`].
const BLOCK_ELEMENTS: usize = BLOCK_BYTES / WIDE_BYTES;

/// A sum or mean of float16 or bfloat16 whose partial sums are f32, resolved once per call.
///
/// A chain begins with 16-bit values as they are; its second rank calls `start`, later ones `step`, and the
/// last one `finish` as well. Lengths are of as many elements in each region of a call.
#[derive(Clone, Copy, Debug)]
pub struct WideReducer {
    start: Kernel,
    step: Kernel,
    finish: Kernel,
}

impl WideReducer {
    /// The reduction in the best form for this CPU, or nothing where wide accumulation changes nothing.
    pub fn new(dtype: Dtype, op: Op) -> Option<WideReducer> {
        WideReducer::on(Cpu::best(), dtype, op)
    }

    pub(super) fn on(cpu: Cpu, dtype: Dtype, op: Op) -> Option<WideReducer> {
        let divides = match op {
            Op::Sum => false,
            Op::Mean => true,
            _ => return None,
        };
        match dtype {
            Dtype::Float16 if cpu.converts_float16() => Some(WideReducer::of::<Halves>(cpu, divides)),
            Dtype::Float16 => Some(WideReducer {
                start: baseline::<Start<Half>>,
                step: baseline::<Continue<Half>>,
                finish: if divides { baseline::<EndMean<Half>> } else { baseline::<EndSum<Half>> },
            }),
            Dtype::Bfloat16 => Some(WideReducer::of::<Bfloat>(cpu, divides)),
            _ => None,
        }
    }

    fn of<T: Widen>(cpu: Cpu, divides: bool) -> WideReducer
    where
        Sum: Step<T::Wide>,
    {
        let finish = if divides { kernel::<EndMean<T>>(cpu) } else { kernel::<EndSum<T>>(cpu) };
        WideReducer { start: kernel::<Start<T>>(cpu), step: kernel::<Continue<T>>(cpu), finish }
    }

    /// The first addition: `dst[i] = own[i] + received[i]`, of 16-bit values into f32. All three are apart.
    ///
    /// # Panics
    ///
    /// When the lengths differ or are not whole elements; likewise below.
    pub fn start(&self, dst: Region<'_>, own: Region<'_>, received: Region<'_>) {
        by_blocks(self.start, [(dst, WIDE_BYTES), (own, NARROW_BYTES), (received, NARROW_BYTES)], 1);
    }

    /// A later one: `dst[i] = own[i] + received[i]`, of 16-bit values and f32. `dst` and `received` are the
    /// same memory or apart.
    pub fn step(&self, dst: Region<'_>, own: Region<'_>, received: Region<'_>) {
        by_blocks(self.step, [(dst, WIDE_BYTES), (own, NARROW_BYTES), (received, WIDE_BYTES)], 1);
    }

    /// The last step of a chain and its end, by way of a little memory: `dst`, of 16-bit values, is `own`, or
    /// apart from both operands.
    pub fn end(&self, dst: Region<'_>, own: Region<'_>, received: Region<'_>, turn: Turn) {
        /// Few enough to stay in a core's first-level cache.
        const ELEMENTS: usize = 2048;
        let mut sums = [0f32; ELEMENTS];
        let sums = Region::from_floats(&mut sums);
        let width = if turn.begins { NARROW_BYTES } else { WIDE_BYTES };
        let elements = dst.len() / NARROW_BYTES;
        for start in (0..elements).step_by(ELEMENTS) {
            let count = ELEMENTS.min(elements - start);
            let own = own.part(start * NARROW_BYTES, count * NARROW_BYTES);
            let received = received.part(start * width, count * width);
            let sums = sums.part(0, count * WIDE_BYTES);
            match turn.begins {
                true => self.start(sums, own, received),
                false => self.step(sums, own, received),
            }
            self.finish(dst.part(start * NARROW_BYTES, count * NARROW_BYTES), sums, turn.ranks);
        }
    }

    /// What ends a chain: a mean divides the f32 sum by the number of ranks; the result is rounded to
    /// nearest, ties to even. `dst`, of 16-bit values, is apart from `sum` or begins where it does.
    pub fn finish(&self, dst: Region<'_>, sum: Region<'_>, ranks: usize) {
        by_blocks(self.finish, [(dst, NARROW_BYTES), (sum, WIDE_BYTES), (sum, WIDE_BYTES)], ranks);
    }
}

/// Runs a kernel over the whole blocks and then over what remains, filled up with zeros. Each region comes
/// with the bytes of its elements: the result's, own's and what was received.
fn by_blocks(kernel: Kernel, regions: [(Region<'_>, usize); 3], ranks: usize) {
    let elements = regions[0].0.len() / regions[0].1;
    for (region, bytes) in regions {
        assert_eq!(region.len() % bytes, 0, "a span that ends within an element");
        assert_eq!(region.len() / bytes, elements, "a reduction of spans of different lengths");
    }
    let divisor = ranks as f32;
    let (blocks, rest) = (elements / BLOCK_ELEMENTS, elements % BLOCK_ELEMENTS);
    if blocks > 0 {
        let [dst, own, received] = regions.map(|(region, _)| region.as_ptr());
        // SAFETY: each region has so many blocks, and `Cpu` chose the kernel by what this CPU can do.
        unsafe { kernel(dst, own, received, blocks, divisor) };
    }
    if rest > 0 {
        let ends = regions.map(|(region, bytes)| region.part(blocks * BLOCK_ELEMENTS * bytes, rest * bytes));
        let mut last = [[0; BLOCK_BYTES]; 3];
        for (last, end) in last.iter_mut().zip(ends).skip(1) {
            Region::from_slice(&mut last[..end.len()]).copy_from(end);
        }
        let [dst, own, received] = &mut last;
        // SAFETY: as above; no block is longer than BLOCK_BYTES.
        unsafe { kernel(dst.as_mut_ptr(), own.as_ptr(), received.as_ptr(), 1, divisor) };
        ends[0].copy_from_slice(&dst[..ends[0].len()]);
    }
}

/// A compiled action: `(dst, own, received, blocks, divisor)`.
///
/// To call it, the three must be valid for so many blocks of [`BLOCK_ELEMENTS`] of their own width, and the
/// CPU must be the [`Cpu`] that gave it. `dst` is apart from the others or begins where one does whose
/// elements are no shorter: a block is read whole before it is written.
type Kernel = unsafe fn(*mut u8, *const u8, *const u8, usize, f32);

/// 16-bit floats, one or several at once, and the f32 that hold them.
pub(super) trait Widen: Plain {
    type Wide: Plain + Divide;

    fn widen(self) -> Self::Wide;

    /// Rounds to the nearest, ties to even.
    fn narrow(wide: Self::Wide) -> Self;
}

/// What a kernel does with as many elements of each of its operands.
trait Action {
    type Own: Plain;
    type Received: Plain;
    type Result: Plain;

    fn act(own: Self::Own, received: Self::Received, divisor: f32) -> Self::Result;
}

struct Start<T>(PhantomData<T>);
struct Continue<T>(PhantomData<T>);
struct EndSum<T>(PhantomData<T>);
struct EndMean<T>(PhantomData<T>);

impl<T: Widen> Action for Start<T>
where
    Sum: Step<T::Wide>,
{
    type Own = T;
    type Received = T;
    type Result = T::Wide;

    #[inline(always)]
    fn act(own: T, received: T, _: f32) -> T::Wide {
        Sum::step(own.widen(), received.widen())
    }
}

impl<T: Widen> Action for Continue<T>
where
    Sum: Step<T::Wide>,
{
    type Own = T;
    type Received = T::Wide;
    type Result = T::Wide;

    #[inline(always)]
    fn act(own: T, received: T::Wide, _: f32) -> T::Wide {
        Sum::step(own.widen(), received)
    }
}

impl<T: Widen> Action for EndSum<T> {
    type Own = T::Wide;
    type Received = T::Wide;
    type Result = T;

    #[inline(always)]
    fn act(sum: T::Wide, _: T::Wide, _: f32) -> T {
        T::narrow(sum)
    }
}

impl<T: Widen> Action for EndMean<T> {
    type Own = T::Wide;
    type Received = T::Wide;
    type Result = T;

    #[inline(always)]
    fn act(sum: T::Wide, _: T::Wide, divisor: f32) -> T {
        T::narrow(sum.divide(divisor.into()))
    }
}

/// The loop of elementwise.rs for operands of two widths.
///
/// # Safety
///
/// What a [`Kernel`] asks for.
#[inline(always)]
unsafe fn each<A: Action, const FETCH: bool>(
    dst: *mut u8,
    own: *const u8,
    received: *const u8,
    blocks: usize,
    divisor: f32,
) {
    let (dst, own, received) =
        (dst.cast::<A::Result>(), own.cast::<A::Own>(), received.cast::<A::Received>());
    // The caches have what comes in, and the f32 that it makes: only 16-bit values are the caller's.
    let (fetches_own, fetches_dst) =
        (size_of::<A::Own>() < size_of::<A::Result>(), size_of::<A::Result>() < size_of::<A::Own>());
    for i in 0..blocks {
        block_by_block();
        let at = i * items::<A>();
        if FETCH && fetches_own {
            prefetch(own.wrapping_add(at).cast());
        }
        if FETCH && fetches_dst {
            prefetch(dst.wrapping_add(at).cast());
        }
        // SAFETY: block i is one of `blocks`, and each block is so many items of its own width, which
        // are no more than a `Block`.
        unsafe {
            let (mut mine, mut theirs) = (MaybeUninit::<Block>::uninit(), MaybeUninit::<Block>::uninit());
            let mut result = MaybeUninit::<Block>::uninit();
            copy(own.add(at), mine.as_mut_ptr().cast::<A::Own>(), items::<A>());
            copy(received.add(at), theirs.as_mut_ptr().cast::<A::Received>(), items::<A>());
            for j in 0..items::<A>() {
                let own = mine.as_ptr().cast::<A::Own>().add(j).read_unaligned();
                let received = theirs.as_ptr().cast::<A::Received>().add(j).read_unaligned();
                let value = A::act(own, received, divisor);
                result.as_mut_ptr().cast::<A::Result>().add(j).write_unaligned(value);
            }
            copy(result.as_ptr().cast::<A::Result>(), dst.add(at), items::<A>());
        }
    }
}

/// Items of a block: as many as fit of the longest operand.
const fn items<A: Action>() -> usize {
    let (own, received, result) = (size_of::<A::Own>(), size_of::<A::Received>(), size_of::<A::Result>());
    let longest = if own > result { own } else { result };
    assert!(received <= longest && BLOCK_BYTES.is_multiple_of(longest));
    BLOCK_BYTES / longest
}

/// Copies items between places of any address, which are apart.
///
/// # Safety
///
/// Both are valid for so many.
#[inline(always)]
unsafe fn copy<T>(from: *const T, to: *mut T, items: usize) {
    // SAFETY: the caller's promise; bytes have no alignment.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), items * size_of::<T>()) }
}

fn kernel<A: Action>(cpu: Cpu) -> Kernel {
    match cpu {
        Cpu::Baseline => baseline::<A>,
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512Bfloat16 => avx2::<A>,
    }
}

unsafe fn baseline<A: Action>(
    dst: *mut u8,
    own: *const u8,
    received: *const u8,
    blocks: usize,
    divisor: f32,
) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<A, false>(dst, own, received, blocks, divisor) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn avx2<A: Action>(dst: *mut u8, own: *const u8, received: *const u8, blocks: usize, divisor: f32) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<A, true>(dst, own, received, blocks, divisor) }
}
