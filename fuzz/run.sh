#!/bin/sh
# Fuzzes each decoder, or those named: `FUZZ_SECONDS=60 run.sh [TARGET...]`. The fuzzers are built with the
# installed Rust, stable or not: coverage needs no unstable flag, unlike the address sanitizer, which
# safe code doesn't need. What they find stays in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
# A hostfile may be larger; nothing new comes of it.
longest_input=4096
# Far more than any input may take, so that this says "out of memory" and not the host.
memory_mib=512
[ $# -gt 0 ] || set -- hello opening call_header control_frame hostfile

host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
export RUSTFLAGS
# With a target named, build scripts are built without these flags.
cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$host" --target-dir build/fuzz/target

for target; do
  found=build/fuzz/$target
  mkdir -p "$found/corpus"
  echo "fuzzing $target for $seconds s"
  # The first folder takes what is new.
  if ! "build/fuzz/target/$host/release/$target" -max_total_time="$seconds" -max_len=$longest_input \
    -rss_limit_mb=$memory_mib -timeout=5 -print_final_stats=1 -artifact_prefix="$found/" \
    "$found/corpus" "fuzz/corpus/$target" >"$found/log" 2>&1; then
    tail -n 40 "$found/log"
    echo "$target: a finding; the input is in $found, the whole log in $found/log" >&2
    exit 1
  fi
  sed -n 's/^stat::number_of_executed_units: */    executions: /p' "$found/log"
done
