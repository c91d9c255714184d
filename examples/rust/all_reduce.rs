//! Sums an array over all ranks. The ring comes from the environment: RING_RANK, RING_HOSTFILE.

use std::process::ExitCode;

use ring::{Group, Op};

fn run() -> ring::Result<()> {
    let group = Group::create_from_env()?;

    let rank = group.rank() as f32;
    let mut gradient = [rank + 0.5, rank + 1.5, rank + 2.5, rank + 3.5];
    group.all_reduce(&mut gradient, Op::Sum)?;

    let [a, b, c, d] = gradient;
    println!("rank {} of {}: {a} {b} {c} {d}", group.rank(), group.size());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
