#!/bin/sh
# Runs a program, and what it forks, in valgrind: `valgrind.sh PROGRAM [ARGUMENT...]`. No error, no
# leak, and no descriptor open at the end that wasn't at the start. Exit status 77: there is no valgrind.
set -eu
if ! command -v valgrind >/dev/null; then
  echo "skipped: valgrind is missing"
  exit 77
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0

# Each process has a log of its own. Errors and leaks become its exit status.
valgrind --log-file="$logs/%p" --error-exitcode=99 --track-fds=yes --leak-check=full --show-leak-kinds=all \
  --errors-for-leak-kinds=all --suppressions="$(dirname "$0")/valgrind.supp" "$@" || failed=1

for log in "$logs"/*; do
  # One that was killed had no time to clean up, but made no other errors either.
  if grep -q 'terminating with default action of signal' "$log"; then
    leaks=$(grep -c 'in loss record' "$log" || true)
    grep -q "ERROR SUMMARY: .* errors from $leaks contexts" "$log" && continue
  elif grep -q 'ERROR SUMMARY: 0 errors' "$log"; then
    # 0 to 2 are standard; of others a line says where they are from.
    awk '/ Open / { open = $0; next } open != "" { if (!/inherited from parent/) left = 1; open = "" } END { exit left }' \
      "$log" && continue
  fi
  cat "$log" >&2
  failed=1
done
exit $failed
