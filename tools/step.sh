#!/bin/sh
# Runs a command with its output put aside: `step.sh NAME PATTERN COMMAND...` says how it went, with the
# lines that match the pattern (none if it is empty), and shows everything if it failed.
set -u
name=$1
pattern=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$(date +%s)
printf '%-34s' "$name"
"$@" >"$log" 2>&1
status=$?
if [ "$status" -ne 0 ]; then
  printf ' FAILED (exit status %d): %s\n' "$status" "$*"
  cat "$log"
  exit "$status"
fi
printf ' ok  %4d s\n' $(($(date +%s) - started))
[ -z "$pattern" ] || grep -- "$pattern" "$log" | sed 's/^/    /'
exit 0
