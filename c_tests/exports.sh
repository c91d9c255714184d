#!/bin/sh
# The library exports functions of its own name and nothing else, and knows what it is called.
set -eu
library=$1
others=$(nm -D --defined-only "$library" | awk '$3 !~ /^ring_/')
if [ -n "$others" ]; then
  echo "exported, but not ring_*:"
  echo "$others"
  exit 1
fi
readelf -d "$library" | grep -q 'SONAME.*\[libring.so.0\]' || { echo "SONAME is not libring.so.0"; exit 1; }
readelf -d "$library" | grep -q NODELETE || { echo "the library may be unloaded"; exit 1; }
nm -D --defined-only "$library" | grep -q ' ring_all_reduce$' || { echo "ring_all_reduce is missing"; exit 1; }
