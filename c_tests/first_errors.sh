#!/bin/sh
# What a compiler says first of wrong calls is what errors.cc says beside them: first_errors.sh COMPILER INCLUDE ERRORS_CC.
set -eu
export LC_ALL=C
compiler=$1
include=$2
source=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile() { "$compiler" -std=c++17 -fsyntax-only "-DWRONG=$1" "-I$include" "$source" >"$work/said" 2>&1; }

compile 0 || { cat "$work/said"; exit 1; }
sed -n 's|^#.* WRONG == \([1-9][0-9]*\)  // \(.*\)|\1 \2|p' "$source" >"$work/wrong"
[ "$(wc -l <"$work/wrong")" -ge 10 ] || { echo "$source has too few wrong calls"; exit 1; }
status=0
while read -r number text; do
  if compile "$number"; then
    echo "call $number compiles"
    status=1
  elif ! grep -m 1 "error:" "$work/said" | grep -qF "$text"; then
    echo "of call $number $compiler says first:"
    grep -m 1 "error:" "$work/said"
    status=1
  fi
done <"$work/wrong"
exit $status
