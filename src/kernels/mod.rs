//! Reductions: `own op received`, element by element, for every dtype and op.
//!
//! A step of a reduction is a small pure function (steps.rs, float16.rs, bfloat16.rs, and by hardware
//! f16c.rs, fcvt.rs, bfloat16_avx512.rs; for the MLX wire mlx.rs); one loop (elementwise.rs) runs it over
//! buffers of any alignment and is compiled once per instruction set. Where sums of 16-bit floats stay f32
//! until the end, the loop is wide.rs's.
//! Results are the same bits on every CPU, and nothing is fused or reordered.
#![allow(unsafe_code)]

mod bfloat16;
#[cfg(target_arch = "x86_64")]
mod bfloat16_avx512;
mod custom;
mod elementwise;
#[cfg(target_arch = "x86_64")]
mod f16c;
#[cfg(target_arch = "aarch64")]
mod fcvt;
mod float16;
mod float_mode;
mod mlx;
#[cfg(test)]
mod mlx_tests;
#[cfg(test)]
mod reference;
mod steps;
#[cfg(test)]
mod tests;
mod wide;
#[cfg(test)]
mod wide_tests;

pub use custom::{Custom, ReduceElements, over_slices};
pub use float_mode::FloatMode;
pub use wide::{WIDE_BYTES, WideReducer};

use crate::dtype::{Dtype, Op};
use crate::memory::Region;
use bfloat16::BfloatPair;
use elementwise::{BLOCK_BYTES, Cpu, Divider, Kernel, Plain};
use steps::{And, Bool, Complex, Max, Min, Or, Prod, Step, Sum, Xor};

/// How a call reduces.
pub enum Reduction<'a> {
    /// By a dtype's op.
    Op(Reducer),
    /// By a sum whose partial results are wider than elements.
    Wide(WideReducer),
    /// By a function of the host program's.
    Custom(Custom<'a>),
}

/// Where in a chain a step is.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// What is received is another rank's input, not yet a partial result.
    pub begins: bool,
    /// The chain ends here.
    pub last: bool,
    /// Ranks whose values a chain holds at its end.
    pub ranks: usize,
}

impl Reduction<'_> {
    /// One step of a chain: see [`Reducer::reduce`]. Of a wide sum `received` is wide unless the chain begins,
    /// and `dst` unless it ends.
    ///
    /// # Panics
    ///
    /// When the lengths don't fit each other or are not whole elements.
    pub fn step(&self, dst: Region<'_>, own: Region<'_>, received: Region<'_>, turn: Turn) {
        match self {
            Reduction::Op(reducer) => {
                reducer.reduce(dst, own, received);
                if turn.last {
                    reducer.finish(dst, turn.ranks);
                }
            }
            Reduction::Wide(wide) if turn.last => wide.end(dst, own, received, turn),
            Reduction::Wide(wide) if turn.begins => wide.start(dst, own, received),
            Reduction::Wide(wide) => wide.step(dst, own, received),
            Reduction::Custom(custom) => custom.reduce(dst, own, received),
        }
    }

    /// The reduction of a group of one: see [`Reducer::copy`].
    pub fn copy(&self, dst: Region<'_>, own: Region<'_>) {
        match self {
            Reduction::Op(reducer) => reducer.copy(dst, own),
            Reduction::Wide(_) | Reduction::Custom(_) => dst.copy_from(own),
        }
    }
}

/// A reduction of one dtype by one op, resolved once per call.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    dtype: Dtype,
    kernel: Kernel,
    divider: Option<Divider>,
}

impl Reducer {
    /// The reduction in the best form for this CPU, or nothing where the op is not defined for the dtype.
    pub fn new(dtype: Dtype, op: Op) -> Option<Reducer> {
        Reducer::on(Cpu::best(), dtype, op)
    }

    /// The reduction whose bits are those of stock MLX, or nothing for an op that MLX's ring lacks; a mean,
    /// which it lacks, too, is its sum, divided.
    pub fn mlx(dtype: Dtype, op: Op) -> Option<Reducer> {
        Reducer::mlx_on(Cpu::best(), dtype, op)
    }

