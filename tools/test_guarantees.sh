#!/bin/sh
# Every test that README's table of guarantees names is there, and every guarantee names one: `test_guarantees.sh CTEST BUILD`, with a
# build folder of c_tests.
set -eu
ctest=$1
build=$2
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^\| guarantee \| held by \|$/ { inside = 1; getline; next } !/^\|/ { inside = 0 } inside' README.md >"$work/rows"
[ "$(wc -l <"$work/rows")" -ge 20 ] || { echo "README has no table of guarantees"; exit 1; }

status=0
lacks() {
  echo "README's guarantees: $1"
  status=1
}

awk -F' \\| ' 'NF != 2 || $2 !~ /`/' "$work/rows" >"$work/bare"
[ ! -s "$work/bare" ] || lacks "a row without a test: $(cat "$work/bare")"

"$ctest" --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p' >"$work/ctest"
sed 's/^.* | //' "$work/rows" | grep -o '`[^`]*`' | tr -d '`' | sort -u >"$work/named"
while read -r command; do
  name=${command##* }
  case $command in
    "ctest -R "*) grep -Eq -- "$name" "$work/ctest" || lacks "no test for \`$command\`" ;;
    "cargo test --test "*) [ -f "tests/$name.rs" ] || lacks "no tests/$name.rs" ;;
    "cargo test "*) grep -rqE "^ *fn $name\(" src tests || lacks "no Rust test $name" ;;
    "make "*) grep -q "^$name:" Makefile || lacks "no target $name" ;;
    *) lacks "what is \`$command\`?" ;;
  esac
done <"$work/named"
exit $status
