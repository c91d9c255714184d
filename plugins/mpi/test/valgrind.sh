#!/bin/sh
# Runs a program, and what it forks, in valgrind: no error and no leak. Exit status 77: there is no valgrind.
set -eu
if ! command -v valgrind >/dev/null; then
  echo "skipped: valgrind is missing"
  exit 77
fi
here=$(dirname "$0")
exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
  --suppressions="$here/valgrind.supp" --suppressions="$here/../../../c_tests/valgrind.supp" "$@"