    fn mlx_on(cpu: Cpu, dtype: Dtype, op: Op) -> Option<Reducer> {
        if !matches!(op, Op::Sum | Op::Mean | Op::Max | Op::Min) {
            return None;
        }
        match mlx::extreme(cpu, dtype, op) {
            Some(kernel) => Some(Reducer { dtype, kernel, divider: None }),
            None => Reducer::on(cpu, dtype, op),
        }
    }

    fn on(cpu: Cpu, dtype: Dtype, op: Op) -> Option<Reducer> {
        let kernel = kernel(cpu, dtype, op)?;
        let divider = if op == Op::Mean { Some(divider(cpu, dtype)?) } else { None };
        Some(Reducer { dtype, kernel, divider })
    }

    /// One step: `dst[i] = own[i] op received[i]`. `dst` and `own` are the same memory or apart,
    /// `received` is apart from `dst`; any of them may start at any address.
    ///
    /// # Panics
    ///
    /// When the lengths differ or are not whole elements.
    pub fn reduce(&self, dst: Region<'_>, own: Region<'_>, received: Region<'_>) {
        self.assert_whole(dst);
        // SAFETY: `by_blocks` hands on what it promises, and `Cpu` chose the kernel by what this CPU
        // can do.
        by_blocks(dst, own, received, |dst, own, received, blocks| unsafe {
            (self.kernel)(dst, own, received, blocks);
        });
    }

    /// What ends a chain: a mean divides the sum by the number of ranks, other ops do nothing.
    ///
    /// # Panics
    ///
    /// When the length is not whole elements.
    pub fn finish(&self, dst: Region<'_>, ranks: usize) {
        self.assert_whole(dst);
        if let Some(divider) = self.divider {
            // SAFETY: as in `reduce`.
            by_blocks(dst, dst, dst, |dst, _, _, blocks| unsafe { divider(dst, blocks, ranks as f64) });
        }
    }

    /// The reduction of a group of one: `own` itself, with bool made 0 or 1.
    ///
    /// # Panics
    ///
    /// When the lengths differ or are not whole elements.
    pub fn copy(&self, dst: Region<'_>, own: Region<'_>) {
        self.assert_whole(dst);
        if self.dtype == Dtype::Bool {
            // Or of a value and itself.
            let kernel = Cpu::Baseline.kernel::<Bool, Or>();
            // SAFETY: as in `reduce`; every CPU has the baseline.
            by_blocks(dst, own, own, |dst, own, received, blocks| unsafe {
                kernel(dst, own, received, blocks);
            });
        } else if dst.as_ptr() != own.as_ptr() {
            dst.copy_from(own);
        }
    }

    fn assert_whole(&self, region: Region<'_>) {
        assert_eq!(region.len() % self.dtype.size(), 0, "a span that ends within an element");
    }
}

/// Calls `run` with the whole blocks and then with what remains, filled up with zeros.
///
/// `run` gets `dst`, `own`, `received` and a number of blocks for which all three are valid. In place
/// stays so, and memory apart stays apart.
///
/// # Panics
///
/// When the lengths differ.
fn by_blocks(
    dst: Region<'_>,
    own: Region<'_>,
    received: Region<'_>,
    run: impl Fn(*mut u8, *const u8, *const u8, usize),
) {
    assert_eq!(dst.len(), own.len(), "a reduction of spans of different lengths");
    assert_eq!(dst.len(), received.len(), "a reduction of spans of different lengths");
    let blocks = dst.len() / BLOCK_BYTES;
    if blocks > 0 {
        run(dst.as_ptr(), own.as_ptr(), received.as_ptr(), blocks);
    }
    let (whole, rest) = (blocks * BLOCK_BYTES, dst.len() % BLOCK_BYTES);
    if rest > 0 {
        let (mut last, mut last_received) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
        Region::from_slice(&mut last[..rest]).copy_from(own.part(whole, rest));
        Region::from_slice(&mut last_received[..rest]).copy_from(received.part(whole, rest));
        let in_place = last.as_mut_ptr();
        run(in_place, in_place, last_received.as_ptr(), 1);
        dst.part(whole, rest).copy_from_slice(&last[..rest]);
    }
}

