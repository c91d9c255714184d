//! What the Rust workers share: modes, timing and checking (../../README.md describes them).

use std::fmt::Display;
use std::time::Instant;

const PERIOD: usize = 7;

/// Sums the floats over all ranks, in place.
pub type AllReduce<'a> = &'a mut dyn FnMut(&mut [f32]) -> Result<(), String>;

pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| fail(format!("{name} is not set")))
}

pub fn number(name: &str) -> usize {
    variable(name).parse().unwrap_or_else(|_| fail(format!("{name} is no number")))
}

pub fn fail(what: impl Display) -> ! {
    println!("ERR {}", what.to_string().replace('\n', " | "));
    std::process::exit(1)
}

/// User and system time of all threads of this process.
fn cpu_us() -> f64 {
    // SAFETY: all zeros are a rusage, which getrusage fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    us(usage.ru_utime) + us(usage.ru_stime)
}

fn bench(rank: usize, world: usize, bytes: usize, iterations: usize, all_reduce: AllReduce) {
    let mut reduce = |data: &mut [f32]| all_reduce(data).unwrap_or_else(|e| fail(e));
    let mut data: Vec<f32> = (0..bytes / 4).map(|i| (rank + 1 + i % PERIOD) as f32).collect();
    reduce(&mut data);
    let sum = |i: usize| (world * (world + 1) / 2 + world * (i % PERIOD)) as f32;
    if data.iter().enumerate().any(|(i, value)| *value != sum(i)) {
        fail("wrong sum");
    }

    // Zeros stay zeros: in place, other sums would end in infinities.
    data.fill(0.0);
    for _ in 0..iterations / 10 + 1 {
        reduce(&mut data);
    }
    let mut times = Vec::with_capacity(iterations);
    let (cpu, start) = (cpu_us(), Instant::now());
    for _ in 0..iterations {
        let called = Instant::now();
        reduce(&mut data);
        times.push(called.elapsed().as_secs_f64() * 1e6);
    }
    let mean = start.elapsed().as_secs_f64() * 1e6 / iterations as f64;
    let cpu = (cpu_us() - cpu) / iterations as f64;
    times.sort_by(f64::total_cmp);
    let (median, p99) = (times[iterations / 2], times[(iterations as f64 * 0.99) as usize]);
    println!("R\t{rank}\tfloat32\t{bytes}\t{median:.2}\t{p99:.2}\t{mean:.2}\t{cpu:.2}");
}

fn repeat(count: usize, all_reduce: AllReduce) -> ! {
    let mut data = vec![0f32; count];
    let mut call = 0u64;
    loop {
        all_reduce(&mut data).unwrap_or_else(|e| fail(e));
        println!("it {call}");
        call += 1;
    }
}

fn mismatch(rank: usize, world: usize, all_reduce: AllReduce) {
    let mut count_right = |count: usize| {
        let mut data = vec![1f32; count];
        all_reduce(&mut data).unwrap_or_else(|e| fail(e));
        data.iter().filter(|value| **value == world as f32).count()
    };
    let (count, equal) = (if rank == 0 { 1000 } else { 2000 }, 500);
    println!("returned without error: {} of {count} elements are the sum", count_right(count));
    println!("next (equal) call: {} of {equal} elements are the sum", count_right(equal));
}

pub fn work(rank: usize, world: usize, all_reduce: AllReduce) {
    let parse = |text: &str| text.parse().unwrap_or_else(|_| fail(format!("{text} is no number")));
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bench", "float32", sizes @ ..] => {
            for size in sizes {
                let (bytes, iterations) =
                    size.split_once(':').unwrap_or_else(|| fail("usage: BYTES:ITERATIONS"));
                bench(rank, world, parse(bytes), parse(iterations), &mut *all_reduce);
            }
        }
        ["loop", bytes] => repeat(parse(bytes) / 4, all_reduce),
        ["mismatch"] => mismatch(rank, world, all_reduce),
        _ => fail("usage: bench float32 BYTES:ITERATIONS... | loop BYTES | mismatch"),
    }
}
