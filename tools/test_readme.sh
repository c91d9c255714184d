#!/bin/sh
# The first C program in README.md is examples/c/all_reduce.c.
set -eu
cd "$(dirname "$0")/.."
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md | diff - examples/c/all_reduce.c
