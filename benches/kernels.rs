//! The kernels' speed beside a copy of the same bytes. `cargo bench --bench kernels -- WORD...` measures
//! those whose line has one of the words, as in `float16` or `"float16 sum"`.
//!
//! A step reduces what a link has received, a buffer that the cache still has, into an array that it may not
//! have. So `received` is always the same buffer, and the array is as small as a step or far larger than the
//! caches; `own` is the array itself (in place) or another one (apart). The copy moves what cannot be spared:
//! from `received` into the array, or from the other array.
//!
//! Of wide accumulation the array holds the 16-bit values, own's or the result's. Partial sums are f32 in buffers
//! that the cache has: the one that was received, into which a step goes in place, or another one. GB/s are those
//! of the 16-bit values, so that they compare with those of sums that round at each step.

use ring::dtype::{Dtype, Op};
use ring::kernels::{Reducer, WIDE_BYTES, WideReducer};
use ring::memory::Region;
use std::time::{Duration, Instant};

/// What a link receives at a time.
const STEP_BYTES: usize = 256 << 10;
/// More than any CPU's cache.
const ARRAY_BYTES: usize = 64 << 20;
/// Rounds are taken in turns by all, so that a machine that drifts does so for all; the median counts.
const ROUNDS: usize = 7;
/// Read by any dtype, it is an ordinary number above 1: products don't end as slow subnormals.
const FILL: u8 = 0x40;
const RANKS: usize = 3;
/// The longest name is "bfloat16 mean, wide finish".
const NAME_WIDTH: usize = 27;

/// One kernel: a step of a reduction, the division that ends a mean, or one of wide accumulation.
struct Subject {
    name: String,
    work: Work,
}

#[derive(Clone, Copy)]
enum Work {
    Step(Reducer),
    Division(Reducer),
    WideStart(WideReducer),
    WideStep(WideReducer),
    WideFinish(WideReducer),
}

impl Work {
    /// Whether there is such a kernel in place, or apart.
    fn is_measured(self, apart: bool) -> bool {
        match self {
            Work::Step(_) | Work::WideStep(_) => true,
            Work::Division(_) => !apart,
            Work::WideStart(_) | Work::WideFinish(_) => apart,
        }
    }

    fn run(self, [dst, own, received]: [Region<'_>; 3], sum: Region<'_>, apart: bool) {
        match self {
            Work::Step(reducer) => reducer.reduce(dst, own, received),
            Work::Division(reducer) => reducer.finish(dst, RANKS),
            Work::WideStart(wide) => by_halves(own, |own| wide.start(sum, own, received.part(0, own.len()))),
            Work::WideStep(wide) => {
                by_halves(own, |own| wide.step(if apart { sum } else { received }, own, received));
            }
            Work::WideFinish(wide) => by_halves(dst, |dst| wide.finish(dst, sum, RANKS)),
        }
    }
}

/// So many 16-bit values at a time as have `STEP_BYTES` of f32.
fn by_halves(values: Region<'_>, run: impl Fn(Region<'_>)) {
    let half = STEP_BYTES / WIDE_BYTES * size_of::<u16>();
    (0..values.len()).step_by(half).for_each(|at| run(values.part(at, half)));
}

/// Where own and the result lie.
#[derive(Clone, Copy)]
struct Layout {
    array_bytes: usize,
    apart: bool,
}

const LAYOUTS: [(&str, Layout); 4] = [
    ("cached, in place", Layout { array_bytes: STEP_BYTES, apart: false }),
    ("cached, apart", Layout { array_bytes: STEP_BYTES, apart: true }),
    ("memory, in place", Layout { array_bytes: ARRAY_BYTES, apart: false }),
    ("memory, apart", Layout { array_bytes: ARRAY_BYTES, apart: true }),
];

