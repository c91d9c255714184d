#!/bin/sh
# The first C program in README.md is examples/c/all_reduce.c, and that of the section about plugins a part of examples/c/plugin.c. Likewise
# the Swift one, and the Python one in part.
set -eu
cd "$(dirname "$0")/.."
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md | diff - examples/c/all_reduce.c

part=$(mktemp)
trap 'rm -f "$part"' EXIT
awk '/^## / { here = $0 == "## Loading libring as a plugin" }
  here && /^```c$/ { inside = 1; next }
  /^```$/ && inside { exit }
  inside' README.md >"$part"
[ -s "$part" ] || { echo "README has no program in the section about plugins"; exit 1; }
# As many lines, from where the first one stands.
awk -v first="$(head -n 1 "$part")" -v lines="$(wc -l <"$part")" '$0 == first { here = 1 } here && lines-- > 0' examples/c/plugin.c |
  diff "$part" -

awk '/^```swift$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md | diff - examples/swift/all_reduce/main.swift
awk '/^```python$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md >"$part"
[ -s "$part" ] || { echo "README has no program in Python"; exit 1; }
awk -v first="$(head -n 1 "$part")" -v lines="$(wc -l <"$part")" '$0 == first { here = 1 } here && lines-- > 0' examples/python/all_reduce.py |
  diff "$part" -
