# What tests of ring-perf share. Sourced by the scripts beside it with the program as the only argument. What it prints is in
# $work/out and $work/err.
perf=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$1"
  [ -s "$work/out" ] && cat "$work/out"
  [ -s "$work/err" ] && cat "$work/err"
  exit 1
}

# Runs ring-perf and expects an exit status.
expect() {
  wanted=$1
  shift
  "$perf" "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ "$got" -eq "$wanted" ] || fail "ring-perf $*: exit status $got, not $wanted"
}

has() {
  grep -q -- "$1" "$work/$2" || fail "no \"$1\" in what was printed:"
}