/// The kernel of a step, for the pairs of dtype and op that have one.
fn kernel(cpu: Cpu, dtype: Dtype, op: Op) -> Option<Kernel> {
    match dtype {
        Dtype::Bool => bool(cpu, op),
        Dtype::Uint8 => integer::<u8>(cpu, op),
        Dtype::Uint16 => integer::<u16>(cpu, op),
        Dtype::Uint32 => integer::<u32>(cpu, op),
        Dtype::Uint64 => integer::<u64>(cpu, op),
        Dtype::Int8 => integer::<i8>(cpu, op),
        Dtype::Int16 => integer::<i16>(cpu, op),
        Dtype::Int32 => integer::<i32>(cpu, op),
        Dtype::Int64 => integer::<i64>(cpu, op),
        Dtype::Float16 => match op {
            Op::Sum | Op::Mean => Some(cpu.float16_kernel::<Sum>()),
            Op::Prod => Some(cpu.float16_kernel::<Prod>()),
            _ => extreme::<float16::Half>(cpu, op),
        },
        Dtype::Bfloat16 => match op {
            Op::Sum | Op::Mean => Some(cpu.bfloat16_sum()),
            Op::Prod => Some(cpu.kernel::<BfloatPair, Prod>()),
            _ => extreme::<bfloat16::Bfloat>(cpu, op),
        },
        Dtype::Float32 => arithmetic::<f32>(cpu, op).or(extreme::<f32>(cpu, op)),
        Dtype::Float64 => arithmetic::<f64>(cpu, op).or(extreme::<f64>(cpu, op)),
        Dtype::Complex64 => match op {
            // A sum goes by part.
            Op::Sum | Op::Mean => arithmetic::<f32>(cpu, op),
            Op::Prod => Some(cpu.kernel::<Complex, Prod>()),
            _ => extreme::<Complex>(cpu, op),
        },
    }
}

fn bool(cpu: Cpu, op: Op) -> Option<Kernel> {
    match op {
        Op::Sum | Op::Max | Op::Bor => Some(cpu.kernel::<Bool, Or>()),
        Op::Prod | Op::Min | Op::Band => Some(cpu.kernel::<Bool, And>()),
        Op::Bxor => Some(cpu.kernel::<Bool, Xor>()),
        Op::Mean => None,
    }
}

fn integer<T: Plain>(cpu: Cpu, op: Op) -> Option<Kernel>
where
    Sum: Step<T>,
    Prod: Step<T>,
    Max: Step<T>,
    Min: Step<T>,
{
    match op {
        Op::Sum => Some(cpu.kernel::<T, Sum>()),
        Op::Prod => Some(cpu.kernel::<T, Prod>()),
        Op::Max | Op::Min => extreme::<T>(cpu, op),
        // Bits don't know how wide their integer is.
        Op::Band => Some(cpu.kernel::<u8, And>()),
        Op::Bor => Some(cpu.kernel::<u8, Or>()),
        Op::Bxor => Some(cpu.kernel::<u8, Xor>()),
        Op::Mean => None,
    }
}

/// The ops of numbers that are added or multiplied.
fn arithmetic<T: Plain>(cpu: Cpu, op: Op) -> Option<Kernel>
where
    Sum: Step<T>,
    Prod: Step<T>,
{
    match op {
        Op::Sum | Op::Mean => Some(cpu.kernel::<T, Sum>()),
        Op::Prod => Some(cpu.kernel::<T, Prod>()),
        _ => None,
    }
}

/// The ops of numbers that are compared.
fn extreme<T: Plain>(cpu: Cpu, op: Op) -> Option<Kernel>
where
    Max: Step<T>,
    Min: Step<T>,
{
    match op {
        Op::Max => Some(cpu.kernel::<T, Max>()),
        Op::Min => Some(cpu.kernel::<T, Min>()),
        _ => None,
    }
}

/// What divides the sum of a mean.
fn divider(cpu: Cpu, dtype: Dtype) -> Option<Divider> {
    match dtype {
        Dtype::Float16 => Some(cpu.float16_divider()),
        Dtype::Bfloat16 => Some(cpu.divider::<BfloatPair>()),
        Dtype::Float32 | Dtype::Complex64 => Some(cpu.divider::<f32>()),
        Dtype::Float64 => Some(cpu.divider::<f64>()),
        _ => None,
    }
}