/// The kernels that are not another's by another name.
fn subjects(words: &[String]) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for &dtype in Dtype::ALL {
        for &op in Op::ALL {
            let same_as_another = match dtype {
                Dtype::Bool => !matches!(op, Op::Sum | Op::Prod | Op::Bxor),
                // Bits don't know the width of their integer.
                _ => matches!(op, Op::Band | Op::Bor | Op::Bxor) && dtype != Dtype::Uint8,
            };
            if let (Some(reducer), false) = (Reducer::new(dtype, op), same_as_another) {
                let name = format!("{} {}", dtype.name(), op.name());
                subjects.push(match op {
                    Op::Mean => Subject { name: format!("{name}'s division"), work: Work::Division(reducer) },
                    _ => Subject { name, work: Work::Step(reducer) },
                });
            }
            if let (Op::Max | Op::Min, true) = (op, dtype.is_floating())
                && let Some(reducer) = Reducer::mlx(dtype, op)
            {
                let name = format!("{} {} of MLX", dtype.name(), op.name());
                subjects.push(Subject { name, work: Work::Step(reducer) });
            }
            if let Some(wide) = WideReducer::new(dtype, op) {
                let mut add = |part: &str, work| {
                    let name = format!("{} {}, wide {part}", dtype.name(), op.name());
                    subjects.push(Subject { name, work });
                };
                if op == Op::Sum {
                    add("start", Work::WideStart(wide));
                    add("step", Work::WideStep(wide));
                }
                add("finish", Work::WideFinish(wide));
            }
        }
    }
    subjects.retain(|subject| words.is_empty() || words.iter().any(|word| subject.name.contains(word)));
    subjects
}

/// The time to go over `ARRAY_BYTES` by steps.
fn walk(
    layout: Layout,
    arrays: &mut [Vec<u8>; 2],
    received: &mut [u8],
    step: impl Fn([Region<'_>; 3]),
) -> Duration {
    let [array, other] = arrays;
    let (array, other) = (Region::from_slice(array), Region::from_slice(other));
    let received = Region::from_slice(received);
    let begin = Instant::now();
    for at in (0..ARRAY_BYTES).step_by(STEP_BYTES) {
        let at = at % layout.array_bytes;
        let dst = array.part(at, STEP_BYTES);
        step([dst, if layout.apart { other.part(at, STEP_BYTES) } else { dst }, received]);
    }
    begin.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let subjects = subjects(&words);
    let mut arrays = [vec![FILL; ARRAY_BYTES], vec![FILL; ARRAY_BYTES]];
    let (mut received, mut sum) = (vec![FILL; STEP_BYTES], vec![FILL; STEP_BYTES]);
    let sum = Region::from_slice(&mut sum);

    // By subject and layout, the rounds' seconds and their ratios to the copy.
    let mut seconds = vec![[const { Vec::new() }; LAYOUTS.len()]; subjects.len()];
    let mut ratios = seconds.clone();
    let mut copies = [const { Vec::new() }; LAYOUTS.len()];
    for _ in 0..ROUNDS {
        for (i, subject) in subjects.iter().enumerate() {
            for (j, &(_, layout)) in LAYOUTS.iter().enumerate() {
                if !subject.work.is_measured(layout.apart) {
                    continue;
                }
                let copy = walk(layout, &mut arrays, &mut received, |[dst, own, received]| {
                    dst.copy_from(if layout.apart { own } else { received });
                });
                let reduction = walk(layout, &mut arrays, &mut received, |regions| {
                    subject.work.run(regions, sum, layout.apart);
                });
                copies[j].push(copy.as_secs_f64());
                seconds[i][j].push(reduction.as_secs_f64());
                ratios[i][j].push(reduction.as_secs_f64() / copy.as_secs_f64());
            }
        }
    }

    let gigabytes = |seconds: f64| ARRAY_BYTES as f64 / seconds / 1e9;
    print!("{:NAME_WIDTH$}", "GB/s (time/copy's)");
    LAYOUTS.iter().for_each(|(name, _)| print!("{name:>19}"));
    print!("\n{:NAME_WIDTH$}", "copy");
    for copies in copies {
        // None where no kernel that was asked for has the layout.
        match copies.is_empty() {
            true => print!("{:>19}", "-"),
            false => print!("{:12.1}       ", gigabytes(median(copies))),
        }
    }
    println!();
    for ((subject, seconds), ratios) in subjects.iter().zip(seconds).zip(ratios) {
        print!("{:NAME_WIDTH$}", subject.name);
        for (seconds, ratios) in seconds.into_iter().zip(ratios) {
            if seconds.is_empty() {
                print!("{:>19}", "-");
            } else {
                print!("{:10.1} ({:6.2})", gigabytes(median(seconds)), median(ratios));
            }
        }
        println!();
    }
}
